// SPDX-License-Identifier: Apache-2.0

import {Gpu} from '../src/gpu.mjs';
import {Command} from '../src/protocol.mjs';
import {Session} from '../src/session.mjs';

/** A Go program that notes the messages it gets. Its answers are up to the test. */
export class FakeProgram {
  memory = new WebAssembly.Memory({initial: 20, maximum: 100});
  /** @type {number[][]} */
  messages = [];
  arenas = 0;
  resumed = 0;
  stopped = false;
  unfinished = 0;
  /** @type {(why: string) => void} */
  end = () => {};
  ended = new Promise((resolve) => { this.end = resolve; });
  ready = new Promise(() => {});

  arena = (/** @type {number} */ words) => {
    this.arenas++;
    return words > 1 << 16 ? 0 : 1024;
  };

  post = (/** @type {number} */ words) => {
    this.messages.push([...new Uint32Array(this.memory.buffer, 1024, words)]);
    return this.unfinished;
  };

  stats = () => 8;
  /** A program that is not split has no rest to wait for. @type {any} */
  rest = {
    holds: false,
    complete: () => {},
    begin: () => {},
    post: (/** @type {number} */ words) => this.post(words),
    call: (/** @type {string} */ name, /** @type {number} */ words) => name === 'sublet_arena' ? this.arena(words) : this.stats(),
  };
  resume = () => { this.resumed++; };
  stop = () => { this.stopped = true; };
  /** What repeats messages, if anything does. @type {any} */
  repeating = null;
  device = () => this.repeating;

  session() {
    return this.connect(Session);
  }

  /** A connection that closes nothing because it was collected: when that happens is up to the engine, and tests compare what is sent. */
  connect(Class) {
    const {FinalizationRegistry} = globalThis;
    globalThis.FinalizationRegistry = /** @type {any} */ (class { register() {} unregister() {} });
    try {
      return new Class(this);
    } finally {
      globalThis.FinalizationRegistry = FinalizationRegistry;
    }
  }

  /** The commands of the messages so far: their number and their words. @returns {{command: number, words: number[]}[]} */
  commands() {
    const list = [];
    for (const message of this.messages) {
      for (let at = 0; at < message.length; at += message[at] >>> 8) {
        list.push({command: message[at] & 255, words: message.slice(at + 1, at + (message[at] >>> 8))});
      }
    }
    return list;
  }
}

/** A Gpu of a Go program that notes the messages it gets. */
export function newGpu() {
  const program = new FakeProgram(), session = program.session();
  const gpu = new Gpu(session, {driver: 'fake', features: [], limits: {maxBufferSize: 2 ** 28}}, null);
  /** What was sent, since the last time. */
  const sent = () => {
    gpu.flush();
    const list = program.commands().filter(({command}) => command !== Command.Flush);
    program.messages.length = 0;
    return list;
  };
  /** Go's answer to the first change of a matrix among commands. */
  const answer = (list, code) => session.settle(list.find((c) => c.command >= Command.SetValue && c.command <= Command.SetShape).words[0], undefined, code);
  return {program, session, gpu, sent, answer};
}

/** Lets whoever waits go on. */
export const turn = () => new Promise((done) => setTimeout(done));

/** The instructions of an expression: operation, element type and words. @param {number[]} words */
export function instructions(words) {
  const list = [];
  for (let at = 0; at < words.length; at += words[at] >>> 16) {
    list.push([words[at] & 255, (words[at] >>> 8) & 255, ...words.slice(at + 1, at + (words[at] >>> 16))]);
  }
  return list;
}
