// SPDX-License-Identifier: Apache-2.0

import {Answers} from './answers.mjs';
import {failure} from './errors.mjs';
import {Message} from './message.mjs';
import {Objects} from './objects.mjs';
import {Program} from './program.mjs';
import {Command} from './protocol.mjs';

/** A message leaves by itself when it has that many words, so that the device starts while the rest is still recorded. */
const POST_WORDS = 8192;

/**
 * What a connection uses of a program: where messages are written, how they are posted, and where the counters are.
 * @typedef {Omit<import('./loader.mjs').Program, 'exports' | 'ready'> & {
 *   arena: (words: number) => number, post: (words: number) => number, stats: () => number}} Served
 */

/**
 * The connection to one Go program. Commands are collected into a message, which is posted when somebody waits for a
 * result, at the latest when the current task of the event loop is over. What the commands are is the session's.
 */
export class Connection {
  #program;
  /** @protected */
  message;
  /** @protected */
  answers = new Answers();
  /** @protected */
  objects = new Objects();
  #scheduled = false;
  #pumping = false;
  /** @type {import('./errors.mjs').SubletError | null} why nothing works any more */
  #refused = null;
  #ended = false;

  /** @param {Served} program */
  constructor(program) {
    this.#program = program;
    this.message = new Message(program.memory, (words) => this.#enter(() => program.arena(words)));
    program.ended.then((why) => this.#die(why));
  }

  // The life of the program.

  /** Refuses to go on without a program. */
  check() {
    if (this.#refused) throw this.#refused;
  }

  /** Whether nothing works any more. @protected */
  get over() {
    return this.#refused !== null;
  }

  /** The program has ended. @param {string} why */
  #die(why) {
    if (this.#ended) return;
    this.#ended = true;
    this.#program.stop();
    this.#refused ??= failure('exited', 'gpu', `the WebAssembly program has ended: ${why}`);
    this.answers.refuse(this.#refused);
    this.objects.clear();
    this.gone();
  }

  /** Called when the program has ended. @protected */
  gone() {}

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
    this.message.command(Command.End, []);
    this.post();
    this.#refused = failure('ErrClosed', 'gpu', 'it was closed');
  }

  // Messages.

  /** Posts the message when the current task is over. @protected */
  schedule() {
    if (this.message.at >= POST_WORDS) return this.post();
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      if (this.#refused || this.message.at === 0) return;
      this.message.command(Command.Flush, []);
      this.post();
    });
  }

  /** @protected */
  post() {
    const words = this.message.at;
    if (words === 0) return;
    this.message.at = 0;
    const unfinished = this.#enter(() => this.#program.post(words));
    this.objects.settle(unfinished === 0);
    if (unfinished === 0 || this.#pumping) return;
    // The program waits for a compiler, or was only interrupted by its garbage collector: then it must be called again.
    this.#pumping = true;
    queueMicrotask(() => {
      this.#pumping = false;
      if (!this.#ended) this.#program.resume();
    });
  }

  /** @protected @param {number} command @param {readonly number[]} words */
  send(command, words) {
    this.check();
    this.message.command(command, words);
    this.schedule();
  }

  /**
   * Sends a command that is answered, and posts it.
   * @param {number} command @param {readonly number[]} words after the ticket @param {unknown} [value] of the promise
   * @param {((program: Program) => void) | null} [expression] @param {string} [where]
   * @returns {Promise<any>}
   */
  ask(command, words, value = undefined, expression = null, where = '') {
    this.check();
    const ticket = this.answers.take();
    try {
      this.message.compose(command, [ticket, ...words], () => expression?.(new Program(this.message, where)));
    } catch (error) {
      this.answers.give(ticket);
      throw error;
    }
    const promise = this.answers.promise(ticket, value);
    try {
      this.post();
    } catch {
      // The promise tells: it was rejected when the program died.
    }
    return promise;
  }

  /** Called by Go. @param {Parameters<Answers['settle']>} outcome */
  settle(...outcome) {
    this.answers.settle(...outcome);
  }

  /** Called by Go. @param {number} number */
  takeObject(number) {
    return this.objects.take(number);
  }

  /** Keeps an object until Go asks for it. @param {unknown} object @returns {number} */
  put(object) { return this.objects.put(object); }

  flush() {
    this.check();
    this.message.command(Command.Flush, []);
    this.post();
  }

  /** Reads the counters, in the order of wasm/internal/bridge/export_js.go. @returns {Float64Array} */
  stats() {
    this.check();
    this.post();
    const at = this.#enter(() => this.#program.stats());
    return new Float64Array(this.#program.memory.buffer, at, 12).slice();
  }
}
