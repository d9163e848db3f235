// SPDX-License-Identifier: Apache-2.0

import {drawRoofline} from './race-chart.mjs';
import {races} from './race-items.mjs';
import {$, device, download, showAdapter, showError, showNoAdapter} from './page.mjs';

/** @typedef {import('./race-items.mjs').Item} Item @typedef {import('./race-worker.mjs').Result} Result */

/** Who takes part. */
const peers = [{id: 'sublet', label: 'Sublet'}, {id: 'tfjs', label: 'TensorFlow.js'}, {id: 'plain', label: 'Plain JavaScript'}];

const button = (/** @type {string} */ id) => /** @type {HTMLButtonElement} */ ($(id));
/** @template {keyof HTMLElementTagNameMap} K @param {K} tag @param {string} [text] @param {string} [name] its class @returns {HTMLElementTagNameMap[K]} */
const make = (tag, text = '', name = '') => Object.assign(document.createElement(tag), {textContent: text, className: name});
const milliseconds = (/** @type {number} */ ms) => `${ms < 10 ? ms.toPrecision(2) : ms < 1000 ? ms.toFixed(1) : ms.toFixed(0)} ms`;
const times = (/** @type {number} */ ratio) => ratio < 10 ? ratio.toFixed(1) : ratio.toFixed(0);

class Race {
  /** @type {Worker | undefined} */ #worker;
  /** What is known of the peers. @type {Record<string, {name: string, why?: string, info?: any}>} */ #known = {};
  /** By item and peer. @type {Record<string, Record<string, Result>>} */ results = {};
  /** @type {'short' | 'full'} */ which = 'short';
  running = false;

  constructor() {
    $('peers').replaceChildren(...peers.map(({id, label}) => {
      const entry = make('div'), term = make('dt', label), name = make('dd', '\u2026');
      entry.dataset.peer = id;
      term.prepend(make('i', '', id));
      entry.append(term, name);
      return entry;
    }));
  }

  /** @param {'short' | 'full'} which */
  start(which) {
    if (this.running) return;
    this.which = which;
    this.results = {};
    $('error').hidden = true;
    $('which').textContent = which === 'full' ? 'full' : 'short';
    $('items').replaceChildren(...races[which].map(row));
    this.#state(true);
    this.#draw();
    this.#worker ??= this.#hire();
    this.#worker.postMessage({race: which, device});
  }

  /** Ends the race at once, in whichever computation it is. */
  stop() {
    this.#fire();
    this.#end('Stopped.');
  }

  #hire() {
    const worker = new Worker(new URL('race-worker.mjs', import.meta.url), {type: 'module'});
    worker.onmessage = ({data}) => this.#hear(data);
    worker.onerror = (event) => this.#fail({message: `the worker: ${event.message || 'cannot be loaded'}`});
    return worker;
  }

  #fire() {
    this.#worker?.terminate();
    this.#worker = undefined;
  }

  /** @param {any} message of the worker */
  #hear({peer, name, why, info, item, result, done, failed}) {
    if (failed) return this.#fail(failed);
    if (done) return this.#end(this.#summary());
    if (!item) return this.#meet(peer, {name, why, info});
    const place = races[this.which].findIndex(({id}) => id === item), label = peers.find(({id}) => id === peer)?.label;
    $('said').textContent = `${races[this.which][place].name}, ${races[this.which][place].what}: ${label}`;
    /** @type {HTMLProgressElement} */ ($('progress')).value = place / races[this.which].length;
    for (const row of $('items').children) /** @type {HTMLElement} */ (row).dataset.state = /** @type {HTMLElement} */ (row).dataset.item === item ? 'running' : '';
    if (!result) return;
    (this.results[item] ??= {})[peer] = result;
    showResults(races[this.which][place], this.results[item]);
    this.#draw();
  }

  /** @param {string} peer @param {{name: string, why?: string, info?: any}} known */
  #meet(peer, known) {
    this.#known[peer] = known;
    const says = $('peers').querySelector(`[data-peer="${peer}"] dd`);
    if (says) says.textContent = known.why ? `cannot take part: ${known.why}` : known.name;
    if (known.info) showAdapter(known.info);
    document.body.dataset.ready = 'true';
  }

  /** @param {{code?: string, message: string}} failed */
  #fail(failed) {
    if (this.#known.sublet) showError(failed);
    else showNoAdapter(failed);
    this.#fire();
    this.#end('It did not come to an end.');
  }

  /** @param {string} said */
  #end(said) {
    for (const row of $('items').children) /** @type {HTMLElement} */ (row).dataset.state = '';
    $('said').textContent = said;
    this.#state(false);
    this.#draw();
  }

  /** @param {boolean} running */
  #state(running) {
    this.running = running;
    document.body.dataset.busy = String(running);
    button('stop').hidden = !running;
    button('full').hidden = button('short').hidden = running;
    button('full').disabled = button('short').disabled = running;
    /** @type {HTMLProgressElement} */ ($('progress')).value = running ? 0 : 1;
    $('progress').hidden = !running;
  }

  #summary() {
    const ratios = Object.values(this.results).flatMap(({sublet, tfjs}) => sublet && 'ms' in sublet && tfjs && 'ms' in tfjs ? [tfjs.ms / sublet.ms] : []);
    if (ratios.length === 0) return 'Done.';
    const mean = Math.exp(ratios.reduce((sum, v) => sum + Math.log(v), 0) / ratios.length);
    const than = mean >= 1 ? `${times(mean)} times as fast as TensorFlow.js` : `${times(1 / mean)} times slower than TensorFlow.js`;
    return `Done: Sublet was ${than}, the geometric mean of ${ratios.length} items.`;
  }

  /** The race as others read it. */
  report() {
    const items = races[this.which].map(({id, flop, bytes, tolerance}) => ({
      id, flop, bytes, tolerance,
      results: Object.fromEntries(Object.entries(this.results[id] ?? {}).map(([peer, r]) =>
        [peer, 'ms' in r ? {...r, gflops: flop / r.ms / 1e6, gbs: bytes / r.ms / 1e6} : r])),
    }));
    return {
      race: this.which, when: new Date().toISOString(), browser: navigator.userAgent, cores: navigator.hardwareConcurrency, isolated: crossOriginIsolated,
      peers: this.#known, items,
    };
  }

  /** Draws the roofline again, whose size is that of the page. */
  redraw() { this.#draw(); }

  /** Draws the roofline and writes the JSON. */
  #draw() {
    const report = this.report(), points = [];
    let bandwidth = 0;
    for (const [i, {flop, bytes, results}] of report.items.entries()) {
      const {kind, name, what} = races[this.which][i];
      for (const {id, label} of peers) {
        const r = results[id];
        if (!r || !('gflops' in r) || kind === 'tiny') continue;
        bandwidth = Math.max(bandwidth, r.gbs);
        if (flop > 0) points.push({peer: id, label: `${label}, ${name} ${what}`, intensity: flop / bytes, gflops: r.gflops});
      }
    }
    drawRoofline(/** @type {SVGElement} */ (/** @type {unknown} */ ($('roofline'))), points, bandwidth);
    if (this.running) return;
    $('json').textContent = JSON.stringify(report, null, 1);
    button('copy').disabled = button('save').disabled = false;
  }
}

/** The line of an item. @param {Item} item */
function row({id, name, what}) {
  const line = make('li'), title = make('div', '', 'title'), bars = make('dl', '', 'bars');
  line.dataset.item = id;
  title.append(make('b', name), make('span', what), make('em'));
  bars.append(...peers.map((peer) => {
    const entry = make('div'), bar = make('dd');
    entry.dataset.peer = peer.id;
    bar.append(make('i', '', peer.id), make('span', '\u2013'));
    entry.append(make('dt', peer.label), bar);
    return entry;
  }));
  line.append(title, bars);
  return line;
}

/** @param {Item} item @param {Record<string, Result>} results */
function showResults({id}, results) {
  const line = $('items').querySelector(`[data-item="${id}"]`), longest = Math.max(...Object.values(results).map((r) => 'ms' in r ? r.ms : 0));
  for (const [peer, r] of Object.entries(results)) {
    const entry = line?.querySelector(`[data-peer="${peer}"]`), text = entry?.querySelector('span'), bar = entry?.querySelector('i');
    if (!text || !bar) continue;
    text.textContent = 'ms' in r ? milliseconds(r.ms) : r.why;
    text.title = 'ms' in r ? `off by ${r.off.toExponential(1)} of float64's largest element, in ${r.all.length} rounds` : '';
    bar.style.width = 'ms' in r ? `${Math.max(100 * r.ms / longest, 0.4)}%` : '0';
  }
  const {sublet, tfjs, plain} = results, ratio = line?.querySelector('em');
  if (!ratio || !sublet || !('ms' in sublet)) return;
  const than = (/** @type {Result | undefined} */ r, /** @type {string} */ name) => r && 'ms' in r ? [`${times(r.ms / sublet.ms)}\u00d7 the speed of ${name}`] : [];
  ratio.textContent = [...than(tfjs, 'TF.js'), ...than(plain, 'JavaScript')].join('\n');
}

function main() {
  const race = new Race();
  $('full').addEventListener('click', () => race.start('full'));
  $('short').addEventListener('click', () => race.start('short'));
  $('stop').addEventListener('click', () => race.stop());
  $('save').addEventListener('click', () => download(new Blob([$('json').textContent ?? ''], {type: 'application/json'}), 'race.json'));
  $('copy').addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText($('json').textContent ?? '');
      $('copy').textContent = 'Copied';
    } catch { // not allowed: the text is selected, for the keyboard
      getSelection()?.selectAllChildren($('json'));
      $('copy').textContent = 'Selected: Ctrl+C copies';
    }
    setTimeout(() => { $('copy').textContent = 'Copy'; }, 2000);
  });
  addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) race.start('full');
    if (event.key === 'Escape' && race.running) race.stop();
  });
  addEventListener('resize', () => race.redraw());
  race.start('short');
}

main();
