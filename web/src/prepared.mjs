// SPDX-License-Identifier: Apache-2.0

/** The section of a program with kernels that were compiled when the package was built; see internal/shaders/modules/archive.go. */
const SECTION = 'sublet kernels';
/** Words of the table's entries: two of the hash, the offset and the size. */
const ENTRY = 4;

/** The archive of a program. What is damaged is not found, or is found to be damaged by the program: it compiles such kernels itself. */
export class Prepared {
  #bytes;
  #words;

  /** @param {WebAssembly.Module} program */
  constructor(program) {
    const [section = new ArrayBuffer(0)] = WebAssembly.Module.customSections(program, SECTION);
    this.#bytes = new Uint8Array(section);
    const words = new Uint32Array(section, 0, section.byteLength >>> 2);
    this.#words = words.subarray(0, 1 + ENTRY * Math.min(words[0] ?? 0, (words.length - 1) / ENTRY >>> 0));
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
