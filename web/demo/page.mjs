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

/** @param {{driver: string, name: string, vendor: string, backend: string, kind: string}} info @param {string} without what to say without WebGPU */
export function showAdapter(info, without = 'no WebGPU: computing on the CPU') {
  $('adapter-name').textContent = info.driver === 'browser' ? info.name : without;
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
