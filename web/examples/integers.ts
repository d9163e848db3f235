// SPDX-License-Identifier: Apache-2.0

// Whole numbers: bytes that wrap, sums that do not, bits, and counting.

import type { Gpu } from "sublet";

/** Brightness of 1000 pixels. */
export const pixels = Uint8Array.from({ length: 1000 }, (_, i) => i * i % 251);

export async function run(gpu: Gpu) {
  using x = gpu.matrix(1, pixels.length, pixels); // uint8, as the typed array says

  // Results have the type of their operands: 200 + 100 wraps to 44 in a byte. Convert first where that is not meant.
  const wrapped = await x.sum().value();
  const sum = await x.astype("int32").sum().value();
  const brighter = x.astype("int32").add(100).minimum(255).astype("uint8"); // stays within a byte

  const low = x.bitwiseAnd(15); // the four lower bits
  const counts = low.astype("int32").bincount(16); // how often each of them occurs, a row
  const quotient = x.astype("int32").floorDiv(16).max();
  return {
    wrapped, sum, highest: await quotient.value(),
    brighter: Array.from(await brighter.read()), counts: Array.from(await counts.read()),
  };
}
