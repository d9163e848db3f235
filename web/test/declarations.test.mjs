// SPDX-License-Identifier: Apache-2.0

// The declarations of the package: all of them are documented, and their examples compile and say what is so.

import assert from 'node:assert/strict';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {transformSync} from 'esbuild';
import {compile} from './compile.mjs';
import {members, resultsOf, rewritten} from './declarations.mjs';

test('every member has a sentence and an example', () => {
  assert.ok(members.length > 600, `${members.length} members`);
  for (const {where, sentence, example} of members) {
    assert.match(sentence, /\w.*\./, `${where} has no sentence`);
    assert.ok(example.length > 0, `${where} has no example`);
  }
  const operations = members.filter(({where}) => where.startsWith('operations.d.ts'));
  for (const {where, sentence, example} of operations) {
    assert.match(sentence, /Shapes: /, `${where} says no shapes`);
    assert.equal(resultsOf(example), 1, `${where} has an example without a result`);
  }
});

/** The types of the values that examples tell, as TypeScript calls them, in their order. @type {string[]} */
const found = [];

/** @param {unknown} value */
const typeOf = (value) => ArrayBuffer.isView(value) ? `${value.constructor.name} | undefined` : Array.isArray(value) ? 'readonly unknown[] | undefined' : `${typeof value} | undefined`;

/** Numbers are equal as far as they are written. @param {unknown} got @param {unknown} want @param {string} where */
function equal(got, want, where) {
  const list = ArrayBuffer.isView(got) || Array.isArray(got) ? [.../** @type {Iterable<unknown>} */ (/** @type {unknown} */ (got))] : [got];
  const wanted = Array.isArray(want) ? want : [want];
  assert.equal(list.length, wanted.length, `${where}: ${list} is said to be ${wanted}`);
  wanted.forEach((x, i) => {
    const y = list[i], near = typeof x === 'number' && typeof y === 'number' && Math.abs(x - y) <= 5e-5 * Math.abs(x);
    assert.ok(near || Object.is(x, y) || x === y, `${where}: ${list} is said to be ${wanted}`);
  });
}

test('examples say what is so', async (t) => {
  const {SubletError, init} = await import('../dist/index.mjs');
  const gpu = await init({device: 'simd', threads: 1});
  t.after(() => gpu.close());
  for (const {where, example} of members.filter(({example}) => resultsOf(example) > 0)) {
    const code = rewritten(example, (call, result) => `check(${call}, ${result});`);
    const {code: script} = transformSync(`async (gpu, init, SubletError, check) => { {\n${code}\n} }`, {loader: 'ts', target: 'es2022'});
    const check = (/** @type {unknown} */ got, /** @type {unknown} */ want) => {
      equal(got, want, where);
      found.push(typeOf(got));
    };
    await (0, eval)(script)(gpu, init, SubletError, check).catch((/** @type {Error} */ error) => {
      throw new Error(`${where}: ${error.message}\n${example.join('\n')}`, {cause: error});
    });
  }
  assert.ok(found.length > 600, `${found.length} values`);
});

test('examples compile, and their values have the types that they are declared with', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sublet-'));
  t.after(() => rmSync(folder, {recursive: true}));
  const types = [...found];
  const functions = members.map(({where, example}, i) => {
    let values = 0;
    const code = rewritten(example, (call) => `const value${values}: ${types.shift() ?? 'unknown'} = ${call}; void value${values++};`);
    return `// ${where}\nasync function example${i}() {\n${code}\n}\nvoid example${i};\n`;
  });
  writeFileSync(join(folder, 'examples.ts'), `import { SubletError, init } from 'sublet';\nimport type { Gpu } from 'sublet';
declare const gpu: Gpu, buffer: GPUBuffer, canvas: HTMLCanvasElement, video: HTMLVideoElement, worker: Worker;
void [SubletError, init, gpu, buffer, canvas, video, worker];\n${functions.join('')}`);
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  compile(folder, ['examples.ts'], {paths: {sublet: [fileURLToPath(new URL('../index.d.ts', import.meta.url))]}});
});
