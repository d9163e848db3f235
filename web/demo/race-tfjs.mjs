// SPDX-License-Identifier: Apache-2.0

// TensorFlow.js as an entry of the race. web/build.mjs bundles it, with the backends, for the pages alone.
import * as tf from '@tensorflow/tfjs-core';

/** Takes the backend for what Sublet computes on. @param {{webgpu: boolean, threads: number}} options */
export async function load({webgpu, threads}) {
  if (webgpu) {
    await import('@tensorflow/tfjs-backend-webgpu');
  } else {
    const {setThreadsCount, setWasmPaths} = await import('@tensorflow/tfjs-backend-wasm');
    setWasmPaths(new URL('./', import.meta.url).href);
    setThreadsCount(threads);
  }
  const name = webgpu ? 'webgpu' : 'wasm';
  if (!await tf.setBackend(name)) throw new Error(`TensorFlow.js has no backend ${name} here`);
  await tf.ready();
  return {name: `version ${tf.version_core}, backend ${name}`};
}

/** Submits what is queued. */
export function flush() {
  const backend = /** @type {any} */ (tf.backend());
  if (!backend.queue) return;
  backend.endComputePassEncoder();
  if (backend.commandEncoder) backend.submitQueue();
}

export async function sync() {
  flush();
  await /** @type {any} */ (tf.backend()).queue?.onSubmittedWorkDone();
}

/** @param {tf.Tensor[]} inputs @param {(...inputs: any[]) => tf.Tensor} compute */
const item = (inputs, compute) => ({
  run: () => tf.tidy(() => compute(...inputs)),
  read: (/** @type {tf.Tensor} */ result) => result.data(),
  free: (/** @type {tf.Tensor} */ result) => result.dispose(),
  close: () => inputs.forEach((t) => t.dispose()),
});
const tensor = (/** @type {Float32Array} */ values, /** @type {number[]} */ ...shape) => tf.tensor(values, shape, 'float32');

/** @typedef {import('./race-items.mjs').Item} Item @typedef {{a: Float32Array, b: Float32Array, c: Float32Array}} Inputs */
/** @type {Record<string, (item: Item, inputs: Inputs) => any>} */
export const items = {
  matmul: ({m, k, n}, {a, b}) => item([tensor(a, m, k), tensor(b, k, n)], (x, y) => tf.matMul(x, y)),
  fma: ({n}, {a, b, c}) => item([tensor(a, n), tensor(b, n), tensor(c, n)], (x, y, z) => tf.add(tf.mul(x, y), z)),
  chain: ({n}, {a, b}) => item([tensor(a, n), tensor(b, n)], (x, y) => {
    const t = tf.exp(tf.neg(tf.sqrt(tf.abs(tf.add(tf.mul(x, y), x)))));
    return tf.mul(tf.sub(tf.mul(tf.add(t, y), x), y), x);
  }),
  sum: ({n}, {a}) => item([tensor(a, n)], (x) => tf.sum(x)),
  softmax: ({m, n}, {a}) => item([tensor(a, m, n)], (x) => tf.softmax(x)),
  transpose: ({m, n}, {a}) => item([tensor(a, m, n)], (x) => tf.transpose(x)),
  tiny: ({side, ops}, {a, b}) => item([tensor(a, side, side), tensor(b, side, side)], (x, y) => {
    let t = x;
    for (let op = 0; op < ops; op++) t = tf.add(t, y);
    return t;
  }),
};
