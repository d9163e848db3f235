// SPDX-License-Identifier: Apache-2.0

import {init} from './index.mjs';
import {examples} from './first-code.mjs';
import {painter, place} from './first-draw.mjs';
import {World, compile} from './first-world.mjs';
import {$, bytes, device, showAdapter, showError, showNoAdapter} from './page.mjs';

const canvas = /** @type {HTMLCanvasElement} */ ($('picture'));
const editor = /** @type {HTMLTextAreaElement} */ ($('code'));
const play = /** @type {HTMLButtonElement} */ ($('play'));
const count = /** @type {HTMLSelectElement} */ ($('count'));

/** The longest step in time, in seconds, so that a slow device does not fling the particles away. */
const LONGEST = 1 / 30;

/** The first page: the particles, the code that moves them, and what is said about both. */
class Show {
  /** Where the pointer is, while it is over the picture. @type {{x: number, y: number} | null} */
  #pointer = null;
  /** The code that is to move the particles, and the last one that did. @type {Function | undefined} */
  #next;
  /** @type {Function | undefined} */
  #good;
  #playing = false;
  #inView = true;
  #looping = false;
  /** Steps and pictures follow one another. */
  #turn = Promise.resolve();
  #time = 0;
  #frames = 0;
  #since = performance.now();

  /** @param {import('./index.mjs').Gpu} gpu */
  constructor(gpu) {
    this.gpu = gpu;
    this.before = gpu.stats();
    this.painter = painter(canvas, gpu);
    this.fill();
  }

  /** Starts anew, with as many particles as are chosen. */
  fill() {
    this.world?.close();
    this.world = new World(this.gpu, Number(count.value));
    this.before = this.gpu.stats();
    // For the curious: `await sublet.x.read()` in the console.
    Object.assign(globalThis, {sublet: this.world});
  }

  /** Takes the code from the editor. */
  edit() {
    try {
      this.#next = compile(editor.value);
      $('error').hidden = true;
      editor.setAttribute('aria-invalid', 'false');
    } catch (error) {
      this.#refuse(error);
    }
    if (!this.#playing) void this.step(0);
  }

  /** @param {unknown} error */
  #refuse(error) {
    this.#next = undefined;
    editor.setAttribute('aria-invalid', 'true');
    showError(error);
  }

  /** @param {{x: number, y: number} | null} pointer */
  set pointer(pointer) {
    this.#pointer = pointer;
  }

  /** @param {boolean} playing */
  set playing(playing) {
    this.#playing = playing;
    play.textContent = playing ? 'Pause' : 'Play';
    play.setAttribute('aria-pressed', String(playing));
    document.body.dataset.playing = String(playing);
    void this.#loop();
  }

  get playing() {
    return this.#playing;
  }

  /** @param {boolean} inView */
  set inView(inView) {
    this.#inView = inView;
    void this.#loop();
  }

  /** One step, after those that go on. @param {number} [dt] */
  step(dt = 1 / 60) {
    this.#turn = this.#turn.then(() => this.#step(dt));
    return this.#turn;
  }

  /** By the new code or, where that fails, by the last good one. @param {number} dt */
  async #step(dt) {
    const world = /** @type {World} */ (this.world);
    this.#time += dt;
    const pull = this.#pointer ?? {x: 0.45 * Math.sin(this.#time * 0.7), y: 0.35 * Math.sin(this.#time * 1.1)};
    const code = this.#next ?? this.#good;
    if (!code) return;
    try {
      world.step(code, pull, dt, this.#time);
      await world.queued();
      this.#good = code;
    } catch (error) {
      if (world !== this.world) return;
      if (code === this.#next) this.#refuse(error);
      else this.#good = undefined;
    }
    if (world !== this.world) return;
    await this.painter.draw(world);
    world.frames++;
    this.#frames++;
  }

  /** Goes on by seconds without showing it, which yields a picture for those who want no motion. @param {number} seconds */
  async settle(seconds) {
    for (let left = seconds * 60; left > 0 && this.#good; left--) {
      this.#time += 1 / 60;
      this.world?.step(this.#good, {x: 0.3, y: 0.1}, 1 / 60, this.#time);
    }
    await this.step();
  }

  async #loop() {
    if (this.#looping) return;
    this.#looping = true;
    for (let last = performance.now(); this.#playing && this.#inView && !document.hidden;) {
      const now = await new Promise(requestAnimationFrame);
      await this.step(Math.min(LONGEST, Math.max(0.001, (now - last) / 1000)));
      last = now;
      if (now - this.#since > 500) this.#tell(now);
    }
    this.#looping = false;
    this.#tell(performance.now());
  }

  /** @param {number} now */
  #tell(now) {
    const {bytesUp, bytesDown} = this.gpu.stats(), {before} = this;
    $('fact-moved').textContent = bytes(bytesUp + bytesDown - before.bytesUp - before.bytesDown);
    if (this.#playing && now - this.#since > 400) $('fact-rate').textContent = String(Math.round(this.#frames * 1000 / (now - this.#since)));
    this.#frames = 0;
    this.#since = now;
  }
}

/** Wires the page. @param {Show} show */
function wire(show) {
  let timer = 0;
  editor.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(() => show.edit(), 350);
  });
  editor.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    clearTimeout(timer);
    show.edit();
  });
  const choices = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-example]'))];
  for (const choice of choices) {
    choice.addEventListener('click', () => {
      for (const other of choices) other.setAttribute('aria-pressed', String(other === choice));
      editor.value = examples[choice.dataset.example ?? ''];
      show.fill();
      show.edit();
    });
  }
  play.addEventListener('click', () => { show.playing = !show.playing; });
  $('step').addEventListener('click', () => {
    show.playing = false;
    void show.step();
  });
  const again = () => {
    show.fill();
    void show.step();
  };
  $('again').addEventListener('click', again);
  count.addEventListener('change', again);
  canvas.addEventListener('pointermove', (event) => { show.pointer = place(canvas, event); });
  canvas.addEventListener('pointerleave', () => { show.pointer = null; });
  document.addEventListener('visibilitychange', () => { show.inView = true; });
  new IntersectionObserver(([{isIntersecting}]) => { show.inView = isIntersecting; }).observe(canvas);
  new ResizeObserver(() => { if (!show.playing) void show.step(0); }).observe(canvas);
}

async function main() {
  editor.value = examples.gravity;
  let gpu;
  try {
    gpu = await init({device});
  } catch (error) {
    return showNoAdapter(error);
  }
  showAdapter(gpu.info);
  if (!gpu.device || gpu.info.kind === 'cpu') count.value = '20000';
  $('place').textContent = gpu.device
    ? 'Computed by Sublet in a GPUBuffer, and drawn from the same buffer by a render pass of the page.'
    : 'There is no WebGPU here: fewer particles, computed on the CPU by WebAssembly, and drawn on a 2D canvas from the array that each step comes back to.';
  const show = new Show(gpu);
  void gpu.lost.then(({message}) => {
    show.playing = false;
    showError(new Error(`The GPU is lost (${message}). Reload the page to go on.`));
  });
  wire(show);
  show.edit();
  const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  await show.step();
  if (still) await show.settle(2);
  show.playing = !still;
  for (const control of document.querySelectorAll('main :is(button, select)')) control.removeAttribute('disabled');
  document.body.dataset.ready = 'true';
}

main();
