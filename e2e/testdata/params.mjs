// SPDX-License-Identifier: Apache-2.0

// Tests of files of arrays. Those under /params/ were written by TVM.

import {init} from '/dist/index.mjs';
import {check, fails, measured, onBoth, same, webgpu} from './testing.mjs';

const real = {
  'dlr_2in1out_v1.params': {data1: [0.6105551719665527, 0.8802757859230042], data2: null},
  'dlr_4in2out_v2.params': {data4: [0.28348127007484436, 0.14294545352458954, 0.4907182455062866], data1: null, data3: null, data2: null},
};

const fileOf = async (name) => new Uint8Array(await (await fetch(`/params/${name}`)).arrayBuffer());
const bytesOf = async (blob) => new Uint8Array(await blob.arrayBuffer());

/** A dictionary, written here by hand: what Go makes is compared with it. */
function dictionary(tensors) {
  const parts = [], number = (size, n) => {
    const bytes = new Uint8Array(8);
    new DataView(bytes.buffer).setBigUint64(0, BigInt.asUintN(64, BigInt(n)), true);
    parts.push(bytes.subarray(0, size));
  };
  number(8, 0xF7E58D4F05049CB7n);
  number(8, 0);
  number(8, tensors.length);
  for (const {name} of tensors) {
    const bytes = typeof name === 'string' ? new TextEncoder().encode(name) : name;
    number(8, bytes.length);
    parts.push(bytes);
  }
  number(8, tensors.length);
  for (const {type: [code, bits], shape, data} of tensors) {
    number(8, 0xDD5E40F096B4A13Fn);
    number(8, 0);
    number(4, 1);
    number(4, 0);
    number(4, shape.length);
    for (const [size, n] of [[1, code], [1, bits], [2, 1]]) number(size, n);
    for (const d of shape) number(8, d);
    number(8, data.byteLength);
    parts.push(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  return new Blob(parts);
}

/** Whether memory of the device is as it was. */
async function nothingLeft(gpu, before, what) {
  await gpu.sync();
  const {liveBytes} = gpu.stats();
  check(liveBytes === before, `${what}: ${liveBytes - before} bytes are left`);
}

/** Pieces of bytes. */
function* pieces(bytes, size) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** A stream that is asked for each piece, and notes whether it is cancelled. */
function streamOf(iterator, noted = {}) {
  return new ReadableStream({
    pull(controller) {
      const {done, value} = iterator.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel() { noted.cancelled = true; },
  }, {highWaterMark: 0});
}

/** A dictionary of 64 arrays of 1 MiB, of which none is ever held: its beginning, and what comes then. */
const MIB = 1 << 20, ARRAYS = 64;
const element = (array, i) => array * 1000 + i % 997;

function* large() {
  const data = new Float32Array(MIB / 4);
  const head = {name: '', type: [2, 32], shape: [512, 512], data};
  const empty = {...head, shape: [0], data: new Float32Array(0)};
  const names = Array.from({length: ARRAYS}, (_, i) => ({...empty, name: `array ${i}`}));
  yield dictionary(names).slice(0, 32 + names.reduce((n, {name}) => n + 8 + name.length, 0));
  for (let k = 0; k < ARRAYS; k++) {
    for (let i = 0; i < data.length; i++) data[i] = element(k, i);
    yield dictionary([head]).slice(32 + 8);
  }
}

async function* largeBytes(sizes = [100000, 7, 300000]) {
  let n = 0;
  for (const part of large()) {
    const bytes = await bytesOf(part);
    for (let at = 0; at < bytes.length;) {
      const size = sizes[n++ % sizes.length];
      yield bytes.subarray(at, at + size);
      at += size;
    }
  }
}

export const tests = {
  realFiles: onBoth(async (gpu) => {
    for (const [name, want] of Object.entries(real)) {
      const bytes = await fileOf(name), {buffer} = bytes;
      const sources = {
        response: () => fetch(`/params/${name}`), awaited: async () => await fetch(`/params/${name}`), blob: () => new Blob([bytes]), file: () => new File([bytes], name),
        buffer: () => buffer, bytes: () => bytes, view: () => new DataView(buffer), shared: () => new Uint8Array(new SharedArrayBuffer(bytes.length)).fill(0).map((_, i) => bytes[i]),
        stream: () => streamOf(pieces(bytes, 5)), generator: async function* () { yield* pieces(bytes, 1); }, buffers: async function* () { yield buffer; },
      };
      const before = gpu.stats().liveBytes;
      for (const [kind, source] of Object.entries(sources)) {
        const loaded = await gpu.loadParams(source(), {strict: true});
        check(loaded.names.join() === Object.keys(want).join() && loaded.size === loaded.names.length, `${kind}: names ${loaded.names}`);
        for (const [key, param] of loaded) {
          const values = await param.read();
          check(loaded.has(key) && loaded.get(key) === param && param.name === key && param.dtype === 'float32' && values instanceof Float32Array, `${kind}: ${key}`);
          same(values, want[key] ?? values, key);
          const m = param.matrix();
          check(m.rows === 1 && m.cols === param.shape[0], `${kind}: ${m.shape}`);
          same(await m.read(), values, 'as a matrix');
          m.close();
        }
        same(await bytesOf(await gpu.saveParams(loaded)), bytes, `${kind}: saved again`);
        check(!loaded.has('nothing') && loaded.get('nothing') === undefined, 'a name that is not there');
        loaded.close();
        await nothingLeft(gpu, before, kind);
        await fails('ErrClosed', 'closed', () => gpu.saveParams(loaded));
      }
      const headers = await gpu.scanParams(new Blob([bytes])), again = await gpu.scanParams(streamOf(pieces(bytes, 3)));
      check(JSON.stringify(headers) === JSON.stringify(again), 'two ways to scan');
      for (const {name: key, offset, nbytes, shape} of headers) {
        if (want[key]) same(new Float32Array(buffer.slice(offset, offset + nbytes)), want[key], `${key} at ${offset}`);
        check(shape[0] * 4 === nbytes, `${key}: ${shape}`);
      }
    }
  }),

  memoryIsShared: onBoth(async (gpu) => {
    const file = dictionary([{name: 'm', type: [2, 32], shape: [2, 3], data: Float32Array.of(1, 2, 3, 4, 5, 6)}, {name: 'v', type: [0, 32], shape: [3], data: Int32Array.of(7, -8, 9)}]);
    const before = gpu.stats().liveBytes, loaded = await gpu.loadParams(file), m = loaded.get('m').matrix(), v = loaded.get('v').matrix();
    check(m.shape.join() === '2,3' && v.shape.join() === '1,3' && v.dtype === 'int32' && !m.external, 'shapes');
    const live = gpu.stats().liveBytes;
    m.assign(m.mul(2));
    same(await loaded.get('m').read(), [2, 4, 6, 8, 10, 12], 'written through the matrix');
    check(gpu.stats().liveBytes === live, 'nothing was copied');
    await fails('ErrView', 'resize', () => m.memory.resize(3, 3));
    loaded.close();
    same(await m.sum({axis: 1}).read(), [12, 30], 'after close');
    for (const run of [() => loaded.get('m').read(), () => loaded.get('m').matrix()]) await fails('ErrClosed', 'closed', run);
    m.close();
    v.close();
    await nothingLeft(gpu, before, 'matrices');
  }),

  allTypes: onBoth(async (gpu) => {
    const half = globalThis.Float16Array ?? Uint16Array;
    const types = [
      ['int8', [0, 8], Int8Array], ['int16', [0, 16], Int16Array], ['int32', [0, 32], Int32Array], ['int64', [0, 64], BigInt64Array],
      ['uint8', [1, 8], Uint8Array], ['uint16', [1, 16], Uint16Array], ['uint32', [1, 32], Uint32Array], ['uint64', [1, 64], BigUint64Array],
      ['uint1', [1, 1], Uint8Array, 1], ['float16', [2, 16], half], ['float32', [2, 32], Float32Array], ['float64', [2, 64], Float64Array],
      ['bfloat16', [4, 16], Uint8Array, 2], ['complex64', [5, 64], Uint8Array, 8], ['complex128', [5, 128], Uint8Array, 16], ['bool', [6, 8], Uint8Array, 1],
      ['float8_e4m3fn', [10, 8], Uint8Array, 1], ['code99_8', [99, 8], Uint8Array, 1], ['float128', [2, 128], Uint8Array, 16],
    ];
    const tensors = types.map(([name, type, Array, size = 1], i) => ({name: `${name} \u00e9\ud83d\ude00`, type, shape: [i % 4], data: new Array(size * (i % 4)).fill(name.includes('64') && size === 1 && name !== 'float64' ? 3n : Array === Uint16Array && name === 'float16' ? 0x4200 : 3)}));
    tensors.push({name: Uint8Array.of(0xff, 0x61, 0xed, 0xb2, 0x80, 0xc3), type: [0, 8], shape: [], data: Int8Array.of(-5)}, {name: '\ufeffbom\0', type: [0, 8], shape: [3, 0, 2], data: new Int8Array(0)});
    const file = dictionary(tensors), loaded = await gpu.loadParams(file), memory = [];
    for (const [i, [name, param]] of [...loaded].entries()) {
      const values = await param.read(), {data, shape} = tensors[i];
      check(values.constructor === data.constructor && param.shape.join() === shape.join(), `${name}: ${values.constructor.name}, ${param.shape}`);
      same(Array.from(values, Number), Array.from(data, Number), name);
      if (i < types.length) check(param.dtype === types[i][0], `${name} is ${param.dtype}`);
      memory.push([name, {data: values, shape: param.shape, dtype: param.dtype}]);
      const plain = ['float32', 'int32', 'uint32', 'float16', 'int8', 'uint8', 'int16', 'uint16', 'bool'].includes(param.dtype);
      if (plain && shape.length === 1) {
        same(await param.matrix().astype('int32').read(), new Array(shape[0]).fill(param.dtype === 'bool' ? 1 : 3), `a matrix of ${param.dtype}`);
      }
      if (param.dtype === 'complex64') same(await param.matrix().read(), new Float32Array(Uint8Array.from(data).buffer), `a matrix of ${name}`);
      else if (!plain) await fails('ErrUnsupported', `a matrix of ${param.dtype}`, () => param.matrix());
    }
    check(loaded.names.at(-2) === '\udcffa\udced\udcb2\udc80\udcc3' && loaded.names.at(-1) === '\ufeffbom\0', `names ${JSON.stringify(loaded.names.slice(-2))}`);
    const bytes = await bytesOf(file);
    same(await bytesOf(await gpu.saveParams(loaded)), bytes, 'from the device');
    same(await bytesOf(await gpu.saveParams(memory)), bytes, 'from memory');
    const cube = Float32Array.from({length: 12}, (_, i) => i);
    const cut = await gpu.loadParams(dictionary([{name: 'cube', type: [2, 32], shape: [2, 3, 2], data: cube}, {name: 'empty', type: [2, 32], shape: [3, 0, 2], data: new Float32Array(0)}]));
    await fails('ErrShape', 'three dimensions', () => cut.get('cube').matrix());
    const tensor = cut.get('cube').tensor();
    cut.close();
    same(await tensor.permute(1, 0, 2).read(), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11], 'a tensor of a file, whose dictionary is closed');
    await fails('ErrClosed', 'closed', () => cut.get('empty').tensor());
    tensor.close();
    same((await gpu.loadParams(dictionary([{name: 'empty', type: [2, 32], shape: [3, 0, 2], data: new Float32Array(0)}]))).get('empty').tensor().shape, [3, 0, 2], 'an empty tensor');
  }),

  matricesOfAllSorts: onBoth(async (gpu) => {
    const count = Float32Array.from({length: 6}, (_, i) => i + 1), mine = Float32Array.from({length: 12}, (_, i) => i);
    const strided = gpu.matrix(2, 3, count, {stride: 5, offset: 3}), byColumns = gpu.matrix(2, 3, count, {order: 'column'}), whole = gpu.matrix(2, 3, count);
    const wrapped = gpu.wrap(mine, 2, 3, {offset: 1, stride: 4}), half = gpu.matrix(1, 3, [1, 2, 3], {dtype: 'float16'}), ints = gpu.matrix(1, 2, [-1, 2], {dtype: 'int32'});
    const entries = {
      behind: [gpu.matrix(2, 3, count, {offset: 3}), count],
      strided: [strided, [1, 2, 3, 4, 5, 6]], byColumns: [byColumns, [1, 3, 5, 2, 4, 6]], whole: [whole, count], part: [whole.slice([0, 2], [1, 3]), [2, 3, 5, 6]],
      turned: [whole.T, [1, 4, 2, 5, 3, 6]], row: [whole.row(1), [4, 5, 6]], sum: [whole.add(strided), [2, 4, 6, 8, 10, 12]], wrapped: [wrapped, [1, 2, 3, 5, 6, 7]],
      half: [half.astype('float32'), [1, 2, 3]], none: [gpu.zeros(0, 3), []],
    };
    const list = Object.entries({...entries, ints: [ints], sixteen: [half]}).map(([name, [m]]) => [name, m]);
    await gpu.saveParams(list); // now all have their memory
    const before = gpu.stats().liveBytes, brief = gpu.matrix(1, 2, [7, 8]), saving = gpu.saveParams([...list, ['brief', brief]]);
    brief.close(); // what is saved is kept
    const loaded = await gpu.loadParams(saving);
    same(await loaded.get('brief').read(), [7, 8], 'closed while it is saved');
    for (const [name, [m, want]] of Object.entries(entries)) {
      same(await loaded.get(name).read(), want, name);
      check(loaded.get(name).shape.join() === m.shape.join(), `${name} is ${loaded.get(name).shape}`);
    }
    same(await loaded.get('ints').read(), [-1, 2], 'integers');
    check(loaded.get('sixteen').dtype === 'float16', 'float16');
    const sixteen = loaded.get('sixteen').matrix();
    same(await sixteen.astype('float32').read(), [1, 2, 3], 'float16');
    sixteen.close();
    loaded.close();
    await nothingLeft(gpu, before, 'a save and a load');

    const broken = gpu.matrix(1, 1, [1]).apply(gpu.fn('fn broken(x: f32) -> f32 { return nonsense; }')).eval();
    const data = new Float32Array(2);
    for (const [code, list] of [
      ['ErrCompile', [['broken', broken]]], ['ErrDuplicate', [['a', ints], ['a', ints]]], ['ErrInvalid', 5], ['ErrInvalid', [5]],
      ['ErrInvalid', [['a']]], ['ErrInvalid', [[5, ints]]], ['ErrInvalid', [['a', 5]]], ['ErrInvalid', [['\ud800', ints]]], ['ErrInvalid', [['a', {data: [1], shape: [1]}]]],
      ['ErrShort', [['a', {data, shape: [3]}]]], ['ErrShape', [['a', {data, shape: [1]}]]], ['ErrSize', [['a', {data, shape: [-2]}]]], ['ErrInvalid', [['a', {data}]]],
      ['ErrType', [['a', {data: new Uint8Array(2), shape: [2], dtype: 'nonsense'}]]], ['ErrInvalid', [['a', {data, shape: [2], dtype: 'int32'}]]],
      ['ErrType', [['a', {data: new Uint8Array(2), shape: [2], dtype: 'float4_e2m1fn'}]]], ['ErrInvalid', [['a', {data: data.buffer, shape: [2]}]]],
      ['ErrClosed', [['a', brief]]],
    ]) await fails(code, `saving ${JSON.stringify(list)}`, () => gpu.saveParams(list));
    await fails('ErrInvalid', 'type', () => gpu.saveParams([], {type: 'text'}));
    await fails('ErrInvalid', 'to', () => gpu.saveParams([], {to: 5}));
    same(await bytesOf(await gpu.saveParams([['a', ints], ['a', {data, shape: [2]}]], {lastWins: true})), await bytesOf(dictionary([{name: 'a', type: [2, 32], shape: [2], data}])), 'the last wins');
    same(await bytesOf(await gpu.saveParams([])), await bytesOf(dictionary([])), 'nothing at all');
    check((await gpu.loadParams(await gpu.saveParams([]))).size === 0, 'nothing again');
  }),

  brokenFiles: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes;
    const bytes = await fileOf('dlr_4in2out_v2.params');
    const broken = async (code, offset, source, options, what) => {
      await fails(code, what, () => gpu.loadParams(source(), options).catch((error) => {
        check(error.offset === offset, `${what}: offset ${error.offset}, want ${offset}: ${error.message}`);
        throw error;
      }));
      await nothingLeft(gpu, before, what);
    };
    for (const n of [0, 7, 30, 60, 131, 135, 200, bytes.length - 1]) {
      const short = bytes.subarray(0, n);
      await broken('ErrTruncated', n, () => streamOf(pieces(short, 50)), undefined, `a stream of ${n} bytes`);
      await fails('ErrTruncated', `a blob of ${n} bytes`, () => gpu.loadParams(new Blob([short])));
      await nothingLeft(gpu, before, `a blob of ${n} bytes`);
    }
    for (const [at, value, code, offset] of [
      [0, 0, 'ErrFormat', 0], [16, 3, 'ErrFormat', 63], [16, 9, 'ErrTruncated', 88], [76, 5, 'ErrFormat', 76], [84, 0, 'ErrFormat', 84], [100, 2, 'ErrFormat', 100],
      [108, 255, 'ErrFormat', 108], [113, 7, 'ErrType', 113], [114, 2, 'ErrType', 114], [123, 128, 'ErrFormat', 116], [124, 13, 'ErrFormat', 124], [144, 0, 'ErrFormat', 144],
    ]) {
      const changed = bytes.slice();
      changed[at] = value;
      await broken(code, offset, () => changed, undefined, `byte ${at}`);
      await fails(code, `scanning with byte ${at}`, () => gpu.scanParams(changed));
    }
    const more = [...bytes, 1];
    (await gpu.loadParams(Uint8Array.from(more))).close();
    await broken('ErrFormat', bytes.length, () => Uint8Array.from(more), {strict: true}, 'a byte more');
    await broken('ErrTooLarge', 192, () => bytes, {memoryLimit: 19}, 'the second array');
    (await gpu.loadParams(bytes, {memoryLimit: 40})).close();

    const twice = dictionary([1, 2].map((n) => ({name: 'a', type: [0, 8], shape: [1], data: Int8Array.of(n)})));
    await broken('ErrDuplicate', 41, () => twice, undefined, 'two names');
    const last = await gpu.loadParams(twice, {lastWins: true});
    same(await last.get('a').read(), [2], 'the last one');
    last.close();

    await broken('ErrStream', undefined, () => fetch('/params/none.params'), undefined, '404');
    await broken('ErrStream', undefined, () => Promise.reject(new Error('mine')), undefined, 'a promise that is rejected');
    await broken('ErrStream', undefined, () => (async function* () { yield bytes.subarray(0, 150); throw new Error('mine'); })(), undefined, 'a source that fails');
    await broken('ErrInvalid', undefined, () => (async function* () { yield 'text'; })(), undefined, 'pieces of text');
    const used = new Response(bytes), locked = streamOf(pieces(bytes, 9));
    await used.text();
    locked.getReader();
    for (const source of [used, locked, 5, undefined, 'file.params', {}, null]) await broken('ErrInvalid', undefined, () => source, undefined, `source ${source}`);
    for (const options of [5, {memoryLimit: -1}, {memoryLimit: 1.5}, {strict: 1}, {signal: 5}, {onProgress: 5}]) await broken('ErrInvalid', undefined, () => bytes, options, JSON.stringify(options));
    const mine = new Error('mine');
    await broken('ErrInvalid', undefined, () => bytes, {onProgress() { throw mine; }}, 'an error in onProgress');
    await gpu.loadParams(bytes, {onProgress() { throw mine; }}).catch((error) => check(error.cause === mine, 'its cause'));
    await fails('ErrFormat', 'scanning', () => gpu.scanParams(new Blob([new Uint8Array(100)])));
  }),

  tensors: onBoth(async (gpu) => {
    const values = Float32Array.from({length: 24}, (_, i) => i), t = gpu.tensor(values, [2, 3, 4]), own = t.eval(), saved = {t, own, permuted: t.permute(2, 0, 1), one: t.sum(), none: gpu.tensor([], [0, 2]), bits: t.astype('uint8')};
    const params = await gpu.loadParams(await gpu.saveParams(Object.entries(saved)));
    for (const [name, x] of Object.entries(saved)) {
      const param = params.get(name);
      check(param.shape.join() === x.shape.join() && param.dtype === x.dtype, `${name}: ${param.dtype} ${param.shape}`);
      same(await param.read(), await x.read(), name);
    }
    params.close();
    own.close();
    await fails('ErrClosed', 'a closed tensor', () => gpu.saveParams([['t', own]]));
    for (const wrong of [[1, 2], values, null, 'x', 3]) await fails('ErrInvalid', 'no array', () => gpu.saveParams([['w', wrong]]));
  }),

  detached: onBoth(async (gpu) => {
    const bytes = await fileOf('dlr_4in2out_v2.params'), before = gpu.stats().liveBytes, detach = (buffer) => {
      structuredClone(buffer, {transfer: [buffer]});
      return buffer;
    };
    const gone = detach(bytes.slice().buffer), view = bytes.slice(), data = new DataView(bytes.slice().buffer);
    detach(view.buffer);
    detach(data.buffer);
    for (const [what, memory] of Object.entries({'an ArrayBuffer': gone, 'a typed array': view, 'a DataView': data})) {
      await fails('ErrInvalid', `loading ${what}`, () => gpu.loadParams(memory));
      await fails('ErrInvalid', `scanning ${what}`, () => gpu.scanParams(memory));
      await fails('ErrInvalid', `a promise of ${what}`, () => gpu.loadParams(Promise.resolve(memory)));
      await fails('ErrInvalid', `saving ${what}`, () => gpu.saveParams([['a', {data: memory, dtype: 'uint8', shape: [bytes.length]}]]));
    }
    await fails('ErrStream', 'a piece', () => gpu.loadParams((async function* () { yield view; })()));
    const large = new Uint8Array(3 << 20), file = await (await gpu.saveParams([['a', {data: large, shape: [large.length]}]])).arrayBuffer();
    await fails('ErrStream', 'while it is loaded', () => gpu.loadParams(file, {onProgress() { if (file.byteLength > 0) detach(file); }}));
    await nothingLeft(gpu, before, 'of what was detached');
  }),

  aborted: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes, bytes = await fileOf('dlr_4in2out_v2.params'), reason = new Error('enough');
    const gone = (what, run) => fails('ErrAborted', what, () => run().catch((error) => {
      check(error.cause === reason, `${what}: cause ${error.cause}`);
      throw error;
    }));
    await gone('before', () => gpu.loadParams(bytes, {signal: AbortSignal.abort(reason)}));
    for (const n of [0, 20, 150, 250]) {
      const control = new AbortController(), noted = {};
      const stalled = new ReadableStream({
        pull(c) {
          if (n > 0 && !noted.begun) c.enqueue(bytes.subarray(0, n));
          else setTimeout(() => control.abort(reason), 5);
          const wait = noted.begun || n === 0;
          noted.begun = true;
          return wait ? new Promise(() => {}) : undefined;
        },
        cancel() { noted.cancelled = true; },
      }, {highWaterMark: 0});
      await gone(`after ${n} bytes`, () => gpu.loadParams(stalled, {signal: control.signal}));
      await nothingLeft(gpu, before, `after ${n} bytes`);
      check(noted.cancelled, 'the stream was not cancelled');
    }
    const control = new AbortController();
    await gone('in onProgress', () => gpu.loadParams(streamOf(pieces(bytes, 100)), {signal: control.signal, onProgress: () => control.abort(reason)}));
    await nothingLeft(gpu, before, 'in onProgress');

    const entries = [['a', gpu.zeros(1000, 1000)]], saving = new AbortController();
    await entries[0][1].sum().value(); // now it has its memory
    const live = gpu.stats().liveBytes;
    await gone('a save', () => gpu.saveParams(entries, {signal: saving.signal, to: new WritableStream({write() { saving.abort(reason); }})}));
    const stalls = new AbortController(), stalled = new WritableStream({write: () => new Promise(() => { setTimeout(() => stalls.abort(reason), 5); })});
    await gone('a save to what does not go on', () => gpu.saveParams(entries, {signal: stalls.signal, to: stalled}));
    const stream = await gpu.saveParams(entries, {type: 'stream'}), reader = stream.getReader();
    check((await reader.read()).value.length > 0, 'nothing came');
    await reader.cancel();
    await nothingLeft(gpu, live, 'a save');
    const failing = new WritableStream({write() { throw reason; }});
    await fails('ErrStream', 'a failing destination', () => gpu.saveParams(entries, {to: failing}).catch((error) => { check(error.cause === reason, 'its cause'); throw error; }));
    entries[0][1].close();
    await nothingLeft(gpu, before, 'all of it');
    same(await (await gpu.loadParams(bytes)).get('data4').read(), real['dlr_4in2out_v2.params'].data4, 'a later load');
  }),

  closedMeanwhile: onBoth(async (gpu) => {
    const other = await init();
    const noted = {};
    const load = other.loadParams(new ReadableStream({pull: () => new Promise(() => {}), cancel() { noted.cancelled = true; }}, {highWaterMark: 0}));
    const stream = await other.saveParams([['a', other.zeros(2000, 1000)]], {type: 'stream'});
    await fails('ErrForeign', 'of another device', () => gpu.saveParams([['a', other.zeros(1, 1)]]));
    const save = other.saveParams([['a', other.zeros(1, 1)]], {to: new WritableStream({write: () => new Promise(() => { setTimeout(() => other.close(), 5); })})});
    await Promise.all([fails('ErrClosed', 'a save to what does not go on', () => save), fails('ErrClosed', 'a load', () => load)]);
    await fails('ErrClosed', 'a save', async () => { for await (const _ of stream) await null; });
    await fails('ErrClosed', 'afterwards', () => other.loadParams(new Uint8Array(9)));
    check(noted.cancelled, 'the stream was not cancelled');
  }),

  severalAtOnce: onBoth(async (gpu) => {
    const data = Float32Array.from({length: 300000}, (_, i) => i), all = [];
    for (let k = 0; k < 4; k++) {
      const file = dictionary([{name: 'x', type: [2, 32], shape: [300, 1000], data: data.map((x) => x + k)}]);
      all.push(gpu.loadParams(k % 2 ? file : streamOf(pieces(await bytesOf(file), 65536 + k))));
    }
    const sums = all.map(async (load) => (await load).get('x').matrix().slice([0, 300], [0, 3]).sum().value());
    const m = gpu.full(100, 100, 1);
    for (let k = 0; k < 10; k++) m.assign(m.mul(2)); // goes on meanwhile
    same(await m.slice([0, 1], [0, 1]).read(), [1024], 'other work');
    const want = (k) => 300 * (0 + 1 + 2) + 3 * 1000 * 299 * 150 + 900 * k;
    (await Promise.all(sums)).forEach((sum, k) => same([sum], [want(k)], `load ${k}`, 64));
  }),

  async largeStream() {
    await measured(webgpu, async (gpu, memory) => {
      const warm = gpu.full(1, 1, 1);
      await warm.add(1).read();
      warm.close();
      const empty = memory(), limit = 32 * MIB, before = gpu.stats().liveBytes;
      let given = 0, told = 0, ahead = 0;
      const source = (async function* () {
        for await (const bytes of largeBytes()) {
          ahead = Math.max(ahead, given - told);
          given += bytes.length;
          yield bytes;
        }
      })();
      const loaded = await gpu.loadParams(source, {onProgress({loaded: n}) { told = n; }});
      check(loaded.size === ARRAYS && told === given && given > ARRAYS * MIB, `${loaded.size} arrays, ${told} of ${given} bytes`);
      check(ahead <= 400000, `the source was ${ahead} bytes ahead`);
      check(memory() - empty < limit, `the program's memory grew by ${memory() - empty} bytes`);
      check(gpu.stats().liveBytes - before === ARRAYS * MIB, `${gpu.stats().liveBytes - before} bytes on the device`);
      for (const k of [0, 17, 63]) {
        const values = await loaded.get(`array ${k}`).read();
        for (let i = 0; i < values.length; i += 1001) check(values[i] === element(k, i), `array ${k}, element ${i} is ${values[i]}`);
      }
      // The same file again, compared as it comes.
      const want = largeBytes([1 << 16])[Symbol.asyncIterator]();
      let have = new Uint8Array(0), at = 0, total = 0;
      await gpu.saveParams(loaded, {to: new WritableStream({
        async write(bytes) {
          total += bytes.length;
          for (let i = 0; i < bytes.length;) {
            if (at === have.length) [have, at] = [(await want.next()).value, 0];
            const n = Math.min(bytes.length - i, have.length - at);
            const [got, must] = [bytes.subarray(i, i + n), have.subarray(at, at + n)];
            check(indexedDB.cmp(got, must) === 0, `other bytes before ${total}`);
            i += n;
            at += n;
          }
        },
      })});
      check(total === given && (await want.next()).done, `${total} bytes of ${given} were saved`);
      check(memory() - empty < limit, `the program's memory grew by ${memory() - empty} bytes in all`);
      loaded.close();
      await nothingLeft(gpu, before, 'a large file');
    });
  },

  largeOnCpu: onBoth(async (gpu) => {
    const loaded = await gpu.loadParams(largeBytes());
    const last = await loaded.get(`array ${ARRAYS - 1}`).read();
    for (let i = 0; i < last.length; i += 997) check(last[i] === element(ARRAYS - 1, 0), `element ${i} is ${last[i]}`);
  }),

  scanReadsHeadersOnly: onBoth(async (gpu) => {
    class Counted extends Blob {
      read = 0;
      slice(from, to) {
        this.read += Math.min(to, this.size) - from;
        return super.slice(from, to);
      }
    }
    const parts = [...large()], file = new Counted(parts), before = gpu.stats();
    const headers = await gpu.scanParams(file);
    check(headers.length === ARRAYS && headers.every(({nbytes, dtype}) => nbytes === MIB && dtype === 'float32'), `${headers.length} headers`);
    check(file.read <= 2 * MIB, `${file.read} bytes were read`);
    const {offset, name} = headers[5];
    const [first, second] = new Float32Array(await file.slice(offset, offset + 8).arrayBuffer());
    check(name === 'array 5' && first === element(5, 0) && second === element(5, 1), `${first} at ${offset}`);
    const after = gpu.stats();
    check(after.bytesUp === before.bytesUp && after.liveBytes === before.liveBytes, 'a scan uses the device');
  }),
};
