// SPDX-License-Identifier: Apache-2.0

// Opens files of matrices: those that the package loads, text and pictures. Writes .csv.

import {readText} from './files.mjs';

/** @typedef {import('./files.mjs').Table} Table */
/** What a file holds: a table, or several by their names. @typedef {{name: string, table: () => Table, picture?: boolean}[]} Found */

/** The longer side of a picture, which is made smaller if it is larger. */
const LONGEST = 1024;

/** An array of the package's as a table, whose rows are along its last dimension. @param {string} name @param {any} array @returns {Promise<Found[number]>} */
async function found(name, array) {
  const {shape} = array, data = /** @type {Float32Array} */ (await array.read()), cols = shape.at(-1) ?? 1;
  const table = {rows: cols && data.length / cols, cols, data};
  return {name: `${name}, ${shape.join(' \u00d7 ')}`, table: () => table};
}

/** @param {import('./index.mjs').Gpu} gpu @param {File} file @returns {Promise<Found>} */
async function readArrays(gpu, file) {
  const loaded = await gpu.load(file, {dtype: 'float32'});
  try {
    const list = loaded instanceof Map ? [...loaded] : /** @type {[string, any][]} */ ([[file.name, loaded]]);
    if (list.length === 0) throw new Error('the file holds no arrays');
    return await Promise.all(list.map(([name, array]) => found(name, array)));
  } finally {
    loaded.close();
  }
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

/** @param {import('./index.mjs').Gpu} gpu that reads arrays @param {File} file @returns {Promise<Found>} */
export async function open(gpu, file) {
  if (file.size === 0) throw new Error('the file is empty');
  if (/\.(npy|npz|safetensors|mtx)$/i.test(file.name)) return readArrays(gpu, file);
  const picture = file.type.startsWith('image/'), table = picture ? await readPicture(file) : readText(await file.text());
  if (table.rows * table.cols === 0) throw new Error('there are no numbers in it');
  return [{name: file.name, table: () => table, picture}];
}

/** @param {{rows: number, cols: number, data: ArrayLike<number>}} table @returns {Blob} */
export function writeCsv({rows, cols, data}) {
  const lines = Array.from({length: rows}, (_, i) => Array.from({length: cols}, (_, j) => data[i * cols + j]).join(','));
  return new Blob([`${lines.join('\n')}\n`], {type: 'text/csv'});
}
