// SPDX-License-Identifier: Apache-2.0

import {failure, guard, listed, show} from './errors.mjs';
import {sessionOf} from './gpu.mjs';
import {DEV_NULL, EOF, opens} from './graph-block.mjs';
import {HIGHEST} from './graph-schedule.mjs';
import {tag} from './inspect.mjs';
import {flag, read} from './source.mjs';

// Tasks of graphs, their ports and the channels between these.

/** @typedef {import('./gpu.mjs').Gpu} Gpu */
/** @typedef {import('./graph-block.mjs').Block} Block */
/** @typedef {import('./graph-block.mjs').Predicate} Predicate */
/** @typedef {{done: (value: any) => void, refuse: (error: unknown) => void, block: Block | null}} Waiter */
/**
 * A queue of bounded length. Those who wait at its ends come one after the other. A block that is held does not pass the end where blocks leave.
 * @typedef {{from: string, to: string, capacity: number, queue: {block: Block, held: boolean}[], peak: number, pushed: number, dropped: number,
 *   push: Predicate | null, pull: Predicate | null, hold: boolean, control: boolean, pushers: Waiter[], pullers: Waiter[]}} Channel
 */
/** @typedef {{name: string, inPlace?: string, signalsFrom?: string[], optional: boolean, openedBy?: string, closedBy?: string}} Output */
/**
 * A task. held: the inputs of a run whose device was lost, for the next one. next: the values that it would get next. Of times, since is that of becoming ready, works an average, and the others are sums.
 * @typedef {{name: string, body: Function, gpu?: Gpu, prefer?: Gpu, waitFor?: Gpu, priority: number, inputs: string[], sticky: string[], outputs: Output[],
 *   into: Map<string, Channel[]>, outOf: Map<string, Channel[]>, kept: Map<string, Block>, held: Map<string, Block> | null, next: () => any[], busy: boolean, runs: number, failures: number, retries: number,
 *   ready: boolean, since: number, order: number, level: number, works: number, wait: number, run: number, where: Map<Gpu, number>}} Task
 */

/** @param {string} where @param {string} what the option @param {any} gpu @returns {Gpu} */
export function gpuOf(where, what, gpu) {
  let session;
  try {
    session = sessionOf(gpu);
  } catch {
    throw failure('ErrInvalid', where, `${what} ${show(gpu)}; a Gpu, as init makes them`);
  }
  session.check();
  return gpu;
}

/** @param {string} where @param {string} what @param {unknown} list @returns {string[]} */
function portNames(where, what, list) {
  const names = listed(where, list ?? []);
  if (!names) throw failure('ErrInvalid', where, `${what} ${show(list)}; an array of names`);
  const wrong = names.findIndex((port) => typeof port !== 'string' || port === '');
  if (wrong >= 0) throw failure('ErrInvalid', where, `${what}: ${show(names[wrong])}; a name is a text that is not empty`);
  return names;
}

/** What a function returned for one of several outputs: nothing that all objects have, such as toString. @param {string} where @param {any} made @param {string} name @returns {any} */
export const returned = (where, made, name) => guard(where, () => name in Object.prototype && !Object.hasOwn(Object(made), name) ? undefined : made?.[name]);

/** An output: a name, or what is special about it. @param {string} where @param {unknown} port @returns {Output} */
function outputOf(where, port) {
  const o = typeof port === 'string' ? {name: port} : read(where, port ?? null, ['name', 'inPlace', 'signalsFrom', 'optional', 'openedBy', 'closedBy']);
  const {inPlace, openedBy, closedBy, signalsFrom} = /** @type {Record<string, any>} */ (o), [name] = portNames(where, 'outputs', [o.name]);
  return {name, inPlace, openedBy, closedBy, optional: flag(where, o, 'optional'), signalsFrom: signalsFrom === undefined ? undefined : portNames(where, 'signalsFrom', signalsFrom)};
}

/** The outputs of a task. @param {string} where @param {unknown} list @param {readonly string[]} inputs @returns {Output[]} */
function outputsOf(where, list, inputs) {
  const given = listed(where, list ?? []);
  if (!given) throw failure('ErrInvalid', where, `outputs ${show(list)}; an array`);
  const outputs = given.map((port) => outputOf(where, port)), names = outputs.map(({name}) => name), places = outputs.flatMap(({inPlace}) => inPlace ?? []);
  for (const {name, inPlace, signalsFrom = [], openedBy, closedBy} of outputs) {
    const unknown = [inPlace, ...signalsFrom].find((port) => port !== undefined && !inputs.includes(port)), gates = [openedBy, closedBy].filter((gate) => gate !== undefined);
    if (unknown !== undefined) throw failure('ErrName', where, `${show(unknown)} of ${name} is no input of the task`);
    if (gates.length > 1) throw failure('ErrInvalid', where, `${name} is both opened and closed by outputs`);
    if (gates.some((gate) => gate === name || !names.includes(/** @type {string} */ (gate)))) throw failure('ErrName', where, `${show(gates[0])} is no other output of the task`);
  }
  if (new Set(places).size < places.length) throw failure('ErrName', where, 'two outputs in place of one input');
  return outputs;
}

/** @param {string} where @param {string} name @param {Function} body @param {Record<string, any>} o @param {readonly Gpu[]} gpus of the graph @returns {Task} */
export function newTask(where, name, body, o, gpus) {
  const {priority = 5} = o;
  if (!Number.isInteger(priority) || priority < 0 || priority > HIGHEST) throw failure('ErrInvalid', where, `priority ${show(priority)}; it is 0 to ${HIGHEST}`);
  const [inputs, sticky] = ['inputs', 'sticky'].map((list) => portNames(where, list, o[list])), all = [...inputs, ...sticky], outputs = outputsOf(where, o.outputs, all);
  if (new Set(all).size < all.length || new Set(outputs.map((port) => port.name)).size < outputs.length) throw failure('ErrName', where, 'two ports of a name');
  const [gpu, prefer, waitFor] = ['gpu', 'prefer', 'waitFor'].map((what) => o[what] === undefined ? undefined : gpuOf(where, what, o[what]));
  if ([prefer, waitFor].some((one) => one && !gpus.includes(one))) throw failure('ErrAffinity', where, 'a device that is none of the graph\'s; see its option gpus');
  /** @type {Task} */
  const task = {
    name, body, gpu, prefer, waitFor, priority, inputs, sticky, outputs, into: new Map(), outOf: new Map(), kept: new Map(), held: null, busy: false, runs: 0, failures: 0, retries: 0,
    next: () => task.held ? [...task.held.values()].map(({cell}) => cell.value) : all.map((port) => (task.into.get(port)?.find(full)?.queue[0].block ?? task.kept.get(port))?.cell.value),
    ready: false, since: 0, order: 0, level: 0, works: 0, wait: 0, run: 0, where: new Map(),
  };
  return task;
}

/** Whether a channel has a block that may leave. @param {Channel} channel */
export const full = ({queue}) => queue.length > 0 && !queue[0].held;

/** A task is ready when all of its inputs have a block and all of its outputs capacity. @param {Task} task */
export const isReady = ({busy, inputs, sticky, into, outOf, kept, held}) => !busy && (held !== null || inputs.every((port) => into.get(port)?.some(full)) &&
  sticky.every((port) => kept.has(port) || into.get(port)?.some(full))) && [...outOf.values()].every((list) => list.every(({queue, capacity}) => queue.length < capacity));

/** The task of a port. @param {string} port */
const taskOf = (port) => port.slice(0, port.indexOf('.'));

/**
 * Refuses ports that nothing comes to or goes from, and tasks that could never run: in cycles that nothing starts, or behind channels that stay full.
 * @param {string} where @param {readonly Task[]} tasks @param {readonly Channel[]} channels
 */
export function checkTasks(where, tasks, channels) {
  for (const {name, inputs, outputs, into, outOf} of tasks) {
    const input = inputs.find((port) => !into.has(port)), output = outputs.find((port) => !port.optional && !outOf.has(port.name));
    if (input !== undefined) throw failure('ErrInvalid', where, `nothing comes to ${name}.${input}; see connect() and input()`);
    if (output !== undefined) throw failure('ErrInvalid', where, `nothing takes ${name}.${output.name}; see connect() and output(), and the port's option optional`);
    if (inputs.length === 0) throw failure('ErrInvalid', where, `${name} has no input that says when it runs`);
  }
  const own = channels.find(({from, to, capacity}) => capacity === 1 && from !== '' && taskOf(from) === taskOf(to));
  if (own) throw failure('ErrInvalid', where, `a capacity of 1 from ${own.from} to ${own.to}; from a task to itself it is at least 2, as the task needs capacity while its input is there`);
  const started = new Set(), waits = (/** @type {Task} */ {inputs, into, outOf}) =>
    inputs.some((port) => into.get(port)?.every(({from, queue}) => from !== '' && queue.length === 0 && !started.has(taskOf(from)))) ||
    [...outOf.values()].flat().some(({to, queue, capacity}) => queue.length >= capacity && !started.has(taskOf(to)));
  for (let before = -1; before < started.size;) {
    before = started.size;
    for (const task of tasks) if (!waits(task)) started.add(task.name);
  }
  const never = tasks.find(({name}) => !started.has(name));
  if (never) throw failure('ErrInvalid', where, `${never.name} waits for itself; a cycle needs a channel with an initial block, and one with capacity left`);
}

/** The signals of an output: those of the inputs. @param {Task} task @param {Output} output @param {Map<string, Block>} taken */
export const signalsFrom = ({inputs}, {signalsFrom = inputs}, taken) => signalsFrom.reduce((bits, port) => bits | (taken.get(port)?.signals ?? 0), 0) & ~DEV_NULL;

/** Which outputs are open: those that no other one closes. @param {Output[]} outputs @param {Block[]} blocks @returns {Promise<boolean[]>} */
export async function openOutputs(outputs, blocks) {
  const open = [];
  for (const {openedBy, closedBy} of outputs) {
    const gate = blocks[outputs.findIndex(({name}) => name === (openedBy ?? closedBy))];
    open.push(!gate || ((gate.signals & EOF) !== 0 || await opens(gate.cell.value)) === (openedBy !== undefined));
  }
  return open;
}

/** Where blocks enter a graph. */
export class GraphInput {
  #push;

  static { tag(this, 'GraphInput'); }

  /** @param {(value: unknown, options: unknown) => Promise<void>} push */
  constructor(push) { this.#push = push; }

  /** @param {unknown} value @param {unknown} [options] */
  async push(value, options) { return this.#push(value, options); }
}

/** Where blocks leave a graph. */
export class GraphOutput {
  #pull;

  static { tag(this, 'GraphOutput'); }

  /** @param {(options: unknown) => Promise<any>} pull */
  constructor(pull) { this.#pull = pull; }

  /** @param {unknown} [options] @returns {Promise<any>} */
  async pull(options) { return (await this.#pull(options)).value; }

  /** @param {unknown} [options] @returns {Promise<{value: any, signals: readonly string[]}>} */
  async take(options) { return this.#pull(options); }
}
