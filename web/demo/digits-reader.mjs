// SPDX-License-Identifier: Apache-2.0

// Reads digits from the pixels of a canvas, with the network that native/digits trains.

/** @typedef {import('./index.mjs').Gpu} Gpu */
/** @typedef {import('./index.mjs').Matrix} Matrix */
/** @typedef {{image: Float32Array, probabilities: Float32Array}} Answer the image as the network sees it, and how likely each digit is */

/** Pixels of the network's images, in both directions, and of the box that a digit fills, as those of MNIST do. */
export const SIDE = 28;
const BOX = 20;

/**
 * The matrix that scales one dimension of a drawing, SIDE x the drawing's size: each row takes the mean over as many pixels as one of
 * the image stands for. The centre of mass comes to the middle. @param {Float32Array} ink along that dimension @param {number} scale
 */
export function resample(ink, scale) {
  let sum = 0, moment = 0;
  ink.forEach((v, i) => {
    sum += v;
    moment += v * (i + 0.5);
  });
  const weights = new Float32Array(SIDE * ink.length), middle = moment / sum;
  for (let row = 0; row < SIDE; row++) {
    const from = middle + (row - SIDE / 2) * scale, to = from + scale;
    for (let i = Math.max(Math.floor(from), 0); i < Math.min(to, ink.length); i++) {
      weights[row * ink.length + i] = (Math.min(to, i + 1) - Math.max(from, i)) / scale;
    }
  }
  return weights;
}

/** How many elements from the first to the last have more than a trace of ink. @param {Float32Array} ink */
export function extent(ink) {
  const inked = (/** @type {number} */ v) => v > 0.1;
  const last = ink.findLastIndex(inked);
  return last < 0 ? 0 : last - ink.findIndex(inked) + 1;
}

export class Reader {
  #gpu;
  /** @type {Record<string, Matrix>} */ #weights;

  /** @param {Gpu} gpu @param {import('./index.mjs').Params} params of the network */
  constructor(gpu, params) {
    this.#gpu = gpu;
    this.#weights = Object.fromEntries([...params].map(([name, param]) => [name, param.matrix()]));
  }

  /** Says which digit the opaque pixels show: nothing where there are none. @param {ImageData} image @returns {Promise<Answer | null>} */
  async read(image) {
    /** @type {Matrix[]} */
    const made = [];
    try {
      return await this.#read(image, (m) => made[made.push(m) - 1]);
    } finally {
      for (const m of made) m.close();
    }
  }

  /** @param {ImageData} image @param {(m: Matrix) => Matrix} keep until the answer is there @returns {Promise<Answer | null>} */
  async #read({data, width, height}, keep) {
    const gpu = this.#gpu, w = this.#weights;
    // [code]
    // The canvas' pixels are a matrix where they are; opacity is ink.
    const pixels = keep(gpu.wrap(data.buffer, height, width, {dtype: 'uint32'}));
    const ink = pixels.rightShift(24).astype('float32').div(255);

    // Two products scale and centre the drawing.
    const [across, down] = await Promise.all([ink.sum({axis: 0}).read(), ink.sum({axis: 1}).read()]);
    const scale = Math.max(extent(across), extent(down)) / BOX;
    if (scale === 0) return null;
    const left = keep(gpu.matrix(SIDE, height, resample(down, scale))), right = keep(gpu.matrix(SIDE, width, resample(across, scale)));
    const image = keep(left.matmul(ink).matmul(right.T).reshape(1, SIDE * SIDE).eval());

    // The network: a convolution, a hidden layer, ten digits.
    const found = gpu.nn.conv2d(image, w.conv_weight, w.conv_bias, {channels: 1, height: SIDE, width: SIDE, kernel: 7, stride: 3}).relu();
    const hidden = found.matmul(w.hidden_weight).add(w.hidden_bias).relu();
    const answer = hidden.matmul(w.output_weight).add(w.output_bias).softmax();
    const [seen, probabilities] = await Promise.all([image.read(), answer.read()]);
    // [end]
    return {image: /** @type {Float32Array} */ (seen), probabilities: /** @type {Float32Array} */ (probabilities)};
  }
}
