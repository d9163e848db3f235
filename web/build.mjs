// SPDX-License-Identifier: Apache-2.0

// Puts the npm package together in dist/: the sources as one module, because a page waits for each file that it has to
// ask for, what comes from elsewhere in the repository and from Go, and the pages. `make wasm` puts the programs there.

import {execFileSync} from 'node:child_process';
import {copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {basename, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {layout} from './layout.mjs';
import {bundle} from './parts.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
const dist = join(here, 'dist');
const goroot = execFileSync('go', ['env', 'GOROOT'], {encoding: 'utf8'}).trim();

const folder = (/** @type {string} */ name) => readdirSync(join(here, name)).map((file) => join(here, name, file));

mkdirSync(dist, {recursive: true});
for (const file of readdirSync(dist)) {
  if (!file.endsWith('.wasm')) rmSync(join(dist, file), {recursive: true});
}
/** @satisfies {import('esbuild').BuildOptions} */
const options = {
  outdir: dist,
  bundle: true,
  format: /** @type {const} */ ('esm'),
  target: 'es2022',
  minify: true,
  keepNames: true, // consoles and debuggers show classes by their names
  lineLimit: 400, // Node shows the whole line that throws
  sourcemap: true,
  banner: {js: '// SPDX-License-Identifier: Apache-2.0'},
  outExtension: {'.js': '.mjs'},
  logLevel: /** @type {const} */ ('warning'),
};
const scripts = {'./glue.js': join(here, '..', 'wasm', 'browser', 'glue.js'), './wasm_exec.js': join(goroot, 'lib', 'wasm', 'wasm_exec.js')};
await bundle(join(here, 'src', 'index.mjs'), options, scripts);
await bundle(join(here, 'src', 'thread.mjs'), options);
// Bundlers find URLs by regular expressions, some of them on one line only. Newlines move behind them, so that the source map stays right.
const index = join(dist, 'index.mjs');
writeFileSync(index, readFileSync(index, 'utf8').replace(/new\s+URL\(\s*"[^"]+"\s*,\s*import\s*\.\s*meta\s*\.\s*url\s*\)/g, (url) => {
  const lines = url.split('\n');
  return lines.join('') + '\n'.repeat(lines.length - 1);
}));
for (const file of folder('demo').filter((file) => file.endsWith('.html'))) {
  writeFileSync(join(dist, basename(file)), layout(basename(file), readFileSync(file, 'utf8')));
}
for (const file of [
  ...folder('demo').filter((file) => !file.endsWith('.html')),
  join(here, 'index.d.ts'),
  join(here, 'wasm.d.ts'),
  join(here, 'bench-peer.mjs'),
  join(here, '..', 'LICENSE'),
]) {
  copyFileSync(file, join(dist, basename(file)));
}
await bundle(join(here, 'demo', 'pipelines.mjs'), options, {...scripts, './crew.mjs': join(here, 'src', 'crew.mjs')}); // which speaks to a program of its own
cpSync(join(here, 'types'), join(dist, 'types'), {recursive: true});

// What is compiled into the program, or stands beside it, comes with its own licence.
const float16 = execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', 'github.com/x448/float16'], {encoding: 'utf8', cwd: here}).trim();
const parts = [
  readFileSync(join(here, '..', 'NOTICE'), 'utf8'),
  `wasm_exec.js and the parts of Go's runtime and libraries in the .wasm files:\n\n${readFileSync(join(goroot, 'LICENSE'), 'utf8')}`,
  `github.com/x448/float16 in the .wasm files:\n\n${readFileSync(join(float16, 'LICENSE'), 'utf8')}`,
];
writeFileSync(join(dist, 'NOTICE'), parts.join('\n---\n\n'));
