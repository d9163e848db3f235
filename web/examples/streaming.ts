// SPDX-License-Identifier: Apache-2.0

// Streaming: mean and covariance of more rows than fit in memory, batch by batch, each copied to the device while more come.

import type { Gpu } from "sublet";

/** Batches of rows of three numbers, as they would come from a file or a socket. */
async function* measurements() {
  for (let batch = 0; batch < 20; batch++) {
    yield Float32Array.from({ length: 3 * 100 }, (_, i) => i % 3 + Math.sin(batch * 300 + i) * (1 + i % 3));
  }
}

export async function run(gpu: Gpu, source: AsyncIterable<Float32Array> = measurements(), cols = 3) {
  // The sums stay on the device: of the rows, and of the products of each two columns.
  using sum = gpu.zeros(1, cols);
  using products = gpu.zeros(cols, cols);
  let n = 0;
  for await (const values of source) {
    using rows = gpu.matrix(values.length / cols, cols, values); // copied at once: the source may use the array again
    sum.assign(sum.add(rows.sum(0)));
    products.assign(products.add(rows.T.matmul(rows)));
    n += rows.rows;
    if (n % 1000 === 0) await gpu.sync(); // not to queue work faster than it is done
  }

  using mean = sum.div(n).eval();
  const covariance = products.div(n).sub(mean.T.matmul(mean)).mul(n / (n - 1));
  return { n, mean: Array.from(await mean.read()), covariance: Array.from(await covariance.read()) };
}
