// SPDX-License-Identifier: Apache-2.0

import {failure, guard, listed, reasonOf, show} from './errors.mjs';
import {instead} from './nearest.mjs';

/** @typedef {import('./crunch.mjs').Crunch} Crunch */
/** @typedef {(...args: any[]) => unknown} Call */

/** In the order of wasm/cruncher/balancer.go, where what is after them is a balancer of the page's. */
const BALANCERS = Object.freeze(['default', 'legacy', 'legacy-raw']);

/** A list of as many numbers of items. @param {string} where @param {unknown} given @param {number} devices @returns {number[]} */
function countsOf(where, given, devices) {
  const counts = listed(where, given);
  if (!counts) throw failure('ErrInvalid', where, `${show(given)} is no array of counts`);
  if (counts.length !== devices) throw failure('ErrInvalid', where, `${counts.length} counts for ${devices} devices`);
  const wrong = counts.findIndex((n) => !Number.isSafeInteger(n) || n < 0);
  if (wrong >= 0) throw failure('ErrInvalid', where, `count ${show(counts[wrong])} of device ${wrong}; it is a number of items from 0 on`);
  return counts;
}

/** Has the page divide a range. @param {Crunch} crunch @param {Call} split */
const splitter = (crunch, split) => (/** @type {number} */ id, /** @type {number} */ global, /** @type {number} */ step, /** @type {boolean[]} */ alive, /** @type {number[]} */ usual) => {
  const counts = crunch.busy(() => split({id, global, step, alive, usual: [...usual]}));
  return counts === undefined ? undefined : countsOf('split', counts, alive.length);
};

/** Tells the page what a call took. @param {Crunch} crunch @param {Call} observe */
const observer = (crunch, observe) => (/** @type {number} */ id, /** @type {number[]} */ counts, /** @type {number[]} */ seconds) =>
  crunch.busy(() => void observe(id, counts.map((count, i) => ({count, seconds: seconds[i]}))));

/** A balancer as Go takes it: neither function throws, as Go could not go on. @param {Crunch} crunch @param {ReturnType<typeof balancerOf>} balancer @returns {number[]} */
export function balancerWords(crunch, {word, split, observe}) {
  if (!split) return [word];
  let missed = ''; // what observe threw, which the next call that asks is told
  const telling = (/** @type {Call} */ run) => (/** @type {any[]} */ ...args) => {
    try {
      return run(...args);
    } catch (error) {
      return reasonOf(error) || 'it threw';
    }
  };
  const asking = telling(splitter(crunch, split)), told = telling(observer(crunch, observe));
  const ask = (/** @type {any[]} */ ...args) => {
    const before = missed;
    missed = '';
    return before || asking(...args);
  };
  return [word, crunch.put(ask), crunch.put((/** @type {any[]} */ ...args) => { missed = String(told(...args) ?? ''); })];
}

/** The balancer of the options: a name, or an object with functions of the page's. @param {string} where @param {unknown} given */
export function balancerOf(where, given = BALANCERS[0]) {
  if (typeof given !== 'object' || given === null || listed(where, given)) {
    if (!BALANCERS.includes(/** @type {string} */ (given))) throw failure('ErrInvalid', where, `balancer ${show(given)}; ${instead(given, BALANCERS)}, or an object with a function split`);
    return {word: BALANCERS.indexOf(/** @type {string} */ (given)), split: null, observe: null};
  }
  const {split, observe = () => {}} = guard(where, () => ({split: /** @type {any} */ (given).split, observe: /** @type {any} */ (given).observe}));
  for (const [name, f] of Object.entries({split, observe})) if (typeof f !== 'function') throw failure('ErrInvalid', where, `balancer whose ${name} is ${show(f)} and no function`);
  const call = (/** @type {Call} */ f) => (/** @type {any[]} */ ...args) => Reflect.apply(f, given, args);
  return {word: BALANCERS.length, split: call(split), observe: call(observe)};
}
