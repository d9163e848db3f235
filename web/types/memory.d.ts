// SPDX-License-Identifier: Apache-2.0

import type { Gpu } from "./gpu.js";
import type { Expr, FromBufferOptions, Matrix, WrapOptions } from "./matrix.js";

/**
 * The memory contract of a matrix, {@link Matrix.memory}: other memory, another size, another owner. Calls that return a matrix return
 * the one that they change, unless they say another: `m.memory.rebind(data, 2, 2).add(1)`.
 */
export class MatrixMemory {
  private constructor();

  /**
   * Copies a matrix or computes an expression, its size included. The result goes into the memory that the matrix has; if it
   * does not fit there a matrix of its own memory gets new memory, and one of memory of yours is left as it was:
   * `ErrExternalResize`. {@link Matrix.external} stays what it is. A matrix of which there are aliases keeps its size, and so
   * do the values of a sparse one: `ErrView`. x may be a part of the matrix.
   */
  setValue(x: Expr): Matrix;
  /**
   * Replaces size and elements by those of memory: what {@link Gpu.fromBuffer} takes, of the matrix's element type.
   *
   * With `dontOwnBuffer` the matrix gives up its memory, which is released if nobody else has it, and uses this one;
   * `external` is true then. A copy goes where {@link MatrixMemory.setValue} would put it, with the same errors, and `external` is
   * false afterwards. Memory of yours stays yours: it is released when the matrix gives it up, never freed, and never left for
   * larger memory.
   */
  setValueFrom(data: ArrayBufferLike | ArrayBufferView | GPUBuffer, rows: number, cols: number, options?: FromBufferOptions): Matrix;
  /** Makes the matrix one of other memory of yours: what {@link Gpu.wrap} or {@link Gpu.wrapBuffer} take. */
  rebind(data: ArrayBufferLike | ArrayBufferView | GPUBuffer, rows: number, cols: number, options?: WrapOptions): Matrix;
  /**
   * Becomes what the other is, memory, size, element type and flags, and leaves it an empty matrix. The matrix gives up its
   * own memory. Taking from itself does nothing. Expressions made of either before go with the memory.
   */
  take(other: Matrix): Matrix;
  /** Returns a matrix that is what this one was, and leaves this one empty. */
  move(): Matrix;
  /** Exchanges two matrices: memory, size, element type and flags. Nothing moves. */
  swap(other: Matrix): Matrix;
  /** Gives up the memory: the matrix is empty, and takes the size of whatever is assigned to it first. */
  reset(): Matrix;
  /**
   * Gives a matrix of its own memory another size. Memory that is large enough is kept; the elements are undefined, unless
   * the size is what it was. `ErrExternalResize` for memory of yours, `ErrView` where there are aliases.
   */
  resize(rows: number, cols: number): Matrix;
  /**
   * Another shape of as many elements, which keep their order in memory; `ErrShape` for another number. Nothing moves. The
   * matrix must have no gaps, `ErrStride`; it may be of memory of yours, and aliases keep their shape.
   */
  setShape(rows: number, cols: number): Matrix;
  /** Another matrix of the same memory: what is written to one is in both. Each is closed by itself, the last releases. */
  alias(): Matrix;
}
