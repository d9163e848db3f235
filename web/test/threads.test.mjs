// SPDX-License-Identifier: Apache-2.0

// Threads of the CPU's device.

import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import threads from 'node:worker_threads';
import './dist.mjs';
import {ARGS, BUSY, EPOCH, LENGTH, MODULE, MOST, NEXT, RESULT, SCRATCH, TEXT, THREADS, TOTAL, WORDS} from '../src/crew-block.mjs';
import {Crew} from '../src/crew.mjs';
import {memorySharer, shareMemory} from '../src/shared.mjs';

const dist = new URL('../dist/', import.meta.url), {init} = await import(new URL('index.mjs', dist));

for (const [what, run] of Object.entries((await import('../../e2e/testdata/threads.mjs')).tests)) test(`threads: ${what}`, run);

const {Worker} = threads;

/** Runs while workers are another class. @param {any} Class @param {() => Promise<void>} run */
async function withWorkers(Class, run) {
  threads.Worker = Class;
  try {
    await run();
  } finally {
    threads.Worker = Worker;
  }
}

/** A product for which workers are worth it. @param {any} gpu */
async function product(gpu) {
  const a = gpu.ones(512, 512), c = await a.matmul(a).matmul(a).read();
  assert.ok(c.every((/** @type {number} */ x) => x === 512 * 512));
}

test('workers that cannot be started are done without', async () => {
  const classes = [
    class { constructor() { throw new Error('as if by a policy'); } },
    class extends Worker { constructor() { super(new URL('./nowhere.mjs', import.meta.url)); } },
  ];
  for (const Class of classes) {
    await withWorkers(Class, async () => {
      const gpu = await init({device: 'simd', threads: 3});
      await product(gpu);
      while (gpu.info.threads > 1) await new Promise((done) => setTimeout(done, 1));
      await product(gpu);
      gpu.close();
    });
  }
});

test('a closed device ends its workers', async () => {
  /** @type {Promise<unknown>[]} */
  const ends = [];
  class Counted extends Worker {
    /** @param {any[]} args */
    constructor(...args) {
      super(...args);
      ends.push(new Promise((done) => this.once('exit', done)));
    }
  }
  await withWorkers(Counted, async () => {
    const gpu = await init({device: 'simd', threads: 3});
    assert.equal(ends.length, 0, 'workers before there is work');
    await product(gpu);
    await product(gpu);
    assert.equal(ends.length, 2);
    gpu.close();
    await Promise.all(ends);
  });
});

test('an engine without room for a shared memory computes with one thread', async (t) => {
  const {instantiate} = WebAssembly;
  let failures = 0;
  t.after(() => { WebAssembly.instantiate = instantiate; });
  WebAssembly.instantiate = async (...args) => {
    const instance = await instantiate(...args);
    if (instance.exports.mem.buffer instanceof ArrayBuffer) return instance;
    failures++;
    throw new RangeError('as if for want of addresses');
  };
  const gpu = await init({device: 'simd', threads: 2});
  assert.deepEqual([failures, gpu.info.threads], [1, 1]);
  await product(gpu);
  gpu.close();
});

test('a module that is the user\'s computes with one thread', async () => {
  const module = await WebAssembly.compile(readFileSync(new URL('sublet-simd.wasm', dist)));
  const gpu = await init({device: 'simd', threads: 2, simdWasm: module});
  assert.equal(gpu.info.threads, 1);
  await product(gpu);
  gpu.close();
  for (const simdWasm of [readFileSync(new URL('sublet-simd.wasm', dist)), new Response(readFileSync(new URL('sublet-simd.wasm', dist)), {headers: {'content-type': 'application/wasm'}})]) {
    const other = await init({device: 'simd', threads: 2, simdWasm});
    assert.equal(other.info.threads, 2);
    await product(other);
    other.close();
  }
});

test('Node ends by itself whatever its workers do', () => {
  const program = `
    const {init} = await import(${JSON.stringify(new URL('index.mjs', dist).href)}), gpu = await init({device: 'simd', threads: 3}), a = gpu.ones(512, 512);
    for (let i = 0; i < 8; i++) await a.matmul(a).eval().sync();
    console.log(...(await a.matmul(a).sum().read()), gpu.info.threads);`;
  for (const end of ['', 'gpu.close()']) {
    const said = execFileSync(process.execPath, ['--input-type=module', '-e', program + end], {cwd: fileURLToPath(dist), encoding: 'utf8', timeout: 120_000});
    assert.equal(said, '134217728 3\n');
  }
});

// A kernel by hand: what it takes and returns is in words at its argument "args". It adds 1 to the word of each workgroup that it runs.
const KERNEL = (/** @type {number[]} */ ...code) => Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 9, 1, 96, 4, 127, 127, 127, 127, 1, 127,
  2, 18, 1, 3, 101, 110, 118, 6, 109, 101, 109, 111, 114, 121, 2, 3, 1, 128, 128, 4,
  3, 2, 1, 0, 7, 7, 1, 3, 114, 117, 110, 0, 0,
  10, code.length + 4, 1, code.length + 2, 0, ...code, 11,
);
const COUNTS = KERNEL(
  0x03, 0x40, // loop
  0x20, 0, 0x20, 2, 0x41, 4, 0x6c, 0x6a, 0x41, 1, 0xfe, 0x1e, 2, 0, 0x1a, // args[from]++
  0x20, 1, 0x41, 1, 0xfe, 0x1e, 2, 0, 0x1a, // scratch[0]++
  0x20, 2, 0x41, 1, 0x6a, 0x22, 2, 0x20, 3, 0x49, 0x0d, 0, 0x0b, // until ++from = to
  0x41, 0,
);
const RETURNS2 = KERNEL(0x41, 2), TRAPS = KERNEL(0x00), BROKEN = Uint8Array.of(1, 2, 3);

const BLOCK = 64, DATA = 4096, SCRATCHES = 60000, CODE = 62000;

/** A memory with a job for workers alone. @param {Uint8Array} kernel @param {number} total @param {number} number of the module */
function job(memory, kernel, total, number) {
  const words = new Uint32Array(memory.buffer, BLOCK, WORDS);
  new Uint8Array(memory.buffer, CODE, kernel.length).set(kernel);
  for (const [at, value] of [[NEXT, 0], [TOTAL, total], [MOST, 7], [THREADS, 3], [ARGS, DATA], [MODULE, number], [TEXT, CODE], [LENGTH, kernel.length], [RESULT, 0]]) words[at] = value;
  words[SCRATCH] = SCRATCHES;
  words[SCRATCH + 1] = SCRATCHES + 16;
  return words;
}

/** Waits for a condition, which is to come about. @param {() => boolean} condition */
async function until(condition) {
  while (!condition()) await new Promise((done) => setTimeout(done, 1));
}

test('workers run each workgroup once, and say what went wrong', async (t) => {
  const memory = new WebAssembly.Memory({initial: 2, maximum: 65536, shared: true}), size = {threads: 3}, crew = new Crew(memory, BLOCK, size);
  t.after(() => crew.end());
  const counts = new Uint32Array(memory.buffer, DATA, 10000), scratch = new Uint32Array(memory.buffer, SCRATCHES, 8);
  let number = 0;
  for (const total of [1, 2, 100, 10000, 10000]) {
    counts.fill(0);
    scratch.fill(0);
    const words = job(memory, COUNTS, total, total === 100 ? ++number : number);
    assert.ok(crew.open());
    await until(() => words[NEXT] >= total);
    await until(() => crew.close() === 0);
    assert.deepEqual([...counts.subarray(0, total)], Array(total).fill(1));
    assert.ok(counts.subarray(total).every((n) => n === 0));
    assert.deepEqual([scratch[0] + scratch[4], words[RESULT], words[BUSY], words[EPOCH] & 1], [total, 0, 0, 0]);
  }
  const words = job(memory, RETURNS2, 10000, ++number);
  crew.open();
  await until(() => words[RESULT] > 0);
  await until(() => crew.close() === 0);
  assert.equal(words[RESULT], 2);

  job(memory, TRAPS, 10000, ++number);
  crew.open();
  await until(() => words[RESULT] > 0);
  await until(() => crew.close() === 0);
  assert.equal(words[RESULT], 2 ** 32 - 1);
  assert.match(crew.trap(), /^RuntimeError: unreachable/);

  job(memory, BROKEN, 100, ++number); // what workers leave, the program does
  crew.open();
  assert.equal(crew.take(100), 0);
  await until(() => crew.close() === 0);
  job(memory, COUNTS, 100, 0);
  words[THREADS] = 1; // nobody is to come
  crew.open();
  assert.deepEqual([crew.take(60), crew.take(60), crew.close()], [0, 60, 0]);
  assert.equal(size.threads, 3);
});

test('a thread that does not leave is given up', async () => {
  const memory = new WebAssembly.Memory({initial: 2, maximum: 65536, shared: true}), size = {threads: 2}, crew = new Crew(memory, BLOCK, size);
  const words = job(memory, COUNTS, 1, 0), {now} = performance;
  crew.open();
  words[BUSY] = 1; // as if it had died
  try {
    assert.equal(crew.close(), 1);
    let time = 0, state = 1;
    performance.now = () => time += 100;
    while (state === 1) state = crew.close();
    assert.equal(state, 2);
    assert.ok(time > 30_000);
    assert.equal(size.threads, 1);
    assert.ok(!crew.open());
  } finally {
    performance.now = now;
  }
});

test('the memory of a module becomes shared', async () => {
  const memory = (/** @type {number[]} */ ...limits) => Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 0, 3, 1, 65, 66, 5, limits.length + 1, 1, ...limits, 7, 7, 1, 3, 109, 101, 109, 2, 0);
  const whole = async (/** @type {Uint8Array[]} */ pieces) => new Uint8Array(await new Blob(pieces).arrayBuffer());
  for (const bytes of [memory(0, 3), memory(1, 3, 9), memory(0, 128, 1)]) {
    const pieces = shareMemory(bytes), {instance} = await WebAssembly.instantiate(await whole(pieces));
    assert.ok(instance.exports.mem.buffer instanceof SharedArrayBuffer);
    assert.equal(instance.exports.mem.buffer.byteLength >>> 16, bytes.length === memory(0, 3).length ? 3 : bytes[18] === 1 ? 128 : 3);
    for (const step of [1, 4, 100]) {
      const chunks = new ReadableStream({
        start(controller) {
          for (let at = 0; at < bytes.length; at += step) controller.enqueue(bytes.slice(at, at + step));
          controller.close();
        },
      });
      const streamed = await new Response(chunks.pipeThrough(memorySharer())).arrayBuffer();
      assert.deepEqual(new Uint8Array(streamed), await whole(pieces));
    }
  }
  const none = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 0, 3, 1, 65, 66);
  assert.equal(shareMemory(none), null);
  const endless = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 0, 250, 255, 255, 255, 15, 65); // whose section would end before it begins
  assert.equal(shareMemory(endless), null);
  const stream = new Response(none).body.pipeThrough(memorySharer());
  assert.deepEqual(new Uint8Array(await new Response(stream).arrayBuffer()), none);
});
