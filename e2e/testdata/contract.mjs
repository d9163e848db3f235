// SPDX-License-Identifier: Apache-2.0

// Tests of the memory contract.

import {init} from '/dist/index.mjs';
import {called, check, contents, fails, gpuBuffer, onBoth, same, throws, webgpu} from './testing.mjs';

/** What the device can wrap: each makes a matrix of memory of the user's and says how to look into it. */
function wrappers(gpu) {
  const kinds = {
    array(values, rows, cols, options) {
      const memory = Float32Array.from(values);
      const m = gpu.wrap(memory, rows, cols, options);
      return {m, memory, look: async () => { if (!m.closed && m.external) await m.sync(); return memory; }};
    },
  };
  if (gpu.device) {
    kinds.buffer = (values, rows, cols, options) => {
      const memory = gpuBuffer(gpu.device, Float32Array.from(values));
      return {m: gpu.wrapBuffer(memory, rows, cols, options), memory, look: async () => { await gpu.sync(); return contents(gpu.device, memory); }};
    };
  }
  return Object.entries(kinds);
}

const count = (from = 1, n = 6) => Array.from({length: n}, (_, i) => from + i);

export const tests = {
  placed: onBoth(async (gpu) => {
    const a = gpu.matrix(2, 3, count(), {offset: 8, stride: 5}), b = gpu.matrix(2, 3, count(), {order: 'column', padded: true, aligned: true});
    same(await a.read(), count(), 'with a stride');
    same(await b.read(), [1, 3, 5, 2, 4, 6], 'padded columns');
    check(a.stride === 5 && a.offset === 8 && b.stride === 4, `strides ${a.stride} ${b.stride}`);
    a.set(count(7));
    b.set(count(7));
    a.assign(a.add(b));
    same(await a.read(), [14, 17, 20, 18, 21, 24], 'sum');
    same(await gpu.ones(3, 3, {padded: true}).read(), Array(9).fill(1), 'ones');
    same(await gpu.eye(2, {dtype: 'int32'}).read(), [1, 0, 0, 1], 'eye');

    const mine = new Float32Array(16).fill(9), p = gpu.wrap(mine, 2, 3, {offset: 4, stride: 4, padded: true, aligned: true});
    p.assign(p.add(1));
    await p.sync();
    same(mine, [9, 9, 9, 9, 10, 10, 10, 0, 10, 10, 10, 0, 9, 9, 9, 9], 'pads');
    if (!gpu.device) return;
    const buffer = gpuBuffer(gpu.device, mine), q = gpu.wrapBuffer(buffer, 3, 3, {stride: 4, padded: true});
    q.assign(q.mul(2));
    await gpu.sync();
    same(await contents(gpu.device, buffer), [18, 18, 18, 0, 20, 20, 20, 0, 20, 20, 20, 0, 9, 9, 9, 9], 'pads in a GPUBuffer');
  }),

  fromBuffer: onBoth(async (gpu) => {
    for (const [kind, wrap] of wrappers(gpu)) {
      const onDevice = kind === 'buffer';
      const {memory} = wrap(count(1, 8), 2, 4);
      const copied = onDevice ? {setValueOnDevice: true} : {};
      const a = gpu.fromBuffer(memory, 2, 3, {...copied, offset: 1, stride: 4}), b = gpu.fromBuffer(memory, 2, 3, {dontOwnBuffer: true});
      const c = gpu.fromBuffer(memory, 2, 3, {...copied, order: 'column', rowMajorInput: true}), d = gpu.fromBuffer(memory, 2, 3, {...copied, order: 'column'});
      if (!onDevice) memory.fill(0);
      same(await a.read(), [2, 3, 4, 6, 7, 8], `a copy of a part, ${kind}`);
      same(await c.read(), count(), `rows into columns, ${kind}`);
      same(await d.read(), [1, 3, 5, 2, 4, 6], `columns, ${kind}`);
      check([a, b, c, d].map((m) => m.external).join() === 'false,true,false,false', `external, ${kind}`);
      check([a.order, c.order, d.order].join() === 'row,column,column' && c.stride === 2, `order, ${kind}`);
      b.assign(5);
      await b.sync();
      same(await (onDevice ? contents(gpu.device, memory) : memory), [5, 5, 5, 5, 5, 5, ...(onDevice ? [7, 8] : [0, 0])], `the memory itself, ${kind}`);
      const copy = b.clone();
      check(!copy.external && copy.mode === 'owned', 'a clone is owned');
      same(await copy.read(), Array(6).fill(5), `clone, ${kind}`);
    }
    if (gpu.device) {
      const {memory} = wrappers(gpu)[1][1](count(), 2, 3);
      await throws('ErrInvalid', 'a GPUBuffer without a flag', () => gpu.fromBuffer(memory, 2, 3));
      await throws('ErrShort', 'too little', () => gpu.fromBuffer(memory, 3, 3, {setValueOnDevice: true}));
      const before = gpu.stats(), m = gpu.fromBuffer(memory, 2, 3, {setValueOnDevice: true});
      await gpu.sync();
      const after = gpu.stats();
      check(after.bytesUp === before.bytesUp && after.bytesDown === before.bytesDown, 'a copy on the device moves nothing');
      same(await m.read(), count(), 'copied on the device');
    }
  }),

  setValue: onBoth(async (gpu) => {
    for (const [kind, wrap] of wrappers(gpu)) {
      const {m, look} = wrap(count(), 2, 3), other = gpu.matrix(2, 3, count(10)), small = gpu.matrix(1, 2, [7, 8]);
      m.memory.setValue(other);
      same(await look(), count(10), `in place, ${kind}`);
      m.memory.setValue(small.add(1));
      same(await m.read(), [8, 9], `smaller, ${kind}`);
      same((await look()).slice(0, 3), [8, 9, 12], `the memory, ${kind}`);
      check(m.external && m.mode === 'external' && m.cols === 2 && m.capacity === 6, `state, ${kind}`);
      m.memory.setValue(other.T);
      same(await m.read(), [10, 13, 11, 14, 12, 15], `the whole again, ${kind}`);
      await throws('ErrExternalResize', `too large, ${kind}`, () => m.memory.setValue(gpu.zeros(3, 3)));
      await throws('ErrShape', `assign does not resize, ${kind}`, () => m.assign(small));
      m.memory.setValue(m.slice([1, 3]));
      same(await m.read(), [11, 14, 12, 15], `a part of itself, ${kind}`);
      m.memory.setValue(gpu.zeros(0, 5));
      check(m.size === 0 && m.cols === 5, `empty, ${kind}`);
      same(await m.read(), [], `empty, ${kind}`);
    }
    const own = gpu.matrix(1, 2, [1, 2]), a = gpu.matrix(2, 2, count(1, 4));
    const sum = own.add(1);
    own.memory.setValue(a);
    same(await own.matmul(a).read(), [7, 10, 15, 22], 'owned, larger');
    await throws('ErrView', 'an expression of what it was', () => sum.eval());
    own.memory.setValue(own);
    own.memory.setValue(own.slice([1, 2]));
    same(await own.read(), [3, 4], 'owned, a part of itself');
    const map = gpu.map(2, 2);
    map.memory.setValue(a.mul(3));
    map.memory.setValue(gpu.matrix(1, 2, [5, 6]));
    same(await map.access(false, (data) => Array.from(data)), [5, 6], 'mapped');
    await throws('ErrExternalResize', 'mapped, too large', () => map.memory.setValue(gpu.zeros(5, 1)));
    const half = gpu.matrix(1, 3, [1, 2, 3], {dtype: 'float16'});
    half.memory.setValue(gpu.matrix(1, 4, [1, 2, 3, 4], {dtype: 'float16'}));
    same(await half.astype('float32').read(), [1, 2, 3, 4], 'float16');
  }),

  setValueFrom: onBoth(async (gpu) => {
    for (const [kind, wrap] of wrappers(gpu)) {
      const calls = [], release = (name) => ({release: () => calls.push(name)});
      const first = wrap(count(), 2, 3, release('first')), second = wrap(count(20, 4), 2, 2), {m} = first;
      const flags = kind === 'buffer' ? {setValueOnDevice: true} : {};
      m.memory.setValueFrom(second.memory, 1, 4, flags);
      check(!m.external && m.mode === 'external' && m.capacity === 6, `copied into it, ${kind}`);
      same(await m.read(), count(20, 4), `copied, ${kind}`);
      await called(gpu, calls, [], 'a copy');
      m.memory.rebind(second.memory, 2, 2, {...release('second'), order: 'column'});
      same(await m.read(), [20, 22, 21, 23], `other memory, ${kind}`);
      check(m.external && m.order === 'column', `state, ${kind}`);
      await called(gpu, calls, ['first'], 'the old memory');
      m.memory.setValueFrom(first.memory, 1, 2, {...release('third'), dontOwnBuffer: true});
      await called(gpu, calls, ['first', 'second'], 'used itself');
      await throws('ErrShort', 'too little', () => m.memory.rebind(first.memory, 5, 5, release('never')));
      await throws('ErrInvalid', 'another element type', () => m.memory.rebind(first.memory, 1, 1, {dtype: 'int32'}));
      await throws('ErrExternalResize', 'a copy too large', () => m.memory.setValueFrom(first.memory, 2, 3, flags));
      m.close();
      await called(gpu, calls, ['first', 'second', 'third'], 'closed');
      const {m: parent} = wrap(count(), 2, 3, release('parent')), alias = parent.memory.alias();
      alias.memory.setValueFrom(Float32Array.of(5), 1, 1, {dontOwnBuffer: true});
      same(await parent.read(), count(), `what is shared keeps its memory, ${kind}`);
      const another = parent.memory.alias();
      await throws('ErrView', `shared, ${kind}`, () => parent.memory.setValue(gpu.zeros(1, 1)));
      another.close();
      parent.close();
      await called(gpu, calls, ['first', 'second', 'third', 'parent'], 'the last that had it');
      alias.close();
    }
    const own = gpu.zeros(1, 1);
    own.memory.setValueFrom(Float32Array.of(1, 2, 3, 4), 2, 2, {order: 'column', rowMajorInput: true});
    same(await own.read(), [1, 2, 3, 4], 'owned');
    check(own.order === 'row' && !own.external && own.mode === 'owned', 'the order stays the matrix\'s');
    own.memory.rebind(Float32Array.of(1, 2), 1, 2).memory.setValueFrom(Float32Array.of(3, 4), 1, 2);
    check(!own.external, 'not external any more');
    await throws('ErrExternalResize', 'but still in that memory', () => own.memory.resize(2, 2));
    await throws('ErrExternalResize', 'which a larger copy does not leave', () => own.memory.setValueFrom(Float32Array.of(1, 2, 3, 4), 2, 2));
    same(await own.read(), [3, 4], 'what it was');
  }),

  refused: onBoth(async (gpu) => {
    // What only Go can tell. The matrix is what it was before, and whoever used it meanwhile hears why.
    const a = gpu.matrix(1, 2, [1, 2]), sum = a.add(1);
    a.memory.resize(1, 2 ** 30);
    check(a.cols === 2 ** 30, 'the size is there at once');
    const meanwhile = a.slice([0, 1], [0, 2]).add(1).read();
    await fails('ErrLimit', 'what used it meanwhile', () => meanwhile);
    check(a.shape.join() === '1,2', `shape ${a.shape}`);
    same(await sum.read(), [2, 3], 'an expression from before');
    same(await a.read(), [1, 2], 'the matrix');
    a.memory.resize(1, 2 ** 30);
    await fails('ErrLimit', 'sync', () => gpu.sync());
    a.memory.resize(2, 2).assign(4);
    same(await a.read(), [4, 4, 4, 4], 'a change that works');
    await gpu.sync();
    if (!gpu.device) return;
    const calls = [], m = wrappers(gpu)[1][1]([1, 2], 1, 2, {release: () => calls.push('mine')}).m;
    const wrong = gpu.device.createBuffer({size: 64, usage: GPUBufferUsage.COPY_DST});
    m.memory.rebind(wrong, 4, 4, {release: () => calls.push('wrong')});
    await fails('ErrInvalid', 'a buffer without the usages', () => m.read());
    same(await m.read(), [1, 2], 'the memory from before');
    await called(gpu, calls, [], 'nothing was taken over');
    m.memory.rebind(wrong, 4, 4, {release: () => calls.push('wrong')}).close();
    await gpu.sync().catch(() => {});
    await called(gpu, calls, ['mine'], 'closed meanwhile');
  }),

  taken: onBoth(async (gpu) => {
    for (const [kind, wrap] of wrappers(gpu)) {
      const calls = [], release = (name) => ({release: () => calls.push(name)});
      const {m: a} = wrap(count(), 2, 3, release('a')), {m: b} = wrap(count(7, 2), 1, 2, release('b')), own = gpu.matrix(1, 1, [9]);
      const before = gpu.stats();
      b.memory.take(a);
      check(b.shape.join() === '2,3' && b.external && a.size === 0 && !a.external && a.mode === 'owned', `take, ${kind}`);
      await called(gpu, calls, ['b'], 'what was given up');
      own.memory.swap(b);
      check(own.external && !b.external && b.size === 1, `swap, ${kind}`);
      const moved = own.memory.move();
      check(moved.external && own.size === 0 && !own.closed, `move, ${kind}`);
      const now = gpu.stats();
      check(now.bytesUp === before.bytesUp && now.bytesDown === before.bytesDown && now.dispatches === before.dispatches, `nothing moves, ${kind}`);
      same(await moved.read(), count(), `the elements, ${kind}`);
      same(await b.read(), [9], `the other, ${kind}`);
      same(await a.read(), [], 'empty');
      a.assign(moved.mul(2));
      same(await a.read(), count().map((x) => 2 * x), 'an empty one takes the size');
      moved.memory.take(moved);
      moved.memory.reset();
      await called(gpu, calls, ['b', 'a'], 'reset');
      check(moved.size === 0 && moved.mode === 'owned', `reset, ${kind}`);
    }
    const other = await init();
    await throws('ErrForeign', 'another device', () => gpu.zeros(1, 1).memory.take(other.zeros(1, 1)));
    other.close();
  }),

  sizes: onBoth(async (gpu) => {
    const a = gpu.matrix(2, 3, count());
    a.memory.setShape(3, 2);
    same(await a.T.read(), [1, 3, 5, 2, 4, 6], 'another shape');
    const live = gpu.stats().liveBytes;
    a.memory.resize(1, 4).assign(2);
    same(await a.read(), [2, 2, 2, 2], 'smaller');
    check(gpu.stats().liveBytes === live, 'in place');
    a.memory.resize(4, 4).assign(gpu.eye(4));
    same(await a.sum({axis: 0}).read(), [1, 1, 1, 1], 'larger');
    const alias = a.memory.alias();
    await throws('ErrView', 'shared', () => a.memory.resize(1, 1));
    alias.memory.setShape(2, 8).assign(3);
    same(await a.read(), Array(16).fill(3), 'an alias');
    check(a.shape.join() === '4,4', 'keeps its shape');
    alias.close();
    a.memory.resize(1, 1);
    for (const [kind, wrap] of wrappers(gpu)) {
      const {m, look} = wrap(count(), 2, 3);
      await throws('ErrExternalResize', kind, () => m.memory.resize(1, 1));
      m.memory.setShape(6, 1).row(5).assign(0);
      same(await look(), [1, 2, 3, 4, 5, 0], `shaped, ${kind}`);
    }
  }),

  locations: onBoth(async (gpu) => {
    const a = gpu.zeros(2, 2), mine = gpu.wrap(new Float32Array(4), 2, 2);
    check(await a.location === 'none', `new: ${await a.location}`);
    check(await mine.location === 'host', `wrapped: ${await mine.location}`);
    a.assign(mine);
    check(await a.location === 'device' && await mine.location === 'both', `read: ${await a.location}, ${await mine.location}`);
    mine.assign(a.add(1));
    check(await mine.location === 'device', `written: ${await mine.location}`);
    await mine.sync();
    check(await mine.location === 'both', `synced: ${await mine.location}`);
    mine.touch();
    check(await mine.location === 'host', `touched: ${await mine.location}`);
    a.close();
    await fails('ErrClosed', 'closed', () => a.location);
  }),

  plans: onBoth(async (gpu) => {
    const a = gpu.full(64, 64, 1), x = gpu.full(64, 1, 2);
    const chain = a.matmul(a.add(1)).matmul(x), plan = await chain.explain();
    check(plan.kernels.length === 3 && plan.kernels.every((k) => k.wgsl.includes('fn main') && k.dtype === 'float32'), `plan: ${plan}`);
    check(plan.temporaries === 2 && plan.temporaryBytes === 64 * 64 * 4 + 64 * 4, `temporaries: ${plan}`); // and no 64 x 64 of a product
    check(plan.bytesWritten === plan.temporaryBytes + 64 * 4 && plan.bytesRead > 0, `bytes: ${plan}`);
    check(`${plan}`.split('\n').length === 4 && `${plan}`.includes('kernels: 3'), `text: ${plan}`);
    same(await chain.slice([2, 4]).read(), [64 * 4 * 64, 64 * 4 * 64], 'rows of a chain');
    a.close();
    await fails('ErrClosed', 'plan', () => chain.explain());
    x.close();
  }),

  nothingLeaks: onBoth(async (gpu) => {
    const one = gpu.full(8, 8, 1), buffer = gpu.device && gpuBuffer(gpu.device, new Float32Array(64));
    await one.read();
    const before = gpu.stats();
    let released = 0, made = 0;
    for (let i = 0; i < 1000; i++) {
      const a = gpu.wrap(new Float32Array(64), 8, 8, {release: () => released++}), b = a.memory.alias();
      made++;
      a.memory.setValueFrom(new Float32Array(16), 4, 4, {dontOwnBuffer: true});
      b.memory.setValue(one).memory.setShape(4, 16);
      const c = b.memory.move();
      if (buffer) c.memory.rebind(buffer, 8, 8).memory.setValueFrom(buffer, 8, 8, {setValueOnDevice: true});
      const s = gpu.sparse(2, 2, {format: 'csc', values: [1], indices: [1], offsets: [0, 1, 1]}), v = s.values(), d = s.toDense();
      for (const x of [a, b, c, s, v, d]) x.close();
    }
    await gpu.sync();
    await new Promise((done) => setTimeout(done));
    const after = gpu.stats();
    check(released === made, `${released} of ${made} released`);
    check(after.liveBytes === before.liveBytes && after.buffers === before.buffers, `${after.liveBytes} live bytes, ${before.liveBytes} before`);
    one.close();
  }),

  async lostAndBack() {
    const gpu = await webgpu(), {device, lost} = gpu;
    await gpu.reopen(); // which it need not
    check(gpu.device === device && gpu.lost === lost, 'a device that is not lost was replaced');
    const mine = Float32Array.of(1, 2, 3, 4), results = new Float32Array(4).fill(9);
    const a = gpu.wrap(mine, 2, 2), unsynced = gpu.wrap(results, 2, 2), own = gpu.matrix(1, 2, [1, 2]), mapped = gpu.map(1, 2);
    const theirs = gpu.wrapBuffer(gpuBuffer(device, mine), 2, 2), twice = gpu.fn('fn twice(x: f32) -> f32 { return 2.0 * x; }');
    const s = gpu.wrapSparse(2, 2, {format: 'csc', values: Float32Array.of(5, 6), indices: Int32Array.of(0, 1), offsets: Int32Array.of(0, 1, 2)});
    const computed = async () => {
      same(await a.apply(twice).read(), [2, 4, 6, 8], 'wrapped memory');
      same(await s.matmul(a).read(), [5, 10, 18, 24], 'a wrapped sparse matrix');
      same(await mapped.add(1).read(), [8, 8], 'mapped memory');
    };
    const crunched = async () => {
      const cr = await gpu.cruncher('fn add3(i: u32) { arr[i] = arr[i] + 3u; }', {devices: 'own'}), data = Uint32Array.of(1, 2);
      await cr.compute(1, 'add3', {global: 2, local: 1}, cr.array('arr', data));
      same(data, [4, 5], 'a cruncher');
      return cr;
    };
    const cruncher = await crunched();
    mapped.assign(7);
    unsynced.assign(a.add(1));
    await mapped.sync();
    await computed();
    device.destroy();
    check((await lost).reason === 'destroyed', 'the reason');
    await fails('ErrDeviceLost', 'while it is lost', () => a.add(1).read());
    await fails('ErrInvalid', 'a successor that is none', () => gpu.reopen({device: {}}));
    await Promise.all([gpu.reopen(), gpu.reopen()]);
    check(gpu.device !== device && gpu.lost !== lost, 'the device is the old one');
    await computed();
    same((await contents(gpu.device, await a.buffer)).subarray(0, 4), mine, 'a buffer of the new device');
    for (const [what, m] of Object.entries({own, theirs, unsynced})) await fails('ErrDeviceLost', what, () => m.add(1).read());
    await fails('ErrDeviceLost', 'results that nobody fetched', () => unsynced.sync());
    await fails('ErrDeviceLost', 'a cruncher of the old device', () => cruncher.compute(1, 'add3', {global: 2, local: 1}, cruncher.array('arr', new Uint32Array(2))));
    await crunched();
    own.assign(3);
    unsynced.touch();
    same(await own.add(1).read(), [4, 4], 'what was assigned anew');
    same(await unsynced.read(), [9, 9, 9, 9], 'what the page had');
    const again = gpuBuffer(gpu.device, Float32Array.of(1, 2)), w = gpu.wrapBuffer(again, 1, 2);
    same(await w.add(1).read(), [2, 3], 'a buffer of the user\'s on the new device');
    gpu.device.destroy();
    await gpu.lost;
    await gpu.reopen();
    await computed(); // and again
    gpu.close();
    await fails('ErrClosed', 'after close', () => gpu.reopen());
  },

  async successor() {
    const adapter = () => navigator.gpu.requestAdapter(), {limits: {maxBufferSize}} = await adapter();
    const request = async (size) => (await adapter()).requestDevice({requiredLimits: {maxBufferSize: size}});
    const device = await request(maxBufferSize), gpu = await init({device}), mine = Float32Array.of(1, 2), m = gpu.wrap(mine, 1, 2);
    same(await m.add(1).read(), [2, 3], 'before');
    device.destroy();
    await gpu.lost;
    await fails('ErrInvalid', 'no successor', () => gpu.reopen());
    await gpu.reopen().catch(({message}) => check(message.includes('the option device names its successor'), message));
    for (const call of [() => gpu.reopen({device}), () => init({device})]) await fails('ErrDeviceLost', 'a device that is lost', call);
    await fails('ErrLimit', 'a smaller one', async () => gpu.reopen({device: await request(maxBufferSize / 2)}));
    await fails('ErrDeviceLost', 'it is lost as before', () => m.add(1).read());
    const next = await request(maxBufferSize);
    await gpu.reopen({device: next});
    check(gpu.device === next, 'another device');
    m.assign(m.mul(10));
    await m.sync();
    same(mine, [10, 20], 'after');
    const other = await request(maxBufferSize), closed = await init({device: other});
    other.destroy();
    await closed.lost;
    const reopening = closed.reopen({device: next});
    closed.close();
    await fails('ErrClosed', 'a Gpu that is closed while it gets another device', () => reopening);
    gpu.close();
    await new Promise((done) => setTimeout(done, 50));
    check(await Promise.race([next.lost, null]) === null, 'close destroyed a device of the user\'s');
    next.destroy();
  },
};
