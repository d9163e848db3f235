// SPDX-License-Identifier: Apache-2.0

import {destination} from './data.mjs';
import {FLOAT16, dtypeOf} from './dtype.mjs';
import {failure, guard, show} from './errors.mjs';
import {funcRef} from './func.mjs';
import {Memory} from './memory.mjs';
import * as nodes from './node.mjs';
import {Op, Reduction} from './protocol.mjs';

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./matrix.mjs').Matrix} Matrix */

/** @type {any} */ (Symbol).dispose ??= Symbol.for('Symbol.dispose');

/** What is behind an expression; undefined for anything else. @type {(x: unknown, where: string) => {session: Session, node: Node} | undefined} */
export let inside;

/** The memory of a matrix, closed or not. @type {(matrix: Matrix) => Memory} */
export let memoryOf;

/** Makes a matrix stand for other memory. @type {(matrix: Matrix, leaf: Node) => void} */
export let move;

/** Makes the object of a matrix. It is a class derived from those here, in matrix.mjs. @type {(session: Session, leaf: Node) => Matrix} */
let newMatrix;

/** @param {new (session: Session, leaf: Node) => Matrix} Class */
export function useMatrix(Class) {
  newMatrix = (session, leaf) => new Class(session, leaf);
}

/**
 * Operands as nodes of one element type: a number takes that of the first operand that is none.
 * @param {string} where @param {unknown[]} values @returns {{session: Session, list: Node[]}}
 */
export function operands(where, values) {
  /** @type {{session: Session, node: Node} | undefined} */
  let first;
  const parts = values.map((value) => {
    if (typeof value === 'number') return value;
    const part = inside(value, where);
    if (!part) throw failure('ErrInvalid', where, `${show(value)} is neither a matrix nor a number`);
    first ??= part;
    if (part.session !== first.session) throw failure('ErrForeign', where, 'operands of two devices');
    return part.node;
  });
  if (!first) throw failure('ErrInvalid', where, 'one operand must be a matrix');
  const {session, node: {type}} = first;
  return {session, list: parts.map((part) => typeof part === 'number' ? nodes.scalar(where, type, part) : part)};
}

/** @param {string} where @param {unknown} fn @param {unknown[]} args */
export function applied(where, fn, args) {
  const func = funcRef(fn);
  if (!func) throw failure('ErrInvalid', where, `${show(fn)} is no function; make one with gpu.fn`);
  if (func.closed) throw failure('ErrClosed', where, `the function ${func.name} was closed`);
  if (args.length !== func.arity) throw failure('ErrInvalid', where, `${args.length} arguments for ${func.name}, which takes ${func.arity}`);
  const {session, list} = operands(where, args);
  if (session !== func.session) throw failure('ErrForeign', where, 'a function of another device');
  return new Expr(session, nodes.call(where, func, list));
}

/** The axis of a reduction's options. @param {string} where @param {unknown} options */
function axisOf(where, options) {
  if (options === undefined) return undefined;
  if (typeof options !== 'object' || options === null) throw failure('ErrInvalid', where, `options ${show(options)}`);
  return guard(where, () => /** @type {{axis?: unknown}} */ (options).axis);
}

/** A part of a matrix is a view; a part of anything else is yet to be computed. @param {Session} session @param {Node} node @returns {Expr} */
const arranged = (session, node) => node.steps ? new View(session, node) : new Expr(session, node);

/** A computation that has not run yet. */
export class Expr {
  #session;
  #node;
  #follows;
  #closed = false;

  static {
    inside = (x, where) => {
      if (typeof x !== 'object' || x === null || !(#node in x)) return undefined;
      if (x.#closed) throw failure('ErrClosed', where, 'the expression was closed');
      return {session: x.#session, node: x.#now};
    };
    memoryOf = (matrix) => /** @type {Memory} */ (matrix.#now.memory);
    move = (matrix, leaf) => { matrix.#node = leaf; };
  }

  /** @param {Session} session @param {Node} node @param {boolean} [follows] whether it is a matrix, which may become another one */
  constructor(session, node, follows = false) {
    this.#session = session;
    this.#node = node;
    this.#follows = follows;
  }

  /** The node. What a matrix was to become and Go refused is taken back. */
  get #now() {
    while (this.#follows && this.#node.memory?.refused) this.#node = /** @type {Node} */ (this.#node.memory.previous);
    return this.#node;
  }

  get rows() { return this.#now.rows; }
  get cols() { return this.#now.cols; }
  /** @returns {[number, number]} */
  get shape() { return [this.#now.rows, this.#now.cols]; }
  get size() { return this.#now.rows * this.#now.cols; }
  get dtype() { return this.#now.type.name; }

  /** @param {string} where @returns {Node} */
  #use(where) {
    if (this.#closed) throw failure('ErrClosed', where, 'the expression was closed');
    return this.#now;
  }

  /** @param {Node} node */
  #make(node) {
    return new Expr(this.#session, node);
  }

  /** @param {string} where @param {number} op */
  #map(where, op) {
    return this.#make(nodes.unary(where, op, this.#use(where)));
  }

  /** @param {string} where @param {number} op @param {unknown} y */
  #with(where, op, y) {
    const node = this.#use(where);
    return this.#make(nodes.binary(where, op, node, this.#operand(where, y)));
  }

  /** @param {string} where @param {unknown} y @returns {Node} */
  #operand(where, y) {
    if (typeof y === 'number') return nodes.scalar(where, this.#now.type, y);
    if (typeof y !== 'object' || y === null || !(#node in y)) {
      throw failure('ErrInvalid', where, `${show(y)} is neither a matrix nor a number`);
    }
    if (y.#session !== this.#session) throw failure('ErrForeign', where, 'operands of two devices');
    return y.#use(where);
  }

  /** @param {unknown} y */
  matmul(y) {
    const node = this.#use('matmul');
    if (typeof y === 'number') throw failure('ErrInvalid', 'matmul', 'a number; to scale, use mul');
    return this.#make(nodes.product('matmul', node, this.#operand('matmul', y)));
  }

  // Element by element.

  /** @param {unknown} y */ add(y) { return this.#with('add', Op.Add, y); }
  /** @param {unknown} y */ sub(y) { return this.#with('sub', Op.Sub, y); }
  /** @param {unknown} y */ mul(y) { return this.#with('mul', Op.Mul, y); }
  /** @param {unknown} y */ div(y) { return this.#with('div', Op.Div, y); }
  /** @param {unknown} y */ minimum(y) { return this.#with('minimum', Op.Min, y); }
  /** @param {unknown} y */ maximum(y) { return this.#with('maximum', Op.Max, y); }
  /** @param {unknown} y */ equal(y) { return this.#with('equal', Op.Eq, y); }
  /** @param {unknown} y */ notEqual(y) { return this.#with('notEqual', Op.Ne, y); }
  /** @param {unknown} y */ less(y) { return this.#with('less', Op.Lt, y); }
  /** @param {unknown} y */ lessEqual(y) { return this.#with('lessEqual', Op.Le, y); }
  /** @param {unknown} y */ greater(y) { return this.#with('greater', Op.Gt, y); }
  /** @param {unknown} y */ greaterEqual(y) { return this.#with('greaterEqual', Op.Ge, y); }
  /** @param {unknown} y */ logicalAnd(y) { return this.#with('logicalAnd', Op.And, y); }
  /** @param {unknown} y */ logicalOr(y) { return this.#with('logicalOr', Op.Or, y); }

  neg() { return this.#map('neg', Op.Neg); }
  abs() { return this.#map('abs', Op.Abs); }
  sign() { return this.#map('sign', Op.Sign); }
  floor() { return this.#map('floor', Op.Floor); }
  ceil() { return this.#map('ceil', Op.Ceil); }
  round() { return this.#map('round', Op.Round); }
  trunc() { return this.#map('trunc', Op.Trunc); }
  square() { return this.#map('square', Op.Square); }
  sqrt() { return this.#map('sqrt', Op.Sqrt); }
  exp() { return this.#map('exp', Op.Exp); }
  log() { return this.#map('log', Op.Log); }
  sin() { return this.#map('sin', Op.Sin); }
  cos() { return this.#map('cos', Op.Cos); }
  tanh() { return this.#map('tanh', Op.Tanh); }
  sigmoid() { return this.#map('sigmoid', Op.Sigmoid); }
  relu() { return this.#map('relu', Op.Relu); }
  reciprocal() { return this.#map('reciprocal', Op.Recip); }
  logicalNot() { return this.#map('logicalNot', Op.Not); }

  /** @param {unknown} y */
  pow(y) {
    if (typeof y !== 'number') return this.#with('pow', Op.Pow, y);
    return this.#make(nodes.power('pow', this.#use('pow'), y));
  }

  /** @param {unknown} low @param {unknown} high */
  clamp(low, high) {
    const node = this.#use('clamp');
    return this.#make(nodes.ternary('clamp', Op.Clamp, node, this.#operand('clamp', low), this.#operand('clamp', high)));
  }

  /** @param {unknown} name */
  astype(name) {
    return this.#make(nodes.cast(this.#use('astype'), dtypeOf('astype', name, this.#now.type)));
  }

  /** @param {unknown} fn @param {...unknown} more */
  apply(fn, ...more) {
    return applied('apply', fn, [this, ...more]);
  }

  // Reductions.

  /** @param {{axis?: unknown}} [options] */ sum(options) { return this.#reduce('sum', Reduction.Sum, options); }
  /** @param {{axis?: unknown}} [options] */ max(options) { return this.#reduce('max', Reduction.Max, options); }
  /** @param {{axis?: unknown}} [options] */ min(options) { return this.#reduce('min', Reduction.Min, options); }
  /** @param {{axis?: unknown}} [options] */ prod(options) { return this.#reduce('prod', Reduction.Prod, options); }

  /** @param {string} where @param {number} what @param {unknown} options */
  #reduce(where, what, options) {
    return this.#make(nodes.reduce(where, what, this.#use(where), axisOf(where, options)));
  }

  /** @param {{axis?: unknown}} [options] */
  mean(options) {
    const node = this.#use('mean');
    if (!node.type.real) throw failure('ErrUnsupported', 'mean', `not defined for ${node.type.name}`);
    const sum = nodes.reduce('mean', Reduction.Sum, node, axisOf('mean', options));
    const count = node.rows * node.cols / (sum.rows * sum.cols); // NaN where there is nothing and no result either
    return this.#make(nodes.binary('mean', Op.Mul, sum, nodes.scalar('mean', node.type, 1 / count)));
  }

  softmax() { return this.#map('softmax', Op.Softmax); }
  logSoftmax() { return this.#map('logSoftmax', Op.LogSoftmax); }

  // Parts and other arrangements. Of a matrix they are views, which share its memory.

  get T() { return this.transpose(); }

  transpose() { return arranged(this.#session, nodes.transpose(this.#use('transpose'))); }

  /** @param {number} [i] @param {number} [k] @param {number} [j] @param {number} [l] */
  slice(i = 0, k = this.rows, j = 0, l = this.cols) {
    return arranged(this.#session, nodes.slice('slice', this.#use('slice'), i, k, j, l));
  }

  /** @param {number} i */
  row(i) {
    return arranged(this.#session, nodes.slice('row', this.#use('row'), i, nodes.after(i), 0, this.cols));
  }

  /** @param {number} j */
  col(j) {
    return arranged(this.#session, nodes.slice('col', this.#use('col'), 0, this.rows, j, nodes.after(j)));
  }

  /** @param {number} rows @param {number} cols */
  reshape(rows, cols) {
    return arranged(this.#session, nodes.reshape('reshape', this.#use('reshape'), rows, cols));
  }

  // Evaluation.

  /** @returns {Matrix} */
  eval() {
    const node = this.#use('eval');
    const memory = new Memory(this.#session, node.type, node.rows, node.cols, false, node.cols, 'owned');
    const leaf = memory.leaf();
    this.#session.eval(leaf, memory, node);
    return newMatrix(this.#session, leaf);
  }

  /** @param {unknown} [into] */
  async read(into) {
    const node = this.#use('read');
    this.#session.check();
    const array = guard('read', () => destination(node, into));
    return this.#session.read(node, array);
  }

  /** @returns {Promise<number>} */
  async value() {
    const node = this.#use('value');
    if (node.rows !== 1 || node.cols !== 1) throw failure('ErrShape', 'value', `${node.rows}x${node.cols} is not 1x1`);
    /** @type {Expr} */
    const wide = node.type === FLOAT16 ? this.astype('float32') : this;
    return (await wide.read())[0];
  }

  close() {
    this.#closed = true;
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletExpr'; }
}

/** What is behind an object of ours. @param {unknown} x @param {string} where */
export function own(x, where) {
  const part = inside(x, where);
  if (!part) throw failure('ErrInvalid', where, `called on ${show(x)}`);
  return part;
}

/** A part of a matrix or another arrangement of it, in the same memory. */
export class View extends Expr {
  /** @param {unknown} x */
  assign(x) {
    const {session, node: target} = own(this, 'assign');
    if (typeof x === 'number') session.assign(target, nodes.filled('assign', target.type, target.rows, target.cols, x));
    else session.assign(target, valueFor('assign', this, x));
    return this;
  }
}

/** What is to be assigned, of the element type of the target. @param {string} where @param {View} target @param {unknown} x */
export function valueFor(where, target, x) {
  const {list: [to, node]} = operands(where, [target, x]);
  if (node.type !== to.type) throw failure('ErrInvalid', where, `${node.type.name} to ${to.type.name}; convert with astype`);
  return node;
}
