// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

// The package as npm would publish it, after `make web-build`.
test('the package holds what it promises and what it loads', () => {
  const [{files}] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']}));
  const packed = new Set(files.map(({path}) => path));
  const {exports, files: wanted} = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'));
  const promised = Object.values(exports).flatMap((target) => typeof target === 'string' ? [target] : Object.values(target)).map((path) => path.slice(2));
  const text = readFileSync(`${root}/dist/index.mjs`, 'utf8');
  const programs = [...text.matchAll(/new URL\("\.\/([\w-]+\.wasm)", import\.meta\.url\)/g)].map(([, name]) => `dist/${name}`);
  assert.deepEqual(programs.sort(), ['dist/sublet-cpu.wasm', 'dist/sublet-cruncher.wasm', 'dist/sublet.wasm']);
  for (const path of [...promised, ...wanted, ...programs, 'dist/glue.js', 'dist/wasm_exec.js']) assert.ok(packed.has(path), `${path} is not in the package`);
  for (const path of packed) assert.ok(wanted.includes(path) || /^(package\.json|README\.md|LICENSE)$/.test(path), `${path} is in the package`);
});
