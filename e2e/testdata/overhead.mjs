// SPDX-License-Identifier: Apache-2.0

// Tests of what one evaluation, one upload and one download take: calls of WebGPU and calls between the program and JavaScript, counted
// when everything has been made that is made once.

import {check, fails, observed, same, withGpu} from './testing.mjs';

const CALLS = [
  [GPUQueue, ['submit', 'writeBuffer']],
  [GPUDevice, ['createBuffer', 'createBindGroup', 'createCommandEncoder', 'pushErrorScope']],
  [GPUBuffer, ['mapAsync', 'getMappedRange']],
];

/** Runs something a few times, and then with its calls of WebGPU counted and noted. @param {() => Promise<unknown>} run */
async function counted(run) {
  const counts = {}, notes = [], originals = [];
  let looks = 0;
  for (let i = 0; i < 5; i++) await run();
  for (const [owner, names] of CALLS) {
    for (const name of names) {
      const original = owner.prototype[name];
      originals.push([owner, name, original]);
      owner.prototype[name] = function (...args) {
        if (name === 'submit' && args[0].length === 0) { // which only makes the browser look, if work takes long
          looks++;
          return original.apply(this, args);
        }
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
  return {counts, notes, looks};
}

/** Wants exactly these calls. */
const wants = (counts, want, what) => check(JSON.stringify(Object.entries(counts).sort()) === JSON.stringify(Object.entries(want).sort()), `${what}: ${JSON.stringify(counts)}, want ${JSON.stringify(want)}`);

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
    const alone = await counted(async () => {
      gpu.matrix(1024, 1024, new Float32Array(1 << 20)).close();
      await gpu.sync();
    });
    wants({...alone.counts, looks: alone.looks}, {writeBuffer: 1, looks: 0}, 'an upload alone');
  }),

  // What was posted before is done again without the program.
  async repeated() {
    const {gpu, crossings} = await observed();
    const a = gpu.matrix(64, 64, new Float32Array(N).fill(1)), b = gpu.matrix(64, 64, new Float32Array(N).fill(2)), c = gpu.zeros(64, 64), into = new Float32Array(N);
    const run = await gpu.record(() => c.assign(c.add(a)));
    const free = {
      result: () => a.add(b).read(into),
      product: () => a.matmul(b).add(1).relu().read(),
      matrix: () => a.read(),
      async assignment() {
        c.assign(a.sub(b));
        await c.read();
      },
      async recording() {
        run.run();
        await c.read();
      },
      async submitted() {
        c.assign(a.mul(b));
        await gpu.sync();
      },
      async evaluation() {
        const d = a.div(b).eval();
        await gpu.sync();
        d.close();
      },
      twice: () => Promise.all([a.add(b).read(), a.add(b).read()]),
    };
    for (const [name, use] of Object.entries(free)) {
      for (let i = 0; i < 4; i++) await use();
      const before = gpu.stats(), count = await crossings(use), after = gpu.stats();
      check(count === 0, `${count} calls of JavaScript for ${name}`);
      const launches = after.dispatches - before.dispatches, want = {matrix: 0, twice: 14}[name] ?? 7;
      check(launches === want || name === 'product' && launches >= want, `${launches} launches in 7 times ${name}`);
    }
    gpu.close();
  },

  // What it does is what the program would do.
  repeatedRight: withGpu(async (gpu) => {
    const a = gpu.matrix(64, 64, new Float32Array(N).fill(1)), b = gpu.matrix(64, 64, new Float32Array(N).fill(2)), c = gpu.zeros(64, 64);
    const first = async (x) => (await x.read())[0];
    const counting = await gpu.record(() => c.assign(c.add(a)));
    for (let i = 0; i < 6; i++) {
      counting.run();
      same([await first(c)], [i + 1], 'what is counted');
    }
    for (let i = 0; i < 6; i++) {
      a.set(new Float32Array(N).fill(i)); // which goes ahead of what is read
      same([await first(a.add(b))], [i + 2], 'the sum of what was set');
      c.assign(i);
      same([await first(c.add(b))], [i + 2], 'the sum of what was assigned');
      const d = a.mul(b).eval(); // in the memory that results were in
      same([await first(a.add(b)), await first(d)], [i + 2, 2 * i], 'the sum beside what was evaluated');
      d.close();
      const e = gpu.full(64, 64, i);
      same([await first(e.add(b))], [i + 2], 'the sum of another matrix, whose handle is that of one that was closed');
      e.close();
    }
    const view = c.slice([0, 2], [0, 2]);
    for (let i = 0; i < 6; i++) {
      view.assign(view.add(1));
      same(await view.read(), new Float32Array(4).fill(6 + i), 'a part');
    }
    same([(await c.read())[N - 1]], [5], 'what is not of the part');
    const values = await Promise.all(Array.from({length: 9}, (_, i) => {
      c.assign(c.add(b));
      return i % 2 ? first(c) : first(c.add(b));
    }));
    same(values, Array.from({length: 9}, (_, i) => 11 + 2 * (i + 1) + (i % 2 ? 0 : 2)), 'what is read while more is queued');
  }),

  // Recordings follow what matrices become, and functions are known by more than their numbers.
  repeatedChanged: withGpu(async (gpu) => {
    const a = gpu.full(2, 2, 1), c = gpu.zeros(2, 2), run = await gpu.record(() => c.assign(a.add(1)));
    for (let i = 0; i < 5; i++) {
      run.run();
      same(await c.read(), [2, 2, 2, 2], 'what is recorded');
    }
    a.memory.setValue(gpu.full(2, 2, 5));
    run.run();
    same(await c.read(), [6, 6, 6, 6], 'what is recorded of what the matrix became');
    for (const factor of [2, 3]) {
      const fn = gpu.fn(`fn f(x: f32) -> f32 { return x * ${factor}.0; }`);
      for (let i = 0; i < 5; i++) same(await c.apply(fn).read(), new Float32Array(4).fill(6 * factor), 'what a function returns');
      fn.close();
    }
  }),

  // Who was not told yet that there is no value is told, and so is who asks the lost device.
  repeatedFailures: withGpu(async (gpu) => {
    const a = gpu.full(2, 2, 1), b = gpu.full(2, 2, 2), c = gpu.zeros(2, 2), bad = gpu.fn('fn bad(x: f32) -> f32 { return y; }');
    for (let i = 0; i < 5; i++) same(await c.add(b).read(), [2, 2, 2, 2], 'the sum');
    c.assign(a.apply(bad));
    await fails('ErrCompile', 'the sum of what was not computed', () => c.add(b).read());
    const singular = gpu.zeros(2, 2);
    for (let i = 0; i < 5; i++) await fails('ErrSingular', 'a system without a solution', () => singular.solve(b).read());
    const into = new Float32Array(4);
    for (let i = 0; i < 5; i++) await a.add(b).read(into);
    const read = a.add(b).read(into);
    structuredClone(into, {transfer: [into.buffer]});
    await fails('ErrInvalid', 'memory that is gone', () => read);
    for (let i = 0; i < 3; i++) same(await a.add(b).read(), [3, 3, 3, 3], 'the sum');
    gpu.device.destroy();
    await fails('ErrDeviceLost', 'a lost device', () => a.add(b).read());
    await gpu.reopen();
    const d = gpu.full(2, 2, 3);
    for (let i = 0; i < 5; i++) same(await d.add(1).read(), [4, 4, 4, 4], 'the sum on the device that came back');
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
