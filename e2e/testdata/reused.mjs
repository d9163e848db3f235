// SPDX-License-Identifier: Apache-2.0

// Tests of whose memory results have: of those in between where messages are done again without the program, and of results in the memory of
// others that were closed.

import {check, fails, observed, onBoth, same} from './testing.mjs';

export const tests = {
  // Launches that workers help with are done again with them.
  repeatedByThreads: Object.assign(async () => {
    const {gpu, count} = await observed({device: 'simd', threads: 2}), n = 600, values = Float32Array.from({length: n * n}, (_, i) => i % 7 - 3), b = 5;
    const a = gpu.matrix(n, n, values), c = gpu.zeros(n, n), large = {sum: (x) => x.mul(b).add(1).abs().sqrt().sum({axis: 1}), whole: (x) => x.mul(b).add(1).mul(x)};
    let free = 0;
    for (const [name, of] of Object.entries(large)) {
      const want = await of(a).read();
      for (let i = 0; i < 30; i++) {
        const before = count();
        if (name === 'whole') c.assign(of(a));
        else same(await of(a).read(), want, name);
        await gpu.sync();
        if (count() === before) free++;
      }
      if (name === 'whole') same(await c.read(), want, name);
    }
    check(free > 0, 'nothing was repeated');
    gpu.close();
  }, {both: true}),

  // Assignments and evaluations with results in between are repeated, and these are in nobody's memory.
  repeatedStages: Object.assign(async (device = 'webgpu') => {
    const {gpu, count} = await observed({device: device === 'both' ? 'webgpu' : device}), n = 48, values = (k) => Float32Array.from({length: n * n}, (_, i) => (i * k % 17 - 8) / 8);
    const a = gpu.matrix(n, n, values(5)), b = gpu.matrix(n, n, values(7)), free = [];
    const stages = {
      products: a.matmul(b).clip(-9, 9).matmul(a).clip(-9, 9).matmul(b), sums: a.matmul(b).sum({axis: 0}), centred: a.matmul(b).sub(a.matmul(b).mean({axis: 0})), long: Array.from({length: 120}).reduce((x) => x.add(b), a),
    };
    for (const [name, x] of Object.entries(stages)) {
      const want = await x.read(), c = gpu.zeros(x.rows, x.cols), others = [];
      let assigned = 0, evaluated = 0;
      for (let i = 0; i < 70 && evaluated < 3; i++) { // what takes long on a busy machine is not repeated
        const before = count(), result = x.eval();
        await gpu.sync();
        if (count() === before) evaluated++;
        same(await result.read(), want, `${name}, evaluated`);
        result.close();
      }
      for (let i = 0; i < 70 && assigned < 3; i++) {
        if (i < 9) others.push(a.add(i).eval(), x.add(i).eval()); // in memory that was in use for results in between
        await gpu.sync();
        const before = count();
        c.assign(x);
        await gpu.sync();
        if (count() === before) assigned++;
        same(await c.read(), want, `${name}, assigned`);
      }
      for (const [i, other] of others.entries()) {
        same((await other.read()).slice(0, 9), (await (i % 2 ? x : a).add(i >> 1).read()).slice(0, 9), `${name}: another matrix`);
        other.close();
      }
      c.close();
      if (assigned > 0 && evaluated > 0) free.push(name);
    }
    check(free.length === Object.keys(stages).length, `repeated was only ${free}`);
    gpu.close();
  }, {both: true}),

  // What reads a matrix for some time gets its elements, although the page closes it meanwhile and has results of its size.
  reusedLater: onBoth(async (gpu) => {
    const n = 700, all = (x) => new Float32Array(n * n).fill(x), a = gpu.full(n, n, 1), unit = gpu.sparse(n, 2, {format: 'csc', values: [1, 1], indices: [3, 5], offsets: [0, 1, 2]});
    for (let i = 0; i < 4; i++) {
      const x = a.add(i).eval(), saving = gpu.saveParams([['x', x], ['y', x.add(1)]]), b = a.mul(i + 1).eval(), product = unit.mulBlockColumn(b), later = [];
      x.close();
      b.close();
      for (let k = 0; k < 20; k++) {
        later.push(a.mul(-7).eval());
        await new Promise((resolve) => { setTimeout(resolve); });
        later.pop().close();
      }
      const params = await gpu.loadParams(await saving), columns = await product;
      same(await params.get('x').read(), all(i + 1), 'saved and closed');
      same(await params.get('y').read(), all(i + 2), 'a saved expression');
      same(await columns.toDense().read(), all(i + 1).slice(0, 2 * n), 'columns of what was closed');
      params.close();
      columns.close();
    }
    a.close();
  }),

  // A result goes into the memory of one that was closed, and nobody sees the other's elements.
  reused: onBoth(async (gpu) => {
    const a = gpu.full(8, 8, 1), all = (x) => new Float32Array(64).fill(x);
    let before = null;
    for (let i = 0; i < 12; i++) {
      const x = a.add(i).eval(), read = x.read(), y = x.add(a).eval(), alias = i % 3 ? null : y.memory.alias();
      x.close();
      const z = a.mul(i).eval(); // in the memory of x, which is read before
      same(await read, all(i + 1), 'what was read before it was closed');
      if (before) same(await before.read(), all(i + 1), 'another name of what was closed');
      y.close();
      before?.close();
      before = alias;
      const w = gpu.full(8, 8, 7).add(z).eval();
      same(await w.read(), all(7 + i), 'a sum');
      same(await z.read(), all(i), 'a product');
      if (alias) same(await alias.read(), all(i + 2), 'another name of what was closed');
      before?.assign(a.add(i + 1));
      for (const m of [z, w]) m.close();
    }
    before?.close();
    const {buffers} = gpu.stats();
    for (let i = 0; i < 20; i++) a.add(i).eval().close();
    check(gpu.stats().buffers === buffers, `${gpu.stats().buffers} matrices where ${buffers} are open`);
  }),

  // Elements of the page's go into the memory of matrices that were closed, without a call of the program, and nobody sees the others'
  // elements. What the page does to its arrays afterwards does not matter.
  reusedUploads: Object.assign(async (device = 'webgpu') => {
    const {gpu, count} = await observed({device: device === 'both' ? 'webgpu' : device}), kept = [];
    for (const {dtype, order, n} of [{dtype: 'float32', n: 64}, {dtype: 'int8', n: 7}, {dtype: 'complex64', n: 4}, {dtype: 'float32', order: 'column', n: 8}, {dtype: 'uint16', n: 3}]) {
      const Class = {float32: Float32Array, complex64: Float32Array, int8: Int8Array, uint16: Uint16Array}[dtype], length = n * n * (dtype === 'complex64' ? 2 : 1);
      const values = (k) => Class.from({length}, (_, i) => (i * 7 + k) % 100), flipped = (v) => order === 'column' ? v.map((_, e) => v[e % n * n + Math.floor(e / n)]) : v;
      const other = gpu.matrix(n, n, values(99), {dtype, order}), made = {matrix: 0, set: 0};
      for (let i = 0; i < 40; i++) {
        const array = values(i), before = count(), m = gpu.matrix(n, n, array, {dtype, order});
        await gpu.sync();
        if (count() === before) made.matrix++;
        array.fill(99);
        same(await m.read(), flipped(values(i)), `${dtype}, elements of matrix ${i}`);
        if (i % 8 === 0) kept.push({m, want: flipped(values(i))});
        else m.close();
      }
      for (let i = 0; i < 20; i++) {
        const array = values(i + 50), before = count();
        other.set(array);
        await gpu.sync();
        if (count() === before) made.set++;
        array.fill(99);
        same(await other.read(), flipped(values(i + 50)), `${dtype}, set for the time ${i}`);
      }
      check(values(0).byteLength % 4 > 0 || made.matrix > 0 && made.set > 0, `${dtype}: repeated were ${made.matrix} matrices and ${made.set} calls of set`);
    }
    for (const {m, want} of kept) same(await m.read(), want, 'a matrix that stayed open');
    const before = gpu.stats(), up = 30 * 64 * 64 * 4;
    for (let i = 0; i < 30; i++) gpu.matrix(64, 64, new Float32Array(4096).fill(i)).close();
    const {buffers, bytesUp} = gpu.stats();
    check(buffers === before.buffers && bytesUp - before.bytesUp === up, `${buffers} buffers and ${bytesUp - before.bytesUp} bytes where there are ${before.buffers} and ${up}`);
    gpu.close();
  }, {both: true}),

  // Elements are given between computations that are repeated, in whatever order, and matrices of several names and parts of others get them.
  reusedBetween: onBoth(async (gpu) => {
    const a = gpu.zeros(8, 8), all = (x) => new Float32Array(64).fill(x), alias = a.memory.alias(), wide = gpu.matrix(8, 8, all(1), {stride: 16});
    for (let i = 0; i < 30; i++) {
      const x = gpu.matrix(8, 8, Array.from(all(i))), y = x.add(a).eval(); // a copy, which goes with what follows
      a.set(all(i));
      const z = x.add(a).eval();
      wide.set(all(-i));
      x.set(all(3));
      x.close();
      const w = gpu.matrix(8, 8, all(1000));
      same(await y.read(), all(i + Math.max(0, i - 1)), 'a sum before');
      same(await z.read(), all(2 * i), 'a sum between');
      same(await alias.add(wide).read(), all(0), 'another name, and rows that are apart');
      same(await w.read(), all(1000), 'what came last');
      for (const m of [y, z, w]) m.close();
    }
    const buffer = new ArrayBuffer(256, {maxByteLength: 256}), grown = new Float32Array(buffer);
    for (let i = 0; i < 12; i++) {
      grown.fill(i);
      const m = gpu.matrix(8, 8, grown);
      buffer.resize?.(i % 2 ? 256 : 0);
      buffer.resize?.(256);
      same(await m.read(), all(i), 'elements of memory that became smaller');
      m.close();
      const gone = all(i), read = gpu.matrix(8, 8, gone);
      structuredClone(gone, {transfer: [gone.buffer]});
      same(await read.read(), all(i), 'elements of memory that is gone');
      read.close();
      await fails('ErrShort', 'an array that is gone', () => gpu.matrix(8, 8, gone).read());
    }
  }),

  // A result that cannot be computed is an error each time, also in the memory of another.
  reusedFailures: onBoth(async (gpu) => {
    const a = gpu.full(8, 8, 1), bad = gpu.fn('fn bad(x: f32) -> f32 { return y; }');
    for (let i = 0; i < 4; i++) {
      for (let j = 0; j < 3; j++) {
        const x = a.add(j).eval();
        await gpu.sync();
        x.close();
      }
      const y = a.apply(bad).eval();
      for (let j = 0; j < 3; j++) await fails('ErrCompile', 'a result that there is not', () => y.add(1).read());
      y.close();
      const z = gpu.matrix(8, 8, new Float32Array(64).fill(i));
      same(await z.read(), new Float32Array(64).fill(i), 'elements in place of a result that there is not');
      z.close();
    }
    const x = a.add(1).eval();
    same(await x.read(), new Float32Array(64).fill(2), 'the sum after that');
  }),

  // Other events of the page happen while messages are repeated one after the other.
  repeatedBesideEvents: onBoth(async (gpu) => {
    const a = gpu.full(64, 64, 1), c = gpu.zeros(64, 64);
    let happened = false;
    setTimeout(() => { happened = true; });
    for (let i = 0; i < 200000 && !happened; i++) {
      c.assign(a.add(1));
      if (i % 2) await gpu.sync();
      else await c.read();
    }
    check(happened, 'no event of the page in 200,000 repeats');
  }),
};
