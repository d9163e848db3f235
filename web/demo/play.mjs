// SPDX-License-Identifier: Apache-2.0

import {init} from './index.mjs';
import {readNpy, readText, writeNpy} from './files.mjs';
import {$, bytes, device, download, duration, showAdapter, showError, showNoAdapter} from './page.mjs';

/** @typedef {import('./files.mjs').Table} Table */

/** Rows and columns of the result that are shown. */
const SHOWN = 8;
/** What is larger than this is not shown as text. */
const TYPED = 4096;

/** @param {number} x */
const number = (x) => Number.isInteger(x) && Math.abs(x) < 1e7 ? String(x) : Number(x.toPrecision(6)).toString();

/** @param {unknown} error */
function fail(error) {
  showError(error);
  $('result').hidden = true;
}

/** One of the two operands. */
class Operand {
  /** A matrix from a file or of random numbers; null while the text counts. @type {Table | null} */
  #table = null;

  /** @param {string} name */
  constructor(name) {
    this.name = name;
    this.text = /** @type {HTMLTextAreaElement} */ ($(`text-${name}`));
    this.flip = /** @type {HTMLInputElement} */ ($(`flip-${name}`));
    const card = $(`card-${name}`), file = /** @type {HTMLInputElement} */ ($(`file-${name}`));
    this.text.addEventListener('input', () => { this.take(null, ''); });
    this.flip.addEventListener('change', () => this.show());
    file.addEventListener('change', () => this.open(file.files?.[0]));
    $(`random-${name}`).addEventListener('click', () => this.random());
    card.addEventListener('dragover', (event) => {
      event.preventDefault();
      card.classList.add('over');
    });
    card.addEventListener('dragleave', () => card.classList.remove('over'));
    card.addEventListener('drop', (event) => {
      event.preventDefault();
      card.classList.remove('over');
      this.open(event.dataTransfer?.files[0]);
    });
    this.show();
  }

  /** @returns {Table} */
  get table() {
    return this.#table ?? readText(this.text.value);
  }

  /** @param {Table | null} table @param {string} from */
  take(table, from) {
    this.#table = table;
    const label = $(`from-${this.name}`);
    label.textContent = from;
    label.hidden = from === '';
    if (table) this.text.value = table.rows * table.cols <= TYPED ? asText(table) : '';
    this.text.placeholder = table ? 'too large to show' : '';
    this.show();
  }

  /** @param {File | undefined} file */
  async open(file) {
    if (!file) return;
    try {
      const table = /\.npy$/i.test(file.name) ? readNpy(await file.arrayBuffer()) : readText(await file.text());
      this.take(table, `${file.name}, ${bytes(file.size)}`);
      $('error').hidden = true;
    } catch (error) {
      fail(new Error(`${file.name}: ${/** @type {Error} */ (error).message}`));
    }
  }

  random() {
    const n = Number(/** @type {HTMLSelectElement} */ ($('size')).value);
    this.take({rows: n, cols: n, data: Float32Array.from({length: n * n}, () => Math.random() * 2 - 1)}, 'random numbers from -1 to 1');
  }

  show() {
    let shape = '';
    try {
      const {rows, cols} = this.table;
      shape = this.flip.checked ? `${cols} \u00d7 ${rows}` : `${rows} \u00d7 ${cols}`;
    } catch {
      shape = '?';
    }
    $(`shape-${this.name}`).textContent = shape;
  }
}

/** @param {Table} table */
const asText = ({rows, cols, data}) =>
  Array.from({length: rows}, (_, i) => Array.from(data.subarray(i * cols, i * cols + cols), number).join(' ')).join('\n');

/** The indices that are shown of so many, with -1 for a gap. @param {number} n */
const excerpt = (n) => n <= SHOWN
  ? Array.from({length: n}, (_, i) => i)
  : [...Array(SHOWN - 2).keys(), -1, n - 1];

/** @param {Table} table */
function draw({rows, cols, data}) {
  const table = $('table');
  table.replaceChildren(...excerpt(rows).map((i) => {
    const tr = document.createElement('tr');
    tr.append(...excerpt(cols).map((j) => {
      const td = document.createElement('td');
      const gap = i < 0 || j < 0;
      td.textContent = gap ? (i < 0 && j < 0 ? '\u22f1' : i < 0 ? '\u22ee' : '\u22ef') : number(data[i * cols + j]);
      td.className = gap ? 'gap' : '';
      return tr.appendChild(td);
    }));
    return tr;
  }));
}

/** @param {import('./index.mjs').Gpu} gpu @param {Operand} a @param {Operand} b @returns {Promise<Table>} */
async function multiply(gpu, a, b) {
  const [ta, tb] = [a.table, b.table];
  const before = gpu.stats(), start = performance.now();
  // The arrays of this page are wrapped: the GPU gets them straight from where they are.
  const ma = gpu.wrap(ta.data, ta.rows, ta.cols), mb = gpu.wrap(tb.data, tb.rows, tb.cols);
  try {
    const x = a.flip.checked ? ma.T : ma, y = b.flip.checked ? mb.T : mb;
    const product = x.matmul(y);
    const data = /** @type {Float32Array} */ (await product.read());
    const seconds = (performance.now() - start) / 1000, after = gpu.stats();
    $('fact-time').textContent = duration(seconds);
    $('label-time').textContent = after.compilations > before.compilations ? 'time, compiling the kernel included' : 'time';
    const operations = 2 * product.size * x.cols;
    $('fact-rate').textContent = operations < 1e6 ? '\u2013' : `${number(Number((operations / seconds / 1e9).toPrecision(3)))} GFLOP/s`;
    $('fact-up').textContent = bytes(after.bytesUp - before.bytesUp);
    $('fact-down').textContent = bytes(after.bytesDown - before.bytesDown);
    return {rows: product.rows, cols: product.cols, data};
  } finally {
    ma.close();
    mb.close();
  }
}

async function main() {
  const a = new Operand('a'), b = new Operand('b');
  /** @type {Table | undefined} */
  let result;
  let gpu;
  try {
    gpu = await init({device});
  } catch (error) {
    return showNoAdapter(error);
  }
  showAdapter(gpu.info);
  const button = /** @type {HTMLButtonElement} */ ($('multiply'));
  const run = async () => {
    button.disabled = true;
    $('error').hidden = true;
    try {
      result = await multiply(gpu, a, b);
      $('shape-c').textContent = `${result.rows} \u00d7 ${result.cols}`;
      draw(result);
      $('result').hidden = false;
    } catch (error) {
      fail(error);
    } finally {
      button.disabled = false;
    }
  };
  button.addEventListener('click', run);
  $('save').addEventListener('click', () => {
    if (result) download(writeNpy(result), 'product.npy');
  });
  button.disabled = false;
  document.body.dataset.ready = 'true';
}

main();
