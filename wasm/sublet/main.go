// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

// Command sublet is the WebAssembly program of the npm package, which loads it and talks to it through package bridge.
package main

import "github.com/sublet-gpu/sublet/wasm/bridge"

func main() { bridge.Main() }
