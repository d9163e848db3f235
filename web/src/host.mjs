// SPDX-License-Identifier: Apache-2.0

// What the package uses of Node, Deno and Bun beyond what pages have. Bundlers for pages find no import to choke on.

import {MOST_THREADS} from './crew-block.mjs';

/** The most threads of a program that was not asked for a number. */
const USUAL_THREADS = 16;

/** Returns a module of Node's, which Deno and Bun have, too, or undefined elsewhere. @param {string} name @returns {any} */
export const builtin = (name) => /** @type {any} */ (globalThis).process?.getBuiltinModule?.(name);

/** Returns how many threads a program may have, its own included: 1 without shared memory. @param {number} [wanted] @returns {number} */
export function threadsFor(wanted) {
  const cores = () => builtin('node:os')?.availableParallelism() ?? Reflect.get(globalThis, 'navigator')?.hardwareConcurrency ?? 1;
  const workers = builtin('node:worker_threads') !== undefined || Reflect.get(globalThis, 'crossOriginIsolated') === true && typeof Worker === 'function';
  return workers && typeof SharedArrayBuffer === 'function' ? Math.min(wanted ?? Math.min(cores(), USUAL_THREADS), MOST_THREADS) : 1;
}

/**
 * The address of a file of the package in the cache of Vite's development server, where there are copies of modules but not of what they load
 * by a URL; null anywhere else.
 * @param {string} name @param {string | undefined} module the address of the module that loads it
 */
export function uncached(name, module) {
  const [root, rest] = module?.split(/\/node_modules\/\.vite\/deps\w*\//) ?? [];
  return rest === undefined ? null : new URL(`${root}/node_modules/sublet/dist/${name}`);
}

/**
 * Starts a worker, which does not keep Node from exiting. It throws, or calls failed later, if that fails. It is not in the part that uses it,
 * as bundlers may put that elsewhere than the module.
 * @param {import('./thread.mjs').Start} start @param {() => void} failed
 */
export function spawn(start, failed) {
  const threads = builtin('node:worker_threads');
  if (threads) {
    const worker = new threads.Worker(new URL('./thread.mjs', import.meta.url), {workerData: start, execArgv: []});
    worker.on('error', failed);
    worker.unref();
    return worker;
  }
  const cached = uncached('thread.mjs', import.meta.url);
  const worker = cached ? new Worker(cached, {type: 'module', name: 'sublet'}) : new Worker(new URL('./thread.mjs', import.meta.url), {type: 'module', name: 'sublet'});
  worker.onerror = (event) => {
    event.preventDefault();
    failed();
  };
  try {
    worker.postMessage(start);
  } catch (error) { // the platform cannot send memories to workers
    worker.terminate();
    throw error;
  }
  return worker;
}
