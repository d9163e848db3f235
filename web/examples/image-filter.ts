// SPDX-License-Identifier: Apache-2.0

// An image filter: finds the edges in the picture of a canvas, and draws them there.

import type { Gpu } from "sublet";

export async function run(gpu: Gpu, canvas: HTMLCanvasElement) {
  // The brightness of the pixels, from 0 to 1: a matrix of height x width. A video, an image or an ImageData will do as well.
  using brightness = await gpu.fromImage(canvas, { channels: 1 });
  const { rows: height, cols: width } = brightness;

  // Sobel's two kernels, a row each: how much brightness changes to the right, and downwards.
  using kernels = gpu.matrix(2, 9, [-1, 0, 1, -2, 0, 2, -1, 0, 1, /**/ -1, -2, -1, 0, 0, 0, 1, 2, 1]);
  const changes = gpu.nn.conv2d(brightness.tensor(1, 1, height, width), kernels, null, { kernel: 3, pad: 1 });
  const edges = changes.square().sum({ axis: 1 }).sqrt().reshape(height, width).expr();

  // With WebGPU no pixel passes through JavaScript, unless the canvas is one of "2d". What is beyond the range is its end.
  await edges.toCanvas(canvas, { range: [0, 1], colormap: "gray" });
  return { mean: await edges.minimum(1).mean().value() };
}
