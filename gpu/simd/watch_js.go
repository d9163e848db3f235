// SPDX-License-Identifier: Apache-2.0

//go:build sublet_simd

package simd

import (
	"unsafe"
)

// The npm package's JavaScript does again what a message has had the device do, when the same message comes again: see web/src/replays.mjs.
// These functions tell it what that is. A call takes some nanoseconds, and it knows whether it wants to know.

// noteLaunch tells of a dispatch whose arguments are in the control block: of the kernel with the number, with so many bindings of storage,
// of which those are written whose bits are set.
//
//go:wasmimport sublet launch
func noteLaunch(number, args, scratch, total, bindings, written uint32)

// noteRead tells of bytes that are read into memory of the page's.
//
//go:wasmimport sublet read
func noteRead(address, size uint32)

// noteWrite tells of memory that is filled from the page's.
//
//go:wasmimport sublet write
func noteWrite(address, size uint32)

// noteOther tells of what cannot be done without the program.
//
//go:wasmimport sublet other
func noteOther()

// changed tells that the same message may lead to something else from now on, or that memory is freed.
//
//go:wasmimport sublet changed
func changed()

// note tells of a dispatch. Those that may take any time are not for JavaScript, which does not interrupt them.
func (p *program) note(in *instance, scratch, total uint32) {
	if !p.bounded {
		noteOther()
		return
	}
	written := uint32(0)
	for i, b := range p.code.Bindings {
		if b.Write {
			written |= 1 << i
		}
	}
	noteLaunch(in.number, p.address(p.control), scratch, total, uint32(len(p.storage)), written)
}

// Reads implements software.Watcher, as do Writes and Moves.
func (*engine) Reads(mem []byte) { noteRead(uint32(address(mem)), uint32(len(mem))) }

func (*engine) Writes(mem []byte) { noteWrite(uint32(address(mem)), uint32(len(mem))) }

// Moves tells of what is no dispatch.
func (*engine) Moves() { noteOther() }

// lent is memory that JavaScript has for results in between.
var lent [][]uint64

// exportScratch returns the address of memory for so many bytes, which stays JavaScript's until it asks for 0 bytes: then all is taken back.
//
//go:wasmexport sublet_scratch
func exportScratch(bytes uint32) uint32 { //nolint:unused // by JavaScript
	if bytes == 0 {
		lent = nil
		return 0
	}
	mem := make([]uint64, (bytes+7)/8+2) // kernels read some elements beyond the last one
	lent = append(lent, mem)
	return uint32(uintptr(unsafe.Pointer(&mem[0])))
}
