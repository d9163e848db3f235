// SPDX-License-Identifier: Apache-2.0

import {failure} from './errors.mjs';

// The classes of crunchers as the module exports them, for instanceof. What they do is in cruncher.mjs, which is loaded with the first cruncher.

/** Refuses to make objects that lack what is loaded. @param {Function} made @param {Function} Class */
function refuse(made, Class) {
  if (made === Class) throw failure('ErrInvalid', 'cruncher', 'crunchers and what is theirs come from Gpu.cruncher and their methods');
}

export class Cruncher { constructor() { refuse(new.target, Cruncher); } }
export class CruncherBatch { constructor() { refuse(new.target, CruncherBatch); } }
export class CruncherArray { constructor() { refuse(new.target, CruncherArray); } }
export class CruncherScalar { constructor() { refuse(new.target, CruncherScalar); } }
