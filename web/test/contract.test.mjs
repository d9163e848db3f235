// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Command, Form, Op, Source} from '../src/protocol.mjs';
import {instructions, newGpu, turn} from './fake.mjs';

const fails = (code, run) => assert.throws(run, {name: 'SubletError', code});
const state = (m) => [m.rows, m.cols, m.stride, m.offset, m.mode, m.external, m.capacity];

test('where a matrix is placed', () => {
  const {gpu, sent} = newGpu();
  const m = gpu.matrix(2, 3, undefined, {offset: 4, stride: 5, order: 'column'});
  assert.deepEqual(state(m), [2, 3, 5, 4, 'owned', false, 12]);
  const p = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6], {padded: true, aligned: true});
  assert.deepEqual(state(p), [2, 3, 4, 0, 'owned', false, 8]);
  const w = gpu.wrap(new Float32Array(16), 2, 3, {offset: 4, stride: 4, padded: true, aligned: true});
  assert.deepEqual(state(w), [2, 3, 4, 4, 'external', true, 8]);
  const [first, second, data, wrap] = sent();
  assert.deepEqual(first.words.slice(1), [Form.Columns, 2, 3, 4, 5]);
  assert.deepEqual(second.words.slice(1), [Form.Padded, 2, 3, 0, 4]);
  assert.deepEqual([data.command, data.words[2]], [Command.Data, 24], 'values come without gaps');
  assert.deepEqual([...wrap.words.slice(1, 7), wrap.words[8]], [Source.DontOwnBuffer, Form.Padded, 2, 3, 0, 4, 32], 'the offset is in the window');
  for (const [code, options] of [
    ['ErrAlignment', {aligned: true, offset: 2}], ['ErrAlignment', {aligned: true}], ['ErrAlignment', {aligned: true, padded: true, stride: 3}],
    ['ErrCapacity', {padded: true}], ['ErrCapacity', {padded: true, stride: 3}], ['ErrCapacity', {padded: true, stride: 2}],
    ['ErrStride', {stride: 2}], ['ErrStride', {offset: -1}], ['ErrInvalid', {aligned: 1}], ['ErrInvalid', {padded: 'yes'}],
    ['ErrShort', {padded: true, stride: 8, offset: 1}],
  ]) fails(code, () => gpu.wrap(new Float32Array(16), 2, 3, options));
  fails('ErrCapacity', () => gpu.zeros(2, 3, {padded: true, stride: 3}));
  assert.deepEqual(sent(), []);
});

test('what a matrix is made from', () => {
  const {gpu, sent} = newGpu();
  const data = new Float32Array(12);
  const a = gpu.fromBuffer(data, 2, 3, {dontOwnBuffer: true, stride: 6});
  const b = gpu.fromBuffer(data, 2, 3, {stride: 6, order: 'column', rowMajorInput: true});
  const c = gpu.fromBuffer(data, 1, 3, {stride: 9});
  assert.deepEqual([state(a), state(b), state(c)],
    [[2, 3, 6, 0, 'external', true, 9], [2, 3, 2, 0, 'owned', false, 6], [1, 3, 3, 0, 'owned', false, 3]]);
  const words = sent().map((command) => command.words.slice(1, 7));
  assert.deepEqual(words, [[1, 0, 2, 3, 0, 6], [0, Form.Columns | Form.RowMajorInput, 2, 3, 0, 6], [0, 0, 1, 3, 0, 3]]);
  for (const [code, run] of [
    ['ErrInvalid', () => gpu.fromBuffer(data, 2, 2, {setValueOnDevice: true})],
    ['ErrInvalid', () => gpu.fromBuffer(data, 2, 2, {setValueOnDevice: true, dontOwnBuffer: true})],
    ['ErrInvalid', () => gpu.fromBuffer(data, 2, 2, {dontOwnBuffer: true, rowMajorInput: true, order: 'column'})],
    ['ErrInvalid', () => gpu.fromBuffer(data, 2, 2, {dontOwnBuffer: 1})], ['ErrInvalid', () => gpu.fromBuffer([1, 2, 3, 4], 2, 2)],
    ['ErrInvalid', () => gpu.fromBuffer(data, 2, 2, {release() {}})], ['ErrInvalid', () => gpu.fromBuffer(data, 2, 2, {dtype: 'int32'})],
    ['ErrShort', () => gpu.fromBuffer(data, 4, 4)], ['ErrSize', () => gpu.fromBuffer(data, -1, 4)], ['ErrInvalid', () => gpu.fromBuffer(2, 2)],
    ['ErrInvalid', () => gpu.wrap({get [Symbol.toStringTag]() { return 'GPUBuffer'; }}, 1, 1)],
  ]) fails(code, run);
  assert.deepEqual(sent(), []);
});

test('a change goes into the memory that there is, or into new one', () => {
  const {gpu, sent, answer} = newGpu();
  const own = gpu.matrix(2, 3, undefined, {offset: 1}), big = gpu.zeros(4, 4), small = gpu.zeros(1, 2);
  sent();
  own.memory.setValue(small);
  assert.deepEqual(state(own), [1, 2, 2, 1, 'owned', false, 6]);
  own.memory.setValue(big);
  assert.deepEqual(state(own), [4, 4, 4, 0, 'owned', false, 16]);
  own.memory.resize(2, 3).memory.setShape(3, 2).memory.setShape(3, 2);
  assert.deepEqual(state(own), [3, 2, 2, 0, 'owned', false, 16]);
  own.memory.setValue(own);
  const list = sent();
  assert.deepEqual(list.map((c) => c.command), [Command.SetValue, Command.SetValue, Command.Resize, Command.SetShape, Command.SetShape]);
  list.reduce((from, {words}) => {
    assert.equal(words[2], from, 'each takes over from the one before');
    return words[1];
  }, 1);
  assert.deepEqual(instructions(list[0].words.slice(3)), [[Op.Leaf, 0, 3]]);
  for (const change of list) answer([change]);

  const mine = gpu.wrap(new Float32Array(8), 2, 4);
  mine.memory.setValue(small);
  assert.deepEqual(state(mine), [1, 2, 2, 0, 'external', true, 8]);
  fails('ErrExternalResize', () => mine.memory.setValue(big));
  fails('ErrExternalResize', () => mine.memory.resize(1, 1));
  fails('ErrExternalResize', () => mine.memory.setValueFrom(new Float32Array(9), 3, 3));
  mine.memory.setValueFrom(new Float32Array(4), 2, 2);
  assert.deepEqual(state(mine), [2, 2, 2, 0, 'external', false, 8]);
  fails('ErrExternalResize', () => mine.memory.resize(1, 1));
  fails('ErrExternalResize', () => mine.memory.setValueFrom(new Float32Array(9), 3, 3));
  assert.deepEqual(state(mine), [2, 2, 2, 0, 'external', false, 8]);
  mine.memory.rebind(new Float32Array(6), 2, 3, {order: 'column'});
  assert.deepEqual([...state(mine), mine.order], [2, 3, 2, 0, 'external', true, 6, 'column']);

  const mapped = gpu.map(2, 2);
  assert.equal(mapped.external, false);
  fails('ErrExternalResize', () => mapped.memory.setValue(big));
});

test('what cannot be changed', () => {
  const {gpu, sent} = newGpu();
  const a = gpu.zeros(2, 3), b = a.memory.alias(), gaps = gpu.wrap(new Float32Array(9), 2, 3, {stride: 4}), ints = gpu.zeros(2, 2, {dtype: 'int32'});
  sent();
  for (const [code, run] of [
    ['ErrView', () => a.memory.resize(3, 3)], ['ErrView', () => b.memory.setValue(gpu.eye(3))], ['ErrView', () => a.memory.setValueFrom(new Float32Array(1), 1, 1)],
    ['ErrShape', () => a.memory.setShape(4, 2)], ['ErrStride', () => gaps.memory.setShape(3, 2)], ['ErrInvalid', () => a.memory.setValue(2)], ['ErrInvalid', () => a.memory.setValue()],
    ['ErrInvalid', () => a.memory.setValue(ints)], ['ErrInvalid', () => a.memory.rebind(new Int32Array(4), 2, 2)], ['ErrInvalid', () => a.memory.rebind(new ArrayBuffer(16), 2, 2, {dtype: 'int32'})],
    ['ErrSize', () => a.memory.resize(-1, 2)], ['ErrLimit', () => a.memory.resize(2 ** 20, 2 ** 20)], ['ErrInvalid', () => a.memory.resize(1.5, 2)],
    ['ErrInvalid', () => a.memory.take(a.T)], ['ErrInvalid', () => a.memory.take(5)], ['ErrInvalid', () => a.memory.swap({})], ['ErrForeign', () => a.memory.take(newGpu().gpu.zeros(1, 1))],
    ['ErrForeign', () => a.memory.setValue(newGpu().gpu.zeros(1, 1))],
  ]) fails(code, run);
  b.close();
  a.memory.resize(3, 3);
  assert.deepEqual(a.shape, [3, 3]);
  a.close();
  for (const run of [() => a.memory.resize(1, 1), () => a.memory.alias(), () => a.memory.move(), () => a.memory.take(gaps), () => gaps.memory.take(a), () => a.memory.swap(gaps), () => a.memory.reset()]) {
    fails('ErrClosed', run);
  }
  assert.deepEqual(gaps.shape, [2, 3]);
});

test('views and expressions of what a matrix was', () => {
  const {gpu, sent, answer} = newGpu();
  const a = gpu.zeros(2, 3), view = a.T, sum = a.add(1), row = a.row(0);
  a.memory.resize(1, 3);
  for (const run of [() => sum.eval(), () => view.eval(), () => row.assign(1)]) fails('ErrView', run);
  const list = sent();
  assert.deepEqual(a.add(1).shape, [1, 3]);
  answer(list, 'ErrNoMemory'); // Go has left it as it was
  assert.deepEqual(a.shape, [2, 3]);
  sum.eval();
  row.assign(1);
  assert.deepEqual(sent().slice(1).map((c) => c.command), [Command.Eval, Command.Assign]);
});

test('a change that Go refuses is taken back, and those behind it', () => {
  const {gpu, sent, answer} = newGpu();
  const a = gpu.zeros(2, 3), b = gpu.zeros(5, 5);
  a.memory.resize(4, 4).memory.resize(5, 6);
  const late = a.add(1);
  a.memory.swap(b);
  assert.deepEqual([a.shape, b.shape], [[5, 5], [5, 6]]);
  const [, , first, second] = sent();
  answer([first], 'ErrNoMemory');
  answer([second], 'ErrNoMemory');
  assert.deepEqual([a.shape, b.shape], [[5, 5], [2, 3]], 'wherever the matrix is by now');
  fails('ErrView', () => late.eval());
  const closes = sent();
  assert.deepEqual(closes.map((c) => [c.command, ...c.words]), [[Command.Close, 0, first.words[1]], [Command.Close, 0, second.words[1]]]);
  b.memory.resize(1, 1);
  assert.equal(sent()[0].words[2], 1, 'the handle of before');
});

test('what is wrong with arguments', async () => {
  const {gpu} = newGpu();
  const m = gpu.zeros(2, 2), t = gpu.tensor([1, 2, 3, 4], [2, 2]), {proxy, revoke} = Proxy.revocable(gpu.zeros(2, 2), {});
  revoke();
  const range = () => { throw new RangeError('mine'); };
  for (const [code, text, call] of [
    ['ErrInvalid', 'take: an object is no matrix', () => m.memory.take(proxy)],
    ['ErrInvalid', 'swap: an object is no matrix', () => m.memory.swap(proxy)],
    ['ErrInvalid', 'take: an object is no matrix', () => m.memory.take(m.add(1))],
    ['ErrInvalid', 'matrix: mine', () => gpu.matrix(1, 1, [1], {get dtype() { return range(); }})],
    ['ErrInvalid', 'matrix: an object in place 0 is no number', () => gpu.matrix(1, 1, [{valueOf: range}])],
    ['ErrInvalid', 'set: mine', () => gpu.zeros(1, 1).set(Object.defineProperty([], 0, {get: range}))],
    ['ErrInvalid', 'sum: mine', () => m.sum({get axis() { return range(); }})],
    ['ErrInvalid', 'sparse: mine', () => gpu.sparse(1, 1, {format: 'csr', values: [1], indices: Object.defineProperty([], 0, {get: range}), offsets: [0, 1]})],
    ['ErrInvalid', 'matrix: options that are a function and no object', () => gpu.matrix(1, 1, [1], range)],
    ['ErrInvalid', 'sum: options that are "x"', () => m.sum('x')],
    ['ErrSize', 'zeros: negative', () => gpu.zeros(-1, 1)],
    ['ErrSize', 'ones: negative', () => gpu.ones(-1, 1)],
    ['ErrSize', 'full: negative', () => gpu.full(-1, 1, 2)],
    ['ErrInvalid', 'full: 0.5 among', () => gpu.full(1, 1, 0.5, {dtype: 'int32'})],
    ['ErrInvalid', 'eye: order', () => gpu.eye(2, {order: 'both'})],
    ['ErrInvalid', 'sum: option "keepdims"; did you mean keepDims? There are axis, keepDims', () => m.sum({keepdims: true})],
    ['ErrInvalid', 'sum: option "axes"', () => m.sum({axes: 1})],
    ['ErrIndex', 'sum: axis an array', () => m.sum([0])],
    ['ErrInvalid', 'sum: option "ddof"', () => m.sum({ddof: 1})],
    ['ErrInvalid', 'sort: option "keepDims"', () => m.sort({axis: 0, keepDims: true})],
    ['ErrInvalid', 'sort: axis null', () => m.sort({axis: null})],
    ['ErrInvalid', 'trace: option "axis"; there are none', () => m.trace({axis: 0})],
    ['ErrInvalid', 'trace: option "axis"; there are none', () => t.trace({axis: 0})],
    ['ErrInvalid', 'trace: option "axis"; there are none', () => gpu.trace(m, {axis: 0})],
    ['ErrInvalid', 'sum: option "keepdims"; did you mean keepDims? There are axis, keepDims', () => t.sum({keepdims: true})],
    ['ErrInvalid', 'std: option "dof"; did you mean ddof? There are axis, keepDims, ddof', () => t.std({dof: 1})],
    ['ErrInvalid', 'softmax: option "dim"', () => t.softmax({dim: 1})],
    ['ErrInvalid', 'topK: option "keepDims"', () => t.topK(1, {keepDims: true})],
    ['ErrInvalid', 'slice: a range of 3 numbers', () => t.slice([0, 3, 2])],
    ['ErrInvalid', 'zeros: option "type"; did you mean dtype? There are dtype, order', () => gpu.zeros(1, 1, {type: 'int32'})],
    ['ErrInvalid', 'map: option "type"', () => gpu.map(1, 1, {type: 'int32'})],
    ['ErrInvalid', 'linspace: option "type"', () => gpu.linspace(0, 1, 2, {type: 'int32'})],
    ['ErrInvalid', 'tensor: option "type"', () => gpu.tensor([1], [1], {type: 'int32'})],
    ['ErrInvalid', 'tensor: no elements', () => gpu.tensor(undefined, [2])],
    ['ErrInvalid', 'tensor: undefined in place 1', () => gpu.tensor([1, undefined], [2])],
    ['ErrInvalid', 'tensor: "x" in place 1', () => gpu.tensor([1, 'x'], [2])],
    ['ErrInvalid', 'tensor: an array in place 1 is no number', () => gpu.tensor([1, [2]], [2])],
    ['ErrInvalid', 'matrix: null in place 0', () => gpu.matrix(1, 1, [null])],
    ['ErrInvalid', 'sparse: null in place 0', () => gpu.sparse(1, 1, {format: 'csr', values: [null], indices: [0], offsets: [0, 1]})],
    ['ErrInvalid', 'sparse: option "type"', () => gpu.sparse(1, 1, {type: 'int32', format: 'csr', values: [1], indices: [0], offsets: [0, 1]})],
    ['ErrInvalid', 'astype: dtype undefined', () => m.astype()],
    ['ErrInvalid', 'astype: dtype undefined', () => t.astype()],
    ['ErrInvalid', 'add: a tensor; use its expr(), or gpu.add', () => m.add(t)],
    ['ErrInvalid', 'pow: a tensor; use its expr(), or gpu.pow', () => m.pow(t)],
    ['ErrInvalid', 'matmul: a tensor; use its expr()', () => m.matmul(t)],
    ['ErrInvalid', 'assign: a tensor; use its expr()', () => m.assign(t)],
  ]) assert.throws(call, (error) => error.name === 'SubletError' && error.code === code && error.message.startsWith(`sublet: ${text}`), text);
  assert.ok(gpu.add(m, t).shape.join() === '2,2' && gpu.matrix(1, 2, [true, NaN]) && m.sum({axis: null}).size === 1 && gpu.eye(2, {order: 'column'}));
  await assert.rejects(m.sparse({format: 'csr', signals: 1}), {code: 'ErrInvalid', message: /"signals"; did you mean signal\? There are format, signal/});
  await assert.rejects(t.read(undefined, /** @type {any} */ ({sginal: 1})), {code: 'ErrInvalid', message: /"sginal"/});
  await assert.rejects(m.read(new DataView(new ArrayBuffer(16))), {code: 'ErrInvalid', message: /^sublet: read: DataView for elements/});
  assert.ok(gpu.full(1, 2, -0) && gpu.eye(2, {dtype: 'int32'}).dtype === 'int32' && gpu.ones(2, 2).shape.join() === '2,2');
});

test('handles are given back', () => {
  const {gpu, sent, answer} = newGpu();
  const a = gpu.zeros(2, 3);
  for (let i = 0; i < 50; i++) {
    a.memory.resize(1 + i % 3, 2);
    answer(sent().slice(-1), i % 7 === 3 ? 'ErrNoMemory' : undefined);
  }
  const [{words}] = (gpu.zeros(1, 1), sent().filter((c) => c.command === Command.New));
  assert.ok(words[0] <= 3, `handle ${words[0]}`);
});

test('closed before Go has answered', () => {
  const {session, gpu, sent, answer} = newGpu();
  let released = 0;
  for (const [code, closes] of [[undefined, 1], ['ErrNoMemory', 0]]) {
    const a = gpu.wrap(new Float32Array(4), 2, 2, {release: () => released++});
    a.memory.setShape(4, 1);
    const list = sent(), change = list.at(-1).words;
    a.close();
    assert.deepEqual(sent(), [], 'not yet: which handle it is, is not known');
    answer(list, code);
    const close = sent().at(-1);
    assert.deepEqual([close.command, close.words[1]], [Command.Close, change[2 - closes]]);
    session.settle(close.words[0]);
  }
  return turn().then(() => assert.equal(released, 2));
});

test('memory is released once, by the last that has it', async () => {
  const {session, gpu, sent, answer} = newGpu();
  /** @type {string[]} */
  const released = [];
  const wrap = (name, m) => m
    ? m.memory.rebind(new Float32Array(4), 2, 2, {release: () => released.push(name)})
    : gpu.wrap(new Float32Array(4), 2, 2, {release: () => released.push(name)});
  const settle = () => { for (const {command, words} of sent()) if (command === Command.Close && words[0]) session.settle(words[0]); };
  const a = wrap('a'), b = a.memory.alias(), c = gpu.zeros(1, 1);
  a.close();
  settle();
  await turn();
  assert.deepEqual(released, []);
  b.close();
  settle();
  await turn();
  assert.deepEqual(released, ['a']);

  const d = wrap('d');
  sent();
  wrap('e', d);
  answer(sent());
  await turn();
  assert.deepEqual(released, ['a', 'd'], 'the old memory is given up when Go has taken the new one');
  wrap('f', d);
  answer(sent(), 'ErrInvalid');
  await turn();
  assert.deepEqual(released, ['a', 'd'], 'memory that was not taken over is not released');
  d.memory.setValueFrom(new Float32Array(1), 1, 1);
  answer(sent());
  fails('ErrExternalResize', () => d.memory.resize(9, 9)); // not external any more, but still in that memory
  d.close();
  settle();
  await turn();
  assert.deepEqual(released, ['a', 'd', 'e']);

  const g = wrap('g');
  c.memory.take(g);
  settle();
  assert.deepEqual([c.shape, g.shape, g.mode], [[2, 2], [0, 0], 'owned']);
  const h = c.memory.move();
  h.memory.swap(c);
  c.memory.reset();
  settle();
  await turn();
  assert.deepEqual(released, ['a', 'd', 'e', 'g']);
  assert.deepEqual([h.shape, c.shape], [[0, 0], [0, 0]]);
});

test('the end of the program releases what there is', async () => {
  const {program, gpu, sent} = newGpu();
  let released = 0;
  const a = gpu.wrap(new Float32Array(4), 2, 2, {release: () => released++});
  a.memory.alias();
  a.memory.setShape(1, 4);
  sent();
  program.end('exit code 2');
  await turn();
  assert.equal(released, 1);
  fails('exited', () => a.memory.setShape(2, 2));
  a.close();
});

test('an empty matrix takes the size of what is assigned', () => {
  const {gpu, sent} = newGpu();
  const a = gpu.zeros(2, 3), b = gpu.zeros(3, 2);
  b.memory.reset().assign(a.mul(2));
  assert.deepEqual(b.shape, [2, 3]);
  fails('ErrShape', () => b.assign(gpu.zeros(3, 3)));
  assert.equal(a.memory.take(a), a);
  assert.deepEqual(sent().map((c) => c.command), [Command.New, Command.New, Command.New, Command.Close, Command.SetValue, Command.New]);
});
