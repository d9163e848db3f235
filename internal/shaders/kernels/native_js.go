// SPDX-License-Identifier: Apache-2.0

//go:build js

package kernels

// Native says that native.go is left out: pages have no instructions for vectors but WebAssembly's.
const Native = false

func (*Request) native() bool { return false }

func (*Request) planNative() *Product { return nil }

// RunNative implements [shaders.Native].
func (reference) RunNative([3]uint32, []byte, [][]byte) {}
