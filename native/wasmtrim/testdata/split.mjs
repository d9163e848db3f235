// SPDX-License-Identifier: Apache-2.0

// Runs a program that is split: node split.mjs program.wasm mode wasm_exec.js [argument ...]. With mode "each" the rest is there, but each of its functions
// that is called for the first time through the table has the program stop, and go on later; with "none" the rest is missing, and with "tell" the
// functions that are called are written to standard error.

import fs from 'node:fs';
import path from 'node:path';

const [file, mode, loader, ...args] = process.argv.slice(2);
Object.assign(globalThis, {fs, path});
await import(loader);
const go = new globalThis.Go();
go.argv = [file, ...args];
go.exit = (code) => { process.exitCode = code; };

let depth = 0, left = 0, stops = 0;
const later = [], own = new Map(), called = new Set();

const mod = new WebAssembly.Module(fs.readFileSync(file));
go.importObject.sublet_rest = {want: (f) => {
  if (mode === 'tell') return called.add(f), 0;
  if (mode === 'none') throw new Error(`function ${f} is not there`);
  if (own.size === 0) loadRest();
  exports.table.set(f, own.get(f));
  if (depth > 1 || exports.rigid.value !== 0) return 0;
  stops++;
  left = exports.g0.value;
  return 1;
}};
// Go's own calls the program until it takes the timeout, which one that has stopped does not.
go.importObject.gojs['runtime.scheduleTimeoutEvent'] = (sp) => {
  const id = go._nextCallbackTimeoutID++, run = () => {
    go._resume();
    if (go._scheduledTimeouts.has(id) && !go.exited) go._scheduledTimeouts.set(id, setTimeout(run, 1));
  };
  go._scheduledTimeouts.set(id, setTimeout(run, Number(go.mem.getBigInt64(sp + 8, true))));
  go.mem.setInt32(sp + 16, id, true);
};
const instance = new WebAssembly.Instance(mod, go.importObject), {exports} = instance;

/** Calls the stand-in, s, for the function i, for calls by functions of the rest, which do not note what they call: t = i; return s(argument). */
const told = new WebAssembly.Module(Buffer.from('0061736d0100000001060160017f017f02150301610173000001610174037f0101610169037f0003020100070501016600010a0c010a0023012400200010000b', 'hex'));

function loadRest() {
  const rest = new WebAssembly.Module(fs.readFileSync(file.replace('.wasm', '-rest.wasm'))), {table} = exports;
  const before = Array.from({length: table.length}, (_, i) => table.get(i));
  const [{module}] = WebAssembly.Module.imports(rest);
  new WebAssembly.Instance(rest, {...go.importObject, [module]: exports});
  before.forEach((f, i) => {
    if (table.get(i) === f) return;
    own.set(i, table.get(i));
    table.set(i, new WebAssembly.Instance(told, {a: {s: f, t: exports.told, i: new WebAssembly.Global({value: 'i32'}, i)}}).exports.f);
  });
}

function enter(name, ...args) {
  depth++;
  exports[name](...args);
  depth--;
  if (left && depth === 0) setTimeout(goOn);
}

function goOn() {
  exports.g0.value = left;
  left = 0;
  enter('go on');
  while (!left && later.length > 0) later.shift()();
}

const orLater = (run) => left ? later.push(run) : run();
const make = go._makeFuncWrapper;
go._makeFuncWrapper = (id) => {
  const call = make.call(go, id);
  return function (...args) { orLater(() => call.apply(this, args)); };
};
const resume = go._resume.bind(go);
go._resume = () => { if (!go.exited) resume(); }; // timers may be left
const running = {...exports, run: (...args) => enter('run', ...args), resume: () => orLater(() => go.exited || enter('resume'))};
process.on('exit', () => {
  if (mode === 'tell') console.error([...called].join('\n'));
  if (mode === 'each' && stops < 100) console.error(`only ${stops} stops`);
});
await go.run(Object.create(instance, {exports: {value: running}}));
