// SPDX-License-Identifier: Apache-2.0

import {most, sized} from './arguments.mjs';
import {destination} from './data.mjs';
import {COMPLEX64, FLOAT16, FLOAT32, dtypeOf, numbersIn} from './dtype.mjs';
import {failure, guard, show} from './errors.mjs';
import {funcRef} from './func.mjs';
import {INSPECT, printArray, tag} from './inspect.mjs';
import {remember} from './known.mjs';
import {Memory} from './memory.mjs';
import * as nodes from './node.mjs';
import {numpyMethods} from './numpy.mjs';
import {methods, shapings} from './operations.mjs';
import {Reduction, Shaping} from './protocol.mjs';
import {indexBounds, partOf} from './ranges.mjs';
import {flag, readAxis, signalOf} from './source.mjs';

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./matrix.mjs').Matrix} Matrix */

/** @type {any} */ (Symbol).dispose ??= Symbol.for('Symbol.dispose');

/** What is behind an expression; undefined for anything else. @type {(x: unknown, where: string) => {session: Session, node: Node} | undefined} */
export let inside;

/** The memory of a matrix, closed or not. @type {(matrix: Matrix) => Memory} */
export let memoryOf;

/** Reads the elements for another call. @type {(x: Expr, where: string, args: unknown[]) => Promise<any>} */
export let readFor;

/** Makes a matrix stand for other memory. @type {(matrix: Matrix, leaf: Node) => void} */
export let move;

/** Whether something is a matrix in memory. @type {(x: unknown) => x is Matrix} */
export let isMatrix;

/** Makes the object of a matrix. It is a class derived from those here, in matrix.mjs. @type {(session: Session, leaf: Node) => Matrix} */
export let newMatrix;

/** Evaluates a sparse expression, in sparse.mjs. @type {(where: string, session: Session, node: Node, options: unknown) => Promise<import('./sparse.mjs').Sparse>} */
let sparsely;

/** @param {typeof sparsely} evaluate */
export function useSparse(evaluate) {
  sparsely = evaluate;
}

/** Makes a tensor, in tensor-expr.mjs. @type {(session: Session, node: Node, shape: unknown[]) => import('./tensor-expr.mjs').Tensor} */
let newTensor;

/** What is behind a tensor. @type {(x: unknown, where: string) => object | undefined} */
let insideTensor;

/** @param {typeof newTensor} make @param {typeof insideTensor} inside */
export function useTensor(make, inside) {
  newTensor = make;
  insideTensor = inside;
}

/** Draws on a canvas, in pictures.mjs. @type {(session: Session, x: Expr, shape: readonly number[], tensor: boolean, canvas: unknown, options: unknown) => Promise<void>} */
export let drawn;

/** @param {typeof drawn} draw */
export function usePictures(draw) {
  drawn = draw;
}

/** Saves what there is in a file, in files.mjs. @type {(session: Session, entries: unknown, options: unknown) => Promise<Blob>} */
export let saveFile;

/** @param {typeof saveFile} save */
export function useFiles(save) {
  saveFile = save;
}

/** @param {new (session: Session, leaf: Node) => Matrix} Class */
export function useMatrix(Class) {
  newMatrix = (session, leaf) => new Class(session, leaf);
}

/**
 * Operands as nodes of one element type: a number takes that of the first operand that is none.
 * @param {string} where @param {unknown[]} values @param {boolean} [any] whether the function of Gpu takes tensors beside matrices
 * @returns {{session: Session, list: Node[]}}
 */
export function operands(where, values, any = false) {
  /** @type {{session: Session, node: Node} | undefined} */
  let first;
  const parts = [];
  for (const value of values) {
    if (typeof value === 'number') {
      parts.push(value);
      continue;
    }
    const part = inside(value, where);
    if (!part && insideTensor(value, where)) throw failure('ErrInvalid', where, `a tensor; use its expr()${any ? `, or gpu.${where}` : ''}`);
    if (!part) throw failure('ErrInvalid', where, `${show(value)} is neither a matrix nor a number`);
    first ??= part;
    if (part.session !== first.session) throw failure('ErrForeign', where, 'operands of two devices');
    parts.push(part.node);
  }
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
  const {session, list} = operands(where, args, true);
  if (session !== func.session) throw failure('ErrForeign', where, 'a function of another device');
  return new Expr(session, nodes.call(where, func, list));
}

/** The option of what runs along rows by default. @param {string} where @param {unknown} options */
function axisOf(where, options) {
  const {axis = 1} = readAxis(where, options, ['axis']);
  return axis;
}

/** @param {unknown} a @param {string} where @param {number} what @param {Record<string, any>} o options @param {number} number */
function reduced(a, where, what, o, number) {
  const {session, node} = own(a, where);
  if (o.keepDims !== undefined && !flag(where, o, 'keepDims')) throw failure('ErrInvalid', where, 'keepDims false: a matrix keeps both dimensions; those of x.tensor(rows, cols) can go');
  return new Expr(session, nodes.reduce(where, what, node, o.axis, number));
}

/** A part of a matrix is a view; a part of anything else is yet to be computed. @param {Session} session @param {Node} node @returns {Expr} */
const arranged = (session, node) => node.steps ? new View(session, node) : new Expr(session, node);

/** How the methods of an expression, which operations.mjs lists, are computed. */
const make = {
  /** @param {unknown} a @param {string} where @param {number} op @returns {Expr} */
  unary(a, where, op) {
    const {session, node} = own(a, where);
    return new Expr(session, nodes.unary(where, op, node));
  },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} b @returns {Expr} */
  binary(a, where, op, b) {
    const {session, list: [x, y]} = operands(where, [a, b], true);
    return new Expr(session, nodes.binary(where, op, x, y));
  },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} b @returns {Expr} */
  power(a, where, op, b) {
    if (typeof b !== 'number') return make.binary(a, where, op, b);
    const {session, node} = own(a, where);
    return new Expr(session, nodes.power(where, node, b));
  },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} low @param {unknown} high @returns {Expr} */
  limits(a, where, op, low, high) {
    const {session, list: [x, y, z]} = operands(where, [a, low, high]);
    return new Expr(session, nodes.ternary(where, op, x, y, z));
  },

  /** @param {unknown} a @param {string} where @param {number} _ @param {unknown} b @returns {Expr} */
  product(a, where, _, b) {
    if (typeof b === 'number') throw failure('ErrInvalid', where, 'a number; to scale, use mul');
    const {session, list: [x, y]} = operands(where, [a, b]);
    return new Expr(session, nodes.product(where, x, y));
  },

  /** @param {unknown} a @param {string} where @param {number} what @param {unknown} options @param {number} [number] @returns {Expr} */
  reduce(a, where, what, options, number = 0) {
    return reduced(a, where, what, readAxis(where, options, what === Reduction.Trace ? [] : ['axis', 'keepDims']), number);
  },

  /** @param {unknown} a @param {string} where @param {number} what @param {unknown} options @returns {Expr} */
  spread(a, where, what, options) {
    const o = readAxis(where, options, ['axis', 'keepDims', 'ddof']);
    return reduced(a, where, what, o, nodes.numberOf(where, o.ddof ?? 0));
  },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} options @returns {Expr} */
  normalise(a, where, op, options) {
    const {session, node} = own(a, where);
    return new Expr(session, nodes.normalise(where, op, node, axisOf(where, options)));
  },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} options @returns {Expr} */
  order(a, where, op, options) {
    const {session, node} = own(a, where);
    return new Expr(session, nodes.sorted(where, op, node, axisOf(where, options)));
  },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} k @param {unknown} options @returns {Expr} */
  topmost(a, where, op, k, options) {
    const {session, node} = own(a, where);
    return new Expr(session, nodes.sorted(where, op, node, axisOf(where, options), nodes.numberOf(where, k)));
  },

  /** @param {unknown} a @param {string} where @param {number} what @param {unknown} p @param {unknown} options @returns {Expr} */
  norm(a, where, what, p, options) {
    return make.reduce(a, where, what, options, nodes.numberOf(where, p));
  },
};

/**
 * @param {unknown} a @param {string} where @param {number} what @param {number} count of further operands @param {number} numbers at most
 * @param {unknown[]} x @param {(...args: any[]) => number[]} shape @returns {Expr}
 */
function shaped(a, where, what, count, numbers, x, shape) {
  most(where, x, count + numbers);
  const others = x.slice(0, count);
  while (others.length < count) others.push(undefined);
  const number = what === Shaping.Complex ? undefined : others.find((one) => typeof one === 'number');
  if (number !== undefined) throw failure('ErrInvalid', where, `${number} is no matrix`);
  const {session, list} = operands(where, [a, ...others]);
  return new Expr(session, nodes.shaped(where, what, list[0].type, list, x.slice(count, count + numbers), shape));
}

/** A computation that has not run yet. */
export class Expr extends numpyMethods(shapings(methods(make), shaped)) {
  #session;
  #node;
  #follows;
  #closed = false;

  static {
    tag(this, 'Expr');
    inside = (x, where) => {
      if (typeof x !== 'object' || x === null || !(#node in x)) return undefined;
      if (x.#closed) throw failure('ErrClosed', where, 'the expression was closed');
      return {session: x.#session, node: x.#now};
    };
    isMatrix = /** @type {typeof isMatrix} */ ((x) => typeof x === 'object' && x !== null && #node in x && x.#follows);
    memoryOf = (matrix) => /** @type {Memory} */ (matrix.#now.memory);
    readFor = (x, where, args) => x.#read(where, args);
    move = (matrix, leaf) => { matrix.#node = leaf; };
  }

  /** @param {Session} session @param {Node} node @param {boolean} [follows] whether it is a matrix, which may become another one */
  constructor(session, node, follows = false) {
    super();
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

  /** @param {...unknown} x the name */
  astype(...x) {
    most('astype', x, 1);
    return new Expr(this.#session, nodes.cast('astype', this.#use('astype'), dtypeOf('astype', x[0])));
  }

  /** @param {unknown} fn @param {...unknown} more */
  apply(fn, ...more) {
    return applied('apply', fn, [this, ...more]);
  }

  // Parts and other arrangements. Of a matrix they are views, which share its memory.

  get T() { return this.transpose(); }

  /** @param {...unknown} x */
  transpose(...x) {
    most('transpose', x, 0);
    return arranged(this.#session, nodes.transpose(this.#use('transpose')));
  }

  /** @param {...unknown} ranges rows and columns, each [from, to], an index or null, or an object of both */
  slice(...ranges) {
    const node = this.#use('slice');
    return arranged(this.#session, nodes.slice('slice', node, ...partOf('slice', ranges, node.rows, node.cols)));
  }

  /** @param {...unknown} x its number */
  row(...x) {
    most('row', x, 1);
    const node = this.#use('row');
    return arranged(this.#session, nodes.slice('row', node, ...indexBounds('row', x[0], node.rows), 0, node.cols));
  }

  /** @param {...unknown} x its number */
  col(...x) {
    most('col', x, 1);
    const node = this.#use('col');
    return arranged(this.#session, nodes.slice('col', node, 0, node.rows, ...indexBounds('col', x[0], node.cols)));
  }

  /** @param {...unknown} sizes */
  reshape(...sizes) {
    const [rows, cols] = sized('reshape', sizes, 0, 2);
    return arranged(this.#session, nodes.reshape('reshape', this.#use('reshape'), rows, cols));
  }

  /** @param {...unknown} shape */
  tensor(...shape) { return newTensor(this.#session, this.#use('tensor'), shape); }

  // Evaluation.

  /** @param {...unknown} x @returns {Matrix} */
  eval(...x) {
    most('eval', x, 0);
    const node = this.#use('eval');
    const memory = new Memory(this.#session, node.type, node.rows, node.cols, false, node.cols, 'owned');
    const leaf = memory.leaf();
    this.#session.eval(leaf, memory, node);
    return newMatrix(this.#session, leaf);
  }

  /** @param {unknown} [options] */
  async sparse(options) {
    return sparsely('sparse', this.#session, this.#use('sparse'), options);
  }

  /** @param {...unknown} values */
  with(...values) {
    most('with', values, 1);
    const {session, list: [x, v]} = operands('with', [this, values[0]]);
    return new Expr(session, nodes.withValues('with', x, v));
  }

  /** @param {...unknown} x an array and the options, each of which may be left out */
  read(...x) { return this.#read('read', x); }

  /** @param {string} where the call that reads @param {unknown[]} x its arguments */
  async #read(where, x) {
    most(where, x, 2);
    const node = this.#use(where);
    this.#session.check();
    let [into, options] = x;
    if (options === undefined && typeof into === 'object' && into !== null && !ArrayBuffer.isView(into)) [into, options] = [undefined, into];
    const signal = signalOf(where, options), array = guard(where, () => destination(node, into));
    const {memory} = node, writes = memory?.store.writes, needed = numbersIn(node.type, node.rows * node.cols);
    await this.#session.read(node, array, signal, where);
    if (array.length < needed) throw failure('ErrShort', where, `${array.length} elements for ${node.rows}x${node.cols}: the array was transferred or resized meanwhile`);
    if (memory && !node.sparse && memory.store.writes === writes && !memory.closed) remember(memory, array, false);
    return array;
  }

  /** @param {unknown} [options] @returns {Promise<number>} */
  async value(options) {
    const node = this.#use('value');
    if (node.rows !== 1 || node.cols !== 1) throw failure('ErrShape', 'value', `${node.rows}x${node.cols} is not 1x1`);
    if (node.type === COMPLEX64) throw failure('ErrUnsupported', 'value', 'a complex number is two; read has both');
    /** @type {Expr} */
    const wide = node.type === FLOAT16 ? this.astype('float32') : this;
    return (await wide.#read('value', [undefined, options]))[0];
  }

  /** The only element, or that of a row and a column. @param {...unknown} at @returns {Promise<number>} */
  async item(...at) {
    if (at.length === 0) return this.value();
    const where = 'item', node = this.#use(where);
    if (at.length !== 2) throw failure('ErrInvalid', where, `${at.length} indices; it takes a row and a column, or none of a 1x1 result`);
    const bounds = /** @type {const} */ ([...indexBounds(where, at[0], node.rows), ...indexBounds(where, at[1], node.cols)]);
    return new Expr(this.#session, nodes.slice(where, node, ...bounds)).value();
  }

  /** @param {unknown} canvas @param {unknown} [options] */
  async toCanvas(canvas, options) {
    const {rows, cols} = this.#use('toCanvas');
    return drawn(this.#session, this, [rows, cols], false, canvas, options);
  }

  /** @param {unknown} [options] */
  async explain(options) {
    const node = this.#use('explain');
    return new Plan(await this.#session.explain(node, signalOf('explain', options)));
  }

  /** @param {unknown} options */
  async save(options) {
    return saveFile(own(this, 'save').session, this, options);
  }

  close() {
    this.#closed = true;
  }

  [Symbol.dispose]() {
    this.close();
  }

  toString() {
    return printArray(() => ({kind: /** @type {any} */ (this)[Symbol.toStringTag].slice('Sublet'.length), session: this.#session, node: this.#now, shape: this.shape, closed: this.#closed}));
  }

  [INSPECT]() { return this.toString(); }
}

/** How an expression is computed. */
class Plan {
  #text;

  /** @param {any[]} answer of Go's */
  constructor([text, temporaries, temporaryBytes, launches]) {
    this.#text = text;
    this.kernels = launches.map((/** @type {any[]} */ [kernel, x, y, z, rows, cols, dtype, bytesRead, bytesWritten, wgsl]) => (
      {kernel, groups: [x, y, z], rows, cols, dtype, bytesRead, bytesWritten, wgsl}));
    const sum = (/** @type {'bytesRead' | 'bytesWritten'} */ what) => this.kernels.reduce((/** @type {number} */ n, /** @type {any} */ k) => n + k[what], 0);
    this.bytesRead = sum('bytesRead');
    this.bytesWritten = sum('bytesWritten');
    this.temporaries = temporaries;
    this.temporaryBytes = temporaryBytes;
  }

  /** @returns {string} */
  toString() { return this.#text; }
}

/** What is behind an object of ours. @param {unknown} x @param {string} where */
export function own(x, where) {
  const part = inside(x, where);
  if (!part) throw failure('ErrInvalid', where, `called on ${show(x)}`);
  return part;
}

/** A part of a matrix or another arrangement of it, in the same memory. */
export class View extends Expr {
  static { tag(this, 'View'); }

  /** @param {...unknown} values one */
  assign(...values) {
    most('assign', values, 1);
    const {session, node: target} = own(this, 'assign'), [x] = values;
    if (typeof x === 'number') session.assign(target, nodes.filled('assign', target.type, target.rows, target.cols, x));
    else session.assign(target, valueFor('assign', this, x));
    return this;
  }
}

/** What is to be assigned, of the element type of the target. @param {string} where @param {View} target @param {unknown} x */
export function valueFor(where, target, x) {
  const {list: [to, node]} = operands(where, [target, x]);
  if (node.type !== to.type && !(node.type === FLOAT32 && to.type === COMPLEX64)) throw failure('ErrInvalid', where, `${node.type.name} to ${to.type.name}; convert with astype`);
  return node;
}
