// SPDX-License-Identifier: Apache-2.0

import {bytesOf} from './data.mjs';
import {COMPLEX64, halfBits, halfNumber, numbersIn} from './dtype.mjs';
import {Op} from './protocol.mjs';

// Which elements JavaScript knows without asking the device, so that they can be printed: those that the page gave or read and that
// nothing has written since, and those of wrapped memory whose bytes are current.

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {import('./memory.mjs').Memory} Memory */
/** @typedef {import('./memory.mjs').Store} Store */
/** @typedef {import('./node.mjs').Node} Node */

/** An element: a number, of complex64 the real part and the imaginary one. @typedef {number | [number, number]} Element */

/** How many elements of a dimension are printed. */
const SHOWN = 6;
/** Matrices of at most so many elements are remembered whole. */
const SMALL = 216;

/** The indices of a dimension that are printed: all, or the first and the last ones. @param {number} n @param {number} [most] @returns {number[]} */
export function ends(n, most = SHOWN) {
  const half = Math.floor(most / 2);
  return n <= most ? [...Array(n).keys()] : Array.from({length: 2 * half}, (_, i) => i < half ? i : n - 2 * half + i);
}

/** The memory of the page's that a store's matrices lie in, of wrapped and mapped ones. @type {WeakMap<Store, ArrayBufferLike>} */
const memories = new WeakMap();
/** Of memory of the page's: the stores in it whose results were not brought back. Where there are any, all of it counts as old. @type {WeakMap<ArrayBufferLike, Set<Store>>} */
const written = new WeakMap();

/** Notes that matrices of a store have their elements in memory of the page's. @param {Memory} memory @param {ArrayBufferView} bits from the first element on */
export function lies(memory, bits) {
  memory.bits = bits;
  memories.set(memory.store, bits.buffer);
}

/** Notes that the device writes to the memory, or may. @param {Store} store */
export function wrote(store) {
  store.writes++;
  const buffer = memories.get(store);
  if (buffer) written.set(buffer, (written.get(buffer) ?? new Set()).add(store));
}

/** Notes that the page has the GPU buffer, which it may write to at any time. @param {Store} store */
export function exposed(store) {
  wrote(store);
  store.writes = NaN; // which equals nothing
}

/** Notes that the memory of the page's has the elements again, or that they were given up. @param {Store} store */
export function current(store) {
  const buffer = memories.get(store);
  if (buffer) written.get(buffer)?.delete(store);
}

/** Remembers elements that the memory has until something writes there. @param {Memory} memory @param {ArrayBufferView} bits of all, without gaps @param {boolean} byColumns */
export function remember(memory, bits, byColumns) {
  const {rows, cols, type} = memory, {writes} = memory.store;
  if (bits.byteLength < rows * cols * type.size) return; // an array that was detached meanwhile
  const [lines, length] = byColumns ? [cols, rows] : [rows, cols], bytes = bytesOf(bits), whole = rows * cols <= SMALL;
  const kept = whole ? bytes.slice() : cornerOf(bytes, lines, length, type.size), width = whole ? length : Math.min(length, SHOWN);
  memory.seen = {writes, at: (i, j) => {
    const [line, k] = (byColumns ? [j, i] : [i, j]).map((at, d) => whole ? at : among(at, [lines, length][d]));
    return line < 0 || k < 0 ? undefined : reader(type, kept)(line * width + k);
  }};
}

/** The place of an index among those of a dimension that are printed, -1 if it is none of them. @param {number} i @param {number} n */
const among = (i, n) => n <= SHOWN || i < SHOWN / 2 ? i : i < n - SHOWN / 2 ? -1 : i - n + SHOWN;

/** Copies what is printed of the elements. This is done for every matrix that the page gives, so it calls nothing per element. @param {Uint8Array} bytes @param {number} lines @param {number} length of a line, in elements @param {number} size of an element */
function cornerOf(bytes, lines, length, size) {
  const height = Math.min(lines, SHOWN), width = Math.min(length, SHOWN) * size, corner = new Uint8Array(height * width);
  for (let k = 0; k < height; k++) {
    const start = (k < SHOWN / 2 ? k : lines - height + k) * length * size, end = start + length * size;
    corner.set(bytes.subarray(start, start + width), k * width);
    if (length > SHOWN) corner.set(bytes.subarray(end - width / 2, end), (k + 0.5) * width);
  }
  return corner;
}

/** Remembers that all elements are one number. @param {Memory} memory @param {number} fill */
export function rememberFill(memory, fill) {
  const {type, store: {writes}} = memory, x = type.name === 'float16' ? halfNumber(halfBits(fill)) : type.real || type === COMPLEX64 ? Math.fround(fill) : fill;
  memory.seen = {writes, at: () => type === COMPLEX64 ? [x, 0] : x};
}

/** Reads elements of memory by their place. What is not there is undefined. @param {DType} type @param {ArrayBufferView} bits @returns {(at: number) => Element | undefined} */
function reader(type, bits) {
  const {buffer, byteOffset, byteLength} = bits, view = new DataView(buffer, byteOffset, byteLength);
  const number = (/** @type {number} */ at) => at + type.size / numbersIn(type, 1) <= byteLength ? numberAt(type, view, at) : undefined;
  return (at) => {
    const real = number(at * type.size), imaginary = type === COMPLEX64 ? number(at * type.size + 4) : 0;
    if (real === undefined || imaginary === undefined) return undefined;
    return type === COMPLEX64 ? [real, imaginary] : real;
  };
}

/** @param {DType} type @param {DataView} view @param {number} at */
function numberAt({name}, view, at) {
  switch (name) {
    case 'int32': return view.getInt32(at, true);
    case 'uint32': return view.getUint32(at, true);
    case 'float16': return halfNumber(view.getUint16(at, true));
    case 'int8': return view.getInt8(at);
    case 'uint8': case 'bool': return view.getUint8(at);
    case 'int16': return view.getInt16(at, true);
    case 'uint16': return view.getUint16(at, true);
    default: return view.getFloat32(at, true);
  }
}

/** Elements of a matrix in memory. @param {Memory} memory @returns {((i: number, j: number) => Element | undefined) | null} */
function inMemory(memory) {
  const {store, bits, seen, byColumns, stride, type} = memory;
  if (memory.closed || store.locked) return null;
  const there = bits !== null && (bits.byteLength > 0 || memory.span === 0); // not of a buffer that was detached or has shrunk
  if (there && !written.get(bits.buffer)?.size) {
    const at = reader(type, bits);
    return (i, j) => at(byColumns ? j * stride + i : i * stride + j);
  }
  return seen?.writes === store.writes ? seen.at : null;
}

/** Elements of a matrix or of a part of one, null where they are not known. @param {Node} node @returns {((i: number, j: number) => Element | undefined) | null} */
export function elementsOf(node) {
  if (node.op === Op.Leaf) return node.memory && !node.sparse ? inMemory(node.memory) : null;
  const of = node.steps && node.a ? elementsOf(node.a) : null, inner = node.a;
  if (!of || !inner) return null;
  if (node.op === Op.Transpose) return (i, j) => of(j, i);
  if (node.op === Op.Slice) {
    const [top, , left] = /** @type {number[]} */ (node.numbers);
    return (i, j) => of(top + i, left + j);
  }
  return (i, j) => { // another shape
    const at = i * node.cols + j;
    return of(Math.floor(at / inner.cols), at % inner.cols);
  };
}
