// SPDX-License-Identifier: Apache-2.0

import {BOOL, FLOAT16, halfBits, holds, numbersIn, rangeOf, typedArrayClass} from './dtype.mjs';
import {allocate, failure, isArray, show, tagOf} from './errors.mjs';
import {numberOf} from './lists.mjs';
import {MAX_BYTES} from './protocol.mjs';

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {{bytes: Uint8Array, copy: boolean}} Data copy: whether the bytes are a copy, not the user's */

/** @param {ArrayBufferView} view @returns {Uint8Array} */
export const bytesOf = (view) => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);

/** @param {unknown} x @returns {x is ArrayBufferLike} also of another realm, for which instanceof fails */
export const isBuffer = (x) => ['ArrayBuffer', 'SharedArrayBuffer'].includes(tagOf(x));

/** Whether numbers of a type are all whole. @param {DType} type */
const isWhole = (type) => !type.real && type !== BOOL;

/**
 * Numbers of the user's, checked: as an element, what is no number would become NaN or 0, and what an integer cannot be would wrap.
 * @param {string} where @param {DType} type @param {any} values @param {number} length
 */
function checked(where, type, values, length) {
  const list = allocate(where, () => new Float64Array(length)), whole = isWhole(type), [low, high] = rangeOf(type), typed = typedArrayClass(values) !== undefined;
  for (let i = 0; i < length; i++) {
    const n = typed ? Number(values[i]) : numberOf(where, values[i], i);
    if (whole && !(Number.isInteger(n) && n >= low && n <= high)) throw failure('ErrInvalid', where, `${n} in place ${i}; ${type.name} is whole numbers from ${low} to ${high}`);
    list[i] = n;
  }
  return list;
}

/** A typed array of numbers in the element type. @param {string} where @param {DType} type @param {Float64Array} values */
function converted(where, type, values) {
  const array = allocate(where, () => new type.Array(values.length));
  if (type === BOOL) values.forEach((v, i) => { array[i] = v !== 0 ? 1 : 0; }); // as in NumPy, NaN is true
  else if (type === FLOAT16 && type.Array === Uint16Array) values.forEach((v, i) => { array[i] = halfBits(v); });
  else array.set(values);
  return array;
}

/** What to do about a typed array of another type. @param {string} where @param {string} own its class @param {DType} type */
const otherType = (where, own, type) => failure('ErrInvalid', where,
  `a ${own} for elements of type ${type.name}; {dtype: "${type.name}"} converts its numbers, and astype("${type.name}") a matrix of another type`);

/**
 * The bytes of the values for a matrix: a typed array of the element type as it is, numbers converted, and so the numbers of other typed
 * arrays if that is asked for.
 * @param {string} where @param {DType} type @param {number} elements how many @param {any} values
 * @param {unknown} [asked] the element type, if the user has named it
 * @returns {Data}
 */
export function dataOf(where, type, elements, values, asked) {
  const own = typedArrayClass(values), same = holds(own, type);
  if (own === undefined && !isArray(values)) throw failure('ErrInvalid', where, `${show(values)} is neither an array of numbers nor a typed array`);
  if (own !== undefined && !same && asked === undefined) throw otherType(where, own, type);
  const {length} = values, count = numbersIn(type, elements);
  if (length < count) throw failure('ErrShort', where, `${length} values where ${count} are needed`);
  if (length > count) throw failure('ErrShape', where, `${length} values where ${count} are needed`);
  const array = same ? values : converted(where, type, checked(where, type, values, count));
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
    throw failure('ErrInvalid', 'read', `${own ?? (ArrayBuffer.isView(into) ? 'DataView' : show(into))} for elements of type ${type.name}; it takes a ${type.Array.name}; read of astype() gives other types`);
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
