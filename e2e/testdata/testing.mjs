// SPDX-License-Identifier: Apache-2.0

// What the tests of the npm package have in common. A module exports them as `tests`, by name; web_test.go runs them. Each throws
// when it fails.

import {SubletError, init} from '/dist/index.mjs';

/** @param {boolean} ok @param {string} what */
export function check(ok, what) {
  if (!ok) throw new Error(what);
}

/** Compares numbers: equal, or no further apart than the tolerance allows (absolute, one or one per element). */
export function same(got, want, what, tolerance = 0) {
  const [g, w] = [Array.from(got), Array.from(want)];
  check(g.length === w.length, `${what}: ${g.length} elements, want ${w.length}`);
  g.forEach((x, i) => {
    const t = typeof tolerance === 'number' ? tolerance : tolerance[i];
    check(Object.is(x, w[i]) || Math.abs(x - w[i]) <= t, `${what}: element ${i} is ${x}, want ${w[i]} within ${t}`);
  });
}

/** Expects a SubletError with the code, thrown or rejected. */
export async function fails(code, what, run) {
  let result;
  try {
    result = await run();
  } catch (error) {
    check(error instanceof SubletError, `${what}: threw ${error?.stack ?? error}`);
    check(error.code === code, `${what}: ${error.code}, want ${code}: ${error.message}`);
    return;
  }
  throw new Error(`${what}: no error but ${result}`);
}

/** Expects a SubletError thrown by the call itself. */
export async function throws(code, what, run) {
  let returned = false;
  await fails(code, what, () => {
    run();
    returned = true;
  }).catch((error) => { throw returned ? new Error(`${what}: nothing was thrown at once`) : error; });
}

/** Numbers from -1 to 1 that are the same every time. */
export function noise(n, seed = 1) {
  let s = seed * 2654435761 >>> 0;
  return Float32Array.from({length: n}, () => {
    s = (Math.imul(s, 1664525) + 1013904223) >>> 0;
    return s / 2 ** 31 - 1;
  });
}

/** The product in float64 and how far float32 may be off: k * 2^-24 * sum |a||b|. */
export function reference(a, b, m, k, n) {
  const c = new Float64Array(m * n), bound = new Float64Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0, size = 0;
      for (let l = 0; l < k; l++) {
        sum += a(i, l) * b(l, j);
        size += Math.abs(a(i, l) * b(l, j));
      }
      c[i * n + j] = sum;
      bound[i * n + j] = k * 2 ** -24 * size;
    }
  }
  return {c, bound};
}

/** Whether every call was made once, after the device has done what it was asked for. */
export async function called(gpu, calls, want, what) {
  await gpu.sync();
  await null;
  check(calls.join() === want.join(), `${what}: released ${calls.join()}, want ${want.join()}`);
}

/** Runs where the page has no WebGPU. */
export async function withoutWebGPU(run) {
  Object.defineProperty(navigator, 'gpu', {value: undefined, configurable: true});
  try {
    await run();
  } finally {
    delete navigator.gpu;
  }
}

/** A device of WebGPU: SwiftShader, which is not what a page gets by itself. */
export const webgpu = (options) => init({device: 'webgpu', ...options});

/**
 * A device, of WebGPU by default, and functions that count the calls of JavaScript that its program makes, on the CPU those of kernels too:
 * of all, and of one use of something.
 */
export async function observed(options) {
  const {instantiate} = WebAssembly;
  let calls = 0;
  WebAssembly.instantiate = (module, imports) => {
    if (!imports?.gojs) return instantiate(module, imports); // of somebody else's
    for (const [name, call] of Object.entries(imports.gojs)) {
      if (name.startsWith('syscall/js.') && !name.endsWith('finalizeRef')) imports.gojs[name] = (sp) => { calls++; call(sp); };
    }
    const {launch} = imports.sublet ?? {};
    if (launch) imports.sublet.launch = (...args) => { calls++; launch(...args); };
    return instantiate(module, imports);
  };
  try {
    const gpu = await webgpu({tuning: false, ...options}); // what earlier pages timed would be looked up in between
    return {gpu, count: () => calls, crossings: async (run) => {
      for (let i = 0; i < 3; i++) await run();
      const before = calls;
      for (let i = 0; i < 4; i++) await run();
      return (calls - before) / 4;
    }};
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

const drivers = {webgpu: 'browser', simd: 'simd'};

async function on(device, run) {
  const gpu = await init({device}), driver = drivers[device];
  try {
    check(gpu.info.driver === driver, `driver ${gpu.info.driver}, want ${driver}`);
    await run(gpu);
  } finally {
    gpu.close();
  }
}

/** A test with a device of its own of WebGPU. */
export const withGpu = (run) => () => on('webgpu', run);

/** A test with a device of its own of WebGPU, one that computes on the CPU, or one after the other: "webgpu", "simd" or "both". */
export const onBoth = (run) => Object.assign(async (device) => {
  if (device !== 'simd') await on('webgpu', run);
  if (device !== 'webgpu') await on('simd', run);
}, {both: true});

/** Runs while programs are started that die in an import of theirs as soon as they are to. */
export async function mortally(name, run) {
  const {instantiate} = WebAssembly, programs = {started: 0, deadly: false};
  WebAssembly.instantiate = (module, imports) => {
    const call = imports.gojs[name];
    imports.gojs[name] = (sp) => {
      if (programs.deadly) throw new Error('as if by a trap');
      call(sp);
    };
    programs.started++;
    return instantiate(module, imports);
  };
  try {
    await run(programs);
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

/** @param {GPUDevice} device @param {Float32Array} values */
export function gpuBuffer(device, values) {
  const buffer = device.createBuffer({size: values.byteLength, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST});
  device.queue.writeBuffer(buffer, 0, values);
  return buffer;
}

/** @param {GPUDevice} device @param {GPUBuffer} buffer */
export async function contents(device, buffer) {
  const staging = device.createBuffer({size: buffer.size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST});
  const encoder = device.createCommandEncoder();
  encoder.copyBufferToBuffer(buffer, 0, staging, 0, buffer.size);
  device.queue.submit([encoder.finish()]);
  await staging.mapAsync(GPUMapMode.READ);
  const values = new Float32Array(staging.getMappedRange().slice(0));
  staging.destroy();
  return values;
}

/** Runs with a device and a function that tells how large its program's memory is. @param open opens the device */
export async function measured(open, run) {
  const {instantiate} = WebAssembly;
  let memory;
  WebAssembly.instantiate = async (...args) => {
    const instance = await instantiate(...args);
    memory = instance.exports.mem;
    return instance;
  };
  try {
    const gpu = await open();
    await run(gpu, () => memory.buffer.byteLength).finally(() => gpu.close());
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}
