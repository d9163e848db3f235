// SPDX-License-Identifier: Apache-2.0

// Tests of what is drawn on canvases and made of pictures, against references in plain JavaScript.

import {init} from '/dist/index.mjs';
import {check, fails, noise, onBoth, same, withGpu} from './testing.mjs';

/** The pixels of a canvas: red, green, blue and opacity. */
function pixelsOf(canvas) {
  const copy = new OffscreenCanvas(canvas.width, canvas.height), context = copy.getContext('2d', {willReadFrequently: true});
  context.drawImage(canvas, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height).data;
}

/** Canvases of both kinds. */
const canvases = () => [document.createElement('canvas'), new OffscreenCanvas(1, 1)];

/** The level of a number: 0 to 1. */
const unit = (x, low, high) => Number.isNaN(x) ? NaN : Math.min(Math.max((x - low) / (high - low), 0), 1);

/** Bytes that are the same every time; of opaque pixels where there are four channels. */
const bytes = (n, seed) => Uint8ClampedArray.from(noise(n, seed), (x, i) => i % 4 === 3 ? 255 : (x + 1) * 128);

/** A canvas with a picture. */
function painted(width, height, seed = 1) {
  const canvas = document.createElement('canvas'), data = bytes(4 * width * height, seed);
  Object.assign(canvas, {width, height}).getContext('2d').putImageData(new ImageData(data, width, height), 0, 0);
  return {canvas, data};
}

export const tests = {
  gray: onBoth(async (gpu) => {
    for (const [rows, cols] of [[1, 1], [5, 7], [70, 130]]) {
      const values = noise(rows * cols, cols), low = Math.min(...values), high = Math.max(...values), m = gpu.wrap(values, rows, cols);
      for (const canvas of canvases()) {
        for (const [range, from, to] of [[undefined, low, high], [[-0.5, 0.25], -0.5, 0.25]]) {
          await m.toCanvas(canvas, {range});
          check(canvas.width === cols && canvas.height === rows, `a canvas of ${canvas.width}x${canvas.height} for ${rows}x${cols}`);
          const want = [...values].flatMap((x) => {
            const level = rows * cols === 1 && !range ? 0 : Math.min(Math.floor(unit(x, from, to) * 256), 255);
            return [level, level, level, 255];
          });
          same(pixelsOf(canvas), want, `${rows}x${cols} in ${range}`, 1); // one step of the 256, where the quotient is next to a whole number
        }
      }
    }
  }),

  everyType: onBoth(async (gpu) => {
    const canvas = document.createElement('canvas'), values = [0, 1, 2, 3, 0, 1];
    for (const dtype of ['float32', 'int32', 'float16', 'uint8', 'int16']) {
      const m = gpu.matrix(2, 3, values, {dtype});
      for (const [x, want] of [[m, values], [m.T, [0, 3, 1, 0, 2, 1]], [m.slice([0, 2], [1, 3]), [1, 2, 0, 1]], [m.add(1), values.map((v) => v + 1)]]) {
        await x.toCanvas(canvas, {range: [0, 4]});
        same(pixelsOf(canvas).filter((_, i) => i % 4 === 0), want.map((v) => Math.min(64 * v, 255)), dtype);
      }
      same(await m.astype('float32').read(), values, `${dtype} after it was drawn`);
      check(await m.location !== 'none', 'nothing is there');
    }
    await gpu.sparse(2, 2, {format: 'csc', values: [2], indices: [1], offsets: [0, 1, 1]}).toCanvas(canvas, {range: [0, 4]});
    same(pixelsOf(canvas).filter((_, i) => i % 4 === 0), [0, 0, 128, 0], 'a sparse matrix');
    await gpu.matrix(1, 2, [0, 1], {dtype: 'bool'}).toCanvas(canvas);
    same(pixelsOf(canvas), [0, 0, 0, 255, 255, 255, 255, 255], 'bool');
    await gpu.matrix(1, 2, [3, 1], {dtype: 'uint8', order: 'column'}).toCanvas(canvas);
    same(pixelsOf(canvas), [3, 3, 3, 255, 1, 1, 1, 255], 'bytes are drawn as they are');
  }),

  colormaps: onBoth(async (gpu) => {
    const canvas = document.createElement('canvas'), ends = {
      gray: [[0, 0, 0], [255, 255, 255]], viridis: [[68, 1, 84], [253, 231, 37]], magma: [[0, 0, 4], [252, 253, 191]],
      inferno: [[0, 0, 4], [252, 255, 164]], plasma: [[13, 8, 135], [240, 249, 33]],
    };
    const ramp = gpu.matrix(1, 256, Array.from({length: 256}, (_, i) => i));
    for (const [colormap, [first, last]] of Object.entries(ends)) {
      await ramp.toCanvas(canvas, {colormap});
      const got = pixelsOf(canvas);
      same([...got.slice(0, 3), ...got.slice(-4, -1)], [...first, ...last], colormap);
    }
    await ramp.toCanvas(canvas, {colormap: 'viridis'});
    same(pixelsOf(canvas).slice(4 * 128, 4 * 128 + 3), [33, 145, 140], 'the middle of viridis', 2); // matplotlib's #21918c
    await ramp.toCanvas(canvas, {colormap: [[0, 0, 255], [255, 255, 255], [255, 0, 0]]});
    const want = Array.from({length: 256}, (_, i) => i / 255).flatMap((t) => t < 0.5 ? [510 * t, 510 * t, 255, 255] : [255, 510 * (1 - t), 510 * (1 - t), 255]);
    same(pixelsOf(canvas), want, 'colours of the page', 1);
  }),

  strangeNumbers: onBoth(async (gpu) => {
    const canvas = document.createElement('canvas'), pixel = (x) => [x, x, x, 255], nothing = [0, 0, 0, 0];
    for (const [values, options, want] of [
      [[NaN, -Infinity, Infinity, 1, 2], {}, [nothing, pixel(0), pixel(255), pixel(0), pixel(255)]],
      [[-3e38, 3e38, 0], {}, [pixel(0), pixel(255), pixel(128)]], [[5, 5, 5], {}, [pixel(0), pixel(0), pixel(0)]],
      [[NaN, NaN], {}, [nothing, nothing]], [[Infinity, NaN], {range: [0, 1]}, [pixel(255), nothing]],
      [[1e-38, 3e-38], {range: [-3e38, 3e38]}, [pixel(128), pixel(128)]],
    ]) {
      await gpu.matrix(1, values.length, values).toCanvas(canvas, options);
      same(pixelsOf(canvas), want.flat(), `${values} in ${options.range}`);
    }
    await gpu.matrix(1, 4, [NaN, 2, -1, 1]).toCanvas(canvas, {channels: 4});
    same(pixelsOf(canvas), [0, 255, 0, 255], 'numbers beyond 0 to 1 and none');
  }),

  colours: onBoth(async (gpu) => {
    const height = 9, width = 13, values = noise(4 * height * width, 3).map((x) => (x + 1) / 2);
    for (const channels of [3, 4]) {
      const own = values.slice(0, height * width * channels).map((x, i) => i % 4 === 3 && channels === 4 ? 1 : x);
      const want = Array.from({length: 4 * height * width}, (_, i) => i % 4 === 3 ? 255 : Math.round(own[Math.floor(i / 4) * channels + i % 4] * 255));
      for (const x of [gpu.matrix(height, width * channels, own), gpu.tensor(own, [height, width, channels])]) {
        for (const canvas of canvases()) {
          await x.toCanvas(canvas, x.shape.length === 2 ? {channels} : undefined);
          same(pixelsOf(canvas), want, `${channels} channels`, 1); // halves may go either way
        }
      }
    }
    const canvas = document.createElement('canvas');
    await gpu.matrix(1, 4, [255, 128, 0, 128], {dtype: 'uint8'}).toCanvas(canvas, {channels: 4});
    same(pixelsOf(canvas), [255, 128, 0, 128], 'half of the opacity', 1);
    await gpu.tensor(new Float32Array([0, 1]), [1, 2]).toCanvas(canvas);
    same(pixelsOf(canvas), [0, 0, 0, 255, 255, 255, 255, 255], 'a tensor of two dimensions');
  }),

  twoDimensionalContext: onBoth(async (gpu) => {
    const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
    await gpu.matrix(1, 2, [0, 255], {dtype: 'uint8'}).toCanvas(canvas);
    same(context.getImageData(0, 0, 2, 1).data, [0, 0, 0, 255, 255, 255, 255, 255], 'what a 2d canvas has');
    await gpu.matrix(1, 4, [1, 0.5, 0, 0.5]).toCanvas(canvas, {channels: 4});
    same(context.getImageData(0, 0, 1, 1).data, [255, 128, 0, 128], 'opacity', 1);
  }),

  /** What is drawn is the matrix as it was at the call, however it goes on. */
  moments: onBoth(async (gpu) => {
    const canvases = Array.from({length: 4}, () => document.createElement('canvas')), m = gpu.zeros(2, 2, {dtype: 'uint8'});
    const drawings = canvases.map((canvas, i) => {
      m.assign(10 * i);
      return m.toCanvas(canvas);
    });
    m.close();
    await Promise.all(drawings);
    canvases.forEach((canvas, i) => check(pixelsOf(canvas)[0] === 10 * i, `canvas ${i} has ${pixelsOf(canvas)[0]}`));
  }),

  roundTrip: onBoth(async (gpu) => {
    for (const [width, height] of [[1, 1], [17, 5], [64, 3]]) {
      const {canvas, data} = painted(width, height, width), bitmap = await createImageBitmap(canvas), image = new Image();
      image.src = canvas.toDataURL();
      await image.decode();
      const frame = new VideoFrame(canvas, {timestamp: 0});
      const sources = {canvas, bitmap, image, frame, data: new ImageData(data, width, height), object: {data: new Uint8Array(data), width, height}};
      for (const [what, source] of Object.entries(sources)) {
        const picture = await gpu.fromImage(source, {dtype: 'uint8'}), to = document.createElement('canvas');
        same(picture.shape, [height, width, 4], `the shape of ${what}`);
        same(await picture.read(), data, `${what} ${width}x${height}`, what === 'frame' ? 3 : 0); // frames may be of other colours
        await picture.toCanvas(to);
        same(pixelsOf(to), data, `${what} drawn`, what === 'frame' ? 3 : 0);
        picture.close();
      }
      frame.close();
    }
  }),

  channels: onBoth(async (gpu) => {
    const width = 19, height = 6, {canvas, data} = painted(width, height, 5), at = (i, k) => data[4 * i + k], pixels = Array.from({length: width * height}, (_, i) => i);
    for (const source of [canvas, new ImageData(data, width, height)]) {
      same(await (await gpu.fromImage(source)).read(), [...data].map((x) => x / 255), 'float32', 1e-6);
      const three = await gpu.fromImage(source, {channels: 3});
      same(three.shape, [height, width, 3], 'the shape of three channels');
      same(await three.read(), pixels.flatMap((i) => [0, 1, 2].map((k) => at(i, k) / 255)), 'three channels', 1e-6);
      same(await (await gpu.fromImage(source, {channels: 3, dtype: 'uint8'})).read(), pixels.flatMap((i) => [0, 1, 2].map((k) => at(i, k))), 'three channels of bytes');
      const luma = pixels.map((i) => 0.2126 * at(i, 0) + 0.7152 * at(i, 1) + 0.0722 * at(i, 2)), gray = await gpu.fromImage(source, {channels: 1});
      same(gray.shape, [height, width], 'the shape of one channel');
      same(await gray.read(), luma.map((x) => x / 255), 'luminance', 1e-6);
      const rounded = await (await gpu.fromImage(source, {channels: 1, dtype: 'uint8'})).read();
      rounded.forEach((x, i) => check(Math.abs(x - luma[i]) <= 0.5001, `luminance ${luma[i]} is ${x}`));
    }
  }),

  /** Nothing comes through JavaScript where there is WebGPU. */
  staysOnTheDevice: withGpu(async (gpu) => {
    const {canvas} = painted(64, 64), to = document.createElement('canvas');
    const first = await gpu.fromImage(canvas);
    await first.toCanvas(to);
    const before = gpu.stats();
    const picture = await gpu.fromImage(canvas);
    await picture.mul(0.5).toCanvas(to);
    const after = gpu.stats();
    check(after.bytesUp === before.bytesUp && after.bytesDown === before.bytesDown, `${after.bytesUp - before.bytesUp} bytes up, ${after.bytesDown - before.bytesDown} down`);
    picture.close();
    const {liveBytes, buffers} = gpu.stats();
    for (let i = 0; i < 5; i++) {
      const again = await gpu.fromImage(canvas);
      await again.toCanvas(to);
      await again.expr().toCanvas(to, {colormap: 'viridis'});
      again.close();
    }
    check(gpu.stats().liveBytes === liveBytes && gpu.stats().buffers <= buffers + 8, `${gpu.stats().liveBytes - liveBytes} bytes are left, ${gpu.stats().buffers - buffers} buffers`);
  }),

  /** A buffer that the page has may change at any time, so that nothing is known of it. */
  printed: withGpu(async (gpu) => {
    const m = gpu.matrix(1, 2, [1, 2]), text = 'Matrix 1x2 float32 on webgpu', wrapped = gpu.wrapBuffer(await m.clone().buffer, 1, 2);
    check(String(m) === `${text}\n[[1 2]]`, String(m));
    await m.buffer;
    await m.read();
    check(String(m) === text, String(m));
    check(String(wrapped) === `${text}, external`, String(wrapped));
    check(String(gpu).startsWith('Gpu webgpu (') && String(gpu.info).includes('cpu'), String(gpu));
  }),

  /** A device of the page's, with a canvas that it draws on as well. */
  callersDevice: async () => {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice(), gpu = await init({device}), faults = [];
    device.onuncapturederror = ({error}) => faults.push(error.message);
    const {canvas, data} = painted(33, 4), to = document.createElement('canvas'), context = to.getContext('webgpu');
    context.configure({device, format: 'bgra8unorm', alphaMode: 'opaque'});
    const picture = await gpu.fromImage(canvas, {dtype: 'uint8'});
    await picture.toCanvas(to);
    same(pixelsOf(to), data, 'drawn on the device of the page');
    await picture.toCanvas(to);
    same(pixelsOf(to), data, 'drawn again');
    const {maxTextureDimension2D: most} = device.limits;
    await fails('ErrLimit', 'a canvas that is too wide', () => gpu.zeros(1, most + 1).toCanvas(to));
    await fails('ErrLimit', 'a picture that is too high', () => gpu.fromImage(painted(1, most + 1).canvas));
    await gpu.zeros(1, most, {dtype: 'uint8'}).toCanvas(to);
    check(to.width === most && pixelsOf(to).length === 4 * most, 'the widest canvas');
    device.destroy();
    await gpu.lost;
    await fails('ErrDeviceLost', 'drawing by a lost device', () => picture.toCanvas(to));
    await fails('ErrDeviceLost', 'a picture for a lost device', async () => (await gpu.fromImage(canvas)).read());
    await fails('ErrDeviceLost', 'an ImageData for a lost device', async () => (await gpu.fromImage(new ImageData(data, 33, 4))).read());
    check(faults.length === 0, `the device of the page was told ${faults}`);
    gpu.close();
  },

  empty: onBoth(async (gpu) => {
    for (const canvas of canvases()) {
      await gpu.zeros(0, 5).toCanvas(canvas);
      check(canvas.width === 5 && canvas.height === 0, `${canvas.width}x${canvas.height}`);
      await gpu.zeros(3, 0).toCanvas(canvas, {channels: 4});
      check(canvas.width === 0 && canvas.height === 3, `${canvas.width}x${canvas.height}`);
      for (const [channels, shape] of [[1, [3, 0]], [3, [3, 0, 3]], [4, [3, 0, 4]]]) {
        const picture = await gpu.fromImage(canvas, {channels});
        same(picture.shape, shape, `the shape of ${channels} channels`);
        same(await picture.read(), [], 'what an empty picture has');
      }
      await gpu.ones(2, 2).toCanvas(canvas, {range: [0, 1]});
      check(pixelsOf(canvas)[0] === 255, 'a canvas that was empty');
    }
  }),

  mistakes: onBoth(async (gpu) => {
    const m = gpu.zeros(2, 8), canvas = document.createElement('canvas'), gone = new OffscreenCanvas(2, 2), drawn = document.createElement('canvas');
    const bitmap = await createImageBitmap(painted(2, 2).canvas), {port1} = new MessageChannel();
    bitmap.close();
    port1.postMessage(gone, [gone]);
    drawn.getContext('webgl') ?? drawn.getContext('bitmaprenderer');
    const closed = gpu.zeros(1, 1), image = new Image(), t = (...shape) => gpu.tensor(new Float32Array(shape.reduce((a, b) => a * b, 1)), shape);
    closed.close();
    for (const [code, run] of [
      ['ErrInvalid', () => m.toCanvas()], ['ErrInvalid', () => m.toCanvas(null)], ['ErrInvalid', () => m.toCanvas({})], ['ErrInvalid', () => m.toCanvas('canvas')],
      ['ErrInvalid', () => m.toCanvas({get getContext() { throw new TypeError('mine'); }})], ['ErrUnsupported', () => m.toCanvas({getContext() { throw new TypeError('mine'); }})],
      ['ErrInvalid', () => m.toCanvas(canvas, 5)], ['ErrInvalid', () => m.toCanvas(canvas, {colourmap: 'gray'})], ['ErrInvalid', () => m.toCanvas(canvas, {colormap: 'jet'})],
      ['ErrInvalid', () => m.toCanvas(canvas, {colormap: null})], ['ErrInvalid', () => m.toCanvas(canvas, {colormap: [[0, 0, 0]]})], ['ErrInvalid', () => m.toCanvas(canvas, {colormap: [[0, 0, 0], [0, 0, 256]]})],
      ['ErrInvalid', () => m.toCanvas(canvas, {colormap: 'toString'})], ['ErrInvalid', () => m.toCanvas(canvas, {colormap: 'gray', channels: 4})], ['ErrInvalid', () => m.toCanvas(canvas, {channels: 2})],
      ['ErrInvalid', () => m.toCanvas(canvas, {range: 5})], ['ErrInvalid', () => m.toCanvas(canvas, {range: [1, 0]})], ['ErrInvalid', () => m.toCanvas(canvas, {range: [0, NaN]})],
      ['ErrInvalid', () => m.toCanvas(canvas, {range: [0, Infinity]})], ['ErrInvalid', () => m.toCanvas(canvas, {range: ['0', '1']})], ['ErrInvalid', () => m.toCanvas(canvas, {get range() { throw new Error('mine'); }})],
      ['ErrShape', () => m.toCanvas(canvas, {channels: 3})], ['ErrShape', () => t(2).toCanvas(canvas)], ['ErrShape', () => t(1, 1, 1, 1).toCanvas(canvas)], ['ErrShape', () => t(2, 2, 2).toCanvas(canvas)],
      ['ErrShape', () => t(2, 2, 3).toCanvas(canvas, {channels: 4})], ['ErrUnsupported', () => gpu.zeros(1, 1, {dtype: 'complex64'}).toCanvas(canvas)],
      ['ErrUnsupported', () => m.toCanvas(drawn)], ['ErrUnsupported', () => m.toCanvas(gone)], ['ErrClosed', () => closed.toCanvas(canvas)], ['ErrLimit', () => gpu.zeros(1, 40000).toCanvas(canvas)],
      ['ErrInvalid', () => gpu.fromImage()], ['ErrInvalid', () => gpu.fromImage(null)], ['ErrInvalid', () => gpu.fromImage({})], ['ErrInvalid', () => gpu.fromImage('a.png')], ['ErrInvalid', () => gpu.fromImage(image)],
      ['ErrInvalid', () => gpu.fromImage(document.createElement('video'))], ['ErrClosed', () => gpu.fromImage(bitmap)], ['ErrInvalid', () => gpu.fromImage({data: [1, 2, 3, 4], width: 1, height: 1})],
      ['ErrShort', () => gpu.fromImage({data: new Uint8Array(3), width: 1, height: 1})], ['ErrShape', () => gpu.fromImage({data: new Uint8Array(8), width: 1, height: 1})],
      ['ErrInvalid', () => gpu.fromImage({data: new Uint8Array(4), width: -1, height: 1})], ['ErrInvalid', () => gpu.fromImage({data: new Uint8Array(4), width: 0.5, height: 2})],
      ['ErrInvalid', () => gpu.fromImage({get data() { throw new Error('mine'); }})], ['ErrInvalid', () => gpu.fromImage({[Symbol.toStringTag]: 'ImageBitmap', width: 1, height: 1})],
      ['ErrInvalid', () => gpu.fromImage(canvas, {dtype: 'int32'})], ['ErrInvalid', () => gpu.fromImage(canvas, {channels: 2})], ['ErrInvalid', () => gpu.fromImage(canvas, {colorSpace: 'rgb'})],
      ['ErrInvalid', () => gpu.fromImage(canvas, {size: 5})], ['ErrUnsupported', () => gpu.fromImage(new ImageData(1, 1), {colorSpace: 'display-p3'})],
    ]) await fails(code, String(run), run);
    await m.toCanvas(canvas, {range: [-1, 1]});
    check(pixelsOf(canvas)[0] === 128, 'the canvas after all that');
  }),
};
