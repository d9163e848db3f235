// SPDX-License-Identifier: Apache-2.0

// Shows what native/digits says of the network that it has trained.

import {$, svg} from './page.mjs';

/**
 * @typedef {{learnt: number, held: number, accuracy: number, confusion: number[][], epochs: number, seconds: number, adapter: string,
 *   losses: number[]}} Report
 */

/** @param {Report} report */
export function showReport(report) {
  const count = (/** @type {number} */ n) => n.toLocaleString('en');
  $('accuracy').textContent = `${(100 * report.accuracy).toFixed(1)} %`;
  $('accuracy-of').textContent = `of ${count(report.held)} digits that it had never seen`;
  $('trained').textContent = `Trained on ${count(report.learnt)} others by native/digits, the same Go packages as a command: ${report.epochs} epochs in `
    + `${report.seconds.toFixed(0)} s on ${report.adapter}. The digits are MNIST's.`;
  drawLoss(/** @type {SVGElement} */ (/** @type {unknown} */ ($('loss'))), report);
  showConfusion(report.confusion);
  $('report').hidden = false;
}

/** @param {SVGElement} chart @param {Report} report */
function drawLoss(chart, {losses, epochs}) {
  const left = 38, right = 412, top = 8, bottom = 152, most = Math.max(...losses, 0.1);
  const x = (/** @type {number} */ t) => left + t * (right - left), y = (/** @type {number} */ v) => bottom - v / most * (bottom - top);
  const parts = [];
  for (let i = 0; i <= 4; i++) {
    const v = most * i / 4;
    parts.push(svg('line', {x1: left, x2: right, y1: y(v), y2: y(v), class: 'grid'}), svg('text', {x: left - 7, y: y(v) + 4, class: 'end'}, v.toFixed(1)));
  }
  const step = Math.ceil(epochs / 4);
  for (let epoch = 0; epoch <= epochs; epoch += step) {
    const last = epoch + step > epochs;
    parts.push(svg('text', {x: x(epoch / epochs), y: bottom + 18, class: last ? 'end' : 'mid'}, last ? `${epoch} epochs` : String(epoch)));
  }
  const points = losses.map((v, i) => `${x((i + 0.5) / losses.length).toFixed(1)},${y(v).toFixed(1)}`).join(' ');
  parts.push(svg('polyline', {points, class: 'curve'}));
  chart.replaceChildren(...parts);
}

/** @param {number[][]} confusion rows are what was shown, columns what was read */
function showConfusion(confusion) {
  const cell = (/** @type {string} */ tag, /** @type {string | number} */ text, attributes = {}) => {
    const element = Object.assign(document.createElement(tag), {textContent: String(text)});
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };
  const head = document.createElement('tr');
  head.append(document.createElement('td'), ...confusion.map((_, digit) => cell('th', digit, {scope: 'col'})));
  let worst = {n: 0, shown: 0, read: 0};
  const rows = confusion.map((counts, shown) => {
    const row = document.createElement('tr'), all = counts.reduce((a, b) => a + b, 0) || 1;
    row.append(cell('th', shown, {scope: 'row'}), ...counts.map((n, read) => {
      if (shown !== read && n > worst.n) worst = {n, shown, read};
      const strength = shown === read ? 12 + 34 * n / all : Math.min(70, 12 + 900 * n / all);
      return cell('td', n === 0 ? '\u00b7' : n, {
        class: n === 0 ? 'none' : shown === read ? 'right' : 'wrong', style: `--strength: ${strength.toFixed(0)}%`, title: `${shown} read as ${read}: ${n} times`,
      });
    }));
    return row;
  });
  $('confusion').replaceChildren(head, ...rows);
  $('worst').textContent = worst.n > 0 ? `Its commonest mistake: ${worst.n} times it took a ${worst.shown} for a ${worst.read}.` : '';
}
