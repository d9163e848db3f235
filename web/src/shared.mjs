// SPDX-License-Identifier: Apache-2.0

// Programs of Go's define their memory, which is not shared. A program that several threads are to use gets a shared memory by a change of
// its module as it is loaded.

/** The most pages of a memory. */
const PAGES = 1 << 16;
const HEADER = 8, IMPORT = 2, MEMORY = 5;

/** A module with a shared memory, to find out whether the engine knows these. */
const PROBE = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, MEMORY, 4, 1, 3, 1, 1);

/** Whether the engine compiles modules with a shared memory. */
export const knowsShared = () => WebAssembly.validate(PROBE);

/** Encodes a number as unsigned LEB128. @param {number} n @returns {number[]} */
const leb = (n) => n < 128 ? [n] : [n & 127 | 128, ...leb(n >>> 7)];

/** Decodes unsigned LEB128. @param {Uint8Array} bytes @param {number} at @returns {{n: number, end: number} | null} a number and its end; null if the bytes end first */
function number(bytes, at) {
  for (let n = 0, shift = 0; at < bytes.length; shift += 7) {
    const byte = bytes[at++];
    n |= (byte & 127) << shift;
    if (byte < 128) return {n: n >>> 0, end: at};
  }
  return null;
}

/**
 * Makes the memory of a module shared.
 * @param {Uint8Array} bytes the module, or its first bytes
 * @returns {Uint8Array<ArrayBuffer>[] | null} the changed bytes in pieces, which are copies; null if the section of memories is not complete
 */
export function shareMemory(bytes) {
  for (let at = HEADER; ;) {
    const size = number(bytes, at + 1);
    if (!size) return null;
    const {n, end: from} = size, to = from + n;
    if (bytes[at] === IMPORT && to <= bytes.length) {
      const changed = shareImport(bytes, from);
      if (changed) return [changed];
    }
    if (bytes[at] !== MEMORY) {
      at = to;
      continue;
    }
    if (to > bytes.length) return null;
    const least = number(bytes, from + 2); // the initial size, after the number of memories and the flags of the first
    if (bytes[from] !== 1 || bytes[from + 1] > 1 || !least) return [bytes.slice()];
    const memory = [1, 3, ...leb(least.n), ...leb(PAGES)];
    return [bytes.slice(0, at), Uint8Array.of(MEMORY, ...leb(memory.length), ...memory), bytes.slice(to)];
  }
}

/**
 * Makes the memory shared that the rest of a program imports before anything else. native/wasmtrim leaves room for the most pages behind the
 * number of pages, which has five bytes.
 * @param {Uint8Array} bytes @param {number} from where the section of imports begins @returns {Uint8Array<ArrayBuffer> | null} null if it does not import a memory first
 */
function shareImport(bytes, from) {
  let at = number(bytes, from)?.end ?? 0;
  for (let i = 0; i < 2; i++) at += bytes[at] + 1; // short names
  if (bytes[at] !== 2 || bytes[at + 1] !== 0) return null;
  const changed = bytes.slice();
  changed.set([3, bytes[at + 2], bytes[at + 3] & 127, ...leb(PAGES)], at + 1);
  return changed;
}

/** Returns a transformer of streams that makes the memory of a module shared, see shareMemory. */
export function memorySharer() {
  /** The bytes before the end of the section of memories; null once that has come. @type {Uint8Array | null} */
  let begun = new Uint8Array(0);
  return new TransformStream({
    transform(/** @type {Uint8Array} */ chunk, controller) {
      if (!begun) return controller.enqueue(chunk);
      const before = begun;
      begun = new Uint8Array(before.length + chunk.length);
      begun.set(before);
      begun.set(chunk, before.length);
      const pieces = shareMemory(begun);
      if (!pieces) return;
      begun = null;
      for (const piece of pieces) controller.enqueue(piece);
    },
    flush(controller) {
      if (begun) controller.enqueue(begun);
    },
  });
}

/** Copies bytes that are in shared memory, as many functions of browsers refuse them. @param {any} view @returns {any} */
const unshared = (view) => view?.buffer instanceof SharedArrayBuffer ? new Uint8Array(view.buffer, view.byteOffset, view.byteLength).slice() : view;

/** Calls a function while decoders that it makes decode text in shared memory, too: Go's loader makes its decoder when it is imported. @template T @param {() => Promise<T>} run @returns {Promise<T>} */
export async function decodingShared(run) {
  const scope = /** @type {any} */ (globalThis), Decoder = scope.TextDecoder;
  const Sharing = class extends Decoder {
    /** @param {any[]} args */
    decode(...[view, ...more]) { return super.decode(unshared(view), ...more); }
  };
  scope.TextDecoder = Sharing;
  try {
    return await run();
  } finally {
    if (scope.TextDecoder === Sharing) scope.TextDecoder = Decoder;
  }
}

/** The most random bytes that getRandomValues makes at a time. */
const RANDOM = 65536;

/** Replaces the loader's function for random bytes: getRandomValues does not write to shared memory. @param {any} go */
export function shareRandom(go) {
  go.importObject.gojs['runtime.getRandomData'] = (/** @type {number} */ sp) => {
    sp >>>= 0;
    const at = go.mem.getUint32(sp + 8, true), length = go.mem.getUint32(sp + 16, true), bytes = new Uint8Array(length);
    for (let i = 0; i < length; i += RANDOM) crypto.getRandomValues(bytes.subarray(i, i + RANDOM));
    new Uint8Array(go.mem.buffer, at, length).set(bytes);
  };
}
