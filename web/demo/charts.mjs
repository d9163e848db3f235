// SPDX-License-Identifier: Apache-2.0

// What the page of task graphs draws beside its timeline.

/** Colours of classes, and paler ones for where the network finds them. */
const CLASSES = [[47, 111, 237], [235, 120, 60], [31, 157, 97], [190, 80, 190]];

/** @param {HTMLCanvasElement} canvas @param {Uint8ClampedArray} pixels @param {number} width @param {number} height */
export function drawImage(canvas, pixels, width, height) {
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  canvas.getContext('2d')?.putImageData(new ImageData(/** @type {Uint8ClampedArray<ArrayBuffer>} */ (pixels), width, height), 0, 0);
}

/** Gives a canvas as many pixels as it has on the screen, and returns its context and size in CSS pixels. @param {HTMLCanvasElement} canvas */
function prepare(canvas) {
  const scale = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const c = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')), style = getComputedStyle(canvas);
  c.setTransform(scale, 0, 0, scale, 0, 0);
  c.font = '11px system-ui, sans-serif';
  const variable = (/** @type {string} */ name) => style.getPropertyValue(name);
  return {c, width, height, accent: variable('--accent'), soft: variable('--soft'), line: variable('--line'), ink: variable('--ink')};
}

/** The logarithms of the counts, and where the threshold is. @param {HTMLCanvasElement} canvas @param {Uint32Array} counts @param {number} threshold */
export function drawHistogram(canvas, counts, threshold) {
  const {c, width, height, accent, soft, line} = prepare(canvas), base = height - 18;
  const top = Math.log1p(counts.reduce((a, b) => Math.max(a, b), 1));
  const x = (/** @type {number} */ level) => 8 + level * (width - 16) / counts.length;
  c.fillStyle = accent;
  counts.forEach((n, level) => {
    const h = Math.log1p(n) / top * (base - 22);
    c.fillRect(x(level), base - h, x(level + 1) - x(level), h);
  });
  c.fillStyle = line;
  c.fillRect(8, base, width - 16, 1);
  c.fillStyle = soft;
  c.fillText('0', 8, height - 5);
  c.textAlign = 'right';
  c.fillText('255', width - 8, height - 5);
  const at = x(threshold + 1);
  c.fillStyle = '#e5633b';
  c.fillRect(at, 6, 1.5, base - 6);
  c.textAlign = at < width / 2 ? 'left' : 'right';
  c.fillText(`threshold ${threshold.toFixed(0)}`, at + (at < width / 2 ? 5 : -5), 14);
}

/** The loss of each step, pale, and its mean over the last ones. @param {HTMLCanvasElement} canvas @param {number[]} losses */
export function drawLoss(canvas, losses) {
  const {c, width, height, accent, soft, line} = prepare(canvas);
  const left = 40, right = width - 10, top = 10, base = height - 22;
  const most = Math.max(losses.reduce((a, b) => Math.max(a, b), 0), 1e-6);
  const x = (/** @type {number} */ i) => left + i * (right - left) / Math.max(losses.length - 1, 1);
  const y = (/** @type {number} */ v) => base - v / most * (base - top);
  for (let i = 0; i <= 4; i++) {
    const v = most * i / 4;
    c.fillStyle = line;
    c.fillRect(left, y(v), right - left, 1);
    c.fillStyle = soft;
    c.textAlign = 'right';
    c.fillText(v.toFixed(2), left - 6, y(v) + 4);
  }
  c.fillText(`step ${losses.length}`, right, height - 6);
  const line2 = (/** @type {(i: number) => number} */ value, /** @type {number} */ strength, /** @type {number} */ thick) => {
    c.beginPath();
    const every = Math.max(Math.floor(losses.length / (2 * (right - left))), 1);
    for (let i = 0; i < losses.length; i += every) c.lineTo(x(i), y(value(i)));
    c.strokeStyle = accent;
    c.globalAlpha = strength;
    c.lineWidth = thick;
    c.lineJoin = 'round';
    c.stroke();
    c.globalAlpha = 1;
  };
  line2((i) => losses[i], 0.3, 1);
  let mean = losses[0] ?? 0;
  const smooth = losses.map((v) => mean += (v - mean) / 15);
  line2((i) => smooth[i], 1, 2);
}

/**
 * The class that the network finds at each point, and the examples.
 * @param {HTMLCanvasElement} canvas
 * @param {{points: number[], edge: number, side: number, classes: Uint8Array | undefined}} picture
 */
export function drawPicture(canvas, {points, edge, side, classes}) {
  const {c, width, height} = prepare(canvas);
  if (classes) {
    const image = new ImageData(side, side);
    classes.forEach((k, i) => {
      const [r, g, b] = CLASSES[k % CLASSES.length];
      image.data.set([r, g, b, 110], 4 * i);
    });
    const small = new OffscreenCanvas(side, side);
    small.getContext('2d')?.putImageData(image, 0, 0);
    c.drawImage(small, 0, 0, width, height);
  }
  for (let i = 0; i < points.length; i += 3) {
    c.fillStyle = `rgb(${CLASSES[points[i + 2] % CLASSES.length].join(' ')})`;
    c.beginPath();
    c.arc((points[i] / edge + 1) * width / 2, (points[i + 1] / edge + 1) * height / 2, 2, 0, 7);
    c.fill();
  }
}
