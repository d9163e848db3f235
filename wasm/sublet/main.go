// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command sublet is the WebAssembly program of the npm package, which loads it and talks to it through package bridge. With
// the tag sublet_page it is the one for pages with WebGPU, with sublet_cpu the one for those without.
package main

import (
	"github.com/sublet-gpu/sublet/wasm/internal/bridge"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

func main() { page.Main(bridge.Serve) }

// exportMatrices tells the loader which of the package's programs this is.
//
//go:wasmexport sublet_matrices
func exportMatrices() {} //nolint:unused // by Go
