// SPDX-License-Identifier: Apache-2.0

// NumPy's files of one array, as package buffer/file/npy reads and writes them.

import {MAX_DIMS, SIZES, countOf, quoted} from './bytes.mjs';

/** @typedef {import('./bytes.mjs').File} File */
/** @typedef {import('./bytes.mjs').Entry} Entry */
/** @typedef {import('./bytes.mjs').Saved} Saved */
/** @typedef {{dtype: string, big: boolean, fortran: boolean, shape: number[], nbytes: number}} Header */

export const MAGIC = '\x93NUMPY';

/** Far beyond any header of an array of numbers. NumPy itself refuses more than 10,000 bytes. */
const MAX_HEADER = 64 << 10;

/** NumPy starts the elements at a multiple of so many bytes. */
const ALIGN = 64;

/** What NumPy writes for a type after the sign of the byte order, and the type's one letter. Letters whose size depends on the machine are missing. */
const TYPES = Object.freeze([
  ['b1', '?', 'bool'], ['i1', 'b', 'int8'], ['i2', 'h', 'int16'], ['i4', 'i', 'int32'], ['i8', 'q', 'int64'], ['u1', 'B', 'uint8'], ['u2', 'H', 'uint16'],
  ['u4', 'I', 'uint32'], ['u8', 'Q', 'uint64'], ['f2', 'e', 'float16'], ['f4', 'f', 'float32'], ['f8', 'd', 'float64'], ['c8', 'F', 'complex64'], ['c16', 'D', 'complex128'],
]);

/** A key of the Python literal that a header is, with its value: a text, a truth, a tuple, or the list that a type of several fields is. */
const ENTRY = /\s*(?:'(\w+)'|"(\w+)")\s*:\s*(?:'([^'\\\n]*)'|"([^"\\\n]*)"|(True|False)|\(([-\dL,\s]*)\)|(\[.*\]))\s*(,\s*\}|,|\})/y;

/** @param {File} file @param {string} descr @param {number} at @returns {{dtype: string, big: boolean}} */
function typeOf(file, descr, at) {
  const signed = /^[<|=>]/.test(descr), name = signed ? descr.slice(1) : descr;
  const type = TYPES.find(([code, letter, dtype]) => name === code || name === letter || descr === dtype);
  if (!type) throw file.fail('ErrType', `dtype ${quoted(descr)}; read are bool, int8 to int64, uint8 to uint64, float16 to float64, complex64 and complex128`, at);
  return {dtype: type[2], big: descr[0] === '>' && SIZES[type[2]] > 1};
}

/** @param {File} file @param {string} text of a tuple @param {number} at */
function shapeOf(file, text, at) {
  const parts = text.split(',').map((part) => part.trim()), single = parts.length === 1 && parts[0] !== '';
  if (parts.at(-1) === '') parts.pop();
  if (single || parts.some((part) => !/^(0|[1-9]\d*)L?$/.test(part))) throw file.fail('ErrFormat', `impossible shape (${text.trim().slice(0, 40)})`, at);
  if (parts.length > MAX_DIMS) throw file.fail('ErrTooLarge', `${parts.length} dimensions`, at);
  return parts.map((part) => parseInt(part, 10));
}

/** @param {File} file @param {string} text of a header @param {number} at where that is @returns {Header} */
function parse(file, text, at) {
  /** @type {Map<string, any>} */
  const found = new Map();
  ENTRY.lastIndex = /^[ \t\r\n\f]*\{?/.exec(text)?.[0].length ?? 0;
  for (let end = false; !end;) {
    const start = ENTRY.lastIndex, m = ENTRY.exec(text);
    if (!m) throw file.fail('ErrFormat', `a key and its value are expected before ${quoted(text.slice(start))}`, at + start);
    const key = m[1] ?? m[2], said = m[3] ?? m[4];
    if (found.has(key)) throw file.fail('ErrDuplicate', `the key ${key} occurs twice`, at + start);
    if (key === 'descr' && m[7] !== undefined) throw file.fail('ErrType', 'a structure of several fields', at + start);
    if (key === 'descr' && said !== undefined) found.set(key, typeOf(file, said, at + start));
    else if (key === 'fortran_order' && m[5] !== undefined) found.set(key, m[5] === 'True');
    else if (key === 'shape' && m[6] !== undefined) found.set(key, shapeOf(file, m[6], at + start));
    else throw file.fail('ErrFormat', `unknown key or value ${quoted(m[0].trim())}`, at + start);
    end = m[8].endsWith('}');
  }
  if (found.size !== 3 || text.slice(ENTRY.lastIndex).trim() !== '') throw file.fail('ErrFormat', 'a header has the keys descr, fortran_order and shape and nothing after them', at);
  const {dtype, big} = found.get('descr'), shape = found.get('shape'), count = countOf(shape);
  if (count === undefined || !Number.isSafeInteger(count * SIZES[dtype])) throw file.fail('ErrFormat', `impossible shape (${shape})`, at);
  return {dtype, big, fortran: found.get('fortran_order'), shape, nbytes: count * SIZES[dtype]};
}

/** Turns the bytes of each number around. @param {Uint8Array<ArrayBuffer>} bytes @param {number} unit */
function turned(bytes, unit) {
  for (let at = 0; at < bytes.length; at += unit) bytes.subarray(at, at + unit).reverse();
  return bytes;
}

/** Elements column by column as they are row by row. @param {Uint8Array<ArrayBuffer>} bytes @param {readonly number[]} shape @param {number} size of an element */
function inRows(bytes, shape, size) {
  if (shape.length < 2 || bytes.length === 0) return bytes;
  const unit = Math.min(size, 4), Words = unit === 1 ? Uint8Array : unit === 2 ? Uint16Array : Uint32Array, each = size / unit;
  const from = new Words(bytes.buffer, bytes.byteOffset, bytes.length / unit), to = new Words(from.length);
  const steps = shape.map((_, i) => shape.slice(0, i).reduce((n, d) => n * d, 1)), index = shape.map(() => 0), last = shape.length - 1;
  let place = 0; // of the element in from
  for (let at = 0; at < to.length; at += each) {
    for (let k = 0; k < each; k++) to[at + k] = from[place * each + k];
    let i = last;
    for (; i >= 0 && ++index[i] === shape[i]; i--) {
      place -= (shape[i] - 1) * steps[i];
      index[i] = 0;
    }
    if (i >= 0) place += steps[i];
  }
  return new Uint8Array(to.buffer);
}

/** Reads an array that is a file, or a member of an archive. @param {File} file @param {string} name @param {boolean} [whole] whether nothing may follow @returns {Promise<Entry>} */
export async function readNpy(file, name, whole = false) {
  const start = await file.slice(0, Math.min(file.size, 12)), magic = String.fromCharCode(...start.subarray(0, 6));
  if (magic !== MAGIC.slice(0, magic.length)) throw file.fail('ErrFormat', 'it does not start with \\x93NUMPY', 0);
  if (start.length < 12) throw file.fail('ErrTruncated', 'a header that is cut off', file.size);
  const [major, minor] = start.subarray(6), view = new DataView(start.buffer, start.byteOffset), at = major === 1 ? 10 : 12;
  if (major < 1 || major > 3 || minor !== 0) throw file.fail('ErrFormat', `version ${major}.${minor}`, 6);
  const length = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > MAX_HEADER) throw file.fail('ErrTooLarge', `a header of ${length} bytes`, 8);
  if (at + length > file.size) throw file.fail('ErrTruncated', `a header of ${length} bytes`, file.size);
  const text = String.fromCharCode(...await file.slice(at, at + length)), {dtype, big, fortran, shape, nbytes} = parse(file, text, at), from = at + length;
  if (nbytes > file.size - from) throw file.fail('ErrTruncated', `(${shape}) of ${dtype} needs ${nbytes} bytes, there are ${file.size - from}`, file.size);
  if (whole && nbytes < file.size - from) throw file.fail('ErrFormat', `${file.size - from - nbytes} bytes after the array`, from + nbytes);
  const size = SIZES[dtype], unit = dtype.startsWith('complex') ? size / 2 : size;
  return {
    name, dtype, shape, nbytes,
    async data() {
      const bytes = await file.slice(from, from + nbytes);
      if (big) turned(bytes, unit);
      return fortran ? inRows(bytes, shape, size) : bytes;
    },
  };
}

/** The bytes of a file before the elements. @param {Omit<Saved, 'data'>} array @param {(code: string, why: string) => Error} fail @returns {Uint8Array<ArrayBuffer>} */
export function headerOf({dtype, shape}, fail) {
  const code = TYPES.find(([, , name]) => name === dtype)?.[0];
  if (code === undefined) throw fail('ErrType', `NumPy has no ${dtype}`);
  const tuple = `(${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;
  const text = `{'descr': '${SIZES[dtype] === 1 ? '|' : '<'}${code}', 'fortran_order': False, 'shape': ${tuple}, }`;
  const length = Math.ceil((10 + text.length + 1) / ALIGN) * ALIGN - 10, line = `${text.padEnd(length - 1)}\n`;
  return Uint8Array.from(`${MAGIC}\x01\x00${String.fromCharCode(length & 255, length >>> 8)}${line}`, (c) => c.charCodeAt(0));
}

/** @param {Saved} array @param {(code: string, why: string) => Error} fail */
export const writeNpy = (array, fail) => new Blob([headerOf(array, fail), array.data]);
