// SPDX-License-Identifier: Apache-2.0

// What the declarations of the package say: a simple parser of files that are written as these are.

import {readFileSync, readdirSync} from 'node:fs';

/** The folder of the declarations. */
const types = new URL('../types/', import.meta.url);

/**
 * A member of a class or of the operations, or a function.
 * @typedef {{where: string, sentence: string, example: string[]}} Member
 */

/** Interfaces whose members are documented as those of classes are. */
const OPERATIONS = /^export interface (ElementOperations|ExprOperations|GpuOperations|NumPyMethods|NumPyFunctions|GpuMakers|CruncherTask|DevicePool|CruncherPipeline|DevicePipeline|CruncherAlias|Graph|GraphInput|GraphOutput)\b/;

/** A comment without its stars: what is before its example, and the example. @param {string[]} lines */
function parts(lines) {
  const text = lines.map((line) => line.replace(/^\s*\/?\*+\/?( |$)/, '').replace(/\s*\*\/$/, ''));
  const at = text.findIndex((line) => line.startsWith('@example'));
  const example = at < 0 ? [] : text.slice(at + 1).filter((line) => line !== '');
  return {sentence: text.slice(0, at < 0 ? undefined : at).join(' ').trim(), example};
}

/** The members that a file declares. Of several declarations of one name the first is documented. @param {string} file @returns {Member[]} */
function membersOf(file) {
  const list = [];
  let scope = '', before = '', comment = /** @type {string[] | null} */ (null), open = false;
  for (const line of readFileSync(new URL(file, types), 'utf8').split('\n')) {
    if (open || /^\s*\/\*\*/.test(line)) {
      comment = open ? [...comment ?? [], line] : [line];
      open = !line.includes('*/');
      continue;
    }
    const declared = /^export (?:class|function) (\w+)/.exec(line)?.[1] ?? OPERATIONS.exec(line)?.[1];
    if (declared) [scope, before] = [line.startsWith('export function') ? '' : declared, ''];
    else if (line === '}') scope = '';
    const name = /^ {2}(?:readonly )?(\[Symbol\.\w+\]|\w+)[<(:?]/.exec(line)?.[1];
    const what = line.startsWith('export function') ? declared : scope && name;
    if (what && what !== before) {
      before = what;
      list.push({where: `${file}: ${scope}${scope && '.'}${what}`, ...parts(comment ?? [])});
    }
    comment = null;
  }
  return list.filter(({where, sentence}) => !(where.endsWith('.constructor') && sentence === '')); // nobody calls those
}

/** All members. */
export const members = readdirSync(types).filter((file) => file.endsWith('.d.ts')).flatMap(membersOf);

/** What an expression is said to be. */
const RESULT = /^(?<call>[^}].*); \/\/ (?<result>\[.*\]|-?[\d.]+(?:e-?\d+)?|"[^"]*"|true|false)$/;

/**
 * An example with something else for each value that it tells.
 * @param {string[]} example @param {(call: string, result: string) => string} code
 */
export const rewritten = (example, code) => example.map((line) => {
  const {call, result} = RESULT.exec(line)?.groups ?? {};
  return call === undefined || result === undefined ? line : code(call, result);
}).join('\n');

/** How many values an example tells. @param {string[]} example */
export const resultsOf = (example) => example.filter((line) => RESULT.test(line)).length;
