// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {dirname, join} from 'node:path';
import {test} from 'node:test';
import {pathToFileURL} from 'node:url';
import {bundle} from '../parts.mjs';

/** Bundles sources, by their names, and returns the folder. */
async function bundled(t, sources) {
  const folder = mkdtempSync(join(tmpdir(), 'sublet-')), dist = join(folder, 'dist');
  t.after(() => rmSync(folder, {recursive: true}));
  for (const [name, text] of Object.entries(sources)) {
    mkdirSync(dirname(join(folder, name)), {recursive: true});
    writeFileSync(join(folder, name), text);
  }
  const options = {outdir: dist, bundle: true, format: 'esm', minify: true, keepNames: true, outExtension: {'.js': '.mjs'}};
  await bundle(join(folder, 'src', 'index.mjs'), options, {'./script.js': join(folder, 'script.js')});
  return dist;
}

const load = (...path) => import(pathToFileURL(join(...path)).href);

test('parts have what the module has, and are loaded when they are needed', async (t) => {
  const dist = await bundled(t, {
    'script.js': 'globalThis.subletTest = (globalThis.subletTest ?? 0) + 1;',
    'src/errors.mjs': 'export class Failure extends Error {} export const count = {n: 0}; export const unused = 1;',
    'src/apart.mjs': 'export class Apart {}',
    'src/index.mjs': `import {Failure, count} from './errors.mjs';
      export {Failure};
      export const n = () => count.n, script = () => import('./script.js'), fail = () => import('./deep/part.mjs').then(({fail}) => fail());`,
    'src/deep/part.mjs': `import {Failure, count} from '../errors.mjs';
      import * as apart from '../apart.mjs';
      export const fail = async () => { count.n++; throw Object.assign(new Failure((await import('../other.mjs')).text), {apart: new apart.Apart()}); };`,
    'src/other.mjs': "import * as errors from './errors.mjs'; export const text = `other ${errors.unused} ${errors.count.n}`;",
  });
  const files = readdirSync(dist, {recursive: true}).filter((name) => name.endsWith('.mjs'));
  assert.deepEqual(files.sort(), ['index.mjs', 'parts/deep/part.mjs', 'parts/other.mjs']);
  const {Failure, fail, n, script, ...more} = await load(dist, 'index.mjs');
  assert.deepEqual(Object.keys(more).sort(), ['_errors_Failure', '_errors_count', '_errors_unused']);
  await assert.rejects(fail(), (error) => error instanceof Failure && error.message === 'other 1 1' && error.apart.constructor.name === 'Apart');
  assert.equal(n(), 1);
  assert.equal(globalThis.subletTest, undefined);
  await script();
  assert.equal(globalThis.subletTest, 1);
});

test('a module without parts is a bundle', async (t) => {
  const dist = await bundled(t, {'script.js': '', 'src/package.json': '{"sideEffects": false}', 'src/index.mjs': "import {x} from './x.mjs'; globalThis.subletX = x; export {x};", 'src/x.mjs': 'export const x = 5;'});
  assert.deepEqual(readdirSync(dist), ['index.mjs']);
  assert.deepEqual({...await load(dist, 'index.mjs')}, {x: 5});
  assert.equal(globalThis.subletX, 5);
  assert.match(readFileSync(join(dist, 'index.mjs'), 'utf8'), /subletX/);
});
