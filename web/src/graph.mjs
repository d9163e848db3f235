// SPDX-License-Identifier: Apache-2.0

import {failure, guard, listed, show} from './errors.mjs';
import {inside, isMatrix} from './expr.mjs';
import {sessionOf} from './gpu.mjs';
import {INSPECT, printLine, tag} from './inspect.mjs';
import {checkSignal, onAbort, read, signalOf} from './source.mjs';
import {insideTensor} from './tensor-expr.mjs';

// Task graphs: the rules are those of package matrix/graph, as far as a page has a use for them; see Graph in the declarations.

/** @typedef {import('./gpu.mjs').Gpu} Gpu */
/** What flows: a value, or the error that stands for it. mine: the graph closes it. @typedef {{value: any, error?: unknown, failed: boolean, mine: boolean, refs: number}} Block */
/** @typedef {{done: (value: any) => void, refuse: (error: unknown) => void, block: Block | null}} Waiter */
/**
 * A queue of bounded length. Those who wait at its ends come one after the other.
 * @typedef {{from: string, to: string, capacity: number, queue: Block[], peak: number, pushers: Waiter[], pullers: Waiter[]}} Channel
 */
/**
 * @typedef {{name: string, body: Function, gpu: Gpu, inputs: string[], sticky: string[], outputs: string[], into: Map<string, Channel>, outOf: Map<string, Channel[]>,
 *   kept: Map<string, Block>, busy: boolean, runs: number, failures: number}} Task
 */

/** How long tasks may run one after the other before the page has its turn, in milliseconds. */
const TURN = 8;
/** Blocks of a channel that nobody says the capacity of. */
const CAPACITY = 4;
const EMPTY = 'the graph was stopped, and the output is empty';

/** @param {any} value @returns {Block} */
function blockOf(value) {
  let mine = false;
  try {
    mine = isMatrix(value) || insideTensor(value, 'graph') !== undefined;
  } catch { // it is closed, or nothing of ours
  }
  return {value, failed: false, mine, refs: 0};
}

/** Drops a reference. The last one closes what can be closed. @param {Block} block */
function release(block) {
  if (--block.refs <= 0 && block.mine) block.value.close();
}

/** A value that is in memory: an expression is computed. @param {any} value */
function evaluated(value) {
  const matrix = inside(value, 'graph'), tensor = insideTensor(value, 'graph'); // which refuse what is closed
  return (matrix && !isMatrix(value)) || (tensor && !tensor.node.memory) ? value.eval() : value;
}

/** A matrix or a tensor on a device; what lies on another one goes by way of the host. @param {Gpu} gpu @param {any} value @returns {any} the value itself, or a promise of a copy */
function moved(gpu, value) {
  const part = isMatrix(value) ? inside(value, 'graph') : insideTensor(value, 'graph');
  if (!part || part.session === sessionOf(gpu)) return value;
  const {shape, dtype} = value, options = {dtype};
  return value.read().then((/** @type {any} */ elements) => isMatrix(value) ? gpu.matrix(shape[0], shape[1], elements, options) : gpu.tensor(elements, shape, options));
}

/** Where blocks enter a graph. */
class GraphInput {
  #push;

  /** @param {(value: unknown, options: unknown) => Promise<void>} push */
  constructor(push) { this.#push = push; }

  /** @param {unknown} value @param {unknown} [options] */
  async push(value, options) { return this.#push(value, options); }
}

/** Where blocks leave a graph. */
class GraphOutput {
  #pull;

  /** @param {(options: unknown) => Promise<any>} pull */
  constructor(pull) { this.#pull = pull; }

  /** @param {unknown} [options] @returns {Promise<any>} */
  async pull(options) { return this.#pull(options); }
}

/** Tasks that run when their inputs are there. */
export class Graph {
  #gpu;
  /** @type {Map<string, Task>} */
  #tasks = new Map();
  /** @type {Channel[]} */
  #channels = [];
  /** @type {'new' | 'running' | 'stopping' | 'stopped' | 'closed'} */
  #state = 'new';
  #controller = new AbortController();
  #scheduled = false;
  /** Those who wait for the graph to stop. @type {Set<() => void>} */
  #stops = new Set();

  static {
    tag(this, 'Graph');
    tag(GraphInput, 'GraphInput');
    tag(GraphOutput, 'GraphOutput');
  }

  /** @param {Gpu} gpu */
  constructor(gpu) {
    this.#gpu = gpu;
    const graph = new WeakRef(this); // the device may outlive it
    sessionOf(gpu).ended.then(() => graph.deref()?.close());
  }

  // Building.

  /** @param {unknown} name @param {unknown} body @param {unknown} [options] */
  task(name, body, options) {
    const where = 'task', o = read(where, options, ['inputs', 'sticky', 'outputs', 'gpu']);
    this.#building(where);
    if (typeof name !== 'string' || !/^[^.]+$/.test(name)) throw failure('ErrName', where, `${show(name)}; a name is a text without a point`);
    if (this.#tasks.has(name)) throw failure('ErrName', where, `there is a task ${show(name)}`);
    if (typeof body !== 'function') throw failure('ErrInvalid', where, `${show(body)} is no function`);
    const [inputs, sticky, outputs] = ['inputs', 'sticky', 'outputs'].map((list) => {
      const names = listed(where, o[list] ?? []);
      if (!names?.every((port) => typeof port === 'string' && port !== '')) throw failure('ErrInvalid', where, `${list} ${show(o[list])}; an array of names`);
      return names;
    });
    if (new Set([...inputs, ...sticky]).size < inputs.length + sticky.length || new Set(outputs).size < outputs.length) throw failure('ErrName', where, 'two ports of a name');
    const gpu = o.gpu ?? this.#gpu;
    guard(where, () => sessionOf(gpu).check());
    this.#tasks.set(name, {name, body: /** @type {Function} */ (body), gpu, inputs, sticky, outputs, into: new Map(), outOf: new Map(), kept: new Map(), busy: false, runs: 0, failures: 0});
    return this;
  }

  /** @param {unknown} from @param {unknown} to @param {unknown} [options] */
  connect(from, to, options) {
    const where = 'connect', o = read(where, options, ['capacity', 'initial']);
    const source = this.#port(where, from, 'outputs'), target = this.#port(where, to, 'inputs');
    const channel = this.#channel(where, String(from), String(to), o.capacity, source, target);
    if (o.initial === undefined) return this;
    const block = blockOf(guard(where, () => evaluated(o.initial)));
    block.refs++;
    channel.queue.push(block);
    return this;
  }

  /** @param {unknown} to @param {unknown} [options] */
  input(to, options) {
    const where = 'input', {capacity} = read(where, options, ['capacity']), target = this.#port(where, to, 'inputs');
    const channel = this.#channel(where, '', String(to), capacity, null, target);
    return new GraphInput(async (value, options) => {
      const where = 'push', signal = signalOf(where, options);
      if (['stopping', 'stopped'].includes(this.#state)) throw failure('ErrClosed', where, 'the graph was stopped');
      const block = blockOf(guard(where, () => evaluated(value)));
      await this.#wait(where, signal, channel.pushers, block).catch((error) => {
        if (block.value !== value) release(block); // which was made of it here
        throw error;
      });
    });
  }

  /** @param {unknown} from @param {unknown} [options] */
  output(from, options) {
    const where = 'output', {capacity} = read(where, options, ['capacity']), source = this.#port(where, from, 'outputs');
    const channel = this.#channel(where, String(from), '', capacity, source, null);
    return new GraphOutput(async (options) => {
      const where = 'pull', signal = signalOf(where, options);
      if (this.#state === 'stopped' && channel.queue.length === 0) throw failure('ErrClosed', where, EMPTY);
      const block = await this.#wait(where, signal, channel.pullers, null), {value} = block;
      if (block.failed) throw block.error;
      if (block.refs === 1 || !block.mine) return value;
      release(block); // others have it yet
      return isMatrix(value) ? value.clone() : value.eval();
    });
  }

  /** @param {unknown} port @param {unknown} value */
  set(port, value) {
    const where = 'set', {task, name} = this.#port(where, port, 'sticky'), block = blockOf(guard(where, () => evaluated(value))), before = task.kept.get(name);
    block.refs++;
    task.kept.set(name, block);
    if (before) release(before);
    this.#wake();
    return this;
  }

  /** @param {string} where */
  #open(where) {
    if (this.#state === 'closed') throw failure('ErrClosed', where, 'the graph was closed');
  }

  /** @param {string} where */
  #building(where) {
    this.#open(where);
    if (this.#state !== 'new') throw failure('ErrInvalid', where, 'the graph runs or has run');
  }

  /** A port by its text "task.port". @param {string} where @param {unknown} text @param {'inputs' | 'sticky' | 'outputs'} kind */
  #port(where, text, kind) {
    this.#open(where);
    const at = typeof text === 'string' ? text.indexOf('.') : -1, whole = String(at < 0 ? '' : text);
    const task = this.#tasks.get(whole.slice(0, at)), name = whole.slice(at + 1);
    if (task?.[kind].includes(name) || (kind === 'inputs' && task?.sticky.includes(name))) return {task: /** @type {Task} */ (task), name};
    throw failure('ErrName', where, `${show(text)} is none of the ${kind}, which are "task.port"`);
  }

  /** @typedef {{task: Task, name: string} | null} End */
  /** @param {string} where @param {string} from @param {string} to @param {unknown} capacity @param {End} source @param {End} target @returns {Channel} */
  #channel(where, from, to, capacity = CAPACITY, source, target) {
    this.#building(where);
    if (!Number.isInteger(capacity) || /** @type {number} */ (capacity) < 1) throw failure('ErrInvalid', where, `capacity ${show(capacity)}; it is at least 1`);
    if (target?.task.into.has(target.name)) throw failure('ErrName', where, `${to} has a channel`);
    const channel = {from, to, capacity: /** @type {number} */ (capacity), queue: [], peak: 0, pushers: [], pullers: []};
    target?.task.into.set(target.name, channel);
    source?.task.outOf.set(source.name, [...source.task.outOf.get(source.name) ?? [], channel]);
    this.#channels.push(channel);
    return channel;
  }

  // Running.

  run() {
    this.#open('run');
    if (this.#state === 'new') this.#validate();
    this.#state = 'running';
    this.#wake();
    return this;
  }

  /** Refuses ports that nothing comes to or goes from, and cycles that nothing starts. */
  #validate() {
    const where = 'run', tasks = [...this.#tasks.values()];
    for (const task of tasks) {
      const input = task.inputs.find((port) => !task.into.has(port)), output = task.outputs.find((port) => !task.outOf.has(port));
      if (input !== undefined) throw failure('ErrInvalid', where, `nothing comes to ${task.name}.${input}; see connect() and input()`);
      if (output !== undefined) throw failure('ErrInvalid', where, `nothing takes ${task.name}.${output}; see connect() and output()`);
      if (task.inputs.length === 0) throw failure('ErrInvalid', where, `${task.name} has no input that says when it runs`);
    }
    const started = new Set(), waits = (/** @type {Task} */ {inputs, into}) => inputs.some((port) => {
      const {from, queue} = /** @type {Channel} */ (into.get(port));
      return from !== '' && queue.length === 0 && !started.has(from.slice(0, from.indexOf('.')));
    });
    for (let before = -1; before < started.size;) {
      before = started.size;
      for (const task of tasks) if (!waits(task)) started.add(task.name);
    }
    const never = tasks.find(({name}) => !started.has(name));
    if (never) throw failure('ErrInvalid', where, `${never.name} waits for itself; give a channel of the cycle an initial block`);
  }

  /** Waits at an end of a channel. @param {string} where @param {AbortSignal | undefined} signal @param {Waiter[]} line @param {Block | null} block @returns {Promise<Block>} */
  #wait(where, signal, line, block) {
    this.#open(where);
    checkSignal(where, signal);
    return new Promise((resolve, reject) => {
      /** @type {Waiter} */
      const waiter = {done: (value) => { deaf(); resolve(value); }, refuse: (error) => { deaf(); reject(error); }, block};
      const deaf = signal ? onAbort(signal, () => {
        line.splice(line.indexOf(waiter), 1);
        reject(failure('ErrAborted', where, 'it was aborted', signal.reason));
      }) : () => {};
      line.push(waiter);
      this.#wake();
    });
  }

  #wake() {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => this.#pump());
  }

  /** Does all that can be done now, or some of it if that takes long. */
  #pump() {
    const end = performance.now() + TURN;
    for (let more = true; more;) {
      more = false;
      for (const channel of this.#channels) more = this.#serve(channel) || more;
      if (this.#state !== 'running' && this.#state !== 'stopping') break;
      for (const task of this.#tasks.values()) {
        if (!this.#ready(task)) continue;
        if (performance.now() > end) return void setTimeout(() => this.#pump());
        this.#dispatch(task);
        more = true;
      }
    }
    this.#scheduled = false;
    if (this.#state === 'stopping' && ![...this.#tasks.values()].some(({busy}) => busy)) this.#state = 'stopped';
    if (this.#state !== 'stopped') return;
    for (const {pullers} of this.#channels) for (const {refuse} of pullers.splice(0)) refuse(failure('ErrClosed', 'pull', EMPTY));
    for (const done of this.#stops) done();
  }

  /** Lets those in who wait at a channel. @param {Channel} channel */
  #serve(channel) {
    const {queue, pushers, pullers, capacity} = channel;
    let moved = false;
    for (let waiter; queue.length < capacity && (waiter = pushers.shift()); moved = true) {
      this.#send([channel], /** @type {Block} */ (waiter.block));
      waiter.done(undefined);
    }
    for (let waiter; queue.length > 0 && (waiter = pullers.shift()); moved = true) waiter.done(queue.shift());
    return moved;
  }

  /** @param {readonly Channel[]} channels @param {Block} block */
  #send(channels, block) {
    for (const channel of channels) {
      block.refs++;
      channel.queue.push(block);
      channel.peak = Math.max(channel.peak, channel.queue.length);
    }
  }

  /** A task is ready when all of its inputs have a block and all of its outputs capacity. @param {Task} task */
  #ready({busy, inputs, sticky, into, outOf, kept}) {
    return !busy && inputs.every((port) => /** @type {Channel} */ (into.get(port)).queue.length > 0) &&
      sticky.every((port) => kept.has(port) || (into.get(port)?.queue.length ?? 0) > 0) &&
      [...outOf.values()].every((list) => list.every(({queue, capacity}) => queue.length < capacity));
  }

  /** Runs a task once. @param {Task} task */
  async #dispatch(task) {
    task.busy = true;
    task.runs++;
    const taken = new Map(task.inputs.map((port) => [port, /** @type {Block} */ (task.into.get(port)?.queue.shift())]));
    for (const port of task.sticky) {
      const next = task.into.get(port)?.queue.shift(), before = task.kept.get(port);
      if (next) {
        task.kept.set(port, next);
        if (before) release(before);
      }
      const block = /** @type {Block} */ (next ?? before);
      block.refs++;
      taken.set(port, block);
    }
    const failed = [...taken.values()].find((block) => block.failed);
    let results;
    try {
      results = failed ? task.outputs.map(() => ({...failed, refs: 0})) : await this.#compute(task, taken);
    } catch (error) {
      task.failures++;
      results = task.outputs.map(() => ({...blockOf(undefined), failed: true, error}));
    }
    const gone = this.#state === 'closed';
    task.outputs.forEach((port, i) => {
      if (!gone) return this.#send(/** @type {Channel[]} */ (task.outOf.get(port)), results[i]);
      results[i].refs++;
      release(results[i]);
    });
    for (const block of taken.values()) release(block);
    task.busy = false;
    this.#wake();
  }

  /** What a task's function makes of its inputs. @param {Task} task @param {Map<string, Block>} taken @returns {Promise<Block[]>} */
  async #compute({name, body, gpu, outputs}, taken) {
    const where = name, known = new Map([...taken.values()].map((block) => [block.value, block])), copies = new Set();
    /** @type {Record<string, unknown>} */
    const inputs = {};
    const found = (/** @type {any} */ made) => outputs.map((port) => {
      const value = guard(where, () => outputs.length === 1 ? made : made?.[port]);
      if (value === undefined) throw failure('ErrInvalid', where, `the function returns nothing for ${port}`);
      return evaluated(value);
    });
    try {
      for (const [port, {value}] of taken) {
        const here = moved(gpu, value);
        inputs[port] = here === value ? here : await here;
        if (here !== value) copies.add(inputs[port]);
      }
      const values = await gpu.scope(() => {
        const made = body(inputs, {gpu, signal: this.#controller.signal});
        return guard(where, () => typeof made?.then === 'function') ? Promise.resolve(made).then(found) : found(made);
      });
      return values.map((/** @type {unknown} */ value) => {
        copies.delete(value);
        const block = known.get(value) ?? blockOf(value);
        known.set(value, block);
        return block;
      });
    } finally {
      for (const copy of copies) /** @type {any} */ (copy).close();
    }
  }

  /** @param {unknown} [options] @returns {Promise<void>} */
  async stop(options) {
    const where = 'stop', signal = signalOf(where, options);
    this.#open(where);
    if (this.#state !== 'running' && this.#state !== 'stopping') return;
    checkSignal(where, signal);
    this.#state = 'stopping';
    for (const {pushers} of this.#channels) for (const {refuse} of pushers.splice(0)) refuse(failure('ErrClosed', 'push', 'the graph was stopped'));
    await new Promise((resolve, reject) => {
      const done = () => {
        deaf();
        this.#stops.delete(done);
        if (this.#state === 'closed') reject(failure('ErrClosed', where, 'the graph was closed'));
        else resolve(undefined);
      };
      const deaf = signal ? onAbort(signal, () => {
        this.#stops.delete(done);
        reject(failure('ErrAborted', where, 'it was aborted', signal.reason));
      }) : () => {};
      this.#stops.add(done);
      this.#wake();
    });
  }

  close() {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    const why = failure('ErrClosed', 'graph', 'it was closed');
    this.#controller.abort(why);
    for (const {queue, pushers, pullers} of this.#channels) {
      for (const {refuse} of [...pushers.splice(0), ...pullers.splice(0)]) refuse(why);
      for (const block of queue.splice(0)) release(block);
    }
    for (const {kept} of this.#tasks.values()) {
      for (const block of kept.values()) release(block);
      kept.clear();
    }
    for (const done of this.#stops) done();
  }

  [Symbol.dispose]() { this.close(); }

  get state() { return this.#state; }

  stats() {
    return {
      tasks: [...this.#tasks.values()].map(({name, runs, failures, busy}) => ({name, runs, failures, busy})),
      channels: this.#channels.map(({from, to, capacity, queue, peak}) => ({from, to, capacity, length: queue.length, peak})),
    };
  }

  dot() {
    const name = (/** @type {string} */ port, /** @type {string} */ outside) => JSON.stringify(port === '' ? outside : port.slice(0, port.indexOf('.')));
    const edges = this.#channels.map(({from, to, capacity, queue}) =>
      `  ${name(from, `in ${to}`)} -> ${name(to, `out ${from}`)} [label=${JSON.stringify(`${from} ${to}`.trim() + ` ${queue.length}/${capacity}`)}];\n`);
    return `digraph {\n${[...this.#tasks.keys()].map((task) => `  ${JSON.stringify(task)} [shape=box];\n`).join('')}${edges.join('')}}\n`;
  }

  toString() { return printLine('Graph', () => `of ${this.#tasks.size} tasks, ${this.#state}`); }

  [INSPECT]() { return this.toString(); }
}
