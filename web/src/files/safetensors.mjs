// SPDX-License-Identifier: Apache-2.0

// Files of named tensors, as package buffer/file/safetensors reads and writes them.

import {MAX_DIMS, SIZES, countOf, distinct, encoded, quoted, textOf} from './bytes.mjs';

/** @typedef {import('./bytes.mjs').File} File */
/** @typedef {import('./bytes.mjs').Entry} Entry */
/** @typedef {import('./bytes.mjs').Saved} Saved */

/** The most bytes of a header. */
const MAX_HEADER = 100_000_000;

/** The one key of a header that is no tensor's name. */
const METADATA = '__metadata__';

/** The format's types that have elements of whole bytes. @type {Readonly<Record<string, string>>} */
const TYPES = Object.freeze({
  BOOL: 'bool', U8: 'uint8', I8: 'int8', F8_E5M2: 'float8_e5m2', F8_E4M3: 'float8_e4m3fn', F8_E8M0: 'float8_e8m0fnu', F8_E4M3FNUZ: 'float8_e4m3fnuz',
  F8_E5M2FNUZ: 'float8_e5m2fnuz', I16: 'int16', U16: 'uint16', F16: 'float16', BF16: 'bfloat16', I32: 'int32', U32: 'uint32', F32: 'float32', C64: 'complex64',
  F64: 'float64', I64: 'int64', U64: 'uint64',
});

/** @param {string} dtype */
const sizeOf = (dtype) => SIZES[dtype] ?? (dtype === 'bfloat16' ? 2 : 1);

/** Refuses keys that occur twice, which JSON.parse does not see. @param {File} file @param {string} text JSON */
function distinctKeys(file, text) {
  /** The keys of the objects that are open; null for an array. @type {(string[] | null)[]} */
  const open = [];
  for (const [token, key] of text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?|[[\]{}]/g)) {
    if (token === '{') open.push([]);
    else if (token === '[') open.push(null);
    else if (token === '}') distinct(file, open.pop() ?? [], 8);
    else if (token === ']') open.pop();
    else if (key !== undefined) open.at(-1)?.push(JSON.parse(token.slice(0, -key.length)));
  }
}

/** @param {unknown} list @param {number} most @returns {list is number[]} */
const isNumbers = (list, most) => Array.isArray(list) && list.length <= most && list.every((n) => Number.isSafeInteger(n) && n >= 0);

/** @param {File} file @param {string} name @param {any} said @param {number} base of the data */
function entryOf(file, name, said, base) {
  const bad = (/** @type {string} */ why, code = 'ErrFormat') => file.fail(code, `${quoted(name)}: ${why}`, 8);
  if (typeof said !== 'object' || said === null || Object.keys(said).sort().join() !== 'data_offsets,dtype,shape') throw bad('a tensor has the keys dtype, shape and data_offsets');
  const {dtype: code, shape, data_offsets: offsets} = said, dtype = typeof code === 'string' && Object.hasOwn(TYPES, code) ? TYPES[code] : undefined;
  if (dtype === undefined) throw bad(`dtype ${quoted(String(code))}`, 'ErrType');
  if (Array.isArray(shape) && shape.length > MAX_DIMS) throw bad(`${shape.length} dimensions`, 'ErrTooLarge');
  if (!isNumbers(shape, MAX_DIMS) || !isNumbers(offsets, 2) || offsets.length !== 2) throw bad('a shape or offsets that are no whole numbers');
  const nbytes = (countOf(shape) ?? Infinity) * sizeOf(dtype), [from, to] = offsets;
  if (to - from !== nbytes) throw bad(`(${shape}) of ${dtype} from ${from} to ${to}`);
  return {name, dtype, shape, nbytes, from, data: () => file.slice(base + from, base + to)};
}

/** @param {File} file @returns {Promise<Entry[]>} */
export async function readSafetensors(file) {
  const start = await file.slice(0, Math.min(8, file.size));
  if (start.length < 8) throw file.fail('ErrTruncated', 'a header that is cut off', file.size);
  const length = Number(new DataView(start.buffer, start.byteOffset).getBigUint64(0, true)), base = 8 + length;
  if (length > MAX_HEADER) throw file.fail('ErrTooLarge', `a header of ${length} bytes`, 0);
  if (base > file.size) throw file.fail('ErrTruncated', `a header of ${length} bytes`, file.size);
  const text = textOf(file, await file.slice(8, base), 8);
  let header;
  try {
    header = JSON.parse(text);
  } catch (error) {
    throw file.fail('ErrFormat', `the header: ${/** @type {Error} */ (error).message}`, 8);
  }
  if (text[0] !== '{') throw file.fail('ErrFormat', 'the header does not begin with {', 8);
  distinctKeys(file, text);
  const {[METADATA]: metadata = {}} = header, texts = typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata) && Object.values(metadata).every((x) => typeof x === 'string');
  if (!texts) throw file.fail('ErrFormat', `${METADATA} has no texts`, 8);
  const list = Object.entries(header).filter(([name]) => name !== METADATA).map(([name, said]) => entryOf(file, name, said, base));
  list.sort((a, b) => a.from - b.from || a.nbytes - b.nbytes); // JavaScript lists keys that are numbers first
  let end = 0;
  for (const {name, from, nbytes} of list) {
    if (from !== end) throw file.fail('ErrFormat', `the data of ${quoted(name)} start at ${from}, the last ones end at ${end}`, base + Math.min(from, end));
    end += nbytes;
  }
  if (base + end > file.size) throw file.fail('ErrTruncated', `${base + end} bytes are said to be there`, file.size);
  if (base + end < file.size) throw file.fail('ErrFormat', `${file.size - base - end} bytes after the last tensor`, base + end);
  return list;
}

/** @param {readonly Saved[]} arrays @param {(code: string, why: string) => Error} fail */
export function writeSafetensors(arrays, fail) {
  let at = 0;
  const fields = arrays.map(({name, dtype, shape, data}) => {
    const type = Object.keys(TYPES).find((code) => TYPES[code] === dtype);
    if (type === undefined) throw fail('ErrType', `safetensors has no ${dtype}`);
    if (name === METADATA) throw fail('ErrFormat', `${METADATA} can be no name`);
    encoded(name, fail);
    return `${JSON.stringify(name)}:{"dtype":"${type}","shape":[${shape}],"data_offsets":[${at},${at += data.length}]}`;
  });
  const text = new TextEncoder().encode(`{${fields.join()}}`), header = new Uint8Array(8 + Math.ceil(text.length / 8) * 8).fill(0x20);
  if (header.length - 8 > MAX_HEADER) throw fail('ErrTooLarge', `a header of ${text.length} bytes`);
  new DataView(header.buffer).setBigUint64(0, BigInt(header.length - 8), true);
  header.set(text, 8);
  return new Blob([header, ...arrays.map(({data}) => data)]);
}
