// SPDX-License-Identifier: Apache-2.0

import {RANGE, arraysOf, optionsOf, paramWords, stepWords} from './crunch-task.mjs';
import {cruncherOf} from './cruncher.mjs';
import {failure, listed, show} from './errors.mjs';
import {Held, Store} from './memory.mjs';
import {Command} from './protocol.mjs';
import {read, signalOf} from './source.mjs';

/** @typedef {import('./crunch.mjs').Crunch} Crunch */
/** @typedef {import('./cruncher.mjs').Cruncher} Cruncher */

/** A list of the user's. @param {string} where @param {string} what @param {unknown} x */
function list(where, what, x) {
  const items = listed(where, x ?? []);
  if (!items) throw failure('ErrInvalid', where, `${what} ${show(x)}; an array`);
  return items;
}

/**
 * Stages as Go takes them, and what must not be collected as long as there is the pipeline.
 * @param {string} where @param {Crunch} crunch @param {Cruncher} of the cruncher of stages that name none @param {unknown} given @param {boolean} several whether each may name one
 */
function stagesOf(where, crunch, of, given, several) {
  const kept = /** @type {unknown[]} */ ([]), stages = list(where, 'stages', given).map((stage) => {
    if (typeof stage !== 'object' || stage === null) throw failure('ErrInvalid', where, `a stage ${show(stage)}`);
    const {cruncher = of, ...o} = read(where, stage, ['steps', 'inputs', 'hidden', 'outputs', ...several ? ['cruncher', 'initializers'] : []]), held = cruncherOf(cruncher);
    if (!held) throw failure('ErrInvalid', where, `${show(cruncher)} is no cruncher`);
    if (held.session !== crunch) throw failure('ErrForeign', where, 'a cruncher of another Gpu');
    const steps = ['steps', 'initializers'].map((name) => list(where, name, o[name]).map((step) => {
      const {kernels, ...range} = optionsOf(where, step, ['kernels', ...RANGE]);
      return stepWords(where, crunch, kernels, range);
    }));
    const params = ['inputs', 'hidden', 'outputs'].map((name) => {
      const params = list(where, name, o[name]);
      kept.push(...params);
      return {words: paramWords(where, crunch, params), length: params.length};
    });
    const number = held.use(where);
    return () => [number, ...steps.flatMap((some) => [some.length, ...some.flatMap((words) => words())]), ...params.flatMap(({words, length}) => [length, ...words()])];
  });
  if (stages.length === 0) throw failure('ErrInvalid', where, 'no stage');
  crunch.check();
  return {words: [stages.length, ...stages.flatMap((words) => words())], kept};
}

/** Asks the program something of a pipeline. @type {(of: Stages, where: string, command: number, words: number[], signal?: AbortSignal, keep?: unknown) => Promise<any>} */
let ask;

/** The session of a pipeline. @type {(of: Stages) => Crunch} */
let crunchOf;

/** What both kinds of pipelines have. */
class Stages {
  #handle;
  #kept;

  static {
    ask = (of, where, command, words, signal, keep) =>
      of.#handle.session.ask(command, [of.#handle.use(where), ...words], {where, signal, keep: [of, of.#kept, keep]});
    crunchOf = (of) => of.#handle.session;
  }

  /** @param {Crunch} crunch @param {number} number @param {unknown[]} kept */
  constructor(crunch, number, kept) {
    this.#kept = kept;
    this.#handle = new Held(crunch, new Store(), 'the pipeline', Command.ClosePipeline);
    this.#handle.open(number);
    crunch.watch(this, this.#handle);
  }

  get closed() { return this.#handle.over; }

  close() {
    this.#handle.close();
  }

  [Symbol.dispose]() {
    this.close();
  }
}

/** Stages that work at the same time, each on devices of its own. */
export class CruncherPipeline extends Stages {
  /** @param {unknown} [inputs] @param {unknown} [outputs] @param {unknown} [options] @returns {Promise<boolean>} */
  async push(inputs, outputs, options) {
    const where = 'push', signal = signalOf(where, options), words = [inputs, outputs].flatMap((x, i) => {
      const own = x === undefined || x === null, handles = own ? [] : arraysOf(where, crunchOf(this), list(where, i === 0 ? 'inputs' : 'outputs', x));
      return [Number(!own), handles.length, ...handles.flatMap((handle) => [0, handle])];
    });
    return ask(this, where, Command.Push, words, signal, [inputs, outputs]);
  }

  get [Symbol.toStringTag]() { return 'SubletCruncherPipeline'; }
}

/** Stages on one device. */
export class DevicePipeline extends Stages {
  /** @param {unknown} [options] @returns {Promise<boolean>} */
  async feed(options) {
    await this.feedBegin(options);
    return this.feedEnd(options);
  }

  /** @param {unknown} [options] @returns {Promise<void>} */
  async feedBegin(options) { await ask(this, 'feedBegin', Command.Feed, [0], signalOf('feedBegin', options)); }

  /** @param {unknown} [options] @returns {Promise<boolean>} */
  async feedEnd(options) { return ask(this, 'feedEnd', Command.Feed, [1], signalOf('feedEnd', options)); }

  /** @returns {Promise<void>} */
  async serial() { await ask(this, 'serial', Command.Mode, [1]); }

  /** @returns {Promise<void>} */
  async parallel() { await ask(this, 'parallel', Command.Mode, [0]); }

  /** @param {...unknown} stages @returns {Promise<void>} */
  async stopTransmission(...stages) {
    const where = 'stopTransmission', wrong = stages.findIndex((n) => typeof n !== 'number' || n >>> 0 !== n);
    if (wrong >= 0) throw failure('ErrInvalid', where, `stage ${show(stages[wrong])}; stages are numbers from 0 on`);
    await ask(this, where, Command.StopTransmission, /** @type {number[]} */ (stages));
  }

  get [Symbol.toStringTag]() { return 'SubletDevicePipeline'; }
}

/** @param {Crunch} crunch @param {Cruncher} of @param {unknown} stages @param {AbortSignal | undefined} signal */
export async function openPipeline(crunch, of, stages, signal) {
  const where = 'pipeline', {words, kept} = stagesOf(where, crunch, of, stages, true), {handle} = await crunch.make(Command.Pipeline, words, {where, signal, keep: [of, kept]});
  return new CruncherPipeline(crunch, handle, kept);
}

/** @param {Crunch} crunch @param {Cruncher} of @param {number} device @param {unknown} stages @param {AbortSignal | undefined} signal */
export async function openDevicePipeline(crunch, of, device, stages, signal) {
  const where = 'devicePipeline', {words, kept} = stagesOf(where, crunch, of, stages, false), {handle} = await crunch.make(Command.DevicePipeline, [device, ...words], {where, signal, keep: [of, kept]});
  return new DevicePipeline(crunch, handle, kept);
}
