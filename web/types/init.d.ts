// SPDX-License-Identifier: Apache-2.0

// What opens a device, and what that tells of itself.

import type { Gpu } from "./gpu.js";

/** A WebAssembly program of the package: its address, a response, its bytes or the module. */
export type Program = string | URL | BufferSource | WebAssembly.Module | Response | PromiseLike<Response>;

/** Options of {@link init}. */
export interface InitOptions {
  /**
   * What to compute on. "auto", the default, is "webgpu" where the browser has a GPU for it, and "simd" otherwise: {@link Info.driver}
   * tells which. "webgpu" takes any adapter of WebGPU, also one that computes on the CPU (SwiftShader, llvmpipe), or rejects with
   * `ErrNoAdapter`, before any program is loaded. "simd" computes on the CPU, by WebAssembly with instructions for vectors, in every page and
   * in Node. A GPUDevice of yours: buffers made on it can be wrapped, and closing leaves it alone.
   */
  readonly device?: "auto" | "webgpu" | "simd" | GPUDevice;
  /**
   * The program for WebGPU. The package's own `sublet.wasm` by default. The rest of it, which a page loads after its first result, comes from
   * beside the address (`sublet-rest.wasm`), or is the second of a pair.
   */
  readonly wasm?: Program | readonly [first: Program, rest: Program];
  /** The program for "simd" and its rest. The package's own `sublet-simd.wasm` by default. Only the one of both that is needed is loaded. */
  readonly simdWasm?: Program | readonly [first: Program, rest: Program];
  /**
   * How many threads compute for "simd", 1 to 64: as many as there are cores by default, 16 at most. More than one needs shared memory, which
   * Node has, and pages that are {@link https://developer.mozilla.org/docs/Web/API/Window/crossOriginIsolated isolated from other origins}.
   * Elsewhere, and for a `simdWasm` that is a WebAssembly.Module already, there is one. {@link Info.threads} tells.
   */
  readonly threads?: number;
  /** Which of several GPUs to take. The fastest by default. */
  readonly power?: "high-performance" | "low-power";
  /**
   * Logs what the device does by `console.debug`, losses and refusals by `console.warn`: "calls" are buffers, transfers and batches,
   * "kernels" also each kernel compiled and each launch, "wgsl" also their source. `globalThis.SUBLET_DEBUG` has the same effect where
   * this is absent. "leaks" keeps the stack where each matrix was made, see {@link Gpu.leaks}, and warns of those that are open at
   * {@link Gpu.close}, or that were forgotten and collected. Nothing by default, at no cost.
   */
  readonly debug?: "calls" | "kernels" | "wgsl" | "leaks" | "";
  /** Whether to compute by the variants of kernels that {@link Tuning.run} found to be faster here, which is the default. */
  readonly tuning?: boolean;
  /** The program behind {@link Gpu.cruncher}, loaded with the first one. The package's `sublet-cruncher.wasm` by default. */
  readonly cruncherWasm?: Program;
  /** Gives up: `ErrAborted`, whose `cause` is the signal's reason. What is being compiled then is there for the next call. */
  readonly signal?: AbortSignal;
}

/**
 * Loads the program and opens a device. Each call makes one of its own.
 *
 * Rejects with `ErrNoAdapter` where there is no such device, as in an engine whose WebAssembly has no instructions for vectors, with
 * `ErrDeviceLost` for a GPUDevice that is lost, and with `ErrInvalid` when the program cannot be loaded: the message has its address, the status and the media type of the answer, or what
 * forbids it. A later call tries again.
 *
 * @example
 * using gpu = await init({ device: "simd" });
 * await gpu.ones(2, 2).sum().value(); // 4
 */
export function init(options?: InitOptions): Promise<Gpu>;

/** What the device is. As a text it is one line. */
export interface Info {
  /** "browser" for WebGPU, "simd" for the CPU. */
  readonly driver: string;
  /** What the device calls itself. */
  readonly name: string;
  /** Who made it. */
  readonly vendor: string;
  /** The interface beneath, such as "webgpu". */
  readonly backend: string;
  /** "discrete", "integrated", "virtual", "cpu" or "unknown": "cpu" for "simd" and for software adapters of WebGPU. */
  readonly kind: string;
  /** How many threads compute, the page's own included: 1 where that is not "simd", or {@link InitOptions.threads} cannot be had. */
  readonly threads: number;
  /** The features of WebGPU that it was opened with. */
  readonly features: readonly string[];
  /** What it can do at most. */
  readonly limits: {
    /** Bytes of the largest buffer. */
    readonly maxBufferSize: number;
    /** Bytes of it that one kernel can see at a time. */
    readonly maxBindingSize: number;
    /** Buffers that one kernel can see. */
    readonly maxStorageBuffers: number;
    /** Workgroups of one launch in one dimension. */
    readonly maxWorkgroups: number;
  };
}

/** What a device has done since it was opened and what it holds. Bytes are those of the data. */
export interface Stats {
  /** To the device. */
  readonly bytesUp: number;
  /** From the device. */
  readonly bytesDown: number;
  /** Batches of commands that were handed to the device. */
  readonly submissions: number;
  /** Kernels launched. */
  readonly dispatches: number;
  /** Kernels compiled because they were needed. */
  readonly compilations: number;
  /** Kernels compiled ahead of need, in the background. */
  readonly prepared: number;
  /** Kernels that were there already. */
  readonly cacheHits: number;
  /** Of buffers in use, external ones not counted. */
  readonly liveBytes: number;
  /** The most that liveBytes has been. */
  readonly peakBytes: number;
  /** Of closed buffers kept for reuse. */
  readonly pooledBytes: number;
  /** Buffers in use, external ones not counted. */
  readonly buffers: number;
  /** Kernels kept for reuse. */
  readonly kernels: number;
}
