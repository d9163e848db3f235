// SPDX-License-Identifier: Apache-2.0

// Tests of the npm package that work in a page, under a policy and in a worker.

import {check, fails, onBoth, same, throws} from './testing.mjs';

export const tests = {
  example: onBoth(async (gpu) => {
    const mine = new Float32Array([1, 2, 3, 4, 5, 6]);
    const a = gpu.matrix(2, 3, [1, 0, 0, 0, 1, 0]);
    const b = gpu.wrap(mine, 3, 2);
    const c = a.matmul(b).add(1).relu();
    same(await c.read(), [2, 3, 4, 5], 'product');
    b.assign(c.T.matmul(a).T);
    await b.sync();
    same(mine, [2, 3, 4, 5, 0, 0], 'the array after sync');
    check(Object.values(gpu.stats()).every(Number.isFinite) && gpu.stats().kernels > 0, `counters ${JSON.stringify(gpu.stats())}`);
  }),

  cruncher: onBoth(async (gpu) => {
    const cr = await gpu.cruncher('fn add3stream(i: u32) { arr[i] = arr[i] + 3u; }', {devices: ['own', 'high-performance']});
    const arr = cr.array('arr', new Uint8Array(1000).fill(55), {partialRead: true});
    await cr.compute(1, 'add3stream', {global: 1000, local: 100}, arr);
    check(arr.data[770] === 58, `the array holds ${arr.data[770]}`);
    check(cr.last.bytesUp === 1000 && cr.last.bytesDown === 1000, `${cr.last.bytesUp} bytes up, ${cr.last.bytesDown} down`);
    await cr.batch((b) => { for (let i = 0; i < 3; i++) b.compute(1, 'add3stream', {global: 1000, local: 100}, arr); });
    check(arr.data[999] === 67, `after a batch ${arr.data[999]}`);
  }),

  pictures: onBoth(async (gpu) => {
    const data = Uint8ClampedArray.of(1, 2, 3, 255, 40, 50, 60, 255);
    same(await (await gpu.fromImage({data, width: 2, height: 1}, {dtype: 'uint8'})).read(), data, 'bytes');
    if (!('OffscreenCanvas' in globalThis)) return; // Node has no canvas
    const canvas = new OffscreenCanvas(2, 1), context = canvas.getContext('2d');
    context.putImageData(new ImageData(data, 2, 1), 0, 0);
    for (const source of [canvas, new ImageData(data, 2, 1)]) {
      const picture = await gpu.fromImage(source, {dtype: 'uint8'});
      same(await picture.read(), data, 'the bytes of a picture');
      await (await gpu.fromImage(source, {channels: 3})).mul(0.5).toCanvas(canvas);
      same(context.getImageData(0, 0, 2, 1).data, [1, 1, 2, 255, 20, 25, 30, 255], 'what was drawn', 1);
      context.putImageData(new ImageData(data, 2, 1), 0, 0);
    }
  }),

  params: onBoth(async (gpu) => {
    const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), file = await gpu.saveParams([['a', a.mul(2)], ['b', {data: Int8Array.of(1, -2), shape: [2]}]]);
    const loaded = await gpu.loadParams(file.stream());
    same(await loaded.get('a').matrix().add(a).read(), [3, 6, 9, 12, 15, 18], 'a');
    same(await loaded.get('b').read(), [1, -2], 'b');
    same((await gpu.scanParams(file)).map(({offset}) => offset), [32 + 18 + 56, 32 + 18 + 56 + 24 + 48], 'offsets');
  }),

  externalTypedArray: onBoth(async (gpu) => {
    for (const memory of [new ArrayBuffer(64), new SharedArrayBuffer(64)]) {
      const all = new Float32Array(memory);
      all.set(Array.from({length: 16}, (_, i) => i));
      let released = 0;
      // Two rows of three, four apart, from element 2 on.
      const m = gpu.wrap(memory, 2, 3, {offset: 2, stride: 4, release: () => released++});
      same(await m.read(), [2, 3, 4, 6, 7, 8], 'wrapped');
      m.assign(m.mul(10));
      same(all.slice(2, 5), [2, 3, 4], 'before sync');
      await m.sync();
      same(all, [0, 1, 20, 30, 40, 5, 60, 70, 80, 9, 10, 11, 12, 13, 14, 15], 'after sync');
      all[2] = -1;
      m.touch();
      same(await m.sum().read(), [-1 + 30 + 40 + 60 + 70 + 80], 'after touch');
      const byColumns = gpu.wrap(new DataView(memory, 4, 24), 2, 3, {order: 'column'});
      same(await byColumns.read(), [1, 30, 5, -1, 40, 60], 'by columns');
      check(released === 0, 'released too early');
      m.close();
      m.close();
      await gpu.sync();
      check(released === 1, `released ${released} times`);
      same(all.slice(0, 2), [0, 1], 'the memory after close');
    }
  }),

  mapped: onBoth(async (gpu) => {
    const m = gpu.map(2, 2);
    same(await m.read(), [0, 0, 0, 0], 'new');
    const length = await m.access(true, async (data) => {
      await null;
      data.set([1, 2, 3, 4]);
      return data.length;
    });
    check(length === 4, `length ${length}`);
    m.assign(m.matmul(m));
    same(await m.access(false, (data) => Array.from(data)), [7, 10, 15, 22], 'after a product');
    const busy = m.access(true, (data) => data.fill(1));
    await throws('ErrMapped', 'use while the callback has it', () => m.add(1).eval());
    await busy;
    same(await m.read(), [1, 1, 1, 1], 'filled');
    let own;
    await m.access(true, () => { throw new RangeError('mine'); }).catch((error) => { own = error; });
    check(own instanceof RangeError && own.message === 'mine', 'the error of the callback');
    same(await m.read(), [1, 1, 1, 1], 'after an error');
    await fails('ErrUnsupported', 'access of owned memory', () => gpu.zeros(1, 1).access(true, () => {}));
  }),
};
