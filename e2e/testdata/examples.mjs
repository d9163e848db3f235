// SPDX-License-Identifier: Apache-2.0

// Tests of the examples of the npm package: each result against float64, computed here in another way.

import {init} from '/dist/index.mjs';
import {check, onBoth, same} from './testing.mjs';

const load = (name) => import(`/examples/${name}.ts`);

/** A test of an example that needs no page. */
const example = (name, test) => onBoth(async (gpu) => test(await load(name), gpu));

/** The rows of numbers that lie one after the other. */
const rowsOf = (values, cols) => Array.from({length: values.length / cols}, (_, i) => Array.from(values.slice(i * cols, (i + 1) * cols)));
const sum = (list) => list.reduce((a, b) => a + b, 0);
const mean = (list) => sum(list) / list.length;
const dot = (a, b) => sum(a.map((x, i) => x * b[i]));
const columnsOf = (rows) => rows[0].map((_, j) => rows.map((row) => row[j]));
const times = (a, b) => a.map((row) => columnsOf(b).map((column) => dot(row, column)));
const deviation = (list) => Math.sqrt(sum(list.map((x) => (x - mean(list)) ** 2)) / (list.length - 1));
const centred = (rows) => {
  const means = columnsOf(rows).map(mean);
  return rows.map((row) => row.map((x, j) => x - means[j]));
};

/** The solution of a x = b by Gaussian elimination with pivots. */
function solve(a, b) {
  const m = a.map((row, i) => [...row, b[i]]), n = m.length;
  for (let k = 0; k < n; k++) {
    const pivot = m.slice(k).reduce((best, row, i) => Math.abs(row[k]) > Math.abs(m[best][k]) ? k + i : best, k);
    [m[k], m[pivot]] = [m[pivot], m[k]];
    for (let i = 0; i < n; i++) {
      const factor = i === k ? 0 : m[i][k] / m[k][k];
      m[i] = m[i].map((x, j) => x - factor * m[k][j]);
    }
  }
  return m.map((row, i) => row[n] / row[i]);
}

/** The largest eigenvalue of a symmetric matrix and its vector, by powers. */
function leading(a) {
  let v = a.map((_, i) => 1 / (i + 1));
  for (let i = 0; i < 2000; i++) {
    const w = a.map((row) => dot(row, v)), norm = Math.hypot(...w);
    v = w.map((x) => x / norm);
  }
  return {value: dot(a.map((row) => dot(row, v)), v), vector: v};
}

/** The nearest number of 11 significant bits, as float16 has it. */
function half(x) {
  const step = 2 ** Math.max(Math.floor(Math.log2(Math.abs(x))) - 10, -24), n = x / step, below = Math.floor(n);
  const up = n - below > 0.5 || (n - below === 0.5 && below % 2 !== 0);
  return (below + (up ? 1 : 0)) * step;
}

/** One round of k-means. */
function lloyd(points, centres) {
  const members = centres.map(() => []);
  for (const p of points) {
    const distances = centres.map((c) => Math.hypot(p[0] - c[0], p[1] - c[1]));
    members[distances.indexOf(Math.min(...distances))].push(p);
  }
  return members.map((list) => columnsOf(list).map(mean));
}

/** Probabilities of each row's classes. */
const softmax = (rows) => rows.map((row) => row.map((x) => Math.exp(x) / sum(row.map(Math.exp))));

/** A network of one hidden layer, trained by Adam. Parameters are lists of rows, the last of which are biases. */
class Network {
  constructor(w1, w2) {
    this.layers = [w1, w2].map((w) => [...w, w[0].map(() => 0)]);
    this.moments = this.layers.map((w) => w.map((row) => row.map(() => [0, 0])));
  }

  forward(x) {
    const [one, two] = this.layers, withBias = (rows) => rows.map((row) => [...row, 1]);
    const h = times(withBias(x), one).map((row) => row.map(Math.tanh));
    return {x: withBias(x), h: withBias(h), logits: times(withBias(h), two)};
  }

  step(input, labels, rate, t) {
    const {x, h, logits} = this.forward(input);
    const d = softmax(logits).map((row, i) => row.map((p, j) => (p - (labels[i] === j ? 1 : 0)) / labels.length));
    const dh = d.map((row, i) => this.layers[1].slice(0, -1).map((w, j) => dot(row, w) * (1 - h[i][j] ** 2)));
    [times(columnsOf(x), dh), times(columnsOf(h), d)].forEach((gradient, layer) => gradient.forEach((row, i) => row.forEach((g, j) => {
      const moment = this.moments[layer][i][j];
      moment[0] = 0.9 * moment[0] + 0.1 * g;
      moment[1] = 0.999 * moment[1] + 0.001 * g * g;
      this.layers[layer][i][j] -= rate * (moment[0] / (1 - 0.9 ** t)) / (Math.sqrt(moment[1] / (1 - 0.999 ** t)) + 1e-8);
    })));
  }
}

/** A file of safetensors with one tensor more than is asked for. */
function safetensors(scale) {
  const data = new Float32Array([9, 9, ...scale]);
  const header = JSON.stringify({
    other: {dtype: 'F32', shape: [2], data_offsets: [0, 8]}, scale: {dtype: 'F32', shape: [scale.length], data_offsets: [8, 8 + scale.length * 4]},
  });
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(header.length), true);
  return new Blob([length, header, data]);
}

/** The brightness of a picture and, at each pixel, how much it changes: Sobel's kernels, with 0 around the picture. */
function sobel({data, width, height}) {
  const at = (x, y) => {
    if (x < 0 || y < 0 || x >= width || y >= height) return 0;
    const [r, g, b] = data.slice((y * width + x) * 4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  return Array.from({length: width * height}, (_, i) => {
    const x = i % width, y = Math.floor(i / width), weights = [[-1, 1], [0, 2], [1, 1]];
    const right = sum(weights.map(([d, w]) => w * (at(x + 1, y + d) - at(x - 1, y + d))));
    const down = sum(weights.map(([d, w]) => w * (at(x + d, y + 1) - at(x + d, y - 1))));
    return Math.min(Math.hypot(right, down), 255);
  });
}

/** What an example uses of a canvas, and the pixels that were drawn last. */
function canvasOf(device, width, height) {
  const usage = GPUTextureUsage.RENDER_ATTACHMENT | GPUTextureUsage.COPY_SRC, format = navigator.gpu.getPreferredCanvasFormat();
  const texture = device.createTexture({size: [width, height], format, usage});
  const context = {configure: (chosen) => check(chosen.device === device && chosen.format === format, 'configure'), getCurrentTexture: () => texture};
  const pixels = async () => {
    const buffer = device.createBuffer({size: 4 * width * height, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST});
    const encoder = device.createCommandEncoder();
    encoder.copyTextureToBuffer({texture}, {buffer, bytesPerRow: 4 * width}, [width, height]);
    device.queue.submit([encoder.finish()]);
    await buffer.mapAsync(GPUMapMode.READ);
    return new Uint8Array(buffer.getMappedRange());
  };
  return {canvas: {getContext: () => context}, pixels};
}

/** The examples that need no page. */
export const tests = {
  linearRegression: example('linear-regression', async ({run, flats, rents}, gpu) => {
    const {intercept, perSquareMetre, perRoom, r2} = await run(gpu);
    const x = flats.map((row) => [1, ...row]), w = solve(times(columnsOf(x), x), columnsOf(x).map((column) => dot(column, rents)));
    same([intercept, perSquareMetre, perRoom], w, 'weights', [2e-3, 1e-4, 4e-3]);
    const left = sum(x.map((row, i) => (rents[i] - dot(row, w)) ** 2)), all = sum(rents.map((y) => (y - mean(rents)) ** 2));
    same([r2], [1 - left / all], 'r2', 1e-5);
  }),

  kMeans: example('k-means', async ({run, points}, gpu) => {
    const all = rowsOf(points, 2);
    let centres = all.slice(0, 3);
    for (let round = 0; round < 10; round++) centres = lloyd(all, centres);
    same((await run(gpu)).centres, centres.flat(), 'centres', 1e-5);
  }),

  pca: example('pca', async ({run, flowers}, gpu) => {
    const {shares, plane} = await run(gpu), x = centred(flowers);
    let a = times(columnsOf(x), x);
    const total = sum(a.map((row, i) => row[i]));
    for (let k = 0; k < 4; k++) {
      const {value, vector} = leading(a);
      same([shares[k]], [value / total], `share ${k}`, 1e-5);
      a = a.map((row, i) => row.map((y, j) => y - value * vector[i] * vector[j]));
      if (k > 1) continue;
      const got = rowsOf(plane, 2).map((row) => row[k]), want = x.map((row) => dot(row, vector)), sign = Math.sign(got[0] * want[0]);
      same(got, want.map((y) => sign * y), `component ${k}`, 1e-4);
    }
  }),

  classifier: example('classifier', async ({run, points, rings}, gpu) => {
    const {start: [w1, w2], loss, accuracy} = await run(gpu), x = rowsOf(points, 2);
    const network = new Network(rowsOf(w1, 8), rowsOf(w2, 2));
    for (let t = 1; t <= 40; t++) network.step(x, rings, 0.05, t);
    const p = softmax(network.forward(x).logits);
    same([loss], [-mean(p.map((row, i) => Math.log(row[rings[i]])))], 'loss', 1e-3);
    same([accuracy], [mean(p.map((row, i) => Number((row[1] > row[0] ? 1 : 0) === rings[i])))], 'accuracy');
    check(accuracy > 0.9, `accuracy ${accuracy}`);
  }),

  nearestNeighbours: example('nearest-neighbours', async ({run, documents, queries, width}, gpu) => {
    const {nearest, likeness} = await run(gpu), unit = (v) => v.map((x) => x / Math.hypot(...v));
    const all = rowsOf(documents, width).map(unit);
    const want = rowsOf(queries, width).map(unit).flatMap((q) => all.map((d, i) => [dot(q, d), i]).sort(([a], [b]) => b - a).slice(0, 3));
    same(nearest, want.map(([, i]) => i), 'which');
    same(likeness, want.map(([cosine]) => cosine), 'cosines', 1e-6);
  }),

  standardise: example('standardise', async ({run, people}, gpu) => {
    const got = await run(gpu), known = columnsOf(people).map((column) => column.filter((x) => !Number.isNaN(x)));
    const means = known.map(mean), deviations = known.map(deviation);
    same(got.mean, means, 'means', means.map((x) => x * 1e-6));
    same(got.deviation, deviations, 'deviations', deviations.map((x) => x * 1e-6));
    const scaled = people.flatMap((row) => row.map((x, j) => Number.isNaN(x) || deviations[j] === 0 ? 0 : (x - means[j]) / deviations[j]));
    same(got.scaled, scaled, 'scaled', 1e-5);
  }),

  movingWindows: example('moving-windows', async ({run, prices}, gpu) => {
    const got = await run(gpu), windows = Array.from({length: prices.length - 19}, (_, i) => Array.from(prices.slice(i, i + 20)));
    same(got.mean, windows.map(mean), 'means', 1e-4);
    same(got.deviation, windows.map(deviation), 'deviations', 1e-4);
    same(got.highest, windows.map((w) => Math.max(...w)), 'maxima');
  }),

  // WGSL's own sines may be off by 2^-11 between -pi and pi.
  ownFunction: example('own-function', async ({run}, gpu) => {
    const want = [0.0167, 0.0934, 0.2056, 0.9671].flatMap((e) => Array.from({length: 7}, (_, i) => {
      let low = 0, high = 4; // x - e sin x grows with x, so that halving finds it
      for (let k = 0; k < 60; k++) {
        const x = (low + high) / 2;
        if (x - e * Math.sin(x) < i / 2) low = x; else high = x;
      }
      return 1 - e * Math.cos(low);
    }));
    same((await run(gpu)).distance, want, 'distances', 2 ** -11);
  }),

  float16: example('float16', async ({run, weights, input}, gpu) => {
    const {bytes, first, y} = await run(gpu), rounded = Array.from(weights, (x) => x === 0 ? 0 : half(x));
    check(bytes === weights.length * 2, `${bytes} bytes`);
    same([first], [rounded[0]], 'the first');
    same(y, times([Array.from(input)], rowsOf(rounded, 64))[0], 'the product', 1e-5);
  }),

  integers: example('integers', async ({run, pixels}, gpu) => {
    const got = await run(gpu), all = Array.from(pixels);
    same([got.wrapped, got.sum], [sum(all) % 256, sum(all)], 'sums');
    same([got.highest], [Math.floor(Math.max(...all) / 16)], 'the highest');
    same(got.brighter, all.map((x) => Math.min(x + 100, 255)), 'brighter');
    same(got.counts, Array.from({length: 16}, (_, k) => all.filter((x) => x % 16 === k).length), 'counts');
  }),

  loadFiles: example('load-files', async ({run}, gpu) => {
    const dictionary = await gpu.saveParams([
      ['weight', {data: new Float32Array([1, 2, 3, 4, 5, 6]), shape: [2, 3]}], ['bias', {data: new Float32Array([10, 20, 30]), shape: [3]}],
    ]);
    const {names, y} = await run(gpu, dictionary, safetensors([1, 10, 100]));
    check(names.join() === 'weight,bias', `names ${names}`);
    same(y, [15, 270, 3900], 'sums');
  }),

  abort: example('abort', async ({run}, gpu) => {
    const {rounds, code, reason, difference} = await run(gpu);
    check(code === 'ErrAborted' && reason === 'the user has seen enough', `${code}: ${reason}`);
    same([rounds, difference], [3, 0], 'rounds, difference');
  }),

  using: example('using', async ({run}, gpu) => {
    same(Object.values(await run(gpu)), [80000, 400, 20, 0], 'inside, kept, trace, after');
  }),

  errors: example('errors', async ({run}, gpu) => {
    const {codes, messages, product} = await run(gpu);
    check(codes.join() === 'ErrShape,ErrCompile,ErrSingular', codes.join());
    check(/2x3/.test(messages[0]) && /2/.test(messages[1]) && /undeclared/.test(messages[1]), messages.join('; '));
    same(product, [14, 32, 32, 77], 'the next product');
  }),

  sparse: example('sparse', async ({run, links}, gpu) => {
    const {stored, rank} = await run(gpu);
    check(stored === links.length, `${stored} values`);
    // The ranks are the solution of (1 - 0.85 shares) r = 0.15 / 5.
    const a = rank.map((_, i) => rank.map((_, j) => (i === j ? 1 : 0) - 0.85 * Number(links.some(([from, to]) => from === j && to === i)) / links.filter(([from]) => from === j).length));
    same(rank, solve(a, rank.map(() => 0.15 / 5)), 'ranks', 1e-5);
  }),

  streaming: example('streaming', async ({run}, gpu) => {
    const rows = Array.from({length: 700}, (_, i) => [Math.cos(i), Math.sin(i * i) + 2, i / 700].map(Math.fround));
    const source = async function* () { for (let i = 0; i < 700; i += 140) yield new Float32Array(rows.slice(i, i + 140).flat()); };
    const got = await run(gpu, source()), x = centred(rows);
    same([got.n], [700], 'rows');
    same(got.mean, columnsOf(rows).map(mean), 'means', 1e-5);
    same(got.covariance, times(columnsOf(x), x).flat().map((y) => y / 699), 'covariance', 1e-5);
    same([(await run(gpu)).n], [2000], 'rows of its own');
  }),
};

/** Those that need a page. */
export const inPage = {
  imageFilter: onBoth(async (gpu) => {
    const canvas = document.createElement('canvas'), context = canvas.getContext('2d', {willReadFrequently: true});
    [canvas.width, canvas.height] = [33, 21];
    context.fillStyle = 'rgb(90 140 20)';
    context.fillRect(0, 0, 33, 21);
    context.fillStyle = 'rgb(120 90 70)';
    context.fillRect(8, 5, 11, 9);
    const want = sobel(context.getImageData(0, 0, 33, 21)), {mean: got} = await (await load('image-filter')).run(gpu, canvas);
    same(context.getImageData(0, 0, 33, 21).data, want.flatMap((x) => [x, x, x, 255]), 'pixels', 0.501);
    same([got], [mean(want) / 255], 'mean', 1e-5);
  }),

  // Chromium without a display loses its device where a canvas wants a texture of it: a texture of ours takes the canvas' place.
  async particles() {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice(), gpu = await init({device});
    const p = Array.from(await gpu.uniform(50, 2, -0.9, 0.9, 1).read()), v = Array.from(await gpu.uniform(50, 2, -0.01, 0.01, 2).read());
    const {canvas, pixels} = canvasOf(device, 256, 128), {bytesMoved, positions} = await (await load('particles')).main(canvas, device, 50, 8);
    for (let frame = 0; frame < 8; frame++) p.forEach((x, i) => { v[i] -= x * 0.001; p[i] += v[i]; });
    same(positions, p, 'positions', 1e-5);
    same([bytesMoved], [0], 'bytes moved');
    const place = navigator.gpu.getPreferredCanvasFormat() === 'rgba8unorm' ? 0 : 2, red = (await pixels()).filter((_, i) => i % 4 === place);
    const drawn = rowsOf(p, 2).filter(([x, y]) => red[Math.floor((1 - y) * 64) * 256 + Math.floor((1 + x) * 128)] === 255).length;
    check(drawn >= 48, `${drawn} of 50 particles are where they should be`); // others may be on the edge of two pixels
    check(red.every((x) => x === 0 || x === 255) && red.filter((x) => x > 0).length <= 50, 'more is drawn than particles');
    gpu.close();
    device.destroy();
  },

  async worker() {
    const {gram, left} = await (await load('worker')).main();
    same(gram, [35, 44, 44, 56], 'the product');
    same([left], [0], 'what is left');
  },
};

/** The one that needs TensorFlow.js. */
export const withTensorFlow = {
  async tensorflow() {
    const {doubled} = await (await load('tensorflow')).main();
    same(doubled, [[1, 2], [3, 4], [5, 6]].map((row) => 2 * sum(row.map((x) => Math.log(x * x)))), 'doubled sums', 1e-5);
  },
};
