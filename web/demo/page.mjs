// SPDX-License-Identifier: Apache-2.0

// What the pages have in common.

/** @template {Element} [T=HTMLElement] @param {string} id @returns {T} */
export const $ = (id) => /** @type {T} */ (/** @type {unknown} */ (document.getElementById(id)));

/** @param {number} n */
export const bytes = (n) => n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / 1048576).toFixed(1)} MiB`;

/** @param {number} seconds */
export const duration = (seconds) => seconds < 1 ? `${(seconds * 1000).toFixed(1)} ms` : `${seconds.toFixed(2)} s`;

/** @param {unknown} error */
export function showError(error) {
  const e = /** @type {{code?: string, message: string}} */ (error);
  const box = $('error');
  box.replaceChildren();
  if (e.code) box.append(Object.assign(document.createElement('b'), {textContent: e.code}), ' ');
  box.append(e.message ?? String(error));
  box.hidden = false;
}

/** What to compute on: ?device=webgpu or simd, or what suits. @type {any} */
export const device = new URLSearchParams(location.search).get('device') ?? 'auto';

/** @param {{driver: string, name: string, vendor: string, backend: string, kind: string}} info */
export function showAdapter(info) {
  $('adapter-name').textContent = info.driver === 'simd' ? 'the CPU, by WebAssembly' : info.name;
  $('adapter').dataset.state = info.kind === 'cpu' ? 'software' : 'gpu';
  $('adapter').title = `${info.vendor} ${info.backend}, ${info.kind}`;
}

/** There is no device. @param {unknown} error */
export function showNoAdapter(error) {
  $('adapter').dataset.state = 'failed';
  $('adapter-name').textContent = 'no adapter';
  showError(error);
}

/** Saves a file of the page's. @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = Object.assign(document.createElement('a'), {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

const SVG = 'http://www.w3.org/2000/svg';

/** An element of a drawing. @param {string} name @param {Record<string, string | number>} attributes @param {string} [text] */
export function svg(name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}
