// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {dtypeOf} from '../src/dtype.mjs';
import {instead} from '../src/nearest.mjs';
import {Command, Op, Reduction} from '../src/protocol.mjs';
import {partOf} from '../src/ranges.mjs';
import {init} from '../src/index.mjs';
import {instructions, newGpu} from './fake.mjs';

/** Fails unless a call throws an error of ours. */
const fails = (/** @type {string} */ code, /** @type {RegExp} */ message, /** @type {() => unknown} */ call) => assert.throws(call, {name: 'SubletError', code, message});

/** The instructions of an expression. */
function encoded(/** @type {any} */ {gpu, sent}, /** @type {any} */ x) {
  sent();
  x.eval();
  return instructions(sent().find((/** @type {any} */ c) => c.command === Command.Eval).words.slice(3));
}

test('names that there are not', async () => {
  const names = ['dtype', 'order', 'offset', 'stride'];
  for (const [name, nearest] of [['dtpye', 'dtype'], ['Order', 'order'], ['off_set', 'offset'], ['strides', 'stride'], ['type', 'dtype']]) assert.match(instead(name, names), new RegExp(`^did you mean ${nearest}\\? There are dtype,`));
  for (const name of ['', 'x', 'signal', 'a name that is longer than any', 'dtype'.repeat(1e6), 5, Symbol('s'), null]) assert.equal(instead(name, names), 'there are dtype, order, offset, stride', String(name).slice(0, 9));
  assert.equal(instead('x', []), 'there are none');
  fails('ErrInvalid', /"flaot32"; did you mean float32\?/, () => dtypeOf('zeros', 'flaot32'));
  const {gpu} = newGpu(), m = gpu.zeros(2, 2);
  fails('ErrInvalid', /did you mean dtype\?/, () => gpu.zeros(1, 1, {dtpye: 'int32'}));
  fails('ErrInvalid', /did you mean axis\?/, () => m.sum({axes: 0}));
  fails('ErrInvalid', /did you mean ddof\?/, () => m.std({dof: 0}));
  fails('ErrInvalid', /did you mean rows\?/, () => m.slice({row: 0}));
  fails('ErrInvalid', /did you mean release\?/, () => gpu.wrap(new Float32Array(1), 1, 1, {realease() {}}));
  await assert.rejects(init({devise: 'simd'}), {code: 'ErrInvalid', message: /did you mean device\?/});
  await assert.rejects(m.read({sginal: 1}), {code: 'ErrInvalid', message: /did you mean signal\?/});
  await assert.rejects(gpu.sync({sginal: 1}), {code: 'ErrInvalid', message: /did you mean signal\?/});
});

test('typed arrays of other types', () => {
  const {gpu} = newGpu(), m = gpu.zeros(1, 2);
  for (const Class of [Float64Array, BigInt64Array, BigUint64Array]) {
    for (const call of [() => gpu.wrap(new Class(2), 1, 2), () => gpu.matrix(1, 2, new Class(2)), () => gpu.fromBuffer(new Class(2), 1, 2), () => m.set(new Class(2)), () => gpu.tensor(new Class(2), [2]), () => gpu.matrix([new Class(2)])]) {
      fails('ErrInvalid', /dtype.*astype/, call);
    }
    for (const dtype of ['float32', 'int32', 'complex64']) {
      for (const call of [gpu.wrap.bind(gpu), gpu.fromBuffer.bind(gpu), m.memory.rebind.bind(m.memory), m.memory.setValueFrom.bind(m.memory)]) {
        fails('ErrInvalid', new RegExp(`a ${Class.name}, .*dtype: "${dtype}"`), () => call(new Class(2), 1, 2, {dtype}));
      }
      assert.equal(gpu.wrap(new Class(2).buffer, 1, 2, {dtype}).dtype, dtype, 'bits, as they are asked for');
    }
    assert.equal(gpu.matrix(1, 2, new Class(2), {dtype: 'float32'}).dtype, 'float32');
    m.set(new Class(2), {dtype: 'float32'});
  }
  for (const Class of [Int8Array, Uint8ClampedArray, Int32Array]) {
    fails('ErrInvalid', /astype/, () => gpu.wrap(new Class(4), 1, 2, {dtype: 'float32'}));
    fails('ErrInvalid', /dtype.*astype/, () => m.set(new Class(2)));
    assert.equal(gpu.matrix(1, 2, new Class(2)).dtype, Class === Uint8ClampedArray ? 'uint8' : Class.name.slice(0, -5).toLowerCase());
  }
  fails('ErrInvalid', /int32 of a matrix of float32/, () => m.set(new Int32Array(2), {dtype: 'int32'}));
});

test('arrays of rows', () => {
  const {gpu, sent} = newGpu();
  assert.deepEqual(gpu.matrix([[1, 2, 3], [4, 5, 6]]).shape, [2, 3]);
  assert.deepEqual([gpu.matrix([[], []]).shape, gpu.matrix([[1, 2], [3, 4]], {dtype: 'complex64'}).shape], [[2, 0], [2, 1]]);
  assert.deepEqual([gpu.matrix([Int8Array.of(1), Int8Array.of(2)]).dtype, gpu.matrix([[1]], {dtype: 'int16'}).dtype], ['int8', 'int16']);
  assert.deepEqual([gpu.tensor([[[1, 2]], [[3, 4]], [[5, 6]]]).shape, gpu.tensor([1, 2, 3]).shape, gpu.tensor([[1, 2]], [1, 2]).shape, gpu.tensor([[1, 0]], {dtype: 'int32'}).dtype], [[3, 1, 2], [3], [1, 2], 'int32']);
  gpu.zeros(2, 2).set([[1, 2], [3, 4]]);
  assert.ok(sent().length > 0);
  const cycle = /** @type {any[]} */ ([]), vast = [[1]], wide = [1];
  cycle.push(cycle);
  vast.length = wide.length = 2 ** 32 - 1;
  for (const [code, message, call] of /** @type {[string, RegExp, () => unknown][]} */ ([
    ['ErrShape', /row 2 has 1 elements, row 0 has 2/, () => gpu.matrix([[1, 2], [3, 4], [5]])], ['ErrInvalid', /row 1 is 3 and no array/, () => gpu.matrix([[1, 2], 3])],
    ['ErrShape', /\[1\]\[0\] has 1 elements/, () => gpu.tensor([[[1, 2]], [[3]]])], ['ErrShape', /no rows/, () => gpu.matrix([1, 2])], ['ErrShape', /no rows/, () => gpu.matrix([])],
    ['ErrShape', /no rows/, () => gpu.matrix([[[1]]])], ['ErrInvalid', /undefined in place 1/, () => gpu.matrix([[1, undefined]])], ['ErrInvalid', /sizes after/, () => gpu.matrix([[1]], {}, 1)],
    ['ErrShape', /the matrix is 2x2/, () => gpu.matrix(2, 2, [[1, 2, 3, 4]])], ['ErrShape', /the matrix is 2x2/, () => gpu.zeros(2, 2).set([[1], [2], [3], [4]])],
    ['ErrInvalid', /0.5 in place 0/, () => gpu.matrix([[0.5]], {dtype: 'int32'})], ['ErrInvalid', /rows of Float32Array and Array/, () => gpu.matrix([Float32Array.of(1), [2]])],
    ['ErrShape', /\(1, 2\) as \(2, 1\)/, () => gpu.tensor([[1, 2]], [2, 1])], ['ErrLimit', /deep/, () => gpu.matrix(cycle)], ['ErrInvalid', /row 1 is undefined/, () => gpu.matrix(vast)],
    ['ErrInvalid', /undefined in place 1/, () => gpu.matrix([wide])],
  ])) fails(code, message, call);
});

test('an axis alone', () => {
  const rig = newGpu(), {gpu} = rig, m = gpu.zeros(2, 3), t = gpu.tensor(new Float32Array(24), [2, 3, 4]);
  const sums = [m.sum(0), m.sum({axis: 0}), m.sum({axis: 0, keepDims: true}), gpu.sum(m, 0), m.std(0), m.argmax(0), m.sort(0), m.topK(1, 0), m.softmax(0), m.normP(3, 0)];
  assert.deepEqual(sums.map((x) => x.shape.join()), ['1,3', '1,3', '1,3', '1,3', '1,3', '1,3', '2,3', '1,3', '2,3', '1,3']);
  assert.deepEqual([m.sum().shape, m.sum(null).shape, m.sum(-1).shape], [[1, 1], [1, 1], [2, 1]]);
  assert.deepEqual(encoded(rig, m.sum(0)).at(-1)?.slice(0, 4), [Op.Reduce, 0, 0, Reduction.Sum]);
  assert.deepEqual([t.sum(0).shape, t.sum([0, 2]).shape, t.mean({axis: -1, keepDims: true}).shape, t.sum(null).shape, t.topK(2, 1).shape], [[3, 4], [3], [2, 3, 1], [], [2, 2, 4]]);
  fails('ErrInvalid', /keepDims false.*tensor/, () => m.sum({axis: 0, keepDims: false}));
  fails('ErrInvalid', /keepDims 1/, () => m.sum({axis: 0, keepDims: /** @type {any} */ (1)}));
  fails('ErrIndex', /axis 2/, () => m.sum(2));
});

test('parts', async () => {
  const {gpu} = newGpu(), m = gpu.zeros(4, 5);
  for (const [args, want] of /** @type {[any[], number[]][]} */ ([
    [[], [0, 4, 0, 5]], [[[1, 3]], [1, 3, 0, 5]], [[null, [2, -1]], [0, 4, 2, 4]], [[-1, 0], [3, 4, 0, 1]], [[[-2]], [2, 4, 0, 5]], [[{rows: 1, cols: [null, 2]}], [1, 2, 0, 2]], [[[2, 2]], [2, 2, 0, 5]], [[undefined, -5], [0, 4, 0, 1]],
  ])) assert.deepEqual(partOf('slice', args, 4, 5), want);
  assert.deepEqual([m.slice([1, 3], -1).shape, m.slice({cols: [1, 3]}).shape, m.row(-1).shape, m.col(-5).shape, m.add(1).slice(0).shape], [[2, 1], [4, 2], [1, 5], [4, 1], [1, 5]]);
  assert.ok(m.slice(0).assign(1));
  for (const [code, message, args] of /** @type {[string, RegExp, any[]][]} */ ([
    ['ErrInvalid', /slice\(\[0, 2\], \[1, 3\]\)/, [0, 2, 1, 3]], ['ErrIndex', /4 of 4/, [4]], ['ErrIndex', /-5 of 4/, [-5]], ['ErrIndex', /3:2 of 4/, [[3, 2]]], ['ErrIndex', /0:6 of 5/, [null, [0, 6]]], ['ErrIndex', /-5:2 of 4/, [[-5, 2]]],
    ['ErrInvalid', /"0"/, ['0']], ['ErrInvalid', /0.5/, [[0.5, 1]]], ['ErrInvalid', /3 numbers/, [[0, 1, 2]]], ['ErrInvalid', /after/, [{rows: 0}, 1]], ['ErrInvalid', /NaN/, [NaN]],
  ])) fails(code, message, () => m.slice(...args));
  await assert.rejects(m.item(), {code: 'ErrShape'});
  await assert.rejects(m.item(0), {code: 'ErrInvalid'});
  await assert.rejects(m.item(0, 5), {code: 'ErrIndex'});
});

test("NumPy's names", () => {
  const rig = newGpu(), {gpu} = rig, m = gpu.zeros(2, 2);
  for (const [x, y] of /** @type {[any, any][]} */ ([
    [m.clip(0, 1), m.clamp(0, 1)], [gpu.clip(m, 0, 1), gpu.clamp(m, 0, 1)], [m.argmin(1), m.argMin(1)], [m.negative(), m.neg()], [m.multiply(2), m.mul(2)], [gpu.divide(1, m), gpu.div(1, m)],
    [m.power(2), m.pow(2)], [m.arctan2(1), m.atan2(1)], [m.cumsum(0), m.cumSum(0)], [m.flipud(), m.flipRows()], [m.eigvalsh(), m.eigenvalues()], [gpu.tensor([1]).arcsin(), gpu.tensor([1]).asin()],
  ])) assert.deepEqual(encoded(rig, x).slice(1), encoded(rig, y).slice(1));
  fails('ErrInvalid', /^sublet: clip:/, () => m.clip('x', 1));
});

test('a dimension of -1 is what is left', () => {
  const {gpu} = newGpu(), m = gpu.zeros(4, 6);
  assert.deepEqual([m.reshape(-1, 8).shape, m.reshape(2, -1).shape, m.add(1).reshape(-1, 1).shape, gpu.zeros(0, 6).reshape(-1, 3).shape, gpu.zeros(1, 100000).reshape(-1, 100000).shape], [[3, 8], [2, 12], [24, 1], [0, 3], [1, 100000]]);
  for (const [rows, cols] of /** @type {any[][]} */ ([[-1, -1], [-1, 7], [0, -1], [-1, 0.5], [-2, -12], [-1, Infinity], [-1, NaN]])) assert.throws(() => m.reshape(rows, cols), {name: 'SubletError', message: /^sublet: reshape:/});
  for (const wrong of [Symbol('s'), '2', null, {valueOf() { throw 1; }}]) fails('ErrInvalid', /^sublet: reshape:/, () => m.reshape(-1, /** @type {any} */ (wrong)));
});
