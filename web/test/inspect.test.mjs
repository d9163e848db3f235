// SPDX-License-Identifier: Apache-2.0

// What objects look like where they are printed, by the program of the CPU in Node, and pictures of plain bytes.

import assert from 'node:assert/strict';
import {Session} from 'node:inspector';
import {after, test} from 'node:test';
import {inspect} from 'node:util';
import {Expr, Gpu, Matrix, Sparse, SubletError, Tensor, View, init} from '../dist/index.mjs';

const gpu = await init({device: 'simd', threads: 1});
after(() => gpu.close());

/** What is printed, line by line. @param {unknown} x @param {...string} lines */
function prints(x, ...lines) {
  assert.deepEqual(inspect(x).split('\n'), lines);
  assert.equal(String(x), lines.join('\n'));
}

/** @param {number} n @param {(i: number) => number} [f] */
const list = (n, f = (i) => i) => Array.from({length: n}, (_, i) => f(i));

/** The numbers of a row. @param {number[]} values @param {any} dtype */
const row = (values, dtype) => String(gpu.matrix(1, values.length / (dtype === 'complex64' ? 2 : 1), values, {dtype})).split('\n')[1];

test('numbers of every element type', () => {
  for (const [dtype, values, want] of /** @type {[string, number[], string][]} */ ([
    ['float32', [1, 2.5, -3, 1000, 0.1], '[[   1      2.5   -3   1000      0.1]]'], ['float32', [1 / 3, -0, NaN], '[[ 0.333333 -0              nan]]'],
    ['float32', [1234567, 0.5, Infinity], '[[1234567         0.5       inf]]'], ['float32', [-Infinity, 1e-9, 3e10], '[[ -inf  1e-9 3e+10]]'], ['float32', [1.25e8, -2], '[[ 1.25e+8 -2.00e+0]]'],
    ['float16', [1.1, 65504, 0.25], '[[    1.1  65504        0.25]]'], ['float16', [NaN, -2, 2 ** -24], '[[     nan -2.00e+0  5.96e-8]]'],
    ['int8', [-128, 7], '[[-128    7]]'], ['uint8', [255, 0], '[[255   0]]'], ['int16', [-32768, 1], '[[-32768      1]]'], ['uint16', [65535, 1], '[[65535     1]]'],
    ['int32', [-2147483648, 1], '[[-2147483648           1]]'], ['uint32', [4294967295, 0], '[[4294967295          0]]'], ['bool', [1, 0], '[[ true false]]'],
    ['complex64', [1, 2, -3, -0.5], '[[ 1+2j   -3-0.5j]]'],
  ])) assert.equal(row(values, dtype), want, dtype);
});

test('corners of what is large', () => {
  const a = gpu.matrix(20, 30, list(600)), line = (/** @type {number} */ i) => [0, 1, 2, '...', 27, 28, 29].map((j) => typeof j === 'number' ? String(30 * i + j).padStart(3) : j).join(' ');
  prints(a, 'Matrix 20x30 float32 on simd', `[[${line(0)}]`, ` [${line(1)}]`, ` [${line(2)}]`, ' ...', ` [${line(17)}]`, ` [${line(18)}]`, ` [${line(19)}]]`);
  prints(a.T.slice([29, 30], [17, 20]), 'View 1x3 float32 of a 20x30 matrix on simd', '[[539 569 599]]');
  prints(a.row(5), 'View 1x30 float32 of a 20x30 matrix on simd'); // of which nothing is kept
  prints(gpu.matrix(7, 1, list(7)), 'Matrix 7x1 float32 on simd', '[[0]', ' [1]', ' [2]', ' ...', ' [4]', ' [5]', ' [6]]');
  prints(gpu.matrix(2, 3, list(6), {order: 'column'}), 'Matrix 2x3 float32 on simd, column order', '[[0 2 4]', ' [1 3 5]]');
  prints(gpu.zeros(0, 3), 'Matrix 0x3 float32 on simd', '[]');
  prints(gpu.full(1000, 1, 0.1).slice([0, 1]), 'View 1x1 float32 of a 1000x1 matrix on simd', '[[0.1]]');
  for (const [dtype, x, want] of /** @type {[any, number, string][]} */ ([['float16', 1e6, 'inf'], ['float16', 1e-9, '0'], ['float16', 0.1, '0.1'], ['float32', 1e39, 'inf'], ['float32', 1e-46, '0'], ['float32', 16777217, '16777216'], ['int32', 16777217, '16777217']])) {
    prints(gpu.full(1, 1, x, {dtype}), `Matrix 1x1 ${dtype} on simd`, `[[${want}]]`);
  }
  prints(gpu.eye(2, {dtype: 'complex64'}), 'Matrix 2x2 complex64 on simd', '[[1+0j 0+0j]', ' [0+0j 1+0j]]');
});

test('tensors', () => {
  prints(gpu.tensor(list(3), [3]), 'Tensor 3 float32 on simd', '[0 1 2]');
  prints(gpu.tensor([7], []), 'Tensor scalar float32 on simd', '7');
  prints(gpu.tensor(list(12), [3, 2, 2]), 'Tensor 3x2x2 float32 on simd', '[[[ 0  1]', '  [ 2  3]]', '', ' ...', '', ' [[ 8  9]', '  [10 11]]]');
  prints(gpu.tensor(list(4), [2, 2]).add(1), 'Tensor 2x2 float32 on simd, not computed yet');
});

test('what is known of elements, and until when', async () => {
  const a = gpu.matrix(1, 2, [1, 2]), head = 'Matrix 1x2 float32 on simd', b = a.mul(2).eval();
  prints(a.mul(2), 'Expr 1x2 float32 on simd, not computed yet');
  prints(b, head);
  await b.read();
  prints(b, head, '[[2 4]]');
  a.col(0).assign(9);
  prints(a, head);
  await a.read();
  prints(a, head, '[[9 2]]');
  const alias = a.memory.alias();
  prints(alias, head, '[[9 2]]');
  alias.close();
  const reading = a.read();
  a.assign(0);
  await reading;
  prints(a, head); // what was read is not what is there
  for (const change of [() => a.memory.setValue(b), () => a.memory.resize(2, 1).memory.resize(1, 2), () => a.memory.swap(gpu.ones(1, 2).add(1).eval()), () => a.memory.setValueFrom(new Float32Array(2), 1, 2), () => gpu.nn.sgd().step(a, b)]) {
    a.set([5, 6]);
    prints(a, head, '[[5 6]]');
    change();
    prints(a, head);
  }
  a.close();
  prints(a, 'Matrix 1x2 float32, closed');
  prints(b.T, 'View 2x1 float32 of a 1x2 matrix on simd', '[[2]', ' [4]]');
});

test('wrapped memory is shown while it is current', async () => {
  const memory = new Float32Array([1, 2, 3, 4]), a = gpu.wrap(memory, 2, 2), head = 'Matrix 2x2 float32 on simd, external', other = gpu.wrap(memory.buffer, 1, 2, {offset: 1});
  prints(a, head, '[[1 2]', ' [3 4]]');
  a.assign(a.add(1));
  prints(a, `${head}, not synced`);
  prints(other, 'Matrix 1x2 float32 on simd, external, not synced');
  await a.sync();
  prints(a, head, '[[2 3]', ' [4 5]]');
  prints(other, 'Matrix 1x2 float32 on simd, external', '[[3 4]]');
  memory[0] = 7;
  a.touch();
  prints(a.T, 'View 2x2 float32 of a 2x2 matrix on simd, external', '[[7 4]', ' [3 5]]');
  prints(gpu.wrap(new Uint8Array(9).buffer, 2, 2, {dtype: 'uint8', offset: 1, stride: 4}), 'Matrix 2x2 uint8 on simd, external', '[[0 0]', ' [0 0]]');
  prints(gpu.wrap(new Float32Array(0), 0, 2), 'Matrix 0x2 float32 on simd, external', '[]');
  const m = gpu.map(1, 2);
  await m.access(true, (data) => { data[1] = 3; prints(m, 'Matrix 1x2 float32 on simd, mapped, not synced'); });
  prints(m, 'Matrix 1x2 float32 on simd, mapped', '[[0 3]]');
  a.assign(0);
  a.close();
  prints(other, 'Matrix 1x2 float32 on simd, external', '[[3 4]]'); // what nobody synced is given up
  structuredClone(memory, {transfer: [memory.buffer]});
  prints(other, 'Matrix 1x2 float32 on simd, external, not synced');
});

test('other objects', async () => {
  const s = gpu.sparse(2, 2, {format: 'csc', values: [1], indices: [0], offsets: [0, 1, 1]}), own = await init({device: 'simd', threads: 1});
  prints(s, 'Sparse 2x2 float32 csc, 1 stored on simd');
  prints(s.mul(2), 'Expr 2x2 float32 on simd, not computed yet');
  s.close();
  prints(s, 'Sparse 2x2 float32 csc, closed');
  const {name, vendor} = own.info;
  assert.equal(String(own.info), `simd (${name}, ${vendor}, cpu)`);
  prints(own, `Gpu ${own.info}`);
  own.close();
  prints(own, `Gpu ${own.info}, closed`);
  for (const Class of [Expr, View, Matrix, Sparse, Tensor, Gpu]) assert.equal(typeof String(Class.prototype), 'string');
  assert.match(inspect({deep: {a: gpu.ones(1, 1)}}), /Matrix 1x1 float32 on simd\n +\[\[1\]\]/);
});

test('what DevTools call objects', () => {
  const shown = {Expr: gpu.ones(1, 1).add(1), View: gpu.ones(1, 1).T, Matrix: gpu.ones(1, 1), Tensor: gpu.tensor([1], [1]), Sparse: gpu.sparse(1, 1, {format: 'csc', values: [], indices: [], offsets: [0, 0]}), Gpu: gpu};
  const devtools = new Session(), said = /** @type {(string | undefined)[]} */ ([]);
  devtools.connect();
  for (const object of Object.values(shown)) {
    Object.assign(globalThis, {shown: object});
    devtools.post('Runtime.evaluate', {expression: 'shown'}, (_, {result}) => said.push(result.description));
  }
  devtools.disconnect();
  assert.deepEqual(said, Object.keys(shown).map((name) => `Sublet${name}`));
});

test('pictures of bytes, and a canvas of a package for Node', async () => {
  const data = Uint8ClampedArray.from({length: 24}, (_, i) => i % 4 === 3 ? 255 : 10 * i), picture = await gpu.fromImage({data, width: 3, height: 2}, {dtype: 'uint8'});
  assert.deepEqual(picture.shape, [2, 3, 4]);
  assert.deepEqual([...await picture.read()], [...data]);
  const colours = await gpu.fromImage({data, width: 3, height: 2}, {channels: 3, dtype: 'uint8'});
  assert.deepEqual([...colours.shape, ...await colours.read()], [2, 3, 3, ...data.filter((_, i) => i % 4 !== 3)]);
  const drawn = {}, canvas = {width: 1, height: 1, getContext: (/** @type {string} */ kind) => kind === '2d' ? {
    createImageData: (/** @type {number} */ width, /** @type {number} */ height) => ({width, height, data: new Uint8ClampedArray(4 * width * height)}),
    putImageData: (/** @type {object} */ image) => Object.assign(drawn, image),
  } : null};
  await picture.toCanvas(canvas);
  assert.deepEqual(drawn, {width: 3, height: 2, data});
  await assert.rejects(gpu.zeros(1, 1).toCanvas(/** @type {any} */ ({})), (error) => error instanceof SubletError && error.code === 'ErrInvalid');
});
