// SPDX-License-Identifier: Apache-2.0

// A chart of the shares that devices have of calls: a stacked bar for each call, and below it the call's efficiency.

const SVG = 'http://www.w3.org/2000/svg';
/** The units of the drawing, which is stretched to its place. */
const WIDTH = 720, SHARES = 160, GAP = 12, EFFICIENCY = 48;
/** How many calls are shown. */
export const SHOWN = 60;
/** How many colours there are for devices; see demo.css. */
export const COLOURS = 6;

/** @param {string} name @param {Record<string, string | number>} attributes */
function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  return element;
}

/** @param {number} part */
export const percent = (part) => `${(100 * part).toFixed(part < 0.0995 ? 1 : 0)} %`;

/** How much of the time until the slowest device was done all of them were at work. @param {readonly {seconds: number}[]} shares */
export function efficiency(shares) {
  const longest = Math.max(...shares.map(({seconds}) => seconds));
  return longest > 0 ? shares.reduce((sum, {seconds}) => sum + seconds, 0) / longest / shares.length : 1;
}

/** Adds up what each of so many devices had. @param {readonly {device: number, count: number}[]} shares @param {number} devices */
export function parts(shares, devices) {
  const counts = Array.from({length: devices}, () => 0);
  for (const {device, count} of shares) counts[device] += count;
  const all = counts.reduce((sum, count) => sum + count, 0) || 1;
  return counts.map((count) => count / all);
}

/** The chart in an SVG element. */
export class Chart {
  #svg;
  #calls = 0;

  /** @param {SVGElement} svg */
  constructor(svg) {
    this.#svg = svg;
    this.clear();
  }

  clear() {
    this.#calls = 0;
    const line = draw('line', {x1: 0, x2: WIDTH, y1: SHARES + GAP, y2: SHARES + GAP, class: 'full'});
    this.#svg.replaceChildren(line);
    this.#svg.setAttribute('aria-label', 'No calls yet');
  }

  /** Adds a call. @param {readonly number[]} shares of the devices @param {number} busy its efficiency */
  add(shares, busy) {
    const bars = [...this.#svg.querySelectorAll('g')];
    if (bars.length === SHOWN) bars.shift()?.remove();
    const step = WIDTH / SHOWN, width = step - 2;
    const bar = draw('g', {class: 'call'}), title = draw('title', {});
    let y = 0;
    shares.forEach((share, device) => {
      bar.append(draw('rect', {x: 0, y, width, height: share * SHARES, class: `device-${device % COLOURS}`}));
      y += share * SHARES;
    });
    bar.append(draw('rect', {x: 0, y: SHARES + GAP + (1 - busy) * EFFICIENCY, width, height: busy * EFFICIENCY, class: 'busy'}), title);
    this.#svg.append(bar);
    this.#calls++;
    title.textContent = `call ${this.#calls}: ${shares.map(percent).join(', ')}; efficiency ${percent(busy)}`;
    this.#svg.querySelectorAll('g').forEach((g, i) => g.setAttribute('transform', `translate(${i * step + 1})`));
    this.#svg.setAttribute('aria-label', `Shares of the devices in ${this.#calls} calls, in the last one ${shares.map(percent).join(' and ')}`);
  }
}
