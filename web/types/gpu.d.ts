// SPDX-License-Identifier: Apache-2.0

import type { Cruncher, CruncherOptions } from "./cruncher.js";
import type { DType, Values } from "./elements.js";
import type { SubletError } from "./errors.js";
import type { FileArrays, LoadFileOptions, NamedArrays, Savable, SaveFileOptions } from "./files.js";
import type { Expr, Fn, FromBufferOptions, Matrix, MatrixOptions, Operand, WaitOptions, WrapOptions } from "./matrix.js";
import type { NN } from "./nn.js";
import type { GpuOperations } from "./operations.js";
import type { FileSource, LoadOptions, Param, ParamData, ParamInfo, Params, SaveOptions, ScanOptions } from "./params.js";
import type { Leak, Scope } from "./scope.js";
import type { Sparse, SparseFormat, SparseMemory, SparseParts } from "./sparse.js";
import type { Tensor, TensorOperand } from "./tensor.js";
import type { MatrixMessage } from "./transfer.js";

/** A WebAssembly program of the package: its address, a response, its bytes or the module. */
export type Program = string | URL | BufferSource | WebAssembly.Module | Response | PromiseLike<Response>;

/** Options of {@link init}. */
export interface InitOptions {
  /**
   * What to compute on. "auto", the default, is "webgpu" where the browser has a GPU for it, and "simd" otherwise: {@link Info.driver}
   * tells which. "webgpu" takes any adapter of WebGPU, also one that computes on the CPU (SwiftShader, llvmpipe), or rejects with
   * `ErrNoAdapter`. "simd" computes on the CPU, by WebAssembly with instructions for vectors, in every page and in Node. A GPUDevice of
   * yours: buffers made on it can be wrapped, and closing leaves it alone.
   */
  readonly device?: "auto" | "webgpu" | "simd" | GPUDevice;
  /** The program for WebGPU. The package's own `sublet.wasm` by default. */
  readonly wasm?: Program;
  /** The program for "simd". The package's own `sublet-simd.wasm` by default. Only the one of both that is needed is loaded. */
  readonly simdWasm?: Program;
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
 * `ErrInvalid` when the program cannot be loaded; a later call tries again.
 */
export function init(options?: InitOptions): Promise<Gpu>;

/** What the device is. */
export interface Info {
  /** "browser" for WebGPU, "simd" for the CPU. */
  readonly driver: string;
  readonly name: string;
  readonly vendor: string;
  readonly backend: string;
  /** "discrete", "integrated", "virtual", "cpu" or "unknown": "cpu" for "simd" and for software adapters of WebGPU. */
  readonly kind: string;
  /** How many threads compute, the page's own included: 1 where that is not "simd", or {@link InitOptions.threads} cannot be had. */
  readonly threads: number;
  readonly features: readonly string[];
  readonly limits: {
    /** Bytes of the largest buffer. */
    readonly maxBufferSize: number;
    /** Bytes of it that one kernel can see at a time. */
    readonly maxBindingSize: number;
    readonly maxStorageBuffers: number;
    readonly maxWorkgroups: number;
  };
}

/** What a device has done since it was opened and what it holds. Bytes are those of the data. */
export interface Stats {
  /** To the device. */
  readonly bytesUp: number;
  /** From the device. */
  readonly bytesDown: number;
  readonly submissions: number;
  readonly dispatches: number;
  /** Kernels compiled because they were needed. */
  readonly compilations: number;
  /** Kernels compiled ahead of need, in the background. */
  readonly prepared: number;
  readonly cacheHits: number;
  /** Of buffers in use, external ones not counted. */
  readonly liveBytes: number;
  readonly peakBytes: number;
  /** Of closed buffers kept for reuse. */
  readonly pooledBytes: number;
  readonly buffers: number;
  readonly kernels: number;
}

export interface Gpu extends GpuOperations {}

/** A device, and where matrices are made. Close it when done; `using` does so. */
export class Gpu {
  private constructor();

  readonly info: Info;
  /**
   * The device beneath, for work of your own; null for "simd". What was called before is queued on it once
   * {@link Matrix.buffer} or {@link Gpu.sync} is fulfilled. It is another one after {@link Gpu.reopen}.
   */
  readonly device: GPUDevice | null;
  /** Fulfilled when the device is lost. Later calls then fail with `ErrDeviceLost`, until {@link Gpu.reopen}, which makes this a new promise. */
  readonly lost: Promise<{ readonly reason: string; readonly message: string }>;

  /**
   * Makes a matrix of its own memory. The values, row by row (column by column, in column order) and without gaps, are
   * copied at once; without any the elements are 0.
   */
  matrix(rows: number, cols: number, values?: Values, options?: MatrixOptions): Matrix;
  zeros(rows: number, cols: number, options?: MatrixOptions): Matrix;
  ones(rows: number, cols: number, options?: MatrixOptions): Matrix;
  full(rows: number, cols: number, value: number, options?: MatrixOptions): Matrix;
  /** The identity matrix. */
  eye(n: number, options?: MatrixOptions): Matrix;

  /**
   * Makes a matrix of memory of yours; nothing is copied now. An evaluation that needs the elements sends them to the GPU,
   * once: it may do so until a `read` or `sync` that you called later is done, so leave the memory alone meanwhile. After
   * writing to it call {@link Matrix.touch}. Results come back at {@link Matrix.sync}. The element type is the typed array's
   * own; for an ArrayBuffer, a DataView or bytes it is float32 unless `dtype` says otherwise.
   */
  wrap(data: ArrayBufferLike | ArrayBufferView, rows: number, cols: number, options?: WrapOptions): Matrix;
  /**
   * Makes a matrix of a GPU buffer of yours, made on {@link Gpu.device} with the usages STORAGE, COPY_SRC and COPY_DST.
   * It is used in place and never destroyed. Its size is a multiple of 4 bytes: WebGPU reads and binds nothing else.
   */
  wrapBuffer(buffer: GPUBuffer, rows: number, cols: number, options?: WrapOptions): Matrix;
  /** Makes a matrix of zeros in memory that JavaScript can reach as well: see {@link Matrix.access}. */
  map(rows: number, cols: number, options?: Pick<MatrixOptions, "dtype" | "order">): Matrix;
  /**
   * Makes a matrix from memory, as the flags among the options say: of the memory itself, or of a copy of what `offset` and
   * `stride` place in it. A copy has no gaps and its own memory.
   *
   * Throws `ErrInvalid` for flags that exclude each other or do not fit the memory, and for a `release` of memory that is
   * copied; `ErrShort` for too little memory. Nothing is taken over then.
   */
  fromBuffer(rows: number, cols: number, data: ArrayBufferLike | ArrayBufferView | GPUBuffer, options?: FromBufferOptions): Matrix;

  /**
   * Makes a matrix of what {@link Matrix.detach} made of one in another thread, or elsewhere. The elements of an ArrayBuffer are copied to
   * this device. A SharedArrayBuffer is used itself, as by {@link Gpu.wrap}: attach one message in both threads, call
   * {@link Matrix.touch} after the other has written, and let Atomics say who may.
   *
   * ```js
   * // The page:
   * const message = await m.detach();
   * worker.postMessage(message, [message.data]);
   * // The worker:
   * onmessage = ({data}) => { const m = gpu.attach(data); };
   * ```
   *
   * ```js
   * const message = {data: new SharedArrayBuffer(4 * 6), shape: [2, 3], dtype: "float32"}, turn = new Int32Array(new SharedArrayBuffer(4));
   * worker.postMessage({message, turn});                    // where the page is isolated from other origins
   * const m = gpu.attach(message);
   * await m.assign(m.add(1)).sync();                        // now the elements are in the memory
   * Atomics.store(turn, 0, 1);
   * Atomics.notify(turn, 0);
   * await Atomics.waitAsync(turn, 0, 1).value;              // until the worker has set it to something else
   * m.touch();                                              // it has written to the memory
   * ```
   */
  attach(message: MatrixMessage): Matrix;

  /**
   * Makes a tensor: of values, the last dimension fastest, which are copied, or of the elements of a matrix, an expression or another
   * tensor, of which nothing is copied. `ErrShape` or `ErrShort` for another number of elements. Close one of values when done.
   */
  tensor(from: Values | Expr | Tensor, shape: readonly number[], options?: { readonly dtype?: DType }): Tensor;
  /** Convolutions, pooling, batch normalisation, losses, embeddings, optimisers and quantisation, with gradients. */
  readonly nn: NN;

  /**
   * Makes a sparse matrix with a copy of its parts, which are checked: missing ones are `ErrNil`, too few or too many
   * `ErrShort` and `ErrShape`, indices beyond the dimensions `ErrIndex`, and what does not increase as it should `ErrSparse`.
   */
  sparse(rows: number, cols: number, parts: SparseParts): Sparse;
  /**
   * Makes a sparse matrix of typed arrays of yours. The values are used as {@link Gpu.wrap} uses them; indices and offsets
   * are checked and copied now, and again at {@link Sparse.touch}. None of the three is ever resized.
   */
  wrapSparse(rows: number, cols: number, parts: SparseMemory): Sparse;
  /**
   * The elements that are not 0, by their bits: -0 and NaN are kept. Block columns are those with such an element. It reads
   * the whole matrix and goes through it on the CPU. "csc" by default.
   */
  sparseFrom(x: Expr, options?: { readonly format?: SparseFormat } & WaitOptions): Promise<Sparse>;

  /**
   * Loads a parameter dictionary of TVM or CVM Runtime (.params). Each array is in memory of the device as soon as its data have
   * come; the file itself is never held. Errors of the file have an {@link SubletError.offset}; after any error, and after an
   * abort, nothing is left of the load.
   */
  loadParams(source: FileSource | PromiseLike<FileSource>, options?: LoadOptions): Promise<Params>;
  /** What a parameter dictionary holds. Of a Blob and of memory only the headers are read, of anything else everything. */
  scanParams(source: FileSource | PromiseLike<FileSource>, options?: ScanOptions): Promise<ParamInfo[]>;
  /**
   * Saves arrays as a parameter dictionary, byte for byte as TVM writes it: loaded ones, matrices, expressions, and memory of
   * yours, under their names and in their order; a {@link Params} or a Map will do. Matrices and memory are read while the file
   * is written: leave both as they are until then. They may be closed.
   *
   * `ErrShort` and `ErrShape` mean that data do not fit their shape, `ErrType` a type that the format does not have.
   */
  saveParams(entries: Iterable<readonly [name: string, value: Param | Expr | ParamData]>, options?: SaveOptions & { readonly to?: undefined; readonly type?: "blob" }): Promise<Blob>;
  saveParams(entries: Iterable<readonly [name: string, value: Param | Expr | ParamData]>, options: SaveOptions & { readonly to?: undefined; readonly type: "stream" }): Promise<ReadableStream<Uint8Array>>;
  saveParams(entries: Iterable<readonly [name: string, value: Param | Expr | ParamData]>, options: SaveOptions & { readonly to: WritableStream<Uint8Array>; readonly type?: undefined }): Promise<void>;

  /**
   * Loads a file of NumPy (.npy, .npz), of safetensors or of the Matrix Market (.mtx), from an address, a Response, a Blob, memory or a
   * stream. An array of at most two dimensions is a {@link Matrix}, one dimension a row; one of more is a {@link Tensor}; coordinates are
   * a {@link Sparse} of format "csr". A file with names is a {@link FileArrays}, which closes them all. Big-endian numbers and Fortran's
   * order are converted.
   *
   * ```js
   * const x = await gpu.load("digits.npy");                                       // rows x cols, as the file says
   * using weights = await gpu.load(file, {format: "safetensors", names: ["w", "b"]});
   * const y = x.matmul(weights.get("w")).add(weights.get("b"));
   * ```
   *
   * What is wrong with a file is `ErrFormat`, `ErrTruncated`, `ErrDuplicate`, `ErrType` or `ErrTooLarge`, with
   * {@link SubletError.offset}; nothing is left of the load then. A source that fails is `ErrStream`.
   */
  load(source: string | URL | FileSource | PromiseLike<FileSource>, options: LoadFileOptions & { readonly format: "npz" | "safetensors" }): Promise<FileArrays>;
  load(source: string | URL | FileSource | PromiseLike<FileSource>, options: LoadFileOptions & { readonly format: "npy" }): Promise<Matrix | Tensor>;
  load(source: string | URL | FileSource | PromiseLike<FileSource>, options: LoadFileOptions & { readonly format: "mtx" }): Promise<Matrix | Sparse>;
  load(source: string | URL | FileSource | PromiseLike<FileSource>, options?: LoadFileOptions): Promise<Matrix | Tensor | Sparse | FileArrays>;
  /**
   * Saves arrays with their names in a file of "npz" or "safetensors", or one alone in one of "npy" or "mtx", where a sparse matrix is
   * saved by its entries. What is called later does not change what is saved. Memory of yours is copied at once.
   *
   * ```js
   * const blob = await gpu.save({w, b, mean: x.mean({axis: 0})}, {format: "safetensors"});
   * const link = URL.createObjectURL(blob);
   * ```
   *
   * An element type that the format does not have is `ErrType`, a name that occurs twice `ErrDuplicate`.
   */
  save(arrays: NamedArrays, options: SaveFileOptions & { readonly format: "npz" | "safetensors" }): Promise<Blob>;
  save(array: Savable, options: SaveFileOptions & { readonly format: "npy" | "mtx" }): Promise<Blob>;

  /**
   * Makes an element-wise function of WGSL text: `fn name(x: f32, ...) -> f32 { ... }`, or with i32 or u32. The text may
   * hold further functions and constants; the first function is the one that is called.
   */
  fn(wgsl: string): Fn;
  apply(fn: Fn, ...args: Operand[]): Expr;
  apply(fn: Fn, ...args: TensorOperand[]): Tensor;

  transpose(a: Expr): Expr;
  transpose(a: Tensor): Tensor;

  /**
   * Makes a {@link Cruncher}: kernels of yours, run on several devices at once as if these were one. The source has functions
   * `fn name(i: u32) { ... }` of an item's number, over arrays and scalars that it does not declare but calls by the names
   * that they are given, or is a complete WGSL module. The program for it is loaded with the first one.
   *
   * Rejects with `ErrKernel` and the line for a source that is neither. What only the compiler of the device finds is `ErrCompile`, at
   * the lines of the source, from the first call of the kernel. It runs without WebGPU, too.
   */
  cruncher(wgsl: string, options?: CruncherOptions): Promise<Cruncher>;

  /**
   * Fulfilled when everything called before is done. Rejects with the first error of a computation whose result nobody
   * has read.
   */
  sync(options?: WaitOptions): Promise<void>;
  /**
   * Hands what is queued to the GPU now, as far as it does not wait for the compiler. It also happens by itself, at the
   * end of the current task at the latest.
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
   */
  reopen(options?: { readonly device?: GPUDevice } & WaitOptions): Promise<void>;
  stats(): Stats;
  /**
   * Calls a function and closes everything that it made with this device, except what it returns: a matrix, a tensor, or an array, a
   * Map or an object of these. What it throws goes on, with everything closed.
   *
   * ```js
   * const mean = gpu.scope(() => {
   *   const a = gpu.matrix(2, 2, [1, 2, 3, 4]), b = a.matmul(a).eval();   // closed
   *   return b.mean({axis: 0}).eval();                                    // stays: 1x2
   * });
   * ```
   *
   * An asynchronous function has the same for what it makes before its first `await`. What is made after that belongs to nobody, as
   * other functions run in between, until the scope is told: by {@link Scope.use}, or {@link Scope.run} around several calls. It ends
   * when the promise is settled. So scopes may overlap in time in any order, and none closes what another function made.
   *
   * ```js
   * const [top] = await gpu.scope(async (scope) => {
   *   const a = gpu.matrix(1, 3, [3, 1, 2]);                // closed
   *   const [most] = await a.max().read();
   *   const scaled = scope.use(a.div(most).eval());         // closed, too
   *   return scaled.read();
   * });
   * ```
   *
   * What a scope returns belongs to the scope around it if its function is running, and to nobody otherwise. An expression that is
   * returned must not read what was made in the scope: `ErrClosed`; return its `eval()`.
   */
  scope<T>(fn: (scope: Scope) => T): T;
  /**
   * What is open just now, in the order in which it was made, for a device of `init({debug: "leaks"})`; `ErrUnsupported` for others.
   *
   * ```js
   * for (const {kind, shape, bytes, stack} of gpu.leaks()) console.log(kind, shape, bytes, stack);
   * ```
   */
  leaks(): Leak[];
  /** Ends everything made with this device. Whoever still waits is rejected with `ErrClosed`. */
  close(): void;
  [Symbol.dispose](): void;
}
