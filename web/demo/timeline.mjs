// SPDX-License-Identifier: Apache-2.0

// Draws a trace in Chrome's trace-event format: a lane for each thread, a bar for each event that lasts.

/**
 * @typedef {{ph: string, tid: number, name: string, cat: string, ts: number, dur: number,
 *   args: {name?: string, block?: number, waited_us?: number, error?: string}}} Event
 * @typedef {{name: string, tid: number, from: number, to: number, bind: number, event: Event}} Bar times in milliseconds
 */

const LANE = 38, GAP = 8, AXIS = 26, LABEL = 100, PAD = 8;
const SHORTEST = 0.05, LONGEST = 600000; // milliseconds that can be seen at once

/** Colours by the number of the task: neighbours are far apart on the wheel. @param {number} i */
export const colour = (i) => `hsl(${Math.round(212 + i * 137.508) % 360} 58% 60%)`;

/** @param {number} ms */
const time = (ms) => ms >= 1000 ? `${+(ms / 1000).toPrecision(6)} s` : ms >= 0.1 || ms === 0 ? `${+ms.toPrecision(5)} ms` : `${+(ms * 1000).toPrecision(3)} µs`;

/** A step between ticks that has few digits. @param {number} least */
function round(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least) ?? 10 * power;
}

export class Timeline {
  /** @type {Bar[]} */ bars = [];
  /** @type {string[]} */ lanes = [];
  /** The numbers of tasks, for their colours. @type {Map<string, number>} */ tasks = new Map();
  following = true;
  #canvas; #tip; #changed;
  #from = 0;
  #span = 250;
  #end = 0;
  /** @type {Bar | undefined} */ #hovered;
  #drawing = 0;

  /** @param {HTMLCanvasElement} canvas @param {HTMLElement} tip @param {() => void} changed is called when what is seen has changed */
  constructor(canvas, tip, changed) {
    this.#canvas = canvas;
    this.#tip = tip;
    this.#changed = changed;
    canvas.addEventListener('pointermove', (event) => this.#point(event));
    canvas.addEventListener('pointerleave', () => this.#hover(undefined));
    canvas.addEventListener('pointerdown', (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener('wheel', (event) => this.#wheel(event), {passive: false});
    canvas.addEventListener('keydown', (event) => this.#key(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
  }

  /** Takes a trace. @param {string} text */
  set(text) {
    /** @type {Event[]} */
    const events = text ? JSON.parse(text).traceEvents : [];
    this.lanes = [];
    this.bars = [];
    for (const e of events) {
      if (e.ph === 'M' && e.name === 'thread_name') this.lanes[e.tid] = e.args.name ?? '';
      if (e.ph !== 'X') continue;
      const from = e.ts / 1000, to = from + e.dur / 1000, last = this.bars[this.bars.length - 1];
      if (e.cat === 'bind') { // of the bar before
        last.bind = to;
        continue;
      }
      this.bars.push({name: e.name, tid: e.tid, from, to, bind: from, event: e});
    }
    this.#end = this.bars.reduce((end, bar) => Math.max(end, bar.to), 0);
    if (this.following) this.#from = this.#end - this.#span;
    this.#hover(undefined);
    this.draw();
  }

  /** @param {string[]} names of tasks, in the order of the graph */
  name(names) {
    this.tasks = new Map(names.map((name, i) => [name, i]));
  }

  get span() { return time(this.#span); }

  /** How long a lane worked in the time that is seen, as a share of the part of it that the trace covers. @param {number} lane */
  busy(lane) {
    const [from, to] = this.#covered();
    let sum = 0;
    for (const bar of this.bars) {
      if (bar.tid === lane) sum += Math.max(Math.min(bar.to, to) - Math.max(bar.from, from), 0);
    }
    return to > from ? Math.min(sum / (to - from), 1) : 0;
  }

  #covered() {
    const begin = this.bars.reduce((least, bar) => Math.min(least, bar.from), Infinity);
    return [Math.max(this.#from, begin), Math.min(this.#from + this.#span, this.#end)];
  }

  follow() {
    this.following = true;
    this.#from = this.#end - this.#span;
    this.draw();
  }

  /** Shows a time that is longer by a factor, around a place of the canvas. @param {number} factor */
  zoom(factor, x = this.following ? this.#right : (LABEL + this.#right) / 2) {
    const at = this.#time(x), span = Math.min(Math.max(this.#span * factor, SHORTEST), LONGEST);
    this.#from = at - (at - this.#from) * span / this.#span;
    this.#span = span;
    if (this.following) this.#from = this.#end - span;
    this.draw();
  }

  /** @param {number} dx pixels */
  pan(dx) {
    this.following = false;
    this.#from -= dx * this.#span / (this.#right - LABEL);
    this.draw();
  }

  get #right() { return this.#canvas.clientWidth - PAD; }
  /** @param {number} x */
  #time(x) { return this.#from + (x - LABEL) * this.#span / (this.#right - LABEL); }
  /** @param {number} t */
  #x(t) { return LABEL + (t - this.#from) * (this.#right - LABEL) / this.#span; }

  /** @param {PointerEvent} event */
  #point(event) {
    if (event.buttons & 1) {
      this.pan(event.movementX);
      return this.#hover(undefined);
    }
    const lane = Math.floor((event.offsetY - AXIS) / (LANE + GAP)), t = this.#time(event.offsetX);
    const near = 2 * this.#span / (this.#right - LABEL); // short bars are hard to hit
    const inside = event.offsetX >= LABEL && (event.offsetY - AXIS) % (LANE + GAP) < LANE;
    let best, far = near;
    for (const bar of inside ? this.bars : []) {
      const away = Math.max(bar.from - t, t - bar.to, 0);
      if (bar.tid === lane && away <= far) [best, far] = [bar, away];
    }
    this.#hover(best, event.offsetX, event.offsetY);
  }

  /** @param {Bar | undefined} bar */
  #hover(bar, x = 0, y = 0) {
    const tip = this.#tip;
    if (bar) {
      const {waited_us: waited = 0, error, block} = bar.event.args;
      const lines = [`ran ${time(bar.to - bar.from)} from ${time(bar.from)}`, `waited ${time(waited / 1000)} for ${this.lanes[bar.tid]?.split(':')[0]}`, `block ${block}`];
      if (error) lines.push(error);
      tip.replaceChildren(Object.assign(document.createElement('b'), {textContent: bar.name}), lines.join('\n'));
      tip.hidden = false;
      tip.style.left = `${Math.max(Math.min(x + 14, this.#canvas.clientWidth - tip.offsetWidth - 4), 0)}px`;
      tip.style.top = `${y + 16}px`;
    } else {
      tip.hidden = true;
    }
    if (this.#hovered !== bar) {
      this.#hovered = bar;
      this.draw();
    }
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY / 300), event.offsetX);
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan(-event.deltaX);
    }
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    /** @type {Record<string, () => void>} */
    const actions = {
      '+': () => this.zoom(1 / 1.5), '-': () => this.zoom(1.5), 'ArrowLeft': () => this.pan(80), 'ArrowRight': () => this.pan(-80),
      'End': () => this.follow(),
    };
    const action = event.ctrlKey || event.metaKey ? undefined : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** Draws before the next frame, however often it is called. */
  draw() {
    this.#drawing ||= requestAnimationFrame(() => {
      this.#drawing = 0;
      this.#paint();
      this.#changed();
    });
  }

  #paint() {
    const canvas = this.#canvas, scale = devicePixelRatio || 1, width = canvas.clientWidth;
    const lanes = Math.max(this.lanes.length, 2), height = AXIS + lanes * (LANE + GAP);
    if (width === 0) return;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = `${height}px`;
    }
    const c = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')), style = getComputedStyle(canvas);
    const ink = style.getPropertyValue('--ink'), soft = style.getPropertyValue('--soft'), line = style.getPropertyValue('--line');
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, width, height);
    c.textBaseline = 'middle';
    this.#axis(c, height, soft, line);
    for (let i = 0; i < lanes; i++) {
      const y = AXIS + i * (LANE + GAP), [short, long] = (this.lanes[i] ?? '').split(': ');
      c.fillStyle = line;
      c.fillRect(LABEL, y + LANE, this.#right - LABEL, 1);
      c.fillStyle = ink;
      c.font = '600 13px system-ui, sans-serif';
      c.fillText(short, 12, y + 11);
      c.fillStyle = soft;
      c.font = '11px system-ui, sans-serif';
      if (this.bars.length) c.fillText(`${Math.round(100 * this.busy(i))} % busy`, 12, y + 28, LABEL - 20);
      else if (long) c.fillText(long, 12, y + 28, LABEL - 20);
    }
    c.save();
    c.beginPath();
    c.rect(LABEL, AXIS, this.#right - LABEL, height - AXIS);
    c.clip();
    for (const bar of this.bars) this.#bar(c, bar, ink);
    c.restore();
  }

  /** @param {CanvasRenderingContext2D} c @param {number} height @param {string} soft @param {string} line */
  #axis(c, height, soft, line) {
    const step = round(this.#span * 90 / (this.#right - LABEL));
    c.font = '11px system-ui, sans-serif';
    c.textAlign = 'center';
    for (let t = Math.ceil(this.#from / step) * step; t <= this.#from + this.#span; t += step) {
      const x = this.#x(t);
      c.fillStyle = line;
      c.fillRect(Math.round(x), AXIS - 4, 1, height);
      if (t < -step / 2) continue;
      c.fillStyle = soft;
      if (x > LABEL + 20 && x < this.#right - 20) c.fillText(time(Math.max(t, 0)), x, 12);
    }
    c.textAlign = 'left';
  }

  /** @param {CanvasRenderingContext2D} c @param {Bar} bar @param {string} ink */
  #bar(c, bar, ink) {
    if (bar.to < this.#from || bar.from > this.#from + this.#span) return;
    const x = this.#x(bar.from), w = Math.max(this.#x(bar.to) - x, 1), y = AXIS + bar.tid * (LANE + GAP) + 2, h = LANE - 4;
    c.fillStyle = bar.event.args.error ? '#d33' : colour(this.tasks.get(bar.name) ?? 0);
    c.beginPath();
    c.roundRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 1), h, Math.min(4, w / 3));
    c.fill();
    const bind = this.#x(bar.bind) - x;
    if (bind > 1) {
      c.fillStyle = 'rgb(0 0 0 / 25%)';
      c.fillRect(x, y + h - 4, bind, 4);
    }
    if (bar === this.#hovered) {
      c.strokeStyle = ink;
      c.lineWidth = 2;
      c.stroke();
    }
    if (w < 34) return;
    c.save();
    c.beginPath();
    c.rect(x, y, w - 4, h);
    c.clip();
    c.fillStyle = '#101216';
    c.font = '11px system-ui, sans-serif';
    c.fillText(bar.name, Math.max(x, LABEL) + 5, y + h / 2);
    c.restore();
  }
}
