// SPDX-License-Identifier: Apache-2.0

// Compiles a program of a user's, strictly.

import assert from 'node:assert/strict';
import {spawnSync} from 'node:child_process';
import {writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {join} from 'node:path';

const tsc = createRequire(import.meta.url).resolve('typescript/package.json').replace(/package\.json$/, 'bin/tsc');

/** What a program is compiled with if nothing else is said. */
const COMMON = {
  strict: true, noEmit: true, types: [], target: 'es2022', lib: ['es2024', 'esnext.disposable', 'dom', 'dom.iterable'], module: 'nodenext', moduleResolution: 'nodenext',
};

/** Fails where the compiler does. @param {string} folder @param {string[]} files in it @param {object} [options] of the compiler */
export function compile(folder, files, options) {
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({compilerOptions: {...COMMON, ...options}, files}));
  const {status, stdout} = spawnSync(process.execPath, [tsc, '-p', folder], {cwd: folder, encoding: 'utf8'});
  assert.equal(status, 0, `${JSON.stringify(options)}: ${stdout.slice(0, 4000)}`);
}
