// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {DTYPES, FLOAT32} from '../src/dtype.mjs';
import {SubletError} from '../src/errors.mjs';
import {Memory} from '../src/memory.mjs';
import {Message} from '../src/message.mjs';
import * as nodes from '../src/node.mjs';
import {Program} from '../src/program.mjs';
import {Op, Shaping, Reduction} from '../src/protocol.mjs';
import {Gpu} from '../src/gpu.mjs';
import {instructions, newGpu} from './fake.mjs';

const [float32, int32] = DTYPES, complex64 = DTYPES[9];

/** A matrix that nobody has to make. */
function leaf(rows, cols, {type = FLOAT32, byColumns = false, stride = byColumns ? rows : cols, handle = 7} = {}) {
  const memory = new Memory(/** @type {any} */ ({release() {}}), type, rows, cols, byColumns, stride, 'owned');
  memory.open(handle);
  return memory.leaf();
}

function newMessage() {
  const memory = new WebAssembly.Memory({initial: 1, maximum: 200});
  const message = new Message(memory, (words) => {
    const need = Math.ceil((64 + 4 * words) / 65536) - memory.buffer.byteLength / 65536;
    if (need > 0) memory.grow(need);
    return 64;
  });
  return {message, memory, words: () => [...new Uint32Array(memory.buffer, 64, message.at)]};
}

function encode(node) {
  const {message, words} = newMessage();
  const value = new Program(message, 'test').encode(node);
  return {value, list: instructions(words())};
}

const fails = (code, run) => assert.throws(run, (error) => error instanceof SubletError && error.code === code);

test('types of complex numbers', () => {
  const z = leaf(2, 3, {type: complex64}), x = leaf(2, 3);
  const type = (node) => node.type.name;
  assert.equal(type(nodes.binary('add', Op.Add, x, z)), 'complex64');
  assert.equal(type(nodes.binary('equal', Op.Eq, z, z)), 'float32');
  assert.equal(type(nodes.unary('abs', Op.Abs, z)), 'float32');
  assert.equal(type(nodes.unary('exp', Op.Exp, z)), 'complex64');
  assert.equal(type(nodes.product('matmul', nodes.transpose(x), z)), 'complex64');
  assert.equal(type(nodes.ternary('where', Op.Where, x, z, x)), 'complex64');
  assert.equal(type(nodes.reduce('sum', Reduction.Sum, z, 0, 0)), 'complex64');
  assert.equal(type(nodes.reduce('norm2', Reduction.Norm2, z, 0, 0)), 'float32');
  assert.equal(type(nodes.reduce('countNonzero', Reduction.CountNonzero, z, 0, 0)), 'int32');
  assert.equal(type(nodes.shaped('vstack', Shaping.VStack, FLOAT32, [x, z], [], () => [4, 3])), 'complex64');
  assert.equal(type(nodes.shaped('real', Shaping.Real, complex64, [z], [], () => [2, 3])), 'float32');
  assert.equal(type(nodes.scalar('add', complex64, 2)), 'float32');
  assert.equal(type(nodes.cast('astype', x, complex64)), 'complex64');
  fails('ErrInvalid', () => nodes.cast('astype', z, float32));
  fails('ErrInvalid', () => nodes.binary('add', Op.Add, z, leaf(2, 3, {type: int32})));
  for (const refused of [
    () => nodes.binary('less', Op.Lt, z, z), () => nodes.unary('gelu', Op.Gelu, z), () => nodes.reduce('max', Reduction.Max, z, 0, 0),
    () => nodes.sorted('sort', Op.Sort, z, 0), () => nodes.normalise('softmax', Op.Softmax, z, 0),
    () => nodes.call('apply', /** @type {any} */ ({}), [z]),
  ]) fails('ErrUnsupported', refused);
});

test('numbers that elements cannot be', () => {
  const [, , , , int8, uint8, int16, uint16, bool] = DTYPES;
  for (const [type, low, high] of /** @type {[any, number, number][]} */ ([[int8, -128, 127], [uint8, 0, 255], [int16, -32768, 32767], [uint16, 0, 65535]])) {
    for (const value of [low, high]) nodes.filled('full', type, 1, 1, value);
    for (const value of [low - 1, high + 1, 0.5]) fails('ErrInvalid', () => nodes.filled('full', type, 1, 1, value));
  }
  nodes.filled('full', bool, 1, 1, 2);
});

test('shapes', () => {
  const a = leaf(2, 3), row = leaf(1, 3), col = leaf(2, 1);
  const shape = (node) => [node.rows, node.cols];
  assert.deepEqual(shape(nodes.binary('add', Op.Add, a, row)), [2, 3]);
  assert.deepEqual(shape(nodes.binary('add', Op.Add, col, row)), [2, 3]);
  assert.deepEqual(shape(nodes.product('matmul', a, leaf(3, 5))), [2, 5]);
  assert.deepEqual(shape(nodes.transpose(a)), [3, 2]);
  assert.deepEqual(shape(nodes.slice('slice', a, 1, 2, 0, 2)), [1, 2]);
  assert.deepEqual(shape(nodes.reduce('sum', Reduction.Sum, a, 0)), [1, 3]);
  assert.deepEqual(shape(nodes.reduce('sum', Reduction.Sum, a, 1)), [2, 1]);
  assert.deepEqual(shape(nodes.binary('add', Op.Add, leaf(0, 3), row)), [0, 3]);
  fails('ErrShape', () => nodes.binary('add', Op.Add, a, leaf(3, 2)));
  fails('ErrShape', () => nodes.binary('add', Op.Add, leaf(0, 3), leaf(2, 3)));
  fails('ErrShape', () => nodes.product('matmul', a, a));
  fails('ErrInvalid', () => nodes.binary('add', Op.Add, a, leaf(2, 3, {type: int32})));
  fails('ErrUnsupported', () => nodes.unary('exp', Op.Exp, leaf(1, 1, {type: int32})));
  fails('ErrLimit', () => nodes.binary('add', Op.Add, leaf(1, 2 ** 20), leaf(2 ** 20, 1)));
});

test('errors say what would fit', () => {
  const a = leaf(2, 3), k = leaf(2, 3, {type: int32}), z = leaf(2, 3, {type: complex64});
  for (const [text, run] of /** @type {[string, () => unknown][]} */ ([
    ['add: 2x3 by 3x2: dimension mismatch: sizes have to be equal, or 1', () => nodes.binary('add', Op.Add, a, leaf(3, 2))],
    ['where: 2x3 by 3x2: dimension mismatch: sizes have to be equal, or 1', () => nodes.ternary('where', Op.Where, a, a, leaf(3, 2))],
    ['matmul: 2x3 by 2x3: dimension mismatch: the second factor needs 3 rows', () => nodes.product('matmul', a, a)],
    ['matmul: 2x1 by 2x3: dimension mismatch: the second factor needs 1 row', () => nodes.product('matmul', leaf(2, 1), a)],
    ['reshape: 2x3 by 2x2: dimension mismatch: another shape needs 6 elements', () => nodes.reshape('reshape', a, 2, 2)],
    ['topk: 2x3: 4 of 3 elements', () => nodes.sorted('topk', Op.TopK, a, 1, 4)],
    ['add: float32 with int32; convert with astype', () => nodes.binary('add', Op.Add, a, k)],
    ['exp: not defined for int32, but for float32, float16 and complex64; convert with astype', () => nodes.unary('exp', Op.Exp, k)],
    ['gelu: not defined for complex64, but for float32 and float16; convert with astype', () => nodes.unary('gelu', Op.Gelu, z)],
    ['logsumexp: not defined for int32, but for float32 and float16; convert with astype', () => nodes.reduce('logsumexp', Reduction.LogSumExp, k, 0, 0)],
    ['bitwiseAnd: not defined for float32, but for int32, uint32, int8, uint8, int16, uint16 and bool; convert with astype', () => nodes.binary('bitwiseAnd', Op.BitAnd, a, a)],
    ['sort: not defined for complex64, but for all others; convert with astype', () => nodes.sorted('sort', Op.Sort, z, 0)],
  ])) assert.throws(run, {message: `sublet: ${text}`});
});

test('parts know where they lie', () => {
  const a = leaf(4, 6);
  assert.deepEqual(nodes.transpose(a).steps, {row: 1, col: 6});
  assert.equal(nodes.transpose(nodes.transpose(a)), a);
  assert.ok(nodes.inRows(a));
  assert.ok(nodes.inRows(nodes.slice('slice', a, 1, 3, 0, 6)));
  assert.ok(nodes.inRows(nodes.slice('slice', a, 1, 2, 2, 4)));
  assert.ok(!nodes.inRows(nodes.slice('slice', a, 1, 3, 0, 5)));
  assert.ok(!nodes.inRows(nodes.transpose(a)));
  assert.ok(nodes.inRows(nodes.transpose(leaf(1, 6))));
  assert.ok(nodes.inRows(nodes.transpose(leaf(4, 6, {byColumns: true}))));
  assert.ok(nodes.reshape('reshape', a, 2, 12).steps);
  assert.equal(nodes.reshape('reshape', nodes.transpose(a), 2, 12).steps, null);
  assert.equal(nodes.unary('exp', Op.Exp, a).steps, null);
});

test('an expression is encoded with every part once', () => {
  const a = leaf(2, 2, {handle: 5}), b = leaf(2, 2, {handle: 9});
  const sum = nodes.binary('add', Op.Add, a, b);
  const root = nodes.binary('mul', Op.Mul, sum, nodes.unary('exp', Op.Exp, sum));
  const {value, list} = encode(root);
  assert.deepEqual(list, [[Op.Leaf, 0, 5], [Op.Leaf, 0, 9], [Op.Add, 0, 0, 1], [Op.Exp, 0, 2], [Op.Mul, 0, 2, 3]]);
  assert.equal(value, 4);
  assert.deepEqual(encode(root).list, list, 'again');
});

test('words of the instructions', () => {
  const a = leaf(4, 6);
  const last = (node) => encode(node).list.at(-1);
  assert.deepEqual(last(nodes.slice('slice', a, 1, 3, 2, 6)), [Op.Slice, 0, 0, 1, 3, 2, 6]);
  assert.deepEqual(last(nodes.reshape('reshape', a, 3, 8)), [Op.Reshape, 0, 0, 3, 8]);
  assert.deepEqual(last(nodes.cast('astype', a, int32)), [Op.Cast, 1, 0]);
  assert.deepEqual(last(nodes.scalar('add', float32, 1.5)), [Op.Scalar, 0, 0x3fc00000]);
  assert.deepEqual(last(nodes.scalar('add', int32, -1)), [Op.Scalar, 1, 0xffffffff]);
  assert.deepEqual(last(nodes.filled('full', float32, 2, 3, 1)), [Op.Fill, 0, 0x3f800000, 2, 3]);
  assert.deepEqual(last(nodes.reduce('max', Reduction.Max, a, 0, 0)), [Op.Reduce, 0, 0, Reduction.Max, 2, 0]);
  assert.deepEqual(last(nodes.reduce('normP', Reduction.NormP, a, undefined, 3)), [Op.Reduce, 0, 0, Reduction.NormP, 0, 0x40400000]);
  assert.deepEqual(last(nodes.reduce('argMax', Reduction.ArgMax, a, -1, 0)), [Op.Reduce, 1, 0, Reduction.ArgMax, 1, 0]);
  assert.deepEqual(last(nodes.normalise('hardmax', Op.Hardmax, a, null)), [Op.Hardmax, 0, 0, 0]);
  const func = {handle: 3, name: 'f', arity: 2, types: ['f32', 'f32', 'f32'], closed: false, session: null};
  assert.deepEqual(last(nodes.call('apply', func, [a, a])), [Op.Call, 0, 3, 0, 0]);
  func.closed = true;
  fails('ErrClosed', () => encode(nodes.call('apply', func, [a, a])));
});

test('powers that need no logarithm', () => {
  const a = leaf(1, 1);
  const ops = (power) => encode(nodes.power('pow', a, power)).list.slice(1).map(([op]) => op);
  assert.deepEqual(ops(2), [Op.Square]);
  assert.deepEqual(ops(3), [Op.Square, Op.Mul]);
  assert.deepEqual(ops(0.5), [Op.Sqrt]);
  assert.deepEqual(ops(-1), [Op.Recip]);
  assert.deepEqual(ops(1), []);
  assert.deepEqual(ops(2.5), [Op.Scalar, Op.Pow]);
});

test('every operation is a function and, but for those of three matrices, a method', () => {
  const {gpu} = newGpu();
  const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), whole = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6], {dtype: 'int32'});
  const shapings = Object.keys(Shaping).flatMap((name) => [name[0].toLowerCase() + name.slice(1), name.toLowerCase()]);
  let found = 0;
  const codeOf = (/** @type {() => unknown} */ run) => {
    try {
      run();
      return '';
    } catch (error) {
      return /** @type {any} */ (error).code;
    }
  };
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(Object.getPrototypeOf(Gpu.prototype)))) {
    if (['constructor', 'matmul', 'normP', 'topK', 'argTopK', 'inv', 'lstsq', 'pinv', 'cholesky', 'eigvalsh', ...shapings].includes(name)) continue; // the product's shapes are others, as is that of eigenvalues; some take numbers
    const works = [a, whole].filter((x) => {
      const codes = [1, 2, 3].map((n) => codeOf(() => gpu[name](...Array(n).fill(x)))), n = codes.indexOf('') + 1;
      if (n === 0) assert.ok(codes.includes('ErrUnsupported'), `${name}: ${codes}`);
      if (n === 1 || n === 2) assert.deepEqual(x[name](...Array(n - 1).fill(x)).shape, gpu[name](...Array(n).fill(x)).shape, name);
      assert.equal(codeOf(() => gpu[name](x, x, x, x)), 'ErrInvalid', `${name} takes four`);
      return n > 0;
    });
    assert.ok(works.length > 0, name);
    found++;
  }
  assert.ok(found > 110, `${found}`);
  fails('ErrUnsupported', () => gpu.mulDiv(whole, whole, whole));
  fails('ErrUnsupported', () => a.bitwiseAnd(1));
  gpu.close();
});

test('what makes and shapes matrices has its shape here', () => {
  const {gpu} = newGpu();
  const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), row = gpu.ones(1, 4), labels = gpu.matrix(3, 1, [0, 1, 2], {dtype: 'int32'});
  for (const [x, shape] of /** @type {[any, number[]][]} */ ([
    [gpu.arange(5), [1, 5]], [gpu.arange(1, 2, 0.25), [1, 4]], [gpu.arange(3, 1), [1, 0]], [gpu.linspace(0, 1), [1, 50]], [gpu.linspace(0, 1, 3, {dtype: 'float16'}), [1, 3]],
    [row.diag(), [4, 4]], [row.diag(-2), [6, 6]], [a.diag(), [1, 2]], [a.diagonal(1), [1, 2]], [a.diagonal(-9), [1, 0]], [a.tril(), [2, 3]], [a.triu(1), [2, 3]],
    [a.band(0, 1), [2, 3]], [gpu.oneHot(labels, 7), [3, 7]], [gpu.oneHot(labels.T, 7), [7, 3]], [a.repeatRows(3), [6, 3]], [a.repeatCols(0), [2, 0]], [a.tile(2, 2), [4, 6]],
    [gpu.vstack([a, a, a.add(1)]), [6, 3]], [gpu.hstack([a, a]), [2, 6]], [a.flipRows(), [2, 3]], [gpu.flipCols(a), [2, 3]], [a.roll(1, -1), [2, 3]], [a.pad(1, 2, 3, 4), [5, 10]],
    [a.takeRows(labels), [3, 3]], [a.takeCols(labels.T), [2, 3]], [a.kron(row), [2, 12]], [a.khatriRao(a), [4, 3]], [row.outer(row), [4, 4]], [a.cross(a), [2, 3]], [row.broadcastTo(3, 4), [3, 4]],
  ])) assert.deepEqual(x.shape, shape);
  assert.equal(gpu.arange(0, 3, 1, {dtype: 'int32'}).dtype, 'int32');
  for (const call of [() => gpu.vstack([]), () => gpu.vstack(a), () => a.tile('x', 1), () => gpu.arange(/** @type {any} */ (undefined)), () => a.tile(1)]) fails('ErrInvalid', call);
  fails('ErrSize', () => a.repeatRows(-1));
  fails('ErrLimit', () => a.tile(1e6, 1e6));
  gpu.close();
});

test('a deep expression needs no deep stack, and memory that grows', () => {
  let node = leaf(1, 1);
  for (let i = 0; i < 60000; i++) node = nodes.unary('neg', Op.Neg, node);
  assert.equal(encode(node).list.length, 60001);
  for (let i = 0; i < 6000; i++) node = nodes.unary('neg', Op.Neg, node);
  fails('ErrLimit', () => encode(node));
});

test('a command that fails is taken back', () => {
  const {message, words} = newMessage();
  message.command(13, []);
  const closed = leaf(1, 1);
  /** @type {Memory} */ (closed.memory).close();
  fails('ErrClosed', () => message.compose(5, [1], () => new Program(message, 'eval').encode(nodes.unary('exp', Op.Exp, closed))));
  assert.deepEqual(words(), [(1 << 8) | 13]);
  message.compose(5, [1], () => new Program(message, 'eval').encode(leaf(1, 1)));
  assert.deepEqual(words().slice(1), [(4 << 8) | 5, 1, (2 << 16) | Op.Leaf, 7]);
});

test('a message survives the growth of its memory', () => {
  const {message, memory, words} = newMessage();
  for (let i = 0; i < 20000; i++) {
    message.command(9, [i]);
    if (i % 5000 === 0) memory.grow(1); // detaches what the message writes to
  }
  const all = words();
  assert.equal(all.length, 40000);
  for (let i = 0; i < 20000; i++) assert.deepEqual(all.slice(2 * i, 2 * i + 2), [(2 << 8) | 9, i]);
  memory.grow(1);
  assert.equal(message.cut(39998).length, 2);
  memory.grow(1);
  assert.deepEqual([...message.end().slice(-2)], [(2 << 8) | 9, 19998]);
});
