// SPDX-License-Identifier: Apache-2.0

import type { DType, Elements, Float16Elements } from "./elements.js";
import type { Gpu } from "./gpu.js";
import type { Matrix } from "./matrix.js";
import type { WaitOptions } from "./options.js";
import type { Tensor } from "./tensor.js";

/**
 * What a file is read from, or a promise of it, such as that of `fetch`. Streams are read as fast as the device takes them, and
 * cancelled when no more is wanted. Of a Blob, and of memory, only what is needed is read; leave memory alone meanwhile.
 */
export type FileSource = Response | Blob | ArrayBufferLike | ArrayBufferView | ReadableStream<Uint8Array> | AsyncIterable<ArrayBufferLike | ArrayBufferView>;

/** Options of {@link Gpu.scanParams}. */
export interface ScanOptions {
  /** Refuses bytes after the last array: `ErrFormat`. */
  readonly strict?: boolean;
  /** Accepts names that occur more than once: the last array counts. `ErrDuplicate` by default. */
  readonly lastWins?: boolean;
  /** Gives up: `ErrAborted`, whose `cause` is the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Options of {@link Gpu.loadParams}. */
export interface LoadOptions extends ScanOptions {
  /** The most bytes that all arrays may take together: `ErrTooLarge` before memory is taken for more. */
  readonly memoryLimit?: number;
  /** Called after each part that was read. `total` is there where the size of the file is known. What it throws ends the load. */
  readonly onProgress?: (progress: { readonly loaded: number; readonly total: number | undefined }) => void;
}

/** Options of {@link Gpu.saveParams}. */
export interface SaveOptions {
  /** Where the file goes. It is closed in the end, and aborted if that is not reached. */
  readonly to?: WritableStream<Uint8Array>;
  /** What is returned: a Blob, or a stream from which the file is read while it is made. "blob" by default. */
  readonly type?: "blob" | "stream";
  /** Accepts names that occur more than once: the last one is written. `ErrDuplicate` by default. */
  readonly lastWins?: boolean;
  /** Gives the call up: `ErrAborted`, whose `cause` is the signal's reason. */
  readonly signal?: AbortSignal;
}

/** An array as a file describes it. */
export interface ParamInfo {
  /** Bytes that are not UTF-8 are lone surrogates U+DC80 to U+DCFF, as Python's surrogateescape makes them. */
  readonly name: string;
  /**
   * The element type by NumPy's name where there is one: "float32", "int8", "bool", "bfloat16", "float8_e4m3fn"; "uint1" is TVM's
   * older bool of a byte per element, and "code99_8" is what nobody knows.
   */
  readonly dtype: string;
  /** No dimension: a single element. */
  readonly shape: readonly number[];
  /** Of the data from the start of the file. */
  readonly offset: number;
  /** Of the data. */
  readonly nbytes: number;
}

/** Memory to be saved as an array, row by row. */
export interface ParamData {
  /** The elements, row by row. */
  readonly data: ArrayBufferLike | ArrayBufferView;
  /** The lengths of the dimensions. */
  readonly shape: readonly number[];
  /**
   * The typed array's own by default; a Uint16Array is "uint16". A Uint8Array, a DataView and an ArrayBuffer may be said to be of
   * any type of {@link ParamInfo.dtype}, a Uint16Array also "float16" or "bfloat16".
   */
  readonly dtype?: string;
}

/**
 * The elements of an array: of float16 as {@link Float16Elements}, of bool and of all types that JavaScript has no typed array for
 * their bytes.
 */
export type ParamElements =
  | Elements | Float64Array | Int8Array | Int16Array | Uint8Array | Uint16Array | BigInt64Array | BigUint64Array;

/** The arrays of a file in its order, by name. Close it when done: that closes them all. */
export class Params {
  private constructor();
  /**
   * How many arrays there are.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * params.size; // 1
   */
  readonly size: number;
  /**
   * The names of the arrays, in their order.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * params.names; // ["w"]
   */
  readonly names: string[];
  /**
   * Whether there is an array of that name.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * params.has("w"); // true
   */
  has(name: string): boolean;
  /**
   * The array of a name, undefined if there is none.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * params.get("w")?.shape; // [1, 2]
   */
  get(name: string): Param | undefined;
  /**
   * The names and arrays in their order.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * for (const [name, param] of params) console.log(name, param.shape);
   */
  [Symbol.iterator](): IterableIterator<[name: string, param: Param]>;
  /**
   * Closes all arrays.
   *
   * @example
   * const params = await gpu.loadParams(await gpu.saveParams([["w", gpu.ones(1, 2)]]));
   * params.close();
   */
  close(): void;
  /**
   * Closes all arrays at the end of the block that declares them with `using`.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   */
  [Symbol.dispose](): void;
}

/** An array of any number of dimensions in memory of the device; see {@link Gpu.loadParams}. */
export class Param {
  private constructor();
  /**
   * The name in the file.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * w?.name; // "w"
   */
  readonly name: string;
  /**
   * The element type: see {@link ParamInfo.dtype}.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * w?.dtype; // "float32"
   */
  readonly dtype: string;
  /**
   * The lengths of the dimensions.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * w?.shape; // [1, 2]
   */
  readonly shape: readonly number[];
  /**
   * The bytes of the elements.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * w?.nbytes; // 8
   */
  readonly nbytes: number;
  /**
   * Whether the array was closed, or the Gpu was.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * w?.closed; // false
   */
  readonly closed: boolean;
  /**
   * Brings the elements back, row by row.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * (await w?.read())?.length; // 2
   */
  read(options?: WaitOptions): Promise<ParamElements>;
  /**
   * The array as a matrix of the same memory: one of two dimensions, or of one, which becomes a row; `ErrShape` for others, which
   * {@link Param.tensor} has, and `ErrUnsupported` for element types that matrices do not have. What is assigned to it changes the
   * array. It cannot be resized.
   * Close it when done; the memory stays until both are closed.
   *
   * Shapes: `n` -> `1 x n`, `m x n` -> `m x n`.
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * await w?.matrix<"float32">().mul(2).read(); // [6, 8]
   */
  matrix<T extends DType = any>(): Matrix<T>;
  /**
   * The array as a tensor of the same memory, whose shape is the file's; `ErrUnsupported` for element types that matrices do not have.
   * Close it when done; the memory stays until both are closed.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.ones(2, 12).tensor(2, 2, 2, 3)]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * await w?.tensor().sum().value(); // 24
   */
  tensor<T extends DType = any>(): Tensor<T>;
  /**
   * Gives the array up; matrices of it keep the memory until they are closed.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * const w = params.get("w");
   * w?.close();
   */
  close(): void;
  /**
   * Closes the array at the end of the block that declares it with `using`.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.matrix(1, 2, [3, 4])]]);
   * using params = await gpu.loadParams(file);
   * using w = params.get("w");
   */
  [Symbol.dispose](): void;
}
