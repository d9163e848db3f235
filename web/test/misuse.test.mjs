// SPDX-License-Identifier: Apache-2.0

// Calls that went wrong without a word: each is an error that names the call, or does what it says.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {init} from '../dist/index.mjs';

/** @type {any} */
let gpu;
before(async () => { gpu = await init({device: 'simd', threads: 1}); });
after(() => gpu.close());

const refused = async (/** @type {string} */ code, /** @type {RegExp} */ message, /** @type {() => any} */ run) =>
  assert.rejects(async () => run(), (/** @type {any} */ error) => error.code === code && message.test(error.message) || assert.fail(`${error.code}: ${error.message}`));

test('operands of two types are an error everywhere', async () => {
  const a = gpu.matrix([[3, 1], [1, 2]]), others = [gpu.eye(2, {dtype: 'int32'}), a.astype('float16'), gpu.eye(2, {dtype: 'bool'})];
  for (const b of others) {
    for (const name of ['add', 'pow', 'matmul', 'dot', 'solve', 'solveLower', 'solveUpper', 'solveStack', 'lstsq', 'kron', 'dotRows', 'searchSorted']) {
      await refused('ErrInvalid', new RegExp(`^sublet: ${name}: float32 with ${b.dtype}; convert with astype$`), () => (name === 'searchSorted' ? a.row(0) : a)[name](b).read());
    }
    for (const name of ['concatenate', 'stack']) await refused('ErrInvalid', new RegExp(`^sublet: ${name}: float32 with ${b.dtype}; `), () => gpu[name]([a, b]));
    await refused('ErrInvalid', /^sublet: where: /, () => gpu.where(a, a, b));
    await refused('ErrInvalid', /with (int32|bool)|(int32|bool) with|float16/, () => a.complex(a).solve(b).read());
  }
  assert.deepEqual([...await a.astype('float16').solve(a.astype('float16')).astype('float32').round().read()], [1, 0, 0, 1]);
  assert.deepEqual([...await a.complex(a.mul(0)).solve(a).real().round().read()], [1, 0, 0, 1]); // float32 beside complex64
});

test('what is no object of options is none', async () => {
  const a = gpu.ones(2, 2), t = gpu.tensor([1, 2], [2]);
  for (const x of [a, a.add(1), t, gpu, new Map(), new Date(0), gpu.nn.sgd()]) {
    for (const call of [() => gpu.max(a, x), () => a.sum(x), () => a.sort(x), () => t.mean(x), () => gpu.zeros(2, 2, x), () => gpu.arange(2, x), () => a.norm(x), () => a.read(x), () => gpu.sync(x)]) {
      await refused('ErrInvalid', /: options that are a \w+ and no object of options$/, call);
    }
  }
  class Options { axis = 0; }
  assert.deepEqual([...await a.sum(new Options()).read()], [2, 2]);
  assert.deepEqual([...await a.sum(Object.assign(Object.create(null), {axis: 0})).read()], [2, 2]);
});

test('arguments that a call does not take', async () => {
  const a = gpu.matrix([[1, 2], [3, 4]]), t = gpu.tensor([1, 2], [2]), s = gpu.sparse(2, 2, {format: 'csr', values: [3, 4], indices: [1, 0], offsets: [0, 1, 2]});
  const calls = {
    transpose: () => a.transpose(0, 1), row: () => a.row(0, 1), col: () => a.col(0, 1), eval: () => a.eval(1), clone: () => a.clone(1), touch: () => a.touch(1),
    assign: () => a.assign(1, 2), astype: () => a.astype('int32', 1), with: () => s.with(1, 2), move: () => a.memory.move(1), reset: () => a.memory.reset(1), alias: () => a.memory.alias(1),
    read: () => a.read(new Float32Array(4), {}, 1), real: () => t.real(1), expr: () => t.expr(1), expandDims: () => t.expandDims(0, 1),
  };
  for (const [name, call] of Object.entries(calls)) await refused('ErrInvalid', new RegExp(`^sublet: ${name}: \\d arguments; `), call);
  await refused('ErrInvalid', /^sublet: eval: 1 arguments/, () => t.eval(1));
  await refused('ErrInvalid', /^sublet: transpose: 2 arguments/, () => gpu.transpose(a, 1, 0));
  await refused('ErrInvalid', /^sublet: eye: 2x3; it is square/, () => gpu.eye(2, 3));
  await refused('ErrShape', /^sublet: matrix: a typed array in place of sizes; it takes/, () => gpu.matrix(new Float32Array(4), 2, 2));
  await refused('ErrInvalid', /^sublet: save: "a": an array is neither a matrix/, () => gpu.save({a: [1, 2]}, {format: 'npz'}));
  await refused('ErrInvalid', /^sublet: saveParams: "a": an array is neither a matrix/, () => gpu.saveParams([['a', [1, 2]]]));
  assert.deepEqual([...await a.read()], [1, 2, 3, 4]);
});

test('errors name what was called', async () => {
  const a = gpu.ones(2, 3), b = gpu.ones(3, 3);
  await refused('ErrShape', /^sublet: dot: 2x3 by 2x3: /, () => a.dot(a));
  await refused('ErrInvalid', /^sublet: dot: /, () => a.dot('x'));
  await refused('ErrShape', /^sublet: concatenate: 2x3 by 3x3: dimension mismatch: each needs 2 rows$/, () => gpu.concatenate([a, b], 1));
  await refused('ErrShape', /^sublet: concatenate: 2x3 by 3x2: dimension mismatch: each needs 3 columns$/, () => gpu.concatenate([a, b.slice(null, [0, 2])]));
  await refused('ErrShape', /^sublet: stack: 2x3 by 3x3: /, () => gpu.stack([a, b]));
  for (const name of ['concatenate', 'stack']) for (const list of [undefined, [], [5], [a, 5], ['x'], [gpu.tensor([1], [1])]]) await refused('ErrInvalid', new RegExp(`^sublet: ${name}: `), () => gpu[name](list));
  await refused('ErrIndex', /^sublet: norm: /, () => a.norm({axis: 7}));
  await refused('ErrInvalid', /^sublet: svd: /, () => a.svd(1));
  const signal = AbortSignal.abort();
  for (const name of ['value', 'read', 'detach']) await refused('ErrAborted', new RegExp(`^sublet: ${name}: it was aborted`), () => gpu.ones(1, 1)[name]({signal}));
  await refused('ErrUnsupported', /in access\(\)$/, () => gpu.map(1, 1).set([1]));
  assert.equal((await gpu.stack([gpu.zeros(0, 3), gpu.zeros(0, 3)]).read()).length, 0);
});

test('an array that is taken away while it is read into', async () => {
  const gone = new Float32Array(4), buffer = new ArrayBuffer(16, /** @type {any} */ ({maxByteLength: 32})), a = gpu.ones(2, 2);
  const reads = [a.read(gone), a.read(new Float32Array(buffer))];
  structuredClone(gone.buffer, {transfer: [gone.buffer]});
  /** @type {any} */ (buffer).resize(4);
  for (const read of reads) await assert.rejects(read, {name: 'SubletError', message: /transferred.*resized/}); // ErrShort, or ErrInvalid while it is written to
});

test('who waits is told', async () => {
  const m = gpu.map(1, 2), controller = new AbortController();
  /** @type {(x: unknown) => void} */
  let finish = () => {};
  const access = m.access(true, (/** @type {Float32Array} */ data) => new Promise((resolve) => { finish = () => resolve(data.set([3, 4])); }), {signal: controller.signal});
  await gpu.sync();
  controller.abort('late');
  await refused('ErrAborted', /^sublet: access: it was aborted$/, () => access);
  await refused('ErrMapped', /access/, () => m.read()); // the callback has it still
  finish(undefined);
  await new Promise((resolve) => setTimeout(resolve));
  assert.deepEqual([...await m.read()], [3, 4]);

  const other = await init({device: 'simd', threads: 1}), graph = await other.graph();
  graph.task('t', (/** @type {any} */ {x}) => x, {inputs: ['x'], outputs: ['y']});
  const x = graph.input('t.x', {capacity: 1}), y = graph.output('t.y', {capacity: 1});
  const early = x.push(1), full = x.push(2);
  const waiting = [full, y.pull()];
  await early;
  other.close();
  for (const promise of waiting) await refused('ErrClosed', /closed/, () => promise);
});

test('null is no number of items', async () => {
  const cr = await gpu.cruncher('fn twice(i: u32) { x[i] = 2.0 * x[i]; }'), x = cr.array('x', new Float32Array([1]));
  for (const range of [{global: null}, {global: 1, local: null}, {global: 1, offset: null}]) await refused('ErrInvalid', /^sublet: compute: \w+ null$/, () => cr.compute(1, 'twice', range, x));
  for (const [name, range] of Object.entries({global: {global: -1}, local: {global: 1, local: -1}, offset: {global: 1, offset: -1}, blobs: {global: 1, blobs: -1}, repeat: {global: 1, repeat: -1}})) {
    await refused('ErrRange', new RegExp(`: ${name} -1, which is negative$`), () => cr.compute(1, 'twice', range, x));
  }
  cr.close();
});

test('stages of a pipeline', async () => {
  const cr = await gpu.cruncher('fn copy(i: u32) { y[i] = x[i]; }'), [x, y] = ['x', 'y'].map((name) => cr.array(name, 3)), stage = {steps: [{kernels: 'copy', global: 4}], inputs: [x], outputs: [y]};
  for (const name of ['pipeline', 'devicePipeline']) await refused('ErrInvalid', new RegExp(`^sublet: ${name}: no stage$`), () => cr[name]([]));
  await refused('ErrLength', /y has 3 elements, the range needs 4$/, () => cr.devicePipeline([stage]));
  y.writeAll = true;
  await cr.devicePipeline([stage]);
  cr.close();
});

test('what is no Gpu, and what another device has', async () => {
  const graph = await gpu.graph();
  for (const wrong of [null, 5, {}, 'webgpu']) {
    await refused('ErrInvalid', /^sublet: graph: gpus has (null|5|an object|"webgpu"); a Gpu/, () => gpu.graph({gpus: [wrong]}));
    for (const name of ['gpu', 'prefer', 'waitFor']) await refused('ErrInvalid', new RegExp(`^sublet: task: ${name} (null|5|an object|"webgpu"); a Gpu`), () => graph.task('t', () => 1, {inputs: ['x'], [name]: wrong}));
  }
  const buffer = {[Symbol.toStringTag]: 'GPUBuffer', size: 16}, a = gpu.zeros(2, 2), o = {setValueOnDevice: true};
  for (const call of [() => gpu.wrapBuffer(buffer, 2, 2), () => gpu.fromBuffer(buffer, 2, 2, o), () => a.memory.rebind(buffer, 2, 2), () => a.memory.setValueFrom(buffer, 2, 2, o)]) {
    assert.throws(call, {code: 'ErrForeign', message: /: a GPUBuffer, where simd computes$/});
  }
  graph.close();
});

test('whole numbers of the Matrix Market stay what they are', async () => {
  const load = (/** @type {string} */ text) => gpu.load(new TextEncoder().encode(text));
  for (const [dtype, most] of [['int32', 2147483647], ['uint32', 4294967295], ['int16', -32768]]) {
    const x = gpu.matrix(1, 2, [most, 1], {dtype}), again = await gpu.load(await x.save({format: 'mtx'}));
    assert.equal(again.dtype, dtype === 'int16' ? 'int32' : dtype);
    assert.deepEqual([...await again.read()], [most, 1]);
  }
  const s = gpu.sparse(1, 2, {format: 'csr', values: new Int32Array([16777217]), indices: [1], offsets: [0, 1]}), again = await gpu.load(await s.save({format: 'mtx'}));
  assert.equal(again.dtype, 'int32');
  assert.deepEqual([...await again.read()], [0, 16777217]);
  assert.equal((await load('%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n')).dtype, 'float32');
  await refused('ErrInvalid', /99999999999 as int32; \{dtype\} names another type$/, () => load('%%MatrixMarket matrix array integer general\n1 1\n99999999999\n'));
});
