// SPDX-License-Identifier: Apache-2.0

import {bytesOf, isBuffer} from './data.mjs';
import {failure, guard, show, tagOf} from './errors.mjs';
import {streamFailure} from './flow.mjs';

// The pieces of files on their way to and from Go, loaded with the first file.

/** @typedef {import('./flow.mjs').Flow} Flow */
/** @typedef {import('./session.mjs').Session} Session */

/** How much is passed at a time, and how much of a file of which only headers are wanted. */
const PIECE = 1 << 20;
const SHORT_PIECE = 16 << 10;

/** The end of a file. */
const END = new Uint8Array(0);

/**
 * What a file is read from.
 * @typedef {object} Source
 * @property {number} size -1 where it is not known
 * @property {number | undefined} total how many bytes will come, as far as anybody says
 * @property {(at: number) => Promise<Uint8Array | undefined>} next the piece at that place, if any part can be had, or the next one
 * @property {() => void} stop nothing more is wanted
 */

/** @param {string} where @param {any} chunk @returns {Uint8Array} */
function bytesOfChunk(where, chunk) {
  if (ArrayBuffer.isView(chunk)) return bytesOf(chunk);
  if (isBuffer(chunk)) return new Uint8Array(chunk);
  throw failure('ErrInvalid', where, `a piece of a file that is ${show(chunk)}; it is bytes`);
}

/** @param {string} where @param {{next: () => Promise<any>, stop: () => unknown}} stream @param {number} [total] @returns {Source} */
function sequence(where, {next, stop}, total) {
  let ended = false;
  return {
    size: -1,
    total,
    async next() {
      for (;;) { // over empty pieces, which would be the end
        const {done, value} = await next();
        if (done) {
          ended = true;
          return undefined;
        }
        const bytes = bytesOfChunk(where, value);
        if (bytes.length > 0) return bytes;
      }
    },
    stop: () => { if (!ended) Promise.resolve().then(stop).catch(() => {}); },
  };
}

/** @param {string} where @param {ReadableStream} stream @param {number} [total] */
function streamSource(where, stream, total) {
  const reader = stream.getReader();
  return sequence(where, {next: () => reader.read(), stop: () => reader.cancel()}, total);
}

/** @param {string} where @param {Response} response */
function responseSource(where, response) {
  const {ok, status, statusText, url, bodyUsed, body, headers, type} = response;
  if (!ok) throw failure('ErrStream', where, `${url || 'the response'}: ${status} ${statusText}`);
  if (bodyUsed) throw failure('ErrInvalid', where, 'a response that was read already');
  if (body === null) return bytesSource(END, PIECE);
  // Compressed files are longer than that, and other servers need not say so.
  const plain = type === 'basic' && headers.get('content-encoding') === null;
  const length = headers.get('content-length');
  return streamSource(where, body, plain && length !== null ? Number(length) : undefined);
}

/** @param {Uint8Array} bytes @param {number} piece @returns {Source} */
function bytesSource(bytes, piece) {
  const {length} = bytes;
  return {size: length, total: length, next: async (at) => bytes.subarray(at, at + piece), stop() {}};
}

/** @param {Blob} blob @param {number} piece @returns {Source} */
function blobSource(blob, piece) {
  const {size} = blob;
  return {size, total: size, next: async (at) => new Uint8Array(await blob.slice(at, at + piece).arrayBuffer()), stop() {}};
}

/** @param {Session} session @param {string} where @param {any} source what the user gave @param {boolean} scan @returns {Promise<Source>} */
export async function sourceOf(session, where, source, scan) {
  const piece = scan ? SHORT_PIECE : PIECE;
  let given;
  try {
    given = await session.during(() => source);
  } catch (error) {
    throw streamFailure(where, error);
  }
  return guard(where, () => {
    if (ArrayBuffer.isView(given) || isBuffer(given)) return bytesSource(bytesOfChunk(where, given), piece);
    switch (tagOf(given)) {
      case 'Response': return responseSource(where, given);
      case 'Blob': case 'File': return blobSource(given, piece);
      case 'ReadableStream': return streamSource(where, given);
    }
    const iterator = given?.[Symbol.asyncIterator]?.();
    if (typeof iterator?.next !== 'function') throw failure('ErrInvalid', where, `${show(given)} is no Response, Blob, memory, ReadableStream or asynchronous iterable`);
    return sequence(where, {next: async () => iterator.next(), stop: () => iterator.return?.()});
  });
}

/**
 * Reads a file into Go.
 * @param {Flow} flow @param {Source} source @param {((loaded: number) => void)} progress
 * @returns {Promise<any>} what Go says in the end
 */
export async function feed(flow, source, progress) {
  let want = 0, loaded = 0;
  try {
    while (!flow.over) {
      const bytes = await flow.until(source.next(want));
      if (flow.over) break;
      want = await flow.pass(bytes ?? END);
      loaded += bytes?.length ?? 0;
      progress(loaded);
    }
  } catch (error) {
    throw await flow.fail(error);
  } finally {
    source.stop();
  }
  return flow.result();
}

/** The next piece of a file that Go writes, undefined at the end. @param {Flow} flow @returns {Promise<Uint8Array | undefined>} */
async function written(flow) {
  const bytes = new Uint8Array(PIECE), n = await flow.pass(bytes);
  if (n === PIECE) return bytes;
  if (n > 0) return bytes.slice(0, n);
  await flow.result();
  flow.close();
  return undefined;
}

/**
 * A stream of a file that Go writes. What is wrong with the file as such is known before there is one.
 * @param {Flow} flow @returns {Promise<ReadableStream<Uint8Array>>}
 */
export async function drain(flow) {
  let first = await written(flow);
  const stream = new ReadableStream({
    async pull(controller) {
      const bytes = first ?? await written(flow);
      first = undefined;
      if (bytes) controller.enqueue(bytes);
      else controller.close();
    },
    cancel: () => flow.close(),
  }, {highWaterMark: 0});
  if (!flow.over) flow.belongsTo(stream);
  return stream;
}
