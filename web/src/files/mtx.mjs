// SPDX-License-Identifier: Apache-2.0

// Files of the Matrix Market, as package buffer/file/sparse reads and writes them.

import {compressed} from '../sparse.mjs';
import {quoted} from './bytes.mjs';

/** @typedef {import('./bytes.mjs').File} File */

export const BANNER = '%%MatrixMarket';

/** The most rows, columns and entries. */
const MAX = 0x7fffffff;

/** What the rows of a sparse matrix may take in memory, whatever the file holds, and for each of its bytes. */
export const ROWS_LEAST = 64 << 20, ROWS_MOST = 64;

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/, NAMED = /^([+-]?)(?:(inf|infinity)|nan)$/;

/** What the first line of a file says; mirrored is what the other triangle is multiplied by, 0 of a general matrix. @typedef {{array: boolean, integer: boolean, dtype: string, pattern: boolean, mirrored: number}} Kind */

/** A matrix, of the element type that the file says: all elements row by row, or the entries of compressed rows. @typedef {{dtype: string, rows: number, cols: number, dense?: Float64Array, values?: Float64Array, indices?: Int32Array, offsets?: Int32Array}} MTX */

/** Cuts a text into words. */
class Scanner {
  #file;
  #text;
  #at = 0;
  /** @type {string[]} */
  #words = [];
  line = 0;
  /** Of the line. */
  offset = 0;

  /** @param {File} file @param {string} text */
  constructor(file, text) {
    this.#file = file;
    this.#text = text;
  }

  /** @param {string} code @param {string} why */
  fail(code, why) { return this.#file.fail(code, `line ${Math.max(this.line, 1)}: ${why}`, this.offset); }

  /** @param {number} bytes */
  take(bytes) { this.#file.take(bytes); }

  /** The next line, undefined at the end. */
  next() {
    if (this.#at >= this.#text.length) return undefined;
    const found = this.#text.indexOf('\n', this.#at), end = found < 0 ? this.#text.length : found, line = this.#text.slice(this.#at, end);
    this.offset = this.#at;
    this.#at = end + 1;
    this.line++;
    return line;
  }

  /** Whether there are words left, apart from comments. */
  more() {
    while (this.#words.length === 0) {
      const line = this.next();
      if (line === undefined) return false;
      if (!line.startsWith('%')) this.#words = (line.match(/\S+/g) ?? []).reverse();
    }
    return true;
  }

  word() {
    if (!this.more()) throw this.fail('ErrTruncated', 'numbers are missing');
    return /** @type {string} */ (this.#words.pop());
  }

  /** @param {string} what @param {number} least @param {number} most */
  count(what, least, most) {
    const word = this.word(), n = Number(word);
    if (!/^[+-]?\d+$/.test(word)) throw this.fail('ErrFormat', `${quoted(word)} for ${what}`);
    if (n < least || n > most) throw this.fail(n > most && most === MAX ? 'ErrTooLarge' : 'ErrFormat', `${word.slice(0, 40)} for ${what}, the most are ${most}`);
    return n;
  }

  /** @param {Kind} kind */
  number({integer}) {
    const word = this.word(), text = word.toLowerCase(), named = NAMED.exec(text);
    if (named && !integer) return named[2] ? (named[1] === '-' ? -Infinity : Infinity) : NaN;
    const plain = text.replace('d', 'e'), v = Number(plain); // Fortran's 1.0D+3
    if (!NUMBER.test(plain) || (integer && !Number.isInteger(v))) throw this.fail('ErrFormat', `${quoted(word)} for a value`);
    if (!Number.isFinite(v)) throw this.fail('ErrFormat', `${quoted(word)} is out of range`);
    return v;
  }

  end() {
    if (this.more()) throw this.fail('ErrFormat', `${quoted(this.word())} after the last number`);
  }
}

/** @param {Scanner} s @returns {Kind} */
function kindOf(s) {
  const words = (s.next() ?? '').toLowerCase().match(/\S+/g) ?? [], [banner, object, format, field, symmetry] = words;
  if (words.length !== 5 || banner !== BANNER.toLowerCase() || object !== 'matrix') throw s.fail('ErrFormat', `no line such as ${BANNER} matrix coordinate real general`);
  if (field === 'complex' || symmetry === 'hermitian') throw s.fail('ErrType', 'complex numbers');
  if (!['coordinate', 'array'].includes(format)) throw s.fail('ErrFormat', `format ${quoted(format)}`);
  if (!['real', 'double', 'integer', 'unsigned-integer', 'pattern'].includes(field)) throw s.fail('ErrFormat', `field ${quoted(field)}`);
  if (!['general', 'symmetric', 'skew-symmetric'].includes(symmetry)) throw s.fail('ErrFormat', `symmetry ${quoted(symmetry)}`);
  const integer = field.endsWith('integer'), dtype = integer ? field === 'integer' ? 'int32' : 'uint32' : 'float32';
  const kind = {array: format === 'array', integer, dtype, pattern: field === 'pattern', mirrored: symmetry === 'general' ? 0 : symmetry === 'symmetric' ? 1 : -1};
  if (kind.array && kind.pattern) throw s.fail('ErrFormat', 'a pattern of all elements');
  return kind;
}

/** Reads elements column by column, of a symmetric matrix those from the diagonal down. @param {Scanner} s @param {Kind} kind @param {number} rows @param {number} cols @param {number} size of the file @param {number} width of an element in bytes @returns {MTX} */
function readArray(s, kind, rows, cols, size, width) {
  const {mirrored} = kind, first = (/** @type {number} */ j) => mirrored === 0 ? 0 : mirrored > 0 ? j : j + 1;
  const count = mirrored === 0 ? rows * cols : rows * (rows + mirrored) / 2;
  if (rows * cols > MAX) throw s.fail('ErrTooLarge', `${rows}x${cols}`);
  if (count > size / 2 + 1) throw s.fail('ErrTruncated', `${count} numbers in ${size} bytes`);
  s.take(width * rows * cols);
  const dense = new Float64Array(rows * cols);
  for (let j = 0; j < cols && rows > 0; j++) { // as there may be billions of empty columns
    for (let i = first(j); i < rows; i++) {
      const v = s.number(kind);
      dense[i * cols + j] = v;
      if (mirrored !== 0 && i !== j) dense[j * cols + i] = mirrored * v;
    }
  }
  return {dtype: kind.dtype, rows, cols, dense};
}

/** @param {Scanner} s @param {Kind} kind @param {number} rows @param {number} cols @param {number} size of the file @param {number} width of an element in bytes @returns {MTX} */
function readCoordinates(s, kind, rows, cols, size, width) {
  const {pattern, mirrored} = kind, count = s.count('entries', 0, MAX);
  if (count > size / 4 + 1) throw s.fail('ErrTruncated', `${count} entries in ${size} bytes`);
  if (4 * rows > Math.max(ROWS_LEAST, ROWS_MOST * size)) throw s.fail('ErrTooLarge', `${rows} rows in a file of ${size} bytes`);
  s.take((width + 4) * count + 4 * (rows + 1));
  /** @type {number[]} */
  const is = [], /** @type {number[]} */ js = [], /** @type {number[]} */ values = [];
  for (let k = 0; k < count; k++) {
    const i = s.count('a row', 1, rows) - 1, j = s.count('a column', 1, cols) - 1, v = pattern ? 1 : s.number(kind);
    if (mirrored < 0 && i === j && v !== 0) throw s.fail('ErrFormat', 'a diagonal element of a skew-symmetric matrix');
    is.push(i);
    js.push(j);
    values.push(v);
    if (mirrored === 0 || i === j) continue;
    s.take(width + 4);
    is.push(j);
    js.push(i);
    values.push(mirrored * v);
  }
  return {dtype: kind.dtype, rows, cols, ...compressed(rows, is, js, values, new Float64Array(values.length))};
}

/** @param {File} file @param {number} width of an element in bytes, for the memory that the header asks for @returns {Promise<MTX>} */
export async function readMtx(file, width) {
  const s = new Scanner(file, new TextDecoder('latin1').decode(await file.slice(0, file.size))), kind = kindOf(s);
  const rows = s.count('rows', 0, MAX), cols = s.count('columns', 0, MAX);
  if (kind.mirrored !== 0 && rows !== cols) throw s.fail('ErrFormat', 'a symmetric matrix that is not square');
  const matrix = (kind.array ? readArray : readCoordinates)(s, kind, rows, cols, file.size, width);
  s.end();
  return matrix;
}

/** A number with the digits that tell it from its neighbours: of types that float32 holds those in float32. @param {number | bigint} v @param {string} dtype */
function digits(v, dtype) {
  if (typeof v === 'bigint') return String(v);
  if (!Number.isFinite(v)) return Number.isNaN(v) ? 'NaN' : v > 0 ? '+Inf' : '-Inf';
  if (dtype.includes('int') || dtype === 'float64') return Object.is(v, -0) ? '-0' : String(v);
  for (let n = 6; n < 10; n++) {
    const short = Number(v.toPrecision(n));
    if (Math.fround(short) === v) return String(Object.is(v, -0) ? '-0' : short);
  }
  return String(v);
}

/** What the file says that numbers are. @param {string} dtype */
const fieldOf = (dtype) => dtype === 'uint32' || dtype === 'uint64' ? 'unsigned-integer' : dtype.includes('int') || dtype === 'bool' ? 'integer' : 'real';

/** @param {number} rows @param {number} cols @param {ArrayLike<number | bigint>} values row by row @param {string} dtype */
export function writeArray(rows, cols, values, dtype) {
  const lines = [`${BANNER} matrix array ${fieldOf(dtype)} general`, `${rows} ${cols}`];
  for (let j = 0; j < cols && rows > 0; j++) for (let i = 0; i < rows; i++) lines.push(digits(values[i * cols + j], dtype));
  return new Blob([`${lines.join('\n')}\n`]);
}

/** @param {number} rows @param {number} cols @param {Iterable<readonly [i: number, j: number, v: number]>} entries @param {string} dtype */
export function writeCoordinates(rows, cols, entries, dtype) {
  const lines = Array.from(entries, ([i, j, v]) => `${i + 1} ${j + 1} ${digits(v, dtype)}`);
  return new Blob([[`${BANNER} matrix coordinate ${fieldOf(dtype)} general`, `${rows} ${cols} ${lines.length}`, ...lines, ''].join('\n')]);
}
