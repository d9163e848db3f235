// SPDX-License-Identifier: Apache-2.0

// Tests of mistakes, of what is closed, and of pages that cannot compute as they would.

import {SubletError, init} from '/dist/index.mjs';
import {check, fails, mortally, noise, same, throws, webgpu, withGpu, withoutWebGPU} from './testing.mjs';

export const tests = {
  mistakes: withGpu(async (gpu) => {
    const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), before = gpu.stats();
    const list = [
      ['ErrShape', () => a.matmul(a)], ['ErrShape', () => a.add(gpu.zeros(3, 3))], ['ErrShape', () => gpu.where(a, a, gpu.zeros(5, 5))],
      ['ErrShape', () => a.reshape(4, 2)], ['ErrShape', () => a.assign(gpu.zeros(3, 2))], ['ErrShape', () => gpu.matrix(1, 1, [1, 2])],
      ['ErrIndex', () => a.slice([0, 3])], ['ErrIndex', () => a.slice(-3)], ['ErrIndex', () => a.slice([1, 0])], ['ErrInvalid', () => a.slice(0, 1, 0, 1)], ['ErrIndex', () => a.row(2)],
      ['ErrInvalid', () => a.col(NaN)], ['ErrInvalid', () => a.row('0')], ['ErrIndex', () => a.sum({axis: 2})], ['ErrIndex', () => a.sum({axis: '0'})],
      ['ErrInvalid', () => a.add()], ['ErrInvalid', () => a.add(null)], ['ErrInvalid', () => a.add('1')], ['ErrInvalid', () => a.add([1])],
      ['ErrInvalid', () => a.add(1n)], ['ErrInvalid', () => a.matmul(2)], ['ErrInvalid', () => gpu.add(1, 2)], ['ErrInvalid', () => gpu.exp(1)],
      ['ErrInvalid', () => a.astype('float64')], ['ErrInvalid', () => a.astype(7)], ['ErrInvalid', () => a.apply('x')], ['ErrIndex', () => a.sum(2)],
      ['ErrInvalid', () => a.assign('x')], ['ErrInvalid', () => a.assign(gpu.zeros(2, 3, {dtype: 'int32'}))], ['ErrInvalid', () => a.add(gpu.zeros(2, 3, {dtype: 'int32'}))],
      ['ErrInvalid', () => gpu.zeros(1, 1, {dtype: 'int32'}).add(0.5)], ['ErrInvalid', () => gpu.zeros(1, 1, {dtype: 'uint32'}).add(-1)],
      ['ErrInvalid', () => gpu.full(1, 1, 2 ** 31, {dtype: 'int32'})], ['ErrInvalid', () => gpu.full(1, 1, 'x')],
      ['ErrInvalid', () => gpu.matrix(NaN, 1)], ['ErrInvalid', () => gpu.matrix(1.5, 1)], ['ErrInvalid', () => gpu.matrix('2', 1)],
      ['ErrInvalid', () => gpu.matrix(Infinity, 1)], ['ErrInvalid', () => gpu.matrix()], ['ErrInvalid', () => gpu.matrix(1, 1, 'x')],
      ['ErrInvalid', () => gpu.matrix(1, 1, [1n])], ['ErrInvalid', () => gpu.matrix(1, 1, {length: 1})], ['ErrInvalid', () => gpu.matrix(1, 1, new BigInt64Array(1))],
      ['ErrInvalid', () => gpu.matrix(1, 1, [Symbol('x')])], ['ErrInvalid', () => gpu.matrix(1, 1, [1], 5)], ['ErrInvalid', () => gpu.matrix(1, 1, [1], {order: 'C'})],
      ['ErrInvalid', () => gpu.matrix(1, 1, [1], {get dtype() { throw new TypeError('mine'); }})],
      ['ErrInvalid', () => gpu.wrap([1], 1, 1)], ['ErrInvalid', () => gpu.wrap('x', 1, 1)], ['ErrInvalid', () => gpu.wrap(new Float32Array(1), 1, 1, {dtype: 'int32'})],
      ['ErrInvalid', () => gpu.wrap(new Float32Array(1), 1, 1, {release: 5})], ['ErrInvalid', () => gpu.wrap(new Float32Array(9), 2, 2, {stride: 2.5})],
      ['ErrInvalid', () => gpu.fn(5)],
      ['ErrSize', () => gpu.matrix(-1, 1)], ['ErrSize', () => a.reshape(-2, -3)],
      ['ErrLimit', () => gpu.matrix(1e20, 1)], ['ErrLimit', () => gpu.zeros(2 ** 20, 2 ** 20)], ['ErrLimit', () => gpu.zeros(2 ** 31, 1)],
      ['ErrLimit', () => gpu.matrix(2 ** 33, 0)], ['ErrLimit', () => gpu.zeros(2 ** 20, 1).matmul(gpu.zeros(1, 2 ** 20))],
      ['ErrShort', () => gpu.matrix(2, 2, [1])], ['ErrShort', () => gpu.wrap(new Float32Array(3), 2, 2)], ['ErrShort', () => gpu.wrap(new Float32Array(4), 2, 2, {offset: 1})],
      ['ErrStride', () => gpu.wrap(new Float32Array(9), 2, 2, {stride: 1})], ['ErrStride', () => gpu.wrap(new Float32Array(9), 2, 2, {offset: -1})],
      ['ErrAlignment', () => gpu.wrap(new Float32Array(9), 3, 3, {aligned: true})],
      ['ErrUnsupported', () => gpu.zeros(1, 1, {dtype: 'int32'}).exp()], ['ErrUnsupported', () => gpu.zeros(1, 1, {dtype: 'int32'}).mean()],
      ['ErrUnsupported', () => gpu.map(1, 1).set([1])],
    ];
    for (const [code, run] of list) await throws(code, String(run), run);
    for (const [code, run] of [
      ['ErrShape', () => a.value()], ['ErrInvalid', () => a.read(new Int32Array(6))], ['ErrInvalid', () => a.read('x')], ['ErrShort', () => a.read(new Float32Array(5))],
      ['ErrInvalid', () => init({device: {}})], ['ErrInvalid', () => init({device: null})], ['ErrInvalid', () => init({power: 'much'})], ['ErrInvalid', () => webgpu({wasm: 5})], ['ErrInvalid', () => init(5)],
      ['ErrInvalid', () => init({fallback: true})], ['ErrInvalid', () => init({device: 'cpu'})], ['ErrInvalid', () => init({device: 'simd', simdWasm: 5})], ['ErrInvalid', () => webgpu({wasm: '/nowhere.wasm'})], ['ErrInvalid', () => webgpu({wasm: new Uint8Array(8)})],
      ['ErrInvalid', () => init({wasm: Promise.reject(new TypeError('mine'))})], ['ErrInvalid', () => init({get wasm() { throw new Error('mine'); }})],
    ]) await fails(code, String(run), run);
    const gone = new Float32Array(4), m = gpu.wrap(gone, 2, 2);
    structuredClone(gone, {transfer: [gone.buffer]});
    await fails('ErrInvalid', 'a detached array', () => m.add(1).read());
    await throws('ErrShort', 'a detached array wrapped', () => gpu.wrap(gone, 2, 2));
    const into = new Float32Array(6), reading = a.read(into);
    structuredClone(into, {transfer: [into.buffer]});
    await fails('ErrInvalid', 'an array detached while it is read into', () => reading);
    same(await a.read(), [1, 2, 3, 4, 5, 6], 'the matrix after all that');
    check(gpu.stats().liveBytes - before.liveBytes < 1 << 24, 'memory is left behind');
  }),

  'a device whose work does not end': async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice(), stuck = await init({device});
    const wrapped = new Float32Array([1, 2]), a = stuck.wrap(wrapped, 1, 2), sum = a.add(1);
    let end = () => {};
    const ended = new Promise((resolve) => { end = resolve; });
    const hold = (of, name) => {
      const real = of[name].bind(of);
      of[name] = (...args) => ended.then(() => real(...args));
    };
    const create = device.createBuffer.bind(device);
    device.createBuffer = (descriptor) => {
      const buffer = create(descriptor);
      hold(buffer, 'mapAsync');
      return buffer;
    };
    hold(device.queue, 'onSubmittedWorkDone');
    a.assign(sum);
    const calls = [(o) => a.sync(o), (o) => sum.read(o), (o) => sum.read(new Float32Array(2), o), (o) => sum.sum().value(o), (o) => stuck.sync(o)];
    for (const call of calls) {
      const abort = new AbortController(), given = call({signal: abort.signal});
      setTimeout(() => abort.abort(), 20);
      await fails('ErrAborted', String(call), () => given);
    }
    const gpu = await webgpu();
    same(await gpu.matrix(1, 2, [1, 2]).add(1).read(), [2, 3], 'another device meanwhile');
    gpu.close();
    end();
    same(await sum.read(), [3, 4], 'what was queued');
    await a.sync();
    same(wrapped, [2, 3], 'wrapped memory');
    stuck.close();
    device.destroy();
  },

  errorsOfResults: withGpu(async (gpu) => {
    const wrong = (n) => gpu.fn(`fn wrong${n}(x: f32) -> f32 { return missing${n}(x); }`);
    const a = gpu.matrix(1, 2, [1, 2]);
    const bad = a.apply(wrong(1)).eval();
    await fails('ErrCompile', 'what is computed from it', () => bad.add(1).read());
    await fails('ErrCompile', 'itself', () => bad.read());
    await gpu.sync();
    a.apply(wrong(2)).eval();
    await fails('ErrCompile', 'sync', () => gpu.sync());
    await gpu.sync();
    const kept = gpu.matrix(1, 2, [5, 6]);
    kept.assign(a.apply(wrong(3)));
    await fails('ErrCompile', 'an operand that was not assigned', () => kept.add(1).read());
    same(await kept.read(), [5, 6], 'a failed assignment leaves the matrix as it was');
  }),

  useAfterClose: withGpu(async (gpu) => {
    const a = gpu.zeros(2, 2), view = a.T, sum = a.add(1);
    const pending = sum.read();
    a.close();
    a.close();
    check(a.closed, 'closed');
    same(await pending, [1, 1, 1, 1], 'what was asked before');
    for (const run of [() => a.add(1), () => sum.eval(), () => view.eval(), () => view.assign(1), () => a.assign(1), () => a.set([1, 2, 3, 4]), () => a.touch()]) {
      await throws('ErrClosed', String(run), run);
    }
    for (const run of [() => a.read(), () => sum.read(), () => a.sync(), () => a.buffer]) await fails('ErrClosed', String(run), run);
    const expr = gpu.zeros(1, 1).exp();
    expr.close();
    await throws('ErrClosed', 'an expression', () => expr.add(1));
    {
      const used = gpu.zeros(1, 1);
      used[Symbol.dispose]();
      check(used.closed, 'dispose');
    }
    const other = await webgpu();
    const b = other.matrix(1, 1, [1]), reading = b.read();
    let released = 0;
    other.wrap(new Float32Array(1), 1, 1, {release: () => released++});
    other.close();
    other.close();
    const [got] = await reading.catch((error) => [error.code]);
    check(got === 1 || got === 'ErrClosed', `a read before close: ${got}`);
    await throws('ErrClosed', 'a matrix of a closed device', () => b.add(1).eval());
    await throws('ErrClosed', 'a new matrix', () => other.zeros(1, 1));
    await fails('ErrClosed', 'sync', () => other.sync());
    for (let i = 0; i < 50 && released === 0; i++) await new Promise((done) => setTimeout(done, 20));
    check(released === 1, `released ${released} times`);
  }),

  // A program that dies takes its promises with it, and says so.
  death: () => mortally('syscall/js.valueInvoke', async (programs) => {
    const gpu = await webgpu();
    const a = gpu.matrix(64, 64, noise(4096)), reading = a.read(), waiting = gpu.sync();
    programs.deadly = true;
    await fails('exited', 'the call that finds out', () => a.matmul(a).read());
    await fails('exited', 'a promise from before', () => reading);
    await fails('exited', 'another', () => waiting);
    await throws('exited', 'a call from then on', () => gpu.zeros(1, 1));
    gpu.close();
  }),

  devices: async () => {
    await withoutWebGPU(() => fails('ErrNoAdapter', 'WebGPU where there is none', () => init({device: 'webgpu'})));
    // A page of its own, which has loaded nothing.
    const frame = document.body.appendChild(document.createElement('iframe')), page = /** @type {any} */ (frame.contentWindow), fetched = [];
    page.fetch = (source) => {
      fetched.push(String(source).split('/').at(-1));
      return fetch(source);
    };
    const fresh = await page.Function("return import('/dist/index.mjs')")();
    const driver = async (options) => {
      using gpu = await fresh.init(options);
      check((gpu.info.driver === 'browser' || gpu.info.kind === 'cpu') && (gpu.device === null) === (gpu.info.driver === 'simd'), `kind ${gpu.info.kind}`);
      return gpu.info.driver;
    };
    const having = (gpu, run) => {
      Object.defineProperty(page.navigator, 'gpu', {value: gpu, configurable: true});
      return run().finally(() => { delete page.navigator.gpu; });
    };
    const software = [
      null, {info: {vendor: 'google', architecture: 'swiftshader'}}, {info: {description: 'llvmpipe (LLVM 15)', isFallbackAdapter: false}}, {isFallbackAdapter: true},
      {info: {vendor: '', architecture: '', isFallbackAdapter: true}}, {info: {device: 'Microsoft Basic Render Driver'}},
    ];
    check(await driver() === 'simd', 'SwiftShader is not passed over');
    for (const adapter of software) {
      check(await having({requestAdapter: async () => adapter}, () => driver({device: 'auto'})) === 'simd', JSON.stringify(adapter));
    }
    check(await having(undefined, driver) === 'simd', 'without WebGPU');
    check(await driver({device: 'simd'}) === 'simd', 'simd');
    check(fetched.join() === 'sublet-simd.wasm', `fetched ${fetched}`);
    check(await driver({device: 'webgpu'}) === 'browser', 'webgpu');
    check(fetched.join() === 'sublet-simd.wasm,sublet.wasm', `fetched ${fetched}`);
    const real = page.navigator.gpu, info = {vendor: 'nvidia', architecture: 'ampere', device: '', description: '', isFallbackAdapter: false};
    const requestAdapter = async (options) => Object.defineProperty(await real.requestAdapter(options), 'info', {value: info});
    check(await having({requestAdapter}, driver) === 'browser', 'a GPU is passed over');
    frame.remove();
  },

  'an engine without vectors': async () => {
    const {validate} = WebAssembly;
    WebAssembly.validate = () => false;
    try {
      await fails('ErrNoAdapter', 'simd', () => init({device: 'simd'}));
      await withoutWebGPU(() => fails('ErrNoAdapter', 'auto', () => init()));
      await init({device: 'simd'}).catch(({message}) => check(message.includes('instructions for vectors'), message));
    } finally {
      WebAssembly.validate = validate;
    }
  },

  simd: () => withoutWebGPU(async () => {
    await fails('ErrInvalid', 'a program that is none', () => init({simdWasm: '/nowhere.wasm'}));
    const given = await init({simdWasm: fetch('/dist/sublet-simd.wasm')});
    same(await given.eye(2).read(), [1, 0, 0, 1], 'a program of the page\'s');
    given.close();
    const gpu = await init();
    check(gpu.info.driver === 'simd' && gpu.device === null, `driver ${gpu.info.driver}`);
    const mine = new Float32Array([1, 2, 3, 4]), a = gpu.wrap(mine, 2, 2), b = gpu.matrix(2, 2, [1, 0, 0, 2]);
    same(await a.matmul(b).add(1).read(), [2, 5, 4, 9], 'product');
    a.assign(a.mul(2));
    await a.sync();
    same(mine, [2, 4, 6, 8], 'sync');
    mine[0] = 10;
    a.touch();
    same(await a.sum().read(), [28], 'touch');
    same(await a.apply(gpu.fn('fn f(x: f32) -> f32 { return x + 1.0; }')).read(), [11, 5, 7, 9], 'WGSL');
    await fails('ErrUnsupported', 'a GPUBuffer', () => a.buffer);
    gpu.close();
  }),
};
