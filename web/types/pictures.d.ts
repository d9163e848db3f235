// SPDX-License-Identifier: Apache-2.0

declare global {
  // These merge with the declarations of the DOM. A program that has none gets by.
  interface HTMLCanvasElement {}
  interface OffscreenCanvas {}
  interface HTMLImageElement {}
  interface HTMLVideoElement {}
  interface ImageBitmap {}
  interface VideoFrame {}
}

/** A colormap by its name, or equidistant colours of red, green and blue, 0 to 255, between which it is linear. */
export type Colormap = "gray" | "viridis" | "magma" | "inferno" | "plasma" | readonly (readonly [red: number, green: number, blue: number])[];

/** What `toCanvas` draws on. In Node, a canvas of a package that has `getContext("2d")`. */
export type Canvas = HTMLCanvasElement | OffscreenCanvas | { width: number; height: number; getContext(kind: "2d"): unknown };

/** How a tensor is drawn. */
export interface TensorDrawOptions {
  /** The colours of one channel: "gray" by default. */
  readonly colormap?: Colormap;
  /**
   * The numbers that the lowest and the highest level stand for; what is beyond is drawn as these. "data" are the smallest and the largest
   * finite number. By default uint8 is drawn from 0 to 255 and bool from 0 to 1; of other types one channel as "data", several from 0 to 1 for
   * floats and from 0 to 255 for whole numbers.
   */
  readonly range?: readonly [low: number, high: number] | "data";
}

/** How a matrix is drawn. */
export interface DrawOptions extends TensorDrawOptions {
  /**
   * How many numbers of a row are a pixel: 1, the default, for a colormap; 3 for red, green and blue; 4 with the opacity. A picture of
   * n pixels in a row is a matrix of m x n, m x 3n or m x 4n.
   */
  readonly channels?: 1 | 3 | 4;
}

/** An object like an ImageData: four bytes for each pixel, red, green, blue and the opacity, row by row. */
export interface PictureData {
  readonly data: Uint8ClampedArray | Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** What {@link Gpu.fromImage} makes tensors of. An image has to be loaded, a video to have a frame, and neither a bitmap nor a frame to be closed. */
export type Picture = HTMLCanvasElement | OffscreenCanvas | HTMLImageElement | HTMLVideoElement | ImageBitmap | VideoFrame | PictureData;

/** What {@link Gpu.fromImage} makes of a picture. */
export interface PictureOptions {
  /** "float32", the default, from 0 to 1, or "uint8", the bytes as they are. */
  readonly dtype?: "float32" | "uint8";
  /** 4, the default: red, green, blue and the opacity, by which the colours are not multiplied. 3 leaves the opacity out. */
  readonly channels?: 3 | 4;
  /** The space of the colours: "srgb", the default, or "display-p3". An ImageData stays in its own. */
  readonly colorSpace?: "srgb" | "display-p3";
}

/** As {@link PictureOptions}, for the luminance alone: 0.2126 red + 0.7152 green + 0.0722 blue, of the bytes as they are. */
export interface LuminanceOptions extends Omit<PictureOptions, "channels"> {
  readonly channels: 1;
}
