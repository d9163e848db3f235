// SPDX-License-Identifier: Apache-2.0

// Tests of the arrays of crunchers: flags and memory.

import {SubletError} from '/dist/index.mjs';
import {ADD3, moved, onDevices, told} from './cruncher-testing.mjs';
import {check, fails, onBoth, throws} from './testing.mjs';

export const tests = {
  flags: onBoth(async (gpu) => {
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

  memory: onBoth(async (gpu) => {
    // Two arrays of which one fits: each call has the other one leave, and what it needs come again.
    for (const [memory, up] of [[0, 2], [6000, 4]]) {
      const cr = await gpu.cruncher('fn f(i: u32) { a[i] = a[i] + 1u; }', {devices: 'own', memory}), make = () => cr.array('a', 1024, {dtype: 'uint32', tracked: true}), [a, b] = [make(), make()];
      for (const x of [a, b, a, b]) await cr.compute(1, 'f', {global: 1024}, x);
      check(cr.traffic().bytesUp === up * 4096, `${cr.traffic().bytesUp} bytes up with a limit of ${memory}`);
      check([a, b].every(({data}) => data.every((x) => x === 2)), 'the results');
      cr.close();
    }
    const cr = await gpu.cruncher('fn f(i: u32) { a[i] = 1u; }', {memory: 1000}), a = cr.array('a', 1024, {dtype: 'uint32'});
    await fails('ErrNoMemory', 'more than there may be', () => cr.compute(1, 'f', {global: 1024}, a));
    cr.close();
    for (const memory of [-1, 0.5, NaN, '1', 2 ** 60, null]) await fails('ErrInvalid', `memory ${memory}`, () => gpu.cruncher('fn f(i: u32) { a[i] = 1u; }', {memory}));
  }),

  tracked: onBoth(async (gpu) => {
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

  memory: onDevices(ADD3, async (cr, _, gpu) => {
    const range = {global: 1000, local: 10};
    const detached = new Uint32Array(1000), arr = cr.array('arr', detached);
    structuredClone(detached, {transfer: [detached.buffer]});
    await fails('ErrInvalid', 'a detached array', () => cr.compute(1, 'add3stream', range, arr));
    const during = new Uint32Array(1000), late = cr.array('arr', during), call = cr.compute(1, 'add3stream', range, late);
    structuredClone(during, {transfer: [during.buffer]});
    if (gpu.device) await fails('ErrInvalid', 'an array detached meanwhile', () => call);
    else await call.catch(({code}) => check(code === 'ErrInvalid', code)); // which may be over
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
};
