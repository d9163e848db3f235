// SPDX-License-Identifier: Apache-2.0

import {Node} from './node.mjs';

/** @typedef {import('./memory.mjs').Held} Held */

/**
 * What is open: what it is, its shape and element type where it has these, how many bytes of its own it has, and where it was made.
 * @typedef {{kind: string, shape?: readonly number[], dtype?: string, bytes: number, stack: string}} Leak
 */

/** The most frames of a stack. */
const FRAMES = 30;

/** Where an object is made, without the calls within this package. @param {readonly string[]} own its files */
function stackHere(own) {
  const E = /** @type {any} */ (Error), {stackTraceLimit} = E;
  E.stackTraceLimit = FRAMES;
  const lines = (new Error().stack ?? '').split('\n').filter((line) => line.trim() !== '' && !/^Error\b/.test(line));
  E.stackTraceLimit = stackTraceLimit;
  const outside = lines.filter((line) => !own.some((file) => line.includes(file)));
  return (outside.length > 0 ? outside : lines).join('\n'); // a bundler may have put everything into one file
}

/** What an object is, of which nothing is kept. @param {any} key its leaf in expressions, or itself @param {any} held @returns {Omit<Leak, 'bytes' | 'stack'>} */
function describe(key, held) {
  if (key instanceof Node) return {kind: key.sparse ? 'sparse matrix' : 'matrix', shape: [key.rows, key.cols], dtype: key.type.name};
  if (typeof held === 'number') return {kind: `function ${key.name}`};
  const {dtype, shape, name} = key;
  return typeof dtype === 'string' ? {kind: `parameter ${name}`, shape, dtype} : {kind: held.what.replace(/^the /, '')};
}

/** @param {Leak} leak */
const sizeText = ({kind, shape, dtype, bytes}) => `${kind}${shape ? ` ${shape.join('x')} ${dtype}` : ''}, ${bytes} bytes`;

/** Keeps account of what is open, with the stacks where it was made: init({debug: "leaks"}). */
export class Leaks {
  /** Matrices and the like; functions by their handles, because the collector watches what is behind these. @type {Map<Held | number, {told: Omit<Leak, 'bytes' | 'stack'>, stack: string}>} */
  #open = new Map();
  #own;

  /** @param {string} module the package's, which is not this part of it */
  constructor(module) {
    this.#own = [module, import.meta.url];
  }

  /** @param {Held | number} held @param {object} key */
  opened(held, key) {
    this.#open.set(held, {told: describe(key, held), stack: stackHere(this.#own)});
  }

  /** @param {Held | number} held */
  closed(held) {
    this.#open.delete(held);
  }

  /** The collector found something that nobody closed. @param {Held | number} held */
  collected(held) {
    const leak = this.#leak(held);
    if (leak) console.warn(`sublet: collected without close(): ${sizeText(leak)}, made\n${leak.stack}`);
  }

  /** @param {Held | number} held @returns {Leak | undefined} */
  #leak(held) {
    const entry = this.#open.get(held);
    return entry && Object.freeze({...entry.told, bytes: typeof held === 'number' ? 0 : held.bytes, stack: entry.stack});
  }

  /** What is open, in the order in which it was made. @returns {Leak[]} */
  list() {
    return [...this.#open.keys()].map((held) => /** @type {Leak} */ (this.#leak(held)));
  }

  /** Warns of what is open as the device is closed, once for each place where such things were made. */
  report() {
    /** @type {Map<string, Leak[]>} */
    const places = new Map();
    for (const leak of this.list()) {
      const key = leak.kind + leak.stack;
      places.set(key, [...places.get(key) ?? [], leak]);
    }
    for (const list of places.values()) {
      const [first] = list, more = list.length > 1 ? ` and ${list.length - 1} more` : '';
      console.warn(`sublet: open when the device was closed: ${sizeText(first)}${more}, made\n${first.stack}`);
    }
    this.#open.clear();
  }
}
