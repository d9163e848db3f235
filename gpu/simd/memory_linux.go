// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"syscall"
	"unsafe"
)

// discarded is how many bytes are worth a call of the system, and new page faults, in place of writing zeros.
const discarded = 1 << 20

// zero fills a part of reserved memory with zeros. What is large goes back to the system.
func zero(mem []byte) {
	const page = 64 << 10 // the largest there is
	if len(mem) >= discarded {
		begin := int(-uintptr(unsafe.Pointer(unsafe.SliceData(mem))) % page)
		end := begin + (len(mem)-begin)/page*page
		if syscall.Madvise(mem[begin:end], syscall.MADV_DONTNEED) == nil {
			clear(mem[:begin])
			clear(mem[end:])
			return
		}
	}
	clear(mem)
}
