// SPDX-License-Identifier: Apache-2.0

import type { DType, Elements, TypedArray } from "./elements.js";
import type { Gpu } from "./gpu.js";
import { Expr } from "./expr.js";
import type { Matrix } from "./matrix.js";
import type { WaitOptions } from "./options.js";

/** How a sparse matrix is stored: column after column, row after row, or whole columns, zeros included. */
export type SparseFormat = "csc" | "csr" | "blockColumn";

/** The element types of sparse matrices. */
export type SparseDType = "float32" | "int32" | "uint32";

/** The parts of a sparse matrix, as SciPy calls them `data`, `indices` and `indptr`. */
export interface SparseParts<T extends SparseDType = any> {
  /** How the parts are to be read. */
  readonly format: SparseFormat;
  /** The stored values, of block columns all elements of each: float32, int32 or uint32. */
  readonly values: readonly number[] | TypedArray;
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
  readonly dtype?: T;
}

/** The entries of a sparse matrix in any order, as SciPy's coo has them as `data`, `row` and `col`. Those of one place are added up. */
export interface SparseEntries<T extends SparseDType = any> {
  /** The row of each value. */
  readonly rows: Int32Array | Uint32Array | readonly number[];
  /** The column of each value. */
  readonly cols: Int32Array | Uint32Array | readonly number[];
  /** float32, int32 or uint32. */
  readonly values: readonly number[] | TypedArray;
  /** How many rows and columns the matrix has. */
  readonly shape: readonly [rows: number, cols: number];
  /** float32, or what a typed array's own class says. */
  readonly dtype?: T;
}

/** The classes of the values that are used as they are. */
export type SparseClass<T extends SparseDType> = T extends "int32" ? "Int32Array" : T extends "uint32" ? "Uint32Array" : "Float32Array";

/** Parts that stay yours. */
export interface SparseMemory<T extends SparseDType = any> extends SparseParts<T> {
  /** Used as they are: computations read and write them. */
  readonly values: TypedArray<SparseClass<T>>;
  /** Checked and copied. */
  readonly indices: Int32Array | Uint32Array;
  /** Checked and copied. */
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
export class Sparse<T extends DType = "float32"> extends Expr<T> {
  private constructor();
  /**
   * How it is stored.
   *
   * @example
   * gpu.sparse(2, 2, { format: "csr", values: [3], indices: [1], offsets: [0, 1, 1] }).format; // "csr"
   */
  readonly format: SparseFormat;
  /**
   * The number of stored values, of block columns all elements of them.
   *
   * @example
   * gpu.sparse(2, 2, { format: "csr", values: [3], indices: [1], offsets: [0, 1, 1] }).nnz; // 1
   */
  readonly nnz: number;
  /**
   * Whether the memory is yours: see {@link Gpu.wrapSparse}.
   *
   * @example
   * gpu.sparse(2, 2, { format: "csr", values: [3], indices: [1], offsets: [0, 1, 1] }).external; // false
   */
  readonly external: boolean;
  /**
   * Whether the matrix was closed, or the Gpu was.
   *
   * @example
   * gpu.sparse(2, 2, { format: "csr", values: [3], indices: [1], offsets: [0, 1, 1] }).closed; // false
   */
  readonly closed: boolean;

  /**
   * The same matrix with all its elements: {@link Expr.eval}.
   *
   * Shapes: `m x n` -> `m x n`.
   * @example
   * const s = gpu.sparse(2, 2, { format: "csr", values: [3], indices: [1], offsets: [0, 1, 1] });
   * await s.toDense().read(); // [0, 3, 0, 0]
   */
  toDense(): Matrix<T>;
  /**
   * The product of a matrix and this one as "blockColumn": only those columns are computed and stored in which this matrix has entries. It is
   * what gradients of sparse inputs take.
   *
   * Shapes: `k x n` and `m x k` -> `m x n`.
   * @example
   * const s = gpu.sparse(2, 3, { format: "csr", values: [3], indices: [1], offsets: [0, 1, 1] });
   * const p = await s.mulBlockColumn(gpu.matrix(1, 2, [1, 2]));
   * await p.toDense().read(); // [0, 3, 0]
   */
  mulBlockColumn(x: Expr<T>, options?: WaitOptions): Promise<Sparse<T>>;
  /**
   * Some columns as a view, for "csc" only: `ErrUnsupported` for others. Close it when done.
   *
   * Shapes: `m x n` -> `m x count`.
   * @example
   * const s = gpu.sparse(2, 2, { format: "csc", values: [3, 4], indices: [1, 0], offsets: [0, 1, 2] });
   * await s.columnSlice(1, 1).toDense().read(); // [4, 0]
   */
  columnSlice(start: number, count: number): Sparse<T>;
  /**
   * Adds an entry behind all others: column by column and within a column row by row, in "csr" row by row. Another order, or
   * an entry that is there already, is `ErrOrder`. Memory of yours is `ErrExternalResize`, slices and matrices with slices or a
   * matrix of their values are `ErrView`, block columns `ErrUnsupported`.
   *
   * @example
   * const s = gpu.sparse(2, 2, { format: "csr", values: [3], indices: [1], offsets: [0, 1, 1] });
   * await s.append(1, 0, 4).toDense().read(); // [0, 3, 4, 0]
   */
  append(i: number, j: number, value: number): this;
  /**
   * The stored values as a matrix of the same memory: one row, or of block columns a matrix with those columns. What is
   * assigned to it changes this matrix. It cannot be resized. Close it when done.
   *
   * Shapes: `m x n` -> `1 x nnz`.
   * @example
   * const s = gpu.sparse(2, 2, { format: "csr", values: [3, 4], indices: [1, 0], offsets: [0, 1, 2] });
   * await s.values().mul(10).read(); // [30, 40]
   */
  values(): Matrix<T>;
  /**
   * Copies of the parts, of a slice those of its columns.
   *
   * @example
   * const s = gpu.sparse(2, 2, { format: "csr", values: [3, 4], indices: [1, 0], offsets: [0, 1, 2] });
   * (await s.parts()).indices; // [1, 0]
   */
  parts(options?: WaitOptions): Promise<{ values: Elements<T>; indices: Int32Array; offsets: Int32Array }>;
  /**
   * Of wrapped memory: brings back values that computations wrote.
   *
   * @example
   * const values = new Float32Array([3]), indices = new Int32Array([1]), offsets = new Int32Array([0, 1, 1]);
   * const s = gpu.wrapSparse(2, 2, { format: "csr", values, indices, offsets });
   * s.values().assign(5);
   * await s.sync();
   * values; // [5]
   */
  sync(options?: WaitOptions): Promise<void>;
  /**
   * Of wrapped memory: says that you wrote to it, values or structure. It is checked again: `ErrSparse` or `ErrIndex` means
   * that the structure is broken. The device keeps what it had then, and what reads the structure anew is that error too, until
   * it is repaired and touched.
   *
   * @example
   * const values = new Float32Array([3]), indices = new Int32Array([1]), offsets = new Int32Array([0, 1, 1]);
   * const s = gpu.wrapSparse(2, 2, { format: "csr", values, indices, offsets });
   * values[0] = 7;
   * await s.touch().read(); // [0, 7, 0, 0]
   */
  touch(): this;
  /**
   * Releases the memory, unless slices or the matrix of the values have it; any further use is an error.
   *
   * @example
   * const s = gpu.sparse(2, 2, { format: "csr", values: [3], indices: [1], offsets: [0, 1, 1] });
   * s.close();
   * s.closed; // true
   */
  close(): void;
}
