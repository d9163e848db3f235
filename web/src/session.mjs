// SPDX-License-Identifier: Apache-2.0

import {SubletError, failure, shapeError} from './errors.mjs';
import {load} from './loader.mjs';
import {Message} from './message.mjs';
import {Program} from './program.mjs';
import {Command} from './protocol.mjs';

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./memory.mjs').Memory} Memory */

/**
 * @typedef {{resolve: (value: any) => void, reject: (error: SubletError) => void, value: unknown}} Pending
 *   value: what the promise is to be fulfilled with if Go reports none
 */

/** A message leaves by itself when it has that many words, so that the device starts while the rest is still recorded. */
const POST_WORDS = 8192;

/** Small numbers, given out and taken back. */
class Numbers {
  #next = 1;
  /** @type {number[]} */
  #free = [];

  take() {
    return this.#free.pop() ?? this.#next++;
  }

  /** @param {number} n */
  give(n) {
    this.#free.push(n);
  }
}

/**
 * The connection to one Go program. Commands are collected into a message, which is posted when somebody waits for a
 * result, at the latest when the current task of the event loop is over.
 */
export class Session {
  /** @type {import('./loader.mjs').Program} */
  #program;
  #message;
  #handles = new Numbers();
  #funcs = new Numbers();
  #tickets = new Numbers();
  /** @type {Map<number, Pending>} */
  #pending = new Map();
  /** What Go has not taken yet, by number. @type {Map<number, unknown>} */
  #objects = new Map();
  #objectNumbers = new Numbers();
  /** Objects of the user's that must be copied if Go does not take them at once. @type {number[]} */
  #borrowed = [];
  /** External memory that its owner wants to hear of. @type {Set<Memory>} */
  #releases = new Set();
  #scheduled = false;
  #pumping = false;
  /** @type {SubletError | null} why nothing works any more */
  #refused = null;
  #ended = false;

  // A net for those who forget to close: the collector does not see memory of the GPU.
  #matrixNet = new FinalizationRegistry((/** @type {Memory} */ memory) => memory.close());
  #funcNet = new FinalizationRegistry((/** @type {number} */ handle) => this.#forget(handle));

  /** @param {import('./loader.mjs').Program} program */
  constructor(program) {
    this.#program = program;
    this.#message = new Message(program.memory, (words) => this.#enter(() => program.arena(words)));
    program.ended.then((why) => this.#die(why));
  }

  /**
   * Starts a Go program and opens its device.
   * @param {unknown} wasm @param {{device?: GPUDevice, frugal: boolean, driver?: string}} options
   * @returns {Promise<{session: Session, info: any, device: GPUDevice | null}>}
   */
  static async open(wasm, options) {
    /** @type {Session} */
    let session; // Go calls back only when it is there
    const program = await load(wasm, {
      ...options,
      object: (number) => session.takeObject(number),
      settle: (ticket, value, code, message) => session.settle(ticket, value, code, message),
    });
    session = new Session(program);
    return {session, ...await program.ready};
  }

  // The life of the program.

  /** Refuses to go on without a program. */
  check() {
    if (this.#refused) throw this.#refused;
  }

  /** The program has ended. @param {string} why */
  #die(why) {
    if (this.#ended) return;
    this.#ended = true;
    this.#program.stop();
    this.#refused ??= failure('exited', 'gpu', `the WebAssembly program has ended: ${why}`);
    for (const {reject} of this.#pending.values()) reject(this.#refused);
    this.#pending.clear();
    this.#objects.clear();
    for (const memory of this.#releases) memory.released();
    this.#releases.clear();
  }

  /** Calls an export. What it throws is the end: a trap leaves a Go program in no defined state. @param {() => number} call */
  #enter(call) {
    this.check();
    try {
      return call();
    } catch (error) {
      this.#die(String(error));
      throw this.#refused;
    }
  }

  /** Ends the program after what is queued. Who still waits then is told. */
  close() {
    if (this.#refused) return;
    this.#message.command(Command.End, []);
    this.#post();
    this.#refused = failure('ErrClosed', 'gpu', 'it was closed');
  }

  // Messages.

  /** Posts the message when the current task is over. */
  #schedule() {
    if (this.#message.at >= POST_WORDS) return this.#post();
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      if (this.#refused || this.#message.at === 0) return;
      this.#message.command(Command.Flush, []);
      this.#post();
    });
  }

  #post() {
    const words = this.#message.at;
    if (words === 0) return;
    this.#message.at = 0;
    const unfinished = this.#enter(() => this.#program.post(words));
    if (unfinished === 0) {
      this.#borrowed.length = 0;
      return;
    }
    this.#keepBorrowed();
    if (this.#pumping) return;
    // The program waits for a compiler, or was only interrupted by its garbage collector: then it must be called again.
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      if (!this.#ended) this.#program.resume();
    });
  }

  /** @param {number} command @param {readonly number[]} words */
  #send(command, words) {
    this.check();
    this.#message.command(command, words);
    this.#schedule();
  }

  /**
   * Sends a command that is answered, and posts it.
   * @param {number} command @param {readonly number[]} words after the ticket @param {unknown} value of the promise
   * @param {((program: Program) => void) | null} expression @param {string} where
   * @returns {Promise<any>}
   */
  #ask(command, words, value, expression, where) {
    this.check();
    const ticket = this.#tickets.take();
    try {
      this.#message.compose(command, [ticket, ...words], () => expression?.(new Program(this.#message, where)));
    } catch (error) {
      this.#tickets.give(ticket);
      throw error;
    }
    const promise = new Promise((resolve, reject) => this.#pending.set(ticket, {resolve, reject, value}));
    try {
      this.#post();
    } catch {
      // The promise tells: it was rejected when the program died.
    }
    return promise;
  }

  /** Called by Go. @param {number} ticket @param {unknown} [value] @param {string} [code] @param {string} [message] */
  settle(ticket, value, code, message) {
    const pending = this.#pending.get(ticket);
    if (!pending) return;
    this.#pending.delete(ticket);
    this.#tickets.give(ticket);
    if (code !== undefined) pending.reject(new SubletError(code, message ?? code));
    else pending.resolve(value ?? pending.value);
  }

  // Objects that are no numbers.

  /** @param {unknown} object @returns {number} */
  #object(object) {
    const number = this.#objectNumbers.take();
    this.#objects.set(number, object);
    return number;
  }

  /** Called by Go. @param {number} number */
  takeObject(number) {
    const object = this.#objects.get(number);
    this.#objects.delete(number);
    this.#objectNumbers.give(number);
    return object;
  }

  /** Copies what the user may change as soon as the current call returns. */
  #keepBorrowed() {
    for (const number of this.#borrowed) {
      const bytes = /** @type {Uint8Array | undefined} */ (this.#objects.get(number));
      if (bytes) this.#objects.set(number, bytes.slice());
    }
    this.#borrowed.length = 0;
  }

  // Commands.

  // Those that make a matrix are given its leaf.

  /** Zeros. @param {Node} leaf @param {Memory} memory */
  newMatrix(leaf, memory) {
    this.check();
    const handle = memory.open(this.#handles.take());
    this.#send(Command.New, [handle, memory.form, memory.rows, memory.cols]);
    this.#watch(leaf, memory);
  }

  /** Replaces the elements, from bytes that are the user's unless they are a copy. @param {Memory} memory @param {Uint8Array} bytes @param {boolean} copy */
  setData(memory, bytes, copy) {
    this.check();
    const object = this.#object(bytes);
    if (!copy) this.#borrowed.push(object);
    this.#send(Command.Data, [memory.use('set'), object, bytes.length]);
    if (!copy) this.#post();
  }

  /** @param {Node} leaf @param {Memory} memory @param {Uint8Array} bytes */
  wrap(leaf, memory, bytes) {
    this.check();
    const handle = memory.open(this.#handles.take());
    const object = this.#object(bytes);
    this.#send(Command.Wrap, [handle, memory.form, memory.rows, memory.cols, memory.stride, object, bytes.length]);
    this.#watch(leaf, memory);
  }

  /** @param {Node} leaf @param {Memory} memory @param {GPUBuffer} buffer */
  importBuffer(leaf, memory, buffer) {
    this.check();
    const handle = memory.open(this.#handles.take());
    const object = this.#object(buffer);
    this.#send(Command.Import, [handle, memory.form, memory.rows, memory.cols, memory.offset, memory.stride, object]);
    this.#watch(leaf, memory);
  }

  /** @param {Node} leaf @param {Memory} memory that gets the result @param {Node} node */
  eval(leaf, memory, node) {
    this.check();
    const handle = this.#handles.take();
    const program = new Program(this.#message, 'eval');
    try {
      this.#message.compose(Command.Eval, [handle], () => program.encode(node));
    } catch (error) {
      this.#handles.give(handle);
      throw error;
    }
    memory.open(handle);
    this.#watch(leaf, memory);
    this.#evaluated(program);
  }

  /** @param {Node} target @param {Node} node */
  assign(target, node) {
    this.check();
    if (target.rows !== node.rows || target.cols !== node.cols) throw shapeError('assign', target, node);
    const program = new Program(this.#message, 'assign');
    const words = [0];
    const at = this.#message.at + 1;
    this.#message.compose(Command.Assign, words, () => {
      const value = program.encode(target);
      // What is read is encoded apart from what is written, although it may be the same.
      program.forget();
      program.encode(node);
      this.#message.set(at, value);
    });
    this.#evaluated(program);
  }

  /** Memory of the page's is read before the user can change it. @param {Program} program */
  #evaluated(program) {
    if (program.external) this.#post();
    else this.#schedule();
  }

  /** @template T @param {Node} node @param {T & ArrayBufferView} into @returns {Promise<T>} */
  read(node, into) {
    const bytes = new Uint8Array(into.buffer, into.byteOffset, node.rows * node.cols * node.type.size);
    const object = this.#object(bytes);
    try {
      return this.#ask(Command.Read, [object, bytes.length], into, (program) => program.encode(node), 'read');
    } catch (error) {
      this.takeObject(object);
      throw error;
    }
  }

  /** @param {Memory} memory @returns {Promise<void>} */
  sync(memory) {
    return this.#ask(Command.Sync, [memory.use('sync')], undefined, null, 'sync');
  }

  /** @param {Memory} memory */
  touch(memory) {
    this.#send(Command.Touch, [memory.use('touch')]);
  }

  /** @param {Memory} memory @returns {Promise<GPUBuffer>} */
  buffer(memory) {
    return this.#ask(Command.Buffer, [memory.use('buffer')], undefined, null, 'buffer');
  }

  /** @returns {Promise<void>} */
  wait() {
    return this.#ask(Command.Wait, [], undefined, null, 'sync');
  }

  flush() {
    this.check();
    this.#message.command(Command.Flush, []);
    this.#post();
  }

  /** @param {Memory} memory */
  closeMatrix(memory) {
    this.#matrixNet.unregister(memory);
    if (this.#refused) return;
    this.#handles.give(memory.handle);
    let ticket = 0;
    if (memory.release) {
      ticket = this.#tickets.take();
      const done = () => {
        this.#releases.delete(memory);
        memory.released();
      };
      this.#pending.set(ticket, {resolve: done, reject: done, value: undefined});
    }
    this.#send(Command.Close, [memory.handle, ticket]);
  }

  /** Watches a leaf, which every expression that uses the matrix holds. @param {Node} leaf @param {Memory} memory its own */
  #watch(leaf, memory) {
    this.#matrixNet.register(leaf, memory, memory);
    if (memory.release) this.#releases.add(memory);
  }

  /** @param {import('./func.mjs').FuncRef} func that gets its handle @param {string} text */
  define(func, text) {
    this.check();
    func.handle = this.#funcs.take();
    this.#send(Command.Func, [func.handle, this.#object(text)]);
    this.#funcNet.register(func, func.handle, func);
  }

  /** @param {import('./func.mjs').FuncRef} func */
  forget(func) {
    this.#funcNet.unregister(func);
    this.#forget(func.handle);
  }

  /** @param {number} handle of a function */
  #forget(handle) {
    if (this.#refused) return;
    this.#funcs.give(handle);
    this.#send(Command.Forget, [handle]);
  }

  /** Reads the counters, in the order of wasm/bridge/export_js.go. @returns {Float64Array} */
  stats() {
    this.check();
    this.#post();
    const at = this.#enter(() => this.#program.stats());
    return new Float64Array(this.#program.memory.buffer, at, 11).slice();
  }
}
