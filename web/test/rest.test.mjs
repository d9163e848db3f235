// SPDX-License-Identifier: Apache-2.0

// When a program that lacks its rest is called. TestRest and TestFirefox have real ones.

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Rest} from '../src/rest.mjs';
import {turn} from './fake.mjs';

/** A module that imports the memory "mem" of "build". */
const MODULE = new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 2, 14, 1, 5, ...Buffer.from('build'), 3, ...Buffer.from('mem'), 2, 0, 1));

/** A program that wants its rest at message 1, and what it did. @param {() => void} events that the page has while the rest is loaded */
async function programOf(events) {
  const mem = new WebAssembly.Memory({initial: 1}), did = [], go = {importObject: {}, _makeFuncWrapper: (/** @type {number} */ id) => () => { did.push(`function ${id}`); return id; }};
  const rest = new Rest(go), word = new Uint32Array(mem.buffer, 0, 1);
  const exports = {
    'mem': mem, 'build': {value: 0}, 'go on': () => {}, 'rigid': {value: 0}, 'g0': {value: 0}, 'run': () => {}, 'resume': () => did.push('resume'),
    'sublet_post': () => {
      const message = word[0];
      did.push(`begin ${message}`);
      if (message === 1) assert.equal(go.importObject.sublet_rest.want(), 0, 'it goes on');
      did.push(`end ${message}`);
      return 0;
    },
  };
  await rest.attach({exports}, {now: () => { events(); return MODULE; }, load: async () => MODULE, forget: () => {}});
  const post = (/** @type {number} */ message, lends = false) => { word[0] = message; return rest.post(1, lends); };
  return {rest, go, did, post, word};
}

test('events that the page has in the middle of a call wait for its end', async () => {
  const {rest, go, did, post, word} = await programOf(() => {
    assert.equal(post(2), 1, 'it is not finished');
    assert.equal(wrapper(), undefined);
    rest.resume(() => did.push('resumed'));
    assert.throws(() => rest.complete(), {code: 'ErrUnsupported'});
    word[0] = 1;
  });
  const wrapper = go._makeFuncWrapper(7);
  assert.equal(post(1, true), 0);
  assert.deepEqual(did, ['begin 1', 'end 1']);
  await turn();
  assert.deepEqual(did, ['begin 1', 'end 1', 'begin 2', 'end 2', 'function 7', 'resumed']);
  assert.equal(wrapper(), 7);
  rest.complete();
});

test('what comes later is behind what waited', async () => {
  const {did, post, word} = await programOf(() => { post(2); post(3); word[0] = 1; });
  post(1, true);
  post(4);
  assert.deepEqual(did.filter((what) => what.startsWith('begin')), ['begin 1', 'begin 2', 'begin 3', 'begin 4']);
  await turn();
  assert.equal(did.length, 8, 'nothing is done twice');
});
