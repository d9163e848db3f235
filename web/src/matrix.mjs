// SPDX-License-Identifier: Apache-2.0

import {most} from './arguments.mjs';
import {MatrixMemory, setValue, usable} from './contract.mjs';
import {dataOf} from './data.mjs';
import {dtypeOf} from './dtype.mjs';
import {failure, guard, show} from './errors.mjs';
import {View, memoryOf, own, useMatrix} from './expr.mjs';
import {tag} from './inspect.mjs';
import {remember} from './known.mjs';
import {checkRows, given} from './lists.mjs';
import {Command} from './protocol.mjs';
import {abortable, read, signalOf} from './source.mjs';
import {detached} from './transfer.mjs';

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./memory.mjs').Memory} Memory */
/** @typedef {import('./session.mjs').Session} Session */

/** A matrix in memory. */
export class Matrix extends View {
  static { tag(this, 'Matrix'); }

  /** @type {MatrixMemory | null} */
  #memory = null;

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
  get closed() { return memoryOf(this).over; }

  get memory() { return this.#memory ??= new MatrixMemory(this); }

  /** @param {...unknown} values one */
  assign(...values) {
    const {leaf, memory} = usable(this, 'assign'), [x] = values;
    const empty = leaf.rows === 0 && leaf.cols === 0 && memory.mode === 'owned' && !memory.view;
    if (!empty || typeof x === 'number' || values.length > 1) return super.assign(...values);
    setValue(this, 'assign', x);
    return this;
  }

  /** @param {...unknown} x */
  clone(...x) {
    most('clone', x, 0);
    return this.eval();
  }

  /** @returns {Promise<'none' | 'host' | 'device' | 'both'>} */
  get location() {
    return (async () => {
      const {session, memory} = usable(this, 'location');
      return session.about(Command.Location, 'location', memory);
    })();
  }

  /** @param {unknown} values @param {unknown} [options] */
  set(values, options) {
    const {session, node} = own(this, 'set'), {dtype} = read('set', options, ['dtype']);
    const memory = /** @type {Memory} */ (node.memory);
    if (memory.mode !== 'owned') throw failure('ErrUnsupported', 'set', `the memory is not owned: ${memory.mode === 'mapped' ? 'write to it in access()' : 'write to it yourself and call touch()'}`);
    memory.use('set');
    session.direct('set');
    if (dtypeOf('set', dtype, memory.type) !== memory.type) throw failure('ErrInvalid', 'set', `dtype ${dtype} of a matrix of ${memory.type.name}; a matrix of another type is made with astype`);
    const list = given('set', values);
    if (list.shape) checkRows('set', list.shape, memory.rows, memory.cols, memory.type);
    const data = guard('set', () => dataOf('set', memory.type, memory.rows * memory.cols, list.values, dtype));
    if (data.bytes.length > 0) session.setData(memory, data);
    remember(memory, data.bytes, memory.byColumns);
    return this;
  }

  /** @param {unknown} [options] */
  async sync(options) {
    const {session, node} = own(this, 'sync');
    return session.about(Command.Sync, 'sync', /** @type {Memory} */ (node.memory), signalOf('sync', options));
  }

  /** @param {unknown} [options] */
  async detach(options) {
    usable(this, 'detach');
    return detached(this, options);
  }

  /** @param {...unknown} x */
  touch(...x) {
    most('touch', x, 0);
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
    const done = session.during(() => fn(memory.host)).finally(() => {
      memory.store.locked = false;
      if (write && !memory.closed) session.touch(memory);
    });
    return abortable(where, signal, done, () => {});
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
