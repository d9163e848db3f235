// SPDX-License-Identifier: Apache-2.0

// Tests of gpu.cruncher, run in a page by cruncher_web_test.go. Each throws when it fails.

import {CruncherArray, SubletError, init} from '/dist/index.mjs';
import {check, fails, noise, same, throws} from '/web.mjs';

/** A test with a Gpu of its own. */
const withGpu = (run, options) => async () => {
  const gpu = await init(options);
  try {
    await run(gpu);
  } finally {
    gpu.close();
  }
};

/** Devices of the page's own, of which a test may have as many as it likes. */
const TWO = ['own', 'high-performance'], THREE = [...TWO, 'low-power'];

/** A test with one Gpu and a cruncher for each of some numbers of devices. */
const onDevices = (wgsl, run, options = {}) => withGpu(async (gpu) => {
  for (const devices of [['own'], TWO, THREE]) {
    const cr = await gpu.cruncher(wgsl, {devices, ...options});
    check(cr.devices.length === devices.length, `${cr.devices.length} devices, want ${devices.length}`);
    await run(cr, devices.length, gpu);
    cr.close();
  }
});

/** A value in a message, whatever getters it has. */
const told = (value) => {
  try {
    return JSON.stringify(value);
  } catch {
    return 'something hostile';
  }
};

const ADD3 = 'fn add3stream(i: u32) { arr[i] = arr[i] + 3u; }';

/** What moved in a call. */
async function moved(cr, run) {
  const before = cr.traffic();
  await run();
  const after = cr.traffic();
  return Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - before[name]]));
}

export const cruncher = {
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

  kernels: withGpu(async (gpu) => {
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

  module: withGpu(async (gpu) => {
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

  flags: withGpu(async (gpu) => {
    const cr = await gpu.cruncher('fn f(i: u32) { a[i] = a[i] + 1u; }');
    const a = cr.array('a', new Uint32Array(64));
    const state = () => ['read', 'partialRead', 'write', 'writeAll', 'readOnly', 'writeOnly', 'zeroCopy'].map((name) => Number(a[name])).join('');
    const after = (want, set) => {
      set();
      check(state() === want, `${set} leaves ${state()}, want ${want}`);
    };
    check(state() === '1010000' && a.elementsPerItem === 1 && a.halo === 0 && a.mode === 'widened' && a.struct === '', `at first ${state()}`);
    after('1110000', () => { a.partialRead = true; });
    after('1111000', () => { a.writeAll = true; });
    after('1100100', () => { a.readOnly = true; });
    after('1100100', () => { a.write = a.writeAll = a.writeOnly = true; });
    after('1000100', () => { a.partialRead = false; });
    after('1000000', () => { a.readOnly = false; });
    after('0000010', () => { a.writeOnly = true; });
    after('0000010', () => { a.read = a.partialRead = a.readOnly = true; });
    after('0010010', () => { a.write = true; });
    after('0010000', () => { a.writeOnly = false; });
    after('0010001', () => { a.zeroCopy = true; });
    a.elementsPerItem = 3;
    a.halo = 2;
    a.mode = 'atomic';
    check(a.elementsPerItem === 3 && a.halo === 2 && a.mode === 'atomic', 'numbers');
    for (const [name, value] of [
      ['read', 1], ['write', undefined], ['readOnly', 'true'], ['elementsPerItem', 0], ['elementsPerItem', 1.5], ['halo', -1], ['halo', NaN],
      ['mode', 'wide'], ['struct', 7], ['halo', 2 ** 60], ['mode', {toString: () => 'packed'}],
    ]) await throws('ErrInvalid', `${name} = ${String(value)}`, () => { a[name] = value; });
    for (const options of [
      {readOnly: true, write: true}, {readOnly: true, writeOnly: true}, {writeOnly: true, read: true}, {writeOnly: true, partialRead: true},
      {read: 0}, {dtype: 'float64'}, {dtype: 'toString'}, {dtype: 'float32'}, {dtype: 5}, {mode: 'x'}, {struct: 'S', dtype: 'uint32'}, {halo: '1'}, {release: 1}, 5,
      {get read() { throw new Error('no'); }},
    ]) await throws('ErrInvalid', `options ${told(options)}`, () => cr.array('a', new Uint32Array(4), options));
    a.close();

    // The way an array was first used in stays.
    const b = cr.array('a', 64, {dtype: 'uint32', readOnly: true});
    const plain = await gpu.cruncher('fn look(i: u32) { if (a[i] == 7u) { o[i] = 1u; } } fn f(i: u32) { a[i] = 1u; }');
    const o = plain.array('o', 64, {dtype: 'uint32'});
    await plain.compute(1, 'look', {global: 64}, b, o);
    b.readOnly = false;
    b.write = true;
    await fails('ErrAccess', 'writing what was read-only', () => plain.compute(1, 'f', {global: 64}, b));
    await cr.compute(1, 'f', {global: 64}, b); // another cruncher is free
    await plain.evict(b);
    await plain.compute(1, 'f', {global: 64}, b);
    check(b.data.every((x) => x === 1), 'after evict');
  }),

  errors: withGpu(async (gpu) => {
    await fails('ErrKernel', 'no kernel', () => gpu.cruncher('let x = 1;'));
    await fails('ErrKernel', 'an empty source', () => gpu.cruncher(''));
    await fails('ErrKernel', 'a comment that does not end', () => gpu.cruncher('/* fn f(i: u32) {}'));
    await fails('ErrInvalid', 'no text', () => gpu.cruncher(5));
    for (const options of [{balancer: 'x'}, {coherence: 'x'}, {devices: 'x'}, {devices: ['x']}, {devices: [null]}, {devices: 7}, {signal: {}}, 3,
      {devices: [{get [Symbol.toStringTag]() { throw new Error('no'); }}]}, {get devices() { throw new Error('no'); }}, {balancer: ['legacy']},
    ]) await fails('ErrInvalid', `options ${told(options)}`, () => gpu.cruncher(ADD3, options));
    await fails('ErrDevices', 'no devices', () => gpu.cruncher(ADD3, {devices: []}));
    await fails('ErrInvalid', 'a device that is none', () => gpu.cruncher(ADD3, {devices: [{[Symbol.toStringTag]: 'GPUDevice'}]}));

    const cr = await gpu.cruncher(`fn good(i: u32) { arr[i] = arr[i] + 3u; }
fn bad(i: u32) {
  arr[i] = arr[i] +
    nonsense;
}`, {devices: TWO});
    const arr = cr.array('arr', 1000, {dtype: 'uint32'}), range = {global: 1000, local: 100};
    const bad = await cr.compute(1, 'bad', range, arr).catch((error) => error);
    check(bad instanceof SubletError && bad.code === 'ErrCompile' && /(line 4|:4:)/.test(bad.message), `the compiler's error is ${bad}`);
    const refused = (code, what, ...args) => fails(code, what, () => cr.compute(...args));
    await refused('ErrLength', 'too short', 1, 'good', {global: 1001}, arr);
    await refused('ErrLength', 'too short with the offset', 1, 'good', {global: 1000, offset: 1}, arr);
    await refused('ErrRange', 'not a multiple', 1, 'good', {global: 1000, local: 3, strict: true}, arr);
    await refused('ErrRange', 'less than a group for each', 1, 'good', {global: 100, local: 100, strict: true}, arr);
    await refused('ErrRange', 'negative', 1, 'good', {global: -1}, arr);
    await refused('ErrRange', 'very many', 1, 'good', {global: 2 ** 53 - 1}, arr);
    await refused('ErrRange', 'an inner extent of 0', 1, 'good', {global: 1, inner: [0]}, arr);
    await refused('ErrLimit', 'large groups', 1, 'good', {global: 1000, local: 100000}, arr);
    await refused('ErrKernel', 'an unknown kernel', 1, 'better', range, arr);
    await refused('ErrKernel', 'no kernel', 1, ' ; ', range, arr);
    await refused('ErrKernel', 'an unknown sync kernel', 1, 'good', {...range, syncKernel: 'better'}, arr);
    await refused('ErrName', 'an array twice', 1, 'good', range, arr, arr);
    await refused('ErrInvalid', 'a typed array', 1, 'good', range, new Uint32Array(1000));
    await refused('ErrInvalid', 'nothing', 1, 'good', range, undefined);
    for (const given of [undefined, null, 5, {}, {global: '5'}, {global: 1.5}, {global: NaN}, {global: 1, local: 2 ** 53}, {global: 1, blobs: 0.5}, {global: 1, inner: 5},
      {global: 1, inner: [1, 1, 1]}, {global: 1, inner: ['1']}, {global: 1, syncKernel: 1}, {global: 1, strict: 1}, {global: 1, signal: 1}, {get global() { throw 0; }},
      {global: 1, signal: {[Symbol.toStringTag]: 'AbortSignal'}}, {global: 1, signal: {get aborted() { throw 0; }, [Symbol.toStringTag]: 'AbortSignal'}},
    ]) await refused('ErrInvalid', `range ${told(given)}`, 1, 'good', given, arr);
    for (const id of [undefined, 1.5, '1', {}, 2 ** 53]) await refused('ErrInvalid', `id ${String(id)}`, id, 'good', range, arr);
    await refused('ErrInvalid', 'kernels in an array', 1, ['good'], range, arr);
    for (const [code, ...args] of [
      ['ErrName', '', 4], ['ErrName', '1a', 4], ['ErrName', 'a b', 4], ['ErrName', '__a', 4], ['ErrInvalid', undefined, 4], ['ErrInvalid', 'a', '4'],
      ['ErrInvalid', 'a', 1.5], ['ErrInvalid', 'a', NaN], ['ErrRange', 'a', -1], ['ErrRange', 'a', 2 ** 40], ['ErrInvalid', 'a', [1, 2]], ['ErrInvalid', 'a', null],
      ['ErrInvalid', 'a', new Float64Array(4)], ['ErrInvalid', 'a', new BigInt64Array(4)], ['ErrRange', 'a', new ArrayBuffer(5), {dtype: 'uint16'}],
      ['ErrInvalid', 'a', new Float32Array(4), {dtype: 'int32'}], ['ErrInvalid', 'a', {length: 4, [Symbol.toStringTag]: 'ArrayBuffer'}],
      ['ErrAlignment', 'a', new Uint8Array(new ArrayBuffer(9), 1), {dtype: 'uint32'}],
    ]) await throws(code, `array ${String(args[0])}`, () => cr.array(...args));
    for (const [code, ...args] of [['ErrName', '', 1], ['ErrName', 5, 1], ['ErrInvalid', 'a', '1'], ['ErrInvalid', 'a', 1, 'float64'], ['ErrInvalid', 'a', 1.5, 'int32'], ['ErrInvalid', 'a', -1, 'uint32']]) {
      await throws(code, `scalar ${args.join()}`, () => cr.scalar(...args));
    }
    await refused('ErrName', 'a scalar without a usable name', 1, 'good', range, arr, cr.scalar('a-b', 1));
    await throws('ErrInvalid', 'an array by itself', () => new CruncherArray(null, 'a', 1.5));
    await fails('ErrInvalid', 'an id of stats', async () => cr.stats('1'));
    // None of that has poisoned anything.
    await cr.compute(1, 'good', range, arr);
    check(arr.data.every((x) => x === 3), 'a good call after all the bad ones');

    const other = await init();
    const crOther = await other.cruncher(ADD3), foreign = crOther.array('arr', 1000, {dtype: 'uint32'});
    await refused('ErrForeign', 'an array of another Gpu', 1, 'good', range, foreign);
    other.close();
    await fails('ErrClosed', 'a cruncher of a closed Gpu', () => crOther.compute(1, 'add3stream', range, foreign));
    await fails('ErrClosed', 'a closed Gpu', () => other.cruncher(ADD3));
  }),

  cancel: withGpu(async (gpu) => {
    const cr = await gpu.cruncher('fn slow(i: u32) { var x = a[i]; for (var k = 0u; k < turns; k++) { x = x * 1664525u + 1013904223u; } a[i] = x; }', {devices: TWO});
    const a = cr.array('a', 4096, {dtype: 'uint32'}), range = {global: 4096, local: 64};
    await cr.compute(1, 'slow', range, a, cr.scalar('turns', 1, 'uint32'));
    const before = a.data.slice(), reason = new Error('mine');
    await fails('ErrAborted', 'aborted before', () => cr.compute(1, 'slow', {...range, signal: AbortSignal.abort()}, a, cr.scalar('turns', 1, 'uint32')));
    const long = cr.scalar('turns', 200000, 'uint32');
    const abort = new AbortController(), call = cr.compute(1, 'slow', {...range, signal: abort.signal}, a, long);
    const waits = cr.compute(1, 'slow', {...range, signal: abort.signal}, a, long);
    abort.abort(reason);
    const error = await call.catch((e) => e);
    check(error.code === 'ErrAborted' && error.cause === reason, `the call: ${error}`);
    await fails('ErrAborted', 'the one that waited for it', () => waits);
    same(a.data, before, 'the array of an aborted call');
    await cr.compute(1, 'slow', {...range, signal: new AbortController().signal}, a, cr.scalar('turns', 1, 'uint32'));
    check(a.data[0] === (Math.imul(before[0], 1664525) + 1013904223) >>> 0, 'the call after it');
    // Results come all or not at all: here it is aborted when those of the first array are there.
    const both = await gpu.cruncher('fn f(i: u32) { x[i] = 5u; y[i] = 6u; }'), n = 1 << 22;
    const [x, y] = ['x', 'y'].map((name) => both.array(name, n, {dtype: 'uint32', writeOnly: true})), soon = new AbortController();
    const ending = both.compute(1, 'f', {global: n, signal: soon.signal}, x, y).then(() => true, () => false);
    while (x.data[n - 1] === 0 && y.data[n - 1] === 0) await new Promise((done) => { setTimeout(done); });
    soon.abort();
    check(await ending && x.data[0] === 5 && y.data[n - 1] === 6, 'a call aborted at its end');
    const endless = new AbortController();
    setTimeout(() => endless.abort(), 50);
    await fails('ErrAborted', 'a call without end', () => cr.compute(1, 'slow', {...range, repeat: 2 ** 53 - 1, signal: endless.signal}, a, cr.scalar('turns', 1, 'uint32')));
    await fails('ErrAborted', 'a cruncher', () => gpu.cruncher(ADD3, {signal: AbortSignal.abort()}));
    const late = new AbortController(), opening = gpu.cruncher(ADD3, {signal: late.signal, devices: THREE});
    late.abort();
    await fails('ErrAborted', 'a cruncher that is being opened', () => opening);
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

  resident: withGpu(async (gpu) => {
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

  tracked: withGpu(async (gpu) => {
    const cr = await gpu.cruncher('fn twice(i: u32) { o[i] = a[i] * 2u; }'), o = cr.array('o', 100, {dtype: 'uint32', writeOnly: true});
    const [a, b] = [true, false].map((tracked) => cr.array('a', new Uint32Array(100), {readOnly: true, tracked}));
    check(a.tracked && !b.tracked, 'tracked');
    const up = async (x) => (await moved(cr, () => cr.compute(1, 'twice', {global: 100}, x, o))).bytesUp;
    const plain = [await up(b), await up(b)], tracked = [await up(a), await up(a)];
    check(plain.join() === '400,400', `untracked: ${plain}`);
    a.data.fill(4);
    tracked.push(await up(a.touch()));
    check(tracked.join() === '400,0,400' && o.data[99] === 8, `tracked: ${tracked}`);
  }),

  memory: onDevices(ADD3, async (cr) => {
    const range = {global: 1000, local: 10};
    const detached = new Uint32Array(1000), arr = cr.array('arr', detached);
    structuredClone(detached, {transfer: [detached.buffer]});
    await fails('ErrInvalid', 'a detached array', () => cr.compute(1, 'add3stream', range, arr));
    const during = new Uint32Array(1000), late = cr.array('arr', during), call = cr.compute(1, 'add3stream', range, late);
    structuredClone(during, {transfer: [during.buffer]});
    await fails('ErrInvalid', 'an array detached meanwhile', () => call);
    await fails('ErrInvalid', 'fetching into it', async () => {
      late.write = false;
      await cr.compute(1, 'add3stream', {...range, transferOnly: true}, late);
      await cr.fetch(late);
    });
    await throws('ErrInvalid', 'an array of detached memory', () => cr.array('arr', detached.buffer, {dtype: 'uint32', struct: 'x'}));

    const shrinking = new ArrayBuffer(4000, {maxByteLength: 8000}), shrunk = cr.array('arr', new Uint32Array(shrinking));
    await cr.compute(1, 'add3stream', range, shrunk);
    check(shrunk.data.every((x) => x === 3), 'memory that can change its size');
    shrinking.resize(8000);
    await cr.compute(1, 'add3stream', range, shrunk);
    check(new Uint32Array(shrinking)[999] === 6 && new Uint32Array(shrinking)[1000] === 0, 'memory that has grown');
    shrinking.resize(2000);
    await fails('ErrInvalid', 'memory that has shrunk', () => cr.compute(1, 'add3stream', range, shrunk));

    const shared = new SharedArrayBuffer(1003), bytes = cr.array('arr', new Uint8Array(shared, 3), {partialRead: true});
    await cr.compute(1, 'add3stream', range, bytes);
    check(bytes.data.every((x) => x === 3) && new Uint8Array(shared)[2] === 0, 'shared memory');
    const odd = new Uint16Array(new ArrayBuffer(2006), 2, 1001), small = cr.array('arr', odd);
    await cr.compute(1, 'add3stream', {global: 999, offset: 1}, small);
    check(odd[0] === 0 && odd[1] === 3 && odd[999] === 3 && odd[1000] === 0, 'odd places');
    const clamped = cr.array('arr', new Uint8ClampedArray(1000));
    await cr.compute(1, 'add3stream', range, clamped);
    check(clamped.dtype === 'uint8' && clamped.data[5] === 3, 'a clamped array');

    for (const nothing of [cr.array('arr', 0, {dtype: 'uint32'}), cr.array('arr', new Uint32Array(0))]) {
      await fails('ErrLength', 'an empty array', () => cr.compute(1, 'add3stream', range, nothing));
      await cr.compute(1, 'add3stream', {global: 0}, nothing);
      nothing.close();
    }
    await cr.fetch();
    const none = cr.array('arr', 0, {dtype: 'uint32', write: false, read: false});
    await cr.compute(1, 'add3stream', {global: 64}, none).catch((error) => check(error instanceof SubletError, String(error)));
    const good = cr.array('arr', 1000, {dtype: 'uint32'});
    await cr.compute(1, 'add3stream', range, good);
    check(good.data[999] === 3, 'after all that');
  }),

  random: withGpu(async (gpu) => {
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

  anything: withGpu(async (gpu) => {
    // Every method and setter with whatever may be passed: only errors of ours, and the program lives on.
    const wgsl = 'fn f(i: u32) { a[i] = a[i] + 1u; }', cr = await gpu.cruncher(wgsl, {devices: TWO});
    const fresh = () => cr.array('a', 64, {dtype: 'uint32'});
    const trap = new Proxy({}, {get() { throw new Error('trap'); }, getPrototypeOf() { throw new Error('trap'); }, has() { throw new Error('trap'); }});
    const odd = [undefined, null, NaN, -1, 1e20, 0.5, 2, '', 'a', 'f', true, 1n, Symbol('s'), [], [1, 2], {}, {global: 4}, {global: 4, inner: [2]}, {devices: [trap]},
      {global: 4, inner: trap}, {global: 4, signal: trap}, () => {}, new Float32Array(2), new ArrayBuffer(8), trap, gpu, cr, fresh(), cr.scalar('a', 1), AbortSignal.abort()];
    const list = [];
    for (const object of [cr, fresh()]) {
      for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(object))) {
        const {value, set} = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(object), name);
        if (name === 'constructor' || name === 'close') continue;
        if (set) for (const x of odd) list.push([name, () => { object[name] = x; }]);
        if (typeof value === 'function') {
          for (const x of odd) for (const y of [undefined, 'f', x]) for (const z of [undefined, {global: 4}, x]) list.push([name, () => object[name](x, y, z, x)]);
        }
      }
    }
    for (const x of odd) for (const y of [undefined, {devices: x}, {balancer: x, coherence: x}, {signal: x}, x]) list.push(['cruncher', () => gpu.cruncher(x, y)], ['cruncher', () => gpu.cruncher(wgsl, y)]);
    for (const [name, run] of list) {
      try {
        const result = await run();
        if (result && typeof result.close === 'function' && result !== cr) result.close();
      } catch (error) {
        check(error instanceof SubletError && error.code !== 'ErrInternal' && error.code !== 'Error', `${name}: ${error?.stack ?? error}`);
      }
    }
    const last = fresh();
    await cr.compute(1, 'f', {global: 64}, last);
    check(last.data[63] === 1, 'afterwards');
    check((await gpu.cruncher(`fn f(i: u32) { a[i] = 1u; }${' '.repeat(1 << 20)}`)).kernels.length === 1, 'a long source');
    await fails('ErrKernel', 'a very wrong one', () => gpu.cruncher('{'.repeat(1 << 20)));
  }),

  devices: withGpu(async (gpu) => {
    const count = async (devices) => {
      using cr = await gpu.cruncher(ADD3, {devices});
      const arr = cr.array('arr', 1000, {dtype: 'uint32'});
      await cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr);
      check(arr.data.every((x) => x === 3), `on ${told(devices)}`);
      check(cr.devices.every(({driver, name, limits}) => driver === 'browser' && name !== '' && limits.maxBufferSize > 0) && Object.isFrozen(cr.devices[0].limits), 'devices');
      return cr.devices.length;
    };
    check(await count() === 1 && await count('all') === 1 && await count('own') === 1, 'SwiftShader is the only adapter here');
    check(await count(['low-power', 'low-power', 'own', 'own']) === 4, 'some twice');
    const mine = await (await navigator.gpu.requestAdapter()).requestDevice();
    check(await count([mine, gpu.device, mine]) === 3, 'a GPUDevice of the page\'s, twice');
    const buffer = mine.createBuffer({size: 16, usage: GPUBufferUsage.COPY_DST});
    mine.pushErrorScope('validation');
    mine.queue.writeBuffer(buffer, 0, new Uint8Array(16));
    check(await mine.popErrorScope() === null && await count([mine]) === 1, 'it lives on');

    // One that is lost: the others do its work.
    const cr = await gpu.cruncher(ADD3, {devices: [gpu.device, mine]}), arr = cr.array('arr', 1000, {dtype: 'uint32'});
    await cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr);
    mine.destroy();
    await mine.lost;
    await cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr);
    check(arr.data.every((x) => x === 6) && cr.last.shares[0].count === 1000, 'with a device less');
    await fails('ErrDeviceLost', 'the lost one alone', async () => (await gpu.cruncher(ADD3, {devices: [mine]})).compute(1, 'add3stream', {global: 1000}, arr));
    const two = await gpu.cruncher(ADD3, {devices: TWO}), heavy = two.array('arr', 1 << 20, {dtype: 'uint32'});
    const call = two.compute(1, 'add3stream', {global: 1 << 20, blobs: 8}, heavy);
    gpu.device.destroy();
    await call;
    check(heavy.data.every((x) => x === 3), 'a device lost in the middle');
    await fails('ErrDeviceLost', 'with none left', () => cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr));
  }),

  adapters: withGpu(async (gpu) => {
    // A browser with two GPUs: what requestAdapter brings says that it is another one where that is wanted.
    const {requestAdapter} = GPU.prototype;
    const pretend = (power, info) => {
      GPU.prototype.requestAdapter = async function (options) {
        const real = await requestAdapter.call(this, options);
        if (options?.powerPreference !== power) return real;
        return {info, limits: real.limits, features: real.features, requestDevice: (descriptor) => real.requestDevice(descriptor)};
      };
    };
    const named = async (devices) => {
      const cr = await gpu.cruncher(ADD3, {devices}), arr = cr.array('arr', 1000, {dtype: 'uint32'}), names = cr.devices.map(({name}) => name);
      await cr.compute(1, 'add3stream', {global: 1000, local: 10}, arr);
      check(arr.data.every((x) => x === 3), `on ${names}`);
      cr.close();
      return names.join();
    };
    try {
      const own = gpu.info.name;
      for (const power of ['high-performance', 'low-power']) {
        pretend(power, {vendor: 'intel', architecture: 'xe', device: '', description: ''});
        check(await named() === `${own},intel xe`, `with another one for ${power}: ${await named()}`);
        check(await named('own') === own, 'the own one alone');
      }
      check(await named(['low-power']) === 'intel xe', 'the frugal one');
      pretend('low-power', {vendor: 'mesa', architecture: '', device: '', description: 'llvmpipe'});
      check(await named('all') === own, 'software does not count');
    } finally {
      GPU.prototype.requestAdapter = requestAdapter;
    }
  }),

  closing: async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    let live = 0;
    const {createBuffer} = device;
    device.createBuffer = (descriptor) => {
      const buffer = createBuffer.call(device, descriptor), {destroy} = buffer;
      live++;
      buffer.destroy = () => {
        live--;
        destroy.call(buffer);
      };
      return buffer;
    };
    const gpu = await init({device}), cr = await gpu.cruncher(ADD3), range = {global: 1000};
    let released = 0;
    const release = () => { released++; };
    const [a, b, c, d] = Array.from({length: 4}, () => cr.array('arr', new Uint32Array(1000), {release}));
    await cr.compute(1, 'add3stream', range, a);
    const running = cr.compute(1, 'add3stream', range, b);
    b.close();
    await running;
    await new Promise((done) => { setTimeout(done, 50); });
    check(released === 1 && b.data[999] === 3, `closed during a call: released ${released} times`);
    a.close();
    a.close();
    a[Symbol.dispose]();
    check(a.closed && a.data.length === 1000, 'a closed array');
    await fails('ErrClosed', 'a closed array in a call', () => cr.compute(1, 'add3stream', range, a));
    await throws('ErrClosed', 'its flags', () => a.read);
    await throws('ErrClosed', 'setting them', () => { a.read = true; });
    await throws('ErrClosed', 'touch', () => a.touch());
    const last = cr.compute(1, 'add3stream', range, c);
    cr.close();
    cr.close();
    await last; // a call that had begun
    check(cr.closed && c.data[0] === 3 && !c.closed, 'a closed cruncher');
    for (const run of [() => cr.compute(1, 'add3stream', range, c), () => cr.fetch(c), () => cr.evict(c), () => cr.batch(() => {}), async () => cr.last, async () => cr.stats(1),
      async () => cr.traffic(), async () => cr.array('arr', 5)]) await fails('ErrClosed', String(run), run);
    const again = await gpu.cruncher(ADD3); // the arrays are good for another one
    await again.compute(1, 'add3stream', range, c);
    check(c.data[0] === 6, 'an array in another cruncher');
    let open;
    const batch = again.batch(() => new Promise(() => { open = true; })), waiting = again.compute(1, 'add3stream', range, d);
    await fails('ErrBatch', 'a call beside a batch', () => waiting);
    const pending = gpu.cruncher(ADD3, {devices: THREE});
    gpu.close();
    gpu.close();
    check(open, 'the batch was not open');
    for (const promise of [pending]) await fails('ErrClosed', 'who waits when the Gpu is closed', () => promise);
    await fails('ErrClosed', 'from then on', () => again.compute(1, 'add3stream', range, c));
    await new Promise((done) => { setTimeout(done, 100); });
    check(released === 4, `released ${released} times`);
    check(live === 0, `${live} buffers are left on the page's device`);
    device.destroy();
    void batch;
  },

  programs: async () => {
    for (const [what, cruncherWasm] of [['nowhere', '/nowhere.wasm'], ['another program', '/dist/sublet.wasm'], ['no program', new Uint8Array(8)], ['nothing of the kind', 5]]) {
      using given = await init({cruncherWasm});
      await fails('ErrInvalid', what, () => given.cruncher(ADD3));
      await fails('ErrInvalid', `${what}, again`, () => given.cruncher(ADD3));
    }
    using given = await init({cruncherWasm: fetch('/dist/sublet-cruncher.wasm')});
    const {instantiate} = WebAssembly;
    let started = 0, deadly = false;
    WebAssembly.instantiate = (module, imports) => {
      const invoke = imports.gojs['syscall/js.valueGet'];
      imports.gojs['syscall/js.valueGet'] = (sp) => {
        if (deadly) throw new Error('as if by a trap');
        invoke(sp);
      };
      started++;
      return instantiate(module, imports);
    };
    try {
      const [a, b] = await Promise.all([given.cruncher(ADD3), given.cruncher(ADD3)]);
      check(started === 1, `${started} programs for two crunchers`);
      const arr = a.array('arr', 100, {dtype: 'uint32'}), range = {global: 100};
      await b.compute(1, 'add3stream', range, arr);
      check(arr.data[0] === 3, 'an array of another cruncher of the Gpu');
      // A program that dies takes its promises with it, and the next cruncher has another.
      const batch = a.batch(() => new Promise(() => {}));
      deadly = true;
      await fails('exited', 'the call that finds out', () => b.compute(1, 'add3stream', range, arr));
      await throws('exited', 'a call from then on', () => arr.read);
      deadly = false;
      const next = await given.cruncher(ADD3), other = next.array('arr', 100, {dtype: 'uint32'});
      await next.compute(1, 'add3stream', range, other);
      check(other.data[99] === 3 && started === 2, 'a program after a dead one');
      void batch;
    } finally {
      WebAssembly.instantiate = instantiate;
    }
  },

  async fallback() {
    Object.defineProperty(navigator, 'gpu', {value: undefined, configurable: true});
    try {
      const gpu = await init();
      await fails('ErrUnsupported', 'without WebGPU', () => gpu.cruncher(ADD3));
      gpu.close();
    } finally {
      delete navigator.gpu;
    }
  },
};
