// SPDX-License-Identifier: Apache-2.0

// What the tests of gpu.cruncher have in common.

import {check, onBoth} from './testing.mjs';

/** Devices of the page's own, of which a test may have as many as it likes. */
export const TWO = ['own', 'high-performance'], THREE = [...TWO, 'low-power'];

/** A test with a Gpu of each kind and a cruncher for each of some numbers of devices. */
export const onDevices = (wgsl, run, options = {}) => onBoth(async (gpu) => {
  for (const devices of [['own'], TWO, THREE]) {
    const cr = await gpu.cruncher(wgsl, {devices, ...options});
    check(cr.devices.length === devices.length, `${cr.devices.length} devices, want ${devices.length}`);
    await run(cr, devices.length, gpu);
    cr.close();
  }
});

/** A value in a message, whatever getters it has. */
export const told = (value) => {
  try {
    return JSON.stringify(value);
  } catch {
    return 'something hostile';
  }
};

export const ADD3 = 'fn add3stream(i: u32) { arr[i] = arr[i] + 3u; }';

/** What moved in a call. */
export async function moved(cr, run) {
  const before = cr.traffic();
  await run();
  const after = cr.traffic();
  return Object.fromEntries(Object.keys(after).map((name) => [name, after[name] - before[name]]));
}
