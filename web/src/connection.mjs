// SPDX-License-Identifier: Apache-2.0

import {Answers} from './answers.mjs';
import {failure} from './errors.mjs';
import {load} from './loader.mjs';
import {Message} from './message.mjs';
import {Numbers} from './numbers.mjs';
import {Objects} from './objects.mjs';
import {Program} from './program.mjs';
import {Command} from './protocol.mjs';
import {nothing} from './repeats.mjs';
import {onAbort} from './source.mjs';

/** @typedef {import('./memory.mjs').Held} Held */
/** @typedef {import('./memory.mjs').Store} Store */

/** A message leaves by itself when it has that many words, so that the device starts while the rest is still recorded. */
const POST_WORDS = 8192;
/** How long a message may wait that is only about closing, in milliseconds. */
const LINGER = 50;
/** The bit of what a message is answered with that says that it may do something else the next time; see wasm/internal/page. */
const VARIES = 1 << 16;
/** The bit that says that the program has handed all of its work to the device, which has done it if that is the CPU, and has no error to tell. */
const RESTS = 1 << 17;
/** For what is to be done when the current task is over. */
const soon = Promise.resolve();

/**
 * What a connection uses of a program.
 * @typedef {Omit<import('./loader.mjs').Program, 'ready'>} Served
 */

/**
 * How a command is answered. value: of the promise, where Go reports none; keep: what the collector must not take before the
 * answer; expression: writes what follows the words; where: for errors; signal: gives the command up.
 * @typedef {{value?: unknown, keep?: unknown, expression?: (program: Program) => void, where?: string, signal?: AbortSignal}} Asked
 */

/** What a device is, with the number of threads. @param {any} info @param {{readonly threads: number}} size */
const counting = (info, size) => Object.defineProperty(info, 'threads', {get: () => size.threads, enumerable: true});

/**
 * The connection to one Go program; the other side is wasm/internal/page. Commands are collected into a message, which is posted
 * when somebody waits for a result, at the latest when the current task of the event loop is over. What the commands are is up to
 * the derived classes.
 */
export class Connection {
  /** @type {Served | null} */
  #program;
  /** @protected */
  message;
  /** The program's memory. @protected @type {{readonly buffer: ArrayBuffer}} */
  memory;
  /** @protected */
  answers = new Answers();
  /** @protected */
  objects = new Objects();
  handles = new Numbers((handle) => this.repeats?.forget(handle));
  /** Whether goroutines get their turn as soon as a message is posted, and not when the current task is over. @protected */
  eager = false;
  /** The innermost scope whose function is running just now. @type {import('./scope.mjs').Scope | null} */
  scope = null;
  /** Notes what is open, if somebody wants to know. @type {import('./leaks.mjs').Leaks | null} */
  leaks = null;
  #scheduled = false;
  #lingering = false;
  /** Does messages again that were posted before. @protected @type {import('./repeats.mjs').Repeats | null} */
  repeats = null;
  /** Whether what was posted last was a flush, and nobody was answered since. */
  #flushed = false;
  #pumping = false;
  /** Whether the program said, when a message was posted last, that it has nothing left to do and no error to tell. */
  #resting = false;
  /** @type {import('./errors.mjs').SubletError | null} why nothing works any more */
  #refused = null;
  /** @type {import('./errors.mjs').SubletError | null} why nothing will work once the program has done what it is asked to */
  #closing = null;
  #end = () => {};
  /** Resolved when the program has ended. @type {Promise<void>} */
  ended = new Promise((resolve) => { this.#end = resolve; });
  /** External memory that its owner wants to hear of. @type {Set<Store>} */
  #releases = new Set();
  // Closes what the page forgets to close: the collector does not see memory of the GPU.
  #finalizer = new FinalizationRegistry((/** @type {Held} */ held) => {
    this.leaks?.collected(held);
    held.close();
  });

  /** @param {Served} program */
  constructor(program) {
    this.#program = program;
    this.memory = program.memory;
    this.message = new Message(program.memory, (words) => this.#answer('sublet_arena', words));
    this.whole = program.rest.whole;
    program.rest.composed = () => this.message.at;
    program.ended.then((why) => this.#die(why));
  }

  /**
   * Starts a Go program and opens its device.
   * @template {Connection} T @param {new (program: Served) => T} Class @param {import('./loader.mjs').Loading | Promise<import('./loader.mjs').Loading>} loading
   * @param {string} mark an export by which the program is known @param {{device?: GPUDevice, driver?: string, frugal?: boolean, debug?: string, tuning?: boolean}} options
   * @returns {Promise<{connection: T, info: any, device: GPUDevice | null}>}
   */
  static async start(Class, loading, mark, options) {
    /** @type {T} */
    let connection; // Go calls back only when it is there
    const program = await load(loading, mark, {
      ...options,
      object: (/** @type {number} */ number) => connection.takeObject(number),
      refuse: (error) => connection?.answers.postpone(error),
      settle: (/** @type {Parameters<Answers['settle']>} */ ...outcome) => connection.settle(...outcome),
      waiting: () => connection.answers.waiting,
    });
    connection = new Class(program);
    const {info, device} = await program.ready;
    return {connection, info: counting(info, program.size), device};
  }

  // The life of the program.

  /** Refuses to go on without a program. */
  check() {
    if (this.#refused) throw this.#refused;
  }

  /** Whether nothing works any more. */
  get over() {
    return this.#refused !== null;
  }

  /** The program has ended. @param {string} why */
  #die(why) {
    this.#refused ??= failure('exited', 'gpu', `the WebAssembly program has ended: ${why}`);
    this.#program?.stop();
    this.dismiss();
    this.#end();
  }

  /** Tells everybody who waits that there will be nothing, and lets go of the program's memory. @protected */
  dismiss() {
    if (!this.#program) return;
    this.#program = null;
    this.memory = {buffer: new ArrayBuffer(0)};
    this.message = new Message(this.memory, () => 0);
    this.repeats = null;
    this.answers.refuse(/** @type {import('./errors.mjs').SubletError} */ (this.#refused));
    this.objects.clear();
    for (const store of this.#releases) store.released();
    this.#releases.clear();
  }

  /** Calls the program. What it throws is the end: a trap leaves a Go program in no defined state. @template T @param {(program: Served) => T} call @returns {T} */
  #enter(call) {
    this.check();
    try {
      return call(/** @type {Served} */ (this.#program));
    } catch (error) {
      this.#die(String(error));
      throw this.#refused;
    }
  }

  /** Calls an export that answers at once. @param {string} name @param {number[]} args @returns {number} */
  #answer(name, ...args) {
    this.check();
    this.#program?.rest.complete();
    return this.#enter(({rest}) => rest.call(name, ...args));
  }

  /** Ends the program after what is queued. Who still waits then is told. */
  close() {
    if (this.#refused) return;
    this.#closing = failure('ErrClosed', 'gpu', 'it was closed');
    this.message.command(Command.End, []);
    this.post();
    this.#refused ??= this.#closing;
  }

  // Messages.

  /** Posts the message when the current task is over. @protected */
  schedule() {
    if (this.message.at >= POST_WORDS) return this.post();
    if (this.#scheduled) return;
    this.#scheduled = true;
    soon.then(() => { // queueMicrotask takes some 40 us more in a page that was doing nothing
      this.#scheduled = false;
      if (this.#refused || this.message.at === 0) return;
      this.message.command(Command.Flush, []);
      this.post();
    });
  }

  /** Posts the message when it pleases: closing what is Go's own can wait for the next command. @protected */
  linger() {
    if (this.message.at >= POST_WORDS) return this.post();
    if (this.#lingering) return;
    this.#lingering = true;
    setTimeout(() => {
      this.#lingering = false;
      if (!this.#refused) this.post();
    }, LINGER);
  }

  /** @protected */
  post() {
    if (this.message.at === 0) return;
    this.#flushed = false;
    const words = this.message.end(), {uses} = this.message, repeats = this.#resting ? this.repeats : null;
    this.message.uses = nothing();
    if (repeats && this.#repeat(repeats, words, uses)) return;
    this.#resting = false; // for what is posted in the middle of the call
    const answer = this.#enter(({rest}) => rest.post(words.length, this.objects.lends)), unfinished = answer & ~(VARIES | RESTS);
    this.#resting = (answer & RESTS) !== 0 && !this.#program?.rest.holds;
    repeats?.posted(this.#resting);
    if (answer & VARIES) this.repeats?.clear();
    this.objects.settle(unfinished === 0);
    if (this.eager) return this.#enter((program) => program.resume());
    if (unfinished === 0 && !this.answers.waiting || this.#pumping) return;
    // Something waits for a compiler, or is only interrupted by Go's garbage collector. No event would let it go on, so the program is called again.
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      this.#program?.resume();
    });
  }

  /** Whether there is nothing to wait for but the device: everything was posted, and is done by the program. @protected */
  get resting() { return this.#resting && this.message.at === 0; }

  /** Does what a message says without the program, if it can. @param {import('./repeats.mjs').Repeats} repeats @param {Uint32Array} words @param {import('./repeats.mjs').Uses} uses */
  #repeat(repeats, words, uses) {
    const repeated = repeats.run(words, uses, (number) => this.objects.at(number));
    if (!repeated) return false;
    const {ticket, objects, done} = repeated;
    for (const object of objects) this.takeObject(object);
    this.objects.settle(true);
    done?.then(() => this.answers.settle(ticket), ({name, message}) => this.answers.settle(ticket, undefined, name, `sublet: read: ${message}`));
    return true;
  }

  /** @protected @param {number} command @param {readonly number[]} words */
  send(command, words) {
    this.check();
    this.message.command(command, words);
    this.schedule();
  }

  /**
   * Sends a command that is answered, and posts it.
   * @param {number} command @param {readonly number[]} words after the ticket @param {Asked} [asked]
   * @returns {Promise<any>}
   */
  ask(command, words, {value, keep, expression, where = '', signal} = {}) {
    this.check();
    const ticket = this.answers.take();
    try {
      this.message.compose(command, [ticket, ...words], () => expression?.(new Program(this.message, where)));
    } catch (error) {
      this.answers.give(ticket);
      throw error;
    }
    const promise = this.answers.promise(ticket, value, keep);
    this.message.uses.other ||= signal !== undefined; // what is repeated cannot be given up
    try {
      this.post();
    } catch {
      // The promise tells: it was rejected when the program died.
    }
    return signal ? this.#given(promise, ticket, where, signal) : promise;
  }

  /** @param {Promise<any>} promise @param {number} ticket @param {string} where @param {AbortSignal} signal */
  async #given(promise, ticket, where, signal) {
    const deaf = onAbort(signal, () => {
      if (this.#refused) return;
      this.post(); // in a message of its own the program sees it at once
      this.message.command(Command.Cancel, [ticket]);
      this.post();
    });
    try {
      return await promise;
    } catch (error) {
      throw /** @type {any} */ (error).code === 'ErrAborted' ? failure('ErrAborted', where, 'it was aborted', signal.reason) : error;
    } finally {
      deaf();
    }
  }

  /** Runs code of the user's, which the program's end does not wait for. @template T @param {() => T} run @returns {Promise<Awaited<T>>} */
  async during(run) {
    if (!this.#program) throw this.#refused;
    const ticket = this.answers.take();
    const gone = this.answers.promise(ticket);
    gone.catch(() => {}); // run may throw before anybody waits
    try {
      return await Promise.race([gone, run()]);
    } finally {
      this.answers.settle(ticket);
    }
  }

  /** Sends a command that Go answers before it returns. @param {number} command @param {readonly number[]} words after the ticket @returns {any} */
  call(command, words) {
    this.check();
    let answer;
    /** @type {import('./errors.mjs').SubletError | null} */
    let error = failure('ErrInternal', 'gpu', 'no answer');
    const ticket = this.answers.take();
    this.answers.expect(ticket, {
      resolve: (value) => { answer = value; error = null; },
      reject: (why) => { error = why; },
      value: undefined,
    });
    this.message.command(command, [ticket, ...words]);
    this.post();
    if (error) throw error;
    return answer;
  }

  /** Called by Go. @param {Parameters<Answers['settle']>} outcome */
  settle(...outcome) {
    this.#flushed = false;
    const [ticket, , code] = outcome, why = this.#refused ?? this.#closing;
    this.#program?.rest.begin();
    if (code === 'ErrAborted' && why) this.answers.settle(ticket, undefined, why.code, why.message); // Go gives calls up that wait at the end
    else this.answers.settle(...outcome);
  }

  /** Called by Go. @param {number} number */
  takeObject(number) {
    return this.objects.take(number);
  }

  /** Keeps an object until Go asks for it. @param {unknown} object @returns {number} */
  put(object) { return this.objects.put(object); }

  flush() {
    this.check();
    if (this.message.at === 0 && (this.#flushed || this.#resting)) return;
    this.message.command(Command.Flush, []);
    this.post();
    this.#flushed = true;
  }

  /** Reads the counters, in the order of wasm/internal/page/export_js.go. @returns {Float64Array} */
  stats() {
    this.check();
    this.post();
    const address = this.#answer('sublet_stats');
    const counters = new Float64Array(/** @type {Served} */ (this.#program).memory.buffer, address, 12).slice(), more = this.repeats?.counts;
    if (more) {
      counters[0] += more.bytesUp;
      counters[1] += more.bytesDown;
      counters[2] += more.submissions;
      counters[3] += more.dispatches;
    }
    return counters;
  }

  // What the page has of the program's.

  /** Watches an object that every use of something of Go's holds, as a leaf of expressions. @param {object} key @param {Held} held its own */
  watch(key, held) {
    this.#finalizer.register(key, held, held);
    this.leaks?.opened(held, key);
    if (held.store.release) this.#releases.add(held.store);
  }

  /** @protected @param {Held} held */
  unwatch(held) {
    this.#finalizer.unregister(held);
    this.leaks?.closed(held);
  }

  /** Nothing uses the memory any more, or nothing ever did. @protected @param {Store} store @param {boolean} [used] */
  released(store, used = true) {
    this.#releases.delete(store);
    if (used) store.released();
  }
}
