// SPDX-License-Identifier: Apache-2.0

import {SubletError, failure, show} from './errors.mjs';

/**
 * A running Go program.
 * @typedef {object} Program
 * @property {WebAssembly.Memory} memory
 * @property {Record<string, any>} exports
 * @property {() => void} resume lets goroutines run that are ready
 * @property {() => void} stop keeps anything from calling a program that is dead
 * @property {Promise<string>} ended why the program ended
 * @property {Promise<{info: any, device: GPUDevice | null}>} ready
 */

/** Where the program looks for what it needs to start; see wasm/internal/page. */
const START = Symbol.for('sublet.start');
/** Where glue.js leaves its helper. */
const GLUE = Symbol.for('sublet.glue');

/** Go's own loader, which defines a global. A page may have one already, of another version of Go: it keeps it. */
async function goLoader() {
  const scope = /** @type {any} */ (globalThis);
  const before = Object.getOwnPropertyDescriptor(scope, 'Go');
  // @ts-expect-error the build puts it here
  await import('./wasm_exec.js');
  const {Go} = scope;
  if (before) Object.defineProperty(scope, 'Go', before);
  else delete scope.Go;
  return Go;
}

/** @type {Promise<any> | undefined} */
let loader;

/**
 * How much garbage a program of Go's collects before it clears it away, in percent of what is in use. That is little, matrices lie in
 * the GPU's memory, and each collection holds up the page.
 */
const GC_PERCENT = '400';

/** The package's own programs: for WebGPU, for pages without it, and for Gpu.cruncher. */
const PROGRAM = 'sublet.wasm';
const CPU_PROGRAM = 'sublet-cpu.wasm';
export const CRUNCHER_PROGRAM = 'sublet-cruncher.wasm';

/** Those that were compiled. @type {Map<string, Promise<WebAssembly.Module>>} */
const modules = new Map();

/** @param {Response} response */
async function compileResponse(response) {
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
  // A server that gives the file another type than application/wasm must not be in the way.
  if (!/^application\/wasm\b/.test(response.headers.get('content-type') ?? '')) {
    return WebAssembly.compile(await response.arrayBuffer());
  }
  return WebAssembly.compileStreaming(response);
}

/** @param {unknown} source @returns {Promise<WebAssembly.Module>} */
async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof Response) return compileResponse(source);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(/** @type {BufferSource} */ (source));
  if (typeof source === 'string' || source instanceof URL) return compileResponse(await fetch(source));
  throw failure('ErrInvalid', 'init', `wasm is ${show(source)}; it is a URL, a Response, bytes or a WebAssembly.Module`);
}

/** @param {string} name @returns {URL} of a program of the package's; bundlers look for texts like these */
function address(name) {
  switch (name) {
    case CPU_PROGRAM: return new URL('./sublet-cpu.wasm', import.meta.url);
    case CRUNCHER_PROGRAM: return new URL('./sublet-cruncher.wasm', import.meta.url);
    default: return new URL('./sublet.wasm', import.meta.url);
  }
}

/** @param {unknown} source what init was given @param {string} own the program of the package's own @returns {Promise<WebAssembly.Module>} */
export function moduleOf(source, own) {
  if (source !== undefined) return compile(source);
  const known = modules.get(own);
  if (known) return known;
  const module = compile(address(own));
  modules.set(own, module);
  module.catch(() => modules.delete(own)); // so that the next init tries again
  return module;
}

/**
 * Whether there is an adapter. It also lets the browser start its GPU process while the program loads; what it answers, the
 * program will ask for again.
 */
async function hasAdapter() {
  try {
    return await navigator.gpu.requestAdapter() !== null;
  } catch { // no navigator, or no WebGPU
    return false;
  }
}

/**
 * The program that suits the page. Where there is no WebGPU at all, that for WebGPU is not even asked for.
 * @param {{wasm?: unknown, fallback: unknown}} sources as init was given them @param {boolean} wanted whether a device was given
 * @returns {Promise<WebAssembly.Module>}
 */
export async function suitable({wasm: source, fallback}, wanted) {
  const cpu = () => moduleOf(fallback === true ? undefined : fallback, CPU_PROGRAM);
  if (wanted || fallback === false) return moduleOf(source, PROGRAM);
  if (globalThis.navigator?.gpu === undefined) return cpu();
  const module = moduleOf(source, PROGRAM);
  module.catch(() => {}); // whether somebody waits for it is not known yet
  return await hasAdapter() ? module : cpu();
}

/**
 * Replaces the loader's timer. The stock one calls the program over and over until it has taken notice, and under heavy
 * load that was seen to hang a page; this one lets other events happen in between.
 * @param {any} go
 */
function calmTimers(go) {
  const gojs = go.importObject.gojs;
  gojs['runtime.scheduleTimeoutEvent'] = (/** @type {number} */ sp) => {
    sp >>>= 0;
    const id = go._nextCallbackTimeoutID++;
    const schedule = (/** @type {number} */ delay) => go._scheduledTimeouts.set(id, setTimeout(() => {
      go._resume();
      if (go._scheduledTimeouts.has(id)) schedule(1);
    }, delay));
    schedule(go.mem.getUint32(sp + 8, true) + go.mem.getInt32(sp + 12, true) * 2 ** 32);
    go.mem.setInt32(sp + 16, id, true);
  };
}

/**
 * Loads and starts a Go program.
 * @param {WebAssembly.Module | Promise<WebAssembly.Module>} program @param {string} mark an export by which it is known
 * @param {{device?: GPUDevice, settle: (...outcome: any) => void, [more: string]: unknown}} start what it gets
 * @returns {Promise<Program>}
 */
export async function load(program, mark, start) {
  const [module, Go] = await Promise.all([
    program,
    loader ??= goLoader(),
    // @ts-expect-error the build puts it here
    import('./glue.js'),
  ]);
  const go = new Go();
  go.env.GOGC = GC_PERCENT;
  calmTimers(go);
  const instance = await WebAssembly.instantiate(module, go.importObject);
  const exports = /** @type {Record<string, any>} */ (instance.exports), memory = exports.mem;
  if (typeof exports[mark] !== 'function') throw failure('ErrInvalid', 'init', 'the WebAssembly module is not that of this package');

  const scope = /** @type {any} */ (globalThis);
  scope[GLUE].setMemory(memory);
  if (start.debug !== undefined) scope[GLUE].setDebug(start.debug);
  const started = new Promise((resolve, reject) => {
    scope[START] = {
      ...start,
      ready: (/** @type {any} */ info, /** @type {GPUDevice | null} */ device) => resolve({info, device}),
      failed: (/** @type {string} */ failed, /** @type {string} */ message) => reject(new SubletError(failed, message)),
    };
  });
  let stopped = false;
  /** Keeps timers and promises from calling a program that has ended. Its loader would call again and again. */
  const stop = () => {
    stopped = true;
    for (const timer of go._scheduledTimeouts.values()) clearTimeout(timer);
    go._scheduledTimeouts.clear();
  };
  /** @type {Promise<string>} */
  const ended = new Promise((resolve) => {
    const end = (/** @type {string} */ why) => {
      stop();
      resolve(why);
    };
    // Timers and callbacks of promises come in this way. What they throw would otherwise only be seen in the console.
    const resume = go._resume.bind(go);
    go._resume = () => {
      if (stopped || go.exited) return;
      try {
        resume();
      } catch (error) {
        end(String(error));
        throw error;
      }
    };
    go.exit = (/** @type {number} */ code) => end(`exit code ${code}`); // a call of an export may be its last
    go.run(instance).catch((/** @type {unknown} */ error) => end(String(error))); // takes what is under START at once
  });
  const died = ended.then((why) => { throw failure('exited', 'init', why); });
  const ready = Promise.race([started, died]);
  ready.catch(() => {}); // whoever waits hears of it
  return {memory, exports, resume: () => go._resume(), stop, ended, ready};
}
