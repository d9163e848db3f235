// SPDX-License-Identifier: Apache-2.0

// Tests of pipelines of crunchers.

import {init} from '/dist/index.mjs';
import {TWO, told} from './cruncher-testing.mjs';
import {check, fails, noise, onBoth, same} from './testing.mjs';

const WGSL = `
  fn blur(i: u32) { let n = arrayLength(&src); mid[i] = 0.25 * src[max(i, 1u) - 1u] + 0.5 * src[i] + 0.25 * src[min(i + 1u, n - 1u)]; }
  fn scale(i: u32) { res[i] = mid[i] * by + f32(steps[i]); steps[i] = steps[i] + 1u; }
  fn begin(i: u32) { steps[i] = 100u; }`;
const items = 300;

/** What the two stages make of data, in float64, the n-th time that they do. */
const reference = (x, n, first) => Array.from(x, (v, i) => (0.25 * x[Math.max(i, 1) - 1] + 0.5 * v + 0.25 * x[Math.min(i + 1, items - 1)]) * 3 + first + n);
const TOLERANCE = 400 * 2 ** -24;

/** Stages that blur and scale, and their arrays. */
function stagesOf(cr, {of = {}, ...last} = {}) {
  const [src, mid, between, res] = ['src', 'mid', 'mid', 'res'].map((name) => cr.array(name, items)), steps = cr.array('steps', items, {dtype: 'uint32'});
  return {src, mid, res, steps, stages: [
    {steps: [{kernels: 'blur', global: items}], inputs: [src], outputs: [mid]},
    {...of, steps: [{kernels: 'scale', global: items}], inputs: [last.between ?? between], hidden: [steps, cr.scalar('by', 3)], outputs: [res], ...last.more},
  ]};
}

export const tests = {
  several: onBoth(async (gpu) => {
    // Two stages on crunchers of two devices: the first result comes at push 2S+1.
    const a = await gpu.cruncher(WGSL, {devices: TWO}), b = await gpu.cruncher(WGSL, {devices: ['own', 'low-power']});
    const {stages, src, res} = stagesOf(a, {of: {cruncher: b}, more: {initializers: [{kernels: 'begin', global: items}]}}), pipe = await a.pipeline(stages);
    a.close(); // the devices stay as long as there is the pipeline
    const data = Array.from({length: 4}, (_, k) => noise(items, k + 1)), given = [a, b].map((_, k) => b.array(k === 0 ? 'given' : 'taken', items)), results = [];
    for (let push = 0; push < 8; push++) {
      if (push < 4) given[0].data.set(data[push]);
      const came = await pipe.push(push < 4 ? [given[0]] : [], [given[1]]);
      check(came === (push >= 4), `push ${push + 1} brings ${came}`);
      if (came) results.push(given[1].data.slice());
    }
    results.forEach((result, k) => same(result, reference(data[k], k, 100), `result ${k}`, TOLERANCE));
    check(src.data.every((v) => v === 0) && res.data.every((v) => v === 0), 'arrays of the stages are not written');

    // The arrays of the stages themselves: at push 2S-1.
    src.data.set(data[0]);
    for (let push = 0; push < 3; push++) check(await pipe.push() === (push === 2), `push ${push}`);
    same(res.data, reference(data[0], 4, 100), 'in the stage\'s own arrays', TOLERANCE);
    for (const [code, ...args] of [
      ['ErrInvalid', 5], ['ErrInvalid', [5]], ['ErrInvalid', [b.scalar('s', 1)]], ['ErrInvalid', [given[0].as('x')]], ['ErrLength', [given[0], given[1]]], ['ErrLength', [b.array('short', items - 1)]],
      ['ErrLength', [b.array('whole', items, {dtype: 'uint32'})]], ['ErrLength', [given[0]], []], ['ErrInvalid', [given[0]], [given[1]], 5], ['ErrAborted', [given[0]], [given[1]], {signal: AbortSignal.abort()}],
    ]) await fails(code, `push ${told(args.map(String))}`, () => pipe.push(...args));
    const gone = b.array('gone', new Float32Array(items));
    structuredClone(gone.data.buffer, {transfer: [gone.data.buffer]});
    await fails('ErrInvalid', 'memory that was detached', () => pipe.push([gone], [given[1]]));
    await pipe.push([given[0]], [given[1]]);
    pipe.close();
    check(pipe.closed, 'closed');
    await fails('ErrClosed', 'a closed pipeline', () => pipe.push());
    await fails('ErrClosed', 'a closed cruncher', () => a.pipeline(stages));
    b.close();
  }),

  device: onBoth(async (gpu) => {
    const cr = await gpu.cruncher(WGSL, {devices: TWO}), {stages, src, mid, res, steps} = stagesOf(cr), data = Array.from({length: 6}, (_, k) => noise(items, k + 1));
    stages[1].inputs = [mid]; // a transition, which stays on the device
    const pipe = await cr.devicePipeline(stages, {device: 1});
    for (let k = 0; k < 6; k++) {
      src.data.set(data[k]);
      check(await pipe.feed() === (k >= 2), `feed ${k + 1}`);
      if (k >= 2) same(res.data, reference(data[k - 2], k - 2, 0), `result ${k}`, TOLERANCE);
    }
    check(mid.data.every((v) => v === 0), 'a transition does not come back');
    await pipe.serial();
    const traffic = [];
    for (const k of [0, 1]) {
      src.data.set(data[k]);
      await pipe.feedBegin();
      src.data.fill(7); // it has been copied
      await fails('ErrInvalid', 'a feed that has begun', () => pipe.feedBegin());
      await fails('ErrInvalid', 'a mode amidst a feed', () => pipe.parallel());
      check(await pipe.feedEnd(), 'in series results come at once');
      traffic.push(res.data.slice());
      same(res.data, reference(data[k], k + 5, 0), `in series ${k}`, TOLERANCE);
    }
    await fails('ErrInvalid', 'no feed', () => pipe.feedEnd());
    await pipe.stopTransmission(0, 1);
    res.data.fill(0);
    check(await pipe.feed() === false && res.data[0] === 0, 'nothing comes back');
    await pipe.stopTransmission();
    src.data.set(data[3]);
    check(await pipe.feed(), 'again');
    same(res.data, reference(data[3], 8, 0), 'after it was stopped', TOLERANCE);
    for (const wrong of [[2], [1.5], [-1], ['0'], [undefined], [0, null], [2 ** 40]]) await fails('ErrInvalid', `stages ${told(wrong)}`, () => pipe.stopTransmission(...wrong));
    await fails('ErrAborted', 'given up', () => pipe.feed({signal: AbortSignal.abort()}));
    await fails('ErrInvalid', 'a signal', () => pipe.feed({signal: 5}));
    await pipe.parallel();
    check(await pipe.feed() === false, 'in parallel results come later');
    steps.close();
    await fails('ErrClosed', 'an array that was closed', () => pipe.feed());
    pipe.close();
    for (const call of ['feed', 'feedBegin', 'feedEnd', 'serial', 'parallel', 'stopTransmission']) await fails('ErrClosed', call, () => pipe[call]());
  }),

  mistakes: onBoth(async (gpu) => {
    const cr = await gpu.cruncher(WGSL, {devices: TWO}), {stages, src, mid} = stagesOf(cr), [good] = stages, world = await init({device: 'simd', threads: 1}), there = await world.cruncher(WGSL);
    const throwing = {get steps() { throw 0; }}, one = {kernels: 'blur', global: items};
    for (const [code, wrong] of [
      ['ErrInvalid', 5], ['ErrInvalid', [5]], ['ErrInvalid', [null]], ['ErrInvalid', [throwing]], ['ErrInvalid', [{...good, kernels: []}]], ['ErrInvalid', [{...good, steps: one}]], ['ErrInvalid', [{...good, steps: [5]}]],
      ['ErrInvalid', [{...good, steps: [{...one, kernels: 5}]}]], ['ErrInvalid', [{...good, steps: [{kernels: 'blur'}]}]], ['ErrKernel', [{...good, steps: []}]], ['ErrKernel', [{...good, steps: [{...one, kernels: 'none'}]}]],
      ['ErrRange', [{...good, steps: [{...one, global: -1}]}]], ['ErrInvalid', [{...good, inputs: [cr.scalar('src', 1)]}]], ['ErrInvalid', [{...good, outputs: src}]], ['ErrName', [{...good, outputs: [src]}]],
      ['ErrInvalid', [{...good, outputs: [cr.array('mid', items, {readOnly: true})]}]],
    ]) for (const what of ['pipeline', 'devicePipeline']) await fails(code, `${what} ${told(wrong)}`, () => cr[what](wrong));
    await fails('ErrInvalid', 'no stage', () => cr.pipeline([]));
    await fails('ErrInvalid', 'no stage of a device', () => cr.devicePipeline([]));
    await fails('ErrInvalid', 'nothing', () => cr.pipeline());
    await fails('ErrLength', 'stages that do not fit', () => cr.pipeline([good, {...stages[1], inputs: [cr.array('mid', items + 1)]}]));
    for (const cruncher of [5, {}, gpu]) await fails('ErrInvalid', 'no cruncher', () => cr.pipeline([{...good, cruncher}]));
    await fails('ErrForeign', 'a cruncher of another Gpu', () => cr.pipeline([{...good, cruncher: there}]));
    await fails('ErrForeign', 'an array of another Gpu', () => cr.pipeline([{...good, inputs: [there.array('src', items)]}]));
    await fails('ErrInvalid', 'a cruncher of one stage', () => cr.devicePipeline([{...good, cruncher: cr}]));
    await fails('ErrInvalid', 'an array of two stages', () => cr.devicePipeline([good, good]));
    for (const device of [-1, 2, 0.5, '0', null]) await fails('ErrDevices', 'a device', () => cr.devicePipeline(stages, {device}));
    for (const what of ['pipeline', 'devicePipeline']) {
      for (const options of [5, {signals: 1}, {signal: 5}]) await fails('ErrInvalid', what, () => cr[what](stages, options));
      await fails('ErrAborted', what, () => cr[what](stages, {signal: AbortSignal.abort()}));
    }
    world.close();

    // Given up or closed in the middle. Who waits hears of it, and the next one is right.
    const long = [{...good, steps: [{kernels: 'blur', global: items, repeat: 2 ** 40}]}], abort = new AbortController(), pipe = await cr.devicePipeline(long), several = await cr.pipeline(long);
    setTimeout(() => abort.abort(), 30);
    await fails('ErrAborted', 'a push without end', () => several.push(null, null, {signal: abort.signal}));
    const pushed = several.push(), fed = pipe.feed();
    await new Promise((done) => { setTimeout(done, 30); });
    several.close();
    pipe.close();
    await Promise.all([pushed, fed].map((promise) => fails('ErrClosed', 'closed in the middle', () => promise))); // at once: either may be the first
    const next = await cr.pipeline([good]);
    src.data.set(noise(items));
    check(await next.push(), 'one stage of its own arrays');
    same(mid.data, reference(noise(items), 0, 0).map((v) => v / 3), 'the next one', TOLERANCE);
  }),
};
