// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

/** What npm would publish, after `make web-build`. @type {Set<string>} */
const packed = new Set(JSON.parse(
  execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']}),
)[0].files.map(({path}) => path));

test('the package holds what it promises and what it loads', () => {
  const {exports, files: wanted} = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
  const promised = Object.values(exports).flatMap((target) => typeof target === 'string' ? [target] : Object.values(target)).map((path) => path.slice(2));
  const text = readFileSync(`${root}/dist/index.mjs`, 'utf8');
  const programs = [...text.matchAll(/new URL\("\.\/([\w-]+\.wasm)", import\.meta\.url\)/g)].map(([, name]) => `dist/${name}`);
  assert.deepEqual(programs.sort(), ['dist/sublet-cruncher.wasm', 'dist/sublet-simd.wasm', 'dist/sublet.wasm']);
  assert.match(text, /import\("\.\/formats\.mjs"\)/);
  assert.match(text, /new Worker\(new URL\("\.\/thread\.mjs", import\.meta\.url\)/); // what bundlers look for
  for (const path of [...promised, ...wanted, ...programs, 'dist/glue.js', 'dist/wasm_exec.js', 'dist/thread.mjs', 'dist/formats.mjs']) assert.ok(packed.has(path), `${path} is not in the package`);
  for (const path of packed) assert.ok(wanted.includes(path) || /^(package\.json|README\.md|LICENSE)$/.test(path), `${path} is in the package`);
});

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
  const tsc = createRequire(import.meta.url).resolve('typescript/package.json').replace(/package\.json$/, 'bin/tsc');
  const common = {strict: true, noEmit: true, types: [], target: 'es2022', lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable']};
  for (const [module, moduleResolution] of [['nodenext', 'nodenext'], ['esnext', 'bundler']]) {
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({compilerOptions: {...common, module, moduleResolution}, files: ['user.ts']}));
    const {status, stdout} = spawnSync(process.execPath, [tsc, '-p', folder], {cwd: folder, encoding: 'utf8'});
    assert.equal(status, 0, `${moduleResolution}: ${stdout}`);
  }
});
