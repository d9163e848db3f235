// SPDX-License-Identifier: Apache-2.0

import {part} from './download.mjs';
import {Prepared} from './prepared.mjs';
import {Replays} from './replays.mjs';

const crews = part(() => import('./crew.mjs'));

/** @typedef {import('./replays.mjs').Launch['run']} Run the function of a kernel */

/**
 * The functions that a program imports to call the kernels that it has compiled, and to tell what it does; see gpu/simd/import_js.go and
 * watch_js.go. None of them may throw, as that would end the program.
 */
export class Kernels {
  /** @type {(Run | undefined)[]} */
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
  /** What does messages again. @type {Replays | null} */
  replays = null;

  /** The program's memory, and the kernels that came with it. @type {{memory: WebAssembly.Memory, prepared: Prepared} | null} */
  #program = null;
  /** What prepared has found. @type {Uint8Array | null} */
  #found = null;

  /** @param {number} threads that the program is to have */
  constructor(threads) {
    if (threads > 1) crews().catch(() => {}); // beside the program's download; share tells if it fails
  }

  /** The program is there. @param {WebAssembly.Module} module @param {WebAssembly.Memory} memory @param {(bytes: number) => number} lend some of it, see replays.mjs */
  attach(module, memory, lend) {
    this.#program = {memory, prepared: new Prepared(module)};
    this.replays = new Replays(memory, lend, (job, run, scratch) => this.#helpers.again(job, run, scratch));
  }

  /** Lets workers help. @param {WebAssembly.Memory} memory of the program, which is shared @param {number} threads that may use it */
  async share(memory, threads) {
    this.#Crew = (await crews()).Crew;
    this.#memory = memory;
    this.size.threads = threads;
  }

  /** @param {number} low @param {number} high words of a kernel's hash @returns {number} how many bytes there are of it, 0 if it has to be compiled */
  prepared = (low, high) => {
    this.#found = this.#program?.prepared.find(low >>> 0, high >>> 0) ?? null;
    return this.#found?.length ?? 0;
  };

  /** Copies what prepared has found into the program's memory. @param {number} address */
  unpack = (address) => {
    if (this.#program && this.#found) new Uint8Array(this.#program.memory.buffer, address >>> 0, this.#found.length).set(this.#found);
  };

  /** Terminates all workers. */
  end() { this.#crew?.end(); }

  /** Runs workgroups. It returns -1 if the kernel throws. @param {number} number @param {number} args @param {number} scratch @param {number} from @param {number} to @returns {number} */
  run = (number, args, scratch, from, to) => {
    try {
      return /** @type {Run} */ (this.#list[number])(args, scratch, from, to);
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

  open = () => {
    this.replays?.shared(this.#helpers.job);
    return Number(this.#helpers.open());
  };
  take = (/** @type {number} */ n) => this.#helpers.take(n);
  close = () => this.#helpers.close();

  /** @param {number} number @param {[args: number, scratch: number, total: number, bindings: number, written: number]} what */
  launch = (number, ...[args, scratch, total, bindings, written]) =>
    this.replays?.launch(/** @type {Run} */ (this.#list[number]), args >>> 0, scratch, total, bindings, written);

  read = (/** @type {number} */ at, /** @type {number} */ size) => this.replays?.read(at >>> 0, size >>> 0);
  write = (/** @type {number} */ at, /** @type {number} */ size) => this.replays?.write(at >>> 0, size >>> 0);
  other = () => this.replays?.other();
  changed = () => this.replays?.changed();

  /** Registers a kernel. @param {Run} run of an instance @returns {number} by which it is called */
  add(run) {
    const number = this.#free.pop() ?? this.#list.length;
    this.#list[number] = run;
    this.changed();
    return number;
  }

  /** Forgets a kernel, whose number may be given to another one. @param {number} number */
  remove(number) {
    this.#list[number] = undefined;
    this.changed();
    this.#free.push(number);
  }

  /** The text of the last exception on the program's own thread. */
  trap() { return this.#trap; }

  /** The text of the last exception of a worker. */
  crewTrap() { return this.#crew?.trap() ?? ''; }
}
