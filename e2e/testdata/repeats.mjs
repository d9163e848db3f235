// SPDX-License-Identifier: Apache-2.0

// Tests of messages that are done again without the program: random walks over few statements, so that the same messages are posted again
// and again, between everything that may change what they mean. All that is read is compared with the same computed here, of whole numbers,
// which float32 holds exactly.

import {SubletError, init} from '/dist/index.mjs';
import {check, fails, gpuBuffer, observed, onBoth, same, withGpu} from './testing.mjs';

/** Statements that need a device of WebGPU, or that it has not done when the call returns, as the CPU has. */
const WITH_GPU = new Set(['wrapBuffer', 'expose', 'theirs', 'lose', 'aborted', 'detached']);

/** What one walk has: matrices with their elements as they should be, of which several may have one memory. */
class Walk {
  slots = [];
  reads = [];
  runs = [];
  trail = [];
  randoms = new Map();
  kept = [];
  step = 0;
  free = 0; // statements that took no call of the program

  constructor(gpu, seed, calls) {
    this.gpu = gpu;
    this.names = Object.keys(this.statements).filter((name) => gpu.device || !WITH_GPU.has(name));
    this.calls = calls;
    this.state = seed * 2654435761 >>> 0;
    this.factor = 2;
    this.fn = this.function();
    for (let i = 0; i < 5; i++) this.slots.push(this.fresh(i < 3 ? 2 : 3));
  }

  /** A whole number below n. */
  roll(n) {
    this.state = (Math.imul(this.state, 1664525) + 1013904223) >>> 0;
    return Math.floor((this.state >>> 8) / 2 ** 24 * n);
  }

  values(n) { return Array.from({length: n}, () => this.roll(19) - 9); }

  function() { return this.gpu.fn(`fn f(x: f32) -> f32 { return x * ${this.factor}.0; }`); }

  fresh(n, how = this.roll(4)) {
    const {gpu} = this, v = how === 0 ? Array(n * n).fill(0) : how === 1 ? Array(n * n).fill(this.roll(9)) : this.values(n * n);
    const m = how === 0 ? gpu.zeros(n, n) : how === 1 ? gpu.full(n, n, v[0]) : gpu.matrix(n, n, new Float32Array(v));
    return {leaf: {}, m, n, data: {v}};
  }

  /** Elements that were given in a matrix's order. */
  ordered(m, v) {
    const n = Math.sqrt(v.length);
    return m.order === 'column' ? v.map((_, e) => v[e % n * n + Math.floor(e / n)]) : v;
  }

  /** An expression of matrices by their numbers, with what it is. */
  expression(kind, i, j, k) {
    const {slots: {[i]: a, [j]: b}, gpu} = this, {n} = a, x = a.data.v, y = b.data.v, all = [...x.keys()];
    const two = b.n === n, at = (v, r, c) => v[r * n + c];
    const product = (p, q) => all.map((e) => Array.from({length: n}, (_, l) => at(p, Math.floor(e / n), l) * at(q, l, e % n)).reduce((s, t) => s + t));
    const clip = (v, z = 50) => v.map((e) => Math.max(-z, Math.min(z, e)));
    const made = (m, v) => ({m: m.clip(-50, 50), v: clip(v), n});
    switch (kind) {
      case 0: return two && made(a.m.add(b.m), all.map((e) => x[e] + y[e]));
      case 1: return two && made(a.m.matmul(b.m), product(x, y));
      case 2: return two && made(a.m.matmul(b.m).clip(-50, 50).matmul(a.m).clip(-50, 50).sum({axis: 0}).add(b.m), (() => {
        const p = clip(product(clip(product(x, y)), x)), sums = Array.from({length: n}, (_, c) => all.filter((e) => e % n === c).reduce((s, e) => s + p[e], 0));
        return all.map((e) => sums[e % n] + y[e]);
      })());
      case 3: return {m: a.m.T, v: all.map((e) => at(x, e % n, Math.floor(e / n))), n};
      case 4: return made(a.m.add(k), x.map((e) => e + k));
      case 5: return made(a.m.apply(this.fn), x.map((e) => e * this.factor));
      case 6: return {m: a.m, v: x, n};
      case 7: return made(a.m.relu().sub(a.m.T), all.map((e) => Math.max(0, x[e]) - at(x, e % n, Math.floor(e / n))));
      case 8: return two && made(a.m.slice([0, n], [0, 1]).matmul(b.m.slice([0, 1], [0, n])), all.map((e) => at(x, Math.floor(e / n), 0) * at(y, 0, e % n)));
      case 9: return {m: gpu.randomIntegers(n, n, 0, 9, 7, k), v: null, n, random: `${n} ${k}`};
      case 10: return made(gpu.nn.dropout(a.m, a.m.greaterEqual(0), 0.5), x.map((e) => e >= 0 ? 2 * e : 0));
    }
    return null;
  }

  /** Reads something, and compares it later with what it should be now. */
  read(what, m, v, random) {
    const at = this.step, now = v?.slice();
    this.reads.push(m.read().then((got) => {
      const want = now ?? this.randoms.get(random) ?? got;
      if (random) this.randoms.set(random, Array.from(got));
      if (got.length !== want.length || want.some((x, i) => got[i] !== x && !(got[i] === 0 && x === 0))) throw new Error(`step ${at}, ${what}: ${got} where ${Array.from(want)} was wanted`);
    }));
  }

  async settle() { await Promise.all(this.reads.splice(0)); }

  /** Whether a matrix can get another size. */
  alone(i) { return this.slots[i].m.mode === 'owned' && this.slots.every((s, j) => j === i || s.data !== this.slots[i].data); }

  statements = {
    assign: ([i, kind, j, k, l]) => {
      const c = this.slots[i], x = this.expression(kind, j, k, l);
      if (!x || !x.v || x.n !== c.n) return;
      c.m.assign(x.m);
      c.data.v = x.v.slice();
    },
    part: ([i, , j]) => {
      const c = this.slots[i], a = this.slots[j];
      c.m.slice([0, 1], [0, 2]).assign(a.m.slice([1, 2], [0, 2]));
      const [p, q] = [a.data.v[a.n], a.data.v[a.n + 1]];
      [c.data.v[0], c.data.v[1]] = [p, q];
    },
    read: ([, kind, j, k, l]) => {
      const x = this.expression(kind, j, k, l);
      if (x) this.read(`expression ${kind} of ${j} and ${k}`, x.m, x.v, x.random);
    },
    both: (of) => { this.statements.assign(of); this.statements.read(of); },
    twice: (of) => { this.statements.assign(of); this.statements.assign([of[2], (of[1] + 1) % 9, of[3], of[0], 1]); },
    set: ([i]) => {
      const c = this.slots[i], v = this.values(c.n * c.n), array = new Float32Array(v);
      if (c.m.mode !== 'owned') return;
      c.m.set(array);
      array.fill(99);
      c.data.v = this.ordered(c.m, v);
    },
    eval: ([i, kind, j, k, l]) => {
      const x = this.expression(kind, j, k, l);
      if (!x?.v) return;
      const m = x.m.eval();
      this.slots[i].m.close();
      this.slots[i] = {leaf: {}, m, n: x.n, data: {v: x.v.slice()}};
    },
    renew: ([i]) => {
      this.slots[i].m.close();
      this.slots[i] = this.fresh(2 + this.roll(2));
    },
    shift: ([i]) => { // the handle and the memory go to different matrices
      this.slots[i].m.close();
      this.kept.push(this.gpu.zeros(5, 5));
      this.slots[i] = this.fresh(2 + this.roll(2));
      if (this.kept.length > 1) this.kept.shift().close();
    },
    resize: ([i]) => {
      const c = this.slots[i], n = 5 - c.n;
      if (!this.alone(i)) return;
      c.buffer = undefined;
      c.m.memory.resize(n, n);
      c.m.assign(3);
      c.n = n;
      c.data.v = Array(n * n).fill(3);
    },
    setShape: ([i]) => {
      const {m, n} = this.slots[i];
      if (m.stride === n && m.order === 'row') m.memory.setShape(1, n * n).memory.setShape(n, n);
    },
    setValue: ([i, kind, j, k, l]) => {
      const c = this.slots[i], x = this.expression(kind, j, k, l);
      if (!x?.v || x.n !== c.n && !this.alone(i)) return;
      if (c.n !== x.n) c.buffer = undefined;
      c.m.memory.setValue(x.m);
      c.n = x.n;
      c.data.v = x.v.slice();
    },
    setValueFrom: ([i]) => {
      const c = this.slots[i], v = this.values(c.n * c.n), array = new Float32Array(v);
      if (c.m.order === 'column') return;
      c.m.memory.setValueFrom(array, c.n, c.n);
      array.fill(99);
      c.data.v = v;
    },
    rebind: ([i]) => {
      const c = this.slots[i], v = this.values(c.n * c.n), array = new Float32Array(v);
      c.m.memory.rebind(array, c.n, c.n);
      if (this.slots.some((s) => s !== c && s.data === c.data)) c.data = {v};
      Object.assign(c, {array, buffer: undefined});
      c.data.v = v;
    },
    touch: ([i]) => {
      const c = this.slots[i];
      if (!c.array || !c.m.external) return undefined;
      return c.m.sync().then(() => {
        for (let e = 0; e < c.array.length; e++) c.array[e] = c.data.v[e] = this.roll(9);
        c.m.touch();
      });
    },
    swap: ([i, , j]) => {
      if (i === j) return;
      this.slots[i].m.memory.swap(this.slots[j].m);
      const [a, b] = [this.slots[i], this.slots[j]];
      for (const key of ['leaf', 'n', 'data', 'array', 'buffer', 'of']) [a[key], b[key]] = [b[key], a[key]];
    },
    take: ([i, , j]) => {
      if (i === j) return;
      const [a, b] = [this.slots[i], this.slots[j]];
      a.m.memory.take(b.m);
      Object.assign(a, {leaf: b.leaf, n: b.n, data: b.data, array: b.array, buffer: b.buffer, of: b.of});
      b.m.close();
      this.slots[j] = this.fresh(2);
    },
    move: ([i]) => {
      const c = this.slots[i], m = c.m.memory.move();
      c.m.close();
      c.m = m;
    },
    reset: ([i]) => {
      this.slots[i].m.memory.reset();
      this.slots[i].m.close();
      this.slots[i] = this.fresh(2);
    },
    alias: ([i, , j]) => {
      if (i === j) return;
      const {m, n, data, array} = this.slots[j];
      this.slots[i].m.close();
      this.slots[i] = {leaf: {}, m: m.memory.alias(), n, data, array};
    },
    placed: ([i]) => {
      const {n} = this.slots[i], v = this.values(n * n);
      this.slots[i].m.close();
      const m = this.gpu.matrix(n, n, new Float32Array(v), this.roll(2) ? {offset: 4, stride: 8} : {order: 'column', padded: true});
      this.slots[i] = {leaf: {}, m, n, data: {v: this.ordered(m, v)}};
      m.set(new Float32Array(v));
    },
    wrapBuffer: ([i]) => {
      const {n} = this.slots[i], v = this.values(n * n), buffer = gpuBuffer(this.gpu.device, new Float32Array(v));
      this.slots[i].m.close();
      this.slots[i] = {leaf: {}, m: this.gpu.wrapBuffer(buffer, n, n), n, data: {v}, buffer};
    },
    expose: ([i]) => {
      const c = this.slots[i];
      if (c.m.mode !== 'owned' || c.m.stride !== c.n) return undefined;
      return c.m.buffer.then((buffer) => { c.buffer = buffer; c.of = c.data; });
    },
    async theirs([i]) { // the page writes to a GPUBuffer itself
      const c = this.slots[i];
      if (!c.buffer || c.m.mode !== 'external' && c.of !== c.data || c.array) return;
      if (c.m.mode === 'owned' && c.m.order === 'column') return;
      await this.gpu.sync(); // kernels may have to be compiled for what is queued
      const v = this.values(c.n * c.n);
      this.gpu.device.queue.writeBuffer(c.buffer, 0, new Float32Array(v));
      c.data.v = v;
    },
    function: () => {
      this.fn.close();
      this.factor = 2 + this.roll(3);
      this.fn = this.function();
    },
    async record([i, kind, j, k, l]) {
      const x = this.expression(kind, j, k, l), c = this.slots[i], own = [c, this.slots[j], this.slots[k]], sizes = own.map(({n}) => n);
      if (!x?.v || x.n !== c.n || kind === 5 || kind === 8) return;
      const run = await this.gpu.record(() => { c.m.assign(x.m); c.m.assign(c.m.matmul(c.m).clip(-50, 50).add(1)); });
      this.runs.push({run, kind, leaves: own.map(({leaf}) => leaf), sizes, l});
      if (this.runs.length > 3) this.runs.shift().run.close();
    },
    run: () => {
      const r = this.runs[this.roll(this.runs.length || 1)];
      if (!r) return;
      const [i, j, k] = r.leaves.map((leaf, at) => this.slots.findIndex((s) => s.leaf === leaf && s.n === r.sizes[at]));
      if (i < 0 || j < 0 || k < 0) return;
      const c = this.slots[i], x = this.expression(r.kind, j, k, r.l), n = c.n;
      r.run.run();
      c.data.v = x.v.slice();
      const v = c.data.v;
      c.data.v = v.map((_, e) => Math.max(-50, Math.min(50, Array.from({length: n}, (_, q) => v[Math.floor(e / n) * n + q] * v[q * n + e % n]).reduce((s, t) => s + t))) + 1);
    },
    sync: () => this.gpu.sync(),
    flush: () => this.gpu.flush(),
    stats: () => this.gpu.stats(),
    turn: () => null,
    settle: () => this.settle(),
    singular: async ([, , j]) => {
      const {m, n} = this.slots[j], zero = this.gpu.zeros(n, n);
      await fails('ErrSingular', 'a system without a solution', () => zero.solve(m).read());
      zero.close();
    },
    compile: async ([i]) => {
      const c = this.slots[i], bad = this.gpu.fn('fn bad(x: f32) -> f32 { return y; }');
      c.m.assign(c.m.apply(bad));
      bad.close();
      await fails('ErrCompile', 'what does not compile', () => c.m.add(1).read());
    },
    aborted: async ([, kind, j, k, l]) => {
      const x = this.expression(kind, j, k, l), abort = new AbortController();
      if (!x) return;
      const read = x.m.read({signal: abort.signal});
      abort.abort();
      await fails('ErrAborted', 'what was given up', () => read);
    },
    detached: async ([, kind, j, k, l]) => {
      const x = this.expression(kind, j, k, l);
      if (!x || kind === 3) return;
      const into = new Float32Array(x.n ** 2), read = x.m.read(into);
      structuredClone(into, {transfer: [into.buffer]});
      await fails('ErrInvalid', 'memory that is gone', () => read);
    },
    scope: ([, kind, j, k, l]) => this.gpu.scope(() => {
      const x = this.expression(kind, j, k, l);
      if (x?.v) this.read('a result of a scope', x.m.eval().add(0), x.v);
    }),
    tensor: ([, , j]) => {
      const {m, n, data: {v}} = this.slots[j], t = this.gpu.tensor(m, [n, 1, n]);
      this.read('a tensor', t.permute(2, 1, 0).add(1), v.map((_, e) => v[e % n * n + Math.floor(e / n)] + 1));
    },
    large: ([i]) => this.read('a large one', this.gpu.full(40, 40, i).matmul(this.gpu.ones(40, 40)), Array(1600).fill(40 * i)),
    optimiser: ([i, , j]) => {
      const c = this.slots[i], a = this.slots[j];
      if (a.n !== c.n) return;
      this.sgd ??= this.gpu.nn.sgd({rate: 1});
      this.sgd.step(c.m, a.m);
      c.data.v = c.data.v.map((x, e) => x - a.data.v[e]);
      this.statements.assign([i, 4, i, i, 0]);
    },
    async lose() {
      await this.settle();
      await this.gpu.sync();
      if (this.roll(8)) return;
      this.gpu.device.destroy();
      await this.gpu.lost;
      await this.gpu.reopen();
      for (const {run} of this.runs.splice(0)) run.close();
      for (let i = 0; i < this.slots.length; i++) {
        this.slots[i].m.close();
        this.slots[i] = this.fresh(2);
      }
    },
  };

  /** Makes so many steps among a few statements. */
  async walk(steps, few) {
    this.slots.forEach(({m}, i) => { if (m.mode !== 'owned') this.statements.renew([i]); });
    const {names} = this, usual = ['assign', 'read', 'both', 'twice', 'run', 'part', 'eval'];
    const menu = Array.from({length: few}, (_, i) => {
      const name = i < few / 2 ? usual[this.roll(usual.length)] : i === few - 1 ? 'record' : names[this.roll(names.length)];
      return [name, [this.roll(5), this.roll(11), this.roll(5), this.roll(5), this.roll(3)]];
    });
    for (let i = 0; i < steps; i++, this.step++) {
      const [name, of] = menu[this.roll(3) ? this.roll(few / 2) : this.roll(few)], before = this.calls();
      this.trail.push(`${this.step}: ${name} ${of}`);
      try {
        const done = this.statements[name].call(this, of);
        if (done?.then) await done;
      } catch (error) {
        throw new Error(`step ${this.step}, ${name} ${of}: ${error instanceof SubletError ? `${error.code}: ${error.message}` : error?.stack}`);
      }
      if (this.roll(3)) await this.settle();
      else if (this.roll(2)) await null;
      if (this.calls() === before && usual.includes(name)) this.free++;
    }
    this.slots.forEach(({m, data: {v}}, i) => this.read(`matrix ${i}`, m, v));
    await this.settle();
  }
}

/** Makes walks, each of so many times some steps among a few statements. */
async function walks(options, seeds, menus, steps) {
  for (let seed = 1; seed <= seeds; seed++) {
    const {gpu, count} = await observed(options), walk = new Walk(gpu, seed, count);
    try {
      for (let i = 0; i < menus; i++) await walk.walk(steps, 6 + 2 * walk.roll(4));
    } catch (error) {
      throw new Error(`seed ${seed}: ${error.message}\n${walk.trail.slice(-60).join('\n')}`);
    } finally {
      gpu.close();
    }
    check(walk.free > 0, `seed ${seed}: nothing was repeated in ${walk.step} steps`);
  }
}

export const tests = {
  // A device that is lost has done what it was asked to, as WebGPU has it, and sync says that it is lost also where the program has nothing left to do.
  async syncOfLost() {
    const gpu = await init({device: 'webgpu'}), a = gpu.ones(2, 2);
    for (let i = 0; i < 20; i++) {
      a.add(1).eval().close();
      await gpu.sync();
    }
    gpu.device.destroy();
    await gpu.lost;
    await fails('ErrDeviceLost', 'sync of a lost device', () => gpu.sync());
    gpu.close();
  },

  // 100 walks where tests may take minutes.
  repeatedWalks: (device) => device === 'both' ? walks({}, 100, 10, 60) : walks({}, 1, 4, 60),

  // The same on the CPU, with one thread and with two where there may be.
  repeatedWalksOnTheCPU: Object.assign(async (device) => {
    for (const threads of [1, 2]) await walks({device: 'simd', threads}, device === 'both' ? 50 : 2, device === 'both' ? 10 : 4, 60);
  }, {both: true}),

  // A handle is given to a matrix in other memory.
  repeatedHandles: onBoth(async (gpu) => {
    const a = gpu.full(2, 2, 1), c = gpu.zeros(2, 2);
    let b = gpu.full(2, 2, 2);
    for (let i = 0; i < 6; i++) {
      for (let j = 0; j < 4; j++) {
        same(await a.add(b).read(), Array(4).fill(i + 3), 'the sum');
        c.assign(b);
        same(await c.read(), Array(4).fill(i + 2), 'what was assigned');
      }
      b.close();
      const handle = gpu.zeros(9, 9), memory = gpu.full(2, 2, 99); // take one each
      handle.close();
      b = gpu.full(2, 2, i + 3);
      same(await memory.read(), Array(4).fill(99), 'what has the memory now');
      if (i % 2) memory.close();
    }
  }),

  // Recordings follow matrices that come back to their size in other memory.
  repeatedResized: onBoth(async (gpu) => {
    const a = gpu.full(2, 2, 1), c = gpu.zeros(2, 2), run = await gpu.record(() => c.assign(a.add(1)));
    for (let i = 0; i < 4; i++) {
      for (let j = 0; j < 4; j++) {
        c.assign(0);
        await gpu.sync();
        run.run();
        await gpu.sync(); // in a message that names the recording alone
        same(await c.read(), Array(4).fill(i + 2), 'what was recorded');
      }
      for (const m of [a, c]) {
        m.memory.resize(20 + 9 * i, 20);
        m.memory.resize(2, 2);
      }
      a.assign(i + 2);
    }
  }),

  // Who gives a read up is told so, the first time and later.
  repeatedAborted: withGpu(async (gpu) => {
    const a = gpu.full(8, 8, 1);
    for (let i = 0; i < 4; i++) await a.add(1).read({signal: new AbortController().signal});
    for (let i = 0; i < 4; i++) {
      const abort = new AbortController(), read = a.add(1).read({signal: abort.signal});
      abort.abort();
      await fails('ErrAborted', 'a read that was given up', () => read);
    }
  }),

  // Counters go on when the device comes back.
  repeatedCounters: withGpu(async (gpu) => {
    const a = gpu.full(8, 8, 1);
    for (let i = 0; i < 9; i++) await a.add(1).read();
    const before = gpu.stats();
    gpu.device.destroy();
    await gpu.lost;
    await gpu.reopen();
    const after = gpu.stats();
    for (const name of ['submissions', 'dispatches', 'bytesDown']) check(after[name] >= before[name], `${name} were ${before[name]} and are ${after[name]}`);
  }),
};
