// SPDX-License-Identifier: Apache-2.0

import {most} from './arguments.mjs';
import {dtypeOf} from './dtype.mjs';
import {failure, guard, show} from './errors.mjs';
import {Expr, drawn, inside, saveFile, useTensor} from './expr.mjs';
import {funcRef} from './func.mjs';
import {INSPECT, printArray, tag} from './inspect.mjs';
import * as nodes from './node.mjs';
import {methods} from './operations.mjs';
import {owns} from './owned.mjs';
import {Reduction} from './protocol.mjs';
import {indexBounds} from './ranges.mjs';
import {flag, read, readAxis} from './source.mjs';
import * as parts from './tensor-node.mjs';

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./matrix.mjs').Matrix} Matrix */
/** @typedef {parts.Part} Part */

/** What is behind a tensor; undefined for anything else. @type {(x: unknown, where: string) => (Part & {session: Session}) | undefined} */
export let insideTensor;

/** What is behind a tensor, or behind an expression as one of two dimensions. @param {unknown} x @param {string} where @returns {(Part & {session: Session}) | undefined} */
export function insideEither(x, where) {
  const tensor = insideTensor(x, where), matrix = tensor ? undefined : inside(x, where);
  return tensor ?? (matrix && {...matrix, shape: [matrix.node.rows, matrix.node.cols]});
}

/** @param {unknown} x @param {string} where */
function own(x, where) {
  const part = insideTensor(x, where);
  if (!part) throw failure('ErrInvalid', where, `called on ${show(x)}`);
  return part;
}

/** Operands as tensors of one device: a number takes the element type of the first that is none. @param {string} where @param {unknown[]} values @returns {{session: Session, list: Part[]}} */
export function tensorOperands(where, values) {
  /** @type {(Part & {session: Session}) | undefined} */
  let first;
  const list = values.map((value) => {
    if (typeof value === 'number') return value;
    const part = insideEither(value, where);
    if (!part) throw failure('ErrInvalid', where, `${show(value)} is neither a tensor, a matrix nor a number`);
    first ??= part;
    if (part.session !== first.session) throw failure('ErrForeign', where, 'operands of two devices');
    return part;
  });
  if (!first) throw failure('ErrInvalid', where, 'one operand must be a tensor');
  const {session, node: {type}} = first;
  return {session, list: list.map((x) => typeof x === 'number' ? {node: nodes.scalar(where, type, x), shape: []} : x)};
}

/** @param {Session} session @param {Part} part */
const made = (session, {node, shape}) => new Tensor(session, node, shape);

/** An element-wise operation. @param {string} where @param {number} op @param {unknown[]} values */
export function zipped(where, op, values) {
  const {session, list} = tensorOperands(where, values);
  return made(session, parts.zip(where, op, list));
}

/** What an operation of one matrix makes of the elements. @param {unknown} a @param {string} where @param {(node: Node) => Node} f */
function mapped(a, where, f) {
  const {session, node, shape} = own(a, where);
  return made(session, {node: f(node), shape});
}

/** @param {unknown} a @param {string} where @param {unknown} axis @param {(x: Node, axis: number) => Node} f */
function along(a, where, axis, f) {
  const part = own(a, where);
  return made(part.session, parts.along(where, part, axis, f));
}

/** @param {string} where @param {unknown} options */
function axisOf(where, options) {
  const {axis = -1} = readAxis(where, options, ['axis']);
  return axis;
}

/** @param {unknown} a @param {string} where @param {number} what @param {Record<string, any>} o @param {number} number */
function reduced(a, where, what, o, number) {
  const part = own(a, where);
  return made(part.session, parts.reduce(where, what, part, o.axis, flag(where, o, 'keepDims'), number));
}

/** How the methods of a tensor, which operations.mjs lists, are computed. */
const make = {
  /** @param {unknown} a @param {string} where @param {number} op @returns {Tensor} */
  unary(a, where, op) { return mapped(a, where, (x) => nodes.unary(where, op, x)); },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} b @returns {Tensor} */
  binary(a, where, op, b) { return zipped(where, op, [a, b]); },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} b @returns {Tensor} */
  power(a, where, op, b) { return typeof b === 'number' ? mapped(a, where, (x) => nodes.power(where, x, b)) : zipped(where, op, [a, b]); },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} low @param {unknown} high @returns {Tensor} */
  limits(a, where, op, low, high) { return zipped(where, op, [a, low, high]); },

  /** @param {unknown} a @param {string} where @param {number} _ @param {unknown} b @returns {Tensor} */
  product(a, where, _, b) {
    if (typeof b === 'number') throw failure('ErrInvalid', where, 'a number; to scale, use mul');
    const {session, list: [x, y]} = tensorOperands(where, [a, b]);
    return made(session, parts.matmul(where, x, y));
  },

  /** @param {unknown} a @param {string} where @param {number} what @param {unknown} options @param {number} [number] @returns {Tensor} */
  reduce(a, where, what, options, number = 0) {
    return reduced(a, where, what, readAxis(where, options, what === Reduction.Trace ? [] : ['axis', 'keepDims']), number);
  },

  /** @param {unknown} a @param {string} where @param {number} what @param {unknown} options @returns {Tensor} */
  spread(a, where, what, options) {
    const o = readAxis(where, options, ['axis', 'keepDims', 'ddof']);
    return reduced(a, where, what, o, nodes.numberOf(where, o.ddof ?? 0));
  },

  /** @param {unknown} a @param {string} where @param {number} what @param {unknown} p @param {unknown} options @returns {Tensor} */
  norm(a, where, what, p, options) { return make.reduce(a, where, what, options, nodes.numberOf(where, p)); },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} options @returns {Tensor} */
  normalise(a, where, op, options) {
    const axis = axisOf(where, options);
    if (axis === null) return mapped(a, where, (x) => nodes.normalise(where, op, x, null));
    return along(a, where, axis, (x, axis) => nodes.normalise(where, op, x, axis));
  },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} options @returns {Tensor} */
  order(a, where, op, options) { return along(a, where, axisOf(where, options), (x, axis) => nodes.sorted(where, op, x, axis)); },

  /** @param {unknown} a @param {string} where @param {number} op @param {unknown} k @param {unknown} options @returns {Tensor} */
  topmost(a, where, op, k, options) {
    const number = nodes.numberOf(where, k);
    return along(a, where, axisOf(where, options), (x, axis) => nodes.sorted(where, op, x, axis, number));
  },
};

/** An array of any number of dimensions: an expression with a shape. */
export class Tensor extends methods(make) {
  #session;
  #node;
  #shape;
  /** The matrix of its own that it stands for. @type {Matrix | null} */
  #owned;
  #closed = false;

  static {
    tag(this, 'Tensor');
    insideTensor = (x, where) => {
      if (typeof x !== 'object' || x === null || !(#node in x)) return undefined;
      if (x.#closed) throw failure('ErrClosed', where, 'the tensor was closed');
      return {session: x.#session, node: x.#node, shape: x.#shape};
    };
  }

  /** @param {Session} session @param {Node} node @param {readonly number[]} shape @param {Matrix | null} [owned] */
  constructor(session, node, shape, owned = null) {
    super();
    this.#session = session;
    this.#node = node;
    this.#shape = Object.freeze([...shape]);
    this.#owned = owned;
  }

  get shape() { return this.#shape; }
  get ndim() { return this.#shape.length; }
  get size() { return parts.sizeOf(this.#shape); }
  get dtype() { return this.#node.type.name; }
  get T() { return this.permute(); }

  // Other arrangements of the elements.

  /** @param {...unknown} shape */
  reshape(...shape) { return made(this.#session, parts.reshape('reshape', own(this, 'reshape'), shape)); }

  /** @param {...unknown} axes */
  permute(...axes) { return made(this.#session, parts.permute('permute', own(this, 'permute'), axes)); }

  /** @param {...unknown} axes */
  transpose(...axes) { return made(this.#session, parts.permute('transpose', own(this, 'transpose'), axes)); }

  /** @param {...unknown} ranges */
  slice(...ranges) { return made(this.#session, parts.slice('slice', own(this, 'slice'), ranges)); }

  /** @param {...unknown} shape */
  broadcastTo(...shape) {
    const where = 'broadcastTo';
    return made(this.#session, parts.broadcastTo(where, own(this, where), parts.shapeOf(where, shape)));
  }

  /** @param {...unknown} x one axis */
  expandDims(...x) {
    const where = 'expandDims', {shape} = own(this, where);
    most(where, x, 1);
    const [at] = parts.axesOf(where, [x[0]], shape.length + 1);
    return this.reshape([...shape.slice(0, at), 1, ...shape.slice(at)]);
  }

  /** @param {...unknown} axes */
  squeeze(...axes) {
    const where = 'squeeze', {shape} = own(this, where), gone = parts.axesOf(where, parts.listOf(where, axes), shape.length);
    if (gone.some((i) => shape[i] !== 1)) throw failure('ErrShape', where, `a dimension of ${parts.text(shape)} that is not 1`);
    return this.reshape(shape.filter((d, i) => gone.length > 0 ? !gone.includes(i) : d !== 1));
  }

  /** @param {...unknown} names one */
  astype(...names) {
    most('astype', names, 1);
    return mapped(this, 'astype', (x) => nodes.cast('astype', x, dtypeOf('astype', names[0])));
  }

  /** @param {unknown} fn @param {...unknown} more */
  apply(fn, ...more) { return appliedTensor('apply', fn, [this, ...more]); }

  // Complex numbers.

  /** @param {...unknown} x */
  real(...x) { return this.#each('real', (a) => a.real(...x)); }
  /** @param {...unknown} x */
  imag(...x) { return this.#each('imag', (a) => a.imag(...x)); }
  /** @param {...unknown} x */
  angle(...x) { return this.#each('angle', (a) => a.angle(...x)); }
  /** @param {...unknown} x */
  conj(...x) { return this.#each('conj', (a) => a.conj(...x)); }

  /** @param {string} where @param {(x: Expr) => Expr} f */
  #each(where, f) {
    return mapped(this, where, (x) => /** @type {{node: Node}} */ (inside(f(new Expr(this.#session, x)), where)).node);
  }

  // Evaluation.

  /** @param {...unknown} x */
  expr(...x) {
    most('expr', x, 0);
    return new Expr(this.#session, parts.matrixOf('expr', own(this, 'expr')));
  }

  /** @param {...unknown} x */
  eval(...x) {
    most('eval', x, 0);
    const part = own(this, 'eval'), matrix = new Expr(part.session, parts.matrixOf('eval', part)).eval();
    return owner(matrix, part.shape);
  }

  /** @param {...unknown} x an array and the options, each of which may be left out */
  async read(...x) {
    const {session, node} = own(this, 'read');
    return new Expr(session, node).read(...x);
  }

  /** @param {unknown} [options] @returns {Promise<number>} */
  async value(options) {
    const {session, node, shape} = own(this, 'value');
    if (node.rows * node.cols !== 1) throw failure('ErrShape', 'value', `${parts.text(shape)} is not one element`);
    return new Expr(session, node).value(options);
  }

  /** The only element, or that of the indices. @param {...unknown} at @returns {Promise<number>} */
  async item(...at) {
    if (at.length === 0) return this.value();
    const where = 'item', part = own(this, where);
    if (at.length !== part.shape.length) throw failure('ErrInvalid', where, `${at.length} indices of ${part.shape.length} dimensions`);
    at.forEach((i, axis) => indexBounds(where, i, part.shape[axis]));
    return made(part.session, parts.slice(where, part, at)).value();
  }

  /** @param {unknown} canvas @param {unknown} [options] */
  async toCanvas(canvas, options) {
    const {session, shape} = own(this, 'toCanvas'), height = shape[0] ?? 1;
    const x = shape.length < 2 ? this.expr() : this.expr().reshape(height, parts.sizeOf(shape.slice(1)));
    return drawn(session, x, shape, true, canvas, options);
  }

  /** @param {unknown} options */
  async save(options) {
    return saveFile(own(this, 'save').session, this, options);
  }

  close() {
    this.#closed = true;
    this.#owned?.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  toString() {
    return printArray(() => ({kind: 'Tensor', session: this.#session, node: this.#node, shape: this.#shape, closed: this.#closed}));
  }

  [INSPECT]() { return this.toString(); }
}

/** A tensor that closes a matrix of its own. @param {Matrix} matrix @param {readonly number[]} shape */
export function owner(matrix, shape) {
  const {session, node} = /** @type {{session: Session, node: Node}} */ (inside(matrix, 'tensor'));
  return owns(new Tensor(session, node, shape, matrix), [matrix]);
}

/** A function of the user's, applied to tensors. @param {string} where @param {unknown} fn @param {unknown[]} args */
export function appliedTensor(where, fn, args) {
  const func = funcRef(fn);
  if (!func) throw failure('ErrInvalid', where, `${show(fn)} is no function; make one with gpu.fn`);
  if (func.closed) throw failure('ErrClosed', where, `the function ${func.name} was closed`);
  if (args.length !== func.arity) throw failure('ErrInvalid', where, `${args.length} arguments for ${func.name}, which takes ${func.arity}`);
  const {session, list} = tensorOperands(where, args);
  if (session !== func.session) throw failure('ErrForeign', where, 'a function of another device');
  return made(session, parts.call(where, func, list));
}

/**
 * Makes a tensor of an expression, or of data that `matrix` makes a matrix of.
 * @param {string} where @param {any} from @param {readonly unknown[]} sizes @param {unknown} options
 * @param {(rows: number, cols: number, options: object) => Matrix} matrix
 */
export function newTensor(where, from, sizes, options, matrix) {
  const {dtype} = read(where, options, ['dtype']), part = insideEither(from, where);
  if (from === undefined) throw failure('ErrInvalid', where, 'no elements; for those that are 0, use gpu.zeros');
  if (!part) {
    const count = guard(where, () => from?.length), shape = Number.isInteger(count) ? parts.shapeFor(where, [count / (dtype === 'complex64' ? 2 : 1)], sizes) : parts.shapeOf(where, sizes);
    const last = Math.max(shape.length - 1, 0);
    return owner(matrix(parts.sizeOf(shape.slice(0, last)), parts.sizeOf(shape.slice(last)), {dtype}), shape);
  }
  const node = nodes.cast(where, part.node, dtypeOf(where, dtype, part.node.type));
  return made(part.session, parts.reshape(where, {node, shape: [node.rows, node.cols]}, sizes));
}

useTensor((session, node, sizes) => made(session, parts.reshape('tensor', {node, shape: [node.rows, node.cols]}, sizes)), insideTensor);
