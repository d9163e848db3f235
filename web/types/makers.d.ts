// SPDX-License-Identifier: Apache-2.0

// The methods of Gpu that make matrices, tensors and sparse matrices.

import type { AnyTypedArray, ClassDTypes, ClassesOf, DType, NestedNumbers, Numbers, RawMemory, Row, TypedArray, Values } from "./elements.js";
import type { Expr } from "./expr.js";
import type { Gpu } from "./gpu.js";
import type { Matrix } from "./matrix.js";
import type { FromBufferOptions, MatrixOptions, WaitOptions, WrapOptions } from "./options.js";
import type { LuminanceOptions, Picture, PictureOptions } from "./pictures.js";
import type { Sparse, SparseDType, SparseEntries, SparseFormat, SparseMemory, SparseParts } from "./sparse.js";
import type { Tensor } from "./tensor.js";
import type { MatrixMessage } from "./transfer.js";

/** What a {@link Gpu} makes matrices, tensors and sparse matrices of. */
export interface GpuMakers {
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
   * Do not destroy it while matrices of it are used. That a buffer is destroyed, or another device's, is only found when work with it is
   * submitted: that is `ErrInvalid` or `ErrForeign` then, and so may be what was queued beside it, whose results are lost. A Gpu without WebGPU is
   * `ErrForeign` at once.
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
   * tensor, of which nothing is copied. One length may be -1: it follows from the others. `ErrShape` or `ErrShort` for another number of elements.
   * Close one of values when done.
   *
   * Shapes: -> that shape, or that of arrays in arrays.
   * @example
   * gpu.tensor([[[1, 2]], [[3, 4]]]).shape; // [2, 1, 2]
   * const t = gpu.tensor([1, 2, 3, 4, 5, 6, 7, 8], [2, 2, 2]);
   * await t.sum(0).read(); // [6, 8, 10, 12]
   * gpu.tensor(gpu.zeros(4, 6), [-1, 3]).shape; // [8, 3]
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
}
