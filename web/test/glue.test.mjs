// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import test from 'node:test';

await import('../../wasm/browser/glue.js');
const glue = Reflect.get(globalThis, Symbol.for('sublet.glue'));

test('who waits for long has the browser look whether the device is done', async () => {
  /** @type {unknown[][]} */
  const submitted = [];
  /** @type {(value?: unknown) => void} */
  let finish = () => {};
  const done = new Promise((resolve) => { finish = resolve; });
  const queue = {onSubmittedWorkDone: () => done, submit(/** @type {unknown[]} */ buffers) {
    submitted.push(buffers);
    finish();
  }};
  await glue.idle({queue});
  assert.deepEqual(submitted, [[]]);
});

test('nothing is submitted once the device is done', async () => {
  const queue = {onSubmittedWorkDone: async () => {}, submit() { assert.fail('submitted'); }};
  await glue.idle({queue});
  await new Promise((resolve) => { setTimeout(resolve, 20); });
});

test('after a long wait nothing is submitted, until one was short', async (t) => {
  let submitted = 0, work = Promise.resolve(), now = 0;
  t.mock.method(performance, 'now', () => now); // a busy machine may take long for what is short
  const queue = {onSubmittedWorkDone: () => work, submit() { submitted++; }};
  const waits = async (/** @type {number} */ ms) => {
    work = new Promise((resolve) => {
      setTimeout(() => {
        now += ms;
        resolve();
      }, ms);
    });
    const before = submitted;
    await glue.idle({queue});
    return submitted - before;
  };
  const some = async () => {
    const n = await waits(30);
    assert.ok(n >= 1 && n <= 8, `${n} submissions`);
  };
  await some();
  assert.equal(await waits(30), 0);
  work = Promise.resolve();
  await glue.idle({queue});
  await some();
});

test('several that wait share the submissions', async () => {
  let submitted = 0;
  const work = new Promise((resolve) => { setTimeout(resolve, 30); });
  const queue = {onSubmittedWorkDone: () => work, submit() { submitted++; }};
  await Promise.all([glue.idle({queue}), glue.idle({queue}), glue.idle({queue})]);
  assert.ok(submitted >= 1 && submitted <= 8, `${submitted} submissions`);
});

