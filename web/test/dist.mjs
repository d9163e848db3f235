// SPDX-License-Identifier: Apache-2.0

// Lets tests of pages run in Node: finds the package for them.

import {register} from 'node:module';

const hooks = `export const resolve = (name, context, next) => next(name.startsWith('/dist/') ? ${JSON.stringify(new URL('..', import.meta.url).href)} + name.slice(1) : name, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
