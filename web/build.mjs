// SPDX-License-Identifier: Apache-2.0

// Puts the npm package together in dist/: the sources as one module, because a page waits for each file that it has to
// ask for, what comes from elsewhere in the repository and from Go, and the pages. `make wasm` puts the programs there.

import {execFileSync} from 'node:child_process';
import {copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {basename, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';
import {layout} from './layout.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const dist = join(here, 'dist');
const goroot = execFileSync('go', ['env', 'GOROOT'], {encoding: 'utf8'}).trim();

const folder = (/** @type {string} */ name) => readdirSync(join(here, name)).map((file) => join(here, name, file));

mkdirSync(dist, {recursive: true});
for (const file of readdirSync(dist)) {
  if (!file.endsWith('.wasm')) rmSync(join(dist, file), {recursive: true});
}
const bundle = (/** @type {string[]} */ ...entryPoints) => build({
  entryPoints: entryPoints.map((file) => join(here, file)),
  outdir: dist,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  external: ['./glue.js', './wasm_exec.js', './formats.mjs'],
  banner: {js: '// SPDX-License-Identifier: Apache-2.0'},
  outExtension: {'.js': '.mjs'},
  logLevel: 'warning',
});
await bundle('src/index.mjs', 'src/thread.mjs', 'src/formats.mjs');
for (const file of folder('demo').filter((file) => file.endsWith('.html'))) {
  writeFileSync(join(dist, basename(file)), layout(basename(file), readFileSync(file, 'utf8')));
}
for (const file of [
  ...folder('demo').filter((file) => !file.endsWith('.html')),
  join(here, 'index.d.ts'),
  join(here, 'bench-peer.mjs'),
  join(here, '..', 'wasm', 'browser', 'glue.js'),
  join(goroot, 'lib', 'wasm', 'wasm_exec.js'),
  join(here, '..', 'LICENSE'),
]) {
  copyFileSync(file, join(dist, basename(file)));
}
await bundle('demo/pipelines.mjs'); // which speaks to a program of its own
cpSync(join(here, 'types'), join(dist, 'types'), {recursive: true});

// What is compiled into the program, or stands beside it, comes with its own licence.
const float16 = execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', 'github.com/x448/float16'], {encoding: 'utf8', cwd: here}).trim();
const parts = [
  readFileSync(join(here, '..', 'NOTICE'), 'utf8'),
  `wasm_exec.js and the parts of Go's runtime and libraries in the .wasm files:\n\n${readFileSync(join(goroot, 'LICENSE'), 'utf8')}`,
  `github.com/x448/float16 in the .wasm files:\n\n${readFileSync(join(float16, 'LICENSE'), 'utf8')}`,
];
writeFileSync(join(dist, 'NOTICE'), parts.join('\n---\n\n'));
