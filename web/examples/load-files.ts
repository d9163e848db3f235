// SPDX-License-Identifier: Apache-2.0

// Loading weights: a parameter dictionary of TVM (.params) and a file of safetensors.

import type { FileSource, Gpu, Matrix } from "sublet";

export async function run(
  gpu: Gpu,
  dictionary: FileSource | PromiseLike<FileSource> = fetch("model.params"),
  tensors: Blob | PromiseLike<Blob> = fetch("model.safetensors").then((response) => response.blob()),
) {
  // A dictionary streams to the device: a response need not have come in full, and is never held as a whole.
  using params = await gpu.loadParams(dictionary, { memoryLimit: 1e9 });
  using weight = params.get("weight")!.matrix(); // the same memory as a matrix
  using bias = params.get("bias")!.matrix();

  using scale = await float32(gpu, await tensors, "scale");
  const y = weight.sum({ axis: 0 }).add(bias).mul(scale);
  return { names: params.names, y: Array.from(await y.read()) };
}

/** A tensor of float32 of one or two dimensions. The file: eight bytes with the length of the header, the header in JSON, the data. */
async function float32(gpu: Gpu, file: Blob, name: string): Promise<Matrix> {
  const length = Number(new DataView(await file.slice(0, 8).arrayBuffer()).getBigUint64(0, true));
  const tensor = JSON.parse(await file.slice(8, 8 + length).text())[name];
  if (tensor?.dtype !== "F32") throw new Error(`${name} is ${tensor?.dtype ?? "missing"}, not F32`);
  const [from, to] = tensor.data_offsets, [cols, rows = 1] = tensor.shape.toReversed();
  return gpu.matrix(rows, cols, new Float32Array(await file.slice(8 + length + from, 8 + length + to).arrayBuffer()));
}
