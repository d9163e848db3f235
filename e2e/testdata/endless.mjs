// SPDX-License-Identifier: Apache-2.0

// A kernel that does not end: nothing stops it, and so whoever runs this ends the browser.

import {check, fails, same, webgpu} from './testing.mjs';

const ENDLESS = `fn f(i: u32) {
  var n = 0u;
  loop { a[i] = a[i] + 1.0; n = n + 1u; if (n == 0u && a[i] < 0.0) { break; } }
}`;

export const tests = {
  'a kernel that does not end': async () => {
    const stuck = await webgpu(), wrapped = new Float32Array([1, 2]), m = stuck.wrap(wrapped, 1, 2), cruncher = await stuck.cruncher(ENDLESS);
    const a = cruncher.array('a', 64, {dtype: 'float32'}), giveUp = new AbortController();
    let ended = false;
    const call = cruncher.compute(1, 'f', {global: 64, local: 64, signal: giveUp.signal}, a).finally(() => { ended = true; });
    setTimeout(() => giveUp.abort(), 500);
    await fails('ErrAborted', 'the call', () => call);
    check(ended && a.data.every((x) => x === 0), 'the array of an aborted call');
    const late = new AbortController(), read = m.add(1).read({signal: late.signal});
    setTimeout(() => late.abort(), 500);
    const given = await read.then((values) => [...values].join(), (error) => error.code);
    check(given === 'ErrAborted' || given === '2,3', `a call on the device's page meanwhile: ${given}`);
    const gpu = await webgpu();
    same(await gpu.matrix(1, 2, [1, 2]).add(1).read(), [2, 3], 'another device');
    stuck.close();
    same(wrapped, [1, 2], 'wrapped memory');
    await fails('ErrClosed', 'the closed device', () => m.add(1).read());
  },
};
