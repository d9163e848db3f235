// SPDX-License-Identifier: Apache-2.0

import {Crunch} from './crunch.mjs';
import {balancerOf, balancerWords} from './crunch-balancer.mjs';
import {CruncherArray, CruncherScalar} from './crunch-array.mjs';
import {openDevicePipeline, openPipeline} from './crunch-pipeline.mjs';
import {DevicePool} from './crunch-pool.mjs';
import {CruncherTask, RANGE, arraysOf, integer, optionsOf, orderWords} from './crunch-task.mjs';
import * as crunchers from './crunchers.mjs';
import {failure, guard, listed, show, tagOf} from './errors.mjs';
import {Held, Store} from './memory.mjs';
import {long} from './message.mjs';
import {instead} from './nearest.mjs';
import {Command} from './protocol.mjs';
import {abortable, checkSignal, read, signalOf} from './source.mjs';

export {Crunch};

// In the order of wasm/cruncher/calls.go.
const COHERENCES = Object.freeze(['migrate', 'pin', 'strict']);
const POOL_MODES = Object.freeze(['greedy', 'round-robin']);
const DEVICES = Object.freeze(['own', 'other', 'high-performance', 'low-power']);
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

/**
 * What a call computes, in words, and the signal that gives it up.
 * @param {string} where @param {Crunch} crunch @param {any} id @param {any} kernels @param {any} range @param {unknown[]} params
 */
function orderOf(where, crunch, id, kernels, range, params) {
  const {signal, ...o} = optionsOf(where, range, [...RANGE, 'signal']);
  const words = orderWords(where, crunch, id, kernels, o, params), watched = checkSignal(where, signal);
  crunch.check(); // before anything is kept for Go
  return {words: words(), signal: watched};
}

/** Devices as Go takes them. @param {Crunch} crunch @param {(string | GPUDevice)[]} devices */
const deviceWords = (crunch, devices) => devices.flatMap((d) => typeof d === 'string' ? DEVICES.indexOf(d) : [DEVICES.length, crunch.put(d)]);

/** Calls that are queued; see Cruncher.batch. */
export class CruncherBatch extends crunchers.CruncherBatch {
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
    super();
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

  /** Waits until everything is queued, and for what comes back. @param {Held} held the cruncher @param {Function} batch the user's function */
  async run(held, batch) {
    let failed = false, reason;
    try {
      await this.#crunch.until('batch', this.#signal, held, () => batch(this));
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

/** What is behind a cruncher; undefined for anything else. @type {(x: unknown) => Held | undefined} */
export let cruncherOf;

/** Computes kernels of the user's on several devices at once. */
export class Cruncher extends crunchers.Cruncher {
  #crunch;
  #handle;
  #kernels;
  #devices;
  #own;

  static {
    cruncherOf = (x) => typeof x === 'object' && x !== null && #handle in x ? x.#handle : undefined;
  }

  /** @param {Crunch} crunch @param {number} number @param {string[]} kernels @param {any[]} devices @param {GPUDevice | null} own the Gpu's */
  constructor(crunch, number, kernels, devices, own = null) {
    super();
    this.#crunch = crunch;
    this.#own = own;
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
    const balancer = balancerOf(where, o.balancer), coherence = word(where, 'coherence', COHERENCES, o.coherence);
    const {memory = 0} = o, devices = devicesOf(where, o.devices, own);
    if (!Number.isSafeInteger(memory) || memory < 0) throw failure('ErrInvalid', where, `memory ${show(memory)}; it is a number of bytes, 0 for no limit`);
    const signal = checkSignal(where, o.signal), crunch = await abortable(where, signal, program(), (late) => late.drop());
    try {
      checkSignal(where, signal);
      const given = [crunch.put(wgsl), ...balancerWords(crunch, balancer), coherence, ...long(memory), ...deviceWords(crunch, devices)], {handle, value: [kernels, infos]} = await crunch.make(Command.Open, given, {where, signal});
      return new Cruncher(crunch, handle, kernels, infos, own);
    } finally {
      crunch.drop();
    }
  }

  get kernels() { return this.#kernels; }
  get devices() { return this.#devices; }
  get closed() { return this.#handle.over; }

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
    await new CruncherBatch(this, this.#crunch, handle, signal).run(this.#handle, batch);
  }

  /** @param {number} id @param {string} kernels @param {unknown} range @param {...unknown} params */
  task(id, kernels, range, ...params) {
    this.#handle.use('task');
    return new CruncherTask(this.#crunch, id, kernels, range, params);
  }

  /** @param {unknown} [options] */
  async pool(options) {
    const where = 'pool', {mode, signal} = read(where, options, ['mode', 'signal']), way = word(where, 'mode', POOL_MODES, mode), watched = checkSignal(where, signal);
    this.#handle.use(where);
    const own = this.#own, crunch = this.#crunch;
    const {handle} = await crunch.make(Command.Pool, [this.#handle.use(where), way], {where, signal: watched, keep: this});
    return new DevicePool(crunch, handle, this.#devices, (device) => deviceWords(crunch, devicesOf('addDevice', [device], own)));
  }

  /** @param {unknown} stages @param {unknown} [options] */
  async pipeline(stages, options) {
    const signal = signalOf('pipeline', options);
    this.#handle.use('pipeline');
    return openPipeline(this.#crunch, this, stages, checkSignal('pipeline', signal));
  }

  /** @param {unknown} stages @param {unknown} [options] */
  async devicePipeline(stages, options) {
    const where = 'devicePipeline', {device = 0, signal} = read(where, options, ['device', 'signal']), watched = checkSignal(where, signal);
    this.#handle.use(where);
    if (!Number.isInteger(device) || device < 0 || device >= this.#devices.length) throw failure('ErrDevices', where, `device ${show(device)}; the cruncher's are 0 to ${this.#devices.length - 1}`);
    return openDevicePipeline(this.#crunch, this, device, stages, checkSignal(where, watched));
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
export function frozen(value) {
  if (typeof value === 'object' && value !== null) Object.values(value).forEach(frozen);
  return Object.freeze(value);
}
