// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Answers} from '../src/answers.mjs';
import {Crunch} from '../src/crunch.mjs';
import {Cruncher} from '../src/cruncher.mjs';
import {turn} from './fake.mjs';

/** A program that notes what it is asked. Its answers are up to the test. */
function fake() {
  const answers = new Answers(), calls = [];
  let end, handle = 0;
  const ended = new Promise((resolve) => { end = resolve; });
  const functions = new Proxy({}, {
    get: (_, name) => (...args) => {
      calls.push([name, ...args]);
      return name === 'array' ? ++handle : name === 'get' ? true : null;
    },
  });
  const crunch = new Crunch({ended}, functions, answers), cr = new Cruncher(crunch, 9, ['f', 'g'], [{limits: {}}]);
  /** What was called since the last time. */
  const sent = () => calls.splice(0);
  return {crunch, cr, answers, sent, end};
}

const rejects = (code, promise) => assert.rejects(promise, {name: 'SubletError', code});
const throws = (code, run) => assert.throws(run, {name: 'SubletError', code});

test('what an array is told', () => {
  const {cr, sent} = fake(), memory = new Uint16Array(new ArrayBuffer(20), 4, 6);
  const a = cr.array('a', memory, {writeOnly: true, read: false, halo: 2, mode: 'atomic', tracked: true});
  const [[name, ...args]] = sent();
  assert.equal(name, 'array');
  assert.deepEqual(args, ['a', 'uint16', new Uint8Array(memory.buffer, 4, 12), ['read', false, 'writeOnly', true, 'halo', 2, 'mode', 'atomic', 'tracked', true]]);
  assert.equal(args[2].buffer, memory.buffer);
  assert.deepEqual([a.data, a.length, a.dtype, a.tracked], [memory, 6, 'uint16', true]);
  const kinds = [
    [5, {}, 'float32', Float32Array], [5, {dtype: 'int8'}, 'int8', Int8Array], [new ArrayBuffer(8), {}, 'bytes', Uint8Array], [new DataView(new ArrayBuffer(8), 4), {}, 'bytes', Uint8Array],
    [new ArrayBuffer(8), {dtype: 'float32'}, 'float32', Float32Array], [new Uint8Array(8), {dtype: 'uint32'}, 'uint32', Uint32Array], [new Float32Array(2), {struct: 'S'}, 'bytes', Uint8Array],
    [new Uint8ClampedArray(4), {}, 'uint8', Uint8ClampedArray], [new Uint8Array(4), {struct: 'S'}, 'bytes', Uint8Array],
  ];
  for (const [source, options, dtype, Array] of kinds) {
    const x = cr.array('x', source, options);
    assert.deepEqual([x.dtype, x.data.constructor], [dtype, Array]);
    assert.equal(sent()[0][3].byteLength, x.data.byteLength);
    if (typeof source !== 'number') assert.equal(x.data.buffer, source.buffer ?? source);
  }
});

test('what a call is told', async () => {
  const {cr, sent, answers} = fake(), a = cr.array('a', 4), s = cr.scalar('s', -1, 'int32');
  sent();
  const call = cr.compute(5, 'f g', {global: 8, local: 4, offset: 2, inner: [3], strict: true, blobs: 2, repeat: 6, syncKernel: 'g', transferOnly: true}, s, a);
  const [[name, ticket, ...args]] = sent();
  assert.equal(name, 'compute');
  assert.deepEqual(args, [9, 5, 'f g', [8, 4, 2, true, 2, 6, 'g', true, 3], ['s', 'int32', 0xffffffff, '', 1]]);
  answers.settle(ticket);
  assert.equal(await call, undefined);
  const plain = cr.compute(0, 'f', {global: 1}), [[, other, ...rest]] = sent();
  assert.deepEqual(rest, [9, 0, 'f', [1, 0, 0, false, 0, 0, '', false], []]);
  answers.settle(other, undefined, 'ErrKernel', 'why');
  await rejects('ErrKernel', plain);
  for (const range of [undefined, 5, {}, {global: '1'}, {global: 1, local: 0.5}, {global: 1, inner: [1, 1, 1]}, {global: 1, signal: 5}]) await rejects('ErrInvalid', cr.compute(0, 'f', range));
  assert.deepEqual(sent(), [], 'what is wrong in itself gets nowhere');
});

test('giving up', async () => {
  const {cr, sent, answers} = fake(), abort = new AbortController(), reason = new Error('mine');
  const call = cr.compute(1, 'f', {global: 1, signal: abort.signal}), [[, ticket]] = sent();
  abort.abort(reason);
  assert.deepEqual(sent(), [['cancel', ticket]]);
  answers.settle(ticket, undefined, 'ErrAborted', 'it was aborted');
  await assert.rejects(call, {code: 'ErrAborted', cause: reason});
  await rejects('ErrAborted', cr.compute(1, 'f', {global: 1, signal: abort.signal}));
  const done = new AbortController(), quick = cr.compute(1, 'f', {global: 1, signal: done.signal});
  answers.settle(sent()[0][1]);
  await quick;
  done.abort();
  assert.deepEqual(sent(), [], 'what is done cannot be given up');
});

test('a batch waits for its calls', async () => {
  const {cr, sent, answers} = fake();
  const order = [], batch = cr.batch((b) => {
    b.compute(1, 'f', {global: 1});
    b.compute(1, 'f', {}); // wrong
    b.compute(1, 'g', {global: 1});
    order.push('queued');
  }).catch((error) => order.push(error.code));
  answers.settle(sent()[0][1], 33);
  await turn();
  const calls = sent();
  assert.deepEqual(calls.map(([name, , handle, , kernels]) => [name, handle, kernels]), [['compute in batch', 33, 'f'], ['compute in batch', 33, 'g']]);
  answers.settle(calls[0][1]);
  await turn();
  assert.deepEqual([order, sent()], [['queued'], []], 'a call is under way');
  answers.settle(calls[1][1]);
  await turn();
  const [[name, ticket, handle]] = sent();
  assert.deepEqual([name, handle], ['end batch', 33]);
  answers.settle(ticket);
  await batch;
  assert.deepEqual(order, ['queued', 'ErrInvalid']);
});

test('closing', async () => {
  const {cr, crunch, sent, answers} = fake();
  let released = 0;
  const list = Array.from({length: 3}, (_, i) => cr.array('a', i, {release: () => { released++; }}));
  sent();
  list[0].close();
  list[0].close();
  const [[name, ticket, handle], ...more] = sent();
  assert.deepEqual([name, handle, more], ['closeArray', 1, []]);
  await turn();
  assert.equal(released, 0, 'a call may use it');
  answers.settle(ticket);
  await turn();
  assert.equal(released, 1);
  throws('ErrClosed', () => list[0].read);
  await rejects('ErrClosed', cr.compute(1, 'f', {global: 1}, list[0]));
  const waiting = cr.fetch(list[1]);
  list[2].close();
  sent();
  crunch.close();
  crunch.close();
  assert.deepEqual(sent(), [['end']]);
  await rejects('ErrClosed', waiting);
  await turn();
  assert.equal(released, 3, 'nothing uses memory any more');
  throws('ErrClosed', () => cr.last);
  cr.close();
  list[1].close();
  assert.deepEqual(sent(), []);
});

test('the end of the program', async () => {
  const {cr, end} = fake();
  const a = cr.array('a', 4), waiting = cr.compute(1, 'f', {global: 4}, a);
  end('as if by a trap');
  await rejects('exited', waiting);
  throws('exited', () => a.halo);
  throws('exited', () => cr.array('b', 4));
});
