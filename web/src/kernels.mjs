// SPDX-License-Identifier: Apache-2.0

import {Crew} from './crew.mjs';

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
  /** @type {WebAssembly.Memory | null} that threads may share */
  #memory = null;
  /** How many threads compute, the program's own included. It has nothing of the program, so that who asks keeps nothing of it. */
  size = {threads: 1};
  /** @type {Crew | null} */
  #crew = null;

  /** @param {WebAssembly.Memory} memory of the program, which is shared @param {number} threads that may use it */
  share(memory, threads) {
    this.#memory = memory;
    this.size.threads = threads;
  }

  /** Ends all threads but the program's own. */
  end() { this.#crew?.end(); }

  /** @param {number} number @param {number} args @param {number} scratch @param {number} from @param {number} to @returns {number} */
  run = (number, args, scratch, from, to) => {
    try {
      return /** @type {Function} */ (this.#list[number])(args, scratch, from, to);
    } catch (error) {
      this.#trap = String(error);
      return -1;
    }
  };

  /** Tells where the block is by which threads hear of jobs. @param {number} block @returns {number} how many threads there may be, 0 if memory is not shared */
  crew = (block) => {
    if (!this.#memory) return 0;
    this.#crew = new Crew(this.#memory, block >>> 0, this.size);
    return this.size.threads;
  };

  // The methods of the crew.
  open = () => Number(/** @type {Crew} */ (this.#crew).open());
  take = (/** @type {number} */ n) => /** @type {Crew} */ (this.#crew).take(n);
  close = () => /** @type {Crew} */ (this.#crew).close();

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

  /** What that of another thread said. */
  crewTrap() { return this.#crew?.trap() ?? ''; }
}
