// SPDX-License-Identifier: Apache-2.0

import {most} from './arguments.mjs';
import {failure, listed, show} from './errors.mjs';
import {inside} from './expr.mjs';
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

/** Those that are methods of expressions. @template {new (...args: any[]) => any} C @param {C} Base */
export const numpyMethods = (Base) => class extends Base {
  /** @param {...unknown} x */
  dot(...x) {
    most('dot', x, 1);
    return typeof x[0] === 'number' ? this.mul(x[0]) : this.matmul(x[0]);
  }

  /** @param {...any} x the indices, the axis */
  take(...x) {
    most('take', x, 2);
    const [indices] = x, axis = axisOf('take', x[1]);
    if (!inside(indices, 'take')) throw failure('ErrInvalid', 'take', `${show(indices)}; indices are a matrix, such as gpu.matrix([[0, 2]], {dtype: "int32"})`);
    if (axis === 0) return this.takeRows(indices);
    return axis === 1 ? this.takeCols(indices) : this.reshape(1, this.size).takeCols(indices.reshape(1, indices.size)).reshape(indices.rows, indices.cols);
  }

  /** @param {...unknown} x options */
  norm(...x) {
    most('norm', x, 1);
    if (typeof x[0] === 'number') throw failure('ErrInvalid', 'norm', `order ${x[0]}; norm() is the root of the sum of squares, along an axis norm({axis: 0}); others are norm1, normInf, normP and singularValues`);
    return this.norm2(read('norm', x[0], ['axis', 'keepDims']));
  }

  /** @param {...unknown} x */
  svd(...x) {
    most('svd', x, 0);
    return [this.leftVectors(), this.singularValues(), this.rightVectors().T];
  }

  /** @param {...unknown} x */
  qr(...x) {
    most('qr', x, 0);
    return [this.qFactor(), this.rFactor()];
  }

  /** @param {...unknown} x */
  eigh(...x) {
    most('eigh', x, 0);
    return [this.eigenvalues(), this.eigenvectors()];
  }

  /** @param {...unknown} x */
  slogdet(...x) {
    most('slogdet', x, 0);
    return [this.detSign(), this.logDet()];
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
    return axis === 0 ? this.vstack(x[0]) : this.hstack(x[0]);
  }

  /** @param {...unknown} x the matrices */
  stack(...x) {
    most('stack', x, 1);
    const list = listed('stack', x[0]), all = this.vstack(list ?? x[0]), {rows, cols} = /** @type {any[]} */ (list)[0];
    for (const one of /** @type {any[]} */ (list)) {
      if (typeof one === 'number') throw failure('ErrInvalid', 'stack', `${one} is no matrix`);
      if (one.rows !== rows || one.cols !== cols) throw failure('ErrShape', 'stack', `${rows}x${cols} by ${one.rows}x${one.cols}: all need one shape`);
    }
    return all.tensor(/** @type {any[]} */ (list).length, rows, cols);
  }
};
