// SPDX-License-Identifier: Apache-2.0

/**
 * What a program imports to call kernels that it has compiled; see gpu/simd/import_js.go. Nothing that it imports may throw: that would
 * tear down the stack of the whole program.
 */
export class Kernels {
  /** @type {(Function | undefined)[]} */
  #list = [];
  /** Numbers of the list that are free. @type {number[]} */
  #free = [];
  #trap = '';

  /** @param {number} number @param {number} args @param {number} scratch @param {number} from @param {number} to @returns {number} */
  run = (number, args, scratch, from, to) => {
    try {
      return /** @type {Function} */ (this.#list[number])(args, scratch, from, to);
    } catch (error) {
      this.#trap = String(error);
      return -1;
    }
  };

  /** @param {Function} run of an instance @returns {number} */
  add(run) {
    const number = this.#free.pop() ?? this.#list.length;
    this.#list[number] = run;
    return number;
  }

  /** @param {number} number */
  remove(number) {
    this.#list[number] = undefined;
    this.#free.push(number);
  }

  /** What the last exception said. */
  trap() { return this.#trap; }
}
