// SPDX-License-Identifier: Apache-2.0

// Crunchers: kernels of your own on several devices.

import type { CruncherAlias, CruncherArray, CruncherArrayOptions, CruncherScalar } from "./arrays.js";
import type { CruncherPipeline, CruncherPipelineStage, CruncherStage, DevicePipeline } from "./pipelines.js";
import type { CruncherTask, CruncherTaskRange, DevicePool, DevicePoolOptions } from "./tasks.js";
import type { Gpu } from "./gpu.js";
import type { Info } from "./init.js";
import type { WaitOptions } from "./options.js";

/** A device of a {@link Cruncher}: one of yours, that of the {@link Gpu}, or one that lives and ends with the cruncher. */
export type CruncherDevice = GPUDevice | "own" | "high-performance" | "low-power";

/** What a {@link CruncherBalancer} is asked. */
export interface CruncherSplit {
  /** The id of the call, or for a pipeline's stage the number of the step. */
  readonly id: number;
  /** How many items there are. */
  readonly global: number;
  /** Items that stay together: each device begins at a multiple of so many. */
  readonly step: number;
  /** Of each device, whether it is there. One that is lost gets no items. */
  readonly alive: readonly boolean[];
  /** How the default balancer would divide the range. It is told what every call took, and reckons with elements that would have to move. */
  readonly usual: readonly number[];
}

/**
 * Divides the ranges of a cruncher among its devices. Both functions are called in the middle of a call: they return at once, and cannot use
 * crunchers. What they throw is `ErrCallback` of that call, or for `observe` of the next one.
 */
export interface CruncherBalancer {
  /**
   * Returns how many items each device gets, in the order of {@link Cruncher.devices}: they add up to `global`. Without a result the range is divided
   * as `usual` says.
   *
   * @example
   * const split = ({ global, step, alive }) => alive.map((_, i) => i === 0 ? global : 0); // the first device alone
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }", { balancer: { split } });
   * const mine = new Float32Array([1, 2, 3]);
   * await cr.compute(1, "twice", { global: 3 }, cr.array("x", mine));
   * cr.last.shares[0].count; // 3
   */
  split(request: CruncherSplit): readonly number[] | void;
  /** Is told, after each call that succeeded and was no part of a batch, how many items each device computed and what it took. */
  observe?(id: number, samples: readonly { readonly count: number; readonly seconds: number }[]): void;
}

/** Options of {@link Gpu.cruncher}. */
export interface CruncherOptions {
  /**
   * What to compute on. "all", the default, is the Gpu's own device and one of another adapter, if the browser has one that
   * is no software; "own" the former alone. In an array a GPUDevice may be there twice; each mention of a power preference
   * opens a device of its own.
   */
  readonly devices?: "all" | "own" | readonly CruncherDevice[];
  /**
   * What divides the ranges: "default" by estimated throughput, "legacy" step for step as the Cekirdekler API does, "legacy-raw" as that does without
   * its mean of ten calls, or functions of yours.
   */
  readonly balancer?: "default" | "legacy" | "legacy-raw" | CruncherBalancer;
  /**
   * What becomes of elements that stay on the devices when shares change: they move to the device that needs them
   * ("migrate", the default), shares stay what they were at the first call of an id ("pin"), or such a call is `ErrMigration`
   * ("strict").
   */
  readonly coherence?: "migrate" | "pin" | "strict";
  /**
   * The most bytes that the arrays have on each device; 0, the default, is what the device allows. Where a call needs more, arrays that it does
   * not use and that are elsewhere, too, leave the device, those used longest ago first.
   */
  readonly memory?: number;
  /** Gives the call up: `ErrAborted`, whose `cause` is the signal's reason. */
  readonly signal?: AbortSignal;
}

/** What kernels are called with. */
export type CruncherParam = CruncherArray | CruncherAlias | CruncherScalar;

/** What a call computes, and how. */
export interface CruncherRange {
  /**
   * The number of work items: those from `offset` on. In two and three dimensions, the extent of the slowest one, which
   * the devices divide among them. It need not be a multiple of anything.
   */
  readonly global: number;
  /** Items of a workgroup. By default, and for 0, 256 or what the devices allow. Devices get multiples of it, but for the rest of the range. */
  readonly local?: number;
  /** The number of the first item. */
  readonly offset?: number;
  /** The extents of the faster dimensions: x alone in two dimensions, x and y in three. */
  readonly inner?: readonly [number] | readonly [number, number] | readonly [];
  /** Refuses ranges that are no multiple of `local` and those too small to give every device a workgroup: `ErrRange`. */
  readonly strict?: boolean;
  /**
   * Cuts each device's part into as many pieces, to move one while another is computed. 0, the default, and 1 do not. There are no pieces of fewer than
   * `local` items, and none where there are repeats or a `syncKernel`.
   */
  readonly blobs?: number;
  /** Calls the kernels as many times without anything moving between. Once by default, and for 0. */
  readonly repeat?: number;
  /** Runs after each repeat on every device, with the items of one workgroup from 0 on. */
  readonly syncKernel?: string;
  /** Moves what the call would and runs no kernel. */
  readonly transferOnly?: boolean;
  /** Gives the call up: `ErrAborted`, whose `cause` is the signal's reason. On the CPU a workgroup that is being computed ends first; see {@link Cruncher}. */
  readonly signal?: AbortSignal;
}

/** Bytes between the arrays' memory and the devices, and between devices. */
export interface CruncherTraffic {
  /** To the devices. */
  readonly bytesUp: number;
  /** From the devices. */
  readonly bytesDown: number;
  /** From one device to another. */
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
  /** How many calls there were. */
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
 *
 * Kernels have to end. "simd" ends a workgroup whose loops take more than some billion turns in all, which takes seconds: the call is `ErrLimit`. Until
 * then the thread that computes it, which is the caller's where there is one thread or little to do, hears no signal. With WebGPU the
 * browser gives the device up after some seconds: `ErrDeviceLost`.
 */
export class Cruncher {
  private constructor();
  /**
   * The kernels of the source.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * cr.kernels; // ["twice"]
   */
  readonly kernels: readonly string[];
  /**
   * The devices, in the order of shares. One may be there several times.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * cr.devices.length; // how many compute
   */
  readonly devices: readonly Info[];
  /**
   * Whether the cruncher was closed, or the Gpu was.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * cr.closed; // false
   */
  readonly closed: boolean;

  /**
   * Makes an array of memory of yours, or of so many zeros, that kernels know by a name. Results are written to that very
   * memory. Leave it alone while a call uses it; between calls it is yours. All crunchers of a Gpu may use the array. Where arrays of
   * one call share memory, and kernels write more than one of them, what is there afterwards is undefined.
   *
   * Memory without an element type, an ArrayBuffer for example, is "bytes": structures, which kernels see as words or as
   * the `struct` named in the options.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.compute(1, "twice", { global: 3 }, x);
   * mine; // [2, 4, 6]
   */
  array(name: string, data: ArrayBufferLike | ArrayBufferView, options?: CruncherArrayOptions): CruncherArray;
  array(name: string, length: number, options?: CruncherArrayOptions): CruncherArray;
  /**
   * A number that kernels know by a name. It goes to the devices with each call.
   *
   * @example
   * using cr = await gpu.cruncher("fn scale(i: u32) { x[i] = by * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]);
   * await cr.compute(1, "scale", { global: 3 }, cr.array("x", mine), cr.scalar("by", 10));
   * mine; // [10, 20, 30]
   */
  scalar(name: string, value: number, dtype?: "float32" | "int32" | "uint32"): CruncherScalar;

  /**
   * Runs kernels, named in one text and separated by blanks or commas, one after the other over the range: each device its
   * share of all of them. Fulfilled when the results are in the arrays' memory. `id` is a number of yours for what is computed:
   * each has shares of its own, which get better from call to call. The flags of arrays are those at the time of the call.
   *
   * A call that fails or is given up leaves the arrays' memory as it was, but for memory that was detached or lost with a
   * device while results were written. Of elements that only the devices have, those that its kernels write are then undefined.
   * The work of a device that is lost is done by the others: `ErrDeviceLost` if none is left.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.compute(1, "twice", { global: 3 }, x);
   * mine; // [2, 4, 6]
   */
  compute(id: number, kernels: string, range: CruncherRange, ...params: CruncherParam[]): Promise<void>;
  /**
   * Runs a function whose calls of {@link CruncherBatch.compute} only queue, then waits for all of them and brings back what
   * they wrote. Until then the arrays must not be used, and other calls are `ErrBatch`. Shares stay what they are at the first
   * call of an id.
   *
   * Rejects with what the function throws, or with the first error of its calls; what was queued comes back all the same. A signal gives
   * up the calls that have none of their own, and ends the wait for the function: `ErrAborted`. So does closing the cruncher or the Gpu, `ErrClosed`.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.batch((batch) => {
   *   void batch.compute(1, "twice", { global: 3 }, x);
   *   void batch.compute(1, "twice", { global: 3 }, x);
   * });
   * mine; // [4, 8, 12]
   */
  batch(queue: (batch: CruncherBatch) => unknown, options?: WaitOptions): Promise<void>;
  /**
   * Brings what only the devices have to the memory of arrays. If that is not possible none of them is changed.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.write = false; // results stay on the device
   * await cr.compute(1, "twice", { global: 3 }, x);
   * await cr.fetch(x);
   * mine; // [2, 4, 6]
   */
  fetch(...arrays: CruncherArray[] | [...CruncherArray[], WaitOptions]): Promise<void>;
  /**
   * Gives the device memory of arrays back, or of all if none is named. What only the devices have is lost.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.compute(1, "twice", { global: 3 }, x);
   * await cr.evict(x);
   * mine; // [2, 4, 6]
   */
  evict(...arrays: CruncherArray[] | [...CruncherArray[], WaitOptions]): Promise<void>;

  /**
   * Makes a task: a call of {@link Cruncher.compute} to be made later, as often as you like. The flags of arrays are those of now.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), task = cr.task(1, "twice", { global: 3 }, cr.array("x", mine));
   * await task.compute(cr);
   * mine; // [2, 4, 6]
   */
  task(id: number, kernels: string, range: CruncherTaskRange, ...params: CruncherParam[]): CruncherTask;
  /**
   * Makes a pool, which computes whole tasks, each on one of the devices of the cruncher. Others may be added. It goes on when the cruncher is closed.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * using pool = await cr.pool();
   * const mine = [1, 2].map((k) => new Float32Array([k]));
   * pool.enqueue(...mine.map((memory) => cr.task(1, "twice", { global: 1 }, cr.array("x", memory))));
   * await pool.finish();
   * mine[1]; // [4]
   */
  pool(options?: DevicePoolOptions): Promise<DevicePool>;
  /**
   * Makes a chain of stages that work at the same time, each on the devices of a cruncher, of this one where a stage names none. The outputs of
   * a stage are, in their order, the inputs of the next one: there are as many, of the same types and lengths, or one output for all inputs. Inputs go
   * whole to each device, or with `partialRead` each device's part.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * const x = cr.array("x", new Float32Array([1, 2, 3])), y = cr.array("y", 3);
   * using pipe = await cr.pipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [x], outputs: [y] }]);
   * await pipe.push(); // true
   * y.data.join(); // "2,4,6"
   */
  pipeline(stages: readonly CruncherPipelineStage[], options?: WaitOptions): Promise<CruncherPipeline>;
  /**
   * Makes a chain of stages on one device: that of a place among the cruncher's devices, the first one by default. An array is hidden in one stage,
   * or an output of one; an output that is an input of the next stage belongs to two.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { y[i] = 2.0 * x[i]; }");
   * const x = cr.array("x", new Float32Array([1, 2, 3])), y = cr.array("y", 3);
   * using pipe = await cr.devicePipeline([{ steps: [{ kernels: "twice", global: 3 }], inputs: [x], outputs: [y] }]);
   * await pipe.serial();
   * await pipe.feed(); // true
   * y.data.join(); // "2,4,6"
   */
  devicePipeline(stages: readonly CruncherStage[], options?: WaitOptions & { readonly device?: number }): Promise<DevicePipeline>;

  /**
   * What the last call did that computed something and did not fail.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.compute(1, "twice", { global: 3 }, x);
   * cr.last.bytesDown; // 12
   */
  readonly last: CruncherReport;
  /**
   * The shares of an id and how they came about.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.compute(1, "twice", { global: 3 }, x);
   * cr.stats(1).calls; // 1
   */
  stats(id: number): CruncherStats;
  /**
   * What moved since the cruncher was made.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.compute(1, "twice", { global: 3 }, x);
   * cr.traffic().bytesUp; // 12
   */
  traffic(): CruncherTraffic;

  /**
   * Closes the cruncher, and the devices that it opened unless a pool or a pipeline made of it has them. Arrays stay. Calls that were made before
   * are done first, in their order. A batch that is open is `ErrClosed`, and nothing of it comes back; later calls are `ErrClosed`, too.
   *
   * @example
   * const cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * cr.close();
   * cr.closed; // true
   */
  close(): void;
  /**
   * Closes the cruncher at the end of the block that declares it with `using`.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   */
  [Symbol.dispose](): void;
}

/** Calls that are queued one after the other; see {@link Cruncher.batch}. */
export class CruncherBatch {
  private constructor();
  /**
   * Queues what {@link Cruncher.compute} computes. There is no need to wait: the batch does.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.batch((batch) => { void batch.compute(1, "twice", { global: 3 }, x); });
   * mine; // [2, 4, 6]
   */
  compute(id: number, kernels: string, range: CruncherRange, ...params: CruncherParam[]): Promise<void>;
  /**
   * How many of the calls queued so far are done on all devices.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.batch((batch) => {
   *   void batch.compute(1, "twice", { global: 3 }, x);
   *   console.log(batch.reached);
   * });
   */
  readonly reached: number;
  /**
   * How many of the calls queued so far are not done yet.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * await cr.batch((batch) => {
   *   void batch.compute(1, "twice", { global: 3 }, x);
   *   console.log(batch.remaining);
   * });
   */
  readonly remaining: number;
}
