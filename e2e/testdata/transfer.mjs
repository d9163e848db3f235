// SPDX-License-Identifier: Apache-2.0

// Tests of matrices that two threads have one after the other, or both.

import {check, fails, onBoth, same, throws} from './testing.mjs';

/** Runs with a worker, and a function that sends it something and waits for the answer. */
async function withWorker(run) {
  const worker = new Worker('/tests/transfer-worker.mjs', {type: 'module'});
  const answer = () => new Promise((done, failed) => {
    worker.onmessage = ({data: {message, error}}) => error ? failed(new Error(error)) : done(message);
    worker.onerror = ({message}) => failed(new Error(message));
  });
  try {
    await answer();
    await run((message, transfer = []) => {
      worker.postMessage(message, transfer);
      return answer();
    });
  } finally {
    worker.terminate();
  }
}

/** Waits without holding up the page until a word of shared memory is something else. */
const changed = (words, was) => Atomics.waitAsync(words, 0, was).value;

const inPages = {
  thereAndBack: (gpu) => withWorker(async (send) => {
    const m = gpu.matrix(2, 2, [1, 2, 3, 4]), matrix = await m.detach();
    check(m.closed && matrix.shape.join() === '2,2' && matrix.dtype === 'float32' && matrix.data.byteLength === 16, 'a detached matrix');
    const back = await send({what: 'square', matrix}, [matrix.data]);
    check(matrix.data.byteLength === 0, 'its memory has gone to the worker');
    await throws('ErrShort', 'memory that has gone', () => gpu.attach(matrix));
    const squared = gpu.attach(back);
    same(await squared.read(), [7, 10, 15, 22], 'what the worker computed');
    squared.close();
  }),

  shared: (gpu) => withWorker(async (send) => {
    const data = new SharedArrayBuffer(4 * 6), turns = new Int32Array(new SharedArrayBuffer(4)), matrix = {data, shape: [2, 3], dtype: 'float32'};
    const elements = new Float32Array(data).fill(1), m = gpu.attach(matrix), done = send({what: 'share', matrix, turns});
    check(m.external, 'it is the same memory');
    for (let turn = 0; turn < 4; turn += 2) {
      await m.touch().assign(m.add(1)).sync();
      Atomics.store(turns, 0, turn + 1);
      Atomics.notify(turns, 0);
      if (Atomics.load(turns, 0) === turn + 1) await changed(turns, turn + 1);
      same(elements, Array(6).fill(turn === 0 ? 4 : 10), 'what both have written'); // (1 + 1) * 2, (4 + 1) * 2
    }
    check(await done === 'done', 'the worker is done');
    same(await m.touch().sum().read(), [60], 'computed with what the worker wrote');
    m.close();
  }),
};

export const tests = {
  detach: onBoth(async (gpu) => {
    const half = gpu.matrix(1, 3, [1, 2, 3], {dtype: 'float16', order: 'column', stride: 4}), complex = gpu.matrix(1, 2, Float32Array.of(1, 2, 3, 4), {dtype: 'complex64'});
    for (const m of [half, complex, gpu.matrix(2, 1, [true, false], {dtype: 'bool'}), gpu.zeros(0, 3), gpu.matrix(1, 2, [-1, 7], {dtype: 'int32'})]) {
      const want = await m.read(), back = gpu.attach(structuredClone(await m.detach()));
      check(back.dtype === m.dtype && back.shape.join() === m.shape.join(), `${back.shape} of ${back.dtype}`);
      same(await back.read(), want, m.dtype);
      await fails('ErrClosed', 'a matrix that is detached', () => m.read());
      await fails('ErrClosed', 'a matrix that is detached', () => m.detach());
      back.close();
    }
    const kept = gpu.matrix(1, 1, [5]);
    await fails('ErrAborted', 'given up', () => kept.detach({signal: AbortSignal.abort()}));
    same(await kept.read(), [5], 'it is still there');
    kept.close();
    const data = new ArrayBuffer(8);
    for (const [i, [code, message]] of [
      ['ErrInvalid', undefined], ['ErrInvalid', null], ['ErrInvalid', 5], ['ErrInvalid', {}], ['ErrInvalid', {data, shape: [1, 2]}], ['ErrInvalid', {data, shape: [1, 2], dtype: 'float64'}],
      ['ErrInvalid', {data: new Float32Array(2), shape: [1, 2], dtype: 'float32'}], ['ErrInvalid', {data, shape: [2], dtype: 'float32'}], ['ErrInvalid', {data, shape: [1, '2'], dtype: 'float32'}], ['ErrInvalid', {data, shape: [-1, -2], dtype: 'float32'}],
      ['ErrShort', {data, shape: [1, 3], dtype: 'float32'}], ['ErrShape', {data, shape: [1, 1], dtype: 'float32'}], ['ErrShort', {data, shape: [2 ** 40, 2 ** 40], dtype: 'float32'}], ['ErrInvalid', {get data() { throw 0; }}], ['ErrInvalid', {data, shape: [1, 2], dtype: 'float32', more: 1}],
    ].entries()) await throws(code, `message ${i}`, () => gpu.attach(message));
    const none = await (async () => gpu.attach(null))().catch((error) => error);
    check(none.message.includes('null; it is a message of detach()'), none.message);
  }),
};
// A worker of these modules is a page's.
if (globalThis.document) Object.assign(tests, Object.fromEntries(Object.entries(inPages).map(([name, run]) => [name, onBoth(run)])));
