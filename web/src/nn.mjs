// SPDX-License-Identifier: Apache-2.0

import {INT32} from './dtype.mjs';
import {failure} from './errors.mjs';
import {Layer, WINDOW, checkAlike, checkShape, imageSizes, input, layer, vector, wholeNumber, windowOf} from './layers.mjs';
import {numberOf} from './node.mjs';
import {read} from './source.mjs';
import {resized, sizeOf} from './tensor-node.mjs';
import {BatchNorm, Optimiser, quantised} from './training.mjs';

/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./layers.mjs').Input} Input */
/** @typedef {import('./layers.mjs').Window} Window */

const CONV = Object.freeze([...WINDOW, 'groups']);
const AVERAGE = Object.freeze([...WINDOW, 'includePad']);
const IMAGE = Object.freeze(['channels', 'height', 'width']);

/** Merges sizes that shapes imply with the options. A given option overrides them; checkShape refuses it where they differ. @param {Record<string, any>} shapes @param {Record<string, any>} options */
const merged = (shapes, options) => ({...shapes, ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))});

/**
 * A convolution: see nn.Conv.
 * @param {string} where @param {Record<string, any>} o @param {number | null} known how many outputs there are @param {number} [cols] of results, if that is not known
 */
function convolution(where, o, known, cols = 0) {
  const window = windowOf(where, o), {channels, kernel, outHeight, outWidth} = window, groups = wholeNumber(where, 'groups', o.groups ?? 1, 1);
  const places = outHeight * outWidth, outputs = known ?? cols / places;
  if (!Number.isInteger(outputs) || outputs < 1) throw failure('ErrShape', where, `${cols} columns are not whole images of ${outHeight}x${outWidth}`);
  if (channels % groups !== 0 || outputs % groups !== 0) throw failure('ErrInvalid', where, `${groups} groups of ${channels} channels and ${outputs} outputs`);
  return {
    ...window, outputs, words: [...window.words, outputs, groups], image: [channels, window.height, window.width], result: [outputs, outHeight, outWidth],
    weights: [outputs, channels / groups, ...kernel], cols: channels / groups * kernel[0] * kernel[1],
  };
}

/** The sizes that weights imply if they are a tensor. @param {string} where @param {Input} weights @param {number} [groups] */
function weightSizes(where, weights, groups = 1) {
  const {channels, height, width} = /** @type {any} */ (imageSizes(where, 'weights', weights, IMAGE));
  return channels === undefined ? {} : {channels: channels * groups, kernel: [height, width]};
}

/** Neural networks: package nn of the Go library. */
export class NN {
  #session;

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** @param {Parameters<typeof layer> extends [any, ...infer Rest] ? Rest : never} rest */
  #layer(...rest) { return layer(this.#session, ...rest); }

  // Convolutions.

  /** @param {unknown} x @param {unknown} weights @param {unknown} bias @param {unknown} options */
  conv2d(x, weights, bias, options) {
    const where = 'conv2d', o = read(where, options, CONV), a = input(where, 'x', x), w = input(where, 'weights', weights);
    const {kernel} = weightSizes(where, w), c = convolution(where, merged({...imageSizes(where, 'x', a, IMAGE), kernel}, o), w.node.rows);
    const b = bias === undefined || bias === null ? [] : [vector(where, 'bias', input(where, 'bias', bias), c.outputs)];
    checkShape(where, 'x', a, [null, ...c.image]);
    checkShape(where, 'weights', w, c.weights);
    return this.#layer(where, Layer.Conv, [a, w, ...b], a.node.rows, sizeOf(c.result), c.words, a.shape && [a.node.rows, ...c.result]);
  }

  /** @param {unknown} d @param {unknown} weights @param {unknown} options */
  conv2dDataGrad(d, weights, options) {
    const where = 'conv2dDataGrad', o = read(where, options, CONV), g = input(where, 'd', d), w = input(where, 'weights', weights);
    imageSizes(where, 'd', g, IMAGE);
    const c = convolution(where, merged(weightSizes(where, w, o.groups), o), w.node.rows);
    checkShape(where, 'd', g, [null, ...c.result]);
    checkShape(where, 'weights', w, c.weights);
    return this.#layer(where, Layer.DataGrad, [g, w], g.node.rows, sizeOf(c.image), c.words, g.shape && [g.node.rows, ...c.image]);
  }

  /** @param {unknown} d @param {unknown} x @param {unknown} options */
  conv2dKernelGrad(d, x, options) {
    const where = 'conv2dKernelGrad', o = read(where, options, CONV), g = input(where, 'd', d), a = input(where, 'x', x);
    imageSizes(where, 'd', g, IMAGE);
    const c = convolution(where, merged(imageSizes(where, 'x', a, IMAGE), o), g.shape && g.shape[1], g.node.cols);
    checkShape(where, 'x', a, [null, ...c.image]);
    checkShape(where, 'd', g, [a.node.rows, ...c.result]);
    return this.#layer(where, Layer.KernelGrad, [g, a], c.outputs, c.cols, c.words, g.shape && c.weights);
  }

  /** @param {unknown} d @param {unknown} [options] */
  conv2dBiasGrad(d, options) {
    const where = 'conv2dBiasGrad', o = read(where, options, CONV), g = input(where, 'd', d);
    const image = imageSizes(where, 'd', g, IMAGE); // whose gradient is that of a convolution with a window of one element
    const c = convolution(where, g.shape ? {...image, kernel: 1} : o, g.shape && g.shape[1], g.node.cols);
    checkShape(where, 'd', g, [null, ...c.result]);
    if (g.shape && [...IMAGE, 'kernel'].every((name) => o[name] !== undefined)) checkShape(where, 'd', g, [null, ...convolution(where, o, c.outputs).result]);
    return this.#layer(where, Layer.BiasGrad, [g], 1, c.outputs, c.words, g.shape && [c.outputs]);
  }

  // Pooling.

  /** @param {string} where @param {number} kind @param {unknown} x @param {unknown} options @param {readonly string[]} [names] */
  #pooled(where, kind, x, options, names = WINDOW) {
    const o = read(where, options, names), a = input(where, 'x', x), w = windowOf(where, merged(imageSizes(where, 'x', a, IMAGE), o));
    checkShape(where, 'x', a, [null, w.channels, w.height, w.width]);
    const words = names === AVERAGE ? [...w.words, o.includePad === true ? 1 : 0] : w.words;
    return this.#layer(where, kind, [a], a.node.rows, w.channels * w.outHeight * w.outWidth, words, a.shape && [a.node.rows, w.channels, w.outHeight, w.outWidth]);
  }

  /** @param {unknown} x @param {unknown} options */
  maxPool(x, options) { return this.#pooled('maxPool', Layer.MaxPool, x, options); }

  /** @param {unknown} x @param {unknown} options */
  averagePool(x, options) { return this.#pooled('averagePool', Layer.AveragePool, x, options, AVERAGE); }

  /** @param {string} where @param {string} name @param {unknown} d @param {unknown} x @param {unknown} options */
  #scattered(where, name, d, x, options) {
    const o = read(where, options, WINDOW), a = input(where, 'x', x), g = input(where, name, d), w = windowOf(where, merged(imageSizes(where, 'x', a, IMAGE), o));
    checkShape(where, 'x', a, [null, w.channels, w.height, w.width]);
    checkShape(where, name, g, [a.node.rows, w.channels, w.outHeight, w.outWidth]);
    return this.#layer(where, Layer.MaxPoolGrad, [g, a], a.node.rows, a.node.cols, w.words, a.shape);
  }

  /** @param {unknown} d @param {unknown} x @param {unknown} options */
  maxPoolGrad(d, x, options) { return this.#scattered('maxPoolGrad', 'd', d, x, options); }

  /** @param {unknown} y @param {unknown} x @param {unknown} options */
  maxUnpool(y, x, options) { return this.#scattered('maxUnpool', 'y', y, x, options); }

  /** @param {unknown} d @param {unknown} options */
  averagePoolGrad(d, options) {
    const where = 'averagePoolGrad', o = read(where, options, AVERAGE), g = input(where, 'd', d);
    const {channels} = /** @type {any} */ (imageSizes(where, 'd', g, IMAGE)), w = windowOf(where, merged({channels}, o)), rows = g.node.rows;
    checkShape(where, 'd', g, [null, w.channels, w.outHeight, w.outWidth]);
    const words = [...w.words, o.includePad === true ? 1 : 0], image = [w.channels, w.height, w.width];
    return this.#layer(where, Layer.AveragePoolGrad, [g], rows, w.channels * w.height * w.width, words, g.shape && [rows, ...image]);
  }

  // Losses and the like.

  /** Logits and labels. @param {string} where @param {string} name @param {unknown} x @param {unknown} labels */
  #labelled(where, name, x, labels) {
    const a = input(where, name, x), at = input(where, 'labels', labels, INT32);
    imageSizes(where, name, a, ['classes']);
    return [a, vector(where, 'labels', at, a.node.rows)];
  }

  /** @param {unknown} x @param {unknown} labels */
  crossEntropy(x, labels) {
    const where = 'crossEntropy', [a, at] = this.#labelled(where, 'x', x, labels);
    return this.#layer(where, Layer.CrossEntropy, [a, at], a.node.rows, 1, [], a.shape && [a.node.rows]);
  }

  /** @param {unknown} x @param {unknown} labels */
  crossEntropyGrad(x, labels) {
    const where = 'crossEntropyGrad', [a, at] = this.#labelled(where, 'x', x, labels);
    return this.#layer(where, Layer.CrossEntropyGrad, [a, at], a.node.rows, a.node.cols, [], a.shape);
  }

  /** Two operands of one size. @param {string} where @param {unknown} x @param {string} name @param {unknown} other */
  #alike(where, x, name, other) {
    const a = input(where, 'x', x), b = input(where, name, other);
    checkAlike(where, name, b, a);
    return [a, b];
  }

  /** @param {unknown} x @param {unknown} target */
  mse(x, target) {
    const [a, b] = this.#alike('mse', x, 'target', target);
    return this.#layer('mse', Layer.MSE, [a, b], 1, 1, [], a.shape && []);
  }

  /** @param {unknown} x @param {unknown} target */
  mseGrad(x, target) {
    const [a, b] = this.#alike('mseGrad', x, 'target', target);
    return this.#layer('mseGrad', Layer.MSEGrad, [a, b], a.node.rows, a.node.cols, [], a.shape);
  }

  /** @param {unknown} x @param {unknown} mask @param {unknown} keep */
  dropout(x, mask, keep) {
    const where = 'dropout', [a, m] = this.#alike(where, x, 'mask', mask), share = numberOf(where, keep);
    if (!(share > 0 && share <= 1)) throw failure('ErrInvalid', where, `keep ${share}; it is above 0 and up to 1`);
    return this.#layer(where, Layer.Dropout, [a, m], a.node.rows, a.node.cols, [share], a.shape);
  }

  /** @param {unknown} table @param {unknown} labels */
  embedding(table, labels) {
    const where = 'embedding', t = input(where, 'table', table), at = input(where, 'labels', labels, INT32), n = at.node.rows * at.node.cols;
    imageSizes(where, 'table', t, ['width']);
    const list = at.shape ? {...at, node: resized(where, at.node, 1, n)} : at;
    if (list.node.rows !== 1 && list.node.cols !== 1) throw failure('ErrShape', where, `labels of ${at.node.rows}x${at.node.cols}; they are a row or a column`);
    return this.#layer(where, Layer.Embedding, [t, list], n, t.node.cols, [], at.shape && [...at.shape, t.node.cols]);
  }

  /** @param {unknown} d @param {unknown} labels @param {unknown} vocabulary */
  embeddingGrad(d, labels, vocabulary) {
    const where = 'embeddingGrad', rows = wholeNumber(where, 'vocabulary', vocabulary, 0), [g, at] = this.#labelled(where, 'd', d, labels);
    return this.#layer(where, Layer.EmbeddingGrad, [g, at], rows, g.node.cols, [rows], g.shape && [rows, g.node.cols]);
  }

  // What writes to several matrices or makes several.

  /** @param {unknown} [options] */
  batchNorm(options) { return new BatchNorm(this.#session, options); }

  /** @param {unknown} x @param {unknown} [options] */
  quantise(x, options) { return quantised(this.#session, x, options); }

  // Optimisers.

  /** @param {unknown} [options] */
  sgd(options) { return new Optimiser(this.#session, 'sgd', options); }

  /** @param {unknown} [options] */
  momentum(options) { return new Optimiser(this.#session, 'momentum', options); }

  /** @param {unknown} [options] */
  adagrad(options) { return new Optimiser(this.#session, 'adagrad', options); }

  /** @param {unknown} [options] */
  rmsprop(options) { return new Optimiser(this.#session, 'rmsprop', options); }

  /** @param {unknown} [options] */
  adam(options) { return new Optimiser(this.#session, 'adam', options); }

  /** @param {unknown} [options] */
  adadelta(options) { return new Optimiser(this.#session, 'adadelta', options); }

  get [Symbol.toStringTag]() { return 'SubletNN'; }
}
