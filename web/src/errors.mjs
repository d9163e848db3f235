// SPDX-License-Identifier: Apache-2.0

/** What every error of this package is. `code` is the name of the Go library's sentinel, or "exited". */
export class SubletError extends Error {
  /**
   * @param {string} code @param {string} message @param {{cause?: unknown, offset?: number}} [options]
   */
  constructor(code, message, options) {
    super(message, options);
    this.name = 'SubletError';
    this.code = code;
    /** Where in a file, if it is about one. @type {number | undefined} */
    this.offset = options?.offset;
  }
}

/** @param {string} code @param {string} where @param {string} why @param {unknown} [cause] @returns {SubletError} */
export const failure = (code, where, why, cause) =>
  new SubletError(code, `sublet: ${where}: ${why}`, cause === undefined ? undefined : {cause});

/** @param {string} where @param {string} fits what would fit @param {{rows: number, cols: number}[]} shapes */
export const shapeError = (where, fits, ...shapes) =>
  failure('ErrShape', where, `${shapes.map((s) => `${s.rows}x${s.cols}`).join(' by ')}: dimension mismatch: ${fits}`);

/** What would fit, as Go says it. @param {string} what @param {number} n @param {string} unit */
export const needs = (what, n, unit) => `${what} needs ${n} ${unit}${n === 1 ? '' : 's'}`;

/**
 * Shows a value in a message without running any code of the user's.
 * @param {unknown} value
 */
export function show(value) {
  switch (typeof value) {
    case 'string': return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}...` : value);
    case 'number': case 'bigint': case 'boolean': case 'undefined': return String(value);
    case 'object': return value === null ? 'null' : isArray(value) ? 'an array' : 'an object';
    default: return `a ${typeof value}`;
  }
}

/** The class that a value says it is of, of whatever realm. @param {unknown} value */
export function tagOf(value) {
  try {
    return Object.prototype.toString.call(value).slice('[object '.length, -1);
  } catch { // a Proxy
    return '';
  }
}

/** Whether something is of a class, which a Proxy may refuse to say. @param {unknown} x @param {Function} Class */
function isOf(x, Class) {
  try {
    return x instanceof Class;
  } catch {
    return false;
  }
}

/** Whether something that was thrown is an error of this package. @param {unknown} error @returns {error is SubletError} */
export const isOurs = (error) => isOf(error, SubletError);

/** What something that was thrown says. @param {unknown} error @returns {string} */
export function reasonOf(error) {
  try {
    return error instanceof Error ? String(error.message) : show(error);
  } catch {
    return show(error);
  }
}

/**
 * Runs code that may run code of the user's, such as a getter of an options object, and makes whatever it throws ours.
 * @template T @param {string} where @param {() => T} run @returns {T}
 */
export function guard(where, run) {
  try {
    return run();
  } catch (error) {
    if (isOurs(error)) throw error;
    throw failure('ErrInvalid', where, reasonOf(error), error);
  }
}

/** Whether something is an array; a Proxy that was revoked is none. @param {unknown} x @returns {x is any[]} */
export function isArray(x) {
  try {
    return Array.isArray(x);
  } catch {
    return false;
  }
}

/** The most elements of a list that is no data: of sizes, of operands. */
const LONGEST = 1 << 20;

/** What an array of the user's has just now, null if it is none. @param {string} where @param {unknown} x @returns {any[] | null} */
export function listed(where, x) {
  if (!isArray(x)) return null;
  return guard(where, () => {
    const {length} = x;
    if (length > LONGEST) throw failure('ErrLimit', where, `a list of ${length} elements`);
    return Array.from({length}, (_, i) => x[i]);
  });
}

/**
 * Makes something large: there is nothing but memory that a RangeError could be about.
 * @template T @param {string} where @param {() => T} make @returns {T}
 */
export function allocate(where, make) {
  return guard(where, () => {
    try {
      return make();
    } catch (error) {
      throw isOf(error, RangeError) ? failure('ErrNoMemory', where, reasonOf(error), error) : error;
    }
  });
}
