// SPDX-License-Identifier: Apache-2.0

/** The section of a program with kernels that were compiled when the package was built; see internal/shaders/modules/archive.go. */
const SECTION = 'sublet kernels';
/** Words of the table's entries: two of the hash, the offset and the size. */
const ENTRY = 4;

/** The archive of a program. */
export class Prepared {
  #bytes;
  #words;

  /** @param {WebAssembly.Module} program */
  constructor(program) {
    const [section] = WebAssembly.Module.customSections(program, SECTION);
    this.#bytes = new Uint8Array(section ?? 4);
    this.#words = new Uint32Array(this.#bytes.buffer, 0, 1 + ENTRY * new DataView(this.#bytes.buffer).getUint32(0, true));
  }

  /** Returns what belongs to a hash, null if nothing does. @param {number} low @param {number} high */
  find(low, high) {
    const words = this.#words;
    for (let i = 1; i < words.length; i += ENTRY) {
      if (words[i] === low && words[i + 1] === high) return this.#bytes.subarray(words[i + 2], words[i + 2] + words[i + 3]);
    }
    return null;
  }
}
