// SPDX-License-Identifier: Apache-2.0

// Moving windows: averages, deviations and maxima of the last days of a series.

import type { Gpu } from "sublet";

export const prices = Float32Array.from({ length: 250 }, (_, day) => 100 + day / 10 + 5 * Math.sin(day / 7) + Math.sin(day * day));

export async function run(gpu: Gpu, days = 20) {
  using series = gpu.matrix(1, prices.length, prices);

  // A window for each row: element (i, j) is day i + j. A column and a row of numbers stretch to a table of them.
  const start = gpu.arange(prices.length - days + 1).T, day = gpu.arange(days);
  // gather reads row 0 of the series where elements are needed: the overlapping windows are never stored.
  const windows = series.gather(gpu.arange(1), start.add(day).astype("int32"));

  const [mean, deviation, highest] = await Promise.all([
    windows.mean(1).read(), windows.std({ axis: 1, ddof: 1 }).read(), windows.max(1).read(),
  ]);
  return { mean: Array.from(mean), deviation: Array.from(deviation), highest: Array.from(highest) };
}
