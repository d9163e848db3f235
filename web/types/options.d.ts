// SPDX-License-Identifier: Apache-2.0

// What calls are told: options, axes and ranges.

import type { DType, Order } from "./elements.js";
import type { Expr } from "./expr.js";
import type { Gpu } from "./gpu.js";
import type { Matrix } from "./matrix.js";

/** What calls that wait for the GPU take. */
export interface WaitOptions {
  /**
   * Gives the call up: `ErrAborted`, whose `cause` is the signal's reason. What was queued is done all the same. Calls that use the
   * matrix meanwhile, such as {@link Matrix.set}, are queued and go on then, in their order, as do calls after these. A workgroup
   * that "simd" computes ends first; one whose loops, in functions of yours, do not end is ended after some billion turns: `ErrLimit`.
   */
  readonly signal?: AbortSignal;
}

/** An operand: an expression, a matrix, or a number among the elements of the other operands. */
export type Operand<T extends DType = "float32"> = Expr<T> | number;

/** An axis of a matrix: 0 down the columns, 1 along the rows, as in NumPy. -1 and -2 count from the end. */
export type Axis = 0 | 1 | -1 | -2;

/** What a reduction runs along: `sum(0)` or `sum({axis: 0})`; absent or null, everything. A matrix keeps both dimensions. */
export type ReduceOptions = Axis | null | { readonly axis?: Axis | null; readonly keepDims?: true };

/** What a sort or a running sum runs along: `sort(0)` or `sort({axis: 0})`. 1 along the rows, the default; 0 down the columns. */
export type OrderOptions = Axis | { readonly axis?: Axis };

/** What a softmax runs along: 1 along the rows, the default; 0 down the columns; null over everything. */
export type NormaliseOptions = Axis | null | { readonly axis?: Axis | null };

/** What a variance runs along, and by how much less than their number the squares are divided: 0 by default, 1 for a sample. */
export type SpreadOptions = Axis | null | { readonly axis?: Axis | null; readonly keepDims?: true; readonly ddof?: number };

/** Rows or columns: [from, to] without to, either of which may be left out or count from the end; the one of an index; all, of null or nothing. */
export type Range = readonly [from?: number | null, to?: number | null] | number | null;

/** A part of a matrix by name, for {@link Expr.slice}. */
export interface PartOfMatrix {
  /** All by default. */
  readonly rows?: Range;
  /** All by default. */
  readonly cols?: Range;
}

/** Where a matrix lies in its memory. */
export interface MatrixOptions<T extends DType = DType> {
  /** float32, or what a typed array's own class says. */
  readonly dtype?: T;
  /** "row" by default. */
  readonly order?: Order;
  /** Elements before the first. 0 by default. */
  readonly offset?: number;
  /** Elements between the beginnings of two rows (columns, in column order). Their length by default; `ErrStride` if less. */
  readonly stride?: number;
  /** Demands an offset that is a multiple of 16 bytes and a stride that is one of 4 elements: `ErrAlignment` otherwise. */
  readonly aligned?: boolean;
  /**
   * Demands a stride of at least the next multiple of 4 elements, `ErrCapacity` otherwise, and memory for whole rows
   * (columns). What is between the end of a row and the next is set to zero, in a typed array at the next
   * {@link Matrix.sync}, and stays zero whatever is assigned. Matrices of their own memory get such a stride by themselves.
   */
  readonly padded?: boolean;
}

/** Options of a matrix in memory of yours. */
export interface WrapOptions<T extends DType = DType> extends MatrixOptions<T> {
  /**
   * Called once, when the matrix is closed, its aliases are, and nothing uses the memory any more. "destroy" stands for
   * destroying the GPUBuffer, which unmaps it. What the function throws is an error of the page that nobody has caught.
   */
  readonly release?: (() => void) | "destroy";
}

/** What becomes of memory that a matrix is made from or set to. Without a flag, a typed array is copied to the device. */
export interface FromBufferOptions<T extends DType = DType> extends WrapOptions<T> {
  /** Uses the memory itself, as {@link Gpu.wrap} and {@link Gpu.wrapBuffer} do; {@link Matrix.external} is true then. */
  readonly dontOwnBuffer?: boolean;
  /** Copies a GPUBuffer on its device. */
  readonly setValueOnDevice?: boolean;
  /** Of memory that is copied: it holds the elements row by row, whatever the `order` of the matrix. */
  readonly rowMajorInput?: boolean;
}
