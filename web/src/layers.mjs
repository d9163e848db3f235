// SPDX-License-Identifier: Apache-2.0

import {FLOAT32} from './dtype.mjs';
import {failure, listed, show} from './errors.mjs';
import {Expr} from './expr.mjs';
import * as nodes from './node.mjs';
import {Tensor, insideEither, insideTensor} from './tensor-expr.mjs';
import {resized, sizeOf, text} from './tensor-node.mjs';

// What the layers of nn.mjs have in common: options, operands and windows.

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./dtype.mjs').DType} DType */

/** What Op.Layer computes: see wasm/internal/bridge/nn.go. */
export const Layer = Object.freeze({
  Conv: 0, DataGrad: 1, KernelGrad: 2, BiasGrad: 3, MaxPool: 4, MaxPoolGrad: 5, AveragePool: 6, AveragePoolGrad: 7, Infer: 8, Backward: 9,
  CrossEntropy: 10, CrossEntropyGrad: 11, MSE: 12, MSEGrad: 13, Dropout: 14, Embedding: 15, EmbeddingGrad: 16, Dequantise: 17,
});

/** The largest size that Go counts with. */
const MOST = 0x7fffffff >> 2;

/** @param {string} where @param {string} name @param {unknown} n @param {number} least @returns {number} */
export function wholeNumber(where, name, n, least) {
  if (typeof n !== 'number' || !Number.isInteger(n) || n < least) throw failure('ErrInvalid', where, `${name} ${show(n)}; it is a whole number of at least ${least}`);
  if (n > MOST) throw failure('ErrLimit', where, `${name} ${n}`);
  return n;
}

/** A size for both directions: one number, or height and width. @param {string} where @param {string} name @param {unknown} value @param {number} least */
function pair(where, name, value, least) {
  const list = listed(where, value) ?? [value, value];
  if (list.length !== 2) throw failure('ErrInvalid', where, `${name} of ${list.length} numbers; it is one or two`);
  return list.map((n) => wholeNumber(where, name, n, least));
}

/** Padding: one number, one for above and below and one for the sides, or top, bottom, left and right. @param {string} where @param {unknown} value */
function edges(where, value) {
  const list = listed(where, value) ?? [value, value];
  if (list.length !== 2 && list.length !== 4) throw failure('ErrInvalid', where, `pad of ${list.length} numbers; it is one, two or four`);
  const all = list.length === 4 ? list : [list[0], list[0], list[1], list[1]];
  return all.map((n) => wholeNumber(where, 'pad', n, 0));
}

/** The options of a window. */
export const WINDOW = Object.freeze(['channels', 'height', 'width', 'kernel', 'stride', 'pad', 'dilation']);

/**
 * A window that goes over images: see nn.Window.
 * @typedef {{channels: number, height: number, width: number, kernel: number[], outHeight: number, outWidth: number, words: number[]}} Window
 */

/** @param {string} where @param {Record<string, any>} o @returns {Window} */
export function windowOf(where, o) {
  const [channels, height, width] = ['channels', 'height', 'width'].map((name) => wholeNumber(where, name, o[name], 1));
  const kernel = pair(where, 'kernel', o.kernel, 1), stride = pair(where, 'stride', o.stride ?? 1, 1);
  const dilation = pair(where, 'dilation', o.dilation ?? 1, 1), [top, bottom, left, right] = edges(where, o.pad ?? 0);
  const places = (/** @type {number} */ i, /** @type {number} */ size, /** @type {number} */ pad) => {
    const reach = size + pad - (kernel[i] - 1) * dilation[i] - 1;
    if (reach < 0) throw failure('ErrInvalid', where, `a kernel of ${kernel.join('x')} on padded images of ${height + top + bottom}x${width + left + right}`);
    return Math.floor(reach / stride[i]) + 1;
  };
  return {
    channels, height, width, kernel, outHeight: places(0, height, top + bottom), outWidth: places(1, width, left + right),
    words: [channels, height, width, ...kernel, ...stride, ...dilation, top, bottom, left, right],
  };
}

/**
 * An operand: a matrix as it is, a tensor with its first dimension for rows and all others for columns.
 * @typedef {{session: Session, node: Node, shape: readonly number[] | null}} Input shape: a tensor's
 */

/** @param {string} where @param {string} name @param {unknown} value @param {DType} [type] @returns {Input} */
export function input(where, name, value, type = FLOAT32) {
  const tensor = insideTensor(value, where) !== undefined, part = insideEither(value, where);
  if (!part) throw failure('ErrInvalid', where, `${name} ${show(value)} is neither a matrix nor a tensor`);
  const {session, node, shape} = part;
  if (node.type !== type) throw failure('ErrInvalid', where, `${name} of ${node.type.name} where ${type.name} is needed; convert with astype`);
  return {session, node: resized(where, node, shape[0] ?? 1, sizeOf(shape.slice(1))), shape: tensor ? shape : null};
}

/**
 * An operation of package nn.
 * @param {Session} session @param {string} where @param {number} kind @param {Input[]} inputs @param {number} rows @param {number} cols
 * @param {readonly number[]} numbers @param {readonly number[] | null} shape of a tensor @returns {any} an Expr or a Tensor
 */
export function layer(session, where, kind, inputs, rows, cols, numbers, shape) {
  checkDevice(where, session, inputs);
  const node = nodes.layer(where, kind, FLOAT32, rows, cols, inputs.map((x) => x.node), numbers);
  return shape ? new Tensor(session, node, shape) : new Expr(session, node);
}

/** @param {string} where @param {Session} session @param {Input[]} inputs */
export function checkDevice(where, session, inputs) {
  if (inputs.some((x) => x.session !== session)) throw failure('ErrForeign', where, 'a matrix of another device');
}

/** @param {string} where @param {string} name @param {Node} node @param {number | null} rows @param {number | null} cols of which null is any */
export function checkSize(where, name, node, rows, cols) {
  if ((rows !== null && node.rows !== rows) || (cols !== null && node.cols !== cols)) {
    throw failure('ErrShape', where, `${name} is ${node.rows}x${node.cols}; it must be ${rows ?? 'n'}x${cols ?? 'n'}`);
  }
}

/**
 * Refuses an operand of another shape: a tensor's in full, of a matrix the first dimension and the product of the others.
 * @param {string} where @param {string} name @param {Input} x @param {readonly (number | null)[]} want of which the first may be null for any
 */
export function checkShape(where, name, {node, shape}, want) {
  const [first, ...rest] = want;
  if (!shape) return checkSize(where, name, node, first ?? null, sizeOf(/** @type {number[]} */ (rest)));
  if (shape.length === want.length && want.every((d, i) => d === null || d === shape[i])) return;
  throw failure('ErrShape', where, `${name} of shape ${text(shape)}; it must be ${text(want.map((d) => d ?? 'n'))}`);
}

/** Refuses an operand that is not of another's shape. @param {string} where @param {string} name @param {Input} x @param {Input} like */
export function checkAlike(where, name, x, {node, shape}) {
  if (x.shape && shape) checkShape(where, name, x, shape);
  else checkSize(where, name, x.node, node.rows, node.cols);
}

/** A vector as a row or, if it is a matrix of one column, as that. A tensor has one dimension with all elements. @param {string} where @param {string} name @param {Input} x @param {number} count @returns {Input} */
export function vector(where, name, x, count) {
  const {node, shape} = x;
  if (!shape || sizeOf(shape) !== count || !shape.every((d) => d === 1 || d === count)) checkShape(where, name, x, shape ? [count] : node.cols === 1 ? [count, 1] : [1, count]);
  return shape ? {...x, node: resized(where, node, 1, count)} : x;
}

/** The sizes of images, if they are a tensor of n x channels x height x width. @param {string} where @param {string} name @param {Input} x @param {readonly string[]} names */
export function imageSizes(where, name, {shape}, names) {
  if (!shape) return {};
  if (shape.length !== names.length + 1) throw failure('ErrShape', where, `${name} of shape ${text(shape)}; it is n, ${names.join(', ')}`);
  return Object.fromEntries(names.map((key, i) => [key, shape[i + 1]]));
}
