// SPDX-License-Identifier: Apache-2.0

// Every method of every class with whatever may be passed by mistake: in the place of each argument, and of all. The methods are those of
// the real prototypes. Nothing but errors of ours with a code comes of it, and what is computed next is right.

import * as sublet from '/dist/index.mjs';
import {Mine, TEMPLATES, detached, documentedCodes, hostile, members, throwing, within} from './hostile-testing.mjs';
import {check, onBoth, same} from './testing.mjs';

const {SubletError, init} = sublet;
const WGSL = 'fn f(i: u32) { a[i] = a[i] + 1u; }';

/** What ends everything, or takes minutes unless it is told otherwise, is for tests of its own. */
const skips = (name, key) => (name === 'Gpu' || name === 'Cruncher') && ['close', 'reopen', Symbol.dispose].includes(key) || name === 'Tuning' && key === 'run';

/** Samples of the classes, made anew for each method. */
const samples = {
  Gpu: ({gpu}) => gpu,
  Matrix: ({gpu}) => gpu.matrix([[1, 2], [3, 4]]),
  View: ({gpu}) => gpu.matrix([[1, 2], [3, 4]]).T,
  Expr: ({gpu}) => gpu.matrix([[1, 2], [3, 4]]).add(1),
  MatrixMemory: ({gpu}) => gpu.matrix([[1, 2], [3, 4]]).memory,
  Fn: ({gpu}) => gpu.fn('fn twice(x: f32) -> f32 { return 2.0 * x; }'),
  Sparse: ({gpu}) => gpu.sparse(2, 2, {format: 'csc', values: [1, 2], indices: [0, 1], offsets: [0, 1, 2]}),
  Tensor: ({gpu}) => gpu.tensor([[[1, 2], [3, 4]]]),
  NN: ({gpu}) => gpu.nn,
  Tuning: ({gpu}) => gpu.tuning,
  Optimiser: ({gpu}) => gpu.nn.adam(),
  BatchNorm: ({gpu}) => gpu.nn.batchNorm(),
  BatchStatistics: ({gpu, m}) => gpu.nn.batchNorm().train(m, gpu.ones(1, 2), gpu.zeros(1, 2)),
  Quantised: ({gpu, m}) => gpu.nn.quantise(m),
  Recording: ({gpu, m}) => gpu.record(() => m.add(1).eval()),
  Params: ({gpu, file}) => gpu.loadParams(file),
  Param: async ({gpu, file}) => (await gpu.loadParams(file)).get('m'),
  Cruncher: ({cruncher}) => cruncher,
  CruncherArray: ({cruncher}) => cruncher.array('a', 8, {dtype: 'uint32'}),
  CruncherScalar: ({cruncher}) => cruncher.scalar('s', 2),
};

/** Classes that no sample is made of. */
const NONE = new Set(['SubletError', 'CruncherBatch']);

/** What passes for a letter of TEMPLATES. */
const fitting = (w) => ({
  d: 2, v: new Float32Array(4), b: null, m: w.m, x: w.m, o: undefined, f: w.file, t: 'float32', c: () => {}, a: w.array, r: {global: 8}, g: [0, 1], e: [], s: [2, 2], n: w.m,
  w: {channels: 1, height: 2, width: 1, kernel: 1}, k: {data: new Uint8Array(16), width: 2, height: 2}, h: {data: new ArrayBuffer(16), shape: [2, 2], dtype: 'float32'},
});

/** What does not. */
function values({gpu, other, m}) {
  const closed = gpu.zeros(2, 2), gone = gpu.zeros(1, 1).tensor(1), resizable = new ArrayBuffer(32, {maxByteLength: 64}), short = new Float32Array(resizable, 0, 8), foreign = other.zeros(2, 2);
  closed.close();
  gone.close();
  resizable.resize(16);
  const revoked = [[], {}, () => {}].map((x) => {
    const {proxy, revoke} = Proxy.revocable(x, {});
    revoke();
    return proxy;
  });
  const lists = [[], [undefined], [null], ['1'], [1n], [,1], [[1], [2, 3]], [[1, 2], 3], Object.defineProperty([1, 2, 3], 1, {get: throwing}), new Proxy([1, 2, 3, 4], {get: throwing}), [m, foreign], ['x', 5]];
  const memory = [
    detached(new Float32Array(4)), detached(new ArrayBuffer(16)), detached(new Uint8Array(16)), short, new Float32Array(resizable), resizable, new DataView(resizable), new DataView(new ArrayBuffer(16)),
    new Float64Array(4), new BigInt64Array(4), new Int8Array(4), new Uint8ClampedArray(4), new Uint16Array(4), new SharedArrayBuffer(16),
  ];
  return [
    undefined, null, true, NaN, Infinity, -1, 0.5, 1e20, 1n, '', 'x', Symbol('s'), () => {}, throwing, class {}, {}, Object.create(null), {axes: 0}, {dtype: 'float64'}, {axis: 7}, {signal: {}}, {rows: 'x'}, new Map([[1, 2]]),
    new Date(NaN), new Error('x'), {valueOf: throwing, toString: throwing}, {[Symbol.iterator]: throwing}, {then: throwing}, {get then() { throw new Mine('got'); }}, {[Symbol.toStringTag]: 'GPUBuffer', get size() { return throwing(); }},
    {[Symbol.toStringTag]: 'GPUDevice'}, ...['Response', 'Blob', 'ReadableStream', 'ArrayBuffer'].map((tag) => new Proxy({}, {get: (_, key) => key === 'then' ? undefined : key === Symbol.toStringTag ? tag : throwing()})),
    {get then() { throw hostile(); }}, {get [Symbol.toStringTag]() { return throwing(); }}, new Proxy({}, {get: throwing}), new Proxy({}, {ownKeys: throwing}), hostile(), new Proxy(m, {}),
    Object.create(m), Object.create(sublet.Matrix.prototype), ...revoked, ...lists, ...memory, closed, gone, foreign, foreign.add(1), foreign.tensor(2, 2), other.sparse(1, 1, {format: 'csr', values: [1], indices: [0], offsets: [0, 1]}),
    other.fn('fn f(x: f32) -> f32 { return x; }'), other, AbortSignal.abort(),
  ];
}

/** The lists of arguments that a method is called with: one value everywhere, and in one place among those that fit. */
function* calls(name, fit, wrong) {
  const letters = Object.hasOwn(TEMPLATES, name) ? TEMPLATES[name] : undefined, good = letters ? [...letters].map((letter) => fit[letter]) : null;
  yield [];
  if (good) yield good;
  for (const value of wrong) {
    yield [value, value, value, value];
    if (!good) yield* [[value], [fit.m, value]];
    for (let i = 0; i < (good?.length ?? 0); i++) yield good.with(i, value);
  }
}

/** Whether an error is one of ours, or what a function of the caller's has thrown, where that is passed on. */
function judge(what, error, codes) {
  if (error instanceof Mine && /\.(access|batch|record|scope)$/.test(what)) return;
  if (/\.(record|scope)$/.test(what) && error instanceof TypeError) return; // of classes and of proxies that are functions and cannot be called
  if (!(error instanceof SubletError)) throw new Error(`${what}: ${error?.stack ?? String(error)}`); // the text of a stack takes long
  if (!codes.has(error.code)) throw new Error(`${what}: the code ${error.code} is not documented: ${error.message}`);
}

const classes = Object.values(sublet).filter((c) => typeof c === 'function' && c.prototype);

/** Closes what a call has made. */
function dispose(made, kept) {
  if (made === null || typeof made !== 'object' || kept.has(made)) return;
  if (made instanceof ReadableStream) made.cancel().catch(() => {});
  else if (classes.some((c) => made instanceof c) || String(made[Symbol.toStringTag]).startsWith('Sublet')) made.close?.();
}

/** Operations of the table are alike: each gets a third of the values. */
const isOperation = (key) => key in sublet.Gpu.prototype && key in sublet.Expr.prototype;

/** Calls a method of a sample with everything. */
async function misuse(what, world, sample, key) {
  const {codes, methods: n} = world, wrong = isOperation(key) ? world.wrong.filter((_, i) => (i + n) % 3 === 0) : world.wrong, kept = new Set([...world.wrong, ...Object.values(world), sample]), waiting = [];
  for (const args of calls(key, fitting(world), wrong)) {
    world.calls++;
    try {
      const made = sample[key](...args);
      if (made instanceof Promise) waiting.push(made.then((x) => dispose(x, kept), (error) => judge(what, error, codes)));
      else dispose(made, kept);
    } catch (error) {
      judge(what, error, codes);
    }
  }
  await within(60000, Promise.all(waiting), what);
  await world.gpu.sync().catch((error) => judge(`${what} and sync`, error, codes));
}

/** What is read or set of a sample. */
async function fields(what, world, sample, key, {get, set}) {
  try {
    if (get && key !== 'lost') await within(60000, Promise.resolve(sample[key]), what);
  } catch (error) {
    judge(what, error, world.codes);
  }
  for (const value of set ? world.wrong : []) {
    try {
      sample[key] = value;
    } catch (error) {
      judge(`${what} = `, error, world.codes);
    }
  }
}

/** What is there for all calls. */
async function newWorld(gpu) {
  const other = await init({device: gpu.info.driver === 'simd' ? 'simd' : 'webgpu', threads: 1}), cruncher = await gpu.cruncher(WGSL);
  const file = new Uint8Array(await (await gpu.saveParams([['m', {data: new Float32Array(4), shape: [2, 2]}]])).arrayBuffer());
  const world = {gpu, other, cruncher, file, m: gpu.matrix([[1, 2], [3, 4]]), array: cruncher.array('a', 8, {dtype: 'uint32'}), codes: await documentedCodes(), calls: 0, methods: 0};
  return {...world, wrong: values(world)};
}

/** A known computation. */
async function known({gpu}, what) {
  const a = gpu.matrix([[1, 2], [3, 4]]), b = a.matmul(a).add(1);
  same(await b.read(), [8, 11, 16, 23], `after ${what}`);
  a.close();
}

/** Runs with short stacks: those of 100,000 errors take seconds. */
const briefly = (run) => async (gpu) => {
  const {stackTraceLimit} = Error;
  Error.stackTraceLimit = 2;
  try {
    await run(gpu);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
};

export const tests = {
  misuse: onBoth(briefly(async (gpu) => {
    const world = await newWorld(gpu), seen = new Set();
    for (const [name, Class] of Object.entries(sublet)) check(name.startsWith('_') || NONE.has(name) || !Class.prototype || name in samples, `no sample of ${name}`);
    for (const [name, make] of Object.entries(samples)) {
      check((await make(world)) instanceof sublet[name], `the sample of ${name}`);
      for (const [key, {value, get, set}] of members(await make(world))) {
        const what = `${name}.${String(key)}`, method = value ?? get;
        if (seen.has(method) || skips(name, key)) continue;
        seen.add(method);
        const sample = await make(world);
        if (typeof value === 'function') await misuse(what, world, sample, key);
        else await fields(what, world, sample, key, {get, set});
        if (world.methods++ % 4 === 0) await known(world, what);
      }
      await known(world, name);
    }
    check(world.methods > 500 && world.calls > 50000, `${world.calls} calls of ${world.methods} members`);
    world.cruncher.close();
    world.other.close();
  })),

  opened: onBoth(briefly(async (gpu) => {
    // What opens a Gpu, with options that are none and values that no option takes.
    const codes = await documentedCodes(), other = await init({device: 'simd', threads: 1}), wrong = values({gpu, other, m: gpu.zeros(1, 1)}).filter((value) => value !== undefined && value !== ''); // debug is "" by default
    const options = (value) => [...['device', 'power', 'debug', 'threads', 'nothing'].map((name) => ({[name]: value})), {device: 'simd', simdWasm: value}, {device: value, get power() { return throwing(); }}];
    for (const value of [...wrong.flatMap(options), ...wrong.filter((value) => typeof value !== 'object' && typeof value !== 'function'), hostile(), []]) {
      const opened = await within(60000, init(value), 'init').catch((error) => judge('init', error, codes));
      if (!opened) continue;
      opened.close();
      throw new Error(`init opened a Gpu with ${Object.keys(value).join()} ${typeof Object.values(value)[0]}`);
    }
    other.close();
    await known({gpu}, 'init');
  })),

  gone: onBoth(async (gpu) => {
    // Memory that is detached or shrinks after it was given to a call, before anything is done with it or after.
    const codes = await documentedCodes(), floats = () => new Float32Array(new ArrayBuffer(64, {maxByteLength: 64}), 0, 4), lines = () => new Int32Array(new ArrayBuffer(64, {maxByteLength: 64}), 0, 3);
    const uses = {
      wrap: (v) => gpu.wrap(v, 2, 2), rebind: (v) => gpu.zeros(2, 2).memory.rebind(v, 2, 2), fromBuffer: (v) => gpu.fromBuffer(v, 2, 2), matrix: (v) => gpu.matrix(2, 2, v), set: (v) => gpu.zeros(2, 2).set(v),
      tensor: (v) => gpu.tensor(v, [4]).expr(), wrapSparse: (v, i) => gpu.wrapSparse(2, 2, {format: 'csr', values: v.subarray(0, 3), indices: i.fill(0).fill(1, 1, 2), offsets: Int32Array.of(0, 2, 3)}),
    };
    for (const [name, use] of Object.entries(uses)) {
      for (const [how, end] of Object.entries({detached, shrunk: (x) => x.buffer.resize(4)})) {
        for (const late of [false, true]) {
          const v = floats().fill(1), i = lines(), what = `${name} of memory that is ${how}${late ? ' late' : ''}`;
          try {
            const x = use(v, i);
            if (late) await x.add(1).read();
            end(v);
            end(i);
            for (const call of [() => x.touch?.(), () => x.assign?.(gpu.ones(2, 2)), () => x.sync?.(), () => x.matmul(x).read(), () => x.read(v), () => gpu.sync()]) {
              await within(60000, (async () => call())(), what).catch((error) => judge(what, error, codes));
            }
            x.close();
          } catch (error) {
            judge(what, error, codes);
          }
          await known({gpu}, what);
        }
      }
    }
  }),

  closedBeforeSolved: onBoth(async (gpu) => {
    // A solution is checked after it was read. The device may be closed in between, and then its values are not given.
    for (let turns = 0; turns < 4; turns++) {
      const other = await sublet.init({device: gpu.info.driver === 'simd' ? 'simd' : 'webgpu'});
      const said = Array.from({length: 10}, () => {
        const more = other.full(64, 64, 2);
        more.matmul(more).read().catch(() => {});
        return other.ones(3, 3).solve(other.ones(3, 1)).read().then((x) => `${x}`, ({code}) => code);
      });
      for (let i = 0; i < turns; i++) await 0;
      other.close();
      const codes = await Promise.all(said);
      check(codes.every((code) => code === 'ErrSingular' || code === 'ErrClosed'), codes.join());
    }
  }),

  closed: onBoth(async (gpu) => {
    // Every member of what is closed, and of what belongs to a Gpu that is.
    const world = await newWorld(gpu), {codes} = world, fit = fitting(world);
    const use = async (what, sample, key, {value, get}) => {
      const good = [...Object.hasOwn(TEMPLATES, key) ? TEMPLATES[key] : 'x'].map((letter) => fit[letter]);
      try {
        const made = typeof value === 'function' ? sample[key](...good) : get && key !== 'lost' ? sample[key] : undefined;
        dispose(await within(60000, Promise.resolve(made), what), new Set(Object.values(world)));
      } catch (error) {
        judge(what, error, codes);
      }
    };
    const all = [];
    for (const [name, make] of Object.entries(samples)) all.push([name, await make(world)]);
    for (const [name, sample] of all) {
      if (name === 'Gpu' || name === 'Cruncher') continue;
      sample.close?.();
      for (const [key, member] of members(sample)) await use(`closed ${name}.${String(key)}`, sample, key, member);
    }
    await known(world, 'what is closed');
    const left = [];
    for (const [name, make] of Object.entries(samples)) left.push([name, await make(world)]);
    gpu.close();
    for (const [name, sample] of left) {
      for (const [key, member] of members(sample)) await use(`${name}.${String(key)} of a closed Gpu`, sample, key, member);
    }
    await known({gpu: world.other}, 'a Gpu that is closed');
    world.other.close();
  }),
};
