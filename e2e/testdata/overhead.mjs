// SPDX-License-Identifier: Apache-2.0

// Tests of what one evaluation, one upload and one download take: calls of WebGPU and calls between the program and JavaScript, counted
// when everything has been made that is made once.

import {check, fails, same, webgpu, withGpu} from './testing.mjs';

const CALLS = [
  [GPUQueue, ['submit', 'writeBuffer']],
  [GPUDevice, ['createBuffer', 'createBindGroup', 'createCommandEncoder', 'pushErrorScope']],
  [GPUBuffer, ['mapAsync', 'getMappedRange']],
];

/** Runs something a few times, and then with its calls of WebGPU counted and noted. @param {() => Promise<unknown>} run */
async function counted(run) {
  const counts = {}, notes = [], originals = [];
  for (let i = 0; i < 3; i++) await run();
  for (const [owner, names] of CALLS) {
    for (const name of names) {
      const original = owner.prototype[name];
      originals.push([owner, name, original]);
      owner.prototype[name] = function (...args) {
        counts[name] = (counts[name] ?? 0) + 1;
        notes.push([name, args]);
        return original.apply(this, args);
      };
    }
  }
  try {
    await run();
  } finally {
    for (const [owner, name, original] of originals) owner.prototype[name] = original;
  }
  return {counts, notes};
}

/** Wants exactly these calls. */
const wants = (counts, want, what) => check(JSON.stringify(Object.entries(counts).sort()) === JSON.stringify(Object.entries(want).sort()), `${what}: ${JSON.stringify(counts)}, want ${JSON.stringify(want)}`);

/** A device, and a function that counts the calls of JavaScript that its program makes. */
async function observed() {
  const {instantiate} = WebAssembly;
  let calls = 0;
  WebAssembly.instantiate = (module, imports) => {
    for (const [name, call] of Object.entries(imports.gojs)) {
      if (name.startsWith('syscall/js.') && !name.endsWith('finalizeRef')) imports.gojs[name] = (sp) => { calls++; call(sp); };
    }
    return instantiate(module, imports);
  };
  try {
    const gpu = await webgpu();
    return {gpu, crossings: async (run) => {
      for (let i = 0; i < 3; i++) await run();
      const before = calls;
      for (let i = 0; i < 4; i++) await run();
      return (calls - before) / 4;
    }};
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

const N = 64 * 64, SIZE = 4 * N;

export const tests = {
  evaluation: withGpu(async (gpu) => {
    const a = gpu.matrix(64, 64, new Float32Array(N).fill(1)), b = gpu.matrix(64, 64, new Float32Array(N).fill(2));
    const {counts} = await counted(async () => {
      a.add(b).eval().close();
      await gpu.sync();
    });
    wants(counts, {createCommandEncoder: 1, submit: 1}, 'an evaluation');
  }),

  result: withGpu(async (gpu) => {
    const a = gpu.matrix(64, 64, new Float32Array(N).fill(1)), b = gpu.matrix(64, 64, new Float32Array(N).fill(2));
    let values = [];
    const {counts} = await counted(async () => { values = await a.add(b).read(); });
    wants(counts, {createCommandEncoder: 1, submit: 1, mapAsync: 1, getMappedRange: 1}, 'an evaluation with its result');
    same(values, new Float32Array(N).fill(3), 'the sum');
  }),

  upload: withGpu(async (gpu) => {
    const values = new Float32Array(N + 8).fill(5).subarray(4, N + 4);
    const {counts, notes} = await counted(async () => {
      const m = gpu.matrix(64, 64, values);
      values.fill(9); // which the matrix does not see
      same((await m.read()).slice(0, 2), [5, 5], 'what was uploaded');
      values.fill(5);
      m.close();
      await gpu.sync();
    });
    wants(counts, {writeBuffer: 1, createCommandEncoder: 1, submit: 1, mapAsync: 1, getMappedRange: 1}, 'an upload and a download');
    const [, [, , memory, at, size]] = notes.find(([name]) => name === 'writeBuffer');
    check(memory === values.buffer && at === values.byteOffset && size === SIZE, `written from ${memory}, ${size} bytes at ${at}`);
  }),

  async crossings() {
    const {gpu, crossings} = await observed();
    const a = gpu.matrix(64, 64, new Float32Array(N).fill(1)), b = gpu.matrix(64, 64, new Float32Array(N).fill(2)), values = new Float32Array(N);
    const sync = await crossings(() => gpu.sync());
    const evaluation = await crossings(async () => {
      a.add(b).eval().close();
      await gpu.sync();
    });
    const result = await crossings(() => a.add(b).read());
    const upload = await crossings(async () => {
      gpu.matrix(64, 64, values).close();
      await gpu.sync();
    });
    check(sync <= 2 && evaluation <= 3 && result <= 4 && upload <= 4, `${sync} calls of JavaScript to wait, ${evaluation} for an evaluation, ${result} for its result, ${upload} for an upload`);
    gpu.close();
  },

  // Error scopes are left out where nothing can fail any more. A page that has the buffer can still make it fail.
  shown: withGpu(async (gpu) => {
    const a = gpu.matrix(64, 64, new Float32Array(N).fill(1)), b = gpu.matrix(64, 64, new Float32Array(N).fill(2)), c = gpu.zeros(64, 64);
    for (let i = 0; i < 3; i++) {
      c.assign(a.add(b));
      same((await c.read()).slice(0, 1), [3], 'the sum');
    }
    (await a.buffer).destroy();
    c.assign(a.add(b));
    await fails('ErrInvalid', 'a sum of what the page has destroyed', () => c.read());
    c.assign(b.add(b));
    same((await c.read()).slice(0, 1), [4], 'another sum');
  }),

  // What is queued with a read is submitted with it, or else by itself.
  withoutRead: withGpu(async (gpu) => {
    const a = gpu.matrix(64, 64, new Float32Array(N).fill(1)), c = gpu.zeros(64, 64);
    for (let i = 1; i < 6; i++) {
      c.assign(c.add(a));
      const abort = new AbortController();
      const read = c.read({signal: abort.signal});
      abort.abort();
      await read.catch(() => {});
      check(c.rows === 64, 'it is there');
      same((await c.read()).slice(0, 1), [i], 'the sum');
    }
  }),
};
