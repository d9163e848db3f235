// SPDX-License-Identifier: Apache-2.0

import {bytesOf} from './data.mjs';
import {DTYPES, halfBits, halfNumber} from './dtype.mjs';
import {allocate, failure, show} from './errors.mjs';
import {SIZES, countOf, distinct} from './files/bytes.mjs';
import {BANNER, ROWS_LEAST, ROWS_MOST, readMtx, writeArray, writeCoordinates} from './files/mtx.mjs';
import {MAGIC, readNpy, writeNpy} from './files/npy.mjs';
import {openNpz, readNpz, writeNpz} from './files/npz.mjs';
import {openFile} from './files/open.mjs';
import {readSafetensors, writeSafetensors} from './files/safetensors.mjs';
import {isSciPy, readSciPy} from './files/scipy.mjs';
import {FORMATS} from './saving.mjs';
import {checkSignal, read} from './source.mjs';

// Loads files and saves them.

/** @typedef {import('./saving.mjs').Taken} Taken */
/** @typedef {import('./files/bytes.mjs').File} File */
/** @typedef {import('./files/bytes.mjs').Entry} Entry */
/** @typedef {import('./files/bytes.mjs').Saved} Saved */
/** @typedef {import('./gpu.mjs').Gpu} Gpu */
/** @typedef {import('./session.mjs').Session} Session */

/** The arrays of a file, by name and in its order. @extends {Map<string, any>} */
class FileArrays extends Map {
  close() {
    for (const array of this.values()) array.close();
  }

  [Symbol.dispose]() {
    this.close();
  }

  get [Symbol.toStringTag]() { return 'SubletFileArrays'; }
}

// Loading.

/** The format of a file, by its first bytes or its name. @param {File} file @param {string} name */
async function formatOf(file, name) {
  const start = String.fromCharCode(...await file.slice(0, Math.min(file.size, 16)));
  if (start.startsWith(MAGIC)) return 'npy';
  if (start.startsWith('PK\x03\x04') || start.startsWith('PK\x05\x06')) return 'npz';
  if (start.toLowerCase().startsWith(BANNER.toLowerCase())) return 'mtx';
  if (start.startsWith('\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7')) throw file.fail('ErrFormat', 'a parameter dictionary; use loadParams', 0);
  const named = FORMATS.find((format) => name.toLowerCase().endsWith(`.${format}`));
  if (named || start[8] === '{') return named ?? 'safetensors';
  throw file.fail('ErrFormat', `it begins like none of ${FORMATS.join(', ')}; say which with the option format`, 0);
}

/** The numbers of elements, those of 64 bits as bigints. @param {string} dtype @param {Uint8Array<ArrayBuffer>} bytes @returns {ArrayLike<number | bigint> | null} null for what JavaScript cannot show */
function numbersOf(dtype, {buffer}) {
  switch (dtype) {
    case 'bool': case 'uint8': return new Uint8Array(buffer);
    case 'int8': return new Int8Array(buffer);
    case 'uint16': return new Uint16Array(buffer);
    case 'int16': return new Int16Array(buffer);
    case 'uint32': return new Uint32Array(buffer);
    case 'int32': return new Int32Array(buffer);
    case 'uint64': return new BigUint64Array(buffer);
    case 'int64': return new BigInt64Array(buffer);
    case 'float32': case 'complex64': return new Float32Array(buffer);
    case 'float64': case 'complex128': return new Float64Array(buffer);
    case 'float16': return Float32Array.from(new Uint16Array(buffer), halfNumber);
    case 'bfloat16': return new Float32Array(Uint32Array.from(new Uint16Array(buffer), (h) => h << 16).buffer);
  }
  return null;
}

/** @typedef {import('./dtype.mjs').DType} DType */

/** Elements as those of another type. Integers must hold them as they are. @param {string} name @param {string} dtype @param {ArrayLike<number | bigint>} list @param {DType} type */
function converted(name, dtype, list, type) {
  const where = 'load', of = `${name === '' ? '' : `${JSON.stringify(name)}: `}`, complex = dtype.startsWith('complex');
  if (complex !== (type.name === 'complex64')) throw failure('ErrUnsupported', where, `${of}${dtype} as ${type.name}`);
  const array = allocate(where, () => new type.Array(list.length));
  if (type.name === 'bool') for (let i = 0; i < list.length; i++) array[i] = Number(list[i]) === 0 ? 0 : 1;
  else if (type.name === 'float16' && type.Array === Uint16Array) for (let i = 0; i < list.length; i++) array[i] = halfBits(Number(list[i]));
  else {
    for (let i = 0; i < list.length; i++) {
      array[i] = Number(list[i]);
      if (!type.real && array[i] !== Number(list[i])) throw failure('ErrInvalid', where, `${of}${list[i]} as ${type.name}; {dtype} names another type`);
    }
  }
  return array;
}

/** Makes an array of a file a matrix or a tensor. @param {Gpu} gpu @param {File} file @param {Entry} entry @param {unknown} dtype that the caller wants */
async function made(gpu, file, {name, dtype: own, shape, nbytes, data}, dtype) {
  const type = typeNamed(dtype ?? own);
  if (!type) throw failure('ErrUnsupported', 'load', `${name === '' ? '' : `${JSON.stringify(name)}: `}there are no matrices of ${own}; {dtype: "float32"} converts`);
  file.take(nbytes);
  const bytes = await data(), like = DTYPES.find((t) => t.name === own);
  let values = like === type && own !== 'bool' ? new type.Array(bytes.buffer) : null;
  if (!values) {
    const list = numbersOf(own, bytes);
    if (!list) throw failure('ErrUnsupported', 'load', `${JSON.stringify(name)}: ${own} is not converted`);
    values = converted(name, own, list, type);
  }
  const options = {dtype: /** @type {any} */ (type.name)};
  if (shape.length > 2) return gpu.tensor(values, shape, options);
  return gpu.matrix(shape.length === 2 ? shape[0] : 1, shape.at(-1) ?? 1, values, options);
}

/** @param {unknown} name */
const typeNamed = (name) => DTYPES.find((t) => t.name === name);

/** @param {Gpu} gpu @param {File} file @param {unknown} dtype */
async function madeOfMtx(gpu, file, dtype) {
  const read = await readMtx(file, /** @type {DType} */ (typeNamed(dtype ?? 'float32')).size), type = /** @type {DType} */ (typeNamed(dtype ?? read.dtype)), {rows, cols, dense, values, indices, offsets} = read;
  const options = {dtype: /** @type {any} */ (type.name)}, elements = converted('', 'float64', dense ?? values ?? [], type);
  if (dense) return gpu.matrix(rows, cols, elements, options);
  return gpu.sparse(rows, cols, {format: 'csr', values: elements, indices, offsets, ...options});
}

/**
 * A sparse matrix of SciPy's, whose entries may be in any order and occur twice.
 * @param {Gpu} gpu @param {File} file @param {readonly import('./files/npz.mjs').Member[]} members @param {unknown} dtype
 */
async function madeOfSciPy(gpu, file, members, dtype) {
  const {format, rows, cols, numbers, dtype: own, first, second} = await readSciPy(file, members, numbersOf), type = typeNamed(dtype ?? own);
  if (!type) throw failure('ErrUnsupported', 'load', `there are no matrices of ${own}; {dtype: "float32"} converts`);
  if (4 * rows > Math.max(ROWS_LEAST, ROWS_MOST * file.size)) throw file.fail('ErrTooLarge', `${rows} rows in a file of ${file.size} bytes`);
  file.take(4 * rows + 20 * numbers.length);
  const values = converted('data', own, numbers, type), shape = /** @type {[number, number]} */ ([rows, cols]), all = /** @type {any} */ ({values, dtype: type.name});
  if (format === 'coo') return gpu.sparse({rows: first, cols: second, shape, ...all});
  const majors = format === 'csr' ? rows : cols;
  if (second.length !== majors + 1 || first.length !== values.length || second[0] !== 0 || second[majors] !== values.length) throw file.fail('ErrFormat', '"indices" and "indptr" do not fit "data" and "shape"');
  const places = allocate('load', () => new Int32Array(values.length));
  for (let c = 0; c < majors; c++) {
    if (second[c + 1] < second[c] || second[c + 1] > values.length) throw file.fail('ErrFormat', '"indptr" falls');
    places.fill(c, second[c], second[c + 1]);
  }
  return gpu.sparse({rows: format === 'csr' ? places : first, cols: format === 'csr' ? first : places, shape, ...all});
}

/** @param {Gpu} gpu @param {File} file @param {readonly Entry[]} entries @param {unknown} dtype */
async function madeAll(gpu, file, entries, dtype) {
  const all = new FileArrays();
  try {
    for (const entry of entries) all.set(entry.name, await made(gpu, file, entry, dtype));
  } catch (error) {
    all.close();
    throw error;
  }
  return all;
}

/** @param {readonly string[] | undefined} names that are wanted @returns {(name: string) => boolean} */
function wantedOf(names) {
  if (names === undefined) return () => true;
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string')) throw failure('ErrInvalid', 'load', `names ${show(names)}; it is an array of texts`);
  return (name) => names.includes(name);
}

/** @param {Gpu} gpu @param {Session} session @param {unknown} source @param {unknown} options */
export async function load(gpu, session, source, options) {
  const where = 'load', o = read(where, options, ['format', 'dtype', 'names', 'memoryLimit', 'signal']), {dtype, names} = o;
  checkSignal(where, o.signal);
  if (o.format !== undefined && !FORMATS.includes(o.format)) throw failure('ErrInvalid', where, `format ${show(o.format)}; there are ${FORMATS.join(', ')}`);
  if (dtype !== undefined && !typeNamed(dtype)) throw failure('ErrInvalid', where, `dtype ${show(dtype)}; there are ${DTYPES.map(({name}) => name).join(', ')}`);
  const wanted = wantedOf(names), {file, name, stop} = await openFile(session, source, o);
  try {
    const format = o.format ?? await formatOf(file, name);
    if (names && (format === 'npy' || format === 'mtx')) throw failure('ErrInvalid', where, `names, of which .${format} has none`);
    if (format === 'mtx') return await madeOfMtx(gpu, file, dtype);
    if (format === 'npy') return await made(gpu, file, await readNpy(file, '', true), dtype);
    const members = format === 'npz' ? await openNpz(file) : [];
    if (!names && o.format === undefined && isSciPy(members)) return await madeOfSciPy(gpu, file, members, dtype);
    const entries = format === 'npz' ? await readNpz(file, members, wanted) : (await readSafetensors(file)).filter((entry) => wanted(entry.name));
    const missing = names?.find((/** @type {string} */ wish) => !entries.some((entry) => entry.name === wish));
    if (missing !== undefined) throw failure('ErrInvalid', where, `the file has no ${show(missing)}`);
    return await madeAll(gpu, file, entries, dtype);
  } catch (error) {
    return allocate(where, () => { throw error; });
  } finally {
    stop();
  }
}

// Saving.

/** Waits for what is saved under a name. @param {Taken} array @returns {Promise<Saved>} */
async function saved({name, dtype, shape, reading}) {
  const data = /** @type {Uint8Array<ArrayBuffer>} */ (bytesOf(await reading)), need = (countOf(shape) ?? Infinity) * (SIZES[dtype] ?? (dtype === 'bfloat16' ? 2 : 1));
  if (data.length !== need) throw failure(data.length < need ? 'ErrShort' : 'ErrShape', 'save', `${JSON.stringify(name)}: ${data.length} bytes, the shape takes ${need}`);
  return {name, dtype, shape, data};
}

/** @param {number} i @param {number} j @param {number} v @returns {readonly [i: number, j: number, v: number]} */
const entry = (i, j, v) => [i, j, v];

/** The entries of a sparse matrix. @param {string} format @param {number} rows @param {{values: ArrayLike<number>, indices: Int32Array, offsets: Int32Array}} parts */
function* entriesOf(format, rows, {values, indices, offsets}) {
  if (format === 'blockColumn') {
    for (let k = 0; k < indices.length; k++) for (let i = 0; i < rows; i++) yield entry(i, indices[k], values[k * rows + i]);
    return;
  }
  for (let major = 0; major + 1 < offsets.length; major++) {
    for (let k = offsets[major]; k < offsets[major + 1]; k++) yield format === 'csr' ? entry(major, indices[k], values[k]) : entry(indices[k], major, values[k]);
  }
}

/** @param {Taken} array */
async function savedMtx(array) {
  const {layout, reading} = array, where = 'save';
  if (layout) return writeCoordinates(array.shape[0], array.shape[1], entriesOf(layout, array.shape[0], await reading), array.dtype);
  const {dtype, shape, data} = await saved(array);
  if (shape.length > 2) throw failure('ErrShape', where, `(${shape}) is no matrix`);
  const list = dtype.startsWith('complex') ? null : numbersOf(dtype, data.slice());
  if (!list) throw failure('ErrType', where, `.mtx has no ${dtype}`);
  return writeArray(shape.length === 2 ? shape[0] : 1, shape.at(-1) ?? 1, list, dtype);
}

/** @param {readonly Taken[]} taken @param {string} format @param {boolean} compress @returns {Promise<Blob>} */
export async function save(taken, format, compress) {
  const where = 'save', fail = (/** @type {string} */ code, /** @type {string} */ why) => failure(code, where, why);
  try {
    if (format === 'mtx') return await savedMtx(taken[0]);
    if (format === 'npy') return writeNpy(await saved(taken[0]), fail);
    distinct({fail}, taken.map(({name}) => name));
    const arrays = await Promise.all(taken.map((array) => saved(array)));
    return format === 'npz' ? await writeNpz(arrays, compress, fail) : writeSafetensors(arrays, fail);
  } catch (error) {
    return allocate(where, () => { throw error; });
  }
}
