// SPDX-License-Identifier: Apache-2.0

// float16: half the memory for large weights. Elements are stored in 16 bits, arithmetic is done in float32.

import type { Gpu } from "sublet";

export const weights = Float32Array.from({ length: 64 * 64 }, (_, i) => Math.sin(i) / 8);
export const input = Float32Array.from({ length: 64 }, (_, i) => Math.cos(i));

export async function run(gpu: Gpu) {
  using full = gpu.matrix(64, 64, weights);
  const before = gpu.stats().liveBytes;
  using half = full.astype("float16").eval(); // each weight becomes the nearest float16
  await gpu.sync();
  const bytes = gpu.stats().liveBytes - before; // half of what full takes

  // Operands of a product have one type. The conversion back is part of the product's kernel and takes no memory.
  using x = gpu.matrix(1, 64, input);
  const y = x.matmul(half.astype("float32"));

  // Reading float16 itself gives a Float16Array where the browser has it, and bits elsewhere: convert, and it is numbers.
  const first = await half.row(0).col(0).astype("float32").value();
  return { bytes, first, y: Array.from(await y.read()) };
}
