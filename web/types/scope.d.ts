// SPDX-License-Identifier: Apache-2.0

/** What a function of {@link Gpu.scope} gets: what the scope closes can be added to and taken from it. */
export interface Scope {
  /**
   * Hands something to the scope, which closes it: a matrix, whatever else has a `close` and can stand behind `using`, or an array, a Map or
   * an object of such. It returns what it is given. After an `await` it is how the scope hears of what is made.
   *
   * Once the scope has ended it closes what it is given and throws `ErrClosed`.
   *
   * @example
   * await gpu.scope(async (scope) => {
   *   const s = scope.use(await gpu.sparseFrom(gpu.eye(2))); // closed when the function is done
   *   return s.sum().value();
   * }); // 2
   */
  use<T extends object>(x: T): T;
  /**
   * Takes something out of the scope, so that it stays open and is yours to close: for what is not returned but stored.
   *
   * @example
   * const cache = new Map<string, Matrix>();
   * gpu.scope((scope) => void cache.set("ones", scope.keep(gpu.ones(1, 2))));
   * cache.get("ones")?.closed; // false
   */
  keep<T extends object>(x: T): T;
  /**
   * Calls a function, and hands everything to the scope that is made until it returns, as in the beginning of an asynchronous scope.
   *
   * @example
   * await gpu.scope(async (scope) => {
   *   await gpu.sync();
   *   const { x, y } = scope.run(() => ({ x: gpu.ones(1, 2), y: gpu.ones(2, 1) })); // closed, too
   *   return x.matmul(y).value();
   * }); // 2
   */
  run<T>(fn: () => T): T;
}

/** Something that is open; see {@link Gpu.leaks}. */
export interface Leak {
  /** "matrix", "sparse matrix", "function f", "parameter w", "optimiser", "recording", "file", "cruncher", "array a". */
  readonly kind: string;
  /** Of a matrix: rows and columns. */
  readonly shape?: readonly number[];
  readonly dtype?: string;
  /** Of its own memory: 0 where that is yours, or another's as well. */
  readonly bytes: number;
  /** Where it was made, in the engine's own format, without the calls within this package. */
  readonly stack: string;
}
