// SPDX-License-Identifier: Apache-2.0

// Where the lines of the package's bundle come from, by its source map: https://tc39.es/ecma426/.

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Decodes a segment: numbers in base64 VLQ. @param {string} text */
function decode(text) {
  const numbers = [];
  for (let value = 0, shift = 0, i = 0; i < text.length; i++) {
    const digit = DIGITS.indexOf(text[i]);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    numbers.push(value & 1 ? -(value >>> 1) : value >>> 1);
    value = shift = 0;
  }
  return numbers;
}

/** Reads the source map of a module. @param {string} url @returns {Promise<(frame: string) => string>} the source of a frame of a stack: file:line, and some lines up to that */
export async function sourceMap(url) {
  const {mappings, sources, sourcesContent} = await (await fetch(`${url}.map`)).json();
  let source = 0, line = 0;
  const rows = mappings.split(';').map((row) => {
    let column = 0;
    return row.split(',').filter(Boolean).map(decode).map(([right, other = 0, down = 0]) => ({column: column += right, source: source += other, line: line += down}));
  });
  return (frame) => {
    const [, row, column] = /:(\d+):(\d+)\)?$/.exec(frame) ?? [], at = rows[row - 1]?.findLast((segment) => segment.column < column);
    if (!at || !frame.includes(url)) return frame;
    return `${sources[at.source].split('/').at(-1)}:${at.line + 1} ${sourcesContent[at.source].split('\n').slice(Math.max(0, at.line - 1), at.line + 1).join(' ')}`;
  };
}
