// SPDX-License-Identifier: Apache-2.0

// k-means: finds the centres of k clusters of points (Lloyd's algorithm). The points never leave the device.

import type { Gpu } from "sublet";

const around = [[0, 0], [6, 1], [2, 7]].flat();
/** 120 points around these three, as x, y, x, y, ... */
export const points = Float32Array.from({ length: 240 }, (_, i) => around[i % 6]! + 3 * Math.sin(i * i));

export async function run(gpu: Gpu, k = 3, rounds = 10) {
  using x = gpu.matrix(points.length / 2, 2, points);
  using centres = x.slice([0, k]).eval(); // start with the first k points

  for (let round = 0; round < rounds; round++) {
    // Each point's squared distance from each centre, |x|^2 - 2 x c + |c|^2. A column and a row stretch, as in NumPy.
    const distances = x.square().sum(1).sub(x.matmul(centres.T).mul(2)).add(centres.square().sum(1).T);
    using member = distances.neg().hardmax().eval(); // 1 in the column of the nearest centre, 0 elsewhere
    // Sums of the members of each cluster, divided by their number.
    centres.assign(member.T.matmul(x).div(member.sum(0).T));
  }
  return { centres: Array.from(await centres.read()) };
}
