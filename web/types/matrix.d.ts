// SPDX-License-Identifier: Apache-2.0

import type { AnyTypedArray, ClassesOf, DType, Elements, Order, Row, TypedArray, Values } from "./elements.js";
import type { SaveFileOptions } from "./files.js";
import type { Gpu } from "./gpu.js";
import type { MatrixMemory } from "./memory.js";
import type { NumPyMethods } from "./numpy.js";
import type { ExprOperations } from "./operations.js";
import type { Canvas, DrawOptions } from "./pictures.js";
import type { Sparse, SparseFormat } from "./sparse.js";
import type { Tensor } from "./tensor.js";
import type { MatrixMessage } from "./transfer.js";

/** What calls that wait for the GPU take. */
export interface WaitOptions {
  /**
   * Gives the call up: `ErrAborted`, whose `cause` is the signal's reason. What was queued is done all the same. Calls that use the
   * matrix meanwhile, such as {@link Matrix.set}, are queued and go on then, in their order, as do calls after these.
   */
  readonly signal?: AbortSignal;
}

/** An operand: an expression, a matrix, or a number among the elements of the other operands. */
export type Operand<T extends DType = "float32"> = Expr<T> | number;

/** An axis of a matrix: 0 down the columns, 1 along the rows, as in NumPy. -1 and -2 count from the end. */
export type Axis = 0 | 1 | -1 | -2;

/** What a reduction runs along: `sum(0)` or `sum({axis: 0})`; absent or null, everything. A matrix keeps both dimensions. */
export type ReduceOptions = Axis | null | { readonly axis?: Axis | null; readonly keepDims?: true };

/** What a sort or a running sum runs along: `sort(0)` or `sort({axis: 0})`. 1 along the rows, the default; 0 down the columns. */
export type OrderOptions = Axis | { readonly axis?: Axis };

/** What a softmax runs along: 1 along the rows, the default; 0 down the columns; null over everything. */
export type NormaliseOptions = Axis | null | { readonly axis?: Axis | null };

/** What a variance runs along, and by how much less than their number the squares are divided: 0 by default, 1 for a sample. */
export type SpreadOptions = Axis | null | { readonly axis?: Axis | null; readonly keepDims?: true; readonly ddof?: number };

/** Rows or columns: [from, to] without to, either of which may be left out or count from the end; the one of an index; all, of null or nothing. */
export type Range = readonly [from?: number | null, to?: number | null] | number | null;

/** A part of a matrix by name, for {@link Expr.slice}. */
export interface PartOfMatrix {
  /** All by default. */
  readonly rows?: Range;
  /** All by default. */
  readonly cols?: Range;
}

/** Where a matrix lies in its memory. */
export interface MatrixOptions<T extends DType = DType> {
  /** float32, or what a typed array's own class says. */
  readonly dtype?: T;
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
export interface WrapOptions<T extends DType = DType> extends MatrixOptions<T> {
  /**
   * Called once, when the matrix is closed, its aliases are, and nothing uses the memory any more. "destroy" stands for
   * destroying the GPUBuffer, which unmaps it.
   */
  readonly release?: (() => void) | "destroy";
}

/** What becomes of memory that a matrix is made from or set to. Without a flag, a typed array is copied to the device. */
export interface FromBufferOptions<T extends DType = DType> extends WrapOptions<T> {
  /** Uses the memory itself, as {@link Gpu.wrap} and {@link Gpu.wrapBuffer} do; {@link Matrix.external} is true then. */
  readonly dontOwnBuffer?: boolean;
  /** Copies a GPUBuffer on its device. */
  readonly setValueOnDevice?: boolean;
  /** Of memory that is copied: it holds the elements row by row, whatever the `order` of the matrix. */
  readonly rowMajorInput?: boolean;
}

export interface Expr<T extends DType = "float32"> extends ExprOperations<T>, NumPyMethods<T> {}

/** A computation of elements of type T that has not run yet. It may be used several times and runs each time it is evaluated. */
export class Expr<T extends DType = "float32"> {
  protected constructor();

  /**
   * The number of rows.
   *
   * @example
   * gpu.zeros(2, 3).T.rows; // 3
   */
  readonly rows: number;
  /**
   * The number of columns.
   *
   * @example
   * gpu.zeros(2, 3).T.cols; // 2
   */
  readonly cols: number;
  /**
   * The numbers of rows and columns.
   *
   * @example
   * gpu.zeros(2, 3).T.shape; // [3, 2]
   */
  readonly shape: [rows: number, cols: number];
  /**
   * The number of elements: rows * cols.
   *
   * @example
   * gpu.zeros(2, 3).size; // 6
   */
  readonly size: number;
  /**
   * The element type.
   *
   * @example
   * gpu.matrix(1, 2, new Int32Array([1, 2])).abs().dtype; // "int32"
   */
  readonly dtype: T;

  /**
   * Conversion to another element type, as in C; what is too large for an integer becomes one of the largest.
   *
   * Shapes: `m x n` -> `m x n`.
   * @example
   * await gpu.matrix(1, 3, [1.7, -1.7, 3]).astype("int8").read(); // [1, -1, 3]
   */
  astype<U extends DType>(dtype: U): Expr<U>;
  /**
   * Applies a function of yours to this and further operands; see {@link Gpu.fn}.
   *
   * Shapes: `m x n`, `m x n`, ... -> `m x n`; those of 1 stretch.
   * @example
   * const half = gpu.fn("fn half(x: f32) -> f32 { return 0.5 * x; }");
   * await gpu.matrix(1, 2, [1, 2]).apply(half).read(); // [0.5, 1]
   */
  apply(fn: Fn, ...more: Operand<T>[]): Expr<T>;
  /**
   * The transpose. Of a matrix it is a view.
   *
   * Shapes: `m x n` -> `n x m`.
   * @example
   * await gpu.matrix(2, 2, [1, 2, 3, 4]).T.read(); // [1, 3, 2, 4]
   */
  readonly T: Expr<T>;
  /**
   * The transpose, as {@link Expr.T}.
   *
   * Shapes: `m x n` -> `n x m`.
   * @example
   * await gpu.matrix(2, 2, [1, 2, 3, 4]).transpose().read(); // [1, 3, 2, 4]
   */
  transpose(): Expr<T>;
  /**
   * Some rows and columns: of each a range `[from, to]` without `to`, one index, or nothing for all. Negative numbers count from the
   * end. Of a matrix it is a view. What is not there is `ErrIndex`.
   *
   * Shapes: `m x n` -> `to-from x n`.
   * @example
   * const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]);
   * await a.slice([0, 2], [1, 3]).read(); // [2, 3, 5, 6]
   * await a.slice(-1).read(); // [4, 5, 6]
   * await a.slice({ cols: 0 }).read(); // [1, 4]
   */
  slice(rows?: Range, cols?: Range): Expr<T>;
  slice(part: PartOfMatrix): Expr<T>;
  /**
   * One row. Of a matrix it is a view.
   *
   * Shapes: `m x n` -> `1 x n`.
   * @example
   * await gpu.matrix(2, 2, [1, 2, 3, 4]).row(1).read(); // [3, 4]
   */
  row(i: number): Expr<T>;
  /**
   * One column. Of a matrix it is a view.
   *
   * Shapes: `m x n` -> `m x 1`.
   * @example
   * await gpu.matrix(2, 2, [1, 2, 3, 4]).col(1).read(); // [2, 4]
   */
  col(j: number): Expr<T>;
  /**
   * The same elements, row by row, in another shape. Of a matrix without gaps it is a view.
   *
   * Shapes: `m x n` -> `rows x cols`, of as many elements. One of the two may be -1: it is what is left beside the other.
   * @example
   * await gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]).reshape(-1, 2).col(0).read(); // [1, 3, 5]
   */
  reshape(rows: number, cols: number): Expr<T>;
  /** The same elements, row by row, in another shape. */
  reshape(shape: readonly [rows: number, cols: number]): Expr<T>;
  /**
   * The same elements, row by row, as an array of that shape; see {@link Gpu.tensor}.
   *
   * Shapes: `m x n` -> any of as many elements.
   * @example
   * gpu.zeros(4, 6).tensor(2, 3, 4).shape; // [2, 3, 4]
   */
  tensor(...shape: number[]): Tensor<T>;
  tensor(shape: readonly number[]): Tensor<T>;

  /**
   * Queues the computation and returns the result in memory of its own.
   *
   * Shapes: `m x n` -> `m x n`.
   * @example
   * using sums = gpu.matrix(1, 2, [1, 2]).add(1).eval();
   * await sums.mul(sums).read(); // [4, 9]
   */
  eval(): Matrix<T>;
  /**
   * Evaluates an expression that is sparse as a sparse matrix of its own; of any other that is `ErrUnsupported`. An expression of sparse
   * matrices stays sparse under operations of one operand that make 0 of 0, products and quotients with numbers or, element by element, with dense
   * matrices (where nothing is stored the result is 0; of a product of dense matrices in that place only the elements are computed that
   * are used), sums and element-wise products of sparse matrices of one size, the product of two sparse matrices, the transpose and
   * conversions to types of 32 bits. A product with a dense matrix is dense, and sums, means and norms read the stored values alone; all
   * other operations take a sparse matrix as the dense one that it stands for. The format is that of the first operand unless you say another.
   *
   * Shapes: `m x n` -> `m x n`.
   * @example
   * using s = gpu.sparse(2, 2, { format: "csr", values: [3, 4], indices: [1, 0], offsets: [0, 1, 2] });
   * using twice = await s.mul(2).sparse();
   * (await twice.parts()).values; // [6, 8]
   */
  sparse(options?: WaitOptions & { readonly format?: SparseFormat }): Promise<Sparse<T>>;
  /**
   * A sparse expression with other stored values: a row with one for each entry in the order of storage, or one number for all.
   *
   * Shapes: `m x n` and `1 x nnz` -> `m x n`.
   * @example
   * using s = gpu.sparse(2, 2, { format: "csr", values: [3, 4], indices: [1, 0], offsets: [0, 1, 2] });
   * await s.with(1).read(); // [0, 1, 1, 0]
   */
  with(values: Operand<T>): Expr<T>;
  /**
   * Computes and brings the elements back, row by row, into an array of yours if you give one. Of an array that was given to a call
   * which was given up, the content is undefined.
   *
   * Shapes: `m x n` -> an array of m * n elements.
   * @example
   * await gpu.matrix(2, 2, [1, 2, 3, 4]).mul(2).read(); // [2, 4, 6, 8]
   * await gpu.ones(1, 2).read(new Float32Array(2)); // [1, 1]
   */
  read(options?: WaitOptions): Promise<Elements<T>>;
  read<A extends TypedArray<ClassesOf[T]>>(into: A, options?: WaitOptions): Promise<A>;
  /**
   * The only element of a 1x1 result.
   *
   * Shapes: `1 x 1` -> a number.
   * @example
   * await gpu.matrix(1, 3, [1, 2, 3]).sum().value(); // 6
   */
  value(options?: WaitOptions): Promise<number>;
  /**
   * NumPy's name of {@link Expr.value}; with a row and a column, their element. Negative numbers count from the end.
   *
   * Shapes: `1 x 1` -> a number, `m x n` with a row and a column.
   * @example
   * const a = gpu.matrix(2, 2, [1, 2, 3, 4]);
   * await a.sum().item(); // 10
   * await a.item(-1, 0); // 3
   */
  item(): Promise<number>;
  item(row: number, col: number): Promise<number>;
  /**
   * Computes and saves it alone in a file; see {@link Gpu.save}.
   *
   * @example
   * const file = await gpu.ones(2, 2).mul(3).save({ format: "npy" });
   */
  save(options: SaveFileOptions & { readonly format: "npy" | "mtx" }): Promise<Blob>;
  /**
   * Draws the elements as they are now: the canvas gets a pixel for each, or for each `channels` of a row, as wide and high as that makes
   * it. Fulfilled when the drawing is submitted. NaN has no colour, that is, no opacity.
   *
   * With WebGPU the elements stay on the device: the canvas gets a context "webgpu" of {@link Gpu.device} in the format rgba8unorm. A canvas
   * that has a context "2d" already is drawn on by that, as any canvas is for "simd". Other contexts are `ErrUnsupported`, and sizes beyond
   * the device's `maxTextureDimension2D`, or beyond 32767 for "2d", `ErrLimit`.
   *
   * Shapes: `m x n` -> n pixels by m, or n / channels.
   * @example
   * await gpu.uniform(64, 64).toCanvas(canvas, { colormap: "viridis", range: [0, 1] });
   */
  toCanvas(canvas: Canvas, options?: DrawOptions): Promise<void>;
  /**
   * How it is computed: the kernels, in their order, as they are launched when nothing is compiled ahead. Nothing is computed or compiled.
   *
   * @example
   * const plan = await gpu.ones(2, 2).add(1).mul(3).explain();
   * plan.kernels.length; // 1
   */
  explain(options?: WaitOptions): Promise<Plan>;

  /**
   * What `console.log` shows in Node: size, element type and place, and of a matrix a corner of the elements where JavaScript knows them, as
   * it gave or read them, or has them in wrapped memory. Nothing is read from the device, and nothing throws.
   *
   * @example
   * console.log(String(gpu.matrix(2, 2, [1, 2, 3, 4])));
   */
  toString(): string;
  /**
   * Makes further use of the expression an error. It holds no memory; a {@link Matrix} does.
   *
   * @example
   * const a = gpu.ones(2, 2).add(1);
   * a.close();
   */
  close(): void;
  /**
   * Closes the expression at the end of the block that declares it with `using`.
   *
   * @example
   * using a = gpu.ones(2, 2).add(1);
   */
  [Symbol.dispose](): void;
}

/** How an expression is computed. As a text it has a line for each kernel, and one for all of them. */
export interface Plan {
  /** The kernels, in the order of their launches. */
  readonly kernels: readonly {
    /** The family and the variant, such as `product/tile 8 4 2`. */
    readonly kernel: string;
    /** The numbers of workgroups. */
    readonly groups: readonly [number, number, number];
    /** The size and the element type of what is written. */
    readonly rows: number;
    readonly cols: number;
    readonly dtype: DType;
    /** Of the operands' memory, each part of it counted once. */
    readonly bytesRead: number;
    readonly bytesWritten: number;
    readonly wgsl: string;
  }[];
  /** Of all kernels. */
  readonly bytesRead: number;
  /** Of all kernels. */
  readonly bytesWritten: number;
  /** Matrices in between. */
  readonly temporaries: number;
  /** Of the matrices in between. */
  readonly temporaryBytes: number;
  /** A line for each kernel, and one for all of them. */
  toString(): string;
}

/** A part of a matrix or another arrangement of it, in the same memory. */
export class View<T extends DType = "float32"> extends Expr<T> {
  protected constructor();

  /**
   * The transpose, of the same memory.
   *
   * Shapes: `m x n` -> `n x m`.
   * @example
   * const a = gpu.zeros(2, 2);
   * a.T.row(0).assign(1);
   * await a.read(); // [1, 0, 1, 0]
   */
  readonly T: View<T>;
  /**
   * The transpose, as {@link View.T}.
   *
   * Shapes: `m x n` -> `n x m`.
   * @example
   * const a = gpu.zeros(2, 2);
   * a.transpose().row(0).assign(1);
   * await a.read(); // [1, 0, 1, 0]
   */
  transpose(): View<T>;
  /**
   * Some rows and columns, of the same memory: of each a range `[from, to]` without `to`, one index, or nothing for all. Negative
   * numbers count from the end.
   *
   * Shapes: `m x n` -> `to-from x n`.
   * @example
   * const a = gpu.zeros(2, 3);
   * a.slice(0, [1, 3]).assign(7);
   * await a.read(); // [0, 7, 7, 0, 0, 0]
   */
  slice(rows?: Range, cols?: Range): View<T>;
  slice(part: PartOfMatrix): View<T>;
  /**
   * One row, of the same memory.
   *
   * Shapes: `m x n` -> `1 x n`.
   * @example
   * const a = gpu.zeros(2, 2);
   * a.row(1).assign(5);
   * await a.read(); // [0, 0, 5, 5]
   */
  row(i: number): View<T>;
  /**
   * One column, of the same memory.
   *
   * Shapes: `m x n` -> `m x 1`.
   * @example
   * const a = gpu.zeros(2, 2);
   * a.col(1).assign(5);
   * await a.read(); // [0, 5, 0, 5]
   */
  col(j: number): View<T>;
  /**
   * The same elements, row by row, in another shape: a view where they lie so without gaps, a computation elsewhere.
   *
   * Shapes: `m x n` -> `rows x cols`, of as many elements. One of the two may be -1: it is what is left beside the other.
   * @example
   * await gpu.matrix(2, 2, [1, 2, 3, 4]).reshape(1, -1).read(); // [1, 2, 3, 4]
   */
  reshape(rows: number, cols: number): View<T> | Expr<T>;
  /** The same elements, row by row, in another shape. */
  reshape(shape: readonly [rows: number, cols: number]): View<T> | Expr<T>;
  /**
   * Queues a computation into this memory, which may be part of it: the result is what it would be if it were elsewhere.
   * Sizes and element types must agree; a number fills.
   *
   * Shapes: `m x n` of `m x n` or a number.
   * @example
   * const a = gpu.matrix(2, 2, [1, 2, 3, 4]);
   * a.row(0).assign(a.row(1).mul(10));
   * await a.read(); // [30, 40, 3, 4]
   */
  assign(x: Operand<T>): this;
  assign(this: View<"complex64">, x: Expr<"float32">): this;
}

/**
 * A matrix of elements of type T in memory. `Matrix` alone is a `Matrix<"float32">`, of which {@link Matrix.read} gives a Float32Array;
 * `Matrix<any>` is one of a type that is not known before the program runs. Close it when done; `using` does so, and the garbage collector does at some time.
 *
 * What gives it another size or other memory is in {@link Matrix.memory}.
 */
export class Matrix<T extends DType = "float32"> extends View<T> {
  /**
   * Whose memory it is: its own, that of the caller, or memory that both reach.
   *
   * @example
   * gpu.zeros(2, 2).mode; // "owned"
   */
  readonly mode: "owned" | "external" | "mapped";
  /**
   * Whether the matrix uses somebody else's memory. {@link MatrixMemory.setValueFrom} may make it false, the memory staying where
   * it is; who frees the memory is another question, which `release` answers.
   *
   * @example
   * gpu.wrap(new Float32Array(4), 2, 2).external; // true
   */
  readonly external: boolean;
  /**
   * Where elements are neighbours in memory: along a row or along a column.
   *
   * @example
   * gpu.zeros(2, 3, { order: "column" }).order; // "column"
   */
  readonly order: Order;
  /**
   * Elements between the beginnings of two rows (columns, in column order).
   *
   * @example
   * gpu.zeros(2, 3, { stride: 4 }).stride; // 4
   */
  readonly stride: number;
  /**
   * Elements before the first, in the memory it was placed in.
   *
   * @example
   * gpu.wrap(new Float32Array(6), 2, 2, { offset: 2 }).offset; // 2
   */
  readonly offset: number;
  /**
   * How many elements the memory has for the matrix; of memory that is not ours, those of the size that it was wrapped with.
   *
   * @example
   * gpu.zeros(2, 3).capacity; // 6
   */
  readonly capacity: number;
  /**
   * Whether the matrix was closed.
   *
   * @example
   * gpu.zeros(2, 3).closed; // false
   */
  readonly closed: boolean;
  /**
   * Where the current elements are, after everything that was called before: nowhere yet means zeros. To wait no longer than
   * a signal allows, call {@link Matrix.sync} with it before.
   *
   * @example
   * await gpu.wrap(new Float32Array(4), 2, 2).location; // "host"
   */
  readonly location: Promise<"none" | "host" | "device" | "both">;
  /**
   * The GPU buffer with the elements, after everything that was called before. It stays the matrix's: use it until the
   * matrix is closed, and submit your commands before you call this library again.
   *
   * @example
   * const buffer = await gpu.zeros(1024, 4).buffer; // for a bind group of yours
   */
  readonly buffer: Promise<GPUBuffer>;
  /**
   * What gives the matrix another size or other memory: `rebind`, `resize`, `take`, `setValueFrom` and so on.
   *
   * @example
   * gpu.zeros(2, 3).memory.setShape(3, 2).shape; // [3, 2]
   */
  readonly memory: MatrixMemory<T>;

  /**
   * Queues a computation into this memory, as for a view; an empty matrix of its own memory, 0x0, takes the size of what is assigned.
   *
   * Shapes: `m x n` of `m x n` or a number; `0 x 0` of any.
   * @example
   * const a = gpu.matrix(1, 2, [1, 2]);
   * a.assign(a.add(1));
   * await a.read(); // [2, 3]
   */
  assign(x: Operand<T>): this;
  assign(this: Matrix<"complex64">, x: Expr<"float32">): this;
  /**
   * Replaces all elements of an owned matrix, row by row (column by column, in column order). They are copied at once. Arrays of rows will
   * do. A typed array of another type is an error unless `dtype` names the matrix's own, which converts its numbers.
   *
   * Shapes: `m x n` of m * n numbers, or of m rows of n.
   * @example
   * const a = gpu.zeros(1, 2);
   * a.set([5, 6]);
   * await a.read(); // [5, 6]
   */
  set(values: Values<T> | readonly Row<T>[], options?: { readonly dtype?: undefined }): this;
  set(values: AnyTypedArray | Values | readonly Row[], options: { readonly dtype: T }): this;
  /**
   * Of wrapped memory: brings back what computations wrote since the last time. Before that the typed array may hold old elements. It
   * also waits. What nobody synced is given up by {@link Matrix.close}: the array stays as it is.
   *
   * @example
   * const mine = new Float32Array([1, 2]), a = gpu.wrap(mine, 1, 2);
   * a.assign(a.mul(2));
   * await a.sync();
   * mine; // [2, 4]
   */
  sync(options?: WaitOptions): Promise<void>;
  /**
   * Of wrapped memory: says that you wrote to it. Results that were not brought back are given up.
   *
   * @example
   * const mine = new Float32Array([1, 2]), a = gpu.wrap(mine, 1, 2);
   * mine[0] = 10;
   * await a.touch().add(1).read(); // [11, 3]
   */
  touch(): this;
  /**
   * Brings the elements back and closes the matrix: what goes to another thread, where {@link Gpu.attach} makes a matrix of it. Matrices
   * themselves cannot be posted, as each thread has a device of its own.
   *
   * @example
   * const message = await gpu.matrix(1, 2, [1, 2]).detach();
   * worker.postMessage(message, [message.data]);
   */
  detach(options?: WaitOptions): Promise<MatrixMessage<T> & { readonly data: ArrayBuffer }>;
  /**
   * Of a mapped matrix: gives a function the elements as they lie in memory. With `write` set, what it leaves there is the
   * new content. The matrix cannot be used otherwise until the function, or the promise that it returns, is done, also where a signal
   * gives the call up. The array is not to be used afterwards.
   *
   * @example
   * const a = gpu.map(1, 2);
   * await a.access(true, (data) => data.set([3, 4]));
   * await a.add(1).read(); // [4, 5]
   */
  access<R>(write: boolean, fn: (data: Elements<T>) => R | PromiseLike<R>, options?: WaitOptions): Promise<R>;
  /**
   * A copy in memory of its own, row by row.
   *
   * Shapes: `m x n` -> `m x n`.
   * @example
   * const a = gpu.ones(1, 2), b = a.clone();
   * a.assign(0);
   * await b.read(); // [1, 1]
   */
  clone(): Matrix<T>;
  /**
   * Releases the memory; any further use of the matrix is an error. What was queued before is done.
   *
   * @example
   * const a = gpu.zeros(2, 2);
   * a.close();
   * a.closed; // true
   */
  close(): void;
}

/** An element-wise function of yours; see {@link Gpu.fn}. The names in its text are its own. */
export class Fn {
  private constructor();
  /**
   * The name of the function that is called: the first of the text.
   *
   * @example
   * gpu.fn("fn half(x: f32) -> f32 { return 0.5 * x; }").name; // "half"
   */
  readonly name: string;
  /**
   * How many arguments it takes, 1 to 6.
   *
   * @example
   * gpu.fn("fn add(x: f32, y: f32) -> f32 { return x + y; }").arity; // 2
   */
  readonly arity: number;
  /**
   * Makes further use of the function an error.
   *
   * @example
   * const half = gpu.fn("fn half(x: f32) -> f32 { return 0.5 * x; }");
   * half.close();
   */
  close(): void;
  /**
   * Closes the function at the end of the block that declares it with `using`.
   *
   * @example
   * using half = gpu.fn("fn half(x: f32) -> f32 { return 0.5 * x; }");
   */
  [Symbol.dispose](): void;
}
