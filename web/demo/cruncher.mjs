// SPDX-License-Identifier: Apache-2.0

import {init} from './index.mjs';
import {choices} from './cruncher-devices.mjs';
import {COLOURS, Chart, efficiency, parts, percent} from './shares.mjs';
import {$, bytes, device, duration, showAdapter, showError, showNoAdapter} from './page.mjs';

/** @typedef {import('./index.mjs').Cruncher} Cruncher @typedef {import('./cruncher-devices.mjs').Choice} Choice */

const text = /** @type {HTMLTextAreaElement} */ ($('kernel'));
const button = /** @type {HTMLButtonElement} */ ($('run'));
const select = /** @type {HTMLSelectElement} */ ($('devices'));
const canvas = /** @type {HTMLCanvasElement} */ ($('picture'));
const paper = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
const {width, height} = canvas;
const chart = new Chart($('chart'));
/** After so many calls a page whose user wants little motion stops by itself. */
const FEW = 12;

/** Whether calls go on being made. */
let running = false;
/** Whether the kernel or the devices are not those of the cruncher any more. */
let changed = true;
let calls = 0, time = 0;

/** Forgets the calls of another cruncher. */
function clear() {
  calls = 0;
  chart.clear();
  $('fact-calls').textContent = '0';
  for (const name of ['time', 'efficiency', 'up', 'down']) $(`fact-${name}`).textContent = '\u2013';
}

/** @param {Cruncher} cr */
function showDevices({devices}) {
  $('legend').replaceChildren(...devices.map(({name, driver}, i) => {
    const item = document.createElement('li'), chip = document.createElement('i'), share = document.createElement('b');
    chip.className = `device-${i % COLOURS}`;
    item.append(chip, `${i}: ${driver === 'simd' ? 'the CPU, by WebAssembly' : name} `, share);
    return item;
  }));
}

/** @param {Cruncher} cr @param {number} seconds @param {Cruncher['last']['shares']} shares */
function showCall(cr, seconds, shares) {
  const {bytesUp, bytesDown} = cr.last, list = parts(shares, cr.devices.length), busy = efficiency(shares);
  chart.add(list, busy);
  $('fact-calls').textContent = String(++calls);
  $('fact-time').textContent = duration(seconds);
  $('fact-efficiency').textContent = percent(busy);
  $('fact-up').textContent = bytes(bytesUp);
  $('fact-down').textContent = bytes(bytesDown);
  $('legend').querySelectorAll('b').forEach((share, i) => { share.textContent = percent(list[i]); });
}

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** Computes pictures until somebody stops it. @param {Choice[]} list */
async function run(list) {
  const pixels = new Uint32Array(width * height), image = new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
  const few = matchMedia('(prefers-reduced-motion: reduce)').matches;
  /** @type {Cruncher | undefined} */
  let cr;
  /** @type {any} */
  let array;
  const close = () => {
    array?.close();
    cr?.close();
    cr = array = undefined;
  };
  try {
    while (running) {
      if (changed) {
        changed = false;
        close();
        if (text.value.trim() === '') throw new Error('The kernel is empty. It is a function of WGSL, such as fn black(i: u32) { pixels[i] = 0xff000000u; }');
        const {gpu, devices} = list[select.selectedIndex];
        cr = await gpu.cruncher(text.value, {devices});
        clear();
        showDevices(cr);
      }
      const now = /** @type {Cruncher} */ (cr), start = performance.now();
      // [code]
      // cr = await gpu.cruncher(wgsl), pixels = new Uint32Array(width * height)
      array ??= now.array('pixels', pixels, {writeOnly: true}); // your memory: each device writes its part of it
      await now.compute(1, now.kernels.join(' '), {global: pixels.length, local: 64}, array,
        now.scalar('width', width, 'uint32'), now.scalar('height', height, 'uint32'), now.scalar('time', time));
      const {shares} = now.last; // who computed what, and how long it took
      // [end]
      showCall(now, (performance.now() - start) / 1000, shares);
      paper.putImageData(image, 0, 0);
      time += 0.05;
      if (few && calls >= FEW) running = false;
      await frame();
    }
  } finally {
    close();
    changed = true;
  }
}

/** @param {Choice[]} list */
async function start(list) {
  running = true;
  button.textContent = 'Stop';
  document.body.dataset.busy = 'true';
  $('error').hidden = true;
  text.removeAttribute('aria-invalid');
  $('said').textContent = '';
  try {
    await run(list);
  } catch (error) {
    showError(error);
    text.setAttribute('aria-invalid', 'true');
  } finally {
    running = false;
    document.body.dataset.busy = 'false';
    button.textContent = 'Run';
    button.disabled = false;
    if (calls > 0) $('said').textContent = `${$('chart').getAttribute('aria-label')}.`;
  }
}

/** @param {Choice[]} list */
function wire(list) {
  const edited = () => { changed = true; };
  select.replaceChildren(...list.map(({label}) => new Option(label)));
  $('adapters').textContent = list[0].said;
  select.addEventListener('change', () => {
    edited();
    $('adapters').textContent = list[select.selectedIndex].said;
  });
  text.addEventListener('input', edited);
  button.addEventListener('click', () => {
    if (!running) return start(list);
    running = false;
    button.disabled = true; // until the call at hand is done
  });
  addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    edited();
    if (!running) start(list);
  });
  button.disabled = select.disabled = false;
  start(list);
}

async function main() {
  $('size').textContent = `${width} \u00d7 ${height}`;
  let gpu;
  try {
    gpu = await init({device});
    showAdapter(gpu.info);
    wire(await choices(gpu));
  } catch (error) {
    return gpu ? showError(error) : showNoAdapter(error);
  }
  document.body.dataset.ready = 'true';
}

main();
