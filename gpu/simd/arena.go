// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"cmp"
	"slices"
)

// arena gives out ranges of a linear memory. The smallest free range that is large enough is used first, and what is next to each other
// becomes one. It is for one goroutine at a time.
type arena struct {
	free []span // by address, never two that touch
	end  uint64 // nothing from here on was ever given out
	most uint64 // where the memory ends
}

// span is a range of addresses.
type span struct{ from, to uint64 }

// granule is what sizes are rounded up to and addresses are multiples of: a cache line.
const granule = 64

func newArena(most uint64) arena { return arena{end: granule, most: most} } // nothing has the address 0

func rounded(size uint64) uint64 { return (size + granule - 1) / granule * granule }

// take returns the address of a free range of so many bytes, not none, or false.
func (a *arena) take(size uint64) (uint64, bool) {
	if size > a.most {
		return 0, false
	}
	size = rounded(size)
	best := -1
	for i, s := range a.free {
		if n := s.to - s.from; n >= size && (best < 0 || n < a.free[best].to-a.free[best].from) {
			if best = i; n == size {
				break
			}
		}
	}
	if best < 0 {
		if size > a.most-a.end {
			return 0, false
		}
		a.end += size
		return a.end - size, true
	}
	s := &a.free[best]
	at := s.from
	if s.from += size; s.from == s.to {
		a.free = slices.Delete(a.free, best, best+1)
	}
	return at, true
}

// give takes a range back that take returned for the size.
func (a *arena) give(at, size uint64) {
	s := span{at, at + rounded(size)}
	i, _ := slices.BinarySearchFunc(a.free, s, func(x, y span) int { return cmp.Compare(x.from, y.from) })
	if i < len(a.free) && a.free[i].from == s.to {
		s.to = a.free[i].to
		a.free = slices.Delete(a.free, i, i+1)
	}
	if i > 0 && a.free[i-1].to == s.from {
		i--
		s.from = a.free[i].from
		a.free = slices.Delete(a.free, i, i+1)
	}
	if s.to == a.end {
		a.end = s.from
		return
	}
	a.free = slices.Insert(a.free, i, s)
}
