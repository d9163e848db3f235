// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Crunch} from '../src/crunch.mjs';
import {Cruncher} from '../src/cruncher.mjs';
import {Command} from '../src/protocol.mjs';
import {FakeProgram, turn} from './fake.mjs';

/** A connection to a program that notes what it is asked. Calls are answered; what else it says is up to the test. */
function fake() {
  const program = new FakeProgram(), crunch = program.connect(Crunch), post = program.post;
  program.post = (words) => {
    const unfinished = post(words);
    const [{command, words: [ticket]}] = program.commands().slice(-1);
    if ([Command.Array, Command.Task, Command.Get, Command.Set, Command.Dirty].includes(command)) crunch.settle(ticket, command === Command.Get ? 1 : undefined);
    return unfinished;
  };
  /** What was sent since the last time: command and words, after the ticket. */
  const sent = () => {
    const list = program.commands().map(({command, words: [ticket, ...words]}) => ({command, ticket, words}));
    program.messages.length = 0;
    return list;
  };
  const number = crunch.handles.take(), cr = new Cruncher(crunch, number, ['f', 'g'], [{limits: {}}]);
  const object = (at) => crunch.takeObject(at);
  return {program, crunch, cr, number, sent, object, settle: (...outcome) => crunch.settle(...outcome), end: program.end};
}

const rejects = (code, promise) => assert.rejects(promise, {name: 'SubletError', code});
const throws = (code, run) => assert.throws(run, {name: 'SubletError', code});

test('what an array is told', () => {
  const {cr, sent, object} = fake(), memory = new Uint16Array(new ArrayBuffer(20), 4, 6);
  const a = cr.array('a', memory, {writeOnly: true, read: false, halo: 2, mode: 'atomic', struct: undefined, tracked: true});
  const [{command, words: [handle, name, type, bytes, size, ...properties]}] = sent(), view = object(bytes);
  assert.deepEqual([command, handle, object(name), type, size], [Command.Array, 2, 'a', 6, 12]);
  assert.deepEqual(properties, [[0, 0], [5, 1], [8, 2], [9, 2], [11, 1]].flatMap(([at, value]) => [at, value, 0]));
  assert.deepEqual([view, view.buffer === memory.buffer], [new Uint8Array(memory.buffer, 4, 12), true]);
  assert.deepEqual([a.data, a.length, a.dtype, a.tracked, a.mode, a.halo], [memory, 6, 'uint16', true, 'packed', 1]);
  sent();
  const kinds = [
    [5, {}, 'float32', Float32Array], [5, {dtype: 'int8'}, 'int8', Int8Array], [new ArrayBuffer(8), {}, 'bytes', Uint8Array], [new DataView(new ArrayBuffer(8), 4), {}, 'bytes', Uint8Array],
    [new ArrayBuffer(8), {dtype: 'float32'}, 'float32', Float32Array], [new Uint8Array(8), {dtype: 'uint32'}, 'uint32', Uint32Array], [new Float32Array(2), {struct: 'S'}, 'bytes', Uint8Array],
    [new Uint8ClampedArray(4), {}, 'uint8', Uint8ClampedArray], [new Uint8Array(4), {struct: 'S'}, 'bytes', Uint8Array],
  ];
  for (const [source, options, dtype, Array] of kinds) {
    const x = cr.array('x', source, options);
    assert.deepEqual([x.dtype, x.data.constructor], [dtype, Array]);
    assert.equal(sent()[0].words[4], x.data.byteLength);
    if (typeof source !== 'number') assert.equal(x.data.buffer, source.buffer ?? source);
  }
  const detached = new Float32Array(1);
  structuredClone(detached.buffer, {transfer: [detached.buffer]}); // has no text
  for (const dtype of ['float64', ['float32'], detached, Object.create(null), Symbol('float32'), 5]) throws('ErrInvalid', () => cr.array('x', 4, {dtype}));
});

test('what a call is told', async () => {
  const {cr, number, sent, object, settle} = fake(), a = cr.array('a', 4), s = cr.scalar('s', -1, 'int32');
  const [{words: [array]}] = sent();
  const call = cr.compute(-5, 'f g', {global: 2 ** 40 + 8, local: 4, offset: 2, inner: [3], strict: true, blobs: 2, repeat: 6, syncKernel: 'g', transferOnly: true}, s, a);
  const [{command, ticket, words}] = sent();
  assert.deepEqual([command, words[0], object(words[3]), object(words[15])], [Command.Compute, number, 'f g', 'g']);
  assert.deepEqual(words.slice(1, 3), [2 ** 32 - 5, 2 ** 32 - 1], 'a number of 64 bits');
  assert.deepEqual(words.slice(4, 15), [8, 256, 4, 0, 2, 0, 1, 2, 0, 6, 0]);
  assert.deepEqual(words.slice(16, 20), [1, 1, 3, 0], 'transferOnly and inner');
  assert.deepEqual([words[20], object(words[21]), ...words.slice(22)], [2, 's', 0xffffffff, 0, array]);
  settle(ticket);
  assert.equal(await call, undefined);
  const plain = cr.compute(0, 'f', {global: 1}), [other] = sent();
  assert.deepEqual([other.words[0], other.words.length, ...other.words.slice(4, 15)], [number, 18, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
  settle(other.ticket, undefined, 'ErrKernel', 'why');
  await rejects('ErrKernel', plain);
  for (const range of [undefined, 5, {}, {global: '1'}, {global: 1, local: 0.5}, {global: 1, inner: [1, 1, 1]}, {global: 1, signal: 5}]) await rejects('ErrInvalid', cr.compute(0, 'f', range));
  assert.deepEqual(sent(), [], 'what is wrong in itself gets nowhere');
});

test('what a task is told, and what its callback says', async () => {
  const {cr, crunch, sent, object, settle} = fake(), a = cr.array('a', 4), [{words: [array]}] = sent(), calls = [];
  const task = cr.task(3, 'f', {global: 4, serialBegin: true, broadcast: true, callback: async (error) => { calls.push(error?.code); if (error) throw new Error('mine'); }}, a.as('b'), a);
  const [{command, words}] = sent(), [handle, type, called, callback, ...order] = words, told = object(callback);
  assert.deepEqual([command, type, called, order.slice(0, 2)], [Command.Task, 16 + 64, 1, [3, 0]]);
  const [kind, name, of, ...rest] = order.slice(-5);
  assert.deepEqual([kind, object(name), of, rest], [4, 'b', array, [0, array]]);
  told(7);
  told(8, 'ErrShape', 'why');
  assert.deepEqual(calls, [], 'Go waits for it to return');
  await turn();
  assert.deepEqual(calls, [undefined, 'ErrShape']);
  assert.deepEqual(sent().map(({command, ticket, words: [thrown]}) => [command, ticket, object(thrown)]), [[Command.Called, 7, ''], [Command.Called, 8, 'mine']]);
  const computed = task.compute(cr), [call] = sent();
  assert.deepEqual([call.command, call.words[0]], [Command.TaskCompute, handle]);
  settle(call.ticket);
  await computed;
  assert.equal(calls.length, 3);
  crunch.close();
});

test('giving up', async () => {
  const {cr, sent, settle} = fake(), abort = new AbortController(), reason = new Error('mine');
  const call = cr.compute(1, 'f', {global: 1, signal: abort.signal}), [{ticket}] = sent();
  abort.abort(reason);
  assert.deepEqual(sent(), [{command: Command.Cancel, ticket, words: []}]);
  settle(ticket, undefined, 'ErrAborted', 'it was aborted');
  await assert.rejects(call, {code: 'ErrAborted', cause: reason});
  await rejects('ErrAborted', cr.compute(1, 'f', {global: 1, signal: abort.signal}));
  const done = new AbortController(), quick = cr.compute(1, 'f', {global: 1, signal: done.signal});
  settle(sent()[0].ticket);
  await quick;
  done.abort();
  assert.deepEqual(sent(), [], 'what is done cannot be given up');
});

test('a batch waits for its calls', async () => {
  const {cr, number, sent, object, settle} = fake();
  const order = [], batch = cr.batch((b) => {
    b.compute(1, 'f', {global: 1});
    b.compute(1, 'f', {}); // wrong
    b.compute(1, 'g', {global: 1});
    order.push('queued');
  }).catch((error) => order.push(error.code));
  const [{command, ticket: opening, words: [handle, of]}] = sent();
  assert.deepEqual([command, of], [Command.Batch, number]);
  settle(opening);
  await turn();
  const calls = sent();
  assert.deepEqual(calls.map((c) => [c.command, c.words[0], object(c.words[3])]), [[Command.BatchCompute, handle, 'f'], [Command.BatchCompute, handle, 'g']]);
  settle(calls[0].ticket);
  await turn();
  assert.deepEqual([order, sent()], [['queued'], []], 'a call is under way');
  settle(calls[1].ticket);
  await turn();
  const [end] = sent();
  assert.deepEqual([end.command, end.words], [Command.BatchEnd, [handle]]);
  settle(end.ticket);
  await batch;
  assert.deepEqual(order, ['queued', 'ErrInvalid']);
});

test('closing', async () => {
  const {cr, crunch, sent, settle} = fake();
  let released = 0;
  const list = Array.from({length: 3}, (_, i) => cr.array('a', i, {release: () => { released++; }}));
  const handles = sent().map(({words}) => words[0]);
  list[0].close();
  list[0].close();
  const [{command, ticket, words}, ...more] = sent();
  assert.deepEqual([command, words, more], [Command.CloseArray, [handles[0]], []]);
  await turn();
  assert.equal(released, 0, 'a call may use it');
  settle(ticket);
  await turn();
  assert.equal(released, 1);
  throws('ErrClosed', () => list[0].read);
  await rejects('ErrClosed', cr.compute(1, 'f', {global: 1}, list[0]));
  const waiting = cr.fetch(list[1]);
  list[2].close();
  sent();
  crunch.close();
  crunch.close();
  assert.deepEqual(sent().map((c) => c.command), [Command.End]);
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
