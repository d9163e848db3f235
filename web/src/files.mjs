// SPDX-License-Identifier: Apache-2.0

import {part} from './download.mjs';
import {useFiles} from './expr.mjs';
import {takenAll} from './saving.mjs';
import {expected} from './source.mjs';

// Files of formats that only JavaScript reads and writes. What does so is loaded with the first one.

const formats = part(() => import('./formats.mjs'));

/** @param {import('./gpu.mjs').Gpu} gpu @param {import('./session.mjs').Session} session @param {unknown} source @param {unknown} options */
export async function loadFile(gpu, session, source, options) {
  session.check();
  expected('load', source);
  return (await formats()).load(gpu, session, source, options);
}

/** @param {import('./session.mjs').Session} session @param {unknown} entries @param {unknown} options @returns {Promise<Blob>} */
export async function saveFile(session, entries, options) {
  session.check();
  const {list, format, compress} = takenAll(session, entries, options);
  return (await formats()).save(list, format, compress);
}

useFiles(saveFile);
