// SPDX-License-Identifier: Apache-2.0

/// <reference lib="esnext.disposable" />

/**
 * Sublet does matrix mathematics on the GPU in memory that you already own.
 *
 * ```js
 * import { init } from "sublet";
 * const gpu = await init();
 * const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]);
 * const b = gpu.wrap(typedArray, 3, 2);          // stays yours
 * const values = await a.matmul(b).add(1).relu().read();
 * ```
 *
 * Element types are part of the types: `a` is a `Matrix<"float32">`, which `Matrix` stands for, and `values` a Float32Array. Others are
 * `Matrix<"int32">` and so on, and `Matrix<any>` fits wherever a matrix of some type is wanted. TypeScript 5.4 or later is needed.
 *
 * Operations build expressions, which cost next to nothing. Element-wise operations, products and reductions check shapes at
 * once. An expression runs when it is evaluated: with `eval`, `assign` or `read`. Calls queue their work and return; nothing
 * comes back from the GPU until you ask. Element-wise operations stretch dimensions of 1, as in NumPy, and take numbers in place of matrices.
 *
 * Every error is a {@link SubletError} with a `code`. What JavaScript knows, such as arguments, options and most shapes, is
 * thrown by the call itself, or rejects the promise of an asynchronous one. The rest stays with the result: whoever reads it
 * gets the error, and so does {@link Gpu.sync}. That is what only the GPU can tell, such as WGSL that does not compile, and
 * operands that do not fit where an operation shapes, puts or decomposes, such as `hstack`, `putRows` or `solve`.
 *
 * @packageDocumentation
 */

declare global {
  // These merge with the declarations of WebGPU, the compiler's or those of @webgpu/types. A program that has neither gets by: the
  // members here, which all of them have, tell a buffer and a device from anything else.
  interface GPUQueue {
    label: string;
  }
  interface GPUDevice {
    readonly queue: GPUQueue;
    label: string;
  }
  interface GPUBuffer {
    readonly size: number;
    readonly usage: number;
    label: string;
  }
}

import type { SubletError } from "./types/errors.js";
import type { Gpu } from "./types/gpu.js";

export * from "./types/arrays.js";
export * from "./types/cruncher.js";
export * from "./types/elements.js";
export * from "./types/errors.js";
export * from "./types/expr.js";
export * from "./types/files.js";
export * from "./types/fn.js";
export * from "./types/gpu.js";
export * from "./types/graph.js";
export * from "./types/init.js";
export * from "./types/makers.js";
export * from "./types/matrix.js";
export * from "./types/memory.js";
export * from "./types/nn.js";
export * from "./types/numpy.js";
export * from "./types/operations.js";
export * from "./types/options.js";
export * from "./types/params.js";
export * from "./types/pictures.js";
export * from "./types/pipelines.js";
export * from "./types/recording.js";
export * from "./types/scope.js";
export * from "./types/sparse.js";
export * from "./types/tasks.js";
export * from "./types/tensor.js";
export * from "./types/transfer.js";
export * from "./types/tuning.js";
