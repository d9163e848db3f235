// SPDX-License-Identifier: Apache-2.0

// An image filter: finds the edges in the picture of a canvas, and draws them there.

import type { Gpu } from "sublet";

export async function run(gpu: Gpu, canvas: HTMLCanvasElement) {
  const { width, height } = canvas, context = canvas.getContext("2d")!;
  const { data } = context.getImageData(0, 0, width, height);

  // Canvases have Uint8ClampedArrays of red, green, blue and alpha. The bytes are uint8, a row for each pixel.
  using pixels = gpu.matrix(width * height, 4, new Uint8Array(data.buffer));
  using weights = gpu.matrix(4, 1, [0.299, 0.587, 0.114, 0]);
  using brightness = pixels.astype("float32").matmul(weights).eval();

  // Sobel's two kernels, a row each: how much brightness changes to the right, and downwards.
  using kernels = gpu.matrix(2, 9, [-1, 0, 1, -2, 0, 2, -1, 0, 1, /**/ -1, -2, -1, 0, 0, 0, 1, 2, 1]);
  const changes = gpu.nn.conv2d(brightness.tensor(1, 1, height, width), kernels, null, { kernel: 3, pad: 1 });
  const edges = changes.square().sum({ axis: 1 }).sqrt().clamp(0, 255).round();

  // Grey pixels again: three times the brightness, and an alpha of 255.
  using rgb = gpu.matrix(1, 4, [1, 1, 1, 0]);
  using alpha = gpu.matrix(1, 4, [0, 0, 0, 255]);
  const bytes = edges.reshape(width * height, 1).expr().matmul(rgb).add(alpha).astype("uint8");
  const drawn = new Uint8ClampedArray(width * height * 4);
  drawn.set(await bytes.read());
  context.putImageData(new ImageData(drawn, width, height), 0, 0);
  return { mean: await edges.mean().value() };
}
