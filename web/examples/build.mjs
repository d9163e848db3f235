// SPDX-License-Identifier: Apache-2.0

// Strips the types of the examples for the tests, which run them as they stand: node build.mjs FOLDER [NAME...]. The output keeps the
// sources' names, so that the address of a worker stays right, and finds the package where test pages have it.

import {readdirSync} from 'node:fs';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = fileURLToPath(new URL('.', import.meta.url));
const [outdir = '', ...chosen] = process.argv.slice(2);
const names = chosen.length > 0 ? chosen : readdirSync(here).filter((file) => file.endsWith('.ts')).map((file) => file.slice(0, -3));

await build({
  entryPoints: names.map((name) => `${here}${name}.ts`),
  outdir,
  bundle: true,
  format: 'esm',
  target: 'es2022', // engines without `using`
  outExtension: {'.js': '.ts'},
  logLevel: 'warning',
  plugins: [{
    name: 'sublet',
    setup: ({onResolve}) => onResolve({filter: /^sublet$/}, () => ({path: '/dist/index.mjs', external: true})),
  }],
});
