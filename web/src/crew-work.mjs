// SPDX-License-Identifier: Apache-2.0

import {ARGS, MOST, NEXT, THREADS, TOTAL} from './crew-block.mjs';

/**
 * Runs workgroups of a job until none is left, as the method work in gpu/simd/launch.go does.
 * @param {Uint32Array} words of the block @param {number} scratch @param {(args: number, scratch: number, from: number, to: number) => number} run
 * @returns {number} the first result that is not 0, which ends the job
 */
export function work(words, scratch, run) {
  const total = words[TOTAL], args = words[ARGS];
  for (let most = 1;; most *= 8) {
    most = Math.min(most, words[MOST]);
    const left = total - Atomics.load(words, NEXT), n = Math.max(1, Math.min(most, Math.floor(left / (2 * words[THREADS]))));
    const from = left > 0 ? Atomics.add(words, NEXT, n) : total;
    if (from >= total) return 0;
    const result = run(args, scratch, from, Math.min(from + n, total));
    if (result === 0) continue;
    Atomics.store(words, NEXT, total);
    return result;
  }
}
