// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command cruncher is the WebAssembly program behind Gpu.cruncher of the npm package, which loads it when a page first calls
// that: what package cruncher is for web/src/crunch.mjs. It has a device, that of the Gpu, and is built with the tag
// sublet_page.
//
// # Calls
//
// JavaScript calls functions by name, with numbers, texts and memory; see functions. Those that wait for a device take
// a ticket first, under which they report when they are done. The others report an error under the ticket 0 before they
// return. Crunchers, arrays and batches are handles: numbers that this program gives out, and not twice.
package main

import (
	"runtime/debug"

	"github.com/sublet-gpu/sublet/wasm/internal/start"
)

// gcPercent is that of wasm/sublet, for the same reason.
const gcPercent = 400

func main() {
	debug.SetGCPercent(gcPercent)
	page := start.Enter()
	if page == nil {
		return
	}
	dev := page.Open()
	if dev == nil {
		return
	}
	s := newServer(page, dev)
	page.Ready(dev, s.functions())
	s.run()
}

// exportCruncher tells the loader which of the package's programs this is.
//
//go:wasmexport sublet_cruncher
func exportCruncher() {} //nolint:unused // by Go
