// SPDX-License-Identifier: Apache-2.0

import {dataOf, destination} from './data.mjs';
import {FLOAT16, dtypeOf} from './dtype.mjs';
import {failure, guard, show} from './errors.mjs';
import {funcRef} from './func.mjs';
import {Memory} from './memory.mjs';
import * as nodes from './node.mjs';
import {Op, Reduction} from './protocol.mjs';

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./session.mjs').Session} Session */

/** @type {any} */ (Symbol).dispose ??= Symbol.for('Symbol.dispose');

/** What is behind an expression; undefined for anything else. @type {(x: unknown, where: string) => {session: Session, node: Node} | undefined} */
export let inside;

/** The memory of a matrix, closed or not. @type {(matrix: Matrix) => Memory} */
let memoryOf;

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
  #closed = false;

  static {
    inside = (x, where) => {
      if (typeof x !== 'object' || x === null || !(#node in x)) return undefined;
      if (x.#closed) throw failure('ErrClosed', where, 'the expression was closed');
      return {session: x.#session, node: x.#node};
    };
    memoryOf = (matrix) => /** @type {Memory} */ (matrix.#node.memory);
  }

  /** @param {Session} session @param {Node} node */
  constructor(session, node) {
    this.#session = session;
    this.#node = node;
  }

  get rows() { return this.#node.rows; }
  get cols() { return this.#node.cols; }
  /** @returns {[number, number]} */
  get shape() { return [this.#node.rows, this.#node.cols]; }
  get size() { return this.#node.rows * this.#node.cols; }
  get dtype() { return this.#node.type.name; }

  /** @param {string} where @returns {Node} */
  #use(where) {
    if (this.#closed) throw failure('ErrClosed', where, 'the expression was closed');
    return this.#node;
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
    if (typeof y === 'number') return nodes.scalar(where, this.#node.type, y);
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
    return this.#make(nodes.cast(this.#use('astype'), dtypeOf('astype', name, this.#node.type)));
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
    return new Matrix(this.#session, leaf);
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
function own(x, where) {
  const part = inside(x, where);
  if (!part) throw failure('ErrInvalid', where, `called on ${show(x)}`);
  return part;
}

/** A part of a matrix or another arrangement of it, in the same memory. */
export class View extends Expr {
  /** @param {unknown} x */
  assign(x) {
    const where = 'assign';
    const {session, node: target} = own(this, where);
    if (typeof x === 'number') {
      session.assign(target, nodes.filled(where, target.type, target.rows, target.cols, x));
      return this;
    }
    const {list: [, node]} = operands(where, [this, x]);
    if (node.type !== target.type) throw failure('ErrInvalid', where, `${node.type.name} to ${target.type.name}; convert with astype`);
    session.assign(target, node);
    return this;
  }
}

/** A matrix in memory. */
export class Matrix extends View {
  get mode() { return memoryOf(this).mode; }
  get order() { return memoryOf(this).byColumns ? 'column' : 'row'; }
  get stride() { return memoryOf(this).stride; }
  get offset() { return memoryOf(this).offset; }
  get closed() { return memoryOf(this).closed; }

  /** @param {unknown} values */
  set(values) {
    const {session, node} = own(this, 'set');
    const memory = /** @type {Memory} */ (node.memory);
    if (memory.mode !== 'owned') throw failure('ErrUnsupported', 'set', 'the memory is not owned: write to it yourself and call touch()');
    memory.use('set');
    const {bytes, copy} = guard('set', () => dataOf('set', memory.type, memory.span, values));
    if (bytes.length > 0) session.setData(memory, bytes, copy);
    return this;
  }

  async sync() {
    const {session, node} = own(this, 'sync');
    return session.sync(/** @type {Memory} */ (node.memory));
  }

  touch() {
    const {session, node} = own(this, 'touch');
    session.touch(/** @type {Memory} */ (node.memory));
    return this;
  }

  /** @param {boolean} write @param {(data: any) => unknown} fn */
  async access(write, fn) {
    const where = 'access';
    const {session, node} = own(this, where);
    const memory = /** @type {Memory} */ (node.memory);
    if (typeof fn !== 'function') throw failure('ErrInvalid', where, `${show(fn)} is no function`);
    if (memory.mode !== 'mapped') throw failure('ErrUnsupported', where, 'the matrix is not mapped: see read() and set()');
    const current = session.sync(memory);
    memory.locked = true;
    try {
      await current;
    } catch (error) {
      memory.locked = false;
      throw error;
    }
    try {
      return await fn(memory.host);
    } finally {
      memory.locked = false;
      if (write && !memory.closed) session.touch(memory);
    }
  }

  /** @returns {Promise<GPUBuffer>} */
  get buffer() {
    return (async () => {
      const {session, node} = own(this, 'buffer');
      return session.buffer(/** @type {Memory} */ (node.memory));
    })();
  }

  close() {
    memoryOf(this).close();
    super.close();
  }
}
