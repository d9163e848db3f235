// SPDX-License-Identifier: Apache-2.0

// Puts the npm package together in dist/: the sources as one module, because a page waits for each file that it has to
// ask for, what comes from elsewhere in the repository and from Go, and the pages. `make wasm` puts the programs there.

import {execFileSync} from 'node:child_process';
import {copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {basename, join} from 'node:path';
import {fileURLToPath} from 'node:url';
import {build} from 'esbuild';
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
const codes = {...await import('./src/codes.mjs'), ...await import('./src/protocol.mjs')};
/** Writes the numbers of commands and operations in place of their names, which would take 1.4 KB of each first visit, compressed. @type {import('esbuild').Plugin} */
const numbers = {
  name: 'numbers',
  setup: ({onLoad}) => onLoad({filter: /[\\/]src[\\/][\w-]+\.mjs$/, namespace: 'file'}, ({path}) => ({
    loader: 'js',
    contents: readFileSync(path, 'utf8').replace(/\b(Command|ElementWise|Op|Reduction|Shaping)\.([A-Z]\w*)\b/g, (text, list, name) => {
      const number = Reflect.get(Reflect.get(codes, list), name);
      if (typeof number !== 'number') throw new Error(`${path}: ${text}`);
      return String(number);
    }).replace(/(?<=^export const \w+ = )(?=Object\.freeze\()/gm, '/* @__PURE__ */ '),
  })),
};
/** @satisfies {import('esbuild').BuildOptions} */
const options = {
  outdir: dist,
  bundle: true,
  format: /** @type {const} */ ('esm'),
  target: 'es2022',
  minify: true,
  lineLimit: 600, // Node shows the whole line that throws
  sourcemap: true,
  plugins: [numbers],
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
  const lines = url.split(/\\?\n/); // a line that ends within a string ends with a backslash
  return lines.join('') + '\n'.repeat(lines.length - 1);
}));
for (const file of folder('demo').filter((file) => file.endsWith('.html'))) {
  writeFileSync(join(dist, basename(file)), layout(basename(file), readFileSync(file, 'utf8'), (name) => readFileSync(join(here, 'demo', name), 'utf8')));
}
const bundled = ['pipelines.mjs', 'race-tfjs.mjs']; // below
for (const file of [
  ...folder('demo').filter((file) => !file.endsWith('.html') && !bundled.includes(basename(file))),
  join(here, 'index.d.ts'),
  join(here, 'wasm.d.ts'),
  join(here, '..', 'LICENSE'),
]) {
  copyFileSync(file, join(dist, basename(file)));
}
for (const file of ['digits.params', 'digits.json'].map((name) => join(here, '..', '.cache', name))) {
  if (existsSync(file)) copyFileSync(file, join(dist, basename(file)));
  else console.warn(`no ${basename(file)}: make digits trains the network of digits.html`);
}
await bundle(join(here, 'demo', 'pipelines.mjs'), options, {...scripts, './crew.mjs': join(here, 'src', 'crew.mjs'), './kernels.mjs': join(here, 'src', 'kernels.mjs')}); // which speaks to a program of its own
// One file, as a page's bundler makes of its own and the package's, and as the benchmark has the other libraries.
await bundle(join(here, 'bench-peer.mjs'), options, scripts);
await tensorflow();
cpSync(join(here, 'types'), join(dist, 'types'), {recursive: true});

/** Bundles TensorFlow.js for the race, with its licences: the package has nothing of it. */
async function tensorflow() {
  const to = join(dist, 'tfjs'), modules = join(here, 'node_modules');
  const {metafile} = await build({
    entryPoints: [join(here, 'demo', 'race-tfjs.mjs')],
    outdir: to,
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    platform: 'browser',
    minifySyntax: true,
    minifyWhitespace: true, // names stay: the threads of the WebAssembly backend are made of the text of functions
    external: ['node-fetch', 'fs', 'path', 'perf_hooks', 'os', 'worker_threads', 'util', 'crypto', 'string_decoder'],
    banner: {js: '// SPDX-License-Identifier: Apache-2.0'},
    outExtension: {'.js': '.mjs'},
    metafile: true,
    absWorkingDir: here,
    logLevel: 'error',
  });
  const wasm = join(modules, '@tensorflow', 'tfjs-backend-wasm', 'dist');
  for (const file of readdirSync(wasm).filter((file) => file.endsWith('.wasm'))) copyFileSync(join(wasm, file), join(to, file));
  const names = Object.keys(metafile.inputs).flatMap((file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []);
  const notices = [...new Set(names)].sort().map((name) => {
    const {version, license} = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
    const file = readdirSync(join(modules, name)).find((file) => /^licen[cs]e/i.test(file)), told = join(modules, name, 'README.md');
    const text = file ? readFileSync(join(modules, name, file), 'utf8')
      : license === 'Apache-2.0' ? 'The text is that of ../LICENSE.\n'
      : /\nlicense \(MIT\)[^]*/i.exec(existsSync(told) ? readFileSync(told, 'utf8') : '')?.[0].trimStart();
    if (!text) throw new Error(`no licence of ${name}`);
    return `${name} ${version}, ${license}\n\n${text}`;
  });
  writeFileSync(join(to, 'NOTICE'), `Parts of the files in this folder, which the page race.html uses:\n\n${notices.join('\n---\n\n')}`);
}

// What is compiled into the program, or stands beside it, comes with its own licence.
const float16 = execFileSync('go', ['list', '-m', '-f', '{{.Dir}}', 'github.com/x448/float16'], {encoding: 'utf8', cwd: here}).trim();
const parts = [
  readFileSync(join(here, '..', 'NOTICE'), 'utf8'),
  `wasm_exec.js and the parts of Go's runtime and libraries in the .wasm files:\n\n${readFileSync(join(goroot, 'LICENSE'), 'utf8')}`,
  `github.com/x448/float16 in the .wasm files:\n\n${readFileSync(join(float16, 'LICENSE'), 'utf8')}`,
];
writeFileSync(join(dist, 'NOTICE'), parts.join('\n---\n\n'));
