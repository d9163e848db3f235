// SPDX-License-Identifier: Apache-2.0

import assert from 'node:assert/strict';
import {test} from 'node:test';

import {Expr} from '../src/expr.mjs';
import {Fn} from '../src/func.mjs';
import {Matrix} from '../src/matrix.mjs';
import {Command, Op} from '../src/protocol.mjs';
import {instructions, newGpu, turn} from './fake.mjs';

const rejects = (code, promise) => assert.rejects(promise, {name: 'SubletError', code});

test('what one task does goes in one message', async () => {
  const {program, gpu} = newGpu();
  const a = gpu.zeros(2, 2), b = a.add(1).eval();
  b.assign(b.mul(2));
  a.close();
  assert.equal(program.messages.length, 0);
  await turn();
  assert.equal(program.messages.length, 1);
  assert.deepEqual(program.commands().map((c) => c.command), [Command.New, Command.Eval, Command.Assign, Command.Close, Command.Flush]);
});

test('an evaluation is one command', async () => {
  const {program, gpu} = newGpu();
  const a = gpu.zeros(2, 3), b = gpu.zeros(3, 2);
  const c = a.matmul(b).add(1).relu().eval();
  assert.ok(c instanceof Matrix && c.mode === 'owned' && c.shape.join() === '2,2');
  await turn();
  const {words} = program.commands()[2];
  assert.deepEqual(instructions(words.slice(1)).map(([op]) => op), [Op.Leaf, Op.Leaf, Op.MatMul, Op.Scalar, Op.Add, Op.Relu]);
});

test('a target is encoded apart from what is assigned to it', async () => {
  const {program, gpu} = newGpu();
  const a = gpu.zeros(2, 2);
  a.T.assign(a.T.add(a));
  await turn();
  const [target, ...expression] = program.commands()[1].words;
  assert.equal(target, 1);
  assert.deepEqual(instructions(expression).map(([op]) => op), [Op.Leaf, Op.Transpose, Op.Leaf, Op.Transpose, Op.Add]);
});

test('a burst is posted in parts', async () => {
  const {program, gpu} = newGpu();
  let a = gpu.zeros(2, 2);
  for (let i = 0; i < 3000; i++) a = a.add(1).eval();
  assert.ok(program.messages.length > 2);
  await turn();
  assert.equal(program.commands().filter((c) => c.command === Command.Eval).length, 3000);
});

test('handles are used again', () => {
  const {program, gpu} = newGpu();
  for (let i = 0; i < 100; i++) gpu.zeros(1, 1).close();
  gpu.flush();
  assert.ok(program.commands().filter((c) => c.command === Command.New).every((c) => c.words[0] === 1));
});

test('data is read before the call returns, or copied', () => {
  const {program, gpu} = newGpu();
  const mine = new Float32Array([1, 2]);
  gpu.matrix(1, 2, mine);
  assert.equal(program.messages.length, 1, 'posted at once');
  assert.deepEqual(program.commands().map((c) => c.command), [Command.New]);
  assert.equal(program.commands()[0].words[7], 8, 'bytes');
  gpu.matrix(1, 2, [1, 2]);
  assert.equal(program.messages.length, 1, 'a converted copy can wait');
});

test('an answer settles its promise', async () => {
  const {program, session, gpu} = newGpu();
  const a = gpu.matrix(1, 2, [1, 2]);
  const reading = a.read(), failing = a.add(1).read(), waiting = gpu.sync();
  const tickets = program.commands().filter((c) => [Command.Read, Command.Wait].includes(c.command)).map((c) => c.words[0]);
  const [, object, bytes] = program.commands().find((c) => c.command === Command.Read)?.words ?? [];
  assert.equal(bytes, 8);
  const target = session.takeObject(object);
  assert.ok(target instanceof Uint8Array && target.length === 8);
  assert.equal(session.takeObject(object), undefined, 'taken once');
  new Float32Array(target.buffer).set([5, 6]);
  session.settle(tickets[0]);
  session.settle(tickets[0]); // twice does no harm
  session.settle(tickets[1], null, 'ErrCompile', 'line 1');
  session.settle(tickets[2]);
  assert.deepEqual([...await reading], [5, 6]);
  await rejects('ErrCompile', failing);
  await waiting;
});

test('what waits can be given up', async () => {
  const {session, gpu, sent} = newGpu(), a = gpu.matrix(1, 1, [1]), reason = new Error('mine');
  const calls = [
    (options) => a.read(options), (options) => a.read(new Float32Array(1), options), (options) => a.read(undefined, options),
    (options) => a.value(options), (options) => a.sync(options), (options) => gpu.sync(options),
  ];
  for (const call of calls) {
    sent();
    const abort = new AbortController(), {signal} = abort, given = call({signal});
    const [ticket] = sent().find((c) => [Command.Read, Command.Sync, Command.Wait].includes(c.command)).words;
    abort.abort(reason);
    assert.deepEqual(sent(), [{command: Command.Cancel, words: [ticket]}]);
    session.settle(ticket, null, 'ErrAborted', 'it was aborted');
    await assert.rejects(given, {code: 'ErrAborted', cause: reason});
    await rejects('ErrAborted', call({signal}));
    assert.deepEqual(sent(), [], 'an aborted call is not made');
    await rejects('ErrInvalid', call({signal: {}}));
    const done = new AbortController(), quick = call({signal: done.signal});
    session.settle(sent().find((c) => c.words.length > 0).words[0]);
    await quick;
    done.abort();
    assert.deepEqual(sent(), [], 'what is done cannot be given up');
  }
});

test('a program that rests is not asked to', async () => {
  const {program, session, gpu, sent} = newGpu(), asked = () => sent().filter((c) => c.command === Command.Wait);
  /** Whether sync() asks the program. */
  const asks = async (options) => {
    const waiting = gpu.sync(options), [wait] = asked();
    if (wait) session.settle(wait.words[0]);
    await waiting;
    return wait !== undefined;
  };
  assert.ok(await asks(), 'the program has said nothing yet');
  program.unfinished = -1;
  const a = gpu.zeros(1, 1);
  assert.ok(!await asks(), 'what was queued is posted, and done');
  assert.equal(program.messages.length, 0, 'it was posted');
  assert.ok(!await asks());
  gpu.flush();
  assert.equal(program.messages.length, 0, 'there is nothing to flush');
  assert.ok(await asks({signal: new AbortController().signal}));
  a.assign(2);
  assert.ok(!await asks());
  program.unfinished = 1;
  gpu.zeros(1, 1);
  gpu.flush();
  assert.ok(await asks(), 'it is at work');
  program.unfinished = 0;
  gpu.zeros(1, 1);
  gpu.flush();
  assert.ok(await asks(), 'it has an error to tell');
  program.unfinished = -1;
  gpu.zeros(1, 1);
  gpu.flush();
  program.end('exit code 2');
  await turn();
  await rejects('exited', gpu.sync());
});

test('borrowed data is copied when it is not taken', async () => {
  const {program, session, gpu} = newGpu();
  program.unfinished = 1; // Go waits for something
  const mine = new Float32Array([1, 2]);
  const m = gpu.matrix(1, 2, mine);
  mine.fill(9);
  const object = program.commands().find((c) => c.command === Command.New)?.words[6];
  assert.deepEqual([...new Float32Array(session.takeObject(object).buffer)], [1, 2]);
  await turn();
  assert.equal(program.resumed, 1, 'Go is given a turn');
  assert.equal(m.closed, false); // held until here
});

test('whoever waits lets the program go on after the call, which its garbage collector may have interrupted', async () => {
  const {program, gpu} = newGpu(), a = gpu.zeros(1, 1);
  gpu.flush();
  await turn();
  assert.equal(program.resumed, 0, 'nobody waits');
  a.read().catch(() => {});
  await turn();
  assert.equal(program.resumed, 1);
});

test('the end of the program ends everything', async () => {
  const {program, gpu} = newGpu();
  const a = gpu.zeros(1, 1), reading = a.read();
  let released = 0;
  gpu.wrap(new Float32Array(1), 1, 1, {release: () => released++});
  program.end('exit code 2');
  await rejects('exited', reading);
  assert.throws(() => gpu.zeros(1, 1), {code: 'exited'});
  assert.throws(() => a.eval(), {code: 'exited'});
  await rejects('exited', a.read());
  await rejects('exited', gpu.sync());
  a.close();
  gpu.close();
  await turn();
  assert.equal(released, 1);
  assert.ok(program.stopped);
});

test('a trap is the end', async () => {
  const {program, gpu} = newGpu();
  const a = gpu.zeros(1, 1);
  program.post = () => { throw new WebAssembly.RuntimeError('unreachable'); };
  await rejects('exited', a.read());
  assert.throws(() => gpu.flush(), {code: 'exited'});
});

test('close', async () => {
  const {program, gpu} = newGpu();
  const reading = gpu.zeros(1, 1).read();
  gpu.close();
  gpu.close();
  assert.deepEqual(program.commands().at(-1), {command: Command.End, words: []});
  assert.throws(() => gpu.zeros(1, 1), {code: 'ErrClosed'});
  program.end('exit code 0');
  await rejects('ErrClosed', reading);
});

test('a callback that never ends does not outlive the program', async () => {
  const {program, session, gpu} = newGpu();
  const file = rejects('ErrClosed', gpu.loadParams(new Promise(() => {})));
  const m = gpu.map(2, 3);
  const open = m.access(true, () => new Promise(() => {}));
  const ask = program.commands().find((c) => c.command === Command.Sync);
  session.settle(ask.words[0]);
  const waits = rejects('ErrClosed', open);
  await turn();
  gpu.close();
  program.end('exit');
  await Promise.race([Promise.all([waits, file]), turn().then(turn).then(() => assert.fail('it still waits'))]);
  const late = newGpu(), n = late.gpu.map(1, 1), after = n.access(false, () => assert.fail('called'));
  late.gpu.close();
  late.program.end('exit');
  await rejects('ErrClosed', after);
});

test('on WebGPU, closing waits for the next message, and nothing is flushed twice', async () => {
  const {program, session, gpu} = newGpu();
  session.device = /** @type {any} */ ({});
  const a = gpu.zeros(1, 1);
  gpu.flush();
  gpu.flush();
  assert.deepEqual(program.commands().map((c) => c.command), [Command.New, Command.Flush]);
  await turn();
  a.close();
  await turn();
  assert.equal(program.messages.length, 1);
  gpu.flush();
  assert.deepEqual(program.commands().slice(2).map((c) => c.command), [Command.Close, Command.Flush]);
  const b = gpu.zeros(1, 1);
  await turn();
  b.close();
  while (program.messages.length < 4) await turn(); // nobody calls, and it is posted all the same
  assert.deepEqual(program.commands().slice(4).map((c) => c.command), [Command.New, Command.Flush, Command.Close]);
});

test('a Gpu comes from init', () => {
  const {gpu} = newGpu(), info = {limits: {}, features: []};
  assert.throws(() => new gpu.constructor(gpu, info, null), {code: 'ErrInvalid'});
  assert.ok(!Object.isFrozen(info) && Object.getPrototypeOf(info) === Object.prototype, 'what it was given is as it was');
});

test('functions', async () => {
  const {program, gpu} = newGpu();
  const f = gpu.fn('/* fn no(x: f32) */ fn  f ( x: f32, y : f32, ) -> f32 { return x; }');
  assert.ok(f instanceof Fn && f.name === 'f' && f.arity === 2);
  assert.throws(() => gpu.fn('fn g(x: f32) { }'), {code: 'ErrSyntax', message: 'sublet: fn: g returns nothing'});
  const a = gpu.zeros(1, 1), x = a.apply(f, 2);
  assert.ok(x instanceof Expr);
  const held = x.eval();
  f.close();
  assert.throws(() => x.eval(), {code: 'ErrClosed'});
  assert.throws(() => a.apply(f, 2), {code: 'ErrClosed'});
  await turn();
  assert.deepEqual(program.commands().map((c) => c.command), [Command.Func, Command.New, Command.Eval, Command.Forget, Command.Flush]);
  assert.ok(held); // or else its collection would be a command, too
});

test('calls that Go gives up at the end were closed', async () => {
  const {session, gpu} = newGpu();
  const aborted = gpu.ones(1, 1).read(), right = gpu.ones(1, 1).read();
  session.settle(1, undefined, 'ErrAborted', 'sublet: page: it was aborted');
  await rejects('ErrAborted', aborted);
  gpu.close();
  session.settle(2, undefined, 'ErrAborted', 'sublet: page: it was aborted');
  await rejects('ErrClosed', right);
});

test('calls that Go gives up while it is told of the end were closed', async () => {
  const {program, session, gpu} = newGpu(), {post} = program, read = gpu.ones(1, 1).read();
  program.post = (/** @type {number} */ words) => {
    const unfinished = post(words);
    if (program.commands().at(-1)?.command === Command.End) session.settle(1, undefined, 'ErrAborted', 'sublet: page: it was aborted');
    return unfinished;
  };
  gpu.close();
  await rejects('ErrClosed', read);
});

test('nothing is repeated in the middle of a call, nor before what waits for its end', async () => {
  const {program, gpu} = newGpu(), rests = 1 << 17, a = gpu.zeros(2, 2), b = gpu.zeros(2, 2);
  let repeated = 0;
  program.repeating = {
    watch: () => {}, watched: () => ({launches: [{}]}),
    repeat: () => {
      repeated++;
      return undefined;
    },
  };
  const compute = () => {
    b.assign(a.add(1));
    gpu.flush();
  };
  program.unfinished = rests;
  for (let i = 0; i < 8; i++) compute();
  assert.ok(repeated > 0, 'nothing was repeated');
  let before = repeated;
  const {post} = program;
  program.post = (words) => {
    program.post = post;
    compute(); // an event of the page's, while the call waits for the rest of the program
    return post(words);
  };
  gpu.zeros(3, 3);
  compute();
  assert.equal(repeated, before, 'in the middle of a call');
  compute();
  assert.equal(repeated, ++before, 'after it');
  gpu.zeros(3, 3);
  program.rest.holds = true;
  gpu.flush();
  program.rest.holds = false;
  compute();
  assert.equal(repeated, before, 'before what waits');
});
