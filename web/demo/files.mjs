// SPDX-License-Identifier: Apache-2.0

// Reads matrices from text.

/** @typedef {{rows: number, cols: number, data: Float32Array}} Table */

/** Rows of numbers, apart by spaces, commas, semicolons or tabs. @param {string} text @returns {Table} */
export function readText(text) {
  const lines = text.split(/\r?\n/).map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  const rows = lines.map((line) => line.replace(/[[\](){}]/g, ' ').trim().split(/\s*[,;\t]\s*|\s+/).filter(Boolean));
  if (rows.length > 1 && rows[0].every((word) => Number.isNaN(Number(word)))) rows.shift(); // the names of columns
  const cols = rows[0]?.length ?? 0;
  const data = new Float32Array(rows.length * cols);
  rows.forEach((words, i) => {
    if (words.length !== cols) throw new Error(`row ${i + 1} has ${words.length} numbers, the first has ${cols}`);
    words.forEach((word, j) => {
      const n = /^[+-]?(nan|inf(inity)?)$/i.test(word) ? special(word) : Number(word);
      if (Number.isNaN(n) && !/nan/i.test(word)) throw new Error(`"${word}" in row ${i + 1} is no number`);
      data[i * cols + j] = n;
    });
  });
  return {rows: rows.length, cols, data};
}

/** @param {string} word */
const special = (word) => /nan/i.test(word) ? NaN : word.startsWith('-') ? -Infinity : Infinity;
