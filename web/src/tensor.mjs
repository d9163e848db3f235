// SPDX-License-Identifier: Apache-2.0

import {FLOAT16, typedArrayClass} from './dtype.mjs';
import {failure, listed, show} from './errors.mjs';

// What a file of tensors says of each: name, element type, shape. See wasm/internal/bridge/params.go and package buffer/dtype.

/** The codes of DLPack by number; those without bits of their own are followed by them. */
const CODES = Object.freeze([
  'int', 'uint', 'float', 'handle', 'bfloat', 'complex', 'bool',
  'float8_e3m4', 'float8_e4m3', 'float8_e4m3b11fnuz', 'float8_e4m3fn', 'float8_e4m3fnuz', 'float8_e5m2', 'float8_e5m2fnuz',
  'float8_e8m0fnu', 'float6_e2m3fn', 'float6_e3m2fn', 'float4_e2m1fn',
]);
const FIXED = Object.freeze([0, 0, 0, 0, 0, 0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 6, 6, 4]);

/** An element type: code | bits << 8 | lanes << 16. @param {number} type @returns {string} its name, NumPy's where there is one */
export function typeName(type) {
  const code = type & 255, bits = (type >>> 8) & 255, lanes = type >>> 16;
  const known = FIXED[code] === 0 ? `${CODES[code]}${bits}` : FIXED[code] === bits ? CODES[code] : `code${code}_${bits}`;
  return lanes === 1 ? known : `${known}x${lanes}`;
}

/** The element type of a name. @param {string} where @param {unknown} name @returns {number} */
function typeNumber(where, name) {
  const [, word, digits] = /^(.*?)(\d*)$/.exec(typeof name === 'string' ? name : '') ?? ['', '', ''];
  const [, unknown, unknownBits] = /^code(\d+)_(\d+)$/.exec(String(name)) ?? [];
  const fixed = CODES.findIndex((code, i) => FIXED[i] !== 0 && code === name), code = unknown ? Number(unknown) : CODES.indexOf(word);
  const type = fixed >= 0 ? fixed | (FIXED[fixed] << 8) : code | (Number(unknownBits ?? digits) << 8);
  if ((type & 0xffff) !== type || typeName(type | 0x10000) !== name) throw failure('ErrType', where, `dtype ${show(name)}`);
  return type | 0x10000;
}

/** The typed arrays of element types; all others are shown as bytes. @type {Record<string, any>} */
const ARRAYS = Object.freeze({
  float32: Float32Array, float64: Float64Array, float16: FLOAT16.Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
});

/** @param {string} dtype */
export const arrayOf = (dtype) => ARRAYS[dtype] ?? Uint8Array;

/** The element type that memory says it is of, undefined for plain memory. @param {unknown} data @returns {string | undefined} */
export function dtypeOfData(data) {
  const own = typedArrayClass(data);
  if (own === 'Uint8ClampedArray') return 'uint8';
  return own === undefined ? undefined : own.slice(0, -'Array'.length).replace('Big', '').toLowerCase();
}

/** The element type of data that the user gives. @param {string} where @param {unknown} data @param {unknown} said @returns {number} */
export function typeOfData(where, data, said) {
  const own = dtypeOfData(data);
  if (said === undefined && own === undefined) throw failure('ErrInvalid', where, 'memory without a dtype');
  const type = typeNumber(where, said ?? own);
  // Bytes can be anything, 16 bits floats, and two floats a complex number.
  const plain = own === undefined || own === 'uint8' || (own === 'uint16' && (said === 'float16' || said === 'bfloat16')) ||
    (own === 'float32' && said === 'complex64') || (own === 'float64' && said === 'complex128');
  if (said !== undefined && said !== own && !plain) throw failure('ErrInvalid', where, `a ${typedArrayClass(data)} as ${said}`);
  return type;
}

/** The bytes of an element. @param {number} type */
const sizeOf = (type) => Math.ceil(((type >>> 8) & 255) * (type >>> 16) / 8);

/** The bytes that a shape takes. @param {number} type @param {readonly bigint[]} shape */
export const bytesOfShape = (type, shape) => Number(shape.reduce((n, d) => n * d, BigInt(sizeOf(type))));

/**
 * A tensor of a file. Names need not be UTF-8: what is not is kept in lone surrogates, as by Python's surrogateescape.
 * @typedef {{name: string, type: number, shape: bigint[], offset: number, nbytes: number}} Header
 */

const utf8 = new TextDecoder('utf-8', {fatal: true, ignoreBOM: true});
const encoder = new TextEncoder();

/** @param {Uint8Array} bytes */
function decodeName(bytes) {
  try {
    return utf8.decode(bytes);
  } catch { // character by character
    let name = '';
    for (let i = 0; i < bytes.length;) {
      let n = bytes[i] < 0x80 ? 1 : bytes[i] < 0xe0 ? 2 : bytes[i] < 0xf0 ? 3 : 4;
      let text;
      try {
        text = utf8.decode(bytes.subarray(i, i + n));
      } catch {
        text = String.fromCharCode(0xdc00 + bytes[i]);
        n = 1;
      }
      name += text;
      i += n;
    }
    return name;
  }
}

/** @param {string} where @param {string} name @returns {Uint8Array} */
function encodeName(where, name) {
  if (!/[\ud800-\udfff]/.test(name)) return encoder.encode(name);
  const bytes = [];
  for (const part of name.split(/([\ud800-\udbff][\udc00-\udfff])|([\ud800-\udfff])/)) {
    if (part === undefined || part === '') continue;
    const code = part.charCodeAt(0), lone = part.length === 1 && code >= 0xd800 && code <= 0xdfff;
    if (lone && (code < 0xdc80 || code > 0xdcff)) throw failure('ErrInvalid', where, 'a name that is no text');
    if (lone) bytes.push(code - 0xdc00);
    else for (const byte of encoder.encode(part)) bytes.push(byte);
  }
  return Uint8Array.from(bytes);
}

/** Reads the description of tensors. @param {Uint8Array} bytes @returns {Header[]} */
export function parse(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), list = [];
  for (let at = 0; at < bytes.length;) {
    const length = view.getUint32(at, true), name = decodeName(bytes.subarray(at + 4, at + 4 + length));
    at += 4 + length;
    const type = view.getUint32(at, true), dims = view.getUint8(at + 4);
    at += 5;
    const long = () => view.getBigInt64((at += 8) - 8, true);
    const shape = Array.from({length: dims}, long), offset = Number(long()), nbytes = Number(long());
    list.push({name, type, shape, offset, nbytes});
  }
  return list;
}

/** Writes it. @param {string} where @param {readonly {name: string, type: number, shape: readonly bigint[]}[]} list @returns {Uint8Array} */
export function compose(where, list) {
  const names = list.map(({name}) => encodeName(where, name));
  const bytes = new Uint8Array(list.reduce((n, {shape}, i) => n + names[i].length + 9 + 8 * shape.length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  list.forEach(({type, shape}, i) => {
    view.setUint32(at, names[i].length, true);
    bytes.set(names[i], at + 4);
    at += 4 + names[i].length;
    view.setUint32(at, type, true);
    view.setUint8(at + 4, shape.length);
    at += 5;
    for (const d of shape) view.setBigInt64((at += 8) - 8, d, true);
  });
  return bytes;
}

/** The most dimensions of a tensor. */
const MAX_DIMS = 32;

/** A shape of the user's. @param {string} where @param {any} shape @returns {bigint[]} */
export function shapeOf(where, shape) {
  const list = listed(where, shape);
  if (!list || list.length > MAX_DIMS) throw failure('ErrInvalid', where, `shape ${show(shape)}; it is an array of up to ${MAX_DIMS} dimensions`);
  return list.map((d) => {
    if (!Number.isSafeInteger(d)) throw failure('ErrInvalid', where, `${show(d)} is no dimension`);
    if (d < 0) throw failure('ErrSize', where, `negative dimension ${d}`);
    return BigInt(d);
  });
}
