// SPDX-License-Identifier: Apache-2.0

// What gpu.tuning asks the program for, and when. The tests of pages have the results.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {Command} from '../src/protocol.mjs';
import {DATABASE, recall} from '../src/tuning.mjs';
import {newGpu, turn} from './fake.mjs';

const FRESH = {adapter: {name: 'x'}, choices: []}, text = (/** @type {string[]} */ ...shapes) => JSON.stringify({...FRESH, choices: shapes.map((shape) => ({shape}))});

/** Answers commands as a program does, and notes them with the texts that they have. */
function answering(t, answers = {}) {
  const {session, gpu, sent, program} = newGpu(), asked = [];
  const timer = setInterval(() => {
    for (const {command, words: [ticket, ...words]} of sent()) {
      const name = Object.keys(Command).find((name) => Command[name] === command), texts = words.map((word) => session.takeObject(word)).filter((x) => typeof x === 'string');
      asked.push([name, ...texts]);
      const [value, code] = answers[name]?.(...texts) ?? {Tuning: [[JSON.stringify(FRESH), 'grid:1x1', 'grid:2x2']], Time: [text(...texts.slice(1))], Tuned: texts}[name] ?? [];
      session.settle(ticket, value, code, code);
    }
  }, 1);
  t.after(() => clearInterval(timer));
  return {session, gpu, asked, program};
}

test('a run asks for one work after the other', async (t) => {
  const {gpu, asked} = answering(t), seen = [];
  const results = await gpu.tuning.run({onProgress: (choice, done, all) => seen.push([choice.shape, done, all])});
  assert.deepEqual(results, JSON.parse(text('grid:2x2')));
  assert.deepEqual(seen, [['grid:1x1', 1, 2], ['grid:2x2', 2, 2]]);
  assert.deepEqual(asked, [['Tuning'], ['Time', JSON.stringify(FRESH), 'grid:1x1'], ['Time', text('grid:1x1'), 'grid:2x2'], ['Tuned', text('grid:2x2')]]);
  asked.length = 0;
  assert.deepEqual(await gpu.tuning.export(), results);
  await gpu.tuning.run({work: ['grid:3x3']});
  assert.deepEqual(asked[0], ['Time', text('grid:2x2'), 'grid:3x3'], 'what is known goes along');
  await gpu.tuning.clear();
  assert.deepEqual(asked.at(-1), ['Tuned', '']);
  assert.deepEqual(await gpu.tuning.export(), FRESH);
});

test('results that the program refuses change nothing', async (t) => {
  const {gpu} = answering(t, {Tuned: (used) => used === text('good') ? [text('good', 'understood')] : [undefined, 'ErrUnsupported'], Time: () => [undefined, 'ErrUnsupported']});
  await gpu.tuning.import(JSON.parse(text('good')));
  await assert.rejects(gpu.tuning.import(JSON.parse(text('bad'))), {code: 'ErrUnsupported'});
  await assert.rejects(gpu.tuning.run(), {code: 'ErrUnsupported'});
  assert.deepEqual(await gpu.tuning.export(), JSON.parse(text('good', 'understood')), 'as the program understood them');
});

test('earlier timings are looked up when all of the program is there, and only if there are any', async (t) => {
  const had = Object.getOwnPropertyDescriptor(globalThis, 'indexedDB'), looked = [];
  t.after(() => had ? Object.defineProperty(globalThis, 'indexedDB', had) : delete globalThis.indexedDB);
  /** @type {{name: string}[]} */
  const databases = [{name: 'of the page'}];
  Object.defineProperty(globalThis, 'indexedDB', {configurable: true, value: {databases: async () => { looked.push('databases'); return databases; }, open: () => { looked.push('open'); throw new Error('blocked'); }}});
  const {session, asked} = answering(t);
  let arrive = () => {};
  session.whole = new Promise((done) => { arrive = done; });
  const recalled = recall(session);
  await turn();
  assert.deepEqual([looked, asked], [[], []]);
  arrive();
  await recalled;
  assert.deepEqual([looked, asked], [['databases'], []]);
  databases.push({name: DATABASE});
  await recall(session);
  assert.deepEqual([looked, asked], [['databases', 'databases', 'open'], [['Tuning']]], 'a database that cannot be opened is none');
});
