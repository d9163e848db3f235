// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && sublet_page && !sublet_simd

package browser

// alwaysShared says that the page always hands Go's memory to the helper, as the npm package does to its program for WebGPU, which is
// smaller without what copies.
const alwaysShared = true
