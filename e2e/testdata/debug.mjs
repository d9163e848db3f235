// SPDX-License-Identifier: Apache-2.0

// Tests of what a page logs, of the labels that browsers' tools show, and of the kernels that errors name.

import {init} from '/dist/index.mjs';
import {check, fails, webgpu} from './testing.mjs';

/** Runs something and returns the lines that the console got meanwhile. @param {() => Promise<void>} run */
async function logged(run) {
  const {debug, warn} = console, lines = [];
  const note = (...line) => lines.push(line.map((x) => typeof x === 'string' ? x : JSON.stringify(x)).join(' '));
  console.debug = console.warn = note;
  try {
    await run();
  } finally {
    Object.assign(console, {debug, warn});
  }
  return lines;
}

/** Computes something of every kind. */
async function compute(options) {
  const gpu = await webgpu(options);
  const a = gpu.matrix(2, 2, [1, 2, 3, 4]);
  await a.matmul(a).read();
  a.close();
  gpu.close();
}

/** Runs something and returns the labels of what was made with these functions of a class. */
async function labels(made, run) {
  const found = {}, originals = [];
  for (const [owner, name] of made) {
    const original = owner.prototype[name];
    originals.push([owner, name, original]);
    found[name] = new Set();
    owner.prototype[name] = function (descriptor) {
      found[name].add(descriptor?.label);
      return original.apply(this, arguments);
    };
  }
  try {
    await run();
  } finally {
    for (const [owner, name, original] of originals) owner.prototype[name] = original;
  }
  return found;
}

export const tests = {
  async ladder() {
    const wants = {
      calls: ['device opened', 'buffer made', 'write', 'batch sent', 'read', 'device closed'],
      kernels: ['compiled', 'dispatch', 'batch sent'],
      wgsl: ['"wgsl":', 'dispatch', 'batch sent'],
    };
    for (const [debug, texts] of Object.entries(wants)) {
      const lines = await logged(() => compute({debug}));
      for (const text of texts) check(lines.some((line) => line.startsWith('sublet: ') && line.includes(text)), `${debug}: no ${text} in ${lines.join('\n')}`);
      check(lines.some((line) => line.includes('dispatch')) === (debug !== 'calls'), `${debug}: ${lines.join('\n')}`);
      check(lines.some((line) => line.includes('"wgsl"')) === (debug === 'wgsl'), `${debug}: ${lines.join('\n')}`);
    }
    globalThis.SUBLET_DEBUG = 'kernels';
    const lines = await logged(() => compute());
    delete globalThis.SUBLET_DEBUG;
    check(lines.some((line) => line.includes('dispatch')), `by the variable: ${lines.join('\n')}`);
    const silent = await logged(() => compute());
    check(silent.length === 0, `nobody asked for ${silent.join('\n')}`);
    for (const debug of ['all', 5, null]) await fails('ErrInvalid', `debug ${debug}`, () => init({debug: debug ?? {}}));
  },

  async labels() {
    const found = await labels([
      [GPUDevice, 'createBuffer'], [GPUDevice, 'createShaderModule'], [GPUDevice, 'createComputePipelineAsync'], [GPUDevice, 'createBindGroup'],
      [GPUDevice, 'createCommandEncoder'], [GPUCommandEncoder, 'beginComputePass'],
    ], () => compute());
    for (const [name, set] of Object.entries(found)) {
      check(set.size > 0 && [...set].every((label) => typeof label === 'string' && label !== ''), `${name}: ${[...set].join(', ')}`);
    }
    for (const label of ['sublet', 'sublet staging', 'sublet parameters']) check(found.createBuffer.has(label), `no buffer is a ${label}`);
    const kernels = [...found.createComputePipelineAsync];
    check(kernels.some((label) => label.includes('product')), `no pipeline is a product: ${kernels.join(', ')}`);
    check(kernels.every((label) => found.createShaderModule.has(label)), 'modules and pipelines have different labels');
  },

  async lastKernels() {
    const gpu = await webgpu(), foreign = gpu.device.createBuffer({size: 64, usage: 0x80 | 0x4 | 0x8});
    const m = gpu.wrapBuffer(foreign, 4, 4);
    await m.read();
    m.assign(m.add(1));
    foreign.destroy();
    const error = await m.read().then(() => null, (e) => e);
    check(error?.message.includes('last kernels: '), `no kernel is named in ${error?.message}`);
    gpu.close();
  },
};
