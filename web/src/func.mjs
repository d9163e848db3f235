// SPDX-License-Identifier: Apache-2.0

import {failure, show} from './errors.mjs';

/** What expressions know of a function. types: of the parameters and of the result, as far as the text says. @typedef {{handle: number, name: string, arity: number, types: string[], closed: boolean, session: import('./session.mjs').Session}} FuncRef */

/** The most parameters of a function. */
const MAX_ARITY = 6;

/** Comments of WGSL, the blocks of which nest, or their marks. */
const COMMENT = /\/\/[^\n\v\f\r\u0085\u2028\u2029]*|\/\*|\*\//g;

/** Blanks the comments of WGSL. @param {string} text */
function withoutComments(text) {
  let out = '', depth = 0, at = 0;
  for (COMMENT.lastIndex = 0; ;) {
    const found = COMMENT.exec(text);
    if (depth === 0) out += text.slice(at, found?.index) + ' ';
    if (!found) return out;
    if (found[0] === '/*') depth++;
    else if (found[0] === '*/') depth = Math.max(depth - 1, 0);
    else if (depth > 0) COMMENT.lastIndex = found.index + 2; // no line comment: it may hide the end of the block
    at = COMMENT.lastIndex;
  }
}

/** The name, the number of parameters and the types of the first function of a text. @param {string} text */
function signature(text) {
  const found = /\bfn\s+([A-Za-z_]\w*)\s*\(([^)]*)\)(?:\s*->\s*(\w+)|\s*(\{))?/.exec(withoutComments(text));
  if (!found) throw failure('ErrSyntax', 'fn', 'no function "fn name(x: f32) -> f32"');
  const parameters = found[2].split(',').filter((parameter) => parameter.trim() !== ''), arity = parameters.length;
  if (arity < 1 || arity > MAX_ARITY) throw failure('ErrSyntax', 'fn', `${found[1]} has ${arity} parameters; it takes 1 to ${MAX_ARITY}`);
  if (found[4]) throw failure('ErrSyntax', 'fn', `${found[1]} returns nothing`);
  return {name: found[1], arity, types: [...parameters.map((parameter) => parameter.split(':')[1] ?? ''), found[3] ?? ''].map((type) => type.trim())};
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
    session.scope?.add(this);
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
