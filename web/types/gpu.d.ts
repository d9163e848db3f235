// SPDX-License-Identifier: Apache-2.0

// A device, and what it does beside what it makes and the operations.

import type { Cruncher, CruncherOptions } from "./cruncher.js";
import type { DType } from "./elements.js";
import type { SubletError } from "./errors.js";
import type { Expr } from "./expr.js";
import type { FileArrays, LoadFileOptions, NamedArrays, Savable, SaveFileOptions } from "./files.js";
import type { Fn } from "./fn.js";
import type { Graph, GraphOptions } from "./graph.js";
import type { Info, Stats } from "./init.js";
import type { GpuMakers } from "./makers.js";
import type { Matrix } from "./matrix.js";
import type { NN } from "./nn.js";
import type { NumPyFunctions } from "./numpy.js";
import type { GpuOperations } from "./operations.js";
import type { Operand, WaitOptions } from "./options.js";
import type { FileSource, LoadOptions, ParamInfo, Params, SaveOptions, ScanOptions } from "./params.js";
import type { Recording } from "./recording.js";
import type { Leak, Scope } from "./scope.js";
import type { Sparse } from "./sparse.js";
import type { Tensor, TensorOperand } from "./tensor.js";
import type { Tuning } from "./tuning.js";

export interface Gpu extends GpuOperations, NumPyFunctions, GpuMakers {}

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
   * Convolutions, pooling, batch normalisation, losses, embeddings, optimisers and quantisation, with gradients.
   *
   * @example
   * await gpu.nn.mse(gpu.matrix(1, 2, [1, 2]), gpu.matrix(1, 2, [1, 4])).value(); // 2
   */
  readonly nn: NN;
  /**
   * Times the variants of kernels on the adapter, and keeps the fastest for later pages.
   *
   * @example
   * (await gpu.tuning.export()).adapter.driver; // "simd"
   */
  readonly tuning: Tuning;

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
   * Saves arrays as a parameter dictionary, byte for byte as TVM writes it: loaded ones, matrices, expressions, tensors, and memory of
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
  saveParams(entries: Iterable<readonly [name: string, value: Savable]>, options?: SaveOptions & { readonly to?: undefined; readonly type?: "blob" }): Promise<Blob>;
  saveParams(entries: Iterable<readonly [name: string, value: Savable]>, options: SaveOptions & { readonly to?: undefined; readonly type: "stream" }): Promise<ReadableStream<Uint8Array>>;
  saveParams(entries: Iterable<readonly [name: string, value: Savable]>, options: SaveOptions & { readonly to: WritableStream<Uint8Array>; readonly type?: undefined }): Promise<void>;

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
   * hold further functions and constants; the first function is the one that is called. Its types are those of the elements: f32 for float32 and float16.
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
   * Rejects with `ErrInvalid` where a successor is missing, with `ErrDeviceLost` where that is lost itself, and with `ErrLimit` or
   * `ErrNoAdapter` where there is no device that is as good. The device is lost then as before.
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
  graph(options?: GraphOptions): Promise<Graph>;
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
