// SPDX-License-Identifier: Apache-2.0

// What is computed in the race: the items, their inputs, and what they should yield, in float64.

/**
 * @typedef {'matmul' | 'fma' | 'chain' | 'sum' | 'softmax' | 'transpose' | 'tiny'} Kind
 * @typedef {object} Item
 * @property {string} id
 * @property {Kind} kind
 * @property {string} name what it is called on the page
 * @property {string} what it does
 * @property {number} m rows @property {number} k inner size of a product @property {number} n columns, or elements of a list
 * @property {number} ops operations in a row @property {number} side of the small matrices
 * @property {number} flop operations of floating point that it takes
 * @property {number} bytes that must be read and written at least
 * @property {number} tolerance how much a result may be off, by the largest element
 */

/** @param {Kind} kind @param {number} size @returns {Item} */
function item(kind, size) {
  const square = size * size, list = size, none = {m: 0, k: 0, n: 0, ops: 0, side: 0}, by = `${size} \u00d7 ${size}`;
  const count = size >= 1 << 20 ? 'a million' : `${size >> 10} thousand`;
  switch (kind) {
    case 'matmul': return {...none, id: `matmul${size}`, kind, name: 'Product', what: by, m: size, k: size, n: size, flop: 2 * size * square, bytes: 12 * square, tolerance: 2e-5};
    case 'fma': return {...none, id: `fma${size}`, kind, name: 'a * b + c', what: count, n: list, flop: 2 * list, bytes: 16 * list, tolerance: 1e-6};
    case 'chain': return {...none, id: `chain${size}`, kind, name: '10 operations', what: count, n: list, flop: 10 * list, bytes: 12 * list, tolerance: 1e-5};
    case 'sum': return {...none, id: `sum${size}`, kind, name: 'Sum', what: count, n: list, flop: list, bytes: 4 * list, tolerance: 1e-4};
    case 'softmax': return {...none, id: `softmax${size}`, kind, name: 'Softmax of rows', what: by, m: size, n: size, flop: 5 * square, bytes: 8 * square, tolerance: 1e-5};
    case 'transpose': return {...none, id: `transpose${size}`, kind, name: 'Transpose', what: by, m: size, n: size, flop: 0, bytes: 8 * square, tolerance: 0};
    default: return {...none, id: `tiny${size}`, kind, name: `${size} small sums`, what: '64 \u00d7 64 each', n: 4096, ops: size, side: 64, flop: 4096 * size, bytes: 3 * 4096 * 4 * size, tolerance: 1e-5};
  }
}

const K = 1024, M = K * K;
/** The short race, which the page begins with, and the full one. @type {Record<'short' | 'full', Item[]>} */
export const races = {
  short: [item('matmul', 256), item('fma', 256 * K), item('chain', 256 * K), item('sum', 256 * K), item('softmax', 512), item('transpose', 512), item('tiny', 50)],
  full: [
    item('matmul', 256), item('matmul', 512), item('matmul', 1024), item('fma', M), item('chain', M), item('sum', M), item('softmax', 1024),
    item('transpose', 1024), item('tiny', 200),
  ],
};

/** Numbers of a seed, from low to high. @param {number} n @param {number} seed */
function random(n, seed, low = -1, high = 1) {
  const values = new Float32Array(n), step = (high - low) / 2 ** 32;
  let s = (seed * 2654435761) >>> 0;
  for (let i = 0; i < n; i++) {
    s ^= s << 13;
    s ^= s >>> 17;
    s ^= s << 5;
    values[i] = low + (s >>> 0) * step;
  }
  return values;
}

/** @param {Item} item @returns {{a: Float32Array, b: Float32Array, c: Float32Array}} */
export function inputs({kind, m, k, n}) {
  const none = new Float32Array(0);
  switch (kind) {
    case 'matmul': return {a: random(m * k, 1), b: random(k * n, 2), c: none};
    case 'sum': return {a: random(n, 1, 0, 1), b: none, c: none};
    case 'softmax': return {a: random(m * n, 1, -4, 4), b: none, c: none};
    case 'transpose': return {a: random(m * n, 1), b: none, c: none};
    case 'tiny': return {a: random(n, 1), b: random(n, 2, 0, 1), c: none};
    default: return {a: random(n, 1), b: random(n, 2), c: random(n, 3)};
  }
}

/** The result in float64. @param {Item} item @param {{a: Float32Array, b: Float32Array, c: Float32Array}} inputs */
export function reference({kind, m, k, n, ops}, {a, b, c}) {
  switch (kind) {
    case 'matmul': return product(m, k, n, Float64Array.from(a), Float64Array.from(b), new Float64Array(m * n));
    case 'fma': return Float64Array.from(a, (v, i) => v * b[i] + c[i]);
    case 'chain': return Float64Array.from(a, (v, i) => chain(v, b[i]));
    case 'sum': return Float64Array.of(a.reduce((s, v) => s + v, 0));
    case 'softmax': return softmax(m, n, a, new Float64Array(m * n));
    case 'transpose': return transpose(m, n, a, new Float64Array(m * n));
    default: return Float64Array.from(a, (v, i) => v + ops * b[i]);
  }
}

/** How far a result is off, by the largest element of the right one. @param {Float64Array} want @param {ArrayLike<number>} got */
export function difference(want, got) {
  if (got.length !== want.length) return Infinity;
  let most = 0, worst = 0;
  for (let i = 0; i < want.length; i++) {
    const off = Math.abs(got[i] - want[i]);
    if (Number.isNaN(off)) return Infinity;
    most = Math.max(most, Math.abs(want[i]));
    worst = Math.max(worst, off);
  }
  return worst / (most || 1);
}

/** The ten operations. @param {number} x @param {number} y */
export const chain = (x, y) => ((Math.exp(-Math.sqrt(Math.abs(x * y + x))) + y) * x - y) * x;

/** @template {Float32Array | Float64Array} T @param {number} m @param {number} k @param {number} n @param {T} a @param {T} b @param {T} out */
export function product(m, k, n, a, b, out) {
  for (let i = 0; i < m; i++) {
    for (let l = 0; l < k; l++) {
      const v = a[i * k + l];
      for (let j = 0; j < n; j++) out[i * n + j] += v * b[l * n + j];
    }
  }
  return out;
}

/** @template {Float32Array | Float64Array} T @param {number} m @param {number} n @param {Float32Array} a @param {T} out */
export function softmax(m, n, a, out) {
  for (let i = 0; i < m * n; i += n) {
    let most = -Infinity, sum = 0;
    for (let j = i; j < i + n; j++) most = Math.max(most, a[j]);
    for (let j = i; j < i + n; j++) sum += out[j] = Math.exp(a[j] - most);
    for (let j = i; j < i + n; j++) out[j] /= sum;
  }
  return out;
}

/** Goes by tiles, which is as fast as loops get. @template {Float32Array | Float64Array} T @param {number} m @param {number} n @param {Float32Array} a @param {T} out */
export function transpose(m, n, a, out) {
  const tile = 32;
  for (let i0 = 0; i0 < m; i0 += tile) {
    for (let j0 = 0; j0 < n; j0 += tile) {
      for (let i = i0; i < Math.min(m, i0 + tile); i++) {
        for (let j = j0; j < Math.min(n, j0 + tile); j++) out[j * m + i] = a[i * n + j];
      }
    }
  }
  return out;
}
