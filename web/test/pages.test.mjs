// SPDX-License-Identifier: Apache-2.0

// What the pages of the digits and of the race compute by themselves.

import assert from 'node:assert/strict';
import {test} from 'node:test';
import {SIDE, extent, resample} from '../demo/digits-reader.mjs';
import {difference, inputs, races, reference} from '../demo/race-items.mjs';
import * as plain from '../demo/race-plain.mjs';

test('a drawing is scaled to its box, its centre of mass in the middle', () => {
  const ink = new Float32Array(280);
  ink.fill(1, 30, 110); // 80 pixels, which the box has 20 for
  assert.equal(extent(ink), 80);
  const weights = resample(ink, 80 / 20), image = Float64Array.from({length: SIDE}, (_, row) => ink.reduce((sum, v, i) => sum + v * weights[row * 280 + i], 0));
  image.forEach((v, row) => assert.ok(Math.abs(v - (row >= 4 && row < 24 ? 1 : 0)) < 1e-6, `${v} in row ${row}`));
});

test('a drawing at the edge loses nothing, and an empty one has no extent', () => {
  const ink = new Float32Array(280);
  assert.equal(extent(ink), 0);
  ink.fill(1, 0, 3);
  const weights = resample(ink, 3 / 20), sum = weights.reduce((a, v, i) => a + v * ink[i % 280], 0);
  assert.ok(Math.abs(sum * 3 / 20 - 3) < 1e-5, `${sum}`); // as much ink as there was
});

test('plain JavaScript computes what float64 does, in every kind of item', () => {
  const seen = new Set();
  for (const item of races.short) {
    const data = inputs(item), want = reference(item, data), entry = plain.items[item.kind](item, data);
    const off = difference(want, entry.read(entry.run()));
    assert.ok(off <= item.tolerance, `${item.id} is off by ${off}`);
    assert.ok(item.bytes > 0 && item.flop >= 0);
    seen.add(item.kind);
  }
  assert.deepEqual([...seen].sort(), ['chain', 'fma', 'matmul', 'softmax', 'sum', 'tiny', 'transpose']);
});

test('wrong results are far from right ones', () => {
  const want = Float64Array.of(1, -4, 2);
  assert.equal(difference(want, [1, -4, 2]), 0);
  assert.equal(difference(want, [1, -3, 2]), 0.25);
  assert.equal(difference(want, [1, -4]), Infinity);
  assert.ok(!(difference(want, [NaN, -4, 2]) <= 1));
  assert.ok(!(difference(want, [NaN, -4, 3]) <= 1)); // a NaN is not forgotten
});

test('items of both races have names of their own', () => {
  for (const items of Object.values(races)) assert.equal(new Set(items.map(({id}) => id)).size, items.length);
});
