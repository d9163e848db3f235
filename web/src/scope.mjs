// SPDX-License-Identifier: Apache-2.0

import {failure, guard, show} from './errors.mjs';
import {inside} from './expr.mjs';
import {ownedBy} from './owned.mjs';
import {insideTensor} from './tensor-expr.mjs';

/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {{close: () => void}} Closable */

/** @param {unknown} x @returns {x is object} */
const isObject = (x) => typeof x === 'object' && x !== null;

/** An object and what is in it: arrays, maps, sets, properties and what it owns. Memory and buffers have nothing in them. @param {unknown} root @returns {Set<object>} */
function reachable(root) {
  /** @type {Set<object>} */
  const found = new Set();
  const stack = [root];
  while (stack.length > 0) {
    const x = stack.pop();
    if (!isObject(x) || found.has(x) || ArrayBuffer.isView(x)) continue;
    found.add(x);
    if (x instanceof Map || x instanceof Set) for (const value of x.values()) stack.push(value);
    for (const value of ownedBy(x) ?? Object.values(x)) stack.push(value);
  }
  return found;
}

/** @param {any} x @returns {x is Closable} */
const isClosable = (x) => typeof x.close === 'function' && typeof x[Symbol.dispose] === 'function';

/** What is closed of an object and what is in it: of something that closes others only these, as one of them may be returned. @param {unknown} x @returns {Closable[]} */
function closables(x) {
  const list = [...reachable(x)].filter(isClosable);
  return list.filter((object) => ![...reachable(object)].some((part) => part !== object && isClosable(part)));
}

/** Closes objects, all of them whatever one throws. @param {readonly Closable[]} list */
function closeEach(list) {
  /** @type {unknown[]} */
  const errors = [];
  for (const object of list) {
    try {
      object.close();
    } catch (error) {
      errors.push(error);
    }
  }
  if (errors.length > 0) guard('scope', () => { throw errors[0]; });
}

/** Whether an expression reads a matrix, or calls a function, that was closed. @param {Node} root */
function isBroken(root) {
  const seen = new Set([root]);
  for (const node of seen) { // which grows meanwhile
    if (node.memory?.closed || node.func?.closed) return true;
    for (const next of [node.a, node.b, node.c, ...node.args ?? []]) if (next) seen.add(next);
  }
  return false;
}

/** What is behind an expression or a tensor. @param {object} x @returns {Node | undefined} */
function nodeOf(x) {
  try {
    return (inside(x, 'scope') ?? insideTensor(x, 'scope'))?.node;
  } catch { // it was closed, which its user is told
    return undefined;
  }
}

/** What one call of Gpu.scope closes. */
export class Scope {
  #session;
  /** In the order in which they were made. @type {Set<Closable>} */
  #open = new Set();
  #ended = false;

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** Called by whatever is made while a function of the scope runs. @param {Closable} object */
  add(object) {
    this.#open.add(object);
  }

  /** @template T @param {T} x @returns {T} */
  use(x) {
    const list = guard('use', () => closables(x));
    if (list.length === 0) throw failure('ErrInvalid', 'use', `${show(x)} has no matrix or anything else that is closed`);
    if (this.#ended) {
      closeEach(list);
      throw failure('ErrClosed', 'use', 'the scope has ended; what it was given was closed');
    }
    for (const object of list) this.#open.add(object);
    return x;
  }

  /** @template T @param {T} x @returns {T} */
  keep(x) {
    for (const object of guard('keep', () => reachable(x))) this.#open.delete(/** @type {Closable} */ (object));
    return x;
  }

  /** @template T @param {() => T} fn @returns {T} */
  run(fn) {
    if (typeof fn !== 'function') throw failure('ErrInvalid', 'run', `${show(fn)} is no function`);
    if (this.#ended) throw failure('ErrClosed', 'run', 'the scope has ended');
    const session = this.#session, outer = session.scope;
    session.scope = this;
    try {
      return fn();
    } finally {
      session.scope = outer;
    }
  }

  /** Closes everything but what is in a result. @param {unknown} result @param {Scope | null} outer that takes over what the result has @returns {any} the result */
  end(result, outer) {
    let kept;
    try {
      kept = guard('scope', () => reachable(result));
    } catch (error) {
      this.closeAll();
      throw error;
    }
    const moved = [...this.#open].filter((object) => kept.has(object));
    for (const object of moved) this.#open.delete(object);
    this.closeAll();
    if ([...kept].some((x) => isBroken(nodeOf(x) ?? /** @type {Node} */ ({})))) {
      closeEach(moved);
      throw failure('ErrClosed', 'scope', 'it returned an expression of matrices that are closed with it; return its eval()');
    }
    for (const object of moved) outer?.add(object);
    return result;
  }

  /** Closes what is open, the last one first. */
  closeAll() {
    this.#ended = true;
    const list = [...this.#open].reverse();
    this.#open.clear();
    closeEach(list);
  }
}

/** @param {unknown} x @returns {x is PromiseLike<unknown>} */
const isPromise = (x) => isObject(x) && typeof /** @type {any} */ (x).then === 'function';

/** @param {Session} session @param {any} fn */
export function scoped(session, fn) {
  if (typeof fn !== 'function') throw failure('ErrInvalid', 'scope', `${show(fn)} is no function`);
  session.check();
  const scope = new Scope(session), user = Object.freeze({
    use: (/** @type {unknown} */ x) => scope.use(x), keep: (/** @type {unknown} */ x) => scope.keep(x), run: (/** @type {any} */ f) => scope.run(f),
  });
  /** @type {unknown} */
  let result;
  try {
    result = scope.run(() => fn(user));
    if (!guard('scope', () => isPromise(result))) return scope.end(result, session.scope);
  } catch (error) {
    scope.closeAll();
    throw error;
  }
  return Promise.resolve(result).then((value) => scope.end(value, null), (error) => {
    scope.closeAll();
    throw error;
  });
}
