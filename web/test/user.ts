// SPDX-License-Identifier: Apache-2.0

// Compiled, never run: what a user writes. package.test.mjs compiles it against the package as npm would publish it.

import { SubletError, init } from 'sublet';
import type { Cruncher, CruncherArray, Elements, Expr, FileArrays, Leak, Matrix, Optimiser, ParamInfo, Sparse, Tensor, View } from 'sublet';

export async function example(typedArray: Float32Array, gpuBuffer: GPUBuffer, gpuDevice: GPUDevice) {
  using gpu = await init({ power: 'high-performance', device: 'auto', threads: 2 });
  const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]);
  const b = gpu.wrap(typedArray, 3, 2, { release: () => {} });
  const g = gpu.wrapBuffer(gpuBuffer, 2, 2, { dtype: 'int32', stride: 4 });
  const c = a.matmul(b).add(1).relu();
  const values: Elements = await c.read();
  const mine: Float32Array = await c.read(new Float32Array(4));
  b.assign(c.T.matmul(a).T);
  await b.sync();
  using tmp = c.exp();
  const total: number = await tmp.sum().value();
  const square = gpu.fn('fn square(x: f32) -> f32 { return x * x; }');
  const d: Matrix = gpu.where(a.greater(0), a.apply(square), 0).sum({ axis: 1 }).eval();
  const part: View = d.slice(0, 1).assign(total);
  const m = gpu.map(2, 2);
  const first: number = await m.access(true, (data) => data[0] as number);
  try {
    await gpu.sync();
  } catch (error) {
    if (error instanceof SubletError && error.code === 'ErrCompile') throw error;
    await gpu.reopen();
    await gpu.reopen({ device: gpuDevice });
  }
  const live: number = gpu.stats().liveBytes;
  const held = gpu.fromBuffer(2, 2, typedArray, { dontOwnBuffer: true, order: 'column', stride: 4, padded: true });
  held.setValue(c).setValueFrom(1, 2, gpuBuffer, { setValueOnDevice: true }).rebind(typedArray, 2, 2, { aligned: true });
  const other: Matrix = held.alias().resize(3, 3).setShape(9, 1).swap(d).take(d).reset().move();
  const where: 'none' | 'host' | 'device' | 'both' = await other.location;
  using s = gpu.sparse(2, 2, { format: 'csc', values: [1], indices: [0], offsets: [0, 1, 1] });
  const w: Sparse = gpu.wrapSparse(2, 2, { format: 'blockColumn', values: typedArray, indices: new Int32Array(1), release: () => {} });
  const product: Matrix = s.append(1, 1, 5).matmul(d.T).eval();
  const pattern: Sparse = await s.mul(d).with(1).sparse({ format: 'csr' });
  const { offsets }: { offsets: Int32Array } = await (await gpu.sparseFrom(a, { format: 'csr' })).parts();
  using cr: Cruncher = await gpu.cruncher('fn f(i: u32) { x[i] = x[i] * by; }', { devices: ['own', 'low-power'], coherence: 'pin' });
  using x: CruncherArray = cr.array('x', typedArray, { partialRead: true, halo: 1 });
  x.write = false;
  await cr.compute(1, 'f', { global: 64, local: 8, inner: [4], signal: AbortSignal.timeout(1000) }, x, cr.scalar('by', 2));
  await cr.batch(async (batch) => { void batch.compute(1, 'f', { global: 64 }, x.touch()); return batch.remaining; });
  const rate: number = cr.last.shares.reduce((sum, { count, seconds }) => sum + count / seconds, x.data[0] ?? 0) + (cr.stats(1).shares[0] ?? 0) + cr.traffic().bytesUp;
  void rate;
  using params = await gpu.loadParams(fetch('m.params'), { strict: true, memoryLimit: 1e9, onProgress: ({ loaded, total }) => loaded / (total ?? 1) });
  const weights: Matrix | undefined = params.get('w')?.matrix();
  using arrays = await gpu.load('w.safetensors', { format: 'safetensors', names: ['w'], memoryLimit: 1e9 });
  const w2: Matrix | Tensor | undefined = arrays.get('w');
  const any: Matrix | Tensor | Sparse | FileArrays = await gpu.load(new File([], 'x.npy'), { dtype: 'float32' });
  const saved: Blob[] = [await gpu.save({ c, d }, { format: 'npz', compress: true }), await gpu.save(arrays, { format: 'safetensors' }), await c.save({ format: 'npy' })];
  any.close();
  const kept: Matrix = gpu.scope((scope) => scope.keep(c.eval()));
  const [one, two]: [Matrix, number[]] = await gpu.scope(async (scope): Promise<[Matrix, number[]]> => [scope.use(await c.sparse()).toDense(), scope.run(() => [1])]);
  const leaks: Leak[] = gpu.leaks();
  void [w2, saved, kept, one, two, leaks];
  const headers: ParamInfo[] = await gpu.scanParams(new Blob([]));
  const file: Blob = await gpu.saveParams(params);
  await gpu.saveParams([['c', c], ['d', { data: typedArray, shape: [2, 2] }]], { to: new WritableStream<Uint8Array>() });
  for (const [name, param] of params) await gpu.saveParams(new Map([[name, param]]), { type: 'stream' }).then((stream) => stream.cancel());
  using t: Tensor = gpu.tensor(typedArray, [2, 3, 4, 4]);
  const centred: Tensor = gpu.where(t.greater(0), t, 0).sub(t.mean({ axis: [0, 2, 3], keepDims: true })).slice(0, [1, 3], null);
  const y: Tensor = gpu.nn.conv2d(t, gpu.tensor(typedArray, [5, 3, 2, 2]), null, { pad: 1 });
  const plain: Expr = gpu.nn.maxPool(c, { channels: 1, height: 2, width: 2, kernel: 2 });
  using adam: Optimiser = gpu.nn.adam({ rate: 0.1 });
  adam.step(d, gpu.nn.mseGrad(d, c));
  const dx: Tensor = gpu.nn.batchNorm().backward(y, y, a, gpu.nn.batchNorm().train(y, a, a)).dx;
  void [centred.softmax({ axis: 1 }).expr(), plain, dx];
  const stack: Tensor = t.matmul(a).add(gpu.matmul(t, b));
  void [stack, a.sum({ axis: null }), a.trace(), gpu.trace(t), t.sum({ axis: [0, 1] }), t.cumSum({ axis: -1 }), a.sort({ axis: 0 })];
  // @ts-expect-error one dimension is sorted
  t.sort({ axis: [0, 1] });
  // @ts-expect-error there is no order of everything
  t.cumSum({ axis: null });
  // @ts-expect-error the diagonal has no axis
  a.trace({ axis: 0 });
  // @ts-expect-error a number is no factor
  t.matmul(2);
  // @ts-expect-error there is no such option
  gpu.nn.conv2d(t, t, null, { padding: 1 });
  // @ts-expect-error numbers are no memory
  gpu.wrapSparse(1, 1, { format: 'csc', values: [1], indices: [0], offsets: [0, 1] });
  // @ts-expect-error there are no such elements
  gpu.zeros(1, 1, { dtype: 'float64' });
  // @ts-expect-error a number is no matrix
  gpu.matmul(1, a);
  return [values, mine, g, part, first, live, where, w, product, pattern, offsets, weights, headers, file];
}
