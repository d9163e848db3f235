// SPDX-License-Identifier: Apache-2.0

// The operands of the playground: typed, from files, or of random numbers.

import {readText} from './files.mjs';
import {$, bytes} from './page.mjs';
import {open} from './play-files.mjs';
import {number, paint} from './play-view.mjs';

/** @typedef {import('./files.mjs').Table} Table */

/** What has more elements than this is shown as a picture instead of as text. */
const TYPED = 1024;

/** The most elements of a random matrix. */
const MOST = 1 << 24;

/** @param {Table} table */
const asText = ({rows, cols, data}) =>
  Array.from({length: rows}, (_, i) => Array.from(data.subarray(i * cols, i * cols + cols), number).join(' ')).join('\n');

/** The HTML of an operand's card. @param {string} name */
export const card = (name) => `
  <article class="card operand" id="card-${name}">
    <div class="head"><h2><label for="text-${name}">${name}</label></h2><span class="shape" id="shape-${name}"></span></div>
    <textarea id="text-${name}" spellcheck="false" autocomplete="off" rows="5" placeholder="rows of numbers" aria-describedby="hint error-${name}"></textarea>
    <canvas class="preview" id="preview-${name}" role="img" aria-label="${name} as a picture" hidden></canvas>
    <label class="size" id="which-${name}" hidden>tensor <select></select></label>
    <p class="from" id="from-${name}" hidden></p>
    <p class="error small" id="error-${name}" role="alert" hidden></p>
    <div class="tools">
      <label class="button">Open<input type="file" id="file-${name}" aria-label="Open a file for ${name}" accept=".npy,.npz,.csv,.txt,.tsv,.safetensors,.mtx,image/*"></label>
      <button type="button" id="random-${name}" aria-label="Random ${name}">Random</button>
      <input class="dims" id="size-${name}" value="256 x 256" aria-label="Size of random ${name}, rows x columns" spellcheck="false" autocomplete="off">
      <button class="quiet clear" type="button" id="clear-${name}" aria-label="Clear ${name}">Clear</button>
    </div>
  </article>`;

export class Operand {
  /** A matrix from a file or of random numbers; null while the text counts. @type {Table | null} */
  #table = null;
  /** Whether it is grey levels. */
  #picture = false;
  /** The matrix on the device, while it is the current one. @type {import('./index.mjs').Matrix | undefined} */
  #matrix;

  /** @param {string} name @param {string} text what it starts with @param {() => void} changed called when it has other elements @param {Promise<import('./index.mjs').Gpu>} gpu */
  constructor(name, text, changed, gpu) {
    this.gpu = gpu;
    this.name = name;
    this.changed = changed;
    this.text = /** @type {HTMLTextAreaElement} */ ($(`text-${name}`));
    this.text.value = text;
    const box = $(`card-${name}`), file = /** @type {HTMLInputElement} */ ($(`file-${name}`));
    this.text.addEventListener('input', () => this.#take(null, ''));
    file.addEventListener('change', () => {
      void this.open(file.files?.[0]);
      file.value = ''; // so that the same file can be chosen again
    });
    $(`random-${name}`).addEventListener('click', () => this.#random());
    $(`size-${name}`).addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && !event.ctrlKey) this.#random();
    });
    $(`clear-${name}`).addEventListener('click', () => {
      this.text.value = '';
      this.#take(null, '');
      this.text.focus();
    });
    box.addEventListener('dragover', (event) => {
      event.preventDefault();
      box.classList.add('over');
    });
    box.addEventListener('dragleave', () => box.classList.remove('over'));
    box.addEventListener('drop', (event) => {
      event.preventDefault();
      box.classList.remove('over');
      void this.open(event.dataTransfer?.files[0]);
    });
    this.#show();
  }

  /** @returns {Table} */
  get table() {
    const table = this.#table ?? readText(this.text.value);
    if (table.rows * table.cols === 0) throw new Error(`${this.name} is empty`);
    return table;
  }

  /** The operand on the device: the arrays of the page are wrapped, not copied. @param {import('./index.mjs').Gpu} gpu */
  matrix(gpu) {
    const {data, rows, cols} = this.table;
    return this.#matrix ??= gpu.wrap(data, rows, cols);
  }

  /** Says beside the field what is wrong with it; nothing if nothing is. @param {string} message */
  complain(message) {
    const box = $(`error-${this.name}`);
    box.textContent = message;
    box.hidden = message === '';
    this.text.setAttribute('aria-invalid', String(message !== ''));
  }

  get empty() {
    return !this.#table && this.text.value.trim() === '';
  }

  /** What was typed; nothing where it is a file or random numbers. */
  get typed() {
    return this.#table ? '' : this.text.value;
  }

  /** @param {Table | null} table @param {string} from @param {boolean} [picture] */
  #take(table, from, picture = false) {
    this.#picture = picture;
    this.#matrix?.close();
    this.#matrix = undefined;
    this.#table = table;
    const label = $(`from-${this.name}`);
    label.textContent = from;
    label.hidden = from === '';
    $(`which-${this.name}`).hidden = true;
    if (table) this.text.value = table.rows * table.cols <= TYPED ? asText(table) : '';
    this.#show();
    this.changed();
  }

  /** @param {File | undefined} file */
  async open(file) {
    if (!file) return;
    document.body.setAttribute('aria-busy', 'true');
    try {
      const found = await open(await this.gpu, file), from = `${file.name}, ${bytes(file.size)}`;
      this.#take(found[0].table(), from, found[0].picture);
      if (found.length > 1) this.#offer(found, from);
    } catch (error) {
      this.complain(`${file.name}: ${/** @type {Error} */ (error).message.replace(/^sublet: \w+: /, '')}`);
    } finally {
      document.body.removeAttribute('aria-busy');
    }
  }

  /** Lets one choose among the tensors of a file. @param {import('./play-files.mjs').Found} found @param {string} from */
  #offer(found, from) {
    const label = $(`which-${this.name}`), choice = /** @type {HTMLSelectElement} */ (label.querySelector('select'));
    choice.replaceChildren(...found.map(({name}, i) => new Option(name, String(i))));
    choice.onchange = () => {
      try {
        this.#take(found[choice.selectedIndex].table(), from);
      } catch (error) {
        this.complain(/** @type {Error} */ (error).message);
      }
      label.hidden = false;
    };
    label.hidden = false;
  }

  #random() {
    const field = /** @type {HTMLInputElement} */ ($(`size-${this.name}`));
    const [, rows, cols] = (/^\s*(\d+)\s*(?:[x\u00d7*, ]\s*(\d+)\s*)?$/i.exec(field.value) ?? []).map(Number);
    const size = rows * (cols || rows);
    if (!(size > 0)) return this.complain(`"${field.value}" is no size: rows x columns, as in 256 x 256`);
    if (size > MOST) return this.complain(`${field.value} are ${size.toLocaleString('en')} numbers; ${MOST.toLocaleString('en')} are the most here`);
    this.#take({rows, cols: cols || rows, data: Float32Array.from({length: size}, () => Math.random() * 2 - 1)}, 'random numbers from -1 to 1');
  }

  #show() {
    const preview = /** @type {HTMLCanvasElement} */ ($(`preview-${this.name}`)), shape = $(`shape-${this.name}`);
    let table = null, complaint = '';
    try {
      if (this.#table || this.text.value.trim()) table = this.table;
    } catch (error) {
      complaint = /** @type {Error} */ (error).message;
    }
    shape.textContent = table ? `${table.rows} \u00d7 ${table.cols}` : complaint ? '?' : 'empty';
    preview.hidden = !(table && this.#table && table.rows * table.cols > TYPED);
    this.text.hidden = !preview.hidden;
    if (table && !preview.hidden) paint(preview, table, this.#picture ? 'grey' : 'heat');
    this.complain(complaint);
  }
}
