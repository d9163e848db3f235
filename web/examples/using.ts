// SPDX-License-Identifier: Apache-2.0

// Memory: what has to be closed, and how `using` does it. Matrices have memory, expressions and views have none.

import type { Gpu } from "sublet";

/** What lives longer than a block belongs to an object, which closes it. */
class Model {
  readonly weights;
  constructor(gpu: Gpu) { this.weights = gpu.eye(10); }
  [Symbol.dispose]() { this.weights.close(); }
}

export async function run(gpu: Gpu) {
  const bytes = async () => { await gpu.sync(); return gpu.stats().liveBytes; };
  const before = await bytes();
  let inside = 0;
  {
    using a = gpu.ones(100, 100); // 40,000 bytes
    using b = a.add(1).eval(); // as much again
    const c = a.matmul(b); // an expression: nothing is computed, nothing has to be closed
    const row = b.row(0); // a view of b's memory
    row.assign(row.mul(3));
    inside = await bytes() - before;
    await c.sum().value();
  } // a and b are closed here, whatever happens in the block

  let kept = 0, trace = 0;
  {
    using model = new Model(gpu);
    model.weights.assign(model.weights.mul(2)); // into the same memory
    kept = await bytes() - before;
    trace = await model.weights.trace().value();
  }
  return { inside, kept, trace, after: await bytes() - before };
}
