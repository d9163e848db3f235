// SPDX-License-Identifier: Apache-2.0

// Compiled, never run: the declarations hold together, and what implements them does so.

import type * as api from '../index.js';
import * as arrays from '../src/crunch-array.mjs';
import * as crunchers from '../src/cruncher.mjs';
import * as made from '../src/index.mjs';

/** What the package declares and what it does agree, method by method. */
const conforms: {
  init: (...args: Parameters<typeof api.init>) => Promise<unknown>;
} = made;
type Methods<T> = { [K in keyof T as T[K] extends (...args: never[]) => unknown ? K : never]: (...args: never[]) => unknown };
declare const gpuMade: made.Gpu, memoryMade: made.MatrixMemory, exprMade: made.Expr, viewMade: made.View, matrixMade: made.Matrix, fnMade: made.Fn, sparseMade: made.Sparse;
declare const paramsMade: made.Params, paramMade: made.Param;
const gpuDeclared: Methods<api.Gpu> & Pick<api.Gpu, 'device'> = gpuMade;
const exprDeclared: Methods<api.Expr> & Pick<api.Expr, 'rows' | 'cols' | 'shape' | 'size'> = exprMade;
const viewDeclared: Methods<api.View> = viewMade;
const matrixDeclared: Methods<api.Matrix> &
  Pick<api.Matrix, 'mode' | 'external' | 'stride' | 'offset' | 'capacity' | 'closed' | 'location' | 'buffer'> = matrixMade;
const memoryDeclared: Methods<api.MatrixMemory> = memoryMade;
const sparseDeclared: Methods<api.Sparse> & Pick<api.Sparse, 'rows' | 'cols' | 'shape' | 'nnz' | 'external' | 'closed'> = sparseMade;
const paramsDeclared: Methods<api.Params> & Pick<api.Params, 'size' | 'names'> = paramsMade;
const paramDeclared: Methods<api.Param> & Pick<api.Param, 'name' | 'dtype' | 'shape' | 'nbytes' | 'closed'> = paramMade;
const fnDeclared: Methods<api.Fn> & Pick<api.Fn, 'name' | 'arity'> = fnMade;
declare const tensorMade: made.Tensor, nnMade: made.NN, optimiserMade: made.Optimiser, normMade: made.BatchNorm, statisticsMade: made.BatchStatistics, quantisedMade: made.Quantised;
const tensorDeclared: Methods<api.Tensor> & Pick<api.Tensor, 'shape' | 'ndim' | 'size'> = tensorMade;
const nnDeclared: Methods<api.NN> = nnMade, optimiserDeclared: Methods<api.Optimiser> & Pick<api.Optimiser, 'closed'> = optimiserMade;
const normDeclared: Methods<api.BatchNorm> = normMade, statisticsDeclared: Methods<api.BatchStatistics> = statisticsMade;
const quantisedDeclared: Methods<api.Quantised> & Pick<api.Quantised, 'rows' | 'cols' | 'bits'> = quantisedMade;
void [tensorDeclared, nnDeclared, optimiserDeclared, normDeclared, statisticsDeclared, quantisedDeclared];
declare const cruncherMade: crunchers.Cruncher, batchMade: crunchers.CruncherBatch, arrayMade: arrays.CruncherArray, scalarMade: arrays.CruncherScalar;
const cruncherDeclared: Methods<api.Cruncher> & Pick<api.Cruncher, 'kernels' | 'devices' | 'closed' | 'last'> = cruncherMade;
const batchDeclared: Methods<api.CruncherBatch> & Pick<api.CruncherBatch, 'reached' | 'remaining'> = batchMade;
const arrayDeclared: Methods<api.CruncherArray> & Omit<{ [K in keyof api.CruncherArray as api.CruncherArray[K] extends (...args: never[]) => unknown ? never : K]: api.CruncherArray[K] }, 'dtype'> = arrayMade;
const scalarDeclared: Pick<api.CruncherScalar, 'name' | 'value'> = scalarMade;
void [cruncherDeclared, batchDeclared, arrayDeclared, scalarDeclared];
void [conforms, memoryDeclared, gpuDeclared, exprDeclared, viewDeclared, matrixDeclared, sparseDeclared, paramsDeclared, paramDeclared, fnDeclared];
