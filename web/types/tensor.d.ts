// SPDX-License-Identifier: Apache-2.0

import type { ClassesOf, DType, Elements, TypedArray } from "./elements.js";
import type { SaveFileOptions } from "./files.js";
import type { Expr } from "./expr.js";
import type { Fn } from "./fn.js";
import type { WaitOptions } from "./options.js";
import type { ElementOperations } from "./operations.js";
import type { Canvas, TensorDrawOptions } from "./pictures.js";

/** An operand of a tensor's: a matrix counts as a tensor of two dimensions, a number as an element of the others' type. */
export type TensorOperand<T extends DType = "float32"> = Tensor<T> | Expr<T> | number;

/** One dimension or several: negative numbers count from the end. */
type Axes = number | readonly number[] | null;

/** What a reduction of a tensor runs along: `sum(0)`, `sum([0, 2])` or `sum({axis: 0})`; all dimensions if absent. With `keepDims` the dimensions stay, with a length of 1; they are gone by default. */
export type TensorReduceOptions = Axes | { readonly axis?: Axes; readonly keepDims?: boolean };

/** A variance's options: see {@link SpreadOptions}. */
export type TensorSpreadOptions = Axes | { readonly axis?: Axes; readonly keepDims?: boolean; readonly ddof?: number };

/** What a softmax runs along: the last dimension by default; null over everything. */
export type TensorNormaliseOptions = number | null | { readonly axis?: number | null };

/** What a sort or a running sum runs along: the last dimension by default. */
export type TensorOrderOptions = number | { readonly axis?: number };

/** What a dimension is cut to: [from, to] without to, either of which may be left out or count from the end; one element, of which the dimension is gone; or nothing, for all. */
export type TensorRange = readonly [from?: number | null, to?: number | null] | number | null | undefined;

export interface Tensor<T extends DType = "float32"> extends ElementOperations<"tensor", T> {}

/**
 * An array of elements of type T with up to 16 dimensions and 2^31-1 elements: an expression with a shape, in NumPy's grammar. Nothing runs before it is
 * evaluated. The shapes of operands are aligned at their last dimensions, and dimensions of 1, or that are not there, stretch.
 *
 * Errors are thrown by the call: `ErrShape` for shapes that do not fit, `ErrIndex` for dimensions and places that there are not,
 * `ErrSize` for negative lengths, `ErrLimit` for too many dimensions or elements. Make one with {@link Gpu.tensor} or {@link Expr.tensor}.
 */
export class Tensor<T extends DType = "float32"> {
  private constructor();

  /**
   * The lengths of the dimensions.
   *
   * @example
   * gpu.zeros(4, 6).tensor(2, 3, 4).shape; // [2, 3, 4]
   */
  readonly shape: readonly number[];
  /**
   * The number of dimensions.
   *
   * @example
   * gpu.zeros(4, 6).tensor(2, 3, 4).ndim; // 3
   */
  readonly ndim: number;
  /**
   * The number of elements.
   *
   * @example
   * gpu.zeros(4, 6).tensor(2, 3, 4).size; // 24
   */
  readonly size: number;
  /**
   * The element type.
   *
   * @example
   * gpu.tensor([1, 2], [2], { dtype: "int32" }).dtype; // "int32"
   */
  readonly dtype: T;
  /**
   * The dimensions in reverse order.
   *
   * Shapes: `p x m x n` -> `n x m x p`.
   * @example
   * gpu.zeros(4, 6).tensor(2, 3, 4).T.shape; // [4, 3, 2]
   */
  readonly T: Tensor<T>;

  /**
   * The same elements, the last dimension fastest, in another shape. One length may be -1: it follows from the others.
   *
   * Shapes: any -> any of as many elements.
   * @example
   * gpu.tensor([1, 2, 3, 4, 5, 6], [6]).reshape(2, -1).shape; // [2, 3]
   */
  reshape(...shape: number[]): Tensor<T>;
  reshape(shape: readonly number[]): Tensor<T>;
  /**
   * Dimension axes[i] in place i; without axes the order is reversed.
   *
   * Shapes: `p x m x n` by `1, 2, 0` -> `m x n x p`.
   * @example
   * gpu.zeros(4, 6).tensor(2, 3, 4).permute(1, 2, 0).shape; // [3, 4, 2]
   */
  permute(...axes: number[]): Tensor<T>;
  permute(axes: readonly number[]): Tensor<T>;
  /**
   * NumPy's name of {@link Tensor.permute}.
   *
   * Shapes: `p x m x n` -> `n x m x p`.
   * @example
   * await gpu.tensor([1, 2, 3, 4], [2, 2]).transpose().read(); // [1, 3, 2, 4]
   */
  transpose(...axes: number[]): Tensor<T>;
  transpose(axes: readonly number[]): Tensor<T>;
  /**
   * A part: a range for each dimension; those without one are whole.
   *
   * Shapes: `p x m x n` by `0, [1, 3]` -> `2 x n`.
   * @example
   * await gpu.tensor([1, 2, 3, 4, 5, 6], [2, 3]).slice(null, [1, 3]).read(); // [2, 3, 5, 6]
   * await gpu.tensor([1, 2, 3, 4, 5, 6], [2, 3]).slice(-1).read(); // [4, 5, 6]
   */
  slice(...ranges: TensorRange[]): Tensor<T>;
  /**
   * Dimensions of 1 stretched to a shape, and dimensions before the first added.
   *
   * Shapes: `1 x n` -> `p x m x n`.
   * @example
   * await gpu.tensor([1, 2], [2]).broadcastTo(2, 2).read(); // [1, 2, 1, 2]
   */
  broadcastTo(...shape: number[]): Tensor<T>;
  broadcastTo(shape: readonly number[]): Tensor<T>;
  /**
   * One more dimension, of length 1, in that place of the result.
   *
   * Shapes: `m x n` by 1 -> `m x 1 x n`.
   * @example
   * gpu.zeros(2, 3).tensor(2, 3).expandDims(1).shape; // [2, 1, 3]
   */
  expandDims(axis: number): Tensor<T>;
  /**
   * Without these dimensions, which are of length 1; without all such if none is named.
   *
   * Shapes: `m x 1 x n` -> `m x n`.
   * @example
   * gpu.zeros(2, 3).tensor(2, 1, 3).squeeze().shape; // [2, 3]
   */
  squeeze(...axes: number[]): Tensor<T>;
  /**
   * Conversion to another element type: see {@link Expr.astype}.
   *
   * Shapes: those of the tensor.
   * @example
   * await gpu.tensor([1.7, -1.7], [2]).astype("int8").read(); // [1, -1]
   */
  astype<U extends DType>(dtype: U): Tensor<U>;
  /**
   * Applies a function of yours to this and further operands, with broadcasting.
   *
   * Shapes: those of the operands, stretched.
   * @example
   * const half = gpu.fn("fn half(x: f32) -> f32 { return 0.5 * x; }");
   * await gpu.tensor([1, 2], [2]).apply(half).read(); // [0.5, 1]
   */
  apply(fn: Fn, ...more: TensorOperand<T>[]): Tensor<T>;
  /**
   * The real parts of complex numbers, as float32.
   *
   * Shapes: those of the tensor.
   * @example
   * await gpu.tensor([1, 2, 3, 4], [2], { dtype: "complex64" }).real().read(); // [1, 3]
   */
  real(): Tensor<"float32">;
  /**
   * The imaginary parts, as float32.
   *
   * Shapes: those of the tensor.
   * @example
   * await gpu.tensor([1, 2, 3, 4], [2], { dtype: "complex64" }).imag().read(); // [2, 4]
   */
  imag(): Tensor<"float32">;
  /**
   * The angles with the positive real axis, from -pi to pi, as float32.
   *
   * Shapes: those of the tensor.
   * @example
   * await gpu.tensor([0, 1, -1, 0], [2], { dtype: "complex64" }).angle().read(); // [1.5708, 3.1416]
   */
  angle(): Tensor<"float32">;
  /**
   * The conjugates.
   *
   * Shapes: those of the tensor.
   * @example
   * await gpu.tensor([1, 2, 3, 4], [2], { dtype: "complex64" }).conj().read(); // [1, -2, 3, -4]
   */
  conj(): Tensor<T>;

  /**
   * The elements as a matrix: its columns are the last dimension, its rows all others; of one dimension it is a row.
   *
   * Shapes: `p x m x n` -> `p*m x n`.
   * @example
   * gpu.zeros(4, 6).tensor(2, 3, 4).expr().shape; // [6, 4]
   */
  expr(): Expr<T>;
  /**
   * Queues the computation and returns a tensor of the result, in memory of its own. Close it when done.
   *
   * Shapes: those of the tensor.
   * @example
   * using sums = gpu.tensor([1, 2], [2]).add(1).eval();
   * await sums.mul(sums).read(); // [4, 9]
   */
  eval(): Tensor<T>;
  /**
   * Computes and brings the elements back, the last dimension fastest, into an array of yours if you give one. See {@link Expr.read}.
   *
   * Shapes: any -> an array of as many elements.
   * @example
   * await gpu.tensor([1, 2, 3, 4], [2, 2]).sum(0).read(); // [4, 6]
   */
  read(options?: WaitOptions): Promise<Elements<T>>;
  read<A extends TypedArray<ClassesOf[T]>>(into: A, options?: WaitOptions): Promise<A>;
  /**
   * The only element of a tensor of one.
   *
   * Shapes: `1 x ... x 1` -> a number.
   * @example
   * await gpu.tensor([1, 2, 3], [3]).sum().value(); // 6
   */
  value(options?: WaitOptions): Promise<number>;
  /**
   * NumPy's name of {@link Tensor.value}; with an index for each dimension, their element.
   *
   * Shapes: `1 x ... x 1` -> a number, any with an index for each dimension.
   * @example
   * await gpu.tensor([1, 2, 3, 4], [2, 2]).item(-1, 0); // 3
   */
  item(...at: number[]): Promise<number>;
  /**
   * Computes and saves it alone in a file; see {@link Gpu.save}. One of more than two dimensions cannot be "mtx": `ErrShape`.
   *
   * @example
   * const file = await gpu.tensor([1, 2], [2, 1, 1]).save({ format: "npy" });
   */
  save(options: SaveFileOptions & { readonly format: "npy" | "mtx" }): Promise<Blob>;
  /**
   * Draws a tensor of height x width or height x width x channels, of 1, 3 or 4 channels; `ErrShape` for others. See {@link Expr.toCanvas}.
   *
   * Shapes: `height x width x channels`.
   * @example
   * const picture = await gpu.fromImage(video);
   * await picture.mul(0.5).toCanvas(canvas);
   */
  toCanvas(canvas: Canvas, options?: TensorDrawOptions): Promise<void>;
  /**
   * What `console.log` shows in Node: see {@link Expr.toString}. Of more than two dimensions it shows the first and the last plane.
   *
   * @example
   * console.log(String(gpu.tensor([1, 2], [2])));
   */
  toString(): string;
  /**
   * Drops the memory of a tensor that has some of its own; any further use of the tensor is an error.
   *
   * @example
   * const t = gpu.tensor([1, 2], [2]);
   * t.close();
   */
  close(): void;
  /**
   * Closes the tensor at the end of the block that declares it with `using`.
   *
   * @example
   * using t = gpu.tensor([1, 2], [2]);
   */
  [Symbol.dispose](): void;
}
