// SPDX-License-Identifier: Apache-2.0

import {elementsOf, ends} from './known.mjs';
import {Op} from './protocol.mjs';

// What objects look like where they are printed: one line, and a corner of the elements where JavaScript knows them. Nothing is asked
// of the device, and nothing throws.

/** @typedef {import('./known.mjs').Element} Element */
/** @typedef {import('./memory.mjs').Memory} Memory */
/** @typedef {import('./node.mjs').Node} Node */
/** @typedef {import('./session.mjs').Session} Session */

/** The name of the method by which Node prints an object. */
export const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** Names a class, whose own name is shortened, and its objects in DevTools, which take no getter for it. @param {{prototype: object}} Class @param {string} name */
export function tag(Class, name) {
  const {prototype} = Class;
  Object.defineProperty(Class, 'name', {value: name, configurable: true});
  Object.defineProperty(prototype, Symbol.toStringTag, {value: `Sublet${name}`, configurable: true});
}

/** The most dimensions that are printed as nested brackets, and what is shown of each before the last two. */
const NESTED = 4, PLANES = 2;
/** Numbers are printed with at most so many digits. */
const DIGITS = 6;

/** The fewest digits that make the same number of an element type, up to DIGITS. @param {number} x @param {string} dtype */
function shortest(x, dtype) {
  const same = dtype === 'float16' ? (/** @type {number} */ y) => Math.abs(y - x) <= 2 ** (Math.floor(Math.log2(Math.abs(x))) - 11) : (/** @type {number} */ y) => Math.fround(y) === x;
  for (let digits = 1; digits < DIGITS; digits++) {
    const y = Number(x.toPrecision(digits));
    if (same(y)) return y;
  }
  return Number(x.toPrecision(DIGITS));
}

/** @param {number} x */
const named = (x) => Number.isNaN(x) ? 'nan' : x > 0 ? 'inf' : '-inf';

/** Numbers as texts whose points are at the same place. @param {number[]} numbers @param {string} dtype @returns {string[]} */
function aligned(numbers, dtype) {
  if (dtype === 'bool') return padded(numbers.map((x) => x ? 'true' : 'false'));
  if (dtype.includes('int')) return padded(numbers.map(String));
  const finite = numbers.filter(Number.isFinite).map((x) => shortest(x, dtype));
  const sizes = finite.filter((x) => x !== 0).map(Math.abs);
  const powers = sizes.some((x) => x >= 1e8 || x < 1e-4);
  const digits = powers ? Math.max(...finite.map((x) => /** @type {string} */ (/^-?\d\.?(\d*)/.exec(x.toExponential())?.[1]).length)) : 0;
  const texts = numbers.map((x) => {
    if (!Number.isFinite(x)) return named(x);
    if (powers) return shortest(x, dtype).toExponential(digits);
    return Object.is(x, -0) ? '-0' : String(Number.isInteger(x) ? x : shortest(x, dtype));
  });
  if (powers) return padded(texts);
  const behind = (/** @type {string} */ text) => text.includes('.') ? text.length - text.indexOf('.') : 0;
  const most = Math.max(...texts.map(behind));
  return padded(texts.map((text, i) => Number.isFinite(numbers[i]) ? text + ' '.repeat(most - behind(text)) : text));
}

/** @param {string[]} texts */
function padded(texts) {
  const width = Math.max(...texts.map((text) => text.length));
  return texts.map((text) => text.padStart(width));
}

/** Elements as texts of one width. @param {Element[]} elements @param {string} dtype */
function texts(elements, dtype) {
  if (dtype !== 'complex64') return aligned(/** @type {number[]} */ (elements), dtype);
  const pairs = /** @type {[number, number][]} */ (elements);
  const imaginary = pairs.map(([, y]) => y), signs = imaginary.map((y) => y < 0 || Object.is(y, -0) ? '-' : '+');
  const sizes = aligned(imaginary.map(Math.abs), dtype);
  return aligned(pairs.map(([x]) => x), dtype).map((x, i) => `${x}${signs[i]}${sizes[i].trim()}j`.padEnd(x.length + sizes[i].length + 2));
}

/**
 * Nested brackets, as NumPy prints an array.
 * @param {readonly number[]} shape @param {string} dtype @param {(index: number[]) => Element | undefined} at @returns {string | null} null where an element is not known
 */
function brackets(shape, dtype, at) {
  const shown = shape.map((n, i) => ends(n, i < shape.length - 2 ? PLANES : undefined));
  const places = shown.reduce((/** @type {number[][]} */ list, at) => list.flatMap((index) => at.map((i) => [...index, i])), [[]]);
  const elements = places.map(at);
  if (elements.some((x) => x === undefined)) return null;
  const cells = elements.length > 0 ? texts(/** @type {Element[]} */ (elements), dtype) : [];
  let next = 0;
  /** @param {number} depth @returns {string} */
  const block = (depth) => {
    const last = depth === shape.length - 1, list = shown[depth].map(() => last ? cells[next++] : block(depth + 1));
    if (list.length < shape[depth]) list.splice(list.length / 2, 0, '...');
    return `[${list.join(last ? ' ' : '\n'.repeat(shape.length - 1 - depth) + ' '.repeat(depth + 1))}]`;
  };
  return shape.length === 0 ? cells[0] : block(0);
}

/** Where a matrix has its elements. @param {Memory} memory */
function place({mode, byColumns}) {
  return `${mode === 'owned' ? '' : `, ${mode}`}${byColumns ? ', column order' : ''}`;
}

/** The matrix that a part is of. @param {Node} node @returns {Node} */
const whole = (node) => node.op !== Op.Leaf && node.steps && node.a ? whole(node.a) : node;

/** An expression, a matrix or a tensor. @typedef {{kind: string, session: Session, node: Node, shape: readonly number[], closed: boolean}} Printed */

/** @param {Printed} x @returns {{line: string, body: string | null}} */
function described({kind, session, node, shape, closed}) {
  const line = `${kind} ${shape.join('x') || 'scalar'} ${node.type.name}`;
  if (closed || session.over) return {line: `${line}, closed`, body: null};
  const leaf = whole(node), memory = leaf.op === Op.Leaf && !leaf.sparse ? leaf.memory : null;
  if (!memory) return {line: `${line} on ${session.place}, not computed yet`, body: null};
  if (memory.closed) return {line: `${line} of a closed matrix`, body: null};
  const of = leaf === node ? '' : ` of a ${leaf.rows}x${leaf.cols} matrix`;
  const at = elementsOf(node), {cols} = node;
  const element = (/** @type {number[]} */ index) => {
    const flat = index.reduce((sum, i, d) => sum * shape[d] + i, 0);
    return at?.(Math.floor(flat / cols), flat % cols);
  };
  const body = at && shape.length <= NESTED ? brackets(shape, node.type.name, element) : null;
  return {line: `${line}${of} on ${session.place}${place(memory)}${!body && memory.bits ? ', not synced' : ''}`, body};
}

/** Prints without throwing. @param {string} kind what is printed where that fails @param {() => {line: string, body?: string | null}} describe */
function printed(kind, describe) {
  try {
    const {line, body} = describe();
    return body ? `${line}\n${body}` : line;
  } catch {
    return kind; // memory that was detached or has shrunk, or the prototype itself
  }
}

/** @param {() => Printed} of */
export const printArray = (of) => printed('Sublet', () => described(of()));

/** @param {string} kind @param {() => string} line */
export const printLine = (kind, line) => printed(kind, () => ({line: `${kind} ${line()}`}));
