// SPDX-License-Identifier: Apache-2.0

// Kernels that come with the program for pages without WebGPU, and the same kernels when a page compiles them.

import {init} from '/dist/index.mjs';
import {check, noise, same} from './testing.mjs';

const {instantiate, Module, compile, validate} = WebAssembly;

/** What programs ask the archive for, and the modules that pages make of kernels. */
const seen = {found: 0, missed: 0, modules: /** @type {Set<string>} */ (new Set())};
let hidden = false;

WebAssembly.instantiate = (/** @type {any} */ module, /** @type {any} */ imports) => {
  const kernels = imports?.sublet, {prepared} = kernels ?? {};
  if (prepared) {
    kernels.prepared = (/** @type {number} */ low, /** @type {number} */ high) => {
      const size = hidden ? 0 : prepared(low, high);
      seen[size > 0 ? 'found' : 'missed']++;
      return size;
    };
  }
  return instantiate(module, imports);
};
/** @param {Uint8Array} text of a kernel, or of the rest of the program */
const note = (text) => text.length < 1e5 && seen.modules.add(String.fromCharCode(...text));
WebAssembly.Module = /** @type {any} */ (new Proxy(Module, {construct(target, [text]) {
  note(text);
  return new target(text);
}}));
WebAssembly.compile = (/** @type {any} */ text) => {
  note(text);
  return compile(text);
};

/** @param {object} options of init */
async function compute(options) {
  const gpu = await init({device: 'simd', ...options}), results = [];
  for (const [m, k, n] of [[3, 4, 3], [64, 64, 64], [256, 256, 256], [300, 500, 700], [333, 333, 333], [1, 2048, 2048], [2048, 2048, 1], [32, 784, 128], [2000, 17, 31]]) {
    const a = gpu.matrix(m, k, noise(m * k)), b = gpu.matrix(k, n, noise(k * n, 1)), r = gpu.matrix(1, n, noise(n, 2));
    results.push(await a.matmul(b).read(), await a.matmul(b).add(r).relu().read());
  }
  for (const [m, n] of [[64, 64], [333, 777], [1, 1000]]) {
    const a = gpu.matrix(m, n, noise(m * n)), b = gpu.matrix(m, n, noise(m * n, 1));
    for (const x of [a.add(b), a.sub(b), a.mul(b), a.div(b), a.add(1), a.mul(2), a.relu(), a.exp(), a.tanh(), a.sigmoid(), a.T, a.softmax(), a.sum(), a.mean(), a.max(), a.sum(1), a.sum(0), a.max(1)]) results.push(await x.read());
  }
  results.push(await gpu.eye(4).read(), await gpu.ones(3, 4).read());
  gpu.close();
  return results;
}

/** @param {object} options @param {boolean} relaxed whether the engine seems to have relaxed SIMD */
export async function prepared(options, relaxed) {
  if (!relaxed) WebAssembly.validate = (text) => !String(new Uint8Array(/** @type {any} */ (text))).includes('253,133,2') && validate(text);
  const first = await compute(options), {found, missed, modules} = seen;
  check(found > 30 && missed === 0, `${found} kernels were there, ${missed} were not`);
  check([...modules].some((text) => text.includes('\xfd\x85\x02')) === relaxed, 'instructions of relaxed SIMD');
  Object.assign(seen, {found: 0, missed: 0, modules: new Set()});
  hidden = true;
  (await compute(options)).forEach((x, i) => same(x, first[i], `result ${i}`));
  check(seen.missed === found, `${seen.missed} kernels were compiled, not ${found}`);
  check(modules.size === seen.modules.size && [...modules].every((text) => seen.modules.has(text)), 'a module is not what the page compiles');
  return found;
}
