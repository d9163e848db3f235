// SPDX-License-Identifier: Apache-2.0

// What a message has had the kernels of a program on the CPU do is noted here, and done again without Go, as repeats.mjs says. Package simd
// tells of it, see gpu/simd/watch_js.go. wasm/browser/glue.js does the same with WebGPU.

/** Words of a kernel's arguments, see gpu/simd/engine.go: the address of the parameters, and the first of an address and a size for each binding. */
const PARAMS = 3, STORAGE = 8;
/** Bytes of a block of parameters. */
const BLOCK = 1024;
/** How many launches of a message are noted. */
const LAUNCHES = 256;
/** How long a message may take that is done again, in milliseconds: nothing happens in the page meanwhile. */
const LONG = 50;
/** After how many milliseconds of such messages other events of the page have their turn. */
const TURN = 10;
/** Results in between may have so many bytes each, and together. */
const SCRATCH = 1 << 20, SCRATCHES = 16 << 20;

/**
 * A launch: the kernel's function, and the arguments, which are at their address while it runs. job: the words by which workers help. Of
 * a memory that is filled from the page: where it is, and how many launches come before.
 * @typedef {{run: (args: number, scratch: number, from: number, to: number) => number, args: number, words: Uint32Array, params: Uint8Array | null, scratch: number, total: number, written: number, job: Uint32Array | null}} Launch
 * @typedef {{at: number, size: number, after: number}} Fill
 * @typedef {{version: number, began: number, launches: Launch[], fills: Fill[], read: {at: number, size: number} | null}} Repeat
 * @typedef {(words: Uint32Array, run: Launch['run'], scratch: number) => number | null} Share runs a job with the workers, null if there are none
 */

/** Resolves when other events of the page have happened. @returns {Promise<void>} */
const otherEvents = () => new Promise((resolve) => {
  const {setImmediate: soon} = /** @type {any} */ (globalThis); // of Node, where a channel would keep the process
  if (soon) return soon(resolve);
  const {port1, port2} = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    resolve();
  };
  port2.postMessage(null);
});

/** The addresses and sizes of what is filled and what launches write; null where some of it is a part of other. @param {Launch[]} launches @param {Fill[]} [fills] @returns {Map<number, number> | null} */
function writtenBy(launches, fills = []) {
  /** @type {Map<number, number>} */
  const ranges = new Map();
  for (const {at, size} of fills) {
    if ((ranges.get(at) ?? size) !== size) return null;
    ranges.set(at, size);
  }
  for (const {words, written} of launches) {
    for (let i = 0; written >>> i > 0; i++) {
      if (!(written >>> i & 1)) continue;
      const at = words[STORAGE + 2 * i], size = words[STORAGE + 2 * i + 1];
      if ((ranges.get(at) ?? size) !== size) return null;
      ranges.set(at, size);
    }
  }
  const sorted = [...ranges].sort(([a], [b]) => a - b);
  return sorted.every(([at], i) => i === 0 || sorted[i - 1][0] + sorted[i - 1][1] <= at) ? ranges : null;
}

/** The messages of a program that are done again. Its methods are those that repeats.mjs wants of a device. */
export class Replays {
  #memory;
  #lend;
  #share;
  /** Counts what may have Go do something else at the same message. */
  #version = 0;
  /** What Go has done, while somebody wants to know and as long as it can be repeated. @type {Repeat | null} */
  #seen = null;
  /** Addresses of memory for results in between, by size. @type {Map<number, number[]>} */
  #scratches = new Map();
  #lent = 0;
  /** Milliseconds of messages that were done again since the page had its turn. */
  #since = 0;
  /** What was repeated, which Go does not know of. */
  repeated = {submissions: 0, dispatches: 0, bytesDown: 0, bytesUp: 0};

  /** @param {WebAssembly.Memory} memory @param {(bytes: number) => number} lend memory of the program's, and takes all back for 0 bytes @param {Share} share */
  constructor(memory, lend, share) {
    this.#memory = memory;
    this.#lend = lend;
    this.#share = share;
  }

  // What Go tells.

  /** @param {Launch['run']} run @param {number} args @param {number} scratch @param {number} total @param {number} bindings @param {number} written */
  launch(run, args, scratch, total, bindings, written) {
    const seen = this.#seen;
    if (!seen) return;
    if (seen.read || seen.launches.length === LAUNCHES) return this.other();
    const {buffer} = this.#memory, words = new Uint32Array(buffer, args, STORAGE + 2 * bindings).slice(), at = words[PARAMS];
    seen.launches.push({run, args, words, params: at > 0 ? new Uint8Array(buffer, at, BLOCK).slice() : null, scratch, total, written, job: null});
  }

  /** Workers help with the last launch. @param {Uint32Array} words that tell them */
  shared(words) {
    const last = this.#seen?.launches.at(-1);
    if (last) last.job = words.slice();
  }

  /** @param {number} at @param {number} size */
  read(at, size) {
    if (this.#seen?.read) return this.other();
    if (this.#seen) this.#seen.read = {at, size};
  }

  /** @param {number} at @param {number} size */
  write(at, size) {
    if (this.#seen?.read) return this.other();
    this.#seen?.fills.push({at, size, after: this.#seen.launches.length});
  }

  other() { this.#seen = null; }

  changed() { this.#version++; }

  // What repeats.mjs asks for.

  watch() {
    this.#seen = {version: this.#version, began: performance.now(), launches: [], fills: [], read: null};
  }

  /**
   * Returns what was noted, if all can be repeated.
   * @param {number} targets how many memories are meant to be written, -1 if nothing is to be repeated @param {boolean} single whether the last launch writes the only one
   * @returns {Repeat | null}
   */
  watched(targets, single) {
    const seen = this.#seen;
    this.#seen = null;
    if (!seen || targets < 0 || seen.version !== this.#version || performance.now() - seen.began > LONG) return null;
    const written = writtenBy(seen.launches, seen.fills);
    if (!written || written.size <= targets) return written && seen;
    if (seen.fills.length > 0) return null;
    const kept = single ? [.../** @type {Map<number, number>} */ (writtenBy(seen.launches.slice(-1))).keys()] : [];
    if (targets > 0 && kept.length !== 1) return null;
    return this.#moved(seen, [...written].filter(([at]) => at !== kept[0]));
  }

  /** Has launches use scratch in place of Go's memory. @param {Repeat} seen @param {[at: number, size: number][]} from @returns {Repeat | null} */
  #moved(seen, from) {
    if (from.some(([, size]) => size > SCRATCH)) return null;
    if (this.#lent > SCRATCHES) {
      this.#version++; // those who use it are noted anew
      this.#scratches.clear();
      this.#lent = this.#lend(0);
      return null;
    }
    const taken = new Map(), moves = from.map(([at, size]) => {
      const list = this.#scratches.get(size) ?? [], n = taken.get(size) ?? 0;
      if (n === list.length) {
        list.push(this.#lend(size) >>> 0);
        this.#lent += size;
      }
      this.#scratches.set(size, list);
      taken.set(size, n + 1);
      return {at, size, to: list[n]};
    });
    /** Where memory is now; -1 if only a part of it has moved. @param {number} at @param {number} size */
    const place = (at, size) => {
      const move = moves.find((m) => at < m.at + m.size && m.at < at + size);
      if (!move) return at;
      return at >= move.at && at + size <= move.at + move.size ? move.to + at - move.at : -1;
    };
    for (const {words} of seen.launches) {
      for (let i = STORAGE; i < words.length; i += 2) {
        const to = place(words[i], words[i + 1]);
        if (to < 0) return null;
        words[i] = to;
      }
    }
    if (seen.read) seen.read.at = place(seen.read.at, seen.read.size);
    return seen.read && seen.read.at < 0 ? null : seen;
  }

  /**
   * Does again what was noted, with other elements of the page's, and copies what is read to host memory. Returns false if it cannot be repeated.
   * @param {Repeat} repeat @param {Uint8Array | null} host @param {Uint8Array[]} given @returns {false | undefined | Promise<void>}
   */
  repeat({version, launches, fills, read}, host, given) {
    if (version !== this.#version || fills.some(({size}, i) => given[i]?.length !== size)) return false;
    const began = performance.now();
    let filled = 0;
    for (let i = 0; i <= launches.length; i++) {
      for (; fills[filled]?.after === i; filled++) this.#fill(fills[filled], given[filled]);
      if (i === launches.length || this.#run(launches[i]) === 0) continue;
      this.#version++; // Go finds out what is wrong
      return false;
    }
    this.repeated.dispatches += launches.length;
    if (launches.length > 0) this.repeated.submissions++;
    let copied = true;
    if (read) {
      this.repeated.bytesDown += read.size;
      copied = host !== null && host.length >= read.size;
      if (copied) /** @type {Uint8Array} */ (host).set(new Uint8Array(this.#memory.buffer, read.at, read.size));
    }
    this.#since += performance.now() - began;
    if (!read) return undefined;
    return copied ? Promise.resolve(this.turn()) : Promise.reject(Object.assign(new Error('host memory has fewer bytes than are wanted; an ArrayBuffer that was transferred has none, one that was resized may have fewer'), {name: 'ErrInvalid'}));
  }

  /** @param {Fill} fill @param {Uint8Array} bytes */
  #fill({at, size}, bytes) {
    new Uint8Array(this.#memory.buffer, at, size).set(bytes);
    this.repeated.bytesUp += size;
  }

  /** @param {Launch} launch @returns {number} 0, or why not all of it was run */
  #run({run, args, words, params, scratch, total, job}) {
    const {buffer} = this.#memory;
    new Uint32Array(buffer, args, words.length).set(words);
    if (params) new Uint8Array(buffer, words[PARAMS], BLOCK).set(params);
    try {
      return (job ? this.#share(job, run, scratch) : null) ?? run(args, scratch, 0, total);
    } catch {
      return -1;
    }
  }

  /** Lets other events of the page happen, if none could for some time. @returns {Promise<void> | undefined} */
  turn() {
    if (this.#since < TURN) return undefined;
    this.#since = 0;
    return otherEvents();
  }
}
