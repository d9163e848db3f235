// SPDX-License-Identifier: Apache-2.0

import type { DType } from "./elements.js";

/**
 * A matrix as it goes to another thread: see {@link Matrix.detach} and {@link Gpu.attach}. `data` holds the elements row by row. It is an
 * ArrayBuffer that is transferred, or a SharedArrayBuffer of yours, which both sides use.
 */
export interface MatrixMessage<T extends DType = DType> {
  /** The elements, row by row. */
  readonly data: ArrayBufferLike;
  /** The numbers of rows and columns. */
  readonly shape: readonly [rows: number, cols: number];
  /** The element type. */
  readonly dtype: T;
}
