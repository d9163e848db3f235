// SPDX-License-Identifier: Apache-2.0

// Giving up: an AbortSignal ends every call that waits, and leaves the device as it was.

import { SubletError, type Gpu } from "sublet";

export async function run(gpu: Gpu) {
  using a = gpu.uniform(300, 300, 0, 1, 3).eval();
  const search = new AbortController(); // the user's "Stop" would call search.abort()
  const product = a.matmul(a).matmul(a).trace().read({ signal: search.signal });
  search.abort(new Error("another question was asked"));

  let code = "", reason = "";
  try {
    await product;
  } catch (error) {
    if (!(error instanceof SubletError)) throw error;
    code = error.code; // ErrAborted; the signal's reason is the cause
    reason = (error.cause as Error).message;
  }

  // A signal of AbortSignal.timeout limits how long a call may take. The matrix is whole, and the next call computes.
  const sum = await a.greaterEqual(0).sum().value({ signal: AbortSignal.timeout(60_000) });
  return { code, reason, sum };
}
