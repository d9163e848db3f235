// SPDX-License-Identifier: Apache-2.0

import {most} from './arguments.mjs';
import {failure, show} from './errors.mjs';
import {inside, isMatrix, move, newMatrix, own, valueFor} from './expr.mjs';
import * as nodes from './node.mjs';
import {Command} from './protocol.mjs';
import {FROM, WRAP, originOf, read} from './source.mjs';

// The memory contract: see package matrix.

/** @typedef {import('./matrix.mjs').Matrix} Matrix */
/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./memory.mjs').Memory} Memory */
/** @typedef {import('./session.mjs').Session} Session */

/** What a matrix is, if it can be used. @param {Matrix} matrix @param {string} where */
export function usable(matrix, where) {
  const {session, node} = own(matrix, where), memory = /** @type {Memory} */ (node.memory);
  memory.use(where);
  return {session, leaf: node, memory};
}

/** An empty matrix of the sort of another. @param {Session} session @param {Node} like @returns {Node} */
function nothing(session, {memory}) {
  const empty = /** @type {Memory} */ (memory).fresh(0, 0), leaf = empty.leaf();
  session.newMatrix(leaf, empty);
  return leaf;
}

/** Another matrix of the same device. @param {string} where @param {Session} session @param {unknown} x @returns {{other: Matrix, leaf: Node}} */
function otherMatrix(where, session, x) {
  const part = inside(x, where);
  if (!part || !isMatrix(x)) throw failure('ErrInvalid', where, `${show(x)} is no matrix in memory`);
  if (part.session !== session) throw failure('ErrForeign', where, 'a matrix of another device');
  /** @type {Memory} */ (part.node.memory).use(where);
  return {other: x, leaf: part.node};
}

/** Copies a matrix or computes an expression, its size included. @param {Matrix} matrix @param {string} where @param {unknown} x */
export function setValue(matrix, where, x) {
  const {session, leaf, memory} = usable(matrix, where);
  if (typeof x === 'number') throw failure('ErrInvalid', where, 'a number; to fill, use assign');
  const node = valueFor(where, matrix, x);
  if (node === leaf) return;
  if (node.rows === leaf.rows && node.cols === leaf.cols) return session.assign(leaf, node);
  const next = memory.copied(where, node.rows, node.cols).leaf();
  session.setValue(next, leaf, node);
  move(matrix, next);
}

/** @param {Matrix} matrix @param {string} where @param {unknown} data @param {number} rows @param {number} cols @param {Record<string, any>} options */
function setFrom(matrix, where, data, rows, cols, options) {
  const {session, leaf, memory} = usable(matrix, where);
  const origin = originOf(session, where, data, rows, cols, options, memory.type, true);
  let next = origin.memory;
  if (origin.copied) {
    next = memory.copied(where, rows, cols);
    next.external = false;
  }
  const to = next.leaf();
  session.setFrom(to, leaf, origin);
  move(matrix, to);
}

/** What can be done to the memory of a matrix, beside mathematics: m.memory. */
export class MatrixMemory {
  #matrix;

  /** @param {Matrix} matrix */
  constructor(matrix) {
    this.#matrix = matrix;
  }

  /** The matrix, of a call on an object of this class. @param {unknown} x @param {string} where @returns {Matrix} */
  static #of(x, where) {
    if (typeof x === 'object' && x !== null && #matrix in x) return x.#matrix;
    throw failure('ErrInvalid', where, `called on ${show(x)}`);
  }

  /** @param {unknown} x */
  setValue(x) {
    const where = 'setValue', matrix = MatrixMemory.#of(this, where);
    setValue(matrix, where, x);
    return matrix;
  }

  /** @param {unknown} data @param {number} rows @param {number} cols @param {unknown} [options] */
  setValueFrom(data, rows, cols, options) {
    const where = 'setValueFrom', matrix = MatrixMemory.#of(this, where);
    setFrom(matrix, where, data, rows, cols, read(where, options, FROM));
    return matrix;
  }

  /** @param {unknown} data @param {number} rows @param {number} cols @param {unknown} [options] */
  rebind(data, rows, cols, options) {
    const where = 'rebind', matrix = MatrixMemory.#of(this, where);
    setFrom(matrix, where, data, rows, cols, {...read(where, options, WRAP), dontOwnBuffer: true});
    return matrix;
  }

  /** @param {number} rows @param {number} cols */
  resize(rows, cols) {
    const where = 'resize', matrix = MatrixMemory.#of(this, where), {session, leaf, memory} = usable(matrix, where);
    nodes.checkDims(where, rows, cols);
    if (rows === leaf.rows && cols === leaf.cols) return matrix;
    const next = memory.resized(where, rows, cols).leaf();
    session.size(Command.Resize, next, leaf);
    move(matrix, next);
    return matrix;
  }

  /** @param {number} rows @param {number} cols */
  setShape(rows, cols) {
    const where = 'setShape', matrix = MatrixMemory.#of(this, where), {session, leaf, memory} = usable(matrix, where);
    nodes.checkDims(where, rows, cols);
    nodes.checkCount(where, leaf, rows, cols);
    if (!memory.gapless) throw failure('ErrStride', where, 'the matrix has gaps');
    const next = memory.sized(rows, cols).leaf();
    session.size(Command.SetShape, next, leaf);
    move(matrix, next);
    return matrix;
  }

  /** @param {unknown} x */
  take(x) {
    const where = 'take', matrix = MatrixMemory.#of(this, where), {session, memory} = usable(matrix, where);
    const {other, leaf} = otherMatrix(where, session, x);
    if (other === matrix) return matrix;
    move(other, nothing(session, leaf));
    move(matrix, leaf);
    memory.close();
    return matrix;
  }

  /** @param {...unknown} x */
  move(...x) {
    most('move', x, 0);
    const matrix = MatrixMemory.#of(this, 'move'), {session, leaf} = usable(matrix, 'move');
    move(matrix, nothing(session, leaf));
    return newMatrix(session, leaf);
  }

  /** @param {unknown} x */
  swap(x) {
    const where = 'swap', matrix = MatrixMemory.#of(this, where), {session, leaf} = usable(matrix, where);
    const theirs = otherMatrix(where, session, x);
    move(theirs.other, leaf);
    move(matrix, theirs.leaf);
    return matrix;
  }

  /** @param {...unknown} x */
  reset(...x) {
    most('reset', x, 0);
    const matrix = MatrixMemory.#of(this, 'reset'), {session, leaf, memory} = usable(matrix, 'reset');
    move(matrix, nothing(session, leaf));
    memory.close();
    return matrix;
  }

  /** @param {...unknown} x */
  alias(...x) {
    most('alias', x, 0);
    const {session, memory} = usable(MatrixMemory.#of(this, 'alias'), 'alias');
    const twin = memory.twin(), leaf = twin.leaf();
    session.share(Command.Alias, leaf, twin, 'alias', memory);
    return newMatrix(session, leaf);
  }

  get [Symbol.toStringTag]() { return 'SubletMatrixMemory'; }
}
