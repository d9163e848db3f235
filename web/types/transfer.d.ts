// SPDX-License-Identifier: Apache-2.0

import type { DType } from "./elements.js";

/**
 * A matrix as it goes to another thread: see {@link Matrix.detach} and {@link Gpu.attach}. `data` holds the elements row by row. It is an
 * ArrayBuffer that is transferred, or a SharedArrayBuffer of yours, which both sides use.
 */
export interface MatrixMessage<Data extends ArrayBufferLike = ArrayBufferLike> {
  readonly data: Data;
  readonly shape: readonly [rows: number, cols: number];
  readonly dtype: DType;
}
