// SPDX-License-Identifier: Apache-2.0

// Puts the npm package together in dist/: the sources as one module, because a page waits for each file that it has to
// ask for, what comes from elsewhere in the repository and from Go, and the pages. `make wasm` puts the program there.

import {execFileSync} from 'node:child_process';
import {copyFileSync, mkdirSync, readdirSync, rmSync} from 'node:fs';
import {basename, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';

const here = fileURLToPath(new URL('.', import.meta.url));
const dist = join(here, 'dist');
const goroot = execFileSync('go', ['env', 'GOROOT'], {encoding: 'utf8'}).trim();

const folder = (/** @type {string} */ name) => readdirSync(join(here, name)).map((file) => join(here, name, file));

mkdirSync(dist, {recursive: true});
for (const file of readdirSync(dist)) {
  if (file !== 'sublet.wasm') rmSync(join(dist, file), {recursive: true});
}
await build({
  entryPoints: [join(here, 'src', 'index.mjs')],
  outfile: join(dist, 'index.mjs'),
  bundle: true,
  format: 'esm',
  target: 'es2022',
  external: ['./glue.js', './wasm_exec.js'],
  banner: {js: '// SPDX-License-Identifier: Apache-2.0'},
  logLevel: 'warning',
});
for (const file of [
  ...folder('demo'),
  join(here, 'index.d.ts'),
  join(here, 'bench-peer.mjs'),
  join(here, '..', 'wasm', 'browser', 'glue.js'),
  join(goroot, 'lib', 'wasm', 'wasm_exec.js'),
]) {
  copyFileSync(file, join(dist, basename(file)));
}
