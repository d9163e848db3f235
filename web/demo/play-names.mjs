// SPDX-License-Identifier: Apache-2.0

// The functions of formulas: the operations of the package under their own names, in any case, and those of `sublet eval`.

import {Expr, Gpu} from './index.mjs';

/** What `sublet eval` and NumPy call operations that have another name here. @type {Record<string, string>} */
const ALIASES = {
  t: 'transpose', h: 'conjTranspose', recip: 'reciprocal', multiply: 'mul', subtract: 'sub', divide: 'div', remainder: 'mod', power: 'pow',
  not: 'logicalNot', and: 'logicalAnd', or: 'logicalOr', xor: 'logicalXor', bitnot: 'bitwiseNot', bitand: 'bitwiseAnd', bitor: 'bitwiseOr',
  bitxor: 'bitwiseXor', shiftleft: 'leftShift', shiftright: 'rightShift', arcsin: 'asin', arccos: 'acos', arctan: 'atan', arctan2: 'atan2',
  arcsinh: 'asinh', arccosh: 'acosh', arctanh: 'atanh', ln: 'log', dot: 'matmul', inverse: 'inv', eigvalsh: 'eigenvalues', eigh: 'eigenvectors',
  svdvals: 'singularValues', svdu: 'leftVectors', svdv: 'rightVectors', qrq: 'qFactor', qrr: 'rFactor', leastsquares: 'lstsq', matexp: 'expm',
  matpow: 'matrixPower', flipud: 'flipRows', fliplr: 'flipCols', setblock: 'put', addblock: 'addTo', arg: 'angle', rand: 'uniform', randn: 'normal',
  randint: 'randomIntegers', randperm: 'permutation', fill: 'full', absolute: 'abs', negative: 'neg', clip: 'clamp', variance: 'var',
};

/** Functions that make a matrix of numbers, or whose first operand may be a number. */
const MAKERS = new Set([
  'eye', 'zeros', 'ones', 'full', 'arange', 'linspace', 'oneHot', 'where', 'hstack', 'vstack', 'uniform', 'normal', 'truncatedNormal', 'gumbel',
  'randomBits', 'randomIntegers', 'randomMask', 'permutation',
]);

/** Operations whose number after the operand is an axis, in small letters. */
const REDUCTIONS = new Set([
  'sum', 'prod', 'mean', 'norm1', 'norm2', 'norminf', 'logsumexp', 'countnonzero', 'any', 'all', 'argmax', 'argmin', 'sort', 'argsort', 'cumsum',
  'cumprod', 'softmax', 'logsoftmax', 'hardmax',
]);

/** Those that may end in Rows, Cols or All. */
const BY_AXIS = new Set([...REDUCTIONS, 'max', 'min', 'var', 'std', 'normp', 'topk', 'argtopk']);

/** Methods of expressions that are no mathematics. */
const OTHERS = new Set([
  'constructor', 'eval', 'sparse', 'read', 'value', 'item', 'explain', 'close', 'with', 'apply', 'tensor', 'astype', 'toString', 'toJSON', 'toCanvas',
]);

const TYPES = ['float32', 'float16', 'int32', 'uint32', 'int16', 'uint16', 'int8', 'uint8', 'bool', 'complex64'];

/** @param {any} prototype @returns {string[]} */
const methodsOf = (prototype) => !prototype || prototype === Object.prototype ? [] : [
  ...Object.getOwnPropertyNames(prototype).filter((name) => typeof Object.getOwnPropertyDescriptor(prototype, name)?.value === 'function'),
  ...methodsOf(Object.getPrototypeOf(prototype)),
];

const methods = new Map(methodsOf(Expr.prototype).filter((name) => !OTHERS.has(name)).map((name) => [name.toLowerCase(), name]));
const ofGpu = new Map(methodsOf(Gpu.prototype).filter((name) => methods.has(name.toLowerCase()) || MAKERS.has(name)).map((name) => [name.toLowerCase(), name]));
for (const [other, name] of Object.entries(ALIASES)) {
  if (methods.has(name.toLowerCase())) methods.set(other, name);
  if (ofGpu.has(name.toLowerCase())) ofGpu.set(other, name);
}
const axes = /** @type {const} */ ({rows: 1, cols: 0, all: null});

/**
 * @typedef {{name: string, axis?: number | null, on: 'expr' | 'gpu' | 'type'}} Known an operation, and what it runs along if its name says so
 */

/** @param {string} word @returns {Known | undefined} */
export function lookUp(word) {
  const key = word.toLowerCase().replace(/_/g, '');
  if (TYPES.includes(key)) return {name: key, on: 'type'};
  const own = methods.get(key);
  if (own) return {name: own, on: 'expr'};
  const maker = ofGpu.get(key);
  if (maker) return {name: maker, on: 'gpu'};
  const suffix = /^(.+)(rows|cols|all)$/.exec(key), base = suffix && methods.get(suffix[1]);
  if (!base || !BY_AXIS.has(base.toLowerCase())) return undefined;
  return {name: base, axis: axes[/** @type {'rows' | 'cols' | 'all'} */ (suffix[2])], on: 'expr'};
}

/** Whether a number after the operand says what the operation runs along. @param {string} name */
export const takesAxis = (name) => REDUCTIONS.has(name.toLowerCase());

/** Whether the operation exists as a method of Gpu, which takes numbers where the method of Expr needs an operand first. @param {string} name */
export const onGpu = (name) => ofGpu.has(name.toLowerCase());

/** The name that is nearest to a word; undefined if none is near. @param {string} word @param {string[]} [among] */
export function nearest(word, among = [...new Set([...methods.values(), ...ofGpu.values(), ...TYPES])]) {
  const limit = 1 + Math.floor(word.length / 4);
  const [best] = among.map((name) => ({name, d: distance(word.toLowerCase(), name.toLowerCase())})).sort((a, b) => a.d - b.d);
  return word.length > 2 && best?.d <= limit ? best.name : undefined;
}

/** The number of characters to insert, to leave out or to change. @param {string} a @param {string} b */
function distance(a, b) {
  let row = Array.from({length: b.length + 1}, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    row = next;
  }
  return row[b.length];
}
