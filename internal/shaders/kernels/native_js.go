// SPDX-License-Identifier: Apache-2.0

//go:build js

package kernels

// Pages have no instructions for vectors but WebAssembly's, so that native.go is left out.

func (*Request) native() bool { return false }

func (*Request) planNative() *Product { return nil }

// RunNative implements [shaders.Native].
func (reference) RunNative([3]uint32, []byte, [][]byte) {}
