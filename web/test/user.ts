// SPDX-License-Identifier: Apache-2.0

// Compiled, never run: what a user writes. package.test.mjs compiles it against the package as npm would publish it.

import { SubletError, init } from 'sublet';
import cruncherWasm from 'sublet/wasm-cruncher';
import simdWasm from 'sublet/wasm-simd';
import wasm from 'sublet/wasm';
import type {
  Colormap, Cruncher, CruncherArray, CruncherPipeline, CruncherTask, DType, DevicePipeline, DevicePool, DrawOptions, Elements, Expr, FileArrays, Float16Elements, Gpu, Graph, GraphOutput, Leak,
  Matrix, Optimiser, ParamInfo, Signal, Sparse, Tensor, View,
} from 'sublet';

export async function example(typedArray: Float32Array, gpuBuffer: GPUBuffer, gpuDevice: GPUDevice) {
  using gpu = await init({ wasm, simdWasm, cruncherWasm, power: 'high-performance', device: 'auto', threads: 2 });
  const a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]);
  const b = gpu.wrap(typedArray, 3, 2, { release: () => {} });
  const g = gpu.wrapBuffer(gpuBuffer, 2, 2, { dtype: 'int32', stride: 4 });
  const c = a.matmul(b).add(1).relu();
  const values: Elements = await c.read();
  const mine: Float32Array = await c.read(new Float32Array(4));
  b.assign(c.T.matmul(a).T);
  await b.sync();
  using tmp = c.exp();
  await drawn(gpu, c);
  const total: number = await tmp.sum().value();
  const square = gpu.fn('fn square(x: f32) -> f32 { return x * x; }');
  const d: Matrix = gpu.where(a.greater(0), a.apply(square), 0).sum({ axis: 1 }).eval();
  const part: View = d.slice([0, 1], 0).assign(total);
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
  const held = gpu.fromBuffer(typedArray, 2, 2, { dontOwnBuffer: true, order: 'column', stride: 4, padded: true });
  held.memory.setValue(c).memory.setValueFrom(gpuBuffer, 1, 2, { setValueOnDevice: true }).memory.rebind(typedArray, 2, 2, { aligned: true });
  const other: Matrix = held.memory.alias().memory.resize(3, 3).memory.setShape(9, 1).memory.swap(d).memory.take(d).memory.reset().memory.move();
  const nested: Matrix = gpu.matrix([[1, 2], [3, 4]]).set([[5, 6], [7, 8]]).set(new Float64Array(4), { dtype: 'float32' });
  void [gpu.tensor([[[1]], [[2]]]).sum([0, 2]), a.sum(0), await a.item(-1, 0), a.clip(0, 1), gpu.clip(a, 0, 1), a.slice({ cols: [1, null] }), nested, a.std({ axis: 0, keepDims: true, ddof: 1 })];
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
  using pool: DevicePool = await cr.pool({ mode: 'round-robin' });
  using task: CruncherTask = cr.task(1, 'f', { global: 64, broadcast: true, callback: async (error) => { void error?.code; } }, x.as('y'));
  pool.enqueue(task, task);
  using pipe: CruncherPipeline = await cr.pipeline([{ cruncher: cr, steps: [{ kernels: 'f', global: 64 }], inputs: [x], hidden: [cr.scalar('by', 2)], outputs: [cr.array('z', 64)] }]);
  using alone: DevicePipeline = await cr.devicePipeline([{ steps: [{ kernels: 'f', global: 64 }], outputs: [x] }], { device: 0 });
  const came: boolean = await pipe.push(null, [x]) && await alone.feed({ signal: AbortSignal.timeout(1000) });
  void [await pool.finish() + (pool.completed[0] ?? 0), came];
  using graph: Graph = await gpu.graph({ mode: 'fifo', gpus: [gpu] });
  graph.task('t', ({ x }, { signals, setSignals }) => { setSignals('y', signals('x')); return x; }, { inputs: ['x'], outputs: [{ name: 'y', inPlace: 'x' }], priority: 7, prefer: gpu });
  const signal: Signal[] = ['eof'], output: GraphOutput<Matrix> = graph.output('t.y', { pull: { openOn: signal, ask: (value) => value.rows > 1 } });
  await graph.input('t.x').push(c, { signals: signal });
  const { value: last }: { value: Matrix } = await output.take();
  void last;
  using params = await gpu.loadParams(fetch('m.params'), { strict: true, memoryLimit: 1e9, onProgress: ({ loaded, total }) => loaded / (total ?? 1) });
  const weights: Matrix | undefined = params.get('w')?.matrix();
  using arrays = await gpu.load('w.safetensors', { format: 'safetensors', names: ['w'], memoryLimit: 1e9 });
  const w2: Matrix | Tensor | undefined = arrays.get('w');
  const any: Matrix<any> | Tensor<any> | Sparse<any> | FileArrays = await gpu.load(new File([], 'x.npy'), { dtype: 'float32' });
  const saved: Blob[] = [await gpu.save({ c, d }, { format: 'npz', compress: true }), await gpu.save(arrays, { format: 'safetensors' }), await c.save({ format: 'npy' })];
  any.close();
  const kept: Matrix = gpu.scope((scope) => scope.keep(c.eval()));
  const [one, two]: [Matrix, number[]] = await gpu.scope(async (scope): Promise<[Matrix, number[]]> => [scope.use(await c.sparse()).toDense(), scope.run(() => [1])]);
  const leaks: Leak[] = gpu.leaks();
  void [w2, saved, kept, one, two, leaks];
  const headers: ParamInfo[] = await gpu.scanParams(new Blob([]));
  const file: Blob = await gpu.saveParams(params);
  await gpu.saveParams([['c', c], ['t', gpu.tensor([1, 2], [2, 1, 1])], ['d', { data: typedArray, shape: [2, 2] }]], { to: new WritableStream<Uint8Array>() });
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
  // @ts-expect-error a matrix keeps both dimensions
  a.sum({ axis: 0, keepDims: false });
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

/** Element types are part of the types. */
export async function types(typedArray: Float32Array, gpuBuffer: GPUBuffer, unknown: Matrix<any>, anyType: DType) {
  using gpu = await init();
  const a: Matrix<'float32'> = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), rows: Matrix = gpu.matrix([[1, 2], [3, 4]]);
  const i: Matrix<'int32'> = gpu.matrix(1, 2, new Int32Array(2)), j: Matrix<'int32'> = gpu.matrix(1, 2, [1, 2], { dtype: 'int32' });
  const k: Matrix<'uint8'> = gpu.wrap(new Uint8ClampedArray(4), 2, 2), z: Matrix<'complex64'> = gpu.matrix(1, 1, [1, 2], { dtype: 'complex64' });
  const converted: Matrix<'int8'> = gpu.matrix(1, 2, new Float64Array(2), { dtype: 'int8' });
  const floats: Float32Array = await a.read(), ints: Int32Array = await i.add(j).mul(2).read(), indices: Int32Array = await a.argMax(1).read();
  const numbers: number[] = [...await a.read(), ...await i.read(), ...await k.read(), ...await z.read()];
  const small: Int8Array = await a.astype('int8').read(), truth: Expr<'float32'> = a.greater(0), size: Expr<'float32'> = z.abs();
  const half: Float16Elements = await a.astype('float16').read(), mixed: Expr<'complex64'> = z.mul(a).add(gpu.add(a, z));
  const zeros: Matrix<'uint32'> = gpu.zeros(1, 2, { dtype: 'uint32' }), made: Expr<'int32'> = gpu.arange(0, 3, 1, { dtype: 'int32' });
  const chosen: Expr<'int32'> = gpu.where(i.greater(0), i, 0), cut: View<'int32'> = i.slice(0, [0, 1]), t: Tensor<'int32'> = gpu.tensor(new Int32Array(4), [2, 2]).sum(0);
  const entries: Sparse<'int32'> = gpu.sparse(2, 2, { format: 'csr', values: new Int32Array(1), indices: [0], offsets: [0, 1, 1] });
  const dense: Int32Array = await entries.toDense().read(), buffered: Matrix<'int32'> = gpu.wrapBuffer(gpuBuffer, 2, 2, { dtype: 'int32' });
  const loose: Expr = unknown, strange: Expr = unknown.add(a).exp(), any: Matrix<DType> = gpu.zeros(1, 1, { dtype: anyType });
  const every = (m: Matrix<any>): Expr<any> => m.mul(2), same = <T extends DType>(x: Expr<T>, y: Expr<T>): Expr<T> => x.add(y).sub(1);
  void [a.add(unknown), gpu.nn.mse(unknown, a), every(i), same(i, j), loose, strange, any, rows, converted, floats, ints, indices, numbers, small, truth, size, half, mixed];
  a.set([[1, 2, 3], [4, 5, 6]]).set(new Float64Array(6), { dtype: 'float32' });
  i.memory.setValue(j).assign(7);
  gpu.nn.crossEntropy(a, i);
  // @ts-expect-error the results are others
  const wrong: Promise<Int32Array> = a.read();
  // @ts-expect-error int32 is not float32
  a.add(i);
  // @ts-expect-error int32 is not float32
  gpu.matmul(a, i);
  // @ts-expect-error all three are of one type
  gpu.where(a.greater(0), i, i);
  // @ts-expect-error there are no whole exponentials
  i.exp();
  // @ts-expect-error the mean of whole numbers is none
  gpu.mean(i);
  // @ts-expect-error there are no decompositions of whole numbers
  i.inv();
  // @ts-expect-error there are no decompositions of whole numbers
  gpu.singularValues(i);
  // @ts-expect-error complex numbers have an inverse, no singular values
  z.singularValues();
  void [a.singularValues(), unknown.inv(), z.inv(), z.solve(z), i.matrixPower(2), a.astype('float16').det()];
  // @ts-expect-error whole numbers are counted by bincount
  i.histogram(5, 0, 10);
  // @ts-expect-error whole numbers are counted by bincount
  gpu.histogram(i, 5, 0, 10);
  void [gpu.histogram(a, 5, 0, 10), i.bincount(5), i.astype('float32').histogram(5, 0, 10)];
  // @ts-expect-error fractions have no bits
  a.bitwiseAnd(1);
  // @ts-expect-error labels are int32
  gpu.nn.crossEntropy(a, a);
  void [a.takeRows(gpu.arange(0, 2)), gpu.takeCols(i, k), a.gather(gpu.arange(0, 2), i), gpu.oneHot(gpu.arange(0, 2), 3), a.putRows(a.row(0), a)];
  // @ts-expect-error indices are real numbers
  a.takeRows(z);
  // @ts-expect-error it is float32, whatever it is assigned to
  const range: Expr<'int32'> = gpu.arange(0, 3);
  // @ts-expect-error it is float32, whatever it is assigned to
  const none: Matrix<'int32'> = gpu.zeros(1, 2);
  // @ts-expect-error it is float32, whatever it is added to
  i.add(gpu.ones(1, 2));
  // @ts-expect-error it is float32, whatever it is assigned to
  const nested: Tensor<'int32'> = gpu.tensor([[1, 2]]);
  void [range, none, nested];
  // @ts-expect-error one of both has to be no number
  gpu.add(1, 2);
  // @ts-expect-error what is read into is of the type
  a.read(new Int32Array(6));
  // @ts-expect-error of another type
  a.assign(i);
  // @ts-expect-error of another type
  a.memory.take(i);
  // @ts-expect-error text is no number
  gpu.matrix(1, 2, ['1', '2']);
  // @ts-expect-error null is no number
  gpu.matrix(1, 2, [1, null]);
  // @ts-expect-error text is no number
  gpu.matrix([[1, 2], ['3', 4]]);
  // @ts-expect-error there are no elements of 64 bits
  gpu.matrix(1, 2, new Float64Array(2));
  // @ts-expect-error there are no elements of 64 bits
  gpu.wrap(new Float64Array(2), 1, 2);
  // @ts-expect-error there are no elements of 64 bits
  gpu.wrap(new BigInt64Array(2), 1, 2);
  // @ts-expect-error a list is no memory
  gpu.wrap([1, 2], 1, 2);
  // @ts-expect-error memory is used as it is
  gpu.wrap(typedArray, 1, 2, { dtype: 'int32' });
  // @ts-expect-error there is no such option
  gpu.matrix(1, 2, [1, 2], { type: 'int32' });
  // @ts-expect-error text is no buffer
  gpu.wrapBuffer('buffer', 1, 1);
  // @ts-expect-error an object is no buffer
  gpu.wrapBuffer({}, 1, 1);
  // @ts-expect-error a typed array is no buffer
  gpu.wrapBuffer(typedArray, 1, 1);
  // @ts-expect-error a matrix is no buffer
  gpu.wrapBuffer(a, 1, 1);
  // @ts-expect-error an object is no device
  await init({ device: {} });
  // @ts-expect-error there is no such device
  await init({ device: 'cpu' });
  // @ts-expect-error a tensor is no operand of a matrix
  a.add(t);
  // @ts-expect-error a function is no matrix
  a.add(gpu.fn('fn f(x: f32) -> f32 { return x; }'));
  // @ts-expect-error a matrix is no function
  a.apply(a);
  // @ts-expect-error an expression is no matrix in memory
  a.memory.swap(a.add(1));
  // @ts-expect-error an expression has no memory to assign to
  a.add(1).assign(2);
  // @ts-expect-error a device is no matrix
  gpu.exp(gpu);
  // @ts-expect-error a matrix has two axes
  a.sum(2);
  // @ts-expect-error a range has two ends
  a.slice([0, 1, 2]);
  return [wrong, dense, buffered, chosen, cut, t, made, zeros];
}

async function drawn(gpu: Gpu, x: Expr) {
  const canvas = document.createElement('canvas'), options: DrawOptions = { channels: 1, colormap: [[0, 0, 0], [255, 255, 255]] };
  await x.toCanvas(canvas, options);
  await x.toCanvas(new OffscreenCanvas(1, 1), { range: 'data', colormap: 'magma' });
  using picture: Tensor<'uint8'> = await gpu.fromImage(canvas, { channels: 3, dtype: 'uint8' });
  using gray: Matrix = await gpu.fromImage({ data: new Uint8Array(4), width: 1, height: 1 }, { channels: 1 });
  await picture.toCanvas(canvas, { range: [0, 255] });
  // @ts-expect-error it has no channels beside its own
  await picture.toCanvas(canvas, { channels: 3 });
  // @ts-expect-error there is no such colormap
  const map: Colormap = 'jet';
  return [map, String(gray), `${gpu.info}`];
}
