// SPDX-License-Identifier: Apache-2.0

// Tests of what closes objects: scopes, reports of what is open, and that nothing grows.

import {init} from '/dist/index.mjs';
import {check, fails, measured, onBoth, same, throws} from './testing.mjs';

/** Runs something and checks that the device has no more memory afterwards, apart from what it returns and the test closes. */
async function leavesNothing(gpu, what, run) {
  await gpu.sync();
  const before = gpu.stats().liveBytes;
  for (const object of await run() ?? []) object.close();
  await gpu.sync();
  check(gpu.stats().liveBytes === before, `${what}: ${gpu.stats().liveBytes - before} bytes are left`);
}

/** Runs something and returns the warnings that the console got meanwhile. */
async function warned(run) {
  const {warn} = console, lines = [];
  console.warn = (line) => lines.push(line);
  try {
    await run();
  } finally {
    console.warn = warn;
  }
  return lines;
}

export const tests = {
  scopes: onBoth(async (gpu) => {
    const outer = gpu.matrix(1, 2, [1, 2]);
    await leavesNothing(gpu, 'one result', async () => {
      const made = [], sum = gpu.scope(() => {
        const a = gpu.matrix(2, 2, [1, 2, 3, 4]), b = a.matmul(a).eval();
        made.push(a, b, gpu.sparse(1, 1, {format: 'csr', values: [1], indices: [0], offsets: [0, 1]}), gpu.nn.adam());
        return b.sum({axis: 0}).eval();
      });
      check(made.every(({closed}) => closed) && !sum.closed, 'what is open');
      same(await sum.read(), [22, 32], 'the result');
      return [sum];
    });
    await leavesNothing(gpu, 'containers', async () => {
      const {list: [a], map, tensor, quantised, sizes} = gpu.scope(() => ({
        list: [gpu.matrix(1, 1, [5])], map: new Map([['m', gpu.zeros(1, 1)]]), tensor: gpu.tensor([1, 2, 3, 4], [2, 1, 2]),
        quantised: gpu.nn.quantise(gpu.matrix(4, 1, [1, 2, 3, 4])), sizes: new Float32Array(1 << 20),
      }));
      same(await a.read(), [5], 'in an array');
      same(await map.get('m').read(), [0], 'in a map');
      same(await tensor.read(), [1, 2, 3, 4], 'a tensor');
      same(await quantised.dequantise().read(), [1, 2, 3, 4], 'several matrices', 0.02);
      check(sizes.length === 1 << 20, 'memory is returned as it is');
      return [a, map.get('m'), tensor, quantised];
    });
    await leavesNothing(gpu, 'a batch', async () => {
      const stats = gpu.scope(() => {
        const x = gpu.tensor([1, 2, 3, 4], [2, 2]);
        return gpu.nn.batchNorm().train(x, gpu.ones(1, 2), gpu.zeros(1, 2));
      });
      same(await stats.mean.read(), [2, 3], 'a mean');
      same(await stats.y.read(), [-1, -1, 1, 1], 'normalised', 1e-4);
      return [stats];
    });
    await leavesNothing(gpu, 'one of several that close together', async () => {
      const npz = await gpu.save({a: {data: Float32Array.of(1, 2), shape: [1, 2]}, b: {data: Float32Array.of(3), shape: [1]}}, {format: 'npz'}), params = await gpu.saveParams([['a', {data: Float32Array.of(4), shape: [1]}]]);
      const {mean, a, p, all, q} = await gpu.scope(async (scope) => {
        const stats = scope.use(gpu.nn.batchNorm().train(gpu.matrix(2, 1, [1, 3]), gpu.ones(1, 1), gpu.zeros(1, 1))), file = scope.use(await gpu.load(npz)), list = scope.use(await gpu.loadParams(params));
        scope.use(await gpu.loadParams(params));
        return {mean: stats.mean, a: file.get('a'), p: list.get('a'), all: scope.use(await gpu.load(npz)), q: scope.use(gpu.tensor([7], [1]))};
      });
      same([...await mean.read(), ...await a.read(), ...await p.read(), ...await all.get('b').read(), ...await q.read()], [2, 1, 2, 4, 3, 7], 'results');
      return [mean, a, p, all, q];
    });
    await leavesNothing(gpu, 'an outer matrix that is changed', async () => {
      gpu.scope(() => { outer.memory.setValue(gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6])); });
      same(await outer.read(), [1, 2, 3, 4, 5, 6], 'it stays');
      gpu.scope(() => { outer.memory.take(gpu.matrix(1, 2, [8, 9])); });
      same(await outer.read(), [8, 9], 'it stays');
    });
    same(await gpu.scope(() => outer.add(1)).read(), [9, 10], 'an expression of what stays');
    same(await gpu.scope(() => outer.T).read(), [8, 9], 'a view of what stays');
    outer.close();
  }),

  scopesFail: onBoth(async (gpu) => {
    const mine = new Error('mine');
    await leavesNothing(gpu, 'errors', async () => {
      for (const run of [
        () => gpu.scope(() => { gpu.zeros(9, 9).add(1).eval(); throw mine; }),
        () => gpu.scope(async () => { gpu.zeros(9, 9).add(1).eval(); throw mine; }),
        () => gpu.scope(async (scope) => { await null; scope.use([9, 8].map((n) => gpu.ones(n, n))); throw mine; }),
      ]) check(await (async () => run())().catch((error) => error) === mine, 'the error is the function\'s own');
      await throws('ErrClosed', 'an expression of what is closed', () => gpu.scope(() => gpu.zeros(9, 9).add(1)));
      await throws('ErrClosed', 'a tensor of what is closed', () => gpu.scope(() => gpu.tensor([1, 2], [2]).add(1)));
      await throws('ErrClosed', 'beside a matrix', () => gpu.scope(() => { const a = gpu.ones(3, 3).add(1).eval(); return [a.T, gpu.zeros(3, 3).T, a]; }));
      await throws('ErrClosed', 'of a function', () => gpu.scope(() => gpu.scope(() => gpu.ones(1, 1).apply(gpu.fn('fn f(x: f32) -> f32 { return x; }')))));
      await throws('ErrInvalid', 'a getter that throws', () => gpu.scope(() => ({a: gpu.zeros(9, 9).add(1).eval(), get b() { throw mine; }})));
      for (const fn of [undefined, null, 5, {}, 'text']) await throws('ErrInvalid', `a scope of ${fn}`, () => gpu.scope(fn));
      await throws('ErrInvalid', 'use', () => gpu.scope((scope) => scope.use(5)));
      await throws('ErrInvalid', 'use of nothing', () => gpu.scope((scope) => scope.use([])));
      await throws('ErrInvalid', 'run', () => gpu.scope((scope) => scope.run(5)));
      const odd = (scope) => { gpu.zeros(9, 9).add(1).eval(); scope.use({close() { throw mine; }, [Symbol.dispose]() {}}); };
      await throws('ErrInvalid', 'something of the caller that cannot be closed', () => gpu.scope(odd));
      let late;
      gpu.scope((scope) => { late = scope; });
      await throws('ErrClosed', 'run', () => late.run(() => {}));
      const m = gpu.ones(9, 9);
      await throws('ErrClosed', 'use', () => late.use(m));
      check(m.closed, 'what came late is closed');
    });
    const own = await init({device: 'simd', threads: 1});
    own.close();
    await throws('ErrClosed', 'a device that was closed', () => own.scope(() => {}));
  }),

  // Two scopes take turns: neither closes what the other made, nor what is made between them.
  scopesOverlap: onBoth(async (gpu) => {
    await leavesNothing(gpu, 'scopes', async () => {
      const steps = [], step = () => new Promise((done) => steps.push(done)), next = async () => { steps.shift()(); for (let i = 0; i < 20; i++) await null; };
      const work = (n) => gpu.scope(async (scope) => {
        const first = gpu.full(1, 1, n);
        await step();
        const second = scope.use(first.add(1).eval());
        await step();
        const {third} = scope.run(() => ({third: second.add(first).eval()}));
        await step();
        return [scope.keep(third.add(0).eval()), third];
      });
      const a = work(1), b = work(10);
      await next();
      const between = gpu.full(1, 1, 7);
      await next();
      await next();
      await next();
      await next();
      const inner = gpu.scope(() => { const kept = gpu.scope(() => gpu.full(1, 1, 3)); check(!kept.closed, 'a result of an inner scope'); return [kept]; });
      const gone = gpu.scope(() => { const kept = gpu.scope(() => gpu.full(1, 1, 3)); return () => kept; })();
      check(gone.closed && !inner[0].closed, 'a result of an inner scope belongs to the outer one');
      await next();
      const lists = await Promise.all([a, b]);
      check(!between.closed, 'what nobody gave to a scope');
      same(await Promise.all(lists.flat().map((m) => m.value())), [3, 3, 21, 21], 'results');
      return [...lists.flat(), between, ...inner];
    });
  }),

  // Whatever waits can be given up, before and while it waits.
  aborts: onBoth(async (gpu) => {
    const device = gpu.device ? 'webgpu' : 'simd', reason = new Error('mine'), gone = AbortSignal.abort(reason);
    const m = gpu.matrix(1, 2, [1, 2]), mapped = gpu.map(1, 2), s = gpu.sparse(1, 1, {format: 'csc', values: [1], indices: [0], offsets: [0, 1]}), t = gpu.tensor([1], [1]);
    const memory = gpu.wrap(new Float32Array(2), 1, 2), file = await gpu.saveParams([['m', m]]), param = (await gpu.loadParams(file)).get('m');
    const cr = await gpu.cruncher('fn f(i: u32) { a[i] = a[i] + 1u; }', {devices: 'own'}), a = cr.array('a', new Uint32Array(64));
    const calls = {
      init: (o) => init({device, ...o}), read: (o) => m.read(o), readInto: (o) => m.read(new Float32Array(2), o), value: (o) => m.sum().value(o), explain: (o) => m.explain(o),
      sync: (o) => gpu.sync(o), reopen: (o) => gpu.reopen(o), matrixSync: (o) => memory.sync(o), access: (o) => mapped.access(true, () => {}, o), sparseFrom: (o) => gpu.sparseFrom(m, o),
      sparse: (o) => s.sparse(o), parts: (o) => s.parts(o), sparseSync: (o) => s.sync(o), mulBlockColumn: (o) => s.mulBlockColumn(s, o),
      tensor: (o) => t.read(o), tensorValue: (o) => t.value(o), load: (o) => gpu.loadParams(file, o), scan: (o) => gpu.scanParams(file, o), save: (o) => gpu.saveParams([['m', m]], o),
      param: (o) => param.read(o), cruncher: (o) => gpu.cruncher('fn f(i: u32) { a[i] = 1u; }', o), compute: (o) => cr.compute(1, 'f', {global: 64, ...o}, a),
      batch: (o) => cr.batch((b) => b.compute(1, 'f', {global: 64}, a), o), fetch: (o) => cr.fetch(a, o), evict: (o) => cr.evict(a, o),
    };
    for (const [name, call] of Object.entries(calls)) {
      await fails('ErrAborted', `${name}, aborted before`, () => call({signal: gone}).catch((error) => { check(error.cause === reason, `${name}: ${error.cause}`); throw error; }));
      for (const signal of [{}, 5, null, {aborted: false}]) await fails('ErrInvalid', `${name}, a signal that is none`, () => call({signal}));
      const result = await call({signal: new AbortController().signal});
      if (name !== 'value' && name !== 'tensorValue') result?.close?.();
    }
    const never = new Promise(() => {}), late = {
      init: (o) => init({device, simdWasm: never, ...o}), loadParams: (o) => gpu.loadParams(never, o), scanParams: (o) => gpu.scanParams(never, o),
      batch: (o) => cr.batch((b) => b.compute(1, 'f', {global: 64, repeat: 2 ** 53 - 1}, a), o),
    };
    for (const [name, call] of Object.entries(late)) {
      const abort = new AbortController(), called = call({signal: abort.signal});
      setTimeout(() => abort.abort(reason), 5);
      await fails('ErrAborted', `${name}, aborted while it waits`, () => called);
    }
    const soon = new AbortController(), starting = init({device, signal: soon.signal});
    soon.abort(reason);
    await fails('ErrAborted', 'a device that is not wanted any more', () => starting); // which is closed, or the page keeps its program
    cr.close();
    same(await m.add(1).read(), [2, 3], 'afterwards');
  }),

  // What belongs to a Gpu is closed with it, and says so at once.
  closedWithTheGpu: onBoth(async (gpu) => {
    const own = await init({device: gpu.device ? 'webgpu' : 'simd', threads: 1}), m = own.ones(1, 1), cr = await own.cruncher('fn next(i: u32) { x[i] = x[i] + 1.0; }'), x = cr.array('x', 4), stages = [{steps: [{kernels: 'next', global: 4}], outputs: [x]}];
    const params = await own.loadParams(await own.saveParams([['w', m]])), things = {
      matrix: m, sparse: own.sparse({rows: [0], cols: [0], values: [1], shape: [1, 1]}), param: params.get('w'), optimiser: own.nn.adam(), recording: await own.record(() => m.assign(2)),
      cruncher: cr, array: x, task: cr.task(1, 'next', {global: 4}, x), pool: await cr.pool(), pipeline: await cr.pipeline(stages), devicePipeline: await cr.devicePipeline(stages),
    }, graph = await own.graph({gpus: [own]}), shared = await gpu.graph({gpus: [own]});
    const closed = () => Object.entries(things).filter(([, thing]) => thing.closed).map(([name]) => name).join();
    check(closed() === '' && graph.state === 'new', `closed: ${closed()}`);
    own.close();
    check(closed() === Object.keys(things).join() && graph.state === 'closed' && shared.state === 'new', `closed: ${closed()}; graphs ${graph.state}, ${shared.state}`);
    check(/closed/.test(String(m)) && /closed/.test(String(things.sparse)) && /closed/.test(String(things.recording)), `${m}, ${things.sparse}, ${things.recording}`);
    shared.close();
    for (const thing of Object.values(things)) thing.close();
  }),

  async using() {
    const closed = [];
    {
      const gpu = await init({device: 'simd', threads: 1}), m = gpu.zeros(1, 1);
      gpu[Symbol.dispose]();
      closed.push(await gpu.sync().catch(({code}) => code), await m.read().catch(({code}) => code));
    }
    same(closed, ['ErrClosed', 'ErrClosed'], 'after the block');
  },

  async leakReports(device = 'simd') {
    const gpu = await init({device: device === 'both' ? 'webgpu' : device, debug: 'leaks', threads: 1});
    function makesOne() { return gpu.matrix(3, 4, new Float32Array(12)); }
    const kept = [makesOne(), gpu.wrap(new Int32Array(6), 2, 3), gpu.fn('fn f(x: f32) -> f32 { return x; }'), gpu.nn.adam()];
    gpu.zeros(2, 2).close();
    const s = gpu.sparse(2, 3, {format: 'csr', values: [1, 2], indices: [0, 1], offsets: [0, 1, 2]}), view = kept[0].memory.alias();
    kept[1].memory.setValue(kept[1]);
    const wanted = ['matrix 3x4 float32 48', 'matrix 2x3 int32 0', 'function f   0', 'optimiser   0', 'sparse matrix 2x3 float32 28', 'matrix 3x4 float32 0'];
    const list = gpu.leaks(), text = ({kind, shape, dtype, bytes}) => `${kind} ${shape?.join('x') ?? ''} ${dtype ?? ''} ${bytes}`;
    check(list.map(text).join() === wanted.join(), `open are ${list.map(text).join()}`);
    check(list[0].stack.includes('makesOne') && !list[0].stack.includes('/dist/index.mjs') && !/newMatrix/.test(list[0].stack), `made ${list[0].stack}`);
    for (const object of [...kept.slice(1), s, view]) object.close();
    kept[0].memory.resize(1, 2);
    check(gpu.leaks().length === 2, 'a matrix until it has become the next one');
    await gpu.sync();
    check(gpu.leaks().map(text).join() === 'matrix 1x2 float32 48', `open are ${gpu.leaks().map(text)}`);
    const lines = await warned(() => gpu.close());
    check(lines.length === 1 && lines[0].includes('matrix') && lines[0].includes('leakReports'), `warned of ${lines}`);
    const many = await init({device: 'simd', debug: 'leaks', threads: 1});
    for (let i = 0; i < 5; i++) many.zeros(2, 2);
    const again = await warned(() => many.close());
    check(again.length === 1 && again[0].includes('and 4 more'), `warned of ${again}`);
    const quiet = await init({device: 'simd', threads: 1});
    await throws('ErrUnsupported', 'without the option', () => quiet.leaks());
    quiet.zeros(1, 1);
    check((await warned(() => quiet.close())).length === 0, 'nobody asked for warnings');
  },

  async roundsAreFlat(device) {
    const long = device === 'both' || Boolean(globalThis.process?.env?.SUBLET_LONG);
    for (const one of device === 'both' ? ['webgpu', 'simd'] : [device ?? 'webgpu']) {
      await measured(() => init({device: one, debug: 'leaks', threads: 1}), async (gpu, memory) => {
        const round = () => {
          const a = gpu.matrix(8, 8, new Float32Array(64).fill(2)), b = a.matmul(a).add(1).eval();
          a.close();
          return b;
        };
        const rounds = async (n) => {
          for (let i = 0; i < n; i++) {
            const b = round();
            if (i % 100 === 99) same((await b.read()).subarray(0, 1), [33], 'a product');
            b.close();
          }
          await gpu.sync();
          const {liveBytes, pooledBytes, buffers, kernels} = gpu.stats();
          return {memory: memory(), liveBytes, pooledBytes, buffers, kernels, open: gpu.leaks().length};
        };
        // Go's heap has its size after some 10,000 rounds, and kept it over 50,000 more; a round that keeps 100 bytes is seen.
        const many = long ? 10000 : 1000;
        if (long) await rounds(20000);
        const {memory: before, ...counts} = await rounds(100), {memory: after, ...more} = await rounds(many);
        check(JSON.stringify(counts) === JSON.stringify(more), `${one}: ${JSON.stringify(counts)} became ${JSON.stringify(more)}`);
        check(!long || after - before <= 100 * many, `${one}: the program's memory grew from ${before} to ${after} bytes`);
      });
    }
  },
};
tests.leakReports.both = tests.roundsAreFlat.both = tests.using.both = true;
