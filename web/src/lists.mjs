// SPDX-License-Identifier: Apache-2.0

import {COMPLEX64, typedArrayClass} from './dtype.mjs';
import {failure, guard, isArray, show} from './errors.mjs';

// Arrays in arrays, which stand for matrices and tensors.

/** As many dimensions as tensors have. It ends arrays that are part of themselves. */
const MOST = 16;

/**
 * Arrays in arrays as one.
 * @typedef {object} Nested
 * @property {number[]} shape how long they are, from the outermost to the innermost
 * @property {any} values those of the innermost, one after the other: a typed array, if those are
 */

/** Whether something has elements that are to be counted: an array, or a row that is a typed array. @param {unknown} x @returns {x is any[]} */
const isList = (x) => isArray(x) || typedArrayClass(x) !== undefined;

/** What arrays are called by their places: rows, where they are in one array. @param {number[]} places */
const called = (places) => places.length === 1 ? `row ${places[0]}` : places.map((i) => `[${i}]`).join('');

/** Whether something is an array with an array as its first element. @param {string} where @param {unknown} values */
export const isNested = (where, values) => isArray(values) && guard(where, () => isList(values[0]));

/**
 * Takes arrays in arrays apart. Those of one level are equally long.
 * @param {string} where @param {any[]} list @returns {Nested}
 */
export function flattened(where, list) {
  return guard(where, () => {
    /** @type {number[]} */
    const shape = [];
    for (let level = list; isList(level); level = level[0]) {
      if (shape.length === MOST) throw failure('ErrLimit', where, `arrays in arrays, more than ${MOST} deep`);
      shape.push(level.length);
    }
    const lists = innermost(where, list, shape, []), [own, ...others] = new Set(lists.map(typedArrayClass));
    if (others.length > 0) throw failure('ErrInvalid', where, `rows of ${[own, ...others].map((name) => name ?? 'Array').join(' and ')}`);
    return {shape, values: joined(where, own, lists)};
  });
}

/** Several arrays as one. @param {string} where @param {string | undefined} own the class, of typed arrays @param {any[]} lists */
function joined(where, own, lists) {
  const all = own ? new (Reflect.get(globalThis, own))(lists.reduce((n, {length}) => n + length, 0)) : [];
  let at = 0;
  for (const list of lists) {
    const {length} = list;
    for (let i = 0; i < length; i++) all[at++] = own ? list[i] : numberOf(where, list[i], i);
  }
  return all;
}

/** An element that is a number. @param {string} where @param {unknown} v @param {number} i its place @returns {number} */
export function numberOf(where, v, i) {
  if (typeof v === 'number' || typeof v === 'boolean') return Number(v);
  throw failure('ErrInvalid', where, `${show(v)} in place ${i} is no number`);
}

/** The innermost arrays. @param {string} where @param {any[]} list @param {number[]} shape @param {number[]} places @returns {any[]} */
function innermost(where, list, shape, places) {
  const {length} = list, depth = places.length;
  if (length !== shape[depth]) throw failure('ErrShape', where, `${called(places)} has ${length} elements, ${called(places.map(() => 0))} has ${shape[depth]}`);
  if (depth === shape.length - 1) return [list];
  return Array.from({length}, (_, i) => {
    if (isList(list[i])) return innermost(where, list[i], shape, [...places, i]);
    throw failure('ErrInvalid', where, `${called([...places, i])} is ${show(list[i])} and no array, ${called([...places, 0])} is one`);
  }).flat();
}

/**
 * Values as they are, or arrays in arrays taken apart.
 * @param {string} where @param {any} values @returns {{values: any, shape: readonly number[] | null}}
 */
export function given(where, values) {
  return isNested(where, values) ? flattened(where, values) : {values, shape: null};
}

/** Refuses arrays in arrays of another shape than a matrix has. @param {string} where @param {readonly number[]} shape @param {number} rows @param {number} cols @param {import('./dtype.mjs').DType} type */
export function checkRows(where, shape, rows, cols, type) {
  const [r, c] = shape, width = type === COMPLEX64 ? 2 * cols : cols;
  if (shape.length !== 2 || r !== rows || (c !== width && r > 0)) throw failure('ErrShape', where, `rows of ${shape.slice(1).join('x')}, ${r} of them, where the matrix is ${rows}x${cols}`);
}
