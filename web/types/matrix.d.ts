// SPDX-License-Identifier: Apache-2.0

import type { DType, Elements, Order, Values } from "./elements.js";
import type { SaveFileOptions } from "./files.js";
import type { Gpu } from "./gpu.js";
import type { ExprOperations } from "./operations.js";
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
export type Operand = Expr | number;

/** What a reduction runs along: 0 down the columns, 1 along the rows, as in NumPy; absent or null, over everything. */
export interface ReduceOptions {
  readonly axis?: 0 | 1 | -1 | -2 | null;
}

/** What a sort or a running sum runs along: 1 along the rows, the default; 0 down the columns. */
export interface OrderOptions {
  readonly axis?: 0 | 1 | -1 | -2;
}

/** What a softmax runs along: 1 along the rows, the default; 0 down the columns; null over everything. */
export interface NormaliseOptions {
  readonly axis?: 0 | 1 | -1 | -2 | null;
}

/** What a variance runs along, and by how much less than their number the squares are divided: 0 by default, 1 for a sample. */
export interface SpreadOptions extends ReduceOptions {
  readonly ddof?: number;
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

export interface Expr extends ExprOperations {}

/** A computation that has not run yet. It may be used several times and runs each time it is evaluated. */
export class Expr {
  protected constructor();

  readonly rows: number;
  readonly cols: number;
  readonly shape: [rows: number, cols: number];
  /** rows * cols. */
  readonly size: number;
  readonly dtype: DType;

  /** Conversion to another element type, as in C; what is too large for an integer becomes one of the largest. */
  astype(dtype: DType): Expr;
  /** Applies a function of yours to this and further operands. */
  apply(fn: Fn, ...more: Operand[]): Expr;

  /** The transpose. Of a matrix it is a view. */
  readonly T: Expr;
  transpose(): Expr;
  /** Rows i to k-1 and columns j to l-1, everything by default. Of a matrix it is a view. */
  slice(i?: number, k?: number, j?: number, l?: number): Expr;
  row(i: number): Expr;
  col(j: number): Expr;
  /** The same elements, row by row, in another shape. Of a matrix without gaps it is a view. */
  reshape(rows: number, cols: number): Expr;
  /** The same elements, row by row, as an array of that shape; see {@link Gpu.tensor}. */
  tensor(...shape: number[]): Tensor;
  tensor(shape: readonly number[]): Tensor;

  /** Queues the computation and returns the result in memory of its own. */
  eval(): Matrix;
  /**
   * Evaluates an expression that is sparse as a sparse matrix of its own; of any other that is `ErrUnsupported`. An expression of sparse
   * matrices stays sparse under operations of one operand that make 0 of 0, products and quotients with numbers or, element by element, with dense
   * matrices (where nothing is stored the result is 0; of a product of dense matrices in that place only the elements are computed that
   * are used), sums and element-wise products of sparse matrices of one size, the product of two sparse matrices, the transpose and
   * conversions to types of 32 bits. A product with a dense matrix is dense, and sums, means and norms read the stored values alone; all
   * other operations take a sparse matrix as the dense one that it stands for. The format is that of the first operand unless you say another.
   */
  sparse(options?: WaitOptions & { readonly format?: SparseFormat }): Promise<Sparse>;
  /** A sparse expression with other stored values: a row with one for each entry in the order of storage, or one number for all. */
  with(values: Operand): Expr;
  /**
   * Computes and brings the elements back, row by row, into an array of yours if you give one. Of an array that was given to a call
   * which was given up, the content is undefined.
   */
  read(options?: WaitOptions): Promise<Elements>;
  read<T extends ArrayBufferView>(into: T, options?: WaitOptions): Promise<T>;
  /** The only element of a 1x1 result. */
  value(options?: WaitOptions): Promise<number>;
  /** How it is computed: the kernels, in their order, as they are launched when nothing is compiled ahead. Nothing is computed or compiled. */
  explain(options?: WaitOptions): Promise<Plan>;

  /**
   * Computes and saves it alone in a file; see {@link Gpu.save}.
   *
   * ```js
   * const blob = await a.matmul(b).save({format: "npy"});
   * ```
   */
  save(options: SaveFileOptions & { readonly format: "npy" | "mtx" }): Promise<Blob>;

  /** An expression holds no memory; closing it only makes further use an error. */
  close(): void;
  [Symbol.dispose](): void;
}

/** How an expression is computed. As a text it has a line for each kernel, and one for all of them. */
export interface Plan {
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
  readonly bytesRead: number;
  readonly bytesWritten: number;
  /** Matrices in between. */
  readonly temporaries: number;
  readonly temporaryBytes: number;
  toString(): string;
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
  /** Where the current elements are, after everything that was called before: nowhere yet means zeros. To wait no longer than a signal allows, call {@link Matrix.sync} with it before. */
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
  /**
   * Of wrapped memory: brings back what computations wrote since the last time. Before that the typed array may hold old elements. It
   * also waits. What nobody synced is given up by {@link Matrix.close}: the array stays as it is.
   */
  sync(options?: WaitOptions): Promise<void>;
  /**
   * Brings the elements back and closes the matrix: what goes to another thread, where {@link Gpu.attach} makes a matrix of it. Matrices
   * themselves cannot be posted, as each thread has a device of its own.
   *
   * ```js
   * const message = await m.detach();
   * worker.postMessage(message, [message.data]);
   * ```
   */
  detach(options?: WaitOptions): Promise<MatrixMessage<ArrayBuffer>>;
  /** Of wrapped memory: says that you wrote to it. Results that were not brought back are given up. */
  touch(): this;
  /**
   * Of a mapped matrix: gives a function the elements as they lie in memory. With `write` set, what it leaves there is the
   * new content. The matrix cannot be used otherwise until the function, or the promise that it returns, is done. The array
   * is not to be used afterwards.
   */
  access<T>(write: boolean, fn: (data: Elements) => T | PromiseLike<T>, options?: WaitOptions): Promise<T>;

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
   * false afterwards. Memory of yours stays yours: it is released when the matrix gives it up, never freed, and never left for
   * larger memory.
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

/** An element-wise function of yours; see {@link Gpu.fn}. The names in its text are its own. */
export class Fn {
  private constructor();
  readonly name: string;
  /** How many arguments it takes, 1 to 6. */
  readonly arity: number;
  close(): void;
  [Symbol.dispose](): void;
}
