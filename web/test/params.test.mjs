// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Matrix, Param, SubletError} from '../src/index.mjs';
import {Command, FileFlag} from '../src/protocol.mjs';
import {compose, parse, shapeOf, typeName, typeOfData} from '../src/tensor.mjs';
import {newGpu, turn} from './fake.mjs';

const F32 = 2 | (32 << 8) | (1 << 16), NONE = 0xffffffff;

const fails = (code, promise) => assert.rejects(promise, (error) => error instanceof SubletError && error.code === code);

/** The commands once the page has done all that it can. */
async function next({sent}) {
  for (let i = 0; i < 20; i++) await turn();
  return sent();
}

/** What Go reports of tensors: their description with offsets and sizes. */
function reported(...list) {
  const parts = list.map((tensor) => {
    const head = compose('', [{type: F32, ...tensor}]), tail = new BigInt64Array([BigInt(tensor.offset ?? 0), BigInt(tensor.nbytes ?? 0)]);
    return [...head, ...new Uint8Array(tail.buffer)];
  });
  return Uint8Array.from(parts.flat());
}

test('names of any bytes come back', () => {
  const encoded = (name) => [...compose('test', [{name, type: 0, shape: []}])].slice(4, -5);
  for (const [bytes, name] of [
    [[], ''], [[97, 0, 98], 'a\0b'], [[0xc3, 0xa9], '\u00e9'], [[0xf0, 0x9f, 0x98, 0x80], '\ud83d\ude00'], [[0xef, 0xbb, 0xbf, 97], '\ufeffa'],
    [[0xff], '\udcff'], [[0xc3], '\udcc3'], [[0xed, 0xa0, 0x80], '\udced\udca0\udc80'], [[0xc3, 0xa9, 0x80, 0xf0, 0x9f, 0x98], '\u00e9\udc80\udcf0\udc9f\udc98'],
    [[0xf5, 0x80, 0x80, 0x80, 97], '\udcf5\udc80\udc80\udc80a'], [[0xe0, 0x80], '\udce0\udc80'],
  ]) {
    const text = Uint8Array.from([bytes.length, 0, 0, 0, ...bytes, 0, 0, 0, 0, 0, ...Array(16).fill(0)]);
    assert.equal(parse(text)[0].name, name);
    assert.deepEqual(encoded(name), bytes);
  }
  for (const name of ['\ud800', 'a\udbff', '\udc00', '\udd00x', '\udcff\ud83d']) assert.throws(() => encoded(name), {code: 'ErrInvalid'});
});

test('tensors are described as Go does', () => {
  const list = [{name: 'a', type: F32, shape: [2n, 3n]}, {name: 'bb', type: 99 | (8 << 8) | (1 << 16), shape: []}, {name: '', type: F32, shape: [0n, 2n ** 62n + 1n]}];
  const bytes = reported({...list[0], offset: 2 ** 40, nbytes: 24}, list[1], list[2]);
  assert.deepEqual(parse(bytes), [{...list[0], offset: 2 ** 40, nbytes: 24}, {...list[1], offset: 0, nbytes: 0}, {...list[2], offset: 0, nbytes: 0}]);
  assert.deepEqual([...compose('', list.slice(0, 1))], [1, 0, 0, 0, 97, 2, 32, 1, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual(shapeOf('', [2, 0]), [2n, 0n]);
  for (const [code, shape] of [['ErrInvalid', 5], ['ErrInvalid', undefined], ['ErrInvalid', [1.5]], ['ErrInvalid', ['1']], ['ErrInvalid', Array(33).fill(1)], ['ErrInvalid', [2 ** 60]], ['ErrSize', [-1]], ['ErrInvalid', Array(1)]]) {
    assert.throws(() => shapeOf('', shape), {code});
  }
});

test('element types of data', () => {
  for (const [data, said, name] of [
    [new Float32Array(1), undefined, 'float32'], [new Float64Array(1), undefined, 'float64'], [new Uint16Array(1), undefined, 'uint16'], [new Uint16Array(1), 'float16', 'float16'],
    [new Uint16Array(1), 'bfloat16', 'bfloat16'], [new BigInt64Array(1), undefined, 'int64'], [new BigUint64Array(1), 'uint64', 'uint64'], [new Uint8ClampedArray(1), undefined, 'uint8'],
    [new Uint8Array(1), 'bool', 'bool'], [new Uint8Array(1), 'uint1', 'uint1'], [new ArrayBuffer(1), 'float8_e4m3b11fnuz', 'float8_e4m3b11fnuz'], [new DataView(new ArrayBuffer(1)), 'complex64', 'complex64'],
    [new Uint8Array(1), 'code99_8', 'code99_8'], [new Uint8Array(1), 'code6_16', 'code6_16'],
  ]) assert.equal(typeName(typeOfData('', data, said)), name);
  for (const [code, data, said] of [
    ['ErrInvalid', new ArrayBuffer(1)], ['ErrInvalid', new Float32Array(1), 'int32'], ['ErrInvalid', new Uint16Array(1), 'int16'], ['ErrType', new Uint8Array(1), 'floaty'],
    ['ErrType', new Uint8Array(1), 'float032'], ['ErrType', new Uint8Array(1), 'float999'], ['ErrType', new Uint8Array(1), 'float'], ['ErrType', new Uint8Array(1), ''],
    ['ErrType', new Uint8Array(1), 5], ['ErrType', new Uint8Array(1), 'code1_8'], ['ErrType', new Uint8Array(1), 'float32x4'], ['ErrType', new Uint8Array(1), 'bool8'],
  ]) assert.throws(() => typeOfData('', data, said), {code});
});

test('a stream is passed on piece by piece, when Go wants it', async () => {
  const rig = newGpu(), {session, gpu} = rig, progress = [];
  let pulled = 0, returned = 0;
  const source = {
    [Symbol.asyncIterator]: () => ({
      next: async () => ({done: ++pulled > 5, value: Uint8Array.from(Array(pulled - 1).fill(pulled))}),
      return: async () => { returned++; return {done: true}; },
    }),
  };
  const loading = gpu.loadParams(source, {strict: true, lastWins: true, memoryLimit: 2 ** 33 + 5, onProgress: (p) => progress.push(p)});
  const [load, first] = await next(rig);
  assert.equal(load.command, Command.Load);
  const [ticket, handle, ...words] = load.words;
  assert.deepEqual(words, [FileFlag.Strict | FileFlag.LastWins, 5, 2, NONE, NONE]);
  // The first piece is empty and no end.
  assert.deepEqual([first.command, first.words[1], first.words[3]], [Command.Pass, handle, 1]);
  assert.deepEqual([...session.takeObject(first.words[2])], [2]);
  assert.deepEqual([pulled, await next(rig)], [2, []], 'nothing more before Go has used it');
  session.settle(first.words[0], 77);
  const [second] = await next(rig);
  assert.deepEqual([...session.takeObject(second.words[2])], [3, 3]);
  assert.deepEqual(progress, [{loaded: 1, total: undefined}]);
  session.settle(ticket, reported({name: 'x', shape: [2n, 3n], offset: 9, nbytes: 24}, {name: 'y', shape: [], nbytes: 4}));
  session.settle(second.words[0], 0);
  const [take, close] = await next(rig);
  assert.deepEqual([take.command, take.words[1], take.words.length, close], [Command.Take, handle, 4, undefined]);
  assert.deepEqual([pulled, returned], [3, 1]);
  session.settle(take.words[0]);
  const params = await loading;
  assert.deepEqual((await next(rig)).map((c) => [c.command, c.words[1]]), [[Command.Close, handle]]);
  assert.deepEqual([params.size, params.names, [...params].map(([name]) => name), params.has('x'), params.has('z'), params.get('z')], [2, ['x', 'y'], ['x', 'y'], true, false, undefined]);
  const x = params.get('x');
  assert.ok(x instanceof Param && Object.isFrozen(x.shape));
  assert.deepEqual([x.name, x.dtype, x.shape, x.nbytes, x.closed], ['x', 'float32', [2, 3], 24, false]);

  const reading = x.read();
  const [read] = await next(rig);
  assert.deepEqual([read.command, read.words[1], read.words[3]], [Command.ArrayRead, take.words[2], 24]);
  new Float32Array(session.takeObject(read.words[2]).buffer).fill(7);
  session.settle(read.words[0]);
  assert.deepEqual([...await reading], Array(6).fill(7));
  const m = x.matrix();
  assert.ok(m instanceof Matrix);
  assert.deepEqual((await next(rig)).map((c) => [c.command, ...c.words.slice(1)]), [[Command.ArrayMatrix, take.words[2], 0, 2, 3]]);
  assert.throws(() => params.get('y').matrix(), {code: 'ErrShape'});
  const t = params.get('y').tensor();
  assert.deepEqual(t.shape, []);
  assert.deepEqual((await next(rig)).map((c) => [c.command, ...c.words.slice(1)]), [[Command.ArrayMatrix, take.words[3], 0, 1, 1]]);
  params.close();
  params.close();
  assert.deepEqual((await next(rig)).map((c) => [c.command, c.words[1]]), [[Command.Close, take.words[2]], [Command.Close, take.words[3]]]);
  await fails('ErrClosed', x.read());
  assert.throws(() => x.matrix(), {code: 'ErrClosed'});
  assert.throws(() => x.tensor(), {code: 'ErrClosed'});
});

test('of a Blob Go says what it wants', async () => {
  const rig = newGpu(), {session, gpu} = rig;
  const blob = new Blob([Uint8Array.from({length: 100}, (_, i) => i), new Uint8Array(1 << 20)]), size = 100 + (1 << 20);
  const scanning = gpu.scanParams(Promise.resolve(blob));
  const [load, first] = await next(rig);
  assert.deepEqual(load.words.slice(2), [FileFlag.Scan, NONE, NONE, size, 0]);
  assert.equal(first.words[3], 16384);
  session.settle(first.words[0], 70);
  const [second] = await next(rig);
  assert.deepEqual([...session.takeObject(second.words[2]).subarray(0, 3)], [70, 71, 72]);
  session.settle(second.words[0], size);
  const [last] = await next(rig);
  assert.equal(last.words[3], 0);
  session.settle(load.words[0], reported({name: 'x', shape: [3n], offset: 50, nbytes: 12}));
  session.settle(last.words[0], 0);
  assert.deepEqual(await scanning, [{name: 'x', dtype: 'float32', shape: [3], offset: 50, nbytes: 12}]);
  assert.deepEqual((await next(rig)).map((c) => c.command), [Command.Close]);
});

test('errors say where', async () => {
  const rig = newGpu(), {session, gpu} = rig;
  const loading = gpu.loadParams(new Uint8Array(10));
  const [load, first] = await next(rig);
  session.settle(load.words[0], undefined, 'ErrTruncated', 'params: byte 7: the file ends early', 7);
  session.settle(first.words[0], 0);
  await assert.rejects(loading, {code: 'ErrTruncated', offset: 7, message: 'params: byte 7: the file ends early'});
  assert.deepEqual((await next(rig)).map((c) => c.command), [Command.Close]);
});

test('what is given up is over when Go says so', async () => {
  const rig = newGpu(), {session, gpu} = rig, control = new AbortController(), reason = new Error('enough');
  let returned = 0, ended = false;
  const source = {[Symbol.asyncIterator]: () => ({next: () => new Promise(() => {}), return: async () => { returned++; }})};
  const loading = gpu.loadParams(source, {signal: control.signal});
  loading.catch(() => { ended = true; });
  const [load] = await next(rig);
  control.abort(reason);
  control.abort();
  assert.deepEqual((await next(rig)).map((c) => [c.command, c.words[1]]), [[Command.Close, load.words[1]]]);
  assert.deepEqual([ended, returned], [false, 0]);
  session.settle(load.words[0], undefined, 'ErrClosed', 'given up');
  await assert.rejects(loading, {code: 'ErrAborted', cause: reason});
  await next(rig);
  assert.equal(returned, 1);
  await fails('ErrAborted', gpu.loadParams(source, {signal: control.signal}));
  await fails('ErrAborted', gpu.saveParams([], {signal: control.signal}));
  assert.deepEqual(await next(rig), []);
});

test('sources that fail', async () => {
  const rig = newGpu(), {session, gpu} = rig, mine = new Error('mine');
  const loading = gpu.loadParams((async function* () { throw mine; })());
  const [load, close] = await next(rig);
  assert.equal(close.command, Command.Close);
  session.settle(load.words[0], undefined, 'ErrClosed', 'given up');
  await assert.rejects(loading, {code: 'ErrStream', cause: mine});
  await assert.rejects(gpu.loadParams(Promise.reject(mine)), {code: 'ErrStream', cause: mine});
  await fails('ErrStream', gpu.loadParams(new Response('', {status: 404})));
  for (const source of [5, undefined, null, 'text', {}, [], {get [Symbol.asyncIterator]() { throw mine; }}]) await fails('ErrInvalid', gpu.loadParams(source));
  for (const options of [5, {strict: 1}, {lastWins: 'x'}, {memoryLimit: -1}, {memoryLimit: NaN}, {signal: {}}, {onProgress: {}}, {get strict() { throw mine; }}]) {
    await fails('ErrInvalid', gpu.loadParams(new Uint8Array(1), options));
  }
  assert.deepEqual(await next(rig), []);
  gpu.close();
  await fails('ErrClosed', gpu.loadParams(new Uint8Array(1)));
  await fails('ErrClosed', gpu.saveParams([]));
});

test('what is saved', async () => {
  const rig = newGpu(), {session, gpu} = rig;
  const m = gpu.zeros(2, 3), byColumns = gpu.zeros(2, 3, {order: 'column'}), data = Int16Array.of(1, 2, 3, 4);
  await next(rig);
  const saving = gpu.saveParams(new Map([['m', m], ['t', byColumns], ['d', {data, shape: [2, 2]}]]), {type: 'stream', lastWins: true});
  const [copied, save, ...others] = await next(rig);
  assert.deepEqual([copied.command, save.command], [Command.Eval, Command.Save]);
  const [ticket, handle, flags, text, size, ...words] = save.words;
  const want = compose('', [{name: 'm', type: F32, shape: [2n, 3n]}, {name: 't', type: F32, shape: [2n, 3n]}, {name: 'd', type: 16 << 8 | 1 << 16, shape: [2n, 2n]}]);
  assert.deepEqual([flags, session.takeObject(text), size], [FileFlag.LastWins, want, want.length]);
  assert.deepEqual([words.length, words[2], words[3], words[4], words[5], words[6], words[8]], [9, 24, copied.words[0], 0, 24, 0, 8]);
  assert.deepEqual([...session.takeObject(words[7])], [1, 0, 2, 0, 3, 0, 4, 0]);
  const pass = others.find((c) => c.command === Command.Pass);
  assert.deepEqual([pass.words[1], pass.words[3]], [handle, 1 << 20]);
  assert.deepEqual(others.filter((c) => c.command === Command.Close).map((c) => c.words[1]), [copied.words[0]], 'the copy');
  session.takeObject(pass.words[2]).set([5, 6, 7]);
  session.settle(pass.words[0], 3);
  const reader = (await saving).getReader();
  assert.deepEqual([...(await reader.read()).value], [5, 6, 7]);
  assert.deepEqual(await next(rig), [], 'nothing that is not asked for');
  const end = reader.read();
  const [second] = await next(rig);
  session.settle(ticket);
  session.settle(second.words[0], 0);
  assert.equal((await end).done, true);
  assert.deepEqual((await next(rig)).map((c) => [c.command, c.words[1]]), [[Command.Close, handle]]);
});

test('a save that fails', async () => {
  const rig = newGpu(), {session, gpu} = rig;
  const saving = gpu.saveParams([['a', {data: new Float32Array(2), shape: [2]}]]);
  const [save, pass] = await next(rig);
  session.settle(save.words[0], undefined, 'ErrType', 'params: byte 9: no', 9);
  session.settle(pass.words[0], undefined, 'ErrInvalid', 'no such file');
  await assert.rejects(saving, {code: 'ErrType', offset: 9});

  const reason = new Error('full'), writing = gpu.saveParams([], {to: new WritableStream({write() { throw reason; }})});
  const [again, piece] = (await next(rig)).filter((c) => c.command !== Command.Close);
  session.settle(piece.words[0], 8);
  const [closed] = (await next(rig)).filter((c) => c.command === Command.Close);
  assert.equal(closed.words[1], again.words[1]);
  session.settle(again.words[0], undefined, 'ErrClosed', 'given up');
  await assert.rejects(writing, {code: 'ErrStream', cause: reason});
});
