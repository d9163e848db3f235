// SPDX-License-Identifier: Apache-2.0

package simd

import "syscall"

// worthDiscarding is how many bytes are worth a call of the system, and new page faults, in place of writing zeros.
const worthDiscarding = 1 << 20

// zero fills a part of reserved memory with zeros. What is large goes back to the system.
func zero(mem []byte) {
	if len(mem) < worthDiscarding || !discard(mem) {
		clear(mem)
	}
}

// discard gives the whole pages of a part of reserved memory back to the system, and fills the rest with zeros, or does nothing.
func discard(mem []byte) bool {
	const page = 64 << 10 // the largest there is
	begin := int(-address(mem) % page)
	if len(mem)-begin < page {
		return false
	}
	end := begin + (len(mem)-begin)/page*page
	if syscall.Madvise(mem[begin:end], syscall.MADV_DONTNEED) != nil {
		return false
	}
	clear(mem[:begin])
	clear(mem[end:])
	return true
}
