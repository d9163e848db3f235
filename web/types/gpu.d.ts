// SPDX-License-Identifier: Apache-2.0

import type { Cruncher, CruncherOptions } from "./cruncher.js";
import type { AnyTypedArray, ClassDTypes, ClassesOf, DType, NestedNumbers, Numbers, RawMemory, Row, TypedArray, Values } from "./elements.js";
import type { SubletError } from "./errors.js";
import type { FileArrays, LoadFileOptions, NamedArrays, Savable, SaveFileOptions } from "./files.js";
import type { Graph } from "./graph.js";
import type { Expr, Fn, FromBufferOptions, Matrix, MatrixOptions, Operand, WaitOptions, WrapOptions } from "./matrix.js";
import type { NN } from "./nn.js";
import type { NumPyFunctions } from "./numpy.js";
import type { GpuOperations } from "./operations.js";
import type { LuminanceOptions, Picture, PictureOptions } from "./pictures.js";
import type { FileSource, LoadOptions, Param, ParamData, ParamInfo, Params, SaveOptions, ScanOptions } from "./params.js";
import type { Recording } from "./recording.js";
import type { Leak, Scope } from "./scope.js";
import type { Sparse, SparseDType, SparseEntries, SparseFormat, SparseMemory, SparseParts } from "./sparse.js";
import type { Tensor, TensorOperand } from "./tensor.js";
import type { MatrixMessage } from "./transfer.js";

/** A WebAssembly program of the package: its address, a response, its bytes or the module. */
export type Program = string | URL | BufferSource | WebAssembly.Module | Response | PromiseLike<Response>;

/** Options of {@link init}. */
export interface InitOptions {
  /**
   * What to compute on. "auto", the default, is "webgpu" where the browser has a GPU for it, and "simd" otherwise: {@link Info.driver}
   * tells which. "webgpu" takes any adapter of WebGPU, also one that computes on the CPU (SwiftShader, llvmpipe), or rejects with
   * `ErrNoAdapter`, before any program is loaded. "simd" computes on the CPU, by WebAssembly with instructions for vectors, in every page and
   * in Node. A GPUDevice of yours: buffers made on it can be wrapped, and closing leaves it alone.
   */
  readonly device?: "auto" | "webgpu" | "simd" | GPUDevice;
  /**
   * The program for WebGPU. The package's own `sublet.wasm` by default. The rest of it, which a page loads after its first result, comes from
   * beside the address (`sublet-rest.wasm`), or is the second of a pair.
   */
  readonly wasm?: Program | readonly [first: Program, rest: Program];
  /** The program for "simd" and its rest. The package's own `sublet-simd.wasm` by default. Only the one of both that is needed is loaded. */
  readonly simdWasm?: Program | readonly [first: Program, rest: Program];
  /**
   * How many threads compute for "simd", 1 to 64: as many as there are cores by default, 16 at most. More than one needs shared memory, which
   * Node has, and pages that are {@link https://developer.mozilla.org/docs/Web/API/Window/crossOriginIsolated isolated from other origins}.
   * Elsewhere, and for a `simdWasm` that is a WebAssembly.Module already, there is one. {@link Info.threads} tells.
   */
  readonly threads?: number;
  /** Which of several GPUs to take. The fastest by default. */
  readonly power?: "high-performance" | "low-power";
  /**
   * Logs what the device does by `console.debug`, losses and refusals by `console.warn`: "calls" are buffers, transfers and batches,
   * "kernels" also each kernel compiled and each launch, "wgsl" also their source. `globalThis.SUBLET_DEBUG` has the same effect where
   * this is absent. "leaks" keeps the stack where each matrix was made, see {@link Gpu.leaks}, and warns of those that are open at
   * {@link Gpu.close}, or that were forgotten and collected. Nothing by default, at no cost.
   */
  readonly debug?: "calls" | "kernels" | "wgsl" | "leaks" | "";
  /** The program behind {@link Gpu.cruncher}, loaded with the first one. The package's `sublet-cruncher.wasm` by default. */
  readonly cruncherWasm?: Program;
  /** Gives up: `ErrAborted`, whose `cause` is the signal's reason. What is being compiled then is there for the next call. */
  readonly signal?: AbortSignal;
}

/**
 * Loads the program and opens a device. Each call makes one of its own.
 *
 * Rejects with `ErrNoAdapter` where there is no such device, as in an engine whose WebAssembly has no instructions for vectors, and with
 * `ErrInvalid` when the program cannot be loaded: the message has its address, the status and the media type of the answer, or what
 * forbids it. A later call tries again.
 *
 * @example
 * using gpu = await init({ device: "simd" });
 * await gpu.ones(2, 2).sum().value(); // 4
 */
export function init(options?: InitOptions): Promise<Gpu>;

/** What the device is. As a text it is one line. */
export interface Info {
  /** "browser" for WebGPU, "simd" for the CPU. */
  readonly driver: string;
  /** What the device calls itself. */
  readonly name: string;
  /** Who made it. */
  readonly vendor: string;
  /** The interface beneath, such as "webgpu". */
  readonly backend: string;
  /** "discrete", "integrated", "virtual", "cpu" or "unknown": "cpu" for "simd" and for software adapters of WebGPU. */
  readonly kind: string;
  /** How many threads compute, the page's own included: 1 where that is not "simd", or {@link InitOptions.threads} cannot be had. */
  readonly threads: number;
  /** The features of WebGPU that it was opened with. */
  readonly features: readonly string[];
  /** What it can do at most. */
  readonly limits: {
    /** Bytes of the largest buffer. */
    readonly maxBufferSize: number;
    /** Bytes of it that one kernel can see at a time. */
    readonly maxBindingSize: number;
    /** Buffers that one kernel can see. */
    readonly maxStorageBuffers: number;
    /** Workgroups of one launch in one dimension. */
    readonly maxWorkgroups: number;
  };
}

/** What a device has done since it was opened and what it holds. Bytes are those of the data. */
export interface Stats {
  /** To the device. */
  readonly bytesUp: number;
  /** From the device. */
  readonly bytesDown: number;
  /** Batches of commands that were handed to the device. */
  readonly submissions: number;
  /** Kernels launched. */
  readonly dispatches: number;
  /** Kernels compiled because they were needed. */
  readonly compilations: number;
  /** Kernels compiled ahead of need, in the background. */
  readonly prepared: number;
  /** Kernels that were there already. */
  readonly cacheHits: number;
  /** Of buffers in use, external ones not counted. */
  readonly liveBytes: number;
  /** The most that liveBytes has been. */
  readonly peakBytes: number;
  /** Of closed buffers kept for reuse. */
  readonly pooledBytes: number;
  /** Buffers in use, external ones not counted. */
  readonly buffers: number;
  /** Kernels kept for reuse. */
  readonly kernels: number;
}

export interface Gpu extends GpuOperations, NumPyFunctions {}

/** A device, and where matrices are made. Close it when done; `using` does so. */
export class Gpu {
  private constructor();

  /**
   * What the device is.
   *
   * @example
   * gpu.info.limits.maxBufferSize; // in bytes
   */
  readonly info: Info;
  /**
   * The device beneath, for work of your own; null for "simd". What was called before is queued on it once
   * {@link Matrix.buffer} or {@link Gpu.sync} is fulfilled. It is another one after {@link Gpu.reopen}.
   *
   * @example
   * const { device } = gpu;
   * if (device) gpu.wrapBuffer(buffer, 1024, 4); // one that this device made
   */
  readonly device: GPUDevice | null;
  /**
   * Fulfilled when the device is lost. Later calls then fail with `ErrDeviceLost`, until {@link Gpu.reopen}, which makes this a new promise.
   *
   * @example
   * void gpu.lost.then(({ message }) => console.warn(message));
   */
  readonly lost: Promise<{ readonly reason: string; readonly message: string }>;

  /**
   * Makes a matrix of its own memory. The values, row by row (column by column, in column order) and without gaps, or lists of the
   * rows, are copied at once; without any the elements are 0. The element type is that of a typed array, or float32; a `dtype` converts.
   *
   * Shapes: -> `rows x cols`, or as many rows as there are lists.
   * @example
   * await gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]).read(); // [1, 2, 3, 4, 5, 6]
   * await gpu.matrix([[1, 2], [3, 4]]).T.read(); // [1, 3, 2, 4]
   * await gpu.matrix(1, 2, new Int32Array([7, 8])).read(); // [7, 8]
   */
  matrix<T extends DType = "float32">(rows: number, cols: number, values?: Numbers | readonly Numbers[], options?: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix with a copy of values, of sizes or of lists of its rows. */
  matrix<C extends keyof ClassDTypes>(rows: number, cols: number, values: TypedArray<C> | readonly TypedArray<C>[], options?: MatrixOptions<never>): Matrix<ClassDTypes[C]>;
  /** Makes a matrix with a copy of values, of sizes or of lists of its rows. */
  matrix<T extends DType>(rows: number, cols: number, values: AnyTypedArray | Values | readonly Row[], options: MatrixOptions<T> & { readonly dtype: T }): Matrix<T>;
  /** Makes a matrix with a copy of values, of sizes or of lists of its rows. */
  matrix<T extends DType = "float32">(rows: number, cols: number, options: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix with a copy of values, of sizes or of lists of its rows. */
  matrix<T extends DType = "float32">(rows: readonly Numbers[], options?: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix with a copy of values, of sizes or of lists of its rows. */
  matrix<C extends keyof ClassDTypes>(rows: readonly TypedArray<C>[], options?: MatrixOptions<never>): Matrix<ClassDTypes[C]>;
  /** Makes a matrix with a copy of values, of sizes or of lists of its rows. */
  matrix<T extends DType>(rows: readonly (Row | AnyTypedArray)[], options: MatrixOptions<T> & { readonly dtype: T }): Matrix<T>;
  /**
   * Makes a matrix of zeros.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * await gpu.zeros(1, 3).read(); // [0, 0, 0]
   */
  zeros<T extends DType = "float32">(rows: number, cols: number, options?: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix of zeros. */
  zeros<T extends DType = "float32">(shape: readonly [rows: number, cols: number], options?: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /**
   * Makes a matrix of ones.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * await gpu.ones(1, 3, { dtype: "int32" }).read(); // [1, 1, 1]
   */
  ones<T extends DType = "float32">(rows: number, cols: number, options?: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix of ones. */
  ones<T extends DType = "float32">(shape: readonly [rows: number, cols: number], options?: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /**
   * Makes a matrix of one value.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * await gpu.full(1, 3, 0.5).read(); // [0.5, 0.5, 0.5]
   */
  full<T extends DType = "float32">(rows: number, cols: number, value: number, options?: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix of one value. */
  full<T extends DType = "float32">(shape: readonly [rows: number, cols: number], value: number, options?: MatrixOptions<T>): Matrix<NoInfer<T>>;
  /**
   * The identity matrix.
   *
   * Shapes: -> `n x n`.
   * @example
   * await gpu.eye(2).read(); // [1, 0, 0, 1]
   */
  eye<T extends DType = "float32">(n: number, options?: MatrixOptions<T>): Matrix<NoInfer<T>>;

  /**
   * Makes a matrix of memory of yours; nothing is copied now. An evaluation that needs the elements sends them to the GPU,
   * once: it may do so until a `read` or `sync` that you called later is done, so leave the memory alone meanwhile. After
   * writing to it call {@link Matrix.touch}. Results come back at {@link Matrix.sync}. The element type is the typed array's
   * own; for an ArrayBuffer or a DataView it is float32 unless `dtype` says otherwise.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * const mine = new Float32Array([1, 2, 3, 4]), a = gpu.wrap(mine, 2, 2);
   * a.assign(a.mul(10));
   * await a.sync();
   * mine; // [10, 20, 30, 40]
   */
  wrap<T extends DType = "float32">(data: RawMemory, rows: number, cols: number, options?: WrapOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix of memory of yours; nothing is copied now. */
  wrap<T extends DType = "float32">(data: RawMemory, shape: readonly [rows: number, cols: number], options?: WrapOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix of memory of yours; nothing is copied now. */
  wrap<T extends DType>(data: TypedArray<ClassesOf[T]>, rows: number, cols: number, options: WrapOptions<T> & { readonly dtype: T }): Matrix<T>;
  /** Makes a matrix of memory of yours; nothing is copied now. */
  wrap<T extends DType>(data: TypedArray<ClassesOf[T]>, shape: readonly [rows: number, cols: number], options: WrapOptions<T> & { readonly dtype: T }): Matrix<T>;
  /** Makes a matrix of memory of yours; nothing is copied now. */
  wrap<C extends keyof ClassDTypes>(data: TypedArray<C>, rows: number, cols: number, options?: WrapOptions<never>): Matrix<ClassDTypes[C]>;
  /** Makes a matrix of memory of yours; nothing is copied now. */
  wrap<C extends keyof ClassDTypes>(data: TypedArray<C>, shape: readonly [rows: number, cols: number], options?: WrapOptions<never>): Matrix<ClassDTypes[C]>;
  /**
   * Makes a matrix of a GPU buffer of yours, made on {@link Gpu.device} with the usages STORAGE, COPY_SRC and COPY_DST.
   * It is used in place and never destroyed. Its size is a multiple of 4 bytes: WebGPU reads and binds nothing else.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * const particles = gpu.wrapBuffer(buffer, 1024, 4);
   * particles.assign(particles.add(0.01)); // your render pass finds the results in the buffer
   */
  wrapBuffer<T extends DType = "float32">(buffer: GPUBuffer, rows: number, cols: number, options?: WrapOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix of a GPU buffer of yours. */
  wrapBuffer<T extends DType = "float32">(buffer: GPUBuffer, shape: readonly [rows: number, cols: number], options?: WrapOptions<T>): Matrix<NoInfer<T>>;
  /**
   * Makes a matrix of zeros in memory that JavaScript can reach as well: see {@link Matrix.access}.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * const a = gpu.map(1, 2);
   * await a.access(true, (data) => data.set([3, 4]));
   * await a.read(); // [3, 4]
   */
  map<T extends DType = "float32">(rows: number, cols: number, options?: Pick<MatrixOptions<T>, "dtype" | "order">): Matrix<NoInfer<T>>;
  /** Makes a matrix of zeros in memory that JavaScript can reach as well. */
  map<T extends DType = "float32">(shape: readonly [rows: number, cols: number], options?: Pick<MatrixOptions<T>, "dtype" | "order">): Matrix<NoInfer<T>>;
  /**
   * Makes a matrix from memory, as the flags among the options say: of the memory itself, or of a copy of what `offset` and
   * `stride` place in it. A copy has no gaps and its own memory.
   *
   * Throws `ErrInvalid` for flags that exclude each other or do not fit the memory, and for a `release` of memory that is
   * copied; `ErrShort` for too little memory. Nothing is taken over then.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * const table = new Float32Array([1, 2, 9, 3, 4, 9]);
   * await gpu.fromBuffer(table, 2, 2, { stride: 3 }).read(); // [1, 2, 3, 4]
   */
  fromBuffer<T extends DType = "float32">(data: RawMemory | GPUBuffer, rows: number, cols: number, options?: FromBufferOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix from memory, as the flags among the options say. */
  fromBuffer<T extends DType = "float32">(data: RawMemory | GPUBuffer, shape: readonly [rows: number, cols: number], options?: FromBufferOptions<T>): Matrix<NoInfer<T>>;
  /** Makes a matrix from memory, as the flags among the options say. */
  fromBuffer<T extends DType>(data: TypedArray<ClassesOf[T]>, rows: number, cols: number, options: FromBufferOptions<T> & { readonly dtype: T }): Matrix<T>;
  /** Makes a matrix from memory, as the flags among the options say. */
  fromBuffer<T extends DType>(data: TypedArray<ClassesOf[T]>, shape: readonly [rows: number, cols: number], options: FromBufferOptions<T> & { readonly dtype: T }): Matrix<T>;
  /** Makes a matrix from memory, as the flags among the options say. */
  fromBuffer<C extends keyof ClassDTypes>(data: TypedArray<C>, rows: number, cols: number, options?: FromBufferOptions<never>): Matrix<ClassDTypes[C]>;
  /** Makes a matrix from memory, as the flags among the options say. */
  fromBuffer<C extends keyof ClassDTypes>(data: TypedArray<C>, shape: readonly [rows: number, cols: number], options?: FromBufferOptions<never>): Matrix<ClassDTypes[C]>;

  /**
   * Makes a matrix of what {@link Matrix.detach} made of one in another thread, or elsewhere. The elements of an ArrayBuffer are copied to
   * this device. A SharedArrayBuffer is used itself, as by {@link Gpu.wrap}: attach one message in both threads, call
   * {@link Matrix.touch} after the other has written, and let Atomics say who may.
   *
   * Shapes: -> that of the matrix.
   * @example
   * const message = await gpu.matrix(1, 2, [1, 2]).detach(); // elsewhere, to be posted
   * await gpu.attach(message).mul(2).read(); // [2, 4]
   */
  attach<T extends DType>(message: MatrixMessage<T>): Matrix<T>;

  /**
   * Makes a tensor: of values, the last dimension fastest, which are copied, or of the elements of a matrix, an expression or another
   * tensor, of which nothing is copied. `ErrShape` or `ErrShort` for another number of elements. Close one of values when done.
   *
   * Shapes: -> that shape, or that of arrays in arrays.
   * @example
   * gpu.tensor([[[1, 2]], [[3, 4]]]).shape; // [2, 1, 2]
   * const t = gpu.tensor([1, 2, 3, 4, 5, 6, 7, 8], [2, 2, 2]);
   * await t.sum(0).read(); // [6, 8, 10, 12]
   */
  tensor<T extends DType>(from: Expr<T> | Tensor<T>, shape: readonly number[], options?: { readonly dtype?: undefined }): Tensor<T>;
  /** Makes a tensor: of values, the last dimension fastest, or of the elements of a matrix or another tensor. */
  tensor<C extends keyof ClassDTypes>(from: TypedArray<C>, shape: readonly number[], options?: { readonly dtype?: undefined }): Tensor<ClassDTypes[C]>;
  /** Makes a tensor: of values, the last dimension fastest, or of the elements of a matrix or another tensor. */
  tensor<T extends DType>(from: AnyTypedArray | Expr<any> | Tensor<any>, shape: readonly number[], options: { readonly dtype: T }): Tensor<T>;
  /** Makes a tensor: of values, the last dimension fastest, or of the elements of a matrix or another tensor. */
  tensor<T extends DType = "float32">(from: Numbers | NestedNumbers[], shape: readonly number[], options?: { readonly dtype?: T }): Tensor<NoInfer<T>>;
  /** Makes a tensor: of values, the last dimension fastest, or of the elements of a matrix or another tensor. */
  tensor<T extends DType = "float32">(from: Numbers | NestedNumbers[], options?: { readonly dtype?: T }): Tensor<NoInfer<T>>;
  /**
   * Makes a tensor of a picture, height x width x channels, and of the luminance alone a matrix, height x width. Leave the picture alone until
   * the promise is fulfilled. With WebGPU the device copies the picture, nothing comes through JavaScript but an ImageData.
   *
   * `ErrInvalid` for an image or a video that is not loaded, or of another origin that does not allow it, `ErrClosed` for bitmaps and
   * frames that were closed, `ErrLimit` for more pixels on a side than the device's `maxTextureDimension2D`.
   *
   * Shapes: -> `height x width x channels`, of one channel `height x width`.
   * @example
   * const pixel = { data: new Uint8ClampedArray([255, 0, 0, 255]), width: 1, height: 1 };
   * await (await gpu.fromImage(pixel)).read(); // [1, 0, 0, 1]
   */
  fromImage<T extends "float32" | "uint8" = "float32">(source: Picture, options: LuminanceOptions & { readonly dtype?: T }): Promise<Matrix<NoInfer<T>>>;
  /** Makes a tensor of a picture, and of the luminance alone a matrix. */
  fromImage<T extends "float32" | "uint8" = "float32">(source: Picture, options?: PictureOptions & { readonly dtype?: T }): Promise<Tensor<NoInfer<T>>>;
  /**
   * Convolutions, pooling, batch normalisation, losses, embeddings, optimisers and quantisation, with gradients.
   *
   * @example
   * await gpu.nn.mse(gpu.matrix(1, 2, [1, 2]), gpu.matrix(1, 2, [1, 4])).value(); // 2
   */
  readonly nn: NN;

  /**
   * Makes a sparse matrix with a copy of its parts, which are checked: missing ones are `ErrNil`, too few or too many
   * `ErrShort` and `ErrShape`, indices beyond the dimensions `ErrIndex`, and what does not increase as it should `ErrSparse`.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * const s = gpu.sparse(2, 2, { format: "csr", values: [3, 4], indices: [1, 0], offsets: [0, 1, 2] });
   * await s.matmul(gpu.matrix(2, 1, [1, 2])).read(); // [6, 4]
   * const entries = gpu.sparse({ rows: [1, 0, 1], cols: [0, 1, 0], values: [4, 3, 5], shape: [2, 2] }); // those of one place are added up
   * await entries.read(); // [0, 3, 9, 0]
   */
  sparse<C extends "Float32Array" | "Int32Array" | "Uint32Array">(rows: number, cols: number, parts: SparseParts<never> & { readonly values: TypedArray<C> }): Sparse<ClassDTypes[C]>;
  /** Makes a sparse matrix with a copy of its parts, which are checked. */
  sparse<C extends "Float32Array" | "Int32Array" | "Uint32Array">(shape: readonly [rows: number, cols: number], parts: SparseParts<never> & { readonly values: TypedArray<C> }): Sparse<ClassDTypes[C]>;
  /** Makes a sparse matrix with a copy of its parts, which are checked. */
  sparse<T extends SparseDType = "float32">(rows: number, cols: number, parts: SparseParts<T>): Sparse<T>;
  /** Makes a sparse matrix with a copy of its parts, which are checked. */
  sparse<T extends SparseDType = "float32">(shape: readonly [rows: number, cols: number], parts: SparseParts<T>): Sparse<T>;
  /** Makes a sparse matrix ("csr") of entries with their rows and columns. */
  sparse<C extends "Float32Array" | "Int32Array" | "Uint32Array">(entries: SparseEntries<never> & { readonly values: TypedArray<C> }): Sparse<ClassDTypes[C]>;
  /** Makes a sparse matrix ("csr") of entries with their rows and columns. */
  sparse<T extends SparseDType = "float32">(entries: SparseEntries<T>): Sparse<T>;
  /**
   * Makes a sparse matrix of typed arrays of yours. The values are used as {@link Gpu.wrap} uses them; indices and offsets
   * are checked and copied now, and again at {@link Sparse.touch}. None of the three is ever resized.
   *
   * Shapes: -> `rows x cols`.
   * @example
   * const values = new Float32Array([3]), indices = new Int32Array([1]), offsets = new Int32Array([0, 1, 1]);
   * await gpu.wrapSparse(2, 2, { format: "csr", values, indices, offsets }).read(); // [0, 3, 0, 0]
   */
  wrapSparse<C extends "Float32Array" | "Int32Array" | "Uint32Array">(rows: number, cols: number, parts: SparseMemory & { readonly values: TypedArray<C> }): Sparse<ClassDTypes[C]>;
  /** Makes a sparse matrix of typed arrays of yours. */
  wrapSparse<C extends "Float32Array" | "Int32Array" | "Uint32Array">(shape: readonly [rows: number, cols: number], parts: SparseMemory & { readonly values: TypedArray<C> }): Sparse<ClassDTypes[C]>;
  /**
   * The elements that are not 0, by their bits: -0 and NaN are kept. Block columns are those with such an element. It reads
   * the whole matrix and goes through it on the CPU. "csc" by default.
   *
   * Shapes: `m x n` -> `m x n`.
   * @example
   * (await gpu.sparseFrom(gpu.matrix(2, 2, [0, 3, 0, 0]))).nnz; // 1
   */
  sparseFrom<T extends SparseDType>(x: Expr<T>, options?: WaitOptions & { readonly format?: SparseFormat }): Promise<Sparse<T>>;

  /**
   * Loads a parameter dictionary of TVM or CVM Runtime (.params). Each array is in memory of the device as soon as its data have
   * come; the file itself is never held. Errors of the file have an {@link SubletError.offset}; after any error, and after an
   * abort, nothing is left of the load.
   *
   * @example
   * using params = await gpu.loadParams(fetch("model.params"));
   * const weights = params.get("weights")?.matrix<"float32">();
   */
  loadParams(source: FileSource | PromiseLike<FileSource>, options?: LoadOptions): Promise<Params>;
  /**
   * What a parameter dictionary holds. Of a Blob and of memory only the headers are read, of anything else everything.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.ones(2, 3)]]);
   * (await gpu.scanParams(file))[0]?.shape; // [2, 3]
   */
  scanParams(source: FileSource | PromiseLike<FileSource>, options?: ScanOptions): Promise<ParamInfo[]>;
  /**
   * Saves arrays as a parameter dictionary, byte for byte as TVM writes it: loaded ones, matrices, expressions, and memory of
   * yours, under their names and in their order; a {@link Params} or a Map will do. Matrices and memory are read while the file
   * is written: leave both as they are until then. They may be closed.
   *
   * `ErrShort` and `ErrShape` mean that data do not fit their shape, `ErrType` a type that the format does not have.
   *
   * @example
   * const file = await gpu.saveParams([["w", gpu.ones(2, 3)], ["b", gpu.zeros(1, 3)]]);
   * using params = await gpu.loadParams(file);
   * params.names; // ["w", "b"]
   */
  saveParams(entries: Iterable<readonly [name: string, value: Param | Expr<any> | ParamData]>, options?: SaveOptions & { readonly to?: undefined; readonly type?: "blob" }): Promise<Blob>;
  saveParams(entries: Iterable<readonly [name: string, value: Param | Expr<any> | ParamData]>, options: SaveOptions & { readonly to?: undefined; readonly type: "stream" }): Promise<ReadableStream<Uint8Array>>;
  saveParams(entries: Iterable<readonly [name: string, value: Param | Expr<any> | ParamData]>, options: SaveOptions & { readonly to: WritableStream<Uint8Array>; readonly type?: undefined }): Promise<void>;

  /**
   * Loads a file of NumPy (.npy, .npz), of safetensors or of the Matrix Market (.mtx), from an address, a Response, a Blob, memory or a
   * stream. An array of at most two dimensions is a {@link Matrix}, one dimension a row; one of more is a {@link Tensor}; coordinates are
   * a {@link Sparse} of format "csr", as is what SciPy's save_npz writes of csr, csc and coo, unless `format` or `names` are given. A file with names is a {@link FileArrays}, which closes them all. Big-endian numbers and Fortran's
   * order are converted.
   *
   * What is wrong with a file is `ErrFormat`, `ErrTruncated`, `ErrDuplicate`, `ErrType` or `ErrTooLarge`, with
   * {@link SubletError.offset}; nothing is left of the load then. A source that fails is `ErrStream`.
   *
   * @example
   * const file = await gpu.save({ w: gpu.matrix(1, 2, [3, 4]) }, { format: "safetensors" });
   * using weights = await gpu.load(file, { format: "safetensors", names: ["w"] });
   * await weights.get("w")?.read(); // [3, 4]
   */
  load<T extends DType = any>(source: string | URL | FileSource | PromiseLike<FileSource>, options: LoadFileOptions<T> & { readonly format: "npz" | "safetensors" }): Promise<FileArrays<T>>;
  load<T extends DType = any>(source: string | URL | FileSource | PromiseLike<FileSource>, options: LoadFileOptions<T> & { readonly format: "npy" }): Promise<Matrix<T> | Tensor<T>>;
  load<T extends DType = any>(source: string | URL | FileSource | PromiseLike<FileSource>, options: LoadFileOptions<T> & { readonly format: "mtx" }): Promise<Matrix<T> | Sparse<T>>;
  load<T extends DType = any>(source: string | URL | FileSource | PromiseLike<FileSource>, options?: LoadFileOptions<T>): Promise<Matrix<T> | Tensor<T> | Sparse<T> | FileArrays<T>>;
  /**
   * Saves arrays with their names in a file of "npz" or "safetensors", or one alone in one of "npy" or "mtx", where a sparse matrix is
   * saved by its entries. What is called later does not change what is saved. Memory of yours is copied at once.
   *
   * An element type that the format does not have is `ErrType`, a name that occurs twice `ErrDuplicate`.
   *
   * @example
   * const x = gpu.matrix(2, 2, [1, 2, 3, 4]);
   * const file = await gpu.save({ x, mean: x.mean(0) }, { format: "npz" });
   * const link = URL.createObjectURL(file);
   */
  save(arrays: NamedArrays, options: SaveFileOptions & { readonly format: "npz" | "safetensors" }): Promise<Blob>;
  save(array: Savable, options: SaveFileOptions & { readonly format: "npy" | "mtx" }): Promise<Blob>;

  /**
   * Makes an element-wise function of WGSL text: `fn name(x: f32, ...) -> f32 { ... }`, or with i32 or u32. The text may
   * hold further functions and constants; the first function is the one that is called.
   *
   * @example
   * const half = gpu.fn("fn half(x: f32) -> f32 { return 0.5 * x; }");
   * await gpu.matrix(1, 2, [1, 2]).apply(half).read(); // [0.5, 1]
   */
  fn(wgsl: string): Fn;
  /**
   * Applies a function of yours to its operands; a number may be the first as well.
   *
   * Shapes: `m x n`, `m x n`, ... -> `m x n`; those of 1 stretch.
   * @example
   * const mix = gpu.fn("fn mixed(x: f32, y: f32) -> f32 { return 0.5 * (x + y); }");
   * await gpu.apply(mix, 0, gpu.matrix(1, 2, [1, 2])).read(); // [0.5, 1]
   */
  apply<T extends DType>(fn: Fn, ...args: Operand<T>[]): Expr<T>;
  apply<T extends DType>(fn: Fn, ...args: TensorOperand<T>[]): Tensor<T>;

  /**
   * The transpose: of a matrix a view, of a tensor the dimensions in reverse order.
   *
   * Shapes: `m x n` -> `n x m`.
   * @example
   * await gpu.transpose(gpu.matrix(2, 2, [1, 2, 3, 4])).read(); // [1, 3, 2, 4]
   */
  transpose<T extends DType>(a: Expr<T>): Expr<T>;
  transpose<T extends DType>(a: Tensor<T>): Tensor<T>;

  /**
   * Makes a {@link Cruncher}: kernels of yours, run on several devices at once as if these were one. The source has functions
   * `fn name(i: u32) { ... }` of an item's number, over arrays and scalars that it does not declare but calls by the names
   * that they are given, or is a complete WGSL module. The program for it is loaded with the first one.
   *
   * Rejects with `ErrKernel` and the line for a source that is neither. What only the compiler of the device finds is `ErrCompile`, at
   * the lines of the source, from the first call of the kernel. It runs without WebGPU, too.
   *
   * @example
   * using cr = await gpu.cruncher("fn double(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]);
   * await cr.compute(1, "double", { global: 3 }, cr.array("x", mine));
   * mine; // [2, 4, 6]
   */
  cruncher(wgsl: string, options?: CruncherOptions): Promise<Cruncher>;

  /**
   * Fulfilled when everything called before is done. Rejects with the first error of a computation whose result nobody
   * has read.
   *
   * @example
   * const a = gpu.ones(2, 2).add(1).eval();
   * await gpu.sync(); // it is computed now
   */
  sync(options?: WaitOptions): Promise<void>;
  /**
   * Hands what is queued to the GPU now, as far as it does not wait for the compiler. It also happens by itself, at the
   * end of the current task at the latest.
   *
   * @example
   * const a = gpu.ones(2, 2).add(1).eval();
   * gpu.flush();
   */
  flush(): void;
  /**
   * Brings a lost device back: call it once {@link Gpu.lost} is fulfilled. Where the device is not lost nothing happens. One
   * that `init` was given cannot be opened again: `device` is its successor, with limits and features as good.
   *
   * What the page has comes back by itself when it is next used: wrapped memory and mapped matrices whose results were synced,
   * sparse structures, functions. What only the device had, such as the elements of {@link Gpu.matrix}, is `ErrDeviceLost` until
   * all of it is assigned anew, or {@link Matrix.touch} says that wrapped memory is right. GPU buffers of yours are gone: wrap
   * new ones. A {@link Cruncher} goes on with its other devices; make a new one, with arrays of its own, for the new device.
   *
   * Rejects with `ErrInvalid` where a successor is missing, and with `ErrLimit` or `ErrNoAdapter` where there is no device that
   * is as good. The device is lost then as before.
   *
   * @example
   * void gpu.lost.then(() => gpu.reopen());
   */
  reopen(options?: WaitOptions & { readonly device?: GPUDevice }): Promise<void>;
  /**
   * What the device has done and holds: bytes moved, kernels launched, memory in use.
   *
   * @example
   * const before = gpu.stats().bytesDown;
   * await gpu.ones(2, 2).read();
   * gpu.stats().bytesDown - before; // 16
   */
  stats(): Stats;
  /**
   * Makes an empty {@link Graph}: tasks that run when their inputs are there, with channels of bounded length between them. What does that is
   * loaded with the first graph.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("layer", ({ x, w }) => x.matmul(w).relu(), { inputs: ["x"], sticky: ["w"], outputs: ["y"] });
   * graph.task("total", async ({ y }) => y.sum().value(), { inputs: ["y"], outputs: ["n"] });
   * graph.connect("layer.y", "total.y").set("layer.w", gpu.eye(2));
   * const x = graph.input("layer.x"), n = graph.output<number>("total.n");
   * graph.run();
   * await x.push(gpu.matrix([[3, 4], [-1, -2]]));
   * await n.pull(); // 7
   */
  graph(): Promise<Graph>;
  /**
   * Calls a function once to find out what it assigns, computes nothing, and makes a {@link Recording} of it that computes it as often as
   * you like, at next to no cost for this thread. What is recorded is `assign`, and `eval`, whose matrix has its values after the first run.
   * It suits what is done many times with other data: the steps of a training or a simulation, a frame.
   *
   * The function runs at once and must not be asynchronous. Matrices that it makes in other ways, such as by `gpu.ones`, are made once.
   * Matrices that it closes belong to the recording. What is not recorded is `ErrUnsupported`: `read`, `set`, `touch`, another size, the steps
   * of optimisers. What the function throws goes on. The promise waits for the compiler; the signal gives that up.
   *
   * @example
   * const x = gpu.zeros(1, 2), w = gpu.matrix(2, 2, [1, 2, 3, 4]);
   * const layer = await gpu.record(() => x.matmul(w).relu().eval());
   * x.set([1, 1]);
   * await layer.run().read(); // [4, 6]
   * x.set([1, -1]);
   * await layer.run().read(); // [0, 0]
   */
  record<T>(fn: () => T, options?: WaitOptions): Promise<Recording<T>>;
  /**
   * Calls a function and closes everything that it made with this device, except what it returns: a matrix, a tensor, or an array, a
   * Map or an object of these. What it throws goes on, with everything closed.
   *
   * An asynchronous function has the same for what it makes before its first `await`. What is made after that belongs to nobody, as
   * other functions run in between, until the scope is told: by {@link Scope.use}, or {@link Scope.run} around several calls. It ends
   * when the promise is settled. So scopes may overlap in time in any order, and none closes what another function made.
   *
   * What a scope returns belongs to the scope around it if its function is running, and to nobody otherwise. An expression that is
   * returned must not read what was made in the scope: `ErrClosed`; return its `eval()`.
   *
   * @example
   * const mean = gpu.scope(() => {
   *   const a = gpu.matrix(2, 2, [1, 2, 3, 4]), b = a.matmul(a).eval(); // closed
   *   return b.mean(0).eval(); // stays: 1x2
   * });
   * await mean.read(); // [11, 16]
   */
  scope<T>(fn: (scope: Scope) => T): T;
  /**
   * What is open just now, in the order in which it was made, for a device of `init({debug: "leaks"})`; `ErrUnsupported` for others.
   *
   * @example
   * using gpu = await init({ debug: "leaks" });
   * for (const { kind, shape, bytes, stack } of gpu.leaks()) console.log(kind, shape, bytes, stack);
   */
  leaks(): Leak[];
  /**
   * What the device is, in one line.
   *
   * @example
   * console.log(String(gpu));
   */
  toString(): string;
  /**
   * Ends everything made with this device. Whoever still waits is rejected with `ErrClosed`.
   *
   * @example
   * const gpu = await init({ device: "simd" });
   * gpu.close();
   */
  close(): void;
  /**
   * Closes the device at the end of the block that declares it with `using`.
   *
   * @example
   * using gpu = await init({ device: "simd" });
   */
  [Symbol.dispose](): void;
}
