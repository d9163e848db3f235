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
    case 'object': return value === null ? 'null' : 'an object';
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

/**
 * Runs code that may run code of the user's, such as a getter of an options object, and makes whatever it throws ours.
 * @template T @param {string} where @param {() => T} run @returns {T}
 */
export function guard(where, run) {
  try {
    return run();
  } catch (error) {
    if (error instanceof SubletError) throw error;
    throw failure('ErrInvalid', where, error instanceof Error ? error.message : show(error), error);
  }
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
      throw error instanceof RangeError ? failure('ErrNoMemory', where, error.message, error) : error;
    }
  });
}
