// SPDX-License-Identifier: Apache-2.0

import {bytesOf, isBuffer} from './data.mjs';
import {allocate, failure, guard, isArray, show} from './errors.mjs';
import {inside} from './expr.mjs';
import {Param} from './params.mjs';
import {checkSignal, flag, read} from './source.mjs';
import {Sparse} from './sparse.mjs';
import {insideTensor} from './tensor-expr.mjs';
import {dtypeOfData, shapeOf} from './tensor.mjs';

// What is saved is taken at the call, before formats.mjs is there: what the page does afterwards does not change it.

/** An array that is read already; layout is that of a sparse matrix which is saved by its entries, '' of all others. @typedef {{name: string, dtype: string, shape: readonly number[], layout: string, reading: Promise<any>}} Taken */

export const FORMATS = Object.freeze(['npy', 'npz', 'safetensors', 'mtx']);

const where = 'save';

/** @param {import('./session.mjs').Session} session @param {string} name @param {any} value @param {{format: string, signal?: AbortSignal}} options @returns {Taken} */
function taken(session, name, value, {format, signal}) {
  const part = inside(value, where) ?? insideTensor(value, where), named = name === '' ? '' : `${JSON.stringify(name)}: `;
  if (part && part.session !== session) throw failure('ErrForeign', where, 'a matrix of another device');
  if (part || value instanceof Param) {
    const {dtype, shape} = value, layout = format === 'mtx' && value instanceof Sparse ? value.format : '', reading = layout ? value.parts({signal}) : value.read({signal});
    reading.catch(() => {}); // whoever waits for it gets the error, too
    return {name, dtype, shape, layout, reading};
  }
  const neither = `${named}${show(value)} is neither a matrix, a tensor nor {data, shape, dtype}`;
  if (typeof value !== 'object' || value === null || isArray(value) || ArrayBuffer.isView(value)) throw failure('ErrInvalid', where, neither);
  const {data, shape, dtype: said} = read(where, value, ['data', 'shape', 'dtype']), own = dtypeOfData(data), dtype = said ?? own;
  if (!ArrayBuffer.isView(data) && !isBuffer(data)) throw failure('ErrInvalid', where, neither);
  if (typeof dtype !== 'string') throw failure('ErrInvalid', where, `${named}memory without a dtype`);
  if (said !== undefined && said !== own && !['uint8', undefined].includes(own) && !(own === 'uint16' && ['float16', 'bfloat16'].includes(said))) {
    throw failure('ErrInvalid', where, `${named}${own} as ${said}`);
  }
  const copy = allocate(where, () => (ArrayBuffer.isView(data) ? bytesOf(data) : new Uint8Array(data)).slice());
  return {name, dtype, shape: shapeOf(where, shape).map(Number), layout: '', reading: Promise.resolve(copy)};
}

/** @param {any} entries @returns {[string, unknown][]} */
function pairsOf(entries) {
  const alone = entries instanceof Param || ArrayBuffer.isView(entries) || isBuffer(entries) || (inside(entries, where) ?? insideTensor(entries, where));
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

/** @param {import('./session.mjs').Session} session @param {unknown} entries @param {unknown} options */
export function takenAll(session, entries, options) {
  const o = read(where, options, ['format', 'compress', 'signal']), {format} = o, signal = checkSignal(where, o.signal), compress = flag(where, o, 'compress');
  if (!FORMATS.includes(format)) throw failure('ErrInvalid', where, `format ${show(format)}; there are ${FORMATS.join(', ')}`);
  if (compress && format !== 'npz') throw failure('ErrInvalid', where, `compress, which .${format} is not`);
  const pairs = format === 'npy' || format === 'mtx' ? [/** @type {const} */ (['', entries])] : pairsOf(entries);
  return {format, compress, list: pairs.map(([name, value]) => taken(session, name, value, {format, signal}))};
}
