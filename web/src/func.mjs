// SPDX-License-Identifier: Apache-2.0

import {failure, show} from './errors.mjs';

/** What expressions know of a function. @typedef {{handle: number, name: string, arity: number, closed: boolean, session: import('./session.mjs').Session}} FuncRef */

/** The most parameters of a function. */
const MAX_ARITY = 6;

/** Blanks the comments of WGSL, which nest. @param {string} text */
function withoutComments(text) {
  let out = '';
  for (let i = 0; i < text.length; i++) {
    if (text.startsWith('//', i)) {
      const end = text.indexOf('\n', i);
      if (end < 0) break;
      i = end;
    } else if (text.startsWith('/*', i)) {
      const end = text.indexOf('*/', i);
      if (end < 0) break;
      i = end + 1;
      out += ' ';
      continue;
    }
    out += text[i];
  }
  return out;
}

/** The name and the number of parameters of the first function of a text. @param {string} text */
function signature(text) {
  const found = /\bfn\s+([A-Za-z_]\w*)\s*\(([^)]*)\)/.exec(withoutComments(text));
  if (!found) throw failure('ErrSyntax', 'fn', 'no function "fn name(x: f32) -> f32"');
  const arity = found[2].split(',').filter((parameter) => parameter.trim() !== '').length;
  if (arity < 1 || arity > MAX_ARITY) throw failure('ErrSyntax', 'fn', `${found[1]} has ${arity} parameters; it takes 1 to ${MAX_ARITY}`);
  return {name: found[1], arity};
}

/** The function behind a value; undefined if there is none. @type {(x: unknown) => FuncRef | undefined} */
export let funcRef;

/** An element-wise function of the user's, in WGSL. */
export class Fn {
  #ref;

  static {
    funcRef = (x) => typeof x === 'object' && x !== null && #ref in x ? x.#ref : undefined;
  }

  /** @param {import('./session.mjs').Session} session @param {unknown} wgsl */
  constructor(session, wgsl) {
    if (typeof wgsl !== 'string') throw failure('ErrInvalid', 'fn', `${show(wgsl)} is no text`);
    this.#ref = /** @type {FuncRef} */ ({handle: 0, ...signature(wgsl), closed: false, session});
    session.define(this.#ref, wgsl);
  }

  get name() { return this.#ref.name; }
  get arity() { return this.#ref.arity; }

  close() {
    const ref = this.#ref;
    if (ref.closed) return;
    ref.closed = true;
    ref.session.forget(ref);
  }

  [Symbol.dispose]() {
    this.close();
  }
}
