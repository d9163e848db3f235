// SPDX-License-Identifier: Apache-2.0

// Of TensorFlow.js what examples/tensorflow.ts uses: the real declarations come with 70 MB, which long tests install.

declare module "@tensorflow/tfjs-backend-webgpu" {
  import type { KernelBackend } from "@tensorflow/tfjs-core";
  export class WebGPUBackend extends KernelBackend { device: GPUDevice; }
}

declare module "@tensorflow/tfjs-core" {
  export class KernelBackend {}
  export interface GPUData { tensorRef: Tensor; buffer?: GPUBuffer }
  export interface Tensor {
    dataToGPU(): GPUData;
    data(): Promise<Float32Array | Int32Array | Uint8Array>;
    dispose(): void;
  }
  export function setBackend(name: string): Promise<boolean>;
  export function ready(): Promise<void>;
  export function backend(): KernelBackend;
  export function tensor2d(values: number[][]): Tensor;
  export function tensor(values: { buffer: GPUBuffer; zeroCopy?: boolean }, shape: number[], dtype: "float32"): Tensor;
  export function square(x: Tensor): Tensor;
  export function mul(a: Tensor, b: Tensor | number): Tensor;
}
