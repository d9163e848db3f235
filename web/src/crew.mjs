// SPDX-License-Identifier: Apache-2.0

import {BUSY, EPOCH, MOST_THREADS, NEXT, SLEEPING, TRAP, WAITING, WORDS} from './crew-block.mjs';

// The threads of a program that computes on the CPU, from the side of the program's own: see gpu/simd/crew_js.go.

/** How long the page waits for threads at a time, in milliseconds. The program lets it run in between. */
const PATIENCE = 8;
/** How long it does so with open eyes, where it may sleep: a page may not. */
const LOOK_OUT = 0.05;
/** After how many times a thread is taken for dead: no kernel runs as long, half a minute, without its program's leave. */
const LONGEST = 4000;

const {pause = () => {}} = /** @type {{pause?: () => void}} */ (Atomics);

/** How the platform names what it has. @param {string} name of a module of Node's @returns {any} */
const node = (name) => /** @type {any} */ (globalThis).process?.getBuiltinModule?.(name);

/** The most threads that a program starts by itself. */
const USUAL_THREADS = 16;

/** How many threads a program may have, the one that it runs on included. @param {number} [wanted] @returns {number} */
export function threadsFor(wanted) {
  const cores = () => node('node:os')?.availableParallelism() ?? Reflect.get(globalThis, 'navigator')?.hardwareConcurrency ?? 1;
  const workers = node('node:worker_threads') !== undefined || Reflect.get(globalThis, 'crossOriginIsolated') === true && typeof Worker === 'function';
  return workers && typeof SharedArrayBuffer === 'function' ? Math.min(wanted ?? Math.min(cores(), USUAL_THREADS), MOST_THREADS) : 1;
}

/** Starts a worker that does not keep Node from exiting. @param {import('./thread.mjs').Start} start @param {() => void} failed */
function spawn(start, failed) {
  const threads = node('node:worker_threads');
  if (threads) {
    const worker = new threads.Worker(new URL('./thread.mjs', import.meta.url), {workerData: start, execArgv: []});
    worker.on('error', failed);
    worker.unref();
    return worker;
  }
  const worker = new Worker(new URL('./thread.mjs', import.meta.url), {type: 'module', name: 'sublet'});
  worker.onerror = (event) => {
    event.preventDefault();
    failed();
  };
  try {
    worker.postMessage(start);
  } catch (error) { // a platform that sends no memories
    worker.terminate();
    throw error;
  }
  return worker;
}

/** Sleeps until a word changes. @param {Int32Array} words @param {number} at @param {number} value @param {number} ms at most */
function sleep(words, at, value, ms) {
  try {
    Atomics.wait(words, at, value, ms);
    return true;
  } catch { // in a page
    return false;
  }
}

/** The threads beside the program's own. */
export class Crew {
  #memory;
  #at;
  #words;
  #signed;
  #size;
  /** @type {{terminate: () => void}[] | null} */
  #workers = null;
  /** How often the page has waited since the job was closed. Time is no measure: the machine may have slept. */
  #waited = 0;
  #sleeps;

  /**
   * @param {WebAssembly.Memory} memory of the program @param {number} at the address of the block
   * @param {{threads: number}} size how many threads compute, the program's own included: it is kept up to date
   */
  constructor(memory, at, size) {
    this.#memory = memory;
    this.#at = at;
    this.#words = new Uint32Array(memory.buffer, at, WORDS);
    this.#signed = new Int32Array(memory.buffer, at, WORDS);
    this.#size = size;
    this.#sleeps = sleep(this.#signed, EPOCH, this.#signed[EPOCH], 0);
  }

  /** Workers are started when there is something for them to do: it takes some milliseconds until they run, and nobody waits for that. */
  #start() {
    /** @type {{terminate: () => void}[]} */
    const workers = this.#workers = [], size = this.#size, wanted = size.threads;
    try {
      for (let index = 0; index < wanted - 1; index++) {
        workers.push(spawn({memory: this.#memory, at: this.#at, index}, () => { if (this.#workers === workers) size.threads--; }));
      }
    } catch { // a policy forbids it, or the package is another origin's
      size.threads = 1 + workers.length;
    }
  }

  /** Opens the job in the block. @returns {boolean} whether there are threads that may come */
  open() {
    if (!this.#workers) this.#start();
    if (this.#size.threads === 1) return false;
    Atomics.add(this.#signed, EPOCH, 1);
    if (Atomics.load(this.#signed, SLEEPING) > 0) Atomics.notify(this.#signed, EPOCH);
    return true;
  }

  /** Takes so many workgroups. @param {number} n @returns {number} the number of the first one */
  take(n) { return Atomics.add(this.#words, NEXT, n); }

  /** Closes the job. @returns {number} 0 when no thread is in it any more, 1 if one still is, 2 if it will not leave */
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

  /** What the exception of a thread said. */
  trap() {
    const text = this.#words.subarray(TRAP);
    return String.fromCharCode(...text.subarray(0, text.indexOf(0)));
  }

  end() {
    for (const worker of this.#workers ?? []) worker.terminate();
    this.#workers = [];
    this.#size.threads = 1;
  }
}
