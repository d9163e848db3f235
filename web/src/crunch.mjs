// SPDX-License-Identifier: Apache-2.0

import {Connection} from './connection.mjs';
import {failure} from './errors.mjs';
import {abortable} from './source.mjs';

/** @typedef {import('./memory.mjs').Held} Held */

/** The connection to the Go program of wasm/cruncher. Its crunchers and arrays know one another. */
export class Crunch extends Connection {
  /** @protected @override */
  eager = true;
  /** How many need the program: handles that are open, and crunchers that are being opened. */
  #users = 0;
  /** Whether there will be no new cruncher. */
  #retired = false;
  /** Functions of the user's that tasks of pools have yet to call, and how often. @type {Map<(error?: any) => unknown, number>} */
  #due = new Map();
  /** Whether Go waits for a function of the user's. */
  #busy = false;
  /** What refuses those who wait for functions of the user's, by what these need. @type {WeakMap<Held, Set<() => void>>} */
  #refusals = new WeakMap();

  /**
   * Starts the program.
   * @param {import('./loader.mjs').Loading} loading @param {GPUDevice | null} device or a device of its own @param {string} driver of devices
   */
  static async open(loading, device, driver) {
    return (await Connection.start(Crunch, loading, 'sublet_cruncher', {device: device ?? undefined, driver})).connection;
  }

  /** Runs a function of the user's for which Go waits: it cannot be asked anything meanwhile. @template T @param {() => T} run @returns {T} */
  busy(run) {
    this.#busy = true;
    try {
      return run();
    } finally {
      this.#busy = false;
    }
  }

  /** @override */
  check() {
    if (this.#busy) throw failure('ErrInvalid', 'cruncher', 'a balancer is at work, which cannot use crunchers');
    super.check();
  }

  /** Ends the program. Who still waits is told. @override */
  close() {
    if (this.#busy) return queueMicrotask(() => this.close());
    if (this.over) return;
    const why = failure('ErrClosed', 'cruncher', 'the Gpu was closed');
    this.answers.refuse(why); // before Go says what it thinks of it
    super.close();
    this.dismiss();
    for (const [callback, times] of this.#due) for (let i = 0; i < times; i++) Promise.resolve(why).then(callback).catch(() => {}); // nobody asks what it throws
  }

  /** Notes that tasks will call a function of the user's so many times more, or less. @param {(error?: any) => unknown} callback @param {number} times */
  due(callback, times) {
    const left = (this.#due.get(callback) ?? 0) + times;
    if (left > 0) this.#due.set(callback, left);
    else this.#due.delete(callback);
  }

  /** Notes somebody who needs the program until drop is called. */
  hold() {
    this.#users++;
  }

  drop() {
    this.#users--;
    this.#rest();
  }

  /** Ends the program as soon as nobody needs it. */
  retire() {
    this.#retired = true;
    this.#rest();
  }

  #rest() {
    if (this.#retired && this.#users === 0) this.close();
  }

  /** Watches the user's object for what it has of Go's. @override @param {object} key @param {Held} held */
  watch(key, held) {
    this.hold();
    super.watch(key, held);
  }

  /**
   * Asks Go to make something under a new handle.
   * @param {number} command @param {readonly number[]} words @param {import('./connection.mjs').Asked} asked
   * @returns {Promise<{handle: number, value: any}>}
   */
  async make(command, words, asked) {
    this.check();
    const handle = this.handles.take();
    try {
      return {handle, value: await this.ask(command, [handle, ...words], asked)};
    } catch (error) {
      this.handles.give(handle);
      throw error;
    }
  }

  /** Sends a command that is not answered. @param {number} command @param {readonly number[]} words */
  tell(command, words) {
    this.message.command(command, words);
    this.post();
  }

  /**
   * Waits for a function of the user's, at the latest until a signal says that nobody wants it any more, what it needs is closed, or the program has ended.
   * @template T @param {string} where @param {AbortSignal | undefined} signal @param {Held} held what it needs @param {() => T} run @returns {Promise<Awaited<T>>}
   */
  async until(where, signal, held, run) {
    const refusals = this.#refusals.get(held) ?? new Set();
    let refuse = () => {};
    const closed = new Promise((_, reject) => { refuse = () => reject(failure('ErrClosed', where, `${held.what} was closed`)); });
    closed.catch(() => {}); // run may throw before anybody waits
    this.#refusals.set(held, refusals.add(refuse));
    if (held.closed) refuse();
    try {
      return await abortable(where, signal, this.during(() => Promise.race([closed, run()])), () => {});
    } finally {
      refusals.delete(refuse);
    }
  }

  /** Closes something of Go's, and tells the owner of its memory when nothing uses that any more. @param {Held} held */
  release(held) {
    if (this.#busy) return queueMicrotask(() => this.release(held));
    this.unwatch(held);
    for (const refuse of this.#refusals.get(held) ?? []) refuse();
    if (this.over) return;
    const released = () => {
      this.released(held.store);
      this.drop();
    };
    this.ask(held.end, [held.handle]).then(released, released);
    this.handles.give(held.handle);
  }
}
