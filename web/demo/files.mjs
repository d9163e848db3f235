// SPDX-License-Identifier: Apache-2.0

// Reads matrices from NumPy's .npy files and from text, and writes .npy.

/** @typedef {{rows: number, cols: number, data: Float32Array}} Table */

/** How the elements of a .npy file are stored, by the type in its header. @type {Record<string, {size: number, get: (view: DataView, at: number, little: boolean) => number}>} */
const STORED = {
  f2: {size: 2, get: (v, at, little) => half(v.getUint16(at, little))},
  f4: {size: 4, get: (v, at, little) => v.getFloat32(at, little)},
  f8: {size: 8, get: (v, at, little) => v.getFloat64(at, little)},
  i1: {size: 1, get: (v, at) => v.getInt8(at)},
  i2: {size: 2, get: (v, at, little) => v.getInt16(at, little)},
  i4: {size: 4, get: (v, at, little) => v.getInt32(at, little)},
  i8: {size: 8, get: (v, at, little) => Number(v.getBigInt64(at, little))},
  u1: {size: 1, get: (v, at) => v.getUint8(at)},
  u2: {size: 2, get: (v, at, little) => v.getUint16(at, little)},
  u4: {size: 4, get: (v, at, little) => v.getUint32(at, little)},
  u8: {size: 8, get: (v, at, little) => Number(v.getBigUint64(at, little))},
  b1: {size: 1, get: (v, at) => v.getUint8(at)},
};

/** @param {number} bits of a float16 */
export function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1, exponent = (bits >> 10) & 31, fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
}

/** @param {ArrayBuffer} buffer */
function header(buffer) {
  const bytes = new Uint8Array(buffer);
  if (bytes.length < 10 || String.fromCharCode(...bytes.subarray(1, 6)) !== 'NUMPY' || bytes[0] !== 0x93) throw new Error('not a .npy file');
  const view = new DataView(buffer);
  const long = bytes[6] > 1;
  const start = long ? 12 : 10;
  const end = start + (long ? view.getUint32(8, true) : view.getUint16(8, true));
  if (end > bytes.length) throw new Error('the .npy file ends in its header');
  const text = new TextDecoder('latin1').decode(bytes.subarray(start, end));
  const type = /'descr':\s*'([<>|=]?)([a-z]\d+)'/.exec(text);
  const shape = /'shape':\s*\(([^)]*)\)/.exec(text);
  if (!type || !shape || !(type[2] in STORED)) throw new Error(`the .npy file has elements of a kind that is not read here: ${text.trim()}`);
  const dims = shape[1].split(',').map((s) => s.trim()).filter(Boolean).map(Number);
  return {little: type[1] !== '>', stored: STORED[type[2]], byColumns: /'fortran_order':\s*True/.test(text), dims, end};
}

/** @param {ArrayBuffer} buffer @returns {Table} */
export function readNpy(buffer) {
  const {little, stored, byColumns, dims, end} = header(buffer);
  if (dims.length > 2 || dims.some((n) => !Number.isSafeInteger(n))) throw new Error(`the .npy file has ${dims.length} dimensions; a matrix has two`);
  const [rows, cols] = dims.length === 2 ? dims : [1, dims[0] ?? 1];
  if (buffer.byteLength - end < rows * cols * stored.size) throw new Error('the .npy file is cut off');
  const view = new DataView(buffer, end), data = new Float32Array(rows * cols);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) {
      data[i * cols + j] = stored.get(view, (byColumns ? j * rows + i : i * cols + j) * stored.size, little);
    }
  }
  return {rows, cols, data};
}

/** @param {Table} table @returns {Blob} */
export function writeNpy({rows, cols, data}) {
  let text = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows}, ${cols}), }`;
  text = `${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`;
  const head = new Uint8Array(10 + text.length);
  head.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, text.length & 255, text.length >> 8]);
  head.set(new TextEncoder().encode(text), 10);
  return new Blob([head, /** @type {Float32Array<ArrayBuffer>} */ (data)], {type: 'application/octet-stream'});
}

/** Rows of numbers, apart by spaces, commas, semicolons or tabs. @param {string} text @returns {Table} */
export function readText(text) {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  const rows = lines.map((line) => line.replace(/[[\](){}]/g, ' ').trim().split(/\s*[,;\t]\s*|\s+/).filter(Boolean));
  if (rows.length > 1 && rows[0].every((word) => Number.isNaN(Number(word)))) rows.shift(); // the names of columns
  const cols = rows[0]?.length ?? 0;
  const data = new Float32Array(rows.length * cols);
  rows.forEach((words, i) => {
    if (words.length !== cols) throw new Error(`row ${i + 1} has ${words.length} numbers, the first has ${cols}`);
    words.forEach((word, j) => {
      const n = /^[+-]?(nan|inf(inity)?)$/i.test(word) ? special(word) : Number(word);
      if (Number.isNaN(n) && !/nan/i.test(word)) throw new Error(`"${word}" in row ${i + 1} is no number`);
      data[i * cols + j] = n;
    });
  });
  return {rows: rows.length, cols, data};
}

/** @param {string} word */
const special = (word) => /nan/i.test(word) ? NaN : word.startsWith('-') ? -Infinity : Infinity;
