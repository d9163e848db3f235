// SPDX-License-Identifier: Apache-2.0

import type { DType, Values } from "./elements.js";
import type { Gpu } from "./gpu.js";
import { Expr, type Matrix, type WaitOptions } from "./matrix.js";

/** How a sparse matrix is stored: column after column, row after row, or whole columns, zeros included. */
export type SparseFormat = "csc" | "csr" | "blockColumn";

/** The parts of a sparse matrix, as SciPy calls them `data`, `indices` and `indptr`. */
export interface SparseParts {
  readonly format: SparseFormat;
  /** The stored values, of block columns all elements of each: float32, int32 or uint32. */
  readonly values: Values;
  /**
   * For each value its row ("csc") or column ("csr"), increasing within a column (row); of block columns the number of each.
   * 2147483647 at most.
   */
  readonly indices: Int32Array | Uint32Array | readonly number[];
  /**
   * Where each column (row) begins among the values, and at the end their number: one more than there are columns (rows).
   * Block columns have none.
   */
  readonly offsets?: Int32Array | Uint32Array | readonly number[];
  /** float32, or what a typed array's own class says. */
  readonly dtype?: DType;
}

/** Parts that stay yours. */
export interface SparseMemory extends SparseParts {
  readonly values: Float32Array | Int32Array | Uint32Array;
  readonly indices: Int32Array | Uint32Array;
  readonly offsets?: Int32Array | Uint32Array;
  /** Called once, when the matrix is closed, its slices and the matrices of its values are, and nothing uses the memory. */
  readonly release?: () => void;
}

/**
 * A matrix of which only some elements are stored; see {@link Gpu.sparse}. Close it when done. It is an {@link Expr}: it can stand in every
 * expression, see {@link Expr.sparse}.
 *
 * Slices and the matrix of the values share its memory, and keep it until they are closed.
 */
export class Sparse extends Expr {
  private constructor();
  readonly format: SparseFormat;
  /** The number of stored values, of block columns all elements of them. */
  readonly nnz: number;
  /** Whether the memory is yours. */
  readonly external: boolean;
  readonly closed: boolean;

  /** The same matrix with all its elements: {@link Expr.eval}. */
  toDense(): Matrix;
  /**
   * The product of a matrix and this one as "blockColumn": only those columns are computed and stored in which this matrix has entries. It is
   * what gradients of sparse inputs take.
   */
  mulBlockColumn(x: Expr, options?: WaitOptions): Promise<Sparse>;
  /** Some columns as a view, for "csc" only: `ErrUnsupported` for others. Close it when done. */
  columnSlice(start: number, count: number): Sparse;
  /**
   * Adds an entry behind all others: column by column and within a column row by row, in "csr" row by row. Another order, or
   * an entry that is there already, is `ErrOrder`. Memory of yours is `ErrExternalResize`, slices and matrices with slices or a
   * matrix of their values are `ErrView`, block columns `ErrUnsupported`.
   */
  append(i: number, j: number, value: number): this;
  /**
   * The stored values as a matrix of the same memory: one row, or of block columns a matrix with those columns. What is
   * assigned to it changes this matrix. It cannot be resized. Close it when done.
   */
  values(): Matrix;
  /** Copies of the parts, of a slice those of its columns. */
  parts(options?: WaitOptions): Promise<{ values: Float32Array | Int32Array | Uint32Array; indices: Int32Array; offsets: Int32Array }>;
  /** Of wrapped memory: brings back values that computations wrote. */
  sync(options?: WaitOptions): Promise<void>;
  /**
   * Of wrapped memory: says that you wrote to it, values or structure. It is checked again: `ErrSparse` or `ErrIndex` means
   * that the structure is broken. The device keeps what it had then, and what reads the structure anew is that error too, until
   * it is repaired and touched.
   */
  touch(): this;
}
