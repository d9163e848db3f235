// SPDX-License-Identifier: Apache-2.0

// A tensor of TensorFlow.js there and back, on the GPU all the way: TF.js makes it, Sublet computes with it, TF.js goes on.

import type { WebGPUBackend } from "@tensorflow/tfjs-backend-webgpu";
import "@tensorflow/tfjs-backend-webgpu";
import * as tf from "@tensorflow/tfjs-core";
import { init } from "sublet";

export async function main() {
  await tf.setBackend("webgpu");
  await tf.ready();
  // Both must use one device: Sublet takes that of TF.js.
  const { device } = tf.backend() as WebGPUBackend;
  using gpu = await init({ device });

  const x = tf.tensor2d([[1, 2], [3, 4], [5, 6]]);
  const { buffer, tensorRef } = tf.square(x).dataToGPU(); // a copy on the GPU, which stays until tensorRef is disposed of
  using squares = gpu.wrapBuffer(buffer!, 3, 2); // in place: nothing is copied here

  // There: row sums of the squares' logarithms. The result is written to a buffer of ours, made for both.
  const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
  const shared = device.createBuffer({ size: 3 * 4, usage: STORAGE | COPY_SRC | COPY_DST });
  using sums = gpu.wrapBuffer(shared, 3, 1);
  sums.assign(squares.log().sum(1));
  await sums.buffer; // it is on the queue now, so whatever TF.js submits next comes after it

  // And back: TF.js uses the same buffer, and does not copy it either.
  const back = tf.tensor({ buffer: shared, zeroCopy: true }, [3, 1], "float32");
  const doubled = await tf.mul(back, 2).data();
  tensorRef.dispose();
  return { doubled: Array.from(doubled) };
}
