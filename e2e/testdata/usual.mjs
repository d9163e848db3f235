// SPDX-License-Identifier: Apache-2.0

// What most pages do first. The functions of Go that run here are those that are in the first part of a program: `make profile` makes its list of
// them, and TestUsual wants no others to be called.

import {check, noise, same} from './testing.mjs';

/** Counts functions that are called and not there, or all that are called if the program tells. @type {Set<number>} */
const wanted = new Set();
/** Whether the program tells of all functions that are called. */
let telling = false;
const {instantiate} = WebAssembly;
WebAssembly.instantiate = (/** @type {any} */ module, /** @type {any} */ imports) => {
  const rest = imports?.sublet_rest;
  if (rest) {
    const {want} = rest;
    rest.want = (/** @type {number} */ f) => {
      wanted.add(f);
      return telling ? 0 : want(f);
    };
  }
  return instantiate(module, imports);
};
globalThis.requestIdleCallback = () => 0; // the rest comes when it is needed, and not earlier

/** @param {import('/dist/index.mjs').Gpu} gpu */
async function compute(gpu) {
  const ones = Float32Array.from({length: 12}, () => 1), a = gpu.matrix(3, 4, ones), b = gpu.matrix(4, 3, ones);
  same(await a.matmul(b).read(), new Float32Array(9).fill(4), 'product');
  const c = gpu.wrap(new Float32Array(12).fill(2), 4, 3), eye = gpu.eye(300), big = gpu.matrix(300, 300, noise(90000));
  same(await a.matmul(c).read(), new Float32Array(9).fill(8), 'product of wrapped memory');
  const many = gpu.ones(512, 512);
  check(await many.matmul(many).sum().value() === 512 ** 3, 'a sum of a product');
  const product = eye.matmul(big).eval();
  check(await product.sub(big).abs().max().value() === 0, 'a larger product');
  if (telling) await new Promise((done) => setTimeout(done, 4000)); // what runs after a while, as on a slow machine
  const soft = product.softmax();
  check(Math.abs(await soft.sum().value() - 300) < 1e-3, 'softmax');
  const chain = a.mul(2).add(a).abs().sqrt().neg().exp().add(1).sub(a).div(2).T;
  check((await chain.read()).length === 12, 'a chain');
  check((await a.tanh().relu().pow(2).read()).length === 12, 'functions');
  check(await a.mean().value() === 1, 'mean');
  // Kernels that do not come with the program for pages without WebGPU, which compiles them.
  check(await a.mul(2).add(a).sqrt().sum().value() > 0 && (await a.matmul(b).mul(2).sub(1).tanh().read()).length === 9, 'fused with others');
  check(Math.abs(await product.mul(2).sub(1).softmax().sum(1).max().value() - 1) < 1e-5, 'softmax of others');
  check((await product.sum(1).read()).length === 300 && (await product.max(0).read()).length === 300, 'rows');
  for (let i = 0; i < 4; i++) { // new elements again and again, in the memory of what was closed and in the same matrix
    const x = gpu.matrix(100, 100, noise(10000, i)), y = x.add(1).eval();
    check((await y.sub(x).read()).every((v) => Math.abs(v - 1) < 1e-6), 'a step of a loop');
    x.close();
    y.close();
    a.set(new Float32Array(12).fill(i + 1));
    check(await a.sum().value() === 12 * (i + 1), 'elements that were set');
  }
  await gpu.sync();
  for (const m of [a, b, c, eye, big, many, product]) m.close();
}

/** @param {object} options of init @param {boolean} tells @returns {Promise<number[]>} */
export async function usual(options, tells) {
  telling = tells;
  const {init} = await import('/dist/index.mjs'), gpu = await init(options);
  await compute(gpu);
  gpu.close();
  return [...wanted];
}
