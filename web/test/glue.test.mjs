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
