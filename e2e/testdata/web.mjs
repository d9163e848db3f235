// SPDX-License-Identifier: Apache-2.0

// Tests of the npm package, run in a page and in a worker by web_test.go. Each throws when it fails.

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

/** A test with a device of its own. */
const withGpu = (run, options) => async () => {
  const gpu = await init(options);
  try {
    await run(gpu);
  } finally {
    gpu.close();
  }
};

const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;

/** @param {GPUDevice} device @param {Float32Array} values */
export function gpuBuffer(device, values) {
  const buffer = device.createBuffer({size: values.byteLength, usage});
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

/** Works in a worker as well. */
export const everywhere = {
  example: withGpu(async (gpu) => {
    const mine = new Float32Array([1, 2, 3, 4, 5, 6]);
    const a = gpu.matrix(2, 3, [1, 0, 0, 0, 1, 0]);
    const b = gpu.wrap(mine, 3, 2);
    const c = a.matmul(b).add(1).relu();
    same(await c.read(), [2, 3, 4, 5], 'product');
    b.assign(c.T.matmul(a).T);
    await b.sync();
    same(mine, [2, 3, 4, 5, 0, 0], 'the array after sync');
    check(gpu.info.driver === 'browser', `driver ${gpu.info.driver}`);
    check(Object.values(gpu.stats()).every(Number.isFinite) && gpu.stats().kernels > 0, `counters ${JSON.stringify(gpu.stats())}`);
  }),

  cruncher: withGpu(async (gpu) => {
    const cr = await gpu.cruncher('fn add3stream(i: u32) { arr[i] = arr[i] + 3u; }', {devices: ['own', 'high-performance']});
    const arr = cr.array('arr', new Uint8Array(1000).fill(55), {partialRead: true});
    await cr.compute(1, 'add3stream', {global: 1000, local: 100}, arr);
    check(arr.data[770] === 58, `the array holds ${arr.data[770]}`);
    check(cr.last.bytesUp === 1000 && cr.last.bytesDown === 1000, `${cr.last.bytesUp} bytes up, ${cr.last.bytesDown} down`);
    await cr.batch((b) => { for (let i = 0; i < 3; i++) b.compute(1, 'add3stream', {global: 1000, local: 100}, arr); });
    check(arr.data[999] === 67, `after a batch ${arr.data[999]}`);
  }),

  params: withGpu(async (gpu) => {
    const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), file = await gpu.saveParams([['a', a.mul(2)], ['b', {data: Int8Array.of(1, -2), shape: [2]}]]);
    const loaded = await gpu.loadParams(file.stream());
    same(await loaded.get('a').matrix().add(a).read(), [3, 6, 9, 12, 15, 18], 'a');
    same(await loaded.get('b').read(), [1, -2], 'b');
    same((await gpu.scanParams(file)).map(({offset}) => offset), [32 + 18 + 56, 32 + 18 + 56 + 24 + 48], 'offsets');
  }),

  externalTypedArray: withGpu(async (gpu) => {
    for (const memory of [new ArrayBuffer(64), new SharedArrayBuffer(64)]) {
      const all = new Float32Array(memory);
      all.set(Array.from({length: 16}, (_, i) => i));
      let released = 0;
      // Two rows of three, four apart, from element 2 on.
      const m = gpu.wrap(memory, 2, 3, {offset: 2, stride: 4, release: () => released++});
      same(await m.read(), [2, 3, 4, 6, 7, 8], 'wrapped');
      m.assign(m.mul(10));
      same(all.slice(2, 5), [2, 3, 4], 'before sync');
      await m.sync();
      same(all, [0, 1, 20, 30, 40, 5, 60, 70, 80, 9, 10, 11, 12, 13, 14, 15], 'after sync');
      all[2] = -1;
      m.touch();
      same(await m.sum().read(), [-1 + 30 + 40 + 60 + 70 + 80], 'after touch');
      const byColumns = gpu.wrap(new DataView(memory, 4, 24), 2, 3, {order: 'column'});
      same(await byColumns.read(), [1, 30, 5, -1, 40, 60], 'by columns');
      check(released === 0, 'released too early');
      m.close();
      m.close();
      await gpu.sync();
      check(released === 1, `released ${released} times`);
      same(all.slice(0, 2), [0, 1], 'the memory after close');
    }
  }),

  mapped: withGpu(async (gpu) => {
    const m = gpu.map(2, 2);
    same(await m.read(), [0, 0, 0, 0], 'new');
    const length = await m.access(true, async (data) => {
      await null;
      data.set([1, 2, 3, 4]);
      return data.length;
    });
    check(length === 4, `length ${length}`);
    m.assign(m.matmul(m));
    same(await m.access(false, (data) => Array.from(data)), [7, 10, 15, 22], 'after a product');
    const busy = m.access(true, (data) => data.fill(1));
    await throws('ErrMapped', 'use while the callback has it', () => m.add(1).eval());
    await busy;
    same(await m.read(), [1, 1, 1, 1], 'filled');
    let own;
    await m.access(true, () => { throw new RangeError('mine'); }).catch((error) => { own = error; });
    check(own instanceof RangeError && own.message === 'mine', 'the error of the callback');
    same(await m.read(), [1, 1, 1, 1], 'after an error');
    await fails('ErrUnsupported', 'access of owned memory', () => gpu.zeros(1, 1).access(true, () => {}));
  }),
};

export const tests = {
  ...everywhere,

  elementwise: withGpu(async (gpu) => {
    const x = noise(37 * 5, 1), y = noise(37 * 5, 2).map((v) => v + (v < 0 ? -0.5 : 0.5));
    const a = gpu.matrix(37, 5, x), b = gpu.matrix(37, 5, y);
    const f = Math.fround;
    const unary = {
      neg: (v) => -v, abs: Math.abs, sign: Math.sign, floor: Math.floor, ceil: Math.ceil, trunc: Math.trunc,
      square: (v) => v * v, exp: Math.exp, tanh: Math.tanh, sigmoid: (v) => 1 / (1 + Math.exp(-v)),
      relu: (v) => Math.max(v, 0), logicalNot: (v) => v === 0 ? 1 : 0,
    };
    for (const [name, want] of Object.entries(unary)) {
      same(await a[name]().read(), Array.from(x, want), name, 2e-6);
      same(await gpu[name](a).read(), Array.from(x, want), name, 2e-6);
    }
    for (const name of ['sin', 'cos']) same(await a[name]().read(), Array.from(x, Math[name]), name, 2 ** -11); // all that WGSL promises
    for (const [name, want] of Object.entries({sqrt: Math.sqrt, log: Math.log, reciprocal: (v) => 1 / v})) {
      same(await b.abs()[name]().read(), Array.from(y, (v) => want(Math.abs(v))), name, 2e-6);
    }
    same(await gpu.matrix(1, 6, [0.5, 1.5, 2.5, -0.5, -1.5, 2.4]).round().read(), [0, 2, 2, -0, -2, 2], 'round');
    const binary = {
      add: (u, v) => f(u + v), sub: (u, v) => f(u - v), mul: (u, v) => f(u * v), div: (u, v) => u / v,
      minimum: Math.min, maximum: Math.max, equal: (u, v) => +(u === v), notEqual: (u, v) => +(u !== v),
      less: (u, v) => +(u < v), lessEqual: (u, v) => +(u <= v), greater: (u, v) => +(u > v), greaterEqual: (u, v) => +(u >= v),
      logicalAnd: (u, v) => +(u !== 0 && v !== 0), logicalOr: (u, v) => +(u !== 0 || v !== 0),
    };
    for (const [name, want] of Object.entries(binary)) {
      same(await a[name](b).read(), Array.from(x, (u, i) => want(u, y[i])), name, 1e-6);
      same(await a[name](0.25).read(), Array.from(x, (u) => want(u, 0.25)), `${name} a number`, 1e-6);
      same(await gpu[name](0.25, a).read(), Array.from(x, (u) => want(0.25, u)), `a number ${name}`, 2e-5 / Math.min(...x.map(Math.abs)));
    }
    for (const power of [-1, 0.5, 1, 2, 3, 4, -2, 0]) {
      same(await b.abs().pow(power).read(), Array.from(y, (v) => Math.abs(v) ** power), `pow ${power}`, 1e-5);
    }
    same(await gpu.pow(2, a).read(), Array.from(x, (v) => 2 ** v), '2 to the power', 1e-6);
    same(await gpu.where(a.greater(0), a, b).read(), Array.from(x, (v, i) => v > 0 ? v : y[i]), 'where');
    same(await a.clamp(-0.25, 0.5).read(), Array.from(x, (v) => Math.min(Math.max(v, -0.25), 0.5)), 'clamp');
    const row = gpu.matrix(1, 5, [1, 2, 3, 4, 5]), col = gpu.matrix(37, 1, noise(37, 3));
    same(await row.add(a).sub(row).read(), x, 'a row stretched', 1e-6);
    same(await gpu.mul(row, col).read(), Array.from({length: 37 * 5}, (_, i) => f(noise(37, 3)[Math.floor(i / 5)] * (i % 5 + 1))), 'a row by a column');
  }),

  reductions: withGpu(async (gpu) => {
    for (const [rows, cols] of [[1, 1], [3, 7], [65, 129], [300, 2], [2, 5000]]) {
      const x = noise(rows * cols, rows + cols), a = gpu.matrix(rows, cols, x);
      const line = (axis, i) => axis === 1 ? Array.from(x.subarray(i * cols, (i + 1) * cols)) : Array.from({length: rows}, (_, r) => x[r * cols + i]);
      const sum = (v) => v.reduce((s, u) => s + u, 0);
      const all = Array.from(x), size = `${rows}x${cols}`;
      same(await a.sum().read(), [sum(all)], `sum ${size}`, 1e-5 * all.length);
      same(await a.max().read(), [Math.max(...all)], `max ${size}`);
      same(await a.min().read(), [Math.min(...all)], `min ${size}`);
      same(await a.mean().read(), [sum(all) / all.length], `mean ${size}`, 1e-5);
      for (const axis of [0, 1]) {
        const n = axis === 1 ? rows : cols;
        const lines = Array.from({length: n}, (_, i) => line(axis, i));
        check(String(a.sum({axis}).shape) === String(axis === 1 ? [rows, 1] : [1, cols]), 'shape of a sum');
        same(await a.sum({axis}).read(), lines.map(sum), `sum along ${axis} of ${size}`, 1e-5 * lines[0].length);
        same(await a.max({axis}).read(), lines.map((l) => Math.max(...l)), `max along ${axis} of ${size}`);
        same(await a.min({axis: axis - 2}).read(), lines.map((l) => Math.min(...l)), `min along ${axis} of ${size}`);
        same(await a.mean({axis}).read(), lines.map((l) => sum(l) / l.length), `mean along ${axis} of ${size}`, 1e-5);
        same(await gpu.prod(a.mul(0.1).add(1), {axis}).read(), lines.map((l) => l.reduce((p, v) => p * (1 + 0.1 * v), 1)), `prod along ${axis}`,
          lines.map((l) => 1e-5 * l.length * Math.abs(l.reduce((p, v) => p * (1 + 0.1 * v), 1))));
      }
      const soft = await a.softmax().read(), logs = await a.logSoftmax().read();
      for (let i = 0; i < rows; i++) {
        const e = line(1, i).map(Math.exp), z = sum(e);
        same(soft.subarray(i * cols, (i + 1) * cols), e.map((v) => v / z), `softmax of ${size}`, 1e-6);
        same(logs.subarray(i * cols, (i + 1) * cols), e.map((v) => Math.log(v / z)), `logSoftmax of ${size}`, 1e-5);
      }
    }
    check(await gpu.matrix(2, 2, [1, 2, 3, 4]).sum().value() === 10, 'value');
  }),

  products: withGpu(async (gpu) => {
    const sizes = [1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 65, 129, 257];
    const shapes = sizes.flatMap((n, i) => [
      [n, n, n], [n, sizes[(i + 3) % sizes.length], sizes[(i + 7) % sizes.length]], [1, n, 33], [33, n, 1],
    ]);
    for (const [m, k, n] of shapes) {
      const x = noise(m * k, m + k), y = noise(k * n, k + n);
      const a = gpu.matrix(m, k, x), b = gpu.matrix(k, n, y);
      const {c, bound} = reference((i, l) => x[i * k + l], (l, j) => y[l * n + j], m, k, n);
      same(await a.matmul(b).read(), c, `${m}x${k} by ${k}x${n}`, bound);
      same(await b.T.matmul(a.T).T.read(), c, `${m}x${k} by ${k}x${n} transposed`, bound);
      const moved = await gpu.matmul(a, b).mul(2).add(1).read();
      same(moved, c.map((v) => 2 * v + 1), `${m}x${k} by ${k}x${n} and what follows`, bound.map((v, i) => 2 * v + 2 ** -22 * (1 + Math.abs(c[i]))));
      a.close();
      b.close();
    }
    for (const [m, k, n] of [[0, 3, 2], [2, 0, 3], [2, 3, 0], [0, 0, 0]]) {
      same(await gpu.zeros(m, k).matmul(gpu.zeros(k, n)).read(), Array(m * n).fill(0), `${m}x${k} by ${k}x${n}`);
    }
  }),

  layouts: withGpu(async (gpu) => {
    const x = noise(20 * 30, 5), at = (i, j) => x[i * 30 + j];
    const base = gpu.wrap(x, 20, 30);
    const a = base.slice(3, 20, 2, 29), b = base.slice(0, 13, 1, 28).T; // 17x27, 27x13
    const {c, bound} = reference((i, l) => at(i + 3, l + 2), (l, j) => at(j, l + 1), 17, 27, 13);
    same(await a.matmul(b).read(), c, 'product of parts', bound);
    const d = gpu.matrix(17, 13, undefined, {order: 'column'});
    d.assign(a.matmul(b));
    same(await d.read(), c, 'product stored by columns', bound);
    same(await base.row(4).read(), x.subarray(120, 150), 'row');
    same(await base.col(7).read(), Array.from({length: 20}, (_, i) => at(i, 7)), 'column');
    same(await base.reshape(30, 20).read(), x, 'reshape');
    same(await base.T.reshape(20, 30).read(), Array.from({length: 600}, (_, i) => at(i % 20, Math.floor(i / 20))), 'reshape of a transpose');
    same(await base.add(0).slice(1, 3, 4, 6).read(), [at(1, 4), at(1, 5), at(2, 4), at(2, 5)], 'part of an expression');
    same(await d.T.slice(2, 4, 0, 5).read(), [...Array(10).keys()].map((i) => c[(i % 5) * 13 + 2 + Math.floor(i / 5)]), 'part of a transpose',
      Array(10).fill(Math.max(...bound)));
    const v = gpu.zeros(4, 4);
    v.slice(1, 3, 1, 3).assign(5);
    v.row(0).assign(gpu.matrix(1, 4, [1, 2, 3, 4]));
    v.T.row(3).assign(v.row(0));
    same(await v.read(), [1, 2, 3, 1, 0, 5, 5, 2, 0, 5, 5, 3, 0, 0, 0, 4], 'assignments to parts');
    v.slice(0, 3).assign(v.slice(1, 4).add(10)); // the two overlap
    same(await v.read(), [10, 15, 15, 12, 10, 15, 15, 13, 10, 10, 10, 14, 0, 0, 0, 4], 'overlapping');
    await throws('ErrShape', 'another size', () => v.row(0).assign(gpu.zeros(1, 3)));
  }),

  elementTypes: withGpu(async (gpu) => {
    const i = gpu.matrix(1, 4, new Int32Array([7, -7, 2 ** 31 - 1, 0]));
    check(i.dtype === 'int32', i.dtype);
    same(await i.div(2).read(), [3, -3, 2 ** 30 - 1, 0], 'int32 divided');
    same(await i.add(1).read(), [8, -6, -(2 ** 31), 1], 'int32 wraps');
    const u = gpu.matrix(1, 2, new Uint32Array([2 ** 32 - 1, 5]));
    same(await u.sub(6).read(), [2 ** 32 - 7, 2 ** 32 - 1], 'uint32');
    const h = gpu.matrix(3, 3, [1, 2, 3, 4, 5, 6, 7, 8, 0.1], {dtype: 'float16'}); // an odd number of halves
    const real = await h.astype('float32').read();
    same(real, [1, 2, 3, 4, 5, 6, 7, 8, 0.1], 'float16', [0, 0, 0, 0, 0, 0, 0, 0, 4e-5]);
    check((await h.read()).length === 9, 'float16 read');
    same(await h.matmul(h).astype('float32').read(), [30, 36, 15.3, 66, 81, 42.6, 39.7, 54.8, 69.01], 'float16 product', 0.03);
    same(await gpu.matrix(1, 3, [1.9, -1.9, 3e9]).astype('int32').read(), [1, -1, 2147483647], 'to int32', [0, 0, 128]);
    same(await i.astype('float32').mul(0.5).read(), [3.5, -3.5, 2 ** 30, 0], 'from int32');
    const twice = gpu.fn('fn twice(x: i32) -> i32 { return x * 2; }');
    same(await gpu.matrix(1, 2, new Int32Array([3, -4])).apply(twice).read(), [6, -8], 'a function of integers');
    const into = new Float32Array(6).fill(9);
    check(await gpu.full(1, 4, 2).read(into) === into, 'read returns the array that it was given');
    same(into, [2, 2, 2, 2, 9, 9], 'read into a longer array');
  }),

  externalBuffers: withGpu(async (gpu) => {
    const {device} = gpu;
    const x = gpuBuffer(device, new Float32Array([9, 9, 1, 2, 9, 3, 4, 9])), y = gpuBuffer(device, new Float32Array(4));
    let released = 0;
    const before = gpu.stats();
    const a = gpu.wrapBuffer(x, 2, 2, {offset: 2, stride: 3, release: () => released++}), b = gpu.wrapBuffer(y, 2, 2);
    b.assign(a.matmul(a));
    check(await b.buffer === y, 'buffer');
    same(await contents(device, y), [7, 10, 15, 22], 'in the buffer');
    const after = gpu.stats();
    check(after.bytesUp === before.bytesUp && after.bytesDown === before.bytesDown, 'wrapping a GPUBuffer moves nothing');
    check(await a.buffer === x, 'buffer of a wrapped one');
    a.close();
    b.close();
    await gpu.sync();
    check(released === 1, `released ${released} times`);
    same(await contents(device, x), [9, 9, 1, 2, 9, 3, 4, 9], 'the buffer after close');
    const z = gpuBuffer(device, new Float32Array([1, 2])), ours = gpu.wrapBuffer(z, 1, 2, {release: 'destroy'});
    const sum = ours.add(1).eval();
    ours.close();
    same(await sum.read(), [2, 3], 'what was built on a buffer that was destroyed since');
    sum.close();
    await gpu.sync();
    device.pushErrorScope('validation');
    device.queue.writeBuffer(z, 0, new Float32Array(2));
    check(await device.popErrorScope(), 'the buffer was not destroyed');
    const dead = gpuBuffer(device, new Float32Array(2));
    dead.destroy();
    const ghost = gpu.wrapBuffer(dead, 1, 2);
    await fails('ErrInvalid', 'a destroyed buffer', () => ghost.add(1).read());
    ghost.close();
    same(await gpu.full(1, 1, 1).add(1).read(), [2], 'after that');
    await throws('ErrInvalid', 'a release that is none', () => gpu.wrapBuffer(x, 1, 1, {release: 'free'}));
    const own = gpu.matrix(1, 2, [1, 2]).mul(2).eval();
    same((await contents(device, await own.buffer)).subarray(0, 2), [2, 4], 'buffer of an owned matrix');
    await throws('ErrShort', 'too short', () => gpu.wrapBuffer(x, 3, 3));
    await throws('ErrInvalid', 'no buffer', () => gpu.wrapBuffer(new Float32Array(9), 3, 3));
    const wrong = device.createBuffer({size: 64, usage: GPUBufferUsage.COPY_DST});
    await fails('ErrInvalid', 'usages', () => gpu.wrapBuffer(wrong, 2, 2).read());
  }),

  async callersDevice() {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice();
    const gpu = await init({device});
    check(gpu.device === device, 'another device');
    const buffer = gpuBuffer(device, new Float32Array([1, 2, 3, 4]));
    const m = gpu.wrapBuffer(buffer, 2, 2);
    m.assign(m.add(1));
    same(await m.read(), [2, 3, 4, 5], 'sum');
    const other = await init();
    await throws('ErrForeign', 'operands of two devices', () => other.zeros(2, 2).add(m));
    await fails('ErrForeign', 'a buffer of another device', () => other.wrapBuffer(buffer, 2, 2).add(1).read());
    other.close();
    gpu.close();
    await new Promise((done) => setTimeout(done, 50));
    same(await contents(device, buffer), [2, 3, 4, 5], 'the device after close');
    device.destroy();
  },

  functions: withGpu(async (gpu) => {
    const blend = gpu.fn(`
      // fn wrong(x: f32) -> f32 is not the first function
      const scale: f32 = 2.0;
      fn blend(x: f32, y: f32, t: f32) -> f32 { return scale * mix(x, y, t) + helper(x); }
      fn helper(x: f32) -> f32 { return select(0.0, 1.0, x > 0.0); }`);
    check(blend.name === 'blend' && blend.arity === 3, `${blend.name} ${blend.arity}`);
    const a = gpu.matrix(1, 2, [1, -1]), b = gpu.matrix(1, 2, [3, 3]);
    same(await a.apply(blend, b, 0.5).mul(10).read(), [50, 20], 'method');
    same(await gpu.apply(blend, 1, b, a).read(), [7, -1], 'function');
    await throws('ErrInvalid', 'arguments', () => a.apply(blend));
    for (const text of ['', 'let x = 1;', 'fn f() -> f32 { return 1.0; }', 'fn f(', '/* fn f(x: f32) -> f32 {} */', '(', ')fn x',
      '/* /* */ fn f(x: f32) -> f32 { return x; } */', '/* // */ fn f() -> f32 { return 1.0; } // fn g(x: f32) {}']) {
      await throws('ErrSyntax', JSON.stringify(text), () => gpu.fn(text));
    }
    const wrong = gpu.fn('fn wrong(x: f32) -> f32 {\n  return nothing(x);\n}');
    let error;
    await a.apply(wrong).read().catch((e) => { error = e; });
    check(error?.code === 'ErrCompile' && /line 2: .*nothing/.test(error.message), `the message names the place: ${error}`);
    // Names are a function's own, and may be those of what surrounds it.
    const [twice, thrice] = [2, 3].map((n) => gpu.fn(`/* /* */ */ fn apply(x: f32) -> f32 { return store * x; } const store = ${n}.0;`));
    same(await a.apply(twice).add(a.apply(thrice)).read(), [5, -5], 'functions of one name');
    blend.close();
    await throws('ErrClosed', 'a closed function', () => a.apply(blend, b, 1));
  }),

  mistakes: withGpu(async (gpu) => {
    const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), before = gpu.stats();
    const list = [
      ['ErrShape', () => a.matmul(a)], ['ErrShape', () => a.add(gpu.zeros(3, 3))], ['ErrShape', () => gpu.where(a, a, gpu.zeros(5, 5))],
      ['ErrShape', () => a.reshape(4, 2)], ['ErrShape', () => a.assign(gpu.zeros(3, 2))], ['ErrShape', () => gpu.matrix(1, 1, [1, 2])],
      ['ErrIndex', () => a.slice(0, 3)], ['ErrIndex', () => a.slice(-1)], ['ErrIndex', () => a.slice(1, 0)], ['ErrIndex', () => a.row(2)],
      ['ErrIndex', () => a.col(NaN)], ['ErrIndex', () => a.row('0')], ['ErrIndex', () => a.sum({axis: 2})], ['ErrIndex', () => a.sum({axis: '0'})],
      ['ErrInvalid', () => a.add()], ['ErrInvalid', () => a.add(null)], ['ErrInvalid', () => a.add('1')], ['ErrInvalid', () => a.add([1])],
      ['ErrInvalid', () => a.add(1n)], ['ErrInvalid', () => a.matmul(2)], ['ErrInvalid', () => gpu.add(1, 2)], ['ErrInvalid', () => gpu.exp(1)],
      ['ErrInvalid', () => a.astype('float64')], ['ErrInvalid', () => a.astype(7)], ['ErrInvalid', () => a.apply('x')], ['ErrInvalid', () => a.sum(1)],
      ['ErrInvalid', () => a.assign('x')], ['ErrInvalid', () => a.assign(gpu.zeros(2, 3, {dtype: 'int32'}))], ['ErrInvalid', () => a.add(gpu.zeros(2, 3, {dtype: 'int32'}))],
      ['ErrInvalid', () => gpu.zeros(1, 1, {dtype: 'int32'}).add(0.5)], ['ErrInvalid', () => gpu.zeros(1, 1, {dtype: 'uint32'}).add(-1)],
      ['ErrInvalid', () => gpu.full(1, 1, 2 ** 31, {dtype: 'int32'})], ['ErrInvalid', () => gpu.full(1, 1, 'x')],
      ['ErrInvalid', () => gpu.matrix(NaN, 1)], ['ErrInvalid', () => gpu.matrix(1.5, 1)], ['ErrInvalid', () => gpu.matrix('2', 1)],
      ['ErrInvalid', () => gpu.matrix(Infinity, 1)], ['ErrInvalid', () => gpu.matrix()], ['ErrInvalid', () => gpu.matrix(1, 1, 'x')],
      ['ErrInvalid', () => gpu.matrix(1, 1, [1n])], ['ErrInvalid', () => gpu.matrix(1, 1, {length: 1})], ['ErrInvalid', () => gpu.matrix(1, 1, new BigInt64Array(1))],
      ['ErrInvalid', () => gpu.matrix(1, 1, [Symbol('x')])], ['ErrInvalid', () => gpu.matrix(1, 1, [1], 5)], ['ErrInvalid', () => gpu.matrix(1, 1, [1], {order: 'C'})],
      ['ErrInvalid', () => gpu.matrix(1, 1, [1], {get dtype() { throw new TypeError('mine'); }})],
      ['ErrInvalid', () => gpu.wrap([1], 1, 1)], ['ErrInvalid', () => gpu.wrap('x', 1, 1)], ['ErrInvalid', () => gpu.wrap(new Float32Array(1), 1, 1, {dtype: 'int32'})],
      ['ErrInvalid', () => gpu.wrap(new Float32Array(1), 1, 1, {release: 5})], ['ErrInvalid', () => gpu.wrap(new Float32Array(9), 2, 2, {stride: 2.5})],
      ['ErrInvalid', () => gpu.fn(5)],
      ['ErrSize', () => gpu.matrix(-1, 1)], ['ErrSize', () => a.reshape(-2, -3)],
      ['ErrLimit', () => gpu.matrix(1e20, 1)], ['ErrLimit', () => gpu.zeros(2 ** 20, 2 ** 20)], ['ErrLimit', () => gpu.zeros(2 ** 31, 1)],
      ['ErrLimit', () => gpu.matrix(2 ** 33, 0)], ['ErrLimit', () => gpu.zeros(2 ** 20, 1).matmul(gpu.zeros(1, 2 ** 20))],
      ['ErrShort', () => gpu.matrix(2, 2, [1])], ['ErrShort', () => gpu.wrap(new Float32Array(3), 2, 2)], ['ErrShort', () => gpu.wrap(new Float32Array(4), 2, 2, {offset: 1})],
      ['ErrStride', () => gpu.wrap(new Float32Array(9), 2, 2, {stride: 1})], ['ErrStride', () => gpu.wrap(new Float32Array(9), 2, 2, {offset: -1})],
      ['ErrAlignment', () => gpu.wrap(new Uint16Array(1), 1, 1)],
      ['ErrUnsupported', () => gpu.zeros(1, 1, {dtype: 'int32'}).exp()], ['ErrUnsupported', () => gpu.zeros(1, 1, {dtype: 'int32'}).mean()],
      ['ErrUnsupported', () => gpu.map(1, 1).set([1])],
    ];
    for (const [code, run] of list) await throws(code, String(run), run);
    for (const [code, run] of [
      ['ErrShape', () => a.value()], ['ErrInvalid', () => a.read(new Int32Array(6))], ['ErrInvalid', () => a.read('x')], ['ErrShort', () => a.read(new Float32Array(5))],
      ['ErrInvalid', () => init({device: {}})], ['ErrInvalid', () => init({power: 'much'})], ['ErrInvalid', () => init({wasm: 5})], ['ErrInvalid', () => init(5)],
      ['ErrInvalid', () => init({fallback: 1})], ['ErrInvalid', () => init({wasm: '/nowhere.wasm'})], ['ErrInvalid', () => init({wasm: new Uint8Array(8)})],
      ['ErrInvalid', () => init({wasm: Promise.reject(new TypeError('mine'))})], ['ErrInvalid', () => init({get wasm() { throw new Error('mine'); }})],
    ]) await fails(code, String(run), run);
    const gone = new Float32Array(4), m = gpu.wrap(gone, 2, 2);
    structuredClone(gone, {transfer: [gone.buffer]});
    await fails('ErrInvalid', 'a detached array', () => m.add(1).read());
    await throws('ErrShort', 'a detached array wrapped', () => gpu.wrap(gone, 2, 2));
    const into = new Float32Array(6), reading = a.read(into);
    structuredClone(into, {transfer: [into.buffer]});
    await fails('ErrInvalid', 'an array detached while it is read into', () => reading);
    same(await a.read(), [1, 2, 3, 4, 5, 6], 'the matrix after all that');
    check(gpu.stats().liveBytes - before.liveBytes < 1 << 24, 'memory is left behind');
  }),

  anything: withGpu(async (gpu) => {
    // Every method with whatever may be passed: only errors of ours, and the program lives on.
    const odd = [undefined, null, NaN, -1, 1e20, 0.5, 2, '', 'x', true, 1n, Symbol('s'), [], [1, 2], {}, () => {}, new Float32Array(2), new ArrayBuffer(8),
      new Proxy({}, {get() { throw new Error('trap'); }, getPrototypeOf() { throw new Error('trap'); }}), gpu, gpu.zeros(2, 2), gpu.zeros(2, 2).add(1)];
    const skip = new Set(['constructor', 'close', 'zeros', 'ones', 'full', 'eye', 'map', 'resize']);
    const calls = [];
    const sparse = gpu.sparse(2, 2, {format: 'csc', values: [1], indices: [0], offsets: [0, 1, 1]});
    for (const object of [gpu, gpu.zeros(2, 2), gpu.zeros(2, 2).T, gpu.zeros(2, 2).exp(), sparse]) {
      for (let proto = Object.getPrototypeOf(object); proto !== Object.prototype; proto = Object.getPrototypeOf(proto)) {
        for (const name of Object.getOwnPropertyNames(proto)) {
          if (skip.has(name) || typeof Object.getOwnPropertyDescriptor(proto, name).value !== 'function') continue;
          for (const x of odd) for (const y of [undefined, x, 2]) calls.push([object, name, [x, y, 2]]);
        }
      }
    }
    for (const [object, name, args] of calls) {
      try {
        const result = await object[name](...args);
        if (result && result !== gpu && typeof result.close === 'function' && result.mode) result.close();
      } catch (error) {
        const what = args.map((a) => typeof a).join();
        // A callback of the caller's may throw what it likes.
        check(error instanceof SubletError || name === 'access', `${name}(${what}): ${error?.stack ?? error}`);
      }
    }
    await gpu.sync().catch((error) => check(error instanceof SubletError, String(error)));
    same(await gpu.full(1, 2, 3).mul(2).read(), [6, 6], 'afterwards');
  }),

  errorsOfResults: withGpu(async (gpu) => {
    const wrong = (n) => gpu.fn(`fn wrong${n}(x: f32) -> f32 { return missing${n}(x); }`);
    const a = gpu.matrix(1, 2, [1, 2]);
    const bad = a.apply(wrong(1)).eval();
    await fails('ErrCompile', 'what is computed from it', () => bad.add(1).read());
    await fails('ErrCompile', 'itself', () => bad.read());
    await gpu.sync();
    a.apply(wrong(2)).eval();
    await fails('ErrCompile', 'sync', () => gpu.sync());
    await gpu.sync();
    const kept = gpu.matrix(1, 2, [5, 6]);
    kept.assign(a.apply(wrong(3)));
    await fails('ErrCompile', 'an operand that was not assigned', () => kept.add(1).read());
    same(await kept.read(), [5, 6], 'a failed assignment leaves the matrix as it was');
  }),

  useAfterClose: withGpu(async (gpu) => {
    const a = gpu.zeros(2, 2), view = a.T, sum = a.add(1);
    const pending = sum.read();
    a.close();
    a.close();
    check(a.closed, 'closed');
    same(await pending, [1, 1, 1, 1], 'what was asked before');
    for (const run of [() => a.add(1), () => sum.eval(), () => view.eval(), () => view.assign(1), () => a.assign(1), () => a.set([1, 2, 3, 4]), () => a.touch()]) {
      await throws('ErrClosed', String(run), run);
    }
    for (const run of [() => a.read(), () => sum.read(), () => a.sync(), () => a.buffer]) await fails('ErrClosed', String(run), run);
    const expr = gpu.zeros(1, 1).exp();
    expr.close();
    await throws('ErrClosed', 'an expression', () => expr.add(1));
    {
      const used = gpu.zeros(1, 1);
      used[Symbol.dispose]();
      check(used.closed, 'dispose');
    }
    const other = await init();
    const b = other.matrix(1, 1, [1]), reading = b.read();
    let released = 0;
    other.wrap(new Float32Array(1), 1, 1, {release: () => released++});
    other.close();
    other.close();
    const [got] = await reading.catch((error) => [error.code]);
    check(got === 1 || got === 'ErrClosed', `a read before close: ${got}`);
    await throws('ErrClosed', 'a matrix of a closed device', () => b.add(1).eval());
    await throws('ErrClosed', 'a new matrix', () => other.zeros(1, 1));
    await fails('ErrClosed', 'sync', () => other.sync());
    for (let i = 0; i < 50 && released === 0; i++) await new Promise((done) => setTimeout(done, 20));
    check(released === 1, `released ${released} times`);
  }),

  moves: withGpu(async (gpu) => {
    const x = noise(48 * 32, 1), y = noise(32 * 16, 2);
    const s0 = gpu.stats();
    const a = gpu.wrap(x, 48, 32), b = gpu.wrap(y, 32, 16);
    check(gpu.stats().bytesUp === s0.bytesUp, 'wrapping copies');
    const c = a.matmul(b).add(1).eval();
    const d = a.matmul(b).add(2).eval();
    await gpu.sync();
    const s1 = gpu.stats();
    check(s1.bytesUp - s0.bytesUp === x.byteLength + y.byteLength, `${s1.bytesUp - s0.bytesUp} bytes up`);
    check(s1.bytesDown === s0.bytesDown, 'something came down');
    check(s1.compilations - s0.compilations === 1, `${s1.compilations - s0.compilations} kernels for one shape`);
    await c.read();
    check(gpu.stats().bytesDown - s1.bytesDown === 48 * 16 * 4, 'bytes of one result');
    const e = gpu.wrap(noise(32 * 16, 3), 32, 16), compiled = gpu.stats().compilations;
    a.matmul(e).add(3).eval();
    await gpu.sync();
    const s2 = gpu.stats();
    check(s2.compilations === compiled, 'the same expression compiled again');
    check(s2.bytesUp - s1.bytesUp === 32 * 16 * 4, 'an operand went up twice');
    d.close();
  }),

  leaks: withGpu(async (gpu) => {
    const one = gpu.full(8, 8, 1);
    await one.read();
    const before = gpu.stats();
    for (let i = 0; i < 10000; i++) {
      const a = gpu.zeros(8, 8), b = a.add(one).eval(), c = gpu.wrap(new Float32Array(64), 8, 8);
      if (i % 1000 === 0) same((await b.read()).subarray(0, 1), [1], 'sum');
      a.close();
      b.close();
      c.close();
    }
    await gpu.sync();
    const after = gpu.stats();
    check(after.liveBytes === before.liveBytes, `${after.liveBytes} live bytes, ${before.liveBytes} before`);
    check(after.buffers === before.buffers, `${after.buffers} buffers, ${before.buffers} before`);
    check(after.peakBytes < 64 * 1024 * 1024, `${after.peakBytes} bytes at a time`);
    one.close(); // until here the collector must not
  }),

  order: withGpu(async (gpu) => {
    // While a kernel is being compiled, everything behind it waits and keeps its order.
    const y = gpu.zeros(1, 4), reads = [];
    for (let i = 0; i < 30; i++) {
      const f = gpu.fn(`fn step${i}(x: f32) -> f32 { return x + ${i}.0; }`);
      if (i % 3 === 0) y.assign(y.apply(f));
      else y.assign(y.add(i));
      reads.push(y.read());
      if (i % 7 === 0) await null;
    }
    let sum = 0;
    for (const [i, read] of reads.entries()) same(await read, Array(4).fill(sum += i), `step ${i}`);
    const values = new Float32Array([1, 2, 3, 4]), m = gpu.matrix(1, 4, values); // copied at once, also while something waits
    y.apply(gpu.fn('fn late(x: f32) -> f32 { return x * 3.0; }')).eval();
    const n = gpu.matrix(1, 4, values);
    values.fill(0);
    same(await m.read(), [1, 2, 3, 4], 'copied');
    same(await n.read(), [1, 2, 3, 4], 'copied while a kernel is compiled');
    const reading = m.read();
    m.assign(0);
    m.close();
    same(await reading, [1, 2, 3, 4], 'a read sees what was there when it was asked for');
    const many = await Promise.all(Array.from({length: 100}, (_, i) => gpu.full(1, 1, i).mul(2).read()));
    same(many.map((v) => v[0]), Array.from({length: 100}, (_, i) => 2 * i), 'reads at a time');
  }),

  large: withGpu(async (gpu) => {
    let deep = gpu.matrix(1, 3, [1, 2, 3]);
    for (let i = 0; i < 20000; i++) deep = deep.add(1);
    same(await deep.read(), [20001, 20002, 20003], 'a deep expression');
    for (let i = 0; i < 20000; i++) deep = deep.add(1);
    await fails('ErrLimit', 'a deeper one', () => deep.read());
    let shared = gpu.matrix(1, 1, [1]).mul(1);
    for (let i = 0; i < 60; i++) shared = shared.add(shared).mul(0.5);
    same(await shared.read(), [1], 'shared parts');
    const rows = 70001, tall = gpu.matrix(rows, 3, Float32Array.from({length: rows * 3}, (_, i) => i % 100));
    const sums = await tall.sum({axis: 1}).read();
    check(sums[70000] === (210000 % 100) + (210001 % 100) + (210002 % 100), 'beyond 65,535 rows');
    same(await tall.T.row(2).slice(0, 1, 69999, 70001).read(), [(69999 * 3 + 2) % 100, (70000 * 3 + 2) % 100], 'the end of a long row');
  }),

  async death() {
    // A program that dies takes its promises with it, and says so.
    const {instantiate} = WebAssembly;
    let deadly = false;
    WebAssembly.instantiate = (module, imports) => {
      const invoke = imports.gojs['syscall/js.valueInvoke'];
      imports.gojs['syscall/js.valueInvoke'] = (sp) => {
        if (deadly) throw new Error('as if by a trap');
        invoke(sp);
      };
      return instantiate(module, imports);
    };
    const gpu = await init().finally(() => { WebAssembly.instantiate = instantiate; });
    const a = gpu.matrix(64, 64, noise(4096)), reading = a.read(), waiting = gpu.sync();
    deadly = true;
    await fails('exited', 'the call that finds out', () => a.matmul(a).read());
    await fails('exited', 'a promise from before', () => reading);
    await fails('exited', 'another', () => waiting);
    await throws('exited', 'a call from then on', () => gpu.zeros(1, 1));
    gpu.close();
  },

  async fallback() {
    // A page without WebGPU.
    Object.defineProperty(navigator, 'gpu', {value: undefined, configurable: true});
    try {
      await fails('ErrNoAdapter', 'no fallback wanted', () => init({fallback: false}));
      await fails('ErrInvalid', 'a fallback that is none', () => init({fallback: '/nowhere.wasm'}));
      const gpu = await init();
      check(performance.getEntriesByType('resource').some(({name}) => name.endsWith('/sublet-cpu.wasm')), 'the program of its own');
      const given = await init({fallback: fetch('/dist/sublet-cpu.wasm')});
      same(await given.eye(2).read(), [1, 0, 0, 1], 'a program of the page\'s');
      given.close();
      Object.defineProperty(navigator, 'gpu', {value: {requestAdapter: async () => null}, configurable: true});
      const other = await init();
      check(other.info.driver === 'cpu', `without an adapter: ${other.info.driver}`);
      other.close();
      check(gpu.info.driver === 'cpu' && gpu.device === null, `driver ${gpu.info.driver}`);
      const mine = new Float32Array([1, 2, 3, 4]), a = gpu.wrap(mine, 2, 2), b = gpu.matrix(2, 2, [1, 0, 0, 2]);
      same(await a.matmul(b).add(1).read(), [2, 5, 4, 9], 'product');
      a.assign(a.mul(2));
      await a.sync();
      same(mine, [2, 4, 6, 8], 'sync');
      mine[0] = 10;
      a.touch();
      same(await a.sum().read(), [28], 'touch');
      await fails('ErrUnsupported', 'WGSL', () => a.apply(gpu.fn('fn f(x: f32) -> f32 { return x; }')).read());
      await fails('ErrUnsupported', 'a GPUBuffer', () => a.buffer);
      gpu.close();
    } finally {
      delete navigator.gpu;
    }
  },
};
