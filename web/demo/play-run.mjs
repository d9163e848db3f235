// SPDX-License-Identifier: Apache-2.0

/** @typedef {import('./index.mjs').Expr} Expr */

/** How long something takes, in seconds. @template T @param {() => T | Promise<T>} work @returns {Promise<[T, number]>} */
async function timed(work) {
  const start = performance.now(), result = await work();
  return [result, (performance.now() - start) / 1000];
}

/**
 * Computes an expression twice, because the first time kernels are compiled and operands sent to the device, and reads the result.
 * @param {import('./index.mjs').Gpu} gpu @param {Expr} expression
 */
export async function run(gpu, expression) {
  const before = gpu.stats();
  // [code]
  const plan = await expression.explain();    // the kernels; nothing has run yet
  const [result, first] = await timed(async () => {
    const result = expression.eval();         // queues them: operands are sent, kernels compiled
    await gpu.sync();
    return result;
  });
  const [, second] = await timed(() => {
    result.assign(expression);                // the kernels alone
    return gpu.sync();
  });
  const [values, reading] = await timed(() => readable(result).read());
  // [end]
  result.close();
  const {bytesUp, bytesDown} = gpu.stats();
  return {
    plan, values, rows: expression.rows, cols: expression.cols, dtype: expression.dtype,
    times: {first, second, reading}, up: bytesUp - before.bytesUp, down: bytesDown - before.bytesDown,
  };
}

/** Numbers that JavaScript can read: float16 is bits in browsers without Float16Array. @param {Expr} x */
const readable = (x) => x.dtype === 'float16' ? x.astype('float32') : x;
