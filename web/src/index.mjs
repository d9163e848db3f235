// SPDX-License-Identifier: Apache-2.0

import {MatrixMemory} from './contract.mjs';
import {Cruncher, CruncherArray, CruncherBatch, CruncherScalar} from './crunchers.mjs';
import {MOST_THREADS} from './crew-block.mjs';
import {noProgram, part} from './download.mjs';
import {SubletError, allocate, failure, show, tagOf} from './errors.mjs';
import {Expr, View} from './expr.mjs';
import {Fn} from './func.mjs';
import {Gpu} from './gpu.mjs';
import {refuseLost} from './info.mjs';
import {Matrix} from './matrix.mjs';
import {NN} from './nn.mjs';
import {Param, Params} from './params.mjs';
import {Recording} from './recording.mjs';
import {Session} from './session.mjs';
import {abortable, checkSignal, read} from './source.mjs';
import {Sparse} from './sparse.mjs';
import {Tensor} from './tensor-expr.mjs';
import {BatchNorm, BatchStatistics, Optimiser, Quantised} from './training.mjs';
import {Tuning, recall} from './tuning.mjs';

export {
  BatchNorm, BatchStatistics, Cruncher, CruncherArray, CruncherBatch, CruncherScalar, Expr, Fn, Gpu, Matrix, MatrixMemory, NN, Optimiser, Param, Params, Quantised, Recording,
  Sparse, SubletError, Tensor, Tuning, View,
};

// Minifiers shorten the names of classes, by which consoles and debuggers show objects.
for (const [name, Class] of Object.entries({BatchNorm, BatchStatistics, Cruncher, CruncherArray, CruncherBatch, CruncherScalar, Fn, MatrixMemory, NN, Optimiser, Param, Params, Quantised, SubletError, Tuning})) {
  Object.defineProperty(Class, 'name', {value: name, configurable: true});
}

const OPTIONS = Object.freeze(['device', 'power', 'debug', 'threads', 'tuning', 'wasm', 'simdWasm', 'cruncherWasm', 'signal']);
/** The level of debugging that is not Go's. */
const LEAKS = 'leaks';
const DEVICES = Object.freeze(['auto', 'webgpu', 'simd']);

/** @param {unknown} options */
async function start(options) {
  const {device = 'auto', power, threads, tuning, debug = Reflect.get(globalThis, 'SUBLET_DEBUG') ?? '', signal, ...programs} = read('init', options, OPTIONS);
  if (!DEVICES.includes(device) && tagOf(device) !== 'GPUDevice') {
    throw failure('ErrInvalid', 'init', `device ${show(device)}; it is "auto", "webgpu", "simd" or a GPUDevice`);
  }
  if (![undefined, 'high-performance', 'low-power'].includes(power)) {
    throw failure('ErrInvalid', 'init', `power ${show(power)}; it is "high-performance" or "low-power"`);
  }
  if (!['', 'calls', 'kernels', 'wgsl', LEAKS].includes(debug)) {
    throw failure('ErrInvalid', 'init', `debug ${show(debug)}; it is "calls", "kernels", "wgsl" or "leaks"`);
  }
  if (threads !== undefined && !(Number.isInteger(threads) && threads >= 1 && threads <= MOST_THREADS)) {
    throw failure('ErrInvalid', 'init', `threads ${show(threads)}; there may be 1 to ${MOST_THREADS}`);
  }
  for (const [name, source] of Object.entries(programs)) {
    if (source !== undefined && (source === null || !['object', 'string'].includes(typeof source))) throw failure('ErrInvalid', 'init', noProgram(name, source));
  }
  if (![undefined, true, false].includes(tuning)) throw failure('ErrInvalid', 'init', `tuning ${show(tuning)}; it is true or false`);
  const watched = checkSignal('init', signal), opening = open(device, {power, threads, debug, tuning}, programs);
  return abortable('init', watched, opening, (gpu) => gpu.close());
}

/** What a program or a pair with its rest is loaded from, when it is known. @param {unknown} source */
async function settled(source) {
  const known = await source;
  return Array.isArray(known) ? Promise.all(known) : known;
}

const leaks = part(() => import('./leaks.mjs'));

/** @param {string | GPUDevice} device @param {{power?: string, debug: string, threads?: number, tuning?: boolean}} options @param {Record<string, any>} programs */
async function open(device, {power, threads, debug, tuning}, programs) {
  if (typeof device !== 'string') await refuseLost('init', device);
  const sources = {wasm: await settled(programs.wasm), simdWasm: await settled(programs.simdWasm)}, cruncher = await programs.cruncherWasm;
  const opened = await Session.open(sources, device, {power, debug: debug === LEAKS ? '' : debug, threads, tuning});
  if (debug === LEAKS) {
    const {Leaks} = await leaks().catch((error) => {
      opened.connection.close();
      throw error;
    });
    opened.connection.leaks = new Leaks(import.meta.url);
  }
  if (tuning !== false) recall(opened.connection).catch(() => {}); // as usual
  return new Gpu(opened.connection, opened.info, opened.device, cruncher);
}

/** @param {unknown} [options] */
export async function init(options = {}) {
  try {
    return await start(options);
  } catch (error) {
    return allocate('init', () => { throw error; });
  }
}
