// SPDX-License-Identifier: Apache-2.0

// Runs the race, in a worker: the page stays usable, and can end it in the middle of a loop.
import * as sublet from './bench-peer.mjs';
import * as plain from './race-plain.mjs';
import {difference, inputs, races, reference} from './race-items.mjs';

/** @typedef {import('./race-items.mjs').Item} Item */
/** @typedef {{ms: number, all: number[], off: number} | {why: string}} Result the times of a peer, or why there are none */

/** Rounds of the peers, and milliseconds for a peer and an item after which a round is the last one. */
const efforts = {short: {rounds: 5, budget: 400}, full: {rounds: 9, budget: 1500}};
/** A time of less is measured several calls at once: clocks and waiting for a device take time of their own. */
const LEAST = 12;
/** Bytes of results that may wait at once. */
const MEMORY = 64 << 20;

/** Who takes part, in the order of the page. @type {Map<string, any>} */
const peers = new Map();

/** @param {object} message */
const say = (message) => postMessage(message);

/** Loads the peers: what cannot be loaded is out of the race. @param {'auto' | 'webgpu' | 'simd'} device */
async function load(device) {
  const info = await sublet.load({device}), webgpu = info.driver === 'browser', threads = info.threads;
  peers.set('sublet', sublet);
  say({peer: 'sublet', name: webgpu ? `on ${info.name}` : `on the CPU, ${threads === 1 ? 'one thread' : `${threads} threads`}`, info});
  try {
    const tfjs = await import(/* @vite-ignore */ new URL('./tfjs/race-tfjs.mjs', import.meta.url).href), loaded = await tfjs.load({webgpu, threads});
    peers.set('tfjs', tfjs);
    say({peer: 'tfjs', ...loaded});
  } catch (error) {
    say({peer: 'tfjs', name: '', why: String(/** @type {Error} */ (error)?.message ?? error)});
  }
  peers.set('plain', plain);
  say({peer: 'plain', ...await plain.load()});
}

/** Computes a number of times and waits for all of it: milliseconds for each. @param {any} peer @param {any} entry @param {number} times */
async function time(peer, entry, times) {
  // [code]
  const results = [], start = performance.now();
  for (let i = 0; i < times; i++) results.push(entry.run()); // Sublet: a.matmul(b).eval()
  peer.flush?.();
  await peer.sync(); // Sublet: gpu.sync()
  const ms = (performance.now() - start) / times;
  // [end]
  for (const result of results) entry.free(result);
  return ms;
}

/** Checks a result, and finds how many calls are to be measured at once. @param {any} peer @param {Item} item @param {any} data @param {Float64Array} want */
async function prepare(peer, item, data, want) {
  const entry = peer.items[item.kind](item, data);
  const result = entry.run(), got = await entry.read(result), off = difference(want, got);
  entry.free(result);
  if (!(off <= item.tolerance)) {
    entry.close();
    throw new Error(`the result is wrong: off by ${off.toExponential(1)}`);
  }
  const once = await time(peer, entry, 1), most = Math.max(1, Math.floor(MEMORY / (4 * want.length)));
  return {peer, entry, off, times: Math.min(Math.max(1, Math.ceil(LEAST / once)), most, 40), all: /** @type {number[]} */ ([]), spent: 0};
}

/** @param {Item} item @param {{rounds: number, budget: number}} effort */
async function run(item, {rounds, budget}) {
  const data = inputs(item), want = reference(item, data), ready = new Map();
  for (const [name, peer] of peers) {
    say({item: item.id, peer: name});
    try {
      ready.set(name, await prepare(peer, item, data, want));
    } catch (error) {
      say({item: item.id, peer: name, result: {why: String(/** @type {Error} */ (error)?.message ?? error)}});
    }
  }
  // Peers take turns, each round beginning with another one: what else the machine does hits all of them.
  const names = [...ready.keys()];
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < names.length; i++) {
      const name = names[(round + i) % names.length], r = ready.get(name);
      if (r.spent > budget) continue;
      const ms = await time(r.peer, r.entry, r.times);
      r.all.push(ms);
      r.spent += ms * r.times;
      const sorted = r.all.toSorted((/** @type {number} */ x, /** @type {number} */ y) => x - y);
      say({item: item.id, peer: name, result: {ms: sorted[sorted.length >> 1], all: r.all, off: r.off}});
    }
  }
  for (const r of ready.values()) r.entry.close();
}

/** @param {MessageEvent<{race: 'short' | 'full', device: 'auto' | 'webgpu' | 'simd'}>} event */
onmessage = async ({data: {race, device}}) => {
  try {
    if (peers.size === 0) await load(device);
    for (const item of races[race]) await run(item, efforts[race]);
    say({done: true});
  } catch (error) {
    const {code, message} = /** @type {{code?: string, message?: string}} */ (error ?? {});
    say({failed: {code, message: message ?? String(error)}});
  }
};
