// SPDX-License-Identifier: Apache-2.0

// Errors: each is a SubletError with a code. None of them breaks the device, or the matrices that it is about.

import { SubletError, type Gpu } from "sublet";

/** Runs something that fails, and tells how. */
async function failure(what: () => unknown): Promise<SubletError> {
  try {
    await what();
  } catch (error) {
    if (error instanceof SubletError) return error;
    throw error; // a mistake elsewhere
  }
  throw new Error("it did not fail");
}

export async function run(gpu: Gpu) {
  using a = gpu.matrix(2, 3, [1, 2, 3, 4, 5, 6]);

  // What JavaScript knows is thrown by the call itself, with the sizes in the message.
  const shape = await failure(() => a.matmul(a)); // 2x3 by 2x3

  // What only the compiler knows comes to whoever reads the result. The message names the line of your text.
  using wrong = gpu.fn("fn wrong(x: f32) -> f32 {\n  return x + undeclared;\n}");
  const compile = await failure(() => a.apply(wrong).read());

  // What depends on the numbers comes with them, too.
  using singular = gpu.matrix(2, 2, [1, 2, 2, 4]);
  const solve = await failure(() => singular.inv().read());

  // Everything works as before.
  const product = Array.from(await a.matmul(a.T).read());
  return { codes: [shape, compile, solve].map((error) => error.code), messages: [shape, compile].map((error) => error.message), product };
}
