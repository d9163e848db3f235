// SPDX-License-Identifier: Apache-2.0

//go:build sublet_simd && !sublet_page

package simd

import (
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/shaders/modules"
)

// The program that the npm package has for pages without WebGPU brings an archive of usual kernels along, see wasm/prepare. It stays
// with JavaScript.

// preparedSize returns how many bytes of the archive belong to the hash, 0 if none do.
//
//go:wasmimport sublet prepared
func preparedSize(low, high uint32) uint32

// unpack copies the bytes that preparedSize found to memory.
//
//go:wasmimport sublet unpack
func unpack(address uint32)

// prepared returns the module of a kernel if the archive has it. It is asked for the library's own kernels only.
func prepared(k *driver.Kernel) *modules.Module {
	if !k.Bounded {
		return nil
	}
	hash := modules.Hash(content(k), relaxed(), sharedMemory())
	size := preparedSize(uint32(hash), uint32(hash>>32))
	if size == 0 {
		return nil
	}
	b := make([]byte, size)
	unpack(uint32(uintptr(unsafe.Pointer(&b[0]))))
	return modules.Decode(b)
}
