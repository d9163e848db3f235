// SPDX-License-Identifier: Apache-2.0

// Sparse matrices: PageRank. Only the links are stored, and products read nothing else.

import type { Gpu } from "sublet";

/** Which page links to which. */
export const links = [[0, 1], [0, 2], [1, 2], [2, 0], [3, 0], [3, 2], [4, 3], [2, 4]] as const;

export async function run(gpu: Gpu, pages = 5, damping = 0.85, rounds = 50) {
  // Row i of the matrix ("csr") has the pages that link to i in their order, each with its share: 1 / number of its links.
  // Offsets say where each row begins among the values, and where the last one ends.
  const from = (page: number) => links.filter(([source]) => source === page).length;
  const sorted = links.toSorted(([a, i], [b, j]) => i - j || a - b), indices = sorted.map(([source]) => source);
  const offsets = Array.from({ length: pages + 1 }, (_, page) => sorted.filter(([, target]) => target < page).length);
  using shares = gpu.sparse(pages, pages, { format: "csr", values: indices.map((source) => 1 / from(source)), indices, offsets });

  // The rank of a page is what the pages that link to it give away. A sparse matrix stands in expressions as any other does.
  using rank = gpu.full(pages, 1, 1 / pages);
  for (let round = 0; round < rounds; round++) rank.assign(shares.matmul(rank).mul(damping).add((1 - damping) / pages));

  return { stored: shares.nnz, rank: Array.from(await rank.read()) };
}
