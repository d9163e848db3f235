// SPDX-License-Identifier: Apache-2.0

import type { ClassesOf, DType, RawMemory, TypedArray } from "./elements.js";
import type { Gpu } from "./gpu.js";
import type { Expr } from "./expr.js";
import type { Matrix } from "./matrix.js";
import type { FromBufferOptions, WrapOptions } from "./options.js";

/**
 * The memory contract of a matrix, {@link Matrix.memory}: other memory, another size, another owner. Calls that return a matrix return
 * the one that they change, unless they say another: `m.memory.rebind(data, 2, 2).add(1)`.
 *
 * The new size is there at once, the work is queued. If the GPU's
 * side refuses, for want of memory for example, the matrix becomes what it was before: whoever used it meanwhile gets the
 * error, and so does {@link Gpu.sync}. A call that throws changes nothing.
 */
export class MatrixMemory<T extends DType = "float32"> {
  private constructor();

  /**
   * Copies a matrix or computes an expression, its size included. The result goes into the memory that the matrix has; if it
   * does not fit there a matrix of its own memory gets new memory, and one of memory of yours is left as it was:
   * `ErrExternalResize`. {@link Matrix.external} stays what it is. A matrix of which there are aliases keeps its size, and so
   * do the values of a sparse one: `ErrView`. x may be a part of the matrix.
   *
   * Shapes: `m x n` of `k x l` becomes `k x l`.
   * @example
   * const a = gpu.zeros(2, 2);
   * await a.memory.setValue(gpu.ones(1, 3)).read(); // [1, 1, 1]
   */
  setValue(x: Expr<T>): Matrix<T>;
  /**
   * Replaces size and elements by those of memory: what {@link Gpu.fromBuffer} takes, of the matrix's element type.
   *
   * With `dontOwnBuffer` the matrix gives up its memory, which is released if nobody else has it, and uses this one;
   * `external` is true then. A copy goes where {@link MatrixMemory.setValue} would put it, with the same errors, and `external` is
   * false afterwards. Memory of yours stays yours: it is released when the matrix gives it up, never freed, and never left for
   * larger memory.
   *
   * Shapes: `m x n` becomes `rows x cols`.
   * @example
   * const a = gpu.zeros(2, 2);
   * await a.memory.setValueFrom(new Float32Array([1, 2, 3]), 1, 3).read(); // [1, 2, 3]
   */
  setValueFrom(data: TypedArray<ClassesOf[T]> | RawMemory | GPUBuffer, rows: number, cols: number, options?: FromBufferOptions<T>): Matrix<T>;
  /**
   * Makes the matrix one of other memory of yours: what {@link Gpu.wrap} or {@link Gpu.wrapBuffer} take.
   *
   * Shapes: `m x n` becomes `rows x cols`.
   * @example
   * const a = gpu.wrap(new Float32Array(4), 2, 2);
   * await a.memory.rebind(new Float32Array([5, 6]), 1, 2).read(); // [5, 6]
   */
  rebind(data: TypedArray<ClassesOf[T]> | RawMemory | GPUBuffer, rows: number, cols: number, options?: WrapOptions<T>): Matrix<T>;
  /**
   * Becomes what the other is, memory, size, element type and flags, and leaves it an empty matrix. The matrix gives up its
   * own memory. Taking from itself does nothing. Expressions made of either before go with the memory.
   *
   * Shapes: `m x n` of `k x l` becomes `k x l`, the other `0 x 0`.
   * @example
   * const a = gpu.zeros(2, 2), b = gpu.ones(1, 3);
   * await a.memory.take(b).read(); // [1, 1, 1]
   */
  take(other: Matrix<T>): Matrix<T>;
  /**
   * Returns a matrix that is what this one was, and leaves this one empty.
   *
   * Shapes: `m x n` -> `m x n`, and this becomes `0 x 0`.
   * @example
   * const a = gpu.ones(1, 3);
   * await a.memory.move().read(); // [1, 1, 1]
   */
  move(): Matrix<T>;
  /**
   * Exchanges two matrices: memory, size, element type and flags. Nothing moves.
   *
   * Shapes: `m x n` with `k x l` becomes `k x l`.
   * @example
   * const a = gpu.zeros(2, 2), b = gpu.ones(1, 3);
   * a.memory.swap(b).shape; // [1, 3]
   */
  swap(other: Matrix<T>): Matrix<T>;
  /**
   * Gives up the memory: the matrix is empty, and takes the size of whatever is assigned to it first.
   *
   * Shapes: `m x n` becomes `0 x 0`.
   * @example
   * gpu.ones(2, 2).memory.reset().shape; // [0, 0]
   */
  reset(): Matrix<T>;
  /**
   * Gives a matrix of its own memory another size. Memory that is large enough is kept; the elements are undefined, unless
   * the size is what it was. `ErrExternalResize` for memory of yours, `ErrView` where there are aliases.
   *
   * Shapes: `m x n` becomes `rows x cols`.
   * @example
   * gpu.ones(2, 2).memory.resize(3, 4).shape; // [3, 4]
   */
  resize(rows: number, cols: number): Matrix<T>;
  /**
   * Another shape of as many elements, which keep their order in memory; `ErrShape` for another number. Nothing moves. The
   * matrix must have no gaps, `ErrStride`; it may be of memory of yours, and aliases keep their shape.
   *
   * Shapes: `m x n` becomes `rows x cols`, of as many elements.
   * @example
   * gpu.ones(2, 3).memory.setShape(3, 2).shape; // [3, 2]
   */
  setShape(rows: number, cols: number): Matrix<T>;
  /**
   * Another matrix of the same memory: what is written to one is in both. Each is closed by itself, the last releases.
   *
   * Shapes: `m x n` -> `m x n`.
   * @example
   * const a = gpu.zeros(1, 2), b = a.memory.alias();
   * b.assign(1);
   * await a.read(); // [1, 1]
   */
  alias(): Matrix<T>;
}

