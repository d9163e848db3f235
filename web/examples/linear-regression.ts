// SPDX-License-Identifier: Apache-2.0

// Linear regression: the weights with the smallest squared error, by a QR decomposition.

import type { Gpu } from "sublet";

/** A row for each flat: square metres and rooms. */
export const flats = [[34, 1], [48, 2], [55, 2], [61, 3], [75, 3], [82, 4], [98, 4], [120, 5]];
export const rents = [610, 790, 845, 980, 1105, 1260, 1415, 1760];

export async function run(gpu: Gpu) {
  // `using` closes a matrix at the end of the block. Expressions, such as x, hold no memory and need no closing.
  using features = gpu.matrix(flats);
  using y = gpu.matrix(rents.map((rent) => [rent]));
  using ones = gpu.ones(flats.length, 1);
  const x = gpu.hstack([ones, features]); // the column of ones stands for the intercept

  // eval computes the weights once and keeps them on the device: both results below need them.
  using weights = x.lstsq(y).eval();
  const unexplained = y.sub(x.matmul(weights)).square().sum();
  const variation = y.sub(y.mean()).square().sum();

  // Only read and value wait for the device and bring numbers back.
  const [intercept, perSquareMetre, perRoom] = Array.from(await weights.read());
  return { intercept, perSquareMetre, perRoom, r2: 1 - await unexplained.div(variation).value() };
}
