// SPDX-License-Identifier: Apache-2.0

import * as crunchers from './crunchers.mjs';
import {bytesOf, isBuffer} from './data.mjs';
import {DTYPES, scalarBits} from './dtype.mjs';
import {allocate, failure, guard, show} from './errors.mjs';
import {Held, Store} from './memory.mjs';
import {long} from './message.mjs';
import {instead} from './nearest.mjs';
import {Command, MAX_BYTES} from './protocol.mjs';
import {flag, read, releaseOf} from './source.mjs';
import {dtypeOfData} from './tensor.mjs';

/** @typedef {import('./crunch.mjs').Crunch} Crunch */

/** The element types, in Go's order, and their typed arrays. @type {Record<string, any>} */
const ARRAYS = Object.freeze({
  float32: Float32Array, int32: Int32Array, uint32: Uint32Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, bytes: Uint8Array,
});

const FLAGS = Object.freeze(['read', 'partialRead', 'write', 'writeAll', 'readOnly', 'writeOnly', 'zeroCopy']);
const COUNTS = Object.freeze({elementsPerItem: 1, halo: 0});
const MODES = Object.freeze(['widened', 'packed', 'atomic']);
/** In the order of wasm/cruncher/calls.go. */
const PROPERTIES = Object.freeze([...FLAGS, ...Object.keys(COUNTS), 'mode', 'struct', 'tracked']);
const OPTIONS = Object.freeze(['dtype', ...PROPERTIES, 'release']);

/** Checks the value of a property. @param {string} where @param {string} name @param {any} value */
function valueOf(where, name, value) {
  if (name === 'mode' && !MODES.includes(value)) throw failure('ErrInvalid', where, `mode ${show(value)}; ${instead(value, MODES)}`);
  if (name === 'struct' && typeof value !== 'string') throw failure('ErrInvalid', where, `struct ${show(value)} is no name`);
  if (name in COUNTS && (!Number.isSafeInteger(value) || value < COUNTS[/** @type {'halo'} */ (name)])) {
    throw failure('ErrInvalid', where, `${name} ${show(value)}; it is a number from ${COUNTS[/** @type {'halo'} */ (name)]} on`);
  }
  return FLAGS.includes(name) || name === 'tracked' ? flag(where, {[name]: value}, name) : value;
}

/** A property and its value as Go takes them. @param {Crunch} crunch @param {string} name @param {any} value @returns {number[]} */
function wordsOf(crunch, name, value) {
  const n = name === 'struct' ? crunch.put(value) : name === 'mode' ? MODES.indexOf(value) : Number(value);
  return [PROPERTIES.indexOf(name), ...long(n)];
}

/** The properties that the options ask for, and their values. @param {string} where @param {Record<string, any>} o */
function propertiesOf(where, o) {
  const both = (/** @type {string} */ one, /** @type {string[]} */ ...others) => others.find((other) => o[one] === true && o[other] === true);
  const clash = both('readOnly', 'write', 'writeAll', 'writeOnly') ?? both('writeOnly', 'read', 'partialRead');
  if (clash) throw failure('ErrInvalid', where, `${clash} beside ${o.readOnly ? 'readOnly' : 'writeOnly'}`);
  return PROPERTIES.filter((name) => o[name] !== undefined).map((name) => /** @type {const} */ ([name, valueOf(where, name, o[name])]));
}

/** The element type and the memory. @param {string} where @param {unknown} source @param {Record<string, any>} o */
function memoryOf(where, source, {dtype, struct}) {
  const plain = isBuffer(source) || ArrayBuffer.isView(source);
  const own = dtypeOfData(source), bytes = struct !== undefined || isBuffer(source) || own === undefined && plain;
  const type = dtype ?? (bytes ? 'bytes' : own ?? 'float32'), Array = typeof type === 'string' && Object.hasOwn(ARRAYS, type) ? ARRAYS[type] : undefined;
  if (!Array) throw failure('ErrInvalid', where, `elements of type ${show(type)}; ${instead(type, Object.keys(ARRAYS))}`);
  if (struct !== undefined && type !== 'bytes') throw failure('ErrInvalid', where, `a struct of ${type}`);
  if (!plain) {
    if (typeof source !== 'number' || !Number.isInteger(source)) throw failure('ErrInvalid', where, `${show(source)} is neither memory nor a length`);
    if (source < 0 || source * Array.BYTES_PER_ELEMENT > MAX_BYTES) throw failure('ErrRange', where, `${source} elements`);
    return {type, data: allocate(where, () => new Array(source))};
  }
  if (own !== undefined && own !== type && own !== 'uint8' && type !== 'bytes') throw failure('ErrInvalid', where, `an array of ${own} as ${type}`);
  const view = guard(where, () => /** @type {any} */ (ArrayBuffer.isView(source) ? source : new Uint8Array(/** @type {ArrayBuffer} */ (source))));
  if (view !== source && view.buffer !== source) throw failure('ErrInvalid', where, 'an ArrayBuffer that is none');
  if (own === type || (own === 'uint8' && type === 'bytes')) return {type, data: view};
  const {buffer, byteOffset, byteLength} = view, size = Array.BYTES_PER_ELEMENT;
  if (byteOffset % size !== 0) throw failure('ErrAlignment', where, `${type} from byte ${byteOffset} on`);
  if (byteLength % size !== 0) throw failure('ErrRange', where, `${byteLength} bytes of ${type}`);
  return {type, data: new Array(buffer, byteOffset, byteLength / size)};
}

/** What is behind an array; undefined for anything else. @type {(x: unknown) => Held | undefined} */
export let handleOf;

/** An array that kernels read and write under its name. */
export class CruncherArray extends crunchers.CruncherArray {
  #handle;
  #data;
  #name;
  #dtype;
  #tracked;
  #length;

  static {
    handleOf = (x) => typeof x === 'object' && x !== null && #handle in x ? x.#handle : undefined;
  }

  /** @param {Crunch} crunch @param {unknown} name @param {unknown} source @param {unknown} options */
  constructor(crunch, name, source, options) {
    super();
    const where = 'array', o = read(where, options, OPTIONS);
    if (typeof name !== 'string') throw failure('ErrInvalid', where, `name ${show(name)}`);
    const {type, data} = memoryOf(where, source, o), release = releaseOf(where, o.release), properties = propertiesOf(where, o);
    const bytes = guard(where, () => bytesOf(data));
    crunch.check();
    const handle = crunch.handles.take();
    try {
      crunch.call(Command.Array, [
        handle, crunch.put(name), Object.keys(ARRAYS).indexOf(type), crunch.put(bytes), bytes.length,
        ...properties.flatMap(([property, value]) => wordsOf(crunch, property, value)),
      ]);
    } catch (error) {
      crunch.handles.give(handle);
      throw error;
    }
    this.#handle = new Held(crunch, new Store(release), `array ${name}`, Command.CloseArray);
    this.#handle.open(handle);
    this.#data = data;
    this.#name = name;
    this.#dtype = type;
    this.#tracked = o.tracked === true;
    this.#length = data.length;
    crunch.watch(this, this.#handle);
  }

  get name() { return this.#name; }
  get dtype() { return this.#dtype; }
  get data() { return this.#data; }
  get length() { return this.#length; }
  get tracked() { return this.#tracked; }
  get closed() { return this.#handle.over; }
  /** @returns {boolean} */ get stale() { return this.#get('tracked'); } // of what it is made with, Go has nothing to tell

  /** @param {unknown} name */
  as(name) { return new CruncherAlias(this, name); }

  /** @param {string} name */
  #get(name) {
    return this.#handle.session.call(Command.Get, [this.#handle.use(name), PROPERTIES.indexOf(name)]);
  }

  /** @param {string} name @param {unknown} value */
  #set(name, value) {
    const number = this.#handle.use(name);
    if (value === undefined) throw failure('ErrInvalid', name, 'undefined');
    const {session} = this.#handle, checked = valueOf(name, name, value);
    session.check();
    session.call(Command.Set, [number, ...wordsOf(session, name, checked)]);
  }

  /** @returns {boolean} */ get read() { return this.#get('read'); }
  set read(on) { this.#set('read', on); }
  /** @returns {boolean} */ get partialRead() { return this.#get('partialRead'); }
  set partialRead(on) { this.#set('partialRead', on); }
  /** @returns {boolean} */ get write() { return this.#get('write'); }
  set write(on) { this.#set('write', on); }
  /** @returns {boolean} */ get writeAll() { return this.#get('writeAll'); }
  set writeAll(on) { this.#set('writeAll', on); }
  /** @returns {boolean} */ get readOnly() { return this.#get('readOnly'); }
  set readOnly(on) { this.#set('readOnly', on); }
  /** @returns {boolean} */ get writeOnly() { return this.#get('writeOnly'); }
  set writeOnly(on) { this.#set('writeOnly', on); }
  /** @returns {boolean} */ get zeroCopy() { return this.#get('zeroCopy'); }
  set zeroCopy(on) { this.#set('zeroCopy', on); }
  /** @returns {number} */ get elementsPerItem() { return this.#get('elementsPerItem'); }
  set elementsPerItem(n) { this.#set('elementsPerItem', n); }
  /** @returns {number} */ get halo() { return this.#get('halo'); }
  set halo(n) { this.#set('halo', n); }
  /** @returns {'widened' | 'packed' | 'atomic'} */ get mode() { return /** @type {any} */ (MODES[this.#get('mode')]); }
  set mode(mode) { this.#set('mode', mode); }
  /** @returns {string} */ get struct() { return this.#get('struct'); }
  set struct(name) { this.#set('struct', name); }

  touch() {
    this.#handle.session.call(Command.Dirty, [this.#handle.use('touch')]);
    return this;
  }

  close() {
    this.#handle.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletCruncherArray'; }
}

/** The array and the name behind an alias; undefined for anything else. @type {(x: unknown) => readonly [array: CruncherArray, name: string] | undefined} */
export let aliasOf;

/** An array by another name. */
export class CruncherAlias {
  #of;

  static {
    aliasOf = (x) => typeof x === 'object' && x !== null && #of in x ? x.#of : undefined;
  }

  /** @param {CruncherArray} array @param {unknown} name */
  constructor(array, name) {
    if (typeof name !== 'string' || name === '') throw failure('ErrName', 'as', show(name));
    this.#of = Object.freeze(/** @type {const} */ ([array, name]));
  }

  get name() { return this.#of[1]; }
  get array() { return this.#of[0]; }

  get [Symbol.toStringTag]() { return 'SubletCruncherAlias'; }
}

/** What is behind a scalar; undefined for anything else. @type {(x: unknown) => readonly [name: string, dtype: string, bits: number] | undefined} */
export let scalarOf;

/** The element types that scalars may have, in Go's order. */
const NUMBERS = DTYPES.filter(({size}) => size === 4);
export const SCALARS = Object.freeze(NUMBERS.map(({name}) => name));

/** A number that kernels know by its name. */
export class CruncherScalar extends crunchers.CruncherScalar {
  #bits;

  static {
    scalarOf = (x) => typeof x === 'object' && x !== null && #bits in x ? x.#bits : undefined;
  }

  /** @param {unknown} name @param {unknown} value @param {unknown} dtype */
  constructor(name, value, dtype) {
    super();
    const where = 'scalar', type = NUMBERS.find((t) => t.name === dtype);
    if (typeof name !== 'string' || name === '') throw failure('ErrName', where, show(name));
    if (typeof value !== 'number') throw failure('ErrInvalid', where, `${show(value)} is no number`);
    if (!type) throw failure('ErrInvalid', where, `dtype ${show(dtype)}; ${instead(dtype, SCALARS)}`);
    this.#bits = Object.freeze(/** @type {const} */ ([name, type.name, scalarBits(where, type, value)]));
    this.value = value;
    Object.freeze(this);
  }

  get name() { return this.#bits[0]; }
  get dtype() { return this.#bits[1]; }

  get [Symbol.toStringTag]() { return 'SubletCruncherScalar'; }
}
