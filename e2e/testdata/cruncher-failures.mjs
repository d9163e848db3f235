// SPDX-License-Identifier: Apache-2.0

// Tests of mistakes with crunchers, and of calls that are given up.

import {CruncherArray, SubletError, init} from '/dist/index.mjs';
import {ADD3, THREE, TWO, told} from './cruncher-testing.mjs';
import {check, fails, onBoth, same, throws} from './testing.mjs';

export const tests = {
  errors: onBoth(async (gpu) => {
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

  cancel: onBoth(async (gpu) => {
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

  functionsWithoutEnd: onBoth(async (gpu) => {
    const wgsl = 'fn next(i: u32) { x[i] = x[i] + 1.0; }', reason = new Error('mine');
    let begun = () => {};
    const never = () => { begun(); return new Promise(() => {}); };
    const cr = await gpu.cruncher(wgsl), x = cr.array('x', 2), range = {global: 2}, task = cr.task(1, 'next', {...range, callback: never}, x);
    const waits = {batch: (of, options) => of.batch(async (b) => { await b.compute(1, 'next', range, x); return never(); }, options), task: (of, options) => task.compute(of, options)};
    for (const [name, wait] of Object.entries(waits)) {
      const before = x.data[0], abort = new AbortController();
      begun = () => setTimeout(() => abort.abort(reason));
      const call = wait(cr, {signal: abort.signal});
      const error = await call.catch((e) => e);
      check(error.code === 'ErrAborted' && error.cause === reason, `${name}: ${error}`);
      await cr.compute(1, 'next', range, x);
      check(x.data[0] === before + 2, `${name}: what it had computed, and a call after it: ${before} became ${x.data[0]}`);
    }
    const soon = new AbortController(), task2 = cr.task(1, 'next', {...range, callback: () => { soon.abort(reason); return never(); }}, x);
    await fails('ErrAborted', 'aborted by the callback itself', () => task2.compute(cr, {signal: soon.signal}));
    for (const [name, wait] of Object.entries(waits)) {
      for (const after of [0, 20]) {
        const other = await gpu.cruncher(wgsl), waiting = wait(other);
        setTimeout(() => other.close(), after);
        await fails('ErrClosed', `${name} of a cruncher that is closed`, () => waiting);
      }
    }
    const waiting = Object.entries(waits).map(([name, wait]) => fails('ErrClosed', `${name} of a Gpu that is closed`, () => wait(cr)));
    setTimeout(() => gpu.close(), 20);
    await Promise.all(waiting);
  }),

  anything: onBoth(async (gpu) => {
    // Every method and setter with whatever may be passed: only errors of ours, and the program lives on.
    const wgsl = 'fn f(i: u32) { a[i] = a[i] + 1u; }', cr = await gpu.cruncher(wgsl, {devices: TWO});
    const fresh = () => cr.array('a', 64, {dtype: 'uint32'});
    const trap = new Proxy({}, {get() { throw new Error('trap'); }, getPrototypeOf() { throw new Error('trap'); }, has() { throw new Error('trap'); }});
    const odd = [undefined, null, NaN, -1, 1e20, 0.5, 2, '', 'a', 'f', true, 1n, Symbol('s'), [], [1, 2], {}, {global: 4}, {global: 4, inner: [2]}, {devices: [trap]},
      {global: 4, inner: trap}, {global: 4, signal: trap}, () => {}, new Float32Array(2), new ArrayBuffer(8), trap, gpu, cr, fresh(), cr.scalar('a', 1), AbortSignal.abort()];
    const list = [];
    const stage = {steps: [{kernels: 'f', global: 64}], outputs: [fresh()]}, pool = await cr.pool(), task = cr.task(1, 'f', {global: 64}, fresh());
    for (const object of [cr, fresh(), fresh().as('a'), task, pool, await cr.pipeline([stage]), await cr.devicePipeline([stage])]) {
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
    pool.enqueue(task);
    await pool.finish();
    const last = fresh();
    await cr.compute(1, 'f', {global: 64}, last);
    check(last.data[63] === 1, 'afterwards');
    check((await gpu.cruncher(`fn f(i: u32) { a[i] = 1u; }${' '.repeat(1 << 20)}`)).kernels.length === 1, 'a long source');
    await fails('ErrKernel', 'a very wrong one', () => gpu.cruncher('{'.repeat(1 << 20)));
  }),
};
