// SPDX-License-Identifier: Apache-2.0

// Shows a matrix as numbers, as a heat map or as a picture.

/** @typedef {{rows: number, cols: number, data: ArrayLike<number>}} Numbers */

/** Rows and columns that are shown as numbers. */
const SHOWN = 12;

/** The most pixels of a picture along one side; of a larger matrix each few rows or columns share a pixel. */
const MOST = 1024;

/** A number as it is shown: seven digits of it at most. @param {number} x */
export const number = (x) => Number.isInteger(x) && Math.abs(x) < 1e7 ? String(x) : Number(x.toPrecision(6)).toString();

/** The indices that are shown of so many, with -1 for a gap. @param {number} n */
const excerpt = (n) => n <= SHOWN ? [...Array(n).keys()] : [...Array(SHOWN - 2).keys(), -1, n - 1];

/** @param {string} tag @param {string} text @param {string} [kind] */
function cell(tag, text, kind = '') {
  const cell = document.createElement(tag);
  cell.textContent = text;
  if (kind) cell.className = kind;
  return cell;
}

/** @param {HTMLElement} table @param {Numbers} numbers */
export function tabulate(table, {rows, cols, data}) {
  const across = excerpt(cols);
  const head = document.createElement('tr');
  head.append(cell('td', ''), ...across.map((j) => Object.assign(cell('th', j < 0 ? '' : String(j)), {scope: 'col'})));
  table.replaceChildren(head, ...excerpt(rows).map((i) => {
    const line = document.createElement('tr');
    line.append(Object.assign(cell('th', i < 0 ? '' : String(i)), {scope: 'row'}), ...across.map((j) => i < 0 || j < 0
      ? cell('td', i < 0 && j < 0 ? '\u22f1' : i < 0 ? '\u22ee' : '\u22ef', 'gap') : cell('td', number(data[i * cols + j]))));
    return line;
  }));
}

/** The least and the greatest of the finite numbers. @param {ArrayLike<number>} data */
export function extent(data) {
  let least = Infinity, most = -Infinity;
  for (let i = 0; i < data.length; i++) {
    if (data[i] < least && data[i] > -Infinity) least = data[i];
    if (data[i] > most && data[i] < Infinity) most = data[i];
  }
  return least <= most ? {least, most} : {least: 0, most: 1};
}

/** What black and white stand for: 0 and 1 if all numbers lie there, 0 and 255 if they do so there. @param {{least: number, most: number}} range */
export const greys = ({least, most}) => least >= 0 && most <= 1 ? {least: 0, most: 1} : least >= 0 && most <= 255 ? {least: 0, most: 255} : {least, most};

/** Viridis, the colours of Matplotlib, by points to be joined. */
const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [253, 231, 37]];

/** @param {number} t 0 to 1 @returns {number[]} */
function heat(t) {
  const at = t * (VIRIDIS.length - 1), i = Math.min(VIRIDIS.length - 2, Math.floor(at));
  return VIRIDIS[i].map((from, k) => from + (VIRIDIS[i + 1][k] - from) * (at - i));
}

const COLOURS = Array.from({length: 256}, (_, i) => heat(i / 255)), GREYS = Array.from({length: 256}, (_, i) => [i, i, i]);

/**
 * Paints a matrix: a pixel for each element, while there are not too many of them. What is not finite is red.
 * @param {HTMLCanvasElement} canvas @param {Numbers} numbers @param {'heat' | 'grey'} kind
 */
export function paint(canvas, {rows, cols, data}, kind) {
  canvas.width = Math.min(cols, MOST);
  canvas.height = Math.min(rows, MOST);
  if (rows * cols === 0) return;
  const paper = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')), range = extent(data);
  const colours = kind === 'heat' ? COLOURS : GREYS;
  const {least, most} = kind === 'grey' ? greys(range) : range;
  const image = paper.createImageData(canvas.width, canvas.height), across = cols / canvas.width, down = rows / canvas.height;
  for (let y = 0, at = 0; y < canvas.height; y++) {
    for (let x = 0; x < canvas.width; x++, at += 4) {
      const value = data[Math.floor(y * down) * cols + Math.floor(x * across)];
      const t = most > least ? Math.min(1, Math.max(0, (value - least) / (most - least))) : 0.5;
      image.data.set(Number.isFinite(value) ? colours[Math.round(255 * t)] : [200, 40, 40], at);
      image.data[at + 3] = 255;
    }
  }
  paper.putImageData(image, 0, 0);
}
