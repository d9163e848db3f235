// SPDX-License-Identifier: Apache-2.0

// Tests of where memory is, of what moves between it and the device, and in which order.

import {SubletError, init} from '/dist/index.mjs';
import {check, contents, fails, gpuBuffer, noise, same, throws, webgpu, withGpu} from './testing.mjs';

export const tests = {
  externalBuffers: withGpu(async (gpu) => {
    const {device} = gpu;
    const x = gpuBuffer(device, new Float32Array([9, 9, 1, 2, 9, 3, 4, 9])), y = gpuBuffer(device, new Float32Array(4));
    let released = 0;
    const before = gpu.stats();
    const a = gpu.wrapBuffer(x, 2, 2, {offset: 2, stride: 3, release: () => released++}), b = gpu.wrapBuffer(y, 2, 2);
    b.assign(a.matmul(a));
    check(await b.buffer === y, 'buffer');
    same(await contents(device, y), [7, 10, 15, 22], 'in the buffer');
    const after = gpu.stats();
    check(after.bytesUp === before.bytesUp && after.bytesDown === before.bytesDown, 'wrapping a GPUBuffer moves nothing');
    check(await a.buffer === x, 'buffer of a wrapped one');
    a.close();
    b.close();
    await gpu.sync();
    check(released === 1, `released ${released} times`);
    same(await contents(device, x), [9, 9, 1, 2, 9, 3, 4, 9], 'the buffer after close');
    const z = gpuBuffer(device, new Float32Array([1, 2])), ours = gpu.wrapBuffer(z, 1, 2, {release: 'destroy'});
    const sum = ours.add(1).eval();
    ours.close();
    same(await sum.read(), [2, 3], 'what was built on a buffer that was destroyed since');
    sum.close();
    await gpu.sync();
    device.pushErrorScope('validation');
    device.queue.writeBuffer(z, 0, new Float32Array(2));
    check(await device.popErrorScope(), 'the buffer was not destroyed');
    const dead = gpuBuffer(device, new Float32Array(2));
    dead.destroy();
    const ghost = gpu.wrapBuffer(dead, 1, 2);
    await fails('ErrInvalid', 'a destroyed buffer', () => ghost.add(1).read());
    ghost.close();
    same(await gpu.full(1, 1, 1).add(1).read(), [2], 'after that');
    await throws('ErrInvalid', 'a release that is none', () => gpu.wrapBuffer(x, 1, 1, {release: 'free'}));
    const own = gpu.matrix(1, 2, [1, 2]).mul(2).eval();
    same((await contents(device, await own.buffer)).subarray(0, 2), [2, 4], 'buffer of an owned matrix');
    await throws('ErrShort', 'too short', () => gpu.wrapBuffer(x, 3, 3));
    await throws('ErrInvalid', 'no buffer', () => gpu.wrapBuffer(new Float32Array(9), 3, 3));
    const wrong = device.createBuffer({size: 64, usage: GPUBufferUsage.COPY_DST});
    await fails('ErrInvalid', 'usages', () => gpu.wrapBuffer(wrong, 2, 2).read());
    for (const size of [2, 5, 10]) {
      const odd = device.createBuffer({size, usage: x.usage});
      await throws('ErrInvalid', `a buffer of ${size} bytes`, () => gpu.wrapBuffer(odd, 1, 1, {dtype: 'float16'}));
      await throws('ErrInvalid', `${size} bytes to copy`, () => gpu.fromBuffer(odd, 1, 1, {dtype: 'float16', setValueOnDevice: true}));
      await throws('ErrInvalid', `${size} bytes for another matrix`, () => gpu.zeros(1, 1, {dtype: 'float16'}).memory.rebind(odd, 1, 1));
    }
  }),

  // A mapped buffer is refused, and stays what it is: mapped, with what its owner writes into it.
  mappedBuffers: withGpu(async (gpu) => {
    const {device} = gpu, usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = device.createBuffer({size: 16, usage, mappedAtCreation: true}), range = new Float32Array(buffer.getMappedRange());
    range.set([1, 2, 3, 4]);
    const target = gpu.zeros(2, 2);
    for (const [what, run] of Object.entries({
      wrapBuffer: () => gpu.wrapBuffer(buffer, 2, 2).read(), fromBuffer: () => gpu.fromBuffer(buffer, 2, 2, {setValueOnDevice: true}).read(),
      rebind: async () => { target.memory.rebind(buffer, 2, 2); await gpu.sync(); },
    })) {
      await fails('ErrMapped', what, run);
      check(buffer.mapState === 'mapped' && range.length === 4, `${what} unmapped the buffer`);
    }
    same(await target.read(), [0, 0, 0, 0], 'a matrix that was not given the buffer');
    range[3] = 5;
    buffer.unmap();
    const m = gpu.wrapBuffer(buffer, 2, 2);
    same(await m.add(1).read(), [2, 3, 4, 6], 'the buffer, once it is not mapped');
  }),

  async callersDevice() {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice();
    const gpu = await init({device});
    check(gpu.device === device, 'another device');
    const buffer = gpuBuffer(device, new Float32Array([1, 2, 3, 4]));
    const m = gpu.wrapBuffer(buffer, 2, 2);
    m.assign(m.add(1));
    same(await m.read(), [2, 3, 4, 5], 'sum');
    const other = await webgpu();
    await throws('ErrForeign', 'operands of two devices', () => other.zeros(2, 2).add(m));
    await fails('ErrForeign', 'a buffer of another device', () => other.wrapBuffer(buffer, 2, 2).add(1).read());
    other.close();
    gpu.close();
    await new Promise((done) => setTimeout(done, 50));
    same(await contents(device, buffer), [2, 3, 4, 5], 'the device after close');
    device.destroy();
  },

  /** Errors that come together are all told: gpu.sync() is not to hide from others that their work was refused. */
  refusedTogether: withGpu(async (gpu) => {
    const other = await webgpu();
    gpu.zeros(2, 2).assign(1); // compiles what fills
    await gpu.sync();
    const stranger = () => gpu.wrapBuffer(gpuBuffer(other.device, new Float32Array(4)), 2, 2).assign(3);
    for (let i = 0; i < 3; i++) {
      const bystander = gpu.matrix(2, 2, [1, 2, 3, 4]), next = gpu.matrix(2, 2, [1, 2, 3, 4]);
      stranger();
      bystander.assign(7);
      gpu.flush();
      stranger();
      next.assign(8);
      await new Promise((done) => setTimeout(done, 50));
      await gpu.sync().then(() => { throw new Error('nothing was refused'); }, () => {});
      for (const [what, m, want] of [['the first', bystander, 7], ['the second', next, 8]]) {
        const got = await m.read().catch((error) => error);
        check(got instanceof SubletError || got[0] === want, `${what} batch of round ${i} is read as ${got}`);
      }
    }
    other.close();
  }),

  moves: withGpu(async (gpu) => {
    const x = noise(48 * 32, 1), y = noise(32 * 16, 2);
    const s0 = gpu.stats();
    const a = gpu.wrap(x, 48, 32), b = gpu.wrap(y, 32, 16);
    check(gpu.stats().bytesUp === s0.bytesUp, 'wrapping copies');
    const c = a.matmul(b).add(1).eval();
    const d = a.matmul(b).add(2).eval();
    await gpu.sync();
    const s1 = gpu.stats();
    check(s1.bytesUp - s0.bytesUp === x.byteLength + y.byteLength, `${s1.bytesUp - s0.bytesUp} bytes up`);
    check(s1.bytesDown === s0.bytesDown, 'something came down');
    check(s1.compilations - s0.compilations === 1, `${s1.compilations - s0.compilations} kernels for one shape`);
    await c.read();
    check(gpu.stats().bytesDown - s1.bytesDown === 48 * 16 * 4, 'bytes of one result');
    const e = gpu.wrap(noise(32 * 16, 3), 32, 16), compiled = gpu.stats().compilations;
    a.matmul(e).add(3).eval();
    await gpu.sync();
    const s2 = gpu.stats();
    check(s2.compilations === compiled, 'the same expression compiled again');
    check(s2.bytesUp - s1.bytesUp === 32 * 16 * 4, 'an operand went up twice');
    d.close();
  }),

  leaks: withGpu(async (gpu) => {
    const one = gpu.full(8, 8, 1);
    await one.read();
    const before = gpu.stats();
    for (let i = 0; i < 10000; i++) {
      const a = gpu.zeros(8, 8), b = a.add(one).eval(), c = gpu.wrap(new Float32Array(64), 8, 8);
      if (i % 1000 === 0) same((await b.read()).subarray(0, 1), [1], 'sum');
      a.close();
      b.close();
      c.close();
    }
    await gpu.sync();
    const after = gpu.stats();
    check(after.liveBytes === before.liveBytes, `${after.liveBytes} live bytes, ${before.liveBytes} before`);
    check(after.buffers === before.buffers, `${after.buffers} buffers, ${before.buffers} before`);
    check(after.peakBytes < 64 * 1024 * 1024, `${after.peakBytes} bytes at a time`);
    one.close(); // until here the collector must not
  }),

  order: withGpu(async (gpu) => {
    // While a kernel is being compiled, everything behind it waits and keeps its order.
    const y = gpu.zeros(1, 4), reads = [];
    for (let i = 0; i < 30; i++) {
      const f = gpu.fn(`fn step${i}(x: f32) -> f32 { return x + ${i}.0; }`);
      if (i % 3 === 0) y.assign(y.apply(f));
      else y.assign(y.add(i));
      reads.push(y.read());
      if (i % 7 === 0) await null;
    }
    let sum = 0;
    for (const [i, read] of reads.entries()) same(await read, Array(4).fill(sum += i), `step ${i}`);
    const values = new Float32Array([1, 2, 3, 4]), m = gpu.matrix(1, 4, values); // copied at once, also while something waits
    y.apply(gpu.fn('fn late(x: f32) -> f32 { return x * 3.0; }')).eval();
    const n = gpu.matrix(1, 4, values);
    values.fill(0);
    same(await m.read(), [1, 2, 3, 4], 'copied');
    same(await n.read(), [1, 2, 3, 4], 'copied while a kernel is compiled');
    const reading = m.read();
    m.assign(0);
    m.close();
    same(await reading, [1, 2, 3, 4], 'a read sees what was there when it was asked for');
    const many = await Promise.all(Array.from({length: 100}, (_, i) => gpu.full(1, 1, i).mul(2).read()));
    same(many.map((v) => v[0]), Array.from({length: 100}, (_, i) => 2 * i), 'reads at a time');
  }),
};
