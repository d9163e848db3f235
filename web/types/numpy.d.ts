// SPDX-License-Identifier: Apache-2.0

import type { DType, FloatDType, IndexDType, RealOf } from "./elements.js";
import type { Expr } from "./expr.js";
import type { Axis } from "./options.js";
import type { Tensor } from "./tensor.js";

/** NumPy's functions that are several operations here, or one of two, as methods. Where its arrays have one dimension a matrix has one row. */
export interface NumPyMethods<T extends DType> {
  /**
   * The matrix product, as {@link Expr.matmul}; with a number the product with that, as NumPy's.
   *
   * Shapes: `m x k` and `k x n` -> `m x n`; `m x n` and a number -> `m x n`.
   * @example
   * const a = gpu.matrix([[1, 2], [3, 4]]);
   * await a.dot(a).read(); // [7, 10, 15, 22]
   */
  dot(b: Expr<T> | number): Expr<T>;
  /**
   * Rows (axis 0) or columns (axis 1) by their numbers, as `takeRows` and `takeCols`; without an axis elements, counted row by row.
   *
   * Shapes: `m x n` and k indices -> `k x n` or `m x k`; without an axis that of the indices.
   * @example
   * const a = gpu.matrix([[1, 2, 3], [4, 5, 6]]), i = gpu.matrix([[2, 0]], { dtype: "int32" });
   * await a.take(i, 1).read(); // [3, 1, 6, 4]
   * await a.take(i).read(); // [3, 1]
   */
  take(indices: Expr<IndexDType>, axis?: Axis | null | { readonly axis?: Axis | null }): Expr<T>;
  /**
   * The root of the sum of squares, as `norm2`. The axis stands among options, because NumPy's second argument is an order.
   *
   * Shapes: `m x n` -> `1 x 1`; along axis 0 `1 x n`, along axis 1 `m x 1`.
   * @example
   * await gpu.matrix([[3, 4], [6, 8]]).norm({ axis: 1 }).read(); // [5, 10]
   */
  norm(this: Expr<FloatDType | "complex64">, options?: { readonly axis?: Axis | null; readonly keepDims?: true }): Expr<RealOf<T>>;
  /**
   * The singular value decomposition U, S, Vh, as NumPy's with full_matrices=False: `leftVectors`, `singularValues` and the transpose of `rightVectors`.
   *
   * Shapes: `m x n` -> `m x k`, `1 x k` and `k x n` for the smaller k of m and n.
   * @example
   * const [u, s, vh] = gpu.matrix([[3, 0], [0, 2]]).svd();
   * await u.mul(s).matmul(vh).read(); // [3, 0, 0, 2]
   */
  svd(this: Expr<FloatDType>): [u: Expr<T>, s: Expr<T>, vh: Expr<T>];
  /**
   * The decomposition Q, R, as NumPy's with mode="reduced": `qFactor` and `rFactor`.
   *
   * Shapes: `m x n` -> `m x k` and `k x n` for the smaller k of m and n.
   * @example
   * const [q, r] = gpu.matrix([[1, 2], [3, 4]]).qr();
   * await q.matmul(r).round().read(); // [1, 2, 3, 4]
   */
  qr(this: Expr<FloatDType>): [q: Expr<T>, r: Expr<T>];
  /**
   * The eigenvalues, ascending, and the eigenvectors, in columns, of a symmetric matrix, whose lower triangle is read.
   *
   * Shapes: `n x n` -> `1 x n` and `n x n`.
   * @example
   * const [values, vectors] = gpu.matrix([[2, 0], [0, 1]]).eigh();
   * await values.read(); // [1, 2]
   */
  eigh(this: Expr<FloatDType>): [values: Expr<T>, vectors: Expr<T>];
  /**
   * The sign of the determinant and the logarithm of its absolute value.
   *
   * Shapes: `n x n` -> `1 x 1` and `1 x 1`.
   * @example
   * const [sign, log] = gpu.matrix([[0, 1], [1, 0]]).slogdet();
   * await sign.value(); // -1
   */
  slogdet(this: Expr<FloatDType>): [sign: Expr<T>, logDet: Expr<T>];
}

/** NumPy's functions that are several operations here, or one of two, as functions of {@link Gpu}. */
export interface NumPyFunctions {
  /**
   * The matrix product, as `gpu.matmul`; with a number the product with that, as NumPy's.
   *
   * Shapes: `m x k` and `k x n` -> `m x n`; `m x n` and a number -> `m x n`.
   * @example
   * const a = gpu.matrix([[1, 2], [3, 4]]);
   * await gpu.dot(a, a).read(); // [7, 10, 15, 22]
   */
  dot<T extends DType>(a: Expr<T>, b: Expr<NoInfer<T>> | number): Expr<T>;
  /** The product of a number and a matrix. */
  dot<T extends DType>(a: number, b: Expr<T>): Expr<T>;
  /**
   * Rows (axis 0) or columns (axis 1) by their numbers; without an axis elements, counted row by row. See {@link NumPyMethods.take}.
   *
   * Shapes: `m x n` and k indices -> `k x n` or `m x k`; without an axis that of the indices.
   * @example
   * const a = gpu.matrix([[1, 2], [3, 4]]), i = gpu.matrix([[1]], { dtype: "int32" });
   * await gpu.take(a, i, 0).read(); // [3, 4]
   */
  take<T extends DType>(a: Expr<T>, indices: Expr<IndexDType>, axis?: Axis | null | { readonly axis?: Axis | null }): Expr<T>;
  /**
   * The root of the sum of squares, as `norm2`. See {@link NumPyMethods.norm}.
   *
   * Shapes: `m x n` -> `1 x 1`; along axis 0 `1 x n`, along axis 1 `m x 1`.
   * @example
   * await gpu.norm(gpu.matrix([[3, 4]])).value(); // 5
   */
  norm<T extends FloatDType | "complex64">(a: Expr<T>, options?: { readonly axis?: Axis | null; readonly keepDims?: true }): Expr<RealOf<T>>;
  /**
   * The singular value decomposition U, S, Vh. See {@link NumPyMethods.svd}.
   *
   * Shapes: `m x n` -> `m x k`, `1 x k` and `k x n` for the smaller k of m and n.
   * @example
   * const [u, s, vh] = gpu.svd(gpu.matrix([[3, 0], [0, 2]]));
   * await s.read(); // [3, 2]
   */
  svd<T extends FloatDType>(a: Expr<T>): [u: Expr<T>, s: Expr<T>, vh: Expr<T>];
  /**
   * The decomposition Q, R. See {@link NumPyMethods.qr}.
   *
   * Shapes: `m x n` -> `m x k` and `k x n` for the smaller k of m and n.
   * @example
   * const [q, r] = gpu.qr(gpu.matrix([[1, 2], [3, 4]]));
   * await q.matmul(r).round().read(); // [1, 2, 3, 4]
   */
  qr<T extends FloatDType>(a: Expr<T>): [q: Expr<T>, r: Expr<T>];
  /**
   * The eigenvalues and eigenvectors of a symmetric matrix. See {@link NumPyMethods.eigh}.
   *
   * Shapes: `n x n` -> `1 x n` and `n x n`.
   * @example
   * const [values, vectors] = gpu.eigh(gpu.matrix([[2, 0], [0, 1]]));
   * await values.read(); // [1, 2]
   */
  eigh<T extends FloatDType>(a: Expr<T>): [values: Expr<T>, vectors: Expr<T>];
  /**
   * The sign of the determinant and the logarithm of its absolute value.
   *
   * Shapes: `n x n` -> `1 x 1` and `1 x 1`.
   * @example
   * const [sign, log] = gpu.slogdet(gpu.matrix([[0, 1], [1, 0]]));
   * await sign.value(); // -1
   */
  slogdet<T extends FloatDType>(a: Expr<T>): [sign: Expr<T>, logDet: Expr<T>];
  /**
   * Matrices one below the other (axis 0, the default) or one beside the other (axis 1), as `gpu.vstack` and `gpu.hstack`.
   *
   * Shapes: `m x n` and `k x n`, ... -> `m+k+... x n`; along axis 1 `m x n` and `m x k`, ... -> `m x n+k+...`.
   * @example
   * const a = gpu.matrix([[1, 2]]);
   * await gpu.concatenate([a, a], 1).read(); // [1, 2, 1, 2]
   */
  concatenate<T extends DType>(list: readonly Expr<T>[], axis?: Axis | { readonly axis?: Axis }): Expr<T>;
  /**
   * Matrices of one shape as a tensor, whose first dimension counts them.
   *
   * Shapes: k of `m x n` -> `k x m x n`.
   * @example
   * const a = gpu.matrix([[1, 2]]);
   * gpu.stack([a, a, a]).shape; // [3, 1, 2]
   */
  stack<T extends DType>(list: readonly Expr<T>[]): Tensor<T>;
}
