// SPDX-License-Identifier: Apache-2.0

// Tests of gpu.tuning. tuning_test.go calls the functions in one page after the other, which have one database.

import {SubletError, init} from '/dist/index.mjs';
import {check, fails, onBoth, same} from './testing.mjs';

/** What is timed, and the variant that a forged result has used for it. */
const WORK = 'elementwise:64x64', FORGED = 'linear 64 2';

/** Results of a device in which another variant than the usual one is clearly the fastest, though they say that yet another is used. @param {import('/dist/index.mjs').Gpu} gpu */
async function forged(gpu) {
  const {choices: [choice], ...rest} = await gpu.tuning.run({work: [WORK], rounds: 1});
  check(choice.timings.some(({variant}) => variant === FORGED), `no ${FORGED} among ${JSON.stringify(choice)}`);
  const timings = choice.timings.map(({variant}) => ({variant, first_ns: 1000, ns: Array(8).fill(variant === FORGED ? 100 : 1000), wrong: false}));
  return {...rest, choices: [{...choice, best: choice.usual, timings}]};
}

/** The kernel that computes what was timed. @param {import('/dist/index.mjs').Gpu} gpu */
async function kernelOf(gpu) {
  const a = gpu.ones(64, 64), b = gpu.ones(64, 64), {kernels} = await a.mul(0.5).add(b).explain();
  a.close();
  b.close();
  return kernels[0].kernel;
}

const uses = async (gpu) => (await kernelOf(gpu)).endsWith(' 64 2');

/** @param {import('/dist/index.mjs').Gpu} gpu */
async function right(gpu) {
  const a = gpu.ones(64, 64), values = await a.mul(0.5).add(a).read();
  a.close();
  same(values, Array(values.length).fill(1.5), 'the result');
}

/** What is warned of while a function runs. */
async function warnings(run) {
  const {warn} = console, list = [];
  console.warn = (...text) => { list.push(text.join(' ')); };
  try {
    await run();
  } finally {
    console.warn = warn;
  }
  return list;
}

/** A device that has looked up what earlier pages know. */
async function opened(options) {
  const gpu = await init(options);
  await gpu.tuning.export();
  return gpu;
}

export const tests = {
  results: onBoth(async (gpu) => {
    check(String(Object.prototype.toString.call(gpu.tuning)) !== '' && gpu.tuning === gpu.tuning, 'one object');
    const seen = [], before = await gpu.tuning.export();
    check(before.choices.length === 0 && before.adapter.driver === gpu.info.driver, JSON.stringify(before));
    const work = ['grid:8x8', 'product:5x6x7:nt', WORK], running = gpu.tuning.run({work, rounds: 1, onProgress: (...x) => seen.push(x)});
    work.length = 1; // it has what it was given
    const results = await running;
    check(results.choices.length === 3 && results.choices.every(({timings}) => timings.length > 1), JSON.stringify(results.choices));
    check(seen.map(([choice, done, all]) => `${choice?.shape} ${done}/${all}`).join() === `grid:8x8 1/3,product:5x6x7:nt 2/3,${WORK} 3/3`, JSON.stringify(seen));
    same([(await gpu.tuning.export()).choices.length], [3], 'what is known');
    const twice = await gpu.tuning.run({work: ['grid:7x8'], rounds: 1});
    check(twice.choices.length === 3, 'of the same class');
    await gpu.tuning.clear();
    check((await gpu.tuning.export()).choices.length === 0 && !await uses(gpu), 'nothing is known');
    await gpu.tuning.import(await forged(gpu));
    check(await uses(gpu), `${await kernelOf(gpu)} after an import`);
    await right(gpu);
    const known = await gpu.tuning.export();
    check(known.choices[0].best === FORGED, `${known.choices[0].best} is said to be used`);
    await gpu.tuning.import({...known, off: true});
    check(!await uses(gpu), 'used though they are off');
    const changed = structuredClone(known), importing = gpu.tuning.import(changed);
    changed.choices.length = 0;
    await importing;
    check(await uses(gpu), 'what was imported is read at once');
    await Promise.all([gpu.tuning.clear(), gpu.tuning.import(known), gpu.tuning.run({work: ['grid:8x8'], rounds: 1})]);
    check((await gpu.tuning.export()).choices.length === 2 && await uses(gpu), 'one after the other');
    await gpu.tuning.clear();
  }),

  mistakes: onBoth(async (gpu) => {
    const known = await gpu.tuning.export(), {tuning} = gpu, cyclic = {};
    cyclic.cyclic = cyclic;
    await tuning.import({...known, choices: []});
    for (const options of [5, [], {Work: []}, {work: 'grid:8x8'}, {work: [5]}, {work: ['grid:8x8', 'grid']}, {work: ['x:1x1']}, {rounds: -1}, {rounds: 1.5}, {rounds: 101}, {onProgress: 5}, {signal: {}}]) {
      await fails('ErrInvalid', `run(${JSON.stringify(options)})`, () => tuning.run({rounds: 1, ...options}.constructor === Object && typeof options === 'object' && !Array.isArray(options) ? {rounds: 1, ...options} : options));
    }
    for (const results of [undefined, null, 5, '', [], {}, {version: 0}, cyclic, 1n, {...known, version: 'x'}, {...known, choices: [{}]}, {...known, choices: null}]) await fails('ErrInvalid', `import ${typeof results}`, () => tuning.import(results));
    for (const foreign of [{version: 2}, {kernels: '0'}, {adapter: {...known.adapter, name: 'other'}}]) await fails('ErrUnsupported', JSON.stringify(foreign), () => tuning.import({...known, ...foreign}));
    await fails('ErrAborted', 'an aborted signal', () => tuning.run({signal: AbortSignal.abort()}));
    const abort = new AbortController();
    await fails('ErrAborted', 'a run that is given up', () => tuning.run({work: ['grid:8x8', 'grid:8x8'], rounds: 1, signal: abort.signal, onProgress: () => abort.abort()}));
    const mine = new Error('mine');
    await tuning.run({work: ['grid:8x8'], rounds: 1, onProgress: () => { throw mine; }}).then(() => check(false, 'it goes on'), (error) => check(error === mine, String(error)));
    check((await tuning.export()).choices.length === 0, 'nothing is known of what failed');
    for (const wrong of ['off', 1, null]) await fails('ErrInvalid', `init({tuning: ${wrong}})`, () => init({tuning: wrong}));
    await right(gpu);
    const closed = await init({device: gpu.info.driver === 'simd' ? 'simd' : 'webgpu'});
    closed.close();
    for (const call of ['run', 'export', 'import', 'clear']) await fails('ErrClosed', `${call} of a closed device`, () => closed.tuning[call]({}));
  }),
};

// What pages do, one after the other.

/** Times, and keeps a result. */
export async function first(options) {
  const gpu = await init(options);
  await gpu.tuning.import(await forged(gpu));
  check(await uses(gpu), 'not used at once');
  gpu.close();
}

/** Computes by what the page before has kept, without asking for it. */
export async function later(options) {
  const said = await warnings(async () => {
    const gpu = await init(options);
    await right(gpu);
    for (const end = Date.now() + 60000; !await uses(gpu);) {
      check(Date.now() < end, 'not used in a minute');
      await new Promise((done) => setTimeout(done, 20));
    }
    await right(gpu);
    gpu.close();
  });
  check(said.length === 0, said.join());
}

/** Ignores what is kept. */
export async function off(options) {
  const gpu = await opened({...options, tuning: false});
  check(!await uses(gpu), 'used though it is off');
  check((await gpu.tuning.export()).choices.length === 1, 'it is known all the same');
  gpu.close();
}

/** The calls of WebGPU, of the program's rest and of the database until the first product is there. */
export async function firstCalls(options) {
  const calls = [], note = (object, name) => {
    const call = object[name];
    object[name] = function (...args) {
      if (name !== 'submit' || args[0].length > 0) calls.push(name); // one of nothing only makes the browser look, if work takes long
      return call.apply(this, args);
    };
  };
  for (const name of ['createBuffer', 'createBindGroup', 'createShaderModule', 'createComputePipeline', 'createComputePipelineAsync', 'createCommandEncoder']) note(GPUDevice.prototype, name);
  for (const name of ['submit', 'writeBuffer']) note(GPUQueue.prototype, name);
  for (const name of ['databases', 'open']) note(IDBFactory.prototype, name);
  note(GPUComputePassEncoder.prototype, 'dispatchWorkgroups');
  const {instantiate} = WebAssembly;
  WebAssembly.instantiate = (module, imports) => {
    if (imports.sublet_rest) note(imports.sublet_rest, 'want');
    return instantiate(module, imports);
  };
  const gpu = await init(options), ones = new Float32Array(12).fill(1), a = gpu.matrix(3, 4, ones), b = gpu.matrix(4, 3, ones);
  same(await a.matmul(b).read(), Array(9).fill(4), 'the first product');
  const list = calls.join(' ');
  gpu.close();
  return list;
}

/** Replaces what is kept, of the first key. */
function replace(change) {
  return new Promise((done, failed) => {
    const request = indexedDB.open('sublet-tuning', 1);
    request.onerror = failed;
    request.onsuccess = () => {
      const db = request.result, store = db.transaction('results', 'readwrite').objectStore('results'), cursor = store.openCursor();
      cursor.onsuccess = () => {
        const old = cursor.result.value;
        cursor.result.update(change(old)).onsuccess = () => { db.close(); done(old); };
      };
    };
  });
}

/** What is kept is broken, foreign or stale. */
export async function broken(options) {
  let good = '';
  const edited = (edit) => (text) => JSON.stringify(edit(JSON.parse(text)));
  for (const [name, change] of Object.entries({
    'no JSON': () => '\u0000{', cut: (text) => text.slice(0, text.length / 2), empty: () => '', 'another type': () => 5, 'an object': () => ({choices: []}), 'nothing': () => null,
    'of another adapter': edited((x) => ({...x, adapter: {...x.adapter, name: 'other'}})), 'of other kernels': edited((x) => ({...x, kernels: '0'})),
    'of a later format': edited((x) => ({...x, version: 2})), 'of no family': edited((x) => ({...x, choices: [{...x.choices[0], family: 'x'}]})),
    'of impossible times': edited((x) => ({...x, choices: [{...x.choices[0], timings: [{variant: 'x', first_ns: 1, ns: [-5], wrong: false}]}]})),
    'of an unknown variant': edited((x) => ({...x, choices: [{...x.choices[0], timings: x.choices[0].timings.map((t) => t.variant.includes('linear 64 2') ? {...t, variant: 'none'} : t)}]})),
  })) {
    const old = await replace(change), known = name === 'of an unknown variant';
    good ||= old;
    const said = await warnings(async () => {
      const gpu = await opened(options);
      check(!await uses(gpu), `used though it is ${name}`);
      await right(gpu);
      check(known || (await gpu.tuning.export()).choices.length === 0, `${name}: known`);
      gpu.close();
    });
    check(known ? said.length === 0 : said.length === 1 && said[0].startsWith('sublet: timings of kernels ignored: '), `${name}: warned ${JSON.stringify(said)}`);
    await replace(() => good);
  }
}

/** A page that may not use the database. */
export async function blocked(options) {
  IDBFactory.prototype.databases = () => Promise.reject(new DOMException('no', 'SecurityError'));
  IDBFactory.prototype.open = () => { throw new DOMException('no', 'SecurityError'); };
  const said = await warnings(async () => {
    const gpu = await opened(options);
    check(!await uses(gpu), 'it has found something');
    await gpu.tuning.import(await forged(gpu));
    check(await uses(gpu) && (await gpu.tuning.export()).choices.length === 1, 'not used');
    await right(gpu);
    gpu.close();
    const next = await opened(options);
    check(!await uses(next), 'it has found something');
    next.close();
  });
  check(said.length > 0 && said.every((text) => text.startsWith('sublet: timings of kernels are not kept for other pages: ')), said.join('; '));
}

/** Forgets what is kept. */
export async function forget(options) {
  const gpu = await opened(options);
  check(await uses(gpu), 'there is nothing');
  await gpu.tuning.clear();
  gpu.close();
  const next = await opened(options);
  check(!await uses(next) && (await next.tuning.export()).choices.length === 0, 'it is still there');
  next.close();
}

/** Calls a function of these, and returns why it has failed, or what it returns. */
export const run = (name, options) => ({first, later, off, firstCalls, broken, blocked, forget})[name](options)
  .then((value) => value ?? '', (error) => `failed: ${error instanceof SubletError ? `${error.code} ` : ''}${error?.stack ?? error}`);
