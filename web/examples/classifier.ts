// SPDX-License-Identifier: Apache-2.0

// A classifier's training step: a network of one hidden layer, cross-entropy, gradients by hand, Adam.

import type { Gpu } from "sublet";

/** Points in two rings, as x, y, x, y, ..., and the ring of each: no line separates them. */
export const points = Float32Array.from({ length: 128 }, (_, i) => (1 + (i >> 1) % 2) * Math.sin((i >> 1) * 0.4 + i % 2 * Math.PI / 2));
export const rings = Int32Array.from({ length: 64 }, (_, i) => i % 2);

export async function run(gpu: Gpu, steps = 40, hidden = 8) {
  using x = gpu.matrix(64, 2, points);
  using labels = gpu.matrix(64, 1, rings); // int32, as the typed array says
  using w1 = gpu.normal(2, hidden, 0, 1, 7).eval(); // mean 0, deviation 1; the seed makes it the same every time
  using b1 = gpu.zeros(1, hidden);
  using w2 = gpu.normal(hidden, 2, 0, 0.5, 8).eval();
  using b2 = gpu.zeros(1, 2);
  using adam = gpu.nn.adam({ rate: 0.05 });
  const start = [Array.from(await w1.read()), Array.from(await w2.read())];

  const h = x.matmul(w1).add(b1).tanh(); // expressions: computed anew with the weights of each step
  const logits = h.matmul(w2).add(b2);
  for (let step = 0; step < steps; step++) {
    using output = h.eval(); // which the gradients use three times
    using d = gpu.nn.crossEntropyGrad(output.matmul(w2).add(b2), labels).div(64).eval();
    using dh = d.matmul(w2.T).tanhGrad(output).eval();
    adam.step(w2, output.T.matmul(d)); // only now: dh was computed with the old w2
    adam.step(b2, d.sum(0));
    adam.step(w1, x.T.matmul(dh));
    adam.step(b1, dh.sum(0));
  }
  const loss = await gpu.nn.crossEntropy(logits, labels).mean().value();
  const accuracy = await logits.argMax(1).equal(labels).astype("float32").mean().value();
  return { start, loss, accuracy };
}
