// SPDX-License-Identifier: Apache-2.0

import {part} from './download.mjs';

/** @typedef {import('./session.mjs').Session} Session */

/** The database that keeps timings. */
export const DATABASE = 'sublet-tuning';

/** What does it, which comes when it is needed. */
const tuner = part(() => import('./tuner.mjs'));

/** Timings of the variants of kernels on the device's adapter. */
export class Tuning {
  #session;

  /** @param {Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** @param {any} [options] */
  async run(options) {
    const given = Array.isArray(options?.work) ? {...options, work: [...options.work]} : options; // before the page can change it
    return (await tuner()).run(this.#session, given);
  }

  async export() { return (await tuner()).exported(this.#session); }

  /** @param {unknown} results */
  async import(results) {
    let text = '';
    try {
      text = JSON.stringify(results); // before the page can change them
    } catch { // cycles, and numbers without an end
    }
    return (await tuner()).imported(this.#session, text, results);
  }

  async clear() { return (await tuner()).clear(this.#session); }
}

/** Has a device use what earlier pages timed, if there is anything, when all of its program is there: nobody waits for it. @param {Session} session */
export async function recall(session) {
  await session.whole;
  if ((await indexedDB.databases()).some(({name}) => name === DATABASE)) await (await tuner()).known(session);
}
