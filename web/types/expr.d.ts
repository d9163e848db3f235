// SPDX-License-Identifier: Apache-2.0

// Expressions, which nothing is computed of before they are evaluated, and their plans.

import type { ClassesOf, DType, Elements, TypedArray } from "./elements.js";
import type { SaveFileOptions } from "./files.js";
import type { Fn } from "./fn.js";
import type { Gpu } from "./gpu.js";
import type { Matrix } from "./matrix.js";
import type { NumPyMethods } from "./numpy.js";
import type { ExprOperations } from "./operations.js";
import type { Operand, PartOfMatrix, Range, WaitOptions } from "./options.js";
import type { Canvas, DrawOptions } from "./pictures.js";
import type { Sparse, SparseFormat } from "./sparse.js";
import type { Tensor } from "./tensor.js";

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
   * Conversion to another element type, as in C; a float that is too large for an integer becomes one of the largest, and an integer wraps.
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
   * The same elements, row by row, as an array of that shape, of which one length may be -1; see {@link Gpu.tensor}.
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
