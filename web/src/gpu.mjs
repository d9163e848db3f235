// SPDX-License-Identifier: Apache-2.0

import {most, sized, withOptions} from './arguments.mjs';
import {dataOf} from './data.mjs';
import {CRUNCHER_PROGRAM, part} from './download.mjs';
import {COMPLEX64, FLOAT32, dtypeOf, dtypeOfClass, holds, numbersIn, typedArrayClass} from './dtype.mjs';
import {allocate, failure, guard, isArray, listed, show, tagOf} from './errors.mjs';
import {Expr, applied, inside, operands} from './expr.mjs';
import {loadFile, saveFile} from './files.mjs';
import {Fn} from './func.mjs';
import {COUNTERS, Info, lossOf} from './info.mjs';
import {INSPECT, printLine, tag} from './inspect.mjs';
import {remember, rememberFill} from './known.mjs';
import {checkRows, flattened, given, isNested} from './lists.mjs';
import {moduleOf} from './loader.mjs';
import {Matrix} from './matrix.mjs';
import {NN} from './nn.mjs';
import * as nodes from './node.mjs';
import {numpyFunctions} from './numpy.mjs';
import {functions} from './operations.mjs';
import {loadParams, saveParams, scanParams} from './params.mjs';
import {fromImage} from './pictures.mjs';
import {MAX_BYTES, Shaping, Source} from './protocol.mjs';
import {record} from './recording.mjs';
import {Session} from './session.mjs';
import {FROM, PLACE, WRAP, checkSignal, originOf, place, read, signalOf} from './source.mjs';
import {scoped} from './scope.mjs';
import {compress, makeCoordinates, makeSparse} from './sparse.mjs';
import {appliedTensor, insideTensor, newTensor, zipped} from './tensor-expr.mjs';
import {shapeFor, text} from './tensor-node.mjs';
import {attached} from './transfer.mjs';

/** @typedef {import('./dtype.mjs').DType} DType */

/** @typedef {import('./crunch.mjs').Crunch} Crunch */

/** What crunchers are made with, which comes with the first one. */
const crunchers = part(() => import('./cruncher.mjs'));

const graphs = part(() => import('./graph.mjs'));

/** The programs of crunchers that have started. @type {WeakMap<Promise<Crunch>, Crunch>} */
const started = new WeakMap();

const MATRIX = 'it takes [[1, 2], [3, 4]], or sizes and then the elements: (2, 2, [1, 2, 3, 4])';

/** What the device is behind. @type {(gpu: unknown) => Session} */
export let sessionOf;

/** Operands of a device as nodes. @param {unknown} gpu @param {string} where @param {unknown[]} values */
function operandsOf(gpu, where, values) {
  const {session, list} = operands(where, values);
  if (session !== sessionOf(gpu)) throw failure('ErrForeign', where, 'a matrix of another device');
  return {session, list};
}

/** A tensor of the device. @param {unknown} gpu @param {string} where @param {unknown} x */
function tensorOf(gpu, where, x) {
  const part = insideTensor(x, where);
  if (part && part.session !== sessionOf(gpu)) throw failure('ErrForeign', where, 'a tensor of another device');
  return part;
}

/** @param {unknown} gpu @param {string} where @param {unknown[]} values */
const anyTensor = (gpu, where, values) => values.some((x) => tensorOf(gpu, where, x));

/** @param {unknown} gpu @param {string} where @param {unknown} x @returns {Expr} */
function matrixOf(gpu, where, x) {
  const part = inside(x, where);
  if (!part) throw failure('ErrInvalid', where, `${show(x)} is no matrix`);
  if (part.session !== sessionOf(gpu)) throw failure('ErrForeign', where, 'a matrix of another device');
  return /** @type {Expr} */ (x);
}

/** How the operations as functions, which operations.mjs lists, are computed: any operand may be a number. */
const make = {
  /** The method of that name of a matrix or a tensor. @param {unknown} gpu @param {string} where @param {unknown[]} x @returns {any} an Expr or a Tensor */
  of(gpu, where, [x, ...more]) {
    const object = /** @type {any} */ (tensorOf(gpu, where, x) ? x : matrixOf(gpu, where, x));
    return object[where](...more);
  },

  /** The same of what only matrices have. @param {unknown} gpu @param {string} where @param {unknown[]} x @returns {any} an Expr */
  matrix(gpu, where, [x, ...more]) { return /** @type {any} */ (matrixOf(gpu, where, x))[where](...more); },

  /** @param {unknown} gpu @param {string} where @param {number} op @param {unknown} x @param {unknown} y */
  binary(gpu, where, op, x, y) {
    if (anyTensor(gpu, where, [x, y])) return zipped(where, op, [x, y]);
    const {session, list: [a, b]} = operandsOf(gpu, where, [x, y]);
    return new Expr(session, nodes.binary(where, op, a, b));
  },

  /** @param {unknown} gpu @param {string} where @param {number} op @param {unknown} x @param {unknown} y */
  power(gpu, where, op, x, y) {
    return typeof x === 'number' || anyTensor(gpu, where, [y]) ? make.binary(gpu, where, op, x, y) : make.of(gpu, where, [x, y]);
  },

  /**
   * @param {unknown} gpu @param {string} where @param {number} what @param {number} count of operands, -1 for a list of them @param {number} numbers at most
   * @param {unknown[]} x @param {(...args: any[]) => number[]} shape
   */
  made(gpu, where, what, count, numbers, x, shape) {
    const several = count < 0, [given, options] = several ? [x, undefined] : withOptions(x, count), first = Math.abs(count);
    most(where, given, first + numbers);
    const operands = several ? given[0] : Array.from({length: first}, (_, i) => given[i]), list = listed(where, operands);
    if (!list) throw failure('ErrInvalid', where, `${show(operands)} is no array of matrices`);
    const {dtype} = read(where, options, ['dtype']);
    if (what === Shaping.Arange && given[2] === 0) throw failure('ErrInvalid', where, 'step 0');
    const parts = list.length > 0 ? operandsOf(gpu, where, list).list : [], type = dtypeOf(where, dtype, FLOAT32);
    const all = what === Shaping.OneHot || list.length === 0 ? type : parts[0].type;
    const many = what === Shaping.VStack || what === Shaping.HStack;
    if (many && list.length === 0) throw failure('ErrInvalid', where, 'no matrices');
    const sized = many ? (/** @type {any[]} */ ...args) => shape(args) : shape;
    return new Expr(sessionOf(gpu), nodes.shaped(where, what, all, parts, given.slice(first), sized));
  },

  /** @param {unknown} gpu @param {string} where @param {number} op @param {unknown} x @param {unknown} y @param {unknown} z */
  ternary(gpu, where, op, x, y, z) {
    if (anyTensor(gpu, where, [x, y, z])) return zipped(where, op, [x, y, z]);
    const {session, list: [a, b, c]} = operandsOf(gpu, where, [x, y, z]);
    return new Expr(session, nodes.ternary(where, op, a, b, c));
  },
};

/** A device and everything made with it. */
export class Gpu extends numpyFunctions(functions(make), make.matrix) {
  #session;
  #nn;
  #info;
  /** @type {GPUDevice | null} */
  #device = null;
  /** @type {Promise<{reason: string, message: string}>} */
  #lost = new Promise(() => {});
  #wasm;
  /** What that is compiled to. @type {import('./loader.mjs').Loading | null} */
  #loading = null;
  /** The program of crunchers, once one was wanted. @type {Promise<Crunch> | null} */
  #crunch = null;
  /** Those of devices that were lost: their crunchers go on with other devices. @type {Set<Promise<Crunch>>} */
  #retired = new Set();

  static {
    tag(this, 'Gpu');
    sessionOf = (gpu) => /** @type {Gpu} */ (gpu).#session;
  }

  /** @param {Session} session @param {any} info @param {GPUDevice | null} device @param {unknown} [wasm] that program, as init was given it */
  constructor(session, info, device, wasm) {
    super();
    if (!(session instanceof Session)) throw failure('ErrInvalid', 'Gpu', 'it comes from init');
    this.#session = session;
    this.#nn = new NN(session);
    this.#wasm = wasm;
    Object.freeze(info.limits);
    Object.freeze(info.features);
    this.#info = Object.freeze(Object.setPrototypeOf(info, Info.prototype));
    session.place = info.driver === 'browser' ? 'webgpu' : info.driver;
    session.limit = Math.min(info.limits.maxBufferSize, MAX_BYTES);
    this.#use(device);
  }

  /** @param {GPUDevice | null} device */
  #use(device) {
    if (!device || device === this.#device) return;
    if (this.#crunch) this.#retire(this.#crunch);
    this.#device = this.#session.device = device;
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

  /** @param {...any} x rows and columns, the values, the options, or arrays of the rows and the options */
  matrix(...x) {
    const where = 'matrix', [rows, cols, values, options] = x, alone = options === undefined && tagOf(values) === 'Object';
    most(where, x, 4);
    if (ArrayBuffer.isView(rows)) throw failure('ErrShape', where, `a typed array in place of sizes; ${MATRIX}`);
    if (!isArray(rows)) return this.#filled(where, rows, cols, alone ? undefined : values, alone ? values : options);
    const list = given(where, rows), o = read(where, cols, PLACE);
    if (values !== undefined || options !== undefined) throw failure('ErrInvalid', where, 'sizes after an array of rows, which has them');
    if (list.shape?.length !== 2) throw failure('ErrShape', where, `${list.shape ? 'arrays of' : 'an array that is'} no rows; ${MATRIX}`);
    const [height, width] = list.shape, pairs = dtypeOf(where, o.dtype, FLOAT32) === COMPLEX64;
    return this.#filled(where, height, pairs ? width / 2 : width, rows, o);
  }

  /**
   * @param {string} where @param {any} rows @param {any} cols @param {unknown} from values @param {unknown} options
   * @param {number} [value] of all elements
   */
  #filled(where, rows, cols, from, options, value = 0) {
    const o = read(where, options, PLACE), {values, shape} = given(where, from), own = typedArrayClass(values);
    const memory = place(this.#session, where, dtypeOf(where, o.dtype, dtypeOfClass(own) ?? FLOAT32), rows, cols, o, 'owned');
    if (shape) checkRows(where, shape, rows, cols, memory.type);
    const data = values === undefined ? null : guard(where, () => dataOf(where, memory.type, rows * cols, values, o.dtype));
    const fill = Object.is(value, 0) ? null : nodes.filled(where, memory.type, rows, cols, value);
    return this.#matrix(memory, (leaf) => {
      this.#session.newMatrix(leaf, memory, data);
      if (fill) this.#session.assign(leaf, fill, true);
      if (data) remember(memory, data.bytes, memory.byColumns);
      else rememberFill(memory, value);
    });
  }

  /** @param {...unknown} x rows and columns, the options */
  zeros(...x) {
    const [rows, cols, options] = sized('zeros', x, 0, 3);
    return this.#filled('zeros', rows, cols, undefined, options);
  }

  /** @param {...unknown} x rows and columns, the options */
  ones(...x) {
    const [rows, cols, options] = sized('ones', x, 0, 3);
    return this.#filled('ones', rows, cols, undefined, options, 1);
  }

  /** @param {...unknown} x rows and columns, the value, the options */
  full(...x) {
    const [rows, cols, value, options] = sized('full', x, 0, 4);
    if (typeof value !== 'number') throw failure('ErrInvalid', 'full', `${show(value)} is no number`);
    return this.#filled('full', rows, cols, undefined, options, value);
  }

  /** @param {...any} x their number, the options */
  eye(...x) {
    const where = 'eye', [n, options] = x;
    if (typeof options === 'number') throw failure('ErrInvalid', where, `${show(n)}x${options}; it is square, eye(n), and slice makes other matrices of it`);
    most(where, x, 2);
    nodes.checkDims(where, n, n);
    const {dtype} = read(where, options, PLACE), type = dtypeOf(where, dtype, FLOAT32);
    const values = allocate(where, () => {
      const a = new Float32Array(numbersIn(type, n * n));
      for (let i = 0; i < n; i++) a[numbersIn(type, i * (n + 1))] = 1;
      return a;
    });
    return this.#filled(where, n, n, holds('Float32Array', type) ? values : allocate(where, () => Array.from(values)), options);
  }

  /** @param {...unknown} x the memory, rows and columns, the options */
  wrap(...x) {
    const [data, rows, cols, options] = sized('wrap', x, 1, 4);
    if (tagOf(data) === 'GPUBuffer') throw failure('ErrInvalid', 'wrap', 'a GPUBuffer; use wrapBuffer');
    return this.#from('wrap', data, rows, cols, {...read('wrap', options, WRAP), dontOwnBuffer: true});
  }

  /** @param {...unknown} x the buffer, rows and columns, the options */
  wrapBuffer(...x) {
    const where = 'wrapBuffer', [buffer, rows, cols, options] = sized(where, x, 1, 4);
    if (tagOf(buffer) !== 'GPUBuffer') throw failure('ErrInvalid', where, `${show(buffer)} is no GPUBuffer`);
    return this.#from(where, buffer, rows, cols, {...read(where, options, WRAP), dontOwnBuffer: true});
  }

  /** @param {...unknown} x the memory, rows and columns, the options */
  fromBuffer(...x) {
    const [data, rows, cols, options] = sized('fromBuffer', x, 1, 4);
    return this.#from('fromBuffer', data, rows, cols, read('fromBuffer', options, FROM));
  }

  /** @param {string} where @param {unknown} data @param {number} rows @param {number} cols @param {Record<string, any>} options */
  #from(where, data, rows, cols, options) {
    const origin = originOf(this.#session, where, data, rows, cols, options, FLOAT32);
    return this.#matrix(origin.memory, (leaf) => this.#session.from(leaf, origin));
  }

  // Arrays of more dimensions.

  /** @param {unknown} from @param {unknown} [shape] or the options, after arrays that have a shape @param {unknown} [options] */
  tensor(from, shape, options) {
    const where = 'tensor', lists = isArray(from), sized = isArray(shape);
    if (lists && (isNested(where, from) || !sized)) return this.#nested(where, /** @type {any[]} */ (from), sized ? shape : undefined, sized ? options : shape);
    if (!sized) throw failure('ErrInvalid', where, `shape ${show(shape)} is no array of dimensions`);
    if (!tensorOf(this, where, from) && inside(from, where)) matrixOf(this, where, from);
    return newTensor(where, from, [shape], options, (rows, cols, o) => this.#filled(where, rows, cols, from, o));
  }

  /** A tensor of arrays in arrays. @param {string} where @param {any[]} from @param {unknown} sizes their shape once more @param {unknown} options */
  #nested(where, from, sizes, options) {
    const {shape, values} = flattened(where, from), o = read(where, options, ['dtype']), pairs = dtypeOf(where, o.dtype, FLOAT32) === COMPLEX64;
    const own = pairs ? [...shape.slice(0, -1), shape[shape.length - 1] / 2] : shape, said = sizes === undefined ? own : shapeFor(where, own, [sizes]);
    if (text(own) !== text(said)) throw failure('ErrShape', where, `arrays of shape ${text(own)} as ${text(said)}`);
    return newTensor(where, values, [own], o, (rows, cols, o) => this.#filled(where, rows, cols, values, o));
  }

  /** @param {unknown} source @param {unknown} [options] */
  async fromImage(source, options) {
    return fromImage(this.#session, source, options);
  }

  get nn() { return this.#nn; }
  get tuning() { return this.#session.tuning; }

  // Sparse matrices.

  /** @param {...unknown} x rows, columns and the parts, or those of entries with their places, which have a shape */
  sparse(...x) {
    if (x.length === 1 && !isArray(x[0])) return makeCoordinates(this.#session, 'sparse', x[0]);
    const [rows, cols, parts] = sized('sparse', x, 0, 3);
    return makeSparse(this.#session, 'sparse', rows, cols, parts, false);
  }

  /** @param {...unknown} x rows, columns and the parts */
  wrapSparse(...x) {
    const [rows, cols, parts] = sized('wrapSparse', x, 0, 3);
    return makeSparse(this.#session, 'wrapSparse', rows, cols, parts, true);
  }

  /** @param {unknown} x @param {unknown} [options] */
  async sparseFrom(x, options) {
    return compress('sparseFrom', this.#session, matrixOf(this, 'sparseFrom', x), options);
  }

  /** @param {...unknown} x rows and columns, the options */
  map(...x) {
    const where = 'map', [rows, cols, options] = sized(where, x, 0, 3), o = read(where, options, ['dtype', 'order']);
    const memory = place(this.#session, where, dtypeOf(where, o.dtype, FLOAT32), rows, cols, o, 'mapped');
    const buffer = allocate(where, () => new ArrayBuffer(Math.ceil(memory.span * memory.type.size / 4) * 4));
    memory.host = new memory.type.Array(buffer, 0, numbersIn(memory.type, memory.span));
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

  /** @param {unknown} source @param {unknown} [options] @returns {Promise<any>} */
  async load(source, options) {
    return loadFile(this, this.#session, source, options);
  }

  /** @param {unknown} entries @param {unknown} options */
  async save(entries, options) {
    return saveFile(this.#session, entries, options);
  }

  /** @param {unknown} fn @param {unknown} [options] */
  async record(fn, options) {
    return record(this.#session, fn, options);
  }

  /** @param {unknown} wgsl */
  fn(wgsl) {
    return new Fn(this.#session, wgsl);
  }

  /** @param {unknown} [options] */
  async graph(options) {
    this.#session.check();
    const {Graph} = await graphs();
    return new Graph(this, options);
  }

  // Kernels of the user's on several devices.

  /** @param {unknown} wgsl @param {unknown} [options] */
  async cruncher(wgsl, options) {
    const device = this.#device;
    this.#session.check();
    const {Cruncher} = await crunchers();
    this.#session.check();
    return Cruncher.open(() => this.#cruncherProgram(device), device, wgsl, options);
  }

  /** @param {GPUDevice | null} device */
  async #cruncherProgram(device) {
    const opened = this.#crunch ?? this.#newCruncherProgram(device);
    try {
      const crunch = await opened;
      this.#session.check(); // it may have been closed meanwhile
      crunch.hold();
      return crunch;
    } catch (error) {
      this.#forget(opened);
      return allocate('cruncher', () => { throw error; });
    }
  }

  /** @param {GPUDevice | null} device */
  #newCruncherProgram(device) {
    const opened = this.#crunch = this.#startCruncher(device);
    opened.then((crunch) => {
      started.set(opened, crunch);
      return crunch.ended;
    }).then(() => this.#forget(opened), () => {});
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

  /** @param {GPUDevice | null} device */
  async #startCruncher(device) {
    const loading = this.#loading ??= moduleOf(this.#wasm, CRUNCHER_PROGRAM, this.#info.threads); // a response can be read once only
    loading.module.catch(() => { this.#loading = null; });
    const {Crunch} = await crunchers(), crunch = await Crunch.open(loading, device, this.#info.driver);
    crunch.leaks = this.#session.leaks;
    return crunch;
  }

  /** @param {unknown} fn @param {...unknown} args */
  apply(fn, ...args) { return anyTensor(this, 'apply', args) ? appliedTensor('apply', fn, args) : applied('apply', fn, args); }

  /** @param {...unknown} x */
  transpose(...x) { return make.of(this, 'transpose', x); }

  // The device.

  /** @param {unknown} [options] */
  async sync(options) {
    return this.#session.wait(signalOf('sync', options));
  }

  flush() {
    this.#session.flush();
  }

  /** @param {unknown} [options] */
  async reopen(options) {
    const where = 'reopen', {device, signal} = read(where, options, ['device', 'signal']);
    if (device !== undefined && tagOf(device) !== 'GPUDevice') throw failure('ErrInvalid', where, `device ${show(device)} is no GPUDevice`);
    this.#use(await this.#session.reopen(device, checkSignal(where, signal)));
  }

  stats() {
    const counters = this.#session.stats();
    return Object.fromEntries(COUNTERS.map((name, i) => [name, counters[i]]));
  }

  /** @param {unknown} message */
  attach(message) {
    return attached(this, message);
  }

  /** @param {any} fn */
  scope(fn) {
    return scoped(this.#session, fn);
  }

  leaks() {
    const {leaks} = this.#session;
    if (!leaks) throw failure('ErrUnsupported', 'leaks', 'only init({debug: "leaks"}) keeps account of what is open');
    return leaks.list();
  }

  close() {
    this.#session.leaks?.report();
    this.#session.close();
    if (this.#crunch) this.#retired.add(this.#crunch);
    for (const opened of this.#retired) {
      started.get(opened)?.close(); // at once
      opened.then((crunch) => crunch.close(), () => {});
    }
    this.#retired.clear();
    this.#crunch = null;
  }

  [Symbol.dispose]() {
    this.close();
  }

  toString() { return printLine('Gpu', () => `${this.#info}${this.#session.over ? ', closed' : ''}`); }

  [INSPECT]() { return this.toString(); }
}
