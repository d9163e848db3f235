// SPDX-License-Identifier: Apache-2.0

import type { Expr } from "./expr.js";
import type { Matrix } from "./matrix.js";
import type { Tensor } from "./tensor.js";

/** What a layer takes: float32, a row for each sample. Of a tensor the first dimension counts the samples. */
export type NNInput = Expr<"float32"> | Tensor<"float32">;

/** Labels and numbers of rows: int32. */
export type NNLabels = Expr<"int32"> | Tensor<"int32">;

/** What a layer makes: a tensor of tensors, an expression of matrices. */
export type NNResult<X> = X extends Tensor<any> ? Tensor<"float32"> : Expr<"float32">;

/** A size for both directions, or height and width. */
export type NNPair = number | readonly [vertical: number, horizontal: number];

/**
 * How a window goes over images. The columns of a row of images are channels x height x width in that order, as in NCHW. Tensors of
 * n x channels x height x width tell these three themselves.
 */
export interface WindowOptions {
  /** Of the images. */
  readonly channels?: number;
  /** Of the images. */
  readonly height?: number;
  /** Of the images. */
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
   *
   * Shapes: `n x channels*height*width` and `outputs x channels*kernel` -> `n x outputs*height*width`.
   * @example
   * const image = gpu.matrix(1, 9, [1, 2, 3, 4, 5, 6, 7, 8, 9]), sum = gpu.ones(1, 4);
   * await gpu.nn.conv2d(image, sum, null, { channels: 1, height: 3, width: 3, kernel: 2 }).read(); // [12, 16, 24, 28]
   */
  conv2d<X extends NNInput>(x: X, weights: NNInput, bias: NNInput | null | undefined, options?: ConvOptions): NNResult<X>;
  /**
   * The gradient by the images, given d, the one by the result. Height and width must be given, and channels where the weights are a matrix: it is also the transposed convolution of d.
   *
   * Shapes: `n x outputs*height*width` and the weights -> the images.
   * @example
   * const d = gpu.ones(1, 4), sum = gpu.ones(1, 4);
   * await gpu.nn.conv2dDataGrad(d, sum, { channels: 1, height: 3, width: 3, kernel: 2 }).read(); // [1, 2, 1, 2, 4, 2, 1, 2, 1]
   */
  conv2dDataGrad<X extends NNInput>(d: X, weights: NNInput, options: ConvOptions): NNResult<X>;
  /**
   * The gradient by the weights, of their size, given d, the one by the result. The kernel must be given.
   *
   * Shapes: `n x outputs*height*width` and the images -> the weights.
   * @example
   * const image = gpu.matrix(1, 9, [1, 2, 3, 4, 5, 6, 7, 8, 9]), d = gpu.ones(1, 4);
   * await gpu.nn.conv2dKernelGrad(d, image, { channels: 1, height: 3, width: 3, kernel: 2 }).read(); // [12, 16, 24, 28]
   */
  conv2dKernelGrad<X extends NNInput>(d: X, x: NNInput, options: ConvOptions): NNResult<X>;
  /**
   * The gradient by the bias, 1 x outputs, given d, the one by the result.
   *
   * Shapes: `n x outputs*height*width` -> `1 x outputs`.
   * @example
   * await gpu.nn.conv2dBiasGrad(gpu.ones(1, 4), { channels: 1, height: 3, width: 3, kernel: 2 }).read(); // [4]
   */
  conv2dBiasGrad<X extends NNInput>(d: X, options?: ConvOptions): NNResult<X>;

  /**
   * The largest element below each place of the window, for each channel. Padding is never the largest, a NaN is.
   *
   * Shapes: `n x channels*height*width` -> `n x channels*outHeight*outWidth`.
   * @example
   * const image = gpu.matrix(1, 4, [1, 5, 3, 4]);
   * await gpu.nn.maxPool(image, { channels: 1, height: 2, width: 2, kernel: 2 }).read(); // [5]
   */
  maxPool<X extends NNInput>(x: X, options: WindowOptions): NNResult<X>;
  /**
   * The gradient by x, given d, the one by maxPool(x): it goes to the first of the largest elements.
   *
   * Shapes: those of the result and of x -> that of x.
   * @example
   * const image = gpu.matrix(1, 4, [1, 5, 3, 4]), d = gpu.matrix(1, 1, [2]);
   * await gpu.nn.maxPoolGrad(d, image, { channels: 1, height: 2, width: 2, kernel: 2 }).read(); // [0, 2, 0, 0]
   */
  maxPoolGrad<X extends NNInput>(d: NNInput, x: X, options: WindowOptions): NNResult<X>;
  /**
   * The elements of y where the largest elements of x are, and 0 elsewhere. Where windows overlap elements add.
   *
   * Shapes: those of the result and of x -> that of x.
   * @example
   * const image = gpu.matrix(1, 4, [1, 5, 3, 4]), y = gpu.matrix(1, 1, [7]);
   * await gpu.nn.maxUnpool(y, image, { channels: 1, height: 2, width: 2, kernel: 2 }).read(); // [0, 7, 0, 0]
   */
  maxUnpool<X extends NNInput>(y: NNInput, x: X, options: WindowOptions): NNResult<X>;
  /**
   * The mean of the elements below each place of the window, for each channel.
   *
   * Shapes: `n x channels*height*width` -> `n x channels*outHeight*outWidth`.
   * @example
   * const image = gpu.matrix(1, 4, [1, 5, 3, 7]);
   * await gpu.nn.averagePool(image, { channels: 1, height: 2, width: 2, kernel: 2 }).read(); // [4]
   */
  averagePool<X extends NNInput>(x: X, options: AverageOptions): NNResult<X>;
  /**
   * The gradient by x, given d, the one by averagePool(x). Height and width must be given.
   *
   * Shapes: that of the result -> that of the images.
   * @example
   * const d = gpu.matrix(1, 1, [8]);
   * await gpu.nn.averagePoolGrad(d, { channels: 1, height: 2, width: 2, kernel: 2 }).read(); // [2, 2, 2, 2]
   */
  averagePoolGrad<X extends NNInput>(d: X, options: AverageOptions): NNResult<X>;

  /**
   * -log softmax(x) at the label of each row: n x 1, of n x classes logits and n labels of int32. A label without a class has a loss of 0.
   *
   * Shapes: `n x classes` and `n x 1` -> `n x 1`.
   * @example
   * const logits = gpu.matrix(1, 2, [0, 0]), labels = gpu.matrix(1, 1, new Int32Array([1]));
   * await gpu.nn.crossEntropy(logits, labels).read(); // [0.69315]
   */
  crossEntropy<X extends NNInput>(x: X, labels: NNLabels): NNResult<X>;
  /**
   * The gradient of the sum of crossEntropy by x: softmax(x) less 1 at each label.
   *
   * Shapes: `n x classes` and `n x 1` -> `n x classes`.
   * @example
   * const logits = gpu.matrix(1, 2, [0, 0]), labels = gpu.matrix(1, 1, new Int32Array([1]));
   * await gpu.nn.crossEntropyGrad(logits, labels).read(); // [0.5, -0.5]
   */
  crossEntropyGrad<X extends NNInput>(x: X, labels: NNLabels): NNResult<X>;
  /**
   * The mean of (x - target)^2, of one element.
   *
   * Shapes: `m x n` and `m x n` -> `1 x 1`.
   * @example
   * await gpu.nn.mse(gpu.matrix(1, 2, [1, 2]), gpu.matrix(1, 2, [1, 4])).value(); // 2
   */
  mse<X extends NNInput>(x: X, target: NNInput): NNResult<X>;
  /**
   * The gradient of mse by x.
   *
   * Shapes: `m x n` and `m x n` -> `m x n`.
   * @example
   * await gpu.nn.mseGrad(gpu.matrix(1, 2, [1, 2]), gpu.matrix(1, 2, [1, 4])).read(); // [0, -2]
   */
  mseGrad<X extends NNInput>(x: X, target: NNInput): NNResult<X>;
  /**
   * x where the mask is not 0, divided by the share that is kept, above 0 and up to 1; 0 elsewhere. Its gradient is itself, of the gradient.
   *
   * Shapes: `m x n` and `m x n` -> `m x n`.
   * @example
   * const mask = gpu.randomMask(1, 5, 0.5, 1, 7);
   * await gpu.nn.dropout(gpu.ones(1, 5), mask, 0.5).read(); // [2, 2, 0, 0, 0]
   */
  dropout<X extends NNInput>(x: X, mask: NNInput, keep: number): NNResult<X>;
  /**
   * The rows of a table, vocabulary x width, that labels of int32 name: n x width. The row of a label that the table does not have is 0.
   *
   * Shapes: `vocabulary x width` and `n x 1` -> `n x width`.
   * @example
   * const table = gpu.matrix(2, 2, [1, 2, 3, 4]), labels = gpu.matrix(2, 1, new Int32Array([1, 0]));
   * await gpu.nn.embedding(table, labels).read(); // [3, 4, 1, 2]
   */
  embedding<X extends NNLabels>(table: NNInput, labels: X): NNResult<X>;
  /**
   * The gradient by the table: each of as many rows as the vocabulary has is the sum of those of d, n x width, whose label it is.
   *
   * Shapes: `n x width` and `n x 1` -> `vocabulary x width`.
   * @example
   * const labels = gpu.matrix(2, 1, new Int32Array([1, 1]));
   * await gpu.nn.embeddingGrad(gpu.ones(2, 2), labels, 2).read(); // [0, 0, 2, 2]
   */
  embeddingGrad<X extends NNInput>(d: X, labels: NNLabels, vocabulary: number): NNResult<X>;

  /**
   * Batch normalisation: scale * (x - mean) / sqrt(variance + epsilon) + bias for each feature. A feature is a channel, or each column where
   * channels is 0; it is a tensor's second dimension by default, where there are more. Epsilon is 1e-5 by default.
   *
   * @example
   * const norm = gpu.nn.batchNorm(), one = gpu.ones(1, 2), zero = gpu.zeros(1, 2);
   * await norm.infer(gpu.matrix(1, 2, [3, 5]), one, zero, gpu.matrix(1, 2, [2, 2]), one).read(); // [1, 3]
   */
  batchNorm(options?: { readonly channels?: number; readonly epsilon?: number }): BatchNorm;

  /**
   * Makes a matrix of 1 to 8 bits, 8 by default, for each element of x. Of several bits, the range of a column is its mean plus or minus
   * four standard deviations, and what is beyond is clipped. A residual, of the size of x, is added first and takes what
   * quantising loses. Of 1 bit, levels hold eight rows in one.
   *
   * Shapes: `m x n` -> levels of `m x n`, of 1 bit `ceil(m/8) x n`.
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   * q.bits; // 8
   */
  quantise(x: NNInput, options?: { readonly bits?: number; readonly residual?: Matrix<"float32"> }): Quantised;

  /**
   * p -= rate * (g + decay * p). A rate of 0.01 by default.
   *
   * @example
   * using sgd = gpu.nn.sgd({ rate: 0.5 });
   * const w = gpu.matrix(1, 2, [1, 2]);
   * sgd.step(w, gpu.ones(1, 2));
   * await w.read(); // [0.5, 1.5]
   */
  sgd(options?: { readonly rate?: number; readonly decay?: number }): Optimiser;
  /**
   * v = momentum * v + g; p -= rate * v, or with Nesterov's p -= rate * (g + momentum * v). Rate 0.01 and momentum 0.9 by default.
   *
   * @example
   * using momentum = gpu.nn.momentum({ rate: 0.5 });
   * const w = gpu.matrix(1, 2, [1, 2]);
   * momentum.step(w, gpu.ones(1, 2));
   * await w.read(); // [0.5, 1.5]
   */
  momentum(options?: { readonly rate?: number; readonly momentum?: number; readonly decay?: number; readonly nesterov?: boolean }): Optimiser;
  /**
   * s += g^2; p -= rate * g / (sqrt(s) + epsilon). Rate 0.01 and epsilon 1e-10 by default.
   *
   * @example
   * using adagrad = gpu.nn.adagrad({ rate: 0.5 });
   * const w = gpu.matrix(1, 2, [1, 2]);
   * adagrad.step(w, gpu.ones(1, 2));
   * await w.read(); // [0.5, 1.5]
   */
  adagrad(options?: { readonly rate?: number; readonly epsilon?: number; readonly decay?: number }): Optimiser;
  /**
   * s = rho * s + (1-rho) * g^2; p -= rate * g / (sqrt(s) + epsilon). Rate 0.01, rho 0.99 and epsilon 1e-8 by default.
   *
   * @example
   * using rmsprop = gpu.nn.rmsprop({ rate: 0.05 });
   * const w = gpu.matrix(1, 2, [1, 2]);
   * rmsprop.step(w, gpu.ones(1, 2));
   * await w.read(); // [0.5, 1.5]
   */
  rmsprop(options?: { readonly rate?: number; readonly rho?: number; readonly epsilon?: number; readonly decay?: number }): Optimiser;
  /**
   * Adam, or AdamW with a decoupled decay. Rate 0.001, beta1 0.9, beta2 0.999 and epsilon 1e-8 by default.
   *
   * @example
   * using adam = gpu.nn.adam({ rate: 0.5 });
   * const w = gpu.matrix(1, 2, [1, 2]);
   * adam.step(w, gpu.ones(1, 2));
   * await w.read(); // [0.5, 1.5]
   */
  adam(options?: {
    readonly rate?: number; readonly beta1?: number; readonly beta2?: number; readonly epsilon?: number; readonly decay?: number; readonly decoupled?: boolean;
  }): Optimiser;
  /**
   * AdaDelta. Rate 1, rho 0.9 and epsilon 1e-6 by default.
   *
   * @example
   * using adadelta = gpu.nn.adadelta();
   * const w = gpu.matrix(1, 2, [1, 2]);
   * adadelta.step(w, gpu.ones(1, 2));
   * await w.read(); // [0.99684, 1.9968]
   */
  adadelta(options?: { readonly rate?: number; readonly rho?: number; readonly epsilon?: number; readonly decay?: number }): Optimiser;
}

/**
 * Changes parameters so that a loss falls. What it remembers of a parameter is in matrices of the parameter's size, which start at 0
 * with the first step and last until it is closed.
 */
export class Optimiser {
  private constructor();
  /**
   * The learning rate, which may change between steps: at least 0, `ErrInvalid` otherwise.
   *
   * @example
   * const adam = gpu.nn.adam();
   * adam.rate = 0.01; // from the next step on
   */
  rate: number;
  /**
   * Whether it was closed, or the Gpu was.
   *
   * @example
   * gpu.nn.sgd().closed; // false
   */
  readonly closed: boolean;
  /**
   * Queues one step of a parameter of float32, always the same matrix, given the gradient of the loss by it, of its size; a tensor counts as rows of its first dimension.
   *
   * Shapes: `m x n` and `m x n`.
   * @example
   * using sgd = gpu.nn.sgd({ rate: 0.5 });
   * const w = gpu.matrix(1, 2, [1, 2]);
   * sgd.step(w, gpu.ones(1, 2));
   * await w.read(); // [0.5, 1.5]
   */
  step(param: Matrix<"float32">, grad: NNInput): void;
  /**
   * Releases what it remembers of parameters; any further use is an error.
   *
   * @example
   * const sgd = gpu.nn.sgd();
   * sgd.close();
   * sgd.closed; // true
   */
  close(): void;
  /**
   * Closes it at the end of the block that declares it with `using`.
   *
   * @example
   * using sgd = gpu.nn.sgd();
   */
  [Symbol.dispose](): void;
}

/** Batch normalisation; see {@link NN.batchNorm}. Scale, bias and statistics are rows of an element for each feature. */
export class BatchNorm {
  private constructor();
  /**
   * x normalised with given statistics, such as running ones.
   *
   * Shapes: `n x features` and rows of `1 x features` -> `n x features`.
   * @example
   * const one = gpu.ones(1, 2), zero = gpu.zeros(1, 2);
   * await gpu.nn.batchNorm().infer(gpu.matrix(1, 2, [3, 5]), one, zero, zero, one).read(); // [3, 5]
   */
  infer<X extends NNInput>(x: X, scale: NNInput, bias: NNInput, mean: NNInput, variance: NNInput): NNResult<X>;
  /**
   * Queues the normalisation of x with its own statistics, into a matrix of its size if there is one. Running statistics become
   * (1 - factor) * running + factor * batch, with the unbiased variance; the factor is 0.1 by default.
   *
   * Shapes: `n x features` and rows of `1 x features` -> `n x features`.
   * @example
   * using batch = gpu.nn.batchNorm().train(gpu.matrix(2, 1, [1, 3]), gpu.ones(1, 1), gpu.zeros(1, 1));
   * await batch.mean.read(); // [2]
   */
  train(x: NNInput, scale: NNInput, bias: NNInput, options?: {
    readonly into?: Matrix<"float32">; readonly mean?: Matrix<"float32">; readonly variance?: Matrix<"float32">; readonly factor?: number;
  }): BatchStatistics;
  /**
   * The gradients by x, scale and bias, given d, the one by the normalised x, and the batch's statistics.
   *
   * Shapes: that of x, and rows of `1 x features`.
   * @example
   * const norm = gpu.nn.batchNorm(), x = gpu.matrix(2, 1, [1, 3]), one = gpu.ones(1, 1);
   * using batch = norm.train(x, one, gpu.zeros(1, 1));
   * await norm.backward(gpu.ones(2, 1), x, one, batch).dbias.read(); // [2]
   */
  backward<X extends NNInput>(d: NNInput, x: X, scale: NNInput, statistics: Pick<BatchStatistics, "mean" | "invStd">): { dx: NNResult<X>; dscale: Expr<"float32">; dbias: Expr<"float32"> };
}

/** A normalised batch and its statistics. Close it when done; a matrix that it was written into stays open. */
export class BatchStatistics {
  private constructor();
  /**
   * The normalised batch: a tensor of a tensor.
   *
   * @example
   * using batch = gpu.nn.batchNorm({ epsilon: 0 }).train(gpu.matrix(2, 1, [1, 3]), gpu.ones(1, 1), gpu.zeros(1, 1));
   * await batch.y.read(); // [-1, 1]
   */
  readonly y: Matrix<"float32"> | Tensor<"float32">;
  /**
   * The mean of each feature, a row.
   *
   * @example
   * using batch = gpu.nn.batchNorm({ epsilon: 0 }).train(gpu.matrix(2, 1, [1, 3]), gpu.ones(1, 1), gpu.zeros(1, 1));
   * await batch.mean.read(); // [2]
   */
  readonly mean: Matrix<"float32">;
  /**
   * 1 / sqrt(variance + epsilon) of each feature, a row.
   *
   * @example
   * using batch = gpu.nn.batchNorm({ epsilon: 0 }).train(gpu.matrix(2, 1, [1, 3]), gpu.ones(1, 1), gpu.zeros(1, 1));
   * await batch.invStd.read(); // [1]
   */
  readonly invStd: Matrix<"float32">;
  /**
   * Releases the batch and its statistics.
   *
   * @example
   * const batch = gpu.nn.batchNorm({ epsilon: 0 }).train(gpu.matrix(2, 1, [1, 3]), gpu.ones(1, 1), gpu.zeros(1, 1));
   * batch.close();
   */
  close(): void;
  /**
   * Closes them at the end of the block that declares them with `using`.
   *
   * @example
   * using batch = gpu.nn.batchNorm({ epsilon: 0 }).train(gpu.matrix(2, 1, [1, 3]), gpu.ones(1, 1), gpu.zeros(1, 1));
   */
  [Symbol.dispose](): void;
}

/** A matrix of few bits for each element, as for sending gradients. Each column has a range of its own. Close it when done. */
export class Quantised {
  private constructor();
  /**
   * The numbers of the levels, uint8; of 1 bit, eight rows in one, the lowest bit for the first row.
   *
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   * q.levels.shape; // [2, 1]
   */
  readonly levels: Matrix<"uint8">;
  /**
   * The lower end of the range of each column, or what the lower level of 1 bit stands for.
   *
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   * q.lower.shape; // [1, 1]
   */
  readonly lower: Matrix<"float32">;
  /**
   * The upper end of the range of each column, or what the upper level of 1 bit stands for.
   *
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   * q.upper.shape; // [1, 1]
   */
  readonly upper: Matrix<"float32">;
  /**
   * The number of rows of the matrix.
   *
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   * q.rows; // 2
   */
  readonly rows: number;
  /**
   * The number of columns of the matrix.
   *
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   * q.cols; // 1
   */
  readonly cols: number;
  /**
   * The number of bits of an element.
   *
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   * q.bits; // 8
   */
  readonly bits: number;
  /**
   * The matrix again: the middle of each element's level, or what it stands for.
   *
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 1 });
   * q.dequantise().shape; // [2, 1]
   */
  dequantise(): Expr<"float32">;
  /**
   * Releases the levels and the ranges.
   *
   * @example
   * const q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   * q.close();
   */
  close(): void;
  /**
   * Closes it at the end of the block that declares it with `using`.
   *
   * @example
   * using q = gpu.nn.quantise(gpu.matrix(2, 1, [0, 1]), { bits: 8 });
   */
  [Symbol.dispose](): void;
}
