// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command sublet is the WebAssembly program of the npm package, which loads it and talks to it through package bridge. With
// the tag sublet_page it is the one for pages with WebGPU, with sublet_cpu the one for those without.
package main

import (
	"runtime/debug"

	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
)

// gcPercent lets garbage grow to five times what is in use before it is collected. What is in use is little, matrices lie
// in the GPU's memory, and each collection holds up the page.
const gcPercent = 400

func main() {
	debug.SetGCPercent(gcPercent)
	bridge.Main()
}
