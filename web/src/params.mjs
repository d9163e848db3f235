// SPDX-License-Identifier: Apache-2.0

import {bytesOf, isBuffer} from './data.mjs';
import {part} from './download.mjs';
import {DTYPES} from './dtype.mjs';
import {allocate, failure, guard, isArray, show} from './errors.mjs';
import {Expr, inside} from './expr.mjs';
import {Flow} from './flow.mjs';
import {Matrix} from './matrix.mjs';
import {Held, Memory, Store} from './memory.mjs';
import {long} from './message.mjs';
import {checkDims, inRows} from './node.mjs';
import {owns} from './owned.mjs';
import {Command, FileFlag, MAX_BYTES, Op} from './protocol.mjs';
import {abortable, checkSignal, expected, flag, read, signalOf} from './source.mjs';
import {insideTensor, owner} from './tensor-expr.mjs';
import {shapeOf as dimensions, sizeOf} from './tensor-node.mjs';
import {arrayOf, bytesOfShape, compose, parse, shapeOf, typeName, typeOfData} from './tensor.mjs';

/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./tensor-expr.mjs').Tensor} Tensor */
/** @typedef {import('./tensor.mjs').Header} Header */

const pieces = part(() => import('./pieces.mjs'));

/** A tensor as the user sees it. @param {Header} header */
const shown = ({name, type, shape, offset, nbytes}) =>
  Object.freeze({name, dtype: typeName(type), shape: Object.freeze(shape.map(Number)), offset, nbytes});

/** What is behind a parameter; undefined for anything else. @type {(x: unknown) => {held: Held, header: Header} | undefined} */
let insideParam;

/** An array of a file, in memory of the device. */
export class Param {
  #held;
  #header;
  #shown;

  static {
    insideParam = (x) => typeof x === 'object' && x !== null && #held in x ? {held: x.#held, header: x.#header} : undefined;
  }

  /** @param {Held} held @param {Header} header */
  constructor(held, header) {
    this.#held = held;
    this.#header = header;
    this.#shown = shown(header);
  }

  get name() { return this.#shown.name; }
  get dtype() { return this.#shown.dtype; }
  get shape() { return this.#shown.shape; }
  get nbytes() { return this.#shown.nbytes; }
  get closed() { return this.#held.over; }

  /** @param {unknown} [options] */
  async read(options) {
    const where = 'read', signal = signalOf(where, options), held = this.#held, {nbytes, dtype} = this, Array = arrayOf(dtype);
    held.use(where);
    if (nbytes > MAX_BYTES) throw failure('ErrLimit', where, `${nbytes} bytes at once`);
    const into = allocate(where, () => new Array(nbytes / Array.BYTES_PER_ELEMENT));
    return held.session.ask(Command.ArrayRead, [held.handle, held.session.put(bytesOf(into)), nbytes], {value: into, where, signal});
  }

  matrix() {
    const where = 'matrix', {shape} = this;
    this.#held.use(where);
    if (shape.length < 1 || shape.length > 2) throw failure('ErrShape', where, `a matrix of ${shape.length} dimensions; tensor() has any number`);
    return this.#view(where, shape.length === 2 ? shape[0] : 1, shape[shape.length - 1]);
  }

  tensor() {
    const where = 'tensor';
    this.#held.use(where);
    const shape = dimensions(where, [this.shape]);
    return owner(this.#view(where, sizeOf(shape.slice(0, -1)), sizeOf(shape.slice(-1))), shape);
  }

  /** A matrix of the array's memory. @param {string} where @param {number} rows @param {number} cols */
  #view(where, rows, cols) {
    const {session, store} = this.#held, {dtype} = this, type = DTYPES.find(({name}) => name === dtype);
    if (!type) throw failure('ErrUnsupported', where, `matrices of ${dtype}`);
    checkDims(where, rows, cols);
    const memory = new Memory(session, type, rows, cols, false, cols, 'owned', store);
    memory.view = true;
    memory.bytes = 0;
    const leaf = memory.leaf();
    session.share(Command.ArrayMatrix, leaf, memory, where, this.#held, [memory.form, rows, cols]);
    return new Matrix(session, leaf);
  }

  close() {
    this.#held.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletParam'; }
}

/** What a file holds, in its order. */
export class Params {
  #list;

  /** @param {Map<string, Param>} list */
  constructor(list) {
    this.#list = list;
    owns(this, [...list.values()]);
  }

  get size() { return this.#list.size; }
  get names() { return [...this.#list.keys()]; }

  /** @param {string} name */
  has(name) {
    return this.#list.has(name);
  }

  /** @param {string} name */
  get(name) {
    return this.#list.get(name);
  }

  [Symbol.iterator]() {
    return this.#list[Symbol.iterator]();
  }

  close() {
    for (const param of this.#list.values()) param.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletParams'; }
}

/** @param {string} where @param {Record<string, any>} options */
const flagsOf = (where, options) =>
  (flag(where, options, 'strict') ? FileFlag.Strict : 0) | (flag(where, options, 'lastWins') ? FileFlag.LastWins : 0);

/** @param {string} where @param {unknown} limit */
function limitOf(where, limit) {
  if (limit === undefined || limit === Infinity) return -1;
  if (!Number.isSafeInteger(limit) || /** @type {number} */ (limit) < 0) throw failure('ErrInvalid', where, `memoryLimit ${show(limit)}`);
  return /** @type {number} */ (limit);
}

/**
 * Reads a file.
 * @param {Session} session @param {string} where @param {unknown} source @param {Record<string, any>} options @param {number} flags
 * @returns {Promise<{flow: Flow, headers: Header[]}>}
 */
async function readFile(session, where, source, options, flags) {
  const {signal, onProgress} = options;
  const limit = limitOf(where, options.memoryLimit), all = flags | flagsOf(where, options);
  if (onProgress !== undefined && typeof onProgress !== 'function') throw failure('ErrInvalid', where, `onProgress ${show(onProgress)} is no function`);
  session.check();
  expected(where, source);
  const watched = checkSignal(where, signal), moving = pieces();
  const opened = session.during(() => moving.then(({sourceOf}) => sourceOf(session, where, source, (flags & FileFlag.Scan) !== 0)));
  const from = await abortable(where, watched, opened, ({stop}) => stop());
  let flow;
  try {
    flow = new Flow(session, where, Command.Load, [all, ...long(limit), ...long(from.size)], signal);
  } catch (error) {
    from.stop();
    throw error;
  }
  const {total} = from;
  const description = await (await moving).feed(flow, from, (loaded) => {
    if (onProgress) guard(where, () => onProgress({loaded, total}));
  });
  return {flow, headers: parse(description)};
}

/** @param {Session} session @param {unknown} source @param {unknown} options */
export async function loadParams(session, source, options) {
  const where = 'loadParams', o = read(where, options, ['strict', 'lastWins', 'memoryLimit', 'signal', 'onProgress']);
  const {flow, headers} = await readFile(session, where, source, o, 0);
  const params = headers.map((header) => {
    const held = new Held(session, new Store(), 'the parameter'), param = new Param(held, header);
    held.bytes = header.nbytes;
    session.open(param, held);
    return /** @type {const} */ ([header.name, param]);
  });
  const handles = params.map(([, param]) => insideParam(param)?.held.handle ?? 0);
  try {
    await session.ask(Command.Take, [flow.handle, ...handles]);
  } finally {
    flow.close();
  }
  return new Params(new Map(params));
}

/** @param {Session} session @param {unknown} source @param {unknown} options */
export async function scanParams(session, source, options) {
  const where = 'scanParams', o = read(where, options, ['strict', 'lastWins', 'signal']);
  const {flow, headers} = await readFile(session, where, source, o, FileFlag.Scan);
  flow.close();
  return headers.map(shown);
}

// Saving.

/**
 * What is saved: something of Go's, or memory.
 * @typedef {{name: string, type: number, shape: readonly bigint[], words: [handle: number, object: number, bytes: number], bytes?: Uint8Array}} Saved
 */

/** @param {string} where @param {Session} session @param {string} name @param {unknown} value @param {Matrix[]} copies to be closed later @returns {Saved} */
function saved(where, session, name, value, copies) {
  const param = insideParam(value);
  if (param) {
    const {held, header: {type, shape, nbytes}} = param;
    if (held.session !== session) throw failure('ErrForeign', where, 'a parameter of another device');
    return {name, type, shape, words: [held.use(where), 0, nbytes]};
  }
  if (inside(value, where)) return savedMatrix(where, session, name, /** @type {Expr} */ (value), copies);
  const tensor = insideTensor(value, where);
  if (!tensor) return savedData(where, name, value);
  return {...savedMatrix(where, session, name, /** @type {Tensor} */ (value).expr(), copies), shape: tensor.shape.map(BigInt)};
}

/** @param {string} where @param {Session} session @param {string} name @param {Expr} x @param {Matrix[]} copies @returns {Saved} */
function savedMatrix(where, session, name, x, copies) {
  let part = inside(x, where);
  if (!part || part.session !== session) throw failure('ErrForeign', where, 'a matrix of another device');
  if (part.node.op !== Op.Leaf || !inRows(part.node)) {
    const copy = x.eval();
    copies.push(copy);
    part = inside(copy, where);
  }
  const {memory, type, rows, cols} = /** @type {import('./node.mjs').Node} */ (part?.node), shape = [BigInt(rows), BigInt(cols)];
  const handle = /** @type {Memory} */ (memory).use(where), number = NUMBERS[type.id];
  memory?.hold();
  return {name, type: number, shape, words: [handle, 0, rows * cols * type.size]};
}

/** The numbers of the element types that matrices have. */
const NUMBERS = DTYPES.map(({Array, name}) => typeOfData('', new Array(0), name));

/** @param {string} where @param {string} name @param {unknown} value @returns {Saved} */
function savedData(where, name, value) {
  if (typeof value !== 'object' || value === null || isArray(value) || ArrayBuffer.isView(value)) throw failure('ErrInvalid', where, `${show(name)}: ${show(value)} is neither a matrix, a tensor nor {data, shape, dtype}`);
  const {data, shape: dims, dtype} = read(where, value, ['data', 'shape', 'dtype']);
  if (!ArrayBuffer.isView(data) && !isBuffer(data)) throw failure('ErrInvalid', where, `${show(name)}: data ${show(data)} is no typed array`);
  const type = typeOfData(where, data, dtype), shape = shapeOf(where, dims);
  const bytes = guard(where, () => ArrayBuffer.isView(data) ? bytesOf(data) : new Uint8Array(data)), need = bytesOfShape(type, shape);
  if (bytes.length !== need) {
    throw bytes.length < need ? failure('ErrShort', where, `${show(name)}: ${bytes.length} bytes, the shape takes ${need}`)
      : failure('ErrShape', where, `${show(name)}: ${bytes.length} bytes, the shape takes ${need}`);
  }
  if (need > MAX_BYTES) throw failure('ErrLimit', where, `${show(name)}: ${need} bytes`);
  return {name, type, shape, words: [0, 0, need], bytes};
}

/** @param {string} where @param {Session} session @param {any} entries @param {Matrix[]} copies @returns {Saved[]} */
function savedEntries(where, session, entries, copies) {
  const pairs = guard(where, () => {
    if (typeof entries?.[Symbol.iterator] !== 'function') throw failure('ErrInvalid', where, `${show(entries)} is no list of names and arrays`);
    return Array.from(entries, ([name, value]) => [name, value]);
  });
  return pairs.map(([name, value]) => {
    if (typeof name !== 'string') throw failure('ErrInvalid', where, `name ${show(name)}`);
    return saved(where, session, name, value, copies);
  });
}

/** @param {Session} session @param {unknown} entries @param {unknown} options */
export async function saveParams(session, entries, options) {
  const where = 'saveParams', o = read(where, options, ['to', 'type', 'lastWins', 'signal']), {to, type = to ? 'to' : 'blob', signal} = o;
  if (to !== undefined && (typeof guard(where, () => to?.getWriter) !== 'function' || type !== 'to')) throw failure('ErrInvalid', where, `to ${show(to)} is no WritableStream, or there is a type`);
  if (!to && type !== 'blob' && type !== 'stream') throw failure('ErrInvalid', where, `type ${show(type)}; it is "blob" or "stream"`);
  const flags = flagsOf(where, o);
  session.check();
  /** @type {Matrix[]} */
  const copies = [];
  let flow;
  try {
    const list = savedEntries(where, session, entries, copies), text = compose(where, list);
    const words = list.flatMap(({words: [handle, , size], bytes}) => [handle, bytes ? session.put(bytes) : 0, size]);
    flow = new Flow(session, where, Command.Save, [flags, session.put(text), text.length, ...words], signal);
  } finally {
    for (const copy of copies) copy.close(); // Go has a share
  }
  try {
    const stream = await (await pieces()).drain(flow);
    if (type === 'stream') return stream;
    return to ? await abortable(where, signal, session.during(() => stream.pipeTo(to)), () => {}) : await new Response(stream).blob();
  } catch (error) {
    throw await flow.fail(error);
  }
}
