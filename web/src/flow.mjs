// SPDX-License-Identifier: Apache-2.0

import {SubletError, failure, isOurs, reasonOf} from './errors.mjs';
import {Held, Store} from './memory.mjs';
import {Command} from './protocol.mjs';
import {checkSignal, onAbort} from './source.mjs';

// Files on their way to and from Go, which get memory piece by piece; see wasm/internal/bridge/flow.go. pieces.mjs moves them.

/** @typedef {import('./session.mjs').Session} Session */

/** An error of a stream of the user's. @param {string} where @param {unknown} error */
export const streamFailure = (where, error) => isOurs(error) ? error : failure('ErrStream', where, reasonOf(error), error);

/** A load or a save that is under way in Go. */
export class Flow {
  #session;
  #where;
  #done;
  #held;
  /** Whether Go has done all that it will do. */
  over = false;
  /** Why the user gave it up. @type {SubletError | null} */
  #aborted = null;
  /** Why Go gave it up, unless it was told to. @type {unknown} */
  #failure;
  #end = () => {};
  #unlisten = () => {};

  /** @param {Session} session @param {string} where @param {number} command Load or Save @param {number[]} words after the handle @param {unknown} signal */
  constructor(session, where, command, words, signal) {
    const watched = checkSignal(where, signal);
    this.#session = session;
    this.#where = where;
    this.#held = new Held(session, new Store(), 'the file');
    this.#done = session.ask(command, [session.open(this, this.#held), ...words]);
    const over = () => {
      this.over = true;
      this.#unlisten();
      this.#end();
    };
    this.#done.then(over, (error) => {
      if (!this.#held.closed) this.#failure = error;
      over();
    });
    this.#unlisten = onAbort(watched, () => {
      this.#aborted = failure('ErrAborted', where, 'it was aborted', watched?.reason);
      this.close();
    });
  }

  get handle() { return this.#held.handle; }

  /** Gives the flow up when the collector takes an object that is all that the user has of it. @param {object} key */
  belongsTo(key) {
    this.#session.watch(key, this.#held);
  }

  /** Passes memory on and waits until it is used. @param {Uint8Array} bytes @returns {Promise<number>} what Go says to that */
  async pass(bytes) {
    if (this.#held.closed) return this.result();
    try {
      return await this.#session.ask(Command.Pass, [this.#held.handle, this.#session.put(bytes), bytes.length]);
    } catch (error) {
      throw await this.fail(error);
    }
  }

  /**
   * Waits for a promise, at the latest until the flow is over. Promise.race would keep what all the promises of a long file
   * were fulfilled with.
   * @template T @param {Promise<T>} promise @returns {Promise<T | undefined>}
   */
  until(promise) {
    return new Promise((resolve, reject) => {
      this.#end = () => resolve(undefined);
      if (this.over) this.#end();
      promise.then(resolve, reject);
    });
  }

  /** What Go says in the end. @returns {Promise<any>} */
  async result() {
    try {
      return await this.#done;
    } catch (error) {
      this.close();
      throw this.#aborted ?? error;
    }
  }

  /** Gives the flow up, waits until Go has done so and returns the error to throw. @param {unknown} error */
  async fail(error) {
    const failure = this.#failure;
    this.close();
    await this.#done.catch(() => {});
    return this.#aborted ?? failure ?? streamFailure(this.#where, error);
  }

  close() {
    this.#held.close();
  }
}
