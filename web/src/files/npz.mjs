// SPDX-License-Identifier: Apache-2.0

// NumPy's archives of arrays: ZIP files without encryption whose members are stored or deflated, as package buffer/file/npy takes them.

import {distinct, encoded, quoted, textOf} from './bytes.mjs';
import {headerOf, readNpy} from './npy.mjs';

/** @typedef {import('./bytes.mjs').File} File */
/** @typedef {import('./bytes.mjs').Entry} Entry */
/** @typedef {import('./bytes.mjs').Saved} Saved */
/** @typedef {{name: string, path: Uint8Array, method: number, sum: number, packed: number, size: number, at: number}} Member at: of its own header */

const LOCAL = 0x04034b50, CENTRAL = 0x02014b50, END = 0x06054b50, END64 = 0x06064b50, LOCATOR64 = 0x07064b50;
const STORE = 0, DEFLATE = 8, UTF8 = 1 << 11;
/** Flags of bytes that are encrypted or a patch. */
const CHANGED = 1 << 0 | 1 << 5 | 1 << 6 | 1 << 13;
/** Deflate makes of a byte at most so many. */
const MOST = 1032;
/** What stands for a number that is elsewhere, because it has more than 32 bits. */
const ELSEWHERE = 0xffffffff;
/** The date of what is written, the first that the format has, so that equal arrays are equal files. */
const DATE = 1 << 5 | 1;

const TABLE = Uint32Array.from({length: 256}, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? n >>> 1 ^ 0xedb88320 : n >>> 1;
  return n;
});

/** The checksum CRC-32. @param {readonly Uint8Array[]} parts */
function sumOf(...parts) {
  let sum = -1;
  for (const bytes of parts) for (let i = 0; i < bytes.length; i++) sum = TABLE[(sum ^ bytes[i]) & 255] ^ sum >>> 8;
  return ~sum >>> 0;
}

/** @param {Uint8Array} bytes */
const viewOf = ({buffer, byteOffset, byteLength}) => new DataView(buffer, byteOffset, byteLength);

/** The numbers of 64 bits that an archive of 4 GiB or more has in place of those that are ELSEWHERE. @param {File} file @param {DataView} view @param {number} at @param {number} where in the file */
function long(file, view, at, where) {
  const n = Number(view.getBigUint64(at, true));
  if (!Number.isSafeInteger(n)) throw file.fail('ErrFormat', `impossible number ${n}`, where);
  return n;
}

/** The directory of an archive of 4 GiB or more, which is described before the end. @param {File} file @param {number} end where that is */
async function longDirectory(file, end) {
  const bad = () => file.fail('ErrFormat', 'an archive of 4 GiB without a directory for it', end);
  if (end < 76) throw bad();
  const locator = viewOf(await file.slice(end - 20, end)), from = locator.getUint32(0, true) === LOCATOR64 ? long(file, locator, 8, end - 12) : Infinity;
  if (from > end - 76) throw bad();
  const view = viewOf(await file.slice(from, from + 56)), [count, size, at] = [32, 40, 48].map((i) => long(file, view, i, from + i));
  if (view.getUint32(0, true) !== END64 || locator.getUint32(16, true) !== 1 || view.getUint32(16, true) !== 0 || long(file, view, 24, from + 24) !== count) throw bad();
  if (at + size > from) throw file.fail('ErrFormat', 'a directory that lies elsewhere', from);
  return {at, bytes: await file.slice(at, at + size), count};
}

/** The directory: where it is, its bytes and how many members it has. @param {File} file */
async function directoryOf(file) {
  const from = Math.max(0, file.size - 22 - 0xffff), tail = await file.slice(from, file.size), view = viewOf(tail);
  for (let i = tail.length - 22; i >= 0; i--) {
    if (view.getUint32(i, true) !== END || i + 22 + view.getUint16(i + 20, true) !== tail.length) continue;
    const count = view.getUint16(i + 10, true), size = view.getUint32(i + 12, true), at = view.getUint32(i + 16, true);
    if (view.getUint32(i + 4, true) !== 0 || view.getUint16(i + 8, true) !== count) throw file.fail('ErrFormat', 'an archive of several files', from + i);
    if (at === ELSEWHERE || size === ELSEWHERE || count === 0xffff) return longDirectory(file, from + i);
    if (at + size > from + i) throw file.fail('ErrFormat', 'a directory that lies elsewhere', from + i);
    return {at, bytes: await file.slice(at, at + size), count};
  }
  throw file.fail('ErrTruncated', 'an archive without a directory at its end', file.size);
}

/** What a member's further fields say in place of numbers that are ELSEWHERE. @param {File} file @param {DataView} view @param {number} at of the fields @param {number} end @param {readonly number[]} numbers @param {number} where the fields begin in the file @returns {number[]} */
function lengthened(file, view, at, end, numbers, where) {
  if (!numbers.includes(ELSEWHERE)) return [...numbers];
  const first = at;
  while (at + 4 <= end && view.getUint16(at, true) !== 1) at += 4 + view.getUint16(at + 2, true);
  let next = at + 4;
  const last = at + 4 <= end ? Math.min(end, next + view.getUint16(at + 2, true)) : 0;
  return numbers.map((n) => {
    if (n !== ELSEWHERE) return n;
    if (next + 8 > last) throw file.fail('ErrFormat', 'a size of 64 bits that is missing', where + at - first);
    next += 8;
    return long(file, view, next - 8, where + next - 8 - first);
  });
}

/** @param {File} file @returns {Promise<Member[]>} */
async function membersOf(file) {
  const {at: start, bytes, count} = await directoryOf(file), view = viewOf(bytes), list = [];
  let at = 0;
  for (let k = 0; k < count; k++) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== CENTRAL) throw file.fail('ErrFormat', 'a directory that ends early', start + at);
    const [flags, method] = [view.getUint16(at + 8, true), view.getUint16(at + 10, true)], length = view.getUint16(at + 28, true);
    const next = at + 46 + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    if (next > bytes.length) throw file.fail('ErrFormat', 'a directory that ends early', start + at);
    const path = bytes.slice(at + 46, at + 46 + length), text = textOf(file, path, start + at + 46), name = text.replace(/\.npy$/, '');
    const [sum, low, plain, begins] = [16, 20, 24, 42].map((i) => view.getUint32(at + i, true)), fields = at + 46 + length;
    const [size, packed, own] = lengthened(file, view, fields, fields + view.getUint16(at + 30, true), [plain, low, begins], start + fields);
    if (flags & CHANGED) throw file.fail('ErrFormat', `${quoted(name)} is encrypted, or a patch`, start + at);
    if (method !== STORE && method !== DEFLATE) throw file.fail('ErrFormat', `compression method ${method} of ${quoted(name)}`, start + at);
    if (method === STORE ? size !== packed : size > packed * MOST + MOST) throw file.fail('ErrFormat', `impossible size of ${quoted(name)}`, start + at);
    if (!text.endsWith('/') || size > 0) list.push({name, path, method, sum, packed, size, at: own});
    at = next;
  }
  distinct(file, list.map(({name}) => name), start);
  return list;
}

/** Where the bytes of a member begin. @param {File} file @param {Member} member */
async function beginning(file, {name, path, packed, at}) {
  const own = await file.slice(Math.min(at, file.size), Math.min(at + 30 + path.length, file.size)), view = viewOf(own);
  if (own.length < 30 + path.length) throw file.fail('ErrTruncated', `${quoted(name)} is beyond the end`, file.size);
  if (view.getUint32(0, true) !== LOCAL) throw file.fail('ErrFormat', `${quoted(name)} has no header`, at);
  if (view.getUint16(26, true) !== path.length || path.some((byte, i) => own[30 + i] !== byte)) throw file.fail('ErrFormat', `the header of ${quoted(name)} has another name`, at + 30);
  const from = at + 30 + path.length + view.getUint16(28, true);
  if (from + packed > file.size) throw file.fail('ErrTruncated', `${quoted(name)} is beyond the end`, file.size);
  return from;
}

/** Unpacks bytes, of which there must be so many. @param {Uint8Array<ArrayBuffer>} packed @param {number} size @param {() => Error} broken */
async function inflated(packed, size, broken) {
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream('deflate-raw')).getReader(), bytes = new Uint8Array(size);
  let at = 0;
  for (;;) {
    const {done, value} = await reader.read().catch(() => { throw broken(); });
    if (done) break;
    if (value.length > size - at) {
      reader.cancel().catch(() => {});
      throw broken();
    }
    bytes.set(value, at);
    at += value.length;
  }
  if (at < size) throw broken();
  return bytes;
}

/** A member as a file: stored bytes lie where they lie. @param {File} file @param {Member} member @param {number} from @returns {Promise<File>} */
async function unpacked(file, {name, method, packed, size, sum}, from) {
  const broken = () => file.fail('ErrFormat', `${quoted(name)} cannot be unpacked, or its checksum is wrong`, from);
  file.take(size);
  const stored = await file.slice(from, from + packed);
  const bytes = method === STORE ? stored : await inflated(stored, size, broken);
  if (sumOf(bytes) !== sum) throw broken();
  const fail = (/** @type {string} */ code, /** @type {string} */ why, at = 0) => file.fail(code, `${quoted(name)}: ${why}`, method === STORE ? from + at : from);
  return {size, slice: async (a, b) => bytes.slice(a, b), take: file.take, fail};
}

/** The members of an archive, which do not overlap. @param {File} file */
export async function openNpz(file) {
  const members = await membersOf(file);
  let end = 0;
  for (const member of [...members].sort((a, b) => a.at - b.at)) { // of which a small archive could claim to hold any amount
    if (member.at < end) throw file.fail('ErrFormat', `${quoted(member.name)} overlaps another member`, member.at);
    end = await beginning(file, member) + member.packed;
  }
  return members;
}

/** A member as a file. @param {File} file @param {Member} member */
export const memberFile = async (file, member) => unpacked(file, member, await beginning(file, member));

/** Reads members that are arrays. @param {File} file @param {readonly Member[]} members @param {(name: string) => boolean} wanted @returns {Promise<Entry[]>} */
export async function readNpz(file, members, wanted) {
  const list = [];
  for (const member of members.filter(({name}) => wanted(name))) list.push(await readNpy(await memberFile(file, member), member.name, true));
  return list;
}

/** Packs bytes. @param {readonly Uint8Array<ArrayBuffer>[]} parts @returns {Promise<Uint8Array<ArrayBuffer>>} */
const deflated = async (parts) => new Uint8Array(await new Response(new Blob([...parts]).stream().pipeThrough(new CompressionStream('deflate-raw'))).arrayBuffer());

/** @param {readonly Saved[]} arrays @param {boolean} compress @param {(code: string, why: string) => Error} fail @returns {Promise<Blob>} */
export async function writeNpz(arrays, compress, fail) {
  const parts = [], directory = [];
  let at = 0;
  for (const array of arrays) {
    const path = encoded(`${array.name}.npy`, fail), plain = [headerOf(array, fail), array.data], size = plain[0].length + plain[1].length;
    const data = compress ? [await deflated(plain)] : plain, packed = data.reduce((n, {length}) => n + length, 0);
    if (path.length > 0xffff) throw fail('ErrTooLarge', `a name of ${path.length} bytes`);
    if (at + packed + size > ELSEWHERE - 0x20000 || arrays.length >= 0xffff) throw fail('ErrTooLarge', 'an archive of 4 GiB or 65,535 arrays');
    const common = [20, UTF8, compress ? DEFLATE : STORE, 0, DATE], sizes = [sumOf(...plain), packed, size];
    const local = record([[4, LOCAL], ...common.map(two), ...sizes.map(four), [2, path.length], [2, 0]]);
    directory.push(record([[4, CENTRAL], [2, 20], ...common.map(two), ...sizes.map(four), [2, path.length], ...Array(4).fill([2, 0]), [4, 0], [4, at]]), path);
    parts.push(local, path, ...data);
    at += local.length + path.length + packed;
  }
  const size = directory.reduce((n, {length}) => n + length, 0), many = arrays.length;
  return new Blob([...parts, ...directory, record([[4, END], [2, 0], [2, 0], [2, many], [2, many], [4, size], [4, at], [2, 0]])]);
}

const two = (/** @type {number} */ n) => [2, n];
const four = (/** @type {number} */ n) => [4, n];

/** Numbers of two and four bytes. @param {number[][]} fields */
function record(fields) {
  const bytes = new Uint8Array(fields.reduce((n, [size]) => n + size, 0)), view = viewOf(bytes);
  let at = 0;
  for (const [size, n] of fields) {
    if (size === 2) view.setUint16(at, n, true);
    else view.setUint32(at, n, true);
    at += size;
  }
  return bytes;
}
