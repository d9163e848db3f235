// SPDX-License-Identifier: Apache-2.0

import {Numbers} from './numbers.mjs';

/** Objects that are no numbers, for Go to ask for. */
export class Objects {
  /** What Go has not taken yet, by number. @type {Map<number, unknown>} */
  #objects = new Map();
  #numbers = new Numbers();
  /** Memory of the user's that must be copied if Go does not take it at once. @type {number[]} */
  #borrowed = [];

  /** @param {unknown} object @param {boolean} [borrowed] whether the user may change it as soon as the current call returns */
  put(object, borrowed = false) {
    const number = this.#numbers.take();
    this.#objects.set(number, object);
    if (borrowed && ArrayBuffer.isView(object)) this.#borrowed.push(number);
    return number;
  }

  /** What is kept. @param {number} number @returns {any} */
  at(number) { return this.#objects.get(number); }

  /** Called by Go. @param {number} number */
  take(number) {
    const object = this.#objects.get(number);
    this.#objects.delete(number);
    this.#numbers.give(number);
    return object;
  }

  /** Whether Go has to take something before the current call is over. */
  get lends() { return this.#borrowed.length > 0; }

  /** The current call is over: Go has taken what was borrowed, or it is copied. @param {boolean} taken */
  settle(taken) {
    for (const number of taken ? [] : this.#borrowed) {
      const bytes = /** @type {Uint8Array | undefined} */ (this.#objects.get(number));
      if (bytes) this.#objects.set(number, bytes.slice());
    }
    this.#borrowed.length = 0;
  }

  clear() {
    this.#objects.clear();
  }
}
