// SPDX-License-Identifier: Apache-2.0

import {init} from './index.mjs';
import {COLOURS, Chart, efficiency, parts, percent} from './shares.mjs';
import {$, bytes, device, duration, showAdapter, showError, showNoAdapter} from './page.mjs';

/** @typedef {import('./index.mjs').Gpu} Gpu */
/** @typedef {import('./index.mjs').Cruncher} Cruncher */

const text = /** @type {HTMLTextAreaElement} */ ($('kernel'));
const button = /** @type {HTMLButtonElement} */ ($('run'));
const choice = /** @type {HTMLSelectElement} */ ($('devices'));
const canvas = /** @type {HTMLCanvasElement} */ ($('picture'));
const paper = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d'));
const {width, height} = canvas;
const chart = new Chart($('chart'));

/** Whether calls go on being made. */
let running = false;
/** Whether the kernel or the devices are not those of the cruncher any more. */
let changed = true;
let calls = 0, time = 0;

/** What may be computed on: the adapters that there are, and as many devices of one as one likes. @param {number} adapters */
function offer(adapters) {
  const own = (/** @type {number} */ n) => Array.from({length: n}, (_, i) => i === 0 ? 'own' : 'high-performance');
  const list = [['one device', own(1)], ['the same adapter twice', own(2)], ['the same adapter three times', own(3)]];
  if (adapters > 1) list.unshift([`${adapters} adapters`, 'all']);
  choice.replaceChildren(...list.map(([label, devices]) => new Option(String(label), JSON.stringify(devices))));
  choice.selectedIndex = adapters > 1 ? 0 : 1; // so that there is something to divide
}

/** Forgets the calls of another cruncher. */
function clear() {
  calls = 0;
  chart.clear();
  $('fact-calls').textContent = '0';
  for (const name of ['time', 'efficiency', 'up', 'down']) $(`fact-${name}`).textContent = '\u2013';
}

/** @param {Cruncher} cr */
function showDevices({devices}) {
  $('legend').replaceChildren(...devices.map(({name}, i) => {
    const item = document.createElement('li'), chip = document.createElement('i'), share = document.createElement('b');
    chip.className = `device-${i % COLOURS}`;
    item.append(chip, `${i}: ${name} `, share);
    return item;
  }));
}

/** @param {Cruncher} cr @param {number} seconds */
function showCall(cr, seconds) {
  const {shares, bytesUp, bytesDown} = cr.last, list = parts(shares, cr.devices.length), busy = efficiency(shares);
  chart.add(list, busy);
  $('fact-calls').textContent = String(++calls);
  $('fact-time').textContent = duration(seconds);
  $('fact-efficiency').textContent = percent(busy);
  $('fact-up').textContent = bytes(bytesUp);
  $('fact-down').textContent = bytes(bytesDown);
  $('legend').querySelectorAll('b').forEach((share, i) => { share.textContent = percent(list[i]); });
}

const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));

/** Computes pictures until somebody stops it. @param {Gpu} gpu */
async function run(gpu) {
  const pixels = new Uint32Array(width * height), image = new ImageData(new Uint8ClampedArray(pixels.buffer), width, height);
  /** @type {Cruncher | undefined} */
  let cr;
  /** @type {any} */
  let array;
  try {
    while (running) {
      if (changed) {
        changed = false;
        array?.close();
        cr?.close();
        cr = await gpu.cruncher(text.value, {devices: JSON.parse(choice.value)});
        array = cr.array('pixels', pixels, {writeOnly: true});
        clear();
        showDevices(cr);
      }
      const now = /** @type {Cruncher} */ (cr), start = performance.now();
      await now.compute(1, now.kernels.join(' '), {global: pixels.length, local: 64}, array,
        now.scalar('width', width, 'uint32'), now.scalar('height', height, 'uint32'), now.scalar('time', time));
      showCall(now, (performance.now() - start) / 1000);
      paper.putImageData(image, 0, 0);
      time += 0.05;
      await frame();
    }
  } finally {
    array?.close();
    cr?.close();
    changed = true;
  }
}

/** @param {Gpu} gpu */
async function start(gpu) {
  running = true;
  button.textContent = 'Stop';
  $('error').hidden = true;
  $('said').textContent = '';
  try {
    await run(gpu);
  } catch (error) {
    showError(error);
  } finally {
    running = false;
    button.textContent = 'Run';
    button.disabled = false;
    if (calls > 0) $('said').textContent = `${$('chart').getAttribute('aria-label')}.`;
  }
}

async function main() {
  $('size').textContent = `${width} \u00d7 ${height}`;
  let gpu;
  try {
    gpu = await init({device});
    showAdapter(gpu.info);
    const all = await gpu.cruncher(text.value);
    offer(all.devices.length);
    all.close();
  } catch (error) {
    return gpu ? showError(error) : showNoAdapter(error);
  }
  const edited = () => { changed = true; };
  text.addEventListener('input', edited);
  choice.addEventListener('change', edited);
  button.addEventListener('click', () => {
    if (!running) return start(gpu);
    running = false;
    button.disabled = true; // until the call at hand is done
  });
  button.disabled = choice.disabled = false;
  document.body.dataset.ready = 'true';
}

main();
