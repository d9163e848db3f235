// SPDX-License-Identifier: Apache-2.0

// Tests of recordings: assignments that are planned once and computed as often as one likes.

import {check, fails, noise, onBoth, reference, same} from './testing.mjs';

/** Many assignments, each of the one before: what a run costs of the page's thread for each, in microseconds. */
export async function cost(gpu, count = 200, runs = 40) {
  const a = gpu.zeros(64, 64), one = gpu.full(64, 64, 1);
  const step = await gpu.record(() => { for (let i = 0; i < count; i++) a.assign(a.add(one)); });
  let best = Infinity;
  for (let k = 0; k < runs; k++) {
    await gpu.sync();
    const start = performance.now();
    step.run();
    gpu.flush();
    best = Math.min(best, performance.now() - start);
  }
  const [first] = await a.read();
  check(first === count * runs, `${first} after ${runs} runs of ${count}`);
  for (const x of [step, a, one]) x.close();
  return best * 1000 / count;
}

export const tests = {
  results: onBoth(async (gpu) => {
    // A layer and the step of a gradient, with other data each time, against float64.
    const n = 5, k = 7, m = 3, x = gpu.zeros(n, k), w = gpu.matrix(k, m, noise(k * m, 2)), g = gpu.zeros(k, m), calls = [];
    const step = await gpu.record(() => {
      calls.push(1);
      const y = x.matmul(w).eval();
      g.assign(x.T.matmul(y));
      w.assign(w.sub(g.mul(0.125)));
      return y;
    });
    check(calls.length === 1 && step.steps === 3 && !step.closed && String(step).startsWith('Recording of 3 steps on '), String(step));
    same(await g.read(), Array(k * m).fill(0), 'nothing is computed before the first run');
    let now = Float64Array.from(await w.read());
    const {compilations} = gpu.stats();
    for (let turn = 0; turn < 3; turn++) {
      const data = noise(n * k, 10 + turn);
      x.set(data);
      const y = step.run(), was = now, at = (i, j) => data[i * k + j];
      const product = reference(at, (i, j) => was[i * m + j], n, k, m);
      same(await y.read(), product.c, `run ${turn}`, Array.from(product.bound, (b) => b + 1e-6));
      const grad = reference((i, j) => at(j, i), (i, j) => product.c[i * m + j], k, n, m);
      now = Float64Array.from(was, (v, i) => v - grad.c[i] / 8);
      same(await w.read(), now, `weights after run ${turn}`, 1e-5);
    }
    check(gpu.stats().compilations === compilations, 'runs compile nothing');
    step.close();
    check(step.closed && String(step).endsWith(', closed'), String(step));
    await fails('ErrClosed', 'a closed recording', () => step.run());
    same(await w.read(), now, 'its matrices stay', 1e-5);
  }),

  parts: onBoth(async (gpu) => {
    // What is computed on the way is part of the recording: other shapes of expressions, parts of them, deep ones, what is closed.
    const a = gpu.matrix([[1, 2, 3], [4, 5, 6]]), out = gpu.zeros(3, 4), deep = gpu.zeros(2, 3), t = gpu.zeros(4, 3), f = gpu.fn('fn halved(x: f32) -> f32 { return x * 0.5; }');
    const ones = {};
    const step = await gpu.record(() => {
      out.slice([0, 3], [1, 3]).assign(a.add(1).reshape(3, 2));
      out.col(0).assign(a.mul(2).slice([1, 2], [0, 3]).T);
      let x = a.add(0);
      for (let i = 0; i < 600; i++) x = x.add(1);
      deep.assign(x);
      const doubled = a.mul(2).eval(), g = gpu.fn('fn twice(x: f32) -> f32 { return x * 2.0; }');
      t.row(0).assign(gpu.apply(g, doubled.row(1)));
      t.row(1).assign(gpu.apply(f, doubled.row(0)));
      t.row(2).assign(7);
      ones.made = gpu.ones(1, 3); // made once
      t.row(3).assign(ones.made.add(a.row(0)));
      doubled.close();
      g.close();
      return t.sum(0).eval();
    });
    for (const base of [1, 10]) {
      const v = Array.from({length: 6}, (_, i) => base + i);
      a.set(v);
      const sums = step.run(), want = [v.slice(3).map((x) => 4 * x), v.slice(0, 3), [7, 7, 7], v.slice(0, 3).map((x) => x + 1)];
      same(await out.read(), [0, 1, 2].flatMap((i) => [2 * v[3 + i], v[2 * i] + 1, v[2 * i + 1] + 1, 0]), 'parts');
      same(await deep.read(), v.map((x) => x + 600), 'deep');
      same(await t.read(), want.flat(), 'rows');
      same(await sums.read(), [0, 1, 2].map((j) => want.reduce((s, row) => s + row[j], 0)), 'sums');
    }
    step.close();
    const {liveBytes} = gpu.stats();
    for (let i = 0; i < 5; i++) {
      const again = await gpu.record(() => { const x = a.add(1).eval(); deep.assign(x.reshape(3, 2).add(1).reshape(2, 3)); x.close(); });
      again.run();
      again.close();
    }
    await gpu.sync();
    check(gpu.stats().liveBytes === liveBytes, 'all memory of recordings is gone');
    same(await deep.read(), Array.from({length: 6}, (_, i) => 12 + i), 'the last ones');
  }),

  memory: onBoth(async (gpu) => {
    // Memory of the page's, other memory since, types beside float32, tensors.
    const data = Float32Array.of(1, 2, 3), x = gpu.wrap(data, 1, 3), y = gpu.zeros(1, 3), i = gpu.matrix(1, 3, [1, 2, 3], {dtype: 'int32'}), z = gpu.tensor(new Float32Array(6), [1, 2, 3]);
    const step = await gpu.record(() => {
      y.assign(x.mul(2));
      i.assign(i.mul(3));
      return gpu.tensor([[[1, 2, 3], [4, 5, 6]]]).add(x.tensor(1, 1, 3)).add(z).eval();
    });
    data.set([4, 5, 6]);
    x.touch();
    const sum = step.run();
    data.fill(0); // too late
    same(await y.read(), [8, 10, 12], 'wrapped');
    same(await sum.read(), [5, 7, 9, 8, 10, 12], 'tensors');
    x.memory.rebind(Float32Array.of(7, 8, 9), 1, 3);
    y.memory.setValueFrom(Float32Array.of(0, 0, 0), 1, 3);
    step.run();
    same(await y.read(), [14, 16, 18], 'rebound');
    same(await i.read(), [9, 18, 27], 'int32');
    check(String(y).includes('14'), String(y));
    step.run();
    check(!String(y).includes('14'), 'what was read is not printed after another run');
    y.memory.resize(3, 3);
    step.run();
    await fails('ErrShape', 'another size', () => y.read());
    y.memory.resize(1, 3);
    same(await step.run() && await y.read(), [14, 16, 18], 'the size is back');
    x.close();
    await fails('ErrClosed', 'a closed operand', () => step.run());
    same(await y.read(), [14, 16, 18], 'nothing has changed');
    step.close();
  }),

  mistakes: onBoth(async (gpu) => {
    const a = gpu.matrix([[1, 2]]), b = gpu.zeros(1, 2), {buffers} = gpu.stats();
    for (const [code, what, run] of [
      ['ErrInvalid', 'no function', () => gpu.record(5)], ['ErrInvalid', 'nothing', () => gpu.record(() => a.add(1))],
      ['ErrInvalid', 'asynchronous', () => gpu.record(async () => { b.assign(a); })], ['ErrInvalid', 'an option', () => gpu.record(() => b.assign(a), {sgnal: null})],
      ['ErrUnsupported', 'set', () => gpu.record(() => { b.assign(a); b.set([1, 2]); })], ['ErrUnsupported', 'resize', () => gpu.record(() => b.memory.resize(2, 2))],
      ['ErrUnsupported', 'an optimiser', () => gpu.record(() => gpu.nn.sgd().step(b, a))], ['ErrUnsupported', 'setValue', () => gpu.record(() => b.memory.setValue(gpu.zeros(2, 2)))],
      ['ErrUnsupported', 'touch', () => gpu.record(() => b.touch())], ['ErrShape', 'sizes', () => gpu.record(() => { a.add(1).eval(); b.assign(gpu.zeros(2, 2)); })],
      ['ErrAborted', 'given up', () => gpu.record(() => b.assign(a), {signal: AbortSignal.abort()})],
    ]) await fails(code, what, run);
    let read;
    (await gpu.record(() => { read = a.read().catch(({code}) => code); b.assign(a); })).close();
    check(await read === 'ErrUnsupported', `read: ${await read}`);
    let inner;
    (await gpu.record(() => { inner = gpu.record(() => b.assign(a)).catch(({code}) => code); b.assign(a); })).close();
    check(await inner === 'ErrUnsupported', `a recording in one: ${await inner}`);
    const mine = new TypeError('mine');
    check(await gpu.record(() => { a.add(1).eval(); throw mine; }).catch((error) => error) === mine, 'the error of the function');
    const wrong = gpu.fn('fn wrong(x: f32) -> f32 { return y; }');
    const bad = await gpu.record(() => b.assign(gpu.apply(wrong, a))).catch(({code}) => code);
    check(bad === 'ErrSyntax' || bad === 'ErrCompile', `WGSL that does not compile: ${bad}`);
    wrong.close();
    await gpu.sync();
    check(gpu.stats().buffers <= buffers + 2, 'what fails leaves no memory');
    const controller = new AbortController(), fn = gpu.fn(`fn late(x: f32) -> f32 { return x * 0.125; }`);
    const late = gpu.record(() => b.assign(gpu.apply(fn, a)), {signal: controller.signal}).then((made) => made.close(), ({code}) => code);
    controller.abort();
    check([undefined, 'ErrAborted'].includes(await late), `given up late: ${await late}`);
    b.assign(a.add(1));
    same(await b.read(), [2, 3], 'what comes next');
  }),

  // What computes lets the page have turns. A kernel that nobody has any more stays until it has computed what is queued.
  closedWhileRunning: onBoth(async (gpu) => {
    const n = 1200, a = gpu.ones(n, n), c = gpu.zeros(n, n), turn = () => new Promise((done) => setTimeout(done));
    const run = await gpu.record(() => c.assign(a.matmul(a)));
    run.run();
    await turn();
    run.close();
    same([(await c.read())[n]], [n], 'of a recording that was closed');
    const d = a.matmul(a).eval(), few = gpu.ones(2, 2), fns = Array.from({length: 1100}, (_, i) => gpu.fn(`fn many${i}(x: f32) -> f32 { return x + ${i}.5; }`));
    await turn();
    if (gpu.info.driver === 'simd') await Promise.all(fns.map((fn) => few.apply(fn).read())); // more kernels than are kept
    same([(await d.read())[n]], [n], 'beside many kernels');
    for (const x of [...fns, a, c, d, few]) x.close();
  }),

  cheap: onBoth(async (gpu) => {
    check(await cost(gpu, 200, 3) > 0, 'the sums are right');
  }),
};
