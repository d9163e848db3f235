// SPDX-License-Identifier: Apache-2.0

import {failure, guard, listed, show} from './errors.mjs';
import {inside, isMatrix} from './expr.mjs';
import {sessionOf} from './gpu.mjs';
import {instead} from './nearest.mjs';
import {read} from './source.mjs';
import {insideTensor} from './tensor-expr.mjs';

// What flows through task graphs, and what lets it pass.

/** @typedef {import('./gpu.mjs').Gpu} Gpu */
/** A value. mine: the graph closes it with the last reference. @typedef {{value: any, mine: boolean, refs: number}} Cell */
/** A value, or the error that stands for it, with signals. @typedef {{cell: Cell, error?: unknown, failed: boolean, signals: number}} Block */
/** @typedef {{openOn: number, closeOn: number, ask: Function | undefined}} Predicate */

/** The signals, with PTask's numbers. */
const SIGNALS = Object.freeze({bof: 1, eof: 2, beginIteration: 4, endIteration: 8, devNull: 32});
export const EOF = SIGNALS.eof, DEV_NULL = SIGNALS.devNull;
/** What a block that stands for an error is to predicates: one with all signals. */
const ALL = 63;

/** Signals of the user's. @param {string} where @param {unknown} names @returns {number} */
export function signalBits(where, names) {
  const list = listed(where, names ?? []), known = Object.keys(SIGNALS);
  if (!list) throw failure('ErrInvalid', where, `signals ${show(names)}; an array of names`);
  return list.reduce((bits, name) => {
    if (!known.includes(name)) throw failure('ErrInvalid', where, `signal ${show(name)}; ${instead(name, known)}`);
    return bits | SIGNALS[/** @type {keyof typeof SIGNALS} */ (name)];
  }, 0);
}

/** @param {number} bits */
export const signalNames = (bits) => Object.entries(SIGNALS).filter(([, bit]) => bits & bit).map(([name]) => name);

/** @param {string} where @param {unknown} given @returns {Predicate | null} */
export function predicateOf(where, given) {
  if (given === undefined) return null;
  const {openOn, closeOn, ask} = read(where, given, ['openOn', 'closeOn', 'ask']);
  if (ask !== undefined && typeof ask !== 'function') throw failure('ErrInvalid', where, `ask ${show(ask)} is no function`);
  return {openOn: signalBits(where, openOn), closeOn: signalBits(where, closeOn), ask};
}

/** Whether a block passes. One that the predicate's function throws about does not; of errors it is not asked. @param {Predicate | null} predicate @param {Block} block */
export function passes(predicate, block) {
  if (!predicate) return true;
  const {openOn, closeOn, ask} = predicate, bits = block.failed ? ALL : block.signals;
  if ((openOn && !(bits & openOn)) || bits & closeOn) return false;
  try {
    return ask === undefined || block.failed || Boolean(ask(block.cell.value, signalNames(block.signals)));
  } catch {
    return false;
  }
}

/** @param {any} value @returns {Cell} */
export function cellOf(value) {
  let mine = false;
  try {
    mine = isMatrix(value) || insideTensor(value, 'graph') !== undefined;
  } catch { // it is closed, or nothing of ours
  }
  return {value, mine, refs: 0};
}

/** A block of a value of the user's, which is computed. @param {any} value @param {number} [signals] @returns {Block} */
export const blockOf = (value, signals = 0) => ({cell: cellOf(guard('graph', () => evaluated(value))), failed: false, signals});

/** @param {unknown} error @param {number} signals @returns {Block} */
export const failedBlock = (error, signals) => ({cell: cellOf(undefined), error, failed: true, signals});

/** Drops a reference. The last one closes what can be closed. @param {Block} block */
export function release({cell}) {
  if (--cell.refs <= 0 && cell.mine) cell.value.close();
}

/** A copy of a matrix or a tensor. @param {any} value */
export const copyOf = (value) => isMatrix(value) ? value.clone() : value.eval();

/** A value that is in memory: an expression is computed. @param {any} value */
export function evaluated(value) {
  const matrix = inside(value, 'graph'), tensor = insideTensor(value, 'graph'); // which refuse what is closed
  return (matrix && !isMatrix(value)) || (tensor && !tensor.node.memory) ? value.eval() : value;
}

/** The connection to the device of a matrix or a tensor. @param {any} value */
export const placeOf = (value) => (isMatrix(value) ? inside(value, 'graph') : insideTensor(value, 'graph'))?.session;

/** A matrix or a tensor on a device; what lies on another one goes by way of the host. @param {Gpu} gpu @param {any} value @returns {any} the value itself, or a promise of a copy */
export function moved(gpu, value) {
  const session = placeOf(value);
  if (!session || session === sessionOf(gpu)) return value;
  const {shape, dtype} = value, options = {dtype};
  return value.read().then((/** @type {any} */ elements) => isMatrix(value) ? gpu.matrix(shape[0], shape[1], elements, options) : gpu.tensor(elements, shape, options));
}

/** Whether a value opens a gate: its first element, of a matrix or a tensor, or the value itself is not 0. @param {any} value */
export const opens = async (value) => Boolean(placeOf(value) ? await value.item(.../** @type {number[]} */ (value.shape).map(() => 0)) : value);
