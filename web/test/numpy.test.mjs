// SPDX-License-Identifier: Apache-2.0

// What users of NumPy and SciPy try first.

import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';

import {init} from '../dist/index.mjs';

/** @type {any} */
let gpu;
before(async () => { gpu = await init({device: 'simd', threads: 1}); });
after(() => gpu.close());

/** @param {any} x @param {readonly number[]} want */
async function near(x, want, shape = x.shape) {
  assert.deepEqual(x.shape, shape);
  const got = await x.read();
  assert.equal(got.length, want.length);
  want.forEach((v, i) => assert.ok(Math.abs(got[i] - v) <= 1e-5 * Math.max(1, Math.abs(v)), `${got} where ${want} is wanted`));
}

const refused = async (/** @type {string} */ code, /** @type {RegExp} */ message, /** @type {() => any} */ run) =>
  assert.rejects(async () => run(), (/** @type {any} */ error) => error.code === code && message.test(error.message) || assert.fail(`${error.code}: ${error.message}`));

test("NumPy's names", async () => {
  const a = gpu.matrix([[1, 2, 3], [4, 5, 6]]), s = gpu.matrix([[4, 1], [1, 3]]), i = gpu.matrix([[2, 0], [5, 1]], {dtype: 'int32'});
  await near(a.dot(a.T), [14, 32, 32, 77], [2, 2]);
  await near(gpu.dot(2, a), [2, 4, 6, 8, 10, 12], [2, 3]);
  await near(a.take(i), [3, 1, 6, 2], [2, 2]);
  await near(gpu.take(a, gpu.matrix([[2, 0]], {dtype: 'int32'}), {axis: -1}), [3, 1, 6, 4], [2, 2]);
  await near(a.norm(), [Math.sqrt(91)], [1, 1]);
  await near(a.norm({axis: 0}), [17, 29, 45].map(Math.sqrt), [1, 3]);
  for (const parts of [a.svd(), gpu.svd(a)]) await near(parts[0].mul(parts[1]).matmul(parts[2]), [1, 2, 3, 4, 5, 6], [2, 3]);
  const [q, r] = a.qr(), [values, vectors] = s.eigh(), [sign, log] = gpu.slogdet(s);
  await near(q.dot(r), [1, 2, 3, 4, 5, 6], [2, 3]);
  await near(vectors.mul(values).dot(vectors.T), [4, 1, 1, 3], [2, 2]);
  await near(sign.mul(log.exp()), [11]);
  await near(gpu.concatenate([a, a]), [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6], [4, 3]);
  await near(gpu.concatenate([s, s], {axis: 1}), [4, 1, 4, 1, 1, 3, 1, 3], [2, 4]);
  await near(gpu.stack([s, s]), [4, 1, 1, 3, 4, 1, 1, 3], [2, 2, 2]);
  await near(gpu.matrix([[-7, 7]]).remainder(3), [2, 1]);
  await refused('ErrInvalid', /sublet: norm: order 2; .*singularValues/, () => a.norm(2));
  await refused('ErrInvalid', /sublet: take: an array; indices are a matrix/, () => a.take([0, 1], 0));
  await refused('ErrShape', /sublet: stack: 2x3 by 1x3/, () => gpu.stack([a, a.row(0)]));
  await refused('ErrIndex', /axis 2; a matrix has 0 and 1/, () => gpu.concatenate([a, a], 2));
});

test('shapes as arrays, options after any argument, and arguments that are too many', async () => {
  const a = gpu.matrix([[1, 2], [3, 4]]);
  await near(a.reshape([4, 1]), [1, 2, 3, 4], [4, 1]);
  await near(a.reshape([-1, 1]), [1, 2, 3, 4], [4, 1]);
  await near(gpu.zeros([2, 1], {dtype: 'int32'}), [0, 0], [2, 1]);
  await near(gpu.full([1, 2], 3), [3, 3], [1, 2]);
  await near(gpu.wrap(Float32Array.of(1, 2), [2, 1]), [1, 2], [2, 1]);
  await near(a.tile([1, 2]), [1, 2, 1, 2, 3, 4, 3, 4], [2, 4]);
  await near(a.row(0).broadcastTo([2, 2]), [1, 2, 1, 2], [2, 2]);
  assert.deepEqual(gpu.map([3, 2]).shape, [3, 2]);
  assert.deepEqual(await gpu.uniform([1, 3], 0, 1, 7).read(), await gpu.uniform(1, 3, 0, 1, 7).read());
  for (const x of [gpu.normal(1, 2, {dtype: 'float16'}), gpu.normal([1, 2], 0, {dtype: 'float16'}), gpu.normal(1, 2, 0, 1, 7, 0, {dtype: 'float16'}), gpu.arange(3, {dtype: 'float16'}), gpu.matrix(1, 1, {dtype: 'float16'})]) assert.equal(x.dtype, 'float16');
  for (const run of [() => a.sum(0, 1), () => a.exp(1), () => gpu.exp(a, 1), () => gpu.zeros(2, 2, 2, 2), () => gpu.zeros(2, 2, {}, {}), () => a.reshape(2, 2, 1), () => a.add(1, 2), () => a.tile(1, 1, 1),
    () => gpu.arange(0, 1, 1, 1), () => gpu.add(a, 1, 2), () => a.tensor(2, 2).exp(1), () => gpu.where(a, 1, 2, 3), () => a.solve(a, a), () => gpu.vstack([a], [a])]) await refused('ErrInvalid', /\d arguments; it takes (none|\d) at most$/, run);
  await refused('ErrShape', /a shape of 3 dimensions/, () => gpu.zeros([2, 2, 2]));
  await refused('ErrInvalid', /option "dtpye"; .*dtype/, () => gpu.normal(1, 2, {dtpye: 'float16'}));
});

test('messages name what was called', async () => {
  const whole = gpu.matrix([[1, 2], [3, 4]], {dtype: 'int32'}), a = gpu.matrix([[1, 2, 3]]);
  for (const name of ['inv', 'det', 'cholesky', 'pinv', 'expm', 'eigenvalues']) await refused('ErrUnsupported', new RegExp(`^sublet: ${name}: not defined for int32, but for .*; convert with astype$`), () => whole[name]().read());
  await refused('ErrNotSquare', /^sublet: logDet: 1x3/, () => a.logDet().read());
  await refused('ErrInvalid', /^sublet: argMax: of no elements: 0x3$/, () => gpu.zeros(0, 3).argMax(0));
  assert.deepEqual(gpu.zeros(0, 3).argMax(1).shape, [0, 1]);
  await refused('ErrStream', /^sublet: load: http:\/\/127\.0\.0\.1:1\/x\.npy: fetch failed: ./, () => gpu.load('http://127.0.0.1:1/x.npy?token=1'));
  for (const path of ['/nowhere.npy', new URL('file:///nowhere.npy')]) await refused('ErrStream', /nowhere\.npy: .*; of a file outside a page load what readFile gives$/, () => gpu.load(path));
});

test('sparse matrices of entries', async () => {
  const s = gpu.sparse({rows: [1, 0, 1, 1], cols: [2, 1, 0, 2], values: [1, 2, 3, 4], shape: [2, 3]});
  assert.deepEqual([s.format, s.nnz], ['csr', 3]);
  await near(s, [0, 2, 0, 3, 0, 5], [2, 3]);
  await near(gpu.sparse({rows: [], cols: [], values: new Int32Array(0), shape: [0, 3]}), [], [0, 3]);
  for (const [code, more] of /** @type {[string, object][]} */ ([['ErrIndex', {rows: [0, 0, 0, 2]}], ['ErrIndex', {cols: [-1, 0, 0, 0]}], ['ErrShort', {cols: [0]}], ['ErrShape', {shape: [2]}], ['ErrInvalid', {shape: undefined}], ['ErrInvalid', {shape: 2}],
    ['ErrShort', {values: [1]}], ['ErrNil', {values: undefined}], ['ErrNil', {rows: undefined}], ['ErrInvalid', {row: []}], ['ErrUnsupported', {dtype: 'int8'}], ['ErrSize', {shape: [-1, 2]}]])) {
    await refused(code, /^sublet: sparse: /, () => gpu.sparse({rows: [1, 0, 1, 1], cols: [2, 1, 0, 2], values: [1, 2, 3, 4], shape: [2, 3], ...more}));
  }
});

/** An array as a file of NumPy's. @param {string} descr @param {number} length @param {ArrayBuffer | Uint8Array<ArrayBuffer>} data */
function npy(descr, length, data) {
  const header = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${length < 0 ? '' : `${length},`}), }`.padEnd(117) + '\n';
  return new Uint8Array([...'\x93NUMPY\x01\x00v\x00'].map((c) => c.charCodeAt(0)).concat([...header].map((c) => c.charCodeAt(0)), ...new Uint8Array(/** @type {ArrayBuffer} */ (data).slice(0))));
}

const whole = (/** @type {number[]} */ list) => npy('<i4', list.length, Int32Array.from(list).buffer);
const floats = (/** @type {number[]} */ list) => npy('<f8', list.length, Float64Array.from(list).buffer);
const letters = (/** @type {string} */ text) => npy(`|S${text.length}`, -1, new TextEncoder().encode(text));

/** An archive of stored members, with sizes and places of 64 bits as NumPy writes them of files of 4 GiB. @param {Record<string, Uint8Array>} members @param {(bytes: DataView, end: number) => void} [spoil] */
function zip64(members, spoil = () => {}) {
  /** @type {number[]} */
  const bytes = [], /** @type {number[]} */ directory = [];
  const put = (/** @type {number[]} */ to, /** @type {[number, number][]} */ ...fields) => fields.forEach(([size, n]) => { for (let i = 0; i < size; i++) to.push(Math.floor(n / 2 ** (8 * i)) % 256); });
  const all = 0xffffffff;
  for (const [name, data] of Object.entries(members)) {
    const path = [...`${name}.npy`].map((c) => c.charCodeAt(0)), at = bytes.length, sum = crc(data);
    put(bytes, [4, 0x04034b50], [2, 45], [2, 0], [2, 0], [4, 33], [4, sum], [4, all], [4, all], [2, path.length], [2, 20]);
    bytes.push(...path);
    put(bytes, [2, 1], [2, 16], [8, data.length], [8, data.length]);
    bytes.push(...data);
    put(directory, [4, 0x02014b50], [4, 45 * 65537], [2, 0], [2, 0], [4, 33], [4, sum], [4, all], [4, all], [2, path.length], [2, 32], [2, 0], [8, 0], [4, all]);
    directory.push(...path);
    put(directory, [4, 9], [2, 1], [2, 24], [8, data.length], [8, data.length], [8, at]);
    directory.splice(directory.length - 32, 4, 9, 0, 0, 0); // another field before it, of no bytes
  }
  const start = bytes.length, many = Object.keys(members).length, end = start + directory.length;
  bytes.push(...directory);
  put(bytes, [4, 0x06064b50], [8, 44], [4, 45 * 65537], [4, 0], [4, 0], [8, many], [8, many], [8, directory.length], [8, start]);
  put(bytes, [4, 0x07064b50], [4, 0], [8, end], [4, 1], [4, 0x06054b50], [4, 0], [2, 0xffff], [2, 0xffff], [4, all], [4, all], [2, 0]);
  const file = Uint8Array.from(bytes);
  spoil(new DataView(file.buffer), end);
  return file;
}

/** @param {Uint8Array} data */
function crc(data) {
  let sum = -1;
  for (const byte of data) {
    sum ^= byte;
    for (let k = 0; k < 8; k++) sum = sum & 1 ? sum >>> 1 ^ 0xedb88320 : sum >>> 1;
  }
  return ~sum >>> 0;
}

test('archives with sizes of 64 bits', async () => {
  const file = await gpu.load(zip64({a: whole([1, 2]), b: whole([3])}), {format: 'npz'});
  assert.deepEqual([...file.keys()], ['a', 'b']);
  await near(file.get('b'), [3]);
  file.close();
  for (const [at, value] of [[48, 1], [52, 1], [40, 7], [32, 9], [44, 255], [56, 0], [64, 1], [68, 1], [72, 2], [16, 1]]) {
    await refused('ErrFormat', /^sublet: load: /, () => gpu.load(zip64({a: whole([1, 2])}, (view, end) => view.setUint32(end + at, value, true)), {format: 'npz'}));
  }
});

test("SciPy's sparse matrices", async () => {
  const csr = {format: letters('csr'), shape: whole([2, 3]), data: floats([5, 2, 3]), indices: whole([2, 1, 0]), indptr: whole([0, 2, 3])};
  const load = (/** @type {object} */ more, options = {}) => gpu.load(zip64({...csr, ...more}), {dtype: 'float32', ...options});
  await near(await load({}), [0, 2, 5, 3, 0, 0], [2, 3]);
  await near(await load({format: letters('csc'), indptr: whole([0, 1, 2, 3]), indices: whole([1, 1, 0])}), [0, 0, 3, 5, 2, 0], [2, 3]);
  await near(await load({format: letters('coo'), row: whole([1, 1, 0]), col: whole([2, 2, 0])}), [3, 0, 0, 0, 0, 7], [2, 3]);
  assert.ok((await load({}, {names: ['data']})).has('data'));
  for (const [code, more] of /** @type {[string, object][]} */ ([['ErrType', {format: letters('bsr')}], ['ErrFormat', {indptr: whole([0, 2])}], ['ErrFormat', {indptr: whole([0, 4, 3])}], ['ErrFormat', {indptr: whole([0, 2, 2])}],
    ['ErrFormat', {shape: whole([2])}], ['ErrFormat', {indices: whole([0, 1, -1])}], ['ErrFormat', {indices: whole([0])}], ['ErrIndex', {indices: whole([0, 1, 3])}], ['ErrTooLarge', {format: letters('coo'), row: whole([0, 0, 0]), col: whole([0, 0, 0]), shape: whole([0x7fffffff, 3])}],
    ['ErrFormat', {format: letters('coo')}]])) await refused(code, /^sublet: /, () => load(more));
  await refused('ErrTooLarge', /memoryLimit/, () => load({}, {memoryLimit: 200}));
  await refused('ErrUnsupported', /float64; \{dtype: "float32"\} converts/, () => load({}, {dtype: undefined}));
});
