// SPDX-License-Identifier: Apache-2.0

// A walk at random over the npm package: each step is an operation on some of the objects that there are, and is compared with plain
// arrays. A walk follows from its seed. Elements are whole numbers, which every device computes exactly.

import {check, fails, gpuBuffer} from './testing.mjs';

const LIMIT = 2 ** 24;
const types = {
  float32: {array: Float32Array, norm: (x) => x + 0, exact: (x) => Math.abs(x) <= LIMIT},
  int32: {array: Int32Array, norm: (x) => x | 0, exact: () => true},
  uint32: {array: Uint32Array, norm: (x) => x >>> 0, exact: () => true},
};

const source = 'fn inc(i: u32) { a[i] = a[i] * 3u + by; }';

/** A walk on a device. What it leaves is an error of the test that calls it. */
export class Walk {
  /** @param {import('/dist/index.mjs').Gpu} gpu @param {number} seed */
  constructor(gpu, seed) {
    Object.assign(this, {gpu, seed, state: seed >>> 0, handles: [], others: [], released: 0, releases: 0, log: [], memories: [], buffers: []});
  }

  int(n) { // mulberry32
    this.state = this.state + 0x6d2b79f5 >>> 0;
    let t = Math.imul(this.state ^ this.state >>> 15, this.state | 1);
    t = t + Math.imul(t ^ t >>> 7, t | 61) ^ t;
    return ((t ^ t >>> 14) >>> 0) % n;
  }

  pick(list) { return list[this.int(list.length)]; }
  size() { return this.int(20) === 0 ? 40 + this.int(40) : 1 + this.int(12); }
  fresh(n) { return Array.from({length: n}, () => this.int(9)); }

  async run(steps) {
    for (let step = 1; step <= steps; step++) {
      try {
        this.log.push('?');
        const did = await this.step();
        this.log[this.log.length - 1] = did;
      } catch (error) {
        throw new Error(`seed ${this.seed}, step ${step}: ${error.stack ?? error}\n${this.log.slice(-30).join('\n')}`);
      }
    }
  }

  note(text) { this.log[this.log.length - 1] = text; }

  step() {
    if (this.handles.length < 4) return this.create();
    if (this.handles.length > 20) return this.close();
    const h = this.pick(this.handles);
    switch (this.int(18)) {
      case 0: case 1: return this.create();
      case 2: case 3: case 4: case 5: return this.assign(h);
      case 6: return this.derive(h);
      case 7: return this.same(h);
      case 8: return this.several();
      case 9: return this.sync(h);
      case 10: return this.write(h);
      case 11: return this.move(h);
      case 12: return this.refuse(h);
      case 13: return this.sparse(h);
      case 14: return this.file();
      case 15: return this.crunch();
      case 16: return this.evaluate(h);
      default: return this.close();
    }
  }

  // A handle is a matrix and where its elements are in cells, which the wraps of one typed array share.

  adopt(m, rows, cols, cells, more = {}) {
    const h = {m, rows, cols, cells, off: 0, dr: cols, dc: 1, dtype: m.dtype, root: {shares: 0}, host: null, view: false, fixed: false, ...more};
    h.root.shares++;
    this.handles.push(h);
    return h;
  }

  values(h) {
    const v = [];
    for (let i = 0; i < h.rows; i++) for (let j = 0; j < h.cols; j++) v.push(h.cells[h.off + i * h.dr + j * h.dc]);
    return v;
  }

  store(h, v) {
    for (let i = 0; i < h.rows; i++) for (let j = 0; j < h.cols; j++) h.cells[h.off + i * h.dr + j * h.dc] = v[i * h.cols + j];
  }

  name(h) { return `${h.rows}x${h.cols} of ${h.dtype} at ${h.off} by ${h.dr},${h.dc}${h.view ? ', a view' : ''}${h.host ? ', wrapped' : ''}`; }

  equal(what, got, want) {
    check(got.length === want.length, `${what}: ${got.length} elements, want ${want.length}`);
    want.forEach((w, i) => check(got[i] === w, `${what}: element ${i} is ${got[i]}, want ${w}`));
  }

  async same(h) {
    this.note(`read ${this.name(h)}`);
    const want = this.values(h);
    if (want.length === 1 && this.int(2)) this.equal('value', [await h.m.value()], want);
    else this.equal(this.name(h), await h.m.read(), want);
    return `read ${this.name(h)}`;
  }

  /** Many reads that wait together. */
  async several() {
    this.note('many reads');
    const list = this.handles.slice(0, 5), want = list.map((h) => this.values(h));
    (await Promise.all(list.map(({m}) => m.read()))).forEach((got, i) => this.equal(this.name(list[i]), got, want[i]));
    return 'many reads';
  }

  release() {
    this.releases++;
    return () => { this.released++; };
  }

  create() {
    const {gpu} = this, rows = this.size(), cols = this.size(), v = this.fresh(rows * cols), how = this.int(9);
    const dtype = this.pick(Object.keys(types)), array = types[dtype].array;
    const what = `make ${how}: ${rows}x${cols} of ${dtype}`;
    this.note(what);
    switch (how) {
      case 0: this.adopt(gpu.zeros(rows, cols, {dtype}), rows, cols, v.fill(0)); break;
      case 1: this.adopt(gpu.full(rows, cols, 7, {dtype}), rows, cols, v.fill(7)); break;
      case 2: this.adopt(gpu.matrix(rows, cols, v, {dtype}), rows, cols, v); break;
      case 3: this.adopt(gpu.matrix(rows, cols, array.from(v), {dtype, order: 'column'}), rows, cols, v, {dr: 1, dc: rows}); break;
      case 4: this.adopt(gpu.fromBuffer(array.from(v), rows, cols), rows, cols, v); break;
      case 5: this.adopt(gpu.map(rows, cols, {dtype}), rows, cols, v.fill(0), {fixed: true, mapped: true}); break;
      case 6: {
        const buffer = gpuBuffer(gpu.device, Float32Array.from(v));
        this.buffers.push(buffer);
        this.adopt(gpu.wrapBuffer(buffer, rows, cols, {release: this.release()}), rows, cols, v, {fixed: true, foreign: true});
        break;
      }
      default: {
        const offset = this.int(5), stride = cols + this.int(3), cells = this.fresh(offset + stride * rows);
        const host = array.from(cells);
        this.memories.push(new WeakRef(host));
        const m = gpu.wrap(host, rows, cols, {offset, stride, release: this.release()});
        this.adopt(m, rows, cols, cells, {off: offset, dr: stride, host, fixed: true});
      }
    }
    return what;
  }

  // An expression is {e, rows, cols, v} with its elements row by row.

  leaf(dtype, rows, cols) {
    for (let i = 0; i < 8; i++) {
      const h = this.pick(this.handles);
      if (h.dtype !== dtype) continue;
      const at = (r, c) => h.cells[h.off + r * h.dr + c * h.dc];
      const term = (e, f) => ({e, rows, cols, v: Array.from({length: rows * cols}, (_, k) => f(Math.floor(k / cols), k % cols))});
      if (h.rows === rows && h.cols === cols) return term(h.m, at);
      if (h.rows === cols && h.cols === rows) return term(h.m.T, (r, c) => at(c, r));
      if (h.rows >= rows && h.cols >= cols) {
        const y = this.int(h.rows - rows + 1), x = this.int(h.cols - cols + 1);
        return term(h.m.slice([y, y + rows], [x, x + cols]), (r, c) => at(y + r, x + c));
      }
    }
    return null;
  }

  term(dtype, rows, cols, depth) {
    const {norm} = types[dtype];
    const a = depth > 0 ? this.term(dtype, rows, cols, depth - 1) : this.leaf(dtype, rows, cols);
    if (!a || depth === 0) return a;
    const map = (e, f) => ({e, rows, cols, v: a.v.map((x, i) => norm(f(x, i)))});
    const n = 1 + this.int(3);
    switch (this.int(10)) {
      case 0: return map(a.e.neg(), (x) => -x);
      case 1: return map(a.e.add(n), (x) => x + n);
      case 2: return map(a.e.minimum(n), (x) => Math.min(x, n));
      case 3: return map(a.e.clamp(1, 4), (x) => Math.min(Math.max(x, 1), 4));
      case 4: return {e: a.e.T.neg().T.neg(), rows, cols, v: a.v};
      case 5: { // a product with ones
        const k = this.size(), ones = this.gpu.full(cols, k, 1, {dtype});
        const e = this.gpu.matmul(a.e, ones).slice([0, rows], [0, 1]), v = [];
        for (let i = 0; i < rows; i++) v.push(norm(a.v.slice(i * cols, (i + 1) * cols).reduce((s, x) => s + x, 0)));
        this.temporaries.push(ones);
        return {e: a.e.mul(0).add(e), rows, cols, v: a.v.map((_, i) => v[Math.floor(i / cols)])};
      }
      case 6: { // a reduction that is stretched again
        const v = norm(a.v.reduce((s, x) => s + x, 0));
        return {e: a.e.mul(0).add(a.e.sum()), rows, cols, v: a.v.map(() => v)};
      }
      default: {
        const b = this.leaf(dtype, rows, cols);
        if (!b) return a;
        const zip = (e, f) => ({e, rows, cols, v: a.v.map((x, i) => norm(f(x, b.v[i])))});
        switch (this.int(5)) {
          case 0: return zip(a.e.sub(b.e), (x, y) => x - y);
          case 1: return zip(a.e.maximum(b.e), (x, y) => Math.max(x, y));
          case 2: return zip(a.e.less(b.e), (x, y) => +(x < y));
          case 3: return zip(a.e.clamp(0, 9).mul(b.e.clamp(0, 9)), (x, y) => Math.min(Math.max(x, 0), 9) * Math.min(Math.max(y, 0), 9));
          default: return zip(a.e.add(b.e), (x, y) => x + y);
        }
      }
    }
  }

  /** An expression whose elements the model knows. */
  exact(dtype, rows, cols) {
    this.temporaries = [];
    const t = this.term(dtype, rows, cols, 1 + this.int(3));
    return t && t.v.every(types[dtype].exact) && t.v.every((x) => Math.abs(x) < 2 ** 33) ? t : null;
  }

  assign(h) {
    const t = this.exact(h.dtype, h.rows, h.cols);
    this.note(`assign to ${this.name(h)}`);
    if (t) {
      h.m.assign(t.e);
      this.store(h, t.v);
    }
    for (const m of this.temporaries) m.close();
    return `assigned to ${this.name(h)}`;
  }

  async evaluate(h) {
    const t = this.exact(h.dtype, h.rows, h.cols);
    this.note(`evaluate ${this.name(h)}`);
    if (t) {
      if (this.int(2)) this.equal('expression', await t.e.add(0).read(), t.v);
      else this.adopt(t.e.add(0).eval(), t.rows, t.cols, t.v);
    }
    for (const m of this.temporaries) m.close();
    return `evaluated ${this.name(h)}`;
  }

  /** Views need no closing and are no handles; what is written through them is. */
  async derive(h) {
    const i = this.int(h.rows), j = this.int(h.cols), n = 1 + this.int(h.rows - i), m = 1 + this.int(h.cols - j), how = this.int(5);
    this.note(`derive ${how} of ${this.name(h)}`);
    switch (how) {
      case 0:
        this.equal('another shape', await h.m.reshape(1, h.rows * h.cols).read(), this.values(h));
        break;
      case 1: {
        const v = {...h, rows: n, cols: m, off: h.off + i * h.dr + j * h.dc};
        h.m.slice([i, i + n], [j, j + m]).assign(3);
        this.store(v, Array(n * m).fill(3));
        break;
      }
      case 2: {
        const v = {...h, rows: 1, off: h.off + i * h.dr};
        this.equal('a row', await h.m.row(i).read(), this.values(v));
        break;
      }
      case 3: {
        const v = {...h, rows: h.cols, cols: h.rows, dr: h.dc, dc: h.dr};
        this.equal('the transpose', await h.m.T.read(), this.values(v));
        break;
      }
      default: {
        const a = h.m.memory.alias();
        this.handles.push({...h, m: a});
        h.root.shares++;
      }
    }
    return `derived ${how} of ${this.name(h)}`;
  }

  async sync(h) {
    this.note(`sync ${this.name(h)}`);
    await h.m.sync();
    this.onHost(h);
    return `synced ${this.name(h)}`;
  }

  onHost(h) {
    for (let i = 0; h.host && i < h.rows; i++) {
      for (let j = 0; j < h.cols; j++) {
        const at = h.off + i * h.dr + j * h.dc;
        check(h.host[at] === h.cells[at], `${this.name(h)}: cell ${at} is ${h.host[at]}, want ${h.cells[at]}`);
      }
    }
  }

  async write(h) {
    const v = this.fresh(h.rows * h.cols), what = `write to ${this.name(h)}`;
    this.note(what);
    if (h.host) {
      await h.m.sync();
      this.store(h, v);
      for (let i = 0; i < h.rows; i++) for (let j = 0; j < h.cols; j++) h.host[h.off + i * h.dr + j * h.dc] = h.cells[h.off + i * h.dr + j * h.dc];
      h.m.touch();
    } else if (h.mapped && h.root.shares === 1) {
      await h.m.access(true, (data) => {
        this.equal('mapped', data, h.cells);
        this.store(h, v);
        h.cells.forEach((x, i) => { data[i] = x; });
      });
    } else if (!h.fixed && !h.view) {
      h.m.set(h.dc === 1 ? v : this.turned(v, h.rows, h.cols));
      this.store(h, v);
    }
    return what;
  }

  turned(v, rows, cols) { return Array.from({length: v.length}, (_, k) => v[k % rows * cols + Math.floor(k / rows)]); }

  /** Gives a matrix memory of its own of another size. */
  sized(h, rows, cols, v) { Object.assign(h, {rows, cols, cells: v, off: 0, ...(h.m.order === 'column' ? {dr: 1, dc: rows} : {dr: cols, dc: 1})}); }

  async move(h) {
    const sole = !h.fixed && h.root.shares === 1, o = this.pick(this.handles), how = this.int(6), rows = this.size(), cols = this.size();
    this.note(`move ${how} ${this.name(h)}, ${this.name(o)}`);
    switch (how) {
      case 0: h.m = h.m.memory.move(); break;
      case 1: this.adopt(h.m.clone(), h.rows, h.cols, this.values(h)); break;
      case 2:
        if (sole) {
          h.m.memory.resize(rows, cols).assign(2);
          this.sized(h, rows, cols, []);
          this.store(h, Array(rows * cols).fill(2));
        }
        break;
      case 3:
        if (sole && o !== h && o.dtype === h.dtype) {
          const v = this.values(o);
          h.m.memory.setValue(o.m);
          this.sized(h, o.rows, o.cols, []);
          this.store(h, v);
        }
        break;
      case 4:
        if (sole) {
          const v = this.fresh(rows * cols), order = h.m.order;
          h.m.memory.setValueFrom(types[h.dtype].array.from(v), rows, cols, {order, rowMajorInput: order === 'column'});
          this.sized(h, rows, cols, []);
          this.store(h, v);
        }
        break;
      default:
        if (sole && h.dc === 1) {
          h.m.memory.setShape(1, h.rows * h.cols);
          Object.assign(h, {cols: h.rows * h.cols, rows: 1, dr: h.rows * h.cols});
        }
    }
    return `moved ${how} ${this.name(h)}`;
  }

  async refuse(h) {
    this.note(`refuse ${this.name(h)}`);
    await fails('ErrShape', 'another shape', () => h.m.assign(this.gpu.zeros(h.rows + 1, h.cols + 1, {dtype: h.dtype})));
    await fails('ErrShape', 'a product', () => h.m.matmul(this.gpu.zeros(h.cols + 1, 2, {dtype: h.dtype})));
    if (h.host && h.root.shares === 1) await fails('ErrExternalResize', 'wrapped memory', async () => { h.m.memory.resize(h.rows + 1, h.cols); await this.gpu.sync(); });
    await fails('ErrIndex', 'beyond', () => h.m.row(h.rows));
    return this.same(h);
  }

  async sparse(h) {
    if (h.dtype !== 'float32') return 'no sparse matrix';
    this.note(`sparse ${this.name(h)}`);
    const format = this.pick(['csc', 'csr', 'blockColumn']), want = this.values(h);
    const s = await this.gpu.sparseFrom(h.m, {format}), d = s.toDense();
    this.equal(format, await d.read(), want);
    const ones = this.gpu.ones(h.cols, 1), p = s.matmul(ones).eval();
    const sums = Array.from({length: h.rows}, (_, i) => want.slice(i * h.cols, (i + 1) * h.cols).reduce((a, x) => a + x, 0));
    if (want.every((x) => Math.abs(x) < 1e5)) this.equal('sparse product', await p.read(), sums);
    if (format === 'csc') s.columnSlice(0, 1).close();
    s.values().close();
    for (const x of [d, p, ones]) x.close();
    if (this.int(3)) s.close(); // some are forgotten
    return `sparse ${format} ${this.name(h)}`;
  }

  async file() {
    const list = this.handles.slice(0, 3), want = list.map((h) => this.values(h));
    this.note('file');
    const blob = await this.gpu.saveParams(list.map((h, i) => [`m${i}`, h.m]));
    if (this.int(4) === 0) {
      const gone = new AbortController();
      gone.abort();
      await fails('ErrAborted', 'an aborted load', () => this.gpu.loadParams(blob, {signal: gone.signal}));
    }
    const params = await this.gpu.loadParams(blob);
    for (let i = 0; i < list.length; i++) {
      const m = params.get(`m${i}`).matrix();
      this.equal('loaded', await m.read(), want[i]);
      m.close();
    }
    params.close();
    return 'file';
  }

  /** Calls of a cruncher that stays for some time. */
  async crunch() {
    this.note('crunch');
    if (!this.cruncher) {
      const memory = Uint32Array.from(this.fresh(200)), cr = await this.gpu.cruncher(source, {devices: 'own'});
      this.cruncher = {cr, memory, a: cr.array('a', memory, {partialRead: true}), by: cr.scalar('by', 5, 'uint32'), want: [...memory]};
    }
    const {cr, memory, a, by, want} = this.cruncher, offset = this.int(100), global = 1 + this.int(100);
    await cr.compute(1, 'inc', {global, offset}, a, by);
    for (let i = offset; i < offset + global; i++) want[i] = Math.imul(want[i], 3) + 5 >>> 0;
    this.equal('crunched', memory, want);
    if (this.int(3) === 0) this.crunched();
    return 'crunched';
  }

  crunched() {
    const {cr, a} = this.cruncher ?? {};
    a?.close();
    cr?.close();
    this.cruncher = undefined;
  }

  async close() {
    const i = this.int(this.handles.length), h = this.handles[i];
    this.note(`close ${this.name(h)}`);
    if (h.host) await this.sync(h);
    h.m.close();
    h.m.close();
    h.root.shares--;
    this.handles.splice(i, 1);
    await fails('ErrClosed', 'a closed matrix', () => h.m.read());
    return `closed ${this.name(h)}`;
  }

  /** Closes everything, in any order. */
  async end() {
    this.log.push('end');
    try {
      for (const h of this.handles) await this.same(h);
      while (this.handles.length > 0) await this.close();
      this.crunched();
      await this.gpu.sync();
      await null;
      check(this.released === this.releases, `released ${this.released} times, want ${this.releases}`);
    } catch (error) {
      throw new Error(`seed ${this.seed}, at the end: ${error.stack ?? error}\n${this.log.slice(-30).join('\n')}`);
    }
    for (const b of this.buffers) b.destroy();
  }
}
