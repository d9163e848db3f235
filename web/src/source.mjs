// SPDX-License-Identifier: Apache-2.0

import {isBuffer, window} from './data.mjs';
import {dtypeOf, dtypeOfClass, holds, typedArrayClass} from './dtype.mjs';
import {failure, guard, isArray, show, tagOf} from './errors.mjs';
import {Memory} from './memory.mjs';
import {instead} from './nearest.mjs';
import {MAX_ELEMENTS, checkDims} from './node.mjs';
import {Form, Source} from './protocol.mjs';

// What matrices are made from: sizes, options and memory of the user's.

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {import('./session.mjs').Session} Session */

/** What objects of options say that they are: a Proxy may say nothing. What is of another class is an argument in the wrong place. */
const PLAIN = ['Object', 'Module', ''];

/**
 * Reads the options of a call, once, whatever getters they may have, and refuses those that there are not.
 * @param {string} where @param {unknown} options @param {readonly string[]} names @returns {Record<string, any>}
 */
export function read(where, options, names) {
  if (options === undefined) return {};
  if (typeof options !== 'object' || options === null) throw failure('ErrInvalid', where, `options that are ${show(options)} and no object`);
  return guard(where, () => {
    if (isArray(options) || ArrayBuffer.isView(options)) throw failure('ErrInvalid', where, 'options that are an array and no object');
    const tag = tagOf(options);
    if (!PLAIN.includes(tag)) throw failure('ErrInvalid', where, `options that are a ${tag.replace(/^Sublet/, '')} and no object of options`);
    const unknown = Object.keys(options).find((name) => !names.includes(name));
    if (unknown !== undefined) throw failure('ErrInvalid', where, `option ${show(unknown)}; ${instead(unknown, names)}`);
    return Object.fromEntries(names.map((name) => [name, /** @type {any} */ (options)[name]]));
  });
}

/**
 * The options of what runs along an axis. That may be given alone, as in NumPy: sum(0) is sum({axis: 0}).
 * @param {string} where @param {unknown} options @param {readonly string[]} names
 */
export function readAxis(where, options, names) {
  const alone = typeof options === 'number' || options === null || isArray(options);
  return read(where, alone ? {axis: options} : options, names);
}

/** The options that place a matrix in memory. */
export const PLACE = Object.freeze(['dtype', 'order', 'offset', 'stride', 'aligned', 'padded']);
/** Those of memory of the user's. */
export const WRAP = Object.freeze([...PLACE, 'release']);
/** Those that say what becomes of it, as well. */
export const FROM = Object.freeze([...WRAP, 'dontOwnBuffer', 'setValueOnDevice', 'rowMajorInput']);

/** @param {string} where @param {unknown} order */
function byColumns(where, order) {
  if (order === undefined || order === 'row') return false;
  if (order === 'column') return true;
  throw failure('ErrInvalid', where, `order ${show(order)}; it is "row" or "column"`);
}

/** @param {string} where @param {Record<string, any>} options @param {string} name */
export function flag(where, options, name) {
  const value = options[name];
  if (value !== undefined && typeof value !== 'boolean') throw failure('ErrInvalid', where, `${name} ${show(value)}; it is true or false`);
  return value === true;
}

/** @param {string} where @param {string} what @param {unknown} n @param {number} least */
function count(where, what, n, least) {
  if (typeof n !== 'number' || !Number.isInteger(n)) throw failure('ErrInvalid', where, `${what} ${show(n)}`);
  if (n < least) throw failure('ErrStride', where, `${what} ${n} where the least is ${least}`);
  if (n > MAX_ELEMENTS) throw failure('ErrLimit', where, `${what} ${n}`);
  return n;
}

// What AbortSignals have of their own, of whatever realm: an object that only looks like one throws.
const call = Function.prototype.call;
const isAborted = /** @type {(signal: AbortSignal) => boolean} */ (
  call.bind(/** @type {() => boolean} */ (Object.getOwnPropertyDescriptor(AbortSignal.prototype, 'aborted')?.get)));
const {addEventListener, removeEventListener} = EventTarget.prototype;

/** The option that gives a call up. @param {string} where @param {any} signal @returns {AbortSignal | undefined} */
export function checkSignal(where, signal) {
  if (signal === undefined) return undefined;
  let aborted;
  try {
    aborted = isAborted(signal);
  } catch {
    throw failure('ErrInvalid', where, `signal ${show(signal)} is no AbortSignal`);
  }
  if (aborted) throw failure('ErrAborted', where, 'it was aborted', signal.reason);
  return signal;
}

/** The signal among the options of a call that only waits. @param {string} where @param {unknown} options @returns {AbortSignal | undefined} */
export function signalOf(where, options) {
  return checkSignal(where, read(where, options, ['signal']).signal);
}

/** Has a function called when a signal says so. @param {AbortSignal | undefined} signal @param {() => void} abort @returns {() => void} takes that back */
export function onAbort(signal, abort) {
  if (!signal) return () => {};
  addEventListener.call(signal, 'abort', abort);
  return () => removeEventListener.call(signal, 'abort', abort);
}

/** Keeps a source from being an unhandled rejection while what reads it is still being loaded. @param {string} where @param {unknown} source what the user gave */
export const expected = (where, source) => guard(where, () => {
  if (source instanceof Promise) Promise.prototype.then.call(source, undefined, () => {});
});

/**
 * Waits for a promise, at the latest until a signal says that nobody wants it any more. What comes of it then is given to `late`.
 * @template T @param {string} where @param {AbortSignal | undefined} signal @param {Promise<T>} promise @param {(value: T) => void} late @returns {Promise<T>}
 */
export function abortable(where, signal, promise, late) {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const abort = () => {
      deaf();
      reject(failure('ErrAborted', where, 'it was aborted', signal.reason));
      promise.then(late, () => {});
    };
    const deaf = onAbort(signal, abort);
    if (isAborted(signal)) abort();
    else promise.then(resolve, reject).finally(deaf);
  });
}

/** The elements of a vector, to which padded rows are filled up. */
const VECTOR = 4;
const padding = (/** @type {number} */ n) => Math.ceil(n / VECTOR) * VECTOR;

/** What is called when memory is not used any more. @param {string} where @param {unknown} release */
export function releaseOf(where, release) {
  if (release === undefined) return null;
  if (typeof release !== 'function') throw failure('ErrInvalid', where, `release ${show(release)} is no function`);
  return () => release();
}

/**
 * A matrix without its memory.
 * @param {Session} session @param {string} where @param {DType} type @param {any} rows @param {any} cols
 * @param {Record<string, any>} options @param {import('./memory.mjs').Mode} mode
 */
export function place(session, where, type, rows, cols, options, mode) {
  checkDims(where, rows, cols);
  const columns = byColumns(where, options.order), padded = flag(where, options, 'padded'), aligned = flag(where, options, 'aligned');
  const minor = columns ? rows : cols, full = padding(minor);
  const usual = padded && mode === 'owned' ? full : minor;
  const stride = options.stride === undefined ? usual : count(where, 'stride', options.stride, padded ? 0 : minor);
  const offset = options.offset === undefined ? 0 : count(where, 'offset', options.offset, 0);
  if (aligned && (offset * type.size % 16 !== 0 || stride % VECTOR !== 0)) {
    throw failure('ErrAlignment', where, `offset ${offset}, stride ${stride}`);
  }
  if (padded && stride < full) throw failure('ErrCapacity', where, `stride ${stride} for rows of ${minor}`);
  const memory = new Memory(session, type, rows, cols, columns, stride, mode);
  memory.offset = offset;
  memory.padded = padded;
  if (padded) memory.room = (columns ? cols : rows) * stride;
  if (mode === 'owned') memory.bytes = memory.room * type.size;
  if (offset + memory.room > MAX_ELEMENTS) throw failure('ErrLimit', where, `${offset + memory.room} elements between the first and the last`);
  const bytes = (mode === 'owned' ? offset + memory.room : memory.room) * type.size;
  if (bytes > session.limit) throw failure('ErrLimit', where, `${bytes} bytes, the largest buffer has ${session.limit}`);
  return memory;
}

/**
 * Memory to make a matrix from.
 * @typedef {object} Origin
 * @property {Memory} memory where the matrix lies that is made
 * @property {unknown} object the memory, as Go asks for it
 * @property {number[]} words what Go is told of it; at {@link OBJECT} comes the number of the object
 * @property {boolean} copied whether the memory stays the user's to change as soon as the call returns
 */

/** Where in the words of an Origin the object's number is. */
export const OBJECT = 6;

/**
 * @param {Session} session @param {string} where @param {unknown} data @param {unknown} rows @param {unknown} cols
 * @param {Record<string, any>} o options @param {DType} type what an ArrayBuffer or a GPUBuffer holds
 * @param {boolean} [strict] whether the element type must be that one
 * @returns {Origin}
 */
export function originOf(session, where, data, rows, cols, o, type, strict = false) {
  const wrapped = flag(where, o, 'dontOwnBuffer'), onDevice = flag(where, o, 'setValueOnDevice');
  const handle = tagOf(data) === 'GPUBuffer', rowMajorInput = flag(where, o, 'rowMajorInput');
  const own = typedArrayClass(data), said = dtypeOfClass(own);
  if (!handle && own === undefined && !ArrayBuffer.isView(data) && !isBuffer(data)) {
    throw failure('ErrInvalid', where, `${show(data)} is neither a typed array, an ArrayBuffer nor a GPUBuffer`);
  }
  if (handle && !session.device) throw failure('ErrForeign', where, `a GPUBuffer, where ${session.place} computes`);
  if (wrapped && rowMajorInput && byColumns(where, o.order)) throw failure('ErrInvalid', where, 'rowMajorInput in column order, where nothing is copied');
  if (wrapped && onDevice) throw failure('ErrInvalid', where, 'flags that exclude each other');
  if (onDevice && !handle) throw failure('ErrInvalid', where, 'setValueOnDevice with memory of the CPU');
  if (!wrapped && !onDevice && handle) throw failure('ErrInvalid', where, 'a GPUBuffer without setValueOnDevice or dontOwnBuffer');
  if (!wrapped && o.release !== undefined) throw failure('ErrInvalid', where, 'a release function for memory that is copied');
  const is = dtypeOf(where, o.dtype, said ?? type);
  if (said && !holds(own, is)) throw failure('ErrInvalid', where, `a ${own} as ${is.name}; leave dtype out and convert with astype("${is.name}"), or give its buffer for its bits`);
  if (own && !said) throw failure('ErrInvalid', where, `a ${own}, which is of no element type; gpu.matrix(rows, cols, data, {dtype: ${show(is.name)}}) converts its numbers, as astype does those of matrices; its buffer stands for its bits`);
  if (strict && is !== type) throw failure('ErrInvalid', where, `${is.name} to ${type.name}; convert with astype, or name the dtype that bytes are`);

  const release = handle && o.release === 'destroy' ? () => /** @type {GPUBuffer} */ (data).destroy() : o.release;
  const from = place(session, where, is, rows, cols, rowMajorInput && !wrapped ? {...o, order: undefined} : o, 'external');
  from.store.release = releaseOf(where, release);
  from.hosted = !handle;
  const flags = (wrapped ? Source.DontOwnBuffer : 0) | (onDevice ? Source.SetValueOnDevice : 0) | (handle ? Source.GpuBuffer : 0);
  const object = handle ? data : guard(where, () => window(where, data, is, from.offset, from.room));
  if (handle) checkSize(where, /** @type {GPUBuffer} */ (data), from);

  const memory = wrapped ? from : place(session, where, is, rows, cols, {order: o.order}, 'owned');
  const form = wrapped ? from.form : memory.form | (rowMajorInput ? Form.RowMajorInput : 0);
  // One row has no stride; Go would keep the one that it was given.
  const stride = wrapped || !from.gapless ? from.stride : from.minor;
  const words = [flags, form, from.rows, from.cols, handle ? from.offset : 0, stride, 0, handle ? 0 : /** @type {Uint8Array} */ (object).length];
  return {memory, object, words, copied: !wrapped};
}

/** @param {string} where @param {GPUBuffer} buffer @param {Memory} memory */
function checkSize(where, buffer, {offset, room, type}) {
  const need = (offset + room) * type.size, size = guard(where, () => buffer.size);
  if (size % 4 !== 0) throw failure('ErrInvalid', where, `a GPUBuffer of ${size} bytes, which is no multiple of 4`);
  if (size < need) throw failure('ErrShort', where, `${size} bytes, the layout needs ${need}`);
}
