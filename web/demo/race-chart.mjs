// SPDX-License-Identifier: Apache-2.0

// The roofline: how many operations a second, over how many there are for each byte that must move (Williams, Waterman and
// Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures", 2009).

import {svg} from './page.mjs';

/** @typedef {{peer: string, label: string, intensity: number, gflops: number}} Point */

/** The units of the drawing: fewer where there is little room, so that letters are as large. @param {number} room in pixels */
const frame = (room) => room > 560 ? {width: 760, height: 320, left: 64, right: 744, top: 14, bottom: 270} : {width: 380, height: 280, left: 62, right: 372, top: 12, bottom: 228};

/** The powers of a base that enclose numbers. @param {number[]} values @param {number} base */
function range(values, base) {
  const power = (/** @type {number} */ v, /** @type {(x: number) => number} */ round) => base ** round(Math.log(v) / Math.log(base));
  return [power(Math.min(...values), Math.floor), power(Math.max(...values) * 1.05, Math.ceil)];
}

/** @param {number} v */
const short = (v) => v >= 1 ? String(+v.toPrecision(3)) : v >= 0.01 ? String(+v.toPrecision(2)) : v.toExponential(0);

/**
 * Draws points, and the two roofs that the best of them make: bytes a second, a slope, and operations a second, a ceiling.
 * @param {SVGElement} chart @param {Point[]} points @param {number} bandwidth the most that was measured, in GB/s
 */
export function drawRoofline(chart, points, bandwidth) {
  if (points.length === 0) return chart.replaceChildren();
  const {width, height, left, right, top, bottom} = frame(chart.clientWidth);
  const [x0, x1] = range(points.map((p) => p.intensity), 4), [y0, y1] = range(points.map((p) => p.gflops), 10);
  const place = (/** @type {number} */ v, /** @type {number} */ low, /** @type {number} */ high) => Math.log(v / low) / Math.log(high / low);
  const x = (/** @type {number} */ v) => left + place(v, x0, x1) * (right - left), y = (/** @type {number} */ v) => bottom - place(v, y0, y1) * (bottom - top);
  const parts = [];
  for (let v = y0; v <= y1 * 1.01; v *= 10) parts.push(svg('line', {x1: left, x2: right, y1: y(v), y2: y(v), class: 'grid'}), svg('text', {x: left - 9, y: y(v) + 4, class: 'end'}, short(v)));
  for (let v = x0; v <= x1 * 1.01; v *= width > 700 ? 4 : 16) parts.push(svg('text', {x: x(v), y: bottom + 20, class: 'mid'}, short(v)));
  parts.push(
    svg('text', {x: (left + right) / 2, y: bottom + 44, class: 'mid'}, 'operations for each byte'),
    svg('text', {transform: `translate(15 ${(top + bottom) / 2}) rotate(-90)`, class: 'mid'}, 'GFLOP/s'),
  );
  const ceiling = Math.max(...points.map((p) => p.gflops)), knee = Math.min(Math.max(ceiling / bandwidth, x0), x1);
  const low = Math.max(x0, y0 / bandwidth); // where the slope enters the drawing
  parts.push(svg('polyline', {points: [[low, bandwidth * low], [knee, ceiling], [x1, ceiling]].map(([a, b]) => `${x(a).toFixed(1)},${y(Math.min(b, ceiling)).toFixed(1)}`).join(' '), class: 'roof'}));
  for (const p of points) {
    const mark = svg('circle', {cx: x(p.intensity).toFixed(1), cy: y(p.gflops).toFixed(1), r: 5, class: `mark ${p.peer}`});
    mark.append(svg('title', {}, `${p.label}: ${short(p.gflops)} GFLOP/s at ${short(p.intensity)} operations for each byte`));
    parts.push(mark);
  }
  chart.classList.toggle('narrow', width < 700);
  chart.setAttribute('viewBox', `0 0 ${width} ${height}`);
  chart.setAttribute('aria-label', `Roofline: at most ${short(ceiling)} GFLOP/s and ${short(bandwidth)} GB/s were measured; ${points.length} points`);
  chart.replaceChildren(...parts);
}
