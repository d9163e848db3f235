// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {readText} from '../demo/files.mjs';
import {dataOf, window} from '../src/data.mjs';
import {DTYPES, FLOAT16, FLOAT32, halfBits} from '../src/dtype.mjs';

test('float16 bits', () => {
  for (const [value, bits] of [
    [0, 0], [-0, 0x8000], [1, 0x3c00], [-2, 0xc000], [65504, 0x7bff], [65519.99, 0x7bff], [65520, 0x7c00], [-1e9, 0xfc00], [Infinity, 0x7c00],
    [NaN, 0x7e00], [0.1, 0x2e66], [2 ** -14, 0x0400], [2 ** -24, 1], [2 ** -25, 0], [2 ** -25 * 1.0001, 1], [2 ** -24 * 1.5, 2],
    [1 + 2 ** -11, 0x3c00], [1 + 3 * 2 ** -11, 0x3c02], [2047.5, 0x6800], [1 - 2 ** -12, 0x3c00],
  ]) assert.equal(halfBits(value), bits, String(value));
  // Every finite float16 is its own.
  for (let bits = 0; bits < 0x7c00; bits++) {
    const exponent = bits >> 10, fraction = bits & 1023;
    const value = exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction;
    assert.equal(halfBits(value), bits);
    if (value > 0) assert.equal(halfBits(-value), bits | 0x8000);
  }
});

test('data of a matrix', () => {
  const own = new Float32Array([1, 2, 3]);
  const same = dataOf('matrix', FLOAT32, 3, own);
  assert.ok(!same.copy && same.bytes.buffer === own.buffer);
  assert.ok(dataOf('matrix', FLOAT32, 3, new Float64Array(own), 'float32').copy);
  assert.deepEqual([...new Int32Array(dataOf('matrix', DTYPES[1], 2, [2 ** 31 - 1, -(2 ** 31)]).bytes.buffer)], [2 ** 31 - 1, -(2 ** 31)]);
  assert.equal(dataOf('matrix', FLOAT16, 3, [1, 2, 3]).bytes.length, 8, 'whole words');
  const [, , , , INT8, UINT8, , UINT16, BOOL] = DTYPES;
  assert.deepEqual([...dataOf('matrix', INT8, 5, [1, -1, 127, -128, true]).bytes], [1, 255, 127, 128, 1, 0, 0, 0]);
  assert.deepEqual([...dataOf('matrix', BOOL, 4, [0, 0.5, NaN, -3]).bytes], [0, 1, 1, 1]);
  const bits = new Uint16Array([1, 2]);
  for (const [values, type, taken] of /** @type {[any, any, boolean][]} */ ([
    [bits, UINT16, true], [bits, FLOAT16, true], [bits, FLOAT32, false], [new Uint8ClampedArray(4), UINT8, true], [new Uint8Array(4), BOOL, true], [new Int8Array(4), BOOL, false],
  ])) assert.equal(dataOf('matrix', type, values.length, values, type.name).copy, !taken);
  assert.throws(() => dataOf('matrix', FLOAT32, 2, own), {code: 'ErrShape'});
  assert.throws(() => dataOf('matrix', FLOAT32, 4, own), {code: 'ErrShort'});
  assert.deepEqual([...new Int32Array(dataOf('matrix', DTYPES[1], 2, BigInt64Array.of(-5n, 7n), 'int32').bytes.buffer)], [-5, 7]);
  for (const [type, ...wrong] of /** @type {[any, ...any[]][]} */ ([
    [INT8, 128, -129, 0.5, NaN, Infinity, null, undefined, '1', 1n, [1]], [UINT8, -1, 256], [UINT16, -1, 65536], [DTYPES[1], 2 ** 31, 1e20, -0.5], [DTYPES[2], -1, 2 ** 32],
    [FLOAT32, null, undefined, '1', 1n, {}, Symbol('1')], [BOOL, null, 'true'],
  ])) for (const v of wrong) assert.throws(() => dataOf('matrix', type, 2, [1, v]), {code: 'ErrInvalid', message: /in place 1/});
  assert.throws(() => dataOf('matrix', DTYPES[1], 1, Float64Array.of(1.5), 'int32'), {code: 'ErrInvalid'});
  for (const values of [new BigInt64Array(1), new Float64Array(1), new Int8Array(1), new Uint16Array(1), new Uint8ClampedArray(1)]) {
    assert.throws(() => dataOf('matrix', FLOAT32, 1, values), {code: 'ErrInvalid', message: /dtype: "float32".*astype/});
  }
});

test('windows of external memory', () => {
  const memory = new ArrayBuffer(64);
  const w = window('wrap', new Float32Array(memory, 8, 10), FLOAT32, 2, 4);
  assert.deepEqual([w.byteOffset, w.length], [16, 16]);
  assert.throws(() => window('wrap', new Float32Array(memory, 8, 10), FLOAT32, 8, 3), {code: 'ErrShort'});
  assert.equal(window('wrap', new Uint16Array(memory, 0, 3), FLOAT16, 0, 3).length, 6, 'no more than the elements');
  assert.equal(window('wrap', new Int8Array(63), DTYPES[4], 1, 62).length, 62);
});

test('text', () => {
  assert.deepEqual(readText('1 2\n3, -4e2\n'), {rows: 2, cols: 2, data: new Float32Array([1, 2, 3, -400])});
  assert.deepEqual(readText('a;b\n1;inf'), {rows: 1, cols: 2, data: new Float32Array([1, Infinity])});
  assert.deepEqual(readText('[[1, 2],\n [3, 4]]').data, new Float32Array([1, 2, 3, 4]));
  assert.deepEqual(readText(''), {rows: 0, cols: 0, data: new Float32Array(0)});
  assert.throws(() => readText('1 2\n3'), /row 2 has 1 numbers/);
  assert.throws(() => readText('1 x'), /"x" in row 1/);
});
