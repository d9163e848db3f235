// SPDX-License-Identifier: Apache-2.0

// What tests of hostile callers and of devices that fail have in common.

import {sourceMap} from './source-map.mjs';
import {check} from './testing.mjs';

const sourceOf = await sourceMap('/dist/index.mjs');
/** What functions of the caller's throw. It is passed on as it is. */
export class Mine extends Error {}

/**
 * Arguments that methods take, of which one is then something else: d a size, v values, b a GPUBuffer, m a matrix, x an expression, o options,
 * f a file, t a text, c a function, a an array of a cruncher, r a range of items, g one of rows, e entries of a file, h a message, s a shape, n an operand of a layer, w a window,
 * k a 2d canvas or a picture.
 */
export const TEMPLATES = {
  matrix: 'ddvo', zeros: 'ddo', ones: 'ddo', full: 'dddo', eye: 'do', wrap: 'vddo', wrapBuffer: 'bddo', fromBuffer: 'vddo', map: 'ddo', sparse: 'ddo', wrapSparse: 'ddo',
  sparseFrom: 'xo', loadParams: 'fo', scanParams: 'fo', saveParams: 'eo', fn: 't', cruncher: 'to', apply: 'xxx', assign: 'x', setValue: 'x', setValueFrom: 'vddo', rebind: 'vddo',
  resize: 'dd', setShape: 'dd', take: 'm', swap: 'm', slice: 'gg', row: 'd', col: 'd', reshape: 'dd', read: 'v', set: 'v', access: 'dc', matmul: 'xo', columnSlice: 'dd',
  append: 'ddd', array: 'tvo', scalar: 'tdt', compute: 'dtra', batch: 'c', fetch: 'aa', evict: 'aa', stats: 'd', astype: 't', add: 'x', where: 'nnn', clamp: 'xx', clip: 'xx', maximum: 'nn',
  tensor: 'vso', permute: 'ddd', broadcastTo: 's', expandDims: 'd', squeeze: 'd', conv2d: 'nnnw', conv2dDataGrad: 'nnw', conv2dKernelGrad: 'nnw', conv2dBiasGrad: 'nw',
  maxPool: 'nw', maxPoolGrad: 'nnw', maxUnpool: 'nnw', averagePool: 'nw', averagePoolGrad: 'nw', crossEntropy: 'nn', crossEntropyGrad: 'nn', mse: 'nn', mseGrad: 'nn', dropout: 'nnd',
  embedding: 'nn', embeddingGrad: 'nnd', quantise: 'no', step: 'mn', infer: 'nnnnn', train: 'nnno', backward: 'nnnn', toCanvas: 'ko', fromImage: 'ko', load: 'fo', save: 'eo', scope: 'c', record: 'co', attach: 'h', detach: 'o',
};

export const throwing = () => { throw new Mine('thrown'); };
/** Something that throws whatever is done with it. */
export const hostile = () => new Proxy(function f() {}, Object.fromEntries(
  Object.getOwnPropertyNames(Reflect).map((trap) => [trap, throwing])));
/** Memory that belongs to somebody else. */
export const detached = (view) => {
  structuredClone(view, {transfer: [view.buffer ?? view]});
  return view;
};

/** The codes that the declarations list, but for those of a program that has gone wrong. */
export async function documentedCodes() {
  const text = await (await fetch('/dist/types/errors.d.ts')).text();
  return new Set([...text.matchAll(/`(Err\w+)`/g)].map(([, code]) => code).filter((code) => code !== 'ErrInternal'));
}

/** The members of an object: those of its prototypes, and its own. */
export function members(object) {
  const list = [];
  for (let of = object; of && of !== Object.prototype && of !== Function.prototype; of = Object.getPrototypeOf(of)) {
    for (const key of Reflect.ownKeys(of)) {
      if (key !== 'constructor') list.push([key, Object.getOwnPropertyDescriptor(of, key)]);
    }
  }
  return list;
}

/** Random numbers that follow from a seed. */
export class Random {
  #state;

  constructor(seed) { this.#state = seed >>> 0; }

  /** A number from 0 to n-1. */
  below(n) {
    let t = this.#state = this.#state + 0x6d2b79f5 | 0;
    t = Math.imul(t ^ t >>> 15, t | 1);
    t ^= t + Math.imul(t ^ t >>> 7, t | 61);
    return ((t ^ t >>> 14) >>> 0) % n;
  }

  pick(list) { return list[this.below(list.length)]; }
}

/** Fails when a promise is pending after so many milliseconds, which nothing that works takes. */
export function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new TypeError(`no answer in ${ms / 1000} s: ${what}`)), ms); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Collects rejections that nobody handles, and errors that nobody catches. */
export function unhandled(matters) {
  const list = [], note = (event) => {
    event.preventDefault();
    const error = event.reason ?? event.error;
    if (matters(error)) list.push(error?.stack ?? String(error ?? event.message));
  };
  for (const type of ['unhandledrejection', 'error']) addEventListener(type, note);
  return {
    check: () => check(list.length === 0, `unhandled: ${list.join('\n')}`),
    stop: () => { for (const type of ['unhandledrejection', 'error']) removeEventListener(type, note); },
  };
}

/** The tables that a Gpu and its programs keep: those that are made while one is opened. */
export class Registry {
  #tables = [];

  async watch(open) {
    const tables = this.#tables, classes = {Map, Set};
    for (const [name, Class] of Object.entries(classes)) {
      globalThis[name] = class extends Class {
        constructor(...args) {
          super(...args);
          const from = sourceOf(new Error().stack.split('\n')[2].trim());
          // Go's table of JavaScript's values shrinks when Go collects garbage, pools keep buffers, and who waits for a loss goes with the device.
          if (!/wasm_exec|awaitLoss/.test(from) && !(/glue/.test(from) && name === 'Set')) tables.push([this, from]);
        }
      };
    }
    try {
      return await open();
    } finally {
      Object.assign(globalThis, classes);
    }
  }

  /** Lets go of the tables, which keep programs. */
  stop() { this.#tables.length = 0; }

  sizes(gpu) {
    const {buffers, liveBytes} = gpu.stats();
    // What goes by texts is a cache, and lists are of what is idle.
    const tables = this.#tables.filter(([table]) => ![...table.entries()].some(([key, value]) => typeof key === 'string' || Array.isArray(value)));
    return {buffers, liveBytes, tables: tables.filter(([{size}]) => size > 0).map(([{size}, from]) => `${from} ${size}`)};
  }

  /** Waits for the sizes to be what they were: closing is done in the background. */
  async same(gpu, before) {
    const want = JSON.stringify(before);
    let got;
    for (let i = 0; i < 200; i++) {
      got = JSON.stringify(this.sizes(gpu));
      if (got === want) return;
      await new Promise((done) => { setTimeout(done, 20); });
    }
    throw new Error(`the registries have ${got}, want ${want}`);
  }
}
