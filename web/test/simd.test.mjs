// SPDX-License-Identifier: Apache-2.0

// What computes on the CPU, in Node: the tests of pages, as far as they need no page, and the package as npm installs it.

import assert from 'node:assert/strict';
import {execFileSync} from 'node:child_process';
import {mkdirSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';
import {test} from 'node:test';
import {fileURLToPath} from 'node:url';
import './dist.mjs';
import {init} from '../dist/index.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));

// Where the tests of pages find files.
const {fetch} = globalThis;
globalThis.fetch = async (source, ...more) => {
  const [, folder, file] = /^\/(params|npy|dist)\/(.*)/.exec(source) ?? [];
  if (typeof source !== 'string' || !folder) return fetch(source, ...more);
  try {
    return new Response(readFileSync(new URL(folder === 'dist' ? `../dist/${file}` : `../../buffer/file/${folder}/testdata/${file}`, import.meta.url)));
  } catch {
    return new Response('', {status: 404});
  }
};

for (const name of ['everywhere', 'expressions', 'tensors', 'nn', 'sparse', 'contract', 'params', 'misuse', 'recordings', 'graphs', 'graph-rules', 'objects', 'files', 'transfer', 'tuning', 'repeats', 'reused', 'cruncher-calls', 'cruncher-arrays', 'cruncher-failures', 'cruncher-tasks', 'cruncher-pipelines']) {
  const {tests} = await import(`../../e2e/testdata/${name}.mjs`), both = Object.entries(tests).filter(([, run]) => run.both);
  assert.ok(both.length > 0, name);
  for (const [what, run] of both) test(`${name}: ${what}`, () => run('simd'));
}

test('a program whose kernels are damaged, or are not there, compiles them', async () => {
  const [program, rest] = ['sublet-simd.wasm', 'sublet-simd-rest.wasm'].map((name) => readFileSync(join(root, 'dist', name)));
  const at = program.lastIndexOf('sublet kernels') + 'sublet kernels'.length, count = program.readUInt32LE(at), first = at + 4 + 16 * count;
  assert.ok(at > 100 && count > 100 && first < program.length);
  const damages = {
    'none': () => {},
    'the count': (/** @type {Buffer} */ b) => b.writeUInt32LE(0xffffffff, at),
    'no count': (/** @type {Buffer} */ b) => b.writeUInt32LE(0, at),
    'places': (/** @type {Buffer} */ b) => { for (let i = 0; i < count; i++) b.writeUInt32LE(b.readUInt32LE(at + 12 + 16 * i) + 1, at + 12 + 16 * i); },
    'sizes': (/** @type {Buffer} */ b) => { for (let i = 0; i < count; i++) b.writeUInt32LE(i % 40, at + 16 + 16 * i); },
    'a bit of each byte': (/** @type {Buffer} */ b) => { for (let i = first; i < b.length; i++) b[i] ^= 1 << i % 8; },
  };
  for (const [what, damage] of Object.entries(damages)) {
    const copy = Buffer.from(program);
    damage(copy);
    const gpu = await init({device: 'simd', threads: 1, simdWasm: [copy, rest]}), a = gpu.ones(9, 9);
    assert.deepEqual([...await a.add(a).read()], Array(81).fill(2), what);
    assert.equal(await a.matmul(a).sum().value(), 729, what);
    gpu.close();
  }
});

test('the package that npm installs', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'sublet-')), installed = join(folder, 'node_modules', 'sublet');
  t.after(() => rmSync(folder, {recursive: true}));
  mkdirSync(installed, {recursive: true});
  const [{filename}] = JSON.parse(execFileSync('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore']}));
  execFileSync('tar', ['xzf', join(folder, filename), '-C', installed, '--strip-components=1']);
  const program = `
    const {init} = await import('sublet'), codes = [];
    for (const options of [{device: 'webgpu'}, {fallback: true}, {device: 'cpu'}, {simdWasm: new URL('file:///nowhere.wasm')}]) await init(options).catch(({code}) => codes.push(code));
    const gpu = await init(), a = gpu.matrix(2, 2, [1, 2, 3, 4]);
    console.log(codes.join(), gpu.info.driver, gpu.info.kind, gpu.device, ...await a.matmul(a).apply(gpu.fn('fn f(x: f32) -> f32 { return x * 2.0; }')).read());`;
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], {cwd: folder, encoding: 'utf8'}); // it ends by itself
  assert.equal(said, 'ErrNoAdapter,ErrInvalid,ErrInvalid,ErrInvalid simd cpu null 14 20 30 44\n');
});
