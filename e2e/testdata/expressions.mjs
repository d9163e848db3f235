// SPDX-License-Identifier: Apache-2.0

// Tests of what expressions compute.

import {init} from '/dist/index.mjs';
import {check, fails, noise, onBoth, reference, same, throws} from './testing.mjs';

export const tests = {
  mistakes: onBoth(async (gpu) => {
    // Errors name what was called, and say in its words what is wrong, at once where JavaScript can tell.
    const m = gpu.matrix([[1, 2, 3], [4, 5, 6]]), whole = m.astype('int32'), fn = (type, result = type) => gpu.fn(`fn f(x: ${type}) -> ${result} { return ${result}(x); }`);
    for (const [code, name, text, run] of [
      ['ErrInvalid', 'arange', 'step 0', () => gpu.arange(0, 5, 0)], ['ErrInvalid', 'takeRows', '1 is no matrix', () => m.takeRows(1)], ['ErrInvalid', 'kron', '2 is no matrix', () => gpu.kron(m, 2)],
      ['ErrInvalid', 'putDiag', '0 is no matrix', () => m.putDiag(0)], ['ErrInvalid', 'apply', 'f is a function of i32, and the elements of float32 are f32', () => m.apply(fn('i32'))],
      ['ErrInvalid', 'apply', 'convert with astype, or have one of i32', () => whole.apply(fn('i32', 'f32'))], ['ErrInvalid', 'apply', 'of u32', () => gpu.tensor(whole, [6]).apply(fn('u32'))],
      ['ErrShape', 'tensor', '(2, 3) with (-1, 4)', () => gpu.tensor(m, [-1, 4])], ['ErrSize', 'tensor', 'negative dimension -1', () => gpu.tensor(m, [-1, -1])],
      ['ErrShape', 'searchsorted', '2x3 by 2x3', () => m.searchsorted(m)], ['ErrNotSquare', 'eigh', '2x3', () => m.eigh()], ['ErrNotSquare', 'slogdet', '2x3', () => gpu.slogdet(m)], ['ErrNotSquare', 'eigvalsh', '2x3', () => m.eigvalsh()],
      ...['svd', 'qr', 'eigh', 'slogdet', 'eigvalsh', 'svdvals'].map((name) => ['ErrUnsupported', name, 'not defined for int32, but for float32 and float16; convert with astype', () => whole[name]()]),
    ]) {
      let error;
      await throws(code, `${name}, ${text}`, () => { try { run(); } catch (thrown) { throw error = thrown; } });
      check(error.message.startsWith(`sublet: ${name}: `) && error.message.includes(text), error.message);
    }
    for (const option of ['wasm', 'simdWasm', 'cruncherWasm']) {
      await fails('ErrInvalid', `${option} of a wrong kind`, () => init({device: 'simd', [option]: 5}));
      await fails('ErrInvalid', `${option} of nothing`, () => init({device: 'simd', [option]: null}));
    }
    same(await m.apply(fn('f32')).read(), [1, 2, 3, 4, 5, 6], 'a function of the type of the elements');
    same(await whole.apply(fn('i32')).read(), [1, 2, 3, 4, 5, 6], 'of whole numbers');
    for (const [what, x, shape] of [['an expression', gpu.tensor(m.add(0), [-1, 2]), '3,2'], ['data', gpu.tensor([1, 2, 3, 4, 5, 6], [-1, 3]), '2,3'], ['a typed array', gpu.tensor(Float32Array.of(1, 2, 3, 4, 5, 6), [3, -1]), '3,2'],
      ['rows', gpu.tensor([[1, 2, 3], [4, 5, 6]], [2, -1]), '2,3'], ['a method', m.tensor(-1), '6']]) {
      check(x.shape.join() === shape, `${what}: ${x.shape}`);
      same(await x.read(), [1, 2, 3, 4, 5, 6], what);
    }
    same(await gpu.matrix([[1, 2, NaN]]).searchSorted(gpu.matrix([[NaN, 0, 3]])).read(), [2, 0, 2], 'NaN comes last');
    same(await gpu.matrix([[1, 2]]).searchsorted(gpu.matrix([[NaN]])).read(), [2], 'NaN where there is none');
  }),

  grammar: onBoth(async (gpu) => {
    const m = gpu.matrix([[1, 2, 3], [4, 5, 6], [7, 8, 9]]), t = gpu.tensor([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]);
    for (const [what, x, want] of [
      ['rows', m, [1, 2, 3, 4, 5, 6, 7, 8, 9]], ['typed rows', gpu.matrix([Int8Array.of(1, -2), Int8Array.of(3, 4)]), [1, -2, 3, 4]], ['converted', gpu.matrix(1, 3, Float64Array.of(1, -2, 3), {dtype: 'int16'}), [1, -2, 3]],
      ['64 bits', gpu.matrix(1, 2, BigInt64Array.of(-5n, 7n), {dtype: 'float32'}), [-5, 7]], ['pairs', gpu.matrix([[1, 2], [3, 4]], {dtype: 'complex64'}), [1, 2, 3, 4]],
      ['column order', gpu.matrix([[1, 2], [3, 4]], {order: 'column'}).T, [1, 2, 3, 4]], ['a range', m.slice([1, 3], [0, 2]), [4, 5, 7, 8]], ['from the end', m.slice(-1, [-2]), [8, 9]],
      ['by name', m.add(1).slice({cols: 1}), [3, 6, 9]], ['of a part', m.slice([1]).slice(null, -1), [6, 9]], ['the last row', m.row(-1), [7, 8, 9]], ['the last column', m.T.col(-1), [7, 8, 9]],
      ['an axis', m.sum(0), [12, 15, 18]], ['kept', m.max({axis: 1, keepDims: true}), [3, 6, 9]], ['of a function', gpu.mean(m, 1), [2, 5, 8]], ['sorted', m.neg().sort(0).row(0), [-7, -8, -9]],
      ['clip', m.clip(2, 5), [2, 2, 3, 4, 5, 5, 5, 5, 5]], ['argmax', m.argmax(0), [2, 2, 2]], ['a tensor', t.sum([0, 2]), [14, 22]], ['clipped', gpu.clip(t, 2, 3).slice(0), [2, 2, 3, 3]],
    ]) same(await x.read(), want, what);
    m.slice([0, 2], [1, 3]).assign(0);
    m.set([[1, 0, 0], [4, 0, 0], [7, 8, 10]]);
    same([await m.item(-1, -1), await t.item(1, 0, 1), await m.slice(0, 0).item()], [10, 6, 1], 'elements');
    same(await gpu.zeros(1, 2).set(Float64Array.of(1.5, 2), {dtype: 'float32'}).read(), [1.5, 2], 'set of another type');
  }),

  shaping: onBoth(async (gpu) => {
    const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), b = gpu.matrix(2, 3, [7, 8, 9, 10, 11, 12]), row = gpu.matrix(1, 2, [5, 6]);
    const labels = gpu.matrix(1, 3, [1, -1, 0], {dtype: 'int32'});
    for (const [name, x, want] of /** @type {[string, any, number[]][]} */ ([
      ['arange', gpu.arange(4), [0, 1, 2, 3]], ['arange by', gpu.arange(3, -3, -2.5), [3, 0.5, -2]], ['arange of integers', gpu.arange(16777216, 16777219, 1, {dtype: 'int32'}), [16777216, 16777217, 16777218]],
      ['linspace', gpu.linspace(1, 2, 5), [1, 1.25, 1.5, 1.75, 2]], ['diag', row.diag(1), [0, 5, 0, 0, 0, 6, 0, 0, 0]], ['diag of a matrix', a.diag(), [1, 5]], ['diagonal', a.diagonal(1), [2, 6]],
      ['tril', a.tril(), [1, 0, 0, 4, 5, 0]], ['triu', a.triu(1), [0, 2, 3, 0, 0, 6]], ['band', a.band(0, 1), [1, 2, 0, 0, 5, 6]], ['oneHot', gpu.oneHot(labels, 2), [0, 0, 1, 1, 0, 0]],
      ['repeatRows', a.repeatRows(2), [1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6]], ['repeatCols', row.repeatCols(2), [5, 5, 6, 6]], ['tile', row.tile(2, 2), [5, 6, 5, 6, 5, 6, 5, 6]],
      ['vstack', gpu.vstack([a, b.neg()]), [1, 2, 3, 4, 5, 6, -7, -8, -9, -10, -11, -12]], ['hstack', gpu.hstack([row, row.matmul(a)]), [5, 6, 29, 40, 51]], ['flipRows', a.flipRows(), [4, 5, 6, 1, 2, 3]],
      ['flipCols', a.flipCols(), [3, 2, 1, 6, 5, 4]], ['roll', a.roll(1, 1), [6, 4, 5, 3, 1, 2]], ['pad', row.pad(1, 0, 0, 1, 9), [9, 9, 9, 5, 6, 9]], ['takeRows', a.takeRows(labels), [4, 5, 6, 0, 0, 0, 1, 2, 3]],
      ['takeCols', a.takeCols(labels), [2, 0, 1, 5, 0, 4]], ['kron', row.kron(row), [25, 30, 30, 36]], ['khatriRao', a.khatriRao(b), [7, 16, 27, 28, 40, 54, 10, 22, 36, 40, 55, 72]],
      ['outer', row.outer(row), [25, 30, 30, 36]], ['cross', a.cross(b), [-6, 12, -6, -6, 12, -6]], ['broadcastTo', row.broadcastTo(2, 2), [5, 6, 5, 6]],
      ['in one expression', gpu.vstack([a, b]).add(gpu.arange(3)).sum(), [78 + 4 * 3]],
    ])) same(await x.read(), want, name);
    await fails('ErrShape', 'stacks of other sizes', () => gpu.vstack([a, row]).read());
  }),
  random: onBoth(async (gpu) => {
    same(await gpu.randomBits(1, 4, 0, 0, {dtype: 'uint32'}).read(), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8], 'the first published vector');
    const bits = Array.from(await gpu.randomBits(9, 13, 5, 7, {dtype: 'uint32'}).read());
    same(await gpu.randomBits(9, 13, 5, 7, {dtype: 'uint32'}).T.read(), bits.map((_, k) => bits[k % 9 * 13 + Math.floor(k / 9)]), 'transposed');
    const u = await gpu.uniform(50, 40, -1, 1, 3).read(), z = await gpu.normal(50, 40, 0, 1, 3).read();
    const mean = (/** @type {any} */ v) => v.reduce((/** @type {number} */ s, /** @type {number} */ x) => s + x, 0) / v.length;
    check(Math.abs(mean(u)) < 0.07 && u.every((/** @type {number} */ x) => x >= -1 && x < 1), `uniform ${mean(u)}`);
    check(Math.abs(mean(z)) < 0.12 && Math.abs(mean(z.map((/** @type {number} */ x) => x * x)) - 1) < 0.2, `normal ${mean(z)}`);
    same((await gpu.permutation(20, 4).read()).sort((/** @type {number} */ a, /** @type {number} */ b) => a - b), [...Array(20).keys()], 'permutation');
  }),
  decompositions: onBoth(async (gpu) => {
    const n = 40, values = noise(n * n, 5).map((v, i) => v + (i % (n + 1) === 0 ? 8 : 0)), a = gpu.matrix(n, n, values);
    const eye = gpu.arange(n).T.equal(gpu.arange(n)), zero = new Float32Array(n * n), s = a.T.matmul(a);
    const none = (/** @type {any} */ x, /** @type {string} */ name, bound = 2e-5) => x.read().then((/** @type {any} */ v) => same(v, [...zero].slice(0, v.length), name, [...zero].fill(bound)));
    await none(a.matmul(a.inv()).sub(eye), 'inverse');
    await none(a.matmul(a.solve(eye)).sub(eye), 'solution');
    await none(a.lowerLU().matmul(a.upperLU()).sub(a.permutedLU()), 'LU');
    await none(s.cholesky().matmul(s.cholesky().T).div(s.abs().max()).sub(s.div(s.abs().max())), 'Cholesky');
    await none(a.qFactor().matmul(a.rFactor()).sub(a), 'QR');
    await none(a.qFactor().T.matmul(a.qFactor()).sub(eye), 'Q');
    await none(a.lstsq(a).sub(eye), 'least squares');
    await none(a.leftVectors().mul(a.singularValues()).matmul(a.rightVectors().T).sub(a), 'SVD', 1e-4);
    await none(s.eigenvectors().mul(s.eigenvalues()).sub(s.matmul(s.eigenvectors())).div(s.abs().max()), 'eigenvectors');
    await none(a.pinv().sub(a.inv()), 'pseudo-inverse');
    same(await a.rank().read(), [n], 'rank');
    same(await gpu.matrix(2, 2, [2, 1, 1, 3]).det().read(), [5], 'determinant', 1e-6);
    same(await gpu.matrix(2, 2, [1, 1, 0, 1]).matrixPower(5).read(), [1, 5, 0, 1], 'power');
    const singular = gpu.matrix(2, 2, [1, 2, 2, 4]);
    await fails('ErrSingular', 'a singular system', () => singular.solve(gpu.ones(2, 1)).add(1).read());
    await fails('ErrSingular', 'one number of an inverse', () => singular.inv().sum().value());
    const gone = gpu.matrix(2, 2, [1, 2, 2, 4]), pending = gone.inv().read(); // what was read before its operand was closed is no error of that
    gone.close();
    check(await pending.then((/** @type {any} */ v) => !v.every(Number.isFinite), (/** @type {any} */ e) => e.code === 'ErrSingular'), 'an inverse of a closed matrix');
    await fails('ErrSingular', 'a row of an inverse', () => singular.inv().row(0).read());
    await fails('ErrSingular', 'the reshaped inverse', () => singular.inv().reshape(1, 4).add(1).read());
    await fails('ErrNotPosDef', 'a semidefinite factor', () => singular.cholesky().read());
    await fails('ErrNotPosDef', 'a Cholesky factor', () => singular.neg().cholesky().read());
    check(!(await singular.inv().eval().read()).every(Number.isFinite), 'the inverse of a singular matrix that is only assigned is finite');
    await fails('ErrNotSquare', 'an inverse', () => gpu.zeros(2, 3).inv().read());
  }),
  complex: onBoth(async (gpu) => {
    const values = Float32Array.of(1, 2, 3, 0, 0, -1, 2, -1), z = gpu.matrix(2, 2, values, {dtype: 'complex64'});
    const real = gpu.matrix(2, 2, [1, 2, 3, 4]);
    for (const [name, x, want] of /** @type {[string, any, number[]][]} */ ([
      ['itself', z, [...values]], ['transposed', z.T, [1, 2, 0, -1, 3, 0, 2, -1]], ['conjugates', z.conjTranspose(), [1, -2, 0, 1, 3, 0, 2, 1]],
      ['times', z.mul(z), [-3, 4, 9, 0, -1, 0, 3, -4]], ['beside real numbers', real.add(z).sub(1), [1, 2, 4, 0, 2, -1, 5, -1]],
      ['product', z.matmul(z.conjTranspose()), [14, 0, 4, 4, 4, -4, 6, 0]], ['absolute values', z.slice([1, 2], [0, 1]).abs(), [1]],
      ['sum', z.sum(), [6, 0]], ['norm', z.norm2().square(), [20]], ['parts', z.real().complex(z.imag()), [...values]], ['imaginary', z.imag(), [2, 0, -1, -1]],
      ['equal', z.equal(3), [0, 1, 0, 0]], ['stacked', gpu.hstack([z.col(0), real.col(0)]), [1, 2, 1, 0, 0, -1, 3, 0]], ['where', gpu.where(real.greater(2), z, 7), [7, 0, 7, 0, 0, -1, 2, -1]],
      ['converted', real.astype('complex64'), [1, 0, 2, 0, 3, 0, 4, 0]], ['angles', z.angle().slice([1, 2], [0, 1]), [-Math.PI / 2]], ['exponential', gpu.full(1, 1, 0).complex(Math.PI).exp().add(1).abs(), [0]],
      ['one', gpu.eye(2, {dtype: 'complex64'}), [1, 0, 0, 0, 0, 0, 1, 0]], ['full', gpu.full(1, 2, 3, {dtype: 'complex64'}), [3, 0, 3, 0]], ['steps', gpu.arange(0, 3, 1, {dtype: 'complex64'}), [0, 0, 1, 0, 2, 0]],
    ])) same(await x.read(), want, name, want.map(() => 2e-6));
    same(await z.solve(z.matmul(z)).sub(z).abs().read(), [0, 0, 0, 0], 'a solution', Array(4).fill(1e-5));
    const memory = new Float32Array(10).fill(9), w = gpu.wrap(memory, 2, 2, {dtype: 'complex64', offset: 1, order: 'column'});
    w.assign(z);
    await w.sync();
    same(memory, [9, 9, 1, 2, 0, -1, 3, 0, 2, -1], 'wrapped memory');
    w.assign(real).row(1).assign(5);
    await w.sync();
    same(memory, [9, 9, 1, 0, 5, 0, 2, 0, 5, 0], 'real numbers in wrapped memory');
    throws('ErrShort', 'too few numbers', () => gpu.matrix(2, 2, [1, 2, 3, 4], {dtype: 'complex64'}));
    throws('ErrInvalid', 'as float32', () => z.astype('float32'));
    throws('ErrInvalid', 'with integers', () => z.add(gpu.ones(2, 2, {dtype: 'int32'})));
    throws('ErrUnsupported', 'compared', () => z.less(z));
    await fails('ErrUnsupported', 'two numbers as one', () => z.sum().value());
    await fails('ErrUnsupported', 'singular values', () => z.singularValues().read());
    await fails('ErrUnsupported', 'sparse', () => gpu.sparseFrom(z));
    same(await z.read(), [...values], 'after errors');
  }),
  elementwise: onBoth(async (gpu) => {
    const x = noise(37 * 5, 1), y = noise(37 * 5, 2).map((v) => v + (v < 0 ? -0.5 : 0.5));
    const a = gpu.matrix(37, 5, x), b = gpu.matrix(37, 5, y);
    const f = Math.fround;
    const unary = {
      neg: (v) => -v, abs: Math.abs, sign: Math.sign, floor: Math.floor, ceil: Math.ceil, trunc: Math.trunc,
      square: (v) => v * v, exp: Math.exp, tanh: Math.tanh, sigmoid: (v) => 1 / (1 + Math.exp(-v)),
      relu: (v) => Math.max(v, 0), logicalNot: (v) => v === 0 ? 1 : 0,
    };
    for (const [name, want] of Object.entries(unary)) {
      same(await a[name]().read(), Array.from(x, want), name, 2e-6);
      same(await gpu[name](a).read(), Array.from(x, want), name, 2e-6);
    }
    for (const name of ['sin', 'cos']) same(await a[name]().read(), Array.from(x, Math[name]), name, 2 ** -11); // all that WGSL promises
    for (const [name, want] of Object.entries({sqrt: Math.sqrt, log: Math.log, reciprocal: (v) => 1 / v})) {
      same(await b.abs()[name]().read(), Array.from(y, (v) => want(Math.abs(v))), name, 2e-6);
    }
    same(await gpu.matrix(1, 6, [0.5, 1.5, 2.5, -0.5, -1.5, 2.4]).round().read(), [0, 2, 2, -0, -2, 2], 'round');
    const binary = {
      add: (u, v) => f(u + v), sub: (u, v) => f(u - v), mul: (u, v) => f(u * v), div: (u, v) => u / v,
      minimum: Math.min, maximum: Math.max, equal: (u, v) => +(u === v), notEqual: (u, v) => +(u !== v),
      less: (u, v) => +(u < v), lessEqual: (u, v) => +(u <= v), greater: (u, v) => +(u > v), greaterEqual: (u, v) => +(u >= v),
      logicalAnd: (u, v) => +(u !== 0 && v !== 0), logicalOr: (u, v) => +(u !== 0 || v !== 0),
    };
    for (const [name, want] of Object.entries(binary)) {
      same(await a[name](b).read(), Array.from(x, (u, i) => want(u, y[i])), name, 1e-6);
      same(await a[name](0.25).read(), Array.from(x, (u) => want(u, 0.25)), `${name} a number`, 1e-6);
      same(await gpu[name](0.25, a).read(), Array.from(x, (u) => want(0.25, u)), `a number ${name}`, 2e-5 / Math.min(...x.map(Math.abs)));
    }
    for (const power of [-1, 0.5, 1, 2, 3, 4, -2, 0]) {
      same(await b.abs().pow(power).read(), Array.from(y, (v) => Math.abs(v) ** power), `pow ${power}`, 1e-5);
    }
    same(await gpu.matrix(1, 4, [2, 1, -1, 0], {dtype: 'int32'}).pow(-1).read(), [0, 1, -1, 0], 'pow -1 of whole numbers');
    await fails('ErrInvalid', 'a root of whole numbers', () => gpu.matrix(1, 1, [4], {dtype: 'int32'}).pow(0.5));
    same(await gpu.pow(2, a).read(), Array.from(x, (v) => 2 ** v), '2 to the power', 1e-6);
    same(await gpu.where(a.greater(0), a, b).read(), Array.from(x, (v, i) => v > 0 ? v : y[i]), 'where');
    same(await a.clamp(-0.25, 0.5).read(), Array.from(x, (v) => Math.min(Math.max(v, -0.25), 0.5)), 'clamp');
    const row = gpu.matrix(1, 5, [1, 2, 3, 4, 5]), col = gpu.matrix(37, 1, noise(37, 3));
    same(await row.add(a).sub(row).read(), x, 'a row stretched', 1e-6);
    same(await gpu.mul(row, col).read(), Array.from({length: 37 * 5}, (_, i) => f(noise(37, 3)[Math.floor(i / 5)] * (i % 5 + 1))), 'a row by a column');
  }),

  functions: onBoth(async (gpu) => {
    const x = [...noise(60, 4).map((v) => 3 * v), 0, 1, -1, 2.5, 40, -40, Infinity, -Infinity, NaN], y = [...noise(60, 5).map((v) => 2 * v), ...x.slice(60).reverse()];
    const a = gpu.matrix(1, x.length, x), b = gpu.matrix(1, y.length, y);
    const X = await a.read(), Y = await b.read(), f = Math.fround;
    /** Numbers that are as near as eight units in the last place, and special values that are the same. */
    const close = (got, want, what, ulps = 8) => got.forEach((g, i) => {
      const w = f(want[i]);
      check(g === w || g !== g && w !== w || Math.abs(g - want[i]) <= ulps * 2 ** -24 * Math.max(Math.abs(want[i]), 2 ** -102),
        `${what}(${X[i]}, ${Y[i]}) is ${g}, want ${want[i]}`);
    });
    const clip = (v) => v >= 0 && v < 1e-30 ? 1e-30 : v < 0 && v > -1e-30 ? -1e-30 : v;
    const unary = {
      tan: Math.tan, atan: Math.atan, asin: Math.asin, acos: Math.acos, sinh: Math.sinh, cosh: Math.cosh, asinh: Math.asinh, acosh: Math.acosh,
      atanh: Math.atanh, exp2: (v) => 2 ** v, exp10: (v) => 10 ** v, expm1: Math.expm1, log2: Math.log2, log10: Math.log10, log1p: Math.log1p,
      cbrt: Math.cbrt, rcbrt: (v) => 1 / Math.cbrt(v), rsqrt: (v) => 1 / Math.sqrt(v), softplus: (v) => Math.max(v, 0) + Math.log1p(Math.exp(-Math.abs(v))),
      elu: (v) => v < 0 ? Math.expm1(v) : v, silu: (v) => v / (1 + Math.exp(-v)), isNaN: (v) => +Number.isNaN(v), isFinite: (v) => +Number.isFinite(v),
      isInf: (v) => +(Math.abs(v) === Infinity), clippedLog: (v) => Math.log(Math.max(v, 1e-37)), clippedSqrt: (v) => Math.sqrt(Math.max(v, 0)),
      clippedRecip: (v) => 1 / clip(v), recipOrZero: (v) => v === 0 ? 0 : 1 / v, sign: Math.sign, neg: (v) => -v,
    };
    for (const [name, want] of Object.entries(unary)) {
      close(await a[name]().read(), Array.from(X, want), name);
      close(await gpu[name](a).read(), Array.from(X, want), name);
    }
    const n = gpu.matrix(1, 5, [1, 2, 3, 5, 0.5]);
    const factorials = [0, 0, Math.log(2), Math.log(24), Math.log(Math.PI) / 2], euler = 0.5772156649015329;
    same(await n.lgamma().read(), factorials, 'lgamma', 1e-6);
    same(await n.digamma().read(), [-euler, 1 - euler, 1.5 - euler, 25 / 12 - euler, -euler - 2 * Math.LN2], 'digamma', 1e-6);
    same(await n.erf().add(n.erfc()).read(), [1, 1, 1, 1, 1], 'erf and erfc', 2e-7);
    same(await n.gelu().read(), [0.8413447460685429, 1.9544997361036416, 2.99595030597, 4.99999856674, 0.345731230], 'gelu', 1e-6);
    const threshold = (u, v) => u > v ? u - v : u < -v || u !== u || v !== v ? u + v : 0;
    const binary = {
      hypot: Math.hypot, atan2: Math.atan2, fmod: (u, v) => u % v, softThreshold: (u, v) => f(threshold(u, v)), hardThreshold: (u, v) => Math.abs(u) < v ? 0 : u,
      clippedDiv: (u, v) => u / clip(v), squaredDiff: (u, v) => f(u - v) ** 2, maskNegative: (u, v) => v >= 0 ? u : 0, copyIf: (u, v) => u !== 0 ? v : 0,
      copyIfNot: (u, v) => u !== 0 ? 0 : v, logicalXor: (u, v) => +((u !== 0) !== (v !== 0)), sub: (u, v) => f(u - v),
      sigmoidGrad: (u, v) => f(u) * (v * f(1 - v)), reluGrad: (u, v) => v > 0 ? u : 0, eluGrad: (u, v) => v >= 0 ? u : u * f(1 + v),
      logGrad: (u, v) => u * f(Math.exp(-v)), sqrtGrad: (u, v) => u / (2 * v), recipGrad: (u, v) => -u * v * v, absGrad: (u, v) => u * Math.sign(v),
      sinGrad: (u, v) => u * Math.cos(v), cosGrad: (u, v) => -u * Math.sin(v), sinhGrad: (u, v) => u * Math.cosh(v), coshGrad: (u, v) => u * Math.sinh(v),
      asinhGrad: (u, v) => u / Math.hypot(1, v), tanhGrad: (u, v) => u * (f(1 - v) * f(1 + v)), atanhGrad: (u, v) => u / (f(1 - v) * f(1 + v)),
      asinGrad: (u, v) => u / Math.sqrt(f(1 - v) * f(1 + v)), acosGrad: (u, v) => -u / Math.sqrt(f(1 - v) * f(1 + v)),
    };
    for (const [name, want] of Object.entries(binary)) {
      close(await a[name](b).read(), Array.from(X, (u, i) => want(u, Y[i])), name);
      close(await gpu[name](a, b).read(), Array.from(X, (u, i) => want(u, Y[i])), name);
    }
    close(await a.pow(b).read(), Array.from(X, (u, i) => Math.abs(u) === 1 && Math.abs(Y[i]) === Infinity || u === 1 ? 1 : u ** Y[i]), 'pow');
    const p = await a.abs().logAddExp(b).read();
    close(p, Array.from(X, (u, i) => {
      const v = Y[i], w = Math.abs(u);
      return w === v ? w + Math.LN2 : Math.max(w, v) + Math.log1p(Math.exp(-Math.abs(w - v)));
    }), 'logAddExp', 16);
    const rest = (u, v) => { const r = u % v; return r !== 0 && r < 0 !== v < 0 ? f(r + v) : r; };
    const [u, v] = [gpu.matrix(1, 6, [7, -7, 7, -7, 5.5, 1e6]), gpu.matrix(1, 6, [2, 2, -2, -2, 0.25, 3])];
    same(await u.floorDiv(v).read(), [3, -4, -4, 3, 22, 333333], 'floorDiv');
    same(await u.mod(v).read(), [[7, 2], [-7, 2], [7, -2], [-7, -2], [5.5, 0.25], [1e6, 3]].map(([c, d]) => rest(c, d)), 'mod');
    const d = gpu.matrix(1, 2, [2, -3]), e = gpu.matrix(1, 2, [1, 2]), g = gpu.matrix(1, 2, [3, 0.5]);
    const sigma = (w) => 1 / (1 + Math.exp(-w));
    same(await gpu.logAddExpGrad(d, e, g).read(), [2 * sigma(2), -3 * sigma(-1.5)], 'logAddExpGrad', 1e-6);
    same(await gpu.mulExpDiff(d, e, g).read(), [2 * Math.exp(-2), -3 * Math.exp(1.5)], 'mulExpDiff', 1e-5);
    same(await gpu.mulDiv(d, e, g).read(), [2 / 3, -12], 'mulDiv', 1e-6);
    same(await gpu.powBaseGrad(d, e, g).read(), [6, -1.5 * 2 ** -0.5], 'powBaseGrad', 1e-5);
    same(await gpu.powExponentGrad(d, 4, e).read(), [0, -12 * Math.LN2], 'powExponentGrad', 1e-5);
    same(await gpu.copyIfEqual(d, gpu.matrix(1, 2, [2, 3]), g).read(), [3, 0], 'copyIfEqual');
    const [i, j] = [gpu.matrix(1, 4, [12, -7, 5, 1], {dtype: 'int32'}), gpu.matrix(1, 4, [10, 2, 0, 33], {dtype: 'int32'})];
    for (const [name, want] of Object.entries({
      bitwiseAnd: [8, 0, 0, 1], bitwiseOr: [14, -5, 5, 33], bitwiseXor: [6, -5, 5, 32], leftShift: [12288, -28, 5, 0], rightShift: [0, -2, 5, 0], floorDiv: [1, -4, 5, 0],
      mod: [2, 1, 0, 1], fmod: [2, -1, 0, 1],
    })) {
      same(await i[name](j).read(), want, `${name} of integers`);
    }
    same(await i.bitwiseNot().read(), [-13, 6, -6, -2], 'bitwiseNot');
    await throws('ErrUnsupported', 'the bits of floats', () => a.bitwiseAnd(b));
    await throws('ErrUnsupported', 'a gradient of integers', () => gpu.mulDiv(i, j, j));
  }),

  reductions: onBoth(async (gpu) => {
    for (const [rows, cols] of [[1, 1], [3, 7], [65, 129], [300, 2], [2, 5000]]) {
      const x = noise(rows * cols, rows + cols), a = gpu.matrix(rows, cols, x);
      const line = (axis, i) => axis === 1 ? Array.from(x.subarray(i * cols, (i + 1) * cols)) : Array.from({length: rows}, (_, r) => x[r * cols + i]);
      const sum = (v) => v.reduce((s, u) => s + u, 0);
      const all = Array.from(x), size = `${rows}x${cols}`;
      same(await a.sum().read(), [sum(all)], `sum ${size}`, 1e-5 * all.length);
      same(await a.max().read(), [Math.max(...all)], `max ${size}`);
      same(await a.min().read(), [Math.min(...all)], `min ${size}`);
      same(await a.mean().read(), [sum(all) / all.length], `mean ${size}`, 1e-5);
      for (const axis of [0, 1]) {
        const n = axis === 1 ? rows : cols;
        const lines = Array.from({length: n}, (_, i) => line(axis, i));
        check(String(a.sum({axis}).shape) === String(axis === 1 ? [rows, 1] : [1, cols]), 'shape of a sum');
        same(await a.sum({axis}).read(), lines.map(sum), `sum along ${axis} of ${size}`, 1e-5 * lines[0].length);
        same(await a.max({axis}).read(), lines.map((l) => Math.max(...l)), `max along ${axis} of ${size}`);
        same(await a.min({axis: axis - 2}).read(), lines.map((l) => Math.min(...l)), `min along ${axis} of ${size}`);
        same(await a.mean({axis}).read(), lines.map((l) => sum(l) / l.length), `mean along ${axis} of ${size}`, 1e-5);
        same(await gpu.prod(a.mul(0.1).add(1), {axis}).read(), lines.map((l) => l.reduce((p, v) => p * (1 + 0.1 * v), 1)), `prod along ${axis}`,
          lines.map((l) => 1e-5 * l.length * Math.abs(l.reduce((p, v) => p * (1 + 0.1 * v), 1))));
      }
      const soft = await a.softmax().read(), logs = await a.logSoftmax().read();
      for (let i = 0; i < rows; i++) {
        const e = line(1, i).map(Math.exp), z = sum(e);
        same(soft.subarray(i * cols, (i + 1) * cols), e.map((v) => v / z), `softmax of ${size}`, 1e-6);
        same(logs.subarray(i * cols, (i + 1) * cols), e.map((v) => Math.log(v / z)), `logSoftmax of ${size}`, 1e-5);
      }
    }
    check(await gpu.matrix(2, 2, [1, 2, 3, 4]).sum().value() === 10, 'value');
    const m = gpu.matrix(2, 3, [1, 5, 5, -2, 0, 9]);
    const reduced = [
      ['var', m.var(), [(1 + 25 + 25 + 4 + 81) / 6 - 9]], ['sample var', m.var({axis: 1, ddof: 1}), [16 / 3, 103 / 3]],
      ['std', m.std({axis: 0}), [1.5, 2.5, 2]], ['norm1', m.norm1(), [22]], ['norm2', gpu.norm2(m, {axis: 0}), [Math.sqrt(5), 5, Math.sqrt(106)]],
      ['normInf', m.normInf({axis: 1}), [5, 9]], ['normP', m.normP(3), [Math.cbrt(1 + 125 + 125 + 8 + 729)]],
      ['logSumExp', m.logSumExp({axis: 1}), [Math.log(Math.E + 2 * Math.exp(5)), Math.log(Math.exp(-2) + 1 + Math.exp(9))]],
      ['any', m.any({axis: 0}), [1, 1, 1]], ['all', m.all({axis: 1}), [1, 0]], ['trace', m.trace(), [1]],
      ['softmax', m.softmax({axis: null}).sum(), [1]], ['columns', m.softmax({axis: 0}).sum({axis: 0}), [1, 1, 1]],
      ['hardmax', m.hardmax(), [0, 1, 0, 0, 0, 1]], ['hardmax of columns', m.hardmax({axis: 0}), [1, 1, 0, 0, 0, 1]],
      ['hardmax of all', m.hardmax({axis: null}), [0, 0, 0, 0, 0, 1]],
    ];
    const tops = gpu.matrix(2, 4, [3, NaN, 1, 3, -1, 7, 0, -2]);
    reduced.push(['sort', tops.sort(), [1, 3, 3, NaN, -2, -1, 0, 7]], ['sort columns', m.sort({axis: 0}), [-2, 0, 5, 1, 5, 9]],
      ['topK', tops.topK(2), [NaN, 3, 7, 0]], ['cumSum', m.cumSum(), [1, 6, 11, -2, -2, 7]], ['cumProd', m.cumProd({axis: 0}), [1, 5, 5, -2, 0, 45]], ['topK of columns', m.topK(1, {axis: 0}), [1, 5, 9]]);
    check(String(await tops.argSort().read()) === '2,0,3,1,3,0,2,1', 'argSort');
    check(String(await tops.argTopK(3).read()) === '1,0,3,1,2,0', 'argTopK');
    for (const [what, expr, want] of reduced) same(await expr.read(), want, what, 1e-5);
    for (const [what, expr, want] of [['argMax', m.argMax({axis: 1}), [1, 2]], ['argMin', m.argMin(), [3]], ['countNonzero', m.countNonzero({axis: 0}), [2, 1, 2]]]) {
      check(expr.dtype === 'int32', `${what} is ${expr.dtype}`);
      const got = await expr.read();
      check(got instanceof Int32Array && String(got) === String(want), `${what} is ${got}`);
    }
  }),

  products: onBoth(async (gpu) => {
    const sizes = [1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 65, 129, 257];
    const shapes = sizes.flatMap((n, i) => [
      [n, n, n], [n, sizes[(i + 3) % sizes.length], sizes[(i + 7) % sizes.length]], [1, n, 33], [33, n, 1],
    ]);
    for (const [m, k, n] of shapes) {
      const x = noise(m * k, m + k), y = noise(k * n, k + n);
      const a = gpu.matrix(m, k, x), b = gpu.matrix(k, n, y);
      const {c, bound} = reference((i, l) => x[i * k + l], (l, j) => y[l * n + j], m, k, n);
      same(await a.matmul(b).read(), c, `${m}x${k} by ${k}x${n}`, bound);
      same(await b.T.matmul(a.T).T.read(), c, `${m}x${k} by ${k}x${n} transposed`, bound);
      const moved = await gpu.matmul(a, b).mul(2).add(1).read();
      same(moved, c.map((v) => 2 * v + 1), `${m}x${k} by ${k}x${n} and what follows`, bound.map((v, i) => 2 * v + 2 ** -22 * (1 + Math.abs(c[i]))));
      a.close();
      b.close();
    }
    for (const [m, k, n] of [[0, 3, 2], [2, 0, 3], [2, 3, 0], [0, 0, 0]]) {
      same(await gpu.zeros(m, k).matmul(gpu.zeros(k, n)).read(), Array(m * n).fill(0), `${m}x${k} by ${k}x${n}`);
    }
  }),

  layouts: onBoth(async (gpu) => {
    const x = noise(20 * 30, 5), at = (i, j) => x[i * 30 + j];
    const base = gpu.wrap(x, 20, 30);
    const a = base.slice([3, 20], [2, 29]), b = base.slice([0, 13], [1, 28]).T; // 17x27, 27x13
    const {c, bound} = reference((i, l) => at(i + 3, l + 2), (l, j) => at(j, l + 1), 17, 27, 13);
    same(await a.matmul(b).read(), c, 'product of parts', bound);
    const d = gpu.matrix(17, 13, undefined, {order: 'column'});
    d.assign(a.matmul(b));
    same(await d.read(), c, 'product stored by columns', bound);
    same(await base.row(4).read(), x.subarray(120, 150), 'row');
    same(await base.col(7).read(), Array.from({length: 20}, (_, i) => at(i, 7)), 'column');
    same(await base.reshape(30, 20).read(), x, 'reshape');
    same(await base.T.reshape(20, 30).read(), Array.from({length: 600}, (_, i) => at(i % 20, Math.floor(i / 20))), 'reshape of a transpose');
    same(await base.add(0).slice([1, 3], [4, 6]).read(), [at(1, 4), at(1, 5), at(2, 4), at(2, 5)], 'part of an expression');
    same(await d.T.slice([2, 4], [0, 5]).read(), [...Array(10).keys()].map((i) => c[(i % 5) * 13 + 2 + Math.floor(i / 5)]), 'part of a transpose',
      Array(10).fill(Math.max(...bound)));
    const v = gpu.zeros(4, 4);
    v.slice([1, 3], [1, 3]).assign(5);
    v.row(0).assign(gpu.matrix(1, 4, [1, 2, 3, 4]));
    v.T.row(3).assign(v.row(0));
    same(await v.read(), [1, 2, 3, 1, 0, 5, 5, 2, 0, 5, 5, 3, 0, 0, 0, 4], 'assignments to parts');
    v.slice([0, 3]).assign(v.slice([1, 4]).add(10)); // the two overlap
    same(await v.read(), [10, 15, 15, 12, 10, 15, 15, 13, 10, 10, 10, 14, 0, 0, 0, 4], 'overlapping');
    await throws('ErrShape', 'another size', () => v.row(0).assign(gpu.zeros(1, 3)));
  }),

  elementTypes: onBoth(async (gpu) => {
    const i = gpu.matrix(1, 4, new Int32Array([7, -7, 2 ** 31 - 1, 0]));
    check(i.dtype === 'int32', i.dtype);
    same(await i.div(2).read(), [3, -3, 2 ** 30 - 1, 0], 'int32 divided');
    same(await i.add(1).read(), [8, -6, -(2 ** 31), 1], 'int32 wraps');
    const u = gpu.matrix(1, 2, new Uint32Array([2 ** 32 - 1, 5]));
    same(await u.sub(6).read(), [2 ** 32 - 7, 2 ** 32 - 1], 'uint32');
    for (const [Array, dtype] of /** @type {[any, any][]} */ ([
      [Int8Array, 'int8'], [Uint8Array, 'uint8'], [Int16Array, 'int16'], [Uint16Array, 'uint16'],
    ])) {
      const mine = Array.from([1, 2, 3, 250, 100, 6, 7, 77, 120]), x = gpu.wrap(mine, 3, 3), y = gpu.matrix(3, 3, mine);
      check(x.dtype === dtype && y.dtype === dtype, `${dtype} of its array`);
      same(await x.add(y).read(), mine.map((/** @type {number} */ v) => v + v), `${dtype} wraps`);
      const squares = globalThis.Array.from(mine, (v, i) => [0, 1, 2].reduce((sum, k) => sum + mine[i - i % 3 + k] * mine[3 * k + i % 3], 0));
      same(await x.matmul(y).astype('int32').read(), squares, `${dtype} product`);
      x.slice([1, 3], [1, 3]).assign(y.slice([0, 2], [0, 2]));
      await x.sync();
      same(mine, Array.from([1, 2, 3, 250, 1, 2, 7, 250, 100]), `${dtype} window`);
      const flags = x.greater(2).astype('bool'), some = await flags.read();
      check(some instanceof Uint8Array && flags.dtype === 'bool', 'bool');
      same(some, mine.map((/** @type {number} */ v) => Number(v > 2)), 'bool');
      x.close(), y.close();
    }
    await throws('ErrInvalid', 'numbers of no element type', () => gpu.wrap(new Float64Array([1, 2]), 1, 2));
    const h = gpu.matrix(3, 3, [1, 2, 3, 4, 5, 6, 7, 8, 0.1], {dtype: 'float16'}); // an odd number of halves
    const real = await h.astype('float32').read();
    same(real, [1, 2, 3, 4, 5, 6, 7, 8, 0.1], 'float16', [0, 0, 0, 0, 0, 0, 0, 0, 4e-5]);
    check((await h.read()).length === 9, 'float16 read');
    same(await h.matmul(h).astype('float32').read(), [30, 36, 15.3, 66, 81, 42.6, 39.7, 54.8, 69.01], 'float16 product', 0.03);
    same(await gpu.matrix(1, 3, [1.9, -1.9, 3e9]).astype('int32').read(), [1, -1, 2147483647], 'to int32', [0, 0, 128]);
    same(await i.astype('float32').mul(0.5).read(), [3.5, -3.5, 2 ** 30, 0], 'from int32');
    const twice = gpu.fn('fn twice(x: i32) -> i32 { return x * 2; }');
    same(await gpu.matrix(1, 2, new Int32Array([3, -4])).apply(twice).read(), [6, -8], 'a function of integers');
    const into = new Float32Array(6).fill(9);
    check(await gpu.full(1, 4, 2).read(into) === into, 'read returns the array that it was given');
    same(into, [2, 2, 2, 2, 9, 9], 'read into a longer array');
  }),

  functions: onBoth(async (gpu) => {
    const blend = gpu.fn(`
      // fn wrong(x: f32) -> f32 is not the first function
      const scale: f32 = 2.0;
      fn blend(x: f32, y: f32, t: f32) -> f32 { return scale * mix(x, y, t) + helper(x); }
      fn helper(x: f32) -> f32 { return select(0.0, 1.0, x > 0.0); }`);
    check(blend.name === 'blend' && blend.arity === 3, `${blend.name} ${blend.arity}`);
    const a = gpu.matrix(1, 2, [1, -1]), b = gpu.matrix(1, 2, [3, 3]);
    same(await a.apply(blend, b, 0.5).mul(10).read(), [50, 20], 'method');
    same(await gpu.apply(blend, 1, b, a).read(), [7, -1], 'function');
    await throws('ErrInvalid', 'arguments', () => a.apply(blend));
    for (const text of ['', 'let x = 1;', 'fn f() -> f32 { return 1.0; }', 'fn f(', '/* fn f(x: f32) -> f32 {} */', '(', ')fn x',
      '/* /* */ fn f(x: f32) -> f32 { return x; } */', '/* // */ fn f() -> f32 { return 1.0; } // fn g(x: f32) {}']) {
      await throws('ErrSyntax', JSON.stringify(text), () => gpu.fn(text));
    }
    const wrong = gpu.fn('fn wrong(x: f32) -> f32 {\n  return nothing(x);\n}');
    let error;
    await a.apply(wrong).read().catch((e) => { error = e; });
    check(error?.code === 'ErrCompile' && /line 2: .*nothing/.test(error.message), `the message names the place: ${error}`);
    // Names are a function's own, and may be those of what surrounds it.
    const [twice, thrice] = [2, 3].map((n) => gpu.fn(`/* /* */ */ fn apply(x: f32) -> f32 { return store * x; } const store = ${n}.0;`));
    same(await a.apply(twice).add(a.apply(thrice)).read(), [5, -5], 'functions of one name');
    blend.close();
    await throws('ErrClosed', 'a closed function', () => a.apply(blend, b, 1));
  }),

  large: onBoth(async (gpu) => {
    let deep = gpu.matrix(1, 3, [1, 2, 3]);
    for (let i = 0; i < 20000; i++) deep = deep.add(1);
    same(await deep.read(), [20001, 20002, 20003], 'a deep expression');
    for (let i = 0; i < 20000; i++) deep = deep.add(1);
    await fails('ErrLimit', 'a deeper one', () => deep.read());
    let shared = gpu.matrix(1, 1, [1]).mul(1);
    for (let i = 0; i < 60; i++) shared = shared.add(shared).mul(0.5);
    same(await shared.read(), [1], 'shared parts');
    const rows = 70001, tall = gpu.matrix(rows, 3, Float32Array.from({length: rows * 3}, (_, i) => i % 100));
    const sums = await tall.sum({axis: 1}).read();
    check(sums[70000] === (210000 % 100) + (210001 % 100) + (210002 % 100), 'beyond 65,535 rows');
    same(await tall.T.row(2).slice([0, 1], [69999, 70001]).read(), [(69999 * 3 + 2) % 100, (70000 * 3 + 2) % 100], 'the end of a long row');
  }),
};
