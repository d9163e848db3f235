// SPDX-License-Identifier: Apache-2.0

/** Names that are longer than this are nobody's typing errors. */
const LONGEST = 24;

/** How many letters are to be changed, left out, put in or exchanged with their neighbour to make one text of another. @param {string} a @param {string} b */
function distance(a, b) {
  const rows = [Array.from({length: b.length + 1}, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const row = rows[i] = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[a.length][b.length];
}

/** What a message says of a name that there is not: the nearest of those that there are, and all of them. @param {unknown} name @param {readonly string[]} names */
export function instead(name, names) {
  const all = `there are ${names.join(', ') || 'none'}`;
  if (typeof name !== 'string' || name.length > LONGEST || names.length === 0) return all;
  const typed = name.toLowerCase().replaceAll('_', ''), far = names.map((known) => distance(typed, known.toLowerCase()));
  const least = Math.min(...far), nearest = names[far.indexOf(least)];
  return least <= Math.max(2, nearest.length / 3) && least < nearest.length ? `did you mean ${nearest}? ${all[0].toUpperCase()}${all.slice(1)}` : all;
}
