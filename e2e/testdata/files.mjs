// SPDX-License-Identifier: Apache-2.0

// Tests of files of NumPy, safetensors and the Matrix Market. Those under /npy/ were written by NumPy.

import {SubletError, init} from '/dist/index.mjs';
import {check, fails, onBoth, same} from './testing.mjs';

const fileOf = async (name) => new Uint8Array(await (await fetch(`/npy/${name}`)).arrayBuffer());
const bytesOf = async (blob) => new Uint8Array(await blob.arrayBuffer());
const textFile = (text) => new Blob([text]);

/** What NumPy calls a type, what it is loaded as, and whether that must be said. */
const TYPES = {
  b1: 'bool', i1: 'int8', i2: 'int16', i4: 'int32', u1: 'uint8', u2: 'uint16', u4: 'uint32', f2: 'float16', f4: 'float32', c8: 'complex64',
  i8: 'int32', u8: 'uint32', f8: 'float32', c16: 'complex64',
};
const LONG = ['i8', 'u8', 'f8', 'c16'];

/** The elements from 0 on as make.py makes them. */
const counted = (type, n, from = 0) => Array.from({length: n}, (_, i) => from + i)
  .flatMap((i) => type === 'b1' ? [i % 2] : type[0] === 'c' ? [i, i + 1] : [i]);

/** The elements of float16 as numbers. */
const numbers = async (x) => x.dtype === 'float16' ? x.astype('float32').read() : x.read();

/** Whether memory of the device is as it was. */
async function nothingLeft(gpu, before, what) {
  await gpu.sync().catch(() => {});
  check(gpu.stats().liveBytes === before, `${what}: ${gpu.stats().liveBytes - before} bytes are left`);
}

/** A file of safetensors with that header. */
function tensors(header, data = new Uint8Array(0)) {
  const text = new TextEncoder().encode(typeof header === 'string' ? header : JSON.stringify(header)), length = new Uint8Array(8);
  new DataView(length.buffer).setUint32(0, text.length, true);
  return new Blob([length, text, data]);
}

/** A file of one array with that header. */
const npy = (header, data = new Uint8Array(0), version = 1) => new Blob([
  Uint8Array.of(0x93, 78, 85, 77, 80, 89, version, 0, header.length & 255, header.length >> 8, ...version > 1 ? [0, 0] : []), header, data]);

const CODES = ['ErrFormat', 'ErrTruncated', 'ErrDuplicate', 'ErrType', 'ErrTooLarge', 'ErrUnsupported', 'ErrLimit', 'ErrNoMemory', 'ErrIndex', 'ErrSparse'];

/** Loads what may be broken, and checks that it is loaded or refused as it should be. */
async function survives(gpu, file, format, what) {
  let x;
  try {
    x = await gpu.load(file, {format});
  } catch (error) {
    check(error instanceof SubletError && CODES.includes(error.code), `${what}: ${error?.stack ?? error}`);
    return false;
  }
  x.close();
  return true;
}

export const tests = {
  numpyFiles: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes;
    for (const name of ['stored.npz', 'deflated.npz']) {
      const file = new Blob([await fileOf(name)]);
      await fails('ErrUnsupported', `${name} without a dtype`, () => gpu.load(file));
      for (const [type, dtype] of Object.entries(TYPES)) {
        const names = ['c', 'fortran', 'big', 'scalar', 'empty'].map((kind) => `${type}/${kind}`);
        const arrays = await gpu.load(file, LONG.includes(type) ? {names, dtype} : {names});
        check([...arrays.keys()].join() === names.join(), `${name} has ${[...arrays.keys()]}`);
        for (const [key, array] of arrays) {
          check(array.dtype === dtype, `${key} is ${array.dtype}`);
          const [shape, want] = key.endsWith('scalar') ? ['1,1', counted(type, 1, 1)] : key.endsWith('empty') ? ['0,3', []] : ['2,3,4', counted(type, 24)];
          check(array.shape.join() === shape, `${key} is ${array.shape}`);
          same(await numbers(array), want, `${name}, ${key}`);
        }
        arrays.close();
      }
    }
    const version2 = await gpu.load(await fileOf('version2.npy'));
    check(version2.shape.join() === '2,3', `version 2 is ${version2.shape}`);
    same(await version2.read(), [0, 1, 2, 3, 4, 5], 'version 2, in Fortran order');
    version2.close();
    const object = await fileOf('object.npz'), some = await gpu.load(object, {names: ['number']});
    same(await some.get('number').read(), [0, 1, 2], 'beside objects');
    some.close();
    await fails('ErrType', 'objects', () => gpu.load(object));
    for (const name of ['written.npz', 'packed.npz']) { // by Go
      const all = await gpu.load(await fileOf(name), {names: ['f4', 'i2', 'a/scalar']});
      same(await all.get('f4').read(), counted('f4', 24), `${name}, f4`);
      same(await all.get('i2').read(), counted('i2', 24), `${name}, i2`);
      same(await all.get('a/scalar').read(), [1], `${name}, a scalar`);
      all.close();
    }
    await nothingLeft(gpu, before, 'files of NumPy');
  }),

  thereAndBack: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes, dtypes = [...new Set(Object.values(TYPES))], list = dtypes.map((dtype, i) => {
      const values = Array.from({length: (dtype === 'complex64' ? 2 : 1) * 3 * (i + 1)}, (_, k) => dtype === 'bool' ? k % 2 : dtype.startsWith('u') ? 3 * k : dtype.startsWith('int') ? 3 * k - 7 : k / 4 - 1);
      return [`${dtype} \u00e9\ud83d\ude00`, gpu.matrix(3, i + 1, dtype === 'complex64' ? Float32Array.from(values) : values, {dtype})];
    });
    const cube = gpu.tensor(Float32Array.from({length: 24}, (_, i) => i / 3), [2, 3, 4]), big = gpu.matrix(300, 200, Float32Array.from({length: 60000}, (_, i) => i % 31));
    const entries = [...list, ['cube', cube.mul(2)], ['turned', big.T], ['none', gpu.zeros(0, 3)], ['memory', {data: new Float64Array([1, 2.5]), shape: [2]}], ['16', {data: Uint16Array.of(0x3c00), shape: [1, 1], dtype: 'float16'}]];
    for (const options of [{format: 'npz'}, {format: 'npz', compress: true}, {format: 'safetensors'}]) {
      const what = JSON.stringify(options), blob = await gpu.save(new Map(entries), options), names = entries.map(([name]) => name).filter((name) => name !== 'memory');
      check(!options.compress || blob.size < 30000, `packed are ${blob.size} bytes`);
      const loaded = await gpu.load(blob, {names});
      for (const [name, x] of entries.slice(0, -2)) {
        check(loaded.get(name).shape.join() === x.shape.join() && loaded.get(name).dtype === x.dtype, `${what}: ${name} is ${loaded.get(name).shape} of ${loaded.get(name).dtype}`);
        same(await loaded.get(name).read(), await x.read(), `${what}: ${name}`);
      }
      same(await numbers(loaded.get('16')), [1], 'a float16 of memory');
      const memory = await gpu.load(blob, {names: ['memory'], dtype: 'float32'});
      same(await memory.get('memory').read(), [1, 2.5], 'float64 of memory');
      same(await bytesOf(await gpu.save(loaded, options)), await bytesOf(await gpu.save(entries.filter(([name]) => name !== 'memory'), options)), `${what}: saved again`);
      memory.close();
      loaded.close();
    }
    for (const [name, x] of [...list, ['cube', cube]]) {
      const again = await gpu.load(await x.save({format: 'npy'}));
      check(again.shape.join() === x.shape.join() && again.dtype === x.dtype, `${name} is ${again.shape} of ${again.dtype}`);
      same(await again.read(), await x.read(), name);
      again.close();
    }
    const changing = gpu.matrix(1, 2, [1, 2]), memory = Float32Array.of(3), saving = gpu.save({changing, memory: {data: memory, shape: [1]}}, {format: 'npz'});
    changing.assign(0).close();
    memory[0] = 4;
    const was = await gpu.load(await saving);
    same([...await was.get('changing').read(), ...await was.get('memory').read()], [1, 2, 3], 'what it was when it was saved');
    for (const x of [...list.map(([, m]) => m), entries.find(([name]) => name === 'none')[1], cube, big, was]) x.close();
    await nothingLeft(gpu, before, 'files');
  }),

  matrixMarket: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes, sparse = '%%MatrixMarket matrix coordinate real general\n% a comment\n3 4 5\n3 1 -2.5\n\n1 4 1e1\n% another\n1 2 .5\n1 4 1D0\n2 3 7.\n';
    const s = await gpu.load(textFile(sparse));
    check(s.format === 'csr' && s.nnz === 4 && s.shape.join() === '3,4', `${s.format} of ${s.nnz}`);
    same(await s.read(), [0, 0.5, 0, 11, 0, 0, 7, 0, -2.5, 0, 0, 0], 'coordinates');
    const texts = [
      ['array integer general\n2 3\n1 2 3\n4 5 6', [1, 3, 5, 2, 4, 6]], ['array real symmetric\n2 2\n1\n2\n3', [1, 2, 2, 3]], ['array real skew-symmetric\n3 3\n1\n2\n3', [0, -1, -2, 1, 0, -3, 2, 3, 0]],
      ['coordinate pattern symmetric\n2 2 2\n1 1\n2 1', [1, 1, 1, 0]], ['coordinate real skew-symmetric\n2 2 1\n2 1 5', [0, -5, 5, 0]], ['COORDINATE Real General\n1 2 1\n1 2 inf', [0, Infinity]],
      ['array real general\n0 3', []], ['coordinate real general\n2 2 0', [0, 0, 0, 0]],
    ];
    for (const [text, want] of texts) {
      const x = await gpu.load(textFile(`%%MatrixMarket matrix ${text}`), {format: 'mtx'});
      same(await x.read(), want, text);
      const again = await gpu.load(await x.save({format: 'mtx'}));
      same(await again.read(), want, `${text}, saved`);
      check(again.toString() === x.toString(), `${text} is ${again}`);
      x.close();
      again.close();
    }
    const ints = await gpu.load(textFile('%%MatrixMarket matrix array integer general\n1 2\n-7 9'), {dtype: 'int32'});
    same(await ints.read(), [-7, 9], 'integers');
    await fails('ErrInvalid', 'a fraction', () => gpu.load(textFile('%%MatrixMarket matrix array real general\n1 1\n0.5'), {dtype: 'int32'}));
    for (const format of ['csc', 'csr', 'blockColumn']) {
      const part = await gpu.sparseFrom(s, {format}), again = await gpu.load(await gpu.save(part, {format: 'mtx'}));
      same(await again.read(), await s.read(), format);
      part.close();
      again.close();
    }
    const odd = gpu.matrix(1, 4, [0.1, 16777216, -0, 1e-45]), text = await (await odd.save({format: 'mtx'})).text();
    check(text === '%%MatrixMarket matrix array real general\n1 4\n0.1\n16777216\n-0\n1.4013e-45\n', `written was ${text}`);
    for (const x of [s, ints, odd]) x.close();
    const exact = [2147483647, -123456792, 16777217], whole = gpu.matrix(1, 3, exact, {dtype: 'int32'}), stored = gpu.sparse(1, 3, {format: 'csr', values: exact, indices: [0, 1, 2], offsets: [0, 3], dtype: 'int32'});
    for (const x of [whole, stored]) {
      const again = await gpu.load(await gpu.save(x, {format: 'mtx'}), {dtype: 'int32'});
      same(await again.read(), exact, 'integers of which float32 has other digits');
      again.close();
      x.close();
    }
    const long = await gpu.save({data: BigInt64Array.of(9007199254740993n), shape: [1, 1]}, {format: 'mtx'}), double = await gpu.save({data: Float64Array.of(123456792, 0.1), shape: [2]}, {format: 'mtx'});
    check((await long.text()).endsWith('\n9007199254740993\n') && (await double.text()).endsWith('\n123456792\n0.1\n'), 'numbers of 64 bits');
    const bad = [
      ['ErrFormat', ''], ['ErrFormat', '%%MatrixMarket matrix'], ['ErrFormat', '%%MatrixMarket matrix coordinate odd general\n1 1 0'], ['ErrType', '%%MatrixMarket matrix array complex general\n1 1\n1 1'],
      ['ErrFormat', '%%MatrixMarket matrix coordinate real general\n1 1 1\n2 1 5'], ['ErrFormat', '%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 x'], ['ErrTruncated', '%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1'],
      ['ErrFormat', '%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1 1'], ['ErrFormat', '%%MatrixMarket matrix coordinate real symmetric\n1 2 0'], ['ErrTooLarge', '%%MatrixMarket matrix coordinate real general\n2000000000 1 0'],
      ['ErrTooLarge', '%%MatrixMarket matrix coordinate real general\n1 3000000000 0'], ['ErrTruncated', '%%MatrixMarket matrix coordinate real general\n1 1 2000000000'], ['ErrTruncated', '%%MatrixMarket matrix array real general\n40000 40000\n1'],
      ['ErrFormat', '%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 1e999'], ['ErrFormat', '%%MatrixMarket matrix coordinate real skew-symmetric\n1 1 1\n1 1 1'],
    ];
    for (const [code, file] of bad) await fails(code, file, () => gpu.load(textFile(file), {format: 'mtx'}));
    const error = await gpu.load(textFile('%%MatrixMarket matrix coordinate real general\n% x\n1 1 1\n2 1 5')).catch((e) => e);
    check(error.message.includes('line 4') && error.offset === 56, `${error.message} at ${error.offset}`);
    await nothingLeft(gpu, before, 'matrices');
  }),

  sources: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes, bytes = await bytesOf(await gpu.save({data: Float32Array.of(1, 2, 3), shape: [3]}, {format: 'npy'}));
    const pieces = async function* () { const one = new Uint8Array(1); for (const byte of bytes) { one[0] = byte; yield one; } };
    const sources = {
      response: () => new Response(bytes), awaited: async () => new Response(bytes), blob: () => new Blob([bytes]), file: () => new File([bytes], 'x'), buffer: () => bytes.buffer, view: () => new DataView(bytes.buffer),
      stream: () => new Blob([bytes]).stream(), generator: pieces, shared: () => new Uint8Array(new SharedArrayBuffer(bytes.length)).fill(0).map((_, i) => bytes[i]),
    };
    if (globalThis.document) {
      const address = URL.createObjectURL(new Blob([bytes]));
      Object.assign(sources, {address: () => address, URL: () => new URL(address)});
    }
    for (const [kind, source] of Object.entries(sources)) {
      const m = await gpu.load(source());
      check(m.shape.join() === '1,3', `${kind}: ${m.shape}`);
      same(await m.read(), [1, 2, 3], kind);
      m.close();
    }
    const mine = new Error('mine'), broken = async function* () { yield bytes.subarray(0, 20); throw mine; };
    for (const [code, source] of [['ErrStream', broken()], ['ErrStream', () => Promise.reject(mine)], ['ErrStream', new Response('', {status: 404})], ['ErrStream', 'http://['], ['ErrInvalid', 5], ['ErrInvalid', undefined], ['ErrInvalid', {}]]) {
      await fails(code, String(source), () => gpu.load(typeof source === 'function' ? source() : source));
    }
    const stalled = async function* () { yield bytes.subarray(0, 20); await new Promise(() => {}); }, abort = new AbortController();
    setTimeout(() => abort.abort(mine), 10);
    await fails('ErrAborted', 'a source that stalls', () => gpu.load(stalled(), {signal: abort.signal}).catch((error) => { check(error.cause === mine, 'the reason'); throw error; }));
    await fails('ErrAborted', 'before', () => gpu.load(bytes, {signal: AbortSignal.abort()}));
    await fails('ErrAborted', 'before', () => gpu.save({data: bytes, shape: [bytes.length]}, {format: 'npy', signal: AbortSignal.abort()}));
    const endless = async function* () { for (;;) yield bytes; };
    for (const source of [endless(), bytes]) await fails('ErrTooLarge', 'a limit', () => gpu.load(source, {memoryLimit: 11}));
    for (const options of [5, {format: 'csv'}, {dtype: 'float64'}, {names: 5}, {names: [5]}, {names: ['a']}, {memoryLimit: -1}, {memoryLimit: '1'}, {signal: {}}, {formats: 'npy'}]) {
      await fails('ErrInvalid', JSON.stringify(options), () => gpu.load(bytes, options));
    }
    const two = await gpu.save({a: {data: bytes, shape: [bytes.length]}}, {format: 'npz'});
    await fails('ErrInvalid', 'a name that is not there', () => gpu.load(two, {names: ['a', 'b']}));
    const m = gpu.zeros(1, 1), other = await init({device: 'simd', threads: 1}), foreign = other.zeros(1, 1);
    for (const [code, entries, options] of [
      ['ErrInvalid', m], ['ErrInvalid', m, {format: 'csv'}], ['ErrInvalid', m, {format: 'npy', compress: true}], ['ErrInvalid', 5, {format: 'npz'}], ['ErrInvalid', {a: 5}, {format: 'npz'}], ['ErrInvalid', [[5, m]], {format: 'npz'}],
      ['ErrDuplicate', [['a', m], ['a', m]], {format: 'npz'}], ['ErrDuplicate', [['a', m], ['a', m]], {format: 'safetensors'}], ['ErrForeign', foreign, {format: 'npy'}], ['ErrForeign', foreign, {format: 'mtx'}], ['ErrInvalid', null, {format: 'npy'}],
      ['ErrInvalid', {'\ud800': m}, {format: 'npz'}], ['ErrInvalid', {'\ud800': m}, {format: 'safetensors'}], ['ErrFormat', {__metadata__: m}, {format: 'safetensors'}], ['ErrShort', {data: new Uint8Array(3), shape: [4]}, {format: 'npy'}],
      ['ErrShape', {data: new Uint8Array(5), shape: [4]}, {format: 'npy'}], ['ErrType', {data: new Uint8Array(2), shape: [1], dtype: 'bfloat16'}, {format: 'npy'}], ['ErrInvalid', {data: new Uint8Array(3), shape: 4}, {format: 'npy'}],
      ['ErrInvalid', {data: new Float32Array(3), shape: [3], dtype: 'int32'}, {format: 'npy'}], ['ErrType', gpu.matrix(1, 1, Float32Array.of(1, 2), {dtype: 'complex64'}), {format: 'mtx'}], ['ErrShape', gpu.tensor([1], [1, 1, 1]), {format: 'mtx'}],
    ]) await fails(code, `${JSON.stringify(options)} of ${entries?.dtype}`, () => gpu.save(entries, options));
    for (const [entries, why] of [[m, 'an array without a name'], [gpu.tensor([1], [1]), 'an array without a name'], [Float32Array.of(1), 'an array without a name'], [{a: null}, '"a": null is neither'], [[5], '5 is no pair']]) {
      const error = await gpu.save(entries, {format: 'npz'}).catch((e) => e);
      check(error.code === 'ErrInvalid' && error.message.includes(why), `want ${why}: ${error?.message}`);
    }
    m.close();
    await fails('ErrClosed', 'a matrix that was closed', () => m.save({format: 'npy'}));
    other.close();
    await fails('ErrClosed', 'a device that was closed', () => other.load(bytes));
    await fails('ErrClosed', 'a device that was closed', () => other.save({data: bytes, shape: [bytes.length]}, {format: 'npy'}));
    check(before === 0, 'nothing before');
  }),

  hostile: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes, head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", eight = new Uint8Array(8);
    const cases = [
      ['ErrTruncated', undefined, npy(head, eight.subarray(0, 7))], ['ErrFormat', 75, npy(head, new Uint8Array(16))], ['ErrTruncated', undefined, npy(head.replace('(2,)', '(1099511627776,)'), eight)], ['ErrFormat', undefined, npy(head.replace('(2,)', '(4611686018427387904, 8)'), eight)],
      ['ErrFormat', undefined, npy(head.replace('(2,)', '(2)'), eight)], ['ErrFormat', undefined, npy(head.replace('(2,)', '(-2,)'), eight)], ['ErrFormat', undefined, npy(head.replace('(2,)', '(02,)'), eight)], ['ErrTooLarge', undefined, npy(head.replace('(2,)', `(${'1,'.repeat(33)})`), eight)],
      ['ErrType', undefined, npy(head.replace('<f4', '|O'), eight)], ['ErrType', undefined, npy(head.replace("'<f4'", "[('a', '<f4')]"), eight)], ['ErrDuplicate', undefined, npy(head.replace("'descr'", "'shape': (2,), 'descr'"), eight)], ['ErrFormat', undefined, npy(head.replace("'descr'", "'other'"), eight)],
      ['ErrFormat', undefined, npy(`${head} x`, eight)], ['ErrFormat', 6, npy(head, eight, 4)], ['ErrTooLarge', 8, new Blob([Uint8Array.of(0x93, 78, 85, 77, 80, 89, 2, 0, 255, 255, 255, 255)])], ['ErrFormat', 0, new Blob(['something else that is long enough'])],
      ['ErrTruncated', undefined, new Blob(['\x00\x00\x00\x00\x00\x00\x00\x00{'.replace('\x00', '\x09')])], ['ErrFormat', undefined, tensors('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} x', eight)],
      ['ErrDuplicate', undefined, tensors('{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"\\u0061":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}}', eight)], ['ErrDuplicate', undefined, tensors('{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', eight)],
      ['ErrType', undefined, tensors({a: {dtype: 'F4', shape: [2], data_offsets: [0, 8]}}, eight)], ['ErrType', undefined, tensors({a: {dtype: 'constructor', shape: [2], data_offsets: [0, 8]}}, eight)], ['ErrFormat', undefined, tensors({a: {dtype: 'F32', shape: [2], data_offsets: [0, 8], more: 1}}, eight)],
      ['ErrFormat', undefined, tensors({a: {dtype: 'F32', shape: [2, 2 ** 60], data_offsets: [0, 8]}}, eight)], ['ErrFormat', undefined, tensors({a: {dtype: 'F32', shape: [2 ** 30, 2 ** 30], data_offsets: [0, 8]}}, eight)], ['ErrFormat', undefined, tensors({a: {dtype: 'F32', shape: [1], data_offsets: [4, 8]}}, eight)],
      ['ErrTruncated', undefined, tensors({a: {dtype: 'F32', shape: [3], data_offsets: [0, 12]}}, eight)], ['ErrFormat', undefined, tensors({a: {dtype: 'F32', shape: [1], data_offsets: [0, 4]}}, eight)], ['ErrFormat', undefined, tensors({a: {dtype: 'F32', shape: [2], data_offsets: [0, 8]}, b: {dtype: 'F32', shape: [1], data_offsets: [4, 8]}}, eight)],
      ['ErrFormat', undefined, tensors({__metadata__: {a: 5}}, new Uint8Array(0))], ['ErrFormat', undefined, tensors({a: null})], ['ErrFormat', undefined, tensors('{"a')], ['ErrTooLarge', undefined, tensors({a: {dtype: 'F32', shape: Array(33).fill(1), data_offsets: [0, 4]}}, eight.subarray(4))],
      ['ErrUnsupported', undefined, tensors({a: {dtype: 'BF16', shape: [4], data_offsets: [0, 8]}}, eight)],
    ];
    const far = await bytesOf(await gpu.save({a: {data: eight, shape: [8]}}, {format: 'npz'}));
    far[far.length - 22 - 5 - 3] = 1; // the last byte but one of where the member is
    cases.push(['ErrTruncated', far.length, far]);
    for (const [i, [code, offset, file]] of cases.entries()) {
      const error = await gpu.load(file).then(() => null, (e) => e);
      check(error instanceof SubletError && error.code === code && (offset === undefined || error.offset === offset), `case ${i}: ${error?.stack ?? 'it was loaded'}, offset ${error?.offset}, want ${code} at ${offset}`);
    }
    const proto = await gpu.load(tensors('{"__proto__":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}', new Uint8Array(Float32Array.of(5, 6).buffer)));
    same(await proto.get('__proto__').read(), [5, 6], 'a name of JavaScript');
    proto.close();
    const half = await gpu.load(tensors({a: {dtype: 'BF16', shape: [2], data_offsets: [0, 4]}}, Uint8Array.of(0x80, 0x3f, 0x40, 0xc0)), {dtype: 'float32'});
    same(await half.get('a').read(), [1, -3], 'bfloat16');
    half.close();
    await nothingLeft(gpu, before, 'broken files');
  }),

  // Files that end early are refused, and whatever bytes are changed, they are loaded or refused.
  mutated: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes, a = {data: Float32Array.of(1, 2, 3, 4), shape: [2, 2]}, b = {data: Int8Array.of(5, 6, 7), shape: [3]};
    const files = [
      ['npy', await gpu.save(a, {format: 'npy'})], ['npz', await gpu.save({a, b}, {format: 'npz'})], ['npz', await gpu.save({a}, {format: 'npz', compress: true})], ['safetensors', await gpu.save({a, b}, {format: 'safetensors'})],
      ['mtx', textFile('%%MatrixMarket matrix coordinate real symmetric\n5 5 2\n3 1 2.5\n4 4 1e3\n')], ['mtx', await gpu.save(a, {format: 'mtx'})],
    ];
    let seed = 1;
    const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % n;
    for (const [format, blob] of files) {
      const bytes = await bytesOf(blob);
      check(await survives(gpu, bytes, format, `a whole ${format}`), `a whole ${format} is refused`);
      for (let n = 0; n < bytes.length; n += format === 'npz' ? 5 : 3) {
        const loaded = await survives(gpu, bytes.subarray(0, n), format, `${n} bytes of ${format}`);
        check(!loaded || format === 'mtx', `${n} of ${bytes.length} bytes of ${format} are loaded`); // of a text the last digits may be missing
      }
      for (let i = 0; i < 120; i++) {
        const changed = bytes.slice();
        for (let k = random(3); k >= 0; k--) changed[random(changed.length)] = [0, 255, 48 + random(10), random(256)][random(4)];
        await survives(gpu, changed, format, `${format}, change ${i}`);
      }
    }
    await nothingLeft(gpu, before, 'broken files');
    same(await gpu.matrix(1, 1, [2]).matmul(gpu.matrix(1, 1, [3])).read(), [6], 'the next product');
  }),
};
