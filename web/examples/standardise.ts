// SPDX-License-Identifier: Apache-2.0

// Standardising: each column gets mean 0 and deviation 1, what a network or a regression wants of its input.

import type { Gpu } from "sublet";

/** Age, income, and a column that is the same for everybody. NaN is a missing value. */
export const people = [[23, 28000, 1], [35, 41000, 1], [41, NaN, 1], [58, 75000, 1], [30, 38000, 1]];

export async function run(gpu: Gpu) {
  using x = gpu.matrix(people);

  // Missing values count neither for the mean nor for the variance: 0 takes their places in the sums.
  const missing = x.isNaN(), known = missing.logicalNot().sum(0);
  using mean = gpu.where(missing, 0, x).sum(0).div(known).eval();
  const difference = gpu.where(missing, 0, x.sub(mean)); // a missing value becomes the mean
  using deviation = difference.square().sum(0).div(known.sub(1)).sqrt().eval(); // of a sample: divided by n - 1

  // A constant column has deviation 0. recipOrZero makes it 0, where a division would make NaN of it.
  const scaled = difference.mul(deviation.recipOrZero());
  return { mean: Array.from(await mean.read()), deviation: Array.from(await deviation.read()), scaled: Array.from(await scaled.read()) };
}
