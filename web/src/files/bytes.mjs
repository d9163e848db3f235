// SPDX-License-Identifier: Apache-2.0

// What the formats of files have in common.

/**
 * A file. Bytes are read where they are asked for, and only within the file.
 * @typedef {object} File
 * @property {number} size
 * @property {(from: number, to: number) => Promise<Uint8Array<ArrayBuffer>>} slice a copy
 * @property {(bytes: number) => void} take refuses to take more memory than the caller allows
 * @property {(code: string, why: string, offset?: number) => Error} fail
 */

/**
 * An array of a file: data are its bytes, row by row, little-endian.
 * @typedef {{name: string, dtype: string, shape: number[], nbytes: number, data: () => Promise<Uint8Array<ArrayBuffer>>}} Entry
 */

/** An array to be written, with its bytes, row by row. @typedef {{name: string, dtype: string, shape: readonly number[], data: Uint8Array<ArrayBuffer>}} Saved */

/** The bytes of an element of the types that NumPy has. @type {Readonly<Record<string, number>>} */
export const SIZES = Object.freeze({
  bool: 1, int8: 1, uint8: 1, int16: 2, uint16: 2, float16: 2, int32: 4, uint32: 4, float32: 4, int64: 8, uint64: 8, float64: 8, complex64: 8, complex128: 16,
});

/** The most dimensions of an array. */
export const MAX_DIMS = 32;

/** How many elements a shape has, undefined for more than can be counted. @param {readonly number[]} shape */
export function countOf(shape) {
  if (shape.includes(0)) return 0;
  const n = shape.reduce((product, d) => product * d, 1);
  return Number.isSafeInteger(n) ? n : undefined;
}

/** A text of a file as it is shown in errors. @param {string} text */
export const quoted = (text) => JSON.stringify(text.length > 40 ? `${text.slice(0, 40)}...` : text);

/** Text of a file, which must be UTF-8. @param {File} file @param {Uint8Array} bytes @param {number} at where they are */
export function textOf(file, bytes, at) {
  try {
    return new TextDecoder('utf-8', {fatal: true, ignoreBOM: true}).decode(bytes);
  } catch {
    throw file.fail('ErrFormat', 'text that is not UTF-8', at);
  }
}

/** Refuses names that occur twice. @param {Pick<File, 'fail'>} file @param {Iterable<string>} names @param {number} [at] */
export function distinct(file, names, at) {
  const seen = new Set();
  for (const name of names) {
    if (seen.has(name)) throw file.fail('ErrDuplicate', `the name ${quoted(name)} occurs twice`, at);
    seen.add(name);
  }
}

/** Encodes a name, which must be text. @param {string} name @param {(code: string, why: string) => Error} fail */
export function encoded(name, fail) {
  if (/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(name)) throw fail('ErrInvalid', `the name ${quoted(name)} is no text`);
  return new TextEncoder().encode(name);
}
