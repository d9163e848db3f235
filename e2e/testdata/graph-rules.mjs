// SPDX-License-Identifier: Apache-2.0

// Tests of which task of a graph runs when and where, and of what blocks say beside their values.

import {init} from '/dist/index.mjs';
import {told} from './cruncher-testing.mjs';
import {check, fails, noise, onBoth, same, throws} from './testing.mjs';

const n = 4, elements = (seed) => noise(n * n, seed), ports = {inputs: ['x'], outputs: ['y']};
const later = (milliseconds = 0) => new Promise((done) => { setTimeout(done, milliseconds); });

/** The order in which tasks run that are all ready at once. Each takes so many milliseconds of a clock that nothing else moves. */
async function orderOf(gpu, options, list, milliseconds = 0) {
  const graph = await gpu.graph(options), order = [], began = performance.now();
  let passed = 0;
  performance.now = () => began + passed;
  try {
    const ends = Object.entries(list).map(([name, more]) => {
      graph.task(name, async ({x}) => { order.push(name); passed += milliseconds; await later(); return x; }, {...ports, ...more});
      return [graph.input(`${name}.x`), graph.output(`${name}.y`)];
    });
    await Promise.all(ends.map(([x], i) => x.push(i)));
    graph.run();
    await Promise.all(ends.map(([, y]) => y.pull()));
  } finally {
    delete performance.now;
  }
  const {devices, tasks} = graph.stats();
  check(devices.every(({running}) => running === 0) && tasks.every(({run}) => Math.round(run * 1000) >= milliseconds), JSON.stringify(tasks));
  graph.close();
  return order.join('');
}

export const tests = {
  modes: onBoth(async (gpu) => {
    const list = {a: {priority: 1}, b: {}, c: {priority: 10}, d: {priority: 9}};
    check(await orderOf(gpu, {mode: 'fifo', concurrency: 1}, list) === 'abcd', 'first in, first out');
    check(await orderOf(gpu, {mode: 'first-available', concurrency: 1}, list) === 'abcd', 'the first that may run');
    for (const mode of ['priority', 'data-aware']) {
      for (const concurrency of [1, 2, Infinity]) check(await orderOf(gpu, {mode, concurrency}, list) === 'cdba', `${mode}, ${concurrency} at a time`);
      check(await orderOf(gpu, {mode, concurrency: 1}, list, 100) === 'cabd', `${mode}: who waits long rises`);
    }
    for (const options of [5, {mode: 'x'}, {mode: 5}, {threshold: -1}, {threshold: 0.5}, {concurrency: 0}, {concurrency: NaN}, {gpus: 5}, {gpus: [5]}, {gpus: [{}]}, {sync: 1}, {trace: -1}, {modes: 'fifo'}, {get mode() { throw 0; }}]) {
      await fails('ErrInvalid', `options ${told(options)}`, () => gpu.graph(options));
    }
    const graph = await gpu.graph();
    for (const [code, options] of [
      ['ErrInvalid', {priority: 11}], ['ErrInvalid', {priority: 0.5}], ['ErrInvalid', {prefer: 5}], ['ErrInvalid', {outputs: [5]}], ['ErrInvalid', {outputs: [null]}], ['ErrInvalid', {outputs: [{}]}], ['ErrInvalid', {outputs: [{name: 'y', gate: 'x'}]}],
      ['ErrName', {outputs: [{name: 'y', inPlace: 'z'}]}], ['ErrName', {outputs: [{name: 'y', signalsFrom: ['z']}]}], ['ErrInvalid', {outputs: [{name: 'y', signalsFrom: 'x'}]}], ['ErrName', {outputs: [{name: 'y', openedBy: 'y'}]}],
      ['ErrName', {outputs: [{name: 'y', closedBy: 'z'}]}], ['ErrInvalid', {outputs: ['g', {name: 'y', openedBy: 'g', closedBy: 'g'}]}], ['ErrName', {outputs: [{name: 'y', inPlace: 'x'}, {name: 'z', inPlace: 'x'}]}],
      ['ErrInvalid', {outputs: [{name: 'y', optional: 1}]}],
    ]) await throws(code, `a task ${told(options)}`, () => graph.task('t', ({x}) => x, {...ports, ...options}));
    graph.close();
  }),

  devices: onBoth(async (gpu) => {
    // Tasks run where their data are, where they are told to, and elsewhere when they have waited.
    const other = await init({device: 'simd', threads: 1});
    const graph = await gpu.graph({gpus: [other], concurrency: 1, sync: true, trace: 100}), seen = {free: [], prefers: [], needs: []};
    const body = (name) => ({x}, context) => { seen[name].push(context.gpu === other); return x.add(1); };
    graph.task('free', body('free'), ports).task('prefers', body('prefers'), {...ports, prefer: other}).task('needs', body('needs'), {...ports, gpu})
      .connect('free.y', 'prefers.x').connect('prefers.y', 'needs.x');
    const x = graph.input('free.x'), y = graph.output('needs.y');
    graph.run();
    for (const [i, place] of [gpu, other, other].entries()) {
      await x.push(place.matrix(n, n, elements(i)));
      const m = await y.pull();
      same(await m.read(), elements(i).map((v) => v + 3), `block ${i}`, 4 * 2 ** -24 * 4);
      m.close();
    }
    check(seen.free.join() === 'false,true,true', `where data are: ${seen.free}`);
    check(seen.needs.every((there) => !there), `a task of one device: ${seen.needs}`);
    const {devices, tasks, channels} = graph.stats();
    check(devices.length === 2 && devices[0].gpu === gpu && devices[1].gpu === other && devices[0].runs + devices[1].runs === 9, 'devices');
    check(tasks[2].devices.join() === '3,0' && tasks[0].devices.join() === '1,2' && channels.every(({pushed, dropped}) => pushed === 3 && dropped === 0), JSON.stringify([tasks, channels]));
    const {traceEvents} = JSON.parse(graph.trace()), runs = traceEvents.filter(({ph}) => ph === 'X');
    check(runs.length === 9 && runs.every(({tid, dur, ts}) => (tid === 0 || tid === 1) && dur > 0 && ts > 0) && traceEvents.length === 11, graph.trace());
    graph.close();
    const wrong = await gpu.graph();
    for (const option of ['prefer', 'waitFor']) await throws('ErrAffinity', option, () => wrong.task('t', ({x}) => x, {...ports, [option]: other}));
    wrong.close();

    // One that waits for a device waits until that is free, whatever else there is.
    const busy = await gpu.graph({gpus: [other], concurrency: 1, threshold: 10}), places = [];
    let free = () => {};
    busy.task('long', async ({x}) => { await new Promise((done) => { free = done; }); return x; }, {...ports, gpu: other})
      .task('waits', ({x}, context) => { places.push(context.gpu === other); return x; }, {...ports, waitFor: other}).task('goes', ({x}, context) => { places.push(context.gpu === gpu); return x; }, ports);
    const [a, b, c] = ['long', 'waits', 'goes'].map((name) => [busy.input(`${name}.x`), busy.output(`${name}.y`)]);
    await a[0].push(1);
    busy.run();
    await later();
    await b[0].push(2);
    await c[0].push(3);
    check(await c[1].pull() === 3 && places.join() === 'true', 'another one goes by');
    free();
    check(await b[1].pull() === 2 && places.join() === 'true,true', 'the one that waited');
    busy.close();
    other.close();
  }),

  signals: onBoth(async (gpu) => {
    // The end of a stream is told along, and opens what only it passes; predicates of the user's; what is held waits until it is asked again.
    const graph = await gpu.graph(), heard = [];
    let open = false;
    graph.task('sum', ({x, s}, {signals, setSignals}) => {
      heard.push(signals('x').join());
      if (signals('x').includes('eof')) setSignals('total', ['eof', 'endIteration']);
      return {s: s.add(x), total: s.add(x)};
    }, {inputs: ['x', 's'], outputs: [{name: 's', signalsFrom: []}, 'total']})
      .task('count', ({y}) => y, {inputs: ['y'], outputs: ['z']})
      .connect('sum.s', 'sum.s', {initial: gpu.zeros(1, 2), capacity: 2, push: {closeOn: ['eof']}}).connect('sum.total', 'count.y', {push: {ask: async () => true}, pull: {ask: (value) => value.rows === 1}});
    const x = graph.input('sum.x'), last = graph.output('sum.total', {pull: {openOn: ['eof']}}), all = graph.output('count.z', {hold: true, pull: {ask: () => open}});
    graph.run();
    for (let i = 1; i <= 3; i++) await x.push(gpu.matrix(1, 2, [i, 10 * i]), {signals: i === 3 ? ['eof', 'bof'] : []});
    const {value, signals} = await last.take();
    same(await value.read(), [6, 60], 'the sum at the end of the stream');
    check(signals.join() === 'eof,endIteration' && heard.join('|') === '||bof,eof', `${signals} after ${heard}`);
    const waiting = all.take();
    await later(20);
    open = true;
    graph.reconsider();
    const first = await waiting;
    same(await first.value.read(), [1, 10], 'what was held');
    check(first.signals.length === 0, `${first.signals}`);
    for (const want of [[3, 30], [6, 60]]) same(await (await all.pull()).read(), want, 'what was behind it');
    const {channels} = graph.stats(), to = (from, port) => channels.find((c) => c.from === from && c.to === port);
    check(to('sum.total', '').dropped === 2 && to('sum.total', '').pushed === 3 && to('sum.s', 'sum.s').length === 1, JSON.stringify(channels));

    // Errors pass where signals are wanted.
    await x.push({});
    await last.take().then(() => check(false, 'no error'), ({code}) => check(code === 'ErrInvalid', code));
    await all.pull().then(() => check(false, 'no error'), ({code}) => check(code === 'ErrInvalid', code));
    for (const wrong of ['eof', ['end'], [5], 5, [Symbol('s')]]) await fails('ErrInvalid', `signals ${typeof wrong}`, () => x.push(1, {signals: wrong}));
    graph.close();
    for (const wrong of [5, {openOn: 'eof'}, {closeOn: ['x']}, {ask: 5}, {asks: 1}, {get ask() { throw 0; }}]) {
      const g = (await gpu.graph()).task('t', ({x}) => x, ports);
      await throws('ErrInvalid', `predicate ${told(wrong)}`, () => g.input('t.x', {push: wrong}));
      await throws('ErrInvalid', 'hold', () => g.input('t.x', {hold: 1}));
      g.close();
      await throws('ErrClosed', 'a closed graph', () => g.reconsider());
    }
    const g = (await gpu.graph()).task('t', (_, {signals, setSignals}) => {
      const codes = [() => signals('z'), () => setSignals('w', []), () => setSignals('y', ['x'])].map((call) => { try { call(); return ''; } catch ({code}) { return code; } });
      setSignals('y', ['devNull']);
      return codes.join() === 'ErrName,ErrName,ErrInvalid' ? {y: 1, z: 2} : {y: 3, z: 4};
    }, {inputs: ['x'], outputs: ['y', {name: 'z'}]}), into = g.input('t.x'), y = g.output('t.y'), z = g.output('t.z');
    g.run();
    await into.push(1);
    check(await z.pull() === 2, 'mistakes with signals');
    const never = y.pull();
    await g.stop();
    await fails('ErrClosed', 'a block for nobody', () => never);
    g.close();
  }),

  gates: onBoth(async (gpu) => {
    // A loop: a value goes round until the gate opens, and comes out; a control channel is served first.
    const graph = await gpu.graph();
    graph.task('halve', async ({x}) => {
      const half = x.mul(0.5).eval(), small = (await half.max().value()) < 1;
      return {again: half, done: small ? gpu.ones(1, 1) : gpu.zeros(1, 1), out: half};
    }, {inputs: ['x'], outputs: [{name: 'done', optional: true}, {name: 'again', closedBy: 'done'}, {name: 'out', openedBy: 'done'}]})
      .connect('halve.again', 'halve.x', {control: true, capacity: 2});
    const x = graph.input('halve.x'), out = graph.output('halve.out');
    await throws('ErrName', 'a second channel', () => graph.input('halve.x'));
    graph.run();
    const {buffers} = gpu.stats();
    for (const [start, want] of [[[16, 2], [0.5, 0.0625]], [[3, 1], [0.75, 0.25]], [[0.5, 0.25], [0.25, 0.125]]]) {
      await x.push(gpu.matrix(1, 2, start));
      const m = await out.pull();
      same(await m.read(), want, `out of the loop of ${start}`);
      m.close();
    }
    const {runs} = graph.stats().tasks[0];
    check(runs === 5 + 2 + 1, `${runs} runs`);
    await graph.stop();
    graph.close();
    await gpu.sync();
    check(gpu.stats().buffers <= buffers, `${gpu.stats().buffers} buffers, ${buffers} before`);
    // Other values open gates, too: the end of a stream, and what is true.
    const gate = await gpu.graph();
    gate.task('t', ({x}) => ({g: x, y: x}), {inputs: ['x'], outputs: [{name: 'g', optional: true}, {name: 'y', openedBy: 'g'}]});
    const into = gate.input('t.x'), y = gate.output('t.y');
    gate.run();
    for (const [value, signals] of [[0], [null], [''], [false], [0, ['eof']], [7]]) await into.push(value, {signals});
    check(await y.pull() === 0 && await y.pull() === 7, 'the end of the stream, and 7');
    gate.close();
  }),

  writing: onBoth(async (gpu) => {
    // An output in place of an input: written where it is, and a clone where others read it.
    const graph = await gpu.graph();
    graph.task('fork', ({x}) => x, {inputs: ['x'], outputs: ['x']})
      .task('write', ({x, w}) => { x.assign(x.mul(10)); w.assign(w.add(1)); return {w: undefined}; }, {inputs: ['x'], sticky: ['w'], outputs: [{name: 'x', inPlace: 'x'}, {name: 'w', inPlace: 'w'}]})
      .task('read', ({x}) => x.add(0.5), {inputs: ['x'], outputs: ['y']}).connect('fork.x', 'write.x').connect('fork.x', 'read.x').set('write.w', gpu.zeros(1, 1));
    const x = graph.input('fork.x'), outputs = ['write.x', 'write.w', 'read.y'].map((port) => graph.output(port));
    graph.run();
    for (const i of [1, 2]) {
      await x.push(gpu.matrix(1, 2, [i, -i]));
      const blocks = await Promise.all(outputs.map((output) => output.pull())), values = await Promise.all(blocks.map((m) => m.read()));
      same(values[0], [10 * i, -10 * i], 'what was written');
      same(values[1], [1], 'the sticky one stays what it was');
      same(values[2], [i + 0.5, -i + 0.5], 'what the other task reads');
      for (const m of blocks) m.close();
    }
    check(graph.stats().clones >= 2, `${graph.stats().clones} clones`);
    graph.close();
    const alone = (await gpu.graph()).task('t', ({x}) => { x.assign(x.add(1)); }, {inputs: ['x'], outputs: [{name: 'y', inPlace: 'x'}]}), into = alone.input('t.x'), y = alone.output('t.y'), m = gpu.matrix(1, 1, [5]);
    alone.run();
    await into.push(m);
    const returned = await y.pull();
    check(returned === m && await m.value() === 6 && alone.stats().clones === 0, 'alone it is written where it is');
    alone.close();
    m.close();
    const tensors = (await gpu.graph()).task('t', ({x}) => x, {inputs: ['x'], outputs: ['a', 'b']}).task('u', ({x}) => x, {inputs: ['x'], outputs: [{name: 'y', inPlace: 'x'}]});
    tensors.connect('t.a', 'u.x');
    const [t, b, u] = [tensors.input('t.x'), tensors.output('t.b'), tensors.output('u.y')];
    tensors.run();
    await t.push(gpu.tensor([1, 2], [1, 2, 1]));
    await fails('ErrInvalid', 'a block without its outputs\' names', () => b.pull());
    await fails('ErrInvalid', 'what passed through', () => u.pull());
    tensors.close();
  }),

  names: onBoth(async (gpu) => {
    // Ports may have the names of what every object has.
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const graph = await gpu.graph();
      graph.task(name, (inputs) => ({[name]: inputs[name] + inputs.by, last: Object.keys(inputs).join()}), {inputs: [name], sticky: ['by'], outputs: [name, 'last']});
      graph.task('none', ({x}) => ({x}), {inputs: ['x'], outputs: ['x', name]});
      const inputs = [name, 'none'].map((task) => graph.input(`${task}.${task === name ? name : 'x'}`)), outputs = [`${name}.${name}`, `${name}.last`, 'none.x', `none.${name}`].map((port) => graph.output(port));
      graph.set(`${name}.by`, 2).run();
      await Promise.all(inputs.map((input) => input.push(40)));
      check(await outputs[0].pull() === 42 && await outputs[1].pull() === `${name},by`, `a port ${name}`);
      await fails('ErrInvalid', `an output ${name} that is not returned`, () => outputs[3].pull());
      graph.close();
    }
    const graph = await gpu.graph();
    await throws('ErrInvalid', 'a port without a name', () => graph.task('t', () => 1, {inputs: ['']}));
    class Result { get a() { return 5; } get b() { return 6; } }
    graph.task('t', () => new Result(), {inputs: ['x'], outputs: ['a', 'b']});
    const input = graph.input('t.x'), outputs = ['a', 'b'].map((name) => graph.output(`t.${name}`));
    graph.run();
    await input.push(1);
    same([await outputs[0].pull(), await outputs[1].pull()], [5, 6], 'outputs that a class has');
    graph.close();
  }),

  closing: onBoth(async (gpu) => {
    // Closed while tasks wait for a device and while bodies run, whose results nobody gets.
    const {buffers} = gpu.stats(), graph = await gpu.graph({concurrency: 1, mode: 'priority', sync: true});
    let go = () => {};
    const gate = new Promise((done) => { go = done; }), ended = [];
    for (const name of ['a', 'b']) graph.task(name, async ({x}, {signal}) => { await gate; ended.push(signal.aborted); return {y: x.add(1), z: x}; }, {inputs: ['x'], outputs: ['y', {name: 'z', optional: true, inPlace: 'x'}]});
    const [a, b] = ['a', 'b'].map((name) => [graph.input(`${name}.x`), graph.output(`${name}.y`)]);
    graph.run();
    await a[0].push(gpu.ones(1, 1));
    await b[0].push(gpu.ones(1, 1));
    const pulls = [a[1].pull(), b[1].take()], stop = graph.stop();
    await later();
    graph.close();
    go();
    for (const promise of [...pulls, stop]) await fails('ErrClosed', 'a closed graph', () => promise);
    await later(5);
    check(ended.join() === 'true', `one was at work: ${ended}`);
    await gpu.sync();
    check(gpu.stats().buffers <= buffers, `${gpu.stats().buffers} buffers, ${buffers} before`);
  }),
};
