// SPDX-License-Identifier: Apache-2.0

// Sublet as an entry of a browser benchmark that runs several libraries side by side. Each item is what a user would
// write for it.
import {init} from './src/index.mjs';

export const name = 'sublet';

/** @type {import('./index.mjs').Gpu} */
let gpu;

/** @param {{device?: 'auto' | 'webgpu' | 'simd', threads?: number}} [options] */
export async function load({device, threads} = {}) {
  gpu = await init({device, threads});
  return gpu.info;
}

export const sync = () => gpu.sync();
export const flush = () => gpu.flush();

/** A computation whose inputs are on the device and whose result stays there. */
const item = (inputs, compute) => ({
  run: () => compute(...inputs).eval(),
  read: (result) => result.read(),
  free: (result) => result.close(),
  close: () => inputs.forEach((m) => m.close()),
});

const product = (p, d) => item([gpu.matrix(p.m, p.k, d.a), gpu.matrix(p.k, p.n, d.b)], (a, b) => a.matmul(b));

/** A flat array as a matrix of one row. */
const flat = (values) => gpu.matrix(1, values.length, values);

export const items = {
  matmul: product,
  gemv: product,

  fma: (p, d) => item([flat(d.a), flat(d.b), flat(d.c)], (a, b, c) => a.mul(b).add(c)),

  chain: (p, d) => item([flat(d.a), flat(d.b)], (a, b) =>
    a.mul(b).add(a).abs().sqrt().neg().exp().add(b).mul(a).sub(b).mul(a)),

  sum: (p, d) => item([flat(d.a)], (a) => a.sum()),

  softmax: (p, d) => item([gpu.matrix(p.m, p.n, d.a)], (a) => a.softmax()),

  transpose: (p, d) => item([gpu.matrix(p.m, p.n, d.a)], (a) => a.T),

  upload: (p, d) => ({
    run: () => flat(d.a),
    read: (m) => m.read(),
    free: (m) => m.close(),
  }),

  download(p, d) {
    const a = flat(d.a);
    let y;
    return {
      async before() {
        y?.close();
        y = a.add(a).eval();
        await gpu.sync();
      },
      run: () => y.read(),
      noSync: true,
      close() {
        a.close();
        y?.close();
      },
    };
  },

  tiny: (p, d) => item([gpu.matrix(p.side, p.side, d.a), gpu.matrix(p.side, p.side, d.b)], (a, b) => {
    let t = a;
    for (let i = 0; i < p.ops; i++) t = t.add(b);
    return t;
  }),

  latency(p, d) {
    const a = gpu.matrix(p.side, p.side, d.a), b = gpu.matrix(p.side, p.side, d.b);
    return {
      run: () => a.add(b).read(),
      noSync: true,
      close() {
        a.close();
        b.close();
      },
    };
  },
};

/** The first product on a fresh page. */
export async function cold(p, d) {
  const a = gpu.matrix(p.m, p.k, d.a), b = gpu.matrix(p.k, p.n, d.b);
  return a.matmul(b).read();
}
