// SPDX-License-Identifier: Apache-2.0

// The examples: a user's compiler takes them, and those that need no page compute in Node what e2e/testdata/examples.mjs says.

import assert from 'node:assert/strict';
import {execFileSync, spawnSync} from 'node:child_process';
import {cpSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync} from 'node:fs';
import {createRequire, register} from 'node:module';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath, pathToFileURL} from 'node:url';
import './dist.mjs';

const root = fileURLToPath(new URL('..', import.meta.url)), examples = join(root, 'examples');
const names = readdirSync(examples).filter((file) => file.endsWith('.ts')).map((file) => file.slice(0, -3));
const inBrowsers = ['image-filter', 'particles', 'tensorflow', 'worker'];

const folder = mkdtempSync(join(tmpdir(), 'sublet-'));
process.on('exit', () => rmSync(folder, {recursive: true}));

const read = (/** @type {string} */ path) => readFileSync(join(root, path), 'utf8');

test('a compiler that is strict takes the examples, with the package as npm installs it', () => {
  const user = join(folder, 'user'), installed = join(user, 'node_modules', 'sublet');
  cpSync(join(root, 'package.json'), join(installed, 'package.json'));
  cpSync(join(root, 'dist', 'index.d.ts'), join(installed, 'dist', 'index.d.ts'));
  cpSync(join(root, 'dist', 'types'), join(installed, 'dist', 'types'), {recursive: true});
  cpSync(join(root, 'node_modules', '@webgpu'), join(user, 'node_modules', '@webgpu'), {recursive: true});
  symlinkSync(join(root, 'node_modules', '@tensorflow'), join(user, 'node_modules', '@tensorflow')); // 70 MB
  for (const name of names) cpSync(join(examples, `${name}.ts`), join(user, `${name}.ts`));
  const {compilerOptions: {paths: _, ...options}} = JSON.parse(read('examples/tsconfig.json')); // whose paths lead to the declarations here
  assert.equal(options.strict, true);
  writeFileSync(join(user, 'tsconfig.json'), JSON.stringify({compilerOptions: options, include: ['*.ts']}));
  const tsc = createRequire(import.meta.url).resolve('typescript/package.json').replace(/package\.json$/, 'bin/tsc');
  const {status, stdout} = spawnSync(process.execPath, [tsc, '-p', user], {cwd: user, encoding: 'utf8'});
  assert.equal(status, 0, stdout);
});

test('the examples are twenty, short, and linked from the README', () => {
  assert.equal(names.length, 20);
  const linked = [...read('README.md').matchAll(/\]\(examples\/([\w-]+)\.ts\)/g)].map(([, name]) => name);
  assert.deepEqual(linked.sort(), names.sort());
  for (const name of names) {
    const lines = read(`examples/${name}.ts`).trim().split('\n');
    assert.ok(lines.length <= 42, `${name}.ts has ${lines.length - 2} lines`); // and that of the licence
    for (const line of lines) assert.ok(line.length <= 150, `${name}.ts: ${line}`);
  }
});

const stripped = join(folder, 'examples');
execFileSync(process.execPath, [join(examples, 'build.mjs'), stripped, ...names.filter((name) => !inBrowsers.includes(name))], {cwd: root, stdio: 'inherit'});
const hooks = `
  const at = ${JSON.stringify(pathToFileURL(folder).href)};
  export const resolve = (name, context, next) => next(name.startsWith('/examples/') ? at + name : name, context);
  export const load = (url, context, next) => next(url, url.startsWith(at) ? {...context, format: 'module'} : context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const {tests} = await import('../../e2e/testdata/examples.mjs');
test('each example has a test', () => assert.equal(Object.keys(tests).length, names.length - inBrowsers.length));
for (const [name, run] of Object.entries(tests)) test(name, () => run('simd'));
