// SPDX-License-Identifier: Apache-2.0

import {most} from './arguments.mjs';
import {SubletError, failure, isOurs, listed, needs, shapeError, show} from './errors.mjs';
import {inside, operands} from './expr.mjs';
import {sameType} from './node.mjs';
import {read, readAxis} from './source.mjs';

// NumPy's functions that are several operations here, or one of two.

/** @typedef {import('./expr.mjs').Expr} Expr */

/** The axis of an argument or of options. @param {string} where @param {unknown} options @param {unknown} [absent] */
function axisOf(where, options, absent) {
  const {axis = absent} = readAxis(where, options, ['axis']);
  if (axis === undefined || axis === null) return null;
  if (axis === 0 || axis === -2) return 0;
  if (axis === 1 || axis === -1) return 1;
  throw failure('ErrIndex', where, `axis ${show(axis)}; a matrix has 0 and 1`);
}

/** Runs other operations, whose errors name the one that was called. @template T @param {string} where @param {() => T} run @returns {T} */
function as(where, run) {
  try {
    return run();
  } catch (error) {
    if (!isOurs(error)) throw error;
    throw new SubletError(error.code, error.message.replace(/^sublet: \w+:/, `sublet: ${where}:`), error);
  }
}

/**
 * The matrices of a list, of one type, which have the same sizes but along an axis.
 * @param {string} where @param {unknown} x @param {0 | 1 | null} axis null if they have one shape @returns {{list: any[], rows: number, cols: number}}
 */
function alike(where, x, axis) {
  const list = listed(where, x), number = list?.find((one) => typeof one === 'number');
  if (!list || list.length === 0) throw failure('ErrInvalid', where, list ? 'no matrices' : `${show(x)} is no array of matrices`);
  if (number !== undefined) throw failure('ErrInvalid', where, `${number} is no matrix`);
  const [first, ...others] = operands(where, list).list, {rows, cols} = first;
  for (const one of others) {
    sameType(where, first.type, one.type);
    if (axis !== 1 && one.cols !== cols) throw shapeError(where, needs('each', cols, 'column'), first, one);
    if (axis !== 0 && one.rows !== rows) throw shapeError(where, needs('each', rows, 'row'), first, one);
  }
  return {list, rows, cols};
}

/** Refuses here what decompositions refuse when they are read, so that the error names the call. @param {string} where @param {unknown[]} x @param {any} a @param {boolean} [square] */
function decomposable(where, x, {dtype, rows, cols}, square = false) {
  most(where, x, 0);
  if (!dtype.startsWith('float')) throw failure('ErrUnsupported', where, `not defined for ${dtype}, but for float32 and float16; convert with astype`);
  if (square && rows !== cols) throw failure('ErrNotSquare', where, `${rows}x${cols}: the matrix is not square: as many rows as columns are needed`);
}

/** Those that are methods of expressions. @template {new (...args: any[]) => any} C @param {C} Base */
export const numpyMethods = (Base) => class extends Base {
  /** @param {...unknown} x */
  dot(...x) {
    most('dot', x, 1);
    return as('dot', () => typeof x[0] === 'number' ? this.mul(x[0]) : this.matmul(x[0]));
  }

  /** @param {...any} x the indices, the axis */
  take(...x) {
    most('take', x, 2);
    const [indices] = x, axis = axisOf('take', x[1]);
    if (!inside(indices, 'take')) throw failure('ErrInvalid', 'take', `${show(indices)}; indices are a matrix, such as gpu.matrix([[0, 2]], {dtype: "int32"})`);
    return as('take', () => {
      if (axis === 0) return this.takeRows(indices);
      return axis === 1 ? this.takeCols(indices) : this.reshape(1, this.size).takeCols(indices.reshape(1, indices.size)).reshape(indices.rows, indices.cols);
    });
  }

  /** @param {...unknown} x options */
  norm(...x) {
    most('norm', x, 1);
    if (typeof x[0] === 'number') throw failure('ErrInvalid', 'norm', `order ${x[0]}; norm() is the root of the sum of squares, along an axis norm({axis: 0}); others are norm1, normInf, normP and singularValues`);
    return as('norm', () => this.norm2(read('norm', x[0], ['axis', 'keepDims'])));
  }

  /** @param {...unknown} x */
  svd(...x) {
    decomposable('svd', x, this);
    return as('svd', () => [this.leftVectors(), this.singularValues(), this.rightVectors().T]);
  }

  /** @param {...unknown} x */
  qr(...x) {
    decomposable('qr', x, this);
    return as('qr', () => [this.qFactor(), this.rFactor()]);
  }

  /** @param {...unknown} x */
  eigh(...x) {
    decomposable('eigh', x, this, true);
    return as('eigh', () => [this.eigenvalues(), this.eigenvectors()]);
  }

  /** @param {...unknown} x */
  slogdet(...x) {
    decomposable('slogdet', x, this, true);
    return as('slogdet', () => [this.detSign(), this.logDet()]);
  }

  /** @param {...unknown} x */
  eigvalsh(...x) {
    decomposable('eigvalsh', x, this, true);
    return as('eigvalsh', () => this.eigenvalues());
  }

  /** @param {...unknown} x */
  svdvals(...x) {
    decomposable('svdvals', x, this);
    return as('svdvals', () => this.singularValues());
  }

  /** @param {...unknown} x */
  searchsorted(...x) {
    const places = as('searchsorted', () => this.searchSorted(...x));
    if (this.rows !== 1) throw shapeError('searchsorted', needs('the first', 1, 'row'), /** @type {any} */ (this), places);
    return places;
  }
};

/**
 * Those that are methods of Gpu.
 * @template {new (...args: any[]) => any} C @param {C} Base @param {(gpu: unknown, where: string, x: unknown[]) => any} matrix calls the method of a matrix
 */
export const numpyFunctions = (Base, matrix) => class extends Base {
  /** @param {...unknown} x */
  dot(...x) { return matrix(this, 'dot', typeof x[0] === 'number' ? x.toReversed() : x); }
  /** @param {...unknown} x */
  take(...x) { return matrix(this, 'take', x); }
  /** @param {...unknown} x */
  norm(...x) { return matrix(this, 'norm', x); }
  /** @param {...unknown} x */
  svd(...x) { return matrix(this, 'svd', x); }
  /** @param {...unknown} x */
  qr(...x) { return matrix(this, 'qr', x); }
  /** @param {...unknown} x */
  eigh(...x) { return matrix(this, 'eigh', x); }
  /** @param {...unknown} x */
  slogdet(...x) { return matrix(this, 'slogdet', x); }

  /** @param {...unknown} x the matrices, the axis */
  concatenate(...x) {
    most('concatenate', x, 2);
    const axis = axisOf('concatenate', x[1], 0);
    if (axis === null) throw failure('ErrInvalid', 'concatenate', 'axis null; it is 0 or 1');
    const {list} = alike('concatenate', x[0], axis);
    return as('concatenate', () => axis === 0 ? this.vstack(list) : this.hstack(list));
  }

  /** @param {...unknown} x the matrices */
  stack(...x) {
    most('stack', x, 1);
    const {list, rows, cols} = alike('stack', x[0], null);
    return as('stack', () => this.vstack(list).tensor(list.length, rows, cols));
  }
};
