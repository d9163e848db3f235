// SPDX-License-Identifier: Apache-2.0

// What a page must not keep: objects that wait for the garbage collector, GPU buffers that nobody destroyed, and the memory of programs.
// Loaded before the npm package, this counts them.

const counts = {buffers: 0}, registries = [], memories = [];

const Finalizers = FinalizationRegistry;
globalThis.FinalizationRegistry = class extends Finalizers {
  #tokens = new WeakMap(); // how many objects are registered with each
  #count;

  constructor(call) {
    const count = {registered: 0};
    super(({held, collected}) => {
      count.registered--;
      collected();
      call(held);
    });
    this.#count = count;
    registries.push(new WeakRef(this)); // one that nobody has any more keeps nothing
  }

  get registered() { return this.#count.registered; }

  register(object, held, token = {}) {
    this.#count.registered++;
    const tokens = this.#tokens, ref = new WeakRef(token);
    const add = (n) => { if (ref.deref()) tokens.set(ref.deref(), (tokens.get(ref.deref()) ?? 0) + n); };
    add(1);
    super.register(object, {held, collected: () => add(-1)}, token);
  }

  unregister(token) {
    const was = super.unregister(token);
    if (was) this.#count.registered -= this.#tokens.get(token);
    this.#tokens.delete(token);
    return was;
  }
};

// A buffer that is not destroyed may be collected: tests make some of their own.
const forgotten = new Finalizers(() => { counts.buffers--; });
if (globalThis.GPUDevice) {
  const {createBuffer} = GPUDevice.prototype, {destroy} = GPUBuffer.prototype;
  GPUDevice.prototype.createBuffer = function (...args) {
    const buffer = createBuffer.apply(this, args);
    forgotten.register(buffer, undefined, buffer);
    counts.buffers++;
    return buffer;
  };
  GPUBuffer.prototype.destroy = function () {
    counts.buffers -= forgotten.unregister(this);
    destroy.call(this);
  };
}

const {instantiate} = WebAssembly;
WebAssembly.instantiate = async (...args) => {
  const result = await instantiate(...args), {mem} = (result.instance ?? result).exports;
  if (mem) memories.push(new WeakRef(mem));
  return result;
};

const living = (list) => list.map((ref) => ref.deref()).filter((object) => object !== undefined);

/** How many programs were started. */
export const started = () => memories.length;

/** The memories of the programs that were started and not collected yet. */
export const programs = () => living(memories);

/** How much the page keeps. */
export const held = () => ({
  ...counts, programs: programs().length, registered: living(registries).reduce((sum, {registered}) => sum + registered, 0),
});

/** What the page keeps that it did not keep before, or nothing. */
export const more = (before) => {
  const kept = Object.entries(held()).filter(([name, n]) => n > before[name]);
  return kept.map(([name, n]) => `${n - before[name]} ${name}`).join();
};
