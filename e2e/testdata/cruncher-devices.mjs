// SPDX-License-Identifier: Apache-2.0

// Tests of crunchers' devices and programs: where they come from, and how they end.

import {init} from '/dist/index.mjs';
import {ADD3, THREE, TWO, told} from './cruncher-testing.mjs';
import {check, fails, mortally, throws, webgpu, withGpu, withoutWebGPU} from './testing.mjs';

export const tests = {
  devices: withGpu(async (gpu) => {
    const count = async (devices) => {
      using cr = await gpu.cruncher(ADD3, {devices});
      const arr = cr.array('arr', 1000, {dtype: 'uint32'});
      await cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr);
      check(arr.data.every((x) => x === 3), `on ${told(devices)}`);
      check(cr.devices.every(({driver, name, limits}) => driver === 'browser' && name !== '' && limits.maxBufferSize > 0) && Object.isFrozen(cr.devices[0].limits), 'devices');
      return cr.devices.length;
    };
    check(await count() === 1 && await count('all') === 1 && await count('own') === 1, 'SwiftShader is the only adapter here');
    check(await count(['low-power', 'low-power', 'own', 'own']) === 4, 'some twice');
    const mine = await (await navigator.gpu.requestAdapter()).requestDevice();
    check(await count([mine, gpu.device, mine]) === 3, 'a GPUDevice of the page\'s, twice');
    const buffer = mine.createBuffer({size: 16, usage: GPUBufferUsage.COPY_DST});
    mine.pushErrorScope('validation');
    mine.queue.writeBuffer(buffer, 0, new Uint8Array(16));
    check(await mine.popErrorScope() === null && await count([mine]) === 1, 'it lives on');

    // One that is lost: the others do its work.
    const cr = await gpu.cruncher(ADD3, {devices: [gpu.device, mine]}), arr = cr.array('arr', 1000, {dtype: 'uint32'});
    await cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr);
    mine.destroy();
    await mine.lost;
    await cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr);
    check(arr.data.every((x) => x === 6) && cr.last.shares[0].count === 1000, 'with a device less');
    await fails('ErrDeviceLost', 'the lost one alone', async () => (await gpu.cruncher(ADD3, {devices: [mine]})).compute(1, 'add3stream', {global: 1000}, arr));
    // So do those of a pool, and a device that is added.
    const next = await (await navigator.gpu.requestAdapter()).requestDevice(), both = await gpu.cruncher(ADD3, {devices: [next, gpu.device]}), pool = await both.pool(), alone = await (await gpu.cruncher(ADD3, {devices: [next]})).pool();
    const parts = both.array('arr', 1000, {dtype: 'uint32', partialRead: true}), tasks = Array.from({length: 10}, (_, k) => both.task(1, 'add3stream', {global: 100, offset: 100 * k}, parts));
    pool.enqueue(...tasks);
    next.destroy();
    await pool.finish();
    check(parts.data.every((x) => x === 3) && pool.remaining === 0, `a pool that loses a device: ${parts.data}`);
    alone.enqueue(...tasks);
    await fails('ErrDeviceLost', 'a pool of lost devices', () => alone.finish());
    await alone.addDevice(gpu.device);
    await alone.finish();
    check(parts.data.every((x) => x === 6) && alone.completed.join() === '0,10', `a device that is added: ${alone.completed}`);
    const two = await gpu.cruncher(ADD3, {devices: TWO}), heavy = two.array('arr', 1 << 20, {dtype: 'uint32'});
    const call = two.compute(1, 'add3stream', {global: 1 << 20, blobs: 8}, heavy);
    gpu.device.destroy();
    await call;
    check(heavy.data.every((x) => x === 3), 'a device lost in the middle');
    await fails('ErrDeviceLost', 'with none left', () => cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr));
  }),

  adapters: withGpu(async (gpu) => {
    // A browser with two GPUs: what requestAdapter brings says that it is another one where that is wanted.
    const {requestAdapter} = GPU.prototype;
    const pretend = (power, info) => {
      GPU.prototype.requestAdapter = async function (options) {
        const real = await requestAdapter.call(this, options);
        if (options?.powerPreference !== power) return real;
        return {info, limits: real.limits, features: real.features, requestDevice: (descriptor) => real.requestDevice(descriptor)};
      };
    };
    const named = async (devices) => {
      const cr = await gpu.cruncher(ADD3, {devices}), arr = cr.array('arr', 1000, {dtype: 'uint32'}), names = cr.devices.map(({name}) => name);
      await cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr);
      check(arr.data.every((x) => x === 3), `on ${names}`);
      cr.close();
      return names.join();
    };
    try {
      const own = gpu.info.name;
      for (const power of ['high-performance', 'low-power']) {
        pretend(power, {vendor: 'intel', architecture: 'xe', device: '', description: ''});
        check(await named() === `${own},intel xe`, `with another one for ${power}: ${await named()}`);
        check(await named('own') === own, 'the own one alone');
      }
      check(await named(['low-power']) === 'intel xe', 'the frugal one');
      pretend('low-power', {vendor: 'mesa', architecture: '', device: '', description: 'llvmpipe'});
      check(await named('all') === own, 'software does not count');
    } finally {
      GPU.prototype.requestAdapter = requestAdapter;
    }
  }),

  closing: async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    let live = 0;
    const {createBuffer} = device;
    device.createBuffer = (descriptor) => {
      const buffer = createBuffer.call(device, descriptor), {destroy} = buffer;
      live++;
      buffer.destroy = () => {
        live--;
        destroy.call(buffer);
      };
      return buffer;
    };
    const gpu = await init({device}), cr = await gpu.cruncher(ADD3), range = {global: 1000};
    let released = 0;
    const release = () => { released++; };
    const [a, b, c, d] = Array.from({length: 4}, () => cr.array('arr', new Uint32Array(1000), {release}));
    await cr.compute(1, 'add3stream', range, a);
    const running = cr.compute(1, 'add3stream', range, b);
    b.close();
    await running;
    await new Promise((done) => { setTimeout(done, 50); });
    check(released === 1 && b.data[999] === 3, `closed during a call: released ${released} times`);
    a.close();
    a.close();
    a[Symbol.dispose]();
    check(a.closed && a.data.length === 1000, 'a closed array');
    await fails('ErrClosed', 'a closed array in a call', () => cr.compute(1, 'add3stream', range, a));
    await throws('ErrClosed', 'its flags', () => a.read);
    await throws('ErrClosed', 'setting them', () => { a.read = true; });
    await throws('ErrClosed', 'touch', () => a.touch());
    const last = cr.compute(1, 'add3stream', range, c);
    cr.close();
    cr.close();
    await last; // a call that had begun
    check(cr.closed && c.data[0] === 3 && !c.closed, 'a closed cruncher');
    for (const run of [() => cr.compute(1, 'add3stream', range, c), () => cr.fetch(c), () => cr.evict(c), () => cr.batch(() => {}), async () => cr.last, async () => cr.stats(1),
      async () => cr.traffic(), async () => cr.array('arr', 5)]) await fails('ErrClosed', String(run), run);
    const again = await gpu.cruncher(ADD3); // the arrays are good for another one
    await again.compute(1, 'add3stream', range, c);
    check(c.data[0] === 6, 'an array in another cruncher');
    let open;
    const batch = again.batch(() => new Promise(() => { open = true; })), waiting = again.compute(1, 'add3stream', range, d);
    await fails('ErrBatch', 'a call beside a batch', () => waiting);
    const pending = gpu.cruncher(ADD3, {devices: THREE});
    gpu.close();
    gpu.close();
    check(open, 'the batch was not open');
    for (const promise of [pending]) await fails('ErrClosed', 'who waits when the Gpu is closed', () => promise);
    await fails('ErrClosed', 'from then on', () => again.compute(1, 'add3stream', range, c));
    await new Promise((done) => { setTimeout(done, 100); });
    check(released === 4, `released ${released} times`);
    check(live === 0, `${live} buffers are left on the page's device`);
    device.destroy();
    void batch;
  },

  programs: async () => {
    for (const [what, cruncherWasm] of [['nowhere', '/nowhere.wasm'], ['another program', '/dist/sublet.wasm'], ['no program', new Uint8Array(8)]]) {
      using given = await webgpu({cruncherWasm});
      await fails('ErrInvalid', what, () => given.cruncher(ADD3));
      await fails('ErrInvalid', `${what}, again`, () => given.cruncher(ADD3));
    }
    using given = await webgpu({cruncherWasm: fetch('/dist/sublet-cruncher.wasm')});
    await mortally('syscall/js.valueGet', async (programs) => {
      const [a, b] = await Promise.all([given.cruncher(ADD3), given.cruncher(ADD3)]);
      check(programs.started === 1, `${programs.started} programs for two crunchers`);
      const arr = a.array('arr', 100, {dtype: 'uint32'}), range = {global: 100};
      await b.compute(1, 'add3stream', range, arr);
      check(arr.data[0] === 3, 'an array of another cruncher of the Gpu');
      // A program that dies takes its promises with it, and the next cruncher has another.
      const batch = a.batch(() => new Promise(() => {}));
      programs.deadly = true;
      await fails('exited', 'the call that finds out', () => b.compute(1, 'add3stream', range, arr));
      await throws('exited', 'a call from then on', () => arr.read);
      programs.deadly = false;
      const next = await given.cruncher(ADD3), other = next.array('arr', 100, {dtype: 'uint32'});
      await next.compute(1, 'add3stream', range, other);
      check(other.data[99] === 3 && programs.started === 2, 'a program after a dead one');
      void batch;
    });
  },

  'without WebGPU': () => withoutWebGPU(async () => {
    const gpu = await init(), cr = await gpu.cruncher(ADD3, {devices: TWO});
    check(cr.devices.every(({driver}) => driver === 'simd'), JSON.stringify(cr.devices));
    const arr = cr.array('arr', 1000, {dtype: 'uint32'});
    await cr.compute(1, 'add3stream', {global: 1000, local: 100}, arr);
    check(arr.data.every((x) => x === 3), `the array holds ${arr.data}`);
    await fails('ErrInvalid', 'no device', () => gpu.cruncher(ADD3, {devices: [null]}));
    gpu.close();
  }),
};
