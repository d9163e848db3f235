// SPDX-License-Identifier: Apache-2.0

import {PROGRAM, SIMD_PROGRAM, address, compile, compileNow, isAddress, part, restName, sibling} from './download.mjs';
import {SubletError, failure, tagOf} from './errors.mjs';
import {threadsFor} from './host.mjs';
import {Rest} from './rest.mjs';
import {decodingShared, knowsShared, shareRandom} from './shared.mjs';

const kernelsOfCPU = part(() => import('./kernels.mjs'));

/**
 * A running Go program.
 * @typedef {object} Program
 * @property {WebAssembly.Memory} memory
 * @property {Rest} rest by which it is called
 * @property {{readonly threads: number}} size how many threads compute
 * @property {() => any} device what does messages again as its device, if anything does: see repeats.mjs
 * @property {() => void} resume lets goroutines run that are ready
 * @property {() => void} stop keeps anything from calling a program that is dead
 * @property {Promise<string>} ended why the program ended
 * @property {Promise<{info: any, device: GPUDevice | null}>} ready
 */

/**
 * A program that is being compiled, and for how many threads: with more than one, its memory is shared.
 * @typedef {{module: Promise<WebAssembly.Module>, kernels: Promise<typeof import('./kernels.mjs')> | null, threads: number, alone?: () => Promise<WebAssembly.Module>, rest: (shared: boolean) => import('./rest.mjs').Source, prefetched?: Promise<Prefetched>}} Loading
 *   kernels: what it imports if it may compute on the CPU; prefetched: the device that the program gets; alone: compiles it for one thread, for when an engine cannot reserve the addresses of a shared memory
 */

/**
 * An adapter, what was asked for, and a device that was requested beside the download; see setPrefetched in wasm/browser/glue.js.
 * @typedef {{wish: GPURequestAdapterOptions, adapter: GPUAdapter, device: Promise<GPUDevice>}} Prefetched
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

/** Loads the helper of the program's driver. @returns {Promise<any>} */
async function glue() {
  // @ts-expect-error the build puts it here
  await import('./glue.js');
  return Reflect.get(globalThis, GLUE);
}

/**
 * How much garbage a program of Go's collects before it clears it away, in percent of what is in use, as each collection holds up the
 * page. Where matrices lie in the program's memory, of which there are 4 GiB at most, it clears earlier when these get scarce.
 */
const GC_PERCENT = '400';
const GC_MEMORY = '2GiB';

/** The package's programs that were compiled, by name and whether their memory is shared. @type {Map<string, Promise<WebAssembly.Module>>} */
const modules = new Map();

/**
 * @param {unknown} source what init was given, or a pair with the source of its rest @param {string} own the program of the package's own
 * @param {number} [wanted] threads, as many as there are cores by default @returns {Loading}
 */
export function moduleOf(source, own, wanted) {
  const threads = knowsShared() ? threadsFor(wanted) : 1, shared = threads > 1;
  const cached = (/** @type {string} */ name, /** @type {boolean} */ shared, /** @type {boolean} */ urgent) => {
    const key = `${name} ${shared}`, known = modules.get(key);
    if (known) return known;
    const module = compile(address(name), shared, urgent);
    modules.set(key, module);
    module.catch(() => modules.delete(key)); // so that the next init tries again
    return module;
  };
  const kernels = own === PROGRAM ? null : kernelsOfCPU();
  kernels?.catch(() => {}); // whoever waits hears of it
  const [given, second] = Array.isArray(source) && source.length === 2 ? source : [source, source === undefined ? undefined : sibling(source)];
  const rest = (/** @type {boolean} */ shared) => {
    const from = () => second ?? address(restName(own)), lazy = typeof XMLHttpRequest === 'function' && (second === undefined || isAddress(second));
    return {
      load: (/** @type {boolean} */ urgent) => second === undefined ? cached(restName(own), shared, urgent) : compile(second, shared, urgent),
      forget: () => { modules.delete(`${restName(own)} ${shared}`); },
      now: lazy ? () => compileNow(from(), shared) : undefined,
    };
  };
  if (given === undefined) return {module: cached(own, shared, true), kernels, threads, alone: () => cached(own, false, true), rest};
  const module = compile(given, shared);
  module.catch(() => {}); // whoever waits hears of it
  const alone = given instanceof Response ? undefined : () => compile(given, false); // whose body can be read once only
  return {module, kernels, threads, alone, rest};
}

/** Texts by which adapters that compute on the CPU describe themselves; see kind in wasm/browser/adapter.go. */
const SOFTWARE = /swiftshader|llvmpipe|lavapipe|basic render/i;

/** @param {string} [power] */
const wishFor = (power) => ({powerPreference: /** @type {GPUPowerPreference} */ (power ?? 'high-performance')});

/** @param {GPURequestAdapterOptions} wish @returns {Promise<GPUAdapter | null>} WebGPU's adapter, if there is one */
async function adapterFor(wish) {
  try {
    return await navigator.gpu.requestAdapter(wish);
  } catch { // no navigator, or no WebGPU
    return null;
  }
}

/** Whether an adapter is no program on the CPU: this package's own is several times as fast as such an adapter. @param {any} adapter */
function isGPU(adapter) {
  if (!adapter) return false;
  try {
    const {info = {}} = adapter; // older browsers lack it
    if (info.isFallbackAdapter ?? adapter.isFallbackAdapter) return false;
    return !SOFTWARE.test([info.vendor, info.architecture, info.device, info.description].join(' '));
  } catch { // an object of the page's that is no adapter
    return false;
  }
}

/** Whether WebGPU has an adapter that is a GPU. */
export const hasGPU = async () => isGPU(await adapterFor(wishFor()));

/** Requests a device, for the program that is still to come. @param {GPURequestAdapterOptions} wish @param {GPUAdapter} adapter @returns {Promise<Prefetched>} */
async function prefetch(wish, adapter) {
  const device = (await glue()).requestDevice(adapter);
  device.catch(() => {}); // the program tries again, and tells
  return {wish, adapter, device};
}

/**
 * The program for a device. Only that one is fetched, and none where the device is missing. Its device is requested beside.
 * @param {{wasm?: unknown, simdWasm?: unknown}} sources as init was given them @param {string | GPUDevice} device
 * @param {{power?: string, threads?: number}} options @returns {Promise<Loading>}
 */
export async function suitable({wasm, simdWasm}, device, {power, threads}) {
  if (device === 'simd') return moduleOf(simdWasm, SIMD_PROGRAM, threads);
  if (typeof device !== 'string') return moduleOf(wasm, PROGRAM, 1);
  const wish = wishFor(power), adapter = await adapterFor(wish);
  if (device === 'auto' && !isGPU(adapter)) return moduleOf(simdWasm, SIMD_PROGRAM, threads);
  if (!adapter) {
    const secure = Reflect.get(globalThis, 'isSecureContext') === false ? 'pages have WebGPU over https and from localhost only' : 'device "simd" computes on the CPU';
    throw failure('ErrNoAdapter', 'init', `WebGPU has no adapter here: ${secure}`);
  }
  const loading = moduleOf(wasm, PROGRAM, 1), prefetched = prefetch(wish, adapter); // the download begins first
  prefetched.catch(() => {}); // whoever waits hears of it
  return {...loading, prefetched};
}

/** Destroys a device that no program takes. @param {Prefetched | undefined} found */
const discard = (found) => found?.device.then((device) => device.destroy(), () => {});

/**
 * Destroys the device that was requested for a program if that does not start.
 * @template T @param {Promise<Loading>} loading @param {Promise<T>} started @returns {Promise<T>}
 */
export async function unused(loading, started) {
  try {
    return await started;
  } catch (error) {
    discard(await (await loading).prefetched);
    throw error;
  }
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
  const compiled = await module;
  try {
    return await WebAssembly.instantiate(compiled, imports);
  } catch (error) {
    if (threads === 1 || !alone) throw error;
    return WebAssembly.instantiate(await alone(), imports);
  }
}

/** Waits for WebGPU alone, and returns whether it had no errors. A device that is lost is none's to wait for: Go tells. @param {GPUDevice} device @returns {Promise<boolean>} */
export const idle = (device) => /** @type {any} */ (globalThis)[GLUE].idle(device).catch(() => false);

/** A Go program and what it imports. @param {Loading | Promise<Loading>} program @param {{driver?: string, tuning?: boolean}} start driver: of its devices */
async function programOf(program, {driver, tuning}) {
  const [loading, Go] = await Promise.all([program, loader ??= goLoader(), glue()]);
  const go = new Go(), Kernels = (await loading.kernels)?.Kernels, kernels = Kernels ? new Kernels(loading.threads) : null;
  go.env.GOGC = GC_PERCENT;
  go.env.GOMEMLIMIT = GC_MEMORY;
  if (driver !== undefined) go.env.SUBLET_DRIVER = driver;
  if (tuning === false) go.env.SUBLET_TUNE = 'off';
  calmTimers(go);
  if (loading.threads > 1) shareRandom(go);
  if (kernels) go.importObject.sublet = kernels;
  const rest = new Rest(go), instance = await instantiate(loading, go.importObject), {mem} = /** @type {Record<string, any>} */ (instance.exports);
  const shared = mem && isShared(mem);
  kernels?.attach(await loading.module, mem, (bytes) => rest.call('sublet_scratch', bytes));
  if (shared) await kernels?.share(mem, loading.threads);
  return {go, instance, kernels, rest, running: await rest.attach(instance, loading.rest(shared)), prefetched: loading.prefetched};
}

/** When the rest of a program is loaded if there is no first result, in milliseconds. */
const QUIET = 3000;

/**
 * Loads and starts a Go program.
 * @param {Loading | Promise<Loading>} loading @param {string} mark an export by which it is known
 * @param {{device?: GPUDevice, driver?: string, tuning?: boolean, settle: (...outcome: any) => void, waiting: () => boolean, refuse: (error: SubletError) => void, [more: string]: unknown}} start what it gets
 * @returns {Promise<Program>}
 */
export async function load(loading, mark, start) {
  const {go, instance, kernels, rest, running, prefetched} = await programOf(loading, start);
  const exports = /** @type {Record<string, any>} */ (instance.exports), memory = exports.mem;
  if (typeof exports[mark] !== 'function') throw failure('ErrInvalid', 'init', 'the WebAssembly module is not that of this package');

  const scope = /** @type {any} */ (globalThis);
  if (start.debug !== undefined) scope[GLUE].setDebug(start.debug);
  let answers = 0;
  const started = new Promise((resolve, reject) => {
    prefetched?.catch(reject);
    rest.refuse = (error) => {
      reject(error);
      start.refuse(error);
    };
    scope[START] = {
      ...start,
      settle: (/** @type {any[]} */ ...outcome) => {
        answers++;
        start.settle(...outcome);
      },
      ready: (/** @type {any} */ info, /** @type {GPUDevice | null} */ device) => resolve({info, device}),
      failed: (/** @type {string} */ failed, /** @type {string} */ message) => reject(new SubletError(failed, message)),
    };
  });
  let stopped = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let quiet;
  /** Keeps timers and promises from calling a program that has ended. Its loader would call again and again. */
  const stop = () => {
    stopped = true;
    kernels?.end();
    rest.stop();
    clearTimeout(quiet); // it holds the program
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
        rest.resume(resume);
      } catch (error) {
        end(String(error));
        throw error;
      }
    };
    rest.failed = (error) => end(String(error));
    go.exit = (/** @type {number} */ code) => end(`exit code ${code}`); // a call of an export may be its last
    /**
     * Tells the program the value of a promise. Goroutines that wait for it may not be done when the export returns. So the program is
     * resumed once more if that call answered nobody, or if promises of the page are still open.
     * @param {number} ticket @param {number} value
     */
    const settled = (ticket, value) => {
      if (stopped || go.exited) return;
      const before = answers;
      try {
        rest.tell('sublet_settled', ticket, value);
        if (answers === before || start.waiting()) queueMicrotask(() => go._resume());
      } catch (error) {
        end(String(error));
        throw error;
      }
    };
    // Some functions of WebGPU refuse shared memory. For which programs settled is, see exportSettled in wasm/browser.
    if (!isShared(memory)) scope[GLUE].setMemory(memory, mark === 'sublet_matrices' ? settled : undefined);
    scope[GLUE].setPrefetched(prefetched);
    go.run(running).catch((/** @type {unknown} */ error) => end(String(error))); // takes what is under START, and what was prefetched, at once
    scope[GLUE].takePrefetched()?.then(discard, () => {}); // unless it waits for the rest of the program, and then requests its own
  });
  const died = ended.then((why) => { throw failure('exited', 'init', why); });
  const ready = Promise.race([started, died]);
  ready.then(() => { if (rest.missing && !stopped) quiet = setTimeout(() => rest.begin(), QUIET); }, () => {}); // whoever waits hears of it
  const device = () => kernels ? start.debug ? null : kernels.replays : scope[GLUE]?.sessionOf(memory);
  return {memory, rest, device, size: kernels?.size ?? {threads: 1}, resume: () => go._resume(), stop, ended, ready};
}
