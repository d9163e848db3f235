// SPDX-License-Identifier: Apache-2.0

import {numbersIn} from './dtype.mjs';
import {failure} from './errors.mjs';
import {Node} from './node.mjs';
import {Command, Form, Op} from './protocol.mjs';

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {import('./session.mjs').Session} Session */

/** Whose memory a matrix is in. @typedef {'owned' | 'external' | 'mapped'} Mode */

/** What all matrices of one memory share. */
export class Store {
  /** How many there are. */
  shares = 1;
  /** Whether a callback of access() has the memory just now. */
  locked = false;
  /** How often the device was told to write to it: see known.mjs. */
  writes = 0;

  /** @param {(() => void) | null} release to be called once, when the memory is not used any more */
  constructor(release = null) {
    this.release = release;
  }

  /** Tells the owner of external memory. */
  released() {
    const {release} = this;
    this.release = null;
    if (release) queueMicrotask(release); // what it throws is the page's own error
  }
}

/** Something of a Go program's. Nothing here refers to the user's object, so that the collector can tell when that is gone. */
export class Held {
  /** The connection to the program, a Session for matrices. @type {any} */
  session;
  handle = 0;
  closed = false;
  /** Whether Go has not said yet that the matrix has become this one. */
  pending = false;
  /** Whether the matrix has become another one. */
  superseded = false;
  /** Whether evaluations read memory of the page's. */
  hosted = false;
  /** How many bytes of its own it has, as far as that is known here. */
  bytes = 0;

  /**
   * @param {import('./connection.mjs').Connection} session @param {Store} store
   * @param {string} [what] @param {number} [end] the command that closes it
   */
  constructor(session, store, what = 'the matrix', end = Command.Close) {
    this.session = session;
    this.store = store;
    this.what = what;
    this.end = end;
  }

  /** @param {number} handle */
  open(handle) {
    return this.handle = handle;
  }

  /** Whether it was closed, or everything was. */
  get over() { return this.closed || this.session.over; }

  /** Whether it is a dense matrix in memory of the device's and nowhere else. */
  get plain() { return false; }

  /** Whether another matrix can have the memory when nothing else does. */
  get reusable() { return false; }

  /** Keeps other matrices out of the memory for good, as Go goes on reading it after the command. */
  hold() {}

  /** The handle, of a matrix that can be used. @param {string} where @returns {number} */
  use(where) {
    if (this.superseded) throw failure('ErrView', where, 'the matrix has been given another size or other memory since');
    if (this.closed) throw failure('ErrClosed', where, `${this.what} was closed`);
    if (this.store.locked) throw failure('ErrMapped', where, 'a callback of access() has the matrix');
    return this.handle;
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    if (!this.pending) this.session.release(this);
  }
}

/**
 * Where a dense matrix lies. That does not change: a matrix that is given another size or other memory gets another Memory,
 * and keeps the one before until Go has done the same.
 */
export class Memory extends Held {
  /** Elements before the first, in a GPUBuffer or a typed array. */
  offset = 0;
  /** Whether rows (columns) have pads of zeros behind them. */
  padded = false;
  /** Whether it is a part of something else, which cannot be resized. */
  view = false;
  /** The host's side of a mapped matrix. @type {any} */
  host = null;
  /** The page's memory that it lies in, from the first element on: see known.mjs. @type {ArrayBufferView | null} */
  bits = null;
  /** Elements that the page gave or read, and how often the memory had been written to then. @type {{writes: number, at: (i: number, j: number) => import('./known.mjs').Element | undefined} | null} */
  seen = null;
  /** The leaf that the matrix had before. @type {Node | null} */
  previous = null;
  /** The leaf that the matrix has since. @type {Node | null} */
  next = null;
  /** Whether Go has refused to make the matrix this one. */
  refused = false;
  /** Whether it was made with all of its elements: for the result of an expression, or from the page's. */
  whole = false;

  /**
   * @param {Session} session @param {DType} type @param {number} rows @param {number} cols
   * @param {boolean} byColumns @param {number} stride @param {Mode} mode @param {Store} store
   */
  constructor(session, type, rows, cols, byColumns, stride, mode, store = new Store()) {
    super(session, store);
    this.type = type;
    this.rows = rows;
    this.cols = cols;
    this.byColumns = byColumns;
    this.stride = stride;
    this.mode = mode;
    /** Go's flag External, but of mapped memory, too. Memory that is not ours is never resized, whatever this says. */
    this.external = mode !== 'owned';
    /** How many elements the memory has from the first on. */
    this.room = this.span;
    this.bytes = mode === 'external' ? 0 : this.span * type.size;
  }

  /** Element type and order, as Go gets them. */
  get form() {
    return this.type.id | (this.byColumns ? Form.Columns : 0) | (this.padded ? Form.Padded : 0);
  }

  /** @override */
  get plain() { return this.mode === 'owned' && !this.hosted && this.room * this.type.size <= this.session.limit; }

  /** @override */
  hold() { this.whole = false; }

  /** @override */
  get reusable() { return this.whole && this.plain && this.bytes > 0 && !Number.isNaN(this.store.writes); } // see exposed in known.mjs

  /** The elements from the first to the last, gaps included. */
  get span() {
    return spanOf(this.rows, this.cols, this.byColumns, this.stride);
  }

  /** Whether so many bytes are all that the memory has. @param {number} bytes */
  filledBy(bytes) { return bytes >= this.room * this.type.size && !this.padded && this.offset === 0; }

  /** The length of a row (column). */
  get minor() {
    return this.byColumns ? this.rows : this.cols;
  }

  /** Whether there are no gaps. */
  get gapless() {
    return this.stride === this.minor || (this.byColumns ? this.cols : this.rows) <= 1;
  }

  /** @returns {Node} what stands for the matrix in expressions */
  leaf() {
    const node = new Node(Op.Leaf, this.type, this.rows, this.cols);
    node.memory = this;
    node.steps = this.byColumns ? {row: 1, col: this.stride} : {row: this.stride, col: 1};
    return node;
  }

  // What becomes of a matrix. Go does the same, see package matrix.

  /** The same memory with another size. @param {number} rows @param {number} cols */
  sized(rows, cols) {
    const {session, type, byColumns, mode, store} = this;
    const m = new Memory(session, type, rows, cols, byColumns, byColumns ? rows : cols, mode, store);
    const {offset, view, hosted, external, room, bits} = this;
    Object.assign(m, {offset, view, hosted, external, room, bits, bytes: mode === 'external' ? 0 : room * type.size});
    if (this.host) m.host = new type.Array(this.host.buffer, 0, numbersIn(type, m.span));
    return m;
  }

  /** The same memory and size. */
  twin() {
    const m = this.sized(this.rows, this.cols);
    const {stride, padded, host, seen} = this;
    return Object.assign(m, {stride, padded, host, seen, bytes: 0});
  }

  /** Memory of our own. @param {number} rows @param {number} cols */
  fresh(rows, cols) {
    return new Memory(this.session, this.type, rows, cols, this.byColumns, this.byColumns ? rows : cols, 'owned');
  }

  /** Refuses to resize parts, and memory that other matrices use. @param {string} where @param {number} rows @param {number} cols */
  unshared(where, rows, cols) {
    const what = `${this.rows}x${this.cols} to ${rows}x${cols}`;
    if (this.view) throw failure('ErrView', where, what);
    if (this.store.shares > 1) throw failure('ErrView', where, `${what}: the memory has other matrices`);
  }

  /** What the matrix is after a copy of that size. @param {string} where @param {number} rows @param {number} cols */
  copied(where, rows, cols) {
    if (rows === this.rows && cols === this.cols) return this.twin();
    this.unshared(where, rows, cols);
    if (rows * cols <= this.room) return this.sized(rows, cols);
    if (this.mode !== 'owned') throw failure('ErrExternalResize', where, `${rows}x${cols} into room for ${this.room} elements`);
    return this.fresh(rows, cols);
  }

  /** What the matrix is after a change of its size. @param {string} where @param {number} rows @param {number} cols */
  resized(where, rows, cols) {
    this.unshared(where, rows, cols);
    if (this.mode !== 'owned') throw failure('ErrExternalResize', where, `${this.rows}x${this.cols} to ${rows}x${cols}`);
    return rows * cols <= this.room ? this.sized(rows, cols) : this.fresh(rows, cols);
  }

  // The end of a change.

  /** The matrix is to become this. @param {Node} before @param {Node} leaf of this */
  replaces(before, leaf) {
    const old = /** @type {Memory} */ (before.memory);
    this.previous = before;
    this.pending = true;
    old.superseded = true;
    old.next = leaf;
  }

  /** Go has done so. */
  confirm() {
    const old = /** @type {Memory} */ (this.previous?.memory);
    this.previous = null;
    this.pending = false;
    old.closed = true;
    this.session.retire(old, old.store !== this.store);
    if (this.closed) this.session.release(this);
  }

  /** Go has left the matrix as it was. */
  refuse() {
    const old = /** @type {Memory} */ (this.previous?.memory);
    this.pending = false;
    this.refused = this.superseded = true;
    old.superseded = false;
    old.next = null;
    this.session.abandon(this);
    if (this.closed) old.close();
  }

  close() {
    this.bits = this.seen = null; // expressions may keep this
    if (this.refused) /** @type {Memory} */ (this.previous?.memory).close();
    else super.close();
  }
}

/** @param {number} rows @param {number} cols @param {boolean} byColumns @param {number} stride */
export function spanOf(rows, cols, byColumns, stride) {
  if (rows === 0 || cols === 0) return 0;
  return byColumns ? (cols - 1) * stride + rows : (rows - 1) * stride + cols;
}
