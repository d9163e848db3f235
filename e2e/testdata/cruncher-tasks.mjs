// SPDX-License-Identifier: Apache-2.0

// Tests of tasks and device pools.

import {init} from '/dist/index.mjs';
import {TWO, told} from './cruncher-testing.mjs';
import {within} from './hostile-testing.mjs';
import {check, fails, noise, onBoth, same, throws} from './testing.mjs';

const WGSL = `
  fn poly(i: u32) { y[i] = fma(fma(x[i], 0.5, -1.25), x[i], 3.0); }
  fn total(i: u32) { var s = 0.0; for (var k = 0u; k < arrayLength(&y); k++) { s += y[k]; } sum[0] = s; }
  fn step(i: u32) { n[0] = n[0] * 3u + by; }
  fn keep(i: u32) { kept[i] = kept[i] + 1u; }
  fn slow(i: u32) { var v = n[i]; for (var k = 0u; k < by; k++) { v = v * 1664525u + 1013904223u; } n[i] = v; }
  fn bad(i: u32) { n[i] = nonsense; }`;

/** A test with a cruncher and a pool of two devices. */
const pooled = (run, options) => onBoth(async (gpu) => {
  const cr = await gpu.cruncher(WGSL, {devices: TWO}), pool = await cr.pool(options);
  await run({gpu, cr, pool});
  pool.close();
  cr.close();
});

const by = (cr, n) => cr.scalar('by', n, 'uint32');

export const tests = {
  tasks: onBoth(async (gpu) => {
    const cr = await gpu.cruncher(WGSL, {devices: TWO}), calls = [], mine = new Error('mine');
    const n = cr.array('n', 1, {dtype: 'uint32'}), task = cr.task(1, 'step', {global: 1, callback: async (error) => { await null; calls.push(error?.code ?? 'done'); }}, n, by(cr, 1));
    n.write = false; // which the task does not see
    for (let k = 0; k < 3; k++) await task.compute(cr);
    check(n.data[0] === 13 && calls.join() === 'done,done,done', `${n.data[0]} ${calls}`);
    const other = cr.array('other', 1, {dtype: 'uint32'}), named = cr.task(1, 'step', {global: 1}, other.as('n'), by(cr, 5));
    check(other.as('n').name === 'n' && other.as('n').array === other, 'an alias');
    await Promise.all([named.compute(cr), named.compute(cr)]);
    check(other.data[0] === 20, `by another name ${other.data[0]}`);
    const bad = cr.task(2, 'bad', {global: 1, callback: (error) => { calls.push(error.code); }}, n);
    await fails('ErrCompile', 'a task that does not compile', () => bad.compute(cr));
    check(calls.at(-1) === 'ErrCompile', `${calls}`);
    const thrown = await cr.task(2, 'step', {global: 1, callback: () => { throw mine; }}, n, by(cr, 1)).compute(cr).catch((error) => error);
    check(thrown === mine, `a callback threw ${thrown}`);
    const stays = cr.array('kept', 4, {dtype: 'uint32', write: false}), keep = cr.task(3, 'keep', {global: 4}, stays);
    await keep.compute(cr);
    check(stays.stale, 'only the devices have it');
    await cr.fetch(stays);
    check(!stays.stale && stays.data.join() === '1,1,1,1', `${stays.data}`);
    await fails('ErrAborted', 'given up', () => task.compute(cr, {signal: AbortSignal.abort()}));
    task.close();
    check(task.closed, 'closed');
    await fails('ErrClosed', 'a closed task', () => task.compute(cr));
    n.close();
    await fails('ErrClosed', 'a task of a closed array', () => bad.compute(cr));
    const world = await init({device: 'simd', threads: 1}), there = await world.cruncher(WGSL);
    await fails('ErrForeign', 'a cruncher of another Gpu', () => keep.compute(there));
    await fails('ErrForeign', 'a task of another Gpu', async () => { (await there.pool()).enqueue(keep); });
    world.close();
    cr.close();
    await fails('ErrClosed', 'a closed cruncher', () => keep.compute(cr));
  }),

  pool: pooled(async ({cr, pool}) => {
    // Parts of a polynomial wherever there is a device, and their sum when all of them are there.
    const items = 4096, parts = 16, x = noise(items), y = cr.array('y', items, {partialRead: true, read: false}), sum = cr.array('sum', 1), ended = [];
    const xs = cr.array('x', x, {readOnly: true, partialRead: true});
    const tasks = Array.from({length: parts}, (_, k) => cr.task(1, 'poly', {global: items / parts, offset: k * items / parts, callback: () => { ended.push(k); }}, xs, y));
    y.partialRead = false;
    y.read = true;
    y.write = false;
    tasks.push(cr.task(2, 'total', {global: 1, globalSyncFirst: true, callback: () => { ended.push('sum'); }}, y, sum));
    pool.enqueue(...tasks);
    check(pool.remaining > 0 && pool.devices.length === 2, `${pool.remaining} remain`);
    const seconds = await pool.finish();
    check(seconds > 0 && pool.remaining === 0 && pool.completed.reduce((a, b) => a + b) === parts + 1, `${seconds} seconds, ${pool.completed}`);
    check(ended.length === parts + 1 && ended.at(-1) === 'sum', `ended ${ended}`);
    const want = Array.from(x, (v) => (v * 0.5 - 1.25) * v + 3);
    same(y.data, want, 'the polynomial', 4 * 2 ** -24 * 5);
    same(sum.data, [want.reduce((a, b) => a + b)], 'its sum', items * 2 ** -24 * items * 5);
    check(await pool.finish() === 0, 'nothing to finish');

    // Those of a section run on one device, one after the callback of the other.
    const n = cr.array('n', 1, {dtype: 'uint32'}), order = [];
    const serial = Array.from({length: 4}, (_, k) => cr.task(1, 'step', {
      global: 1, serialBegin: k === 0, serialEnd: k === 3, callback: async () => {
        await new Promise((done) => { setTimeout(done); });
        order.push(n.data[0]);
      },
    }, n, by(cr, 1)));
    const before = pool.completed;
    pool.enqueue(...serial);
    await pool.finish();
    check(order.join() === '1,4,13,40', `in series ${order}`);
    check(pool.completed.filter((count, i) => count === before[i] + 4).length === 1, `on one device: ${before}, ${pool.completed}`);
    for (const wrong of [serial.slice(0, 1), serial.slice(1), [serial[0], serial[0]], [undefined], [n], ['task']]) await throws('ErrInvalid', 'sections', () => pool.enqueue(...wrong));

    // A task for each device, also for one that comes later.
    await pool.addDevice('low-power');
    const kept = cr.array('kept', 4, {dtype: 'uint32', write: false, read: false});
    const earlier = pool.completed;
    pool.enqueue(cr.task(1, 'keep', {global: 4, broadcast: true}, kept));
    await pool.finish();
    check(pool.devices.length === 3 && pool.completed.every((count, i) => count === earlier[i] + 1), `a broadcast: ${earlier}, ${pool.completed}`);
    await throws('ErrInvalid', 'a broadcast that writes', () => cr.task(1, 'step', {global: 1, broadcast: true}, n, by(cr, 1)));
  }),

  gpuClosed: onBoth(async () => {
    // Each callback is called once, also for the tasks that wait when the Gpu is closed.
    const world = await init({device: 'simd', threads: 1}), cr = await world.cruncher(WGSL, {devices: TWO}), pool = await cr.pool(), codes = [];
    let wake = () => {};
    const ended = new Promise((done) => { wake = done; }), n = cr.array('n', 64, {dtype: 'uint32'});
    const make = (options) => cr.task(1, 'slow', {global: 64, callback: (error) => { codes.push(error?.code ?? 'done'); if (codes.length === 14) wake(undefined); }, ...options}, n, by(cr, 1000));
    n.write = false;
    const one = make({}), everywhere = make({broadcast: true});
    await throws('ErrInvalid', 'a section without an end', () => pool.enqueue(make({selectBegin: true})));
    pool.enqueue(...Array(10).fill(one), everywhere, everywhere);
    const finish = pool.finish();
    world.close();
    await fails('ErrClosed', 'finish', () => finish);
    await within(5000, ended, 'the callbacks');
    await new Promise((done) => { setTimeout(done, 20); });
    check(codes.length === 14 && codes.includes('ErrClosed') && codes.every((code) => ['done', 'ErrClosed'].includes(code)), `${codes}`);
  }),

  roundRobin: pooled(async ({cr, pool}) => {
    const arrays = Array.from({length: 6}, () => cr.array('n', 1, {dtype: 'uint32'}));
    pool.enqueue(...arrays.map((n, k) => cr.task(1, 'step', {global: 1}, n, by(cr, k))));
    await pool.finish();
    check(pool.completed.join() === '3,3' && arrays.every(({data}, k) => data[0] === k), `${pool.completed}`);
  }, {mode: 'round-robin'}),

  failures: pooled(async ({gpu, cr, pool}) => {
    const n = cr.array('n', 64, {dtype: 'uint32'}), codes = [], good = cr.task(1, 'step', {global: 1}, n, by(cr, 1));
    pool.enqueue(cr.task(1, 'bad', {global: 1, callback: (error) => { codes.push(error.code); }}, n), good);
    await fails('ErrCompile', 'a task that fails', () => pool.finish());
    pool.enqueue(cr.task(1, 'step', {global: 1, callback: () => { throw new RangeError('mine'); }}, n, by(cr, 1)));
    const thrown = await pool.finish().catch((error) => error);
    check(thrown.code === 'ErrCallback' && thrown.message.includes('mine') && codes.join() === 'ErrCompile', `${thrown}, ${codes}`);
    pool.enqueue(cr.task(1, 'step', {global: 1, callback: () => Promise.reject(new Error())}, n, by(cr, 1)));
    await fails('ErrCallback', 'a callback that rejects', () => pool.finish());
    pool.enqueue(good);
    await pool.finish();

    // A callback may enqueue, and what waits may be given up.
    let release = () => {};
    const gate = new Promise((done) => { release = done; }), abort = new AbortController(), reason = new Error('enough'), before = n.data[0];
    pool.enqueue(cr.task(1, 'step', {global: 1, callback: async () => { pool.enqueue(good); await gate; }}, n, by(cr, 1)));
    const waiting = pool.finish({signal: abort.signal});
    abort.abort(reason);
    const given = await waiting.catch((error) => error);
    check(given.code === 'ErrAborted' && given.cause === reason, `${given}`);
    release();
    await pool.finish();
    await pool.finish();
    check(n.data[0] === (before * 3 + 1) * 3 + 1, `${before} became ${n.data[0]}`);

    // Closed in the middle: what is under way stops, and all hear of it.
    const heard = [], heavy = () => cr.task(1, 'slow', {global: 64, repeat: 2 ** 40, callback: (error) => { heard.push(error?.code); }}, n, by(cr, 1000));
    const second = await cr.pool();
    second.enqueue(heavy(), heavy(), heavy(), heavy());
    const never = second.finish();
    second.close();
    await fails('ErrClosed', 'a pool that is closed', () => never);
    for (let i = 0; heard.length < 4 && i < 1000; i++) await new Promise((done) => { setTimeout(done, 5); });
    check(heard.join() === 'ErrClosed,ErrClosed,ErrClosed,ErrClosed', `callbacks hear ${heard}`);
    await throws('ErrClosed', 'enqueue of a closed pool', () => second.enqueue(good));
    await fails('ErrClosed', 'addDevice of a closed pool', () => second.addDevice('own'));
    await throws('ErrClosed', 'counts of a closed pool', () => second.remaining);

    for (const wrong of [5, {mode: 'x'}, {mode: 1}, {modes: 'greedy'}, {signal: 5}, {get mode() { throw 0; }}]) await fails('ErrInvalid', `pool ${told(wrong)}`, () => cr.pool(wrong));
    for (const wrong of [undefined, null, 'x', 5, {}, [], Symbol('s')]) await fails('ErrInvalid', 'a device', () => pool.addDevice(wrong));
    for (const wrong of [undefined, null, {}, {global: 1, broadcast: 1}, {global: 1, callback: 5}, {global: 1, signal: AbortSignal.abort()}, {global: 1, get selectEnd() { throw 0; }}]) {
      await throws('ErrInvalid', `task ${told(wrong)}`, () => cr.task(1, 'step', wrong, n));
    }
    for (const [code, ...args] of [
      ['ErrInvalid', 1.5, 'step', {global: 1}], ['ErrInvalid', 1, 5, {global: 1}], ['ErrKernel', 1, ' ', {global: 1}], ['ErrRange', 1, 'step', {global: -1}], ['ErrInvalid', 1, 'step', {global: 1}, 5], ['ErrName', 1, 'step', {global: 1}, n, n],
      ['ErrName', 1, 'step', {global: 1}, n.as('a b')],
    ]) await throws(code, `task ${told(args)}`, () => cr.task(...args));
    for (const name of [undefined, '', 5]) await throws('ErrName', 'a name', () => n.as(name));
    for (const wrong of [undefined, null, {}, gpu, pool]) await fails('ErrInvalid', 'no cruncher', () => good.compute(wrong));
    pool.enqueue(good);
    await pool.finish();
    // The cruncher may go before its pool, whose devices stay.
    const last = await gpu.cruncher(WGSL, {devices: TWO}), lasting = await last.pool();
    last.close();
    await fails('ErrClosed', 'a pool of a closed cruncher', () => last.pool());
    lasting.enqueue(good, good);
    await lasting.finish();
    const open = await cr.pool();
    open.enqueue(heavy());
    const lost = open.finish();
    gpu.close();
    await fails('ErrClosed', 'a Gpu that is closed', () => lost);
  }),
};
