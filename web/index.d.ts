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
 * Operations build expressions, which cost next to nothing and check shapes at once. An expression runs when it is
 * evaluated: with `eval`, `assign` or `read`. Calls queue their work and return; nothing comes back from the GPU until you
 * ask. Element-wise operations stretch dimensions of 1, as in NumPy, and take numbers in place of matrices.
 *
 * Every error is a {@link SubletError} with a `code`. What JavaScript can know, shapes and arguments, is thrown by the call
 * itself, or rejects the promise of an asynchronous one. What only the GPU can tell, such as WGSL that does not compile,
 * stays with the result: whoever reads it gets the error, and so does {@link Gpu.sync}.
 *
 * @packageDocumentation
 */

declare global {
  // These merge with the declarations of WebGPU, the compiler's or those of @webgpu/types. A program that has neither gets by.
  interface GPUDevice {}
  interface GPUBuffer {}
}

/** An element type. Arithmetic on float16 is done in float32. */
export type DType = "float32" | "int32" | "uint32" | "float16";

/** Where elements are neighbours in memory: along a row or along a column. */
export type Order = "row" | "column";

/**
 * What float16 elements are shown as: a Float16Array where the browser has it, else the bits in a Uint16Array. To get
 * numbers anywhere, read `x.astype("float32")`.
 */
export type Float16Elements = Uint16Array | (ArrayBufferView & { readonly length: number; [index: number]: number });

/** A typed array of the elements of a matrix. */
export type Elements = Float32Array | Int32Array | Uint32Array | Float16Elements;

/** What is copied into a matrix: a typed array of the element type, or numbers, which are converted. */
export type Values = ArrayLike<number> & (ArrayBufferView | readonly number[]);

/** An operand: an expression, a matrix, or a number among the elements of the other operands. */
export type Operand = Expr | number;

/** What a reduction runs along: 0 down the columns, 1 along the rows, as in NumPy; absent, over everything. */
export interface ReduceOptions {
  readonly axis?: 0 | 1 | -1 | -2;
}

/** Where a matrix lies in its memory. */
export interface MatrixOptions {
  /** float32, or what a typed array's own class says. */
  readonly dtype?: DType;
  /** "row" by default. */
  readonly order?: Order;
  /** Elements before the first. 0 by default. */
  readonly offset?: number;
  /** Elements between the beginnings of two rows (columns, in column order). Their length by default; `ErrStride` if less. */
  readonly stride?: number;
  /** Demands an offset that is a multiple of 16 bytes and a stride that is one of 4 elements: `ErrAlignment` otherwise. */
  readonly aligned?: boolean;
  /**
   * Demands a stride of at least the next multiple of 4 elements, `ErrCapacity` otherwise, and memory for whole rows
   * (columns). What is between the end of a row and the next is set to zero, in a typed array at the next
   * {@link Matrix.sync}, and stays zero whatever is assigned. Matrices of their own memory get such a stride by themselves.
   */
  readonly padded?: boolean;
}

/** Options of a matrix in memory of yours. */
export interface WrapOptions extends MatrixOptions {
  /**
   * Called once, when the matrix is closed, its aliases are, and nothing uses the memory any more. "destroy" stands for
   * destroying the GPUBuffer, which unmaps it.
   */
  readonly release?: (() => void) | "destroy";
}

/** What becomes of memory that a matrix is made from or set to. Without a flag, a typed array is copied to the device. */
export interface FromBufferOptions extends WrapOptions {
  /** Uses the memory itself, as {@link Gpu.wrap} and {@link Gpu.wrapBuffer} do; {@link Matrix.external} is true then. */
  readonly dontOwnBuffer?: boolean;
  /** Copies a GPUBuffer on its device. */
  readonly setValueOnDevice?: boolean;
  /** Of memory that is copied: it holds the elements row by row, whatever the `order` of the matrix. */
  readonly rowMajorInput?: boolean;
}

/** How a sparse matrix is stored: column after column, row after row, or whole columns, zeros included. */
export type SparseFormat = "csc" | "csr" | "blockColumn";

/** The parts of a sparse matrix, as SciPy calls them `data`, `indices` and `indptr`. */
export interface SparseParts {
  readonly format: SparseFormat;
  /** The stored values, of block columns all elements of each: float32, int32 or uint32. */
  readonly values: Values;
  /**
   * For each value its row ("csc") or column ("csr"), increasing within a column (row); of block columns the number of each.
   * 2147483647 at most.
   */
  readonly indices: Int32Array | Uint32Array | readonly number[];
  /**
   * Where each column (row) begins among the values, and at the end their number: one more than there are columns (rows).
   * Block columns have none.
   */
  readonly offsets?: Int32Array | Uint32Array | readonly number[];
  /** float32, or what a typed array's own class says. */
  readonly dtype?: DType;
}

/** Parts that stay yours. */
export interface SparseMemory extends SparseParts {
  readonly values: Float32Array | Int32Array | Uint32Array;
  readonly indices: Int32Array | Uint32Array;
  readonly offsets?: Int32Array | Uint32Array;
  /** Called once, when the matrix is closed, its slices and the matrices of its values are, and nothing uses the memory. */
  readonly release?: () => void;
}

/** Options of {@link init}. */
export interface InitOptions {
  /** The WebAssembly program: its address, a response, its bytes or the module. The package's own `sublet.wasm` by default. */
  readonly wasm?: string | URL | BufferSource | WebAssembly.Module | Response | PromiseLike<Response>;
  /** A device of yours to work on. Buffers made on it can be wrapped, and closing leaves it alone. */
  readonly device?: GPUDevice;
  /** Which of several GPUs to take. The fastest by default. */
  readonly power?: "high-performance" | "low-power";
  /**
   * Whether to compute on the CPU, slowly, where there is no WebGPU. True by default; see {@link Info.driver}. That is a
   * program of its own, loaded only then: the package's `sublet-cpu.wasm`, or what is given here in place of true.
   */
  readonly fallback?: boolean | string | URL | BufferSource | WebAssembly.Module | Response | PromiseLike<Response>;
  /** The program behind {@link Gpu.cruncher}, loaded with the first one. The package's `sublet-cruncher.wasm` by default. */
  readonly cruncherWasm?: string | URL | BufferSource | WebAssembly.Module | Response | PromiseLike<Response>;
}

/**
 * Loads the program and opens a device. Each call makes one of its own.
 *
 * Rejects with `ErrNoAdapter` where there is no WebGPU and no fallback is wanted, and with `ErrInvalid` when the program
 * cannot be loaded; a later call tries again.
 */
export function init(options?: InitOptions): Promise<Gpu>;

/** Every error of this package. */
export class SubletError extends Error {
  constructor(code: string, message: string, options?: { cause?: unknown; offset?: number });
  readonly name: "SubletError";
  /**
   * What went wrong: `ErrShape`, `ErrIndex`, `ErrInvalid`, `ErrNil`, `ErrSize`, `ErrLimit`, `ErrShort`, `ErrStride`,
   * `ErrAlignment`, `ErrCapacity`, `ErrExternalResize`, `ErrView`, `ErrSparse`, `ErrOrder`, `ErrExternal`, `ErrUnsupported`,
   * `ErrForeign`, `ErrClosed`, `ErrMapped`, `ErrSyntax`, `ErrCompile`, `ErrNoAdapter`, `ErrNoMemory`, `ErrDeviceLost`,
   * `ErrInternal`, or `exited` when the WebAssembly program has died. Of files also `ErrFormat`, `ErrTruncated`, `ErrDuplicate`,
   * `ErrType`, `ErrTooLarge`, `ErrAborted`, and `ErrStream` when a stream or response of yours fails. Of crunchers also
   * `ErrKernel`, `ErrRange`, `ErrLength`, `ErrName`, `ErrAccess`, `ErrBatch`, `ErrDevices`, `ErrMigration`, `ErrStale` and
   * `ErrReadOnly`.
   */
  readonly code: string;
  /** Of what is wrong with a file: where, in bytes from its start. */
  readonly offset?: number;
}

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
  readonly data: ArrayBufferLike | ArrayBufferView;
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

/** What the device is. */
export interface Info {
  /** "browser" for WebGPU, "cpu" for the fallback. */
  readonly driver: string;
  readonly name: string;
  readonly vendor: string;
  readonly backend: string;
  /** "discrete", "integrated", "virtual", "cpu" or "unknown". A software adapter is "cpu" as well. */
  readonly kind: string;
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

/** A device, and where matrices are made. Close it when done; `using` does so. */
export class Gpu {
  private constructor();

  readonly info: Info;
  /**
   * The device beneath, for work of your own; null on the CPU. What was called before is queued on it once
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
   * It is used in place and never destroyed.
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
  sparseFrom(x: Expr, options?: { readonly format?: SparseFormat }): Promise<Sparse>;

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
   * Makes an element-wise function of WGSL text: `fn name(x: f32, ...) -> f32 { ... }`, or with i32 or u32. The text may
   * hold further functions and constants; the first function is the one that is called.
   */
  fn(wgsl: string): Fn;
  apply(fn: Fn, ...args: Operand[]): Expr;

  /** The matrix product. */
  matmul(x: Expr, y: Expr): Expr;
  add(x: Operand, y: Operand): Expr;
  sub(x: Operand, y: Operand): Expr;
  /** The element-wise product, NumPy's multiply; the matrix product is matmul. */
  mul(x: Operand, y: Operand): Expr;
  div(x: Operand, y: Operand): Expr;
  pow(x: Operand, y: Operand): Expr;
  minimum(x: Operand, y: Operand): Expr;
  maximum(x: Operand, y: Operand): Expr;
  equal(x: Operand, y: Operand): Expr;
  notEqual(x: Operand, y: Operand): Expr;
  less(x: Operand, y: Operand): Expr;
  lessEqual(x: Operand, y: Operand): Expr;
  greater(x: Operand, y: Operand): Expr;
  greaterEqual(x: Operand, y: Operand): Expr;
  logicalAnd(x: Operand, y: Operand): Expr;
  logicalOr(x: Operand, y: Operand): Expr;
  /** x where the condition is not 0, y elsewhere. All three have one element type. */
  where(condition: Operand, x: Operand, y: Operand): Expr;
  clamp(x: Expr, low: Operand, high: Operand): Expr;

  /**
   * Makes a {@link Cruncher}: kernels of yours, run on several devices at once as if these were one. The source has functions
   * `fn name(i: u32) { ... }` of an item's number, over arrays and scalars that it does not declare but calls by the names
   * that they are given, or is a complete WGSL module. The program for it is loaded with the first one.
   *
   * Rejects with `ErrKernel` and the line for a source that is neither, and with `ErrUnsupported` without WebGPU. What only the
   * browser's compiler finds is `ErrCompile`, at the lines of the source, from the first call of the kernel.
   */
  cruncher(wgsl: string, options?: CruncherOptions): Promise<Cruncher>;

  neg(x: Expr): Expr;
  abs(x: Expr): Expr;
  sign(x: Expr): Expr;
  floor(x: Expr): Expr;
  ceil(x: Expr): Expr;
  round(x: Expr): Expr;
  trunc(x: Expr): Expr;
  square(x: Expr): Expr;
  sqrt(x: Expr): Expr;
  exp(x: Expr): Expr;
  log(x: Expr): Expr;
  sin(x: Expr): Expr;
  cos(x: Expr): Expr;
  tanh(x: Expr): Expr;
  sigmoid(x: Expr): Expr;
  relu(x: Expr): Expr;
  reciprocal(x: Expr): Expr;
  logicalNot(x: Expr): Expr;
  transpose(x: Expr): Expr;
  softmax(x: Expr): Expr;
  logSoftmax(x: Expr): Expr;
  sum(x: Expr, options?: ReduceOptions): Expr;
  max(x: Expr, options?: ReduceOptions): Expr;
  min(x: Expr, options?: ReduceOptions): Expr;
  prod(x: Expr, options?: ReduceOptions): Expr;
  mean(x: Expr, options?: ReduceOptions): Expr;

  /**
   * Fulfilled when everything called before is done. Rejects with the first error of a computation whose result nobody
   * has read.
   */
  sync(): Promise<void>;
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
  reopen(options?: { readonly device?: GPUDevice }): Promise<void>;
  stats(): Stats;
  /** Ends everything made with this device. Whoever still waits is rejected with `ErrClosed`. */
  close(): void;
  [Symbol.dispose](): void;
}

/** A computation that has not run yet. It may be used several times and runs each time it is evaluated. */
export class Expr {
  protected constructor();

  readonly rows: number;
  readonly cols: number;
  readonly shape: [rows: number, cols: number];
  /** rows * cols. */
  readonly size: number;
  readonly dtype: DType;

  /** The matrix product. What follows element by element is computed in the same kernel. */
  matmul(y: Expr): Expr;

  add(y: Operand): Expr;
  sub(y: Operand): Expr;
  /** The element-wise product, NumPy's multiply; the matrix product is matmul. */
  mul(y: Operand): Expr;
  /** The quotient. Integers divided by zero yield the dividend. */
  div(y: Operand): Expr;
  /** A negative number to a whole power is real. */
  pow(y: Operand): Expr;
  /** NaN wins, as in {@link Expr.maximum}. */
  minimum(y: Operand): Expr;
  maximum(y: Operand): Expr;
  /** Comparisons yield 1 and 0 in the operands' element type. */
  equal(y: Operand): Expr;
  notEqual(y: Operand): Expr;
  less(y: Operand): Expr;
  lessEqual(y: Operand): Expr;
  greater(y: Operand): Expr;
  greaterEqual(y: Operand): Expr;
  logicalAnd(y: Operand): Expr;
  logicalOr(y: Operand): Expr;
  clamp(low: Operand, high: Operand): Expr;

  neg(): Expr;
  abs(): Expr;
  sign(): Expr;
  floor(): Expr;
  ceil(): Expr;
  /** To the nearest whole number, halves to even. */
  round(): Expr;
  trunc(): Expr;
  square(): Expr;
  /** Functions of real numbers need real elements: on integers they are `ErrUnsupported`. */
  sqrt(): Expr;
  exp(): Expr;
  log(): Expr;
  sin(): Expr;
  cos(): Expr;
  tanh(): Expr;
  sigmoid(): Expr;
  relu(): Expr;
  reciprocal(): Expr;
  logicalNot(): Expr;

  /** Conversion to another element type, as in C; what is too large for an integer becomes one of the largest. */
  astype(dtype: DType): Expr;
  /** Applies a function of yours to this and further operands. */
  apply(fn: Fn, ...more: Operand[]): Expr;

  /** The sum; what comes before element by element is computed in the same kernel. Along an axis, its length becomes 1. */
  sum(options?: ReduceOptions): Expr;
  max(options?: ReduceOptions): Expr;
  min(options?: ReduceOptions): Expr;
  prod(options?: ReduceOptions): Expr;
  mean(options?: ReduceOptions): Expr;
  /** Along the rows, without overflow. */
  softmax(): Expr;
  logSoftmax(): Expr;

  /** The transpose. Of a matrix it is a view. */
  readonly T: Expr;
  transpose(): Expr;
  /** Rows i to k-1 and columns j to l-1, everything by default. Of a matrix it is a view. */
  slice(i?: number, k?: number, j?: number, l?: number): Expr;
  row(i: number): Expr;
  col(j: number): Expr;
  /** The same elements, row by row, in another shape. Of a matrix without gaps it is a view. */
  reshape(rows: number, cols: number): Expr;

  /** Queues the computation and returns the result in memory of its own. */
  eval(): Matrix;
  /** Computes and brings the elements back, row by row, into an array of yours if you give one. */
  read(): Promise<Elements>;
  read<T extends ArrayBufferView>(into: T): Promise<T>;
  /** The only element of a 1x1 result. */
  value(): Promise<number>;

  /** An expression holds no memory; closing it only makes further use an error. */
  close(): void;
  [Symbol.dispose](): void;
}

/**
 * A part of a matrix or another arrangement of it, in the same memory. It does not keep a closed matrix open. When the
 * matrix is given another size or other memory, views and expressions made before are of no use any more: `ErrView`.
 */
export class View extends Expr {
  readonly T: View;
  transpose(): View;
  slice(i?: number, k?: number, j?: number, l?: number): View;
  row(i: number): View;
  col(j: number): View;
  /** A view where the elements lie row by row without gaps, a computation elsewhere. */
  reshape(rows: number, cols: number): View | Expr;
  /**
   * Queues a computation into this memory, which may be part of it: the result is what it would be if it were elsewhere.
   * Sizes and element types must agree; a number fills.
   */
  assign(x: Operand): this;
}

/**
 * A matrix in memory. Close it when done; `using` does so, and the garbage collector does at some time.
 *
 * Some calls give a matrix another size or other memory. The new size is there at once, the work is queued. If the GPU's
 * side refuses, for want of memory for example, the matrix becomes what it was before: whoever used it meanwhile gets the
 * error, and so does {@link Gpu.sync}. A call that throws changes nothing.
 */
export class Matrix extends View {
  /** Whose memory it is. */
  readonly mode: "owned" | "external" | "mapped";
  /**
   * Whether the matrix uses somebody else's memory. {@link Matrix.setValueFrom} may make it false, the memory staying where
   * it is; who frees the memory is another question, which `release` answers.
   */
  readonly external: boolean;
  readonly order: Order;
  /** Elements between the beginnings of two rows (columns, in column order). */
  readonly stride: number;
  /** Elements before the first, in the memory it was placed in. */
  readonly offset: number;
  /** How many elements the memory has for the matrix; of memory that is not ours, those of the size that it was wrapped with. */
  readonly capacity: number;
  readonly closed: boolean;
  /** Where the current elements are, after everything that was called before: nowhere yet means zeros. */
  readonly location: Promise<"none" | "host" | "device" | "both">;
  /**
   * The GPU buffer with the elements, after everything that was called before. It stays the matrix's: use it until the
   * matrix is closed, and submit your commands before you call this library again.
   */
  readonly buffer: Promise<GPUBuffer>;

  /** As for a view; an empty matrix of its own memory, 0x0, takes the size of what is assigned. */
  assign(x: Operand): this;
  /** Replaces all elements of an owned matrix, row by row (column by column, in column order). They are copied at once. */
  set(values: Values): this;
  /** Of wrapped memory: brings back what computations wrote since the last time. It also waits. */
  sync(): Promise<void>;
  /** Of wrapped memory: says that you wrote to it. Results that were not brought back are given up. */
  touch(): this;
  /**
   * Of a mapped matrix: gives a function the elements as they lie in memory. With `write` set, what it leaves there is the
   * new content. The matrix cannot be used otherwise until the function, or the promise that it returns, is done. The array
   * is not to be used afterwards.
   */
  access<T>(write: boolean, fn: (data: Elements) => T | PromiseLike<T>): Promise<T>;

  /**
   * Copies a matrix or computes an expression, its size included. The result goes into the memory that the matrix has; if it
   * does not fit there a matrix of its own memory gets new memory, and one of memory of yours is left as it was:
   * `ErrExternalResize`. {@link Matrix.external} stays what it is. A matrix of which there are aliases keeps its size, and so
   * do the values of a sparse one: `ErrView`. x may be a part of the matrix.
   */
  setValue(x: Expr): this;
  /**
   * Replaces size and elements by those of memory: what {@link Gpu.fromBuffer} takes, of the matrix's element type.
   *
   * With `dontOwnBuffer` the matrix gives up its memory, which is released if nobody else has it, and uses this one;
   * `external` is true then. A copy goes where {@link Matrix.setValue} would put it, with the same errors, and `external` is
   * false afterwards. Memory of yours stays yours: it is released when the matrix gives it up, never freed.
   */
  setValueFrom(rows: number, cols: number, data: ArrayBufferLike | ArrayBufferView | GPUBuffer, options?: FromBufferOptions): this;
  /** Makes the matrix one of other memory of yours: what {@link Gpu.wrap} or {@link Gpu.wrapBuffer} take. */
  rebind(data: ArrayBufferLike | ArrayBufferView | GPUBuffer, rows: number, cols: number, options?: WrapOptions): this;
  /**
   * Becomes what the other is, memory, size, element type and flags, and leaves it an empty matrix. The matrix gives up its
   * own memory. Taking from itself does nothing. Expressions made of either before go with the memory.
   */
  take(other: Matrix): this;
  /** Returns a matrix that is what this one was, and leaves this one empty. */
  move(): Matrix;
  /** Exchanges two matrices: memory, size, element type and flags. Nothing moves. */
  swap(other: Matrix): this;
  /** Gives up the memory: the matrix is empty, and takes the size of whatever is assigned to it first. */
  reset(): this;
  /**
   * Gives a matrix of its own memory another size. Memory that is large enough is kept; the elements are undefined, unless
   * the size is what it was. `ErrExternalResize` for memory of yours, `ErrView` where there are aliases.
   */
  resize(rows: number, cols: number): this;
  /**
   * Another shape of as many elements, which keep their order in memory; `ErrShape` for another number. Nothing moves. The
   * matrix must have no gaps, `ErrStride`; it may be of memory of yours, and aliases keep their shape.
   */
  setShape(rows: number, cols: number): this;
  /** Another matrix of the same memory: what is written to one is in both. Each is closed by itself, the last releases. */
  alias(): Matrix;
  /** A copy in memory of its own, row by row. */
  clone(): Matrix;
}

/**
 * A matrix of which only some elements are stored; see {@link Gpu.sparse}. Close it when done.
 *
 * Slices and the matrix of the values share its memory, and keep it until they are closed.
 */
export class Sparse {
  private constructor();
  readonly rows: number;
  readonly cols: number;
  readonly shape: [rows: number, cols: number];
  readonly dtype: DType;
  readonly format: SparseFormat;
  /** The number of stored values, of block columns all elements of them. */
  readonly nnz: number;
  /** Whether the memory is yours. */
  readonly external: boolean;
  readonly closed: boolean;

  /** The same matrix with all its elements, or with `out` in that matrix, of the same size and element type, and returns it. */
  toDense(): Matrix;
  toDense<T extends View>(options: { readonly out: T }): T;
  /**
   * The product with a dense matrix or expression: queued, as with {@link Expr.eval}, or with `out` in that matrix, which may
   * be y or share memory with it. The sum of an element is made in an order that depends on this matrix alone.
   */
  matmul(y: Expr): Matrix;
  matmul<T extends View>(y: Expr, options: { readonly out: T }): T;
  /** Some columns as a view, for "csc" only: `ErrUnsupported` for others. Close it when done. */
  columnSlice(start: number, count: number): Sparse;
  /**
   * Adds an entry behind all others: column by column and within a column row by row, in "csr" row by row. Another order, or
   * an entry that is there already, is `ErrOrder`. Memory of yours is `ErrExternal`, slices and matrices with slices or a
   * matrix of their values are `ErrView`, block columns `ErrUnsupported`.
   */
  append(i: number, j: number, value: number): this;
  /**
   * The stored values as a matrix of the same memory: one row, or of block columns a matrix with those columns. What is
   * assigned to it changes this matrix. It cannot be resized. Close it when done.
   */
  values(): Matrix;
  /** Copies of the parts, of a slice those of its columns. */
  read(): Promise<{ values: Float32Array | Int32Array | Uint32Array; indices: Int32Array; offsets: Int32Array }>;
  /** Of wrapped memory: brings back values that computations wrote. */
  sync(): Promise<void>;
  /**
   * Of wrapped memory: says that you wrote to it, values or structure. It is checked again: `ErrSparse` or `ErrIndex` means
   * that the call had no effect.
   */
  touch(): this;
  close(): void;
  [Symbol.dispose](): void;
}

/** The arrays of a file in its order, by name. Close it when done: that closes them all. */
export class Params {
  private constructor();
  readonly size: number;
  readonly names: string[];
  has(name: string): boolean;
  get(name: string): Param | undefined;
  [Symbol.iterator](): IterableIterator<[name: string, param: Param]>;
  close(): void;
  [Symbol.dispose](): void;
}

/** An array of any number of dimensions in memory of the device; see {@link Gpu.loadParams}. */
export class Param {
  private constructor();
  readonly name: string;
  /** See {@link ParamInfo.dtype}. */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Of the elements. */
  readonly nbytes: number;
  readonly closed: boolean;
  /** Brings the elements back, row by row. */
  read(): Promise<ParamElements>;
  /**
   * The array as a matrix of the same memory: one of two dimensions, or of one, which becomes a row; `ErrShape` for others, and
   * `ErrUnsupported` for element types that matrices do not have. What is assigned to it changes the array. It cannot be resized.
   * Close it when done; the memory stays until both are closed.
   */
  matrix(): Matrix;
  close(): void;
  [Symbol.dispose](): void;
}

/** An element-wise function of yours; see {@link Gpu.fn}. The names in its text are its own. */
export class Fn {
  private constructor();
  readonly name: string;
  /** How many arguments it takes, 1 to 6. */
  readonly arity: number;
  close(): void;
  [Symbol.dispose](): void;
}

/** A device of a {@link Cruncher}: one of yours, that of the {@link Gpu}, or one that lives and ends with the cruncher. */
export type CruncherDevice = GPUDevice | "own" | "high-performance" | "low-power";

/** Options of {@link Gpu.cruncher}. */
export interface CruncherOptions {
  /**
   * What to compute on. "all", the default, is the Gpu's own device and one of another adapter, if the browser has one that
   * is no software; "own" the former alone. In an array a GPUDevice may be there twice; each mention of a power preference
   * opens a device of its own.
   */
  readonly devices?: "all" | "own" | readonly CruncherDevice[];
  /** What divides the ranges: by estimated throughput, or step for step as the Cekirdekler API does. */
  readonly balancer?: "default" | "legacy";
  /**
   * What becomes of elements that stay on the devices when shares change: they move to the device that needs them
   * ("migrate", the default), shares stay what they were at the first call of an id ("pin"), or such a call is `ErrMigration`
   * ("strict").
   */
  readonly coherence?: "migrate" | "pin" | "strict";
  readonly signal?: AbortSignal;
}

/** An element type of a {@link CruncherArray}; "bytes" are structures. */
export type CruncherDType = "float32" | "int32" | "uint32" | "int8" | "uint8" | "int16" | "uint16" | "bytes";

/** The memory of a {@link CruncherArray}. */
export type CruncherElements =
  | Float32Array | Int32Array | Uint32Array | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array;

/** What {@link Cruncher.array} is told of an array; see the properties of {@link CruncherArray}. */
export interface CruncherArrayOptions {
  /** The typed array's own by default, float32 where there is only a length, and "bytes" for a buffer. */
  readonly dtype?: CruncherDType;
  /** Flags that exclude each other, such as `readOnly` and `write`, are `ErrInvalid`. */
  readonly read?: boolean;
  readonly partialRead?: boolean;
  readonly write?: boolean;
  readonly writeAll?: boolean;
  readonly readOnly?: boolean;
  readonly writeOnly?: boolean;
  readonly zeroCopy?: boolean;
  readonly elementsPerItem?: number;
  readonly halo?: number;
  readonly mode?: "widened" | "packed" | "atomic";
  readonly struct?: string;
  /** Promises that the memory changes by results only, and that {@link CruncherArray.touch} tells of everything else. */
  readonly tracked?: boolean;
  /** Called once, when the array is closed and no call uses it any more, or the Gpu is. */
  readonly release?: () => void;
}

/** What a call computes, and how. */
export interface CruncherRange {
  /**
   * The number of work items: those from `offset` on. In two and three dimensions, the extent of the slowest one, which
   * the devices divide among them. It need not be a multiple of anything.
   */
  readonly global: number;
  /** Items of a workgroup: 256, or what the devices allow. Devices get multiples of it, but for the rest of the range. */
  readonly local?: number;
  /** The number of the first item. */
  readonly offset?: number;
  /** The extents of the faster dimensions: x alone in two dimensions, x and y in three. */
  readonly inner?: readonly [number] | readonly [number, number] | readonly [];
  /** Refuses ranges that are no multiple of `local` and those too small to give every device a workgroup: `ErrRange`. */
  readonly strict?: boolean;
  /** Cuts each device's part into as many pieces, to move one while another is computed. */
  readonly blobs?: number;
  /** Calls the kernels as many times without anything moving between. */
  readonly repeat?: number;
  /** Runs after each repeat on every device, with the items of one workgroup from 0 on. */
  readonly syncKernel?: string;
  /** Moves what the call would and runs no kernel. */
  readonly transferOnly?: boolean;
  /** Gives the call up: `ErrAborted`, whose `cause` is the signal's reason. */
  readonly signal?: AbortSignal;
}

/** Bytes between the arrays' memory and the devices, and between devices. */
export interface CruncherTraffic {
  readonly bytesUp: number;
  readonly bytesDown: number;
  readonly bytesMigrated: number;
}

/** What a call did. */
export interface CruncherReport extends CruncherTraffic {
  /** One for each device in their order, also where that got nothing, then those of what a lost device had left. */
  readonly shares: readonly {
    /** Its place among {@link Cruncher.devices}. */
    readonly device: number;
    readonly offset: number;
    readonly count: number;
    /** With its transfers and without waiting for others. */
    readonly seconds: number;
  }[];
}

/** How the shares of an id came about. Lists have an entry for each device; before the first call they are empty. */
export interface CruncherStats {
  readonly calls: number;
  /** Of the last call; their sum is 1. */
  readonly shares: readonly number[];
  /** Estimates in items per second, 0 where there is none yet. */
  readonly throughput: readonly number[];
  /** The counts of up to ten calls, those of the last one at the end. */
  readonly history: readonly (readonly number[])[];
  /** Times left out because they were nothing like the others. */
  readonly dropped: number;
  /** Calls that gave an idle device something to do, to see how fast it is now. */
  readonly probes: number;
}

/**
 * Kernels of yours on several devices: the number cruncher of the Cekirdekler API. Each call divides a range of work items
 * among the devices, moves the elements that each needs, and brings results together in your arrays; from call to call the
 * shares get nearer to those with which all devices are done at the same time. Results do not depend on the shares.
 *
 * ```js
 * const cr = await gpu.cruncher("fn add3(i: u32) { arr[i] = arr[i] + 3u; }");
 * const arr = cr.array("arr", typedArray, { partialRead: true });
 * await cr.compute(1, "add3", { global: typedArray.length }, arr);    // typedArray holds the results
 * ```
 *
 * Calls run one after the other. One that fails leaves the cruncher as it was. Close it when done: devices and arrays of yours
 * stay. The garbage collector closes what is forgotten.
 */
export class Cruncher {
  private constructor();
  /** The kernels of the source. */
  readonly kernels: readonly string[];
  /** A device may be there several times. */
  readonly devices: readonly Info[];
  readonly closed: boolean;

  /**
   * Makes an array of memory of yours, or of so many zeros, that kernels know by a name. Results are written to that very
   * memory. Leave it alone while a call uses it; between calls it is yours. All crunchers of a Gpu may use the array.
   *
   * Memory without an element type, an ArrayBuffer for example, is "bytes": structures, which kernels see as words or as
   * the `struct` named in the options.
   */
  array(name: string, data: ArrayBufferLike | ArrayBufferView, options?: CruncherArrayOptions): CruncherArray;
  array(name: string, length: number, options?: CruncherArrayOptions): CruncherArray;
  /** A number that kernels know by a name. It goes to the devices with each call. */
  scalar(name: string, value: number, dtype?: "float32" | "int32" | "uint32"): CruncherScalar;

  /**
   * Runs kernels, named in one text and separated by blanks or commas, one after the other over the range: each device its
   * share of all of them. Fulfilled when the results are in the arrays' memory. `id` is a number of yours for what is computed:
   * each has shares of its own, which get better from call to call. The flags of arrays are those at the time of the call.
   *
   * A call that fails or is given up leaves the arrays' memory as it was, but for memory that was detached or lost with a
   * device while results were written. Of elements that only the devices have, those that its kernels write are then undefined.
   * The work of a device that is lost is done by the others: `ErrDeviceLost` if none is left.
   */
  compute(id: number, kernels: string, range: CruncherRange, ...params: (CruncherArray | CruncherScalar)[]): Promise<void>;
  /**
   * Runs a function whose calls of {@link CruncherBatch.compute} only queue, then waits for all of them and brings back what
   * they wrote. Until then the arrays must not be used, and other calls are `ErrBatch`. Shares stay what they are at the first
   * call of an id.
   *
   * Rejects with what the function throws, or with the first error of its calls; what was queued comes back all the same.
   */
  batch(queue: (batch: CruncherBatch) => unknown): Promise<void>;
  /** Brings what only the devices have to the memory of arrays. If that is not possible none of them is changed. */
  fetch(...arrays: CruncherArray[]): Promise<void>;
  /** Gives the device memory of arrays back, or of all if none is named. What only the devices have is lost. */
  evict(...arrays: CruncherArray[]): Promise<void>;

  /** What the last call did that computed something and did not fail. */
  readonly last: CruncherReport;
  /** The shares of an id and how they came about. */
  stats(id: number): CruncherStats;
  /** What moved since the cruncher was made. */
  traffic(): CruncherTraffic;

  close(): void;
  [Symbol.dispose](): void;
}

/** Calls that are queued one after the other; see {@link Cruncher.batch}. */
export class CruncherBatch {
  private constructor();
  /** Queues what {@link Cruncher.compute} computes. There is no need to wait: the batch does. */
  compute(id: number, kernels: string, range: CruncherRange, ...params: (CruncherArray | CruncherScalar)[]): Promise<void>;
  /** How many of the calls queued so far are done on all devices. */
  readonly reached: number;
  /** How many are not. */
  readonly remaining: number;
}

/**
 * An array that kernels read and write by its name. Its flags say what moves, and take effect with the next call; "read" means
 * from your memory to the devices and "write" back, as in the Cekirdekler API. The elements of item i begin at element
 * `i * elementsPerItem`. Close it when done.
 */
export class CruncherArray {
  private constructor();
  readonly name: string;
  readonly dtype: CruncherDType;
  readonly length: number;
  /**
   * The memory: what the array was made of, a buffer as a typed array. It is the page's own, so nothing tells that devices have newer
   * elements: those that kernels wrote in calls with `write` cleared. {@link Cruncher.fetch} brings them.
   */
  readonly data: CruncherElements;
  readonly tracked: boolean;
  readonly closed: boolean;

  /**
   * Every device gets the whole array before its kernels run. True at first. Without it, and without `partialRead`, kernels
   * see what the devices have, zeros at first.
   */
  read: boolean;
  /** A device gets the elements of its own items only, and those of a halo. */
  partialRead: boolean;
  /** Each device's own elements come back. True at first. */
  write: boolean;
  /** With `write`: all elements come back, from one device, which then computes the whole range. */
  writeAll: boolean;
  /**
   * Kernels only read. Setting it clears `write` and `writeAll` and has them ignored until it is cleared. It has no effect
   * while `writeOnly` is set. A cruncher that has used the array so takes it in no other way; see {@link Cruncher.evict}.
   */
  readOnly: boolean;
  /** Kernels only write: as `readOnly`, with `read` and `partialRead`. It has no effect while `readOnly` is set. */
  writeOnly: boolean;
  /** Wants device memory that the CPU reaches, which no browser has yet. */
  zeroCopy: boolean;
  /** 1 at first. */
  elementsPerItem: number;
  /** With `partialRead`: how many elements on both sides of its own ones a device reads, too. */
  halo: number;
  /** What kernels see of elements of 8 and 16 bits: a word for each, words of several, or such words as atomics. */
  mode: "widened" | "packed" | "atomic";
  /** The struct of the source that bytes are, or "" for words. WGSL must lay it out as it lies in memory. */
  struct: string;

  /** Of a tracked array: says that you wrote to its memory. */
  touch(): this;
  close(): void;
  [Symbol.dispose](): void;
}

/** A number that kernels know by a name; see {@link Cruncher.scalar}. */
export class CruncherScalar {
  private constructor();
  readonly name: string;
  readonly value: number;
  readonly dtype: "float32" | "int32" | "uint32";
}
