// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Command, Op} from '../src/protocol.mjs';
import {Tensor} from '../src/tensor-expr.mjs';
import {instructions, newGpu} from './fake.mjs';

const fails = (code, run) => assert.throws(run, {name: 'SubletError', code});
const values = (n) => Array.from({length: n}, (_, i) => i);

/** The instructions of an expression that is evaluated. */
function encoded({sent}, x) {
  sent();
  x.eval();
  return instructions(sent().find(({command}) => command === Command.Eval).words.slice(1));
}

test('a tensor has every element-wise operation, reduction and order', () => {
  const {gpu} = newGpu(), t = gpu.tensor(values(6), [2, 1, 3]), whole = gpu.tensor(values(6), [2, 1, 3], {dtype: 'int32'});
  const names = Object.getOwnPropertyNames(Object.getPrototypeOf(Tensor.prototype)).filter((name) => name !== 'constructor');
  for (const name of names) {
    if (['matmul', 'trace'].includes(name)) continue; // of matrices
    const made = [t, whole].flatMap((x) => {
      const codes = [];
      for (const args of ['topK', 'argTopK', 'normP'].includes(name) ? [[2]] : [[], [x], [x, x]]) {
        try {
          return [x[name](...args)];
        } catch (error) {
          codes.push(/** @type {any} */ (error).code);
        }
      }
      assert.ok(codes.includes('ErrUnsupported'), `${name}: ${codes}`);
      return [];
    });
    assert.ok(made.length > 0 && made.every((x) => x instanceof Tensor), name);
  }
  assert.ok(names.length > 100, `${names.length}`);
  gpu.close();
});

test('operands of one shape need no instruction of their own', () => {
  const rig = newGpu(), {gpu} = rig, t = gpu.tensor(values(24), [2, 3, 4]), u = gpu.matrix(6, 4, values(24)).tensor(2, 3, 4);
  assert.deepEqual(encoded(rig, t.add(u).mul(2).exp()).map(([op]) => op), [Op.Leaf, Op.Leaf, Op.Add, Op.Scalar, Op.Mul, Op.Exp]);
  const row = gpu.tensor(values(4), [4]);
  assert.deepEqual(encoded(rig, t.add(row)).at(-1), [Op.Tensor, 0, 3, 2, 1, 0, 3, 2, 3, 4, 1, 4, Op.Add]);
  assert.deepEqual(encoded(rig, t.permute(2, 0, -2)).at(-1), [Op.Tensor, 0, 0, 1, 0, 3, 2, 3, 4, 2, 0, 1]);
  assert.deepEqual(encoded(rig, t.slice(1, [0, 2])).at(-1), [Op.Tensor, 0, 1, 1, 0, 3, 2, 3, 4, 1, 2, 0, 2]);
  assert.deepEqual(encoded(rig, row.broadcastTo(2, 4)).at(-1), [Op.Tensor, 0, 2, 1, 0, 1, 4, 2, 4]);
  assert.deepEqual(encoded(rig, t.sum({axis: 2})).at(-2).slice(0, 5), [Op.Reduce, 0, 0, 0, 1]);
  assert.deepEqual(encoded(rig, t.permute(0, 1, 2).slice(null)).map(([op]) => op), [Op.Leaf]);
  gpu.close();
});

test('shapes', () => {
  const {gpu} = newGpu(), t = gpu.tensor(values(24), [2, 3, 4]);
  for (const [x, shape] of /** @type {[any, number[]][]} */ ([
    [t.T, [4, 3, 2]], [t.reshape(-1, 4), [6, 4]], [t.reshape([24]), [24]], [t.slice(0), [3, 4]], [t.slice([1], [0, -1], 2), [1, 2]], [t.expandDims(-1), [2, 3, 4, 1]],
    [t.sum(), []], [t.sum({axis: [0, -1]}), [3]], [t.max({axis: 1, keepDims: true}), [2, 1, 4]], [t.topK(2, {axis: 1}), [2, 2, 4]], [t.argSort({axis: 0}), [2, 3, 4]],
    [t.matmul(gpu.zeros(4, 5)), [2, 3, 5]], [t.softmax({axis: null}), [2, 3, 4]], [gpu.where(t, 1, gpu.zeros(3, 1)), [2, 3, 4]], [t.std({axis: 0, ddof: 1}), [3, 4]],
  ])) assert.deepEqual([...x.shape], shape);
  assert.deepEqual(t.expr().shape, [6, 4]);
  fails('ErrShape', () => t.add(gpu.zeros(3, 3)));
  fails('ErrIndex', () => t.sum({axis: -4}));
  fails('ErrInvalid', () => t.sum({axis: [0, 0]}));
  fails('ErrLimit', () => t.reshape(Array(17).fill(1)));
  gpu.close();
});

test('words of layers and of training', () => {
  const rig = newGpu(), {gpu, sent} = rig, x = gpu.zeros(2, 12), w = gpu.zeros(1, 4), y = gpu.nn.conv2d(x, w, null, {channels: 1, height: 3, width: 4, kernel: 2, pad: [0, 1]});
  assert.deepEqual(y.shape, [2, 2 * 5]);
  const layer = encoded(rig, y).at(-1);
  assert.deepEqual(layer.slice(0, 6), [Op.Layer, 0, 0, 2, 1, 0]);
  const numbers = new Float64Array(Uint32Array.from(layer.slice(6)).buffer);
  assert.deepEqual([...numbers], [1, 3, 4, 2, 2, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1]);
  const adam = gpu.nn.adam({rate: 0.5}), p = gpu.zeros(1, 4);
  sent();
  adam.step(p, w.mul(2));
  const [{command, words}] = sent();
  assert.equal(command, Command.Layer);
  assert.deepEqual([words[0], words[1] > 0, words[4] > 0, words[7], words[10]], [4, true, true, 2, 0x3f000000]);
  assert.deepEqual(instructions(words.slice(16)).map(([op]) => op), [Op.Leaf, Op.Scalar, Op.Mul]);
  adam.close();
  assert.deepEqual(sent().map((c) => c.command), [Command.Close]);
  fails('ErrClosed', () => adam.step(p, w));
  for (const call of [() => gpu.nn.adam({lr: 1}), () => gpu.nn.conv2d(x, w, null, {padding: 1}), () => gpu.nn.sgd({rate: -1}), () => gpu.nn.maxPool(x, {...{channels: 1, height: 3, width: 4}, kernel: 0})]) fails('ErrInvalid', call);
  assert.throws(() => gpu.nn.conv2d(x, w, null, {padding: 1}), /"padding"; there are channels, height/);
  const q = gpu.nn.quantise(x, {bits: 1});
  assert.deepEqual([q.levels.shape, q.levels.dtype, q.lower.shape, q.dequantise().shape], [[1, 12], 'uint8', [1, 12], [2, 12]]);
  assert.deepEqual(sent().find((c) => c.command === Command.Layer).words.slice(0, 4).map((v, i) => i === 0 ? v : v > 0), [7, true, true, true]);
  gpu.close();
});

test('layers refuse tensors of another shape, whatever their number of elements', () => {
  const {gpu} = newGpu(), {nn} = gpu, t = (...shape) => gpu.tensor(values(shape.reduce((n, d) => n * d, 1)), shape);
  const x = t(1, 4, 6, 6), k = {kernel: 3}, labels = (...shape) => t(...shape).astype('int32');
  for (const [message, call] of /** @type {[RegExp, () => unknown][]} */ ([
    [/d of shape \(1, 4, 4, 8\); it must be \(1, 4, 4, 4\)/, () => nn.conv2dKernelGrad(t(1, 4, 4, 8), x, k)],
    [/d of shape \(1, 4, 5, 4\); it must be \(1, 4, 4, 4\)/, () => nn.conv2dKernelGrad(t(1, 4, 5, 4), x, k)],
    [/d of shape \(1, 2, 8, 4\); it must be \(n, 4, 4, 4\)/, () => nn.conv2dDataGrad(t(1, 2, 8, 4), t(4, 4, 3, 3), {height: 6, width: 6})],
    [/weights of shape \(4, 6, 3, 2\); it must be \(4, 4, 3, 3\)/, () => nn.conv2d(x, t(4, 6, 3, 2), null, k)],
    [/x of shape \(1, 4, 6, 6\); it must be \(n, 9, 4, 4\)/, () => nn.conv2d(x, t(4, 9, 3, 3), null, {channels: 9, height: 4, width: 4})],
    [/bias of shape \(2, 2\); it must be \(4\)/, () => nn.conv2d(x, t(4, 4, 3, 3), t(2, 2))],
    [/d of shape \(1, 9, 2, 2\); it must be \(1, 4, 3, 3\)/, () => nn.maxPoolGrad(t(1, 9, 2, 2), x, {kernel: 2, stride: 2})],
    [/d of shape \(1, 9, 2, 2\); it must be \(n, 4, 3, 3\)/, () => nn.averagePoolGrad(t(1, 9, 2, 2), {channels: 4, height: 6, width: 6, kernel: 2, stride: 2})],
    [/d of shape \(1, 4, 4, 4\); it must be \(n, 4, 5, 5\)/, () => nn.conv2dBiasGrad(t(1, 4, 4, 4), {channels: 4, height: 6, width: 6, kernel: 2})],
    [/x of shape/, () => nn.maxPool(x, {channels: 9, height: 4, width: 4, kernel: 2})],
    [/target of shape \(2, 2, 3\); it must be \(2, 6\)/, () => nn.mse(t(2, 6), t(2, 2, 3))],
    [/mask of shape \(2, 3, 2\); it must be \(2, 6\)/, () => nn.dropout(t(2, 6), t(2, 3, 2), 0.5)],
    [/labels of shape \(1, 2, 2\); it must be \(4\)/, () => nn.crossEntropy(t(4, 3), labels(1, 2, 2))],
    [/d of shape \(2, 2, 2, 3\); it must be \(2, 3, 2, 2\)/, () => nn.batchNorm().backward(t(2, 2, 2, 3), t(2, 3, 2, 2), t(3), {mean: gpu.ones(1, 3), invStd: gpu.ones(1, 3)})],
    [/x of shape \(2, 3, 2, 2\); it must be \(n, 4, 2, 2\)/, () => nn.batchNorm({channels: 4}).infer(t(2, 3, 2, 2), t(4), t(4), t(4), t(4))],
    [/the gradient is 4x1; it must be 2x2/, () => nn.sgd().step(gpu.ones(2, 2), t(4))],
  ])) assert.throws(call, {code: 'ErrShape', message});
  nn.sgd().step(gpu.ones(2, 6), t(2, 3, 2));
  nn.sgd().step(gpu.ones(1, 4), t(4));
  assert.deepEqual(nn.crossEntropy(t(4, 3), labels(4)).shape, [4]);
  assert.deepEqual(nn.mse(gpu.ones(2, 6), t(2, 2, 3)).shape, [1, 1]);
  gpu.close();
});
