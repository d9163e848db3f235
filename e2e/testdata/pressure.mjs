// SPDX-License-Identifier: Apache-2.0

// Memory that runs out: calls of WebGPU fail as browsers let them fail, and each call of ours either works or says so, changes nothing and
// works again when there is memory.

import {SubletError} from '/dist/index.mjs';
import {Random, Registry, unhandled, within} from './hostile-testing.mjs';
import {check, same, webgpu} from './testing.mjs';

/** Makes calls on GPU devices fail. `fails` says whether a call is to. */
export class Shortage {
  calls = 0;
  injected = 0;
  /** @type {(kind: string) => boolean} */
  fails = () => false;
  /** The error scopes of each device, with what was injected. */
  #scopes = new WeakMap();
  #undo = [];

  constructor() {
    const shortage = this, scopes = (device) => {
      if (!this.#scopes.has(device)) this.#scopes.set(device, []);
      return this.#scopes.get(device);
    };
    const report = (device) => {
      const scope = scopes(device).findLast(({filter}) => filter === 'out-of-memory'), error = new GPUOutOfMemoryError('injected');
      if (scope) scope.error ??= error;
      else device.dispatchEvent(new GPUUncapturedErrorEvent('uncapturederror', {error}));
    };
    this.#patch(GPUDevice, 'pushErrorScope', (push) => function (filter) {
      scopes(this).push({filter});
      return push.call(this, filter);
    });
    this.#patch(GPUDevice, 'popErrorScope', (pop) => async function () {
      const scope = scopes(this).pop(), found = pop.call(this);
      if (scope?.filter === 'out-of-memory' && shortage.#next('pop')) scope.error ??= new GPUOutOfMemoryError('injected');
      return await found ?? scope?.error ?? null;
    });
    const {pushErrorScope: push, popErrorScope: pop} = Object.fromEntries(this.#undo.map(([, name, value]) => [name, value]));
    this.#patch(GPUDevice, 'createBuffer', (create) => function (descriptor) {
      if (!shortage.#next('buffer')) return create.call(this, descriptor);
      push.call(this, 'validation');
      const buffer = create.call(this, {...descriptor, usage: 0}); // one that is invalid
      pop.call(this).catch(() => {});
      report(this);
      return buffer;
    });
    this.#patch(GPUBuffer, 'mapAsync', (map) => async function (...args) {
      if (shortage.#next('map')) throw new DOMException('injected', 'OperationError');
      return map.apply(this, args);
    });
    this.#patch(GPUDevice, 'createComputePipelineAsync', (create) => async function (descriptor) {
      if (shortage.#next('pipeline')) throw new GPUPipelineError('injected', {reason: 'internal'});
      return create.call(this, descriptor);
    });
  }

  #patch(Class, name, make) {
    const value = Class.prototype[name];
    this.#undo.push([Class.prototype, name, value]);
    Class.prototype[name] = make(value);
  }

  #next(kind) {
    this.calls++;
    if (!this.fails(kind)) return false;
    this.injected++;
    return true;
  }

  stop() {
    for (const [of, name, value] of this.#undo) of[name] = value;
  }
}

const SIDE = 8;

/** What is computed, again and again, with buffers and kernels that nobody has yet. */
class Work {
  errors = 0;
  right = 0;
  #round = 0;

  constructor(gpu, cruncher, made) {
    this.gpu = gpu;
    this.cruncher = cruncher;
    this.file = made;
    this.host = Float32Array.from({length: SIDE * SIDE}, (_, i) => i % 7);
    this.owned = gpu.matrix(SIDE, SIDE, this.host);
    this.wrapped = gpu.wrap(this.host, SIDE, SIDE);
    this.words = Uint32Array.from({length: 64}, (_, i) => i);
  }

  /** A call that has to be right or to say that there is no memory. */
  async step(what, run, want) {
    let got;
    try {
      got = await within(60000, run(), what);
    } catch (error) {
      check(error instanceof SubletError && error.code === 'ErrNoMemory', `${what}: ${error?.stack ?? error}`);
      this.errors++;
      return;
    }
    same(got, want, what);
    this.right++;
  }

  async round() {
    const {gpu, cruncher, owned, wrapped, host, words} = this, n = ++this.#round, open = [], keep = (m) => {
      open.push(m);
      return m;
    };
    // Sizes and texts of their own, so that no pool and no cache has them.
    const extra = 4096 + 16 * n, big = Float32Array.from({length: extra}, (_, i) => i % 5);
    await this.step('an owned matrix', async () => keep(gpu.matrix(1, extra, big)).read(), big);
    await this.step('a wrapped one', async () => keep(gpu.wrap(big, 1, extra)).mul(2).read(), big.map((x) => 2 * x));
    await this.step('a kernel', async () => owned.apply(gpu.fn(`fn work${n}(x: f32) -> f32 { return x + ${n}.0; }`)).read(), host.map((x) => x + n));
    await this.step('a result of results', async () => {
      const a = keep(owned.add(wrapped).eval()), b = keep(a.mul(2).eval());
      return b.sub(a).read();
    }, host.map((x) => 2 * x));
    await this.step('an assignment', async () => {
      const into = new Float32Array(extra), m = keep(gpu.wrap(into, 1, extra));
      m.assign(3);
      await m.sync();
      return into;
    }, big.map(() => 3));
    await this.step('a file', async () => {
      const params = keep(await gpu.loadParams(this.file));
      return params.get('m').read();
    }, host);
    await this.step('a saved one', async () => {
      const file = await gpu.saveParams([['m', owned]]), params = keep(await gpu.loadParams(file));
      return params.get('m').read();
    }, host);
    await this.step('a cruncher', async () => {
      const mine = words.slice(), array = keep(cruncher.array('a', mine));
      await cruncher.compute(1, 'f', {global: 64}, array).catch((error) => {
        same(mine, words, 'the array of a call that failed');
        throw error;
      });
      return mine;
    }, words.map((x) => x + 1));
    await this.step('sync', async () => { await gpu.sync(); return []; }, []);
    for (const x of open) x.close();
  }

  /** With memory everything works, and nothing is other than it was. */
  async healthy() {
    const errors = this.errors, {host} = this;
    await this.gpu.sync().catch(() => {}); // what nobody was told
    await this.round();
    check(this.errors === errors, 'something fails although there is memory');
    same(await this.owned.read(), host, 'the owned operand');
    same(await this.wrapped.read(), host, 'the wrapped operand');
    same(host, Float32Array.from({length: SIDE * SIDE}, (_, i) => i % 7), 'the memory of the operand');
  }
}

/** Injects as many failures as are asked for. What it throws names the seed and the round. */
export async function press(seed, most) {
  const shortage = new Shortage(), registry = new Registry(), watch = unhandled(() => true);
  const gpu = await registry.watch(() => webgpu()), cruncher = await registry.watch(() => gpu.cruncher('fn f(i: u32) { a[i] = a[i] + 1u; }'));
  const file = await gpu.saveParams([['m', {data: Float32Array.from({length: SIDE * SIDE}, (_, i) => i % 7), shape: [SIDE, SIDE]}]]);
  const work = new Work(gpu, cruncher, file);
  try {
    await work.healthy();
    const before = registry.sizes(gpu), calls = shortage.calls;
    await work.healthy();
    const each = shortage.calls - calls; // calls of WebGPU in a round
    for (let round = 0; shortage.injected < most; round++) {
      const random = new Random(seed + round), plan = random.below(3), k = 1 + random.below(plan === 0 ? each : 5);
      const kind = random.pick(['buffer', 'map', 'pipeline', 'pop', '']);
      let n = 0;
      const mine = (of) => kind === '' || kind === of;
      shortage.fails = [
        (of) => mine(of) && ++n === k, // one call
        (of) => mine(of) && ++n % k === 0, // each k-th
        (of) => mine(of) && random.below(k + 1) === 0,
      ][plan];
      try {
        await work.round();
        shortage.fails = () => false;
        await work.healthy();
        await registry.same(gpu, before);
        watch.check();
      } catch (error) {
        throw new Error(`with seed ${seed + round}, ${['the k-th', 'each k-th', 'one of k+1'][plan]} call, k = ${k}, of kind "${kind}": ${error?.stack ?? error}`);
      }
    }
    return {injected: shortage.injected, errors: work.errors, right: work.right};
  } finally {
    shortage.stop();
    watch.stop();
    registry.stop();
    cruncher.close();
    gpu.close();
  }
}
