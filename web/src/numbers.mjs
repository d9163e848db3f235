// SPDX-License-Identifier: Apache-2.0

/** Small numbers, given out and taken back. */
export class Numbers {
  #next = 1;
  /** @type {number[]} */
  #free = [];
  #given;

  /** @param {(n: number) => void} [given] is told of what is taken back */
  constructor(given) {
    this.#given = given;
  }

  take() {
    return this.#free.pop() ?? this.#next++;
  }

  /** @param {number} n */
  give(n) {
    this.#given?.(n);
    this.#free.push(n);
  }
}
