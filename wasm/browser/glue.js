// SPDX-License-Identifier: Apache-2.0

// The JavaScript half of Sublet's browser driver. A call from WebAssembly into JavaScript costs about a microsecond, so
// Go hands over a whole command list (gpu/driver/commands.go) in one call, and this script decodes and executes it.
//
// It is a classic script and a module alike, declares no globals, and leaves globalThis[Symbol.for('sublet.glue')] behind.
//
// A page whose Content-Security-Policy keeps Go from installing the script loads it itself, before the Go program starts.
// A page that also passes instance.exports.mem to setMemory saves the copies between Go's memory and JavaScript's.
(() => {
  'use strict';

  /** Go refuses a helper of another version. Keep in step with glueVersion in helper.go. */
  const VERSION = 9;

  // Commands, accesses and sizes of gpu/driver.
  const WRITE = 1, COPY = 2, CLEAR = 3, BIND = 4, UNBIND = 5, DISPATCH = 6, TIMESTAMP = 7;
  const TIMES = 64, RESOLVED = 256; // timestamps of a submission, and the bytes between them when they are resolved
  const NONE = 0, READ = 1, READ_WRITE = 2, PARAMS = 3, MAX_BINDINGS = 32, MAX_PARAMS = 1024;

  /** What stands for the number of a buffer that has none, or none any more. */
  const UNNAMED = 0xffffffff;

  // Numbers of the WebGPU specification, because the script may be loaded where WebGPU's interfaces are missing.
  const MAP_READ = 0x1, COPY_SRC = 0x4, COPY_DST = 0x8, UNIFORM = 0x40, STORAGE = 0x80, QUERY_RESOLVE = 0x200;
  const STAGE_COMPUTE = 0x4, MODE_READ = 0x1;

  /** The limits that devices are asked for, as high as the adapter has them: those of limitsOf in adapter.go. */
  const LIMITS = [
    'BufferSize', 'StorageBufferBindingSize', 'StorageBuffersPerShaderStage', 'ComputeWorkgroupsPerDimension', 'ComputeInvocationsPerWorkgroup',
    'ComputeWorkgroupSizeX', 'ComputeWorkgroupSizeY', 'ComputeWorkgroupSizeZ', 'ComputeWorkgroupStorageSize',
  ].map((name) => `max${name}`);
  const FEATURES = ['shader-f16', 'subgroups', 'timestamp-query'];

  /** A wait of so many milliseconds is long, and has as many empty submissions at most; see hasten. */
  const LONG = 8;

  /** How many kernels errors name. */
  const RAN = 4;
  /** Descriptors whose labels browsers' tools show. */
  const BATCH = {label: 'sublet batch'}, KERNELS = {label: 'sublet kernels'};

  /** Larger writes go in pieces of this size, because browsers stage them in shared memory. Above 2 MiB Chromium allocates
   * that anew each time, which still is twice as fast as pieces that fit its ring buffer. */
  const WRITE_CHUNK = 64 << 20;
  /** Idle staging buffers of a device keep at most this many bytes. */
  const STAGING_KEPT = 64 << 20;
  /** What repeated messages compute on the way, such as parts of a product, may have so many bytes each, and together. */
  const SCRATCH = 4 << 20, SCRATCHES = 16 << 20;
  /** Rows narrower than this are copied byte by byte, which is cheaper than making a view of each. */
  const NARROW = 64;

  /**
   * @typedef {{gpu: GPUBuffer, used: number, made: boolean, shown: boolean}} Buffer
   *   used: the last encoder that has a command on it; made: the browser has said that there is memory; shown: the page has it, too
   * @typedef {{binding: number, buffer: Buffer, offset: number, size: number}} Entry
   * @typedef {{bindGroup: GPUBindGroupLayout, pipeline: GPUPipelineLayout, storage: number[], written: number[], params: number}} Layout
   *   storage: the bindings that are storage; written: those of them that kernels write; params: the one that is the parameter block, or -1
   * @typedef {{layout: Layout, entries: Entry[], group: GPUBindGroup, params: GPUBuffer | null, used: number, proven: Set<GPUComputePipeline>}} BindingSet
   *   params: the parameter buffer that the group shows; used: as with buffers; proven: the kernels with which the group has passed the
   *   browser's validation
   * @typedef {[skip: number, host: any, at: number, width: number, pitch: number, count: number]} Rows
   * @typedef {{staging: GPUBuffer, size: number, rows: Rows}} Readback
   * @typedef {{pipeline: GPUComputePipeline, set: BindingSet, group: GPUBindGroup, own: boolean, groups: Uint32Array, offset: Uint32Array}} Launch
   *   own: the group is not the set's
   * @typedef {{buffer: Buffer, offset: number, size: number}} Fill
   * @typedef {{session: Session, version: number, fills: Fill[], launches: Launch[], params: Uint32Array, block: GPUBuffer | null, scratch: Buffer[], read: {buffer: Buffer, offset: number, size: number, rows: Rows} | null}} Repeat
   *   what a message has had the device do: what it filled from the page's memory, launches with their parameter blocks, the buffer that these
   *   were in, and a read at the end; version: see #version; scratch: in which buffers there are results that nobody has but the read
   * @typedef {(ticket: number, fulfilled: boolean, value?: unknown) => void} Settle
   * @typedef {(ticket: number, value: number) => void} Settled
   */

  /** Memories that loaders handed over, as long as their programs live. @type {Set<WeakRef<WebAssembly.Memory>>} */
  const memories = new Set();
  /** What came with them. @type {WeakMap<WebAssembly.Memory, Settled | undefined>} */
  const settlers = new WeakMap();

  /** The session that a program has opened last, by its memory. @type {WeakMap<WebAssembly.Memory, Session>} */
  const latest = new WeakMap();

  /** The sessions of each device, with the tickets of its loss. @type {WeakMap<GPUDevice, Map<WeakRef<Session>, number>>} */
  const sessions = new WeakMap();

  /** A device that was adopted outlives sessions, and its promise keeps who waits: one for all, who keeps none. @param {GPUDevice} device */
  const awaitLoss = (device) => {
    const all = new Map();
    sessions.set(device, all);
    device.lost.then((info) => {
      sessions.delete(device); // who comes later waits anew
      for (const [session, ticket] of all) session.deref()?.tell(ticket, info);
    });
    return all;
  };

  /** Makes an error that Go turns into the sentinel of that name. @param {string} name @param {string} message */
  const failure = (name, message) => Object.assign(new Error(message), {name});

  /** What a GPUError is to Go. @param {GPUError} error @param {string} [validation] what a validation error is @param {string} [more] */
  const failed = (error, validation = 'ErrInvalid', more = '') =>
    failure(error instanceof GPUOutOfMemoryError ? 'ErrNoMemory' : validation, error.message + more);

  /** Joins two words. @param {Uint32Array} words @param {number} i */
  const u64 = (words, i) => words[i] + words[i + 1] * 0x100000000;

  /** What is wrong with memory of the page's. @param {any} memory @param {number} at @param {number} size */
  const hostError = (memory, at, size) => {
    const tag = ArrayBuffer.isView(memory) ? '' : Object.prototype.toString.call(memory);
    if (!['', '[object ArrayBuffer]', '[object SharedArrayBuffer]'].includes(tag)) return 'host memory is no typed array, DataView or ArrayBuffer';
    if (at >= 0 && at + size <= memory.byteLength) return '';
    return `host memory has ${memory.byteLength} bytes where ${size} from ${at} on are wanted; an ArrayBuffer that was transferred has none, one that was resized may have fewer`;
  };

  /** Whether WebGPU refuses memory, as its size can change. @param {any} memory */
  const isResizable = ({resizable, growable}) => resizable === true || growable === true;

  /**
   * @typedef {{last: number, timer: ReturnType<typeof setTimeout> | undefined, writes: boolean | undefined}} Wait last: the duration of the last
   *   one, in milliseconds; timer: of the next empty submission; writes: what the queue has got since the last one for commands: true only writes,
   *   false commands, undefined nothing
   */
  /** @type {WeakMap<GPUQueue, Wait>} */
  const waits = new WeakMap();

  /** @param {GPUQueue} queue @returns {Wait} */
  const waitFor = (queue) => {
    let wait = waits.get(queue);
    if (!wait) waits.set(queue, wait = {last: 0, timer: undefined, writes: undefined});
    return wait;
  };

  /**
   * Shortens a wait for a queue. Chromium looks for finished work when commands arrive, and 2 ms later. An empty submission makes it look again:
   * every millisecond for a while. They are for all who wait. There are none if the queue got only writes, which end in under a millisecond anyway,
   * nor if the last wait was long, as each takes processor time from the kernels.
   * @template T @param {GPUQueue} queue @param {Promise<T>} done
   */
  const hasten = (queue, done) => {
    const wait = waitFor(queue);
    if (wait.writes) return done;
    wait.writes = undefined;
    const began = performance.now();
    if (wait.last < LONG) {
      let looks = 0;
      const look = () => {
        wait.timer = ++looks < LONG ? setTimeout(look, 1) : undefined;
        queue.submit([]);
      };
      wait.timer ??= setTimeout(look, 1);
    }
    const stop = () => {
      clearTimeout(wait.timer);
      wait.timer = undefined;
      wait.last = performance.now() - began;
    };
    done.then(stop, stop);
    return done;
  };

  /** Whether commands on a buffer cannot fail. @param {Buffer} buffer */
  const isSound = ({made, shown}) => made && !shown;

  /** The least power of two that is not less than x. @param {number} x */
  const ceil2 = (x) => 2 ** Math.ceil(Math.log2(x));

  /** Staging buffers for readbacks, kept for reuse: making one costs more than a small readback. */
  class Staging {
    #device;
    /** @type {Map<number, GPUBuffer[]>} idle buffers by size */
    #idle = new Map();
    #kept = 0;

    /** @param {GPUDevice} device */
    constructor(device) { this.#device = device; }

    /** Sizes are powers of two up to 16 MiB, so that they meet again, and whole MiB above, so that little is wasted. @param {number} need */
    static size(need) { return need > 16 << 20 ? Math.ceil(need / (1 << 20)) * (1 << 20) : Math.max(4096, ceil2(need)); }

    /** Whether one is idle. @param {number} need */
    has(need) { return (this.#idle.get(Staging.size(need))?.length ?? 0) > 0; }

    /** A buffer that was used before, if one is idle. @param {number} need */
    take(need) {
      const idle = this.#idle.get(Staging.size(need))?.pop();
      if (idle) this.#kept -= idle.size;
      return idle;
    }

    /** @param {number} need */
    make(need) { return this.#device.createBuffer({label: 'sublet staging', size: Staging.size(need), usage: MAP_READ | COPY_DST}); }

    /** @param {GPUBuffer} buffer */
    give(buffer) {
      if (this.#kept + buffer.size > STAGING_KEPT) return buffer.destroy();
      this.#kept += buffer.size;
      const idle = this.#idle.get(buffer.size);
      if (idle) idle.push(buffer);
      else this.#idle.set(buffer.size, [buffer]);
    }

    destroy() {
      for (const buffer of [...this.#idle.values()].flat()) buffer.destroy();
      this.#idle.clear();
      this.#kept = 0;
    }
  }

  /** A device as Go sees it: objects by number, and the interpreter of command lists. Go has checked all arguments. */
  class Session {
    #device;
    #queue;
    #settle;
    #faults;
    #memory;
    #settled;
    #staging;
    #closed = false;
    #self = new WeakRef(this);
    /** @type {(Buffer | undefined)[]} */
    #buffers = [];
    /** The numbers of the buffers that are ours to destroy. @type {Set<number>} */
    #owned = new Set();
    /** One GPUBuffer may have several numbers. @type {WeakMap<GPUBuffer, Buffer>} */
    #known = new WeakMap();
    /** @type {(GPUComputePipeline | undefined)[]} */
    #kernels = [];
    /** @type {(BindingSet | undefined)[]} */
    #sets = [];
    /** @type {Map<string, Layout>} */
    #layouts = new Map();
    /** Readbacks that were not dropped yet, by ticket, or by what is repeated. @type {Map<number | object, Readback>} */
    #readbacks = new Map();
    /** Where Go copies lists and data when its memory is out of reach. */
    #scratch = new Uint8Array(0);
    /** The parameter blocks of the current list. @type {GPUBuffer | null} */
    #params = null;
    /** What they are, if they are few. @type {Uint32Array | null} */
    #written = null;
    /** What went wrong in the current list. @type {unknown} */
    #error = null;
    /** How often Go was told of an error of the device timeline. */
    #faulted = 0;
    /** Binding sets and kernels of the current list, once an error scope is open. @type {[BindingSet, GPUBindGroup, GPUComputePipeline][] | null} */
    #trial = null;
    /** Counts what may have Go do something else at the same message: another kernel, an error, the loss of the device. */
    #version = 0;
    /** How many error scopes have ended of which the outcome is not known. */
    #scopes = 0;
    /** What Go has the device do, while somebody wants to know and as long as it can be repeated. @type {Repeat | null} */
    #seen = null;
    /** Scratch buffers of all repeats, by size. @type {Map<number, Buffer[]>} */
    #scratches = new Map();
    #scratched = 0; // their bytes
    /** What was repeated, which Go does not know of. */
    repeated = {submissions: 0, dispatches: 0, bytesDown: 0, bytesUp: 0};
    // The open encoder, whose number tells which buffers it has commands on, and what its open pass has set.
    /** @type {GPUCommandEncoder | null} */
    #encoder = null;
    #encoderNumber = 1;
    /** @type {GPUQuerySet | undefined} */
    #clock;
    /** @type {GPUBuffer | undefined} what timestamps are resolved to */
    #times;
    #timed = 0; // timestamps of the open encoder
    /** @type {GPUComputePassEncoder | null} */
    #pass = null;
    #kernel = 0;
    #set = 0;
    #offset = 0;
    /** The last kernels that were set, for errors, the oldest one overwritten. @type {GPUComputePipeline[]} */
    #ran = [];
    #runs = 0;

    /**
     * @param {GPUDevice} device @param {boolean} owned @param {Settle} settle
     * @param {number} faults the ticket for errors that belong to no call @param {number} lost that for the loss of the device
     * @param {WebAssembly.Memory | undefined} memory @param {Settled | undefined} settled
     */
    constructor(device, owned, settle, faults, lost, memory, settled) {
      this.#device = device;
      this.#queue = device.queue;
      this.#settle = settle;
      this.#faults = faults;
      this.#memory = memory;
      this.#settled = settled ?? ((ticket, value) => settle(ticket, true, value));
      this.#staging = new Staging(device);
      // Error scopes catch what our calls do wrong. What remains can only be blamed on us where the device is ours.
      if (owned) device.addEventListener('uncapturederror', this.#uncaptured);
      (sessions.get(device) ?? awaitLoss(device)).set(this.#self, lost);
    }

    /** Frees what it made, and tells Go of nothing but the promises that are pending. The device itself is Go's business. */
    close() {
      this.#flush();
      this.#closed = true;
      this.#dropScratches();
      sessions.get(this.#device)?.delete(this.#self);
      this.#device.removeEventListener('uncapturederror', this.#uncaptured);
      for (const id of this.#owned) this.#at(id).gpu.destroy();
      for (const {staging} of this.#readbacks.values()) staging.destroy();
      this.#params?.destroy();
      this.#clock?.destroy();
      this.#times?.destroy();
      this.#staging.destroy();
      this.#buffers = this.#kernels = this.#sets = [];
    }

    #uncaptured = (/** @type {GPUUncapturedErrorEvent} */ event) => {
      if (!(event.error instanceof GPUValidationError)) this.#fault(event.error);
    };

    /**
     * Tells Go of an error of the device timeline. @param {GPUError | null} error @param {string} [validation] what a validation error is
     * @param {{list?: number, buffer?: number}} [where] the number of the list that was refused, or of the buffer that is not there
     * @param {string} [ran] what #last told of the list
     */
    #fault(error, validation, where, ran) {
      if (!error || this.#closed) return;
      this.#faulted++;
      this.#version++;
      this.#settle(this.#faults, false, Object.assign(failed(error, validation, ran), where));
    }

    /** The last kernels, for the end of an error's text. */
    #last(ran = this.#ran, runs = this.#runs) {
      const list = ran.map((_, i) => ran[(runs + i) % ran.length].label.slice(0, 60));
      return list.length > 0 ? `; last kernels: ${list.join(', ')}` : '';
    }

    /**
     * Ends the innermost error scope. A device that is lost rejects, and Go hears of the loss anyway.
     * @param {(error: GPUError) => void} refused @param {() => void} [passed]
     */
    #popScope(refused, passed = () => {}) {
      this.#scopes++;
      this.#device.popErrorScope().then((error) => {
        this.#scopes--;
        if (error) refused(error);
        else passed();
      }, () => { this.#scopes--; });
    }

    /** Ends the error scope of a list. @param {number} list its number */
    #popList(list) {
      const ran = [...this.#ran], runs = this.#runs, trial = this.#trial ?? [];
      this.#trial = null;
      this.#popScope((error) => {
        this.#params = null; // there may be no memory behind it
        this.#fault(error, 'ErrInvalid', {list}, this.#last(ran, runs));
      }, () => {
        for (const [set, group, pipeline] of trial) if (set.group === group) set.proven.add(pipeline);
      });
    }

    /**
     * Makes a buffer. Whether there is memory for it Go hears later. @param {string} label @param {number} size @param {number} usage
     * @param {() => number} name gives the buffer's number, if it has one yet @param {() => void} [made]
     */
    #create(label, size, usage, name, made) {
      this.#device.pushErrorScope('out-of-memory');
      try {
        return this.#device.createBuffer({label, size, usage});
      } finally {
        this.#popScope((error) => {
          this.#staging.destroy(); // which makes some room
          this.#fault(error, undefined, {buffer: name()});
        }, made);
      }
    }

    /** Tells Go how a promise ends. @param {number} ticket @param {Promise<unknown>} promise */
    #await(ticket, promise) {
      promise.then((value) => this.#settle(ticket, true, value), (error) => this.#settle(ticket, false, error));
    }

    /** Reports the loss of the device, unless the session is closed. @param {number} ticket @param {GPUDeviceLostInfo} info */
    tell(ticket, {reason, message}) {
      this.#version++;
      this.#faulted++;
      if (!this.#closed) this.#settle(ticket, true, {reason, message: message + this.#last()});
    }

    /** Settles the ticket when all work submitted so far is done. @param {number} ticket */
    idle(ticket) {
      this.#flush();
      hasten(this.#queue, this.#queue.onSubmittedWorkDone()).then(() => this.#settled(ticket, 0), (error) => this.#settle(ticket, false, error));
    }

    /** Submits what is recorded. */
    send() { this.#flush(); }

    /** Whether there never was an error of the device timeline. */
    get sound() { return this.#faulted === 0; }

    /** @param {number} id @returns {Buffer} */
    #at(id) { return /** @type {Buffer} */ (this.#buffers[id]); }

    /**
     * Takes a buffer of the page's. WebGPU does not say whose it is, but refuses to record commands on another device's, so the answer
     * comes later.
     * @param {number} id @param {GPUBuffer} gpu
     */
    importBuffer(id, gpu) {
      this.#register(id, gpu);
      this.#device.pushErrorScope('validation');
      const encoder = this.#device.createCommandEncoder({label: 'sublet'});
      encoder.clearBuffer(gpu, 0, 0);
      encoder.finish();
      this.#popScope((error) => this.#fault(error, 'ErrForeign'));
    }

    /** @param {number} id @param {GPUBuffer} gpu */
    #register(id, gpu) {
      const buffer = this.#known.get(gpu) ?? {gpu, used: 0, made: false, shown: false};
      this.#known.set(gpu, buffer);
      return this.#buffers[id] = buffer;
    }

    /** @param {number} id @param {number} size */
    newBuffer(id, size) {
      const gpu = this.#create('sublet', size, STORAGE | COPY_SRC | COPY_DST, () => this.#buffers[id]?.gpu === gpu ? id : UNNAMED, () => { buffer.made = true; });
      const buffer = this.#register(id, gpu);
      this.#owned.add(id);
    }

    /** Shows the page a buffer. @param {number} id */
    buffer(id) {
      this.#flush();
      this.#version++;
      const buffer = this.#at(id);
      buffer.shown = true;
      return buffer.gpu;
    }

    /** Tells whether the session made a buffer. @param {GPUBuffer} gpu */
    owns(gpu) { return [...this.#owned].some((id) => this.#at(id).gpu === gpu); }

    /** @param {number} id */
    freeBuffer(id) {
      this.#flush();
      this.#version++;
      if (this.#owned.delete(id)) this.#at(id).gpu.destroy();
      this.#buffers[id] = undefined;
    }

    /** Makes the layout objects of a driver.Layout. @param {number} low @param {number} high its words @returns {Layout} */
    #layout(low, high) {
      const key = `${low},${high}`;
      const known = this.#layouts.get(key);
      if (known) return known;
      /** @type {GPUBindGroupLayoutEntry[]} */
      const entries = [];
      const storage = [], written = [];
      let params = -1;
      for (let binding = 0; binding < MAX_BINDINGS; binding++) {
        const access = (binding < 16 ? low >>> (2 * binding) : high >>> (2 * binding - 32)) & 3;
        if (access === NONE) continue;
        if (access === PARAMS) params = binding;
        else storage.push(binding);
        if (access === READ_WRITE) written.push(binding);
        entries.push({binding, visibility: STAGE_COMPUTE, buffer: access === PARAMS
          ? {type: 'uniform', hasDynamicOffset: true, minBindingSize: MAX_PARAMS}
          : {type: access === READ ? 'read-only-storage' : 'storage'}});
      }
      const bindGroup = this.#device.createBindGroupLayout({label: 'sublet', entries});
      const layout = {bindGroup, pipeline: this.#device.createPipelineLayout({label: 'sublet', bindGroupLayouts: [bindGroup]}), storage, written, params};
      this.#layouts.set(key, layout);
      return layout;
    }

    /**
     * Compiles a kernel, settles the ticket with its pipeline, and returns the shader module. The pipeline's promise tells of all
     * errors; the error scope keeps the page's console clean.
     * @param {number} ticket @param {number} low @param {number} high words of the layout
     * @param {string} label @param {string} code @param {string} entryPoint
     */
    compile(ticket, low, high, label, code, entryPoint) {
      const layout = this.#layout(low, high).pipeline;
      this.#device.pushErrorScope('validation');
      const module = this.#device.createShaderModule({label, code});
      this.#await(ticket, this.#device.createComputePipelineAsync({label, layout, compute: {module, entryPoint}}));
      this.#device.popErrorScope().catch(() => {});
      return module;
    }

    /** @param {number} id @param {GPUComputePipeline} pipeline */
    addKernel(id, pipeline) {
      this.#version++;
      this.#kernels[id] = pipeline;
    }

    /** @param {number} id */
    freeKernel(id) { this.#kernels[id] = undefined; }

    /** Returns memory for at least size bytes of a list, valid until the next call. @param {number} size */
    scratch(size) {
      if (this.#scratch.length < size) this.#scratch = new Uint8Array(ceil2(size));
      return this.#scratch;
    }

    /** What addresses from Go count in: all of Go's memory, or the scratch. */
    #heap() { return (this.#memory ?? this.#scratch).buffer; }

    /** Words of a list. @param {number} at @param {number} count @protected */
    words(at, count) { return new Uint32Array(this.#heap(), at, count); }

    /** @param {number} id @protected */
    kernelName(id) { return this.#kernels[id]?.label; }

    /**
     * Executes a list. The table has five words for each of its pieces of data: the number of the argument `foreign`
     * that holds it, counted from 1, or 0; where it begins there, or its address, low and high; and its size, low and high.
     * @param {number} wordsAt @param {number} wordCount @param {number} paramsAt @param {number} paramsSize
     * @param {number} tableAt @param {number} number what Go calls the list @param {boolean} more whether a read follows at once, with which the list may go
     * @param {(ArrayBufferView | ArrayBufferLike)[]} foreign
     */
    submit(wordsAt, wordCount, paramsAt, paramsSize, tableAt, number, more, ...foreign) {
      this.#flush();
      const heap = this.#heap();
      const words = new Uint32Array(heap, wordsAt, wordCount);
      for (let i = 0; i < wordCount && foreign.length > 0; i += words[i] >>> 8) {
        if ((words[i] & 0xff) !== WRITE) continue;
        const row = new Uint32Array(heap, tableAt + 20 * words[i + 4], 5);
        const wrong = row[0] > 0 && hostError(foreign[row[0] - 1], u64(row, 1), u64(row, 3));
        if (wrong) return failure('ErrInvalid', wrong);
      }
      this.#error = null;
      if (this.#seen) this.#see(words, new Uint32Array(heap, paramsSize > 0 ? paramsAt : 0, paramsSize / 4), (n) => new Uint32Array(heap, tableAt + 20 * n, 5), foreign);
      try {
        if (paramsSize > 0) this.#setParams(heap, paramsAt, paramsSize);
        for (let i = 0; i < wordCount; i += words[i] >>> 8) {
          // Where nothing can fail there is no scope: in Chromium a write takes twice as long in one, and its end is a message to the page.
          if (!this.#trial && this.#mayFail(words, i)) {
            this.#device.pushErrorScope('validation');
            this.#trial = [];
            this.#seen = null;
          }
          switch (words[i] & 0xff) {
            case DISPATCH: this.#dispatch(words, i); break;
            case TIMESTAMP: this.#timestamp(words, i); break;
            case BIND: this.#bind(words, i); break;
            case UNBIND: this.#sets[words[i + 1]] = undefined; break;
            case COPY: this.#copy(words, i); break;
            case CLEAR: this.#clear(words, i); break;
            case WRITE: this.#write(words, i, new Uint32Array(heap, tableAt + 20 * words[i + 4], 5), heap, foreign); break;
          }
        }
        if (more && !this.#trial && this.#encoder) queueMicrotask(this.#flushed); // a read was to take it along
        else this.#flush();
      } catch (error) {
        this.#error ??= error;
        this.#encoder = this.#pass = null;
      }
      if (this.#trial) this.#popList(number);
      if (this.#error) this.#seen = null;
      return this.#error;
    }

    // What a message of the page's has had the device do is done again without Go, as long as Go would have the same done.

    /** Begins to note what Go has the device do. */
    watch() {
      this.#seen = {session: this, version: this.#version, fills: [], launches: [], params: new Uint32Array(0), block: null, scratch: [], read: null};
    }

    /**
     * Ends that, and returns what can be repeated, if all can.
     * @param {number} targets how many buffers are meant to be written, -1 if nothing is to be repeated: others are scratch of Go's, which may
     *   be somebody's memory the next time. There is scratch of the session's instead, if it is known which they are
     * @param {boolean} single whether the last launch writes the only target @returns {Repeat | null}
     */
    watched(targets, single) {
      const seen = this.#seen;
      this.#seen = null;
      if (!seen || targets < 0 || this.#closed || seen.version !== this.#version) return null;
      seen.block = this.#params;
      const writtenBy = (/** @type {Launch[]} */ launches) => new Set(launches.flatMap(({set: {layout, entries}}) => entries.filter(({binding}) => layout.written.includes(binding)).map(({buffer}) => buffer)));
      const written = writtenBy(seen.launches), [target, more] = single ? writtenBy(seen.launches.slice(-1)) : [];
      for (const {buffer} of seen.fills) written.add(buffer);
      if (written.size <= targets) return seen;
      if (seen.fills.length > 0 || targets > 0 && (!target || more)) return null;
      return this.#moved(seen, [...written].filter((buffer) => buffer !== target));
    }

    /**
     * Notes the launches of a list, and before them what is filled with all bytes of an object, if there is nothing else in it.
     * @param {Uint32Array} words @param {Uint32Array} params @param {(n: number) => Uint32Array} row of the table @param {(ArrayBufferView | ArrayBufferLike)[]} foreign
     */
    #see(words, params, row, foreign) {
      const seen = /** @type {Repeat} */ (this.#seen);
      this.#seen = null;
      if (seen.launches.length > 0 || seen.read) return;
      for (let i = 0; i < words.length; i += words[i] >>> 8) {
        if ((words[i] & 0xff) === WRITE) {
          const [from, at, high] = row(words[i + 4]), size = from > 0 ? foreign[from - 1].byteLength : 0;
          if (seen.launches.length > 0 || size === 0 || size % 4 > 0 || at > 0 || high > 0 || u64(row(words[i + 4]), 3) !== size) return;
          seen.fills.push({buffer: this.#at(words[i + 1]), offset: u64(words, i + 2), size});
          continue;
        }
        const set = this.#sets[words[i + 2]], pipeline = this.#kernels[words[i + 1]];
        if ((words[i] & 0xff) !== DISPATCH || !set?.group || !pipeline) return;
        if (words[i + 3] * words[i + 4] * words[i + 5] > 0) seen.launches.push({pipeline, set, group: set.group, own: false, groups: words.slice(i + 3, i + 6), offset: words.slice(i + 6, i + 7)});
      }
      seen.params = params.slice();
      this.#seen = seen;
    }

    /** Has launches use scratch of the session's in place of Go's buffers. @param {Repeat} seen @param {Buffer[]} written @returns {Repeat | null} */
    #moved(seen, written) {
      const read = seen.read;
      if (written.some(({gpu: {size}}) => size > SCRATCH)) return null;
      if (this.#scratched > SCRATCHES) {
        this.#dropScratches();
        return null;
      }
      /** @type {Map<Buffer, Buffer>} */
      const moved = new Map(), taken = new Map();
      for (const buffer of written) {
        const {size} = buffer.gpu, list = this.#scratches.get(size) ?? [], at = taken.get(size) ?? 0;
        if (at === list.length) {
          /** @type {Buffer} */
          const scratch = {gpu: this.#create('sublet scratch', size, STORAGE | COPY_SRC | COPY_DST, () => UNNAMED, () => { scratch.made = true; }), used: 0, made: false, shown: false};
          list.push(scratch);
          this.#scratched += size;
        }
        this.#scratches.set(size, list);
        taken.set(size, at + 1);
        moved.set(buffer, list[at]);
      }
      const to = (/** @type {Buffer} */ buffer) => moved.get(buffer) ?? buffer;
      for (const launch of seen.launches) {
        const entries = launch.set.entries.map((entry) => ({...entry, buffer: to(entry.buffer)}));
        launch.group = this.#newGroup(launch.set.layout, entries, this.#params);
        launch.own = true;
      }
      return {...seen, scratch: [...moved.values()], read: read && {...read, buffer: to(read.buffer)}};
    }

    #dropScratches() {
      this.#version++; // those who use them are noted anew
      for (const {gpu} of [...this.#scratches.values()].flat()) gpu.destroy();
      this.#scratches.clear();
      this.#scratched = 0;
    }

    /**
     * Does again what was noted, with other elements of the page's, and has what is read copied to host memory. Returns false if it cannot be
     * repeated, and else nothing or a promise, whose error's name is that of Go's.
     * @param {Repeat} repeat @param {Uint8Array | null} host @param {Uint8Array[]} given @returns {false | undefined | Promise<void>}
     */
    repeat(repeat, host, given) {
      const {session, version, fills, launches, params, block, scratch, read} = repeat;
      const stands = session === this && version === this.#version && this.#scopes === 0 && block === this.#params && (!read || this.#staging.has(read.size)) &&
        scratch.every(({made}) => made) && launches.every(({own, set, group}) => own || set.group === group) &&
        fills.every(({size}, i) => given[i]?.length === size && !isResizable(given[i].buffer) && !hostError(given[i], 0, size));
      if (!stands) return false;
      this.#flush();
      if (!fills.every(({buffer, offset, size}, i) => this.#filled(buffer, offset, given[i], size))) return false;
      if (launches.length > 0) this.#launch(launches, params);
      if (!read) {
        this.#flush();
        return undefined;
      }
      const [skip, , , width, pitch, count] = read.rows;
      this.repeated.bytesDown += width * count;
      const key = {}; // the same may be read several times at once
      return this.#copyOut(key, read.buffer, read.offset, read.size, [skip, host, 0, width, pitch, count]).then(() => {
        if (this.#taken(key)) return;
        this.drop(key);
        const wrong = host && hostError(host, 0, width);
        throw wrong ? failure('ErrInvalid', wrong) : failure('ErrDeviceLost', 'what was read is gone');
      }, (error) => {
        this.drop(key);
        throw error.name === 'OperationError' ? failure('ErrNoMemory', error.message) : failure('ErrDeviceLost', String(error));
      });
    }

    /** @param {Launch[]} launches @param {Uint32Array} params */
    #launch(launches, params) {
      if (params.length > 0) this.#setParams(/** @type {ArrayBuffer} */ (params.buffer), 0, params.byteLength);
      const pass = this.#openEncoder().beginComputePass(KERNELS);
      let last = null;
      for (const {pipeline, set, group, groups, offset} of launches) {
        if (pipeline !== last) {
          pass.setPipeline(last = pipeline);
          this.#ran[this.#runs++ % RAN] = pipeline;
        }
        if (set.layout.params >= 0) pass.setBindGroup(0, group, offset, 0, 1);
        else pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(groups[0], groups[1], groups[2]);
      }
      pass.end();
      this.repeated.submissions++;
      this.repeated.dispatches += launches.length;
    }

    /** Whether the browser may find fault with a command that Go has checked. @param {Uint32Array} words @param {number} i */
    #mayFail(words, i) {
      switch (words[i] & 0xff) {
        case UNBIND: return false;
        case WRITE: return !this.#owned.has(words[i + 1]);
        case CLEAR: return !isSound(this.#at(words[i + 1]));
        case COPY: return !isSound(this.#at(words[i + 1])) || !isSound(this.#at(words[i + 4]));
        case DISPATCH: {
          const set = this.#sets[words[i + 2]], pipeline = this.#kernels[words[i + 1]];
          return !set || !pipeline || !set.proven.has(pipeline) || set.layout.params >= 0 && set.params !== this.#params || set.entries.some(({buffer}) => buffer.shown);
        }
      }
      return true;
    }

    #flushed = () => { if (!this.#closed) this.#flush(); };

    /** Hands the open encoder to the queue. */
    #flush() {
      this.#endPass();
      if (!this.#encoder) return;
      this.#queue.submit([this.#encoder.finish()]);
      waitFor(this.#queue).writes = false;
      this.#encoder = null;
      this.#encoderNumber++;
      this.#timed = 0;
    }

    #endPass() {
      this.#pass?.end();
      this.#pass = null;
      this.#kernel = this.#set = 0;
    }

    /** Returns an encoder with no open pass. */
    #openEncoder() {
      this.#endPass();
      return this.#encoder ??= this.#device.createCommandEncoder(BATCH);
    }

    /** Uploads the parameter blocks of a list. @param {ArrayBuffer} heap @param {number} at @param {number} size */
    #setParams(heap, at, size) {
      const need = size + MAX_PARAMS; // a kernel sees that much from the start of its block
      if (!this.#params || this.#params.size < need) {
        this.#params?.destroy(); // after the work that is queued; binding sets notice when they are used next
        this.#params = this.#create('sublet parameters', Math.max(1 << 16, ceil2(need)), UNIFORM | COPY_DST, () => UNNAMED);
        this.#written = null;
      }
      // The same evaluation again has the same parameters.
      const words = size > MAX_PARAMS ? null : new Uint32Array(heap, at, size / 4), before = this.#written;
      if (words && before && words.length <= before.length && words.every((word, i) => word === before[i])) return;
      this.#written = words && words.slice();
      this.#queue.writeBuffer(this.#params, 0, heap, at, size);
    }

    /** @param {Uint32Array} words @param {number} i */
    #dispatch(words, i) {
      if (words[i + 3] === 0 || words[i + 4] === 0 || words[i + 5] === 0) return; // browsers warn of it
      const pass = this.#pass ??= this.#openEncoder().beginComputePass(KERNELS);
      const kernel = words[i + 1], number = words[i + 2], offset = words[i + 6];
      const set = /** @type {BindingSet} */ (this.#sets[number]), pipeline = /** @type {GPUComputePipeline} */ (this.#kernels[kernel]);
      if (kernel !== this.#kernel) {
        pass.setPipeline(pipeline);
        this.#kernel = kernel;
        this.#ran[this.#runs++ % RAN] = pipeline;
      }
      if (number !== this.#set || offset !== this.#offset) {
        const hasParams = set.layout.params >= 0;
        if (hasParams && set.params !== this.#params) this.#group(set);
        if (hasParams) pass.setBindGroup(0, set.group, words, i + 6, 1);
        else pass.setBindGroup(0, set.group);
        this.#set = number;
        this.#offset = offset;
      }
      if (this.#trial && !set.proven.has(pipeline)) this.#trial.push([set, set.group, pipeline]);
      if (set.used !== this.#encoderNumber) {
        set.used = this.#encoderNumber;
        for (const {buffer} of set.entries) buffer.used = this.#encoderNumber;
      }
      pass.dispatchWorkgroups(words[i + 3], words[i + 4], words[i + 5]);
    }

    /** @param {Uint32Array} words @param {number} i */
    #bind(words, i) {
      const layout = this.#layout(words[i + 2], words[i + 3]);
      const entries = layout.storage.map((binding, n) => {
        const at = i + 4 + 5 * n;
        return {binding, buffer: this.#at(words[at]), offset: u64(words, at + 1), size: u64(words, at + 3)};
      });
      const set = /** @type {BindingSet} */ ({layout, entries, params: null, used: 0, proven: new Set()});
      // A set with parameters gets its group when it is used, because the parameter buffer may have been replaced by then.
      if (layout.params < 0) this.#group(set);
      this.#sets[words[i + 1]] = set;
      if (words[i + 1] === this.#set) this.#set = 0;
    }

    /** Makes the bind group of a set. @param {BindingSet} set */
    #group(set) {
      if (set.layout.params >= 0) set.params = this.#params;
      set.proven.clear();
      set.group = this.#newGroup(set.layout, set.entries, set.params);
    }

    /** @param {Layout} layout @param {Entry[]} list @param {GPUBuffer | null} params */
    #newGroup(layout, list, params) {
      /** @type {GPUBindGroupEntry[]} */
      const entries = list.map(({binding, buffer, offset, size}) => ({binding, resource: {buffer: buffer.gpu, offset, size}}));
      if (layout.params >= 0) entries.push({binding: layout.params, resource: {buffer: /** @type {GPUBuffer} */ (params), size: MAX_PARAMS}});
      return this.#device.createBindGroup({label: 'sublet', layout: layout.bindGroup, entries});
    }

    /** @param {Uint32Array} words @param {number} i */
    #copy(words, i) {
      const to = this.#at(words[i + 1]), from = this.#at(words[i + 4]);
      to.used = from.used = this.#encoderNumber;
      this.#openEncoder().copyBufferToBuffer(from.gpu, u64(words, i + 5), to.gpu, u64(words, i + 2), u64(words, i + 7));
    }

    /** @param {Uint32Array} words @param {number} i */
    #clear(words, i) {
      const buffer = this.#at(words[i + 1]);
      buffer.used = this.#encoderNumber;
      this.#openEncoder().clearBuffer(buffer.gpu, u64(words, i + 2), u64(words, i + 4));
    }

    /** Writes the device's clock, by the end of a pass that does nothing else. @param {Uint32Array} words @param {number} i */
    #timestamp(words, i) {
      if (this.#timed === TIMES) this.#flush(); // a submission writes each place once
      const clock = this.#clock ??= this.#device.createQuerySet({label: 'sublet', type: 'timestamp', count: TIMES});
      const times = this.#times ??= this.#device.createBuffer({label: 'sublet', size: TIMES * RESOLVED, usage: QUERY_RESOLVE | COPY_SRC});
      const encoder = this.#openEncoder(), at = this.#timed++, to = this.#at(words[i + 1]);
      to.used = this.#encoderNumber;
      encoder.beginComputePass({label: 'sublet', timestampWrites: {querySet: clock, endOfPassWriteIndex: at}}).end();
      encoder.resolveQuerySet(clock, at, 1, times, at * RESOLVED);
      encoder.copyBufferToBuffer(times, at * RESOLVED, to.gpu, u64(words, i + 2), 8);
    }

    /**
     * Writes host data. The queue executes a write before the encoder that is still open, so an encoder that has
     * commands on the buffer goes first.
     * @param {Uint32Array} words @param {number} i @param {Uint32Array} row of the table
     * @param {ArrayBuffer} heap @param {(ArrayBufferView | ArrayBufferLike)[]} foreign
     */
    #write(words, i, row, heap, foreign) {
      const buffer = this.#at(words[i + 1]), offset = u64(words, i + 2);
      if (buffer.used === this.#encoderNumber) this.#flush();
      let memory = /** @type {any} */ (heap), at = u64(row, 1), size = u64(row, 3);
      if (row[0] > 0) {
        const source = foreign[row[0] - 1];
        const view = ArrayBuffer.isView(source);
        memory = view ? source.buffer : source;
        if (view) at += source.byteOffset;
      }
      if (isResizable(memory) || size % 4 > 0) {
        const copied = new Uint8Array(Math.ceil(size / 4) * 4);
        copied.set(new Uint8Array(memory, at, size));
        [memory, at, size] = [copied.buffer, 0, copied.length];
      }
      try {
        this.#put(buffer, offset, memory, at, size);
      } catch (error) {
        this.#error ??= error; // the rest of the list still runs, so that binding sets stay as Go knows them
      }
    }

    /** Fills a buffer again, unless the browser has no memory for that: Go tries once more, and tells. @param {Buffer} buffer @param {number} offset @param {Uint8Array} bytes @param {number} size */
    #filled(buffer, offset, {buffer: memory, byteOffset}, size) {
      try {
        this.#put(buffer, offset, memory, byteOffset, size);
      } catch {
        return false;
      }
      this.repeated.bytesUp += size;
      return true;
    }

    /** @param {Buffer} buffer @param {number} offset @param {ArrayBufferLike} memory @param {number} at @param {number} size */
    #put(buffer, offset, memory, at, size) {
      waitFor(this.#queue).writes ??= true;
      for (let done = 0; done < size; done += WRITE_CHUNK) {
        this.#queue.writeBuffer(buffer.gpu, offset + done, /** @type {any} */ (memory), at + done, Math.min(size - done, WRITE_CHUNK));
      }
    }

    /**
     * Copies bytes to a staging buffer, in one submission with the list before where that was told so. Settles the ticket when they can be
     * taken, with 1 if they are, into host memory, which is what `host` views, or Go's memory where it is null. No rows are left to Go.
     * @param {number} ticket @param {number} id @param {number} offset @param {number} size multiples of 4 @param {Rows} rows
     *   skip: bytes before the first one; at: where it goes in the host memory
     */
    read(ticket, id, offset, size, ...rows) {
      const buffer = this.#at(id), used = this.#staging.has(size) && isSound(buffer), faulted = this.#faulted;
      if (this.#seen?.read || !used || !rows[1]) this.#seen = null;
      if (this.#seen) this.#seen.read = {buffer, offset, size, rows: [rows[0], null, 0, rows[3], rows[4], rows[5]]};
      this.#copyOut(ticket, buffer, offset, size, rows).then(() => {
        this.#settled(ticket, faulted === this.#faulted && this.#taken(ticket) ? 1 : 0);
      }, (error) => { // of mapAsync it says that there is no memory, as the arguments are right
        this.#settle(ticket, false, error.name === 'OperationError' ? failure('ErrNoMemory', error.message) : error);
      });
    }

    /**
     * Begins to copy bytes to a staging buffer, where the readback of the key finds them.
     * @param {number | object} key @param {Buffer} buffer @param {number} offset @param {number} size @param {Rows} rows @returns {Promise<unknown>}
     */
    #copyOut(key, buffer, offset, size, rows) {
      const used = this.#staging.take(size), scopes = used && isSound(buffer) ? [] : /** @type {const} */ (['validation', 'out-of-memory']);
      if (scopes.length > 0) this.#flush();
      for (const scope of scopes) this.#device.pushErrorScope(scope);
      const staging = used ?? this.#staging.make(size);
      this.#openEncoder().copyBufferToBuffer(buffer.gpu, offset, staging, 0, size);
      this.#flush();
      // What is wrong is this read's: where the copy was refused, there is something to map all the same. A device that is lost rejects.
      const errors = scopes.map(() => this.#device.popErrorScope().then((error) => { if (error) throw failed(error); }, () => {}));
      const mapped = hasten(this.#queue, staging.mapAsync(MODE_READ, 0, size));
      this.#readbacks.set(key, {staging, size, rows});
      return errors.length > 0 ? Promise.all([...errors, mapped]) : mapped;
    }

    /** Takes a readback, unless it was given up or the memory is gone. @param {number | object} ticket */
    #taken(ticket) {
      const [, host, at, width, pitch, count] = this.#readbacks.get(ticket)?.rows ?? [0, null, 0, 0, 0, 0];
      if (count === 0 || host && hostError(host, at, (count - 1) * pitch + width)) return false;
      try {
        this.take(ticket);
      } catch {
        return false; // Go finds out
      }
      this.drop(ticket);
      return true;
    }

    /** Shows the bytes of a readback until it is dropped. @param {number | object} ticket */
    window(ticket) {
      const {staging, size} = /** @type {Readback} */ (this.#readbacks.get(ticket));
      try {
        return new Uint8Array(staging.getMappedRange(0, size));
      } catch (error) { // nobody but us unmaps: there is no memory, or the device is gone
        throw error instanceof RangeError ? error : failure('ErrDeviceLost', String(error));
      }
    }

    /** Copies the rows of a readback. @param {number | object} ticket */
    take(ticket) {
      const {rows: [skip, host, at, width, pitch, count]} = /** @type {Readback} */ (this.#readbacks.get(ticket));
      const span = (count - 1) * pitch + width;
      const from = this.window(ticket).subarray(skip, skip + span);
      const to = new Uint8Array(host ? host.buffer ?? host : this.#heap(), (host?.byteOffset ?? 0) + at, span);
      if (count === 1 || width === pitch) return to.set(from);
      for (let row = 0; row < span; row += pitch) {
        if (width >= NARROW) to.set(from.subarray(row, row + width), row);
        else for (let i = row; i < row + width; i++) to[i] = from[i];
      }
    }

    /** Forgets a readback. @param {number | object} ticket */
    drop(ticket) {
      const staging = this.#readbacks.get(ticket)?.staging;
      this.#readbacks.delete(ticket);
      if (staging?.mapState !== 'mapped') return staging?.destroy(); // the readback has failed or was given up
      staging.unmap();
      this.#staging.give(staging);
    }
  }

  /** See setPrefetched. @type {unknown} */
  let prefetched;

  /** How much sessions log that are opened from now on; see setDebug. */
  let rung = 0;

  /** @param {string} text @param {object} facts */
  const log = (text, facts) => console.debug(`sublet: ${text}`, facts);

  /** A session that logs what it does. */
  class LoggingSession extends Session {
    #rung = rung;
    /** When kernels began to be compiled. @type {Map<string, number>} */
    #began = new Map();

    /** @param {ConstructorParameters<typeof Session>} args */
    constructor(...args) {
      super(...args);
      log('device opened', {device: args[0].label});
    }

    close() {
      super.close();
      log('device closed', {});
    }

    /** @param {number} ticket @param {GPUDeviceLostInfo} info */
    tell(ticket, info) {
      super.tell(ticket, info);
      console.warn('sublet: device lost', {reason: info.reason, message: info.message});
    }

    /** @param {number} id @param {number} size */
    newBuffer(id, size) {
      super.newBuffer(id, size);
      log('buffer made', {bytes: size});
    }

    /** @param {number} id */
    freeBuffer(id) {
      log('buffer freed', {bytes: this.buffer(id).size});
      super.freeBuffer(id);
    }

    /** @param {Parameters<Session['read']>} args */
    read(...args) {
      super.read(...args);
      log('read', {bytes: args[3], offset: args[2]});
    }

    /** @param {Parameters<Session['compile']>} args */
    compile(...args) {
      const label = args[3], code = args[4];
      this.#began.set(label, performance.now());
      if (this.#rung > 1) log('compile', this.#rung > 2 ? {kernel: label, wgsl: code} : {kernel: label});
      return super.compile(...args);
    }

    /** @param {number} id @param {GPUComputePipeline} pipeline */
    addKernel(id, pipeline) {
      super.addKernel(id, pipeline);
      const ms = performance.now() - (this.#began.get(pipeline.label) ?? NaN);
      this.#began.delete(pipeline.label);
      if (this.#rung > 1) log('compiled', {kernel: pipeline.label, ms});
    }

    /** @param {Parameters<Session['submit']>} args */
    submit(...args) {
      const [at, count, , , table, number] = args, words = this.words(at, count);
      let commands = 0;
      for (let i = 0; i < count; i += words[i] >>> 8, commands++) {
        const op = words[i] & 0xff;
        const row = op === WRITE && this.words(table + 20 * words[i + 4], 5);
        if (row) log('write', {bytes: u64(row, 3), offset: u64(words, i + 2)});
        if (op !== DISPATCH || this.#rung < 2) continue;
        log('dispatch', {kernel: this.kernelName(words[i + 1]), groups: [...words.slice(i + 3, i + 6)].join('x')});
      }
      log('batch sent', {number, commands});
      const failed = super.submit(...args);
      if (failed) console.warn('sublet: batch failed', {error: String(failed)});
      return failed;
    }
  }

  const glue = Object.freeze({
    version: VERSION,

    /** Has sessions that are opened from now on log to the console. @param {string} word "calls", "kernels", "wgsl" or "" */
    setDebug(word) { rung = ['', 'calls', 'kernels', 'wgsl'].indexOf(word); },

    /** Requests a device with everything that the library makes use of and the adapter has. @param {GPUAdapter} adapter */
    async requestDevice(adapter) {
      /** @type {Record<string, number>} */
      const requiredLimits = {};
      for (const name of LIMITS) {
        const limit = Reflect.get(adapter.limits, name);
        if (typeof limit === 'number') requiredLimits[name] = limit;
      }
      const requiredFeatures = /** @type {GPUFeatureName[]} */ (FEATURES.filter((name) => adapter.features.has(name)));
      return adapter.requestDevice({label: 'sublet', requiredLimits, requiredFeatures});
    },

    /**
     * Keeps what a page has requested for the program that it is about to run, which takes it before it returns for the first time.
     * @param {Promise<{wish: GPURequestAdapterOptions, adapter: GPUAdapter, device: Promise<GPUDevice>}>} [all]
     */
    setPrefetched(all) { prefetched = all; },

    takePrefetched() {
      const all = prefetched;
      prefetched = undefined;
      return all;
    },

    /**
     * Lets the helper read and write the memory of a Go program. A page may run several.
     * @param {WebAssembly.Memory} memory instance.exports.mem @param {Settled} [settled] calls instance.exports.sublet_settled, and lets
     *   goroutines run that it has left
     */
    setMemory(memory, settled) {
      memories.add(new WeakRef(memory));
      settlers.set(memory, settled);
    },

    /** The session that a program has opened last, unless it logs. @param {WebAssembly.Memory} memory */
    sessionOf(memory) { return latest.get(memory); },

    /** Resolves when a device has done what was submitted, to whether its sessions never had an error. @param {GPUDevice} device */
    async idle(device) {
      const open = [...sessions.get(device)?.keys() ?? []].map((session) => session.deref());
      for (const session of open) session?.send();
      await hasten(device.queue, device.queue.onSubmittedWorkDone()); // of a device that is lost, too, which has no sessions any more
      return sessions.has(device) && open.every((session) => session?.sound ?? true);
    },

    /**
     * Starts a session. The proof is four words that the calling program has just put at an address of its memory: they
     * tell which memory is its own, if that was handed over at all.
     * @param {GPUDevice} device @param {boolean} owned @param {Settle} settle @param {number} faults @param {number} lost
     * @param {number} at @param {number[]} proof
     */
    open(device, owned, settle, faults, lost, at, ...proof) {
      const holdsProof = (/** @type {WebAssembly.Memory | undefined} */ memory) => memory && at + 16 <= memory.buffer.byteLength &&
        new Uint32Array(memory.buffer, at, 4).every((word, i) => word === proof[i]);
      for (const ref of memories) if (!ref.deref()) memories.delete(ref);
      const memory = [...memories].map((ref) => ref.deref()).find(holdsProof);
      const session = new (rung > 0 ? LoggingSession : Session)(device, owned, settle, faults, lost, memory, memory && settlers.get(memory));
      if (memory && rung === 0) {
        session.repeated = latest.get(memory)?.repeated ?? session.repeated; // counts go on
        latest.set(memory, session);
      }
      return {session, shared: memory !== undefined};
    },
  });
  Reflect.set(globalThis, Symbol.for('sublet.glue'), glue);
})();
