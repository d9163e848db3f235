// SPDX-License-Identifier: Apache-2.0

// Tasks, which are calls to be made later, and pools of devices, which compute them.

import type { Cruncher, CruncherDevice, CruncherRange } from "./cruncher.js";
import type { SubletError } from "./errors.js";
import type { Info } from "./init.js";
import type { WaitOptions } from "./options.js";

/** The range of a task, and what is special about the task. But for `transferOnly` the latter counts in a {@link DevicePool} alone. */
export interface CruncherTaskRange extends Omit<CruncherRange, "signal"> {
  /** This task and those after it, up to one with `selectEnd`, run on one device, that with the least to do. */
  readonly selectBegin?: boolean;
  /** The last one of them. */
  readonly selectEnd?: boolean;
  /** All earlier tasks are complete before this one begins. */
  readonly globalSyncFirst?: boolean;
  /** This task and all earlier ones are complete before later ones begin. */
  readonly globalSyncLast?: boolean;
  /** Runs on every device, also on those added meanwhile. Its arrays have `write` cleared. */
  readonly broadcast?: boolean;
  /** Like `selectBegin`; besides, a task begins when the callback of the one before has returned. */
  readonly serialBegin?: boolean;
  /** The last one of those. */
  readonly serialEnd?: boolean;
  /**
   * Called each time that the task has ended, with its error if there is one. It may return a promise. In a pool the device has no other task
   * before that is fulfilled: it must not wait for the pool. What it throws there is `ErrCallback`. Where the pool or the Gpu is closed before, it is
   * called with `ErrClosed`.
   */
  readonly callback?: (error?: SubletError) => unknown;
}

/**
 * A call of {@link Cruncher.compute} to be made later, as often as you like; see {@link Cruncher.task}. Flags of arrays that change afterwards
 * have no effect on it.
 */
export interface CruncherTask {
  /**
   * Makes the call, on all devices of a cruncher, then calls the task's callback and waits for it, at the latest until the signal says so or the cruncher
   * is closed. A cruncher of another source has other kernels.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const mine = new Float32Array([1, 2, 3]), task = cr.task(1, "twice", { global: 3 }, cr.array("x", mine));
   * await task.compute(cr);
   * await task.compute(cr);
   * mine; // [4, 8, 12]
   */
  compute(cruncher: Cruncher, options?: WaitOptions): Promise<void>;
  /**
   * Whether the task was closed, or the Gpu was.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * cr.task(1, "twice", { global: 3 }, cr.array("x", 3)).closed; // false
   */
  readonly closed: boolean;
  /**
   * Gives the task up. Pools that have it compute it all the same.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const task = cr.task(1, "twice", { global: 3 }, cr.array("x", 3));
   * task.close();
   * task.closed; // true
   */
  close(): void;
  /**
   * Closes the task at the end of the block that declares it with `using`.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * using task = cr.task(1, "twice", { global: 3 }, cr.array("x", 3));
   */
  [Symbol.dispose](): void;
}

/** Options of {@link Cruncher.pool}. */
export interface DevicePoolOptions extends WaitOptions {
  /** Which device gets the next task: the one with the least to do, "greedy", by default, or one after the other. */
  readonly mode?: "greedy" | "round-robin";
}

/**
 * Computes whole tasks, each on one of several devices: those of the cruncher that made it ({@link Cruncher.pool}), in its order, and others that are
 * added. Tasks are given out in the order in which they were enqueued; while one device is at work others go on with later tasks, except where a
 * task says otherwise. A device has one task at a time. What tasks leave on a device without writing it to memory is seen by later tasks of that
 * device only.
 *
 * Tasks that may run at the same time must not write elements that others read or write. The work of a device that is lost is done by the others.
 */
export interface DevicePool {
  /**
   * The devices, in the order of {@link DevicePool.completed}.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }", { devices: ["own", "low-power"] });
   * using pool = await cr.pool();
   * pool.devices.length; // 2
   */
  readonly devices: readonly Info[];
  /**
   * Adds a device, also while tasks are under way. One may be there several times.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * using pool = await cr.pool();
   * const before = pool.devices.length;
   * await pool.addDevice("low-power");
   * pool.devices.length - before; // 1
   */
  addDevice(device: CruncherDevice, options?: WaitOptions): Promise<void>;
  /**
   * Has the devices compute tasks, and returns at once. Sections of tasks that overlap, that do not begin or do not end are `ErrInvalid`.
   *
   * @example
   * using cr = await gpu.cruncher("fn square(i: u32) { x[i] = x[i] * x[i]; }");
   * using pool = await cr.pool();
   * const mine = new Float32Array([1, 2, 3, 4]), x = cr.array("x", mine, { partialRead: true });
   * const half = (offset: number) => cr.task(1, "square", { global: 2, offset }, x);
   * pool.enqueue(half(0), half(2));
   * await pool.finish();
   * mine; // [1, 4, 9, 16]
   */
  enqueue(...tasks: CruncherTask[]): void;
  /**
   * Waits until all tasks enqueued before are complete, and their callbacks have returned. The number is the seconds from the first of them to the
   * end of the last. Rejects with the first error of a task since the last time; with `ErrDeviceLost` if all devices are, the tasks are then kept
   * for devices added later.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * using pool = await cr.pool();
   * pool.enqueue(cr.task(1, "twice", { global: 3 }, cr.array("x", 3)));
   * const seconds = await pool.finish();
   * seconds > 0; // true
   */
  finish(options?: WaitOptions): Promise<number>;
  /**
   * How many tasks each device has computed.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }", { devices: ["own", "own"] });
   * using pool = await cr.pool({ mode: "round-robin" });
   * const task = cr.task(1, "twice", { global: 3, globalSyncFirst: true }, cr.array("x", 3));
   * pool.enqueue(task, task, task, task);
   * await pool.finish();
   * pool.completed; // [2, 2]
   */
  readonly completed: readonly number[];
  /**
   * How many tasks are not complete. One for every device counts once for each.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * using pool = await cr.pool();
   * pool.remaining; // 0
   */
  readonly remaining: number;
  /**
   * Whether the pool was closed, or the Gpu was.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * using pool = await cr.pool();
   * pool.closed; // false
   */
  readonly closed: boolean;
  /**
   * Stops what is under way and drops what waits: callbacks, and who waits in {@link DevicePool.finish}, get `ErrClosed`.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const pool = await cr.pool();
   * pool.close();
   * pool.closed; // true
   */
  close(): void;
  /**
   * Closes the pool at the end of the block that declares it with `using`.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * using pool = await cr.pool();
   */
  [Symbol.dispose](): void;
}
