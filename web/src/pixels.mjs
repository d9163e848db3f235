// SPDX-License-Identifier: Apache-2.0

import {dataOf} from './data.mjs';
import {FLOAT32, dtypeOf, typedArrayClass} from './dtype.mjs';
import {failure, guard, show, tagOf} from './errors.mjs';
import {Expr, inside, operands} from './expr.mjs';
import {Matrix} from './matrix.mjs';
import * as nodes from './node.mjs';
import {Command, Op} from './protocol.mjs';
import {originOf, place} from './source.mjs';
import {owner} from './tensor-expr.mjs';

// Draws matrices on canvases, and makes tensors of pictures. A picture is packed by expressions as one uint32 for each pixel, red in the
// lowest byte, which is how canvases have it: the device copies it to the texture of the canvas, and a 2d canvas gets the words' bytes.

/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {{height: number, width: number, channels: number}} Picture */

/** Textures are copied from and to buffers in rows of a multiple of so many bytes. */
const PITCH = 256;
/** The longest side of a 2d canvas and its most pixels in the browser that allows the fewest of them. */
const MAX_SIDE = 32767, MAX_AREA = 2 ** 28;
/** The largest number of float32. */
const MAX_FLOAT = 3.4028234663852886e38;
/** What divides by a range without extent. */
const TINY = 2 ** -120;

/** Colours by name: equidistant ones, between which they are linear. Those of matplotlib, which are in the public domain (CC0). */
const MAPS = /** @type {Record<string, string>} */ ({
  gray: '000000ffffff',
  viridis: '44015446085c471063481769481d6f482475472a7a46307e453781433d844142873f48893d4e8a3a538b38598c355e8d33638d31688e2e6d8e2c718e' +
    '2a768e297b8e27808e25848e23898e218e8d20928c1f978b1e9c891fa18821a58524aa8328ae802eb37c35b7793dbc7446c06f50c46a5ac86465cb5e' +
    '70cf577cd25089d54895d840a2da37b0dd2fbddf26cae11fd8e219e5e419f1e51dfde725',
  magma: '00000402020b0504160907200e0b2b140e361a104221114e29115a311165390f6e420f754a107952137c5a167e6219806a1c81721f81792282812581' +
    '892881912b81992d80a1307eaa337db2357bba3878c23b75ca3e72d2426fd9466be04c67e75263ec5860f1605df4695cf7725cf97b5dfb8560fc8e64' +
    'fd9869fea16efeaa74feb47bfebd82fec68afecf92fed89afde2a3fdebacfcf4b6fcfdbf',
  inferno: '00000402020c0504170a072210092d160b391e0c45260c512f0a5b380962400a67490b6a510e6c59106e61136e69166e71196e781c6d801f6c88226a' +
    '902568982766a02a63a82e5fb0315bb73557bf3952c63d4dcc4248d34743d94d3ddf5337e45a31e9612bed6925f1711ff47918f78212f98b0bfa9407' +
    'fb9d07fca60cfcb014fbba1ffac42af8cd37f6d746f4e156f2ea69f2f27df5f992fcffa4',
  plasma: '0d08871b068d2605912f059638049a41049d4903a05102a35901a56100a76900a87100a87801a88004a88707a68e0ca49511a19c179ea21d9aa82296' +
    'ae2892b42e8dba3388bf3984c43e7fc9447acd4a76d24f71d6556dda5b69de6164e26660e66c5ce97257ed7953f07f4ff3854bf58c46f79342f99a3e' +
    'fba139fca835fdaf31feb72dfebe2afdc627fcce25fbd724f8df25f6e826f3f027f0f921',
});

/** How many colours a colormap is made of; behind them lies one without opacity, for NaN. */
const COLORS = 256;

// What is made on the way.

/** @param {Session} session @param {unknown} cond @param {unknown} a @param {unknown} b @returns {Expr} */
function choose(session, cond, a, b) {
  const {list: [x, y, z]} = operands('toCanvas', [cond, a, b]);
  return new Expr(session, nodes.ternary('toCanvas', Op.Where, x, y, z));
}

/** @param {Session} session @param {string} where @param {number} rows @param {number} cols @param {string} dtype @param {{stride?: number}} [options] @param {ArrayBufferView} [values] @returns {Matrix} */
function matrixOf(session, where, rows, cols, dtype, options = {}, values) {
  session.check();
  const memory = place(session, where, dtypeOf(where, dtype), rows, cols, options, 'owned'), leaf = memory.leaf();
  session.newMatrix(leaf, memory, values && dataOf(where, memory.type, rows * cols, values));
  return new Matrix(session, leaf);
}

/** @param {Session} session @param {string} where @param {GPUBuffer} buffer that the matrix destroys @param {number} rows @param {number} cols @param {number} stride @returns {Matrix} */
function bytesOf(session, where, buffer, rows, cols, stride) {
  const origin = originOf(session, where, buffer, rows, cols, {dtype: 'uint8', stride, release: 'destroy', dontOwnBuffer: true}, FLOAT32), leaf = origin.memory.leaf();
  session.from(leaf, origin);
  return new Matrix(session, leaf);
}

/** @param {Session} session @param {string} where @param {Matrix} matrix @returns {Promise<GPUBuffer>} */
function bufferOf(session, where, matrix) {
  const {node} = /** @type {{node: import('./node.mjs').Node}} */ (inside(matrix, where));
  return session.about(Command.Buffer, where, /** @type {import('./memory.mjs').Memory} */ (node.memory));
}

// Options.

/** @param {unknown} map @returns {number[][]} colours of red, green and blue */
function stopsOf(map) {
  const where = 'toCanvas';
  if (typeof map === 'string' && Object.hasOwn(MAPS, map)) {
    return (MAPS[map].match(/.{6}/g) ?? []).map((hex) => [0, 2, 4].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  }
  const names = Object.keys(MAPS).map((name) => `"${name}"`).join(', ');
  if (!Array.isArray(map)) throw failure('ErrInvalid', where, `colormap ${show(map)}; it is ${names} or an array of colours [red, green, blue]`);
  const list = guard(where, () => Array.from(map, (color) => Array.isArray(color) ? Array.from(color) : []));
  const good = (/** @type {unknown} */ x) => typeof x === 'number' && x >= 0 && x <= 255;
  if (list.length < 2 || !list.every((color) => color.length === 3 && color.every(good))) {
    throw failure('ErrInvalid', where, 'a colormap is two colours at least, each of three numbers from 0 to 255');
  }
  return list;
}

/** A colormap as words, one for each level, and the one for NaN. @param {number[][]} stops */
function tableOf(stops) {
  const table = new Uint32Array(COLORS + 1);
  for (let i = 0; i < COLORS; i++) {
    const at = i / (COLORS - 1) * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2), part = at - k;
    const [r, g, b] = stops[k].map((x, channel) => Math.round(x + (stops[k + 1][channel] - x) * part));
    table[i] = (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  }
  return table;
}

/** What is drawn as the lowest and the highest level. @param {unknown} range @param {string} dtype @param {number} channels @returns {[number, number] | null} null for what the data have */
function rangeOf(range, dtype, channels) {
  const where = 'toCanvas';
  if (range === 'data') return null;
  if (range === undefined) {
    if (dtype === 'bool') return [0, 1];
    if (dtype === 'uint8') return [0, 255];
    return channels === 1 ? null : dtype.startsWith('float') ? [0, 1] : [0, 255];
  }
  const [low, high, ...more] = Array.isArray(range) ? guard(where, () => [...range]) : [];
  if (typeof low !== 'number' || typeof high !== 'number' || more.length > 0 || !(low < high && Math.abs(low) <= MAX_FLOAT && Math.abs(high) <= MAX_FLOAT)) {
    throw failure('ErrInvalid', where, `range ${Array.isArray(range) ? 'of other elements' : show(range)}; it is [low, high], two finite numbers, or "data"`);
  }
  return [low, high];
}

// Levels.

/**
 * Makes numbers from 0 to 1 of parts of a matrix. Halves keep the widest ranges finite.
 * @param {Session} session @param {Expr} x of float32 @param {[number, number] | null} range @returns {(part: Expr) => Expr}
 */
function unitsOf(session, x, range) {
  if (range) {
    const low = Math.fround(range[0]) / 2, span = Math.max(Math.fround(range[1]) / 2 - low, TINY);
    return (part) => part.mul(0.5).sub(low).div(span).clamp(0, 1);
  }
  const finite = x.isFinite(), low = choose(session, finite, x, MAX_FLOAT).min().mul(0.5), high = choose(session, finite, x, -MAX_FLOAT).max().mul(0.5);
  const span = high.sub(low).maximum(TINY);
  return (part) => part.mul(0.5).sub(low).div(span).clamp(0, 1);
}

/**
 * The picture as words, red in the lowest byte.
 * @param {Session} session @param {Expr} source @param {Picture} picture @param {[number, number] | null} range
 * @param {Matrix | null} table the colormap of one channel @param {boolean} premultiplied whether colours are multiplied by the opacity
 */
function wordsOf(session, source, {height, width, channels}, range, table, premultiplied) {
  const x = source.astype('float32'), unit = unitsOf(session, x, range);
  if (table) {
    const level = choose(session, x.isNaN(), COLORS, unit(x).mul(COLORS).floor().minimum(COLORS - 1));
    const {list: [row, column]} = operands('toCanvas', [level.astype('int32'), 0]);
    return table.gather(new Expr(session, row), new Expr(session, column));
  }
  const pixels = x.reshape(height * width, channels);
  const parts = Array.from({length: channels}, (_, k) => choose(session, pixels.col(k).isNaN(), 0, unit(pixels.col(k))));
  const words = parts.map((part, k) => {
    const value = premultiplied && channels === 4 && k < 3 ? part.mul(parts[3]) : part;
    return value.mul(255).add(0.5).floor().astype('uint32').mul(2 ** (8 * k));
  });
  const colour = words.reduce((sum, word) => sum.add(word));
  return (channels === 3 ? colour.add(0xff000000) : colour).reshape(height, width);
}

// Canvases.

/** The context of a kind, null where the canvas has one of another kind. @param {any} canvas @param {string} kind */
function contextOf(canvas, kind) {
  try {
    return canvas.getContext(kind);
  } catch { // a canvas that was transferred, or an implementation that does not know the kind
    return null;
  }
}

/** @param {any} canvas @param {number} width @param {number} height */
function resize(canvas, width, height) {
  guard('toCanvas', () => {
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    if (canvas.width !== width || canvas.height !== height) throw failure('ErrLimit', 'toCanvas', `the canvas does not take the size ${width}x${height}`);
  });
}

/** @param {Picture} picture @param {number} side @param {number} [area] */
function checkSize({width, height}, side, area = Infinity) {
  if (width > side || height > side || width * height > area) {
    throw failure('ErrLimit', 'toCanvas', `a canvas of ${width}x${height} pixels; ${side} are the most on a side${area < Infinity ? `, ${area} in all` : ''}`);
  }
}

/**
 * Draws a picture on a canvas.
 * @param {Session} session @param {Expr} x a row of pixels in each row @param {Picture} picture @param {any} canvas @param {Record<string, unknown>} options
 */
export async function draw(session, x, picture, canvas, {colormap, range}) {
  const where = 'toCanvas', {channels, width, height} = picture;
  if (!guard(where, () => typeof canvas?.getContext === 'function')) throw failure('ErrInvalid', where, `${show(canvas)} is no canvas`);
  if (x.dtype === 'complex64') throw failure('ErrUnsupported', where, 'complex numbers; draw abs(), real() or angle()');
  if (colormap !== undefined && channels !== 1) throw failure('ErrInvalid', where, `a colormap for ${channels} channels`);
  const levels = rangeOf(range, x.dtype, channels), colours = channels === 1 ? tableOf(stopsOf(colormap === undefined ? 'gray' : colormap)) : null;
  const device = session.device, context = device && contextOf(canvas, 'webgpu'), flat = context ? null : contextOf(canvas, '2d');
  if (context) checkSize(picture, device.limits.maxTextureDimension2D);
  else if (flat) checkSize(picture, MAX_SIDE, MAX_AREA);
  else throw failure('ErrUnsupported', where, `a canvas with a context that is neither "2d"${device ? ' nor "webgpu"' : ''}`);
  if (width * height === 0) return resize(canvas, width, height);

  const table = colours && matrixOf(session, where, COLORS + 1, 1, 'uint32', {}, colours);
  try {
    const words = wordsOf(session, x, picture, levels, table, context !== null);
    await (context ? present(session, words, canvas, context) : put(words, canvas, flat));
  } finally {
    table?.close();
  }
}

/** Shows words on a 2d canvas. @param {Expr} words @param {any} canvas @param {CanvasRenderingContext2D} context */
async function put(words, canvas, context) {
  const {rows, cols} = words, bits = new Uint8ClampedArray((await words.read()).buffer);
  resize(canvas, cols, rows);
  guard('toCanvas', () => {
    const image = context.createImageData(cols, rows);
    image.data.set(bits);
    context.putImageData(image, 0, 0);
  });
}

/** Shows words by a context of WebGPU: the device copies them. @param {Session} session @param {Expr} words @param {any} canvas @param {any} context */
async function present(session, words, canvas, context) {
  const where = 'toCanvas', {rows, cols} = words, device = /** @type {any} */ (session.device);
  const stride = Math.ceil(4 * cols / PITCH) * PITCH, packed = matrixOf(session, where, rows, cols, 'uint32', {stride: stride / 4});
  try {
    packed.assign(words);
    const buffer = await bufferOf(session, where, packed);
    await checked(where, device, () => guard(where, () => {
      resize(canvas, cols, rows);
      configure(context, device);
      const encoder = device.createCommandEncoder({label: 'sublet toCanvas'});
      encoder.copyBufferToTexture({buffer, bytesPerRow: stride, rowsPerImage: rows}, {texture: context.getCurrentTexture()}, [cols, rows]);
      device.queue.submit([encoder.finish()]);
      packed.close();
    }));
  } finally {
    packed.close();
  }
}

/** Gives a context the device, unless it has it. @param {any} context @param {any} device */
function configure(context, device) {
  const {COPY_DST, RENDER_ATTACHMENT} = /** @type {any} */ (globalThis).GPUTextureUsage, now = context.getConfiguration?.();
  if (now?.device === device && now.format === 'rgba8unorm' && now.usage & COPY_DST && now.alphaMode === 'premultiplied') return;
  context.configure({device, format: 'rgba8unorm', usage: COPY_DST | RENDER_ATTACHMENT, alphaMode: 'premultiplied'});
}

/** Runs commands on the device and waits for what it says of them. @param {string} where @param {any} device @param {() => void} run */
async function checked(where, device, run) {
  const kinds = [['ErrInvalid', 'validation'], ['ErrNoMemory', 'out-of-memory']];
  for (const [, filter] of kinds) device.pushErrorScope(filter);
  /** @type {Promise<any>[]} */
  let told = [];
  try {
    run();
  } finally {
    told = kinds.map(() => device.popErrorScope()).reverse();
    for (const promise of told) promise.catch(() => {}); // run may have thrown
  }
  const errors = await Promise.all(told).catch((error) => { throw failure('ErrDeviceLost', where, error.message, error); });
  for (const [i, error] of errors.entries()) if (error) throw failure(kinds[i][0], where, error.message, error);
}

// Pictures.

/**
 * What the size of a picture is, by the class that it says it is of: the names of width and height, and whether it can be drawn.
 * @type {Record<string, {size: [string, string], ready?: (source: any) => boolean, not?: [string, string]}>}
 */
const SOURCES = {
  HTMLImageElement: {size: ['naturalWidth', 'naturalHeight'], ready: (image) => image.complete && image.naturalWidth > 0, not: ['ErrInvalid', 'an image that is not loaded; await its decode()']},
  HTMLVideoElement: {size: ['videoWidth', 'videoHeight'], ready: (video) => video.readyState >= 2, not: ['ErrInvalid', 'a video without a frame yet; await its event loadeddata']},
  VideoFrame: {size: ['displayWidth', 'displayHeight'], ready: (frame) => frame.displayWidth > 0, not: ['ErrClosed', 'a VideoFrame that was closed']},
  ImageBitmap: {size: ['width', 'height'], ready: (bitmap) => bitmap.width > 0, not: ['ErrClosed', 'an ImageBitmap that was closed']},
  HTMLCanvasElement: {size: ['width', 'height']},
  OffscreenCanvas: {size: ['width', 'height']},
};

/**
 * Makes a tensor of a picture, of one channel a matrix.
 * @param {Session} session @param {unknown} source @param {{dtype: string, channels: number, colorSpace: PredefinedColorSpace | undefined}} options
 */
export async function load(session, source, options) {
  const where = 'fromImage', kind = SOURCES[tagOf(source)];
  if (!kind) return made(fromMemory(session, source, options.colorSpace), options);
  const [width, height] = guard(where, () => {
    const {size: [width, height], ready = () => true, not = ['', '']} = kind, picture = /** @type {any} */ (source);
    if (!ready(picture)) throw failure(not[0], where, not[1]);
    return [picture[width], picture[height]];
  });
  const {colorSpace = 'srgb'} = options, frame = {source, width, height, colorSpace};
  if (width * height === 0) return made({width, height, bytes: matrixOf(session, where, height, 4 * width, 'uint8')}, options);
  const bytes = session.device ? await fromTexture(session, session.device, frame) : fromCanvas(session, frame);
  return made({width, height, bytes}, options);
}

/** @typedef {{source: any, width: number, height: number, colorSpace: PredefinedColorSpace}} Frame */

/** An ImageData, or an object like one. @param {Session} session @param {unknown} source @param {PredefinedColorSpace | undefined} wanted */
function fromMemory(session, source, wanted) {
  const where = 'fromImage';
  if (typeof source !== 'object' || source === null) throw failure('ErrInvalid', where, `${show(source)} is no picture`);
  const {data, width, height, colorSpace} = guard(where, () => {
    const {data, width, height, colorSpace} = /** @type {any} */ (source);
    return {data, width, height, colorSpace};
  });
  const own = typedArrayClass(data), whole = (/** @type {unknown} */ n) => Number.isInteger(n) && /** @type {number} */ (n) >= 0;
  if (own !== 'Uint8ClampedArray' && own !== 'Uint8Array') {
    throw failure('ErrInvalid', where, 'neither an image, a bitmap, a canvas, a video nor an object with data (bytes of red, green, blue and opacity), width and height');
  }
  if (!whole(width) || !whole(height)) throw failure('ErrInvalid', where, `a picture of ${show(width)} by ${show(height)} pixels`);
  if (wanted && colorSpace !== undefined && colorSpace !== wanted) throw failure('ErrUnsupported', where, `an ImageData of the color space ${show(colorSpace)} in another one; draw it on a canvas`);
  return {width, height, bytes: matrixOf(session, where, height, 4 * width, 'uint8', {}, data)};
}

/** The bytes of a picture by way of a canvas. @param {Session} session @param {Frame} frame */
function fromCanvas(session, {source, width, height, colorSpace}) {
  const where = 'fromImage';
  const data = guard(where, () => {
    const canvas = typeof OffscreenCanvas === 'function' ? new OffscreenCanvas(width, height) : Object.assign(document.createElement('canvas'), {width, height});
    const context = /** @type {any} */ (canvas.getContext('2d', {colorSpace, willReadFrequently: true}));
    if (!context) throw failure('ErrLimit', where, `a picture of ${width}x${height} pixels`);
    context.drawImage(source, 0, 0, width, height);
    return context.getImageData(0, 0, width, height, {colorSpace}).data;
  });
  return matrixOf(session, where, height, 4 * width, 'uint8', {}, data);
}

/** The bytes of a picture, which the device copies: to a texture, and from there to a buffer. @param {Session} session @param {any} device @param {Frame} frame */
async function fromTexture(session, device, {source, width, height, colorSpace}) {
  const where = 'fromImage', pitch = Math.ceil(4 * width / PITCH) * PITCH, size = pitch * height;
  const side = device.limits.maxTextureDimension2D, {GPUTextureUsage: texel, GPUBufferUsage: use} = /** @type {any} */ (globalThis);
  if (width > side || height > side) throw failure('ErrLimit', where, `a picture of ${width}x${height} pixels; ${side} are the most on a side`);
  if (size > session.limit) throw failure('ErrLimit', where, `${size} bytes, the largest buffer has ${session.limit}`);
  /** @type {any} */
  let texture;
  /** @type {any} */
  let buffer;
  try {
    await checked(where, device, () => guard(where, () => {
      texture = device.createTexture({label: 'sublet fromImage', size: [width, height], format: 'rgba8unorm', usage: texel.COPY_SRC | texel.COPY_DST | texel.RENDER_ATTACHMENT});
      buffer = device.createBuffer({label: 'sublet fromImage', size, usage: use.STORAGE | use.COPY_SRC | use.COPY_DST});
      device.queue.copyExternalImageToTexture({source}, {texture, colorSpace, premultipliedAlpha: false}, [width, height]);
      const encoder = device.createCommandEncoder({label: 'sublet fromImage'});
      encoder.copyTextureToBuffer({texture}, {buffer, bytesPerRow: pitch, rowsPerImage: height}, [width, height]);
      device.queue.submit([encoder.finish()]);
    }));
    return bytesOf(session, where, buffer, height, 4 * width, pitch);
  } catch (error) {
    buffer?.destroy();
    throw error;
  } finally {
    texture?.destroy();
  }
}

/**
 * What the user gets of bytes.
 * @param {{width: number, height: number, bytes: Matrix}} picture @param {{dtype: string, channels: number}} options
 */
function made({width, height, bytes}, {dtype, channels}) {
  try {
    const pixels = bytes.reshape(height * width, 4), byte = dtype === 'uint8';
    if (channels === 1) {
      const [red, green, blue] = [0, 1, 2].map((k) => pixels.col(k).astype('float32'));
      const luma = red.mul(0.2126).add(green.mul(0.7152)).add(blue.mul(0.0722)).reshape(height, width);
      return (byte ? luma.add(0.5).floor().astype('uint8') : luma.div(255)).eval();
    }
    const kept = channels === 3 ? pixels.slice(null, [0, 3]) : pixels;
    return owner((byte ? kept : kept.astype('float32').div(255)).eval(), [height, width, channels]);
  } finally {
    bytes.close();
  }
}
