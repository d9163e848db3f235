// SPDX-License-Identifier: Apache-2.0

import {Connection} from './connection.mjs';
import {bytesOf} from './data.mjs';
import {failure} from './errors.mjs';
import {Command} from './protocol.mjs';

/** @typedef {import('./memory.mjs').Held} Held */
/** @typedef {import('./node.mjs').Node} Node */

/** The part of a Session that is about sparse matrices. */
export class SparseSession extends Connection {
  /** What becomes of assignments while a function of Gpu.record runs. @type {import('./recording.mjs').Recorder | null} */
  recording = null;

  /** Refuses what cannot be recorded. @param {string} where */
  direct(where) {
    if (this.recording) throw failure('ErrUnsupported', where, 'it cannot be recorded: the function of gpu.record calls assign() and eval()');
  }

  /** Gives something of Go's a handle, which is closed when the key is forgotten. @param {object} key @param {Held} held */
  open(key, held) {
    this.check();
    held.open(this.handles.take());
    this.watch(key, held);
    return held.handle;
  }

  // form is the format, rows and columns.
  /** @param {object} key @param {Held} held @param {number[]} form @param {Uint8Array} values @param {Int32Array} indices @param {Int32Array} offsets @param {boolean} wrapped */
  sparse(key, held, form, values, indices, offsets, wrapped) {
    const handle = this.open(key, held), number = this.objects.put(values, !wrapped);
    this.message.command(Command.Sparse, [handle, ...form, number, values.length, ...this.#structure(indices, offsets)]);
    this.post();
  }

  /** @param {Held} held @param {number} i @param {number} j @param {number} bits */
  append(held, i, j, bits) {
    this.direct('append');
    this.send(Command.Append, [held.use('append'), i, j, bits]);
  }

  /** @param {Held} held @param {Int32Array} indices @param {Int32Array} offsets */
  touchSparse(held, indices, offsets) {
    this.check();
    this.direct('touch');
    const handle = held.use('touch');
    this.message.command(Command.SparseTouch, [handle, ...this.#structure(indices, offsets)]);
    this.post();
  }

  /** @param {Int32Array} indices @param {Int32Array} offsets */
  #structure(indices, offsets) {
    return [indices, offsets].flatMap((array) => [this.objects.put(bytesOf(array), true), array.length]);
  }

  /**
   * Evaluates a sparse expression, or with a sparse matrix the product of the expression and that in whole columns. The answer is the
   * format and the number of indices.
   * @param {string} where @param {object} key @param {Held} held that gets the result @param {Node} node @param {number} format @param {Held | null} of
   * @param {AbortSignal} [signal] @returns {Promise<number[]>}
   */
  async sparseEval(where, key, held, node, format, of, signal) {
    const other = of ? of.use(where) : 0, handle = this.handles.take();
    try {
      const answer = this.ask(Command.SparseEval, [handle, format, other], {expression: (program) => program.hold(node), where, signal});
      const words = (await answer).split(' ').map(Number);
      held.open(handle);
      this.watch(key, held);
      return words;
    } catch (error) {
      if (!this.over) this.send(Command.Close, [0, handle]); // Go may have made it before the caller gave up
      this.handles.give(handle);
      throw error;
    }
  }

  /** @param {Held} held @param {ArrayBufferView} values @param {Int32Array} indices @param {Int32Array} offsets @param {AbortSignal} [signal] @returns {Promise<void>} */
  readSparse(held, values, indices, offsets, signal) {
    const words = [held.use('read'), this.objects.put(bytesOf(values)), values.byteLength];
    for (const array of [indices, offsets]) words.push(this.objects.put(bytesOf(array)), array.length);
    return this.ask(Command.SparseRead, words, {where: 'read', signal});
  }
}
