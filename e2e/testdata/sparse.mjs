// SPDX-License-Identifier: Apache-2.0

// Tests of sparse matrices.

import {called, check, fails, noise, onBoth, reference, same, throws} from './testing.mjs';

export const tests = {
  sparse: onBoth(async (gpu) => {
    const rows = 37, cols = 23, x = noise(rows * cols, 3).map((v) => Math.abs(v) < 0.7 ? 0 : v);
    x.fill(0, 5 * cols, 6 * cols); // an empty row
    const dense = gpu.matrix(rows, cols, x), y = noise(cols * 9, 4), b = gpu.matrix(cols, 9, y);
    const {c, bound} = reference((i, l) => x[i * cols + l], (l, j) => y[l * 9 + j], rows, cols, 9);
    for (const format of ['csc', 'csr', 'blockColumn']) {
      const made = await gpu.sparseFrom(dense, {format}), parts = await made.parts();
      check(made.nnz === parts.values.length && !made.external, `${format}: nnz ${made.nnz}`);
      const owned = gpu.sparse(rows, cols, {format, ...parts});
      const wrapped = gpu.wrapSparse(rows, cols, {format, ...parts});
      for (const s of [made, owned, wrapped]) {
        same(await s.toDense().read(), x, `${format} as a dense matrix`);
        same(await s.matmul(b).read(), c, `${format} product`, bound);
        const out = gpu.full(rows + 1, 12, 5), part = out.slice([1, rows + 1], [2, 11]);
        part.assign(s.matmul(b));
        same(await part.read(), c, `${format} product in place`, bound);
        same(await out.row(0).read(), Array(12).fill(5), `${format}: what lies beside it`);
        dense.assign(s);
        same(await dense.read(), x, `${format} into a matrix`);
        same(await s.matmul(b.mul(2).sub(b)).read(), c, `${format} times an expression`, bound.map((v) => 2 * v + 1e-6));
      }
      const v = wrapped.values();
      v.assign(v.mul(2));
      await wrapped.sync();
      same(parts.values, (await made.parts()).values.map((u) => 2 * u), `${format}: values after sync`);
      parts.values.fill(1);
      wrapped.touch();
      same(await wrapped.toDense().read(), (await made.toDense().read()).map((u, i) => format === 'blockColumn' ? +(parts.indices.includes(i % cols)) : +(u !== 0)), `${format}: touched`);
      for (const s of [made, owned, wrapped, v]) s.close();
    }
    const ints = gpu.sparse(2, 2, {format: 'csr', values: new Int32Array([7, -8]), indices: [1, 0], offsets: [0, 1, 2]});
    same(await ints.matmul(gpu.matrix(2, 1, new Int32Array([1, 2]))).read(), [14, -8], 'int32');
  }),

  sparseExpressions: onBoth(async (gpu) => {
    const rows = 9, cols = 7, thin = (seed, share) => noise(rows * cols, seed).map((v) => Math.abs(v) < share ? 0 : v);
    const x = thin(5, 0.6), y = thin(6, 0.4), a = gpu.matrix(rows, cols, x), b = gpu.matrix(rows, cols, y), z = noise(rows * cols, 7), d = gpu.matrix(rows, cols, z);
    for (const format of ['csc', 'csr', 'blockColumn']) {
      const s = await gpu.sparseFrom(a, {format}), t = await gpu.sparseFrom(b, {format: 'csr'}), order = format === 'csr' ? 'csr' : 'csc';
      for (const [what, got, want] of [
        ['scaled', s.mul(2), a.mul(2)], ['functions', s.abs().sqrt().neg(), a.abs().sqrt().neg()], ['transpose', s.T, a.T], ['sum', s.add(t), a.add(b)],
        ['elements', s.mul(t), a.mul(b)], ['with dense', s.mul(d), a.mul(d)], ['dense with', d.mul(s), a.mul(d)],
      ]) {
        same(await got.read(), await want.read(), `${format} ${what}`);
        const r = await got.sparse();
        check(r.format === (what === 'transpose' ? (order === 'csc' ? 'csr' : 'csc') : order), `${what} of ${format} is ${r.format}`);
        same(await r.read(), await want.read(), `${format} ${what}, sparse`);
        r.close();
      }
      const near = async (what, got, want) => same(await got.read(), await want.read(), `${format} ${what}`, Array(want.size).fill(1e-4));
      await near('product', s.matmul(t.T), a.matmul(b.T));
      await near('dense times', d.T.matmul(s), d.T.matmul(a));
      await near('sampled', s.mul(d.matmul(d.T).matmul(d)), a.mul(d.matmul(d.T).matmul(d)));
      await near('sums of columns', s.sum({axis: 0}), a.sum({axis: 0}));
      await near('means of rows', s.mean({axis: 1}), a.mean({axis: 1}));
      await near('norm', s.norm2(), a.norm2());
      await near('dense', s.exp(), a.exp());
      for (const other of ['csc', 'csr', 'blockColumn']) {
        const r = await s.sparse({format: other}), parts = await r.parts();
        check(r.format === other && r.nnz === parts.values.length && r.shape.join() === s.shape.join(), `${format} as ${other}`);
        same(await r.read(), x, `${format} as ${other}`);
        r.close();
      }
      const ones = await s.with(1).sparse();
      check((await ones.parts()).values.every((v) => v === 1), `${format} with ones`);
      const g = await s.mulBlockColumn(d.T);
      check(g.format === 'blockColumn' && g.rows === cols && g.cols === cols, 'a product in whole columns');
      await near('whole columns', g, d.T.matmul(a));
      await fails('ErrUnsupported', 'a dense result', () => s.exp().sparse());
      for (const m of [s, t, ones, g]) m.close();
    }
  }),

  sparseVast: onBoth(async (gpu) => {
    const n = 1 << 20, offsets = new Int32Array(n + 1).fill(3);
    offsets.set([0, 1, 2]);
    const s = gpu.sparse(n, n, {format: 'csr', values: [1, 2, 3], indices: [n - 1, 5, 0], offsets});
    const g = await s.matmul(s.T).sparse(), sum = await s.add(g).mul(2).sparse();
    check(g.nnz === 3 && sum.nnz === 6 && sum.rows === n, `${g.nnz} and ${sum.nnz} entries`);
    same([await s.sum().value(), await sum.sum().value()], [6, 2 * (6 + 1 + 4 + 9)], 'sums');
    const rows = await s.matmul(gpu.ones(n, 1)).read();
    same(rows.slice(0, 4), [1, 2, 3, 0], 'rows');
    await fails('ErrLimit', 'all elements', () => s.toDense().read());
    for (const m of [s, g, sum]) m.close();
  }),

  sparseGrowsAndIsSliced: onBoth(async (gpu) => {
    const s = gpu.sparse(3, 40, {format: 'csc', values: [], indices: [], offsets: new Int32Array(41), dtype: 'float32'});
    const want = new Float32Array(120);
    for (let j = 0; j < 40; j += 2) {
      for (let i = j % 3; i < 3; i++) {
        s.append(i, j, i + j);
        want[i * 40 + j] = i + j;
      }
      if (j === 10) same(await s.toDense().read(), want, 'half of it');
    }
    same(await s.toDense().read(), want, 'appended');
    const {values, indices, offsets} = await s.parts();
    check(s.nnz === values.length && offsets[40] === s.nnz && indices.length === s.nnz, `${s.nnz} entries`);
    const slice = s.columnSlice(3, 20), part = slice.columnSlice(1, 4);
    same(await slice.toDense().read(), await gpu.matrix(3, 40, want).slice([0, 3], [3, 23]).read(), 'slice');
    same(await part.toDense().read(), await gpu.matrix(3, 40, want).slice([0, 3], [4, 8]).read(), 'slice of a slice');
    check((await part.parts()).values.length === part.nnz, 'parts of a slice');
    await throws('ErrView', 'append', () => s.append(2, 39, 1));
    s.close();
    same(await part.matmul(gpu.ones(4, 1)).read(), [0, 1, 2].map((i) => [4, 5, 6, 7].reduce((sum, j) => sum + want[i * 40 + j], 0)), 'a slice of what was closed');
    slice.close();
    part.close();
  }),

  sparseOfTheUser: onBoth(async (gpu) => {
    const calls = [];
    const mine = {values: Float32Array.of(1, 2, 3), indices: Int32Array.of(0, 2, 1), offsets: Int32Array.of(0, 2, 2, 3, 3)};
    const s = gpu.wrapSparse(3, 4, {format: 'csc', ...mine, release: () => calls.push('mine')});
    const slice = s.columnSlice(0, 1), values = s.values();
    mine.offsets.set([0, 1, 2, 2, 3]);
    mine.indices.set([2, 2, 0]);
    same(await s.toDense().read(), [1, 0, 0, 0, 0, 0, 3, 0, 2, 0, 0, 0], 'before touch');
    s.touch();
    same(await s.toDense().read(), [0, 0, 0, 3, 0, 0, 0, 0, 1, 2, 0, 0], 'after touch');
    check(slice.nnz === 1, `nnz ${slice.nnz}`);
    same(await slice.toDense().read(), [0, 0, 1], 'the slice');
    mine.indices[0] = 7;
    await throws('ErrIndex', 'a broken structure', () => s.touch());
    same(await s.toDense().read(), [0, 0, 0, 3, 0, 0, 0, 0, 1, 2, 0, 0], 'after a touch that failed');
    await throws('ErrExternalResize', 'append', () => s.append(2, 3, 1));
    check(values.external && values.mode === 'external', 'values are the user\'s');
    for (const part of [s, values]) part.close();
    await called(gpu, calls, [], 'a slice has it');
    slice.close();
    await called(gpu, calls, ['mine'], 'the last');
    const lost = Float32Array.of(1), gone = gpu.wrapSparse(1, 1, {format: 'csc', values: lost, indices: Int32Array.of(0), offsets: Int32Array.of(0, 1)});
    if (gpu.device) {
      structuredClone(lost, {transfer: [lost.buffer]});
      await fails('ErrInvalid', 'a detached array', () => gone.toDense().read());
    }
  }),
};
