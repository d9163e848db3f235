// SPDX-License-Identifier: Apache-2.0

/** @typedef {import('./memory.mjs').Memory} Memory */

/** How many bytes of such matrices there may be. */
const MOST = 16 << 20;
/** How often they are looked through for those that nothing has wanted, in milliseconds. */
const TENDED = 1000;

/**
 * Matrices that the page has closed, and Go not yet: the next matrix of their form and size that is made with all of its elements, as a result
 * is, goes into the memory of the oldest. Go would have to make a matrix, and the message would be another one each time; see repeats.mjs.
 */
export class Spares {
  /** By what they are. @type {Map<string, Memory[]>} */
  #lists = new Map();
  #bytes = 0;
  /** Those that were there when #old was called last. @type {Set<Memory>} */
  #before = new Set();

  #discard;
  #tending = false;

  /** @param {(list: Memory[]) => void} discard closes those that nothing has wanted for some time */
  constructor(discard) {
    this.#discard = discard;
  }

  /** @param {Memory} memory */
  static #of({form, rows, cols}) { return `${form} ${rows} ${cols}`; }

  /** Keeps a matrix that was closed, unless nothing else can have its memory. @param {any} held @returns {boolean} */
  keep(held) {
    if (!held.reusable || this.#bytes + held.bytes > MOST) return false;
    const key = Spares.#of(held), list = this.#lists.get(key);
    if (list) list.push(held);
    else this.#lists.set(key, [held]);
    this.#bytes += held.bytes;
    this.#tend();
    return true;
  }

  #tend() {
    if (this.#tending) return;
    this.#tending = true;
    const timer = setTimeout(() => {
      this.#tending = false;
      this.#discard(this.#old());
      if (this.#bytes > 0) this.#tend();
    }, TENDED);
    /** @type {any} */ (timer).unref?.(); // in Node, which it would keep
  }

  /** The matrix whose memory another one gets, if there is one. @param {Memory} memory of that @returns {Memory | undefined} */
  take(memory) {
    const list = this.#lists.get(Spares.#of(memory));
    return list?.[0] && this.#drop(list[0]);
  }

  /** @param {Memory} memory */
  #drop(memory) {
    const key = Spares.#of(memory), list = /** @type {Memory[]} */ (this.#lists.get(key));
    list.splice(list.indexOf(memory), 1);
    if (list.length === 0) this.#lists.delete(key);
    this.#bytes -= memory.bytes;
    this.#before.delete(memory);
    return memory;
  }

  /** Takes all. @returns {Memory[]} */
  all() { return [...this.#lists.values()].flat().map((memory) => this.#drop(memory)); }

  /** Takes those that were there before, and nobody has wanted since. @returns {Memory[]} */
  #old() {
    const old = [...this.#before].map((memory) => this.#drop(memory));
    this.#before = new Set([...this.#lists.values()].flat());
    return old;
  }
}
