// SPDX-License-Identifier: Apache-2.0

import type { Expr, Matrix } from "./matrix.js";
import type { Tensor } from "./tensor.js";

/** What a layer takes: float32, a row for each sample. Of a tensor the first dimension counts the samples. */
export type NNInput = Expr | Tensor;

/** What a layer makes: a tensor of tensors, an expression of matrices. */
export type NNResult<X> = X extends Tensor ? Tensor : Expr;

/** A size for both directions, or height and width. */
export type NNPair = number | readonly [vertical: number, horizontal: number];

/**
 * How a window goes over images. The columns of a row of images are channels x height x width in that order, as in NCHW. Tensors of
 * n x channels x height x width tell these three themselves.
 */
export interface WindowOptions {
  /** Of the images. */
  readonly channels?: number;
  readonly height?: number;
  readonly width?: number;
  /** The size of the window. */
  readonly kernel?: NNPair;
  /** From one place of the window to the next. 1 by default. */
  readonly stride?: NNPair;
  /** How far the window reaches over the edges: of all, vertical and horizontal ones, or top, bottom, left and right. 0 by default. */
  readonly pad?: NNPair | readonly [top: number, bottom: number, left: number, right: number];
  /** From one element of the window to the next. 1 by default. */
  readonly dilation?: NNPair;
}

/** A convolution. Weights that are a tensor of outputs x channels/groups x height x width tell the kernel themselves. */
export interface ConvOptions extends WindowOptions {
  /** Into how many groups channels and outputs are divided, each of which sees its own alone. 1 by default. */
  readonly groups?: number;
}

/** An average. */
export interface AverageOptions extends WindowOptions {
  /** Whether padding counts as zeros. By default it does not count. */
  readonly includePad?: boolean;
}

/**
 * Neural networks, with gradients: {@link Gpu.nn}. What is returned is an expression, not run yet, that fuses with what is done to it.
 *
 * Options are checked, and one that is not known is `ErrInvalid`, as are settings that make no sense. Sizes that do not fit are
 * `ErrShape`, as is a tensor of another shape with as many elements, or an option that contradicts a tensor's shape; sizes that int32 cannot count `ErrLimit`. Every gradient is the same from run to run on one device.
 */
export class NN {
  private constructor();

  /**
   * The convolution of n images with weights of a row for each output, outputs x (channels/groups * kernel), plus a bias for each output:
   * n x (outputs * height * width). The kernel is not turned round.
   */
  conv2d<X extends NNInput>(x: X, weights: NNInput, bias: NNInput | null | undefined, options?: ConvOptions): NNResult<X>;
  /** The gradient by the images, given d, the one by the result. Height and width must be given: it is also the transposed convolution of d. */
  conv2dDataGrad<X extends NNInput>(d: X, weights: NNInput, options: ConvOptions): NNResult<X>;
  /** The gradient by the weights, of their size, given d, the one by the result. The kernel must be given. */
  conv2dKernelGrad<X extends NNInput>(d: X, x: NNInput, options: ConvOptions): NNResult<X>;
  /** The gradient by the bias, 1 x outputs, given d, the one by the result. */
  conv2dBiasGrad<X extends NNInput>(d: X, options?: ConvOptions): NNResult<X>;

  /** The largest element below each place of the window, for each channel. Padding is never the largest, a NaN is. */
  maxPool<X extends NNInput>(x: X, options: WindowOptions): NNResult<X>;
  /** The gradient by x, given d, the one by maxPool(x): it goes to the first of the largest elements. */
  maxPoolGrad<X extends NNInput>(d: NNInput, x: X, options: WindowOptions): NNResult<X>;
  /** The elements of y where the largest elements of x are, and 0 elsewhere. Where windows overlap elements add. */
  maxUnpool<X extends NNInput>(y: NNInput, x: X, options: WindowOptions): NNResult<X>;
  /** The mean of the elements below each place of the window, for each channel. */
  averagePool<X extends NNInput>(x: X, options: AverageOptions): NNResult<X>;
  /** The gradient by x, given d, the one by averagePool(x). Height and width must be given. */
  averagePoolGrad<X extends NNInput>(d: X, options: AverageOptions): NNResult<X>;

  /** -log softmax(x) at the label of each row: n x 1, of n x classes logits and n labels of int32. A label without a class has a loss of 0. */
  crossEntropy<X extends NNInput>(x: X, labels: NNInput): NNResult<X>;
  /** The gradient of the sum of crossEntropy by x: softmax(x) less 1 at each label. */
  crossEntropyGrad<X extends NNInput>(x: X, labels: NNInput): NNResult<X>;
  /** The mean of (x - target)^2, of one element. */
  mse<X extends NNInput>(x: X, target: NNInput): NNResult<X>;
  /** The gradient of mse by x. */
  mseGrad<X extends NNInput>(x: X, target: NNInput): NNResult<X>;
  /** x where the mask is not 0, divided by the share that is kept, above 0 and up to 1; 0 elsewhere. Its gradient is itself, of the gradient. */
  dropout<X extends NNInput>(x: X, mask: NNInput, keep: number): NNResult<X>;
  /** The rows of a table, vocabulary x width, that labels of int32 name: n x width. The row of a label that the table does not have is 0. */
  embedding<X extends NNInput>(table: NNInput, labels: X): NNResult<X>;
  /** The gradient by the table: each of as many rows as the vocabulary has is the sum of those of d, n x width, whose label it is. */
  embeddingGrad<X extends NNInput>(d: X, labels: NNInput, vocabulary: number): NNResult<X>;

  /**
   * Batch normalisation: scale * (x - mean) / sqrt(variance + epsilon) + bias for each feature. A feature is a channel, or each column where
   * channels is 0; it is a tensor's second dimension by default, where there are more. Epsilon is 1e-5 by default.
   */
  batchNorm(options?: { readonly channels?: number; readonly epsilon?: number }): BatchNorm;

  /**
   * Makes a matrix of 1 to 8 bits, 8 by default, for each element of x. Of several bits, the range of a column is its mean plus or minus
   * four standard deviations, and what is beyond is clipped. A residual, of the size of x, is added first and takes what
   * quantising loses. Of 1 bit, levels hold eight rows in one.
   */
  quantise(x: NNInput, options?: { readonly bits?: number; readonly residual?: Matrix }): Quantised;

  /** p -= rate * (g + decay * p). A rate of 0.01 by default. */
  sgd(options?: { readonly rate?: number; readonly decay?: number }): Optimiser;
  /** v = momentum * v + g; p -= rate * v, or with Nesterov's p -= rate * (g + momentum * v). Rate 0.01 and momentum 0.9 by default. */
  momentum(options?: { readonly rate?: number; readonly momentum?: number; readonly decay?: number; readonly nesterov?: boolean }): Optimiser;
  /** s += g^2; p -= rate * g / (sqrt(s) + epsilon). Rate 0.01 and epsilon 1e-10 by default. */
  adagrad(options?: { readonly rate?: number; readonly epsilon?: number; readonly decay?: number }): Optimiser;
  /** s = rho * s + (1-rho) * g^2; p -= rate * g / (sqrt(s) + epsilon). Rate 0.01, rho 0.99 and epsilon 1e-8 by default. */
  rmsprop(options?: { readonly rate?: number; readonly rho?: number; readonly epsilon?: number; readonly decay?: number }): Optimiser;
  /** Adam, or AdamW with a decoupled decay. Rate 0.001, beta1 0.9, beta2 0.999 and epsilon 1e-8 by default. */
  adam(options?: {
    readonly rate?: number; readonly beta1?: number; readonly beta2?: number; readonly epsilon?: number; readonly decay?: number; readonly decoupled?: boolean;
  }): Optimiser;
  /** AdaDelta. Rate 1, rho 0.9 and epsilon 1e-6 by default. */
  adadelta(options?: { readonly rate?: number; readonly rho?: number; readonly epsilon?: number; readonly decay?: number }): Optimiser;
}

/**
 * Changes parameters so that a loss falls. What it remembers of a parameter is in matrices of the parameter's size, which start at 0
 * with the first step and last until it is closed.
 */
export class Optimiser {
  private constructor();
  /** The learning rate, which may change between steps: at least 0, `ErrInvalid` otherwise. */
  rate: number;
  readonly closed: boolean;
  /** Queues one step of a parameter of float32, always the same matrix, given the gradient of the loss by it, of its size; a tensor counts as rows of its first dimension. */
  step(param: Matrix, grad: NNInput): void;
  close(): void;
  [Symbol.dispose](): void;
}

/** Batch normalisation; see {@link NN.batchNorm}. Scale, bias and statistics are rows of an element for each feature. */
export class BatchNorm {
  private constructor();
  /** x normalised with given statistics, such as running ones. */
  infer<X extends NNInput>(x: X, scale: NNInput, bias: NNInput, mean: NNInput, variance: NNInput): NNResult<X>;
  /**
   * Queues the normalisation of x with its own statistics, into a matrix of its size if there is one. Running statistics become
   * (1 - factor) * running + factor * batch, with the unbiased variance; the factor is 0.1 by default.
   */
  train(x: NNInput, scale: NNInput, bias: NNInput, options?: {
    readonly into?: Matrix; readonly mean?: Matrix; readonly variance?: Matrix; readonly factor?: number;
  }): BatchStatistics;
  /** The gradients by x, scale and bias, given d, the one by the normalised x, and the batch's statistics. */
  backward<X extends NNInput>(d: NNInput, x: X, scale: NNInput, statistics: Pick<BatchStatistics, "mean" | "invStd">): { dx: NNResult<X>; dscale: Expr; dbias: Expr };
}

/** A normalised batch and its statistics. Close it when done; a matrix that it was written into stays open. */
export class BatchStatistics {
  private constructor();
  readonly y: Matrix | Tensor;
  readonly mean: Matrix;
  /** 1 / sqrt(variance + epsilon). */
  readonly invStd: Matrix;
  close(): void;
  [Symbol.dispose](): void;
}

/** A matrix of few bits for each element, as for sending gradients. Each column has a range of its own. Close it when done. */
export class Quantised {
  private constructor();
  /** The numbers of the levels, uint8; of 1 bit, eight rows in one, the lowest bit for the first row. */
  readonly levels: Matrix;
  /** The range of each column, or what the two levels of 1 bit stand for. */
  readonly lower: Matrix;
  readonly upper: Matrix;
  readonly rows: number;
  readonly cols: number;
  readonly bits: number;
  /** The matrix again: the middle of each element's level, or what it stands for. */
  dequantise(): Expr;
  close(): void;
  [Symbol.dispose](): void;
}
