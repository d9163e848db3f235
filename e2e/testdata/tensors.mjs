// SPDX-License-Identifier: Apache-2.0

// Tests of arrays of any number of dimensions, against references in plain JavaScript.

import {check, fails, noise, onBoth, same, throws} from './testing.mjs';

/** An array of a shape in float64. */
class Reference {
  constructor(shape, values) {
    this.shape = shape;
    this.values = values;
  }

  static of(shape, f) {
    const size = shape.reduce((n, d) => n * d, 1);
    return new Reference(shape, Float64Array.from({length: size}, (_, at) => {
      const index = [];
      let rest = at;
      for (const d of [...shape].reverse()) {
        index.unshift(rest % d);
        rest = Math.floor(rest / d);
      }
      return f(index);
    }));
  }

  /** The element at a place, of a broadcast array. */
  at(index) {
    const own = index.slice(index.length - this.shape.length);
    return this.values[this.shape.reduce((at, d, i) => at * d + (d === 1 ? 0 : own[i]), 0)];
  }

  zip(other, shape, f) { return Reference.of(shape, (index) => f(this.at(index), other.at(index))); }

  permute(axes) {
    return Reference.of(axes.map((a) => this.shape[a]), (index) => {
      const from = [];
      axes.forEach((a, i) => { from[a] = index[i]; });
      return this.at(from);
    });
  }

  /** What f makes of the elements along some dimensions, which are gone. */
  reduce(axes, f) {
    const kept = this.shape.map((_, i) => i).filter((i) => !axes.includes(i)), moved = this.permute([...kept, ...axes]);
    const count = axes.reduce((n, a) => n * this.shape[a], 1), shape = kept.map((i) => this.shape[i]);
    let at = 0;
    return Reference.of(shape, () => f([...moved.values.subarray(count * at, count * ++at)]));
  }

  /** What f makes of each row along a dimension. */
  along(axis, f) {
    const order = this.shape.map((_, i) => i);
    [order[axis], order[order.length - 1]] = [order.length - 1, axis];
    const moved = this.permute(order), n = this.shape[axis], out = [];
    for (let at = 0; at < moved.values.length; at += n) out.push(...f([...moved.values.subarray(at, at + n)]));
    const length = out.length / (moved.values.length / n);
    return new Reference(moved.shape.map((d, i) => i === order.length - 1 ? length : d), Float64Array.from(out)).permute(order);
  }
}

/** A tensor of noise with its reference. */
function both(gpu, shape, seed = 1) {
  const values = noise(shape.reduce((n, d) => n * d, 1), seed);
  return [gpu.tensor(values, shape), new Reference(shape, Float64Array.from(values))];
}

async function equal(tensor, reference, what, tolerance = 1e-6) {
  check(String(tensor.shape) === String(reference.shape), `${what}: shape ${tensor.shape}, want ${reference.shape}`);
  same(await tensor.read(), reference.values, what, tolerance);
}

/** The shape that two stretch to. */
const stretched = (a, b) => Array.from({length: Math.max(a.length, b.length)}, (_, i, n = Math.max(a.length, b.length)) => {
  const p = a[i - n + a.length] ?? 1, q = b[i - n + b.length] ?? 1;
  return p === 1 ? q : p;
});

const sum = (list) => list.reduce((a, b) => a + b, 0);

export const tests = {
  tensorShapes: onBoth(async (gpu) => {
    const [t, r] = both(gpu, [2, 3, 4, 5]);
    check(t.ndim === 4 && t.size === 120 && t.dtype === 'float32', 'what it is');
    await equal(t, r, 'itself');
    for (const axes of [[1, 0, 2, 3], [0, 2, 3, 1], [3, 1, 0, 2], [0, 1, 3, 2], [2, 3, 0, 1]]) await equal(t.permute(axes), r.permute(axes), `permuted ${axes}`);
    await equal(t.T, r.permute([3, 2, 1, 0]), 'T');
    await equal(t.transpose(0, -1, 1, 2), r.permute([0, 3, 1, 2]), 'transposed');
    await equal(t.reshape(6, -1).T.reshape(4, 5, 6), new Reference([4, 5, 6], new Reference([6, 20], r.values).permute([1, 0]).values), 'reshaped');
    await equal(t.slice(1, [1, 3], null, [-3, -1]), Reference.of([2, 4, 2], ([j, k, l]) => r.at([1, j + 1, k, l + 2])), 'sliced');
    await equal(t.slice(null, null, [2]), Reference.of([2, 3, 2, 5], ([i, j, k, l]) => r.at([i, j, k + 2, l])), 'sliced to the end');
    await equal(t.permute(2, 0, 3, 1).slice([1, 3], 0), Reference.of([2, 5, 3], ([k, l, j]) => r.at([0, j, k + 1, l])), 'sliced and permuted');
    await equal(t.slice(0, 0, 0).broadcastTo(3, 2, 5), Reference.of([3, 2, 5], ([, , l]) => r.at([0, 0, 0, l])), 'broadcast');
    await equal(t.slice(0, 0, 0).expandDims(-1).broadcastTo([5, 3]), Reference.of([5, 3], ([l]) => r.at([0, 0, 0, l])), 'broadcast down');
    check(String(t.expandDims(0).expandDims(3).squeeze().shape) === '2,3,4,5' && String(gpu.tensor([1, 2], [1, 2, 1]).squeeze(0).shape) === '2,1', 'squeezed');
    const m = gpu.matrix(2, 6, noise(12)), whole = gpu.tensor([1, -2, 3, 4], [2, 2], {dtype: 'int32'});
    same(await m.tensor(2, 3, 2).permute(1, 0, 2).expr().read(), [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11].map((i) => noise(12)[i]), 'of a matrix and back');
    same(await m.T.tensor([6, 2]).T.read(), noise(12), 'of a view');
    check(whole.dtype === 'int32' && whole.add(1).expr().shape.join() === '2,2', 'integers');
    same(await whole.astype('float32').div(2).read(), [0.5, -1, 1.5, 2], 'converted');
    check(gpu.tensor(m, [12]).expr().shape.join() === '1,12' && await gpu.tensor([7], []).value() === 7, 'one dimension and none');
    check(gpu.tensor(new Float32Array(0), [2, 0, 3]).sum({axis: 1}).shape.join() === '2,3', 'nothing');
    same(await gpu.tensor(new Float32Array(0), [2, 0, 3]).sum({axis: 1}).read(), [0, 0, 0, 0, 0, 0], 'the sums of nothing');
  }),

  tensorBroadcasting: onBoth(async (gpu) => {
    const [a, x] = both(gpu, [2, 3, 4, 5], 2);
    for (const shape of [[2, 3, 4, 5], [5], [4, 1], [3, 1, 1], [2, 1, 4, 1], [1, 3, 1, 5], [1], [], [1, 1, 1, 1, 1], [6, 2, 3, 4, 5], [2, 3, 1, 1]]) {
      const [b, y] = both(gpu, shape, 3), common = stretched(a.shape, shape);
      const add = x.zip(y, common, (u, v) => u + v);
      await equal(a.add(b), add, `plus (${shape})`);
      await equal(gpu.sub(b, a), y.zip(x, common, (u, v) => u - v), `(${shape}) minus`);
    }
    const [u, p] = both(gpu, [4, 1], 4), [v, q] = both(gpu, [3, 1, 5], 5);
    await equal(u.mul(v), p.zip(q, [3, 4, 5], (c, d) => c * d), 'both stretch');
    await equal(gpu.where(u.greater(0), v, 2), Reference.of([3, 4, 5], (i) => p.at(i) > 0 ? q.at(i) : 2), 'where');
    await equal(v.clamp(u, 0.5), Reference.of([3, 4, 5], (i) => Math.min(Math.max(q.at(i), p.at(i)), 0.5)), 'clamped');
    await equal(a.maximum(0.25).square(), x.zip(x, x.shape, (c) => Math.max(c, 0.25) ** 2), 'numbers');
    await equal(a.abs().pow(1.5), x.zip(x, x.shape, (c) => Math.abs(c) ** 1.5), 'powers', 1e-5);
    await equal(gpu.pow(2, a), x.zip(x, x.shape, (c) => 2 ** c), 'powers of a number', 1e-5);
    await equal(a.reshape(6, 20).add(gpu.matrix(1, 20, noise(20, 6))), Reference.of([6, 20], ([i, j]) => x.values[20 * i + j] + noise(20, 6)[j]), 'a matrix beside it');
    same(await gpu.tensor([1, 2, 3, 4], [2, 1, 2]).mul(gpu.tensor([10, 100], [2, 1], {dtype: 'float32'})).read(), [10, 20, 100, 200, 30, 40, 300, 400], 'in order');
    const z = gpu.tensor([1, 2, 3, -1], [1, 2, 1], {dtype: 'complex64'});
    same(await z.mul(z).permute(1, 2, 0).read(), [-3, 4, 8, -6], 'complex numbers', 1e-5);
    same(await z.imag().add(z.conj().real()).read(), [3, 2], 'their parts');
  }),

  tensorFunctions: onBoth(async (gpu) => {
    const [a] = both(gpu, [2, 3], 7), f = gpu.fn('fn f(x: f32, y: f32, z: f32) -> f32 { return x * y + z; }'), x = noise(6, 7);
    same(await a.apply(f, gpu.tensor([1, 2], [2, 1]), 3).read(), [...x].map((v, i) => v * (i < 3 ? 1 : 2) + 3), 'a function of ours', 1e-6);
    same(await gpu.apply(f, 2, a, a).read(), [...x].map((v) => 3 * v), 'of a number first', 1e-6);
  }),

  tensorReductions: onBoth(async (gpu) => {
    const [t, r] = both(gpu, [2, 3, 4, 5], 8), mean = (list) => sum(list) / list.length;
    const kinds = {
      sum: [(x, o) => x.sum(o), sum], max: [(x, o) => x.max(o), (l) => Math.max(...l)], mean: [(x, o) => x.mean(o), mean],
      variance: [(x, o) => x.var({...o, ddof: 1}), (l) => sum(l.map((v) => (v - mean(l)) ** 2)) / (l.length - 1)], norm: [(x, o) => x.norm2(o), (l) => Math.hypot(...l)],
      argMax: [(x, o) => x.argMax(o), (l) => l.indexOf(Math.max(...l))], logSumExp: [(x, o) => x.logSumExp(o), (l) => Math.log(sum(l.map(Math.exp)))],
      norm3: [(x, o) => x.normP(3, o), (l) => Math.cbrt(sum(l.map((v) => Math.abs(v) ** 3)))],
    };
    for (const [name, [run, f]] of Object.entries(kinds)) {
      for (const axis of [0, 2, -1, [0, 1], [1, 3], [0, 2, 3], [3, 0], [0, 1, 2, 3]]) {
        const list = [axis].flat().map((i) => i < 0 ? i + 4 : i).sort();
        await equal(run(t, {axis}), r.reduce(list, f), `${name} along ${axis}`, 1e-5);
      }
      await equal(run(t, undefined), r.reduce([0, 1, 2, 3], f), `${name} of all`, 1e-5);
    }
    check(t.sum({axis: [1, -1], keepDims: true}).shape.join() === '2,1,4,1' && t.sum({keepDims: true}).shape.join() === '1,1,1,1' && t.argMax({axis: 1}).dtype === 'int32', 'shapes');
    await equal(t.sub(t.mean({axis: [0, 2, 3], keepDims: true})).mean({axis: [0, 2, 3]}), new Reference([3], Float64Array.of(0, 0, 0)), 'centred');
    const softmax = (l) => { const e = l.map(Math.exp); return e.map((v) => v / sum(e)); };
    const running = (l) => l.map((_, i) => sum(l.slice(0, i + 1)));
    for (const axis of [0, 1, 2, 3]) {
      await equal(t.softmax({axis}), r.along(axis, softmax), `softmax ${axis}`);
      await equal(t.cumSum({axis}), r.along(axis, running), `sums ${axis}`, 1e-5);
      await equal(t.sort({axis}), r.along(axis, (l) => [...l].sort((a, b) => a - b)), `sorted ${axis}`, 0);
      await equal(t.topK(2, {axis}), r.along(axis, (l) => [...l].sort((a, b) => b - a).slice(0, 2)), `largest ${axis}`, 0);
      await equal(t.argSort({axis}), r.along(axis, (l) => l.map((_, i) => i).sort((a, b) => l[a] - l[b])), `order ${axis}`, 0);
    }
    await equal(t.softmax(), r.along(3, softmax), 'softmax of rows');
    same([await t.softmax({axis: null}).sum().value()], [1], 'softmax of all', 1e-5);
    same([await gpu.tensor([1, 2, 3, 4], [2, 2]).trace().value()], [5], 'trace');
  }),

  tensorProducts: onBoth(async (gpu) => {
    for (const [p, q, shape] of [
      [[3, 4], [4, 5], [3, 5]], [[2, 3, 4], [4, 5], [2, 3, 5]], [[2, 3, 4], [2, 4, 5], [2, 3, 5]], [[2, 1, 3, 4], [6, 4, 5], [2, 6, 3, 5]], [[3, 4], [2, 4, 5], [2, 3, 5]],
      [[4], [4], []], [[2, 3, 4], [4], [2, 3]], [[4], [2, 4, 5], [2, 5]], [[2, 0, 4], [2, 4, 5], [2, 0, 5]],
    ]) {
      const [a, x] = both(gpu, p, 9), [b, y] = both(gpu, q, 10), k = p.at(-1);
      const left = p.length === 1 ? new Reference([1, ...p], x.values) : x, right = q.length === 1 ? new Reference([...q, 1], y.values) : y;
      const full = [...shape.slice(0, shape.length - (p.length > 1 ? 1 : 0) - (q.length > 1 ? 1 : 0)), left.shape.at(-2), right.shape.at(-1)];
      const want = Reference.of(full, (i) => sum(Array.from({length: k}, (_, l) => left.at([...i.slice(0, -1), l]) * right.at([...i.slice(0, -2), l, i.at(-1)]))));
      await equal(a.matmul(b), new Reference(shape, want.values), `(${p}) by (${q})`, 1e-5);
    }
    const [a, x] = both(gpu, [2, 3, 4], 11), want = Reference.of([2, 3, 3], ([n, i, j]) => sum([0, 1, 2, 3].map((l) => x.at([n, i, l]) * x.at([n, j, l]))));
    await equal(a.matmul(a.transpose(0, 2, 1)), want, 'with its own transposes', 1e-5);
  }),

  tensorErrors: onBoth(async (gpu) => {
    const t = gpu.tensor(noise(24), [2, 3, 4]), m = gpu.zeros(2, 3), other = await import('/dist/index.mjs').then(({init}) => init());
    for (const [code, what, run] of [
      ['ErrShape', 'other sizes', () => t.add(gpu.zeros(3, 3))], ['ErrShape', 'another number', () => m.tensor(7)], ['ErrShape', 'a shape', () => t.reshape(5, -1)],
      ['ErrShort', 'too few values', () => gpu.tensor([1], [2])], ['ErrShape', 'too many values', () => gpu.tensor([1, 2, 3], [2])], ['ErrInvalid', 'no shape', () => gpu.tensor(new Float32Array(1))],
      ['ErrIndex', 'a dimension', () => t.permute(0, 1, 3)], ['ErrInvalid', 'twice', () => t.permute(0, 1, 1)], ['ErrInvalid', 'too few', () => t.permute(0, 1)],
      ['ErrIndex', 'an axis', () => t.sum({axis: 3})], ['ErrInvalid', 'an axis twice', () => t.sum({axis: [0, -3]})], ['ErrInvalid', 'no axis', () => t.sum({axis: 'x'})],
      ['ErrIndex', 'a range', () => t.slice([0, 3])], ['ErrIndex', 'backwards', () => t.slice([1, 0])], ['ErrIndex', 'too many ranges', () => t.slice(0, 0, 0, 0)], ['ErrInvalid', 'no range', () => t.slice('x')],
      ['ErrSize', 'a negative length', () => t.reshape(-2, 12)], ['ErrLimit', 'too many dimensions', () => t.reshape(Array(15).fill(1).concat([24, 1]))], ['ErrInvalid', 'half a length', () => t.reshape(1.5, 16)],
      ['ErrLimit', 'too many elements', () => gpu.zeros(1, 1).tensor(1).broadcastTo(2 ** 16, 2 ** 16)], ['ErrLimit', 'too many by stretching', () => gpu.zeros(1, 2 ** 16).tensor(2 ** 16, 1).add(gpu.zeros(1, 2 ** 16))],
      ['ErrShape', 'a product', () => t.matmul(t)], ['ErrShape', 'stacks', () => t.matmul(gpu.tensor(noise(60), [3, 4, 5]))], ['ErrInvalid', 'a product with a number', () => t.matmul(2)],
      ['ErrShape', 'a trace', () => t.trace()], ['ErrShape', 'squeezed', () => t.squeeze(0)], ['ErrInvalid', 'integers beside reals', () => t.add(gpu.tensor([1], [1], {dtype: 'int32'}))],
      ['ErrUnsupported', 'a root of integers', () => gpu.tensor([1], [1], {dtype: 'int32'}).sqrt()], ['ErrInvalid', 'nothing', () => t.add(undefined)], ['ErrForeign', 'two devices', () => t.add(other.zeros(1, 4))],
      ['ErrForeign', 'a tensor of another device', () => gpu.neg(other.tensor([1], [1]))], ['ErrInvalid', 'a tensor as a matrix', () => gpu.tril(t)], ['ErrInvalid', 'keepDims', () => t.sum({keepDims: 1})],
      ['ErrInvalid', 'a trace along an axis', () => m.trace({axis: 0})], ['ErrInvalid', 'an option that there is not', () => t.sum({keepdims: true})], ['ErrShape', 'nested arrays', () => gpu.tensor([[1], [2]], [2])],
    ]) await throws(code, what, run);
    await fails('ErrShape', 'the value of many', () => t.value());
    other.close();
    t.close();
    await throws('ErrClosed', 'a closed tensor', () => t.add(1));
  }),

  tensorMemory: onBoth(async (gpu) => {
    const before = gpu.stats().liveBytes, t = gpu.tensor(noise(24), [2, 3, 4]), u = t.permute(2, 1, 0).add(1).eval();
    same(await u.slice(0, 0).read(), [noise(24)[0] + 1, noise(24)[12] + 1], 'evaluated', 1e-6);
    t.close();
    u.close();
    await gpu.sync();
    check(gpu.stats().liveBytes === before, `${gpu.stats().liveBytes - before} bytes are left`);
    const sparse = gpu.sparse(2, 3, {format: 'csr', values: [1, 2], indices: [0, 2], offsets: [0, 1, 2]});
    same(await sparse.tensor(3, 1, 2).permute(1, 2, 0).add(sparse.tensor(1, 2, 3)).read(), [2, 0, 0, 0, 0, 4], 'a sparse matrix');
    const host = Float32Array.of(1, 2, 3, 4), wrapped = gpu.wrap(host, 2, 2), sgd = gpu.nn.sgd({rate: 1});
    sgd.step(wrapped, wrapped.tensor(2, 2).T);
    await wrapped.sync();
    same(host, [0, -1, 1, 0], 'a step of wrapped memory');
    const m = gpu.zeros(2, 3), view = m.tensor(3, 2);
    m.memory.resize(1, 1);
    await fails('ErrView', 'a tensor of what was resized', () => view.add(1).read());
  }),
};
