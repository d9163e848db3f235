// SPDX-License-Identifier: Apache-2.0

import type { Gpu } from "./gpu.js";
import type { WaitOptions } from "./options.js";

/** What a task's function gets beside its inputs. */
export interface TaskContext {
  /** The device of the task: expressions are computed on it. */
  readonly gpu: Gpu;
  /** Is aborted when the graph is closed. */
  readonly signal: AbortSignal;
}

/**
 * What a task does: it gets a block for each input, by the names of the ports, and returns one for each output, an object by their names or,
 * of a single output, the block itself. A block is a matrix, a tensor, an expression, which is computed, or any other value.
 *
 * Inputs belong to the graph: read them, return them, do not write to or close them. Matrices that the function makes are closed
 * as those of {@link Gpu.scope} are, except what it returns.
 */
export type TaskBody = (inputs: any, context: TaskContext) => unknown;

/** The ports of a task. */
export interface TaskOptions {
  /** The task runs when each of these has a block. There is at least one. */
  readonly inputs?: readonly string[];
  /** Inputs that keep their block until they get another one, by {@link Graph.set} or from a channel. */
  readonly sticky?: readonly string[];
  readonly outputs?: readonly string[];
  /** The device; that of the graph by default. Matrices and tensors of another one come there by way of the CPU. */
  readonly gpu?: Gpu;
}

/** A queue between two ports. */
export interface ChannelOptions {
  /** The most blocks that wait; 4 by default. A task does not run while a channel of its outputs is full. */
  readonly capacity?: number;
}

/** Where blocks enter a graph. */
export interface GraphInput {
  /** Sends a block in, when there is capacity. A matrix or a tensor belongs to the graph from then on. */
  push(value: unknown, options?: WaitOptions): Promise<void>;
}

/** Where blocks leave a graph. */
export interface GraphOutput<T = any> {
  /** Waits for the next block, which is yours to close. What a task failed with is thrown here, in the place of its block. */
  pull(options?: WaitOptions): Promise<T>;
}

/** What a graph has done and has. */
export interface GraphStats {
  readonly tasks: readonly { readonly name: string; readonly runs: number; readonly failures: number; readonly busy: boolean }[];
  /** `from` is empty at an input of the graph, `to` at an output. */
  readonly channels: readonly { readonly from: string; readonly to: string; readonly capacity: number; readonly length: number; readonly peak: number }[];
}

/**
 * A dataflow graph: tasks that run when their inputs are there, whose functions are JavaScript that builds expressions of matrices and may be
 * asynchronous. Blocks flow through channels of bounded length, so that whoever is slow holds up those before it and memory stays bounded;
 * what is in a channel is computed by the device meanwhile. A task runs once at a time and blocks stay in their order.
 *
 * A block that goes to several tasks is shared. A task that throws sends its error on in place of its outputs, and tasks that get one do
 * not run, so that it comes out where the result would. Ports are named by texts, "task.port".
 *
 * `await gpu.graph()` loads what does all this. It is the model of the Go package matrix/graph without that package's choice of devices, signals, gates
 * and writing in place.
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
   * Makes a channel from an output to an input. An initial block starts a cycle, which otherwise waits for itself.
   *
   * @example
   * using graph = await gpu.graph();
   * graph.task("sum", ({ x, s }) => ({ s: s.add(x), y: s.add(x) }), { inputs: ["x", "s"], outputs: ["s", "y"] });
   * graph.connect("sum.s", "sum.s", { initial: gpu.zeros(1, 1) });
   */
  connect(from: string, to: string, options?: ChannelOptions & { readonly initial?: unknown }): this;
  /** Makes an input of the graph for a port. */
  input(to: string, options?: ChannelOptions): GraphInput;
  /** Makes an output of the graph from a port. */
  output<T = any>(from: string, options?: ChannelOptions): GraphOutput<T>;
  /** Gives a sticky input its block, which belongs to the graph from then on. It may be called at any time. */
  set(port: string, value: unknown): this;
  /** Starts the graph, or goes on after {@link Graph.stop}. Ports without a channel, and cycles that nothing starts, are `ErrInvalid`. */
  run(): this;
  /** Lets no more blocks in and waits until nothing can run any more. Outputs can be pulled until they are empty. */
  stop(options?: WaitOptions): Promise<void>;
  /** Ends the graph from any state: whoever waits gets `ErrClosed`, the signals of tasks are aborted, and what it has is closed. */
  close(): void;
  [Symbol.dispose](): void;
  readonly state: "new" | "running" | "stopping" | "stopped" | "closed";
  stats(): GraphStats;
  /** The graph for Graphviz, with what is in the channels. */
  dot(): string;
  toString(): string;
}
