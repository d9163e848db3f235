// SPDX-License-Identifier: Apache-2.0

// Opens what a file is read from: an address, or one of the sources of pieces.mjs.

import {SubletError, allocate, failure, isOurs, reasonOf, show, tagOf} from '../errors.mjs';
import {streamFailure} from '../flow.mjs';
import {sourceOf} from '../pieces.mjs';
import {abortable} from '../source.mjs';
import {openRanges} from './ranges.mjs';

/** @typedef {import('./bytes.mjs').File} File */
/** @typedef {import('../session.mjs').Session} Session */
/** @typedef {import('../pieces.mjs').Source} Source */
/** @typedef {(run: () => any) => Promise<any>} Wait until what runs is done, the program has ended or the caller gives up */

const WHERE = 'load';

/** The errors of a file, and the account of the memory that it takes. @param {unknown} limit */
function account(limit = Infinity) {
  if (typeof limit !== 'number' || !(limit >= 0)) throw failure('ErrInvalid', WHERE, `memoryLimit ${show(limit)}`);
  let left = limit;
  const fail = (/** @type {string} */ code, /** @type {string} */ why, /** @type {number} */ offset = -1) =>
    new SubletError(code, `sublet: ${WHERE}: ${offset < 0 ? '' : `byte ${offset}: `}${why}`, {offset: offset < 0 ? undefined : offset});
  const take = (/** @type {number} */ bytes) => {
    left -= bytes;
    if (left < 0) throw fail('ErrTooLarge', `more than the memoryLimit of ${limit} bytes`);
  };
  return {fail, take};
}

/** Reads what comes piece by piece to the end. @param {Source} source @param {Wait} wait @param {(bytes: number) => void} take */
async function gathered(source, wait, take) {
  const pieces = [];
  let size = 0;
  for (;;) {
    const piece = await wait(() => source.next(size));
    if (!piece) break;
    take(piece.length);
    pieces.push(piece.slice()); // whose memory may be used again
    size += piece.length;
  }
  const bytes = allocate(WHERE, () => new Uint8Array(size));
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** Reads a part of a source of which any part can be had. @param {Source} source @param {Wait} wait @param {File['fail']} fail @param {number} from @param {number} to */
async function sliced(source, wait, fail, from, to) {
  const into = allocate(WHERE, () => new Uint8Array(to - from));
  for (let n = from; n < to;) {
    const piece = await wait(() => source.next(n));
    if (!piece || piece.length === 0) throw fail('ErrTruncated', 'the source has become shorter', n);
    into.set(piece.subarray(0, to - n), n - from);
    n += piece.length;
  }
  return into;
}

/** An address from which nothing comes: engines say why in an error's cause, if at all. @param {string} address @param {any} error */
function refused(address, error) {
  const isPath = !('location' in globalThis) && !/^(https?|data|blob):/i.test(address); // which Node's fetch does not read
  return failure('ErrStream', WHERE, `${address}: ${[error, error?.cause].filter((e) => e).map(reasonOf).join(': ')}${isPath ? '; of a file outside a page load what readFile gives' : ''}`, error);
}

/**
 * Opens a file.
 * @param {Session} session @param {any} source @param {Record<string, any>} o options
 * @returns {Promise<{file: File, name: string, stop: () => void}>} with the name as far as there is one
 */
export async function openFile(session, source, {format, memoryLimit, names, signal}) {
  const {fail, take} = account(memoryLimit);
  const isAddress = typeof source === 'string' || tagOf(source) === 'URL', address = isAddress ? String(source).replace(/[?#].*/, '') : '';
  /** @type {Wait} */
  const wait = (run) => abortable(WHERE, signal, session.during(run).catch((error) => { throw address && !isOurs(error) ? refused(address, error) : streamFailure(WHERE, error); }), () => {});
  const parts = isAddress && names !== undefined && (format ?? address.toLowerCase()).endsWith('safetensors');
  const given = await wait(async () => parts ? openRanges(source, signal, fail) : isAddress ? fetch(source, {signal}) : source);
  if (parts && tagOf(given) !== 'Response') {
    return {file: {size: given.size, slice: (from, to) => wait(() => given.slice(from, to)), take, fail}, name: address, stop() {}};
  }
  const from = await sourceOf(session, WHERE, given, false);
  try {
    const bytes = from.size < 0 ? await gathered(from, wait, take) : null;
    const slice = async (/** @type {number} */ a, /** @type {number} */ b) => bytes ? bytes.slice(a, b) : sliced(from, wait, fail, a, b);
    const name = isAddress ? address : tagOf(given) === 'File' ? given.name : tagOf(given) === 'Response' ? given.url.replace(/[?#].*/, '') : '';
    return {file: {size: bytes?.length ?? from.size, slice, take, fail}, name, stop: from.stop};
  } catch (error) {
    from.stop();
    throw error;
  }
}
