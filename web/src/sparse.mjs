// SPDX-License-Identifier: Apache-2.0

import {pair} from './arguments.mjs';
import {bytesOf, dataOf} from './data.mjs';
import {FLOAT32, dtypeOf, dtypeOfClass, scalarBits, typedArrayClass} from './dtype.mjs';
import {allocate, failure, guard, isArray, needs, shapeError, show} from './errors.mjs';
import {Expr, inside, useSparse} from './expr.mjs';
import {printLine, tag} from './inspect.mjs';
import {Matrix} from './matrix.mjs';
import {Held, Memory, Store} from './memory.mjs';
import {instead} from './nearest.mjs';
import {Node, checkDims} from './node.mjs';
import {Command, Op, SPARSE_WRAPPED} from './protocol.mjs';
import {checkSignal, read, releaseOf, signalOf} from './source.mjs';

/** @typedef {import('./dtype.mjs').DType} DType */
/** @typedef {import('./session.mjs').Session} Session */

/** The formats in the order of the numbers that Go knows them by. */
const FORMATS = ['csc', 'csr', 'blockColumn'];
const CSR = 1, BLOCKS = 2;

/** The most rows, columns and stored values. */
const MAX = 0x7fffffff;

/** @param {string} where @param {unknown} name */
function formatOf(where, name) {
  const format = FORMATS.indexOf(/** @type {string} */ (name));
  if (format < 0) throw failure('ErrInvalid', where, `format ${show(name)}; ${instead(name, FORMATS)}`);
  return format;
}

/**
 * Where the entries of a matrix are: all of it that is needed to know their number. "Major" is what the offsets count,
 * columns or the rows of CSR. It is shared with the matrix's slices.
 */
class Structure {
  /**
   * @param {number} format @param {number} majors @param {number} minors
   * @param {Int32Array} indices @param {Int32Array} offsets the user's
   */
  constructor(format, majors, minors, indices, offsets) {
    this.format = format;
    this.majors = majors;
    this.minors = minors;
    /** Entries, or blocks. */
    this.count = 0;
    this.offsets = offsets;
    /** The last major with entries: what the offsets behind it are is not kept while entries are appended. */
    this.begun = 0;
    /** The index of the last entry. */
    this.last = -1;
    this.note(indices, offsets);
  }

  /** @param {Int32Array} indices @param {Int32Array} offsets */
  note(indices, offsets) {
    this.count = indices.length;
    this.offsets = offsets.slice();
    this.begun = Math.max(this.majors - 1, 0);
    while (this.format !== BLOCKS && this.begun > 0 && offsets[this.begun] === this.count) this.begun--;
    this.last = this.count > 0 ? indices[this.count - 1] : -1;
  }

  /** @param {number} major */
  offset(major) {
    return major <= this.begun ? this.offsets[major] : this.count;
  }

  /** @param {string} where @param {number} major @param {number} minor */
  append(where, major, minor) {
    if (major < this.begun || (major === this.begun && this.count > this.offsets[major] && minor <= this.last)) {
      throw failure('ErrOrder', where, `${major}, ${minor} after ${this.begun}, ${this.last}`);
    }
    if (this.count >= MAX) throw failure('ErrLimit', where, `more than ${MAX} entries`);
    return () => {
      while (this.begun < major) this.offsets[++this.begun] = this.count;
      this.count++;
      this.last = minor;
    };
  }
}

/** Checks that indices are in range and increase. @param {string} where @param {Int32Array} indices @param {number} from @param {number} to @param {number} end */
function increasing(where, indices, from, to, end) {
  for (let k = from; k < to; k++) {
    if (indices[k] < 0 || indices[k] >= end) throw failure('ErrIndex', where, `${indices[k]} of ${end}`);
    if (k > from && indices[k] <= indices[k - 1]) throw failure('ErrSparse', where, `index ${indices[k]} after ${indices[k - 1]} in place ${k}; in a column, or a row of csr, they increase`);
  }
}

/** Refuses what is no structure; Go does so as well. @param {string} where @param {number} format @param {number} majors @param {number} minors @param {Int32Array} indices @param {Int32Array} offsets */
function checkStructure(where, format, majors, minors, indices, offsets) {
  if (format === BLOCKS) return increasing(where, indices, 0, indices.length, majors);
  if (offsets[0] !== 0 || offsets[majors] !== indices.length) {
    throw failure('ErrSparse', where, `offsets from ${offsets[0]} to ${offsets[majors]} for ${indices.length} entries`);
  }
  for (let c = 0; c < majors; c++) {
    if (offsets[c + 1] < offsets[c] || offsets[c + 1] > indices.length) {
      throw failure('ErrSparse', where, `offset ${c + 1} is ${offsets[c + 1]} after ${offsets[c]}`);
    }
    increasing(where, indices, offsets[c], offsets[c + 1], minors);
  }
}

/**
 * Indices or offsets as numbers of 32 bits.
 * @param {string} where @param {string} name @param {any} values @param {boolean} wrapped @returns {Int32Array}
 */
function numbers(where, name, values, wrapped) {
  if (values === undefined || values === null) throw failure('ErrNil', where, `no ${name}`);
  const own = typedArrayClass(values);
  if (own === 'Int32Array') return values;
  if (own === 'Uint32Array') return new Int32Array(values.buffer, values.byteOffset, values.length); // what is too large is negative
  if (wrapped || own !== undefined || !isArray(values)) {
    throw failure('ErrInvalid', where, `${name} ${show(values)}; they are an Int32Array or a Uint32Array`);
  }
  return guard(where, () => {
    const {length} = values, list = allocate(where, () => new Int32Array(length));
    for (let i = 0; i < length; i++) {
      const n = values[i];
      if (!Number.isInteger(n) || n < 0 || n > MAX) throw failure('ErrIndex', where, `${show(n)} among ${name}`);
      list[i] = n;
    }
    return list;
  });
}

/** @param {string} where @param {number} have @param {number} need @param {string} what */
function exactly(where, have, need, what) {
  if (have < need) throw failure('ErrShort', where, `${have} ${what} where ${need} are needed`);
  if (have > need) throw failure('ErrShape', where, `${have} ${what} where ${need} are needed`);
}

/** @param {Session} session @param {string} where @param {any} rows @param {any} cols @param {unknown} parts @param {boolean} wrapped */
export function makeSparse(session, where, rows, cols, parts, wrapped) {
  checkDims(where, rows, cols, true);
  if (rows > MAX || cols > MAX) throw failure('ErrLimit', where, `${rows}x${cols}`);
  if (parts === undefined) throw failure('ErrNil', where, 'no values');
  const o = read(where, parts, ['format', 'values', 'indices', 'offsets', 'dtype', 'release']);
  const format = formatOf(where, o.format), majors = format === CSR ? rows : cols, minors = format === CSR ? cols : rows;
  if (!wrapped && o.release !== undefined) throw failure('ErrInvalid', where, 'a release function for memory that is copied');
  if (o.values === undefined || o.values === null) throw failure('ErrNil', where, 'no values');
  const own = dtypeOfClass(typedArrayClass(o.values)), type = dtypeOf(where, o.dtype, own ?? FLOAT32);
  if (type.size !== 4) throw failure('ErrUnsupported', where, `sparse matrices of ${type.name}`);
  if (wrapped && own !== type) throw failure('ErrInvalid', where, `values ${show(o.values)}; they are a ${type.Array.name}`);
  const indices = numbers(where, 'indices', o.indices, wrapped);
  const offsets = numbers(where, 'offsets', format === BLOCKS ? o.offsets ?? [] : o.offsets, wrapped && format !== BLOCKS);
  const count = indices.length * (format === BLOCKS ? rows : 1);
  if (count > MAX) throw failure('ErrLimit', where, `${count} values`);
  exactly(where, offsets.length, format === BLOCKS ? 0 : majors + 1, 'offsets');
  const values = guard(where, () => wrapped ? bytesOf(o.values) : dataOf(where, type, count, o.values, o.dtype).bytes);
  exactly(where, values.length / type.size, count, 'values');
  if (values.length > session.limit) throw failure('ErrLimit', where, `${values.length} bytes, the largest buffer has ${session.limit}`);
  checkStructure(where, format, majors, minors, indices, offsets);

  const held = new Held(session, new Store(releaseOf(where, o.release)));
  const matrix = new Sparse(held, type, new Structure(format, majors, minors, indices, offsets), 0, majors, wrapped ? {indices, offsets} : null, false);
  session.sparse(keyOf(matrix), held, [type.id | (format << 8) | (wrapped ? SPARSE_WRAPPED : 0), rows, cols], values, indices, offsets, wrapped);
  return matrix;
}

/**
 * Entries with their places, in any order, row by row: of one place they are added up, in the type of the array.
 * @template {{[i: number]: number, length: number, subarray: (from: number, to: number) => any}} A
 * @param {number} rows @param {ArrayLike<number>} is @param {ArrayLike<number>} js @param {ArrayLike<number>} list @param {A} values as long
 */
export function compressed(rows, is, js, list, values) {
  const order = Uint32Array.from({length: list.length}, (_, k) => k).sort((a, b) => is[a] - is[b] || js[a] - js[b] || a - b);
  const indices = new Int32Array(order.length), offsets = new Int32Array(rows + 1);
  let n = 0, last = -1;
  for (const k of order) {
    if (last >= 0 && is[last] === is[k] && js[last] === js[k]) values[n - 1] += list[k];
    else {
      values[n] = list[k];
      indices[n++] = js[k];
      offsets[is[k] + 1]++;
    }
    last = k;
  }
  for (let i = 0; i < rows; i++) offsets[i + 1] += offsets[i];
  return {values: /** @type {A} */ (values.subarray(0, n)), indices: indices.subarray(0, n), offsets};
}

/** A matrix of entries with their rows and columns, compressed by rows. @param {Session} session @param {string} where @param {unknown} parts */
export function makeCoordinates(session, where, parts) {
  if (typeof parts !== 'object' || parts === null) throw failure('ErrInvalid', where, `${show(parts)}; it takes {rows, cols, values, shape}, or rows, columns and {format, values, indices, offsets}`);
  const o = read(where, parts, ['rows', 'cols', 'values', 'shape', 'dtype']);
  if (o.values === undefined || o.values === null) throw failure('ErrNil', where, 'no values');
  const [rows, cols] = pair(where, [o.shape]), is = numbers(where, 'rows', o.rows, false), js = numbers(where, 'cols', o.cols, false);
  checkDims(where, rows, cols, true);
  if (rows > MAX || cols > MAX) throw failure('ErrLimit', where, `${rows}x${cols}`);
  const type = dtypeOf(where, o.dtype, dtypeOfClass(typedArrayClass(o.values)) ?? FLOAT32), count = is.length;
  if (type.size !== 4) throw failure('ErrUnsupported', where, `sparse matrices of ${type.name}`);
  exactly(where, js.length, count, 'cols');
  const {bytes} = guard(where, () => dataOf(where, type, count, o.values, o.dtype));
  exactly(where, bytes.length / type.size, count, 'values');
  for (let k = 0; k < count; k++) {
    if (is[k] < 0 || is[k] >= rows || js[k] < 0 || js[k] >= cols) throw failure('ErrIndex', where, `${is[k]}, ${js[k]} in place ${k} of ${rows}x${cols}`);
  }
  return allocate(where, () => {
    const list = /** @type {any} */ (new type.Array(bytes.slice().buffer)), of = compressed(rows, is, js, list, /** @type {any} */ (new type.Array(count)));
    return makeSparse(session, where, rows, cols, {format: 'csr', ...of}, false);
  });
}

/** The elements of an expression that are not 0, as a sparse matrix. @param {string} where @param {Session} session @param {import('./expr.mjs').Expr} x @param {unknown} options */
export async function compress(where, session, x, options) {
  const o = read(where, options ?? {}, ['format', 'signal']), format = formatOf(where, o.format ?? 'csc'), signal = checkSignal(where, o.signal);
  const {rows, cols} = x;
  if (dtypeOf(where, x.dtype, FLOAT32).size !== 4) throw failure('ErrUnsupported', where, `sparse matrices of ${x.dtype}`);
  const elements = await (format === CSR ? x : x.T).read(undefined, {signal});
  return allocate(where, () => {
    const majors = format === CSR ? rows : cols, minors = format === CSR ? cols : rows;
    const pack = format === BLOCKS ? packBlocks : packEntries;
    return makeSparse(session, where, rows, cols, {format: FORMATS[format], ...pack(elements, majors, minors)}, false);
  });
}

/** @param {any} elements those of one major after the other @param {number} majors @param {number} minors */
function packEntries(elements, majors, minors) {
  const bits = new Uint32Array(elements.buffer, elements.byteOffset, elements.length); // so that -0 and NaN survive
  const count = bits.reduce((n, b) => n + (b === 0 ? 0 : 1), 0);
  const indices = new Int32Array(count), offsets = new Int32Array(majors + 1);
  let n = 0;
  for (let c = 0; c < majors; c++) {
    for (let i = 0; i < minors; i++) {
      const b = bits[c * minors + i];
      if (b === 0) continue;
      bits[n] = b;
      indices[n++] = i;
    }
    offsets[c + 1] = n;
  }
  return {values: elements.subarray(0, n), indices, offsets};
}

/** @param {any} elements those of one column after the other @param {number} cols @param {number} rows */
function packBlocks(elements, cols, rows) {
  const bits = new Uint32Array(elements.buffer, elements.byteOffset, elements.length);
  /** @type {number[]} */
  const indices = [];
  for (let c = 0; c < cols; c++) {
    const column = bits.subarray(c * rows, (c + 1) * rows);
    if (column.every((b) => b === 0)) continue;
    bits.set(column, indices.length * rows);
    indices.push(c);
  }
  return {values: elements.subarray(0, indices.length * rows), indices};
}

/** In place of a format: the one that the result has. */
const ANY = 255;

/**
 * Evaluates a sparse expression, or the product of an expression and a sparse matrix in whole columns.
 * @param {string} where @param {Session} session @param {Node} node @param {unknown} options @param {{held: Held, cols: number} | null} [of]
 */
async function evaluated(where, session, node, options, of = null) {
  const o = read(where, options, ['format', 'signal']), {format} = o, signal = checkSignal(where, o.signal);
  const wanted = format === undefined ? ANY : formatOf(where, format);
  if (node.type.size !== 4) throw failure('ErrUnsupported', where, `sparse matrices of ${node.type.name}`);
  const rows = node.rows, cols = of ? of.cols : node.cols;
  const held = new Held(session, new Store()), leaf = leafOf(held, node.type, rows, cols);
  const [code, count] = await session.sparseEval(where, leaf, held, node, wanted, of?.held ?? null, signal);
  const majors = code === CSR ? rows : cols, minors = code === CSR ? cols : rows;
  const [indices, offsets] = allocate(where, () => [new Int32Array(count), new Int32Array(code === BLOCKS ? 0 : majors + 1)]);
  await session.readSparse(held, new Uint8Array(0), indices, offsets, signal);
  return new Sparse(held, node.type, new Structure(code, majors, minors, indices, offsets), 0, majors, null, false, leaf);
}

useSparse((where, session, node, options) => evaluated(where, session, node, options));

/** What stands for a sparse matrix in expressions. @param {Held} held @param {DType} type @param {number} rows @param {number} cols */
function leafOf(held, type, rows, cols) {
  const leaf = new Node(Op.Leaf, type, rows, cols);
  leaf.sparse = true;
  leaf.memory = /** @type {Memory} */ (held); // of which it needs nothing else
  return leaf;
}

/** The leaf of a matrix, which the collector watches: expressions keep it. @param {Sparse} matrix */
const keyOf = (matrix) => /** @type {{node: Node}} */ (inside(matrix, 'sparse')).node;

/** A matrix of which only some elements are stored. It is an expression, too. */
export class Sparse extends Expr {
  static { tag(this, 'Sparse'); }

  #held;
  #type;
  #structure;
  #first;
  #majors;
  /** The user's own, to be looked at again by touch(). */
  #wrapped;
  #view;

  /**
   * @param {Held} held @param {DType} type @param {Structure} structure @param {number} first @param {number} majors of the structure
   * @param {{indices: Int32Array, offsets: Int32Array} | null} wrapped @param {boolean} view whether it is a slice @param {Node} [leaf]
   */
  constructor(held, type, structure, first, majors, wrapped, view, leaf) {
    const [rows, cols] = structure.format === CSR ? [majors, structure.minors] : [structure.minors, majors];
    super(held.session, leaf ?? leafOf(held, type, rows, cols));
    this.#held = held;
    held.hosted = wrapped !== null;
    this.#type = type;
    this.#structure = structure;
    this.#first = first;
    this.#majors = majors;
    this.#wrapped = wrapped;
    this.#view = view;
    held.bytes = view || wrapped ? 0 : this.nnz * type.size + 4 * (structure.count + structure.offsets.length);
    held.session.scope?.add(this);
  }

  get format() { return FORMATS[this.#structure.format]; }
  get external() { return this.#wrapped !== null; }
  get closed() { return this.#held.over; }

  get nnz() {
    const s = this.#structure;
    return s.format === BLOCKS ? s.count * s.minors : s.offset(this.#first + this.#majors) - s.offset(this.#first);
  }

  toDense() { return this.eval(); }

  /** @param {unknown} x @param {unknown} [options] */
  async mulBlockColumn(x, options) {
    const where = 'mulBlockColumn', part = inside(x, where);
    if (!part) throw failure('ErrInvalid', where, `${show(x)} is no matrix`);
    if (part.session !== this.#held.session) throw failure('ErrForeign', where, 'operands of two devices');
    const {node} = part;
    if (node.type !== this.#type) throw failure('ErrInvalid', where, `${node.type.name} with ${this.#type.name}; convert with astype`);
    if (node.cols !== this.rows) throw shapeError(where, needs('the second factor', node.cols, 'row'), node, this);
    return evaluated(where, part.session, node, options, {held: this.#held, cols: this.cols});
  }

  /** @param {number} start @param {number} count */
  columnSlice(start, count) {
    const where = 'columnSlice', s = this.#structure, held = this.#held;
    held.use(where);
    if (this.format !== 'csc') throw failure('ErrUnsupported', where, `slices of ${this.format}`);
    if (!Number.isInteger(start) || !Number.isInteger(count) || start < 0 || count < 0 || start > this.cols - count) {
      throw failure('ErrIndex', where, `${show(count)} columns from ${show(start)} of ${this.rows}x${this.cols}`);
    }
    const next = new Held(held.session, held.store);
    const slice = new Sparse(next, this.#type, s, this.#first + start, count, this.#wrapped, true);
    held.session.share(Command.Columns, keyOf(slice), next, where, held, [start, count]);
    return slice;
  }

  /** @param {number} i @param {number} j @param {number} value */
  append(i, j, value) {
    const where = 'append', held = this.#held;
    held.use(where);
    if (this.external) throw failure('ErrExternalResize', where, 'nothing can be appended');
    if (this.#view) throw failure('ErrView', where, 'nothing can be appended to a slice');
    if (this.#structure.format === BLOCKS) throw failure('ErrUnsupported', where, 'block columns have no single entries');
    if (!Number.isInteger(i) || !Number.isInteger(j) || i < 0 || i >= this.rows || j < 0 || j >= this.cols) {
      throw failure('ErrIndex', where, `${show(i)}, ${show(j)} of ${this.rows}x${this.cols}`);
    }
    if (typeof value !== 'number') throw failure('ErrInvalid', where, `${show(value)} is no number`);
    const bits = scalarBits(where, this.#type, value);
    if (held.store.shares > 1) throw failure('ErrView', where, 'the matrix has views');
    const [major, minor] = this.#structure.format === CSR ? [i, j] : [j, i];
    const done = this.#structure.append(where, major, minor);
    held.session.append(held, i, j, bits);
    done();
    return this;
  }

  values() {
    const held = this.#held, {session} = held, s = this.#structure;
    const blocks = s.format === BLOCKS, rows = blocks ? s.minors : 1, cols = blocks ? s.count : this.nnz;
    const memory = new Memory(session, this.#type, rows, cols, blocks, blocks ? rows : cols, this.external ? 'external' : 'owned', held.store);
    memory.view = true;
    memory.bytes = 0;
    memory.hosted = this.external;
    memory.offset = blocks ? 0 : s.offset(this.#first);
    const leaf = memory.leaf();
    session.share(Command.Values, leaf, memory, 'values', held);
    return new Matrix(session, leaf);
  }

  /** @param {unknown} [options] */
  async parts(options) {
    const signal = signalOf('parts', options), held = this.#held, blocks = this.#structure.format === BLOCKS;
    const [values, indices, offsets] = allocate('parts', () => [
      new this.#type.Array(this.nnz), new Int32Array(blocks ? this.#structure.count : this.nnz), new Int32Array(blocks ? 0 : this.#majors + 1),
    ]);
    await held.session.readSparse(held, values, indices, offsets, signal);
    return {values, indices, offsets};
  }

  /** @param {unknown} [options] */
  async sync(options) {
    return this.#held.session.about(Command.Sync, 'sync', this.#held, signalOf('sync', options));
  }

  touch() {
    const held = this.#held, s = this.#structure;
    held.use('touch');
    if (!this.#wrapped) return this;
    const {indices, offsets} = this.#wrapped;
    const whole = s.count === indices.length && offsets.length === (s.format === BLOCKS ? 0 : s.majors + 1);
    if (!whole) throw failure('ErrShort', 'touch', 'an array that was detached');
    checkStructure('touch', s.format, s.majors, s.minors, indices, offsets);
    held.session.touchSparse(held, indices, offsets);
    s.note(indices, offsets);
    return this;
  }

  close() {
    super.close();
    this.#held.close();
  }

  toString() {
    return printLine('Sparse', () => `${this.rows}x${this.cols} ${this.dtype} ${this.format}, ${this.closed ? 'closed' : `${this.nnz} stored on ${this.#held.session.place}${this.external ? ', external' : ''}`}`);
  }
}
