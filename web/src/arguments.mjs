// SPDX-License-Identifier: Apache-2.0

import {failure, isArray, listed} from './errors.mjs';

// The arguments of a call.

/** Refuses arguments that a call does not take. @param {string} where @param {readonly unknown[]} x @param {number} n */
export function most(where, x, n) {
  const more = x.findLastIndex((v) => v !== undefined) + 1;
  if (more > n) throw failure('ErrInvalid', where, `${more} arguments; it takes ${n === 0 ? 'none' : n} at most`);
}

/**
 * Arguments in which an array of rows and columns, as NumPy has shapes, stands for both.
 * @param {string} where @param {any[]} x @param {number} [at] where those are @returns {any[]}
 */
export function pair(where, x, at = 0) {
  const list = isArray(x[at]) && listed(where, x[at]);
  if (!list) return x;
  if (list.length !== 2) throw failure('ErrShape', where, `a shape of ${list.length} dimensions; a matrix has [rows, cols]`);
  return [...x.slice(0, at), ...list, ...x.slice(at + 1)];
}

/** Takes the options off the end of arguments: an object behind the first n, whatever of the others is left out. @param {readonly unknown[]} x @param {number} n @returns {[any[], unknown]} */
export function withOptions(x, n) {
  const last = x.at(-1), has = x.length > n && typeof last === 'object' && last !== null;
  return has ? [x.slice(0, -1), last] : [[...x], undefined];
}

/** The arguments of what makes a matrix, whose sizes are at a place, n at most. @param {string} where @param {any[]} x @param {number} at @param {number} n */
export function sized(where, x, at, n) {
  const list = pair(where, x, at);
  most(where, list, n);
  return list;
}
