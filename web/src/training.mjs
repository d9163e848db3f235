// SPDX-License-Identifier: Apache-2.0

import {DTYPES, FLOAT32, scalarBits} from './dtype.mjs';
import {failure, guard, show} from './errors.mjs';
import {inside, isMatrix} from './expr.mjs';
import {Layer, checkAlike, checkDevice, checkShape, checkSize, input, layer, vector, wholeNumber} from './layers.mjs';
import {Matrix} from './matrix.mjs';
import {Held, Memory, Store} from './memory.mjs';
import {owns} from './owned.mjs';
import {read} from './source.mjs';
import {Tensor} from './tensor-expr.mjs';

// What of package nn writes to several matrices, makes several, or remembers something.

/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./layers.mjs').Input} Input */

/** What Command.Layer does beside the steps of optimisers: see wasm/internal/bridge/stateful.go. */
const NORMALISE = 6, QUANTISE = 7;

/** @param {string} where @param {number} n */
const bits = (where, n) => scalarBits(where, FLOAT32, n);

/** A matrix of float32 that is written to. @param {string} where @param {string} name @param {Session} session @param {unknown} x @returns {{node: Node, memory: Memory}} */
function target(where, name, session, x) {
  const part = inside(x, where);
  if (!part || !isMatrix(x)) throw failure('ErrInvalid', where, `${name} ${show(x)} is no matrix in memory`);
  checkDevice(where, session, [{...part, shape: null}]);
  if (part.node.type !== FLOAT32) throw failure('ErrInvalid', where, `${name} of ${part.node.type.name} where float32 is needed`);
  return {node: part.node, memory: /** @type {Memory} */ (part.node.memory)};
}

/** The leaf of a matrix that Go is going to make. @param {Session} session @param {import('./dtype.mjs').DType} type @param {number} rows @param {number} cols */
const newLeaf = (session, type, rows, cols) => new Memory(session, type, rows, cols, false, cols, 'owned').leaf();

/** @param {Matrix[]} list */
function closeAll(list) {
  for (const matrix of list) matrix.close();
}

// Optimisers.

/** Their settings in the order of stateful.go, with what they are by default: those of PyTorch. @type {Record<string, Record<string, number | boolean>>} */
const OPTIMISERS = {
  sgd: {rate: 0.01, decay: 0},
  momentum: {rate: 0.01, momentum: 0.9, decay: 0, nesterov: false},
  adagrad: {rate: 0.01, epsilon: 1e-10, decay: 0},
  rmsprop: {rate: 0.01, rho: 0.99, epsilon: 1e-8, decay: 0},
  adam: {rate: 0.001, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: 0, decoupled: false},
  adadelta: {rate: 1, rho: 0.9, epsilon: 1e-6, decay: 0},
};

/** Settings that are the decay of a running mean: below 1. */
const SHARES = ['momentum', 'rho', 'beta1', 'beta2'];

/** @param {string} where @param {string} name @param {unknown} value @param {number | boolean} usual @returns {number | boolean} */
function checkSetting(where, name, value, usual) {
  if (value === undefined) return usual;
  if (typeof value !== typeof usual) throw failure('ErrInvalid', where, `${name} ${show(value)}; it is a ${typeof usual}`);
  if (typeof value !== 'number') return /** @type {boolean} */ (value);
  const most = SHARES.includes(name) ? 1 : Infinity;
  if (!(value >= 0 && value < most)) throw failure('ErrInvalid', where, `${name} ${value}; it is at least 0 and ${most === 1 ? 'below 1' : 'finite'}`);
  return value;
}

/** Changes parameters so that a loss falls. */
export class Optimiser {
  #held;
  #kind;
  /** @type {Record<string, number | boolean>} */
  #settings = {};

  /** @param {Session} session @param {string} kind @param {unknown} options */
  constructor(session, kind, options) {
    const usual = OPTIMISERS[kind], o = read(kind, options, Object.keys(usual));
    for (const [name, value] of Object.entries(usual)) this.#settings[name] = checkSetting(kind, name, o[name], value);
    this.#kind = kind;
    this.#held = new Held(session, new Store(), 'the optimiser');
    session.open(this, this.#held);
    session.scope?.add(this);
  }

  get rate() { return this.#settings.rate; }

  /** @param {unknown} value */
  set rate(value) {
    this.#settings.rate = checkSetting(this.#kind, 'rate', value ?? null, 0);
  }

  get closed() { return this.#held.over; }

  /** @param {unknown} param @param {unknown} grad */
  step(param, grad) {
    const where = 'step', held = this.#held, {session} = held, handle = held.use(where);
    const {node, memory} = target(where, 'the parameter', session, param), g = input(where, 'the gradient', grad), {rows, cols} = node;
    checkDevice(where, session, [g]);
    const {node: fits} = g.shape?.length === 1 && rows === 1 ? vector(where, 'the gradient', g, cols) : g; // of a bias
    checkSize(where, 'the gradient', fits, rows, cols);
    const numbers = Object.values(this.#settings).map((value) => bits(where, Number(value)));
    session.layer(where, Object.keys(OPTIMISERS).indexOf(this.#kind), [], handle, [memory], [fits], numbers);
  }

  close() {
    this.#held.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletOptimiser'; }
}

// Batch normalisation.

/** A normalised batch with its statistics. */
export class BatchStatistics {
  #matrices;

  /** @param {Matrix | Tensor} y @param {Matrix} mean @param {Matrix} invStd @param {Matrix[]} own to be closed */
  constructor(y, mean, invStd, own) {
    this.y = y;
    this.mean = mean;
    this.invStd = invStd;
    this.#matrices = own;
    owns(this, own);
  }

  close() {
    closeAll(this.#matrices);
  }

  [Symbol.dispose]() {
    this.close();
  }
}

/** Batch normalisation: see nn.BatchNorm. */
export class BatchNorm {
  #session;
  #channels;
  #epsilon;

  /** @param {Session} session @param {unknown} options */
  constructor(session, options) {
    const where = 'batchNorm', {channels, epsilon = 1e-5} = read(where, options, ['channels', 'epsilon']);
    this.#session = session;
    this.#channels = channels === undefined ? undefined : wholeNumber(where, 'channels', channels, 0);
    if (typeof epsilon !== 'number' || !(epsilon >= 0)) throw failure('ErrInvalid', where, `epsilon ${show(epsilon)}; it is at least 0`);
    this.#epsilon = epsilon;
  }

  /** How many features a batch has, and the channels of its images, 0 for columns. @param {string} where @param {Input} x @param {[string, Input][]} rows */
  #features(where, x, rows) {
    const {node, shape} = x, channels = this.#channels ?? (shape && shape.length > 2 ? shape[1] : 0), count = channels || node.cols;
    checkDevice(where, this.#session, [x, ...rows.map(([, row]) => row)]);
    if (shape && shape.length > 2) checkShape(where, 'x', x, [null, this.#channels || shape[1], ...shape.slice(2)]);
    if (node.cols % count !== 0 && count > 0) throw failure('ErrShape', where, `${channels} channels in ${node.cols} columns`);
    const list = rows.map(([name, row]) => {
      if (!row.shape) checkSize(where, name, row.node, 1, count);
      return vector(where, name, row, count);
    });
    return {channels, count, list};
  }

  /** @param {unknown} x @param {unknown} scale @param {unknown} bias @param {unknown} mean @param {unknown} variance */
  infer(x, scale, bias, mean, variance) {
    const where = 'infer', a = input(where, 'x', x), names = {scale, bias, mean, variance};
    const {channels, list} = this.#features(where, a, Object.entries(names).map(([name, value]) => [name, input(where, name, value)]));
    return layer(this.#session, where, Layer.Infer, [a, ...list], a.node.rows, a.node.cols, [channels, this.#epsilon], a.shape);
  }

  /** @param {unknown} x @param {unknown} scale @param {unknown} bias @param {unknown} [options] */
  train(x, scale, bias, options) {
    const where = 'train', session = this.#session, o = read(where, options, ['into', 'mean', 'variance', 'factor']), {factor = 0.1} = o;
    const a = input(where, 'x', x), {rows, cols} = a.node, {channels, count, list: [s, b]} = this.#features(where, a, [['scale', input(where, 'scale', scale)], ['bias', input(where, 'bias', bias)]]);
    if (typeof factor !== 'number' || !(factor >= 0 && factor <= 1)) throw failure('ErrInvalid', where, `factor ${show(factor)}; it is from 0 to 1`);
    if ((o.mean === undefined) !== (o.variance === undefined)) throw failure('ErrInvalid', where, 'one of the running statistics without the other');
    const running = o.mean === undefined ? [] : ['mean', 'variance'].map((name) => target(where, name, session, o[name]));
    running.forEach(({node}, i) => checkSize(where, i === 0 ? 'mean' : 'variance', node, 1, count));
    const into = o.into === undefined ? null : target(where, 'into', session, o.into);
    if (into) checkSize(where, 'into', into.node, rows, cols);

    const [mean, invStd, y] = [newLeaf(session, FLOAT32, 1, count), newLeaf(session, FLOAT32, 1, count), into?.node ?? newLeaf(session, FLOAT32, rows, cols)];
    const memory = /** @type {Memory} */ (y.memory);
    if (!into) session.newMatrix(y, memory);
    const result = into ? /** @type {Matrix} */ (o.into) : new Matrix(session, y);
    try {
      const targets = [memory, ...running.map((r) => r.memory)], numbers = [channels, bits(where, this.#epsilon), bits(where, factor)];
      session.layer(where, NORMALISE, [mean, invStd], 0, targets, [a.node, s.node, b.node], numbers);
    } catch (error) {
      if (!into) result.close();
      throw error;
    }
    const statistics = [new Matrix(session, mean), new Matrix(session, invStd)];
    return new BatchStatistics(a.shape ? new Tensor(session, y, a.shape) : result, statistics[0], statistics[1], into ? statistics : [...statistics, result]);
  }

  /** @param {unknown} d @param {unknown} x @param {unknown} scale @param {any} statistics */
  backward(d, x, scale, statistics) {
    const where = 'backward', given = guard(where, () => statistics instanceof BatchStatistics ? {mean: statistics.mean, invStd: statistics.invStd} : statistics);
    const {mean, invStd} = read(where, given, ['mean', 'invStd']);
    const g = input(where, 'd', d), a = input(where, 'x', x), names = {scale, mean, invStd}, {rows, cols} = a.node;
    const {channels, count, list} = this.#features(where, a, Object.entries(names).map(([name, value]) => [name, input(where, name, value)]));
    checkAlike(where, 'd', g, a);
    const of = (/** @type {number} */ which) => layer(this.#session, where, Layer.Backward, [g, a, ...list],
      which === 0 ? rows : 1, which === 0 ? cols : count, [channels, this.#epsilon, which], which === 0 ? a.shape : null);
    return {dx: of(0), dscale: of(1), dbias: of(2)};
  }
}

// Quantisation.

/** A matrix of few bits for each element. */
export class Quantised {
  #session;

  /** @param {Session} session @param {number} rows @param {number} cols @param {number} bits @param {Matrix[]} matrices */
  constructor(session, rows, cols, bits, [levels, lower, upper]) {
    this.#session = session;
    this.rows = rows;
    this.cols = cols;
    this.bits = bits;
    this.levels = levels;
    this.lower = lower;
    this.upper = upper;
  }

  dequantise() {
    const where = 'dequantise', parts = [this.levels, this.lower, this.upper].map((m, i) => input(where, 'a part', m, i === 0 ? UINT8 : FLOAT32));
    return layer(this.#session, where, Layer.Dequantise, parts, this.rows, this.cols, [this.rows, this.bits], null);
  }

  close() {
    closeAll([this.levels, this.lower, this.upper]);
  }

  [Symbol.dispose]() {
    this.close();
  }
}

const UINT8 = DTYPES[5];

/** @param {Session} session @param {unknown} x @param {unknown} options */
export function quantised(session, x, options) {
  const where = 'quantise', o = read(where, options, ['bits', 'residual']), a = input(where, 'x', x), {rows, cols} = a.node, count = wholeNumber(where, 'bits', o.bits ?? 8, 1);
  checkDevice(where, session, [a]);
  if (count > 8) throw failure('ErrInvalid', where, `${count} bits; there are 1 to 8`);
  const residual = o.residual === undefined ? null : target(where, 'residual', session, o.residual);
  if (residual) checkSize(where, 'residual', residual.node, rows, cols);
  const leaves = [newLeaf(session, UINT8, count === 1 ? Math.ceil(rows / 8) : rows, cols), newLeaf(session, FLOAT32, 1, cols), newLeaf(session, FLOAT32, 1, cols)];
  session.layer(where, QUANTISE, leaves, 0, residual ? [residual.memory] : [], [a.node], [count]);
  return new Quantised(session, rows, cols, count, leaves.map((leaf) => new Matrix(session, leaf)));
}
