// SPDX-License-Identifier: Apache-2.0

import {Crunch} from './crunch.mjs';
import {Cruncher} from './cruncher.mjs';
import {dataOf} from './data.mjs';
import {FLOAT32, dtypeOf, dtypeOfClass, typedArrayClass} from './dtype.mjs';
import {failure, guard, show, tagOf} from './errors.mjs';
import {Expr, applied, inside, operands} from './expr.mjs';
import {Fn} from './func.mjs';
import {CRUNCHER_PROGRAM, moduleOf} from './loader.mjs';
import {Matrix} from './matrix.mjs';
import * as nodes from './node.mjs';
import {loadParams, saveParams, scanParams} from './params.mjs';
import {Command, MAX_BYTES, Op, Source} from './protocol.mjs';
import {FROM, PLACE, WRAP, originOf, place, read} from './source.mjs';
import {compress, makeSparse} from './sparse.mjs';

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {import('./session.mjs').Session} Session */

/** Names of the counters, in the order in which Go writes them. */
const COUNTERS = [
  'bytesUp', 'bytesDown', 'submissions', 'dispatches', 'compilations', 'prepared', 'cacheHits', 'liveBytes',
  'peakBytes', 'pooledBytes', 'buffers', 'kernels',
];

/** What Gpu.lost is, by device: who waits for a promise cannot be taken back, and a device may outlive many a Gpu. @type {WeakMap<GPUDevice, Promise<{reason: string, message: string}>>} */
const losses = new WeakMap();

/** @param {GPUDevice} device */
function lossOf(device) {
  const known = losses.get(device);
  if (known) return known;
  const loss = device.lost.then(({reason, message}) => ({reason: reason ?? 'unknown', message}));
  losses.set(device, loss);
  return loss;
}

/** A device and everything made with it. */
export class Gpu {
  #session;
  #info;
  /** @type {GPUDevice | null} */
  #device = null;
  /** @type {Promise<{reason: string, message: string}>} */
  #lost = new Promise(() => {});
  #wasm;
  /** The program of crunchers, once one was wanted. @type {Promise<Crunch> | null} */
  #crunch = null;
  /** Those of devices that were lost: their crunchers go on with other devices. @type {Set<Promise<Crunch>>} */
  #retired = new Set();

  /** @param {Session} session @param {any} info @param {GPUDevice | null} device @param {unknown} [wasm] that program, as init was given it */
  constructor(session, info, device, wasm) {
    this.#session = session;
    this.#wasm = wasm;
    this.#info = Object.freeze({...info, limits: Object.freeze(info.limits), features: Object.freeze(info.features)});
    session.limit = Math.min(info.limits.maxBufferSize, MAX_BYTES);
    this.#use(device);
  }

  /** @param {GPUDevice | null} device */
  #use(device) {
    if (!device || device === this.#device) return;
    if (this.#crunch) this.#retire(this.#crunch);
    this.#device = device;
    this.#lost = lossOf(device);
  }

  get info() { return this.#info; }
  get device() { return this.#device; }
  get lost() { return this.#lost; }

  // Matrices.

  /** @param {import('./memory.mjs').Memory} memory @param {(leaf: import('./node.mjs').Node) => void} fill */
  #matrix(memory, fill) {
    this.#session.check();
    const leaf = memory.leaf();
    fill(leaf);
    return new Matrix(this.#session, leaf);
  }

  /** @param {number} rows @param {number} cols @param {unknown} [values] @param {unknown} [options] */
  matrix(rows, cols, values, options) {
    const where = 'matrix', o = read(where, options, PLACE);
    const own = dtypeOfClass(typedArrayClass(values));
    const memory = place(this.#session, where, dtypeOf(where, o.dtype, own ?? FLOAT32), rows, cols, o, 'owned');
    const data = values === undefined ? null : guard(where, () => dataOf(where, memory.type, rows * cols, values));
    return this.#matrix(memory, (leaf) => {
      this.#session.newMatrix(leaf, memory);
      if (data && data.bytes.length > 0) this.#session.setData(memory, data.bytes, data.copy);
    });
  }

  /** @param {number} rows @param {number} cols @param {unknown} [options] */
  zeros(rows, cols, options) {
    return this.matrix(rows, cols, undefined, options);
  }

  /** @param {number} rows @param {number} cols @param {unknown} [options] */
  ones(rows, cols, options) {
    return this.full(rows, cols, 1, options);
  }

  /** @param {number} rows @param {number} cols @param {unknown} value @param {unknown} [options] */
  full(rows, cols, value, options) {
    if (typeof value !== 'number') throw failure('ErrInvalid', 'full', `${show(value)} is no number`);
    const m = this.matrix(rows, cols, undefined, options);
    try {
      m.assign(value);
    } catch (error) { // a fraction among integers
      m.close();
      throw error;
    }
    return m;
  }

  /** @param {number} n @param {unknown} [options] */
  eye(n, options) {
    const where = 'eye';
    nodes.checkDims(where, n, n);
    const values = guard(where, () => {
      const a = new Float32Array(n * n);
      for (let i = 0; i < n; i++) a[i * (n + 1)] = 1;
      return a;
    });
    const {dtype} = read(where, options, ['dtype']);
    if (dtypeOf(where, dtype, FLOAT32) === FLOAT32) return this.matrix(n, n, values, options);
    return this.matrix(n, n, guard(where, () => Array.from(values)), options);
  }

  /** @param {unknown} data @param {number} rows @param {number} cols @param {unknown} [options] */
  wrap(data, rows, cols, options) {
    if (tagOf(data) === 'GPUBuffer') throw failure('ErrInvalid', 'wrap', 'a GPUBuffer; use wrapBuffer');
    return this.#from('wrap', data, rows, cols, {...read('wrap', options, WRAP), dontOwnBuffer: true});
  }

  /** @param {unknown} buffer @param {number} rows @param {number} cols @param {unknown} [options] */
  wrapBuffer(buffer, rows, cols, options) {
    const where = 'wrapBuffer';
    if (tagOf(buffer) !== 'GPUBuffer') throw failure('ErrInvalid', where, `${show(buffer)} is no GPUBuffer`);
    return this.#from(where, buffer, rows, cols, {...read(where, options, WRAP), dontOwnBuffer: true});
  }

  /** @param {number} rows @param {number} cols @param {unknown} data @param {unknown} [options] */
  fromBuffer(rows, cols, data, options) {
    return this.#from('fromBuffer', data, rows, cols, read('fromBuffer', options, FROM));
  }

  /** @param {string} where @param {unknown} data @param {number} rows @param {number} cols @param {Record<string, any>} options */
  #from(where, data, rows, cols, options) {
    const origin = originOf(this.#session, where, data, rows, cols, options, FLOAT32);
    return this.#matrix(origin.memory, (leaf) => this.#session.from(leaf, origin));
  }

  // Sparse matrices.

  /** @param {number} rows @param {number} cols @param {unknown} parts */
  sparse(rows, cols, parts) {
    return makeSparse(this.#session, 'sparse', rows, cols, parts, false);
  }

  /** @param {number} rows @param {number} cols @param {unknown} parts */
  wrapSparse(rows, cols, parts) {
    return makeSparse(this.#session, 'wrapSparse', rows, cols, parts, true);
  }

  /** @param {unknown} x @param {unknown} [options] */
  async sparseFrom(x, options) {
    return compress('sparseFrom', this.#session, this.#expr('sparseFrom', x), options);
  }

  /** @param {number} rows @param {number} cols @param {unknown} [options] */
  map(rows, cols, options) {
    const where = 'map', o = read(where, options, ['dtype', 'order']);
    const memory = place(this.#session, where, dtypeOf(where, o.dtype, FLOAT32), rows, cols, o, 'mapped');
    const buffer = guard(where, () => new ArrayBuffer(Math.ceil(memory.span * memory.type.size / 4) * 4));
    memory.host = new memory.type.Array(buffer, 0, memory.span);
    memory.hosted = true;
    const words = [Source.DontOwnBuffer, memory.form, memory.rows, memory.cols, 0, memory.stride, 0, buffer.byteLength];
    return this.#matrix(memory, (leaf) => this.#session.from(leaf, {memory, object: new Uint8Array(buffer), words, copied: false}));
  }

  // Files of arrays.

  /** @param {unknown} source @param {unknown} [options] */
  async loadParams(source, options) {
    return loadParams(this.#session, source, options);
  }

  /** @param {unknown} source @param {unknown} [options] */
  async scanParams(source, options) {
    return scanParams(this.#session, source, options);
  }

  /** @param {unknown} entries @param {unknown} [options] @returns {Promise<any>} */
  async saveParams(entries, options) {
    return saveParams(this.#session, entries, options);
  }

  /** @param {unknown} wgsl */
  fn(wgsl) {
    return new Fn(this.#session, wgsl);
  }

  // Kernels of the user's on several devices.

  /** @param {unknown} wgsl @param {unknown} [options] */
  async cruncher(wgsl, options) {
    const where = 'cruncher', device = this.#device;
    this.#session.check();
    if (!device) throw failure('ErrUnsupported', where, 'the CPU compiles no WGSL');
    return Cruncher.open(() => this.#cruncherProgram(device), device, wgsl, options);
  }

  /** @param {GPUDevice} device */
  async #cruncherProgram(device) {
    const opened = this.#crunch ?? this.#newCruncherProgram(device);
    try {
      const crunch = await opened;
      this.#session.check(); // it may have been closed meanwhile
      crunch.hold();
      return crunch;
    } catch (error) {
      this.#forget(opened);
      return guard('cruncher', () => { throw error; });
    }
  }

  /** @param {GPUDevice} device */
  #newCruncherProgram(device) {
    const opened = this.#crunch = this.#startCruncher(device);
    opened.then(({ended}) => ended).then(() => this.#forget(opened), () => {});
    return opened;
  }

  /** Lets the next call start another program. @param {Promise<Crunch>} opened */
  #forget(opened) {
    this.#retired.delete(opened);
    if (this.#crunch === opened) this.#crunch = null;
  }

  /** Keeps a program for as long as it has crunchers. @param {Promise<Crunch>} opened */
  #retire(opened) {
    this.#crunch = null;
    this.#retired.add(opened);
    opened.then((crunch) => crunch.retire(), () => {});
  }

  /** @param {GPUDevice} device */
  async #startCruncher(device) {
    this.#wasm = await moduleOf(this.#wasm, CRUNCHER_PROGRAM); // a response can be read once only
    return Crunch.open(/** @type {WebAssembly.Module} */ (this.#wasm), device);
  }

  // The operations as functions, in which any operand may be a number.

  /** @param {string} where @param {unknown} x @returns {any} */
  #expr(where, x) {
    const part = inside(x, where);
    if (!part) throw failure('ErrInvalid', where, `${show(x)} is no matrix`);
    if (part.session !== this.#session) throw failure('ErrForeign', where, 'a matrix of another device');
    return x;
  }

  /** @param {string} where @param {number} op @param {unknown} x @param {unknown} y */
  #two(where, op, x, y) {
    const {session, list: [a, b]} = operands(where, [x, y]);
    if (session !== this.#session) throw failure('ErrForeign', where, 'a matrix of another device');
    return new Expr(session, nodes.binary(where, op, a, b));
  }

  /** @param {unknown} x @param {unknown} y */
  matmul(x, y) { return this.#expr('matmul', x).matmul(y); }
  /** @param {unknown} x @param {unknown} y */
  add(x, y) { return this.#two('add', Op.Add, x, y); }
  /** @param {unknown} x @param {unknown} y */
  sub(x, y) { return this.#two('sub', Op.Sub, x, y); }
  /** @param {unknown} x @param {unknown} y */
  mul(x, y) { return this.#two('mul', Op.Mul, x, y); }
  /** @param {unknown} x @param {unknown} y */
  div(x, y) { return this.#two('div', Op.Div, x, y); }
  /** @param {unknown} x @param {unknown} y */
  minimum(x, y) { return this.#two('minimum', Op.Min, x, y); }
  /** @param {unknown} x @param {unknown} y */
  maximum(x, y) { return this.#two('maximum', Op.Max, x, y); }
  /** @param {unknown} x @param {unknown} y */
  equal(x, y) { return this.#two('equal', Op.Eq, x, y); }
  /** @param {unknown} x @param {unknown} y */
  notEqual(x, y) { return this.#two('notEqual', Op.Ne, x, y); }
  /** @param {unknown} x @param {unknown} y */
  less(x, y) { return this.#two('less', Op.Lt, x, y); }
  /** @param {unknown} x @param {unknown} y */
  lessEqual(x, y) { return this.#two('lessEqual', Op.Le, x, y); }
  /** @param {unknown} x @param {unknown} y */
  greater(x, y) { return this.#two('greater', Op.Gt, x, y); }
  /** @param {unknown} x @param {unknown} y */
  greaterEqual(x, y) { return this.#two('greaterEqual', Op.Ge, x, y); }
  /** @param {unknown} x @param {unknown} y */
  logicalAnd(x, y) { return this.#two('logicalAnd', Op.And, x, y); }
  /** @param {unknown} x @param {unknown} y */
  logicalOr(x, y) { return this.#two('logicalOr', Op.Or, x, y); }
  /** @param {unknown} x @param {unknown} y */
  pow(x, y) { return typeof x === 'number' ? this.#two('pow', Op.Pow, x, y) : this.#expr('pow', x).pow(y); }

  /** @param {unknown} condition @param {unknown} x @param {unknown} y */
  where(condition, x, y) {
    const {session, list: [c, a, b]} = operands('where', [condition, x, y]);
    if (session !== this.#session) throw failure('ErrForeign', 'where', 'a matrix of another device');
    return new Expr(session, nodes.ternary('where', Op.Where, c, a, b));
  }

  /** @param {unknown} x @param {unknown} low @param {unknown} high */
  clamp(x, low, high) { return this.#expr('clamp', x).clamp(low, high); }
  /** @param {unknown} fn @param {...unknown} args */
  apply(fn, ...args) { return applied('apply', fn, args); }

  /** @param {unknown} x */ neg(x) { return this.#expr('neg', x).neg(); }
  /** @param {unknown} x */ abs(x) { return this.#expr('abs', x).abs(); }
  /** @param {unknown} x */ sign(x) { return this.#expr('sign', x).sign(); }
  /** @param {unknown} x */ floor(x) { return this.#expr('floor', x).floor(); }
  /** @param {unknown} x */ ceil(x) { return this.#expr('ceil', x).ceil(); }
  /** @param {unknown} x */ round(x) { return this.#expr('round', x).round(); }
  /** @param {unknown} x */ trunc(x) { return this.#expr('trunc', x).trunc(); }
  /** @param {unknown} x */ square(x) { return this.#expr('square', x).square(); }
  /** @param {unknown} x */ sqrt(x) { return this.#expr('sqrt', x).sqrt(); }
  /** @param {unknown} x */ exp(x) { return this.#expr('exp', x).exp(); }
  /** @param {unknown} x */ log(x) { return this.#expr('log', x).log(); }
  /** @param {unknown} x */ sin(x) { return this.#expr('sin', x).sin(); }
  /** @param {unknown} x */ cos(x) { return this.#expr('cos', x).cos(); }
  /** @param {unknown} x */ tanh(x) { return this.#expr('tanh', x).tanh(); }
  /** @param {unknown} x */ sigmoid(x) { return this.#expr('sigmoid', x).sigmoid(); }
  /** @param {unknown} x */ relu(x) { return this.#expr('relu', x).relu(); }
  /** @param {unknown} x */ reciprocal(x) { return this.#expr('reciprocal', x).reciprocal(); }
  /** @param {unknown} x */ logicalNot(x) { return this.#expr('logicalNot', x).logicalNot(); }
  /** @param {unknown} x */ transpose(x) { return this.#expr('transpose', x).transpose(); }
  /** @param {unknown} x */ softmax(x) { return this.#expr('softmax', x).softmax(); }
  /** @param {unknown} x */ logSoftmax(x) { return this.#expr('logSoftmax', x).logSoftmax(); }
  /** @param {unknown} x @param {unknown} [options] */ sum(x, options) { return this.#expr('sum', x).sum(options); }
  /** @param {unknown} x @param {unknown} [options] */ max(x, options) { return this.#expr('max', x).max(options); }
  /** @param {unknown} x @param {unknown} [options] */ min(x, options) { return this.#expr('min', x).min(options); }
  /** @param {unknown} x @param {unknown} [options] */ prod(x, options) { return this.#expr('prod', x).prod(options); }
  /** @param {unknown} x @param {unknown} [options] */ mean(x, options) { return this.#expr('mean', x).mean(options); }

  // The device.

  async sync() {
    return this.#session.wait();
  }

  flush() {
    this.#session.flush();
  }

  /** @param {unknown} [options] */
  async reopen(options) {
    const where = 'reopen', {device} = read(where, options, ['device']);
    if (device !== undefined && tagOf(device) !== 'GPUDevice') throw failure('ErrInvalid', where, `device ${show(device)} is no GPUDevice`);
    this.#session.check();
    this.#use(await this.#session.ask(Command.Reopen, [device ? this.#session.put(device) : 0]));
  }

  stats() {
    const counters = this.#session.stats();
    return Object.fromEntries(COUNTERS.map((name, i) => [name, counters[i]]));
  }

  close() {
    this.#session.close();
    if (this.#crunch) this.#retired.add(this.#crunch);
    for (const opened of this.#retired) opened.then((crunch) => crunch.close(), () => {});
    this.#retired.clear();
    this.#crunch = null;
  }

  [Symbol.dispose]() {
    this.close();
  }
}
