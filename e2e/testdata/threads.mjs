// SPDX-License-Identifier: Apache-2.0

// Tests of the CPU's device with several threads, in isolated pages and in Node.

import {check, fails, noise, reference, same} from './testing.mjs';
import {init} from '/dist/index.mjs';

/** A test with devices of some numbers of threads, more than there are cores among them. */
const threaded = (run, ...numbers) => async () => {
  for (const threads of numbers) {
    const gpu = await init({device: 'simd', threads});
    try {
      check(gpu.info.threads === threads, `${gpu.info.threads} threads, want ${threads}`);
      await run(gpu);
    } finally {
      gpu.close();
    }
  }
};

/** How often a test computes the same: threads join in when they have started. */
const TIMES = 10;

/** @template T @param {() => T} make */
function lazily(make) {
  let made;
  return () => made ??= make();
}

/** As same, for many elements. */
function near(got, want, what, tolerance = () => 0) {
  const wrong = got.length === want.length ? got.findIndex((x, i) => !(Math.abs(x - want[i]) <= tolerance(i))) : 0;
  check(wrong < 0, `${what}: element ${wrong} of ${got.length} is ${got[wrong]}, want ${want[wrong]}`);
}

/** What tests compute with and what they expect, made once. */
const factors = lazily(() => {
  const m = 160, k = 300, a = noise(m * k), b = noise(k * m, 2);
  return {m, k, a, b, ...reference((i, l) => a[i * k + l], (l, j) => b[l * m + j], m, k, m)};
});
const grid = lazily(() => {
  const side = 1024, a = noise(side * side), rows = Array.from({length: side}, (_, i) => a.subarray(side * i, side * (i + 1)));
  const soft = new Float64Array(a.length);
  rows.forEach((row, r) => {
    const all = row.reduce((s, v) => s + Math.exp(v), 0);
    row.forEach((v, i) => { soft[side * r + i] = Math.exp(v) / all; });
  });
  return {
    side, a, soft, chain: Float64Array.from(a, (v) => Math.exp(v * v + v)), sum: [a.reduce((s, v) => s + v, 0)],
    most: rows.map((row) => Math.max(...row)), turned: a.map((_, i) => a[side * (i % side) + Math.floor(i / side)]),
  };
});

async function products(gpu) {
  const {m, k, a, b, c, bound} = factors(), x = gpu.matrix(m, k, a), y = gpu.matrix(k, m, b);
  for (let i = 0; i < TIMES; i++) near(await x.matmul(y).read(), c, 'a product', (e) => bound[e]);
}

async function elements(gpu) {
  const {side, a, chain, sum, most, turned, soft} = grid(), x = gpu.matrix(side, side, a);
  for (let i = 0; i < TIMES; i++) {
    near(await x.mul(x).add(x).exp().read(), chain, 'elements', () => 1e-5);
    near(await x.sum().read(), sum, 'a sum', () => 0.1);
    near(await x.max({axis: 1}).read(), most, 'maxima');
    near(await x.T.read(), turned, 'a transpose');
    near(await x.softmax().read(), soft, 'a softmax', () => 1e-6);
  }
}

// Group 0 waits for another group, for as long as patience lasts.
const MEETING = `fn meet(i: u32) {
  if (i == 0u) {
    for (var n = 0u; n < patience; n = n + 1u) {
      if (atomicLoad(&s[1]) != 0u) { atomicStore(&s[0], 1u); break; }
    }
  }
  if (i >= 64u) { atomicStore(&s[1], 1u); }
}`;

/** How long threads may take to start. */
const MINUTE = 60_000;

export const tests = {
  products: threaded(products, 1, 2, 5),
  elements: threaded(elements, 1, 2, 5),

  'threads run workgroups at the same time': threaded(async (gpu) => {
    const cr = await gpu.cruncher(MEETING), s = cr.array('s', new Uint16Array(4), {mode: 'atomic', writeAll: true}), until = Date.now() + MINUTE;
    do {
      check(Date.now() < until, 'no group met another one');
      s.data.fill(0);
      await cr.compute(1, 'meet', {global: 1 << 16, local: 64}, s, cr.scalar('patience', 1 << 20, 'uint32'));
    } while (s.data[0] === 0);
  }, 2),

  'atomics of several threads': threaded(async (gpu) => {
    const cr = await gpu.cruncher(`
      fn count(i: u32) { atomicAdd(&s[i % 3u], 1u); }
      fn most(i: u32) { atomicMax(&s[3], (i * 2654435761u) >> 8u); }
    `);
    const n = 3 << 18;
    let most = 0;
    for (let i = 0; i < n; i++) most = Math.max(most, Math.imul(i, 2654435761) >>> 8);
    for (let i = 0; i < TIMES; i++) {
      const s = cr.array('s', new Uint16Array(8), {mode: 'atomic', writeAll: true}), words = new Uint32Array(s.data.buffer);
      await cr.compute(1, 'count', {global: n, local: 64}, s);
      await cr.compute(2, 'most', {global: n, local: 64}, s);
      same(words, [n / 3, n / 3, n / 3, most], 'counts');
      s.close();
    }
  }, 2, 4),

  'memory that grows while there are threads': threaded(async (gpu) => {
    const side = 2048, kept = []; // matrices of 16 MiB
    for (let i = 0; i < 20; i++) {
      kept.push(gpu.full(side, side, i).add(gpu.ones(side, side)).eval());
      same(await kept[i].max().read(), [i + 1], 'the largest in memory that is new');
      same(await kept[i].min().read(), [i + 1], 'the least');
    }
    for (const [i, m] of kept.entries()) check((await m.read()).every((v) => v === i + 1), `matrix ${i}`);
  }, 3),

  'a kernel that does not end': threaded(async (gpu) => {
    const f = gpu.fn('fn endless(x: f32) -> f32 { var y = x; loop { if (y < 1.0) { break; } y = y + 1.0; } return y; }');
    const n = 1 << 20, calm = gpu.zeros(1, n), stuck = new Float32Array(n);
    stuck[n - 1] = 1;
    for (let i = 0; i < 3; i++) same((await calm.apply(f).read()).subarray(0, 1), [0], 'a function that ends');
    const wild = gpu.matrix(1, n, stuck);
    await fails('ErrLimit', 'a function that does not end', () => wild.apply(f).read());
  }, 1, 2),

  'devices of several programs at once': async () => {
    const all = await Promise.all([2, 3, 2].map((threads) => init({device: 'simd', threads})));
    await Promise.all(all.map(products));
    all.forEach((gpu) => gpu.close());
    await fails('ErrClosed', 'a closed device', () => all[0].ones(1, 1).read());
  },

  'a device that is closed while its threads work': async () => {
    for (let i = 0; i < 5; i++) {
      const gpu = await init({device: 'simd', threads: 3}), a = gpu.ones(1024, 1024);
      await a.matmul(a).eval().sync();
      a.matmul(a).matmul(a).matmul(a).eval();
      gpu.flush();
      gpu.close();
    }
  },

  'numbers of threads': async () => {
    for (const threads of [0, -1, 1.5, 65, NaN, '2', null, {}]) await fails('ErrInvalid', `${threads} threads`, () => init({device: 'simd', threads}));
    const gpu = await init({device: 'simd', threads: 1});
    same(await gpu.ones(2, 2).matmul(gpu.ones(2, 2)).read(), [2, 2, 2, 2], 'one thread');
    gpu.close();
  },
};
