// SPDX-License-Identifier: Apache-2.0

import {Pipelines} from '../src/pipelines.mjs';
import {Timeline, colour} from './timeline.mjs';
import {drawHistogram, drawImage, drawLoss, drawPicture} from './charts.mjs';
import {$, bytes, device, download, showError as fail, showAdapter, showNoAdapter} from './page.mjs';

/** @param {string} id */
const canvas = (id) => /** @type {HTMLCanvasElement} */ ($(id));
/** @param {string} id */
const chosen = (id) => /** @type {HTMLSelectElement} */ ($(id)).value;
/** @param {string} id @param {string} text */
const say = (id, text) => { $(id).textContent = text; };

/** How often the trace and the numbers are looked at, in milliseconds: writing a trace takes the thread that runs the graph. */
const LOOK = 700;
/** A run of the training ends by itself after this many steps. */
const STEPS = 4000;
const IN_FLIGHT = 4;
/** The run that the page begins with ends by itself after so many frames: then the timeline is full. */
const FIRST = 40;

/** Frames of an image of the user's: a window that wanders over it. */
class Wanderer {
  #context;
  #image;
  /** @param {ImageBitmap} image @param {number} width @param {number} height */
  constructor(image, width, height) {
    const c = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});
    if (!c) throw new Error('no canvas');
    this.#context = c;
    this.#image = image;
  }

  /** @param {number} n */
  frame(n) {
    const c = this.#context, {width, height} = c.canvas, image = this.#image;
    const scale = 1.25 * Math.max(width / image.width, height / image.height), w = image.width * scale, h = image.height * scale;
    c.drawImage(image, (width - w) * (0.5 + 0.5 * Math.sin(n / 40)), (height - h) * (0.5 + 0.5 * Math.cos(n / 31)), w, h);
    return new Uint8Array(c.getImageData(0, 0, width, height).data.buffer);
  }
}

class Demo {
  /** @type {'edges' | 'train'} */ pipeline = 'edges';
  running = false;
  /** @type {ImageBitmap | undefined} */ image;
  count = 0;
  /** Steps or frames and when they were there, for the rate. */
  marks = [{count: 0, at: 0}];
  /** @type {number[]} */ losses = [];
  /** @type {Uint32Array | undefined} */ counts;
  threshold = 0;
  /** @type {{points: number[], edge: number, side: number, classes: Uint8Array | undefined}} */ picture = {points: [], edge: 1, side: 0, classes: undefined};
  names = '';
  /** After how many frames a run ends by itself. */
  limit = Infinity;

  /** @param {Pipelines} program */
  constructor(program) {
    this.program = program;
    this.timeline = new Timeline(canvas('timeline'), $('tip'), () => {
      say('span', this.timeline.bars.length ? this.timeline.span : '');
      $('follow').setAttribute('aria-pressed', String(this.timeline.following));
    });
    for (const name of /** @type {const} */ (['edges', 'train'])) $(`choose-${name}`).addEventListener('click', () => this.choose(name));
    $('run').addEventListener('click', () => this.running ? program.stop() : this.run());
    addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !this.running) this.run();
    });
    $('zoom-in').addEventListener('click', () => this.timeline.zoom(1 / 1.6));
    $('zoom-out').addEventListener('click', () => this.timeline.zoom(1.6));
    $('follow').addEventListener('click', () => this.timeline.follow());
    $('save').addEventListener('click', () => this.save());
    const file = /** @type {HTMLInputElement} */ ($('image'));
    file.addEventListener('change', () => this.open(file.files?.[0]));
    $('scene').addEventListener('click', () => {
      file.value = '';
      this.#show(undefined, 'Open image');
    });
    const redraw = () => this.redraw();
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
    addEventListener('resize', redraw);
  }

  /** @param {'edges' | 'train'} name */
  choose(name) {
    this.pipeline = name;
    for (const other of ['edges', 'train']) {
      $(`choose-${other}`).setAttribute('aria-pressed', String(other === name));
      for (const e of document.querySelectorAll(`.only-${other}`)) /** @type {HTMLElement} */ (e).hidden = other !== name;
    }
    const labels = name === 'edges' ? ['frames', 'a second', 'threshold', 'pixels above it'] : ['steps', 'a second', 'loss', 'examples found'];
    ['count', 'rate', 'one', 'two'].forEach((id, i) => {
      say(`label-${id}`, labels[i]);
      say(`fact-${id}`, '\u2013');
    });
    this.redraw();
  }

  /** @param {File | undefined} file */
  async open(file) {
    if (!file) return;
    try {
      this.#show(await createImageBitmap(file), file.name);
      $('error').hidden = true;
    } catch (error) {
      fail(new Error(`${file.name}: ${/** @type {Error} */ (error).message}`));
    }
  }

  /** @param {ImageBitmap | undefined} image @param {string} name */
  #show(image, name) {
    this.image = image;
    say('image-name', name);
    $('scene').hidden = !image;
  }

  /** Draws the charts again, whose colours and sizes are those of the page. */
  redraw() {
    if (this.pipeline === 'edges' && this.counts) drawHistogram(canvas('histogram'), this.counts, this.threshold);
    if (this.pipeline === 'train' && this.losses.length) drawLoss(canvas('loss'), this.losses);
    if (this.pipeline === 'train') drawPicture(canvas('picture'), this.picture);
  }

  async run(limit = Infinity) {
    this.limit = limit;
    this.#state(true);
    $('error').hidden = true;
    this.count = 0;
    this.names = '';
    this.marks = [{count: 0, at: performance.now()}];
    this.timeline.follow();
    const timer = setInterval(() => this.look(), LOOK);
    const common = {
      devices: Number(chosen('devices')), mode: Number(chosen('mode')), inFlight: IN_FLIGHT,
      sync: /** @type {HTMLInputElement} */ ($('sync')).checked,
    };
    try {
      await (this.pipeline === 'edges' ? this.edges(common) : this.train(common));
    } catch (error) {
      fail(error);
    } finally {
      clearInterval(timer);
      this.#state(false);
      this.look();
    }
  }

  /** @param {boolean} running */
  #state(running) {
    this.running = running;
    say('run', running ? 'Stop' : 'Run');
    document.body.dataset.running = document.body.dataset.busy = String(running);
    for (const b of document.querySelectorAll('.choice button, .controls select, .controls input, #scene')) /** @type {HTMLInputElement} */ (b).disabled = running;
  }

  /** @param {object} common */
  edges(common) {
    const [width, height] = chosen('size').split('x').map(Number);
    const wanderer = this.image && new Wanderer(this.image, width, height);
    return this.program.edges({...common, width, height, sigma: 1.5, gain: 0.7}, {
      frame: wanderer && ((/** @type {number} */ n) => wanderer.frame(n)),
      show: (/** @type {any} */ f) => {
        this.count = f.number + 1;
        if (this.count >= this.limit) this.program.stop();
        drawImage(canvas('input'), f.input, width, height);
        drawImage(canvas('blurred'), f.blurred, width, height);
        drawImage(canvas('edges'), f.edges, width, height);
        this.counts = new Uint32Array(f.histogram.buffer);
        this.threshold = f.threshold;
        drawHistogram(canvas('histogram'), this.counts, this.threshold);
        say('fact-one', f.threshold.toFixed(0));
        say('fact-two', `${(100 * f.share).toFixed(1)} %`);
      },
    });
  }

  /** @param {object} common */
  train(common) {
    this.losses = [];
    let drawn = 0;
    const rates = {spirals: 0.5, clusters: 0.1}, data = /** @type {keyof typeof rates} */ (chosen('data'));
    return this.program.train({...common, data, hidden: 32, batch: 50, rate: rates[data], steps: STEPS, saveEvery: 20}, {
      data: (/** @type {number[]} */ points, /** @type {number} */ edge) => {
        this.picture = {points, edge, side: 0, classes: undefined};
        drawPicture(canvas('picture'), this.picture);
      },
      step: (/** @type {number} */ n, /** @type {number} */ loss) => {
        this.count = n + 1;
        this.losses.push(loss);
        if (performance.now() - drawn < 100 && n + 1 < STEPS) return;
        drawn = performance.now();
        drawLoss(canvas('loss'), this.losses);
        say('fact-one', (this.losses.slice(-20).reduce((a, b) => a + b, 0) / Math.min(this.losses.length, 20)).toFixed(4));
      },
      picture: (/** @type {Uint8Array} */ classes, /** @type {number} */ side, /** @type {number} */ wrong) => {
        Object.assign(this.picture, {classes, side});
        drawPicture(canvas('picture'), this.picture);
        say('fact-two', `${(100 * (1 - wrong)).toFixed(1)} %`);
      },
    });
  }

  /** Shows the trace and the numbers as they are now. */
  look() {
    const stats = this.program.graphStats(), now = performance.now();
    this.marks.push({count: this.count, at: now});
    if (this.marks.length > 4 && this.running) this.marks.shift();
    const first = this.running ? this.marks[0] : {count: 0, at: now - stats.took};
    say('fact-count', String(this.count));
    say('fact-rate', now > first.at ? ((this.count - first.count) * 1000 / (now - first.at)).toFixed(1) : '\u2013');
    say('fact-up', bytes(stats.up));
    say('fact-down', bytes(stats.down));
    const busy = stats.lanes.reduce((sum, lane) => sum + lane.busy, 0);
    say('fact-overlap', stats.took > 0 ? (busy / stats.took).toFixed(2) : '\u2013');
    this.#tasks(stats);
    this.timeline.set(this.program.trace());
    /** @type {HTMLButtonElement} */ ($('save')).disabled = this.timeline.bars.length === 0;
    if (!this.running || this.count === 0) say('dot', this.program.dot());
  }

  /** @param {import('../src/pipelines.mjs').Stats} stats */
  #tasks({tasks, lanes}) {
    const key = tasks.map((task) => task.name).join();
    if (key !== this.names) {
      this.names = key;
      this.timeline.name(tasks.map((task) => task.name));
      $('legend').replaceChildren(...tasks.map((task, i) => {
        const entry = document.createElement('span'), mark = document.createElement('i');
        mark.style.background = colour(i);
        entry.append(mark, task.name);
        return entry;
      }));
    }
    this.#devices(lanes.slice(0, -1).map((lane) => lane.name.split(': ')[1] ?? lane.name)); // the last one is the host
    const short = lanes.map((lane) => lane.name.split(':')[0]);
    $('tasks').querySelector('tbody')?.replaceChildren(...tasks.map((task, i) => {
      const row = document.createElement('tr'), mark = document.createElement('i');
      mark.style.background = colour(i);
      const where = task.devices.map((n, k) => n > 0 ? `${short[k]}: ${n}` : '').filter(Boolean).join(', ');
      const mean = (/** @type {number} */ total) => task.runs > 0 ? (total / task.runs).toFixed(2) : '\u2013';
      row.append(...[task.name, String(task.runs), mean(task.run), mean(task.wait), where].map((text) => {
        const cell = document.createElement('td');
        cell.textContent = text;
        return cell;
      }));
      row.cells[0].prepend(mark);
      return row;
    }));
  }

  /** Says what the devices are. @param {string[]} list their names */
  #devices(list) {
    const names = list.map((name) => name.startsWith('WebAssembly SIMD') ? 'the CPU, by WebAssembly' : name), different = [...new Set(names)];
    const here = different.length === 1 ? `there is one device, ${different[0]}` : names.map((name, i) => `device ${i} is ${name}`).join(', ');
    const again = different.length < names.length ? `; opened ${names.length === 2 ? 'twice' : 'several times'} it is no faster, and only shows how tasks are divided` : '';
    say('devices-said', `Here ${here}${again}.`);
  }

  save() {
    download(new Blob([this.program.trace()], {type: 'application/json'}), 'trace.json');
  }
}

async function main() {
  let program;
  try {
    program = await Pipelines.open(new URL('pipelines.wasm', import.meta.url), device);
  } catch (error) {
    return showNoAdapter(error);
  }
  showAdapter(program.info);
  const demo = new Demo(program);
  /** @type {HTMLButtonElement} */ ($('run')).disabled = false;
  document.body.dataset.ready = 'true';
  demo.run(FIRST);
}

main();
