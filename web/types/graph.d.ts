// SPDX-License-Identifier: Apache-2.0

// Task graphs: tasks that run when their inputs are there.

import type { Gpu } from "./gpu.js";
import type { WaitOptions } from "./options.js";

/**
 * What a block says beside its value, and what tasks pass on: that a stream begins or ends there, or an iteration, or that nobody is to get it
 * ("devNull").
 */
export type Signal = "bof" | "eof" | "beginIteration" | "endIteration" | "devNull";

/** Options of {@link Gpu.graph}. */
export interface GraphOptions {
  /** Devices beside the Gpu on which tasks may run. What a task needs comes there by way of the CPU. */
  readonly gpus?: readonly Gpu[];
  /**
   * Which of the tasks that are ready is next, and where it runs. "data-aware", the default: the one with the highest effective priority, on the device that
   * has most of its inputs; if that is busy the task waits until its effective priority is above `threshold`. "priority": the one with the highest,
   * on any device. "first-available": the first one that may run on a device that is free. "fifo": the one that has been ready longest, and none
   * overtakes it at a device that it waits for. An effective priority is the task's own, more the longer it waits compared with others, and less
   * if it runs much longer than others; 0 to 10.
   */
  readonly mode?: "data-aware" | "first-available" | "priority" | "fifo";
  /** The effective priority above which a task no longer waits for the device of its data; 6 by default, and 10 for never. */
  readonly threshold?: number;
  /**
   * How many tasks may be at work on each device; as many as are ready by default. A task is at work until its function has returned, or what that
   * promises is fulfilled: with 1 the modes decide over everything, and a task that waits for something else holds its device up.
   */
  readonly concurrency?: number;
  /** Has each run last until the device has done its work, so that times and traces are those of the work. */
  readonly sync?: boolean;
  /** How many runs are kept for {@link Graph.trace}, the last ones; none by default. */
  readonly trace?: number;
}

/** What a task's function gets beside its inputs. */
export interface TaskContext {
  /** The device of the task: expressions are computed on it. */
  readonly gpu: Gpu;
  /** Is aborted when the graph is closed. */
  readonly signal: AbortSignal;
  /** The signals of the block of an input. */
  signals(input: string): Signal[];
  /** Says which signals an output's block has, instead of those of the inputs. */
  setSignals(output: string, signals: readonly Signal[]): void;
}

/**
 * What a task does: it gets a block for each input, by the names of the ports, and returns one for each output: of a single output the block
 * itself, of several an object by their names. A block is a matrix, a tensor, an expression, which is computed, or any other value.
 *
 * Inputs belong to the graph: read them, return them, and do not close them. Write only to those that an output is in place of. Matrices that the
 * function makes are closed as those of {@link Gpu.scope} are, except what it returns.
 */
export type TaskBody = (inputs: any, context: TaskContext) => unknown;

/** What is special about an output. */
export interface TaskOutput {
  readonly name: string;
  /**
   * The input whose block the task changes where it is: it has a copy of its own if others read that, or it is kept. What the function returns may leave the
   * output out.
   */
  readonly inPlace?: string;
  /** The inputs whose signals the blocks get: all that are not sticky by default. */
  readonly signalsFrom?: readonly string[];
  /** No channel has to take the blocks. */
  readonly optional?: boolean;
  /**
   * Another output, whose block opens this one for the run if it is the end of a stream, or not 0 (of a matrix or a tensor, its first element). Otherwise
   * this output's block goes nowhere.
   */
  readonly openedBy?: string;
  /** The opposite: another output, whose block closes this one. */
  readonly closedBy?: string;
}

/** The ports of a task, and how it is scheduled. */
export interface TaskOptions {
  /** The task runs when each of these has a block. There is at least one. */
  readonly inputs?: readonly string[];
  /** Inputs that keep their block until they get another one, by {@link Graph.set} or from a channel. */
  readonly sticky?: readonly string[];
  readonly outputs?: readonly (string | TaskOutput)[];
  /** 0 to 10; 5 by default. See {@link GraphOptions.mode}. */
  readonly priority?: number;
  /** The only device that the task runs on, which may be any. Matrices and tensors of another one come there by way of the CPU. */
  readonly gpu?: Gpu;
  /** The one of the graph's devices that the task takes of those that are free. */
  readonly prefer?: Gpu;
  /** The one of the graph's devices that the task waits for as it waits for that of its data. */
  readonly waitFor?: Gpu;
}

/**
 * Which blocks pass an end of a channel: those that no member refuses. Errors count as blocks with all signals, so that they leave loops, and are not asked
 * about; at an output of the graph they always pass.
 */
export interface ChannelPredicate {
  /** Blocks that have none of these do not pass. */
  readonly openOn?: readonly Signal[];
  /** Blocks that have one of these do not pass. */
  readonly closeOn?: readonly Signal[];
  /** Is called when a block enters the channel, and by {@link Graph.reconsider}. Blocks that it throws about do not pass. */
  readonly ask?: (value: any, signals: Signal[]) => boolean;
}

/** A queue between two ports. */
export interface ChannelOptions {
  /** The most blocks that wait; 4 by default. A task does not run while a channel of its outputs is full. */
  readonly capacity?: number;
  /** Which blocks enter. Others are dropped. */
  readonly push?: ChannelPredicate;
  /** Which blocks leave. Others are dropped, or wait with `hold`. */
  readonly pull?: ChannelPredicate;
  /** Blocks that `pull` refuses wait, and all behind them, until {@link Graph.reconsider}. */
  readonly hold?: boolean;
  /** The port's control channel: its blocks come before those of the port's other channel. */
  readonly control?: boolean;
}

/** Where blocks enter a graph. */
export interface GraphInput {
  /**
   * Sends a block in, when there is capacity. A matrix or a tensor belongs to the graph from then on.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("twice", ({ x }) => x.mul(2), { inputs: ["x"], outputs: ["y"] });
   * const x = graph.input("twice.x"), y = graph.output("twice.y");
   * graph.run();
   * await x.push(gpu.matrix([[1, 2]]), { signals: ["eof"] });
   * await (await y.pull()).read(); // [2, 4]
   */
  push(value: unknown, options?: WaitOptions & { readonly signals?: readonly Signal[] }): Promise<void>;
}

/** Where blocks leave a graph. */
export interface GraphOutput<T = any> {
  /**
   * Waits for the next block, which is yours to close. What a task failed with is thrown here, in the place of its block. Once the graph is stopped
   * and the output empty, it is `ErrClosed`.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("total", ({ x }) => x.sum().value(), { inputs: ["x"], outputs: ["n"] });
   * const x = graph.input("total.x"), n = graph.output<number>("total.n");
   * graph.run();
   * await x.push(gpu.matrix([[1, 2], [3, 4]]));
   * await n.pull(); // 10
   */
  pull(options?: WaitOptions): Promise<T>;
  /**
   * As {@link GraphOutput.pull}, with the block's signals.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("next", ({ x }) => x + 1, { inputs: ["x"], outputs: ["y"] });
   * const x = graph.input("next.x"), y = graph.output<number>("next.y");
   * graph.run();
   * await x.push(1, { signals: ["eof"] });
   * const { value, signals } = await y.take();
   * value; // 2
   * signals.join(); // "eof"
   */
  take(options?: WaitOptions): Promise<{ readonly value: T; readonly signals: readonly Signal[] }>;
}

/** What a graph has done and has. Lists of devices are those of the graph, the Gpu that made it first, and others that tasks name. */
export interface GraphStats {
  readonly tasks: readonly {
    readonly name: string;
    readonly runs: number;
    /** Runs that failed, not counting those that only passed an error on. */
    readonly failures: number;
    /** Runs that began anew on another device, as theirs was lost or closed. */
    readonly retries: number;
    readonly busy: boolean;
    /** Seconds in total from being ready to the start. */
    readonly wait: number;
    /** Seconds in total from the start to the end. */
    readonly run: number;
    /** The runs on each device. */
    readonly devices: readonly number[];
  }[];
  readonly devices: readonly { readonly gpu: Gpu; readonly running: number; readonly runs: number }[];
  /** `from` is empty at an input of the graph, `to` at an output. */
  readonly channels: readonly {
    readonly from: string;
    readonly to: string;
    readonly capacity: number;
    readonly length: number;
    /** The most blocks that there ever were. */
    readonly peak: number;
    /** Blocks that were sent in. */
    readonly pushed: number;
    /** Those that its predicates refused. */
    readonly dropped: number;
  }[];
  /** Copies that were made for tasks that write in place. */
  readonly clones: number;
}

/**
 * A dataflow graph: tasks that run when their inputs are there, whose functions are JavaScript that builds expressions of matrices and may be
 * asynchronous. Blocks flow through channels of bounded length, so that whoever is slow holds up those before it and memory stays bounded;
 * what is in a channel is computed by the device meanwhile. A task runs once at a time and blocks stay in their order.
 *
 * A block that goes to several tasks is shared. A task that throws sends its error on in place of its outputs, and tasks that get one do
 * not run, so that it comes out where the result would. Ports are named by texts, "task.port".
 *
 * If a device is lost, tasks run on the others until {@link Gpu.reopen}; a run that fails for that begins anew on another one, so that its function is
 * called again. Blocks that were only there are `ErrDeviceLost`: those whose work was queued and had not been done, too, unless the graph is made with `sync`.
 *
 * `await gpu.graph()` loads what does all this. It is the model of the Go package matrix/graph. What a function of JavaScript does by itself is not there:
 * templates of blocks, ports that make, measure or describe blocks or call the function several times, and bodies of kernels.
 */
export interface Graph {
  /**
   * Adds a task.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("layer", ({ x, w }) => x.matmul(w).relu(), { inputs: ["x"], sticky: ["w"], outputs: ["y"] });
   */
  task(name: string, body: TaskBody, options: TaskOptions): this;
  /**
   * Makes a channel from an output to an input. An initial block starts a cycle, which otherwise waits for itself. From a task to itself the capacity
   * is at least 2: the task's input is still in the channel when its output needs capacity.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("sum", ({ x, s }) => ({ s: s.add(x), y: s.add(x) }), { inputs: ["x", "s"], outputs: ["s", "y"] });
   * graph.connect("sum.s", "sum.s", { initial: gpu.zeros(1, 1) });
   */
  connect(from: string, to: string, options?: ChannelOptions & { readonly initial?: unknown }): this;
  /**
   * Makes an input of the graph for a port.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("next", ({ x }) => x + 1, { inputs: ["x"], outputs: ["y"] });
   * const x = graph.input("next.x", { capacity: 2 }); // at most two blocks wait
   */
  input(to: string, options?: ChannelOptions): GraphInput;
  /**
   * Makes an output of the graph from a port.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("next", ({ x }) => x + 1, { inputs: ["x"], outputs: ["y"] });
   * const last = graph.output<number>("next.y", { pull: { openOn: ["eof"] } }); // of each stream the last block
   */
  output<T = any>(from: string, options?: ChannelOptions): GraphOutput<T>;
  /**
   * Gives a sticky input its block, which belongs to the graph from then on. It may be called at any time.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("scale", ({ x, by }) => x * by, { inputs: ["x"], sticky: ["by"], outputs: ["y"] });
   * const x = graph.input("scale.x"), y = graph.output<number>("scale.y");
   * graph.set("scale.by", 10).run();
   * await x.push(3);
   * await y.pull(); // 30
   */
  set(port: string, value: unknown): this;
  /**
   * Starts the graph, or goes on after {@link Graph.stop}; before that is fulfilled it is `ErrInvalid`. So are ports without a channel, cycles that
   * nothing starts, and those without capacity.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("next", ({ x }) => x + 1, { inputs: ["x"], outputs: ["y"] });
   * graph.input("next.x");
   * graph.output("next.y");
   * graph.run().state; // "running"
   */
  run(): this;
  /**
   * Asks predicates again about the blocks that channels hold.
   *
   * @example
   * using graph = await gpu.graph();
   * let open = false;
   * graph.task("next", ({ x }) => x + 1, { inputs: ["x"], outputs: ["y"] });
   * const x = graph.input("next.x"), y = graph.output<number>("next.y", { hold: true, pull: { ask: () => open } });
   * graph.run();
   * await x.push(1);
   * open = true;
   * graph.reconsider();
   * await y.pull(); // 2
   */
  reconsider(): this;
  /**
   * Lets no more blocks in and waits until nothing can run any more. Outputs can be pulled until they are empty.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("next", ({ x }) => x + 1, { inputs: ["x"], outputs: ["y"] });
   * const x = graph.input("next.x"), y = graph.output<number>("next.y");
   * graph.run();
   * await x.push(1);
   * await graph.stop();
   * graph.state; // "stopped"
   * await y.pull(); // 2
   */
  stop(options?: WaitOptions): Promise<void>;
  /**
   * Ends the graph from any state: whoever waits gets `ErrClosed`, the signals of tasks are aborted, and what it has is closed.
   *
   * @example
   * const graph = await gpu.graph();
   * graph.close();
   * graph.state; // "closed"
   */
  close(): void;
  /**
   * Closes the graph at the end of the block that declares it with `using`.
   *
   * @example
   * using graph = await gpu.graph();
   */
  [Symbol.dispose](): void;
  /**
   * What the graph does.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.state; // "new"
   */
  readonly state: "new" | "running" | "stopping" | "stopped" | "closed";
  /**
   * What the graph has done and has.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("next", ({ x }) => x + 1, { inputs: ["x"], outputs: ["y"] });
   * const x = graph.input("next.x"), y = graph.output<number>("next.y");
   * graph.run();
   * await x.push(1);
   * await y.pull(); // 2
   * graph.stats().tasks[0].runs; // 1
   */
  stats(): GraphStats;
  /**
   * The runs that {@link GraphOptions.trace} keeps in Chrome's trace-event format, which Perfetto and chrome://tracing open: a row for each device.
   *
   * @example
   * using graph = await gpu.graph({ trace: 1000 });
   * const file = new Blob([graph.trace()]); // to be saved as trace.json
   */
  trace(): string;
  /**
   * The graph for Graphviz, with what is in the channels.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("next", ({ x }) => x + 1, { inputs: ["x"], outputs: ["y"] });
   * graph.dot().includes('"next" [shape=box]'); // true
   */
  dot(): string;
  /**
   * One line.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.toString(); // "Graph of 0 tasks, new"
   */
  toString(): string;
}
