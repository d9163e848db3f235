// SPDX-License-Identifier: Apache-2.0

// Particles: Sublet moves them, the page's own render pass draws them, from the same buffer. While they move, none leaves the GPU.

import { init } from "sublet";

const shader = `
  @vertex fn place(@location(0) xy: vec2f) -> @builtin(position) vec4f { return vec4f(xy, 0, 1); }
  @fragment fn colour() -> @location(0) vec4f { return vec4f(1, 0.6, 0.2, 1); }`;

export async function main(canvas: HTMLCanvasElement, device: GPUDevice, count = 1000, frames = 60) {
  using gpu = await init({ device }); // the page's device, which stays the page's
  const { STORAGE, COPY_SRC, COPY_DST, VERTEX } = GPUBufferUsage; // wrapBuffer asks for the first three
  const buffer = device.createBuffer({ size: count * 8, usage: STORAGE | COPY_SRC | COPY_DST | VERTEX });
  using position = gpu.wrapBuffer(buffer, count, 2, { release: "destroy" });
  using velocity = gpu.uniform(count, 2, -0.01, 0.01, 2).eval();
  position.assign(gpu.uniform(count, 2, -0.9, 0.9, 1)); // the seed 1 makes the same start every time

  const context = canvas.getContext("webgpu")!, format = navigator.gpu.getPreferredCanvasFormat();
  context.configure({ device, format });
  const module = device.createShaderModule({ code: shader });
  const attributes: GPUVertexAttribute[] = [{ shaderLocation: 0, offset: 0, format: "float32x2" }];
  const vertex = { module, buffers: [{ arrayStride: 8, attributes }] }, fragment = { module, targets: [{ format }] };
  const pipeline = device.createRenderPipeline({ layout: "auto", vertex, fragment, primitive: { topology: "point-list" } });

  const before = gpu.stats();
  for (let frame = 0; frame < frames; frame++) {
    await new Promise(requestAnimationFrame);
    velocity.assign(velocity.sub(position.mul(0.001))); // a spring to the middle of the canvas
    position.assign(position.add(velocity));
    await position.buffer; // what was called before is on the device's queue now, so the pass comes after it
    const encoder = device.createCommandEncoder(), view = context.getCurrentTexture().createView();
    const pass = encoder.beginRenderPass({ colorAttachments: [{ view, loadOp: "clear", storeOp: "store" }] });
    pass.setPipeline(pipeline);
    pass.setVertexBuffer(0, buffer);
    pass.draw(count);
    pass.end();
    device.queue.submit([encoder.finish()]);
  }
  const after = gpu.stats(), bytesMoved = after.bytesUp - before.bytesUp + after.bytesDown - before.bytesDown;
  return { bytesMoved, positions: Array.from(await position.read()) };
}
