// SPDX-License-Identifier: Apache-2.0

import {bytesOf, isBuffer} from './data.mjs';
import {part} from './download.mjs';
import {DTYPES} from './dtype.mjs';
import {SubletError, allocate, failure, guard, show, tagOf} from './errors.mjs';
import {inside, useFiles} from './expr.mjs';
import {sourceOf, streamFailure} from './flow.mjs';
import {Param} from './params.mjs';
import {abortable, checkSignal, flag, read} from './source.mjs';
import {Sparse} from './sparse.mjs';
import {insideTensor} from './tensor-expr.mjs';
import {dtypeOfData, shapeOf} from './tensor.mjs';

// Files of formats that only JavaScript reads and writes. What does so is loaded with the first one.

/** What formats.mjs needs of the package, as it is a module of its own. */
const TOOLS = Object.freeze({
  DTYPES, Param, Sparse, SubletError, abortable, allocate, bytesOf, checkSignal, dtypeOfData, failure, flag, guard, inside, insideTensor, isBuffer, read, shapeOf, show,
  sourceOf, streamFailure, tagOf,
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
  return (await formats()).save(TOOLS, session, entries, options);
}

useFiles(saveFile);
