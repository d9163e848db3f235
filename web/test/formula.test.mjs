// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {init} from '../dist/index.mjs';
import {open} from '../dist/play-files.mjs';
import {FormulaError, read} from '../dist/play-formula.mjs';

/** @type {import('../index.js').Gpu} */
let gpu;
/** @type {Record<string, import('../index.js').Matrix>} */
let operands;

before(async () => {
  gpu = await init({device: 'simd', threads: 1});
  operands = {A: gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), B: gpu.matrix(3, 2, [1, 0, 0, 1, 1, 1]), C: gpu.matrix(2, 2, [4, 1, 1, 3])};
});
after(() => gpu.close());

const make = (/** @type {string} */ text) => read(gpu, text, (name) => operands[name], Object.keys(operands));

test('formulas', async () => {
  const e = Math.E, soft = [1, e, e * e].map((x) => x / (1 + e + e * e));
  for (const [text, rows, want] of /** @type {[string, number, number[]][]} */ ([
    ['A * B + 1', 2, [5, 6, 11, 12]], ['A @ B', 2, [4, 5, 10, 11]], ['2 * A - A % A', 2, [1, 0, -3, -8, -15, -24]], ['A / 2', 2, [0.5, 1, 1.5, 2, 2.5, 3]],
    ['-A ** 2', 2, [-1, -4, -9, -16, -25, -36]], ['2 ** 3 ** 2', 1, [512]], ['1 + 2 * 3 - 4 / 8', 1, [6.5]], ['10 - 2 - 3', 1, [5]],
    ['T(A) * A', 3, [17, 22, 27, 22, 29, 36, 27, 36, 45]], ['A.T[1]', 1, [2, 5]], ['A[0]', 1, [1, 2, 3]], ['A[-1, -2]', 1, [5]], ['A[:, 1:]', 2, [2, 3, 5, 6]],
    ['(A + A)[1 - 1, :2]', 1, [2, 4]], ['A > 2 && A < 6', 2, [0, 0, 1, 1, 1, 0]], ['!(A == 1) || A != A', 2, [0, 1, 1, 1, 1, 1]],
    ['softmax(A)', 2, [...soft, ...soft]], ['sum(A)', 1, [21]], ['sum(A, 0)', 1, [5, 7, 9]], ['sumrows(A)', 2, [6, 15]], ['meancols(A)', 1, [2.5, 3.5, 4.5]],
    ['std(A, 1)', 1, [Math.sqrt(3.5)]], ['stdcols(A)', 1, [1.5, 1.5, 1.5]], ['max(A)', 1, [6]], ['max(A, 3)', 2, [3, 3, 3, 4, 5, 6]], ['max(1, 2) - min(3, 4)', 1, [-1]], ['min(2, A)', 2, [1, 2, 2, 2, 2, 2]],
    ['MaxRows(A)', 2, [3, 6]], ['logical_not(A - 1)', 2, [1, 0, 0, 0, 0, 0]], ['sin(pi / 2) + exp(0)', 1, [2]], ['eye(2) * 3 + zeros(2, 2)', 2, [3, 0, 0, 3]],
    ['solve(C, C * B.T) * 2', 2, [2, 0, 2, 0, 2, 2]], ['inv(C) * 11', 2, [3, -1, -1, 4]], ['det(C)', 1, [11]], ['hstack(C, eye(2))', 2, [4, 1, 1, 0, 1, 3, 0, 1]],
    ['vstack(A[0], A[1] + 1)', 2, [1, 2, 3, 5, 6, 7]], ['int32(A / 2) + 0', 2, [0, 1, 1, 2, 2, 3]], ['linspace(0, 1, 3)', 1, [0, 0.5, 1]], ['where(A > 3, A, 0)', 2, [0, 0, 0, 4, 5, 6]],
    ['fill(1, 2, 7)', 1, [7, 7]], ['trace(C) / 7', 1, [1]], ['argmaxrows(A)', 2, [2, 2]], ['topkrows(A, 1)', 2, [3, 6]], ['hypot(3, A[0, 0] * 4)', 1, [5]], ['1 / C', 2, [0.25, 1, 1, 1 / 3]],
    ['\tA[0 ,\n 0]', 1, [1]], ['softmaxcols(A[:, :1])', 2, [1 / (1 + e ** 3), 1 / (1 + e ** -3)]], ['1e2 + .5', 1, [100.5]],
  ])) {
    const {x, made} = make(text), values = /** @type {ArrayLike<number>} */ (/** @type {unknown} */ (await x.read()));
    assert.deepEqual([x.rows, values.length], [rows, want.length], text);
    want.forEach((value, i) => assert.ok(Math.abs(values[i] - value) <= 2e-6 * (1 + Math.abs(value)), `${text}: ${values} instead of ${want}`));
    for (const matrix of made) matrix.close();
  }
});

test('the JavaScript of formulas yields the same', async () => {
  for (const text of ['A * B + 1', '2 / (A + 1)', '-A.T[1:, 0] * 3', 'softmax(A, 0) % A', 'stdrows(A) - sum(A)', 'hstack(C, eye(2))', 'max(A, 2)', 'float32(int32(A / 2))', 'sin(1)']) {
    const {x, js, made} = make(text), again = new Function('gpu', ...Object.keys(operands), `return ${js}`)(gpu, ...Object.values(operands));
    assert.deepEqual(await again.read(), await x.read(), `${text}: ${js}`);
    for (const matrix of made) matrix.close();
  }
});

test('mistakes in formulas', () => {
  for (const [text, want] of [
    ['', /^The formula is empty/], ['  ', /^The formula is empty/], ['A +', /^Something is missing, after "A \+"/], ['(A', /wants a \)/], ['A[0', /wants a \]/], ['A B', /^B does not belong here, after "A"/],
    ['sofmax(A)', /^There is no function sofmax: did you mean softmax\?/], ['D + 1', /^There is no D: the operands are A, B, C/], ['softmax', /wants parentheses/],
    ['A ^ 2', /\*\*2 is the power/], ['A = 1', /== compares/], ['A < 2 < 3', /two at a time/], ['A $ 2', /means nothing/], ['A[0.5]', /whole numbers/], ['A[::2]', /steps/],
    ['A[A]', /whole numbers/], ['A.X', /wants T or H/], ['sum()', /between its parentheses/], ['read(A)', /no function read/], ['close(A)', /no function close/], ['constructor(A)', /no function/],
    ['A * *', /^\* does not belong here/], ['A[]', /a number or a range/], ['shape(A)', /no function/],
  ]) assert.throws(() => make(/** @type {string} */ (text)), (error) => error instanceof FormulaError && want.test(error.message) || assert.fail(`${text}: ${error}`));
  for (const text of ['A * A', 'A + B', 'A[7]', 'A[1:, 4]']) {
    assert.throws(() => make(text), {name: 'SubletError'}, text);
  }
});

test('what safetensors hold', async () => {
  const file = (/** @type {unknown} */ header, /** @type {number} */ bytes) => {
    const text = new TextEncoder().encode(JSON.stringify(header)), buffer = new ArrayBuffer(8 + text.length + bytes);
    new DataView(buffer).setBigUint64(0, BigInt(text.length), true);
    new Uint8Array(buffer).set(text, 8);
    return {buffer, view: new DataView(buffer, 8 + text.length)};
  };
  const {buffer, view} = file({
    __metadata__: {a: 'b'}, w: {dtype: 'F32', shape: [1, 2, 2], data_offsets: [0, 16]}, h: {dtype: 'F16', shape: [2], data_offsets: [16, 20]},
    b: {dtype: 'BF16', shape: [1], data_offsets: [20, 22]}, s: {dtype: 'I64', shape: [], data_offsets: [22, 30]},
  }, 30);
  [1.5, -2, 3, 4].forEach((value, i) => view.setFloat32(4 * i, value, true));
  view.setUint16(16, 0x3c00, true);
  view.setUint16(18, 0xc000, true);
  view.setUint16(20, 0x4049, true);
  view.setBigInt64(22, -7n, true);
  const opened = (/** @type {ArrayBuffer} */ buffer) => open(gpu, new File([buffer], 'x.safetensors')), found = await opened(buffer);
  assert.deepEqual(found.map(({name}) => name), ['w, 1 \u00d7 2 \u00d7 2', 'h, 1 \u00d7 2', 'b, 1 \u00d7 1', 's, 1 \u00d7 1']);
  assert.deepEqual(found.map(({table}) => table()).map(({rows, cols, data}) => [rows, cols, ...data]), [[2, 2, 1.5, -2, 3, 4], [1, 2, 1, -2], [1, 1, 3.140625], [1, 1, -7]]);
  await assert.rejects(opened(new ArrayBuffer(4)), {code: 'ErrTruncated'});
  await assert.rejects(opened(file({}, 0).buffer), /holds no arrays/);
  await assert.rejects(opened(file({x: {dtype: 'F32', shape: [2], data_offsets: [0, 8]}}, 4).buffer), {code: 'ErrTruncated'});
  await assert.rejects(opened(file({x: {dtype: 'F8', shape: [2], data_offsets: [0, 2]}}, 2).buffer), {name: 'SubletError'});
});
