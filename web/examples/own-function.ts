// SPDX-License-Identifier: Apache-2.0

// A function of your own, in WGSL: it becomes part of the kernel around it, with loops and all.

import type { Gpu } from "sublet";

// Kepler's equation: where on its ellipse is a planet at a time? x - e sin x = m has no solution in closed form; Newton's
// method finds one for each element. Further functions and constants may stand beside the first one, which is the one called.
// (sin and cos are WGSL's own here, which a GPU may compute to three or four digits only. Those of Sublet are good to all.)
const kepler = `
  fn anomaly(m: f32, e: f32) -> f32 {
    var x = m + e * sin(m);
    for (var i = 0; i < STEPS; i++) {
      x -= (x - e * sin(x) - m) / (1.0 - e * cos(x));
    }
    return x;
  }
  const STEPS = 6;`;

export async function run(gpu: Gpu) {
  using anomaly = gpu.fn(kepler);
  using eccentricity = gpu.matrix(4, 1, [0.0167, 0.0934, 0.2056, 0.9671]); // Earth, Mars, Mercury, Halley's comet
  const time = gpu.linspace(0, 3, 7); // a row: with the column it makes a table of 4 x 7

  // It is called like any operation, operands stretch, and what follows runs in the same kernel.
  const x = gpu.apply(anomaly, time, eccentricity);
  const distance = x.cos().mul(eccentricity).neg().add(1); // in half axes of the ellipse
  return { distance: Array.from(await distance.read()) };
}
