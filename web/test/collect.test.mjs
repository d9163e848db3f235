// SPDX-License-Identifier: Apache-2.0

// What nobody closes: the collector finds it, and the package gives its memory back. In pages TestWebCollectsForgottenMatrices does this.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {setFlagsFromString} from 'node:v8';
import {runInNewContext} from 'node:vm';
import {init} from '../dist/index.mjs';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** Collects garbage until a condition holds. */
async function collects(condition) {
  for (let i = 0; i < 100; i++) {
    collect();
    await new Promise((done) => setTimeout(done, 10));
    if (condition()) return;
  }
  assert.fail('it is not collected');
}

test('a thousand matrices that nobody closes are collected', async (t) => {
  const gpu = await init({device: 'simd', threads: 1, debug: 'leaks'}), warnings = [];
  t.after(() => gpu.close());
  t.mock.method(console, 'warn', (text) => warnings.push(text));
  const forget = async () => {
    const kept = Array.from({length: 1000}, (_, i) => gpu.full(16, 16, i).add(1).eval());
    await gpu.sync();
    assert.ok(gpu.stats().liveBytes >= 1000 * 1024 && gpu.leaks().length >= kept.length);
  };
  await forget();
  await collects(() => (gpu.flush(), gpu.stats().liveBytes === 0));
  assert.equal(gpu.leaks().length, 0);
  assert.equal(warnings.length, 2000); // those that were filled, and the sums
  assert.match(warnings[0], /^sublet: collected without close\(\): matrix 16x16 float32, 1024 bytes, made\n.*forget/s);
  assert.deepEqual([...await gpu.full(1, 1, 2).read()], [2]);
});

test('a recording keeps what it uses until it is collected itself', async (t) => {
  const gpu = await init({device: 'simd', threads: 1, debug: 'leaks'}), warnings = [];
  t.after(() => gpu.close());
  t.mock.method(console, 'warn', (text) => warnings.push(/: (\w+)/.exec(text.split('close()')[1])[1]));
  const make = async () => {
    const x = gpu.full(8, 8, 1), step = await gpu.record(() => {
      const once = x.add(1).eval(), twice = once.add(x).eval();
      once.close();
      return twice;
    });
    x.memory.setValueFrom(new Float32Array(64).fill(2), 8, 8);
    return step;
  };
  let step = await make();
  for (let i = 0; i < 5; i++) {
    collect();
    await new Promise((done) => setTimeout(done, 10));
  }
  assert.deepEqual(warnings, []);
  assert.deepEqual([...await step.run().read()], Array(64).fill(5));
  step = null;
  await collects(() => (gpu.flush(), gpu.stats().liveBytes === 0));
  assert.equal(gpu.leaks().length, 0);
  assert.deepEqual(warnings.sort(), ['matrix', 'matrix', 'recording']);
});

test('tasks, pools and pipelines that nobody closes are collected, and not what they use', async (t) => {
  const gpu = await init({device: 'simd', threads: 1, debug: 'leaks'}), warnings = [], heard = [];
  t.after(() => gpu.close());
  t.mock.method(console, 'warn', (text) => warnings.push(/: (the \w+|array|\w+)/.exec(text.split('close()')[1])[1]));
  const cr = await gpu.cruncher('fn f(i: u32) { y[i] = x[i] + 1.0; }'), global = 4;
  const note = (n) => () => { heard.push(n); }; // which Go has until its own collector runs
  const make = async () => {
    const x = cr.array('x', new Float32Array(4)), y = cr.array('y', 4), stage = {steps: [{kernels: 'f', global}], inputs: [x], outputs: [y]};
    const pool = await cr.pool(), pipe = await cr.devicePipeline([stage]), several = await cr.pipeline([stage]);
    await pipe.feed();
    await several.push();
    pool.enqueue(...[1, 2, 3].map((n) => cr.task(1, 'f', {global, callback: note(n)}, cr.array('x', new Float32Array([n, 0, 0, 0])), y)));
    await pool.finish();
    return cr.task(1, 'f', {global}, cr.array('x', new Float32Array([7, 0, 0, 0])), cr.array('y', 4).as('y'));
  };
  let task = await make();
  await collects(() => (gpu.flush(), gpu.leaks().length === 4)); // the cruncher, the task, and its two arrays
  assert.deepEqual(heard, [1, 2, 3]);
  await task.compute(cr);
  task = null;
  await collects(() => (gpu.flush(), gpu.leaks().length === 1));
  assert.equal(warnings.length, 14);
  cr.close();
});

test('whoever waits for a graph that nobody has any more is told of the end', async () => {
  const gpu = await init({device: 'simd', threads: 1}), told = /** @type {string[]} */ ([]);
  let started = () => {};
  const running = new Promise((done) => { started = () => done(undefined); });
  const wait = async () => {
    const graph = await gpu.graph();
    graph.task('t', () => (started(), new Promise(() => {})), {inputs: ['x'], outputs: ['y']});
    const x = graph.input('t.x', {capacity: 1}), y = graph.output('t.y');
    graph.run();
    await x.push(1);
    await running;
    const calls = {pull: y.pull(), stop: graph.stop()};
    for (const [name, call] of Object.entries(calls)) call.catch((/** @type {any} */ {code}) => { told.push(`${name} ${code}`); });
  };
  await wait();
  for (let i = 0; i < 5; i++) {
    collect();
    await new Promise((done) => setTimeout(done, 10));
  }
  gpu.close();
  await collects(() => told.length === 2);
  assert.deepEqual(told.sort(), ['pull ErrClosed', 'stop ErrClosed']);
});

test('graphs leave nothing with their device', async (t) => {
  const gpu = await init({device: 'simd', threads: 1}), lost = t.mock.method(gpu.lost, 'then'), kept = await gpu.graph();
  let gone = 0;
  const registry = new FinalizationRegistry(() => gone++);
  for (let i = 0; i < 100; i++) registry.register(await gpu.graph(), undefined);
  assert.equal(lost.mock.callCount(), 1); // each reaction would stay as long as the device
  await collects(() => gone >= 99); // the engine may have the last one yet
  const pull = ((graph) => {
    graph.task('t', (/** @type {any} */ {x}) => x, {inputs: ['x'], outputs: ['y']});
    graph.input('t.x');
    return graph.output('t.y').pull();
  })(kept);
  gpu.close();
  await assert.rejects(pull, {code: 'ErrClosed'});
  assert.equal(kept.state, 'closed');
});

test('memory of the page is free once what lies in it is closed', async (t) => {
  const gpu = await init({device: 'simd', threads: 1}), crunch = await gpu.cruncher('fn f(i: u32) { x[i] = 1.0; }');
  t.after(() => gpu.close());
  const users = {
    async wrapped(data) {
      const m = gpu.wrap(data, 1024, 1024);
      await m.sum().value();
      m.close();
    },
    async crunched(data) { crunch.array('x', data).close(); },
  };
  for (const use of Object.values(users)) {
    const first = [];
    for (let i = 0; i < 20 || first.filter((ref) => ref.deref()).length > 2; i++) { // Go looks after each 128 MiB; the engine may keep some of a loop
      assert.ok(i < 500, 'two gigabytes are kept');
      const data = new Float32Array(1 << 20);
      if (i < 20) first.push(new WeakRef(data.buffer));
      await use(data);
      await new Promise((done) => setTimeout(done));
      if (i % 20 === 19) collect();
    }
  }
});
