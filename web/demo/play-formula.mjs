// SPDX-License-Identifier: Apache-2.0

// Reads formulas in the grammar of `sublet eval`, of which it is a part: A * B is the product, A % B is element by element.

import {Expr} from './index.mjs';
import {lookUp, nearest, onGpu, takesAxis} from './play-names.mjs';

/** @typedef {import('./index.mjs').Gpu} Gpu */
/** A part of the formula: what it is, and the JavaScript that makes it. @typedef {{x: Expr | number, js: string}} Part */

/** A mistake in a formula; `operand` is the one that is to blame, if one is. */
export class FormulaError extends Error {
  /** @param {string} message @param {string} [operand] */
  constructor(message, operand) {
    super(message);
    this.name = 'FormulaError';
    this.operand = operand;
  }
}

/** Operators by how tightly they bind, the loosest first, with the methods that they stand for. @type {Record<string, string>[]} */
const LEVELS = [
  {'||': 'logicalOr'},
  {'&&': 'logicalAnd'},
  {'==': 'equal', '!=': 'notEqual', '<': 'less', '<=': 'lessEqual', '>': 'greater', '>=': 'greaterEqual'},
  {'+': 'add', '-': 'sub'},
  {'*': 'matmul', '@': 'matmul', '/': 'div', '%': 'mul'},
];
const COMPARISONS = 2;

/** @type {Record<string, (a: number, b: number) => number>} */
const ON_NUMBERS = {
  logicalOr: (a, b) => Number(a !== 0 || b !== 0), logicalAnd: (a, b) => Number(a !== 0 && b !== 0), equal: (a, b) => Number(a === b),
  notEqual: (a, b) => Number(a !== b), less: (a, b) => Number(a < b), lessEqual: (a, b) => Number(a <= b), greater: (a, b) => Number(a > b),
  greaterEqual: (a, b) => Number(a >= b), add: (a, b) => a + b, sub: (a, b) => a - b, mul: (a, b) => a * b, div: (a, b) => a / b, pow: (a, b) => a ** b,
  maximum: Math.max, minimum: Math.min,
};

/** @type {Record<string, number>} */
const CONSTANTS = {pi: Math.PI, e: Math.E, inf: Infinity, nan: NaN};

const TOKEN = /\s*(?:(?<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?<name>[A-Za-z_]\w*)|(?<sign>\*\*|&&|\|\||[=!<>]=|[-+*/%@<>!()[\],:.^=;]))/y;

/** @typedef {{kind: 'number' | 'name' | 'sign' | 'end', text: string, at: number}} Token */

/** @param {string} text @returns {Token[]} */
function tokenize(text) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; text.slice(at).trim() !== ''; at = TOKEN.lastIndex) {
    const found = TOKEN.exec(text);
    if (!found) throw new FormulaError(`${JSON.stringify(text.slice(at).trim()[0])} means nothing in a formula`);
    const [kind, word] = Object.entries(found.groups ?? {}).find(([, word]) => word !== undefined) ?? ['end', ''];
    tokens.push({kind: /** @type {Token['kind']} */ (kind), text: word, at: TOKEN.lastIndex - word.length});
  }
  return [...tokens, {kind: 'end', text: '', at: text.length}];
}

const paren = (/** @type {Part} */ {x, js}) => typeof x === 'number' && x < 0 ? `(${js})` : js;

class Formula {
  #next = 0;
  /** Matrices that functions such as eye made. @type {import('./index.mjs').Matrix[]} */
  made = [];

  /** @param {Gpu} gpu @param {string} text @param {(name: string) => Expr | undefined} operand @param {string[]} names */
  constructor(gpu, text, operand, names) {
    this.gpu = gpu;
    this.text = text;
    this.operand = operand;
    this.names = names;
    this.tokens = tokenize(text);
  }

  get #token() {
    return this.tokens[this.#next];
  }

  /** Takes the next token if it is one of these signs. @param {...string} signs */
  #take(...signs) {
    const {kind, text} = this.#token;
    if (kind !== 'sign' || !signs.includes(text)) return '';
    this.#next++;
    return text;
  }

  /** @param {string} sign @param {string} after */
  #expect(sign, after) {
    if (!this.#take(sign)) this.#wrong(`${after} wants a ${sign}`);
  }

  /** @param {string} why @returns {never} */
  #wrong(why) {
    const before = this.text.slice(0, this.#token.at).trim();
    throw new FormulaError(`${why}${before ? `, after "${before.length > 24 ? `...${before.slice(-24)}` : before}"` : ''}`);
  }

  /** @returns {Part} */
  whole() {
    const part = this.#binary(0);
    if (this.#token.kind === 'end') return part;
    if (this.#token.text === '^') this.#wrong('^ is no operator here: A**2 is the power');
    if (this.#token.text === '=') this.#wrong('A formula has one value: == compares');
    return this.#wrong(`${this.#token.text} does not belong here`);
  }

  /** @param {number} level @returns {Part} */
  #binary(level) {
    if (level === LEVELS.length) return this.#unary();
    let left = this.#binary(level + 1);
    for (let compared = false, sign; (sign = this.#take(...Object.keys(LEVELS[level]))); compared = true) {
      if (level === COMPARISONS && compared) this.#wrong('Compare two at a time: (A < B) && (B < C)');
      left = this.#apply(LEVELS[level][sign], left, this.#binary(level + 1));
    }
    return left;
  }

  /** @param {string} method @param {Part} a @param {Part} b @returns {Part} */
  #apply(method, a, b) {
    const numbers = typeof a.x === 'number' || typeof b.x === 'number', name = method === 'matmul' && numbers ? 'mul' : method;
    if (typeof a.x === 'number' && typeof b.x === 'number') {
      const x = ON_NUMBERS[name](a.x, b.x);
      return {x, js: String(x)};
    }
    if (typeof a.x === 'number') return {x: /** @type {any} */ (this.gpu)[name](a.x, b.x), js: `gpu.${name}(${a.js}, ${b.js})`};
    return {x: /** @type {any} */ (a.x)[name](b.x), js: `${paren(a)}.${name}(${b.js})`};
  }

  /** @returns {Part} */
  #unary() {
    const sign = this.#take('-', '+', '!');
    if (!sign) return this.#power();
    const {x, js} = this.#unary();
    if (sign === '+') return {x, js};
    if (typeof x === 'number') {
      const value = sign === '-' ? -x : Number(x === 0);
      return {x: value, js: String(value)};
    }
    return sign === '-' ? {x: x.neg(), js: `${js}.neg()`} : {x: x.logicalNot(), js: `${js}.logicalNot()`};
  }

  /** A power binds tighter than a sign before it, and from the right. @returns {Part} */
  #power() {
    const base = this.#postfix();
    return this.#take('**') ? this.#apply('pow', base, this.#unary()) : base;
  }

  /** @returns {Part} */
  #postfix() {
    for (let part = this.#primary(); ;) {
      if (this.#take('[')) part = this.#brackets(this.#matrix(part));
      else if (this.#take('.')) {
        const {text} = this.#token;
        if (text !== 'T' && text !== 'H') this.#wrong('A point wants T or H (element by element is A % B)');
        this.#next++;
        const {x, js} = this.#matrix(part);
        part = text === 'T' ? {x: x.T, js: `${js}.T`} : {x: x.conjTranspose(), js: `${js}.conjTranspose()`};
      } else return part;
    }
  }

  /** A number as a matrix of one element. @param {Part} part @returns {{x: Expr, js: string}} */
  #matrix({x, js}) {
    if (typeof x !== 'number') return {x, js};
    const one = this.gpu.full(1, 1, x);
    this.made.push(one);
    return {x: one, js: `gpu.full(1, 1, ${js})`};
  }

  /** What stands in brackets: an element, a row, or ranges of rows and columns. @param {{x: Expr, js: string}} part @returns {Part} */
  #brackets({x, js}) {
    const [i, k] = this.#range(x.rows);
    const [j, l] = this.#take(',') ? this.#range(x.cols) : [0, x.cols];
    this.#expect(']', 'a [');
    return {x: /** @type {any} */ (x).slice([i, k], [j, l]), js: `${js}.slice([${i}, ${k}], [${j}, ${l}])`};
  }

  /** @param {number} length @returns {[from: number, to: number]} */
  #range(length) {
    const end = () => ['', ',', ']', ':'].includes(this.#token.text);
    const whole = () => {
      const {x} = this.#binary(3);
      if (typeof x !== 'number' || !Number.isInteger(x)) this.#wrong('brackets want whole numbers');
      return /** @type {number} */ (x) < 0 ? /** @type {number} */ (x) + length : /** @type {number} */ (x);
    };
    if (end() && this.#token.text !== ':') this.#wrong('brackets want a number or a range');
    const from = end() ? 0 : whole();
    if (!this.#take(':')) return [from, from + 1];
    const to = end() ? length : whole();
    if (this.#token.text === ':') this.#wrong('ranges with steps are not read here');
    return [from, to];
  }

  /** @returns {Part} */
  #primary() {
    const {kind, text} = this.#token;
    if (kind === 'end') this.#wrong(this.text.trim() === '' ? 'The formula is empty' : 'Something is missing');
    if (this.#take('(')) {
      const inner = this.#binary(0);
      this.#expect(')', 'a (');
      return inner;
    }
    if (kind === 'sign') this.#wrong(`${text} does not belong here`);
    this.#next++;
    if (kind === 'number') return {x: Number(text), js: String(Number(text))};
    return this.#take('(') ? this.#call(text) : this.#named(text);
  }

  /** @param {string} name @returns {Part} */
  #named(name) {
    const x = this.operand(name);
    if (x) return {x, js: name};
    const constant = CONSTANTS[name.toLowerCase()];
    if (constant !== undefined) return {x: constant, js: String(constant)};
    if (lookUp(name)) throw new FormulaError(`${name} is a function: it wants parentheses, as in ${name}(A)`);
    throw new FormulaError(`There is no ${name}: the operands are ${this.names.join(', ')}`);
  }

  /** @param {string} word @returns {Part} */
  #call(word) {
    const known = lookUp(word);
    if (!known) {
      const meant = nearest(word);
      throw new FormulaError(`There is no function ${word}${meant ? `: did you mean ${meant}?` : ''}`);
    }
    /** @type {Part[]} */
    const parts = [];
    if (!this.#take(')')) {
      do parts.push(this.#binary(0)); while (this.#take(','));
      this.#expect(')', `${word}(`);
    }
    if (parts.length === 0) throw new FormulaError(`${word} wants operands between its parentheses`);
    const part = this.#called(known, parts);
    if (!(part.x instanceof Expr || typeof part.x === 'number')) throw new FormulaError(`${word} is no function of a formula`);
    return part;
  }

  /** @param {import('./play-names.mjs').Known} known @param {Part[]} parts @returns {Part} */
  #called({name, axis, on}, parts) {
    const gpu = /** @type {any} */ (this.gpu), list = parts.map(({x}) => x), js = parts.map((part) => part.js);
    if (on === 'type') {
      const {x, js: code} = this.#matrix(parts[0]);
      return {x: x.astype(/** @type {any} */ (name)), js: `${code}.astype("${name}")`};
    }
    if ((name === 'max' || name === 'min') && axis === undefined && list.length === 2) return this.#apply(`${name}imum`, parts[0], parts[1]);
    if (name === 'hstack' || name === 'vstack') return {x: gpu[name](list), js: `gpu.${name}([${js.join(', ')}])`};
    if (on === 'gpu' || (typeof list[0] === 'number' && list.length > 1 && onGpu(name))) {
      const x = gpu[name](...list);
      if (x?.mode === 'owned') this.made.push(x);
      return {x, js: `gpu.${name}(${js.join(', ')})`};
    }
    const first = this.#matrix(parts[0]), rest = /** @type {unknown[]} */ (list.slice(1)), words = js.slice(1);
    if (axis === undefined && takesAxis(name) && typeof rest[0] === 'number') [axis] = /** @type {number[]} */ (rest.splice(0, words.splice(0, 1).length));
    if (name === 'std' || name === 'var') {
      const [ddof = 0] = rest.splice(0, words.splice(0, 1).length);
      rest.push({ddof, ...(axis === undefined ? {} : {axis})});
      words.push(`{ddof: ${ddof}${axis === undefined ? '' : `, axis: ${axis}`}}`);
    } else if (axis !== undefined) {
      rest.push({axis});
      words.push(`{axis: ${axis}}`);
    }
    return {x: /** @type {any} */ (first.x)[name](...rest), js: `${first.js}.${name}(${words.join(', ')})`};
  }
}

/**
 * Makes the expression that a formula stands for. Nothing is computed. `made` are matrices to be closed afterwards.
 * @param {Gpu} gpu @param {string} text @param {(name: string) => Expr | undefined} operand @param {string[]} names those that there are
 */
export function read(gpu, text, operand, names) {
  const formula = new Formula(gpu, text, operand, names);
  try {
    const {x, js} = formula.whole();
    if (x instanceof Expr) return {x, js, made: formula.made};
    const one = gpu.full(1, 1, x);
    return {x: one, js, made: [...formula.made, one]};
  } catch (error) {
    for (const matrix of formula.made) matrix.close();
    throw error;
  }
}
