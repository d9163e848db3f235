// SPDX-License-Identifier: Apache-2.0

import {dataOf} from './data.mjs';
import {failure, guard, show} from './errors.mjs';
import {View, inside, memoryOf, move, own, useMatrix, valueFor} from './expr.mjs';
import * as nodes from './node.mjs';
import {Command} from './protocol.mjs';
import {FROM, WRAP, originOf, read, signalOf} from './source.mjs';
import {detached} from './transfer.mjs';

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./memory.mjs').Memory} Memory */
/** @typedef {import('./session.mjs').Session} Session */

/** An empty matrix of the sort of another. @param {Session} session @param {Node} like @returns {Node} */
function nothing(session, {memory}) {
  const empty = /** @type {Memory} */ (memory).fresh(0, 0), leaf = empty.leaf();
  session.newMatrix(leaf, empty);
  return leaf;
}

/** Another matrix of the same device. @param {string} where @param {Session} session @param {unknown} x @returns {Node} */
function otherMatrix(where, session, x) {
  const other = inside(x, where);
  if (!other || !(x instanceof Matrix)) throw failure('ErrInvalid', where, `${show(x)} is no matrix in memory`);
  if (other.session !== session) throw failure('ErrForeign', where, 'a matrix of another device');
  /** @type {Memory} */ (other.node.memory).use(where);
  return other.node;
}

/** A matrix in memory. */
export class Matrix extends View {
  /** @param {Session} session @param {Node} leaf */
  constructor(session, leaf) {
    super(session, leaf, true);
    session.scope?.add(this);
  }

  get mode() { return memoryOf(this).mode; }
  get external() { return memoryOf(this).mode !== 'mapped' && memoryOf(this).external; }
  get order() { return memoryOf(this).byColumns ? 'column' : 'row'; }
  get stride() { return memoryOf(this).stride; }
  get offset() { return memoryOf(this).offset; }
  get capacity() { return memoryOf(this).room; }
  get closed() { return memoryOf(this).closed; }

  /** What the matrix is, if it can be used. @param {string} where */
  #own(where) {
    const {session, node} = own(this, where);
    const memory = /** @type {Memory} */ (node.memory);
    memory.use(where);
    return {session, leaf: node, memory};
  }

  // The memory contract: see package matrix.

  /** @param {unknown} x */
  assign(x) {
    const {leaf, memory} = this.#own('assign');
    const empty = leaf.rows === 0 && leaf.cols === 0 && memory.mode === 'owned' && !memory.view;
    return empty && typeof x !== 'number' ? this.#setValue('assign', x) : super.assign(x);
  }

  /** @param {unknown} x */
  setValue(x) {
    return this.#setValue('setValue', x);
  }

  /** @param {string} where @param {unknown} x */
  #setValue(where, x) {
    const {session, leaf, memory} = this.#own(where);
    if (typeof x === 'number') throw failure('ErrInvalid', where, 'a number; to fill, use assign');
    const node = valueFor(where, this, x);
    if (node === leaf) return this;
    if (node.rows === leaf.rows && node.cols === leaf.cols) {
      session.assign(leaf, node);
      return this;
    }
    const next = memory.copied(where, node.rows, node.cols).leaf();
    session.setValue(next, leaf, node);
    move(this, next);
    return this;
  }

  /** @param {number} rows @param {number} cols @param {unknown} data @param {unknown} [options] */
  setValueFrom(rows, cols, data, options) {
    return this.#setFrom('setValueFrom', rows, cols, data, read('setValueFrom', options, FROM));
  }

  /** @param {unknown} data @param {number} rows @param {number} cols @param {unknown} [options] */
  rebind(data, rows, cols, options) {
    return this.#setFrom('rebind', rows, cols, data, {...read('rebind', options, WRAP), dontOwnBuffer: true});
  }

  /** @param {string} where @param {number} rows @param {number} cols @param {unknown} data @param {Record<string, any>} options */
  #setFrom(where, rows, cols, data, options) {
    const {session, leaf, memory} = this.#own(where);
    const origin = originOf(session, where, data, rows, cols, options, memory.type, true);
    let next = origin.memory;
    if (origin.copied) {
      next = memory.copied(where, rows, cols);
      next.external = false;
    }
    const to = next.leaf();
    session.setFrom(to, leaf, origin);
    move(this, to);
    return this;
  }

  /** @param {number} rows @param {number} cols */
  resize(rows, cols) {
    const where = 'resize', {session, leaf, memory} = this.#own(where);
    nodes.checkDims(where, rows, cols);
    if (rows === leaf.rows && cols === leaf.cols) return this;
    const next = memory.resized(where, rows, cols).leaf();
    session.size(Command.Resize, next, leaf);
    move(this, next);
    return this;
  }

  /** @param {number} rows @param {number} cols */
  setShape(rows, cols) {
    const where = 'setShape', {session, leaf, memory} = this.#own(where);
    nodes.checkDims(where, rows, cols);
    nodes.checkCount(where, leaf, rows, cols);
    if (!memory.gapless) throw failure('ErrStride', where, 'the matrix has gaps');
    const next = memory.sized(rows, cols).leaf();
    session.size(Command.SetShape, next, leaf);
    move(this, next);
    return this;
  }

  /** @param {unknown} other */
  take(other) {
    const where = 'take', {session, memory} = this.#own(where);
    const leaf = otherMatrix(where, session, other);
    if (other === this) return this;
    move(/** @type {Matrix} */ (other), nothing(session, leaf));
    move(this, leaf);
    memory.close();
    return this;
  }

  move() {
    const {session, leaf} = this.#own('move');
    move(this, nothing(session, leaf));
    return new Matrix(session, leaf);
  }

  /** @param {unknown} other */
  swap(other) {
    const where = 'swap', {session, leaf} = this.#own(where);
    const theirs = otherMatrix(where, session, other);
    move(/** @type {Matrix} */ (other), leaf);
    move(this, theirs);
    return this;
  }

  reset() {
    const {session, leaf, memory} = this.#own('reset');
    move(this, nothing(session, leaf));
    memory.close();
    return this;
  }

  alias() {
    const {session, memory} = this.#own('alias');
    const twin = memory.twin(), leaf = twin.leaf();
    session.share(Command.Alias, leaf, twin, 'alias', memory);
    return new Matrix(session, leaf);
  }

  clone() {
    return this.eval();
  }

  /** @returns {Promise<'none' | 'host' | 'device' | 'both'>} */
  get location() {
    return (async () => {
      const {session, memory} = this.#own('location');
      return session.about(Command.Location, 'location', memory);
    })();
  }

  /** @param {unknown} values */
  set(values) {
    const {session, node} = own(this, 'set');
    const memory = /** @type {Memory} */ (node.memory);
    if (memory.mode !== 'owned') throw failure('ErrUnsupported', 'set', 'the memory is not owned: write to it yourself and call touch()');
    memory.use('set');
    const {bytes, copy} = guard('set', () => dataOf('set', memory.type, memory.rows * memory.cols, values));
    if (bytes.length > 0) session.setData(memory, bytes, copy);
    return this;
  }

  /** @param {unknown} [options] */
  async sync(options) {
    const {session, node} = own(this, 'sync');
    return session.about(Command.Sync, 'sync', /** @type {Memory} */ (node.memory), signalOf('sync', options));
  }

  /** @param {unknown} [options] */
  async detach(options) {
    this.#own('detach');
    return detached(this, options);
  }

  touch() {
    const {session, node} = own(this, 'touch');
    session.touch(/** @type {Memory} */ (node.memory));
    return this;
  }

  /** @param {boolean} write @param {(data: any) => unknown} fn @param {unknown} [options] */
  async access(write, fn, options) {
    const where = 'access', signal = signalOf(where, options);
    const {session, node} = own(this, where);
    const memory = /** @type {Memory} */ (node.memory);
    if (typeof fn !== 'function') throw failure('ErrInvalid', where, `${show(fn)} is no function`);
    if (memory.mode !== 'mapped') throw failure('ErrUnsupported', where, 'the matrix is not mapped: see read() and set()');
    const current = session.about(Command.Sync, where, memory, signal);
    memory.store.locked = true;
    try {
      await current;
    } catch (error) {
      memory.store.locked = false;
      throw error;
    }
    try {
      return await session.during(() => fn(memory.host));
    } finally {
      memory.store.locked = false;
      if (write && !memory.closed) session.touch(memory);
    }
  }

  /** @returns {Promise<GPUBuffer>} */
  get buffer() {
    return (async () => {
      const {session, node} = own(this, 'buffer');
      return session.about(Command.Buffer, 'buffer', /** @type {Memory} */ (node.memory));
    })();
  }

  close() {
    memoryOf(this).close();
    super.close();
  }
}

useMatrix(Matrix);
