// SPDX-License-Identifier: Apache-2.0

// Draws the particles: by a render pass from the buffer that Sublet computes in, or point by point from an array.

/** @typedef {import('./first-world.mjs').World} World */

const WGSL = `
struct View { scale: vec2f, spot: vec2f, n: u32, light: f32 }
@group(0) @binding(0) var<storage, read> state: array<f32>;
@group(0) @binding(1) var<uniform> view: View;
struct Spot { @builtin(position) at: vec4f, @location(0) tint: vec3f }

@vertex fn spot(@builtin(vertex_index) corner: u32, @builtin(instance_index) i: u32) -> Spot {
  let at = vec2f(state[i], state[view.n + i]) * view.scale;
  let speed = length(vec2f(state[2u * view.n + i], state[3u * view.n + i]));
  let side = vec2f(f32(corner & 1u), f32(corner >> 1u)) * 2.0 - 1.0;
  let warm = smoothstep(0.1, 1.6, speed);
  let tint = mix(vec3f(0.12, 0.3, 1.0), vec3f(1.0, 0.42, 0.3), warm) * view.light;
  return Spot(vec4f(at + side * view.spot, 0.0, 1.0), tint);
}
@fragment fn paint(s: Spot) -> @location(0) vec4f { return vec4f(s.tint, 1.0); }
`;

/** The picture's ground, #0a0d16. */
const GROUND = [10, 13, 22];

/** How far the picture reaches from its middle, along the shorter side. */
const REACH = 1.12;

/** @param {HTMLCanvasElement} canvas */
function fit(canvas) {
  const ratio = Math.min(devicePixelRatio, 2), {clientWidth, clientHeight} = canvas;
  const width = Math.max(1, Math.round(clientWidth * ratio)), height = Math.max(1, Math.round(clientHeight * ratio));
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, {width, height});
  const short = Math.min(width, height);
  return {width, height, ratio, scale: [short / width / REACH, short / height / REACH]};
}

/** Where the pointer is among the particles. @param {HTMLCanvasElement} canvas @param {PointerEvent} event */
export function place(canvas, event) {
  const box = canvas.getBoundingClientRect(), half = Math.min(box.width, box.height) / 2 / REACH;
  return {x: (event.clientX - box.left - box.width / 2) / half, y: (box.top + box.height / 2 - event.clientY) / half};
}

/** Shows what is drawn in the canvas itself. */
class Screen {
  /** @param {HTMLCanvasElement} canvas @param {GPUDevice} device */
  constructor(canvas, device) {
    this.format = navigator.gpu.getPreferredCanvasFormat();
    this.context = /** @type {GPUCanvasContext} */ (canvas.getContext('webgpu'));
    this.context.configure({device, format: this.format, alphaMode: 'opaque'});
  }

  texture() {
    return this.context.getCurrentTexture();
  }

  async show() {}
}

/**
 * Shows what is drawn in a texture, by copying its pixels to a 2D canvas: for adapters that are programs, because Chromium's SwiftShader
 * loses its device where a canvas wants a texture and there is no display (its error is "Could not find SharedImageBackingFactory").
 */
class Copy {
  format = /** @type {const} */ ('rgba8unorm');

  /** @param {HTMLCanvasElement} canvas @param {GPUDevice} device */
  constructor(canvas, device) {
    this.device = device;
    /** @type {GPUTexture | undefined} */
    this.target = undefined;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', {alpha: false}));
  }

  /** @param {number} width @param {number} height */
  texture(width, height) {
    if (this.target?.width === width && this.target.height === height) return this.target;
    this.target?.destroy();
    this.pixels?.destroy();
    this.stride = Math.ceil(width / 64) * 64; // rows of a copy begin at multiples of 256 bytes
    this.pixels = this.device.createBuffer({size: 4 * this.stride * height, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST});
    this.target = this.device.createTexture({
      size: [width, height], format: this.format, usage: GPUTextureUsage.RENDER_ATTACHMENT | GPUTextureUsage.COPY_SRC,
    });
    return this.target;
  }

  async show() {
    const texture = /** @type {GPUTexture} */ (this.target), pixels = /** @type {GPUBuffer} */ (this.pixels), {width, height} = texture;
    const stride = /** @type {number} */ (this.stride), encoder = this.device.createCommandEncoder();
    encoder.copyTextureToBuffer({texture}, {buffer: pixels, bytesPerRow: 4 * stride}, [width, height]);
    this.device.queue.submit([encoder.finish()]);
    await pixels.mapAsync(GPUMapMode.READ);
    const image = new ImageData(new Uint8ClampedArray(pixels.getMappedRange().slice(0)), stride, height);
    pixels.unmap();
    this.context.putImageData(image, 0, 0);
  }
}

/** Draws by WebGPU, on the device of the particles. */
class Painter {
  /** @param {HTMLCanvasElement} canvas @param {GPUDevice} device @param {Screen | Copy} screen */
  constructor(canvas, device, screen) {
    this.canvas = canvas;
    this.device = device;
    this.screen = screen;
    /** @type {World | undefined} */
    this.world = undefined;
    const module = device.createShaderModule({code: WGSL});
    const add = {srcFactor: /** @type {const} */ ('one'), dstFactor: /** @type {const} */ ('one')};
    this.pipeline = device.createRenderPipeline({
      layout: 'auto',
      vertex: {module},
      fragment: {module, targets: [{format: screen.format, blend: {color: add, alpha: add}}]},
      primitive: {topology: 'triangle-strip'},
    });
    this.view = device.createBuffer({size: 32, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST});
  }

  /** Sets what the shader knows of the particles and the canvas. @param {World} world */
  #prepare(world) {
    const {device, pipeline, view} = this, {width, height, ratio, scale} = fit(this.canvas);
    const values = new Float32Array([...scale, ratio * 0.75 / width, ratio * 0.75 / height, 0, Math.min(0.9, 45000 / world.n), 0, 0]);
    new Uint32Array(values.buffer)[4] = world.n;
    device.queue.writeBuffer(view, 0, values);
    if (this.world !== world) {
      this.world = world;
      const entries = [world.buffer, view].map((buffer, binding) => ({binding, resource: {buffer: /** @type {GPUBuffer} */ (buffer)}}));
      this.group = device.createBindGroup({layout: pipeline.getBindGroupLayout(0), entries});
    }
    return this.screen.texture(width, height);
  }

  /** @param {World} world */
  async draw(world) {
    const texture = this.#prepare(world), encoder = this.device.createCommandEncoder();
    const [r, g, b] = GROUND.map((part) => part / 255);
    const pass = encoder.beginRenderPass({
      colorAttachments: [{view: texture.createView(), clearValue: {r, g, b, a: 1}, loadOp: 'clear', storeOp: 'store'}],
    });
    pass.setPipeline(this.pipeline);
    pass.setBindGroup(0, /** @type {GPUBindGroup} */ (this.group));
    pass.draw(4, world.n);
    pass.end();
    this.device.queue.submit([encoder.finish()]);
    await this.screen.show();
  }
}

/** Draws by the page itself. */
class Sketcher {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', {alpha: false}));
  }

  /** @param {World} world */
  async draw({n, array}) {
    const {width, height, ratio, scale: [across, up]} = fit(this.canvas);
    const image = this.context.createImageData(width, height), {data} = image, state = /** @type {Float32Array} */ (array);
    new Uint32Array(data.buffer).fill(0xff000000 | GROUND[2] << 16 | GROUND[1] << 8 | GROUND[0]);
    const spot = Math.max(1, Math.round(1.3 * ratio)), light = Math.min(140, 2.8e6 / n);
    for (let i = 0; i < n; i++) {
      const warm = Math.min(1, Math.hypot(state[2 * n + i], state[3 * n + i]) / 1.6);
      const left = Math.round((state[i] * across + 1) / 2 * width), top = Math.round((1 - state[n + i] * up) / 2 * height);
      if (!(left >= 0 && left + spot <= width && top >= 0 && top + spot <= height)) continue;
      for (let k = 0; k < spot * spot; k++) {
        const at = 4 * ((top + Math.floor(k / spot)) * width + left + k % spot);
        data[at] += light * (0.12 + 0.88 * warm);
        data[at + 1] += light * (0.3 + 0.12 * warm);
        data[at + 2] += light * (1 - 0.7 * warm);
      }
    }
    this.context.putImageData(image, 0, 0);
  }
}

/** @param {HTMLCanvasElement} canvas @param {import('./index.mjs').Gpu} gpu */
export function painter(canvas, gpu) {
  const device = /** @type {GPUDevice | null} */ (gpu.device);
  if (!device) return new Sketcher(canvas);
  return new Painter(canvas, device, gpu.info.kind === 'cpu' ? new Copy(canvas, device) : new Screen(canvas, device));
}
