// SPDX-License-Identifier: Apache-2.0

// Functions of your own in WGSL.

import type { Gpu } from "./gpu.js";

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
