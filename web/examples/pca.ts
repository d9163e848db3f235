// SPDX-License-Identifier: Apache-2.0

// Principal components: the directions in which data vary most, by a singular value decomposition.

import type { Gpu } from "sublet";

/** Flowers, a row each: lengths and widths of sepals and petals in centimetres. */
export const flowers = [
  [5.1, 3.5, 1.4, 0.2], [4.9, 3.0, 1.4, 0.2], [5.4, 3.9, 1.7, 0.4], [4.6, 3.4, 1.4, 0.3],
  [7.0, 3.2, 4.7, 1.4], [6.4, 3.2, 4.5, 1.5], [5.5, 2.3, 4.0, 1.3], [6.5, 2.8, 4.6, 1.5],
  [6.3, 3.3, 6.0, 2.5], [5.8, 2.7, 5.1, 1.9], [7.1, 3.0, 5.9, 2.1], [6.5, 3.0, 5.8, 2.2],
];

export async function run(gpu: Gpu) {
  using x = gpu.matrix(flowers);
  using centred = x.sub(x.mean(0)).eval(); // each column less its mean

  // centred = U S V': the columns of V are the components, the squares of S their shares of the variance.
  const variances = centred.singularValues().square();
  using shares = variances.div(variances.sum()).eval();
  using components = centred.rightVectors().eval();
  // The data in the first two components, as for a plot. The sign of a component is arbitrary.
  const first = components.slice(null, [0, 2]);
  using plane = centred.matmul(first).eval();

  return { shares: Array.from(await shares.read()), plane: Array.from(await plane.read()) };
}
