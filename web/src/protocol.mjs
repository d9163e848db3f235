// SPDX-License-Identifier: Apache-2.0

// What JavaScript and Go agree on. Keep in step with wasm/internal/page/protocol.go and wasm/internal/bridge/protocol.go; a test compares them.

import {ElementWise, REAL, WHOLE} from './codes.mjs';

export {Reduction, Shaping} from './codes.mjs';

/** Commands of a message. */
export const Command = Object.freeze({
  New: 1, Data: 2, From: 3, Alias: 4, Eval: 5, Assign: 6, Read: 7, Sync: 8,
  Touch: 9, Close: 10, Func: 11, Forget: 12, Flush: 13, Wait: 14, Buffer: 15, End: 16,
  SetValue: 17, SetFrom: 18, Resize: 19, SetShape: 20, Location: 21,
  Sparse: 22, Columns: 23, Values: 24, Append: 25, SparseEval: 26, SparseRead: 27, SparseTouch: 28,
  Load: 29, Save: 30, Pass: 31, Take: 32, ArrayRead: 33, ArrayMatrix: 34, Reopen: 35,
  Cancel: 37, Explain: 38, Layer: 39, Record: 40, Replay: 41, Tuning: 42, Time: 43, Tuned: 44,

  Open: 64, CloseOpened: 65, Compute: 66, Fetch: 67, Evict: 68, Stats: 69, Report: 70, Traffic: 71,
  Array: 72, Get: 73, Set: 74, Dirty: 75, CloseArray: 76,
  Batch: 77, BatchCompute: 78, BatchEnd: 79, Reached: 80, Remaining: 81,
  Task: 82, CloseTask: 83, TaskCompute: 84, Called: 85,
  Pool: 86, ClosePool: 87, AddDevice: 88, Enqueue: 89, Finish: 90, PoolStats: 91,
  Pipeline: 92, Push: 93, DevicePipeline: 94, Feed: 95, Mode: 96, StopTransmission: 97, ClosePipeline: 98,

  Edges: 112, Train: 113, Stop: 114, Trace: 115, DOT: 116, GraphStats: 117,
});

/** What a source of memory is for; see buffer.Flags. */
export const Source = Object.freeze({DontOwnBuffer: 1, SetValueOnDevice: 2, GpuBuffer: 0x100});

/** Bits of a form above the element type. */
export const Form = Object.freeze({Columns: 0x100, Padded: 0x200, RowMajorInput: 0x400});

/** What is said of a sparse matrix: its format in bits 8 to 15, and whether the memory is the page's. */
export const SPARSE_WRAPPED = 0x10000;

/** What is asked of a load or a save. */
export const FileFlag = Object.freeze({Strict: 1, LastWins: 2, Scan: 4});

/** Instructions of an expression. */
export const Op = Object.freeze(/* @__PURE__ */ Object.assign({ // of which the package needs nothing but numbers
  Leaf: 1, Scalar: 2, Fill: 3, Transpose: 4, Slice: 5, Reshape: 6, Cast: 7, MatMul: 8, Call: 9, Reduce: 10,
  Softmax: 11, LogSoftmax: 12, Hardmax: 13, Sort: 14, ArgSort: 15, TopK: 16, ArgTopK: 17, CumSum: 18, CumProd: 19, Shape: 20, With: 21, Tensor: 22, Layer: 23,
}, ElementWise));

/** What a reduction is along. */
export const Axis = Object.freeze({All: 0, Rows: 1, Cols: 2});

/** The most instructions of an expression. */
export const MAX_VALUES = 1 << 16;

/** The most bytes that one command can speak of, in whole words. */
export const MAX_BYTES = 0xfffffffc;

/** The operations of real numbers, which integers do not have. @type {ReadonlySet<number>} */
export const REAL_ONLY = new Set([...REAL, Op.Softmax, Op.LogSoftmax]);

/** The operations of integers, which real numbers do not have. @type {ReadonlySet<number>} */
export const WHOLE_ONLY = new Set(WHOLE);
