// SPDX-License-Identifier: Apache-2.0

// Measures what pages load of the npm package: node sizes.mjs, after `make web-build`. TestWebRequests has the lists of what a first product needs.

import {readFileSync, readdirSync} from 'node:fs';
import {brotliCompressSync, constants, gzipSync} from 'node:zlib';

const dist = new URL('./dist/', import.meta.url);
const names = ['index.mjs', 'thread.mjs', ...readdirSync(new URL('parts/', dist)).map((name) => `parts/${name}`).filter((name) => name.endsWith('.mjs')).sort(),
  'sublet.wasm', 'sublet-rest.wasm', 'sublet-simd.wasm', 'sublet-simd-rest.wasm', 'sublet-cruncher.wasm'];
const PRODUCTS = {
  'WebGPU': ['index.mjs', 'sublet.wasm'],
  'CPU, one thread': ['index.mjs', 'sublet-simd.wasm', 'parts/kernels.mjs'],
  'CPU, several threads': ['index.mjs', 'sublet-simd.wasm', 'parts/kernels.mjs', 'parts/crew.mjs', 'thread.mjs'],
};

/** @param {string} name @returns {number[]} bytes as they are, by gzip and by brotli */
function measure(name) {
  const bytes = readFileSync(new URL(name, dist));
  return [bytes.length, gzipSync(bytes, {level: 9}).length, brotliCompressSync(bytes, {params: {[constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length}}).length];
}

const line = (/** @type {string} */ name, /** @type {number[]} */ sizes) => console.log(`| ${name} | ${sizes.map((n) => n.toLocaleString('en')).join(' | ')} |`);
console.log('| file | bytes | gzip -9 | brotli -11 |\n|---|---:|---:|---:|');
const sizes = new Map(names.map((name) => [name, measure(name)]));
for (const [name, list] of sizes) line(name, list);
console.log('\n| first product | requests | bytes | gzip -9 | brotli -11 |\n|---|---:|---:|---:|---:|');
for (const [name, files] of Object.entries(PRODUCTS)) {
  line(name, [files.length, ...[0, 1, 2].map((i) => files.reduce((sum, file) => sum + (sizes.get(file)?.[i] ?? NaN), 0))]);
}
