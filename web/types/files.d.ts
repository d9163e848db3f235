// SPDX-License-Identifier: Apache-2.0

import type { DType } from "./elements.js";
import type { Expr } from "./expr.js";
import type { Matrix } from "./matrix.js";
import type { WaitOptions } from "./options.js";
import type { Param, ParamData } from "./params.js";
import type { Sparse } from "./sparse.js";
import type { Tensor } from "./tensor.js";

/**
 * A format of files: NumPy's of one array and of several by name, Hugging Face's of tensors by name, and the Matrix Market's of one matrix,
 * dense or sparse.
 */
export type FileFormat = "npy" | "npz" | "safetensors" | "mtx";

/** Options of {@link Gpu.load}. */
export interface LoadFileOptions<T extends DType = DType> extends WaitOptions {
  /** What the file is. By default its first bytes tell, or else its name. */
  readonly format?: FileFormat;
  /**
   * Converts all arrays to this element type. Without it an array keeps its own, and one of float64, int64, uint64, complex128 or
   * bfloat16 is `ErrUnsupported`, as there are no such matrices. That of a .mtx is int32 where the file says integer, uint32 for
   * unsigned-integer and float32 for others. A number that an integer type does not have is `ErrInvalid`.
   */
  readonly dtype?: T;
  /**
   * Of a file with names: loads only these; `ErrInvalid` if one is missing. Of safetensors in a Blob, or at an address ending in
   * .safetensors of a server that knows ranges, only their bytes are read.
   */
  readonly names?: readonly string[];
  /** The most bytes that the file's arrays, and a source that is no Blob and no memory, may take: `ErrTooLarge` before memory is taken for more. */
  readonly memoryLimit?: number;
}

/** The arrays of a file, by name and in its order; see {@link Gpu.load}. Closing it closes them all. */
export interface FileArrays<T extends DType = any> extends Map<string, Matrix<T> | Tensor<T>> {
  /** Closes all arrays. */
  close(): void;
  /** Closes all arrays at the end of the block that declares them with `using`. */
  [Symbol.dispose](): void;
}

/** Options of {@link Gpu.save} and {@link Expr.save}. */
export interface SaveFileOptions extends WaitOptions {
  /** What the file is to be. */
  readonly format: FileFormat;
  /** Of "npz": packs the arrays, which takes time. */
  readonly compress?: boolean;
}

/** What can be saved in a file: loaded parameters, matrices, expressions, tensors, and memory of yours. */
export type Savable = Expr<any> | Tensor<any> | Param | ParamData;

/** Arrays with their names: a Map, a {@link FileArrays}, a list of pairs or an object. */
export type NamedArrays = Iterable<readonly [name: string, value: Savable]> | { readonly [name: string]: Savable };
