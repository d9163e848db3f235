// SPDX-License-Identifier: Apache-2.0

// Opens files of matrices: NumPy's .npy, text, safetensors and pictures. Writes .csv; files.mjs writes .npy.

import {half, readNpy, readText} from './files.mjs';

/** @typedef {import('./files.mjs').Table} Table */
/** What a file holds: a table, or several by their names. @typedef {{name: string, table: () => Table, picture?: boolean}[]} Found */

/** The longer side of a picture, which is made smaller if it is larger. */
const LONGEST = 1024;

/** How the elements of safetensors are stored. @type {Record<string, {size: number, get: (view: DataView, at: number) => number}>} */
const STORED = {
  F64: {size: 8, get: (v, at) => v.getFloat64(at, true)}, F32: {size: 4, get: (v, at) => v.getFloat32(at, true)},
  F16: {size: 2, get: (v, at) => half(v.getUint16(at, true))}, BF16: {size: 2, get: (v, at) => bfloat(v.getUint16(at, true))},
  I64: {size: 8, get: (v, at) => Number(v.getBigInt64(at, true))}, I32: {size: 4, get: (v, at) => v.getInt32(at, true)},
  I16: {size: 2, get: (v, at) => v.getInt16(at, true)}, I8: {size: 1, get: (v, at) => v.getInt8(at)},
  U8: {size: 1, get: (v, at) => v.getUint8(at)}, BOOL: {size: 1, get: (v, at) => v.getUint8(at)},
};

const bits = new DataView(new ArrayBuffer(4));

/** @param {number} word of a bfloat16: the upper half of a float32 */
function bfloat(word) {
  bits.setUint32(0, word * 65536);
  return bits.getFloat32(0);
}

/** @param {ArrayBuffer} buffer @returns {Found} */
export function readSafetensors(buffer) {
  if (buffer.byteLength < 10) throw new Error('not a .safetensors file');
  const length = Number(new DataView(buffer).getBigUint64(0, true)), start = 8 + length;
  if (start > buffer.byteLength) throw new Error('the .safetensors file ends in its header');
  /** @type {Record<string, {dtype: string, shape: number[], data_offsets: [number, number]}>} */
  let header;
  try {
    header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  } catch {
    throw new Error('the header of the .safetensors file is not JSON');
  }
  const entries = Object.entries(header).filter(([name]) => name !== '__metadata__');
  if (entries.length === 0) throw new Error('the .safetensors file holds no tensors');
  return entries.map(([name, {dtype, shape, data_offsets: [from, to]}]) => ({
    name: `${name}, ${shape.join(' \u00d7 ') || 'a number'}`,
    table() {
      const stored = STORED[dtype], cols = shape.at(-1) ?? 1, size = shape.reduce((n, d) => n * d, 1);
      if (!stored) throw new Error(`${name} is of ${dtype}, which is not read here`);
      if (to - from !== size * stored.size || start + to > buffer.byteLength) throw new Error(`${name} is cut off`);
      const view = new DataView(buffer, start + from, to - from);
      return {rows: cols && size / cols, cols, data: Float32Array.from({length: size}, (_, i) => stored.get(view, i * stored.size))};
    },
  }));
}

/** The grey levels of a picture, 0 to 1. @param {Blob} file @returns {Promise<Table>} */
async function readPicture(file) {
  const image = await createImageBitmap(file).catch(() => { throw new Error('the browser cannot read this picture'); });
  const scale = Math.min(1, LONGEST / Math.max(image.width, image.height));
  const cols = Math.max(1, Math.round(image.width * scale)), rows = Math.max(1, Math.round(image.height * scale));
  const paper = /** @type {OffscreenCanvasRenderingContext2D} */ (new OffscreenCanvas(cols, rows).getContext('2d'));
  paper.fillStyle = '#fff'; // behind what is transparent
  paper.fillRect(0, 0, cols, rows);
  paper.drawImage(image, 0, 0, cols, rows);
  image.close();
  const {data} = paper.getImageData(0, 0, cols, rows);
  return {rows, cols, data: Float32Array.from({length: rows * cols}, (_, i) => (0.2126 * data[4 * i] + 0.7152 * data[4 * i + 1] + 0.0722 * data[4 * i + 2]) / 255)};
}

/** @param {File} file @returns {Promise<Found>} */
export async function open(file) {
  if (file.size === 0) throw new Error('the file is empty');
  if (/\.safetensors$/i.test(file.name)) return readSafetensors(await file.arrayBuffer());
  const picture = file.type.startsWith('image/');
  const table = picture ? await readPicture(file)
    : /\.npy$/i.test(file.name) ? readNpy(await file.arrayBuffer()) : readText(await file.text());
  if (table.rows * table.cols === 0) throw new Error('there are no numbers in it');
  return [{name: file.name, table: () => table, picture}];
}

/** @param {{rows: number, cols: number, data: ArrayLike<number>}} table @returns {Blob} */
export function writeCsv({rows, cols, data}) {
  const lines = Array.from({length: rows}, (_, i) => Array.from({length: cols}, (_, j) => data[i * cols + j]).join(','));
  return new Blob([`${lines.join('\n')}\n`], {type: 'text/csv'});
}
