// SPDX-License-Identifier: Apache-2.0

import {bytesOf} from './data.mjs';
import {part} from './download.mjs';
import {DTYPES} from './dtype.mjs';
import {SubletError, allocate, failure, guard, show, tagOf} from './errors.mjs';
import {useFiles} from './expr.mjs';
import {sourceOf, streamFailure} from './flow.mjs';
import {FORMATS, takenAll} from './saving.mjs';
import {abortable, checkSignal, read} from './source.mjs';

// Files of formats that only JavaScript reads and writes. What does so is loaded with the first one.

/** What formats.mjs needs of the package, as it is a module of its own. */
const TOOLS = Object.freeze({
  DTYPES, FORMATS, SubletError, abortable, allocate, bytesOf, checkSignal, failure, read, show, sourceOf, streamFailure, tagOf,
});

/** @typedef {typeof TOOLS} Tools */

const formats = () => part(() => import('./formats.mjs'));

/** @param {import('./gpu.mjs').Gpu} gpu @param {import('./session.mjs').Session} session @param {unknown} source @param {unknown} options */
export async function loadFile(gpu, session, source, options) {
  session.check();
  guard('load', () => { // nobody else waits for the source while formats.mjs is loaded
    if (source instanceof Promise) Promise.prototype.then.call(source, undefined, () => {});
  });
  return (await formats()).load(TOOLS, gpu, session, source, options);
}

/** @param {import('./session.mjs').Session} session @param {unknown} entries @param {unknown} options @returns {Promise<Blob>} */
export async function saveFile(session, entries, options) {
  session.check();
  const {list, format, compress} = takenAll(session, entries, options);
  return (await formats()).save(TOOLS, list, format, compress);
}

useFiles(saveFile);
