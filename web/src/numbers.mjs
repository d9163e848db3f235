// SPDX-License-Identifier: Apache-2.0

/** Small numbers, given out and taken back. */
export class Numbers {
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
