// SPDX-License-Identifier: Apache-2.0

import {INT32_REDUCTIONS, OF_COMPLEX, REAL_REDUCTIONS, REDUCED_COMPLEX, Reduction, SHAPING_TYPES} from './codes.mjs';
import {COMPLEX64, DTYPES, FLOAT32, INT32, checkElement, dtypeOf, scalarBits} from './dtype.mjs';
import {failure, needs, shapeError, show} from './errors.mjs';
import {Axis, Op, REAL_ONLY, WHOLE_ONLY} from './protocol.mjs';

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {import('./memory.mjs').Memory} Memory */

/**
 * How a matrix or a part of one lies in memory: elements between two rows and between two columns.
 * @typedef {{row: number, col: number}} Steps
 */

/**
 * A part of an expression. Nodes do not change once made, except for what the encoder notes in them, and may be shared.
 */
export class Node {
  /**
   * @param {number} op @param {DType} type @param {number} rows @param {number} cols
   * @param {Node | null} a @param {Node | null} b @param {Node | null} c operands
   * @param {number[] | null} numbers further words of the instruction
   */
  constructor(op, type, rows, cols, a = null, b = null, c = null, numbers = null) {
    this.op = op;
    this.type = type;
    this.rows = rows;
    this.cols = cols;
    this.a = a;
    this.b = b;
    this.c = c;
    this.numbers = numbers;
    /** @type {Memory | null} of a leaf */
    this.memory = null;
    /** @type {Steps | null} of what can be assigned to */
    this.steps = null;
    /** @type {import('./func.mjs').FuncRef | null} of a call, and its operands */
    this.func = null;
    /** @type {Node[] | null} */
    this.args = null;
    /** Whether a sparse matrix is part of it, so that it may have any number of elements: how many, Go knows. */
    this.sparse = (a?.sparse || b?.sparse || c?.sparse) ?? false;
    // The encoder's.
    this.mark = 0;
    this.value = 0;
  }
}

/** The most elements of a matrix, and the longest dimension. */
export const MAX_ELEMENTS = 0xffffffff;

/** @param {string} where @param {unknown} rows @param {unknown} cols @param {boolean} [sparse] */
export function checkDims(where, rows, cols, sparse = false) {
  for (const n of [rows, cols]) {
    if (typeof n !== 'number' || !Number.isInteger(n)) throw failure('ErrInvalid', where, `${show(n)} is no dimension`);
    if (n < 0) throw failure('ErrSize', where, `negative dimension ${n}`);
  }
  checkElements(where, /** @type {number} */ (rows), /** @type {number} */ (cols), sparse);
}

/** @param {string} where @param {number} rows @param {number} cols @param {boolean} sparse */
function checkElements(where, rows, cols, sparse) {
  if (sparse) return;
  if (rows > MAX_ELEMENTS || cols > MAX_ELEMENTS || rows * cols > MAX_ELEMENTS) {
    throw failure('ErrLimit', where, `${rows}x${cols} has more than ${MAX_ELEMENTS} elements`);
  }
}

/** Refuses a type that an operation is not defined for. @param {string} where @param {DType} type @param {(t: DType) => boolean} takes */
function checkType(where, type, takes) {
  if (takes(type)) return;
  const list = DTYPES.filter(takes).map((t) => t.name), last = list.pop();
  const fits = list.length === DTYPES.length - 2 ? 'all others' : list.length === 0 ? last : `${list.join(', ')} and ${last}`;
  throw failure('ErrUnsupported', where, `not defined for ${type.name}, but for ${fits}; convert with astype`);
}

/** The type of what an operation makes. @param {string} where @param {number} op @param {DType} type */
function resultOf(where, op, type) {
  checkType(where, type, (t) => t === COMPLEX64 ? op in OF_COMPLEX : !(t.real ? WHOLE_ONLY : REAL_ONLY).has(op));
  return type === COMPLEX64 ? dtypeOf(where, OF_COMPLEX[op], type) : type;
}

/** The type of a number among elements of a type: a complex one is as good as one without an imaginary part. @param {DType} type */
const among = (type) => type === COMPLEX64 ? FLOAT32 : type;

/** A number among elements of a type. @param {string} where @param {DType} type @param {number} value */
export const scalar = (where, type, value) =>
  new Node(Op.Scalar, among(type), 1, 1, null, null, null, [scalarBits(where, type, value)]);

/** @param {string} where @param {DType} type @param {number} rows @param {number} cols @param {number} value */
export function filled(where, type, rows, cols, value) {
  checkElement(where, type, value);
  return cast(where, new Node(Op.Fill, among(type), rows, cols, null, null, null, [scalarBits(where, type, value), rows, cols]), type);
}

/** @param {string} where @param {number} op @param {Node} a */
export function unary(where, op, a) {
  return new Node(op, resultOf(where, op, a.type), a.rows, a.cols, a);
}

/** The type that operands are computed in: float32 may stand beside complex64. @param {string} where @param {DType} a @param {DType} b */
export function sameType(where, a, b) {
  if (a === b) return a;
  if ((a === COMPLEX64 && b === FLOAT32) || (a === FLOAT32 && b === COMPLEX64)) return COMPLEX64;
  throw failure('ErrInvalid', where, `${a.name} with ${b.name}; convert with astype`);
}

/** The type that an operation of several operands makes. @param {string} where @param {number} op @param {Node[]} args @returns {DType} */
export function typeOf(where, op, args) {
  const type = args.map((a) => a.type).reduce((a, b) => sameType(where, a, b));
  return op === Op.MatMul ? type : resultOf(where, op, type);
}

/** The common length of a dimension: 1 stretches. @param {number} a @param {number} b @returns {number} -1 if there is none */
const stretch = (a, b) => a === b || b === 1 ? a : a === 1 ? b : -1;

/** What fits, of sizes. */
const SPREAD = 'sizes have to be equal, or 1';

/** @param {string} where @param {number} op @param {Node} a @param {Node} b */
export function binary(where, op, a, b) {
  const type = resultOf(where, op, sameType(where, a.type, b.type));
  const rows = stretch(a.rows, b.rows), cols = stretch(a.cols, b.cols);
  if (rows < 0 || cols < 0) throw shapeError(where, SPREAD, a, b);
  checkElements(where, rows, cols, a.sparse || b.sparse);
  return new Node(op, type, rows, cols, a, b);
}

/** The common shape and type of operands. @param {string} where @param {Node[]} nodes */
function broadcast(where, nodes) {
  let {rows, cols, type} = nodes[0];
  for (const n of nodes) {
    type = sameType(where, type, n.type);
    const r = stretch(rows, n.rows), c = stretch(cols, n.cols);
    if (r < 0 || c < 0) throw shapeError(where, SPREAD, {rows, cols}, n);
    rows = r;
    cols = c;
  }
  checkElements(where, rows, cols, nodes.some((n) => n.sparse));
  return {rows, cols, type};
}

/** An operation of three operands. @param {string} where @param {number} op @param {Node} a @param {Node} b @param {Node} c */
export function ternary(where, op, a, b, c) {
  const {rows, cols, type} = broadcast(where, [a, b, c]);
  return new Node(op, resultOf(where, op, type), rows, cols, a, b, c);
}

/** What elements are in WGSL. @type {Record<string, string>} */
const SCALARS = {float32: 'f32', float16: 'f32', int32: 'i32', uint32: 'u32'};

/** @param {string} where @param {import('./func.mjs').FuncRef} func @param {Node[]} args */
export function call(where, func, args) {
  const {rows, cols, type} = broadcast(where, args), of = SCALARS[type.name], wrong = of && func.types.find((given) => given !== of && Object.values(SCALARS).includes(given));
  if (wrong) throw failure('ErrInvalid', where, `${func.name} is a function of ${wrong}, and the elements of ${type.name} are ${of}; convert with astype, or have one of ${of}`);
  const node = new Node(Op.Call, resultOf(where, Op.Call, type), rows, cols);
  node.func = func;
  node.args = args;
  return node;
}

/** x to a constant power: those that need no logarithm are spelled out. @param {string} where @param {Node} x @param {number} power */
export function power(where, x, power) {
  resultOf(where, Op.Pow, x.type);
  if (!x.type.real && [-1, 0.5].includes(power)) return binary(where, Op.Pow, x, scalar(where, x.type, power)); // whole numbers have no roots
  switch (power) {
    case -1: return unary(where, Op.Recip, x);
    case 0.5: return unary(where, Op.Sqrt, x);
    case 1: return x;
    case 2: return unary(where, Op.Square, x);
    case 3: return binary(where, Op.Mul, unary(where, Op.Square, x), x);
    default: return binary(where, Op.Pow, x, scalar(where, x.type, power));
  }
}

/** @param {string} where @param {Node} a @param {Node} b */
export function product(where, a, b) {
  const type = sameType(where, a.type, b.type);
  if (a.cols !== b.rows) throw shapeError(where, needs('the second factor', a.cols, 'row'), a, b);
  checkElements(where, a.rows, b.cols, a.sparse || b.sparse);
  return new Node(Op.MatMul, type, a.rows, b.cols, a, b);
}

/** A sparse matrix with other values. @param {string} where @param {Node} a @param {Node} values */
export function withValues(where, a, values) {
  sameType(where, a.type, values.type);
  return new Node(Op.With, a.type, a.rows, a.cols, a, values);
}

/** @param {Node} a */
export function transpose(a) {
  if (a.op === Op.Transpose && a.a) return a.a;
  const node = new Node(Op.Transpose, a.type, a.cols, a.rows, a);
  if (a.steps) node.steps = {row: a.steps.col, col: a.steps.row};
  return node;
}

/** Rows i to k-1 and columns j to l-1. @param {string} where @param {Node} a @param {number} i @param {number} k @param {number} j @param {number} l */
export function slice(where, a, i, k, j, l) {
  const inside = (/** @type {unknown} */ from, /** @type {unknown} */ to, /** @type {number} */ length) =>
    Number.isInteger(from) && Number.isInteger(to) && 0 <= /** @type {number} */ (from) &&
    /** @type {number} */ (from) <= /** @type {number} */ (to) && /** @type {number} */ (to) <= length;
  if (!inside(i, k, a.rows) || !inside(j, l, a.cols)) {
    throw failure('ErrIndex', where, `rows ${show(i)}:${show(k)}, columns ${show(j)}:${show(l)} of ${a.rows}x${a.cols}`);
  }
  const node = new Node(Op.Slice, a.type, k - i, l - j, a, null, null, [i, k, j, l]);
  node.steps = a.steps;
  return node;
}

/** Whether the elements lie row by row without gaps. @param {Node} a */
export function inRows(a) {
  const s = a.steps;
  return s !== null && (a.rows * a.cols === 0 || ((a.cols === 1 || s.col === 1) && (a.rows === 1 || s.row === a.cols)));
}

/** Refuses another shape of more or fewer elements. @param {string} where @param {Node} a @param {number} rows @param {number} cols */
export function checkCount(where, a, rows, cols) {
  const count = a.rows * a.cols;
  if (rows * cols !== count) throw shapeError(where, needs('another shape', count, 'element'), a, {rows, cols});
}

/** What a dimension of -1 stands for: as many as are left beside the other; -1 if that does not go. @param {string} where @param {Node} a @param {any} other */
function left(where, {rows, cols}, other) {
  checkDims(where, other, 1);
  const n = rows * cols / other;
  return Number.isSafeInteger(n) ? n : -1;
}

/** @param {string} where @param {Node} a @param {number} rows @param {number} cols */
export function reshape(where, a, rows, cols) {
  if (rows === -1) rows = left(where, a, cols);
  else if (cols === -1) cols = left(where, a, rows);
  checkDims(where, rows, cols);
  checkCount(where, a, rows, cols);
  const node = new Node(Op.Reshape, a.type, rows, cols, a, null, null, [rows, cols]);
  if (inRows(a)) node.steps = {row: cols, col: 1};
  return node;
}

/** @param {string} where @param {Node} a @param {DType} type */
export function cast(where, a, type) {
  if (a.type === type) return a;
  if (a.type === COMPLEX64) throw failure('ErrInvalid', where, `complex64 to ${type.name}; take real(), imag() or abs()`);
  return new Node(Op.Cast, type, a.rows, a.cols, a);
}

/** The number that a reduction takes. @param {string} where @param {unknown} value @returns {number} */
export function numberOf(where, value) {
  if (typeof value !== 'number') throw failure('ErrInvalid', where, `${show(value)} is not a number`);
  return value;
}

/** The reductions that are an index, of which there is none among no elements. */
const INDICES = /** @type {number[]} */ ([Reduction.ArgMax, Reduction.ArgMin]);

/**
 * @param {string} where @param {number} what @param {Node} a @param {unknown} axis
 * @param {number} number what the reduction takes
 */
export function reduce(where, what, a, axis, number) {
  checkType(where, a.type, (t) => t === COMPLEX64 ? what in REDUCED_COMPLEX : t.real || !REAL_REDUCTIONS.includes(what));
  const complex = a.type === COMPLEX64 && dtypeOf(where, REDUCED_COMPLEX[what], INT32);
  const type = complex || (INT32_REDUCTIONS.includes(what) ? INT32 : a.type);
  const along = axisOf(where, axis), none = (along === Axis.Rows ? a.cols : along === Axis.Cols ? a.rows : a.rows * a.cols) === 0;
  if (none && INDICES.includes(what) && (along === Axis.All || a.rows + a.cols > 0)) throw failure('ErrInvalid', where, `of no elements: ${a.rows}x${a.cols}`);
  const rows = along === Axis.Rows ? a.rows : 1, cols = along === Axis.Cols ? a.cols : 1;
  return new Node(Op.Reduce, type, rows, cols, a, null, null, [what, along, scalarBits(where, FLOAT32, number)]);
}

/** A sort or the like; of the k largest elements where k is given. @param {string} where @param {number} op @param {Node} a @param {unknown} axis @param {number} [k] */
export function sorted(where, op, a, axis, k) {
  checkType(where, a.type, (t) => t !== COMPLEX64 || op === Op.CumSum);
  if (axis === null) throw failure('ErrInvalid', where, 'axis null; it is 0 or 1');
  const along = axisOf(where, axis), down = along === Axis.Cols;
  const all = down ? a.rows : a.cols, kept = k ?? all;
  if (!Number.isInteger(kept) || kept < 0 || kept > all) throw failure('ErrInvalid', where, `${a.rows}x${a.cols}: ${kept} of ${all} elements`);
  const type = op === Op.ArgSort || op === Op.ArgTopK ? INT32 : a.type;
  return new Node(op, type, down ? kept : a.rows, down ? a.cols : kept, a, null, null, k === undefined ? [along] : [along, k]);
}

/** A softmax or the like. @param {string} where @param {number} op @param {Node} a @param {unknown} axis */
export function normalise(where, op, a, axis) {
  return new Node(op, resultOf(where, op, a.type), a.rows, a.cols, a, null, null, [axisOf(where, axis)]);
}

const double = new Float64Array(1);
const halves = new Uint32Array(double.buffer);

/**
 * What makes or shapes a matrix: see Shaping. Numbers at the end may be left out.
 * @param {string} where @param {number} what @param {DType} type @param {Node[]} args @param {unknown[]} numbers
 * @param {(...args: any[]) => number[]} shape rows and columns of the operands and the numbers
 */
export function shaped(where, what, type, args, numbers, shape) {
  const given = numbers.slice(0, numbers.findLastIndex((n) => n !== undefined) + 1);
  for (const n of given) numberOf(where, n);
  const [rows, cols] = shape(...args, ...numbers);
  if (given.every(Number.isFinite) && [rows, cols].some((n) => n === undefined || Number.isNaN(n))) throw failure('ErrInvalid', where, 'a number is missing');
  checkDims(where, rows, cols);
  const node = new Node(Op.Shape, dtypeOf(where, SHAPING_TYPES[what], args.some((a) => a.type === COMPLEX64) ? COMPLEX64 : type), rows, cols);
  node.args = args;
  node.numbers = [what, ...doubles(/** @type {number[]} */ (given))];
  return node;
}

/** Numbers of 64 bits, each in two words. @param {readonly number[]} list @returns {number[]} */
const doubles = (list) => list.flatMap((n) => {
  double[0] = n;
  return [...halves];
});

/**
 * An operation of package nn: see wasm/internal/bridge/nn.go.
 * @param {string} where @param {number} kind @param {DType} type @param {number} rows @param {number} cols of the result
 * @param {Node[]} args @param {readonly number[]} numbers
 */
export function layer(where, kind, type, rows, cols, args, numbers = []) {
  checkDims(where, rows, cols);
  const node = new Node(Op.Layer, type, rows, cols);
  node.args = args;
  node.numbers = [kind, ...doubles(numbers)];
  return node;
}

/** @param {string} where @param {unknown} axis NumPy's: undefined, 0 or 1, or from the end */
function axisOf(where, axis) {
  switch (axis) {
    case undefined: case null: return Axis.All;
    case 1: case -1: return Axis.Rows;
    case 0: case -2: return Axis.Cols;
    default: throw failure('ErrIndex', where, `axis ${show(axis)}; a matrix has 0 and 1`);
  }
}
