// SPDX-License-Identifier: Apache-2.0

// The particles of the first page: four rows of numbers, in a GPUBuffer of the page's or in a typed array.

/** @typedef {import('./index.mjs').Gpu} Gpu */
/** @typedef {import('./index.mjs').Matrix} Matrix */

/** What a step has in scope. */
const SCOPE = ['gpu', 'fn', 'x', 'y', 'vx', 'vy', 'pull', 'dt', 'time', 'n'];

/** @param {string} code @returns {Function} */
export function compile(code) {
  if (code.replace(/\/\/.*/g, '').trim() === '') throw new Error('The code is empty: nothing would move.');
  try {
    return new Function(...SCOPE, `'use strict';\n${code}`);
  } catch (error) {
    throw new Error(`This is not JavaScript: ${/** @type {Error} */ (error).message}.`);
  }
}

export class World {
  /** WGSL functions by their text, so that a step may ask for one again and again. @type {Map<string, import('./index.mjs').Fn>} */
  #functions = new Map();
  /** How many pictures there were of it. */
  frames = 0;

  /** @param {Gpu} gpu @param {number} n */
  constructor(gpu, n) {
    this.gpu = gpu;
    this.n = n;
    // [code]
    if (gpu.device) { // a buffer of the page's: Sublet computes in it, and the page's render pass draws from it
      const {STORAGE, COPY_SRC, COPY_DST} = GPUBufferUsage;
      this.buffer = gpu.device.createBuffer({size: 16 * n, usage: STORAGE | COPY_SRC | COPY_DST});
      this.state = gpu.wrapBuffer(this.buffer, 4, n, {release: 'destroy'});
    } else { // no WebGPU: an array of the page's
      this.array = new Float32Array(4 * n);
      this.state = gpu.wrap(this.array, 4, n);
    }
    const [x, y, vx, vy] = [0, 1, 2, 3].map((row) => this.state.row(row)); // views, of which nothing is copied
    // [end]
    Object.assign(this, this.particles = {x, y, vx, vy});
    this.scatter();
  }

  /** Puts the particles on a disc that turns. Random numbers are made on the device as well. */
  scatter() {
    const {gpu, n, particles: {x, y, vx, vy}} = this;
    const angle = gpu.uniform(1, n, 0, 2 * Math.PI, 1), radius = gpu.uniform(1, n, 0.02, 0.8, 2).sqrt();
    x.assign(angle.cos().mul(radius));
    y.assign(angle.sin().mul(radius));
    vx.assign(y.mul(-0.55));
    vy.assign(x.mul(0.55));
  }

  /** @param {Function} step @param {{x: number, y: number}} pull @param {number} dt @param {number} time */
  step(step, pull, dt, time) {
    const {gpu, n, particles: {x, y, vx, vy}} = this;
    step.call(undefined, gpu, this.#fn, x, y, vx, vy, pull, dt, time, n);
  }

  /** Done when the step is queued on the device, or, without one, when its results are in the array. */
  async queued() {
    if (this.buffer) await this.state.buffer;
    else await this.state.sync();
  }

  /** @param {string} wgsl */
  #fn = (wgsl) => {
    let fn = this.#functions.get(wgsl);
    if (!fn) this.#functions.set(wgsl, fn = this.gpu.fn(wgsl));
    return (/** @type {any[]} */ ...args) => this.gpu.apply(fn, ...args);
  };

  close() {
    this.state.close();
    for (const fn of this.#functions.values()) fn.close();
  }
}
