// SPDX-License-Identifier: Apache-2.0

// Sparse matrices as SciPy's save_npz writes them, read as package buffer/file/sparse reads them: members of an archive.

import {quoted} from './bytes.mjs';
import {memberFile, readNpz} from './npz.mjs';

/** @typedef {import('./bytes.mjs').File} File */
/** @typedef {import('./bytes.mjs').Entry} Entry */
/** @typedef {import('./npz.mjs').Member} Member */

/** The members beside format, shape and data, by the formats that are read. @type {Record<string, readonly string[]>} */
const MEMBERS = {csr: ['indices', 'indptr'], csc: ['indices', 'indptr'], coo: ['row', 'col']};

/** The most bytes of the member that names the format, and of the shape. */
const SHORT = 4096;

/** Whether an archive is a sparse matrix. @param {readonly Member[]} members */
export const isSciPy = (members) => ['format', 'shape', 'data'].every((name) => members.some((member) => member.name === name));

/** @param {File} file @param {readonly Member[]} members */
async function formatOf(file, members) {
  const member = /** @type {Member} */ (members.find(({name}) => name === 'format'));
  if (member.size > SHORT) throw file.fail('ErrFormat', `"format" of ${member.size} bytes`);
  const text = await memberFile(file, member), bytes = await text.slice(0, text.size), start = 10 + (bytes.length < 10 ? 0 : bytes[8] | bytes[9] << 8);
  const name = String.fromCharCode(...bytes.subarray(start)).replaceAll('\0', ''); // of one byte a letter, or four
  if (Object.hasOwn(MEMBERS, name)) return name;
  throw file.fail('ErrType', `SciPy's format ${quoted(name)}; csr, csc and coo are read`);
}

/** Numbers that count or are places. @param {File} file @param {string} name @param {ArrayLike<number | bigint>} list @returns {Int32Array<ArrayBuffer>} */
function whole(file, name, list) {
  const array = new Int32Array(list.length);
  for (let i = 0; i < list.length; i++) {
    array[i] = Number(list[i]);
    if (array[i] < 0 || array[i] !== Number(list[i])) throw file.fail('ErrFormat', `${list[i]} in ${quoted(name)}`);
  }
  return array;
}

/**
 * Reads a sparse matrix. Its values are a list of their type; what the others say is checked only as far as they are whole numbers.
 * @param {File} file @param {readonly Member[]} members @param {(dtype: string, bytes: Uint8Array<ArrayBuffer>) => ArrayLike<number | bigint> | null} numbersOf
 */
export async function readSciPy(file, members, numbersOf) {
  const format = await formatOf(file, members), names = ['shape', 'data', ...MEMBERS[format]];
  const entries = new Map((await readNpz(file, members, (name) => names.includes(name))).map((entry) => [entry.name, entry]));
  const list = async (/** @type {string} */ name) => {
    const entry = entries.get(name);
    if (!entry) throw file.fail('ErrFormat', `SciPy's ${format} without ${quoted(name)}`);
    if (entry.shape.length !== 1 || (name === 'shape' && entry.nbytes > SHORT)) throw file.fail('ErrFormat', `${quoted(name)} of shape (${entry.shape})`);
    file.take(entry.nbytes);
    const numbers = entry.dtype.startsWith('complex') ? null : numbersOf(entry.dtype, await entry.data());
    if (!numbers) throw file.fail('ErrType', `${quoted(name)} of ${entry.dtype}`);
    return {numbers, dtype: entry.dtype};
  };
  const shape = whole(file, 'shape', (await list('shape')).numbers), data = await list('data');
  if (shape.length !== 2) throw file.fail('ErrFormat', `${shape.length} dimensions`);
  const [first, second] = [whole(file, names[2], (await list(names[2])).numbers), whole(file, names[3], (await list(names[3])).numbers)];
  return {format, rows: shape[0], cols: shape[1], ...data, first, second};
}
