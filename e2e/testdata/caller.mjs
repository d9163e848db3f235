// SPDX-License-Identifier: Apache-2.0

// A caller that tries everything: whatever the package exports, with whatever there is, several calls at once. The members are those of
// the real prototypes, so that a new one is tried by itself. All that is random follows from a number; see web_hostile_test.go.

import * as sublet from '/dist/index.mjs';
import {Mine, Random, Registry, TEMPLATES, detached, documentedCodes, hostile, members, throwing, unhandled, within} from './hostile-testing.mjs';
import {check, gpuBuffer, same, webgpu} from './testing.mjs';

const {SubletError} = sublet;

const WGSL = 'fn f(i: u32) { a[i] = a[i] + 1u; }\nfn g(i: u32) { a[i] = a[i] * 2u; }';
const TEXTS = ['', 'x', 'a', 'f', 'f g', 'g;', '2', 'float32', 'int32', 'uint32', 'float16', 'int8', 'bytes', 'row', 'column', 'csr', 'csc', 'blockcolumn',
  'own', 'all', 'auto', 'webgpu', 'simd', 'legacy', 'pin', 'strict', 'packed', 'atomic', 'blob', 'stream', 'npy', 'npz', 'safetensors', 'mtx', 'destroy', 'low-power', '\ud800', WGSL, 'fn f(x: f32) -> f32 { return x + 1.0; }', 'fn f(x: f32) -> f32 { return y; }'];
const OPTIONS = ['dtype', 'order', 'offset', 'stride', 'aligned', 'padded', 'release', 'dontOwnBuffer', 'setValueOnDevice', 'rowMajorInput', 'axis', 'out', 'format',
  'values', 'indices', 'offsets', 'lastWins', 'memoryLimit', 'signal', 'onProgress', 'to', 'type', 'device', 'devices', 'balancer', 'coherence', 'global', 'local', 'inner',
  'strict', 'syncKernel', 'transferOnly', 'data', 'shape', 'read', 'write', 'partialRead', 'readOnly', 'writeOnly', 'zeroCopy', 'elementsPerItem', 'halo', 'mode', 'struct',
  'keepDims', 'ddof', 'rows', 'cols', 'channels', 'colormap', 'range', 'colorSpace', 'height', 'width', 'kernel', 'pad', 'dilation', 'groups', 'epsilon', 'rate', 'bits', 'residual', 'into', 'mean', 'variance', 'factor', 'tracked', 'blobs', 'wasm', 'simdWasm', 'power', 'cruncherWasm', 'length', 'name', 'code', 'names', 'compress'];

const canvas = () => {
  const canvas = new OffscreenCanvas(3, 2);
  canvas.getContext('2d');
  return canvas;
};

/** Everything that exists for one round. */
class World {
  /** What has to be closed, and every object whose members are called. */
  objects = [];
  #values = [];

  constructor(random, gpu, other, file) {
    this.random = random;
    this.gpu = gpu;
    this.other = other;
    this.file = file;
  }

  async fill(cruncher) {
    const {gpu, other, random: r} = this, {device} = gpu, made = this.objects;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const m = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]), tall = gpu.zeros(3, 2), host = new Float32Array(8), wrapped = gpu.wrap(host, 2, 3);
    const mine = this.buffer = gpuBuffer(device, new Float32Array(8)), sparse = gpu.sparse(2, 2, {format: 'csc', values: [1, 2], indices: [0, 1], offsets: [0, 1, 2]});
    const values = Float32Array.of(3, 4), indices = Int32Array.of(0, 1), offsets = Int32Array.of(0, 1, 2), closed = gpu.zeros(2, 2);
    const params = await gpu.loadParams(this.file), fn = gpu.fn('fn twice(x: f32) -> f32 { return 2.0 * x; }');
    closed.close();
    const words = new Uint32Array(64), array = cruncher.array('a', words), bytes = cruncher.array('b', 16, {dtype: 'bytes'});
    made.push(m, wrapped, gpu.wrapBuffer(mine, 2, 2), gpu.map(2, 3), gpu.zeros(3, 2, {order: 'column', padded: true}), gpu.zeros(2, 3, {dtype: 'int32'}),
      gpu.zeros(2, 3, {dtype: 'float16'}), m.memory, m.T, m.slice([0, 1]), m.add(1), tall, m.matmul(tall), wrapped.memory.alias(), sparse, sparse.columnSlice(0, 1),
      gpu.wrapSparse(2, 2, {format: 'csr', values, indices, offsets}), fn, params, ...[...params].map(([, p]) => p), closed, gpu, cruncher, array, bytes,
      cruncher.scalar('s', 2), m.tensor(1, 2, 3), gpu.tensor(new Float32Array(12), [2, 1, 2, 3]), gpu.tensor([0, 1], [2], {dtype: 'int32'}), gpu.nn, gpu.nn.adam(),
      gpu.nn.sgd({rate: 1}), gpu.nn.batchNorm(), gpu.nn.quantise(m), gpu.nn.batchNorm().train(m, gpu.arange(3), gpu.arange(3)));
    await cruncher.compute(1, 'f', {global: 64}, array);
    const shared = () => new WebAssembly.Memory({initial: 1, maximum: 2, shared: true}).buffer;
    const grown = new WebAssembly.Memory({initial: 1}), gone = new Float32Array(grown.buffer, 0, 8), resizable = new ArrayBuffer(64, {maxByteLength: 128});
    grown.grow(1);
    const cycle = [1], mapped = device.createBuffer({size: 32, usage, mappedAtCreation: true}), dead = gpuBuffer(device, new Float32Array(8));
    cycle.push(cycle, {cycle});
    dead.destroy();
    this.buffers = [mine, mapped];
    const abort = new AbortController();
    this.#values.push(
      undefined, null, true, false, 1n, -(2n ** 70n), Symbol('s'), cycle, {}, [], [1, 2], [NaN, Infinity], ['1'], [1n], [,1], Object.create(null), () => {}, throwing,
      async () => {}, async () => throwing(), class {}, hostile(), new Proxy(m, {}), new Proxy([1, 2, 3, 4], {}), new Proxy({}, {get: throwing, has: throwing}), {valueOf: throwing, toString: throwing},
      {get dtype() { return throwing(); }}, {get offset() { m.close(); return 0; }}, {get order() { gpu.flush(); return 'row'; }}, {get global() { array.close(); return 64; }},
      {[Symbol.toStringTag]: 'GPUBuffer', size: 64}, {[Symbol.toStringTag]: 'GPUDevice'}, {get [Symbol.toStringTag]() { return throwing(); }}, {length: 2, 0: 1, 1: 2},
      {*[Symbol.iterator]() { yield ['a', m]; throwing(); }}, {[Symbol.iterator]: throwing}, [['a', m], ['b', sparse]], [['a', {data: host, shape: [8]}]], new Map([['p', m]]),
      Promise.resolve(2), new Date(NaN), /x/, new Map(), new Error('x'), globalThis, Math,
      new Float32Array(0), new Float32Array(4), new Float32Array(6), new Float32Array(8).subarray(1, 7), new Float64Array(6), new Uint8Array(7), new Uint8ClampedArray(8), new Int8Array(4),
      new Int32Array(6), new Uint32Array(6), new Uint16Array(6), new BigInt64Array(2), new DataView(new ArrayBuffer(24)), new ArrayBuffer(24), new ArrayBuffer(5), host, words, values,
      detached(new Float32Array(6)), detached(new ArrayBuffer(24)), detached(new Uint8Array(8)), gone, new Float32Array(shared(), 0, 6), shared(), resizable, new Float32Array(resizable),
      new Float32Array(resizable, 0, 4), new DataView(resizable), mine, mapped, dead, device.createBuffer({size: 10, usage}), device.createBuffer({size: 64, usage: GPUBufferUsage.COPY_DST}),
      gpuBuffer(other.device, new Float32Array(4)), device, other.device, device.queue, other, other.zeros(2, 3), other.zeros(2, 3).add(1), other.fn('fn f(x: f32) -> f32 { return x; }'),
      abort.signal, AbortSignal.abort(), AbortSignal.abort(new Mine()), new WritableStream(), new WritableStream({write: throwing}), new Blob([this.file]),
      this.file, new Blob(['nonsense']), new Response(this.file), Response.error(), new ReadableStream({pull: (c) => { c.enqueue(new Uint8Array(9)); c.close(); }}),
      new ReadableStream({pull: throwing}), {async *[Symbol.asyncIterator]() { yield new Uint8Array(3); throwing(); }}, {async *[Symbol.asyncIterator]() { yield 'text'; }},
      new URL('http://127.0.0.1:1/'), {a: {b: {}}}, Object.freeze([m]), [array], [array, array],
    );
    // What happens between calls.
    this.events = [
      () => abort.abort(), () => resizable.resize(r.pick([0, 32, 64, 128])), () => this.closeOne(), () => detached(r.pick([host, words, values, indices])),
      () => mapped.unmap(), () => mine.destroy(),
    ];
  }

  closeOne() {
    const one = this.random.pick(this.objects);
    if (!ends(one, 'close')) one.close?.();
  }

  number() {
    const {random: r} = this;
    return r.pick([0, 1, 2, 2, 3, 3, 6, 8, 64, -0, -1, 0.5, 1e-320, NaN, Infinity, -Infinity, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, 2 ** 53, -(2 ** 31), 1e308]);
  }

  any(depth = 0) {
    const {random: r} = this;
    const kind = r.below(10);
    if (kind < 3) return this.number();
    if (kind < 4) return r.pick(TEXTS);
    if (kind < 6) return r.pick(this.objects);
    if (kind < 7 && depth < 2) return this.options(depth + 1);
    if (kind < 8 && depth < 2) return Array.from({length: r.below(4)}, () => this.any(depth + 1));
    return r.pick(this.#values);
  }

  /** Something that a letter of TEMPLATES stands for. */
  like(letter) {
    const {random: r} = this;
    switch (letter) {
      case 'd': return r.below(5);
      case 'v': return r.pick([new Float32Array(r.below(12)), new Int32Array(6), new ArrayBuffer(4 * r.below(12)), [1, 2, 3, 4], new Float32Array(6)]);
      case 'b': return this.buffer;
      case 'm': return r.pick(this.objects.filter((x) => x instanceof sublet.Matrix));
      case 'x': return r.pick([r.below(5), ...this.objects.filter((x) => x instanceof sublet.Expr)]);
      case 's': return r.pick([[2, 3], [6], [1, 2, 3], [2, 1, 2, 3], [], [2, 0], [r.below(4), r.below(4)]]);
      case 'n': return r.pick([r.below(3), ...this.objects.filter((x) => x instanceof sublet.Expr || x instanceof sublet.Tensor)]);
      case 'w': return {channels: 1, height: 2, width: 3, kernel: r.pick([1, 2, [1, 3]]), ...r.pick([{}, {pad: 1}, {stride: 2}, this.options(1)])};
      case 'o': return r.below(2) ? undefined : this.options(1);
      case 'f': return r.pick([this.file, new Blob(['%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 5']), new Blob(['\x93NUMPY'])]);
      case 'h': return {data: new ArrayBuffer(4 * r.below(12)), shape: this.like('s'), dtype: r.pick(['float32', 'int8', 'x'])};
      case 'k': return r.pick([canvas(), canvas(), canvas().transferToImageBitmap(), new ImageData(2, 1), {data: new Uint8Array(8), width: 2, height: 1}]);
      case 't': return r.pick(TEXTS);
      case 'c': return (x) => r.pick([() => x?.compute?.(1, 'f', {global: 8}, this.any()), throwing, () => {}, async () => this.any()])();
      case 'a': return r.pick(this.objects.filter((x) => x instanceof sublet.CruncherArray));
      case 'g': return r.pick([null, r.below(3), -1, [0, 1], [1], [0, -1], {rows: [0, 1]}]);
      case 'r': return {global: r.pick([0, 1, 8, 64, 65]), ...this.options(1)};
      default: return [['m', this.like('x')], ['n', {data: this.like('v'), shape: [r.below(12)]}]];
    }
  }

  /** Arguments for a member of that name. */
  args(name) {
    const {random: r} = this, template = Object.hasOwn(TEMPLATES, name) && TEMPLATES[name];
    if (!template || r.below(3) === 0) return Array.from({length: r.pick([0, 1, 1, 2, 2, 3, 3, 4, 5])}, () => this.any());
    const args = [...template].map((letter) => this.like(letter));
    if (r.below(2)) args[r.below(args.length)] = this.any();
    return args;
  }

  options(depth) {
    const {random: r} = this, o = {};
    for (let n = r.below(5); n > 0; n--) o[r.pick(OPTIONS)] = this.any(depth);
    return o;
  }

  close() {
    for (const x of this.objects) if (!ends(x, 'close')) x.close?.();
    for (const buffer of this.buffers) buffer.destroy();
  }
}

/** Calls that end what the others need are for rounds of their own. repeat would make a call of a cruncher as long as it says. */
const ends = (object, key) => (key === 'close' || key === Symbol.dispose || key === 'reopen') && (object instanceof sublet.Gpu || object instanceof sublet.Cruncher);

/** What the package exports; names with _ are for its parts. */
const NAMES = Object.keys(sublet).filter((name) => !name.startsWith('_'));

/** A call to be made: what it is in words, and the function that makes it. */
function someCall(world, counted) {
  const {random: r} = world;
  if (r.below(25) === 0) {
    const args = world.args(), name = r.pick(NAMES), what = sublet[name], made = () => { Reflect.construct(what, args); }; // for nobody
    const wild = r.pick([() => what(...args), made, ...statics(what, args)]);
    counted.add(name);
    return {what: `${name}(${told(args)})`, run: wild, loose: true};
  }
  for (;;) {
    const object = r.pick(world.objects), [key, {value, get, set}] = r.pick(members(object)), name = `${object.constructor.name}.${String(key)}`;
    if (ends(object, key)) continue;
    const args = world.args(key);
    counted.add(name);
    if (r.below(20) === 0) {
      const f = r.pick([value, get, set].filter((f) => typeof f === 'function'));
      if (f) return {what: `${name} on something else`, run: () => f.apply(world.any(), args), loose: true};
    }
    if (set && r.below(2)) return {what: `${name} = ${told(args)}`, run: () => { object[key] = args[0]; }};
    if (get) return {what: name, run: () => key === 'lost' ? void object[key] : object[key]}; // nobody waits for that
    if (typeof value === 'function') return {what: `${name}(${told(args)})`, run: () => object[key](...args)};
  }
}

const statics = (what, args) => Reflect.ownKeys(what).map((key) => what[key]).filter((f) => typeof f === 'function').map((f) => () => f.apply(what, args));

function told(args) {
  return args.map((x) => {
    try {
      return typeof x === 'object' && x ? Object.prototype.toString.call(x) + JSON.stringify(Object.keys(x).slice(0, 6)) : String(x).slice(0, 40);
    } catch {
      return '?';
    }
  }).join(', ');
}

/** Gives back what a call has made. */
async function dispose(world, result) {
  if (result === null || typeof result !== 'object' || world.objects.includes(result) || result === world.other) return;
  if (result instanceof ReadableStream) await result.cancel().catch(() => {});
  else if (told([result]).includes('SubletFileArrays')) result.close();
  else if (Object.values(sublet).some((c) => typeof c === 'function' && c.prototype && result instanceof c)) result.close?.();
}

export class Caller {
  counted = new Set();
  calls = 0;
  refused = 0;

  static async start(seed) {
    const caller = new Caller();
    caller.random = new Random(seed);
    caller.codes = await documentedCodes();
    caller.unhandled = unhandled((error) => !(error instanceof Mine));
    caller.registry = new Registry();
    caller.gpu = await caller.registry.watch(() => webgpu());
    caller.cruncher = await caller.registry.watch(() => caller.gpu.cruncher(WGSL));
    caller.other = await webgpu();
    caller.file = new Uint8Array(await (await caller.gpu.saveParams([['m', {data: new Float32Array(6), shape: [2, 3]}], ['b', {data: new Uint8Array(5), shape: [5]}]])).arrayBuffer());
    return caller;
  }

  /** Makes calls at once, with all kinds of things between them, and waits for them. */
  async burst(world, n) {
    const waiting = [];
    for (; n > 0; n--) {
      if (this.random.below(12) === 0) {
        try {
          this.random.pick(world.events)();
        } catch { /* of JavaScript's own */ }
      }
      const call = someCall(world, this.counted);
      this.calls++;
      waiting.push(within(60000, (async () => call.run())(), call.what).then((result) => dispose(world, result), (error) => this.judge(call, error)));
    }
    await Promise.all(waiting);
  }

  judge({what, loose}, error) {
    this.refused++;
    if (error instanceof Mine || (loose && (error instanceof TypeError || error instanceof RangeError))) return;
    check(error instanceof SubletError, `${what}: ${error?.stack ?? String(error)}`);
    check(this.codes.has(error.code), `${what}: the code ${error.code} is not documented: ${error.message}`);
  }

  /** Lets a known computation show that all is well. */
  async known() {
    const {gpu, cruncher} = this, a = gpu.matrix(2, 2, [1, 2, 3, 4]), b = a.matmul(a).add(1).eval();
    same(await b.read(), [8, 11, 16, 23], 'a known computation');
    a.close();
    b.close();
    const words = new Uint32Array(64), array = cruncher.array('a', words);
    await cruncher.compute(7, 'f g', {global: 64}, array);
    same(words, Array(64).fill(2), 'a known kernel');
    array.close();
  }

  async round(bursts) {
    await this.known();
    await this.gpu.sync();
    const before = this.registry.sizes(this.gpu);
    const world = new World(this.random, this.gpu, this.other, this.file);
    await world.fill(this.cruncher);
    for (let i = 0; i < bursts; i++) await this.burst(world, 1 + this.random.below(8));
    world.close();
    await this.gpu.sync().catch((error) => this.judge({what: 'sync'}, error));
    await this.known();
    await this.registry.same(this.gpu, before);
    this.unhandled.check();
  }

  /** A round in which the Gpu is closed in between, after which everything has an answer. */
  async doomed() {
    const {random, other, file} = this, gpu = await webgpu(), cruncher = await gpu.cruncher(WGSL), world = new World(random, gpu, other, file);
    await world.fill(cruncher);
    world.events.push(() => gpu.close(), () => gpu.device.destroy(), () => cruncher.close(), () => { gpu.reopen().catch((error) => this.judge({what: 'reopen'}, error)); });
    for (let i = 0; i < 6; i++) await this.burst(world, 8);
    const last = [() => gpu.zeros(2, 2).read(), () => gpu.sync(), () => gpu.cruncher(WGSL), () => gpu.loadParams(file)].map(async (f) => f());
    const answers = last.map((x) => within(60000, x, 'what was under way').catch((error) => this.judge({what: 'at the end'}, error)));
    gpu.close();
    await Promise.all(answers);
    world.close();
    this.unhandled.check();
  }

  async end() {
    this.cruncher.close();
    this.gpu.close();
    this.other.close();
    this.unhandled.stop();
    this.registry.stop();
  }
}

/** Runs as many rounds as are asked for. What it throws names the round, which is run again with its own number. */
export async function tryEverything(seed, rounds) {
  const caller = await Caller.start(seed);
  try {
    for (let i = 0; i < rounds; i++) {
      caller.random = new Random(seed + i);
      try {
        await caller.round(12);
        if (i % 3 === 2) await caller.doomed();
      } catch (error) {
        throw new Error(`with seed ${seed + i}: ${error?.stack ?? error}`);
      }
    }
    return {calls: caller.calls, refused: caller.refused, members: caller.counted.size};
  } finally {
    await caller.end();
  }
}
