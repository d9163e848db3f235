// SPDX-License-Identifier: Apache-2.0

import {BOOL, FLOAT16, halfBits, holds, numbersIn, typedArrayClass} from './dtype.mjs';
import {allocate, failure, show, tagOf} from './errors.mjs';
import {MAX_BYTES} from './protocol.mjs';

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {{bytes: Uint8Array, copy: boolean}} Data copy: whether the bytes are a copy, not the user's */

/** @param {ArrayBufferView} view @returns {Uint8Array} */
export const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** @param {unknown} x @returns {x is ArrayBufferLike} also of another realm, for which instanceof fails */
export const isBuffer = (x) => ['ArrayBuffer', 'SharedArrayBuffer'].includes(tagOf(x));

/** A typed array of numbers in the element type. @param {string} where @param {DType} type @param {number} count @param {ArrayLike<number>} values */
function converted(where, type, count, values) {
  const array = allocate(where, () => new type.Array(count));
  if (type === BOOL) for (let i = 0; i < count; i++) array[i] = values[i] ? 1 : 0;
  else if (type !== FLOAT16 || type.Array !== Uint16Array) array.set(values);
  else for (let i = 0; i < count; i++) array[i] = halfBits(values[i]);
  return array;
}

/** Refuses what is no number: as an element it would become NaN or 0. @param {string} where @param {unknown[]} values */
function checkNumbers(where, values) {
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (typeof v === 'number' || typeof v === 'boolean') continue;
    throw failure('ErrInvalid', where, Array.isArray(v) ? 'arrays in an array; make it one with .flat(Infinity)' : `${show(v)} in place ${i} is no number`);
  }
}

/**
 * The bytes of the values for a matrix: a typed array of the element type as it is, anything else converted.
 * @param {string} where @param {DType} type @param {number} elements how many @param {any} values @returns {Data}
 */
export function dataOf(where, type, elements, values) {
  const own = typedArrayClass(values);
  const same = holds(own, type);
  if (own?.startsWith('Big') || (own === undefined && !Array.isArray(values))) {
    throw failure('ErrInvalid', where, `${show(values)} is neither an array of numbers nor a typed array`);
  }
  if (own === undefined) checkNumbers(where, values);
  const {length} = values, count = numbersIn(type, elements);
  if (length < count) throw failure('ErrShort', where, `${length} values where ${count} are needed`);
  if (length > count) throw failure('ErrShape', where, `${length} values where ${count} are needed`);
  const array = same ? values : converted(where, type, count, values);
  const bytes = bytesOf(array);
  if (bytes.length % 4 === 0) return {bytes, copy: !same};
  const padded = allocate(where, () => new Uint8Array(Math.ceil(bytes.length / 4) * 4)); // GPUs are written to in words
  padded.set(bytes);
  return {bytes: padded, copy: true};
}

/**
 * The array that a result is read into.
 * @param {import('./node.mjs').Node} node @param {unknown} into the user's choice @returns {any}
 */
export function destination({type, rows, cols}, into) {
  const count = numbersIn(type, rows * cols), bytes = rows * cols * type.size;
  if (bytes > MAX_BYTES) throw failure('ErrLimit', 'read', `${bytes} bytes at once; read parts`);
  if (into === undefined) return allocate('read', () => new type.Array(count));
  const own = typedArrayClass(into);
  if (own === undefined || !holds(own, type)) {
    throw failure('ErrInvalid', 'read', `${own ?? (ArrayBuffer.isView(into) ? 'DataView' : show(into))} for elements of type ${type.name}; it takes a ${type.Array.name}`);
  }
  const {length} = /** @type {Float32Array} */ (into);
  if (length < count) throw failure('ErrShort', 'read', `${length} elements for ${rows}x${cols}${count > rows * cols ? ' of two numbers' : ''}`);
  return into;
}

/**
 * The bytes of external memory that a matrix covers.
 * @param {string} where @param {any} data typed array, DataView or buffer @param {DType} type
 * @param {number} offset elements before the first @param {number} span elements from the first to the last
 * @returns {Uint8Array}
 */
export function window(where, data, type, offset, span) {
  const view = ArrayBuffer.isView(data);
  const memory = view ? data.buffer : data;
  const start = (view ? data.byteOffset : 0) + offset * type.size;
  const end = (view ? data.byteOffset + data.byteLength : data.byteLength);
  const length = span * type.size;
  if (start + length > end) {
    throw failure('ErrShort', where, `${end - start + offset * type.size} bytes, the layout needs ${offset * type.size + length}`);
  }
  return new Uint8Array(memory, start, length);
}
