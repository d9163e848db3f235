// SPDX-License-Identifier: Apache-2.0

// Loading weights: a parameter dictionary of TVM (.params) and a file of safetensors.

import type { FileSource, Gpu, Matrix } from "sublet";

export async function run(
  gpu: Gpu,
  dictionary: FileSource | PromiseLike<FileSource> = fetch("model.params"),
  tensors: string | FileSource = "model.safetensors", // an address, a response, a Blob or memory
) {
  // A dictionary streams to the device: a response need not have come in full, and is never held as a whole.
  using params = await gpu.loadParams(dictionary, { memoryLimit: 1e9 });
  using weight = params.get("weight")!.matrix(); // the same memory as a matrix
  using bias = params.get("bias")!.matrix();

  // load reads .safetensors, .npz, .npy and .mtx. Of a Blob of safetensors only the bytes of these names are read.
  using file = await gpu.load(tensors, { format: "safetensors", names: ["scale"] });
  const scale = file.get("scale") as Matrix; // one dimension is a row; an array of more than two would be a Tensor
  const y = weight.sum(0).add(bias).mul(scale);
  return { names: params.names, y: Array.from(await y.read()) };
}
