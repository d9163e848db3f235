// SPDX-License-Identifier: Apache-2.0

// The part of gpu.tuning that does the work. Go times the variants and reads the results; the page keeps these, as texts of JSON.

import {failure, isArray, show} from './errors.mjs';
import {Command} from './protocol.mjs';
import {checkSignal, read} from './source.mjs';
import {DATABASE} from './tuning.mjs';

/** @typedef {import('./session.mjs').Session} Session */

/** Results by the adapters' properties. */
const STORE = 'results';
const MOST_ROUNDS = 100;

/**
 * What is known of a device: results without timings, the usual work, under which key results are kept, and the results, "" for none.
 * @typedef {{fresh: string, work: string[], key: string, text: string}} Known
 */

/** @type {WeakMap<Session, Promise<Known>>} */
const all = new WeakMap();

/** @param {string} why @param {unknown} error */
const warn = (why, error) => console.warn(`sublet: ${why}: ${error instanceof Error ? error.message : show(error)}`);

/** @returns {Promise<IDBDatabase>} */
const open = () => new Promise((resolve, reject) => {
  const request = indexedDB.open(DATABASE, 1);
  request.onupgradeneeded = () => request.result.createObjectStore(STORE);
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

/**
 * Asks the browser's database, which Node and some pages are without.
 * @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest} ask @returns {Promise<unknown>} undefined where there is none
 */
async function database(mode, ask) {
  if (typeof indexedDB === 'undefined') return undefined;
  const db = await open();
  try {
    return await new Promise((resolve, reject) => {
      const transaction = db.transaction(STORE, mode), request = ask(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    db.close();
  }
}

/**
 * Has the device use results, and gives them as they were understood: what an imported text says is the best may not be.
 * @param {Session} session @param {string} where @param {string} text "" for none @returns {Promise<string>}
 */
function use(session, where, text) {
  session.check();
  session.direct(where);
  return session.ask(Command.Tuned, [session.put(text)], {where});
}

/** @param {Session} session @returns {Promise<Known>} */
async function begin(session) {
  const [fresh, ...work] = await session.ask(Command.Tuning, [], {where: 'tuning'});
  const known = {fresh, work, key: JSON.stringify(JSON.parse(fresh).adapter), text: ''};
  const stored = await database('readonly', (store) => store.get(known.key)).catch(() => undefined); // which some pages may not use
  if (stored === undefined) return known;
  try {
    if (typeof stored !== 'string' || stored === '') throw failure('ErrInvalid', 'tuning', `${show(stored)} is no text of results`);
    known.text = await use(session, 'tuning', stored);
  } catch (error) {
    warn('timings of kernels ignored', error);
  }
  return known;
}

/** What is known of a device, with the results of earlier pages, which it then uses. @param {Session} session */
export function known(session) {
  const found = all.get(session) ?? begin(session);
  all.set(session, found);
  found.catch(() => all.delete(session));
  return found;
}

/** Does one thing with what is known after the other. @template T @param {Session} session @param {(known: Known) => Promise<T>} run @returns {Promise<T>} */
function inTurn(session, run) {
  session.check();
  const before = known(session), result = before.then(run);
  all.set(session, result.then(() => before, () => before));
  return result;
}

/** Keeps results, for this page at least. @param {Known} known @param {string} text "" for none */
async function keep(known, text) {
  known.text = text;
  await database('readwrite', (store) => text ? store.put(text, known.key) : store.delete(known.key))
    .catch((error) => warn('timings of kernels are not kept for other pages', error));
}

const WORK = 'it is an array of texts like "product:300x500x700" and "softmax:777x333"';

/** @param {Session} session @param {unknown} options */
export async function run(session, options) {
  const where = 'run', {work, rounds = 0, onProgress, signal} = read(where, options, ['work', 'rounds', 'onProgress', 'signal']);
  if (work !== undefined && !(isArray(work) && work.every((/** @type {unknown} */ text) => typeof text === 'string'))) throw failure('ErrInvalid', where, `work ${show(work)}; ${WORK}`);
  if (!(Number.isInteger(rounds) && rounds >= 0 && rounds <= MOST_ROUNDS)) throw failure('ErrInvalid', where, `rounds ${show(rounds)}; there may be 1 to ${MOST_ROUNDS}, or 0 for the usual number`);
  if (onProgress !== undefined && typeof onProgress !== 'function') throw failure('ErrInvalid', where, `onProgress ${show(onProgress)} is no function`);
  const watched = checkSignal(where, signal), given = work && [...work];
  return inTurn(session, async (known) => {
    const list = given ?? known.work;
    let text = known.text || known.fresh;
    for (const [i, one] of list.entries()) {
      session.check();
      checkSignal(where, watched); // it may have waited for its turn
      text = await session.ask(Command.Time, [session.put(text), session.put(one), rounds], {where, signal: watched});
      onProgress?.(JSON.parse(text).choices.find((/** @type {{shape: string}} */ {shape}) => shape === one) ?? null, i + 1, list.length);
    }
    await keep(known, await use(session, where, text));
    return JSON.parse(known.text);
  });
}

/** @param {Session} session */
export const exported = (session) => inTurn(session, async (known) => JSON.parse(known.text || known.fresh));

/** @param {Session} session @param {string | undefined} text "" or undefined where the results are not what JSON can say @param {unknown} results */
export async function imported(session, text, results) {
  if (!text) throw failure('ErrInvalid', 'import', `${show(results)} is not what export() gives`);
  return inTurn(session, async (known) => {
    await keep(known, await use(session, 'import', text));
  });
}

/** @param {Session} session */
export const clear = (session) => inTurn(session, async (known) => {
  await keep(known, await use(session, 'clear', ''));
});
