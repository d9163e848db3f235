// SPDX-License-Identifier: Apache-2.0

// Which programs the package reads in Node, and for which devices; TestWebRequests does it in pages.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {init} from '../dist/index.mjs';

const files = process.getBuiltinModule('node:fs/promises');

/** What init reads with WebGPU as it is given, and the code of its error. */
async function reads(t, gpu, options) {
  const read = [], {readFile} = files;
  t.mock.method(files, 'readFile', async (url, ...more) => {
    if (!String(url).endsWith('.wasm')) return readFile(url, ...more); // by Node, of modules
    read.push(String(url).split('/').at(-1));
    throw new Error('it is not read here');
  });
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  Object.defineProperty(globalThis, 'navigator', {value: {gpu}, configurable: true});
  try {
    return {code: await init(options).then(() => '', ({code}) => code), read};
  } finally {
    t.mock.restoreAll();
    if (before) Object.defineProperty(globalThis, 'navigator', before);
    else delete globalThis.navigator;
  }
}

const having = (adapter) => ({requestAdapter: async () => adapter});

for (const [name, gpu, options, code, ...read] of [
  ['no WebGPU', undefined, {}, 'ErrInvalid', 'sublet-simd.wasm'],
  ['no adapter', having(null), {}, 'ErrInvalid', 'sublet-simd.wasm'],
  ['an adapter that is a program', having({info: {vendor: 'google', architecture: 'swiftshader'}}), {}, 'ErrInvalid', 'sublet-simd.wasm'],
  ['an adapter whose description throws', having({get info() { throw new Error('no'); }}), {}, 'ErrInvalid', 'sublet-simd.wasm'],
  ['WebGPU that throws', {requestAdapter() { throw new Error('no'); }}, {device: 'webgpu'}, 'ErrNoAdapter'],
  ['a GPU', having({info: {vendor: 'nvidia'}}), {}, 'ErrInvalid', 'sublet.wasm'],
  ['any adapter that is asked for', having({info: {architecture: 'swiftshader'}}), {device: 'webgpu'}, 'ErrInvalid', 'sublet.wasm'],
  ['no adapter that is asked for', having(null), {device: 'webgpu'}, 'ErrNoAdapter'],
  ['no WebGPU that is asked for', undefined, {device: 'webgpu'}, 'ErrNoAdapter'],
  ['the CPU', having({info: {vendor: 'nvidia'}}), {device: 'simd'}, 'ErrInvalid', 'sublet-simd.wasm'],
]) test(`programs: ${name}`, async (t) => assert.deepEqual(await reads(t, gpu, options), {code, read}));

test('a device is requested once, beside the download, and destroyed where no program comes', async (t) => {
  const asked = [];
  let destroyed = () => {};
  const gone = new Promise((resolve) => { destroyed = resolve; });
  const limits = {maxBufferSize: 64, maxStorageBufferBindingSize: 32, maxComputeWorkgroupSizeX: 8, maxBindGroups: 4, maxStorageTexturesPerShaderStage: 4};
  const requestDevice = async (wish) => {
    asked.push(wish);
    return {destroy: destroyed};
  };
  const adapter = {info: {vendor: 'nvidia'}, features: new Set(['subgroups', 'texture-compression-bc']), limits, requestDevice};
  const {code, read} = await reads(t, having(adapter), {});
  assert.deepEqual({code, read}, {code: 'ErrInvalid', read: ['sublet.wasm']});
  await gone;
  const requiredLimits = {maxBufferSize: 64, maxStorageBufferBindingSize: 32, maxComputeWorkgroupSizeX: 8};
  assert.deepEqual(asked, [{label: 'sublet', requiredLimits, requiredFeatures: ['subgroups']}]);
});

test('an adapter that gives no device is an error', async () => {
  const adapter = {info: {vendor: 'nvidia'}, features: new Set(), limits: {}, requestDevice: async () => { throw new TypeError('no device'); }};
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator');
  Object.defineProperty(globalThis, 'navigator', {value: {gpu: having(adapter)}, configurable: true});
  try {
    await assert.rejects(init(), {name: 'SubletError'});
  } finally {
    if (before) Object.defineProperty(globalThis, 'navigator', before);
    else delete globalThis.navigator;
  }
  const gpu = await init();
  assert.deepEqual([...await gpu.eye(2).mul(2).read()], [2, 0, 0, 2]);
  gpu.close();
});
