// SPDX-License-Identifier: Apache-2.0

// Plain JavaScript as an entry of the race: loops over typed arrays, on one thread.
import {chain, product, softmax, transpose} from './race-items.mjs';

export const load = async () => ({name: 'loops over typed arrays, one thread'});
export const sync = async () => {};

/** @param {() => Float32Array} run */
const item = (run) => ({run, read: (/** @type {Float32Array} */ values) => values, free() {}, close() {}});
/** @param {number} n @param {(i: number) => number} each */
function map(n, each) {
  const y = new Float32Array(n);
  for (let i = 0; i < n; i++) y[i] = each(i);
  return y;
}

/** @typedef {import('./race-items.mjs').Item} Item @typedef {{a: Float32Array, b: Float32Array, c: Float32Array}} Inputs */
/** @type {Record<string, (item: Item, inputs: Inputs) => any>} */
export const items = {
  matmul: ({m, k, n}, {a, b}) => item(() => product(m, k, n, a, b, new Float32Array(m * n))),
  fma: ({n}, {a, b, c}) => item(() => map(n, (i) => a[i] * b[i] + c[i])),
  chain: ({n}, {a, b}) => item(() => map(n, (i) => chain(a[i], b[i]))),
  sum: ({n}, {a}) => item(() => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += a[i];
    return Float32Array.of(sum);
  }),
  softmax: ({m, n}, {a}) => item(() => softmax(m, n, a, new Float32Array(m * n))),
  transpose: ({m, n}, {a}) => item(() => transpose(m, n, a, new Float32Array(m * n))),
  tiny: ({n, ops}, {a, b}) => item(() => {
    let t = a;
    for (let op = 0; op < ops; op++) {
      const from = t;
      t = map(n, (i) => from[i] + b[i]);
    }
    return t;
  }),
};
