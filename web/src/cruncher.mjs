// SPDX-License-Identifier: Apache-2.0

import {CruncherArray, CruncherScalar, SCALARS, handleOf, scalarOf} from './crunch-array.mjs';
import {failure, guard, listed, show, tagOf} from './errors.mjs';
import {Held, Store} from './memory.mjs';
import {long} from './message.mjs';
import {instead} from './nearest.mjs';
import {Command} from './protocol.mjs';
import {abortable, checkSignal, flag, read, signalOf} from './source.mjs';

/** @typedef {import('./crunch.mjs').Crunch} Crunch */

// In the order of wasm/cruncher/calls.go.
const BALANCERS = Object.freeze(['default', 'legacy']);
const COHERENCES = Object.freeze(['migrate', 'pin', 'strict']);
const DEVICES = Object.freeze(['own', 'other', 'high-performance', 'low-power']);
const RANGE = Object.freeze(['global', 'local', 'offset', 'inner', 'strict', 'blobs', 'repeat', 'syncKernel', 'transferOnly', 'signal']);

/** The place of a word in a list. @param {string} where @param {string} name @param {readonly string[]} words @param {any} value the first word by default */
function word(where, name, words, value = words[0]) {
  if (!words.includes(value)) throw failure('ErrInvalid', where, `${name} ${show(value)}; ${instead(value, words)}`);
  return words.indexOf(value);
}

/** The most devices of a cruncher: those that a balancer takes. */
const MAX_DEVICES = 1024;

/** The devices: words of DEVICES and GPUDevices. @param {string} where @param {any} devices @param {GPUDevice | null} own */
function devicesOf(where, devices, own) {
  if (devices === undefined || devices === 'all') return ['own', 'other'];
  if (devices === 'own') return ['own'];
  const list = listed(where, devices);
  if (!list) throw failure('ErrInvalid', where, `devices ${show(devices)}; "all", "own" or an array`);
  if (list.length === 0) throw failure('ErrDevices', where, 'no device');
  if (list.length > MAX_DEVICES) throw failure('ErrLimit', where, `${list.length} devices`);
  return list.map((d) => {
    if (d === 'own' || own !== null && d === own) return 'own';
    if (d === 'high-performance' || d === 'low-power' || tagOf(d) === 'GPUDevice') return d;
    throw failure('ErrInvalid', where, `device ${show(d)}; a GPUDevice, "own", "high-performance" or "low-power"`);
  });
}

/** @param {string} where @param {any} value @param {string} what */
function integer(where, value, what) {
  if (!Number.isSafeInteger(value)) throw failure('ErrInvalid', where, `${what} ${show(value)}`);
  return value;
}

/**
 * What a call computes, in words, and the signal that gives it up.
 * @param {string} where @param {Crunch} crunch @param {any} id @param {any} kernels @param {any} range @param {unknown[]} params
 */
function orderOf(where, crunch, id, kernels, range, params) {
  integer(where, id, 'id');
  if (typeof kernels !== 'string') throw failure('ErrInvalid', where, `kernels ${show(kernels)}; it is a text of names`);
  if (typeof range !== 'object' || range === null) throw failure('ErrInvalid', where, `range ${show(range)}`);
  const o = read(where, range, RANGE), {syncKernel = ''} = o;
  if (o.global === undefined) throw failure('ErrInvalid', where, 'a range without global');
  if (typeof syncKernel !== 'string') throw failure('ErrInvalid', where, `syncKernel ${show(syncKernel)}`);
  const extents = listed(where, o.inner ?? []);
  if (!extents || extents.length > 2) throw failure('ErrInvalid', where, `inner ${show(o.inner)}; an array of up to two extents`);
  const inner = extents.map((n) => integer(where, n, 'inner'));
  const numbers = ['global', 'local', 'offset', 'blobs', 'repeat'].map((name) => integer(where, o[name] === undefined ? 0 : o[name], name));
  const [global, local, offset, blobs, repeat] = numbers.map(long), strict = flag(where, o, 'strict'), transferOnly = flag(where, o, 'transferOnly');
  const signal = checkSignal(where, o.signal), parts = params.map((x) => scalarOf(x) ?? arraysOf(where, crunch, [x])[0]);
  crunch.check(); // before anything is kept for Go
  const words = [
    ...long(id), crunch.put(kernels), ...global, ...local, ...offset, Number(strict), ...blobs, ...repeat,
    crunch.put(syncKernel), Number(transferOnly), inner.length, ...inner.flatMap(long),
    ...parts.flatMap((x) => typeof x === 'number' ? [0, x] : [1 + SCALARS.indexOf(x[1]), crunch.put(x[0]), x[2]]),
  ];
  return {words, signal};
}

/** Arrays as Go takes them. @param {string} where @param {Crunch} crunch @param {unknown[]} arrays */
const arraysOf = (where, crunch, arrays) => arrays.map((array) => {
  const handle = handleOf(array);
  if (!handle) throw failure('ErrInvalid', where, `${show(array)} is no array of a cruncher`);
  if (handle.session !== crunch) throw failure('ErrForeign', where, 'an array of another Gpu');
  return handle.use(where);
});

/** Calls that are queued; see Cruncher.batch. */
export class CruncherBatch {
  /** Not to be collected while there may be more calls. */
  #cruncher;
  #crunch;
  #number;
  /** What gives calls up that have no signal of their own. @type {AbortSignal | undefined} */
  #signal;
  /** @type {Promise<void>[]} */
  #calls = [];
  #ended = false;
  #queued = 0;

  /** @param {Cruncher} cruncher @param {Crunch} crunch @param {number} number @param {AbortSignal} [signal] */
  constructor(cruncher, crunch, number, signal) {
    this.#signal = signal;
    this.#cruncher = cruncher;
    this.#crunch = crunch;
    this.#number = number;
  }

  /** @param {number} id @param {string} kernels @param {unknown} range @param {...unknown} params @returns {Promise<void>} */
  compute(id, kernels, range, ...params) {
    const call = this.#compute(id, kernels, range, params);
    call.catch(() => {}); // the batch tells
    this.#calls.push(call);
    return call;
  }

  /** @param {number} id @param {string} kernels @param {unknown} range @param {unknown[]} params @returns {Promise<void>} */
  async #compute(id, kernels, range, params) {
    const where = 'compute', crunch = this.#crunch;
    if (this.#ended) throw failure('ErrClosed', where, 'the batch has ended');
    const {words, signal = checkSignal(where, this.#signal)} = orderOf(where, crunch, id, kernels, range, params);
    await crunch.ask(Command.BatchCompute, [this.#number, ...words], {where, signal, keep: params});
  }

  /** @returns {number} */
  get reached() { return this.#ended ? this.#queued : this.#crunch.call(Command.Reached, [this.#number]); }
  /** @returns {number} */
  get remaining() { return this.#ended ? 0 : this.#crunch.call(Command.Remaining, [this.#number]); }

  /** Waits until everything is queued, and for what comes back. @param {unknown} batch the user's function */
  async run(batch) {
    let failed = false, reason;
    try {
      await /** @type {(b: CruncherBatch) => unknown} */ (batch)(this);
    } catch (error) {
      [failed, reason] = [true, error];
    }
    const calls = await Promise.allSettled(this.#calls);
    this.#queued = calls.filter(({status}) => status === 'fulfilled').length;
    this.#ended = true;
    const ended = this.#crunch.ask(Command.BatchEnd, [this.#number], {where: 'batch', keep: [this.#cruncher, calls]});
    this.#crunch.handles.give(this.#number);
    await ended;
    if (failed) throw reason;
    for (const call of calls) if (call.status === 'rejected') throw call.reason;
  }

  get [Symbol.toStringTag]() { return 'SubletCruncherBatch'; }
}

/** Computes kernels of the user's on several devices at once. */
export class Cruncher {
  #crunch;
  #handle;
  #kernels;
  #devices;

  /** @param {Crunch} crunch @param {number} number @param {string[]} kernels @param {any[]} devices */
  constructor(crunch, number, kernels, devices) {
    this.#crunch = crunch;
    this.#handle = new Held(crunch, new Store(), 'the cruncher', Command.CloseOpened);
    this.#handle.open(number);
    this.#kernels = Object.freeze(kernels);
    this.#devices = Object.freeze(devices.map(frozen));
    crunch.watch(this, this.#handle);
  }

  /** @param {() => Promise<Crunch>} program which is held @param {GPUDevice | null} own @param {unknown} wgsl @param {unknown} options */
  static async open(program, own, wgsl, options) {
    const where = 'cruncher', o = read(where, options, ['devices', 'balancer', 'coherence', 'memory', 'signal']);
    if (typeof wgsl !== 'string') throw failure('ErrInvalid', where, `${show(wgsl)} is no text`);
    const words = [word(where, 'balancer', BALANCERS, o.balancer), word(where, 'coherence', COHERENCES, o.coherence)];
    const {memory = 0} = o, devices = devicesOf(where, o.devices, own);
    if (!Number.isSafeInteger(memory) || memory < 0) throw failure('ErrInvalid', where, `memory ${show(memory)}; it is a number of bytes, 0 for no limit`);
    const signal = checkSignal(where, o.signal), crunch = await abortable(where, signal, program(), (late) => late.drop());
    try {
      checkSignal(where, signal);
      const list = devices.flatMap((d) => typeof d === 'string' ? DEVICES.indexOf(d) : [DEVICES.length, crunch.put(d)]);
      const {handle, value: [kernels, infos]} = await crunch.make(Command.Open, [crunch.put(wgsl), ...words, ...long(memory), ...list], {where, signal});
      return new Cruncher(crunch, handle, kernels, infos);
    } finally {
      crunch.drop();
    }
  }

  get kernels() { return this.#kernels; }
  get devices() { return this.#devices; }
  get closed() { return this.#handle.closed; }

  /** @param {string} name @param {unknown} data @param {unknown} [options] */
  array(name, data, options) {
    this.#handle.use('array');
    return new CruncherArray(this.#crunch, name, data, options);
  }

  /** @param {string} name @param {number} value @param {unknown} [dtype] */
  scalar(name, value, dtype = 'float32') {
    return new CruncherScalar(name, value, dtype);
  }

  /** @param {number} id @param {string} kernels @param {unknown} range @param {...unknown} params @returns {Promise<void>} */
  async compute(id, kernels, range, ...params) {
    const where = 'compute', crunch = this.#crunch, number = this.#handle.use(where), {words, signal} = orderOf(where, crunch, id, kernels, range, params);
    await crunch.ask(Command.Compute, [number, ...words], {where, signal, keep: [this, params]});
  }

  /** @param {unknown} batch @param {unknown} [options] @returns {Promise<void>} */
  async batch(batch, options) {
    const where = 'batch', signal = signalOf(where, options), number = this.#handle.use(where);
    if (typeof batch !== 'function') throw failure('ErrInvalid', where, `${show(batch)} is no function`);
    const {handle} = await this.#crunch.make(Command.Batch, [number], {where, keep: this});
    await new CruncherBatch(this, this.#crunch, handle, signal).run(batch);
  }

  /** @param {...unknown} arrays and the options @returns {Promise<void>} */
  async fetch(...arrays) {
    return this.#move(Command.Fetch, 'fetch', arrays);
  }

  /** @param {...unknown} arrays and the options @returns {Promise<void>} */
  async evict(...arrays) {
    return this.#move(Command.Evict, 'evict', arrays);
  }

  /** @param {number} command @param {string} where @param {unknown[]} args */
  async #move(command, where, args) {
    const crunch = this.#crunch, number = this.#handle.use(where), last = args.at(-1);
    const told = guard(where, () => typeof last === 'object' && last !== null && Object.hasOwn(last, 'signal'));
    const arrays = told ? args.slice(0, -1) : args, signal = told ? signalOf(where, last) : undefined;
    await crunch.ask(command, [number, ...arraysOf(where, crunch, arrays)], {where, keep: [this, arrays], signal});
  }

  /** @param {number} id */
  stats(id) {
    return frozen(this.#crunch.call(Command.Stats, [this.#handle.use('stats'), ...long(integer('stats', id, 'id'))]));
  }

  get last() { return frozen(this.#crunch.call(Command.Report, [this.#handle.use('last')])); }

  traffic() {
    return frozen(this.#crunch.call(Command.Traffic, [this.#handle.use('traffic')]));
  }

  close() {
    this.#handle.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletCruncher'; }
}

/** @param {any} value what Go has made @returns {any} */
function frozen(value) {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
}
