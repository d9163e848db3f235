// SPDX-License-Identifier: Apache-2.0

import {failure} from './errors.mjs';

/**
 * Where the rest of a program comes from. now compiles it at once; it is missing where that is impossible, and then the rest is loaded
 * before the program starts. forget: what was loaded is of no use.
 * @typedef {{load: (wanted: boolean) => Promise<WebAssembly.Module>, forget: () => void, now?: () => WebAssembly.Module}} Source
 */

/** The export of a program that is split by which it goes on; see native/wasmtrim/split.go. */
const GO_ON = 'go on';
const POST = 'sublet_post';

/**
 * The rest of a Go program: functions that it does not need at once. When one of them is called before it has come, the program stops where it
 * is, and goes on when it is there. Whatever is to enter the program meanwhile waits. Where the answer is needed at once, the rest
 * is loaded at once, which holds up the page.
 */
export class Rest {
  /** @type {Source | null} */
  #source = null;
  #imports;
  /** @type {Record<string, any>} */
  #exports = {};
  #present = true;
  /** How many calls of the program are under way, one within the other. */
  #depth = 0;
  /** Whether the call under way must not stop. */
  #bound = false;
  /** Whether the page waits for the rest in the middle of a call. Firefox lets the page have other events meanwhile, which have to wait. */
  #held = false;
  /** Where the program has stopped. @type {{sp: number, name: string, message: Uint32Array | null} | null} */
  #left = null;
  /** @type {(() => void)[]} */
  #later = [];
  #arena = 0;
  /** @type {Promise<void> | null} */
  #coming = null;
  #begun = false;
  #over = false;
  #arrived = () => {};
  /** Resolved when all of the program is there. @type {Promise<void>} */
  whole = new Promise((done) => { this.#arrived = done; });
  /** How many words of the next message are in the arena. @type {() => number} */
  composed = () => 0;
  /** Gets why the rest has not come when the program needs it. @type {(error: any) => void} */
  refuse = () => {};
  /** Gets what the program throws when it goes on. @type {(error: unknown) => void} */
  failed = () => {};

  /** @param {any} go the loader of Go, which gets what the program imports */
  constructor(go) {
    this.#imports = go.importObject;
    this.#imports.sublet_rest = {want: () => this.#want()};
    const make = go._makeFuncWrapper, waits = (/** @type {() => void} */ call) => this.#waits(call);
    go._makeFuncWrapper = (/** @type {number} */ id) => {
      const call = make.call(go, id);
      return function (/** @type {any[]} */ ...args) {
        // @ts-expect-error Go is told what the function is called on
        const run = () => call.apply(this, args);
        return waits(run) ? undefined : run();
      };
    };
  }

  /** The program is there. @param {WebAssembly.Instance} instance @param {Source} source of its rest @returns {Promise<WebAssembly.Instance>} for the loader of Go */
  async attach(instance, source) {
    const {exports} = instance;
    this.#exports = exports;
    if (typeof exports[GO_ON] !== 'function') { // a program that is not split
      this.#arrived();
      return instance;
    }
    this.#present = false;
    this.#source = source;
    if (!source.now) await this.#come(true);
    const entered = (/** @type {string} */ name) => (/** @type {number[]} */ ...args) => this.#enter(name, '', args);
    return Object.create(instance, {exports: {value: {...exports, run: entered('run'), resume: entered('resume')}}});
  }

  /** Whether calls wait, for the rest or for the end of another call. */
  get holds() { return this.#later.length > 0; }

  /** Whether it has not come yet. */
  get missing() { return !this.#present; }

  /** Whether a function has to wait for the rest; it is then called later. @param {() => void} call */
  #waits(call) {
    if (!this.#left && !this.#held) {
      if (this.#later.length > 0 && this.#depth === 0) this.#catchUp(); // it is behind what was held
      return false;
    }
    this.#later.push(call);
    return true;
  }

  /** Lets goroutines run that are ready. @param {() => void} resume */
  resume(resume) {
    if (this.#held) this.#later.push(resume);
    else if (!this.#left) resume(); // else they are let run when it goes on
  }

  /** Makes the calls that were held. One may stop for the rest: those behind it are then made when the program goes on. */
  #catchUp() {
    while (this.#later.length > 0 && !this.#left) this.#later.shift()?.();
  }

  /** @param {string} name @param {string} goesOn the name of the export that goes on with it @param {number[]} args @returns {any} */
  #enter(name, goesOn, args) {
    this.#depth++;
    try {
      return this.#exports[name](...args);
    } finally {
      this.#depth--;
      if (this.#left && this.#depth === 0) {
        this.#left.name = goesOn;
        this.#come(true).catch(() => {}); // reported
      } else if (this.#later.length > 0 && this.#depth === 0) {
        queueMicrotask(() => this.#guard(() => this.#catchUp()));
      }
    }
  }

  /** Called by the program for a function of the rest. @returns {number} 1 if it has to stop */
  #want() {
    if (this.#present) return 0;
    if (this.#bound || this.#depth > 1 || this.#exports.rigid.value !== 0) {
      this.#now();
      return 0;
    }
    this.#left = {sp: this.#exports.g0.value, name: '', message: null};
    return 1;
  }

  /** @param {number} words of the message in the arena */
  #message(words) { return new Uint32Array(this.#exports.mem.buffer, this.#arena, words); }

  /** Calls the program with a message in place of the one that is being composed, to which the call may add. @param {Uint32Array} message @param {() => void} call */
  #with(message, call) {
    const n = this.composed(), before = this.#message(n).slice();
    this.#message(message.length).set(message);
    call();
    this.#message(n).set(before);
  }

  /** Posts a message, and returns how many are not finished. @param {number} words @param {boolean} lends whether memory of the caller's goes with it, which Go has to take before it returns */
  post(words, lends) {
    const copy = this.#left || this.#held || this.#later.length > 0 ? this.#message(words).slice() : null;
    if (this.#waits(() => copy && this.#with(copy, () => this.#exports[POST](words)))) {
      if (this.#left) this.#come(true).catch(() => {}); // reported; it may have failed before
      return 1;
    }
    if (copy) this.#message(words).set(copy); // messages that waited were in its place
    this.#bound = lends;
    const unfinished = this.#enter(POST, POST, [words]);
    this.#bound = false;
    if (!this.#left) return unfinished;
    this.#left.message = this.#message(words).slice();
    return 1;
  }

  /** Calls an export that answers at once. @param {string} name @param {number[]} args @returns {number} */
  call(name, ...args) {
    this.#bound = true;
    const answer = this.#enter(name, '', args);
    this.#bound = false;
    if (name === 'sublet_arena') this.#arena = answer;
    return answer;
  }

  /** Calls an export that nobody wants an answer of. @param {string} name @param {number[]} args */
  tell(name, ...args) {
    const told = () => { this.#enter(name, name, args); };
    if (!this.#waits(told)) told();
  }

  /** Makes sure that the program has not stopped, for a call that answers at once. */
  complete() {
    if (this.#held) throw failure('ErrUnsupported', 'gpu', 'a question in the middle of a call, while the rest of the program is loaded');
    if (this.#left) this.#now();
  }

  /** Asks for the rest when the page has nothing to do: the first result is there, or there will be none soon. */
  begin() {
    if (this.#begun || this.#present) return;
    this.#begun = true;
    const load = () => { this.#come(false).catch(() => {}); }; // whoever needs it asks again
    if (typeof requestIdleCallback === 'function') requestIdleCallback(load, {timeout: 1000});
    else setTimeout(load, 200);
  }

  /** The program has ended. */
  stop() {
    this.#over = true;
    this.#left = null;
    this.#later = [];
  }

  /** @param {boolean} wanted */
  async #come(wanted) {
    if (this.#present || this.#over) return;
    try {
      await (this.#coming ??= this.#load(wanted));
    } catch (error) {
      if (this.#left) this.refuse(error);
      throw error;
    } finally {
      this.#coming = null;
    }
  }

  /** @param {boolean} wanted */
  async #load(wanted) {
    const module = await /** @type {Source} */ (this.#source).load(wanted);
    if (this.#over || this.#present) return;
    try {
      this.#arrive(module);
    } catch (error) {
      this.#source?.forget();
      throw error;
    }
  }

  /** Loads the rest while the page waits. */
  #now() {
    if (this.#present || !this.#source?.now) return;
    let module;
    this.#held = true;
    try {
      module = this.#source.now();
    } finally {
      this.#held = false;
    }
    if (!this.#present) this.#arrive(module); // it may have come meanwhile
  }

  /** @param {WebAssembly.Module} module */
  #arrive(module) {
    const one = WebAssembly.Module.imports(module).find(({kind}) => kind === 'memory')?.module ?? '';
    if (!this.#exports[one]) throw failure('ErrInvalid', 'init', 'the rest of the program is not that of this build');
    new WebAssembly.Instance(module, {...this.#imports, [one]: this.#exports});
    this.#present = true;
    this.#arrived();
    if (this.#left && this.#depth === 0) this.#goOn(this.#left);
  }

  /** @param {{sp: number, name: string, message: Uint32Array | null}} left */
  #goOn({sp, name, message}) {
    this.#left = null;
    const run = () => {
      this.#exports.g0.value = sp;
      this.#enter(name ? `${GO_ON} ${name}` : GO_ON, '', []);
    };
    this.#guard(() => {
      if (message) this.#with(message, run);
      else run();
      for (const call of this.#later.splice(0)) call();
      this.#enter('resume', '', []);
    });
  }

  /** @param {() => void} run in the program, which has ended if this throws */
  #guard(run) {
    try {
      run();
    } catch (error) {
      this.failed(error);
    }
  }
}
