// SPDX-License-Identifier: Apache-2.0

import {Connection} from './connection.mjs';
import {failure, shapeError} from './errors.mjs';
import {refuseLost} from './info.mjs';
import {current, exposed, lies, wrote} from './known.mjs';
import {idle, suitable, unused} from './loader.mjs';
import {Numbers} from './numbers.mjs';
import {Program} from './program.mjs';
import {Command, MAX_BYTES} from './protocol.mjs';
import {Repeats} from './repeats.mjs';
import {OBJECT} from './source.mjs';
import {SparseSession} from './sparse-session.mjs';
import {Spares} from './spares.mjs';
import {Tuning} from './tuning.mjs';

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./memory.mjs').Memory} Memory */
/** @typedef {import('./memory.mjs').Held} Held */
/** @typedef {import('./memory.mjs').Store} Store */
/** @typedef {import('./source.mjs').Origin} Origin */
/** @typedef {import('./data.mjs').Data} Data */

/** The most words that a command can have after the first ones. */
const MAX_COMMAND = 2 ** 24 - 8;
/** How often Go is asked whether the device has done everything, although it has: it then forgets what might have failed. */
const WAITS = 64;

/** What is asked of a Go program about matrices, in commands. */
export class Session extends SparseSession {
  #waits = 0;
  #funcs = new Numbers((handle) => this.repeats?.forget(-handle));
  /** Bytes of the largest buffer. */
  limit = MAX_BYTES;
  /** The device beneath, of WebGPU. @type {GPUDevice | null} */
  device = null;
  /** Matrices that the page has closed, and Go not yet. */
  #spares = new Spares((list) => {
    if (this.over) return;
    this.#discard(list);
    this.post();
  });
  /** What computes, for texts. */
  place = '';
  tuning = new Tuning(this);

  // Functions that the page forgets to close.
  #funcFinalizer = new FinalizationRegistry((/** @type {number} */ handle) => {
    this.leaks?.collected(handle);
    this.#forget(handle);
  });

  /**
   * Starts the program for a device.
   * @param {{wasm?: unknown, simdWasm?: unknown}} sources @param {string | GPUDevice} device
   * @param {{power?: string, debug: string, threads?: number, tuning?: boolean}} options
   */
  static open(sources, device, {power, debug, threads, tuning}) {
    const own = typeof device === 'string' ? undefined : device, program = suitable(sources, device, {power, threads});
    return unused(program, Connection.start(Session, program, 'sublet_matrices', {device: own, frugal: power === 'low-power', debug, tuning}));
  }

  /** @param {import('./connection.mjs').Served} program */
  constructor(program) {
    super(program);
    this.repeats = new Repeats(program.device);
  }

  /** @override @param {number} command @param {readonly number[]} words @param {import('./connection.mjs').Asked} [asked] */
  ask(command, words, asked) {
    this.direct(asked?.where || 'gpu');
    return super.ask(command, words, asked);
  }

  // Those that make a matrix are given its leaf.

  /** Zeros, or the elements that are given. @param {Node} leaf @param {Memory} memory @param {Data | null} [data] */
  newMatrix(leaf, memory, data = null) {
    const {form, rows, cols, offset, stride} = memory, words = [form, rows, cols, offset, stride], size = data?.bytes.length ?? 0;
    if (!data || size === 0 || !memory.filledBy(size)) {
      this.send(Command.New, [this.open(leaf, memory), ...words]);
      if (data && size > 0) this.setData(memory, data);
      return;
    }
    this.check();
    const spare = this.#spares.take(memory);
    this.#made(leaf, memory, spare?.handle ?? this.handles.take(), !spare);
    this.message.command(Command.New, [memory.handle, ...words, this.objects.put(data.bytes, !data.copy), size]);
    this.#lent(!data.copy);
  }

  /** A matrix gets all of its elements. @param {Node} leaf @param {Memory} memory @param {number} handle @param {boolean} fresh whether Go makes a matrix for it */
  #made(leaf, memory, handle, fresh) {
    memory.open(handle);
    memory.whole = true;
    this.watch(leaf, memory);
    const {uses} = this.message;
    uses.handles.push(handle);
    uses.stores.add(memory.store);
    uses.other ||= fresh; // another matrix each time
  }

  /** Replaces the elements. @param {Memory} memory @param {Data} data */
  setData(memory, {bytes, copy}) {
    this.check();
    const handle = memory.use('set'), {uses} = this.message, whole = memory.filledBy(bytes.length);
    this.message.command(Command.Data, [handle, this.objects.put(bytes, !copy), bytes.length]);
    wrote(memory.store);
    uses.handles.push(handle);
    uses.stores.add(memory.store);
    uses.other ||= !whole || memory.view || !memory.plain;
    if (!whole) this.message.command(Command.Flush, []); // where Go has the device put the elements into place
    this.#lent(!copy);
  }

  /** Makes a matrix from memory. @param {Node} leaf @param {Origin} origin */
  from(leaf, origin) {
    this.#lend(Command.From, [this.open(leaf, origin.memory)], origin);
    if (!origin.copied && origin.memory.hosted) lies(origin.memory, /** @type {Uint8Array} */ (origin.object));
  }

  /** Sends a command that ends with an origin. @param {number} command @param {number[]} words @param {Origin} origin */
  #lend(command, words, {object, words: told, copied}) {
    const number = this.objects.put(object, copied);
    this.message.command(command, [...words, ...told.map((word, i) => i === OBJECT ? number : word)]);
    this.#lent(copied);
  }

  /** Memory that the user may change is taken at once. @param {boolean} borrowed */
  #lent(borrowed) {
    if (borrowed) this.post();
    else this.schedule();
  }

  /**
   * Makes another matrix of the same memory.
   * @param {number} command @param {object} key @param {Held} held @param {string} where @param {Held} of @param {number[]} [words]
   */
  share(command, key, held, where, of, words = []) {
    this.check();
    const from = of.use(where);
    this.send(command, [this.open(key, held), from, ...words]);
    held.store.shares++;
  }

  /** @param {Node} leaf @param {Memory} memory that gets the result @param {Node} node */
  eval(leaf, memory, node) {
    if (this.recording) {
      this.newMatrix(leaf, memory);
      this.recording.made.push(memory);
      return this.assign(leaf, node);
    }
    this.check();
    const spare = this.#spares.take(memory), handle = spare?.handle ?? this.handles.take(), program = new Program(this.message, 'eval');
    try {
      this.message.compose(Command.Eval, [handle], () => program.encode(node));
    } catch (error) {
      if (spare) this.#spares.keep(spare);
      else this.handles.give(handle);
      throw error;
    }
    this.#made(leaf, memory, handle, !spare);
    this.#evaluated(program);
  }

  /** @param {Node} target @param {Node} node @param {boolean} [now] it is not recorded */
  assign(target, node, now = false) {
    this.check();
    if (target.rows !== node.rows || target.cols !== node.cols) throw shapeError('assign', `a result of ${target.rows}x${target.cols} is needed`, target, node);
    const program = new Program(this.message, 'assign'), recording = now ? null : this.recording, start = this.message.at;
    program.leaves = recording?.leaves ?? null;
    this.#into(Command.Assign, program, target, [], node);
    if (recording) return recording.add(target, this.message.cut(start));
    for (let to = /** @type {Node | null} */ (target); to; to = to.a) {
      if (!to.memory) continue;
      wrote(to.memory.store);
      this.message.uses.stores.add(to.memory.store);
    }
    this.message.uses.other ||= target.rows === 0 || target.cols === 0; // of which no kernel writes anything
    this.#evaluated(program);
  }

  /**
   * Writes a command with a target and what goes there.
   * @param {number} command @param {Program} program @param {Node} target @param {number[]} words @param {Node | null} node
   */
  #into(command, program, target, words, node) {
    const at = this.message.at + 1;
    this.message.compose(command, [0, ...words], () => {
      const value = program.encode(target);
      // What is read is encoded apart from what is written, although it may be the same.
      program.forget();
      if (node) program.encode(node);
      this.message.set(at, value);
    });
  }

  /** Memory of the page's is read before the user can change it. @param {Program} program @param {{hosted?: boolean}} [other] */
  #evaluated(program, other) {
    this.#lent(program.external || other?.hosted === true);
  }

  /** @template T @param {Node} node @param {T & ArrayBufferView} into @param {AbortSignal} [signal] @param {string} [where] @returns {Promise<T>} */
  read(node, into, signal, where = 'read') {
    const bytes = new Uint8Array(into.buffer, into.byteOffset, node.rows * node.cols * node.type.size);
    const object = this.objects.put(bytes);
    try {
      return this.ask(Command.Read, [object, bytes.length], {value: into, expression: (program) => program.encode(node), where, signal});
    } catch (error) {
      this.takeObject(object);
      throw error;
    }
  }

  /** How an expression is computed; see explain in package bridge. @param {Node} node @param {AbortSignal} [signal] @returns {Promise<any[]>} */
  explain(node, signal) {
    return this.ask(Command.Explain, [], {expression: (program) => program.hold(node), where: 'explain', signal});
  }

  /**
   * Asks about a matrix: Sync, Buffer or Location.
   * @param {number} command @param {string} where @param {Held} held @param {AbortSignal} [signal] @returns {Promise<any>}
   */
  about(command, where, held, signal) {
    const answer = this.ask(command, [held.use(where)], {where, signal}), {store} = held;
    if (command === Command.Buffer) exposed(store);
    if (command !== Command.Sync) return answer;
    const {writes} = store;
    return answer.then((value) => {
      if (store.writes === writes) current(store);
      return value;
    });
  }

  /** @param {Memory} memory */
  touch(memory) {
    this.direct('touch');
    this.send(Command.Touch, [memory.use('touch')]);
    memory.store.writes++;
    current(memory.store);
  }

  /** @param {AbortSignal} [signal] @returns {Promise<void>} */
  async wait(signal) {
    this.check();
    this.direct('gpu');
    if (!signal) {
      this.flush();
      const {resting, device} = this, fine = device ? await idle(device) && ++this.#waits % WAITS > 0 : resting && !await this.repeats?.turn(); // so that Go need not wait, mostly
      this.check();
      if (resting && fine) return;
    }
    return this.ask(Command.Wait, [], {where: 'sync', signal});
  }

  /** Brings a lost device back. @param {GPUDevice | undefined} device its successor @param {AbortSignal} [signal] @returns {Promise<GPUDevice | null>} */
  async reopen(device, signal) {
    const where = 'reopen';
    if (device) await refuseLost(where, device);
    this.check();
    const opened = await this.ask(Command.Reopen, [device ? this.put(device) : 0], {where, signal});
    this.check(); // it may have been closed meanwhile
    return opened;
  }

  /** Closes something of Go's, and tells the owner of its memory when nothing uses that any more. @param {Held} held */
  release(held) {
    this.unwatch(held);
    if (this.recording) {
      this.recording.closings.push(() => this.release(held));
      return;
    }
    const {store, handle} = held, last = --store.shares === 0;
    if (last) current(store);
    if (this.over) return;
    if (last && this.#spares.keep(held)) return;
    this.handles.give(handle);
    let ticket = 0;
    if (last && store.release) {
      ticket = this.answers.take();
      const done = () => this.released(store);
      this.answers.expect(ticket, {resolve: done, reject: done, value: undefined});
    }
    this.message.command(Command.Close, [ticket, handle]);
    if (this.device && /** @type {any} */ (held).mode === 'owned') this.linger();
    else this.schedule();
  }

  /** @param {Memory[]} list of what is closed */
  #discard(list) {
    for (const {handle} of list) {
      this.handles.give(handle);
      this.message.command(Command.Close, [0, handle]);
    }
  }

  /** @override */
  stats() {
    if (!this.over) this.#discard(this.#spares.all());
    return super.stats();
  }

  // Those that give a matrix another size or other memory. It is the next one from now on, and if Go refuses it is the one
  // before again; what was queued meanwhile is told why.

  /**
   * @param {number} command @param {Node} leaf of the next one @param {Node} before @param {readonly number[]} words
   * @param {(() => void)} [rest] writes what follows
   */
  #change(command, leaf, before, words, rest = () => {}) {
    this.check();
    this.direct('memory');
    this.repeats?.clear(); // recordings follow matrices
    const next = /** @type {Memory} */ (leaf.memory), old = /** @type {Memory} */ (before.memory);
    const ticket = this.answers.take(), handle = this.handles.take();
    try {
      this.message.compose(command, [ticket, handle, old.handle, ...words], rest);
    } catch (error) {
      this.answers.give(ticket);
      this.handles.give(handle);
      throw error;
    }
    next.open(handle);
    next.replaces(before, leaf);
    this.answers.expect(ticket, {resolve: () => next.confirm(), reject: () => next.refuse(), value: undefined});
    this.watch(leaf, next);
  }

  /** @param {Node} leaf @param {Node} before @param {Node} node */
  setValue(leaf, before, node) {
    const program = new Program(this.message, 'setValue');
    this.#change(Command.SetValue, leaf, before, [], () => program.encode(node));
    this.#overwritten(leaf, before);
    this.#evaluated(program);
  }

  /** @param {Node} leaf @param {Node} before @param {Origin} origin */
  setFrom(leaf, before, {object, words, copied}) {
    this.check();
    const number = this.objects.put(object, copied);
    this.#change(Command.SetFrom, leaf, before, words.map((word, i) => i === OBJECT ? number : word));
    const next = /** @type {Memory} */ (leaf.memory);
    if (copied) this.#overwritten(leaf, before);
    else if (next.hosted) lies(next, /** @type {Uint8Array} */ (object));
    this.#lent(copied);
  }

  /** @param {number} command Resize or SetShape @param {Node} leaf @param {Node} before */
  size(command, leaf, before) {
    this.#change(command, leaf, before, [leaf.rows, leaf.cols]);
    if (command === Command.Resize) this.#overwritten(leaf, before);
    this.schedule();
  }

  /** Notes that a matrix gets other elements. @param {Node} leaf @param {Node} before */
  #overwritten(leaf, before) {
    for (const {memory} of [leaf, before]) wrote(/** @type {Memory} */ (memory).store);
  }

  /** What a matrix was before is gone. @param {Held} old @param {boolean} dropped whether its memory is as well */
  retire(old, dropped) {
    this.unwatch(old);
    this.handles.give(old.handle);
    if (!dropped || --old.store.shares > 0) return;
    current(old.store);
    this.released(old.store);
  }

  /** What a matrix was to become is not. @param {Memory} next */
  abandon(next) {
    this.unwatch(next);
    if (next.store !== next.previous?.memory?.store) this.released(next.store, false);
    if (this.over) return;
    this.handles.give(next.handle);
    this.send(Command.Close, [0, next.handle]);
  }

  /**
   * Sends an operation of package nn that has state: see stateful.go of package bridge.
   * @param {string} where @param {number} kind @param {Node[]} leaves of the matrices that it makes @param {number} optimiser its handle, or 0
   * @param {(Memory | null)[]} targets that are written to @param {Node[]} values @param {number[]} numbers words
   */
  layer(where, kind, leaves, optimiser, targets, values, numbers) {
    this.check();
    this.direct(where);
    const program = new Program(this.message, where), filled = (/** @type {number[]} */ list, /** @type {number} */ n) => [...list, ...Array(n - list.length).fill(0)];
    const to = targets.map((target) => target ? target.use(where) : 0), handles = leaves.map(() => this.handles.take());
    const words = [kind, ...filled(optimiser ? [optimiser] : handles, 3), ...filled(to, 3), 0, 0, 0, ...filled(numbers, 6)], first = this.message.at + 8;
    try {
      this.message.compose(Command.Layer, words, () => values.forEach((node, i) => this.message.set(first + i, program.encode(node))));
    } catch (error) {
      for (const handle of handles) this.handles.give(handle);
      throw error;
    }
    leaves.forEach((leaf, i) => {
      const memory = /** @type {Memory} */ (leaf.memory);
      memory.open(handles[i]);
      this.watch(leaf, memory);
    });
    for (const target of targets) if (target) wrote(target.store);
    this.#evaluated(program, {hosted: targets.some((target) => target?.hosted)});
  }

  // Recordings.

  /** Plans assignments and returns the handle of the recording. @param {number[]} commands @param {AbortSignal} [signal] */
  async record(commands, signal) {
    if (commands.length > MAX_COMMAND) throw failure('ErrLimit', 'record', `${commands.length} words of ${MAX_COMMAND}; record parts`);
    const handle = this.handles.take();
    try {
      await this.ask(Command.Record, [handle, ...commands], {where: 'record', signal});
      return handle;
    } catch (error) {
      if (!this.over) this.send(Command.Close, [0, handle]); // Go may have made it before the caller gave up
      this.handles.give(handle);
      throw error;
    }
  }

  /** @param {number} handle of a recording @param {boolean} hosted whether memory of the page's is read @param {boolean} plain whether all memory is the device's */
  replay(handle, hosted, plain) {
    this.direct('run');
    this.message.uses.recordings = true;
    this.message.uses.handles.push(handle);
    this.message.uses.other ||= !plain;
    this.send(Command.Replay, [handle]);
    if (hosted) this.post();
  }

  /** @param {import('./func.mjs').FuncRef} func that gets its handle @param {string} text */
  define(func, text) {
    this.check();
    func.handle = this.#funcs.take();
    this.send(Command.Func, [func.handle, this.objects.put(text)]);
    this.#funcFinalizer.register(func, func.handle, func);
    this.leaks?.opened(func.handle, func);
  }

  /** @param {import('./func.mjs').FuncRef} func */
  forget(func) {
    this.#funcFinalizer.unregister(func);
    if (this.recording) {
      this.recording.closings.push(() => this.forget(func));
      return;
    }
    this.#forget(func.handle);
  }

  /** @param {number} handle of a function */
  #forget(handle) {
    this.leaks?.closed(handle);
    if (this.over) return;
    this.#funcs.give(handle);
    this.send(Command.Forget, [handle]);
  }
}
