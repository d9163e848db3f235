// SPDX-License-Identifier: Apache-2.0

// Pipelines: stages of kernels that work at the same time, on devices of their own or on one.

import type { CruncherAlias, CruncherArray, CruncherScalar } from "./arrays.js";
import type { Cruncher, CruncherRange } from "./cruncher.js";
import type { WaitOptions } from "./options.js";

/** Kernels of a stage with their range. */
export interface CruncherStep extends Omit<CruncherRange, "signal"> {
  /** Named in one text, as for {@link Cruncher.compute}. */
  readonly kernels: string;
}

/** A stage of a {@link DevicePipeline}. The flags of arrays are those that they have when the pipeline is made. */
export interface CruncherStage {
  /** What runs at each step of the pipeline, one after the other. */
  readonly steps: readonly CruncherStep[];
  /** Arrays that get data before the kernels run, which cannot write them. */
  readonly inputs?: readonly (CruncherArray | CruncherAlias)[];
  /** Arrays that stay on the devices, zero at first, for what is kept from one step to the next; and scalars. */
  readonly hidden?: readonly (CruncherArray | CruncherAlias | CruncherScalar)[];
  /** Arrays of results. They have elements for each item of the ranges, or else `writeAll` set: `ErrLength`. */
  readonly outputs?: readonly (CruncherArray | CruncherAlias)[];
}

/** A stage of a {@link CruncherPipeline}. */
export interface CruncherPipelineStage extends CruncherStage {
  /** Whose kernels, devices and options it has: those of the cruncher that makes the pipeline by default. */
  readonly cruncher?: Cruncher;
  /** What runs once, when the pipeline is made. */
  readonly initializers?: readonly CruncherStep[];
}

/**
 * A chain of stages that work at the same time, each on devices of its own; see {@link Cruncher.pipeline}. At each push every stage that has data
 * computes them, while what it computed at the push before goes on to the next stage.
 */
export interface CruncherPipeline {
  /**
   * Moves everything by one step, and tells whether results came out. The arrays are those with data for the inputs of the first stage, which are
   * copied before the promise is fulfilled, and those for results of the last one, both of the lengths and types of the stage's, whatever their names.
   *
   * Without inputs (null) the data are what the input arrays of the first stage hold; an empty list sends none, to empty the pipeline. Without outputs
   * results are written to the output arrays of the last stage. With S stages results of the first push come at push 2S + 1, at 2S if there are either
   * no inputs or no outputs, at 2S - 1 if there are neither.
   *
   * A push that fails has written no results. The next one goes on where it stopped, with its own inputs in place of those of the one that failed.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * const [x, y, data, results] = ["x", "y", "data", "results"].map((name) => cr.array(name, 3));
   * using pipe = await cr.pipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [x], outputs: [y] }]);
   * data.data.set([1, 2, 3]);
   * await pipe.push([data], [results]);
   * await pipe.push([], [results]);
   * await pipe.push([], [results]); // true
   * results.data.join(); // "2,4,6"
   */
  push(inputs?: readonly CruncherArray[] | null, outputs?: readonly CruncherArray[] | null, options?: WaitOptions): Promise<boolean>;
  /**
   * Whether the pipeline was closed, or the Gpu was.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * using pipe = await cr.pipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [cr.array("x", 3)], outputs: [cr.array("y", 3)] }]);
   * pipe.closed; // false
   */
  readonly closed: boolean;
  /**
   * Stops what is under way. Data on their way are lost; arrays and devices of yours stay.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * const pipe = await cr.pipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [cr.array("x", 3)], outputs: [cr.array("y", 3)] }]);
   * pipe.close();
   * pipe.closed; // true
   */
  close(): void;
  /**
   * Closes the pipeline at the end of the block that declares it with `using`.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * using pipe = await cr.pipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [cr.array("x", 3)], outputs: [cr.array("y", 3)] }]);
   */
  [Symbol.dispose](): void;
}

/**
 * A chain of stages on one device; see {@link Cruncher.devicePipeline}. Each feed brings the stages' inputs up, runs all stages and brings outputs
 * back. An output of a stage that is an input of the next one stays on the device.
 *
 * In parallel mode, the one at first, no stage waits for another: each computes what the one before it computed at the feed before, and outputs come back
 * one feed after they were computed, while kernels run. With S stages the results of a feed come S feeds later. In serial mode they come with it.
 */
export interface DevicePipeline {
  /**
   * Does everything for the data that the input arrays hold now, and tells whether the outputs of the last stage hold results. A feed that fails has
   * written no output; the next one goes on where it stopped. Wait for a feed before the next one, which is `ErrInvalid` as long as one has begun.
   *
   * @example
   * using cr = await gpu.cruncher("fn inc(i: u32) { mid[i] = x[i] + 1.0; } fn twice(i: u32) { y[i] = 2.0 * mid[i]; }");
   * const x = cr.array("x", new Float32Array([1, 2, 3])), mid = cr.array("mid", 3), y = cr.array("y", 3);
   * using pipe = await cr.devicePipeline([
   *   { steps: [{ kernels: "inc", global: 3 }], inputs: [x], outputs: [mid] },
   *   { steps: [{ kernels: "twice", global: 3 }], inputs: [mid], outputs: [y] },
   * ]);
   * await pipe.feed(); // false
   * await pipe.feed(); // false
   * await pipe.feed(); // true
   * y.data.join(); // "4,6,8"
   */
  feed(options?: WaitOptions): Promise<boolean>;
  /**
   * Begins a feed. When it is fulfilled the inputs have been copied and the device is at work.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * const x = cr.array("x", new Float32Array([1, 2, 3])), y = cr.array("y", 3);
   * using pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [x], outputs: [y] }]);
   * await pipe.feedBegin();
   * x.data.set([4, 5, 6]); // for the next feed
   * await pipe.feedEnd(); // false
   * await pipe.feed(); // true
   * y.data.join(); // "2,4,6"
   */
  feedBegin(options?: WaitOptions): Promise<void>;
  /**
   * Ends a feed: waits until the device has done everything, and tells whether the outputs of the last stage hold results.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * using pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [cr.array("x", 3)], outputs: [cr.array("y", 3)] }]);
   * await pipe.feedBegin();
   * await pipe.feedEnd(); // false
   */
  feedEnd(options?: WaitOptions): Promise<boolean>;
  /**
   * Chooses serial mode. Data on their way are lost, whatever the mode was.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * const x = cr.array("x", new Float32Array([1, 2, 3])), y = cr.array("y", 3);
   * using pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [x], outputs: [y] }]);
   * await pipe.serial();
   * await pipe.feed(); // true
   * y.data.join(); // "2,4,6"
   */
  serial(): Promise<void>;
  /**
   * Chooses parallel mode. Data on their way are lost, whatever the mode was.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * using pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [cr.array("x", 3)], outputs: [cr.array("y", 3)] }]);
   * await pipe.parallel();
   * await pipe.feed(); // false
   */
  parallel(): Promise<void>;
  /**
   * Has the inputs of stages, counted from 0, stay what they are on the device and their outputs stay there, from the next feed on. The data of all
   * other stages are moved again: of all of them where none is named.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * const x = cr.array("x", new Float32Array([1, 2, 3])), y = cr.array("y", 3);
   * using pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [x], outputs: [y] }]);
   * await pipe.serial();
   * await pipe.stopTransmission(0);
   * await pipe.feed(); // false
   * y.data.join(); // "0,0,0"
   */
  stopTransmission(...stages: number[]): Promise<void>;
  /**
   * Whether the pipeline was closed, or the Gpu was.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * using pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [cr.array("x", 3)], outputs: [cr.array("y", 3)] }]);
   * pipe.closed; // false
   */
  readonly closed: boolean;
  /**
   * Stops what is under way. Data on their way are lost; arrays and devices of yours stay.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * const pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [cr.array("x", 3)], outputs: [cr.array("y", 3)] }]);
   * pipe.close();
   * pipe.closed; // true
   */
  close(): void;
  /**
   * Closes the pipeline at the end of the block that declares it with `using`.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * using pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [cr.array("x", 3)], outputs: [cr.array("y", 3)] }]);
   */
  [Symbol.dispose](): void;
}
