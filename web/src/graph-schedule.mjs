// SPDX-License-Identifier: Apache-2.0

import {sessionOf} from './gpu.mjs';
import {placeOf} from './graph-block.mjs';
import {whenever} from './whenever.mjs';

// Which task of a graph is next, and where it runs: the rules of package matrix/graph.

/** @typedef {import('./gpu.mjs').Gpu} Gpu */
/** @typedef {import('./graph.mjs').Task} Task */

export const MODES = Object.freeze(['data-aware', 'first-available', 'priority', 'fifo']);
export const HIGHEST = 10;
/** The shortest wait that raises a task's priority, in milliseconds. */
const MIN_WAIT = 1;
/** What averages are moved by with each value. */
const MOVES = 1 / 16;

/** Chooses tasks, and counts who runs where. */
export class Schedule {
  /** How many tasks run on each device. @type {Map<Gpu, {running: number, runs: number}>} */
  places = new Map();
  #orders = 0;
  /** Average waits of tasks, and average times that they take. */
  #waits = 0;
  #works = 0;

  /** What Gpu.lost was when somebody last looked, and of devices that were lost what it was then: it is another promise when a device is back. @type {WeakMap<Gpu, Promise<unknown>>} */
  #watched = new WeakMap();
  /** @type {WeakMap<Gpu, Promise<unknown>>} */
  #losses = new WeakMap();
  #wake;

  /** @param {Gpu[]} gpus @param {{mode: string, threshold: number, concurrency: number}} options @param {() => void} wake is called when a device is lost */
  constructor(gpus, options, wake) {
    this.gpus = gpus;
    this.options = options;
    this.#wake = wake;
    for (const gpu of gpus) this.add(gpu);
  }

  /** @param {Gpu} gpu */
  add(gpu) {
    this.#alive(gpu); // so that a loss of before is known when something is to run
    if (!this.places.has(gpu)) this.places.set(gpu, {running: 0, runs: 0});
  }

  /** Notes that a task is ready, or is not. @param {Task} task @param {boolean} ready */
  note(task, ready) {
    if (ready === task.ready) return;
    task.ready = ready;
    if (!ready) return;
    task.since = performance.now();
    task.order = ++this.#orders;
    task.level = task.priority - (this.#works > 0 && task.works > 2 * this.#works ? 1 : 0); // it runs much longer than others
  }

  /** The wait for which a priority is one higher. */
  get #age() { return Math.max(this.#waits, MIN_WAIT); }

  /** @param {Task} task @param {number} now */
  #effective({level, since}, now) { return Math.min(Math.max(level + Math.min(Math.floor((now - since) / this.#age), 2 * HIGHEST), 0), HIGHEST); }

  /** Whether a device is there. @param {Gpu} gpu */
  #alive(gpu) {
    const {lost} = gpu;
    if (this.#watched.get(gpu) !== lost) {
      this.#watched.set(gpu, lost);
      whenever(lost, this, (schedule) => schedule.lose(gpu, lost));
    }
    return !sessionOf(gpu).over && this.#losses.get(gpu) !== lost;
  }

  /** Notes that a device is lost. It takes part again when it is back. @param {Gpu} gpu @param {Promise<unknown>} [loss] */
  lose(gpu, loss = gpu.lost) {
    this.#losses.set(gpu, loss);
    this.#wake();
  }

  /** Whether a task may run on another device than one that is lost. @param {Task} task @param {Gpu} gpu */
  elsewhere(task, gpu) { return !task.gpu && this.gpus.some((one) => one !== gpu && this.#alive(one)); }

  /** The devices that a task may run on: those that are there, if there are any. @param {Task} task */
  #allowed({gpu}) {
    const all = gpu ? [gpu] : this.gpus, alive = all.filter((one) => this.#alive(one));
    return alive.length > 0 ? alive : all;
  }

  /** The devices that a task had better wait for. @param {Task} task @param {readonly Gpu[]} can @returns {readonly Gpu[]} */
  #wanted({waitFor, next}, can) {
    if (waitFor && can.includes(waitFor)) return [waitFor];
    if (this.options.mode !== 'data-aware' || can.length < 2) return [];
    const sizes = can.map((gpu) => next().reduce((sum, value) => sum + (placeOf(value) === sessionOf(gpu) ? value.size : 0), 0)), most = Math.max(...sizes);
    return most > 0 ? can.filter((_, i) => sizes[i] === most) : [];
  }

  /** The next task and its device, null for none. `again`: when to ask again, as a task may then no longer wait for a device. @param {Iterable<Task>} tasks @returns {{task: Task | null, gpu?: Gpu, again: number}} */
  pick(tasks) {
    const {mode, threshold, concurrency} = this.options, ranked = mode === 'priority' || mode === 'data-aware', now = performance.now();
    const list = [...tasks].filter(({ready}) => ready).map((task) => ({task, priority: ranked ? this.#effective(task, now) : 0}));
    list.sort((a, b) => b.priority - a.priority || a.task.order - b.task.order);
    let again = 0;
    const taken = new Set(), free = (/** @type {Gpu} */ gpu) => !taken.has(gpu) && /** @type {{running: number}} */ (this.places.get(gpu)).running < concurrency;
    for (const {task, priority} of list) {
      const can = this.#allowed(task), available = can.filter(free), want = available.length > 0 ? this.#wanted(task, can) : [], best = available.filter((gpu) => want.includes(gpu));
      const from = best.length > 0 ? best : want.length === 0 || (ranked && priority > threshold) ? available : [];
      if (from.length > 0) return {task, gpu: this.#choose(task, from), again: 0};
      if (available.length > 0) again = this.#age;
      if (mode === 'fifo') for (const gpu of can) taken.add(gpu); // no task behind it gets there first
    }
    return {task: null, again};
  }

  /** The device that a task prefers, or the one with the least to do. @param {Task} task @param {Gpu[]} from */
  #choose({prefer}, from) {
    const running = (/** @type {Gpu} */ gpu) => this.places.get(gpu)?.running ?? 0;
    return prefer && from.includes(prefer) ? prefer : from.reduce((least, gpu) => running(gpu) < running(least) ? gpu : least);
  }

  /** A task runs. @param {Task} task @param {Gpu} gpu @returns {() => void} to be called when it has ended */
  begin(task, gpu) {
    const place = /** @type {{running: number, runs: number}} */ (this.places.get(gpu)), begun = performance.now(), waited = begun - task.since;
    task.ready = false;
    task.busy = true;
    task.runs++;
    task.wait += waited;
    task.where.set(gpu, (task.where.get(gpu) ?? 0) + 1);
    this.#waits += (waited - this.#waits) * MOVES;
    place.running++;
    place.runs++;
    return () => {
      const took = performance.now() - begun;
      place.running--;
      task.busy = false;
      task.run += took;
      task.works += (took - task.works) * MOVES;
      this.#works += (took - this.#works) * MOVES;
    };
  }
}
