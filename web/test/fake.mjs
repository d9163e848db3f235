// SPDX-License-Identifier: Apache-2.0

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
  resume = () => { this.resumed++; };
  stop = () => { this.stopped = true; };

  session() {
    return new Session(this);
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

/** The instructions of an expression: operation, element type and words. @param {number[]} words */
export function instructions(words) {
  const list = [];
  for (let at = 0; at < words.length; at += words[at] >>> 16) {
    list.push([words[at] & 255, (words[at] >>> 8) & 255, ...words.slice(at + 1, at + (words[at] >>> 16))]);
  }
  return list;
}
