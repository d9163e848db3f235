// SPDX-License-Identifier: Apache-2.0

import {SHAPING_NAMES} from './codes.mjs';
import {SubletError} from './errors.mjs';
import {Numbers} from './numbers.mjs';
import {isShaping} from './operations.mjs';

/**
 * Who waits: value is what a value is that Go does not report, keep what the collector must not take before the answer.
 * @typedef {{resolve: (value: any) => void, reject: (error: SubletError) => void, value: unknown, keep?: unknown}} Pending
 */

/** What Go's shaping is called in JavaScript. @param {string} name @returns {string | undefined} */
function shapingName(name) {
  const small = name[0].toLowerCase() + name.slice(1);
  return SHAPING_NAMES[name] ?? (isShaping(small) ? small : undefined);
}

/** A message of Go's about an operation, with what that is called in JavaScript. @param {string} message */
const spelled = (message) => message
  .replace(/^matrix: ([A-Z]\w*): (?:not supported: |invalid argument: )?/, (all, name) => {
    const spelling = shapingName(name);
    return spelling ? `sublet: ${spelling}: ` : all;
  })
  .replace(/(not defined for \w+, but for [\w, ]+)$/, '$1; convert with astype').replace(/; convert one$/, '; convert with astype').replace('WithDevice names', 'the option device names');

/** What Go is to answer, by ticket. */
export class Answers {
  #tickets = new Numbers();
  /** @type {Map<number, Pending>} */
  #pending = new Map();

  /** @returns {number} a ticket */
  take() {
    return this.#tickets.take();
  }

  /** Gives a ticket back that was not used. @param {number} ticket */
  give(ticket) {
    this.#tickets.give(ticket);
  }

  /** @param {number} ticket @param {Pending} pending */
  expect(ticket, pending) {
    this.#pending.set(ticket, pending);
  }

  /** @param {number} ticket @param {unknown} [value] @param {unknown} [keep] @returns {Promise<any>} */
  promise(ticket, value, keep) {
    return new Promise((resolve, reject) => this.expect(ticket, {resolve, reject, value, keep}));
  }

  /** Called by Go. @param {number} ticket @param {unknown} [value] @param {string} [code] @param {string} [message] @param {number} [offset] */
  settle(ticket, value, code, message, offset) {
    const pending = this.#pending.get(ticket);
    if (!pending) return;
    this.#pending.delete(ticket);
    this.#tickets.give(ticket);
    if (code !== undefined) pending.reject(new SubletError(code, spelled(message ?? code), {offset}));
    else pending.resolve(value ?? pending.value);
  }

  /** Whether Go is to answer anything. */
  get waiting() { return this.#pending.size > 0; }

  /** Refuses all, which Go may still answer later. @param {SubletError} error */
  postpone(error) {
    for (const [ticket, {reject, keep}] of this.#pending) {
      reject(error);
      this.expect(ticket, {resolve() {}, reject() {}, value: undefined, keep});
    }
  }

  /** There will be none any more. @param {SubletError} error */
  refuse(error) {
    for (const {reject} of this.#pending.values()) reject(error);
    this.#pending.clear();
  }
}
