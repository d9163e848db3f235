// SPDX-License-Identifier: Apache-2.0

// Giving up: an AbortSignal ends every call that waits, and leaves the device as it was.

import { SubletError, type Gpu } from "sublet";

export async function run(gpu: Gpu) {
  using x = gpu.uniform(300, 300, 0, 1, 3).eval();
  const stop = new AbortController(); // of the user's "Stop" button, say
  let rounds = 0, code = "", reason = "";
  try {
    for (;;) {
      x.assign(x.add(x.T).div(2));
      await x.trace().value({ signal: stop.signal }); // every call that waits takes a signal
      rounds++;
      if (rounds === 3) stop.abort(new Error("the user has seen enough")); // here the button's doing
    }
  } catch (error) {
    if (!(error instanceof SubletError && error.code === "ErrAborted")) throw error;
    code = error.code;
    reason = (error.cause as Error).message; // the signal's reason
  }

  // What was queued before is done all the same: x is whole, and symmetric. Signals may also limit the time.
  const difference = await x.sub(x.T).normInf().value({ signal: AbortSignal.timeout(60_000) });
  return { rounds, code, reason, difference };
}
