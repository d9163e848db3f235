// SPDX-License-Identifier: Apache-2.0

import {failure} from './errors.mjs';
import {MAX_VALUES} from './protocol.mjs';

/** @typedef {import('./node.mjs').Node} Node */

/** Instructions are a header and at most this many words, calls apart. */
const MAX_WORDS = 5;

/** Nodes carry the number of the program that they were last encoded into. */
let programs = 0;

/** The nodes that wait for their operands, deepest last. Kept, because expressions come one after the other. @type {Node[]} */
const stack = [];

/** Writes one expression into a message. */
export class Program {
  #message;
  #where;
  #number = ++programs;
  #values = 0;
  /** Whether memory of the page's is read. */
  external = false;
  /** The leaves, if somebody wants to know. @type {Set<Node> | null} */
  leaves = null;

  /** @param {import('./message.mjs').Message} message @param {string} where for errors */
  constructor(message, where) {
    this.#message = message;
    this.#where = where;
  }

  /** Lets nodes that were encoded be encoded anew. */
  forget() {
    this.#number = ++programs;
  }

  /**
   * Encodes a node after everything that it is made of, each shared part once, and returns the number of its value.
   * There is no recursion: an expression may be deeper than JavaScript's stack.
   * @param {Node} root
   */
  encode(root) {
    const number = this.#number;
    stack.push(root);
    try {
      while (stack.length > 0) {
        const node = stack[stack.length - 1];
        if (node.mark === number || !this.#pushOperands(node, number)) {
          stack.pop();
          if (node.mark !== number) this.#emit(node, number);
        }
      }
    } finally {
      stack.length = 0; // after an error it would keep the memory of an expression
    }
    return root.value;
  }

  /** Encodes a node that Go goes on reading after the command, so that the memory of its matrices is for no later result. @param {Node} root */
  hold(root) {
    const leaves = this.leaves = new Set();
    this.encode(root);
    for (const {memory} of leaves) memory?.hold();
  }

  /** Puts the operands that are not encoded yet on the stack. @param {Node} node @param {number} number @returns {boolean} whether there were any */
  #pushOperands({a, b, c, args}, number) {
    const before = stack.length;
    if (args) for (const arg of args) if (arg.mark !== number) stack.push(arg);
    if (c && c.mark !== number) stack.push(c);
    if (b && b.mark !== number) stack.push(b);
    if (a && a.mark !== number) stack.push(a);
    return stack.length > before;
  }

  /** @param {Node} node @param {number} number */
  #emit(node, number) {
    if (this.#values >= MAX_VALUES) {
      throw failure('ErrLimit', this.#where, `an expression of more than ${MAX_VALUES} operations; evaluate parts of it with eval()`);
    }
    const m = this.#message, {numbers, args} = node;
    m.reserve(1 + (args ? 2 + args.length + (numbers?.length ?? 0) : MAX_WORDS));
    const header = m.at;
    m.put(0);
    if (node.memory) {
      const handle = node.memory.use(this.#where);
      m.put(handle);
      m.uses.handles.push(handle);
      this.external ||= node.memory.hosted;
      m.uses.other ||= !node.memory.plain;
      this.leaves?.add(node);
    } else if (args && numbers) { // Op.Shape, Op.Tensor, Op.Layer
      m.put(numbers[0]);
      m.put(args.length);
      for (const arg of args) m.put(arg.value);
      for (const n of numbers.slice(1)) m.put(n);
    } else if (node.func && args) {
      m.put(this.#function(node.func));
      for (const arg of args) m.put(arg.value);
    } else {
      if (node.a) m.put(node.a.value);
      if (node.b) m.put(node.b.value);
      if (node.c) m.put(node.c.value);
      if (numbers) for (const n of numbers) m.put(n);
    }
    m.set(header, ((m.at - header) << 16) | (node.type.id << 8) | node.op);
    node.mark = number;
    node.value = this.#values++;
  }

  /** @param {import('./func.mjs').FuncRef} func */
  #function(func) {
    if (func.closed) throw failure('ErrClosed', this.#where, `the function ${func.name} was closed`);
    this.#message.uses.handles.push(-func.handle);
    return func.handle;
  }
}
