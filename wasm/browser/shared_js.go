// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm && (!sublet_page || sublet_simd)

package browser

// alwaysShared says that the page always hands Go's memory to the helper. Elsewhere it may not, and does not if several threads share it.
const alwaysShared = false
