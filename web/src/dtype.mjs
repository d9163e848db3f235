// SPDX-License-Identifier: Apache-2.0

import {failure, show} from './errors.mjs';
import {instead} from './nearest.mjs';

/**
 * An element type.
 * @typedef {{id: number, name: string, size: number, real: boolean, Array: any}} DType
 */

// Browsers get Float16Array one after the other; elsewhere the bits are shown.
const Float16 = /** @type {any} */ (globalThis).Float16Array ?? Uint16Array;

/** The element types in the order of the numbers that Go knows them by. @type {readonly DType[]} */
export const DTYPES = Object.freeze([
  Object.freeze({id: 0, name: 'float32', size: 4, real: true, Array: Float32Array}),
  Object.freeze({id: 1, name: 'int32', size: 4, real: false, Array: Int32Array}),
  Object.freeze({id: 2, name: 'uint32', size: 4, real: false, Array: Uint32Array}),
  Object.freeze({id: 3, name: 'float16', size: 2, real: true, Array: Float16}),
  Object.freeze({id: 4, name: 'int8', size: 1, real: false, Array: Int8Array}),
  Object.freeze({id: 5, name: 'uint8', size: 1, real: false, Array: Uint8Array}),
  Object.freeze({id: 6, name: 'int16', size: 2, real: false, Array: Int16Array}),
  Object.freeze({id: 7, name: 'uint16', size: 2, real: false, Array: Uint16Array}),
  Object.freeze({id: 8, name: 'bool', size: 1, real: false, Array: Uint8Array}),
  Object.freeze({id: 9, name: 'complex64', size: 8, real: true, Array: Float32Array}), // two numbers for each element
]);

export const FLOAT32 = DTYPES[0];
export const INT32 = DTYPES[1];
export const FLOAT16 = DTYPES[3];
export const BOOL = DTYPES[8];
export const COMPLEX64 = DTYPES[9];

/** How many numbers of a typed array elements are. @param {DType} type @param {number} count of the elements */
export const numbersIn = (type, count) => type === COMPLEX64 ? 2 * count : count;

/** @param {string} where @param {unknown} name @param {DType} [fallback] what undefined stands for, if it may be left out @returns {DType} */
export function dtypeOf(where, name, fallback) {
  if (name === undefined && fallback) return fallback;
  const type = DTYPES.find((t) => t.name === name);
  if (!type) throw failure('ErrInvalid', where, `dtype ${show(name)}; ${instead(name, DTYPES.map((t) => t.name))}`);
  return type;
}

/** The element type that a typed array's own class says. @type {Record<string, DType>} */
const BY_CLASS = {
  Float32Array: DTYPES[0], Int32Array: DTYPES[1], Uint32Array: DTYPES[2], Float16Array: DTYPES[3], Int8Array: DTYPES[4],
  Uint8Array: DTYPES[5], Uint8ClampedArray: DTYPES[5], Int16Array: DTYPES[6], Uint16Array: DTYPES[7],
};

const classOf = /** @type {(view: unknown) => string | undefined} */ (Function.prototype.call.bind(
  /** @type {() => string} */ (Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)?.get)));

/** The class of a typed array of any realm, undefined for anything else. @param {unknown} view */
export const typedArrayClass = (view) => ArrayBuffer.isView(view) ? classOf(view) : undefined;

/** @param {string | undefined} name a class @returns {DType | undefined} */
export const dtypeOfClass = (name) => name === undefined ? undefined : BY_CLASS[name];

/**
 * Whether arrays of a class hold elements of a type as they are: a Uint16Array may hold the bits of float16, a Uint8Array bools, a
 * Float32Array complex numbers.
 * @param {string | undefined} name a class @param {DType} type
 */
export function holds(name, type) {
  const own = dtypeOfClass(name)?.name;
  return own === type.name || (own === 'uint16' && type === FLOAT16) || (own === 'uint8' && type === BOOL) || (own === 'float32' && type === COMPLEX64);
}

/** The least and the largest number of a type of integers. @param {DType} type @returns {[number, number]} */
export function rangeOf(type) {
  const count = 2 ** (8 * type.size), low = type.name.startsWith('int') ? -count / 2 : 0;
  return [low, low + count - 1];
}

const float = new Float32Array(1);
const bits = new Uint32Array(float.buffer);

/**
 * The bits of a number in the type that is computed in.
 * @param {string} where @param {DType} type @param {number} value
 */
export function scalarBits(where, type, value) {
  if (type.real) {
    float[0] = value;
    return bits[0];
  }
  const [low, high] = type.name.startsWith('int') ? rangeOf(INT32) : rangeOf(DTYPES[2]);
  if (!Number.isInteger(value) || value < low || value > high) throw failure('ErrInvalid', where, `${value} among elements of type ${type.name}`);
  return value >>> 0;
}

/** Refuses a number that elements of a type cannot be: it would wrap where it is stored. @param {string} where @param {DType} type @param {number} value */
export function checkElement(where, type, value) {
  if (type.real || type === BOOL || type.size === 4) return;
  const [low, high] = rangeOf(type);
  if (value < low || value > high) throw failure('ErrInvalid', where, `${value} among elements of type ${type.name}`);
}

/**
 * The bits of the float16 nearest to a number, ties to even, for where there is no Float16Array.
 * @param {number} value
 */
export function halfBits(value) {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00; // rounds to infinity
  if (size < 2 ** -14) return sign | roundEven(size * 2 ** 24); // subnormal, or the smallest normal number
  const exponent = Math.floor(Math.log2(size));
  // Rounding up to the next power of two carries into the exponent, as it should.
  return sign | (((exponent + 14) << 10) + roundEven(size * 2 ** (10 - exponent)));
}

/** The number with the bits of a float16. @param {number} bits */
export function halfNumber(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** @param {number} x not negative */
function roundEven(x) {
  const down = Math.floor(x), rest = x - down;
  return rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down;
}
