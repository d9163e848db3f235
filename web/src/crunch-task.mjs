// SPDX-License-Identifier: Apache-2.0

import {SCALARS, aliasOf, handleOf, scalarOf} from './crunch-array.mjs';
import {cruncherOf} from './cruncher.mjs';
import {SubletError, failure, listed, reasonOf, show} from './errors.mjs';
import {Held, Store} from './memory.mjs';
import {long} from './message.mjs';
import {Command} from './protocol.mjs';
import {flag, read, signalOf} from './source.mjs';

/** @typedef {import('./crunch.mjs').Crunch} Crunch */

/** What a range has. */
export const RANGE = Object.freeze(['global', 'local', 'offset', 'inner', 'strict', 'blobs', 'repeat', 'syncKernel', 'transferOnly']);
/** What may be special about a task, in the order of Go's bits. The empty one is transferOnly, which a range has. */
const TYPES = Object.freeze(['selectBegin', 'selectEnd', 'globalSyncFirst', 'globalSyncLast', 'broadcast', '', 'serialBegin', 'serialEnd']);
/** The kind of a parameter that is an array by another name. */
const ALIASED = 4;

/** @param {string} where @param {any} value @param {string} what */
export function integer(where, value, what) {
  if (!Number.isSafeInteger(value)) throw failure('ErrInvalid', where, `${what} ${show(value)}`);
  return value;
}

/** The options of a range, which there must be. @param {string} where @param {any} range @param {readonly string[]} names */
export function optionsOf(where, range, names) {
  if (typeof range !== 'object' || range === null) throw failure('ErrInvalid', where, `range ${show(range)}`);
  return read(where, range, names);
}

// What is checked here becomes words later, when nothing can be wrong any more: what is put for Go has to be taken.

/** @typedef {() => number[]} Words */

/** Kernels and their range. @param {string} where @param {Crunch} crunch @param {any} kernels @param {Record<string, any>} o @returns {Words} */
export function stepWords(where, crunch, kernels, o) {
  if (typeof kernels !== 'string') throw failure('ErrInvalid', where, `kernels ${show(kernels)}; it is a text of names`);
  const {syncKernel = ''} = o;
  if (o.global === undefined) throw failure('ErrInvalid', where, 'a range without global');
  if (typeof syncKernel !== 'string') throw failure('ErrInvalid', where, `syncKernel ${show(syncKernel)}`);
  const extents = listed(where, o.inner ?? []);
  if (!extents || extents.length > 2) throw failure('ErrInvalid', where, `inner ${show(o.inner)}; an array of up to two extents`);
  const inner = extents.map((n) => integer(where, n, 'inner'));
  const numbers = ['global', 'local', 'offset', 'blobs', 'repeat'].map((name) => integer(where, o[name] === undefined ? 0 : o[name], name));
  const [global, local, offset, blobs, repeat] = numbers.map(long), strict = flag(where, o, 'strict'), transferOnly = flag(where, o, 'transferOnly');
  return () => [
    crunch.put(kernels), ...global, ...local, ...offset, Number(strict), ...blobs, ...repeat,
    crunch.put(syncKernel), Number(transferOnly), inner.length, ...inner.flatMap(long),
  ];
}

/** The handle of an array. @param {string} where @param {Crunch} crunch @param {unknown} array */
function arrayOf(where, crunch, array) {
  const handle = handleOf(array);
  if (!handle) throw failure('ErrInvalid', where, `${show(array)} is no array of a cruncher`);
  if (handle.session !== crunch) throw failure('ErrForeign', where, 'an array of another Gpu');
  return handle.use(where);
}

/** Arrays as Go takes them. @param {string} where @param {Crunch} crunch @param {unknown[]} arrays */
export const arraysOf = (where, crunch, arrays) => arrays.map((array) => arrayOf(where, crunch, array));

/** Parameters. @param {string} where @param {Crunch} crunch @param {unknown[]} params @returns {Words} */
export function paramWords(where, crunch, params) {
  const parts = params.map((x) => {
    const scalar = scalarOf(x), alias = aliasOf(x);
    if (scalar) return () => [1 + SCALARS.indexOf(scalar[1]), crunch.put(scalar[0]), scalar[2]];
    const handle = arrayOf(where, crunch, alias ? alias[0] : x);
    return alias ? () => [ALIASED, crunch.put(alias[1]), handle] : () => [0, handle];
  });
  return () => parts.flatMap((words) => words());
}

/** What a call or a task computes. @param {string} where @param {Crunch} crunch @param {any} id @param {any} kernels @param {Record<string, any>} o @param {unknown[]} params @returns {Words} */
export function orderWords(where, crunch, id, kernels, o, params) {
  const number = long(integer(where, id, 'id')), step = stepWords(where, crunch, kernels, o), list = paramWords(where, crunch, params);
  return () => [...number, ...step(), ...list()];
}

/** What is behind a task; undefined for anything else. @type {(x: unknown) => Held | undefined} */
export let taskOf;
/** Notes with the program of a task how often its callback will be called once it is in a pool of so many devices; -1 takes that back. @type {(task: CruncherTask, devices: number, sign: 1 | -1) => void} */
export let owe;

/** A call of a cruncher to be made later. */
export class CruncherTask {
  #crunch;
  #handle;
  /** @type {((error?: unknown) => unknown) | undefined} */
  #callback;
  /** Whether each device of a pool runs it. */
  #everywhere;
  /** Not to be collected before the task is. */
  #params;

  static {
    taskOf = (x) => typeof x === 'object' && x !== null && #handle in x ? x.#handle : undefined;
    owe = (task, devices, sign) => { if (task.#callback) task.#crunch.due(task.#callback, sign * (task.#everywhere ? devices : 1)); };
  }

  /** @param {Crunch} crunch @param {number} id @param {string} kernels @param {unknown} range @param {unknown[]} params */
  constructor(crunch, id, kernels, range, params) {
    const where = 'task', types = TYPES.filter((name) => name !== ''), o = optionsOf(where, range, [...RANGE, ...types, 'callback']), {callback} = o;
    if (callback !== undefined && typeof callback !== 'function') throw failure('ErrInvalid', where, `callback ${show(callback)} is no function`);
    const type = types.reduce((sum, name) => sum + (flag(where, o, name) ? 2 ** TYPES.indexOf(name) : 0), 0), words = orderWords(where, crunch, id, kernels, o, params);
    crunch.check();
    const handle = crunch.handles.take();
    try {
      crunch.call(Command.Task, [handle, type, ...callback ? [1, crunch.put(told(crunch, callback))] : [0], ...words()]);
    } catch (error) {
      crunch.handles.give(handle);
      throw error;
    }
    this.#crunch = crunch;
    this.#callback = callback;
    this.#everywhere = flag(where, o, 'broadcast');
    this.#params = params;
    this.#handle = new Held(crunch, new Store(), 'the task', Command.CloseTask);
    this.#handle.open(handle);
    crunch.watch(this, this.#handle);
  }

  get closed() { return this.#handle.over; }

  /** @param {unknown} cruncher @param {unknown} [options] @returns {Promise<void>} */
  async compute(cruncher, options) {
    const where = 'compute', signal = signalOf(where, options), of = cruncherOf(cruncher), crunch = this.#crunch, callback = this.#callback;
    if (!of) throw failure('ErrInvalid', where, `${show(cruncher)} is no cruncher`);
    if (of.session !== crunch) throw failure('ErrForeign', where, 'a cruncher of another Gpu');
    const done = crunch.ask(Command.TaskCompute, [this.#handle.use(where), of.use(where)], {where, signal, keep: [this, this.#params, cruncher]});
    if (callback) {
      const call = (/** @type {unknown} */ error) => crunch.until(where, signal, of, () => callback(error));
      await done.then(() => call(undefined), call);
    }
    await done;
  }

  close() {
    this.#handle.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletCruncherTask'; }
}

/** Has Go call a function of the user's, which may call the program and be asynchronous. Go hears when it is over. @param {Crunch} crunch @param {(error?: SubletError) => unknown} callback */
const told = (crunch, callback) => async (/** @type {number} */ number, /** @type {string | undefined} */ code, /** @type {string | undefined} */ message) => {
  crunch.due(callback, -1);
  await null; // Go waits for this to return
  let thrown = '';
  try {
    await (code === undefined ? callback() : callback(new SubletError(code, message ?? code)));
  } catch (error) {
    thrown = reasonOf(error) || 'it threw';
  }
  if (!crunch.over) crunch.tell(Command.Called, [number, crunch.put(thrown)]);
};
