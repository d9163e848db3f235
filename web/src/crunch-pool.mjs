// SPDX-License-Identifier: Apache-2.0

import {owe, taskOf} from './crunch-task.mjs';
import {frozen} from './cruncher.mjs';
import {failure, show} from './errors.mjs';
import {Held, Store} from './memory.mjs';
import {Command} from './protocol.mjs';
import {signalOf} from './source.mjs';

/** @typedef {import('./crunch.mjs').Crunch} Crunch */

/** Computes whole tasks, each on one of several devices. */
export class DevicePool {
  #crunch;
  #handle;
  #devices;
  #words;
  /** Tasks that may not be complete: what they use must not be collected. @type {Set<unknown>} */
  #tasks = new Set();

  /** @param {Crunch} crunch @param {number} number @param {readonly unknown[]} devices @param {(device: unknown) => number[]} words of a device */
  constructor(crunch, number, devices, words) {
    this.#crunch = crunch;
    this.#handle = new Held(crunch, new Store(), 'the pool', Command.ClosePool);
    this.#handle.open(number);
    this.#devices = devices;
    this.#words = words;
    crunch.watch(this, this.#handle);
  }

  get devices() { return this.#devices; }
  get closed() { return this.#handle.over; }

  /** @param {unknown} device @param {unknown} [options] @returns {Promise<void>} */
  async addDevice(device, options) {
    const where = 'addDevice', signal = signalOf(where, options), number = this.#handle.use(where);
    const info = await this.#crunch.ask(Command.AddDevice, [number, ...this.#words(device)], {where, signal, keep: this});
    this.#devices = Object.freeze([...this.#devices, frozen(info)]);
  }

  /** @param {...unknown} tasks */
  enqueue(...tasks) {
    const where = 'enqueue', crunch = this.#crunch, number = this.#handle.use(where), handles = tasks.map((task) => {
      const held = taskOf(task);
      if (!held) throw failure('ErrInvalid', where, `${show(task)} is no task`);
      if (held.session !== crunch) throw failure('ErrForeign', where, 'a task of another Gpu');
      return held.use(where);
    });
    if (this.remaining === 0) this.#tasks.clear();
    const {length} = this.devices, count = (/** @type {1 | -1} */ sign) => { for (const task of tasks) owe(/** @type {any} */ (task), length, sign); };
    count(1);
    try {
      crunch.call(Command.Enqueue, [number, ...handles]);
    } catch (error) {
      count(-1);
      throw error;
    }
    for (const task of tasks) this.#tasks.add(task);
  }

  /** @param {unknown} [options] @returns {Promise<number>} */
  async finish(options) {
    const where = 'finish', signal = signalOf(where, options);
    return this.#crunch.ask(Command.Finish, [this.#handle.use(where)], {where, signal, keep: this});
  }

  /** @param {string} where @returns {[completed: readonly number[], remaining: number]} */
  #stats(where) { return frozen(this.#crunch.call(Command.PoolStats, [this.#handle.use(where)])); }

  get completed() { return this.#stats('completed')[0]; }
  get remaining() { return this.#stats('remaining')[1]; }

  close() {
    this.#handle.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletDevicePool'; }
}
