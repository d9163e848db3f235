// SPDX-License-Identifier: Apache-2.0

import {failure} from './errors.mjs';
import {printLine} from './inspect.mjs';

/** Names of the counters, in the order in which Go writes them. */
export const COUNTERS = [
  'bytesUp', 'bytesDown', 'submissions', 'dispatches', 'compilations', 'prepared', 'cacheHits', 'liveBytes',
  'peakBytes', 'pooledBytes', 'buffers', 'kernels',
];

/** What Gpu.lost is, by device: who waits for a promise cannot be taken back, and a device may outlive many a Gpu. @type {WeakMap<GPUDevice, Promise<{reason: string, message: string}>>} */
const losses = new WeakMap();

/** Devices that are lost. @type {WeakSet<GPUDevice>} */
const lost = new WeakSet();

/** @param {GPUDevice} device */
export function lossOf(device) {
  const known = losses.get(device);
  if (known) return known;
  const loss = device.lost.then(({reason, message}) => {
    lost.add(device);
    return {reason: reason ?? 'unknown', message};
  });
  losses.set(device, loss);
  return loss;
}

/** Refuses a device of the user's that is lost already. @param {string} where @param {GPUDevice} device */
export async function refuseLost(where, device) {
  try {
    lossOf(device);
  } catch {
    return; // it is no device, as Go says
  }
  await null; // by then who waits for a promise that was fulfilled before has been told
  if (lost.has(device)) throw failure('ErrDeviceLost', where, 'the device that was given is lost');
}

/** What a device is. */
export class Info {
  toString() {
    const {driver, name, vendor, kind, threads} = /** @type {any} */ (this);
    const what = [name, vendor, kind].filter((text, i, all) => text && text !== driver && all.indexOf(text) === i).join(', ');
    return printLine(driver === 'browser' ? 'webgpu' : `${driver}`, () => `(${what}${threads > 1 ? `, ${threads} threads` : ''})`);
  }
}
