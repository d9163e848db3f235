// SPDX-License-Identifier: Apache-2.0

import {failure, guard, isOurs, listed, reasonOf, show} from './errors.mjs';
import {DEV_NULL, blockOf, cellOf, copyOf, evaluated, failedBlock, moved, passes, predicateOf, release, signalBits, signalNames} from './graph-block.mjs';
import {MODES, Schedule} from './graph-schedule.mjs';
import {sessionOf} from './gpu.mjs';
import {GraphInput, GraphOutput, checkTasks, full, gpuOf, isReady, newTask, openOutputs, returned, signalsFrom} from './graph-task.mjs';
import {INSPECT, printLine, tag} from './inspect.mjs';
import {instead} from './nearest.mjs';
import {checkSignal, flag, onAbort, read, signalOf} from './source.mjs';
import {whenever} from './whenever.mjs';

// Task graphs: the rules are those of package matrix/graph, as far as a page has a use for them; see Graph in the declarations.

/** @typedef {import('./gpu.mjs').Gpu} Gpu */
/** @typedef {import('./graph-block.mjs').Block} Block */
/** @typedef {import('./graph-task.mjs').Channel} Channel */
/** @typedef {import('./graph-task.mjs').Task} Task */
/** @typedef {import('./graph-task.mjs').Waiter} Waiter */

/** How long tasks may run one after the other before the page has its turn, in milliseconds. */
const TURN = 8;
/** Blocks of a channel that nobody says the capacity of. */
const CAPACITY = 4;
const EMPTY = 'the graph was stopped, and the output is empty';

/** Graphs that somebody waits for, by who waits: they are not collected meanwhile, so that whoever waits is told in the end. @type {Map<object, Graph>} */
const awaited = new Map();

/** Ends a graph whose devices have all been closed. It stands here as functions within the constructor would keep the graph. @param {Graph} graph */
const endWithDevices = (graph) => { if (graph.state === 'closed') graph.close(); };

/** The options of channels. */
const CHANNEL = Object.freeze(['capacity', 'push', 'pull', 'hold', 'control']);

/** Tasks that run when their inputs are there. */
export class Graph {
  #gpus;
  #sync;
  /** How many runs are kept for trace(), and these. */
  #traced;
  /** @type {{name: string, tid: number, ts: number, dur: number, args: {waited: number, error?: string}}[]} */
  #events = [];
  #schedule;
  #clones = 0;
  /** @type {Map<string, Task>} */
  #tasks = new Map();
  /** @type {Channel[]} */
  #channels = [];
  /** @type {'new' | 'running' | 'stopping' | 'stopped' | 'closed'} */
  #state = 'new';
  #controller = new AbortController();
  #scheduled = false;
  #reminded = false;
  /** Those who wait for the graph to stop. @type {Set<() => void>} */
  #stops = new Set();

  static {
    tag(this, 'Graph');
  }

  /** @param {Gpu} gpu @param {unknown} [options] */
  constructor(gpu, options) {
    const where = 'graph', o = read(where, options, ['gpus', 'mode', 'threshold', 'concurrency', 'sync', 'trace']), more = listed(where, o.gpus ?? []);
    const number = (/** @type {string} */ name, /** @type {number} */ least, /** @type {number} */ usual) => {
      const n = o[name] ?? usual;
      if (n !== usual && !(Number.isSafeInteger(n) && n >= least)) throw failure('ErrInvalid', where, `${name} ${show(n)}; it is a number from ${least} on`);
      return n;
    };
    if (!more) throw failure('ErrInvalid', where, `gpus ${show(o.gpus)}; an array of Gpus`);
    const {mode = MODES[0]} = o;
    if (!MODES.includes(mode)) throw failure('ErrInvalid', where, `mode ${show(mode)}; ${instead(mode, MODES)}`);
    this.#gpus = [...new Set([gpu, ...more.map((other) => gpuOf(where, 'gpus has', other))])];
    this.#sync = flag(where, o, 'sync');
    this.#traced = number('trace', 0, 0);
    this.#schedule = new Schedule(this.#gpus, {mode, threshold: number('threshold', 0, 6), concurrency: number('concurrency', 1, Infinity)}, () => this.#wake());
    for (const each of this.#gpus) whenever(sessionOf(each).ended, this, endWithDevices);
  }

  // Building.

  /** @param {unknown} name @param {unknown} body @param {unknown} [options] */
  task(name, body, options) {
    const where = 'task', o = read(where, options, ['inputs', 'sticky', 'outputs', 'gpu', 'prefer', 'waitFor', 'priority']);
    this.#building(where);
    if (typeof name !== 'string' || !/^[^.]+$/.test(name)) throw failure('ErrName', where, `${show(name)}; a name is a text without a point`);
    if (this.#tasks.has(name)) throw failure('ErrName', where, `there is a task ${show(name)}`);
    if (typeof body !== 'function') throw failure('ErrInvalid', where, `${show(body)} is no function`);
    const task = newTask(where, name, body, o, this.#gpus);
    if (task.gpu) this.#schedule.add(task.gpu);
    this.#tasks.set(name, task);
    return this;
  }

  /** @param {unknown} from @param {unknown} to @param {unknown} [options] */
  connect(from, to, options) {
    const where = 'connect', o = read(where, options, [...CHANNEL, 'initial']);
    const source = this.#port(where, from, 'outputs'), target = this.#port(where, to, 'inputs');
    const initial = o.initial === undefined ? null : blockOf(o.initial), channel = this.#channel(where, String(from), String(to), o, source, target);
    if (initial) this.#send([channel], initial);
    return this;
  }

  /** @param {unknown} to @param {unknown} [options] */
  input(to, options) {
    const where = 'input', o = read(where, options, CHANNEL), target = this.#port(where, to, 'inputs');
    const channel = this.#channel(where, '', String(to), o, null, target);
    return new GraphInput(async (value, options) => {
      const where = 'push', {signal, signals} = read(where, options, ['signal', 'signals']), watched = checkSignal(where, signal), bits = signalBits(where, signals);
      if (['stopping', 'stopped'].includes(this.#state)) throw failure('ErrClosed', where, 'the graph was stopped');
      const block = blockOf(value, bits);
      await this.#wait(where, watched, channel.pushers, block).catch((error) => {
        if (block.cell.value !== value) release(block); // which was made of it here
        throw error;
      });
    });
  }

  /** @param {unknown} from @param {unknown} [options] */
  output(from, options) {
    const where = 'output', o = read(where, options, CHANNEL), source = this.#port(where, from, 'outputs');
    const channel = this.#channel(where, String(from), '', o, source, null);
    return new GraphOutput(async (options) => {
      const where = 'pull', signal = signalOf(where, options);
      if (this.#state === 'stopped' && !full(channel)) throw failure('ErrClosed', where, EMPTY);
      const block = await this.#wait(where, signal, channel.pullers, null), {cell: {value, refs, mine}} = block, signals = signalNames(block.signals);
      if (block.failed) throw block.error;
      if (refs === 1 || !mine) return {value, signals};
      release(block); // others have it yet
      return {value: copyOf(value), signals};
    });
  }

  /** @param {unknown} port @param {unknown} value */
  set(port, value) {
    const where = 'set', {task, name} = this.#port(where, port, 'sticky'), block = blockOf(value), before = task.kept.get(name);
    block.cell.refs++;
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
    if ((kind === 'outputs' ? task?.outputs.some((port) => port.name === name) : task?.[kind].includes(name)) || (kind === 'inputs' && task?.sticky.includes(name))) return {task: /** @type {Task} */ (task), name};
    throw failure('ErrName', where, `${show(text)} is none of the ${kind}, which are "task.port"`);
  }

  /** @typedef {{task: Task, name: string} | null} End */
  /** @param {string} where @param {string} from @param {string} to @param {Record<string, any>} o @param {End} source @param {End} target @returns {Channel} */
  #channel(where, from, to, o, source, target) {
    this.#building(where);
    const {capacity = CAPACITY} = o, control = flag(where, o, 'control'), before = target?.task.into.get(target.name) ?? [];
    if (!Number.isInteger(capacity) || capacity < 1) throw failure('ErrInvalid', where, `capacity ${show(capacity)}; it is at least 1`);
    if (before.some((channel) => channel.control === control)) throw failure('ErrName', where, `${to} has ${control ? 'a control channel' : 'a channel'}`);
    const [push, pull] = [o.push, o.pull].map((predicate) => predicateOf(where, predicate)), hold = flag(where, o, 'hold');
    const channel = {from, to, capacity, queue: [], peak: 0, pushed: 0, dropped: 0, push, pull, hold, control, pushers: [], pullers: []};
    target?.task.into.set(target.name, control ? [channel, ...before] : [...before, channel]);
    source?.task.outOf.set(source.name, [...source.task.outOf.get(source.name) ?? [], channel]);
    this.#channels.push(channel);
    return channel;
  }

  // Running.

  run() {
    const where = 'run';
    this.#open(where);
    if (this.#state === 'stopping') throw failure('ErrInvalid', where, 'the graph is being stopped; wait for stop()');
    if (this.#state === 'new') checkTasks(where, [...this.#tasks.values()], this.#channels);
    this.#state = 'running';
    this.#wake();
    return this;
  }

  /** Waits at an end of a channel. @param {string} where @param {AbortSignal | undefined} signal @param {Waiter[]} line @param {Block | null} block @returns {Promise<Block>} */
  #wait(where, signal, line, block) {
    this.#open(where);
    checkSignal(where, signal);
    return new Promise((resolve, reject) => {
      /** @type {Waiter} */
      const waiter = {done: (value) => { end(); resolve(value); }, refuse: (error) => { end(); reject(error); }, block};
      const end = () => { deaf(); awaited.delete(waiter); };
      const deaf = signal ? onAbort(signal, () => {
        line.splice(line.indexOf(waiter), 1);
        awaited.delete(waiter);
        reject(failure('ErrAborted', where, 'it was aborted', signal.reason));
      }) : () => {};
      line.push(waiter);
      awaited.set(waiter, this);
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
      for (const task of this.#tasks.values()) this.#schedule.note(task, isReady(task));
      const {task, gpu, again} = this.#schedule.pick(this.#tasks.values());
      if (again > 0) this.#remind(again);
      if (!task) continue;
      if (performance.now() > end) return void setTimeout(() => this.#pump());
      this.#dispatch(task, /** @type {Gpu} */ (gpu));
      more = true;
    }
    this.#scheduled = false;
    if (this.#state === 'stopping' && ![...this.#tasks.values()].some(({busy}) => busy)) this.#state = 'stopped';
    if (this.#state !== 'stopped') return;
    for (const {pullers} of this.#channels) for (const {refuse} of pullers.splice(0)) refuse(failure('ErrClosed', 'pull', EMPTY));
    for (const done of this.#stops) done();
  }

  /** Looks again when tasks that wait for a busy device have waited longer. @param {number} after milliseconds */
  #remind(after) {
    if (this.#reminded) return;
    this.#reminded = true;
    setTimeout(() => {
      this.#reminded = false;
      this.#wake();
    }, after);
  }

  /** Lets those in who wait at a channel. @param {Channel} channel */
  #serve(channel) {
    const {queue, pushers, pullers, capacity} = channel;
    let moved = false;
    for (let waiter; queue.length < capacity && (waiter = pushers.shift()); moved = true) {
      waiter.done(undefined); // before functions of the user's are asked, which may abort
      this.#send([channel], /** @type {Block} */ (waiter.block));
    }
    for (let waiter; full(channel) && (waiter = pullers.shift()); moved = true) waiter.done(queue.shift()?.block);
    return moved;
  }

  /** Sends a block into those of some channels that take it. @param {readonly Channel[]} channels @param {Block} block */
  #send(channels, block) {
    block.cell.refs++;
    for (const channel of block.signals & DEV_NULL ? [] : channels) {
      const out = block.failed && channel.to === '', held = !out && !passes(channel.pull, block);
      channel.pushed++;
      if ((!out && !passes(channel.push, block)) || (held && !channel.hold) || this.#state === 'closed') { // which a predicate may have done
        channel.dropped++;
        continue;
      }
      block.cell.refs++;
      channel.queue.push({block, held});
      channel.peak = Math.max(channel.peak, channel.queue.length);
    }
    release(block);
  }

  reconsider() {
    this.#open('reconsider');
    for (const {queue, pull} of this.#channels) for (const entry of queue) entry.held &&= !passes(pull, entry.block);
    this.#wake();
    return this;
  }

  /** Takes the next block of each port. @param {Task} task @returns {Map<string, Block>} */
  #take(task) {
    if (task.held) {
      const {held} = task;
      task.held = null;
      return held;
    }
    const taken = new Map();
    for (const port of [...task.inputs, ...task.sticky]) {
      const next = task.into.get(port)?.find(full)?.queue.shift()?.block;
      if (task.sticky.includes(port)) {
        const before = task.kept.get(port), block = /** @type {Block} */ (next ?? before);
        if (next && before) release(before);
        task.kept.set(port, block);
        block.cell.refs++;
        taken.set(port, block);
      } else taken.set(port, next);
    }
    return taken;
  }

  /** Runs a task once. @param {Task} task @param {Gpu} gpu */
  async #dispatch(task, gpu) {
    const begun = performance.now(), waited = begun - task.since, end = this.#schedule.begin(task, gpu), taken = this.#take(task), failed = [...taken.values()].find((block) => block.failed);
    /** What the outputs get, and which of them are open. @type {Block[]} */
    let results, open = task.outputs.map(() => true), reason = failed?.error;
    try {
      if (failed) throw failed.error;
      ({results, open} = await this.#compute(task, gpu, taken));
    } catch (error) {
      if (!failed && this.#state !== 'closed' && await this.#again(task, gpu, error)) {
        task.held = taken;
        end();
        return this.#wake();
      }
      if (!failed) task.failures++;
      reason = error;
      results = task.outputs.map((port) => failedBlock(error, signalsFrom(task, port, taken)));
    }
    for (const {cell} of results) cell.refs++;
    if (this.#state !== 'closed') task.outputs.forEach(({name}, i) => { if (open[i]) this.#send(task.outOf.get(name) ?? [], results[i]); });
    for (const block of results) release(block);
    for (const block of taken.values()) release(block);
    end();
    if (this.#traced > 0) {
      this.#events.push({name: task.name, tid: this.#places.indexOf(gpu), ts: begun * 1000, dur: (performance.now() - begun) * 1000, args: {waited: waited * 1000, ...reason === undefined ? {} : {error: reasonOf(reason)}}});
      if (this.#events.length > this.#traced) this.#events.shift();
    }
    this.#wake();
  }

  /** Whether a run failed because its device is gone, and there is another one for it. @param {Task} task @param {Gpu} gpu @param {unknown} error */
  async #again(task, gpu, error) {
    const {over} = sessionOf(gpu), code = isOurs(error) ? error.code : '';
    if (!over && (code !== 'ErrDeviceLost' || await gpu.sync().then(() => true, (why) => why.code !== code))) return false; // an input may have been on another device
    this.#schedule.lose(gpu);
    if (!this.#schedule.elsewhere(task, gpu) || this.#state === 'closed') return false;
    task.retries++;
    return true;
  }

  /** Makes blocks that a task is to write its own alone. @param {Task} task @param {Map<string, Block>} taken */
  #own({outputs}, taken) {
    for (const {inPlace} of outputs) {
      const block = inPlace === undefined ? undefined : taken.get(inPlace);
      if (inPlace === undefined || !block || !block.cell.mine || block.cell.refs === 1) continue;
      const cell = {value: copyOf(block.cell.value), mine: true, refs: 1};
      this.#clones++;
      taken.set(inPlace, {...block, cell});
      release(block);
    }
  }

  /** What a task's function makes of its inputs. @param {Task} task @param {Gpu} gpu @param {Map<string, Block>} taken @returns {Promise<{results: Block[], open: boolean[]}>} */
  async #compute(task, gpu, taken) {
    const {name: where, body, outputs} = task;
    this.#own(task, taken);
    const known = new Map([...taken.values()].map(({cell}) => [cell.value, cell])), copies = new Set(), /** @type {Map<string, number>} */ said = new Map();
    /** @type {Map<string, any>} */
    const inputs = new Map();
    const found = (/** @type {any} */ made) => outputs.map(({name, inPlace}) => {
      let value = outputs.length === 1 ? made : returned(where, made, name);
      if (value === undefined && inPlace !== undefined) value = inputs.get(inPlace);
      if (value === undefined) throw failure('ErrInvalid', where, `the function returns nothing for ${name}`);
      return evaluated(value);
    });
    const context = {
      gpu, signal: this.#controller.signal,
      signals: (/** @type {unknown} */ port) => {
        const block = taken.get(String(port));
        if (!block) throw failure('ErrName', 'signals', `${show(port)} is no input of the task`);
        return signalNames(block.signals);
      },
      setSignals: (/** @type {unknown} */ port, /** @type {unknown} */ names) => {
        if (!outputs.some(({name}) => name === port)) throw failure('ErrName', 'setSignals', `${show(port)} is no output of the task`);
        said.set(String(port), signalBits('setSignals', names));
      },
    };
    try {
      for (const [port, {cell: {value}}] of taken) {
        const here = moved(gpu, value);
        inputs.set(port, here === value ? here : await here);
        if (here !== value) copies.add(inputs.get(port));
      }
      const values = await gpu.scope(() => {
        const made = body(Object.fromEntries(inputs), context); // which defines __proto__, too
        return guard(where, () => typeof made?.then === 'function') ? Promise.resolve(made).then(found) : found(made);
      });
      const results = outputs.map((port, i) => {
        const value = values[i], cell = known.get(value) ?? cellOf(value);
        copies.delete(value);
        known.set(value, cell);
        return {cell, failed: false, signals: said.get(port.name) ?? signalsFrom(task, port, taken)};
      });
      try {
        if (this.#sync) await gpu.sync();
        return {results, open: await openOutputs(outputs, results)};
      } catch (error) {
        for (const {cell} of results) cell.refs++;
        for (const block of results) release(block); // nobody gets them
        throw error;
      }
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
        awaited.delete(done);
        this.#stops.delete(done);
        if (this.#state === 'closed') reject(failure('ErrClosed', where, 'the graph was closed'));
        else resolve(undefined);
      };
      const deaf = signal ? onAbort(signal, () => {
        awaited.delete(done);
        this.#stops.delete(done);
        reject(failure('ErrAborted', where, 'it was aborted', signal.reason));
      }) : () => {};
      this.#stops.add(done);
      awaited.set(done, this);
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
      for (const {block} of queue.splice(0)) release(block);
    }
    for (const task of this.#tasks.values()) {
      for (const block of [...task.kept.values(), ...task.held?.values() ?? []]) release(block);
      task.kept.clear();
      task.held = null;
    }
    for (const done of this.#stops) done();
  }

  [Symbol.dispose]() { this.close(); }

  get state() { return this.#gpus.every((gpu) => sessionOf(gpu).over) ? 'closed' : this.#state; } // which it will be soon then

  stats() {
    return {
      tasks: [...this.#tasks.values()].map(({name, runs, failures, retries, busy, wait, run, where}) => (
        {name, runs, failures, retries, busy, wait: wait / 1000, run: run / 1000, devices: this.#places.map((gpu) => where.get(gpu) ?? 0)})),
      devices: this.#places.map((gpu) => ({gpu, ...this.#schedule.places.get(gpu)})),
      channels: this.#channels.map(({from, to, capacity, queue, peak, pushed, dropped}) => ({from, to, capacity, length: queue.length, peak, pushed, dropped})),
      clones: this.#clones,
    };
  }

  /** The devices, those of the graph first. */
  get #places() { return [...this.#schedule.places.keys()]; }

  trace() {
    const rows = this.#places.map(({info}, tid) => ({ph: 'M', pid: 1, tid, name: 'thread_name', args: {name: `${tid} ${info.name}`}}));
    return JSON.stringify({displayTimeUnit: 'ms', traceEvents: [...rows, ...this.#events.map((event) => ({ph: 'X', pid: 1, cat: 'task', ...event}))]});
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
