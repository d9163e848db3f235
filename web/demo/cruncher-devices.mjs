// SPDX-License-Identifier: Apache-2.0

// What the page of the number cruncher can compute on.

import {init} from './index.mjs';

/**
 * @typedef {import('./index.mjs').Gpu} Gpu
 * @typedef {{label: string, gpu: Gpu, devices: any, said: string}} Choice said is what there is, in a sentence
 */

const CPU = 'the CPU';

/** The choices, with all that differ first. @param {Gpu} gpu @returns {Promise<Choice[]>} */
export async function choices(gpu) {
  if (gpu.info.driver === 'simd') {
    return [
      {label: CPU, gpu, devices: 'own', said: 'This browser offers no GPU, so the CPU computes, as WebAssembly. It is the only device: there is nothing to divide.'},
      {
        label: 'the CPU in two parts', gpu, devices: ['own', 'own'],
        said: 'Both parts are the same CPU, and no faster than one: this only shows how work is divided.',
      },
    ];
  }
  const cr = await gpu.cruncher('fn f(i: u32) { a[i] = 0u; }'), names = cr.devices.map(({name}) => name), [own] = names;
  cr.close();
  /** @type {Choice[]} */
  const list = [{label: `${own} alone`, gpu, devices: 'own', said: `${own} computes all of it.`}];
  const second = await processor();
  if (second) {
    const one = names.length === 1 ? `This browser offers one adapter, ${own}. ` : '';
    list.unshift({
      label: `${own} and ${CPU}`, gpu: second, devices: ['own', gpu.device],
      said: `${one}The other device is the CPU, which computes the same kernel as WebAssembly.`,
    });
  }
  if (names.length > 1) list.unshift({label: names.join(' and '), gpu, devices: 'all', said: `This browser offers ${names.length} adapters, ${names.join(' and ')}.`});
  return list;
}

/** The CPU as a device of its own, where the engine has WebAssembly for it. */
async function processor() {
  try {
    return await init({device: 'simd'});
  } catch {
    return undefined;
  }
}
