// SPDX-License-Identifier: Apache-2.0

// Tests of package nn in JavaScript, against references in plain JavaScript.

import {check, fails, noise, onBoth, same, throws} from './testing.mjs';

const size = (shape) => shape.reduce((n, d) => n * d, 1);
const sum = (list) => list.reduce((a, b) => a + b, 0);

/** Calls f for each element of an image and each place of the window that it is below: places in the results and in the images, and in the window. */
function walk({n, c, h, w, kernel: [kh, kw], stride: [sh, sw], pad: [top, bottom, left, right], dilation: [dh, dw]}, f) {
  const oh = Math.floor((h + top + bottom - (kh - 1) * dh - 1) / sh) + 1, ow = Math.floor((w + left + right - (kw - 1) * dw - 1) / sw) + 1;
  for (let i = 0; i < n; i++) for (let ch = 0; ch < c; ch++) for (let y = 0; y < oh; y++) for (let x = 0; x < ow; x++) {
    for (let p = 0; p < kh; p++) for (let q = 0; q < kw; q++) {
      const a = y * sh + p * dh - top, b = x * sw + q * dw - left;
      f({i, ch, place: y * ow + x, p, q, from: a >= 0 && a < h && b >= 0 && b < w ? ((i * c + ch) * h + a) * w + b : -1});
    }
  }
  return {oh, ow};
}

/** A convolution and its gradients in float64. */
function convolution(g, x, weights, bias, d) {
  const {oh, ow} = walk({...g, n: 0}, () => {}), places = oh * ow, each = g.c / g.groups, per = g.o / g.groups, [kh, kw] = g.kernel;
  const y = new Float64Array(g.n * g.o * places), dx = new Float64Array(x.length), dw = new Float64Array(weights.length), db = new Float64Array(g.o);
  for (let at = 0; at < y.length; at++) {
    const o = Math.floor(at / places) % g.o;
    y[at] = bias ? bias[o] : 0;
    if (d) db[o] += d[at];
  }
  walk(g, ({i, ch, place, p, q, from}) => {
    if (from < 0) return;
    const group = Math.floor(ch / each);
    for (let o = group * per; o < (group + 1) * per; o++) {
      const at = (i * g.o + o) * places + place, w = ((o * each + ch % each) * kh + p) * kw + q;
      y[at] += weights[w] * x[from];
      if (d) {
        dx[from] += d[at] * weights[w];
        dw[w] += d[at] * x[from];
      }
    }
  });
  return {y, dx, dw, db, oh, ow};
}

const geometries = [
  {n: 2, c: 3, h: 5, w: 6, o: 4, groups: 1, kernel: [3, 3], stride: [1, 1], pad: [0, 0, 0, 0], dilation: [1, 1]},
  {n: 2, c: 2, h: 7, w: 5, o: 2, groups: 2, kernel: [3, 2], stride: [2, 1], pad: [1, 1, 2, 2], dilation: [1, 2]},
  {n: 1, c: 4, h: 6, w: 6, o: 6, groups: 2, kernel: [1, 3], stride: [1, 3], pad: [0, 1, 2, 0], dilation: [2, 1]},
];
const optionsOf = (g) => ({kernel: g.kernel, stride: g.stride, pad: g.pad, dilation: g.dilation, groups: g.groups});

export const tests = {
  nnConvolutions: onBoth(async (gpu) => {
    for (const g of geometries) {
      const x = noise(size([g.n, g.c, g.h, g.w]), 1), weights = noise(size([g.o, g.c / g.groups, ...g.kernel]), 2), bias = noise(g.o, 3);
      const {oh, ow} = convolution(g, x, weights), d = noise(g.n * g.o * oh * ow, 4), want = convolution(g, x, weights, bias, d), o = optionsOf(g);
      const image = {channels: g.c, height: g.h, width: g.w}, all = {...image, ...o};
      const t = gpu.tensor(x, [g.n, g.c, g.h, g.w]), w = gpu.tensor(weights, [g.o, g.c / g.groups, ...g.kernel]), dt = gpu.tensor(d, [g.n, g.o, oh, ow]);
      const m = gpu.matrix(g.n, g.c * g.h * g.w, x), wm = gpu.matrix(g.o, weights.length / g.o, weights), b = gpu.matrix(1, g.o, bias), dm = gpu.matrix(g.n, g.o * oh * ow, d);
      const y = gpu.nn.conv2d(t, w, gpu.tensor(bias, [g.o]), {stride: g.stride, pad: g.pad, dilation: g.dilation, groups: g.groups});
      check(y.shape.join() === [g.n, g.o, oh, ow].join(), `shape ${y.shape}`);
      const plain = convolution(g, x, weights);
      for (const [what, got, values] of [
        ['tensors', y, want.y], ['matrices', gpu.nn.conv2d(m, wm, b, all), want.y], ['a column', gpu.nn.conv2d(m, wm, b.T, all), want.y], ['without bias', gpu.nn.conv2d(m, wm, null, all), plain.y],
        ['by images', gpu.nn.conv2dDataGrad(dt, w, {...o, height: g.h, width: g.w}), want.dx], ['by images as a matrix', gpu.nn.conv2dDataGrad(dm, wm, all), want.dx],
        ['by weights', gpu.nn.conv2dKernelGrad(dt, t, o), want.dw], ['by weights as a matrix', gpu.nn.conv2dKernelGrad(dm, m, all), want.dw],
        ['by bias', gpu.nn.conv2dBiasGrad(dt), want.db], ['by bias as a matrix', gpu.nn.conv2dBiasGrad(dm, all), want.db],
      ]) same(await got.read(), values, `${what} of ${JSON.stringify(g)}`, 2e-5);
      check(gpu.nn.conv2dKernelGrad(dt, t, o).shape.join() === w.shape.join() && gpu.nn.conv2dKernelGrad(dm, m, all).shape.join() === wm.shape.join(), 'shapes of gradients');
    }
  }),

  nnPooling: onBoth(async (gpu) => {
    for (const g of geometries) {
      const x = noise(size([g.n, g.c, g.h, g.w]), 5), {oh, ow} = walk({...g, n: 0}, () => {}), places = oh * ow, count = g.n * g.c * places, d = noise(count, 6);
      const largest = new Float64Array(count).fill(-Infinity), at = new Int32Array(count).fill(-1), sums = new Float64Array(count), seen = new Float64Array(count);
      walk(g, ({i, ch, place, from}) => {
        const to = (i * g.c + ch) * places + place;
        if (from < 0) return;
        if (x[from] > largest[to]) [largest[to], at[to]] = [x[from], from];
        sums[to] += x[from];
        seen[to]++;
      });
      const dmax = new Float64Array(x.length), dmean = new Float64Array(x.length), [kh, kw] = g.kernel;
      d.forEach((v, to) => { if (at[to] >= 0) dmax[at[to]] += v; });
      walk(g, ({i, ch, place, from}) => { const to = (i * g.c + ch) * places + place; if (from >= 0) dmean[from] += d[to] / seen[to]; });
      const {groups, ...o} = optionsOf(g), image = {channels: g.c, height: g.h, width: g.w};
      const t = gpu.tensor(x, [g.n, g.c, g.h, g.w]), m = t.reshape(g.n, -1).expr(), dt = gpu.tensor(d, [g.n, g.c, oh, ow]), dm = dt.reshape(g.n, -1).expr();
      for (const [what, got, values] of [
        ['largest', gpu.nn.maxPool(t, o), largest], ['largest of a matrix', gpu.nn.maxPool(m, {...o, ...image}), largest], ['gradient', gpu.nn.maxPoolGrad(dt, t, o), dmax],
        ['put back', gpu.nn.maxUnpool(dm, m, {...o, ...image}), dmax], ['means', gpu.nn.averagePool(t, o), sums.map((s, i) => seen[i] ? s / seen[i] : 0)],
        ['means with padding', gpu.nn.averagePool(m, {...o, ...image, includePad: true}), sums.map((s) => s / (kh * kw))],
        ['gradient of means', gpu.nn.averagePoolGrad(dt, {...o, height: g.h, width: g.w}), dmean],
      ]) same(await got.read(), values, `${what} of ${JSON.stringify(g)}`, 1e-5);
      check(gpu.nn.maxPoolGrad(dt, t, o).shape.join() === t.shape.join() && gpu.nn.averagePool(t, o).shape.join() === [g.n, g.c, oh, ow].join(), `${groups} shapes`);
    }
  }),

  nnBatchNorm: onBoth(async (gpu) => {
    const [n, c, p] = [3, 2, 4], x = noise(n * c * p, 7), d = noise(n * c * p, 8), scale = [1.5, -0.5], bias = [0.25, 1], epsilon = 1e-3;
    const feature = (i) => Math.floor(i / p) % c, of = (list, f) => [...list].filter((_, i) => feature(i) === f);
    const mean = [0, 1].map((f) => sum(of(x, f)) / (n * p)), variance = [0, 1].map((f) => sum(of(x, f).map((v) => (v - mean[f]) ** 2)) / (n * p));
    const inv = variance.map((v) => 1 / Math.sqrt(v + epsilon)), unit = Array.from(x, (v, i) => (v - mean[feature(i)]) * inv[feature(i)]);
    const y = unit.map((u, i) => scale[feature(i)] * u + bias[feature(i)]);
    const dbias = [0, 1].map((f) => sum(of(d, f))), dscale = [0, 1].map((f) => sum(of(d.map((v, i) => v * unit[i]), f)));
    const dx = Array.from(d, (v, i) => { const f = feature(i); return scale[f] * inv[f] * (v - (dbias[f] + unit[i] * dscale[f]) / (n * p)); });
    const norm = gpu.nn.batchNorm({epsilon}), flat = gpu.nn.batchNorm({epsilon, channels: c});
    const t = gpu.tensor(x, [n, c, 2, 2]), m = gpu.matrix(n, c * p, x), dt = gpu.tensor(d, [n, c, 2, 2]), s = gpu.matrix(1, c, scale), b = gpu.tensor(bias, [c]);
    const runMean = gpu.ones(1, c), runVariance = gpu.ones(1, c), one = norm.train(t, s, b, {mean: runMean, variance: runVariance, factor: 0.25});
    same(await one.y.read(), y, 'a batch', 1e-5);
    check(one.y.shape.join() === '3,2,2,2', 'its shape');
    same(await one.mean.read(), mean, 'means', 1e-6);
    same(await one.invStd.read(), inv, 'deviations', 1e-5);
    same(await runMean.read(), mean.map((v) => 0.75 + 0.25 * v), 'running means', 1e-6);
    same(await runVariance.read(), variance.map((v) => 0.75 + 0.25 * v * n * p / (n * p - 1)), 'running variances', 1e-6);
    const back = norm.backward(dt, t, s, one), mine = flat.backward(dt.reshape(n, -1).expr(), m, s, {mean: one.mean, invStd: one.invStd});
    for (const {dx: gx, dscale: gs, dbias: gb} of [back, mine]) {
      same(await gx.read(), dx, 'by x', 1e-5);
      same(await gs.read(), dscale, 'by scale', 1e-5);
      same(await gb.read(), dbias, 'by bias', 1e-5);
    }
    check(back.dx.shape.join() === '3,2,2,2', 'the shape of its gradient');
    const infer = Array.from(x, (v, i) => scale[feature(i)] * (v - 0.5) / Math.sqrt(2 + epsilon) + bias[feature(i)]);
    same(await norm.infer(t, s, b, gpu.full(1, c, 0.5), gpu.full(1, c, 2)).read(), infer, 'with given statistics', 1e-5);
    const two = flat.train(m, s, gpu.matrix(1, c, bias), {into: m});
    check(two.y === m, 'the matrix that it went into');
    same(await m.read(), y, 'in place', 1e-5);
    two.close();
    check(!m.closed && two.mean.closed, 'what is closed');
    one.close();
    await throws('ErrShape', 'another size', () => flat.train(m, s, s, {into: gpu.zeros(1, 1)}));
    await throws('ErrInvalid', 'one of two', () => flat.train(m, s, s, {mean: runMean}));
    await throws('ErrShape', 'other features', () => norm.infer(t, gpu.ones(1, 3), s, s, s));
    await throws('ErrInvalid', 'an unknown option', () => gpu.nn.batchNorm({eps: 1}));
  }),

  nnLosses: onBoth(async (gpu) => {
    const [n, k] = [4, 3], x = noise(n * k, 9).map((v) => 3 * v), labels = [2, 0, -1, 1], m = gpu.matrix(n, k, x), at = gpu.matrix(n, 1, labels, {dtype: 'int32'});
    const rows = Array.from({length: n}, (_, i) => [...x.subarray(k * i, k * (i + 1))]), softmax = rows.map((r) => r.map((v) => Math.exp(v) / sum(r.map(Math.exp))));
    same(await gpu.nn.crossEntropy(m, at).read(), softmax.map((p, i) => labels[i] < 0 ? 0 : -Math.log(p[labels[i]])), 'cross entropy', 1e-5);
    const grads = softmax.flatMap((p, i) => p.map((v, j) => labels[i] < 0 ? 0 : v - (labels[i] === j ? 1 : 0)));
    same(await gpu.nn.crossEntropyGrad(m, at.T).read(), grads, 'its gradient', 1e-6);
    same(await gpu.nn.crossEntropyGrad(m.tensor(n, k), at.tensor(n)).read(), grads, 'its gradient of tensors', 1e-6);
    const target = noise(n * k, 10), u = gpu.matrix(n, k, target);
    same([await gpu.nn.mse(m, u).value()], [sum(Array.from(x, (v, i) => (v - target[i]) ** 2)) / (n * k)], 'squares', 1e-5);
    same(await gpu.nn.mseGrad(m.tensor(2, 2, 3), u.tensor(2, 2, 3)).read(), Array.from(x, (v, i) => 2 / (n * k) * (v - target[i])), 'their gradient', 1e-6);
    same(await gpu.nn.dropout(m, m.greater(0), 0.5).read(), Array.from(x, (v) => v > 0 ? 2 * v : 0), 'dropout', 1e-6);
    const words = [3, 0, 0, 9], list = gpu.matrix(1, n, words, {dtype: 'int32'});
    same(await gpu.nn.embedding(m, list).read(), words.flatMap((w) => w < n ? rows[w] : [0, 0, 0]), 'embedding');
    const nested = gpu.nn.embedding(m, list.tensor(2, 2));
    check(nested.shape.join() === '2,2,3', `shape ${nested.shape}`);
    same(await nested.read(), words.flatMap((w) => w < n ? rows[w] : [0, 0, 0]), 'embedding of a tensor');
    const back = Array(5 * k).fill(0);
    words.forEach((w, i) => { if (w < 5) for (let j = 0; j < k; j++) back[w * k + j] += x[i * k + j]; });
    same(await gpu.nn.embeddingGrad(m, list, 5).read(), back, 'its gradient', 1e-6);
  }),

  nnOptimisers: onBoth(async (gpu) => {
    const p0 = [1, -2, 0.5], g0 = [[0.5, -1, 0], [0.25, 1, 2]], f = Math.sqrt;
    const rules = {
      sgd: [{rate: 0.1, decay: 0.01}, (s, g, p) => p - 0.1 * (g + 0.01 * p)],
      momentum: [{rate: 0.1, momentum: 0.5, nesterov: true}, (s, g, p) => { s.v = 0.5 * (s.v ?? 0) + g; return p - 0.1 * (g + 0.5 * s.v); }],
      adagrad: [{rate: 0.1, epsilon: 1e-6}, (s, g, p) => { s.s = (s.s ?? 0) + g * g; return p - 0.1 * (g && g / (f(s.s) + 1e-6)); }],
      rmsprop: [{rate: 0.1, rho: 0.5, epsilon: 1e-3}, (s, g, p) => { s.s = 0.5 * (s.s ?? 0) + 0.5 * g * g; return p - 0.1 * g / (f(s.s) + 1e-3); }],
      adam: [{rate: 0.1, beta1: 0.5, beta2: 0.75, epsilon: 1e-3, decay: 0.1, decoupled: true}, (s, g, p, t) => {
        s.m = 0.5 * (s.m ?? 0) + 0.5 * g;
        s.v = 0.75 * (s.v ?? 0) + 0.25 * g * g;
        return p * (1 - 0.01) - 0.1 * (s.m / (1 - 0.5 ** t)) / (f(s.v / (1 - 0.75 ** t)) + 1e-3);
      }],
      adadelta: [{rate: 0.5, rho: 0.5, epsilon: 1e-3}, (s, g, p) => {
        s.s = 0.5 * (s.s ?? 0) + 0.5 * g * g;
        const x = f((s.u ?? 0) + 1e-3) / f(s.s + 1e-3) * g;
        s.u = 0.5 * (s.u ?? 0) + 0.5 * x * x;
        return p - 0.5 * x;
      }],
    };
    const before = gpu.stats().liveBytes;
    for (const [name, [options, rule]] of Object.entries(rules)) {
      const optimiser = gpu.nn[name](options), p = gpu.matrix(1, 3, p0), states = p0.map(() => ({}));
      let want = p0;
      g0.forEach((g, t) => {
        optimiser.step(p, t === 0 ? gpu.tensor(g, [3]) : gpu.arange(3).mul(0).add(gpu.matrix(1, 3, g)));
        want = want.map((v, i) => rule(states[i], g[i], v, t + 1));
      });
      same(await p.read(), want, name, 1e-5);
      optimiser.close();
      p.close();
      await throws('ErrClosed', 'a closed optimiser', () => optimiser.step(p, p));
    }
    const rate = gpu.nn.sgd({rate: 1}), p = gpu.matrix(1, 1, [1]);
    rate.step(p, gpu.ones(1, 1));
    rate.rate = 0.5;
    rate.step(p, gpu.ones(1, 1));
    same(await p.read(), [-0.5], 'another rate');
    await throws('ErrInvalid', 'a rate below 0', () => { rate.rate = -1; });
    await throws('ErrInvalid', 'an unknown setting', () => gpu.nn.sgd({lr: 1}));
    await throws('ErrInvalid', 'a share of 1', () => gpu.nn.adam({beta1: 1}));
    await throws('ErrShape', 'a gradient of another size', () => rate.step(p, gpu.ones(1, 2)));
    await throws('ErrInvalid', 'a part of a matrix', () => rate.step(/** @type {any} */ (gpu.ones(2, 2).row(0)), gpu.ones(1, 2)));
    await throws('ErrInvalid', 'integers', () => rate.step(gpu.zeros(1, 1, {dtype: 'int32'}), p));
    p.close();
    rate.close();
    await gpu.sync();
    check(gpu.stats().liveBytes - before < 4096, `${gpu.stats().liveBytes - before} bytes are left`); // of gradients that nobody closed
  }),

  nnQuantisation: onBoth(async (gpu) => {
    const [rows, cols] = [20, 3], x = noise(rows * cols, 11), m = gpu.matrix(rows, cols, x), residual = gpu.zeros(rows, cols);
    const column = (j) => Array.from({length: rows}, (_, i) => x[i * cols + j]), average = (l) => sum(l) / l.length;
    const q = gpu.nn.quantise(m, {bits: 1, residual}), back = await q.dequantise().read();
    const want = Array.from(x, (v, i) => { const l = column(i % cols), high = v >= average(l); return average(l.filter((w) => w >= average(l) === high)); });
    same(back, want, 'of one bit', 1e-5);
    same(await residual.read(), Array.from(x, (v, i) => v - want[i]), 'what was lost', 1e-5);
    check(q.levels.dtype === 'uint8' && q.levels.shape.join() === '3,3' && q.bits === 1, 'levels');
    const eight = gpu.nn.quantise(m), close = await eight.dequantise().read();
    close.forEach((v, i) => {
      const l = column(i % cols), step = 8 * Math.sqrt(average(l.map((w) => (w - average(l)) ** 2))) / 256;
      check(Math.abs(v - x[i]) <= step / 2 * 1.01, `element ${i} is ${v}, was ${x[i]}`);
    });
    const numbers = gpu.nn.quantise(gpu.arange(2)); // of no matrix
    same(await numbers.dequantise().read(), [0, 1], 'numbers', 1e-6);
    numbers.close();
    q.close();
    eight.close();
    check(q.lower.closed && eight.levels.closed, 'closed');
    await throws('ErrInvalid', 'nine bits', () => gpu.nn.quantise(m, {bits: 9}));
    await throws('ErrShape', 'a residual of another size', () => gpu.nn.quantise(m, {residual: gpu.zeros(1, 1)}));
  }),

  nnTrains: onBoth(async (gpu) => {
    const x = gpu.tensor(noise(16 * 36, 12), [16, 1, 6, 6]), labels = gpu.matrix(16, 1, Array.from({length: 16}, (_, i) => i % 3), {dtype: 'int32'});
    const kernels = gpu.matrix(4, 9, noise(36, 13).map((v) => v / 3)), bias = gpu.matrix(1, 4, [0, 0, 0, 0]), weights = gpu.matrix(16, 3, noise(48, 14).map((v) => v / 4)), adam = gpu.nn.adam({rate: 0.05});
    const before = gpu.stats().liveBytes, losses = [];
    for (let i = 0; i < 12; i++) {
      const y = gpu.nn.conv2d(x, kernels, bias, {kernel: 3}).relu().eval(), pooled = gpu.nn.maxPool(y, {kernel: 2, stride: 2}).reshape(16, 16).eval();
      const logits = pooled.matmul(weights).eval(), d = gpu.nn.crossEntropyGrad(logits, labels).div(16).eval();
      losses.push(await gpu.nn.crossEntropy(logits, labels).mean().value());
      const dy = gpu.nn.maxPoolGrad(d.matmul(weights.T).reshape(16, 4, 2, 2), y, {kernel: 2, stride: 2}).reluGrad(y).eval();
      adam.step(weights, pooled.T.matmul(d));
      adam.step(kernels, gpu.nn.conv2dKernelGrad(dy, x, {kernel: 3}));
      adam.step(bias, gpu.nn.conv2dBiasGrad(dy));
      for (const t of [y, pooled, logits, d, dy]) t.close();
    }
    check(losses.at(-1) < 0.6 * losses[0] && losses.every(Number.isFinite), `losses ${losses}`);
    await gpu.sync();
    check(gpu.stats().liveBytes - before <= 2 * 4 * (36 + 4 + 48) + 64, `${gpu.stats().liveBytes - before} bytes are left`); // what Adam remembers
    adam.close();
    await gpu.sync();
    check(gpu.stats().liveBytes === before, `${gpu.stats().liveBytes - before} bytes are left at the end`);
  }),

  nnErrors: onBoth(async (gpu) => {
    const {nn} = gpu, x = gpu.zeros(2, 12), w = gpu.zeros(1, 4), image = {channels: 1, height: 3, width: 4}, whole = gpu.zeros(2, 12, {dtype: 'int32'}), t = gpu.tensor(x, [2, 1, 3, 4]);
    const other = await import('/dist/index.mjs').then(({init}) => init());
    for (const [code, what, run] of [
      ['ErrInvalid', 'an unknown option', () => nn.conv2d(x, w, null, {...image, kernel: 2, padding: 1})], ['ErrInvalid', 'no kernel', () => nn.conv2d(x, w, null, image)],
      ['ErrInvalid', 'no channels', () => nn.conv2d(x, w, null, {kernel: 2})], ['ErrInvalid', 'a kernel beyond the image', () => nn.conv2d(x, w, null, {...image, kernel: 9})],
      ['ErrShape', 'other images', () => nn.conv2d(x, w, null, {...image, channels: 2, kernel: 2})], ['ErrShape', 'other weights', () => nn.conv2d(x, w, null, {...image, kernel: 3})],
      ['ErrShape', 'a bias', () => nn.conv2d(x, w, gpu.zeros(1, 2), {...image, kernel: 2})], ['ErrInvalid', 'groups', () => nn.conv2d(x, w, null, {...image, kernel: 2, groups: 2})],
      ['ErrInvalid', 'a stride of 0', () => nn.maxPool(x, {...image, kernel: 2, stride: 0})], ['ErrInvalid', 'three pads', () => nn.maxPool(x, {...image, kernel: 2, pad: /** @type {any} */ ([1, 1, 1])})],
      ['ErrInvalid', 'integers', () => nn.maxPool(whole, {...image, kernel: 2})], ['ErrLimit', 'a pad', () => nn.maxPool(x, {...image, kernel: 2, pad: 2 ** 30})],
      ['ErrShape', 'a tensor of three dimensions', () => nn.maxPool(t.reshape(2, 3, 4), {kernel: 2})], ['ErrShape', 'other gradients', () => nn.maxPoolGrad(x, t, {kernel: 2})],
      ['ErrShape', 'columns that are no images', () => nn.conv2dBiasGrad(gpu.zeros(2, 7), {...image, kernel: 2})], ['ErrInvalid', 'labels that are not whole', () => nn.crossEntropy(x, gpu.zeros(2, 1))],
      ['ErrShape', 'too many labels', () => nn.crossEntropy(x, gpu.zeros(3, 1, {dtype: 'int32'}))], ['ErrShape', 'another target', () => nn.mse(x, w)], ['ErrInvalid', 'nothing kept', () => nn.dropout(x, x, 0)],
      ['ErrInvalid', 'a vocabulary', () => nn.embeddingGrad(x, gpu.zeros(2, 1, {dtype: 'int32'}), -1)], ['ErrForeign', 'two devices', () => nn.mse(x, other.zeros(2, 12))],
      ['ErrForeign', 'another device', () => other.nn.mse(x, x)], ['ErrInvalid', 'nothing', () => nn.conv2d(undefined, w, null, image)], ['ErrInvalid', 'options', () => nn.sgd(/** @type {any} */ (5))],
      ['ErrShape', 'a gradient in another order', () => nn.conv2dBiasGrad(nn.conv2dDataGrad(gpu.tensor(w, [1, 2, 2, 1]), gpu.tensor(w, [1, 1, 2, 2]), {height: 3, width: 4, kernel: 2}))],
    ]) await throws(code, what, run);
    other.close();
    const closed = gpu.zeros(2, 12), sgd = nn.sgd();
    closed.close();
    await throws('ErrClosed', 'a closed operand', () => nn.mse(x, closed).eval());
    await throws('ErrClosed', 'a closed parameter', () => sgd.step(closed, x));
    const big = gpu.zeros(1, 6);
    sgd.step(big, gpu.ones(1, 6));
    same(await big.read(), Array(6).fill(Math.fround(-0.01)), 'a step afterwards');
    const momentum = nn.momentum({rate: 1});
    momentum.step(big, gpu.zeros(1, 6));
    big.memory.resize(1, 3).assign(5);
    momentum.step(big, gpu.ones(1, 3)); // which only Go knows to be wrong
    await fails('ErrShape', 'a parameter of another size than before', () => big.read());
    same(await big.read(), [5, 5, 5], 'the parameter as it was');
    momentum.close();
    await fails('ErrLimit', 'what is too large', () => nn.maxPool(gpu.zeros(1, 16), {channels: 1, height: 4, width: 4, kernel: 1, pad: 20000}).read());
  }),
};
