// SPDX-License-Identifier: Apache-2.0

import {failure, guard, show} from './errors.mjs';
import {INSPECT, printLine, tag} from './inspect.mjs';
import {wrote} from './known.mjs';
import {Held, Store} from './memory.mjs';
import {signalOf} from './source.mjs';

// Assignments that are planned and compiled once and computed as often as the user likes; see matrix.Program.

/** @typedef {import('./memory.mjs').Memory} Memory */
/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./session.mjs').Session} Session */

/** What the function of one call of Gpu.record has done so far. */
export class Recorder {
  /** The commands that assign, one after the other. @type {number[]} */
  words = [];
  count = 0;
  /** What they read and write. @type {Set<Node>} */
  leaves = new Set();
  /** The matrices that they write to, or to parts of. @type {Set<Node>} */
  targets = new Set();
  /** What the function has made to be written. @type {Memory[]} */
  made = [];
  /** What the function has closed, which the recording still needs. @type {(() => void)[]} */
  closings = [];

  /** @param {Node} target @param {Uint32Array} command that assigns to it */
  add(target, command) {
    for (const word of command) this.words.push(word);
    this.count++;
    let whole = target;
    while (whole.a) whole = whole.a;
    this.targets.add(whole);
  }

  /** Closes what would have been the recording's. */
  undo() {
    for (const memory of this.made) memory.close();
    for (const close of this.closings.splice(0)) close();
  }
}

/** That of Go. It does not refer to leaves, so that the collector can take those with the Recording. */
class HeldRecording extends Held {
  #closings;

  /** @param {Session} session @param {(() => void)[]} closings of what only that uses */
  constructor(session, closings) {
    super(session, new Store(), 'the recording');
    this.#closings = closings;
  }

  close() {
    super.close();
    for (const close of this.#closings.splice(0)) close();
  }
}

/** Where a matrix is that may have been given other memory since. @param {Node} leaf @returns {Memory} */
function latest(leaf) {
  let memory = /** @type {Memory} */ (leaf.memory);
  while (memory.next) memory = /** @type {Memory} */ (memory.next.memory);
  return memory;
}

/** Assignments that are computed as often as the user likes. */
export class Recording {
  #held;
  #steps;
  #leaves;
  #targets;
  #result;

  static { tag(this, 'Recording'); }

  /** @param {HeldRecording} held @param {Recorder} recording @param {unknown} result of the function */
  constructor(held, recording, result) {
    this.#held = held;
    this.#steps = recording.count;
    this.#leaves = [...recording.leaves].filter(({memory}) => !memory?.closed);
    this.#targets = [...recording.targets];
    this.#result = result;
  }

  get steps() { return this.#steps; }
  get closed() { return this.#held.over; }

  run() {
    const where = 'run', held = this.#held, handle = held.use(where);
    let hosted = false, plain = true;
    for (const leaf of this.#leaves) {
      const memory = latest(leaf);
      memory.use(where);
      hosted ||= memory.hosted;
      plain &&= memory.plain;
    }
    for (const leaf of this.#targets) plain &&= latest(leaf).plain;
    held.session.replay(handle, hosted, plain);
    for (const leaf of this.#targets) wrote(latest(leaf).store);
    return this.#result;
  }

  close() {
    this.#held.close();
    this.#result = undefined;
    this.#leaves = [];
    this.#targets = [];
  }

  [Symbol.dispose]() {
    this.close();
  }

  toString() { return printLine('Recording', () => `of ${this.#steps} steps on ${this.#held.session.place}${this.closed ? ', closed' : ''}`); }

  [INSPECT]() { return this.toString(); }
}

/** @param {Session} session @param {any} fn @param {unknown} options @returns {Promise<Recording>} */
export async function record(session, fn, options) {
  const where = 'record', signal = signalOf(where, options);
  if (typeof fn !== 'function') throw failure('ErrInvalid', where, `${show(fn)} is no function`);
  session.check();
  session.direct(where);
  const recording = session.recording = new Recorder();
  try {
    let result;
    try {
      result = fn();
    } finally {
      session.recording = null;
    }
    if (guard(where, () => typeof result?.then === 'function')) throw failure('ErrInvalid', where, 'an asynchronous function; what is recorded is what a function does until it returns');
    if (recording.count === 0) throw failure('ErrInvalid', where, 'the function records nothing: it calls assign() and eval()');
    const held = new HeldRecording(session, recording.closings), handle = await session.record(recording.words, signal), made = new Recording(held, recording, result);
    held.open(handle);
    session.watch(made, held);
    return made;
  } catch (error) {
    recording.undo();
    throw error;
  }
}
