// SPDX-License-Identifier: Apache-2.0

// Tests of task graphs.

import {SubletError, init} from '/dist/index.mjs';
import {Mine, hostile, members, throwing, within} from './hostile-testing.mjs';
import {check, fails, noise, onBoth, reference, same, throws, webgpu} from './testing.mjs';

const n = 4, elements = (seed) => noise(n * n, seed), at = (v) => (i, j) => v[i * n + j];

/** A graph of two layers with sticky weights, and what comes out of it by float64. */
async function network(gpu, weights, options) {
  const graph = await gpu.graph();
  for (const layer of ['one', 'two']) graph.task(layer, ({x, w}) => x.matmul(w).relu(), {inputs: ['x'], sticky: ['w'], outputs: ['y'], ...options});
  graph.connect('one.y', 'two.x', {capacity: 2}).set('one.w', gpu.matrix(n, n, weights[0])).set('two.w', gpu.matrix(n, n, weights[1]));
  return {graph, x: graph.input('one.x'), y: graph.output('two.y')};
}

function layers(x, weights) {
  let now = x, bound = x.map(() => 0);
  for (const w of weights) {
    const product = reference(at(now), at(w), n, n, n), through = reference((i, j) => at(bound)(i, j), (i, j) => Math.abs(at(w)(i, j)), n, n, n);
    bound = product.bound.map((b, i) => b + through.c[i] + 1e-6);
    now = product.c.map((v) => Math.max(v, 0));
  }
  return {now, bound};
}

/** A graph whose task runs on either of two devices: with sync it has what it computed. */
async function lossy(gpus, body) {
  const [gpu, other] = gpus, graph = await gpu.graph({gpus: [other], sync: true}), seen = [];
  graph.task('t', async (inputs, context) => { seen.push(gpus.indexOf(context.gpu)); return body(inputs, context, seen.length); }, {inputs: ['x'], sticky: ['w'], outputs: ['y'], prefer: gpu});
  const x = graph.input('t.x'), y = graph.output('t.y');
  graph.set('t.w', 10).run();
  const through = async (block) => {
    await x.push(block);
    return y.pull();
  };
  return {graph, seen, through, retries: () => graph.stats().tasks[0].retries};
}

export const tests = {
  async loss() {
    // A device is lost in the middle of a run, which begins anew on the other one with what it had. The device comes back.
    const gpus = [await webgpu(), await webgpu()], {seen, graph, through, retries} = await lossy(gpus, async ({x, w}, {gpu}, run) => {
      const m = gpu.matrix([[x, w]]).add(1).eval();
      if (run === 2) {
        gpus[0].device.destroy();
        await gpus[0].lost;
      }
      return m;
    });
    for (const [k, where] of [[1, '0'], [2, '0,0,1'], [3, '0,0,1,1']]) {
      const m = await through(k);
      same(await m.read(), [k + 1, 11], `block ${k}`);
      m.close();
      check(seen.join() === where, `it ran on ${seen}, want ${where}`);
    }
    await gpus[0].reopen();
    same(await (await through(4)).read(), [5, 11], 'after it is back');
    check(seen.join() === '0,0,1,1,0' && retries() === 1 && graph.stats().tasks[0].failures === 0, `${seen}, ${retries()}`);
    // What was only on the device that is lost is an error, and so is a task that may run nowhere else.
    const only = gpus[0].matrix([[1, 2]]).add(1).eval();
    await gpus[0].sync();
    gpus[0].device.destroy();
    await gpus[0].lost;
    const next = await gpus[1].graph({gpus: [gpus[0]]});
    next.task('any', ({x}) => x.add(1), {inputs: ['x'], outputs: ['y']}).task('there', ({x}, {gpu}) => gpu.matrix([[x]]).read().then(() => x), {inputs: ['x'], outputs: ['y'], gpu: gpus[0]});
    const [a, b, c, d] = [next.input('any.x'), next.output('any.y'), next.input('there.x'), next.output('there.y')];
    next.run();
    await a.push(only);
    await fails('ErrDeviceLost', 'a block of the lost device', () => b.pull());
    await c.push(1);
    await fails('ErrDeviceLost', 'a task of the lost device', () => d.pull());
    check(next.stats().tasks.map(({retries}) => retries).join() === '0,0', JSON.stringify(next.stats().tasks));
    for (const gpu of gpus) gpu.close();
    check(graph.state === 'running' || graph.state === 'closed', graph.state);
  },

  gone: onBoth(async (gpu) => {
    // The same with a Gpu that is closed in the middle of a run, and of which the graph's others are left.
    const gpus = [await init({device: 'simd', threads: 1}), gpu], {graph, seen, through, retries} = await lossy(gpus, async ({x, w}, {gpu}, run) => {
      if (run === 2) gpus[0].close();
      const m = gpu.matrix([[x, w]]).add(1).eval();
      await m.read();
      return m;
    });
    for (const k of [1, 2, 3]) {
      const m = await through(k);
      same(await m.read(), [k + 1, 11], `block ${k}`);
      m.close();
    }
    check(seen.join() === '0,0,1,1' && retries() === 1, `${seen}, ${retries()}`);
    graph.close();
  }),

  pipeline: onBoth(async (gpu) => {
    const weights = [elements(1), elements(2)], {graph, x, y} = await network(gpu, weights), {buffers} = gpu.stats(), count = 20;
    check(String(graph) === 'Graph of 2 tasks, new', String(graph));
    graph.run();
    const pushing = (async () => { for (let i = 0; i < count; i++) await x.push(gpu.matrix(n, n, elements(10 + i))); })();
    for (let i = 0; i < count; i++) {
      const m = await y.pull(), want = layers(elements(10 + i), weights);
      same(await m.read(), want.now, `block ${i}`, want.bound);
      m.close();
    }
    await pushing;
    await graph.stop();
    const {tasks, channels} = graph.stats();
    check(tasks.map(({runs, failures}) => `${runs} ${failures}`).join() === '20 0,20 0', JSON.stringify(tasks));
    check(channels.every(({peak, capacity, length}) => peak <= capacity && length === 0), JSON.stringify(channels));
    check(graph.dot().includes('"one" -> "two" [label="one.y two.x 0/2"]'), graph.dot());
    await gpu.sync();
    check(gpu.stats().buffers <= buffers + 2, 'blocks are closed');
    await fails('ErrClosed', 'a push after stop', () => x.push(gpu.zeros(n, n)));
    await fails('ErrClosed', 'a pull after stop', () => y.pull());
    graph.run();
    await x.push(gpu.matrix(n, n, elements(5)));
    same(await (await y.pull()).read(), layers(elements(5), weights).now, 'it goes on', layers(elements(5), weights).bound);
    graph.close();
  }),

  shapes: onBoth(async (gpu) => {
    // A block for two tasks and an output, a cycle with an initial block, values that are no matrices, tensors, what is passed on.
    const graph = await gpu.graph();
    graph.task('fork', ({x}) => x, {inputs: ['x'], outputs: ['x']})
      .task('twice', ({x}) => x.mul(2), {inputs: ['x'], outputs: ['y']})
      .task('count', async ({x, s}) => ({s: s.add(1), y: (await x.sum().read())[0] + 1000 * (await s.read())[0]}), {inputs: ['x', 's'], outputs: ['s', 'y']})
      .task('tensor', ({x, y}) => x.tensor(1, 2, 2).add(y), {inputs: ['x', 'y'], outputs: ['t']});
    graph.connect('fork.x', 'twice.x').connect('fork.x', 'count.x').connect('count.s', 'count.s', {initial: gpu.zeros(1, 1)}).connect('twice.y', 'tensor.x').connect('count.y', 'tensor.y');
    const x = graph.input('fork.x'), whole = graph.output('fork.x'), t = graph.output('tensor.t');
    graph.run();
    for (let i = 0; i < 3; i++) await x.push(gpu.matrix([[1, 2], [3, i]]));
    for (let i = 0; i < 3; i++) {
      const m = await whole.pull(), out = await t.pull(), sum = 6 + i + 1000 * i;
      same(await m.read(), [1, 2, 3, i], 'what was pushed');
      check(out.shape.join() === '1,2,2', `shape ${out.shape}`);
      same(await out.read(), [2 + sum, 4 + sum, 6 + sum, 2 * i + sum], 'a tensor');
      m.close();
      out.close();
    }
    graph.close();
    await fails('ErrClosed', 'a closed graph', () => whole.pull());
  }),

  failures: onBoth(async (gpu) => {
    const mine = new RangeError('mine'), graph = await gpu.graph();
    graph.task('a', ({x}) => { if (x === 2) throw mine; return x === 3 ? undefined : x === 4 ? gpu.zeros(1, 2).add(gpu.zeros(3, 4)) : gpu.ones(1, 1).mul(x); }, {inputs: ['x'], outputs: ['y']})
      .task('b', ({y}) => y.add(1), {inputs: ['y'], outputs: ['z']}).connect('a.y', 'b.y');
    const x = graph.input('a.x', {capacity: 1}), z = graph.output('b.z');
    graph.run();
    const results = [];
    for (const value of [1, 2, 3, 4, 5]) {
      await x.push(value);
      results.push(await z.pull().then((m) => m.value(), (error) => error));
    }
    check(results[1] === mine, `${results[1]}`);
    check(results[2].code === 'ErrInvalid' && results[3].code === 'ErrShape', `${results[2]}, ${results[3]}`);
    same([results[0], results[4]], [2, 6], 'others');
    check(graph.stats().tasks.map(({runs, failures}) => `${runs} ${failures}`).join() === '5 3,5 0', JSON.stringify(graph.stats().tasks));
    const waiting = z.pull(), controller = new AbortController(), aborted = z.pull({signal: controller.signal});
    controller.abort('enough');
    await fails('ErrAborted', 'given up', () => aborted);
    await fails('ErrAborted', 'given up before', () => x.push(1, {signal: AbortSignal.abort()}));
    let signal;
    const slow = await gpu.graph();
    slow.task('slow', async ({x}, context) => { signal = context.signal; await new Promise((done) => signal.addEventListener('abort', done)); return x; }, {inputs: ['x'], outputs: ['y']});
    const into = slow.input('slow.x', {capacity: 1}), out = slow.output('slow.y');
    slow.run();
    const {buffers} = gpu.stats();
    await into.push(gpu.zeros(1, 1));
    await into.push(gpu.zeros(1, 1));
    const full = into.push(5), stopping = slow.stop(), pulled = out.pull();
    await fails('ErrClosed', 'what waits when the graph is stopped', () => full);
    slow.close();
    for (const promise of [stopping, pulled]) await fails('ErrClosed', 'what waits when the graph is closed', () => promise);
    check(signal.aborted, 'its tasks are told');
    graph.close();
    await fails('ErrClosed', 'a pull that waits', () => waiting);
    await new Promise((done) => { setTimeout(done); });
    await gpu.sync();
    check(gpu.stats().buffers <= buffers + 1, 'what was on its way is closed');
  }),

  mistakes: onBoth(async (gpu) => {
    const body = ({x}) => x, ports = {inputs: ['x'], outputs: ['y']}, make = async () => (await gpu.graph()).task('a', body, ports).task('b', body, ports);
    for (const [code, what, wrong] of [
      ['ErrName', 'a name', (g) => g.task('a.b', body, ports)], ['ErrName', 'a name twice', (g) => g.task('a', body, ports)], ['ErrInvalid', 'no function', (g) => g.task('c', 5, ports)],
      ['ErrInvalid', 'ports', (g) => g.task('c', body, {inputs: 'x'})], ['ErrName', 'two ports', (g) => g.task('c', body, {inputs: ['x', 'x']})], ['ErrInvalid', 'an option', (g) => g.task('c', body, {input: []})],
      ['ErrInvalid', 'no device', (g) => g.task('c', body, {...ports, gpu: {}})], ['ErrName', 'no port', (g) => g.connect('a.z', 'b.x')], ['ErrName', 'no task', (g) => g.connect('a.y', 'c.x')],
      ['ErrName', 'an input', (g) => g.connect('a.x', 'b.x')], ['ErrName', 'a symbol', (g) => g.input(Symbol('s'))], ['ErrInvalid', 'a capacity', (g) => g.input('a.x', {capacity: 0})],
      ['ErrName', 'two channels', (g) => { g.input('a.x'); g.connect('b.y', 'a.x'); }], ['ErrName', 'no sticky', (g) => g.set('a.x', 1)], ['ErrInvalid', 'nothing comes', (g) => g.run()],
      ['ErrInvalid', 'nothing takes', (g) => { g.input('a.x'); g.connect('a.y', 'b.x').run(); }], ['ErrInvalid', 'a cycle', (g) => g.connect('a.y', 'b.x').connect('b.y', 'a.x').run()],
      ['ErrInvalid', 'a task behind its own block', (g) => { g.connect('a.y', 'a.x', {initial: 1, capacity: 1}); g.input('b.x'); g.output('b.y'); g.run(); }],
      ['ErrInvalid', 'a cycle that is full', (g) => g.connect('a.y', 'b.x', {initial: 1, capacity: 1}).connect('b.y', 'a.x', {initial: 1, capacity: 1}).run()],
      ['ErrInvalid', 'no input', (g) => g.task('c', body, {sticky: ['w']}).run()], ['ErrClosed', 'closed', (g) => { g.close(); g.run(); }],
      ['ErrInvalid', 'late', (g) => { g.connect('a.y', 'b.x').connect('b.y', 'a.x', {initial: 1}).run().task('c', body, ports); }],
    ]) {
      const graph = await make();
      await throws(code, what, () => wrong(graph));
      graph.close();
    }
    const closed = gpu.zeros(1, 1), graph = await make(), x = graph.input('a.x');
    closed.close();
    for (const value of [closed, new Proxy({}, {get() { throw 0; }}), new Proxy({}, {getPrototypeOf() { throw 0; }})]) await x.push(value).catch(({code}) => check(code === 'ErrClosed' || code === 'ErrInvalid', code));
    await fails('ErrClosed', 'a closed matrix', () => x.push(closed));
    graph.close();
    graph.close();
  }),

  stopping: onBoth(async (gpu) => {
    // A graph that is being stopped does not run on before it has stopped, and who waits for that is told.
    const graph = (await gpu.graph()).task('a', ({x}) => x + 1, {inputs: ['x'], outputs: ['y']}), x = graph.input('a.x'), y = graph.output('a.y');
    graph.run();
    await x.push(1);
    const stop = graph.stop();
    await throws('ErrInvalid', 'run before it has stopped', () => graph.run());
    await within(5000, stop, 'stop');
    check(await y.pull() === 2 && graph.state === 'stopped', graph.state);
    graph.run().run();
    await x.push(2);
    check(await y.pull() === 3, 'it goes on');
    graph.close();
  }),

  predicates: onBoth(async (gpu) => {
    // Functions of predicates that give up the call that they are asked for, or close the graph: nobody else waits for ever, and nothing stays open.
    const graph = (await gpu.graph()).task('a', ({x}) => x, {inputs: ['x'], outputs: ['y']}), call = new AbortController();
    const x = graph.input('a.x', {capacity: 1, push: {ask: (value) => { if (value === 1) call.abort(); return true; }}}), y = graph.output('a.y', {capacity: 1});
    graph.run();
    const pushes = [x.push(1, {signal: call.signal}), x.push(2), x.push(3)];
    for (const want of [1, 2, 3]) check(await within(5000, y.pull(), `block ${want}`) === want, `block ${want}`);
    await within(5000, Promise.all(pushes), 'the calls of push');
    graph.close();
    const closing = (await gpu.graph()).task('a', ({x}) => x, {inputs: ['x'], outputs: ['y']}), m = gpu.ones(1, 1);
    const input = closing.input('a.x', {push: {ask: () => { closing.close(); return true; }}});
    closing.output('a.y');
    closing.run();
    await input.push(m);
    check(m.closed, 'what was sent into a graph that closed then is closed');
  }),

  misuse: onBoth(async (gpu) => {
    // Every member with whatever may be passed by mistake: errors of ours, and nothing that waits for ever.
    const graph = (await gpu.graph()).task('a', ({x}) => x, {inputs: ['x'], outputs: ['y']}), x = graph.input('a.x'), y = graph.output('a.y');
    graph.run();
    const wrong = [undefined, null, NaN, '', 'a.x', Symbol('s'), {}, [], throwing, {get capacity() { throw new Mine('mine'); }}, {signal: 5}, hostile(), new Proxy([], {get: throwing}), AbortSignal.abort()];
    const judge = (error) => { if (!(error instanceof SubletError) && !(error instanceof Mine)) throw error; };
    for (const sample of [await gpu.graph(), graph, x, y]) {
      for (const [key, {value}] of members(sample)) {
        if (typeof value !== 'function' || ['close', 'stop', 'pull', 'take', Symbol.dispose].includes(key)) continue;
        for (const a of wrong) {
          for (const b of wrong) {
            try {
              const made = sample[key](a, b, b);
              if (key === 'push') await within(5000, Promise.all([made.then(() => y.pull()).catch(judge)]), key);
            } catch (error) {
              judge(error);
            }
          }
        }
      }
    }
    for (const a of wrong.slice(1, -1)) {
      for (const call of ['pull', 'take']) await fails('ErrInvalid', call, () => y[call]({signal: a}));
      await graph.stop(a).catch(judge);
      graph.run();
    }
    await x.push(7);
    check(await y.pull() === 7, 'what comes next');
    graph.close();
  }),

  devices: onBoth(async (gpu) => {
    // A task on another device gets its blocks there, and what it makes goes on from there.
    const other = await init({device: 'simd', threads: 1}), weights = [elements(1), elements(2)], {graph, x, y} = await network(gpu, weights), there = await gpu.graph();
    there.task('move', ({x, t}, context) => { check(context.gpu === other, 'the device'); return {x: x.add(1), t: t.mul(2)}; }, {inputs: ['x', 't'], outputs: ['x', 't'], gpu: other});
    const [a, t, b, u] = [there.input('move.x'), there.input('move.t'), there.output('move.x'), there.output('move.t')];
    there.run();
    graph.run();
    await a.push(gpu.matrix(n, n, elements(3)));
    await t.push(gpu.tensor(elements(4), [2, 2, 4]));
    const half = await b.pull(), tensor = await u.pull();
    check(tensor.shape.join() === '2,2,4', `${tensor.shape}`);
    same(await tensor.read(), elements(4).map((v) => 2 * v), 'a tensor');
    await fails('ErrForeign', 'a matrix of the other device', () => half.add(gpu.zeros(n, n)));
    await x.push(half);
    const want = layers(elements(3).map((v) => v + 1), weights), m = await y.pull();
    same(await m.read(), want.now, 'there and back', want.bound);
    graph.close();
    there.close();
    other.close();
  }),
};
