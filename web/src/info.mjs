// SPDX-License-Identifier: Apache-2.0

import {printLine} from './inspect.mjs';

/** Names of the counters, in the order in which Go writes them. */
export const COUNTERS = [
  'bytesUp', 'bytesDown', 'submissions', 'dispatches', 'compilations', 'prepared', 'cacheHits', 'liveBytes',
  'peakBytes', 'pooledBytes', 'buffers', 'kernels',
];

/** What Gpu.lost is, by device: who waits for a promise cannot be taken back, and a device may outlive many a Gpu. @type {WeakMap<GPUDevice, Promise<{reason: string, message: string}>>} */
const losses = new WeakMap();

/** @param {GPUDevice} device */
export function lossOf(device) {
  const known = losses.get(device);
  if (known) return known;
  const loss = device.lost.then(({reason, message}) => ({reason: reason ?? 'unknown', message}));
  losses.set(device, loss);
  return loss;
}

/** What a device is. */
export class Info {
  toString() {
    const {driver, name, vendor, kind, threads} = /** @type {any} */ (this);
    const what = [name, vendor, kind].filter((text, i, all) => text && text !== driver && all.indexOf(text) === i).join(', ');
    return printLine(driver === 'browser' ? 'webgpu' : `${driver}`, () => `(${what}${threads > 1 ? `, ${threads} threads` : ''})`);
  }
}
