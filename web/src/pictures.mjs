// SPDX-License-Identifier: Apache-2.0

import {part} from './download.mjs';
import {failure, show} from './errors.mjs';
import {usePictures} from './expr.mjs';
import {read} from './source.mjs';

// Canvases and pictures: what pixels.mjs does, which only pages load that draw.

/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./expr.mjs').Expr} Expr */

/** @type {typeof import('./pixels.mjs') | null} */
let pixels = null;

const loading = part(() => import('./pixels.mjs')), load = async () => pixels ??= await loading();

/** The number of channels of a picture. @param {string} where @param {unknown} channels */
function channelsOf(where, channels) {
  if (channels !== 1 && channels !== 3 && channels !== 4) throw failure('ErrInvalid', where, `channels ${show(channels)}; there may be 1, 3 or 4`);
  return channels;
}

/** The size of a picture in a matrix or a tensor. @param {readonly number[]} shape @param {boolean} tensor @param {unknown} wanted channels */
function pictureOf(shape, tensor, wanted) {
  const where = 'toCanvas', [height, across = 1, depth = 1] = shape;
  if (tensor && (shape.length < 2 || shape.length > 3)) throw failure('ErrShape', where, `${shape.join('x') || 'a scalar'}; a picture is height x width or height x width x channels`);
  if (tensor) {
    if (wanted !== undefined && wanted !== depth) throw failure('ErrShape', where, `${depth} channels, not ${show(wanted)}`);
    if (![1, 3, 4].includes(depth)) throw failure('ErrShape', where, `${shape.join('x')}: ${depth} channels where there may be 1, 3 or 4`);
    return {height, width: across, channels: depth};
  }
  const channels = wanted === undefined ? 1 : channelsOf(where, wanted);
  if (across % channels !== 0) throw failure('ErrShape', where, `${height}x${across}: rows of ${across} elements are no pixels of ${channels}`);
  return {height, width: across / channels, channels};
}

/** @param {Session} session @param {Expr} x a row of pixels in each row @param {readonly number[]} shape @param {boolean} tensor @param {unknown} canvas @param {unknown} options */
async function toCanvas(session, x, shape, tensor, canvas, options) {
  const where = 'toCanvas';
  session.check();
  const {channels, ...o} = read(where, options, ['channels', 'colormap', 'range']), picture = pictureOf(shape, tensor, channels);
  if (pixels) return pixels.draw(session, x, picture, canvas, o);
  const now = x.eval(); // the matrix may change while the file is loaded
  try {
    return await (await load()).draw(session, now, picture, canvas, o);
  } finally {
    now.close();
  }
}

usePictures(toCanvas);

/** @param {Session} session @param {unknown} source @param {unknown} options @returns {Promise<any>} */
export async function fromImage(session, source, options) {
  const where = 'fromImage', {dtype = 'float32', channels = 4, colorSpace} = read(where, options, ['dtype', 'channels', 'colorSpace']);
  if (dtype !== 'float32' && dtype !== 'uint8') throw failure('ErrInvalid', where, `dtype ${show(dtype)}; it is "float32" or "uint8"`);
  if (![undefined, 'srgb', 'display-p3'].includes(colorSpace)) throw failure('ErrInvalid', where, `colorSpace ${show(colorSpace)}; it is "srgb" or "display-p3"`);
  channelsOf(where, channels);
  session.check();
  return (await load()).load(session, source, {dtype, channels, colorSpace});
}
