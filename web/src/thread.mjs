// SPDX-License-Identifier: Apache-2.0

// A worker of a program that computes on the CPU: it runs workgroups of kernels in the program's memory. It never returns to its event
// loop, but sleeps until there is a job, and runs until it is terminated.

import {BUSY, EPOCH, LENGTH, MODULE, RESULT, SCRATCH, SLEEPING, TEXT, THREADS, TRAP, TRAPPED, WAITING, WORDS} from './crew-block.mjs';
import {work} from './crew-work.mjs';

/** @typedef {{memory: WebAssembly.Memory, at: number, index: number}} Start at: the address of the block; index: of the worker, from 0 on */
/** @typedef {(args: number, scratch: number, from: number, to: number) => number} Run the function of a kernel */

/**
 * For how many milliseconds a worker spins before it sleeps, if the job before came within that time. To wake a worker takes as long as a
 * small job; but where other programs use the processor, a worker that spins may hold up its own program.
 */
const LOOK_OUT = 0.2;
/** How many compiled kernels a worker keeps: as many as package simd. */
const MOST_KERNELS = 512;

const {pause = () => {}} = /** @type {{pause?: () => void}} */ (Atomics);

class Thread {
  #memory;
  #index;
  #words;
  #signed;
  /** Whether the last job came within LOOK_OUT of the one before. */
  #soon = false;
  /** The kernels by the numbers of their modules; null for a module that could not be compiled. @type {Map<number, Run | null>} */
  #kernels = new Map();

  /** @param {Start} start */
  constructor({memory, at, index}) {
    this.#memory = memory;
    this.#index = index;
    this.#words = new Uint32Array(memory.buffer, at, WORDS);
    this.#signed = new Int32Array(memory.buffer, at, WORDS);
  }

  /** Helps with one job after another. It does not return. */
  serve() {
    for (let epoch = 0;;) this.#help(epoch = this.#next(epoch));
  }

  /** Waits until a job is open that is not the last one. @param {number} before the epoch of the last job @returns {number} the epoch of the job */
  #next(before) {
    const signed = this.#signed, began = performance.now();
    for (;;) {
      const epoch = Atomics.load(signed, EPOCH), waited = performance.now() - began;
      if (epoch !== before && epoch & 1) {
        this.#soon = waited < LOOK_OUT;
        return epoch;
      }
      if (this.#soon && waited < LOOK_OUT) {
        pause();
        continue;
      }
      Atomics.add(signed, SLEEPING, 1);
      Atomics.wait(signed, EPOCH, epoch);
      Atomics.sub(signed, SLEEPING, 1);
    }
  }

  /** Runs workgroups of a job, if it is still open. @param {number} epoch of the job */
  #help(epoch) {
    const missing = this.#during(epoch, (words) => {
      const number = words[MODULE], run = this.#kernels.get(number);
      if (run) this.#work(run);
      return run === undefined ? {number, text: this.#text(words[TEXT], words[LENGTH])} : null;
    });
    if (!missing) return;
    const run = this.#compile(missing.number, missing.text); // outside of the job, so that the program does not wait for it
    if (run) this.#during(epoch, () => this.#work(run));
  }

  /**
   * Calls a function in the job: close waits until it returns. It does not if the job is closed, or has no use for this worker. BUSY is raised
   * before EPOCH is read, and the program changes EPOCH before it reads BUSY: so one of the two sees what the other has done.
   * @template T @param {number} epoch @param {(words: Uint32Array) => T} what
   * @returns {T | null}
   */
  #during(epoch, what) {
    const words = this.#words;
    Atomics.add(words, BUSY, 1);
    try {
      return Atomics.load(this.#signed, EPOCH) === epoch && this.#index + 1 < words[THREADS] ? what(words) : null;
    } finally {
      Atomics.sub(words, BUSY, 1);
      if (Atomics.load(words, WAITING) > 0) Atomics.notify(this.#signed, BUSY);
    }
  }

  /** Returns a copy of bytes: engines compile no bytes in shared memory. @param {number} at @param {number} length */
  #text(at, length) {
    this.#memory.grow(0); // so that buffer has the size to which the program has grown the memory
    return new Uint8Array(this.#memory.buffer, at, length).slice();
  }

  /** @param {number} number @param {Uint8Array<ArrayBuffer>} text @returns {Run | null} */
  #compile(number, text) {
    let run = null;
    try {
      run = /** @type {Run} */ (new WebAssembly.Instance(new WebAssembly.Module(text), {env: {memory: this.#memory}}).exports.run);
    } catch { // the other threads run the kernel without this one
    }
    for (const oldest of this.#kernels.keys()) {
      if (this.#kernels.size < MOST_KERNELS) break;
      this.#kernels.delete(oldest);
    }
    this.#kernels.set(number, run);
    return run;
  }

  /** Runs workgroups until none is left. @param {Run} run */
  #work(run) {
    const words = this.#words, result = work(words, words[SCRATCH + this.#index], (...args) => this.#run(run, ...args));
    if (result !== 0) Atomics.compareExchange(words, RESULT, 0, result);
  }

  /** Calls a kernel's function. If it throws, the text of the exception goes to the block. @param {Run} run @param {Parameters<Run>} args */
  #run(run, ...args) {
    try {
      return run(...args);
    } catch (error) {
      const text = `${String(error).slice(0, WORDS - TRAP - 1)}\0`;
      for (let i = 0; i < text.length; i++) this.#words[TRAP + i] = text.charCodeAt(i);
      return TRAPPED;
    }
  }
}

const start = (/** @type {Start} */ data) => new Thread(data).serve();
const node = /** @type {any} */ (globalThis).process?.getBuiltinModule?.('node:worker_threads')?.workerData;
if (node?.memory) start(node);
else addEventListener('message', ({data}) => start(data), {once: true});
