// SPDX-License-Identifier: Apache-2.0

import type { Gpu, Info } from "./gpu.js";
import type { WaitOptions } from "./matrix.js";

/** A device of a {@link Cruncher}: one of yours, that of the {@link Gpu}, or one that lives and ends with the cruncher. */
export type CruncherDevice = GPUDevice | "own" | "high-performance" | "low-power";

/** Options of {@link Gpu.cruncher}. */
export interface CruncherOptions {
  /**
   * What to compute on. "all", the default, is the Gpu's own device and one of another adapter, if the browser has one that
   * is no software; "own" the former alone. In an array a GPUDevice may be there twice; each mention of a power preference
   * opens a device of its own.
   */
  readonly devices?: "all" | "own" | readonly CruncherDevice[];
  /** What divides the ranges: by estimated throughput, or step for step as the Cekirdekler API does. */
  readonly balancer?: "default" | "legacy";
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

/** An element type of a {@link CruncherArray}; "bytes" are structures. */
export type CruncherDType = "float32" | "int32" | "uint32" | "int8" | "uint8" | "int16" | "uint16" | "bytes";

/** The memory of a {@link CruncherArray}. */
export type CruncherElements =
  | Float32Array | Int32Array | Uint32Array | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array;

/** What {@link Cruncher.array} is told of an array; see the properties of {@link CruncherArray}. */
export interface CruncherArrayOptions {
  /** The typed array's own by default, float32 where there is only a length, and "bytes" for a buffer. */
  readonly dtype?: CruncherDType;
  /** See {@link CruncherArray.read}. Flags that exclude each other, such as `readOnly` and `write`, are `ErrInvalid`. */
  readonly read?: boolean;
  /** See {@link CruncherArray.partialRead}. */
  readonly partialRead?: boolean;
  /** See {@link CruncherArray.write}. */
  readonly write?: boolean;
  /** See {@link CruncherArray.writeAll}. */
  readonly writeAll?: boolean;
  /** See {@link CruncherArray.readOnly}. */
  readonly readOnly?: boolean;
  /** See {@link CruncherArray.writeOnly}. */
  readonly writeOnly?: boolean;
  /** See {@link CruncherArray.zeroCopy}. */
  readonly zeroCopy?: boolean;
  /** See {@link CruncherArray.elementsPerItem}. */
  readonly elementsPerItem?: number;
  /** See {@link CruncherArray.halo}. */
  readonly halo?: number;
  /** See {@link CruncherArray.mode}. */
  readonly mode?: "widened" | "packed" | "atomic";
  /** See {@link CruncherArray.struct}. */
  readonly struct?: string;
  /** Promises that the memory changes by results only, and that {@link CruncherArray.touch} tells of everything else. */
  readonly tracked?: boolean;
  /** Called once, when the array is closed and no call uses it any more, or the Gpu is. */
  readonly release?: () => void;
}

/** What a call computes, and how. */
export interface CruncherRange {
  /**
   * The number of work items: those from `offset` on. In two and three dimensions, the extent of the slowest one, which
   * the devices divide among them. It need not be a multiple of anything.
   */
  readonly global: number;
  /** Items of a workgroup: 256, or what the devices allow. Devices get multiples of it, but for the rest of the range. */
  readonly local?: number;
  /** The number of the first item. */
  readonly offset?: number;
  /** The extents of the faster dimensions: x alone in two dimensions, x and y in three. */
  readonly inner?: readonly [number] | readonly [number, number] | readonly [];
  /** Refuses ranges that are no multiple of `local` and those too small to give every device a workgroup: `ErrRange`. */
  readonly strict?: boolean;
  /** Cuts each device's part into as many pieces, to move one while another is computed. */
  readonly blobs?: number;
  /** Calls the kernels as many times without anything moving between. */
  readonly repeat?: number;
  /** Runs after each repeat on every device, with the items of one workgroup from 0 on. */
  readonly syncKernel?: string;
  /** Moves what the call would and runs no kernel. */
  readonly transferOnly?: boolean;
  /** Gives the call up: `ErrAborted`, whose `cause` is the signal's reason. */
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
   * Whether the cruncher was closed.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * cr.closed; // false
   */
  readonly closed: boolean;

  /**
   * Makes an array of memory of yours, or of so many zeros, that kernels know by a name. Results are written to that very
   * memory. Leave it alone while a call uses it; between calls it is yours. All crunchers of a Gpu may use the array.
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
  compute(id: number, kernels: string, range: CruncherRange, ...params: (CruncherArray | CruncherScalar)[]): Promise<void>;
  /**
   * Runs a function whose calls of {@link CruncherBatch.compute} only queue, then waits for all of them and brings back what
   * they wrote. Until then the arrays must not be used, and other calls are `ErrBatch`. Shares stay what they are at the first
   * call of an id.
   *
   * Rejects with what the function throws, or with the first error of its calls; what was queued comes back all the same. A signal gives
   * up the calls that have none of their own.
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
   * Closes the cruncher and the devices that it opened. Arrays stay.
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
  compute(id: number, kernels: string, range: CruncherRange, ...params: (CruncherArray | CruncherScalar)[]): Promise<void>;
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

/**
 * An array that kernels read and write by its name. Its flags say what moves, and take effect with the next call; "read" means
 * from your memory to the devices and "write" back, as in the Cekirdekler API. The elements of item i begin at element
 * `i * elementsPerItem`. Close it when done.
 */
export class CruncherArray {
  private constructor();
  /**
   * What kernels call it.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.name; // "x"
   */
  readonly name: string;
  /**
   * The element type.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.dtype; // "float32"
   */
  readonly dtype: CruncherDType;
  /**
   * The number of elements.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.length; // 3
   */
  readonly length: number;
  /**
   * The memory: what the array was made of, a buffer as a typed array. It is the page's own, so nothing tells that devices have newer
   * elements: those that kernels wrote in calls with `write` cleared. {@link Cruncher.fetch} brings them.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.data.length; // 3
   */
  readonly data: CruncherElements;
  /**
   * Whether {@link CruncherArray.touch} tells of what you write to the memory.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.tracked; // false
   */
  readonly tracked: boolean;
  /**
   * Whether the array was closed.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.closed; // false
   */
  readonly closed: boolean;

  /**
   * Every device gets the whole array before its kernels run. True at first. Without it, and without `partialRead`, kernels
   * see what the devices have, zeros at first.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.read = false; // kernels see what the devices have
   */
  read: boolean;
  /**
   * A device gets the elements of its own items only, and those of a halo.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.partialRead = true; // each device reads the elements of its share
   */
  partialRead: boolean;
  /**
   * Each device's own elements come back. True at first.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.write = false; // results stay on the devices
   */
  write: boolean;
  /**
   * With `write`: all elements come back, from one device, which then computes the whole range.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.writeAll = true; // one device computes everything
   */
  writeAll: boolean;
  /**
   * Kernels only read. Setting it clears `write` and `writeAll` and has them ignored until it is cleared. It has no effect
   * while `writeOnly` is set. A cruncher that has used the array so takes it in no other way; see {@link Cruncher.evict}.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.readOnly = true;
   * x.write; // false
   */
  readOnly: boolean;
  /**
   * Kernels only write: as `readOnly`, with `read` and `partialRead`. It has no effect while `readOnly` is set.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.writeOnly = true;
   * x.read; // false
   */
  writeOnly: boolean;
  /**
   * Wants device memory that the CPU reaches, which no browser has yet.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.zeroCopy = true; // where the device has such memory
   */
  zeroCopy: boolean;
  /**
   * How many elements belong to a work item. 1 at first.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.elementsPerItem = 3; // item i has the elements 3 * i to 3 * i + 2
   */
  elementsPerItem: number;
  /**
   * With `partialRead`: how many elements on both sides of its own ones a device reads, too.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.halo = 1; // each item sees its neighbours
   */
  halo: number;
  /**
   * What kernels see of elements of 8 and 16 bits: a word for each, words of several, or such words as atomics.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const bytes = cr.array("bytes", new Uint8Array([1, 2, 3, 4]));
   * bytes.mode = "packed"; // four in a word
   */
  mode: "widened" | "packed" | "atomic";
  /**
   * The struct of the source that bytes are, or "" for words. WGSL must lay it out as it lies in memory.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const points = cr.array("points", new ArrayBuffer(16));
   * points.struct = "Point"; // struct Point { x: f32, y: f32 } of the source
   */
  struct: string;

  /**
   * Of a tracked array: says that you wrote to its memory.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine, { tracked: true });
   * mine[0] = 10;
   * await cr.compute(1, "twice", { global: 3 }, x.touch());
   * mine; // [20, 4, 6]
   */
  touch(): this;
  /**
   * Gives the array up: its memory is yours alone again.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), x = cr.array("x", mine);
   * x.close();
   * x.closed; // true
   */
  close(): void;
  /**
   * Closes the array at the end of the block that declares it with `using`.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * using x = cr.array("x", new Float32Array(3));
   */
  [Symbol.dispose](): void;
}

/** A number that kernels know by a name; see {@link Cruncher.scalar}. */
export class CruncherScalar {
  private constructor();
  /**
   * What kernels call it.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const by = cr.scalar("by", 2, "int32");
   * by.name; // "by"
   */
  readonly name: string;
  /**
   * The number.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const by = cr.scalar("by", 2, "int32");
   * by.value; // 2
   */
  readonly value: number;
  /**
   * The type that kernels see.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const by = cr.scalar("by", 2, "int32");
   * by.dtype; // "int32"
   */
  readonly dtype: "float32" | "int32" | "uint32";
}
