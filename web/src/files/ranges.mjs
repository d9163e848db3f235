// SPDX-License-Identifier: Apache-2.0

// A file on a server, of which only parts are fetched.

/** How much is fetched at first, where headers are. */
const FIRST = 64 << 10;

/** @typedef {{size: number, slice: (from: number, to: number) => Promise<Uint8Array<ArrayBuffer>>}} Ranges */

/** The total that a response says it is a part of, and the version of the file. @param {Response} response @param {number} from */
function partOf({status, headers}, from) {
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(headers.get('content-range') ?? '') ?? [];
  if (status !== 206 || Number(start) !== from || headers.get('content-encoding') !== null) return null;
  return {size: Number(total), version: headers.get('etag') ?? headers.get('last-modified')};
}

/**
 * Opens a file by its address. A server that knows nothing of ranges answers with the whole file.
 * @param {string | URL} address @param {AbortSignal | undefined} signal @param {(code: string, why: string) => Error} fail
 * @returns {Promise<Ranges | Response>}
 */
export async function openRanges(address, signal, fail) {
  const get = (/** @type {number} */ from, /** @type {number} */ to) => fetch(address, {signal, headers: {range: `bytes=${from}-${to - 1}`}});
  const first = await get(0, FIRST), part = partOf(first, 0);
  if (!part) return first.status === 206 || first.status === 416 ? fetch(address, {signal}) : first; // an empty file has no ranges
  const start = new Uint8Array(await first.arrayBuffer()), {size, version} = part;
  return {
    size,
    async slice(from, to) {
      if (to <= start.length || from === to) return start.slice(from, to);
      const response = await get(from, to), now = partOf(response, from), bytes = new Uint8Array(await response.arrayBuffer());
      if (!now || now.size !== size || now.version !== version) throw fail('ErrStream', `${address}: ${response.status}, where bytes ${from} to ${to - 1} of the same file are wanted`);
      if (bytes.length !== to - from) throw fail('ErrTruncated', `${address}: ${bytes.length} bytes of ${to - from}`);
      return bytes;
    },
  };
}
