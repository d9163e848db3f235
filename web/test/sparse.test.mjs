// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Matrix} from '../src/matrix.mjs';
import {Command, Op, SPARSE_WRAPPED} from '../src/protocol.mjs';
import {instructions, newGpu, turn} from './fake.mjs';

const fails = (code, run) => assert.throws(run, {name: 'SubletError', code});

/** 1 at (0, 0), 2 at (2, 0), 3 at (1, 2). */
const parts = {
  csc: {format: 'csc', values: [1, 2, 3], indices: [0, 2, 1], offsets: [0, 2, 2, 3, 3]},
  csr: {format: 'csr', values: [1, 3, 2], indices: [0, 2, 0], offsets: [0, 1, 2, 3]},
  blockColumn: {format: 'blockColumn', values: [1, 0, 2, 0, 3, 0], indices: [0, 2]},
};
const arrays = ({format, values, indices, offsets}) => ({
  format, values: Float32Array.from(values), indices: Int32Array.from(indices), offsets: offsets && Uint32Array.from(offsets),
});

test('what a sparse matrix is', () => {
  const {gpu, sent} = newGpu();
  for (const [number, p] of Object.values(parts).entries()) {
    const owned = gpu.sparse(3, 4, p), wrapped = gpu.wrapSparse(3, 4, arrays(p));
    for (const s of [owned, wrapped]) {
      assert.deepEqual([s.shape, s.nnz, s.format, s.dtype, s.external, s.closed],
        [[3, 4], p.values.length, p.format, 'float32', s === wrapped, false]);
    }
    const [first, second] = sent();
    assert.deepEqual([first.command, ...first.words.slice(1, 4)], [Command.Sparse, number << 8, 3, 4]);
    assert.equal(second.words[1], (number << 8) | SPARSE_WRAPPED);
    assert.deepEqual([5, 7, 9].map((i) => first.words[i]), [4 * p.values.length, p.indices.length, p.offsets?.length ?? 0]);
  }
});

test('structures that are none', () => {
  const {gpu, sent} = newGpu();
  const {csc, csr, blockColumn} = parts;
  for (const [code, broken] of [
    ['ErrInvalid', {...csc, format: 'coo'}], ['ErrInvalid', {...csc, format: undefined}], ['ErrNil', {...csc, values: undefined}],
    ['ErrNil', {...csc, indices: undefined}], ['ErrNil', {...csc, offsets: undefined}], ['ErrNil', undefined], ['ErrInvalid', 5],
    ['ErrShort', {...csc, values: [1, 2]}], ['ErrShape', {...csc, values: [1, 2, 3, 4]}], ['ErrShort', {...csc, offsets: [0, 2, 3]}],
    ['ErrShape', {...csc, offsets: [0, 2, 2, 3, 3, 3]}], ['ErrShape', {...blockColumn, offsets: [0]}], ['ErrShape', {...blockColumn, values: [1, 2, 3, 4, 5, 6, 7]}],
    ['ErrShort', {...blockColumn, values: [1, 2, 3]}], ['ErrIndex', {...csc, indices: [0, 3, 1]}], ['ErrIndex', {...csc, indices: [0, 2, -1]}],
    ['ErrIndex', {...csc, indices: [0, 2, 2 ** 32 + 1]}], ['ErrIndex', {...csr, indices: [0, 4, 0]}], ['ErrIndex', {...blockColumn, indices: [0, 4]}],
    ['ErrIndex', {...csc, indices: Uint32Array.of(0, 2, 2 ** 32 - 1)}], ['ErrSparse', {...csc, indices: [2, 0, 1]}], ['ErrSparse', {...csc, indices: [2, 2, 1]}],
    ['ErrSparse', {...blockColumn, indices: [2, 0]}], ['ErrSparse', {...csc, offsets: [1, 2, 2, 3, 3]}], ['ErrSparse', {...csc, offsets: [0, 2, 2, 3, 2]}],
    ['ErrSparse', {...csc, offsets: [0, 2, 1, 3, 3]}], ['ErrSparse', {...csc, offsets: [0, 9, 9, 9, 3]}],
    ['ErrInvalid', {...csc, indices: 'x'}], ['ErrInvalid', {...csc, indices: new Float32Array(3)}], ['ErrIndex', {...csc, indices: [0, 1.5, 1]}],
    ['ErrInvalid', {...csc, release() {}}], ['ErrUnsupported', {...csc, dtype: 'float16'}], ['ErrInvalid', {...csc, values: 'abc'}],
    ['ErrInvalid', {get format() { throw new TypeError('mine'); }}],
  ]) fails(code, () => gpu.sparse(3, 4, broken));
  for (const [code, broken] of [
    ['ErrInvalid', csc], ['ErrInvalid', {...arrays(csc), indices: [0, 2, 1]}], ['ErrInvalid', {...arrays(csc), values: new Float64Array(3)}],
    ['ErrUnsupported', {...arrays(csc), values: new Uint16Array(3)}], ['ErrInvalid', {...arrays(csc), dtype: 'int32'}], ['ErrInvalid', {...arrays(csc), release: 5}],
  ]) fails(code, () => gpu.wrapSparse(3, 4, broken));
  fails('ErrSize', () => gpu.sparse(-1, 4, csc));
  fails('ErrLimit', () => gpu.sparse(0, 2 ** 31, csc));
  assert.deepEqual(sent(), []);
});

test('sparse matrices in expressions', () => {
  const {gpu, sent} = newGpu();
  const s = gpu.sparse(3, 4, parts.csc), y = gpu.zeros(4, 2), out = gpu.zeros(5, 5);
  sent();
  const c = s.matmul(y.add(1)).eval(), d = s.toDense();
  assert.ok(c instanceof Matrix && c.shape.join() === '3,2' && d.shape.join() === '3,4');
  out.slice([0, 3], [1, 3]).assign(s.matmul(y));
  out.slice([0, 3], [0, 4]).assign(s.with(2));
  const [product, dense, into, spread] = sent();
  assert.deepEqual([product, dense, into, spread].map(({command}) => command), [Command.Eval, Command.Eval, Command.Assign, Command.Assign]);
  assert.deepEqual(instructions(product.words.slice(1)).map(([op]) => op), [Op.Leaf, Op.Leaf, Op.Scalar, Op.Add, Op.MatMul]);
  assert.deepEqual(instructions(dense.words.slice(1)).map(([op]) => op), [Op.Leaf]);
  assert.deepEqual(instructions(into.words.slice(1)).map(([op]) => op), [Op.Leaf, Op.Slice, Op.Leaf, Op.Leaf, Op.MatMul]);
  assert.deepEqual(instructions(spread.words.slice(1)).map(([op]) => op), [Op.Leaf, Op.Slice, Op.Leaf, Op.Scalar, Op.With]);
  for (const [code, run] of [
    ['ErrShape', () => s.matmul(gpu.zeros(3, 4))], ['ErrInvalid', () => s.matmul(2)], ['ErrShape', () => s.matmul(s)], ['ErrInvalid', () => s.matmul()],
    ['ErrInvalid', () => s.matmul(gpu.zeros(4, 1, {dtype: 'int32'}))], ['ErrForeign', () => s.matmul(newGpu().gpu.zeros(4, 1))],
    ['ErrInvalid', () => s.with('x')], ['ErrInvalid', () => s.with(gpu.zeros(1, 3, {dtype: 'int32'}))],
  ]) fails(code, run);
  s.close();
  s.close();
  for (const run of [() => s.matmul(y), () => s.toDense(), () => s.columnSlice(0, 1), () => s.append(2, 3, 1), () => s.values(), () => s.touch(), () => s.T]) fails('ErrClosed', run);
});

test('sparse matrices of any size', () => {
  const {gpu} = newGpu(), n = 2 ** 22, empty = {format: 'csr', values: [], indices: [], offsets: new Int32Array(n + 1), dtype: 'float32'};
  const s = gpu.sparse(n, n, empty);
  for (const e of [s.T, s.mul(2), s.add(s), s.matmul(s.T), s.abs().matmul(s)]) assert.deepEqual(e.shape, [n, n]);
  assert.deepEqual([s.sum({axis: 0}).shape, s.matmul(gpu.ones(n, 1)).shape], [[1, n], [n, 1]]);
  fails('ErrLimit', () => gpu.zeros(n, n));
  fails('ErrLimit', () => gpu.ones(n, 1).add(gpu.ones(1, n)));
});

test('sparse results', async () => {
  const {gpu, sent} = newGpu();
  const s = gpu.sparse(3, 4, parts.csc);
  sent();
  const refused = (code, promise) => assert.rejects(promise, {name: 'SubletError', code});
  await refused('ErrInvalid', s.sparse({format: 'coo'}));
  await refused('ErrInvalid', s.sparse(5));
  await refused('ErrUnsupported', s.astype('int8').sparse());
  await refused('ErrInvalid', s.mulBlockColumn(3));
  await refused('ErrShape', s.mulBlockColumn(gpu.zeros(2, 4)));
  await refused('ErrForeign', s.mulBlockColumn(newGpu().gpu.zeros(2, 3)));
  await refused('ErrInvalid', s.mulBlockColumn(gpu.zeros(2, 3, {dtype: 'int32'})));
});

test('entries are appended in order', () => {
  const {gpu, sent} = newGpu();
  const s = gpu.sparse(3, 4, parts.csc);
  sent();
  for (const [code, i, j] of [['ErrOrder', 1, 2], ['ErrOrder', 0, 2], ['ErrOrder', 2, 1], ['ErrIndex', 3, 3], ['ErrIndex', 0, 4], ['ErrIndex', -1, 3], ['ErrIndex', 0.5, 3]]) {
    fails(code, () => s.append(i, j, 1));
  }
  fails('ErrInvalid', () => s.append(0, 3, '1'));
  s.append(2, 2, 4).append(0, 3, 5);
  assert.equal(s.nnz, 5);
  const slice = s.columnSlice(2, 2);
  assert.deepEqual([slice.nnz, slice.shape], [3, [3, 2]]);
  assert.deepEqual([s.columnSlice(1, 1).nnz, s.columnSlice(0, 1).nnz, s.columnSlice(2, 1).nnz, s.columnSlice(4, 0).nnz], [0, 2, 2, 0]);
  assert.deepEqual(sent().slice(0, 3).map((c) => [c.command, ...c.words.slice(1)]), [
    [Command.Append, 2, 2, 0x40800000], [Command.Append, 0, 3, 0x40a00000], [Command.Columns, 1, 2, 2]]);
  fails('ErrView', () => s.append(1, 3, 1));
  fails('ErrView', () => slice.append(1, 1, 1));
  for (const [start, n] of [[3, 2], [-1, 1], [0, -1], [0.5, 1], ['0', 1]]) fails('ErrIndex', () => s.columnSlice(start, n));
  const csr = gpu.sparse(3, 4, {format: 'csr', values: [], indices: [], offsets: [0, 0, 0, 0], dtype: 'int32'});
  fails('ErrInvalid', () => csr.append(0, 0, 1.5));
  csr.append(0, 1, 7).append(0, 3, 8).append(2, 0, 9);
  fails('ErrOrder', () => csr.append(1, 0, 1));
  fails('ErrUnsupported', () => csr.columnSlice(0, 1));
  fails('ErrUnsupported', () => gpu.sparse(3, 4, parts.blockColumn).append(0, 0, 1));
  fails('ErrExternalResize', () => gpu.wrapSparse(3, 4, arrays(parts.csc)).append(0, 3, 1));
});

test('the values are a matrix that is never resized', () => {
  const {gpu, sent} = newGpu();
  const s = gpu.sparse(3, 4, parts.csc), v = s.values(), blocks = gpu.wrapSparse(3, 4, arrays(parts.blockColumn)).values();
  assert.deepEqual([v.shape, v.mode, blocks.shape, blocks.mode, blocks.order, blocks.stride], [[1, 3], 'owned', [3, 2], 'external', 'column', 3]);
  fails('ErrView', () => v.memory.resize(1, 2));
  fails('ErrView', () => v.memory.setValue(gpu.zeros(2, 2)));
  v.assign(v.mul(2));
  fails('ErrView', () => s.append(0, 3, 1));
  v.close();
  s.append(0, 3, 1);
  assert.equal(sent().at(-1).command, Command.Append);
});

test('memory of the user is touched and released', async () => {
  const {session, gpu, sent} = newGpu();
  let released = 0;
  const mine = arrays(parts.csc), s = gpu.wrapSparse(3, 4, {...mine, release: () => released++});
  const slice = s.columnSlice(0, 2), values = s.values();
  mine.offsets.set([0, 1, 2, 3, 3]);
  assert.deepEqual([s.nnz, slice.nnz], [3, 2]);
  s.touch();
  const one = s.columnSlice(0, 1);
  assert.deepEqual([slice.nnz, one.nnz], [2, 1]);
  mine.indices[0] = 3;
  fails('ErrIndex', () => s.touch());
  mine.indices[0] = 0;
  structuredClone(mine.indices, {transfer: [mine.indices.buffer]});
  fails('ErrShort', () => s.touch());
  assert.equal(sent().filter((c) => c.command === Command.SparseTouch).length, 1);
  for (const part of [s, values, one]) part.close();
  assert.deepEqual(sent().map((c) => c.words[0]), [0, 0, 0], 'somebody still has it');
  slice.close();
  session.settle(sent()[0].words[0]);
  await turn();
  assert.equal(released, 1);
});

test('a matrix of what is not zero', async () => {
  const {session, gpu, sent} = newGpu();
  const a = gpu.zeros(3, 4), dense = [1, 0, 0, 0, 0, 0, 3, 0, 2, -0, 0, 0];
  for (const format of Object.keys(parts)) {
    const making = gpu.sparseFrom(a, {format});
    await turn();
    const read = sent().find((c) => c.command === Command.Read); // not the last command: what was collected may be closed behind it
    const bytes = session.takeObject(read.words[1]);
    const turned = format === 'csr' ? dense : Array.from({length: 12}, (_, k) => dense[(k % 3) * 4 + Math.floor(k / 3)]);
    new Float32Array(bytes.buffer).set(turned);
    sent();
    session.settle(read.words[0]);
    const s = await making;
    assert.deepEqual([s.format, s.shape, s.nnz], [format, [3, 4], format === 'blockColumn' ? 9 : 4]);
    const {words} = sent().find((c) => c.command === Command.Sparse);
    const [values, indices, offsets] = [4, 6, 8].map((i) => session.takeObject(words[i]));
    const ints = (b) => [...new Int32Array(b.buffer, b.byteOffset, b.length / 4)];
    assert.deepEqual(ints(indices), {csc: [0, 2, 2, 1], csr: [0, 2, 0, 1], blockColumn: [0, 1, 2]}[format]);
    assert.deepEqual(ints(offsets), {csc: [0, 2, 3, 4, 4], csr: [0, 1, 2, 4], blockColumn: []}[format]);
    assert.equal(values.length, 4 * s.nnz);
  }
  for (const [code, run] of [
    ['ErrInvalid', () => gpu.sparseFrom(5)], ['ErrInvalid', () => gpu.sparseFrom(a, {format: 'coo'})],
    ['ErrUnsupported', () => gpu.sparseFrom(a.astype('float16'))],
  ]) await assert.rejects(run, {code});
});
