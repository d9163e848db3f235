// SPDX-License-Identifier: Apache-2.0

/**
 * What a function of {@link Gpu.record} assigns, planned and compiled once and computed as often as you like, with what is in the operands
 * then. A run neither plans nor compiles, and is one call of the WebAssembly program and one submission to the device.
 *
 * Data are changed where they are: by `set` of operands, or in memory that they wrap, with `touch`. Numbers that stand in expressions stay
 * what they were; a number that changes is a matrix of 1x1. Matrices may get other memory by `memory.rebind` and `memory.setValueFrom`, and
 * are planned anew then; another size is `ErrShape`, which whoever reads a result is told, until the matrix has its size again. A recording
 * stays with the memory of its matrices: after `memory.swap`, `take` or `move` it computes with what has that memory now.
 *
 * It keeps its matrices from being collected, and does not close them.
 */
export class Recording<T = unknown> {
  private constructor();
  /**
   * How many assignments there are.
   *
   * @example
   * const x = gpu.ones(1, 2), step = await gpu.record(() => x.assign(x.add(1)));
   * step.steps; // 1
   */
  readonly steps: number;
  /**
   * Whether it was closed, or the Gpu was.
   *
   * @example
   * const x = gpu.ones(1, 2), step = await gpu.record(() => x.assign(x.add(1)));
   * step.close();
   * step.closed; // true
   */
  readonly closed: boolean;
  /**
   * Queues everything once, in its order, and returns what the function has returned. A closed matrix is `ErrClosed` and one that a callback
   * of `access` has is `ErrMapped`, at once. Other errors stay with all that the recording writes to, as those of `assign` do.
   *
   * @example
   * const x = gpu.ones(1, 2), step = await gpu.record(() => x.assign(x.add(1)));
   * step.run();
   * await step.run().read(); // [3, 3]
   */
  run(): T;
  /**
   * Drops kernels and memory that the recording has of its own. What is queued is still computed.
   *
   * @example
   * const x = gpu.ones(1, 2), step = await gpu.record(() => x.assign(x.add(1)));
   * step.close();
   */
  close(): void;
  /**
   * Closes the recording at the end of the block that declares it with `using`.
   *
   * @example
   * const x = gpu.ones(1, 2);
   * using step = await gpu.record(() => x.assign(x.add(1)));
   */
  [Symbol.dispose](): void;
  /**
   * One line with the number of assignments and the device.
   *
   * @example
   * const x = gpu.ones(1, 2), step = await gpu.record(() => x.assign(x.add(1)));
   * step.toString(); // "Recording of 1 steps on simd"
   */
  toString(): string;
}
