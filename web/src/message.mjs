// SPDX-License-Identifier: Apache-2.0

import {failure} from './errors.mjs';
import {nothing} from './repeats.mjs';

/** A number of 64 bits in two words, the low one first. @param {number} n a safe integer @returns {number[]} */
export const long = (n) => [n % 2 ** 32 >>> 0, Math.floor(n / 2 ** 32) >>> 0];

/**
 * The message that is being written, in memory of the Go program. A program that fails halfway is taken back with
 * rollback, so that a message only ever holds whole commands.
 */
export class Message {
  #memory;
  #room;
  #words = new Uint32Array(0);
  #capacity = 0;
  /** How many words are written. */
  at = 0;
  /** What the commands speak of. */
  uses = nothing();

  /**
   * @param {{readonly buffer: ArrayBuffer}} memory of the Go program
   * @param {(words: number) => number} room makes room in the program's memory and returns its address, or 0
   */
  constructor(memory, room) {
    this.#memory = memory;
    this.#room = room;
  }

  /** Makes sure that so many more words fit. @param {number} words */
  reserve(words) {
    // The view is empty when the program's memory has grown: the old ArrayBuffer is detached then.
    if (this.at + words > this.#words.length) this.#renew(this.at + words);
  }

  #renew(/** @type {number} */ need) {
    if (need > this.#capacity) this.#capacity = Math.max(4096, 2 ** Math.ceil(Math.log2(need)));
    const address = this.#room(this.#capacity);
    if (address === 0) throw failure('ErrLimit', 'gpu', `a message of ${need} words`);
    this.#words = new Uint32Array(this.#memory.buffer, address, this.#capacity);
  }

  /** @param {number} word room for which was reserved */
  put(word) {
    this.#words[this.at++] = word;
  }

  /** @param {number} at @param {number} word */
  set(at, word) {
    this.#words[at] = word;
  }

  /**
   * Writes a command.
   * @param {number} command @param {readonly number[]} words
   */
  command(command, words) {
    this.reserve(words.length + 1);
    this.put(((words.length + 1) << 8) | command);
    for (const word of words) this.put(word);
  }

  /** Ends the message, and returns its words. */
  end() {
    this.reserve(0); // the memory may have grown since the last word
    const words = this.#words.subarray(0, this.at);
    this.at = 0;
    return words;
  }

  /** Takes back what was written since a place, and returns it as long as nothing else is written. @param {number} start */
  cut(start) {
    this.reserve(0);
    const words = this.#words.subarray(start, this.at);
    this.at = start;
    return words;
  }

  /**
   * Writes a command that ends with an expression.
   * @param {number} command @param {readonly number[]} words @param {() => void} expression writes it
   */
  compose(command, words, expression) {
    const start = this.at;
    try {
      this.command(command, words);
      expression();
    } catch (error) {
      this.at = start;
      throw error;
    }
    this.set(start, ((this.at - start) << 8) | command);
  }
}
