// SPDX-License-Identifier: Apache-2.0

import {failure, isArray, listed, show} from './errors.mjs';
import {read} from './source.mjs';

// Parts of matrices and tensors, as users say them.

/** The place of an element, which may be counted from the end. @param {string} where @param {unknown} i @param {number} length */
function indexOf(where, i, length) {
  if (!Number.isInteger(i)) throw failure('ErrInvalid', where, `${show(i)} is no index`);
  return /** @type {number} */ (i) < 0 ? /** @type {number} */ (i) + length : /** @type {number} */ (i);
}

/**
 * The beginning and the end of a range: of [from, to], of one index, of everything.
 * @param {string} where @param {unknown} range @param {number} length @returns {[number, number]}
 */
export function boundsOf(where, range, length) {
  if (range === undefined || range === null) return [0, length];
  if (typeof range === 'number') return indexBounds(where, range, length);
  const list = listed(where, range);
  if (!list) throw failure('ErrInvalid', where, `${show(range)}; a range is [from, to] or a number`);
  if (list.length > 2) throw failure('ErrInvalid', where, `a range of ${list.length} numbers; it is [from, to]`);
  const from = indexOf(where, list[0] ?? 0, length), to = indexOf(where, list[1] ?? length, length);
  if (from < 0 || to < from || to > length) throw failure('ErrIndex', where, `${list[0] ?? 0}:${list[1] ?? length} of ${length}`);
  return [from, to];
}

/** The range of one element. @param {string} where @param {unknown} i @param {number} length @returns {[number, number]} */
export function indexBounds(where, i, length) {
  const at = indexOf(where, i, length);
  if (at < 0 || at >= length) throw failure('ErrIndex', where, `${i} of ${length}`);
  return [at, at + 1];
}

/**
 * The rows i to k-1 and the columns j to l-1 of a part of a matrix: slice(rows, cols) or slice({rows, cols}).
 * @param {string} where @param {readonly unknown[]} args @param {number} rows @param {number} cols @returns {[i: number, k: number, j: number, l: number]}
 */
export function partOf(where, args, rows, cols) {
  if (args.length > 2) throw failure('ErrInvalid', where, `${args.length} arguments; it takes rows and columns, each [from, to], an index or null: ${where}([0, 2], [1, 3])`);
  const [first] = args, byName = typeof first === 'object' && first !== null && !isArray(first);
  if (byName && args[1] !== undefined) throw failure('ErrInvalid', where, `${show(args[1])} after {rows, cols}`);
  const o = byName ? read(where, first, ['rows', 'cols']) : {rows: first, cols: args[1]};
  return [...boundsOf(where, o.rows, rows), ...boundsOf(where, o.cols, cols)];
}
