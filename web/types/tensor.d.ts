// SPDX-License-Identifier: Apache-2.0

import type { DType, Elements } from "./elements.js";
import type { SaveFileOptions } from "./files.js";
import type { Expr, Fn, WaitOptions } from "./matrix.js";
import type { ElementOperations } from "./operations.js";

/** An operand of a tensor's: a matrix counts as a tensor of two dimensions, a number as an element of the others' type. */
export type TensorOperand = Tensor | Expr | number;

/** What a reduction of a tensor runs along: one dimension or several, all of them if absent. Negative numbers count from the end. */
export interface TensorReduceOptions {
  readonly axis?: number | readonly number[] | null;
  /** Whether the dimensions stay, with a length of 1. They are gone by default. */
  readonly keepDims?: boolean;
}

/** A variance's options: see {@link SpreadOptions}. */
export interface TensorSpreadOptions extends TensorReduceOptions {
  readonly ddof?: number;
}

/** What a softmax runs along: the last dimension by default; null over everything. */
export interface TensorNormaliseOptions {
  readonly axis?: number | null;
}

/** What a sort or a running sum runs along: the last dimension by default. */
export interface TensorOrderOptions {
  readonly axis?: number;
}

/** What a dimension is cut to: [from, to] without to, either of which may be left out or count from the end; one element, of which the dimension is gone; or nothing, for all. */
export type TensorRange = readonly [from?: number | null, to?: number | null] | number | null | undefined;

export interface Tensor extends ElementOperations<Tensor, TensorOperand, TensorReduceOptions, TensorNormaliseOptions, TensorSpreadOptions, TensorOrderOptions> {}

/**
 * An array of up to 16 dimensions and 2^31-1 elements: an expression with a shape, in NumPy's grammar. Nothing runs before it is
 * evaluated. The shapes of operands are aligned at their last dimensions, and dimensions of 1, or that are not there, stretch.
 *
 * Errors are thrown by the call: `ErrShape` for shapes that do not fit, `ErrIndex` for dimensions and places that there are not,
 * `ErrSize` for negative lengths, `ErrLimit` for too many dimensions or elements. Make one with {@link Gpu.tensor} or {@link Expr.tensor}.
 */
export class Tensor {
  private constructor();

  /** The lengths of the dimensions. */
  readonly shape: readonly number[];
  readonly ndim: number;
  /** The number of elements. */
  readonly size: number;
  readonly dtype: DType;
  /** The dimensions in reverse order. */
  readonly T: Tensor;

  /** The same elements, the last dimension fastest, in another shape. One length may be -1: it follows from the others. */
  reshape(...shape: number[]): Tensor;
  reshape(shape: readonly number[]): Tensor;
  /** Dimension axes[i] in place i; without axes the order is reversed. */
  permute(...axes: number[]): Tensor;
  permute(axes: readonly number[]): Tensor;
  /** NumPy's name of {@link Tensor.permute}. */
  transpose(...axes: number[]): Tensor;
  transpose(axes: readonly number[]): Tensor;
  /** A part: a range for each dimension; those without one are whole. */
  slice(...ranges: TensorRange[]): Tensor;
  /** Dimensions of 1 stretched to a shape, and dimensions before the first added. */
  broadcastTo(...shape: number[]): Tensor;
  broadcastTo(shape: readonly number[]): Tensor;
  /** One more dimension, of length 1, in that place of the result. */
  expandDims(axis: number): Tensor;
  /** Without these dimensions, which are of length 1; without all such if none is named. */
  squeeze(...axes: number[]): Tensor;
  /** Conversion to another element type: see {@link Expr.astype}. */
  astype(dtype: DType): Tensor;
  /** Applies a function of yours to this and further operands, with broadcasting. */
  apply(fn: Fn, ...more: TensorOperand[]): Tensor;
  /** The real parts of complex numbers, as float32. */
  real(): Tensor;
  /** The imaginary parts, as float32. */
  imag(): Tensor;
  /** The angles with the positive real axis, from -pi to pi, as float32. */
  angle(): Tensor;
  /** The conjugates. */
  conj(): Tensor;

  /** The elements as a matrix: its columns are the last dimension, its rows all others; of one dimension it is a row. */
  expr(): Expr;
  /** Queues the computation and returns a tensor of the result, in memory of its own. Close it when done. */
  eval(): Tensor;
  /** Computes and brings the elements back, the last dimension fastest, into an array of yours if you give one. See {@link Expr.read}. */
  read(options?: WaitOptions): Promise<Elements>;
  read<T extends ArrayBufferView>(into: T, options?: WaitOptions): Promise<T>;
  /** The only element of a tensor of one. */
  value(options?: WaitOptions): Promise<number>;
  /**
   * Computes and saves it alone in a file; see {@link Gpu.save}. One of more than two dimensions cannot be "mtx": `ErrShape`.
   *
   * ```js
   * const blob = await images.save({format: "npy"});
   * ```
   */
  save(options: SaveFileOptions & { readonly format: "npy" | "mtx" }): Promise<Blob>;
  /** Drops the memory of a tensor that has some of its own; any further use of the tensor is an error. */
  close(): void;
  [Symbol.dispose](): void;
}
