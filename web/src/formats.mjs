// SPDX-License-Identifier: Apache-2.0

import {halfBits} from './dtype.mjs';
import {SIZES, countOf, distinct} from './files/bytes.mjs';
import {BANNER, readMtx, writeArray, writeCoordinates} from './files/mtx.mjs';
import {MAGIC, readNpy, writeNpy} from './files/npy.mjs';
import {readNpz, writeNpz} from './files/npz.mjs';
import {openFile} from './files/open.mjs';
import {readSafetensors, writeSafetensors} from './files/safetensors.mjs';

// Loads files and saves them. This is a module of its own; nothing of the package may be imported here that keeps anything.

/** @typedef {import('./files.mjs').Tools} Tools */
/** @typedef {import('./files/bytes.mjs').File} File */
/** @typedef {import('./files/bytes.mjs').Entry} Entry */
/** @typedef {import('./files/bytes.mjs').Saved} Saved */
/** @typedef {import('./gpu.mjs').Gpu} Gpu */
/** @typedef {import('./session.mjs').Session} Session */

const FORMATS = Object.freeze(['npy', 'npz', 'safetensors', 'mtx']);

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
    case 'float16': return Float32Array.from(new Uint16Array(buffer), (h) => halfOf(h));
    case 'bfloat16': return new Float32Array(Uint32Array.from(new Uint16Array(buffer), (h) => h << 16).buffer);
  }
  return null;
}

/** The number of a float16. @param {number} bits */
function halfOf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}

/** @typedef {Tools['DTYPES'][number]} DType */

/** Elements as those of another type. Integers must hold them as they are. @param {Tools} tools @param {string} name @param {string} dtype @param {ArrayLike<number | bigint>} list @param {DType} type */
function converted({allocate, failure}, name, dtype, list, type) {
  const where = 'load', of = `${name === '' ? '' : `${JSON.stringify(name)}: `}`, complex = dtype.startsWith('complex');
  if (complex !== (type.name === 'complex64')) throw failure('ErrUnsupported', where, `${of}${dtype} as ${type.name}`);
  const array = allocate(where, () => new type.Array(list.length));
  if (type.name === 'bool') for (let i = 0; i < list.length; i++) array[i] = Number(list[i]) === 0 ? 0 : 1;
  else if (type.name === 'float16' && type.Array === Uint16Array) for (let i = 0; i < list.length; i++) array[i] = halfBits(Number(list[i]));
  else {
    for (let i = 0; i < list.length; i++) {
      array[i] = Number(list[i]);
      if (!type.real && array[i] !== Number(list[i])) throw failure('ErrInvalid', where, `${of}${list[i]} as ${type.name}`);
    }
  }
  return array;
}

/** Makes an array of a file a matrix or a tensor. @param {Tools} tools @param {Gpu} gpu @param {File} file @param {Entry} entry @param {unknown} dtype that the caller wants */
async function made(tools, gpu, file, {name, dtype: own, shape, nbytes, data}, dtype) {
  const {DTYPES, failure} = tools, type = typeNamed(tools, dtype ?? own);
  if (!type) throw failure('ErrUnsupported', 'load', `${name === '' ? '' : `${JSON.stringify(name)}: `}there are no matrices of ${own}; {dtype: "float32"} converts`);
  file.take(nbytes);
  const bytes = await data(), like = DTYPES.find((t) => t.name === own);
  let values = like === type && own !== 'bool' ? new type.Array(bytes.buffer) : null;
  if (!values) {
    const list = numbersOf(own, bytes);
    if (!list) throw failure('ErrUnsupported', 'load', `${JSON.stringify(name)}: ${own} is not converted`);
    values = converted(tools, name, own, list, type);
  }
  const options = {dtype: /** @type {any} */ (type.name)};
  if (shape.length > 2) return gpu.tensor(values, shape, options);
  return gpu.matrix(shape.length === 2 ? shape[0] : 1, shape.at(-1) ?? 1, values, options);
}

/** @param {Tools} tools @param {unknown} name */
const typeNamed = ({DTYPES}, name) => DTYPES.find((t) => t.name === name);

/** @param {Tools} tools @param {Gpu} gpu @param {File} file @param {unknown} dtype */
async function madeOfMtx(tools, gpu, file, dtype) {
  const {rows, cols, dense, values, indices, offsets} = await readMtx(file), type = /** @type {DType} */ (typeNamed(tools, dtype ?? 'float32'));
  file.take((dense ?? values ?? []).length * type.size + 4 * ((indices?.length ?? 0) + (offsets?.length ?? 0)));
  const options = {dtype: /** @type {any} */ (type.name)}, elements = converted(tools, '', 'float64', dense ?? values ?? [], type);
  if (dense) return gpu.matrix(rows, cols, elements, options);
  return gpu.sparse(rows, cols, {format: 'csr', values: elements, indices, offsets, ...options});
}

/** @param {Tools} tools @param {Gpu} gpu @param {File} file @param {readonly Entry[]} entries @param {unknown} dtype */
async function madeAll(tools, gpu, file, entries, dtype) {
  const all = new FileArrays();
  try {
    for (const entry of entries) all.set(entry.name, await made(tools, gpu, file, entry, dtype));
  } catch (error) {
    all.close();
    throw error;
  }
  return all;
}

/** @param {Tools} tools @param {readonly string[] | undefined} names that are wanted @returns {(name: string) => boolean} */
function wantedOf({failure, show}, names) {
  if (names === undefined) return () => true;
  if (!Array.isArray(names) || names.some((name) => typeof name !== 'string')) throw failure('ErrInvalid', 'load', `names ${show(names)}; it is an array of texts`);
  return (name) => names.includes(name);
}

/** @param {Tools} tools @param {Gpu} gpu @param {Session} session @param {unknown} source @param {unknown} options */
export async function load(tools, gpu, session, source, options) {
  const {checkSignal, failure, read, show} = tools, where = 'load', o = read(where, options, ['format', 'dtype', 'names', 'memoryLimit', 'signal']), {dtype, names} = o;
  checkSignal(where, o.signal);
  if (o.format !== undefined && !FORMATS.includes(o.format)) throw failure('ErrInvalid', where, `format ${show(o.format)}; there are ${FORMATS.join(', ')}`);
  if (dtype !== undefined && !typeNamed(tools, dtype)) throw failure('ErrInvalid', where, `dtype ${show(dtype)}; there are ${tools.DTYPES.map(({name}) => name).join(', ')}`);
  const wanted = wantedOf(tools, names), {file, name, stop} = await openFile(tools, session, source, o);
  try {
    const format = o.format ?? await formatOf(file, name);
    if (names && (format === 'npy' || format === 'mtx')) throw failure('ErrInvalid', where, `names, of which .${format} has none`);
    if (format === 'mtx') return await madeOfMtx(tools, gpu, file, dtype);
    if (format === 'npy') return await made(tools, gpu, file, await readNpy(file, '', true), dtype);
    const entries = format === 'npz' ? await readNpz(file, wanted) : (await readSafetensors(file)).filter((entry) => wanted(entry.name));
    const missing = names?.find((/** @type {string} */ wish) => !entries.some((entry) => entry.name === wish));
    if (missing !== undefined) throw failure('ErrInvalid', where, `the file has no ${show(missing)}`);
    return await madeAll(tools, gpu, file, entries, dtype);
  } catch (error) {
    return tools.allocate(where, () => { throw error; });
  } finally {
    stop();
  }
}

// Saving.

/** What is saved under a name: of a matrix it is read now. @param {Tools} tools @param {Session} session @param {string} name @param {any} value @param {AbortSignal | undefined} signal @returns {Promise<Saved>} */
async function saved(tools, session, name, value, signal) {
  const {Param, bytesOf, dtypeOfData, failure, inside, insideTensor, isBuffer, read, shapeOf, show} = tools, where = 'save';
  const part = inside(value, where) ?? insideTensor(value, where);
  if (part && part.session !== session) throw failure('ErrForeign', where, 'a matrix of another device');
  if (part || value instanceof Param) {
    const {dtype, shape} = value, data = await value.read({signal});
    return {name, dtype, shape, data: /** @type {Uint8Array<ArrayBuffer>} */ (bytesOf(data))};
  }
  const neither = `${name === '' ? '' : `${JSON.stringify(name)}: `}${show(value)} is neither a matrix, a tensor nor {data, shape, dtype}`;
  if (typeof value !== 'object' || value === null) throw failure('ErrInvalid', where, neither);
  const {data, shape, dtype: said} = read(where, value, ['data', 'shape', 'dtype']), own = dtypeOfData(data), dtype = said ?? own;
  if (!ArrayBuffer.isView(data) && !isBuffer(data)) throw failure('ErrInvalid', where, neither);
  if (typeof dtype !== 'string') throw failure('ErrInvalid', where, `${JSON.stringify(name)}: memory without a dtype`);
  const dims = shapeOf(where, shape).map(Number), bytes = /** @type {Uint8Array<ArrayBuffer>} */ (ArrayBuffer.isView(data) ? bytesOf(data) : new Uint8Array(data)).slice();
  if (said !== undefined && said !== own && !['uint8', undefined].includes(own) && !(own === 'uint16' && ['float16', 'bfloat16'].includes(said))) {
    throw failure('ErrInvalid', where, `${JSON.stringify(name)}: ${own} as ${said}`);
  }
  const need = (countOf(dims) ?? Infinity) * (SIZES[dtype] ?? (dtype === 'bfloat16' ? 2 : 1));
  if (bytes.length !== need) throw failure(bytes.length < need ? 'ErrShort' : 'ErrShape', where, `${JSON.stringify(name)}: ${bytes.length} bytes, the shape takes ${need}`);
  return {name, dtype, shape: dims, data: bytes};
}

/** @param {Tools} tools @param {any} entries @returns {[string, unknown][]} */
function pairsOf({Param, failure, guard, inside, insideTensor, isBuffer, show}, entries) {
  const where = 'save', alone = entries instanceof Param || ArrayBuffer.isView(entries) || isBuffer(entries) || (inside(entries, where) ?? insideTensor(entries, where));
  if (alone) throw failure('ErrInvalid', where, 'an array without a name; give {name: array}, or save it as .npy');
  if (typeof entries !== 'object' || entries === null) throw failure('ErrInvalid', where, `${show(entries)} holds no names and arrays`);
  const pairs = guard(where, () => typeof entries[Symbol.iterator] === 'function' ? Array.from(entries, (pair) => {
    if (typeof pair !== 'object' || pair === null) throw failure('ErrInvalid', where, `${show(pair)} is no pair of a name and an array`);
    const [name, value] = pair;
    return [name, value];
  }) : Object.entries(entries));
  for (const [name] of pairs) if (typeof name !== 'string') throw failure('ErrInvalid', where, `name ${show(name)}`);
  return /** @type {[string, unknown][]} */ (pairs);
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

/** @param {Tools} tools @param {Session} session @param {any} x @param {AbortSignal | undefined} signal */
async function savedMtx(tools, session, x, signal) {
  const {Sparse, failure, inside} = tools, where = 'save', part = inside(x, where);
  if (part && part.session !== session) throw failure('ErrForeign', where, 'a matrix of another device');
  if (x instanceof Sparse) return writeCoordinates(x.rows, x.cols, entriesOf(x.format, x.rows, await x.parts({signal})), x.dtype);
  const {dtype, shape, data} = await saved(tools, session, '', x, signal);
  if (shape.length > 2) throw failure('ErrShape', where, `(${shape}) is no matrix`);
  const list = dtype.startsWith('complex') ? null : numbersOf(dtype, data.slice());
  if (!list) throw failure('ErrType', where, `.mtx has no ${dtype}`);
  return writeArray(shape.length === 2 ? shape[0] : 1, shape.at(-1) ?? 1, list, dtype);
}

/** @param {Tools} tools @param {Session} session @param {any} entries @param {unknown} options @returns {Promise<Blob>} */
export async function save(tools, session, entries, options) {
  const {checkSignal, failure, flag, read, show} = tools, where = 'save', o = read(where, options, ['format', 'compress', 'signal']), {format} = o;
  const signal = checkSignal(where, o.signal), compress = flag(where, o, 'compress'), fail = (/** @type {string} */ code, /** @type {string} */ why) => failure(code, where, why);
  if (!FORMATS.includes(format)) throw failure('ErrInvalid', where, `format ${show(format)}; there are ${FORMATS.join(', ')}`);
  if (compress && format !== 'npz') throw failure('ErrInvalid', where, `compress, which .${format} is not`);
  try {
    if (format === 'mtx') return await savedMtx(tools, session, entries, signal);
    if (format === 'npy') return writeNpy(await saved(tools, session, '', entries, signal), fail);
    const pairs = pairsOf(tools, entries), names = pairs.map(([name]) => name);
    distinct({fail}, names);
    const arrays = await Promise.all(pairs.map(([name, value]) => saved(tools, session, name, value, signal)));
    return format === 'npz' ? await writeNpz(arrays, compress, fail) : writeSafetensors(arrays, fail);
  } catch (error) {
    return tools.allocate(where, () => { throw error; });
  }
}
