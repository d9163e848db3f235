// SPDX-License-Identifier: Apache-2.0

import {init} from './index.mjs';
import {Reader, SIDE} from './digits-reader.mjs';
import {showReport} from './digits-report.mjs';
import {strokes} from './digits-strokes.mjs';
import {$, bytes, device, duration, showAdapter, showError, showNoAdapter} from './page.mjs';

/** @typedef {import('./index.mjs').Gpu} Gpu */

const drawing = /** @type {HTMLCanvasElement} */ ($('drawing'));
const pen = /** @type {CanvasRenderingContext2D} */ (drawing.getContext('2d', {willReadFrequently: true}));
const seen = /** @type {HTMLCanvasElement} */ ($('seen'));
const {width, height} = drawing;
/** What is drawn at first. */
const FIRST = 3;

/** Pixels take the colour of the text: only their opacity counts. */
function dip() {
  pen.strokeStyle = getComputedStyle(drawing).color;
  pen.lineWidth = width / 12;
  pen.lineCap = pen.lineJoin = 'round';
}

/** Shows answers of a reader: one after the other, the last one always of the drawing as it is. */
class Answers {
  #gpu; #reader;
  #waiting = false;
  #busy = false;

  /** @param {Gpu} gpu @param {Reader} reader */
  constructor(gpu, reader) {
    this.#gpu = gpu;
    this.#reader = reader;
    $('bars').replaceChildren(...Array.from({length: 10}, (_, digit) => {
      const row = document.createElement('li'), bar = document.createElement('span');
      bar.append(document.createElement('i'));
      row.append(Object.assign(document.createElement('b'), {textContent: String(digit)}), bar, document.createElement('em'));
      return row;
    }));
  }

  /** Asks for an answer to what is drawn now. */
  async ask() {
    this.#waiting = true;
    if (this.#busy) return;
    this.#busy = true;
    document.body.dataset.busy = 'true';
    try {
      while (this.#waiting) {
        this.#waiting = false;
        const before = this.#gpu.stats(), start = performance.now();
        const answer = await this.#reader.read(pen.getImageData(0, 0, width, height));
        show(answer);
        const {bytesUp, bytesDown} = this.#gpu.stats();
        $('fact-time').textContent = duration((performance.now() - start) / 1000);
        $('fact-up').textContent = bytes(bytesUp - before.bytesUp);
        $('fact-down').textContent = bytes(bytesDown - before.bytesDown);
      }
      $('error').hidden = true;
    } catch (error) {
      showError(error);
    } finally {
      this.#busy = false;
      document.body.dataset.busy = 'false';
    }
  }
}

/** @param {import('./digits-reader.mjs').Answer | null} answer */
function show(answer) {
  const paper = /** @type {CanvasRenderingContext2D} */ (seen.getContext('2d')), image = paper.createImageData(SIDE, SIDE);
  answer?.image.forEach((v, i) => image.data.set([255, 255, 255, 255 * v], 4 * i));
  paper.putImageData(image, 0, 0);
  const list = answer ? [...answer.probabilities] : Array.from({length: 10}, () => 0), best = list.indexOf(Math.max(...list));
  [...$('bars').children].forEach((row, digit) => {
    row.classList.toggle('best', answer !== null && digit === best);
    /** @type {HTMLElement} */ (row.querySelector('i')).style.width = `${100 * list[digit]}%`;
    /** @type {HTMLElement} */ (row.querySelector('em')).textContent = answer ? `${(100 * list[digit]).toFixed(1)} %` : '';
  });
  $('digit').textContent = answer ? String(best) : '\u2013';
  $('sure').textContent = !answer ? 'Draw a digit.' : list[best] > 0.9 ? 'and is sure of it' : list[best] > 0.6 ? 'more or less' : 'but it could be another';
}

/** Draws what the pointer does, and calls back after each piece of a line. @param {() => void} drawn @param {() => void} wipe before the first line */
function listen(drawn, wipe) {
  let first = true;
  /** @type {{x: number, y: number} | null} */
  let last = null;
  const place = (/** @type {PointerEvent} */ event) => {
    const box = drawing.getBoundingClientRect();
    return {x: (event.clientX - box.left) * width / box.width, y: (event.clientY - box.top) * height / box.height};
  };
  const line = (/** @type {{x: number, y: number}} */ to) => {
    const from = last ?? to;
    pen.beginPath();
    pen.moveTo(from.x, from.y);
    pen.lineTo(to.x, to.y);
    pen.stroke();
    last = to;
  };
  drawing.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    if (first) wipe();
    first = false;
    try { drawing.setPointerCapture(event.pointerId); } catch { /* a pointer that has gone already */ }
    dip();
    line(place(event));
    drawn();
  });
  drawing.addEventListener('pointermove', (event) => {
    if (!last) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const each of events.length ? events : [event]) line(place(each));
    drawn();
  });
  for (const end of ['pointerup', 'pointercancel', 'lostpointercapture']) drawing.addEventListener(end, () => { last = null; });
}

/** @param {Answers} answers */
function wire(answers) {
  const wipe = () => pen.clearRect(0, 0, width, height);
  const clear = () => {
    wipe();
    answers.ask();
  };
  const draw = (/** @type {number} */ digit) => {
    wipe();
    dip();
    const path = new Path2D();
    path.addPath(new Path2D(strokes[digit]), new DOMMatrix().scale(width / 100, height / 100));
    pen.stroke(path);
    return answers.ask();
  };
  listen(() => answers.ask(), wipe);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    pen.globalCompositeOperation = 'source-in'; // recolours what is drawn
    pen.fillStyle = getComputedStyle(drawing).color;
    pen.fillRect(0, 0, width, height);
    pen.globalCompositeOperation = 'source-over';
  });
  $('clear').addEventListener('click', clear);
  $('examples').replaceChildren(...strokes.map((_, digit) => {
    const button = Object.assign(document.createElement('button'), {type: 'button', textContent: String(digit)});
    button.addEventListener('click', () => draw(digit));
    return button;
  }));
  addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) answers.ask();
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^[0-9]$/.test(event.key)) draw(Number(event.key));
    if (['Escape', 'Delete', 'Backspace'].includes(event.key)) clear();
  });
  draw(FIRST).then(() => answers.ask()); // the second answer tells how long one takes: kernels are compiled for the first
}

/** A file beside the page. @param {string} name */
async function file(name) {
  const response = await fetch(new URL(name, import.meta.url));
  if (!response.ok) throw new Error(`${name}: ${response.status} ${response.statusText}; make digits trains the network`);
  return response;
}

async function main() {
  let gpu;
  try {
    gpu = await init({device});
  } catch (error) {
    return showNoAdapter(error);
  }
  showAdapter(gpu.info);
  try {
    const [params, report] = await Promise.all([gpu.loadParams(file('digits.params')), file('digits.json')]);
    wire(new Answers(gpu, new Reader(gpu, params)));
    showReport(await report.json());
    document.body.dataset.ready = 'true';
  } catch (error) {
    showError(error);
  }
}

main();
