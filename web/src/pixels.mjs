// SPDX-License-Identifier: Apache-2.0

// Draws matrices on canvases, and makes tensors of pictures. A picture is packed by expressions as one uint32 for each pixel, red in the
// lowest byte, which is how canvases have it: the device copies it to the texture of the canvas, and a 2d canvas gets the words' bytes.

/** @typedef {import('./pictures.mjs').Tools} Tools */
/** @typedef {import('./expr.mjs').Expr} Expr */
/** @typedef {import('./matrix.mjs').Matrix} Matrix */
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

// Options.

/** @param {Tools} tools @param {unknown} map @returns {number[][]} colours of red, green and blue */
function stopsOf({failure, guard, show}, map) {
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

/** What is drawn as the lowest and the highest level. @param {Tools} tools @param {unknown} range @param {string} dtype @param {number} channels @returns {[number, number] | null} null for what the data have */
function rangeOf({failure, guard, show}, range, dtype, channels) {
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
 * @param {Tools} tools @param {Expr} x of float32 @param {[number, number] | null} range @returns {(part: Expr) => Expr}
 */
function unitsOf({where}, x, range) {
  if (range) {
    const low = Math.fround(range[0]) / 2, span = Math.max(Math.fround(range[1]) / 2 - low, TINY);
    return (part) => part.mul(0.5).sub(low).div(span).clamp(0, 1);
  }
  const finite = x.isFinite(), low = where(finite, x, MAX_FLOAT).min().mul(0.5), high = where(finite, x, -MAX_FLOAT).max().mul(0.5);
  const span = high.sub(low).maximum(TINY);
  return (part) => part.mul(0.5).sub(low).div(span).clamp(0, 1);
}

/**
 * The picture as words, red in the lowest byte.
 * @param {Tools} tools @param {Expr} source @param {Picture} picture @param {[number, number] | null} range
 * @param {Matrix | null} table the colormap of one channel @param {boolean} premultiplied whether colours are multiplied by the opacity
 */
function wordsOf(tools, source, {height, width, channels}, range, table, premultiplied) {
  const {where} = tools, x = source.astype('float32'), unit = unitsOf(tools, x, range);
  if (table) {
    const level = where(x.isNaN(), COLORS, unit(x).mul(COLORS).floor().minimum(COLORS - 1));
    return table.gather(level.astype('int32'), 0);
  }
  const pixels = x.reshape(height * width, channels);
  const parts = Array.from({length: channels}, (_, k) => where(pixels.col(k).isNaN(), 0, unit(pixels.col(k))));
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

/** @param {Tools} tools @param {any} canvas @param {number} width @param {number} height */
function resize({failure, guard}, canvas, width, height) {
  guard('toCanvas', () => {
    if (canvas.width !== width) canvas.width = width;
    if (canvas.height !== height) canvas.height = height;
    if (canvas.width !== width || canvas.height !== height) throw failure('ErrLimit', 'toCanvas', `the canvas does not take the size ${width}x${height}`);
  });
}

/** @param {Tools} tools @param {Picture} picture @param {number} side @param {number} [area] */
function checkSize({failure}, {width, height}, side, area = Infinity) {
  if (width > side || height > side || width * height > area) {
    throw failure('ErrLimit', 'toCanvas', `a canvas of ${width}x${height} pixels; ${side} are the most on a side${area < Infinity ? `, ${area} in all` : ''}`);
  }
}

/**
 * Draws a picture on a canvas.
 * @param {Tools} tools @param {Expr} x a row of pixels in each row @param {Picture} picture @param {any} canvas @param {Record<string, unknown>} options
 */
export async function draw(tools, x, picture, canvas, {colormap, range}) {
  const {session, failure, guard, show} = tools, where = 'toCanvas', {channels, width, height} = picture;
  if (!guard(where, () => typeof canvas?.getContext === 'function')) throw failure('ErrInvalid', where, `${show(canvas)} is no canvas`);
  if (x.dtype === 'complex64') throw failure('ErrUnsupported', where, 'complex numbers; draw abs(), real() or angle()');
  if (colormap !== undefined && channels !== 1) throw failure('ErrInvalid', where, `a colormap for ${channels} channels`);
  const levels = rangeOf(tools, range, x.dtype, channels), colours = channels === 1 ? tableOf(stopsOf(tools, colormap === undefined ? 'gray' : colormap)) : null;
  const device = session.device, context = device && contextOf(canvas, 'webgpu'), flat = context ? null : contextOf(canvas, '2d');
  if (context) checkSize(tools, picture, device.limits.maxTextureDimension2D);
  else if (flat) checkSize(tools, picture, MAX_SIDE, MAX_AREA);
  else throw failure('ErrUnsupported', where, `a canvas with a context that is neither "2d"${device ? ' nor "webgpu"' : ''}`);
  if (width * height === 0) return resize(tools, canvas, width, height);

  const table = colours && tools.matrix(where, COLORS + 1, 1, 'uint32', {}, colours);
  try {
    const words = wordsOf(tools, x, picture, levels, table, context !== null);
    await (context ? present(tools, words, canvas, context) : put(tools, words, canvas, flat));
  } finally {
    table?.close();
  }
}

/** Shows words on a 2d canvas. @param {Tools} tools @param {Expr} words @param {any} canvas @param {CanvasRenderingContext2D} context */
async function put(tools, words, canvas, context) {
  const {rows, cols} = words, bits = new Uint8ClampedArray((await words.read()).buffer);
  resize(tools, canvas, cols, rows);
  tools.guard('toCanvas', () => {
    const image = context.createImageData(cols, rows);
    image.data.set(bits);
    context.putImageData(image, 0, 0);
  });
}

/** Shows words by a context of WebGPU: the device copies them. @param {Tools} tools @param {Expr} words @param {any} canvas @param {any} context */
async function present(tools, words, canvas, context) {
  const {guard, session} = tools, where = 'toCanvas', {rows, cols} = words, device = /** @type {any} */ (session.device);
  const stride = Math.ceil(4 * cols / PITCH) * PITCH, packed = tools.matrix(where, rows, cols, 'uint32', {stride: stride / 4});
  try {
    packed.assign(words);
    const buffer = await tools.buffer(where, packed);
    await checked(tools, where, device, () => guard(where, () => {
      resize(tools, canvas, cols, rows);
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

/** Runs commands on the device and waits for what it says of them. @param {Tools} tools @param {string} where @param {any} device @param {() => void} run */
async function checked({failure}, where, device, run) {
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
 * @param {Tools} tools @param {unknown} source @param {{dtype: string, channels: number, colorSpace: PredefinedColorSpace | undefined}} options
 */
export async function load(tools, source, options) {
  const {failure, guard, tagOf, session} = tools, where = 'fromImage', kind = SOURCES[tagOf(source)];
  if (!kind) return made(tools, fromMemory(tools, source, options.colorSpace), options);
  const [width, height] = guard(where, () => {
    const {size: [width, height], ready = () => true, not = ['', '']} = kind, picture = /** @type {any} */ (source);
    if (!ready(picture)) throw failure(not[0], where, not[1]);
    return [picture[width], picture[height]];
  });
  const {colorSpace = 'srgb'} = options, frame = {source, width, height, colorSpace};
  if (width * height === 0) return made(tools, {width, height, bytes: tools.matrix(where, height, 4 * width, 'uint8')}, options);
  const bytes = session.device ? await fromTexture(tools, session.device, frame) : fromCanvas(tools, frame);
  return made(tools, {width, height, bytes}, options);
}

/** @typedef {{source: any, width: number, height: number, colorSpace: PredefinedColorSpace}} Frame */

/** An ImageData, or an object like one. @param {Tools} tools @param {unknown} source @param {PredefinedColorSpace | undefined} wanted */
function fromMemory(tools, source, wanted) {
  const {failure, guard, show, typedArrayClass} = tools, where = 'fromImage';
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
  return {width, height, bytes: tools.matrix(where, height, 4 * width, 'uint8', {}, data)};
}

/** The bytes of a picture by way of a canvas. @param {Tools} tools @param {Frame} frame */
function fromCanvas(tools, {source, width, height, colorSpace}) {
  const {failure, guard} = tools, where = 'fromImage';
  const data = guard(where, () => {
    const canvas = typeof OffscreenCanvas === 'function' ? new OffscreenCanvas(width, height) : Object.assign(document.createElement('canvas'), {width, height});
    const context = /** @type {any} */ (canvas.getContext('2d', {colorSpace, willReadFrequently: true}));
    if (!context) throw failure('ErrLimit', where, `a picture of ${width}x${height} pixels`);
    context.drawImage(source, 0, 0, width, height);
    return context.getImageData(0, 0, width, height, {colorSpace}).data;
  });
  return tools.matrix(where, height, 4 * width, 'uint8', {}, data);
}

/** The bytes of a picture, which the device copies: to a texture, and from there to a buffer. @param {Tools} tools @param {any} device @param {Frame} frame */
async function fromTexture(tools, device, {source, width, height, colorSpace}) {
  const {failure, guard, session} = tools, where = 'fromImage', pitch = Math.ceil(4 * width / PITCH) * PITCH, size = pitch * height;
  const side = device.limits.maxTextureDimension2D, {GPUTextureUsage: texel, GPUBufferUsage: use} = /** @type {any} */ (globalThis);
  if (width > side || height > side) throw failure('ErrLimit', where, `a picture of ${width}x${height} pixels; ${side} are the most on a side`);
  if (size > session.limit) throw failure('ErrLimit', where, `${size} bytes, the largest buffer has ${session.limit}`);
  /** @type {any} */
  let texture;
  /** @type {any} */
  let buffer;
  try {
    await checked(tools, where, device, () => guard(where, () => {
      texture = device.createTexture({label: 'sublet fromImage', size: [width, height], format: 'rgba8unorm', usage: texel.COPY_SRC | texel.COPY_DST | texel.RENDER_ATTACHMENT});
      buffer = device.createBuffer({label: 'sublet fromImage', size, usage: use.STORAGE | use.COPY_SRC | use.COPY_DST});
      device.queue.copyExternalImageToTexture({source}, {texture, colorSpace, premultipliedAlpha: false}, [width, height]);
      const encoder = device.createCommandEncoder({label: 'sublet fromImage'});
      encoder.copyTextureToBuffer({texture}, {buffer, bytesPerRow: pitch, rowsPerImage: height}, [width, height]);
      device.queue.submit([encoder.finish()]);
    }));
    return tools.bytes(where, buffer, height, 4 * width, pitch);
  } catch (error) {
    buffer?.destroy();
    throw error;
  } finally {
    texture?.destroy();
  }
}

/**
 * What the user gets of bytes.
 * @param {Tools} tools @param {{width: number, height: number, bytes: Matrix}} picture @param {{dtype: string, channels: number}} options
 */
function made(tools, {width, height, bytes}, {dtype, channels}) {
  try {
    const pixels = bytes.reshape(height * width, 4), byte = dtype === 'uint8';
    if (channels === 1) {
      const [red, green, blue] = [0, 1, 2].map((k) => pixels.col(k).astype('float32'));
      const luma = red.mul(0.2126).add(green.mul(0.7152)).add(blue.mul(0.0722)).reshape(height, width);
      return (byte ? luma.add(0.5).floor().astype('uint8') : luma.div(255)).eval();
    }
    const kept = channels === 3 ? pixels.slice(null, [0, 3]) : pixels;
    return tools.tensor((byte ? kept : kept.astype('float32').div(255)).eval(), [height, width, channels]);
  } finally {
    bytes.close();
  }
}
