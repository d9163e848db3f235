// SPDX-License-Identifier: Apache-2.0

// Matrices and views, which are in memory.

import type { AnyTypedArray, DType, Elements, Order, Row, Values } from "./elements.js";
import { Expr } from "./expr.js";
import type { Gpu } from "./gpu.js";
import type { MatrixMemory } from "./memory.js";
import type { Operand, PartOfMatrix, Range, WaitOptions } from "./options.js";
import type { MatrixMessage } from "./transfer.js";

/** A part of a matrix or another arrangement of it, in the same memory. */
export class View<T extends DType = "float32"> extends Expr<T> {
  protected constructor();

  /**
   * The transpose, of the same memory.
   *
   * Shapes: `m x n` -> `n x m`.
   * @example
   * const a = gpu.zeros(2, 2);
   * a.T.row(0).assign(1);
   * await a.read(); // [1, 0, 1, 0]
   */
  readonly T: View<T>;
  /**
   * The transpose, as {@link View.T}.
   *
   * Shapes: `m x n` -> `n x m`.
   * @example
   * const a = gpu.zeros(2, 2);
   * a.transpose().row(0).assign(1);
   * await a.read(); // [1, 0, 1, 0]
   */
  transpose(): View<T>;
  /**
   * Some rows and columns, of the same memory: of each a range `[from, to]` without `to`, one index, or nothing for all. Negative
   * numbers count from the end.
   *
   * Shapes: `m x n` -> `to-from x n`.
   * @example
   * const a = gpu.zeros(2, 3);
   * a.slice(0, [1, 3]).assign(7);
   * await a.read(); // [0, 7, 7, 0, 0, 0]
   */
  slice(rows?: Range, cols?: Range): View<T>;
  slice(part: PartOfMatrix): View<T>;
  /**
   * One row, of the same memory.
   *
   * Shapes: `m x n` -> `1 x n`.
   * @example
   * const a = gpu.zeros(2, 2);
   * a.row(1).assign(5);
   * await a.read(); // [0, 0, 5, 5]
   */
  row(i: number): View<T>;
  /**
   * One column, of the same memory.
   *
   * Shapes: `m x n` -> `m x 1`.
   * @example
   * const a = gpu.zeros(2, 2);
   * a.col(1).assign(5);
   * await a.read(); // [0, 5, 0, 5]
   */
  col(j: number): View<T>;
  /**
   * The same elements, row by row, in another shape: a view where they lie so without gaps, a computation elsewhere.
   *
   * Shapes: `m x n` -> `rows x cols`, of as many elements. One of the two may be -1: it is what is left beside the other.
   * @example
   * await gpu.matrix(2, 2, [1, 2, 3, 4]).reshape(1, -1).read(); // [1, 2, 3, 4]
   */
  reshape(rows: number, cols: number): View<T> | Expr<T>;
  /** The same elements, row by row, in another shape. */
  reshape(shape: readonly [rows: number, cols: number]): View<T> | Expr<T>;
  /**
   * Queues a computation into this memory, which may be part of it: the result is what it would be if it were elsewhere.
   * Sizes and element types must agree; a number fills.
   *
   * Shapes: `m x n` of `m x n` or a number.
   * @example
   * const a = gpu.matrix(2, 2, [1, 2, 3, 4]);
   * a.row(0).assign(a.row(1).mul(10));
   * await a.read(); // [30, 40, 3, 4]
   */
  assign(x: Operand<T>): this;
  assign(this: View<"complex64">, x: Expr<"float32">): this;
}

/**
 * A matrix of elements of type T in memory. `Matrix` alone is a `Matrix<"float32">`, of which {@link Matrix.read} gives a Float32Array;
 * `Matrix<any>` is one of a type that is not known before the program runs. Close it when done; `using` does so, and the garbage collector does at some time.
 *
 * What gives it another size or other memory is in {@link Matrix.memory}.
 */
export class Matrix<T extends DType = "float32"> extends View<T> {
  /**
   * Whose memory it is: its own, that of the caller, or memory that both reach.
   *
   * @example
   * gpu.zeros(2, 2).mode; // "owned"
   */
  readonly mode: "owned" | "external" | "mapped";
  /**
   * Whether the matrix uses somebody else's memory. {@link MatrixMemory.setValueFrom} may make it false, the memory staying where
   * it is; who frees the memory is another question, which `release` answers.
   *
   * @example
   * gpu.wrap(new Float32Array(4), 2, 2).external; // true
   */
  readonly external: boolean;
  /**
   * Where elements are neighbours in memory: along a row or along a column.
   *
   * @example
   * gpu.zeros(2, 3, { order: "column" }).order; // "column"
   */
  readonly order: Order;
  /**
   * Elements between the beginnings of two rows (columns, in column order).
   *
   * @example
   * gpu.zeros(2, 3, { stride: 4 }).stride; // 4
   */
  readonly stride: number;
  /**
   * Elements before the first, in the memory it was placed in.
   *
   * @example
   * gpu.wrap(new Float32Array(6), 2, 2, { offset: 2 }).offset; // 2
   */
  readonly offset: number;
  /**
   * How many elements the memory has for the matrix; of memory that is not ours, those of the size that it was wrapped with.
   *
   * @example
   * gpu.zeros(2, 3).capacity; // 6
   */
  readonly capacity: number;
  /**
   * Whether the matrix was closed, or the Gpu was.
   *
   * @example
   * gpu.zeros(2, 3).closed; // false
   */
  readonly closed: boolean;
  /**
   * Where the current elements are, after everything that was called before: nowhere yet means zeros. To wait no longer than
   * a signal allows, call {@link Matrix.sync} with it before.
   *
   * @example
   * await gpu.wrap(new Float32Array(4), 2, 2).location; // "host"
   */
  readonly location: Promise<"none" | "host" | "device" | "both">;
  /**
   * The GPU buffer with the elements, after everything that was called before. It stays the matrix's: use it until the
   * matrix is closed, and submit your commands before you call this library again.
   *
   * @example
   * const buffer = await gpu.zeros(1024, 4).buffer; // for a bind group of yours
   */
  readonly buffer: Promise<GPUBuffer>;
  /**
   * What gives the matrix another size or other memory: `rebind`, `resize`, `take`, `setValueFrom` and so on.
   *
   * @example
   * gpu.zeros(2, 3).memory.setShape(3, 2).shape; // [3, 2]
   */
  readonly memory: MatrixMemory<T>;

  /**
   * Queues a computation into this memory, as for a view; an empty matrix of its own memory, 0x0, takes the size of what is assigned.
   *
   * Shapes: `m x n` of `m x n` or a number; `0 x 0` of any.
   * @example
   * const a = gpu.matrix(1, 2, [1, 2]);
   * a.assign(a.add(1));
   * await a.read(); // [2, 3]
   */
  assign(x: Operand<T>): this;
  assign(this: Matrix<"complex64">, x: Expr<"float32">): this;
  /**
   * Replaces all elements of an owned matrix, row by row (column by column, in column order). They are copied at once. Arrays of rows will
   * do. A typed array of another type is an error unless `dtype` names the matrix's own, which converts its numbers.
   *
   * Shapes: `m x n` of m * n numbers, or of m rows of n.
   * @example
   * const a = gpu.zeros(1, 2);
   * a.set([5, 6]);
   * await a.read(); // [5, 6]
   */
  set(values: Values<T> | readonly Row<T>[], options?: { readonly dtype?: undefined }): this;
  set(values: AnyTypedArray | Values | readonly Row[], options: { readonly dtype: T }): this;
  /**
   * Of wrapped memory: brings back what computations wrote since the last time. Before that the typed array may hold old elements. It
   * also waits. What nobody synced is given up by {@link Matrix.close}: the array stays as it is.
   *
   * @example
   * const mine = new Float32Array([1, 2]), a = gpu.wrap(mine, 1, 2);
   * a.assign(a.mul(2));
   * await a.sync();
   * mine; // [2, 4]
   */
  sync(options?: WaitOptions): Promise<void>;
  /**
   * Of wrapped memory: says that you wrote to it. Results that were not brought back are given up.
   *
   * @example
   * const mine = new Float32Array([1, 2]), a = gpu.wrap(mine, 1, 2);
   * mine[0] = 10;
   * await a.touch().add(1).read(); // [11, 3]
   */
  touch(): this;
  /**
   * Brings the elements back and closes the matrix: what goes to another thread, where {@link Gpu.attach} makes a matrix of it. Matrices
   * themselves cannot be posted, as each thread has a device of its own.
   *
   * @example
   * const message = await gpu.matrix(1, 2, [1, 2]).detach();
   * worker.postMessage(message, [message.data]);
   */
  detach(options?: WaitOptions): Promise<MatrixMessage<T> & { readonly data: ArrayBuffer }>;
  /**
   * Of a mapped matrix: gives a function the elements as they lie in memory. With `write` set, what it leaves there is the
   * new content. The matrix cannot be used otherwise until the function, or the promise that it returns, is done, also where a signal
   * gives the call up. The array is not to be used afterwards.
   *
   * @example
   * const a = gpu.map(1, 2);
   * await a.access(true, (data) => data.set([3, 4]));
   * await a.add(1).read(); // [4, 5]
   */
  access<R>(write: boolean, fn: (data: Elements<T>) => R | PromiseLike<R>, options?: WaitOptions): Promise<R>;
  /**
   * A copy in memory of its own, row by row.
   *
   * Shapes: `m x n` -> `m x n`.
   * @example
   * const a = gpu.ones(1, 2), b = a.clone();
   * a.assign(0);
   * await b.read(); // [1, 1]
   */
  clone(): Matrix<T>;
  /**
   * Releases the memory; any further use of the matrix is an error. What was queued before is done.
   *
   * @example
   * const a = gpu.zeros(2, 2);
   * a.close();
   * a.closed; // true
   */
  close(): void;
}
