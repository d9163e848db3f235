// SPDX-License-Identifier: Apache-2.0

// Nearest neighbours: the three documents that are most like each query, by the cosine of their vectors.

import type { Gpu } from "sublet";

export const width = 16;
/** Vectors of 500 documents and 4 queries, such as a language model makes, row after row. */
export const documents = Float32Array.from({ length: 500 * width }, (_, i) => Math.sin(i * 0.37 + Math.cos(i * 1.7) * 5));
export const queries = Float32Array.from({ length: 4 * width }, (_, i) => Math.cos(i * i * 0.11));

export async function run(gpu: Gpu, k = 3) {
  using x = gpu.matrix(documents.length / width, width, documents);
  using q = gpu.matrix(queries.length / width, width, queries);

  // Rows of length 1: then a product of two rows is their cosine. A column of norms stretches along the rows.
  const unit = x.div(x.norm2(1)), asked = q.div(q.norm2(1));
  using cosines = asked.matmul(unit.T).eval(); // a row for each query, a column for each document

  // For each row the k largest, the largest first, and where they are. Only 2 * 4 * k numbers come back.
  const [nearest, likeness] = await Promise.all([cosines.argTopK(k).read(), cosines.topK(k).read()]);
  return { nearest: Array.from(nearest), likeness: Array.from(likeness) };
}
