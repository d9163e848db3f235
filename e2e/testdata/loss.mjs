// SPDX-License-Identifier: Apache-2.0

// Devices that are lost at every point of a run: at the n-th call of WebGPU, whatever that is, the device that it is about is destroyed.

import {SubletError} from '/dist/index.mjs';
import {Random, Registry, unhandled, within} from './hostile-testing.mjs';
import {check, same, webgpu} from './testing.mjs';

/** Destroys devices at calls of WebGPU. */
export class Losses {
  calls = 0;
  lost = 0;
  /** At which call, if at any, and whether before or after it. */
  at = Infinity;
  after = false;
  /** What was called then. */
  what = '';
  #devices = new WeakMap();
  #undo = [];
  #destroy = GPUDevice.prototype.destroy;

  constructor() {
    for (const Class of [GPUDevice, GPUQueue, GPUBuffer, GPUCommandEncoder, GPUComputePassEncoder]) {
      for (const [name, {value}] of Object.entries(Object.getOwnPropertyDescriptors(Class.prototype))) {
        if (typeof value === 'function' && name !== 'constructor') this.#patch(Class, name, value);
      }
    }
  }

  #patch(Class, name, value) {
    const losses = this;
    this.#undo.push([Class, name, value]);
    Class.prototype[name] = function (...args) {
      const device = losses.#of(this), now = device && ++losses.calls === losses.at;
      if (now && !losses.after) losses.#lose(device, `before ${Class.name}.${name}`);
      const made = value.apply(this, args);
      if (now && losses.after) losses.#lose(device, `after ${Class.name}.${name}`);
      if (device && typeof made === 'object' && made) losses.#devices.set(made, device);
      return made;
    };
  }

  #of(object) {
    if (object instanceof GPUDevice) {
      this.#devices.set(object.queue, object);
      return object;
    }
    return this.#devices.get(object);
  }

  #lose(device, what) {
    this.what = what;
    this.device = device;
    this.lost++;
    this.#destroy.call(device);
  }

  stop() {
    for (const [Class, name, value] of this.#undo) Class.prototype[name] = value;
  }
}

const KERNEL = 'fn f(i: u32) { a[i] = a[i] + 1u; }', N = 64;

/** What is computed on a Gpu that comes back. */
class Run {
  errors = 0;
  right = 0;
  #round = 0;

  constructor(gpu, file) {
    this.gpu = gpu;
    this.file = file;
    this.host = Float32Array.from({length: N}, (_, i) => i % 7);
    this.synced = new Float32Array(N);
    this.wrapped = gpu.wrap(this.host, 8, 8);
    this.results = gpu.wrap(this.synced, 8, 8);
  }

  async step(what, run, want) {
    let got;
    try {
      got = await within(60000, run(), what);
    } catch (error) {
      check(error instanceof SubletError && error.code === 'ErrDeviceLost', `${what}: ${error?.stack ?? error}`);
      this.errors++;
      this.failed = `${what}: ${error.stack}`;
      return;
    }
    same(got, want, what);
    this.right++;
  }

  /** Several things at once: uploads, compilation, dispatches, reads, a file, a cruncher with another device. */
  async round() {
    const {gpu, wrapped, host} = this, n = ++this.#round, open = [], keep = (m) => {
      open.push(m);
      return m;
    };
    const values = Float32Array.from({length: 4096 + 16 * n}, (_, i) => i % 5);
    await Promise.all([
      this.step('an owned matrix', async () => keep(gpu.matrix(1, values.length, values)).read(), values),
      this.step('a kernel', async () => wrapped.apply(gpu.fn(`fn lose${n}(x: f32) -> f32 { return x + ${n}.0; }`)).read(), host.map((x) => x + n)),
      this.step('a result of results', async () => {
        const a = keep(wrapped.add(n).eval()), b = keep(a.mul(2).eval());
        await gpu.sync();
        return b.sub(a).read();
      }, host.map((x) => x + n)),
      this.step('a file', async () => keep(await gpu.loadParams(this.file)).get('m').read(), host),
    ]);
    this.results.assign(7);
    await this.step('wrapped results', async () => {
      await this.results.sync();
      return this.synced;
    }, host.map(() => 7));
    for (const x of open) x.close();
  }

  /** A call of a cruncher, which ends well as long as one device is left. */
  async crunch() {
    const {gpu} = this, words = Uint32Array.from({length: 4 * N}, (_, i) => i), want = words.map((x) => x + 3);
    await this.step('a cruncher', async () => {
      const cruncher = await gpu.cruncher(KERNEL, {devices: ['own', 'high-performance']});
      try {
        const array = cruncher.array('a', words);
        for (let i = 0; i < 3; i++) await within(60000, cruncher.compute(1, 'f', {global: words.length}, array), 'compute').catch((error) => { throw new TypeError(`the cruncher did not go on: ${error?.stack}`); });
        array.close();
        return words;
      } finally {
        cruncher.close();
      }
    }, want);
  }

  /** Everything is back: what the page had, and what was synced. */
  async back() {
    const {gpu, host, wrapped, results} = this;
    await gpu.reopen();
    await this.step('what nobody was told', async () => { await gpu.sync(); return []; }, []);
    const {errors, failed} = this;
    same(await wrapped.add(1).read(), host.map((x) => x + 1), 'wrapped memory');
    results.touch();
    same(await results.read(), this.synced, 'wrapped memory with results');
    same(host, Float32Array.from({length: N}, (_, i) => i % 7), 'the page\'s memory');
    await this.round();
    check(this.errors === errors && this.failed === failed, `on the device that came back ${this.failed}`);
  }
}

/** Loses as many devices as are asked for. What it throws names the seed and what was lost. */
export async function lose(seed, most) {
  const losses = new Losses(), watch = unhandled(() => true), registry = new Registry();
  const gpu = await registry.watch(() => webgpu()), file = await gpu.saveParams([['m', {data: Float32Array.from({length: N}, (_, i) => i % 7), shape: [8, 8]}]]);
  const run = new Run(gpu, file), plans = [() => run.round(), () => run.crunch(), () => closing(run)], each = [];
  const closing = async () => {
    const other = await webgpu(), doomed = new Run(other, file), round = doomed.round();
    other.flush();
    if (losses.calls % 2) await round;
    doomed.wrapped.close();
    other.close();
    await round.catch(() => {});
  };
  try {
    await run.back();
    const before = registry.sizes(gpu);
    for (const plan of plans) {
      const {calls} = losses;
      await plan();
      each.push(losses.calls - calls);
    }
    for (let round = 0; losses.lost < most; round++) {
      const random = new Random(seed + round), plan = round % 6 === 4 ? 1 : round % 6 === 5 ? 2 : 0, {device, lost} = gpu;
      losses.after = random.below(2) === 0;
      losses.at = losses.calls + 1 + random.below(each[plan]);
      losses.what = 'nothing was lost';
      try {
        await plans[plan]();
        losses.at = Infinity;
        if (losses.device === device) check((await within(60000, lost, 'the loss')).reason === 'destroyed', 'the reason');
        await run.back();
        await registry.same(gpu, before);
        watch.check();
      } catch (error) {
        throw new Error(`with seed ${seed + round}, ${losses.what}: ${error?.stack ?? error}`);
      }
    }
    return {lost: losses.lost, calls: each[0], errors: run.errors, right: run.right};
  } finally {
    losses.stop();
    watch.stop();
    registry.stop();
    gpu.close();
  }
}
