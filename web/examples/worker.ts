// SPDX-License-Identifier: Apache-2.0

// A worker computes, so that the page never waits. This one file is both: the page's half and the worker's.

import { init } from "sublet";

/** In the page: hands the numbers over and waits for the answer. Memory that is transferred moves and is not copied. */
export async function main() {
  const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  const answer = new Promise<Float32Array>((resolve, reject) => {
    worker.onmessage = ({ data }) => typeof data === "string" ? reject(new Error(data)) : resolve(data);
    worker.onerror = ({ message }) => reject(new Error(message));
  });
  const values = Float32Array.from({ length: 6 }, (_, i) => i + 1);
  worker.postMessage(values, [values.buffer]);
  try {
    return { gram: Array.from(await answer), left: values.length }; // the page has none left of the values
  } finally {
    worker.terminate();
  }
}

/** In the worker: the same package, the same calls. */
async function gram(values: Float32Array) {
  using gpu = await init();
  using x = gpu.wrap(values, 3, 2); // uses the memory that the page gave us
  return x.T.matmul(x).read(new Float32Array(4));
}

if (typeof document === "undefined") {
  addEventListener("message", ({ data }) => {
    gram(data).then((result) => postMessage(result, { transfer: [result.buffer] }), (error) => postMessage(String(error)));
  });
}
