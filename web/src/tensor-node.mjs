// SPDX-License-Identifier: Apache-2.0

import {failure, listed, show} from './errors.mjs';
import * as nodes from './node.mjs';
import {Op, Reduction, Shaping} from './protocol.mjs';
import {boundsOf} from './ranges.mjs';

// Arrays of any number of dimensions as nodes of matrices: see package tensor and wasm/internal/bridge/tensor.go.

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./dtype.mjs').DType} DType */

/** A tensor: its elements are those of the node, row by row. @typedef {{node: Node, shape: readonly number[]}} Part */

/** What Op.Tensor computes. */
const Kind = Object.freeze({Permute: 0, Slice: 1, Broadcast: 2, Zip: 3, MatMul: 4});

const MAX_DIMS = 16;
const MAX_SIZE = 0x7fffffff;

/** @param {readonly number[]} shape */
export const sizeOf = (shape) => shape.reduce((n, d) => n * d, 1);

/** @param {readonly (number | string)[]} shape */
export const text = (shape) => `(${shape.join(', ')})`;

/** @param {string} where @param {readonly number[]} a @param {readonly number[]} b */
const mismatch = (where, a, b) => failure('ErrShape', where, `${text(a)} with ${text(b)}`);

/** @param {readonly number[]} a @param {readonly number[]} b */
const equal = (a, b) => a.length === b.length && a.every((d, i) => d === b[i]);

/** Numbers that the user gives one by one or in an array. @param {string} where @param {readonly unknown[]} list @returns {any[]} */
export const listOf = (where, list) => list.length === 1 && listed(where, list[0]) || [...list];

/** @param {string} where @param {readonly unknown[]} list the sizes of dimensions @returns {number[]} */
export function shapeOf(where, list) {
  const shape = listOf(where, list);
  for (const d of shape) {
    if (!Number.isInteger(d)) throw failure('ErrInvalid', where, `${show(d)} is no dimension`);
    if (d < 0) throw failure('ErrSize', where, `negative dimension ${d}`);
  }
  checkSize(where, shape);
  return shape;
}

/** @param {string} where @param {readonly number[]} shape */
function checkSize(where, shape) {
  if (shape.length > MAX_DIMS) throw failure('ErrLimit', where, `${shape.length} dimensions; there are at most ${MAX_DIMS}`);
  if (shape.reduce((n, d) => n * Math.max(d, 1), 1) > MAX_SIZE) throw failure('ErrLimit', where, `${text(shape)} has more than ${MAX_SIZE} elements`);
}

/** The elements as a matrix of another size. @param {string} where @param {Node} node @param {number} rows @param {number} cols @returns {Node} */
export const resized = (where, node, rows, cols) => node.rows === rows && node.cols === cols ? node
  : nodes.shaped(where, Shaping.Reshape, node.type, [node], [rows, cols], () => [rows, cols]);

/** The elements as a matrix whose columns are the dimensions from k on. @param {string} where @param {Part} a @param {number} [k] */
export const matrixOf = (where, {node, shape}, k = shape.length - 1) =>
  resized(where, node, sizeOf(shape.slice(0, Math.max(k, 0))), sizeOf(shape.slice(Math.max(k, 0))));

/**
 * An operation of package tensor.
 * @param {number} kind @param {DType} type @param {readonly number[]} shape of the result @param {Part[]} args @param {number[]} numbers
 * @returns {Part}
 */
function operation(kind, type, shape, args, numbers) {
  const last = Math.max(shape.length - 1, 0);
  const node = new nodes.Node(Op.Tensor, type, sizeOf(shape.slice(0, last)), sizeOf(shape.slice(last)));
  node.args = args.map((a) => a.node);
  node.numbers = [kind, ...args.flatMap((a) => [a.shape.length, ...a.shape]), ...numbers];
  return {node, shape};
}

/** The number of a dimension, which may be counted from the end. @param {string} where @param {unknown} axis @param {number} ndim @returns {number} */
function axisOf(where, axis, ndim) {
  if (!Number.isInteger(axis)) throw failure('ErrInvalid', where, `axis ${show(axis)}`);
  const at = /** @type {number} */ (axis) < 0 ? /** @type {number} */ (axis) + ndim : /** @type {number} */ (axis);
  if (at < 0 || at >= ndim) throw failure('ErrIndex', where, `axis ${axis} of ${ndim} dimensions`);
  return at;
}

/** Numbers of dimensions, each there once. @param {string} where @param {readonly unknown[]} axes @param {number} ndim @returns {number[]} */
export function axesOf(where, axes, ndim) {
  const list = axes.map((axis) => axisOf(where, axis, ndim));
  if (new Set(list).size < list.length) throw failure('ErrInvalid', where, `an axis twice: ${list.join()}`);
  return list;
}

/** A shape for what has one. @param {string} where @param {readonly number[]} of @param {readonly unknown[]} sizes of which one may be -1: what the others leave */
export function shapeFor(where, of, sizes) {
  const list = listOf(where, sizes), open = list.indexOf(-1);
  if (open >= 0) {
    const rest = sizeOf(shapeOf(where, list.filter((_, i) => i !== open)));
    if (rest === 0 || sizeOf(of) % rest !== 0) throw mismatch(where, of, list);
    list[open] = sizeOf(of) / rest;
  }
  return shapeOf(where, list);
}

/** @param {string} where @param {Part} a @param {readonly unknown[]} sizes @returns {Part} */
export function reshape(where, a, sizes) {
  const shape = shapeFor(where, a.shape, sizes);
  if (sizeOf(shape) !== sizeOf(a.shape)) throw mismatch(where, a.shape, shape);
  return {node: a.node, shape};
}

/** The tensor with dimension order[i] in place i. @param {Part} a @param {readonly number[]} order @returns {Part} */
function permuted(a, order) {
  if (order.every((axis, i) => axis === i)) return a;
  return operation(Kind.Permute, a.node.type, order.map((axis) => a.shape[axis]), [a], [...order]);
}

/** @param {string} where @param {Part} a @param {readonly unknown[]} list of the dimensions in their new order, reversed without any */
export function permute(where, a, list) {
  const ndim = a.shape.length, axes = listOf(where, list);
  if (axes.length === 0) return permuted(a, a.shape.map((_, i) => ndim - 1 - i));
  const order = axesOf(where, axes, ndim);
  if (order.length !== ndim) throw failure('ErrInvalid', where, `${order.length} of ${ndim} dimensions`);
  return permuted(a, order);
}

/**
 * A part: of each dimension what [from, to] says, one element of which the dimension is gone, or everything.
 * @param {string} where @param {Part} a @param {readonly unknown[]} ranges @returns {Part}
 */
export function slice(where, a, ranges) {
  if (ranges.length > a.shape.length) throw failure('ErrIndex', where, `${ranges.length} ranges of ${a.shape.length} dimensions`);
  const bounds = ranges.map((range, i) => boundsOf(where, range, a.shape[i]));
  const shape = a.shape.map((d, i) => i < bounds.length ? bounds[i][1] - bounds[i][0] : d);
  const whole = equal(shape, a.shape) ? a : operation(Kind.Slice, a.node.type, shape, [a], bounds.flat());
  return {node: whole.node, shape: shape.filter((_, i) => typeof ranges[i] !== 'number')};
}

/** The common shape, aligned at the last dimensions: those of 1, or that are not there, stretch. @param {string} where @param {readonly number[]} a @param {readonly number[]} b @returns {number[]} */
function stretched(where, a, b) {
  const [long, short] = a.length < b.length ? [b, a] : [a, b], shape = [...long];
  short.forEach((d, i) => {
    const at = long.length - short.length + i;
    if (long[at] === 1) shape[at] = d;
    else if (d !== 1 && d !== long[at]) throw mismatch(where, a, b);
  });
  return shape;
}

/** @param {string} where @param {Part} a @param {readonly number[]} shape @returns {Part} */
export function broadcastTo(where, a, shape) {
  if (!equal(stretched(where, a.shape, shape), shape)) throw mismatch(where, a.shape, shape);
  return equal(a.shape, shape) ? a : operation(Kind.Broadcast, a.node.type, shape, [a], [...shape]);
}

/** The shape that operands stretch to. @param {string} where @param {Part[]} args */
function commonShape(where, args) {
  const shape = args.map((a) => a.shape).reduce((a, b) => stretched(where, a, b));
  checkSize(where, shape);
  return shape;
}

/**
 * The operands as matrices that one matrix operation broadcasts, or null if it cannot: each has the common shape or a single element.
 * @param {string} where @param {Part[]} args @param {readonly number[]} shape @returns {Node[] | null}
 */
function matrixOperands(where, args, shape) {
  const first = args.find((a) => equal(a.shape, shape));
  if (!first || !args.every((a) => sizeOf(a.shape) === 1 || equal(a.shape, shape))) return null;
  const {rows, cols} = first.node;
  return args.map((a) => equal(a.shape, shape) ? resized(where, a.node, rows, cols) : resized(where, a.node, 1, 1));
}

/** An element-wise operation of two or three operands. @param {string} where @param {number} op @param {Part[]} args @returns {Part} */
export function zip(where, op, args) {
  const shape = commonShape(where, args), type = nodes.typeOf(where, op, args.map((a) => a.node)), same = matrixOperands(where, args, shape);
  if (!same) return operation(Kind.Zip, type, shape, args, [op]);
  const [a, b, c] = same;
  return {node: c ? nodes.ternary(where, op, a, b, c) : nodes.binary(where, op, a, b), shape};
}

/** A function of the user's. @param {string} where @param {import('./func.mjs').FuncRef} func @param {Part[]} args @returns {Part} */
export function call(where, func, args) {
  const shape = commonShape(where, args), all = args.map((a) => sizeOf(a.shape) === 1 ? a : broadcastTo(where, a, shape));
  const same = matrixOperands(where, all, shape) ?? all.map((a) => matrixOf(where, broadcastTo(where, a, shape)));
  return {node: nodes.call(where, func, same), shape};
}

/**
 * @param {string} where @param {number} what @param {Part} a @param {unknown} axis one, several, or all @param {boolean} keep @param {number} number
 * @returns {Part}
 */
export function reduce(where, what, a, axis, keep, number) {
  const ndim = a.shape.length;
  if (what === Reduction.Trace && ndim !== 2) throw failure('ErrShape', where, `${text(a.shape)} is no matrix`);
  if (axis === undefined || axis === null) {
    const node = nodes.reduce(where, what, what === Reduction.Trace ? matrixOf(where, a) : a.node, undefined, number);
    return {node, shape: keep ? a.shape.map(() => 1) : []};
  }
  const gone = axesOf(where, listOf(where, [axis]), ndim).sort((i, k) => i - k);
  const kept = a.shape.map((_, i) => i).filter((i) => !gone.includes(i));
  const shape = keep ? a.shape.map((d, i) => gone.includes(i) ? 1 : d) : kept.map((i) => a.shape[i]);
  const leading = gone.every((axis, i) => axis === i) && gone.length > 0 && kept.length > 0;
  const x = leading ? matrixOf(where, a, gone.length) : matrixOf(where, permuted(a, [...kept, ...gone]), kept.length);
  return {node: nodes.reduce(where, what, x, leading ? 0 : 1, number), shape};
}

/**
 * A function of rows along a dimension, which may change their length.
 * @param {string} where @param {Part} a @param {unknown} axis @param {(x: Node, axis: number) => Node} f @returns {Part}
 */
export function along(where, a, axis, f) {
  const ndim = a.shape.length, at = axisOf(where, axis, ndim), order = a.shape.map((_, i) => i);
  const first = at === 0 && ndim > 1;
  if (!first) [order[at], order[ndim - 1]] = [ndim - 1, at];
  const x = permuted(a, order), made = f(matrixOf(where, x, first ? 1 : ndim - 1), first ? 0 : 1);
  const shape = x.shape.map((d, i) => i === (first ? 0 : ndim - 1) ? (first ? made.rows : made.cols) : d);
  return permuted({node: made, shape}, order);
}

/** The product of the matrices in the last two dimensions. As in NumPy, a vector is a row on the left and a column on the right. @param {string} where @param {Part} a @param {Part} b @returns {Part} */
export function matmul(where, a, b) {
  if (a.shape.length === 0 || b.shape.length === 0) throw failure('ErrShape', where, 'a scalar; to scale, use mul');
  const x = a.shape.length === 1 ? [1, ...a.shape] : a.shape, y = b.shape.length === 1 ? [...b.shape, 1] : b.shape;
  if (x.at(-1) !== y.at(-2)) throw mismatch(where, a.shape, b.shape);
  const shape = [...stretched(where, x.slice(0, -2), y.slice(0, -2)), /** @type {number} */ (x.at(-2)), /** @type {number} */ (y.at(-1))];
  checkSize(where, shape);
  const type = nodes.typeOf(where, Op.MatMul, [a.node, b.node]), [p, q] = [{node: a.node, shape: x}, {node: b.node, shape: y}];
  const node = shape.length === 2 ? nodes.product(where, matrixOf(where, p), matrixOf(where, q)) : operation(Kind.MatMul, type, shape, [p, q], []).node;
  if (b.shape.length === 1) shape.splice(-1, 1);
  if (a.shape.length === 1) shape.splice(b.shape.length === 1 ? -1 : -2, 1);
  return {node, shape};
}
