// SPDX-License-Identifier: Apache-2.0

import {part} from './download.mjs';

/**
 * The functions that a program imports to call the kernels that it has compiled; see gpu/simd/import_js.go. None of them may throw, as that
 * would end the program.
 */
export class Kernels {
  /** @type {(Function | undefined)[]} */
  #list = [];
  /** Indices of the list that are free. @type {number[]} */
  #free = [];
  #trap = '';
  /** The program's memory if workers may share it. @type {WebAssembly.Memory | null} */
  #memory = null;
  /** How many threads compute, the program's own included. An object of its own, so that its holders do not keep the program's memory alive. */
  size = {threads: 1};
  /** The class of crews. @type {typeof import('./crew.mjs').Crew | null} */
  #Crew = null;
  /** @type {import('./crew.mjs').Crew | null} */
  #crew = null;

  /** Lets workers help. @param {WebAssembly.Memory} memory of the program, which is shared @param {number} threads that may use it */
  async share(memory, threads) {
    this.#Crew = (await part(() => import('./crew.mjs'))).Crew;
    this.#memory = memory;
    this.size.threads = threads;
  }

  /** Terminates all workers. */
  end() { this.#crew?.end(); }

  /** Runs workgroups. It returns -1 if the kernel throws. @param {number} number @param {number} args @param {number} scratch @param {number} from @param {number} to @returns {number} */
  run = (number, args, scratch, from, to) => {
    try {
      return /** @type {Function} */ (this.#list[number])(args, scratch, from, to);
    } catch (error) {
      this.#trap = String(error);
      return -1;
    }
  };

  /**
   * Makes the crew. @param {number} block the address of its block, see crew-block.mjs
   * @returns {number} how many threads there may be, 0 if the memory is not shared
   */
  crew = (block) => {
    if (!this.#memory || !this.#Crew) return 0;
    this.#crew = new this.#Crew(this.#memory, block >>> 0, this.size);
    return this.size.threads;
  };

  /** The crew, which there must be. @returns {import('./crew.mjs').Crew} */
  get #helpers() { return /** @type {any} */ (this.#crew); }

  open = () => Number(this.#helpers.open());
  take = (/** @type {number} */ n) => this.#helpers.take(n);
  close = () => this.#helpers.close();

  /** Registers a kernel. @param {Function} run of an instance @returns {number} by which it is called */
  add(run) {
    const number = this.#free.pop() ?? this.#list.length;
    this.#list[number] = run;
    return number;
  }

  /** Forgets a kernel, whose number may be given to another one. @param {number} number */
  remove(number) {
    this.#list[number] = undefined;
    this.#free.push(number);
  }

  /** The text of the last exception on the program's own thread. */
  trap() { return this.#trap; }

  /** The text of the last exception of a worker. */
  crewTrap() { return this.#crew?.trap() ?? ''; }
}
