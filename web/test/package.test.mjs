// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {gzipSync} from 'node:zlib';
import {compile} from './compile.mjs';
import {build} from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));

/** What npm would publish, after `make web-build`. @type {Set<string>} */
const packed = new Set(JSON.parse(
  execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']}),
)[0].files.map(({path}) => path));

test('the package holds what it promises and what it loads, and nothing else', () => {
  const {exports, types} = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
  assert.deepEqual(Object.keys(exports['.']), ['types', 'node', 'default']); // types first, or TypeScript does not see them
  const promised = [types, ...Object.values(exports).flatMap((target) => typeof target === 'string' ? [target] : Object.values(target))].map((path) => path.slice(2));
  const text = readFileSync(`${root}/dist/index.mjs`, 'utf8');
  const programs = [...text.matchAll(/new URL\("\.\/([\w-]+\.wasm)",import\.meta\.url\)/g)].map(([, name]) => `dist/${name}`);
  assert.deepEqual(programs.sort(), ['dist/sublet-cruncher.wasm', 'dist/sublet-rest.wasm', 'dist/sublet-simd-rest.wasm', 'dist/sublet-simd.wasm', 'dist/sublet.wasm']);
  assert.match(text, /new Worker\(\s*new URL\("\.\/thread\.mjs",import\.meta\.url\)/); // what bundlers look for
  const parts = [...text.matchAll(/import\("\.\/(parts\/[^"]+)"\)/g)].map(([, name]) => `dist/${name}`);
  assert.ok(parts.includes('dist/parts/kernels.mjs'));
  for (const path of [...promised, ...programs, ...parts, 'dist/thread.mjs']) assert.ok(packed.has(path), `${path} is not in the package`);
  const known = /^(package\.json|README\.md|dist\/((index|wasm)\.d\.ts|types\/\w+\.d\.ts|(index|thread|parts\/.+)\.mjs(\.map)?|sublet[\w-]*\.wasm|LICENSE|NOTICE))$/;
  for (const path of packed) assert.match(path, known);
});

test('a page loads little before its first product', () => {
  const sizes = ['index.mjs', 'sublet.wasm'].map((name) => gzipSync(readFileSync(`${root}/dist/${name}`), {level: 9}).length);
  assert.ok(sizes[0] + sizes[1] <= 488_000, `${sizes.join(' + ')} bytes, compressed`);
});

test('consoles show classes by their names, and errors in Node no endless line', async () => {
  const {Gpu, Matrix, SubletError} = await import('../dist/index.mjs');
  assert.deepEqual([Gpu.name, Matrix.name, SubletError.name], ['Gpu', 'Matrix', 'SubletError']);
  for (const line of readFileSync(`${root}/dist/index.mjs`, 'utf8').split('\n')) assert.ok(line.length < 2000, `a line of ${line.length} characters`);
});

test('a script that is no module is told where the programs are, or says that it is not', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sublet-'));
  t.after(() => rmSync(folder, {recursive: true}));
  const {outputFiles: [{text}]} = await build({
    stdin: {contents: `import {init} from './dist/index.mjs'; globalThis.result = init({threads: 1}).catch((error) => error.code + ' ' + error.message);`, resolveDir: root},
    bundle: true, write: false, format: 'iife', logLevel: 'silent',
  });
  writeFileSync(join(folder, 'page.cjs'), `${text}\nresult.then(console.log);`);
  const said = execFileSync(process.execPath, [join(folder, 'page.cjs')], {encoding: 'utf8'});
  assert.match(said, /^ErrInvalid sublet: init: this script has no import\.meta\.url, .* sublet-simd\.wasm is; init\({wasm, simdWasm, cruncherWasm}\) tells it/);
});

test('the documents say what bundlers need as the fixtures do it', () => {
  const readme = readFileSync(`${root}/README.md`, 'utf8');
  for (const name of ['esbuild', 'esbuild-iife', 'rollup']) {
    const {scripts: {copy, build}} = JSON.parse(readFileSync(`${root}/../e2e/fixtures/${name}/package.json`, 'utf8')), [told = ''] = /--define.* --banner:js='.*'/.exec(build) ?? [];
    for (const text of [copy, told]) assert.ok(readme.includes(text), text);
  }
});

/** What is left of a page's names without WebGPU. */
const PAGE = `
interface AbortSignal { readonly aborted: boolean }
declare var AbortSignal: { timeout(milliseconds: number): AbortSignal };
interface Blob { readonly size: number }
declare var Blob: { new (parts: unknown[]): Blob };
interface File extends Blob { readonly name: string }
declare var File: { new (parts: unknown[], name: string): File };
interface ReadableStream<R = any> { cancel(): Promise<R | void> }
interface WritableStream<W = any> { abort(reason?: W): Promise<void> }
declare var WritableStream: { new <W>(): WritableStream<W> };
interface Response { readonly ok: boolean }
interface URL { readonly href: string }
declare namespace WebAssembly { interface Module { readonly module: never } }
declare function fetch(url: string): Promise<Response>;
interface ImageData { readonly width: number; readonly height: number; readonly data: Uint8ClampedArray }
interface OffscreenCanvas { readonly width: number; readonly height: number }
interface ImageBitmap { readonly width: number; readonly height: number }
interface VideoFrame { readonly codedWidth: number }
interface HTMLCanvasElement extends OffscreenCanvas {}
declare var OffscreenCanvas: { new (width: number, height: number): OffscreenCanvas };
declare var document: { createElement(name: "canvas"): HTMLCanvasElement };
interface HTMLImageElement extends OffscreenCanvas {}
interface HTMLVideoElement extends OffscreenCanvas {}
type BufferSource = ArrayBuffer | ArrayBufferView;
`;

test('the types of the package serve a program that imports it', (t) => {
  const types = [...packed].filter((path) => path.startsWith('dist/types/')), index = readFileSync(`${root}/dist/index.d.ts`, 'utf8');
  assert.deepEqual([...index.matchAll(/^export \* from "\.\/(types\/\w+)\.js";$/gm)].map(([, name]) => `dist/${name}.d.ts`).sort(), types.sort());

  const folder = mkdtempSync(join(tmpdir(), 'sublet-')), installed = join(folder, 'node_modules', 'sublet');
  t.after(() => rmSync(folder, {recursive: true}));
  for (const path of packed) {
    if (/\.(d\.ts|json)$/.test(path)) cpSync(join(root, path), join(installed, path));
  }
  cpSync(join(root, 'test', 'user.ts'), join(folder, 'user.ts'));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  for (const [module, moduleResolution] of [['nodenext', 'nodenext'], ['node16', 'node16'], ['esnext', 'bundler']]) compile(folder, ['user.ts'], {module, moduleResolution});
  cpSync(join(root, 'node_modules', '@webgpu', 'types'), join(folder, 'node_modules', '@webgpu', 'types'), {recursive: true});
  compile(folder, ['user.ts'], {types: ['@webgpu/types'], skipLibCheck: true}); // it declares anew what this compiler has
  // Neither the compiler's declarations of WebGPU nor those of @webgpu/types: only what else the package names of a page.
  writeFileSync(join(folder, 'page.d.ts'), PAGE);
  compile(folder, ['page.d.ts', 'user.ts'], {lib: ['es2024', 'esnext.disposable']});
});
