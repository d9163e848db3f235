// SPDX-License-Identifier: Apache-2.0

import {BUSY, EPOCH, LENGTH, NEXT, RESULT, SCRATCH, SLEEPING, TOTAL, TRAP, WAITING, WORDS} from './crew-block.mjs';
import {work} from './crew-work.mjs';
import {spawn} from './host.mjs';

// The workers of a program that computes on the CPU, as the program's own thread sees them: see gpu/simd/crew_js.go.

/** How long close waits for workers, in milliseconds. The program lets the page run between two calls. */
const PATIENCE = 8;
/** For how many milliseconds of that it spins before it sleeps. The main thread of a page may not sleep, and spins all the time. */
const LOOK_OUT = 0.05;
/** After how many calls, half a minute, close takes a worker for dead: programs give no worker that much to do at a time. */
const LONGEST = 4000;

const {pause = () => {}} = /** @type {{pause?: () => void}} */ (Atomics);

/** Sleeps while a word has a value. @returns {boolean} whether the thread may sleep @param {Int32Array} words @param {number} at @param {number} value @param {number} ms at most */
function sleep(words, at, value, ms) {
  try {
    Atomics.wait(words, at, value, ms);
    return true;
  } catch { // on the main thread of a page
    return false;
  }
}

/** The workers that help a program's own thread. Only that thread calls it. */
export class Crew {
  #memory;
  #at;
  #words;
  #signed;
  #size;
  /** @type {{terminate: () => void}[] | null} */
  #workers = null;
  /** How many calls of close have waited in vain for the present job. They are counted, not timed, as the machine may have been suspended. */
  #waited = 0;
  #sleeps;

  /**
   * @param {WebAssembly.Memory} memory of the program @param {number} at the address of the block
   * @param {{threads: number}} size how many threads compute, the program's own included; it is reduced when workers fail
   */
  constructor(memory, at, size) {
    this.#memory = memory;
    this.#at = at;
    this.#words = new Uint32Array(memory.buffer, at, WORDS);
    this.#signed = new Int32Array(memory.buffer, at, WORDS);
    this.#size = size;
    this.#sleeps = sleep(this.#signed, EPOCH, this.#signed[EPOCH], 0);
  }

  /** Starts the workers, at the first job. It does not wait for the milliseconds that they take to start. */
  #start() {
    /** @type {{terminate: () => void}[]} */
    const workers = this.#workers = [], size = this.#size, wanted = size.threads;
    try {
      for (let index = 0; index < wanted - 1; index++) {
        workers.push(spawn({memory: this.#memory, at: this.#at, index}, () => { if (this.#workers === workers) size.threads--; }));
      }
    } catch { // a policy forbids workers, or the package is from another origin than the page
      size.threads = 1 + workers.length;
    }
  }

  /** Opens the job that is in the block. @returns {boolean} whether there are workers; without any the job stays closed */
  open() {
    if (!this.#workers) this.#start();
    if (this.#size.threads === 1) return false;
    Atomics.add(this.#signed, EPOCH, 1);
    if (Atomics.load(this.#signed, SLEEPING) > 0) Atomics.notify(this.#signed, EPOCH);
    return true;
  }

  /** Takes n workgroups of the job. @param {number} n @returns {number} the number of the first one */
  take(n) { return Atomics.add(this.#words, NEXT, n); }

  /**
   * Closes the job, so that no worker enters it any more, and waits a while for the workers in it. It is called until it returns another
   * number than 1. After 2 there are no workers any more.
   * @returns {number} 0: no worker is in the job; 1: one still is; 2: one would not leave, and all were terminated
   */
  close() {
    const signed = this.#signed, began = performance.now();
    if (Atomics.load(signed, EPOCH) & 1) {
      Atomics.add(signed, EPOCH, 1);
      this.#waited = 0;
    }
    for (let busy; (busy = Atomics.load(signed, BUSY)) > 0;) {
      const now = performance.now();
      if (now - began > PATIENCE) {
        if (++this.#waited < LONGEST) return 1;
        this.end();
        return 2;
      }
      if (this.#sleeps && now - began > LOOK_OUT) {
        Atomics.store(signed, WAITING, 1);
        sleep(signed, BUSY, busy, PATIENCE);
        Atomics.store(signed, WAITING, 0);
      } else {
        pause();
      }
    }
    return 0;
  }

  /** What tells workers of the job that is in the block. */
  get job() { return this.#words.subarray(TOTAL, TRAP); }

  /**
   * Runs a job again, whose kernel's arguments are where they were.
   * @param {Uint32Array} job what told of it @param {(args: number, scratch: number, from: number, to: number) => number} run @param {number} scratch
   * @returns {number | null} the first result that is not 0, or 0; null if there are no workers
   */
  again(job, run, scratch) {
    const words = this.#words;
    words.set(job.subarray(0, LENGTH + 1 - TOTAL), TOTAL);
    words.set(job.subarray(SCRATCH - TOTAL), SCRATCH);
    words[NEXT] = words[RESULT] = 0;
    if (!this.open()) return null;
    const result = work(words, scratch, run);
    let state = this.close();
    while (state === 1) state = this.close();
    return state === 0 ? result || words[RESULT] : -1;
  }

  /** The text of the exception of a worker. It is valid until the next job. */
  trap() {
    const text = this.#words.subarray(TRAP);
    return String.fromCharCode(...text.subarray(0, text.indexOf(0)));
  }

  /** Terminates all workers, for good. */
  end() {
    for (const worker of this.#workers ?? []) worker.terminate();
    this.#workers = [];
    this.#size.threads = 1;
  }
}
