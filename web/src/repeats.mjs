// SPDX-License-Identifier: Apache-2.0

import {Command} from './protocol.mjs';

// Messages that were posted before. What Go has the device do at one is the same again if all that the message does is to compute from
// matrices in the device's own memory into others, to fill matrices with elements of the page's, and to read a result. glue.js, or replays.mjs on the CPU, notes that, and does it again without Go.

/** The longest message that is kept, in words, and how many are. */
const WORDS = 2048, MOST = 64;
/** What Go does at a message is noted the second to the eighth time, and then ever less often, where it cannot be repeated. @param {number} times */
const worthNoting = (times) => times > 1 && (times <= 8 || (times & times - 1) === 0);

/** The commands that can be repeated. @type {ReadonlySet<number>} */
const REPEATED = new Set([Command.Assign, Command.Eval, Command.Replay, Command.Read, Command.Flush]);
/** The commands that fill matrices, and which of their words is the object with the elements. @type {ReadonlyMap<number, number>} */
const FILLING = new Map([[Command.New, 7], [Command.Data, 2]]);
/** The words of a command that reads a matrix itself. What else is read is scratch of Go's, as recordings have it, too. */
const LEAF = 6;

/** A message: its words without ticket and objects, its handles, how often it was posted since it was repeated, and what is repeated, see glue.js. @typedef {{words: Uint32Array, handles: number[], posted: number, repeat: any}} Known */

/**
 * What a message speaks of. handles: of matrices and recordings, and of functions as negative numbers; stores: the memories of the matrices
 * that it assigns to; recordings: whether it runs recordings; other: whether there is anything that cannot be repeated
 * @typedef {{handles: number[], stores: Set<unknown>, recordings: boolean, other: boolean}} Uses
 */

/** Nothing yet. @returns {Uses} */
export const nothing = () => ({handles: [], stores: new Set(), recordings: false, other: false});

/**
 * Where the ticket of a message's read is, before its object, 0 if it has none, and -1 if it has commands that cannot be repeated; where
 * the objects are with which it fills matrices; and how many commands there are.
 * @param {Uint32Array} words
 */
function placesIn(words) {
  const given = [];
  let read = 0, commands = 0;
  for (let i = 0; i < words.length; i += words[i] >>> 8) {
    const command = words[i] & 0xff, object = FILLING.get(command);
    if (object && words[i] >>> 8 > object) given.push(i + object);
    else if (!REPEATED.has(command)) return {read: -1, given, commands};
    if (read > 0) return {read: -1, given, commands};
    if (command === Command.Read) read = i + 1;
    if (command !== Command.Flush) commands++;
  }
  return {read: commands > 0 ? read : -1, given, commands};
}

/** Whether a message is one that is known. @param {Uint32Array} known @param {Uint32Array} words */
function same(known, words) {
  if (known.length !== words.length) return false;
  for (let i = 0; i < words.length; i++) if (known[i] !== words[i]) return false;
  return true;
}

/** The messages of a program. */
export class Repeats {
  #device;
  /** @type {Map<number, Known>} by their hashes */
  #known = new Map();
  /** The message that is being posted. @type {Known | null} */
  #posting = null;
  #targets = 0;
  /** Whether the message writes to one matrix, and does nothing else. */
  #single = false;
  #reads = false;
  /** How many matrices it fills from the page's memory. */
  #fills = 0;

  /** @param {() => any} device of the program */
  constructor(device) {
    this.#device = device;
  }

  /** How much was repeated. @returns {{submissions: number, dispatches: number, bytesDown: number, bytesUp: number} | undefined} */
  get counts() { return this.#device()?.repeated; }

  /** Lets other events of the page happen, if what was repeated has kept them from it. @returns {Promise<void> | undefined} */
  turn() { return this.#device()?.turn?.(); }

  /** Forgets all: Go may do something else at the same messages. */
  clear() {
    this.#known.clear();
    this.#posting = null;
  }

  /** Forgets the messages that may speak of a handle, whose number is given to something else. @param {number} handle */
  forget(handle) {
    for (const [hash, {handles}] of this.#known) if (handles.includes(handle)) this.#known.delete(hash);
  }

  /**
   * Does what a message says, if that can be repeated. Else, until `posted`, what Go does is noted.
   * @param {Uint32Array} words @param {Uses} uses @param {(object: number) => any} host returns the memory that a read fills, or that a matrix gets
   * @returns {{ticket: number, objects: number[], done: Promise<void> | undefined} | null} what Go need not do; done is there if it reads
   */
  run(words, {handles, stores, recordings, other}, host) {
    this.#posting = null;
    const device = this.#device();
    if (!device || other || words.length > WORDS) return null;
    const {read, given, commands} = placesIn(words);
    if (read < 0 || recordings && (stores.size > 0 || read > 0 && words[read - 1] >>> 8 !== LEAF)) return null;
    if (read > 0) given.push(read, read + 1);
    const varying = [];
    for (const i of given) {
      varying.push(words[i]);
      words[i] = 0; // they do not count
    }
    const known = this.#find(words, handles);
    for (let i = 0; i < given.length; i++) words[given[i]] = varying[i];
    const object = read > 0 ? varying.pop() ?? 0 : 0, ticket = read > 0 ? varying.pop() ?? 0 : 0;
    if (known.repeat) {
      const done = device.repeat(known.repeat, object ? host(object) : null, varying.length > 0 ? varying.map(host) : varying);
      if (done !== false) {
        known.posted = 0;
        return {ticket, objects: object ? [...varying, object] : varying, done};
      }
      known.repeat = null;
    }
    if (!worthNoting(++known.posted)) return null;
    this.#posting = known;
    this.#reads = read > 0;
    this.#fills = varying.length;
    this.#targets = recordings ? Infinity : stores.size;
    this.#single = commands === 1 && read === 0 && !recordings;
    device.watch();
    return null;
  }

  /** Go has got the message. @param {boolean} finished whether it has handed to the device what the message says, and keeps nothing of it for later */
  posted(finished) {
    const known = this.#posting;
    this.#posting = null;
    const repeat = this.#device()?.watched(finished && known ? this.#targets : -1, this.#single);
    const fills = repeat?.fills?.length ?? 0;
    if (known && repeat && fills === this.#fills && (this.#reads ? repeat.read : repeat.launches.length + fills > 0)) known.repeat = repeat;
  }

  /** The message among those that are known, to which it is added. @param {Uint32Array} words with zeros in place of tickets and objects @param {number[]} handles @returns {Known} */
  #find(words, handles) {
    let hash = 0;
    for (let i = 0; i < words.length; i++) hash = Math.imul(hash ^ words[i], 0x01000193) + i | 0;
    const known = this.#known.get(hash);
    if (known && same(known.words, words)) return known;
    if (this.#known.size >= MOST) for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      break;
    }
    const made = {words: words.slice(), handles, posted: 0, repeat: null};
    this.#known.set(hash, made);
    return made;
  }
}
