// SPDX-License-Identifier: Apache-2.0

// Arrays and scalars of crunchers.

import type { Cruncher } from "./cruncher.js";

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
  /** Called once, when the array is closed and no call uses it any more, or the Gpu is. What it throws is an error of the page that nobody has caught. */
  readonly release?: () => void;
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
   * Whether the array was closed, or the Gpu was.
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
   * How many elements belong to a work item. 1 at first, which with {@link CruncherArray.struct} stands for a struct.
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
   * Whether only devices have the newest values of some elements: kernels wrote them in calls with `write` cleared. {@link Cruncher.fetch} brings them.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * const x = cr.array("x", new Float32Array([1, 2, 3]), { write: false });
   * await cr.compute(1, "twice", { global: 3 }, x);
   * x.stale; // true
   */
  readonly stale: boolean;
  /**
   * The array by another name, for calls that exchange arrays.
   *
   * @example
   * using cr = await gpu.cruncher("fn step(i: u32) { dst[i] = 2.0 * src[i]; }");
   * const a = cr.array("a", new Float32Array([1, 2, 3])), b = cr.array("b", 3);
   * await cr.compute(1, "step", { global: 3 }, a.as("src"), b.as("dst"));
   * await cr.compute(1, "step", { global: 3 }, b.as("src"), a.as("dst"));
   * a.data.join(); // "4,8,12"
   */
  as(name: string): CruncherAlias;

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

/** An array by another name; see {@link CruncherArray.as}. */
export interface CruncherAlias {
  /**
   * What kernels call it.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * cr.array("mine", 3).as("x").name; // "x"
   */
  readonly name: string;
  /**
   * The array.
   *
   * @example
   * using cr = await gpu.cruncher("fn twice(i: u32) { x[i] = 2.0 * x[i]; }");
   * cr.array("mine", 3).as("x").array.name; // "mine"
   */
  readonly array: CruncherArray;
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
