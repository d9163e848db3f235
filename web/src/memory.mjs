// SPDX-License-Identifier: Apache-2.0

import {failure} from './errors.mjs';
import {Node} from './node.mjs';
import {Op} from './protocol.mjs';

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {import('./session.mjs').Session} Session */

/** Whose memory a matrix is in. @typedef {'owned' | 'external' | 'mapped'} Mode */

/** The memory of a matrix. Nothing here refers to the user's object, so that the collector can tell when that is gone. */
export class Memory {
  #session;
  handle = 0;
  closed = false;
  /** Whether a callback of access() has it just now. */
  locked = false;
  /** Elements before the first, in a GPUBuffer. */
  offset = 0;
  /** The host's side of a mapped matrix. @type {any} */
  host = null;
  /** Whether evaluations read memory of the page's. */
  hosted = false;
  /** To be called once when the memory is not used any more. @type {(() => void) | null} */
  release = null;

  /**
   * @param {Session} session @param {DType} type @param {number} rows @param {number} cols
   * @param {boolean} byColumns @param {number} stride @param {Mode} mode
   */
  constructor(session, type, rows, cols, byColumns, stride, mode) {
    this.#session = session;
    this.type = type;
    this.rows = rows;
    this.cols = cols;
    this.byColumns = byColumns;
    this.stride = stride;
    this.mode = mode;
  }

  /** Element type and order, as Go gets them. */
  get form() {
    return this.type.id | (this.byColumns ? 0x100 : 0);
  }

  /** The elements from the first to the last, gaps included. */
  get span() {
    return spanOf(this.rows, this.cols, this.byColumns, this.stride);
  }

  /** @param {number} handle */
  open(handle) {
    return this.handle = handle;
  }

  /** The handle, of a matrix that can be used. @param {string} where @returns {number} */
  use(where) {
    if (this.closed) throw failure('ErrClosed', where, 'the matrix was closed');
    if (this.locked) throw failure('ErrMapped', where, 'a callback of access() has the matrix');
    return this.handle;
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    this.#session.closeMatrix(this);
  }

  /** Tells the owner of external memory. */
  released() {
    const {release} = this;
    this.release = null;
    if (release) queueMicrotask(release); // what it throws is the page's own error
  }

  /** @returns {Node} what stands for the matrix in expressions */
  leaf() {
    const node = new Node(Op.Leaf, this.type, this.rows, this.cols);
    node.memory = this;
    node.steps = this.byColumns ? {row: 1, col: this.stride} : {row: this.stride, col: 1};
    return node;
  }
}

/** @param {number} rows @param {number} cols @param {boolean} byColumns @param {number} stride */
export function spanOf(rows, cols, byColumns, stride) {
  if (rows === 0 || cols === 0) return 0;
  return byColumns ? (cols - 1) * stride + rows : (rows - 1) * stride + cols;
}
