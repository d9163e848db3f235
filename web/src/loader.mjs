// SPDX-License-Identifier: Apache-2.0

import {SubletError, failure, show} from './errors.mjs';
import {Kernels} from './kernels.mjs';

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
 * How much garbage a program of Go's collects before it clears it away, in percent of what is in use, as each collection holds up the
 * page. Where matrices lie in the program's memory, of which there are 4 GiB at most, it clears earlier when these get scarce.
 */
const GC_PERCENT = '400';
const GC_MEMORY = '2GiB';

/** The package's own programs: for WebGPU, for where there is none, and for Gpu.cruncher. */
const PROGRAM = 'sublet.wasm';
const SIMD_PROGRAM = 'sublet-simd.wasm';
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

/**
 * Compiles a program that lies in a file beside this one, which Node does not fetch. Bundlers for pages find no import to choke on.
 * @param {string | URL} address
 */
async function compileFile(address) {
  const files = /** @type {any} */ (globalThis).process?.getBuiltinModule?.('node:fs/promises');
  if (!files || !String(address).startsWith('file:')) return null;
  return WebAssembly.compile(await files.readFile(new URL(address)));
}

/** @param {unknown} source @returns {Promise<WebAssembly.Module>} */
async function compile(source) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof Response) return compileResponse(source);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return WebAssembly.compile(/** @type {BufferSource} */ (source));
  if (typeof source === 'string' || source instanceof URL) return await compileFile(source) ?? compileResponse(await fetch(source));
  throw failure('ErrInvalid', 'init', `wasm is ${show(source)}; it is a URL, a Response, bytes or a WebAssembly.Module`);
}

/** @param {string} name @returns {URL} of a program of the package's; bundlers look for texts like these */
function address(name) {
  switch (name) {
    case SIMD_PROGRAM: return new URL('./sublet-simd.wasm', import.meta.url);
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

/** What adapters that compute on the CPU say of themselves; see kind in wasm/browser/adapter.go. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render/i;

/** Whether WebGPU has more than a program on the CPU, which takes several times as long as this package's own. @param {string} [power] */
export async function hasGPU(power) {
  try {
    const adapter = await navigator.gpu.requestAdapter({powerPreference: /** @type {GPUPowerPreference} */ (power ?? 'high-performance')});
    if (!adapter) return false;
    const {info = {}} = /** @type {any} */ (adapter); // which older browsers lack
    if (info.isFallbackAdapter ?? /** @type {any} */ (adapter).isFallbackAdapter) return false;
    return !SOFTWARE.test([info.vendor, info.architecture, info.device, info.description].join(' '));
  } catch { // no navigator, or no WebGPU
    return false;
  }
}

/**
 * The program for a device. Only that one is fetched.
 * @param {{wasm?: unknown, simdWasm?: unknown}} sources as init was given them @param {string | GPUDevice} device @param {string} [power]
 * @returns {Promise<WebAssembly.Module>}
 */
export async function suitable({wasm, simdWasm}, device, power) {
  const simd = device === 'simd' || device === 'auto' && !await hasGPU(power);
  return simd ? moduleOf(simdWasm, SIMD_PROGRAM) : moduleOf(wasm, PROGRAM);
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
 * @param {{device?: GPUDevice, driver?: string, settle: (...outcome: any) => void, [more: string]: unknown}} start what it gets
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
  go.env.GOMEMLIMIT = GC_MEMORY;
  if (typeof start.driver === 'string') go.env.SUBLET_DRIVER = start.driver;
  calmTimers(go);
  go.importObject.sublet = new Kernels();
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
