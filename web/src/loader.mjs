// SPDX-License-Identifier: Apache-2.0

import {threadsFor} from './crew.mjs';
import {SubletError, failure, show, tagOf} from './errors.mjs';
import {Kernels} from './kernels.mjs';
import {decodingShared, knowsShared, memorySharer, shareMemory, shareRandom} from './shared.mjs';

/**
 * A running Go program.
 * @typedef {object} Program
 * @property {WebAssembly.Memory} memory
 * @property {Record<string, any>} exports
 * @property {{readonly threads: number}} size how many threads compute
 * @property {() => void} resume lets goroutines run that are ready
 * @property {() => void} stop keeps anything from calling a program that is dead
 * @property {Promise<string>} ended why the program ended
 * @property {Promise<{info: any, device: GPUDevice | null}>} ready
 */

/**
 * A program that is being compiled, and for how many threads: with more than one, its memory is shared.
 * @typedef {{module: Promise<WebAssembly.Module>, threads: number, alone?: () => Promise<WebAssembly.Module>}} Loading
 *   alone: compiles it for one thread, for when an engine cannot reserve the addresses of a shared memory
 */

/** Where the program looks for what it needs to start; see wasm/internal/page. */
const START = Symbol.for('sublet.start');
/** Where glue.js leaves its helper. */
const GLUE = Symbol.for('sublet.glue');

/** Imports Go's own loader, which defines a global. A page may have that of another version of Go, and keeps it. */
async function goLoader() {
  const scope = /** @type {any} */ (globalThis);
  const before = Object.getOwnPropertyDescriptor(scope, 'Go');
  // @ts-expect-error the build puts it here
  const run = () => import('./wasm_exec.js');
  await (typeof SharedArrayBuffer === 'function' ? decodingShared(run) : run());
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

/** The package's programs that were compiled, by name and whether their memory is shared. @type {Map<string, Promise<WebAssembly.Module>>} */
const modules = new Map();

/** @param {Response} response @param {boolean} shared */
async function compileResponse(response, shared) {
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${response.statusText}`);
  // Servers may give the file another type than application/wasm, which compileStreaming refuses.
  const known = /^application\/wasm\b/.test(response.headers.get('content-type') ?? '') && (!shared || typeof TransformStream === 'function');
  if (!known) return compileBytes(await response.arrayBuffer(), shared);
  if (!shared || !response.body) return WebAssembly.compileStreaming(response);
  return WebAssembly.compileStreaming(new Response(response.body.pipeThrough(memorySharer()), {headers: {'content-type': 'application/wasm'}}));
}

/** @param {BufferSource} source @param {boolean} shared */
function compileBytes(source, shared) {
  if (!shared) return WebAssembly.compile(source);
  const bytes = ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : new Uint8Array(source);
  const pieces = shareMemory(bytes) ?? [bytes], whole = new Uint8Array(pieces.reduce((sum, {length}) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return WebAssembly.compile(whole);
}

/**
 * Compiles a program that lies in a file beside this one, which Node does not fetch. Bundlers for pages find no import to choke on.
 * @param {string | URL} address @param {boolean} shared
 */
async function compileFile(address, shared) {
  const files = /** @type {any} */ (globalThis).process?.getBuiltinModule?.('node:fs/promises');
  if (!files || !String(address).startsWith('file:')) return null;
  return compileBytes(await files.readFile(new URL(address)), shared);
}

/** @param {unknown} source @param {boolean} shared whether its memory is to be shared @returns {Promise<WebAssembly.Module>} */
async function compile(source, shared) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof Response) return compileResponse(source, shared);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return compileBytes(/** @type {BufferSource} */ (source), shared);
  if (typeof source === 'string' || source instanceof URL) return await compileFile(source, shared) ?? compileResponse(await fetch(source), shared);
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

/**
 * @param {unknown} source what init was given @param {string} own the program of the package's own
 * @param {number} [wanted] threads, as many as there are cores by default @returns {Loading}
 */
export function moduleOf(source, own, wanted) {
  const threads = knowsShared() ? threadsFor(wanted) : 1, shared = threads > 1;
  if (source !== undefined) {
    const module = compile(source, shared);
    module.catch(() => {}); // whoever waits hears of it
    const alone = source instanceof Response ? undefined : () => compile(source, false); // whose body can be read once only
    return {module, threads, alone};
  }
  const load = (/** @type {boolean} */ shared) => {
    const key = `${own} ${shared}`, known = modules.get(key);
    if (known) return known;
    const module = compile(address(own), shared);
    modules.set(key, module);
    module.catch(() => modules.delete(key)); // so that the next init tries again
    return module;
  };
  return {module: load(shared), threads, alone: () => load(false)};
}

/** Texts by which adapters that compute on the CPU describe themselves; see kind in wasm/browser/adapter.go. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render/i;

/** Whether WebGPU has an adapter that is no program on the CPU: this package's own is several times as fast as such an adapter. @param {string} [power] */
export async function hasGPU(power) {
  try {
    const adapter = await navigator.gpu.requestAdapter({powerPreference: /** @type {GPUPowerPreference} */ (power ?? 'high-performance')});
    if (!adapter) return false;
    const {info = {}} = /** @type {any} */ (adapter); // older browsers lack it
    if (info.isFallbackAdapter ?? /** @type {any} */ (adapter).isFallbackAdapter) return false;
    return !SOFTWARE.test([info.vendor, info.architecture, info.device, info.description].join(' '));
  } catch { // no navigator, or no WebGPU
    return false;
  }
}

/**
 * The program for a device. Only that one is fetched.
 * @param {{wasm?: unknown, simdWasm?: unknown}} sources as init was given them @param {string | GPUDevice} device
 * @param {{power?: string, threads?: number}} options @returns {Promise<Loading>}
 */
export async function suitable({wasm, simdWasm}, device, {power, threads}) {
  const simd = device === 'simd' || device === 'auto' && !await hasGPU(power);
  return simd ? moduleOf(simdWasm, SIMD_PROGRAM, threads) : moduleOf(wasm, PROGRAM, 1);
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

/** @param {WebAssembly.Memory} memory */
const isShared = ({buffer}) => tagOf(buffer) === 'SharedArrayBuffer';

/** @param {Loading} loading @param {WebAssembly.Imports} imports */
async function instantiate({module, threads, alone}, imports) {
  try {
    return await WebAssembly.instantiate(await module, imports);
  } catch (error) {
    if (threads === 1 || !alone) throw error;
    return WebAssembly.instantiate(await alone(), imports);
  }
}

/** A Go program and what it imports. @param {Loading | Promise<Loading>} program @param {string} [driver] of its devices */
async function programOf(program, driver) {
  const [loading, Go] = await Promise.all([
    program,
    loader ??= goLoader(),
    // @ts-expect-error the build puts it here
    import('./glue.js'),
  ]);
  const go = new Go(), kernels = new Kernels();
  go.env.GOGC = GC_PERCENT;
  go.env.GOMEMLIMIT = GC_MEMORY;
  if (driver !== undefined) go.env.SUBLET_DRIVER = driver;
  calmTimers(go);
  if (loading.threads > 1) shareRandom(go);
  go.importObject.sublet = kernels;
  const instance = await instantiate(loading, go.importObject), {mem} = /** @type {Record<string, any>} */ (instance.exports);
  if (mem && isShared(mem)) kernels.share(mem, loading.threads);
  return {go, instance, kernels};
}

/**
 * Loads and starts a Go program.
 * @param {Loading | Promise<Loading>} loading @param {string} mark an export by which it is known
 * @param {{device?: GPUDevice, driver?: string, settle: (...outcome: any) => void, [more: string]: unknown}} start what it gets
 * @returns {Promise<Program>}
 */
export async function load(loading, mark, start) {
  const {go, instance, kernels} = await programOf(loading, start.driver);
  const exports = /** @type {Record<string, any>} */ (instance.exports), memory = exports.mem;
  if (typeof exports[mark] !== 'function') throw failure('ErrInvalid', 'init', 'the WebAssembly module is not that of this package');

  const scope = /** @type {any} */ (globalThis);
  if (!isShared(memory)) scope[GLUE].setMemory(memory); // some functions of WebGPU refuse shared memory
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
    kernels.end();
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
  return {memory, exports, size: kernels.size, resume: () => go._resume(), stop, ended, ready};
}
