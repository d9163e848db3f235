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
