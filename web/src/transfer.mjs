// SPDX-License-Identifier: Apache-2.0

import {isBuffer} from './data.mjs';
import {dtypeOf, numbersIn} from './dtype.mjs';
import {failure, guard, show, tagOf} from './errors.mjs';
import {readFor} from './expr.mjs';
import {read} from './source.mjs';

// Matrices on their way to another thread: device and program stay where they are, so that only elements can go.

/** @param {import('./matrix.mjs').Matrix} matrix @param {unknown} [options] */
export async function detached(matrix, options) {
  const {shape, dtype} = matrix, elements = await readFor(matrix, 'detach', [undefined, options]);
  matrix.close();
  return {data: elements.buffer, shape, dtype};
}

/** @param {import('./gpu.mjs').Gpu} gpu @param {unknown} message */
export function attached(gpu, message) {
  const where = 'attach';
  if (typeof message !== 'object' || message === null) throw failure('ErrInvalid', where, `${show(message)}; it is a message of detach(), {data, shape, dtype}`);
  const {data, shape: dims, dtype} = read(where, message, ['data', 'shape', 'dtype']), type = dtypeOf(where, dtype);
  if (!isBuffer(data)) throw failure('ErrInvalid', where, `data ${show(data)}; it is an ArrayBuffer or a SharedArrayBuffer`);
  const shape = guard(where, () => Array.isArray(dims) ? Array.from(dims) : []), [rows, cols] = shape;
  if (shape.length !== 2 || !shape.every((n) => Number.isSafeInteger(n) && n >= 0)) throw failure('ErrInvalid', where, `shape ${show(dims)}; it is [rows, columns]`);
  const need = rows * cols * type.size, {byteLength} = data;
  if (byteLength < need) throw failure('ErrShort', where, `${byteLength} bytes, ${rows}x${cols} of ${type.name} takes ${need}; was the buffer transferred again?`);
  if (byteLength > need) throw failure('ErrShape', where, `${byteLength} bytes, ${rows}x${cols} of ${type.name} takes ${need}`);
  if (tagOf(data) === 'SharedArrayBuffer') return gpu.wrap(data, rows, cols, {dtype});
  return gpu.matrix(rows, cols, guard(where, () => new type.Array(data, 0, numbersIn(type, rows * cols))), {dtype});
}
