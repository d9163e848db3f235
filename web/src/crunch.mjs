// SPDX-License-Identifier: Apache-2.0

import {Answers} from './answers.mjs';
import {SubletError, failure} from './errors.mjs';
import {load} from './loader.mjs';
import {Store} from './memory.mjs';
import {onAbort} from './source.mjs';

/** The ticket under which Go reports an error of the call at hand; see wasm/cruncher. */
const NOW = 0;

/** Something of Go's. Nothing here refers to the user's object, so that the collector can tell when that is gone. */
export class Handle {
  closed = false;

  /** @param {Crunch} crunch @param {string} what @param {string} close the function of Go's that closes it @param {number} number @param {Store} store */
  constructor(crunch, what, close, number, store = new Store()) {
    this.crunch = crunch;
    this.what = what;
    this.end = close;
    this.number = number;
    this.store = store;
  }

  /** The number, of what can be used. @param {string} where */
  use(where) {
    this.crunch.check();
    if (this.closed) throw failure('ErrClosed', where, `${this.what} was closed`);
    return this.number;
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    this.crunch.forget(this);
  }
}

/** The connection to the Go program of wasm/cruncher. Its crunchers and arrays know one another. */
export class Crunch {
  /** @type {Record<string, (...args: unknown[]) => any>} */
  #functions;
  #answers;
  /** The error of the call at hand. @type {SubletError | null} */
  #fault = null;
  /** @type {SubletError | null} why nothing works any more */
  #refused = null;
  /** Memory whose owner wants to hear that it is not used any more. @type {Set<Store>} */
  #releases = new Set();
  /** How many need the program: handles that are open, and crunchers that are being opened. */
  #users = 0;
  /** Whether there will be no new cruncher. */
  #retired = false;
  // A net for those who forget to close.
  #net = new FinalizationRegistry((/** @type {Handle} */ handle) => handle.close());

  /** @param {import('./loader.mjs').Program} program @param {Record<string, any>} functions @param {Answers} answers */
  constructor(program, functions, answers) {
    this.#functions = functions;
    this.#answers = answers;
    this.ended = program.ended;
    program.ended.then((why) => this.#die(why));
  }

  /** Starts the program. @param {WebAssembly.Module} module @param {GPUDevice} device */
  static async open(module, device) {
    const answers = new Answers();
    /** @type {Crunch} */
    let crunch; // Go calls back only when it is there
    const program = await load(module, 'sublet_cruncher', {
      device,
      settle: (/** @type {Parameters<Answers['settle']>} */ ...outcome) => outcome[0] === NOW ? crunch.#fail(outcome) : answers.settle(...outcome),
    });
    const {functions} = await program.ready;
    return crunch = new Crunch(program, functions, answers);
  }

  // The life of the program.

  /** Refuses to go on without a program. */
  check() {
    if (this.#refused) throw this.#refused;
  }

  /** @param {string} why */
  #die(why) {
    this.#end(failure('exited', 'cruncher', `the WebAssembly program has ended: ${why}`));
  }

  /** @param {SubletError} why */
  #end(why) {
    if (this.#refused) return;
    this.#refused = why;
    this.#answers.refuse(why);
    for (const store of this.#releases) store.released();
    this.#releases.clear();
    this.#functions = {}; // through which the program's memory stays
  }

  /** Ends the program. Who still waits is told. */
  close() {
    if (this.#refused) return;
    const {end} = this.#functions;
    this.#end(failure('ErrClosed', 'cruncher', 'the Gpu was closed'));
    end();
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

  // Calls.

  /** @param {Parameters<Answers['settle']>} outcome */
  #fail([, , code, message]) {
    this.#fault = new SubletError(code ?? 'ErrInternal', message ?? '');
  }

  /** Calls a function of Go's. What it throws is the end: a trap leaves a Go program in no defined state. @param {string} name @param {unknown[]} args */
  #enter(name, args) {
    this.check();
    try {
      return this.#functions[name](...args);
    } catch (error) {
      this.#die(String(error));
      throw this.#refused;
    }
  }

  /** Calls a function that answers at once. @param {string} name @param {...unknown} args @returns {any} */
  call(name, ...args) {
    this.#fault = null;
    const value = this.#enter(name, args);
    this.check(); // it may have died of it
    if (this.#fault) throw this.#fault;
    return value;
  }

  /**
   * Calls one that answers later.
   * @param {string} name @param {unknown[]} args
   * @param {{where?: string, signal?: AbortSignal, keep?: unknown}} [options] keep: what the collector must not take before the answer
   * @returns {Promise<any>}
   */
  async ask(name, args, {where = name, signal, keep} = {}) {
    this.check();
    const ticket = this.#answers.take(), answer = this.#answers.promise(ticket, undefined, keep);
    const deaf = onAbort(signal, () => {
      if (!this.#refused) this.#enter('cancel', [ticket]);
    });
    try {
      try {
        this.#enter(name, [ticket, ...args]);
      } catch {
        // The promise tells: it was rejected when the program died.
      }
      return await answer;
    } catch (error) {
      const given = /** @type {SubletError} */ (error);
      throw given.code === 'ErrAborted' ? failure('ErrAborted', where, 'it was aborted', signal?.reason) : given;
    } finally {
      deaf();
    }
  }

  /** Watches the user's object for a handle. @param {object} key @param {Handle} handle */
  watch(key, handle) {
    this.hold();
    this.#net.register(key, handle, handle);
    if (handle.store.release) this.#releases.add(handle.store);
  }

  /** Closes a handle in Go, and tells the owner of its memory when nothing uses that any more. @param {Handle} handle */
  forget(handle) {
    this.#net.unregister(handle);
    if (this.#refused) return;
    const released = () => {
      this.#releases.delete(handle.store);
      handle.store.released();
      this.drop();
    };
    this.ask(handle.end, [handle.number]).then(released, released);
  }
}
