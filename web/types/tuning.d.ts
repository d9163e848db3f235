// SPDX-License-Identifier: Apache-2.0

/** What {@link Tuning.run} times, and how. */
export interface TuningOptions {
  /**
   * Families of kernels and sizes, such as "product:300x500x700", the rows of both factors and the columns of the second, and
   * "softmax:777x333". Letters behind products tell which factors are transposed: "product:64x64x64:nt" is of the second one. Others are
   * "vector:1x500x700", "sparse:5000x20x64", whose rows have 20 entries each, "reduce-rows", "reduce-columns", "transpose",
   * "elementwise" and "grid", element-wise functions of parts of matrices. Each serves sizes between half and twice its own, too. A
   * selection that takes minutes, by default.
   */
  readonly work?: readonly string[];
  /** How often each variant is timed, by turns: 1 to 100, or 0 for 15. */
  readonly rounds?: number;
  /** Is called with each choice, null where there is nothing to choose, how many are done and how many there are. */
  readonly onProgress?: (choice: TuningChoice | null, done: number, all: number) => void;
  /** Gives up: `ErrAborted`, whose `cause` is the signal's reason. What was known before stays. */
  readonly signal?: AbortSignal;
}

/** The timings of a family's variants for operands of one type, one layout and sizes between the same powers of two. */
export interface TuningChoice {
  readonly family: string;
  readonly dtype: string;
  /** Of products: 1 where the left factor is stored by columns, plus 2 where the right one is. */
  readonly layout: number;
  /** The binary logarithms of the sizes, rounded up. */
  readonly log2: readonly number[];
  /** What was timed. */
  readonly shape: string;
  /** The variant that is used without timings. */
  readonly usual: string;
  /** The one that is clearly faster, or "". */
  readonly best: string;
  readonly timings: readonly {
    readonly variant: string;
    /** Nanoseconds of the first call, with the compilation, or 0. */
    readonly first_ns: number;
    /** Nanoseconds of later calls. */
    readonly ns: readonly number[];
    /** Whether its results were not those of the usual variant. */
    readonly wrong: boolean;
  }[];
}

/** The timings of an adapter: what the command `sublet tune` writes natively, of another driver. */
export interface TuningResults {
  readonly version: number;
  /** Tells the kernels that were timed from those of other versions of the package. */
  readonly kernels: string;
  readonly adapter: {
    readonly driver: string;
    readonly name: string;
    readonly vendor: string;
    readonly backend: string;
    readonly kind: string;
    readonly max_invocations: number;
    readonly max_workgroup_memory: number;
  };
  /** Whether they are kept and not used. */
  readonly off: boolean;
  readonly choices: readonly TuningChoice[];
}

/**
 * Times the variants of kernels on the adapter, and has expressions computed by those that are clearly faster than the usual ones: by a
 * twentieth in the lower quartile, with a first call that is no later. Results stay within the tolerances of the package; their last bits
 * may differ, since sums are computed in another order.
 *
 * Timings are kept in the browser's database, for all pages of the origin. A later {@link init} looks them up when its first result is there
 * and all of the program has been loaded; until then, and with `init({tuning: false})`, the usual variants compute. Where there is no
 * database, as in Node, or the browser refuses it, they are used as long as the device is open; `export` and `import` keep them elsewhere.
 * Timings that are broken, of another adapter or of other kernels are ignored, with a warning in the console.
 */
export class Tuning {
  private constructor();
  /**
   * Times variants, keeps the results with those that were known, and uses them. It does so on devices of its own, so that work of the page
   * goes on meanwhile, slower. Where the CPU computes, it does so in the thread of the call: better in a worker.
   *
   * @example
   * const { choices } = await gpu.tuning.run({ work: ["transpose:8x8"], rounds: 1 });
   * choices[0].shape; // "transpose:8x8"
   */
  run(options?: TuningOptions): Promise<TuningResults>;
  /**
   * What is known, in the form that `import` takes.
   *
   * @example
   * const text = JSON.stringify(await gpu.tuning.export());
   */
  export(): Promise<TuningResults>;
  /**
   * Keeps results that were exported, perhaps on another machine with the same adapter, in place of what was known, and uses them. What
   * `export` does not give is `ErrInvalid`; results of another adapter, or of other kernels, are `ErrUnsupported`. What was known stays then.
   *
   * @example
   * await gpu.tuning.import(await gpu.tuning.export());
   */
  import(results: TuningResults): Promise<void>;
  /**
   * Forgets what is known, and computes as usual.
   *
   * @example
   * await gpu.tuning.clear();
   * (await gpu.tuning.export()).choices.length; // 0
   */
  clear(): Promise<void>;
}
