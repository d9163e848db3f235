// SPDX-License-Identifier: Apache-2.0

// Tests of what crunchers compute, and what moves for it.

import {ADD3, THREE, TWO, moved, onDevices, told} from './cruncher-testing.mjs';
import {check, fails, noise, onBoth, same} from './testing.mjs';

export const tests = {
  add3stream: onDevices(ADD3, async (cr, n) => {
    const mine = new Uint8Array(1000).fill(55);
    const arr = cr.array('arr', mine, {partialRead: true});
    const traffic = await moved(cr, () => cr.compute(1, 'add3stream', {global: 1000, local: 100}, arr));
    check(mine[770] === 58 && mine.every((x) => x === 58), `the array holds ${mine[770]} on ${n} devices`);
    check(arr.data === mine, 'data is another array');
    check(traffic.bytesUp === 1000 && traffic.bytesDown === 1000 && traffic.bytesMigrated === 0, `moved ${JSON.stringify(traffic)}`);
    const {shares, bytesUp, bytesDown} = cr.last;
    check(shares.length === n && bytesUp === 1000 && bytesDown === 1000, `last ${JSON.stringify(cr.last)}`);
    let next = 0;
    shares.forEach(({device, offset, count, seconds}, i) => {
      check(device === i && offset === next && count % 100 === 0 && seconds >= 0, `share ${JSON.stringify(shares[i])}`);
      next += count;
    });
    check(next === 1000, `the shares have ${next} items`);
    const {calls, shares: parts, history} = cr.stats(1);
    check(calls === 1 && history.length === 1 && Math.abs(parts.reduce((a, b) => a + b) - 1) < 1e-12, `stats ${JSON.stringify(cr.stats(1))}`);
    check(cr.stats(3).calls === 0 && cr.stats(3).shares.length === 0, 'another id has calls');

    // Without sharing every device gets everything.
    arr.partialRead = false;
    const whole = await moved(cr, () => cr.compute(2, 'add3stream', {global: 1000, local: 100}, arr));
    check(whole.bytesUp === 1000 * n && whole.bytesDown === 1000, `moved ${JSON.stringify(whole)} without partialRead`);
    check(mine.every((x) => x === 61), 'the second call');
  }),

  writeAll: onDevices('fn fill(i: u32) { for (var k = 0u; k < half; k++) { big[i * half + k] = i * half + k; } }', async (cr, n) => {
    const half = 30e6 / 8, big = cr.array('big', 2 * half, {dtype: 'uint32', writeOnly: true, writeAll: true});
    const traffic = await moved(cr, () => cr.compute(1, 'fill', {global: 2, local: 1}, big, cr.scalar('half', half, 'uint32')));
    check(big.data.every((x, i) => x === i), `30 MB from two items on ${n} devices`);
    check(traffic.bytesUp === 0 && traffic.bytesDown === 30e6, `moved ${JSON.stringify(traffic)}`);
    big.close();
  }),

  kernels: onBoth(async (gpu) => {
    const cr = await gpu.cruncher(`
      struct Pair { a: f32, b: u32 }
      fn halves(i: u32) { x[i] = x[i] * 0.5 + shift; }
      fn pairs(i: u32) { ps[i].a = ps[i].a + 1.0; ps[i].b = ps[i].b * 2u; }
      fn bytes(i: u32) { b[i] = b[i] - 5; }
      fn bits(i: u32) { w[i] = w[i] ^ 0x01010101u; }
      fn stores(i: u32) { sublet_store_s(i, sublet_load_s(i) + 9u); }
      fn blur(i: u32) { let n = arrayLength(&p); q[i] = p[max(i, 1u) - 1u] + p[i] + p[min(i + 1u, n - 1u)]; }
      fn rows(i: vec2<u32>) { t[i.y * 8u + i.x] = t[i.y * 8u + i.x] + i32(i.x) - i32(i.y); }
      fn next(i: u32) { c[i] = c[i] + 1u; }
      fn sum(i: u32) { if (i == 0u) { d[0] = d[0] + 1u; } }
    `, {devices: TWO});
    check(cr.kernels.join() === 'halves,pairs,bytes,bits,stores,blur,rows,next,sum', `kernels ${cr.kernels}`);
    const x = cr.array('x', noise(500)), before = x.data.slice();
    await cr.compute(1, 'halves', {global: 400, local: 32, offset: 50}, x, cr.scalar('shift', 3));
    same(x.data, before.map((v, i) => i < 50 || i >= 450 ? v : Math.fround(v * 0.5) + 3), 'part of a range', 1e-6);

    const memory = new ArrayBuffer(80), view = new DataView(memory);
    for (let i = 0; i < 10; i++) {
      view.setFloat32(8 * i, i, true);
      view.setUint32(8 * i + 4, i, true);
    }
    const ps = cr.array('ps', memory, {struct: 'Pair', elementsPerItem: 8, partialRead: true});
    check(ps.dtype === 'bytes' && ps.length === 80 && ps.struct === 'Pair' && ps.data instanceof Uint8Array, 'structs');
    await cr.compute(2, 'pairs', {global: 10, local: 2}, ps);
    for (let i = 0; i < 10; i++) check(view.getFloat32(8 * i, true) === i + 1 && view.getUint32(8 * i + 4, true) === 2 * i, `pair ${i}`);

    for (const Array of [Int8Array, Int16Array]) {
      const b = cr.array('b', Array.from({length: 301}, (_, i) => i % 100));
      await cr.compute(3, 'bytes', {global: 301, local: 7}, b);
      check(b.data.every((v, i) => v === i % 100 - 5), `${Array.name} widened`);
      b.close();
    }
    const w = cr.array('w', Uint8Array.from({length: 64}, (_, i) => i), {mode: 'packed', elementsPerItem: 4, partialRead: true});
    await cr.compute(4, 'bits', {global: 16, local: 2}, w);
    check(w.mode === 'packed' && w.data.every((v, i) => v === (i ^ 1)), 'packed');
    const s = cr.array('s', new Uint16Array(33), {mode: 'atomic'});
    await cr.compute(5, 'stores', {global: 33, local: 3}, s);
    check(s.data.every((v) => v === 9), 'atomic');

    const p = cr.array('p', Float32Array.from({length: 90}, (_, i) => i), {partialRead: true, readOnly: true, halo: 1});
    const q = cr.array('q', 90, {writeOnly: true});
    await cr.compute(6, 'blur', {global: 90, local: 10, blobs: 3}, p, q);
    same(q.data, Array.from({length: 90}, (_, i) => Math.max(i - 1, 0) + i + Math.min(i + 1, 89)), 'with a halo');

    const t = cr.array('t', new Int32Array(8 * 20), {elementsPerItem: 1});
    await cr.compute(7, 'rows', {global: 20, inner: [8], local: 4}, t);
    same(t.data, Array.from({length: 160}, (_, i) => i % 8 - Math.floor(i / 8)), 'rows');

    const c = cr.array('c', 40, {dtype: 'uint32'}), d = cr.array('d', new Uint32Array(1), {write: false, read: false});
    await cr.compute(8, 'next', {global: 40, local: 4, repeat: 5, syncKernel: 'sum'}, c, d);
    check(c.data.every((v) => v === 5), 'repeats');
    await cr.compute(8, 'next;next,next', {global: 40, local: 4}, c, d);
    check(c.data.every((v) => v === 8), 'three kernels');
    c.data.fill(1);
    const traffic = await moved(cr, () => cr.compute(8, 'next', {global: 40, local: 4, transferOnly: true}, c));
    check(c.data.every((v) => v === 1) && traffic.bytesDown === 160, 'transfers only');
    await cr.compute(8, 'next', {global: 0}, c);
  }),

  module: onBoth(async (gpu) => {
    const cr = await gpu.cruncher(`
      @group(0) @binding(0) var<storage, read_write> v: array<u32>;
      struct Where { sublet_base: u32, sublet_count: u32 }
      @group(0) @binding(1) var<uniform> at: Where;
      @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
        if (id.x < at.sublet_count) { v[at.sublet_base + id.x] = at.sublet_base + id.x; }
      }`, {devices: TWO});
    const v = cr.array('v', 1000, {dtype: 'uint32', writeOnly: true});
    await cr.compute(1, 'main', {global: 1000}, v);
    check(v.data.every((x, i) => x === i), 'a complete module');
  }),

  batch: onDevices('fn add(i: u32) { a[i] = a[i] + by; } fn twice(i: u32) { a[i] = a[i] * 2u; } fn bad(i: u32) { a[i] = nonsense; }', async (cr) => {
    const a = cr.array('a', Uint32Array.from({length: 1000}, (_, i) => i), {partialRead: true}), range = {global: 1000, local: 50}, by = cr.scalar('by', 7, 'uint32');
    let kept;
    const traffic = await moved(cr, () => cr.batch(async (b) => {
      kept = b;
      for (let k = 0; k < 4; k++) b.compute(1, 'add', range, a, by);
      await b.compute(2, 'twice', range, a);
      check(b.reached + b.remaining === 5, `${b.reached} reached, ${b.remaining} remain`);
      await fails('ErrBatch', 'a call beside the batch', () => cr.compute(1, 'add', range, a, by));
      await fails('ErrBatch', 'a batch in the batch', () => cr.batch(() => {}));
      await fails('ErrBatch', 'fetch', () => cr.fetch(a));
      check(a.data.every((x, i) => x === i), 'results before the end');
    }));
    check(a.data.every((x, i) => x === 2 * (i + 28)), `element 3 is ${a.data[3]}`);
    check(traffic.bytesDown === 4000, `moved ${JSON.stringify(traffic)}`);
    check(kept.reached === 5 && kept.remaining === 0, 'counts after the end');
    await fails('ErrClosed', 'a call after the end', () => kept.compute(1, 'add', range, a, by));

    const mine = new Error('mine'), thrown = await cr.batch((b) => {
      b.compute(1, 'add', range, a, by);
      throw mine;
    }).catch((error) => error);
    check(thrown === mine && a.data[0] === 63, `what was queued before an error: ${thrown}, ${a.data[0]}`);
    await fails('ErrCompile', 'a call that fails', () => cr.batch((b) => {
      b.compute(1, 'bad', range, a);
      b.compute(1, 'add', range, a, by);
    }));
    check(a.data[0] === 70, 'the others of the batch');
    const endless = new AbortController();
    setTimeout(() => endless.abort(), 50);
    await fails('ErrAborted', 'a call without end', () => cr.batch((b) => { b.compute(1, 'add', {...range, repeat: 2 ** 53 - 1, signal: endless.signal}, a, by); }));
    a.data.fill(70);
    await cr.batch(() => {});
    await fails('ErrInvalid', 'no function', () => cr.batch(5));
    await cr.compute(1, 'add', range, a, by);
    check(a.data[0] === 77, 'a call afterwards');
  }),

  resident: onBoth(async (gpu) => {
    for (const [coherence, balancer] of [['migrate', 'default'], ['migrate', 'legacy'], ['pin', 'default']]) {
      const cr = await gpu.cruncher('fn step(i: u32) { for (var k = 0u; k < i / 64u; k++) { s[i] = s[i] + 1u; } }', {devices: TWO, coherence, balancer});
      const s = cr.array('s', 4096, {dtype: 'uint32', read: false, write: false}), splits = new Set();
      const calls = 6, traffic = await moved(cr, async () => {
        for (let k = 0; k < calls; k++) {
          await cr.compute(1, 'step', {global: 4096, local: 64}, s);
          splits.add(cr.last.shares[0].count);
        }
      });
      check(traffic.bytesUp === 0 && traffic.bytesDown === 0, `moved ${JSON.stringify(traffic)}`);
      if (coherence === 'pin') check(splits.size === 1 && traffic.bytesMigrated === 0, `pinned shares: ${[...splits]}`);
      check(s.data.every((x) => x === 0), 'nothing has come back');
      await cr.fetch(s);
      check(s.data.every((x, i) => x === calls * Math.floor(i / 64)), `${coherence} ${balancer}: element 200 is ${s.data[200]}`);
      await cr.evict(s);
      await cr.compute(1, 'step', {global: 4096, local: 64}, s);
      await cr.fetch(s);
      await cr.evict();
      cr.close();
    }
  }),

  balancer: onBoth(async (gpu) => {
    // A balancer of the page's: what it is asked and told, what it leaves to the usual one, and what it gets wrong.
    const asked = [], heard = [], wgsl = 'fn inc(i: u32) { s[i] = s[i] + 1u; }', range = {global: 1000, local: 64};
    class Mine {
      answer = null;
      split(request) {
        asked.push(request);
        return typeof this.answer === 'function' ? this.answer(request) : this.answer;
      }
      observe(id, samples) {
        heard.push([id, samples]);
        if (this.broken) throw new Error('cannot observe');
      }
    }
    const balancer = new Mine(), cr = await gpu.cruncher(wgsl, {devices: THREE, balancer}), s = cr.array('s', 1000, {dtype: 'uint32'});
    const counts = () => cr.last.shares.map(({count}) => count).join();
    let calls = 0;
    const right = async (answer, want) => {
      balancer.answer = answer;
      await cr.compute(7, 'inc', range, s);
      calls++;
      check(counts() === want && cr.stats(7).history.at(-1).join() === want, `divided as ${counts()}, ${JSON.stringify(cr.stats(7))}, want ${want}`);
      check(s.data.every((x) => x === calls), 'the elements');
    };
    await right([512, 0, 488], '512,0,488');
    const [{id, global, step, alive, usual}] = asked, [[of, samples]] = heard;
    check([id, global, step, alive.join(), of].join() === '7,1000,64,true,true,true,7' && usual.length === 3 && usual.reduce((a, b) => a + b) === 1000, JSON.stringify(asked[0]));
    check(samples.map(({count}) => count).join() === '512,0,488' && samples.every(({count, seconds}) => count === 0 ? seconds === 0 : seconds > 0), JSON.stringify(samples));
    check(Math.abs(cr.stats(7).shares[0] - 0.512) < 1e-12 && cr.stats(7).throughput[0] > 0, JSON.stringify(cr.stats(7)));
    await right(() => [0, 1000, 0], '0,1000,0');
    balancer.answer = () => {};
    await cr.compute(7, 'inc', range, s);
    check(counts() === asked.at(-1).usual.join(), 'what it leaves is divided as usual');
    calls++;

    for (const [code, what, answer] of [
      ['ErrCallback', 'what it throws', () => { throw new Error('mine'); }], ['ErrCallback', 'no list', () => 5], ['ErrCallback', 'too few', [1000, 0]],
      ['ErrCallback', 'a promise', async () => [1000, 0, 0]], ['ErrCallback', 'a fraction', [999.5, 0.5, 0]], ['ErrCallback', 'less than none', [1064, -64, 0]],
      ['ErrCallback', 'a getter that throws', () => new Proxy([], {get() { throw new Error('no'); }})], ['ErrCallback', 'nothing thrown', () => { throw undefined; }],
      ['ErrInvalid', 'too many items', [1024, 0, 0]], ['ErrInvalid', 'within a step', [500, 500, 0]],
      ['ErrCallback', 'a call of the cruncher', () => cr.stats(7)], ['ErrCallback', 'a new array', () => cr.array('t', 5)],
    ]) {
      balancer.answer = answer;
      await fails(code, what, () => cr.compute(7, 'inc', range, s));
      check(s.data.every((x) => x === calls), `${what} changes nothing`);
    }
    await right([1000, 0, 0], '1000,0,0');
    balancer.broken = true;
    await right([1000, 0, 0], '1000,0,0');
    balancer.broken = false;
    await fails('ErrCallback', 'what observe threw', () => cr.compute(7, 'inc', range, s));
    await right([0, 0, 1000], '0,0,1000');
    balancer.answer = () => { s.close(); return [1000, 0, 0]; }; // it is closed when the call is over
    await cr.compute(7, 'inc', range, s);
    check(s.closed && s.data[5] === calls + 1, 'an array that is closed meanwhile');
    await fails('ErrClosed', 'afterwards', () => cr.compute(7, 'inc', range, s));
    cr.close();

    for (const wrong of [{}, {split: 5}, {split: () => {}, observe: 5}, [], null, 'mine', {get split() { throw new Error('no'); }}]) await fails('ErrInvalid', `balancer ${told(wrong)}`, () => gpu.cruncher(wgsl, {balancer: wrong}));
    const raw = await gpu.cruncher(wgsl, {devices: TWO, balancer: 'legacy-raw'});
    await raw.compute(1, 'inc', {global: 1000, local: 64}, raw.array('s', 1000, {dtype: 'uint32'}));
    raw.close();
  }),

  random: onBoth(async (gpu) => {
    // The same calls on one device and on two: the arrays hold the same bits after each.
    const wgsl = `
      fn scale(i: u32) { for (var k = i * 2u; k < i * 2u + 2u; k++) { x[k] = x[k] * 3u + 1u; } }
      fn blend(i: u32) { y[i] = y[i] + i32(x[2u * i] & 0xffu) - 7; z[i] = z[i] + u32(y[i]); f[i] = f[i] * 0.75 + f32(y[i]); }
      fn count(i: u32) { if (i % 3u == 0u) { z[i] = z[i] + 5u; } y[i] = y[i] ^ 3; }`;
    let state = 7;
    const draw = (n) => {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      return Math.floor(state / 2 ** 32 * n);
    };
    const items = 700, worlds = await Promise.all([['own'], TWO, THREE].map(async (devices, n) => {
      const cr = await gpu.cruncher(wgsl, {devices, balancer: n === 2 ? 'legacy' : 'default'});
      return {cr, arrays: [
        cr.array('x', new Uint32Array(2 * items + 3), {elementsPerItem: 2}), cr.array('y', new Int16Array(items)), cr.array('z', new Uint8Array(items + 1)), cr.array('f', items),
      ]};
    }));
    const compare = (what) => worlds.slice(1).forEach(({arrays}, n) => arrays.forEach(({name, data}, k) => {
      const want = worlds[0].arrays[k].data;
      const at = data.findIndex((v, i) => !Object.is(v, want[i]));
      check(at < 0, `${what}: on ${n + 2} devices ${name}[${at}] is ${data[at]}, on one ${want[at]}`);
    }));
    for (let call = 0; call < 200; call++) {
      const flags = Array.from({length: 4}, () => ({read: draw(2) === 0, partialRead: draw(2) === 0, write: draw(2) === 0, writeAll: draw(8) === 0}));
      const offset = draw(items), range = {global: 1 + draw(items - offset), local: [1, 8, 64][draw(3)], offset, blobs: draw(4), repeat: 1 + draw(2), transferOnly: draw(5) === 0};
      const kernels = ['scale', 'blend', 'count', 'scale blend', 'scale count blend count'][draw(5)], id = draw(3), poke = draw(3) === 0 ? draw(items) : -1;
      for (const {cr, arrays} of worlds) {
        arrays.forEach((array, k) => Object.assign(array, flags[k]));
        if (poke >= 0) arrays[2].data[poke]++;
        await cr.compute(id, kernels, range, ...arrays);
      }
      compare(`call ${call}, ${kernels} ${JSON.stringify({flags, range})}`);
    }
    for (const {cr, arrays} of worlds) await cr.fetch(...arrays);
    compare('what stayed on the devices');
  }),
};
