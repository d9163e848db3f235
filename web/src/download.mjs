// SPDX-License-Identifier: Apache-2.0

// Loads the files of the package that its module needs beside itself, and says what came instead of one.

import {SubletError, failure, show} from './errors.mjs';
import {builtin, uncached} from './host.mjs';
import {memorySharer, shareMemory} from './shared.mjs';

/** The package's own programs: for WebGPU, for where there is none, and for Gpu.cruncher. */
export const PROGRAM = 'sublet.wasm';
export const SIMD_PROGRAM = 'sublet-simd.wasm';
export const CRUNCHER_PROGRAM = 'sublet-cruncher.wasm';

/** The file with the rest of a program. @param {string} name of the file with its first part */
export const restName = (name) => name.replace(/\.wasm(?=$|[?#])/, '-rest.wasm');

const HELP = 'see "Where the program is" in the README of sublet';

/** @param {string} why @param {unknown} [cause] */
const failed = (why, cause) => failure('ErrInvalid', 'init', why, cause);

/** @param {unknown} error */
const messageOf = (error) => error instanceof Error ? error.message : show(error);

/** The address as messages show it. @param {string | URL} url */
const brief = (url) => String(url).replace(/^(.{200}).+$/s, '$1...');

/** What a server has answered. @param {Response} response @param {string} [asked] its address, which only responses of fetch know */
function answerOf({url, status, statusText, headers}, asked = 'a Response') {
  const type = headers.get('content-type') ?? 'no content type', length = headers.get('content-length');
  return `${brief(url || asked)}: ${`${status} ${statusText}`.trim()}, ${type}${length ? `, ${length} bytes` : ''}`;
}

/** Calls a function with the policy of the page that it violates. @template T @param {() => Promise<T>} run @param {(error: unknown, directive: string) => Promise<never>} refuse */
async function underPolicy(run, refuse) {
  let directive = '';
  const note = (/** @type {any} */ event) => { directive = event.effectiveDirective; }, scope = /** @type {any} */ (globalThis);
  scope.addEventListener?.('securitypolicyviolation', note);
  try {
    return await run();
  } catch (error) {
    await new Promise((done) => setTimeout(done)); // the event may come after the error
    return refuse(error, directive);
  } finally {
    scope.removeEventListener?.('securitypolicyviolation', note);
  }
}

/** @param {string | URL} url @param {boolean} urgent @returns {Promise<Response>} */
const download = (url, urgent) => underPolicy(() => fetch(url, urgent ? {} : {priority: 'low'}), async (error, directive) => {
  const offline = Reflect.get(globalThis, 'navigator')?.onLine === false;
  const why = directive ? `the Content-Security-Policy of the page forbids it by ${directive}`
    : offline ? 'the browser is offline' : 'no server answers, or one of another origin does not allow the page to read it';
  throw failed(`${brief(url)}: ${messageOf(error)}: ${why}`, error);
});

/** Whether bytes begin as every module of WebAssembly does. @param {Uint8Array} bytes */
const isModule = (bytes) => [0, 97, 115, 109].every((byte, i) => bytes[i] === byte);

/** @param {string} what has been compiled @param {unknown} error @returns {never} */
function refuse(what, error) {
  const policy = /content.security.policy|unsafe-eval|\bcsp\b/i.test(messageOf(error));
  throw failed(`${what}: ${messageOf(error)}${policy ? `: the Content-Security-Policy of the page must allow 'wasm-unsafe-eval' in script-src` : ''}`, error);
}

/** @param {string} what is compiled @param {BufferSource} source @param {boolean} shared */
async function compileBytes(what, source, shared) {
  const bytes = ArrayBuffer.isView(source) ? new Uint8Array(source.buffer, source.byteOffset, source.byteLength) : new Uint8Array(source);
  if (!isModule(bytes)) {
    const html = /^\s*</.test(String.fromCharCode(...bytes.subarray(0, 100)));
    throw failed(`${what}: ${bytes.length} bytes that are ${html ? 'HTML and ' : ''}no WebAssembly: ${HELP}`);
  }
  try {
    return await WebAssembly.compile(shared ? joined(shareMemory(bytes) ?? [bytes]) : source);
  } catch (error) {
    return refuse(`${what}: ${bytes.length} bytes`, error);
  }
}

/** @param {Uint8Array[]} pieces */
function joined(pieces) {
  const whole = new Uint8Array(pieces.reduce((sum, {length}) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** @param {Response} response @param {boolean} shared @param {string} [url] that was asked for */
async function compileResponse(response, shared, url) {
  const what = answerOf(response, url);
  if (!response.ok) throw failed(`${what}: ${HELP}`);
  // Servers may give the file another type than application/wasm, which compileStreaming refuses.
  const known = /^application\/wasm\b/.test(response.headers.get('content-type') ?? '') && (!shared || typeof TransformStream === 'function');
  try {
    if (!known) return await compileBytes(what, await response.arrayBuffer(), shared);
    if (!shared || !response.body) return await WebAssembly.compileStreaming(response);
    return await WebAssembly.compileStreaming(new Response(response.body.pipeThrough(memorySharer()), {headers: {'content-type': 'application/wasm'}}));
  } catch (error) {
    if (error instanceof SubletError) throw error;
    return refuse(what, error);
  }
}

/**
 * Compiles a program that lies in a file beside this one, which Node does not fetch.
 * @param {any} files module of Node @param {string | URL} address @param {boolean} shared
 */
async function compileFile(files, address, shared) {
  const bytes = await files.readFile(new URL(address)).catch((/** @type {unknown} */ error) => { throw failed(`${address}: ${messageOf(error)}: ${HELP}`, error); });
  return compileBytes(String(address), bytes, shared);
}

/** Whether something is the address of a program. @param {unknown} source @returns {source is string | URL} */
export const isAddress = (source) => typeof source === 'string' || source instanceof URL;

/** Where the rest of a program is, beside it; undefined if that is the package's own. @param {unknown} source of its first part */
export function sibling(source) {
  const url = source instanceof Response ? source.url : isAddress(source) ? String(source) : '', rest = restName(url);
  return rest === url ? undefined : rest;
}

/** Compiles a module while the page waits. @param {string | URL} source @param {boolean} shared whether its memory is to be shared */
export function compileNow(source, shared) {
  const request = new XMLHttpRequest();
  request.open('GET', source, false);
  request.overrideMimeType('text/plain; charset=x-user-defined'); // the one way to get bytes
  try {
    request.send();
  } catch (error) {
    throw failed(`${brief(source)}: ${messageOf(error)}: no server answers, or something forbids it`, error);
  }
  const bytes = Uint8Array.from(request.responseText, (c) => c.charCodeAt(0)), what = `${brief(source)}: ${request.status} ${request.statusText}, ${bytes.length} bytes`;
  if (request.status !== 200) throw failed(`${what}: ${HELP}`);
  try {
    return new WebAssembly.Module(shared ? joined(shareMemory(bytes) ?? [bytes]) : bytes);
  } catch (error) {
    return refuse(what, error);
  }
}

/** @param {string} name of an option @param {unknown} source */
export const noProgram = (name, source) => `${name} is ${show(source)}; it is a URL, a Response, bytes or a WebAssembly.Module, or a pair with that of the rest`;

/** Downloads begin before it returns. @param {unknown} source @param {boolean} shared whether its memory is to be shared @param {boolean} [urgent] whether somebody waits for it @returns {Promise<WebAssembly.Module>} */
export async function compile(source, shared, urgent = true) {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof Response) return compileResponse(source, shared);
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return compileBytes('wasm', /** @type {BufferSource} */ (source), shared);
  if (isAddress(source)) {
    const files = String(source).startsWith('file:') && builtin('node:fs/promises');
    return files ? compileFile(files, source, shared) : compileResponse(await download(source, urgent), shared, String(source));
  }
  throw failed(noProgram('wasm', source));
}

/** @param {string} name @returns {URL} of a program of the package's; bundlers look for texts like these */
export function address(name) {
  const cached = uncached(name, import.meta.url);
  if (cached) return cached;
  try {
    switch (name) {
      case SIMD_PROGRAM: return new URL('./sublet-simd.wasm', import.meta.url);
      case CRUNCHER_PROGRAM: return new URL('./sublet-cruncher.wasm', import.meta.url);
      case restName(SIMD_PROGRAM): return new URL('./sublet-simd-rest.wasm', import.meta.url);
      case restName(PROGRAM): return new URL('./sublet-rest.wasm', import.meta.url);
      default: return new URL('./sublet.wasm', import.meta.url);
    }
  } catch (error) { // bundles that are no modules
    throw failed(`this script has no import.meta.url, so that it does not know where ${name} is; init({wasm, simdWasm, cruncherWasm}) tells it: ${HELP}`, error);
  }
}

/**
 * Returns a function that loads a module of the package which few need, once: a file beside this one or a chunk of a bundler's. All callers have
 * the same promise, so that they go on in the order of their calls, which import() does not promise. If it fails, the next call tries again.
 * @template T @param {() => Promise<T>} load an import, which bundlers must see @returns {() => Promise<T>}
 */
export function part(load) {
  /** @type {Promise<T> | undefined} */
  let loading;
  return () => loading ??= underPolicy(load, async (error, directive) => {
    loading = undefined;
    const [url] = /\b(https?|file):\S+/.exec(messageOf(error)) ?? [];
    const answer = url && !directive ? await fetch(url).then((response) => answerOf(response), () => 'no server answers') : '';
    const why = directive ? `the Content-Security-Policy of the page forbids it by ${directive}` : answer;
    throw failed(`a module of the package cannot be loaded: ${messageOf(error)}${why && `: ${why}`}`, error);
  });
}
