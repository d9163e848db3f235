// SPDX-License-Identifier: Apache-2.0

package simd

import (
	"math/rand/v2"
	"testing"
)

// TestArena takes and gives ranges at random, which never overlap, and finds one range when all are back.
func TestArena(t *testing.T) {
	const most = 1 << 20
	a, rng := newArena(most), rand.New(rand.NewPCG(1, 2))
	owner := make([]int, most/granule) // of each granule, 0 for none
	type held struct{ at, size uint64 }
	live := map[int]held{}
	fill := func(h held, from, to int) {
		for g := h.at / granule; g < rounded(h.at+h.size)/granule; g++ {
			if owner[g] != from {
				t.Fatalf("granule %d is of %d, not of %d", g, owner[g], from)
			}
			owner[g] = to
		}
	}
	refused := 0
	for id := 1; id < 20000; id++ {
		size := 1 + rng.Uint64N(1<<rng.IntN(20))
		at, ok := a.take(size)
		if ok {
			if at == 0 || at%granule != 0 || at+size > most {
				t.Fatalf("%d bytes at %d", size, at)
			}
			live[id] = held{at, size}
			fill(live[id], 0, id)
		} else {
			refused++
		}
		frees := rng.IntN(2)
		if !ok {
			frees = 20
		}
		for other, h := range live {
			if frees--; frees < 0 {
				break
			}
			fill(h, other, 0)
			a.give(h.at, h.size)
			delete(live, other)
		}
		for i, s := range a.free {
			if s.from >= s.to || i > 0 && a.free[i-1].to >= s.from || s.to >= a.end {
				t.Fatalf("free range %d of %v, which end at %d", i, a.free, a.end)
			}
		}
	}
	for _, h := range live {
		a.give(h.at, h.size)
	}
	if len(a.free) != 0 || a.end != granule {
		t.Errorf("%d ranges are left before %d", len(a.free), a.end)
	}
	if _, ok := a.take(most); ok {
		t.Error("there is more than there is")
	}
	if _, ok := a.take(^uint64(0)); ok {
		t.Error("there is memory without end")
	}
	if at, ok := a.take(most - granule); !ok || at != granule {
		t.Errorf("the whole is at %d, %v", at, ok)
	}
	if _, ok := a.take(1); ok {
		t.Error("there is something beside the whole")
	}
	if refused == 0 {
		t.Error("there was always memory")
	}
}

// TestArenaBest takes the smallest range that is large enough.
func TestArenaBest(t *testing.T) {
	a := newArena(1 << 20)
	take := func(n uint64) uint64 {
		at, ok := a.take(n * granule)
		if !ok {
			t.Fatal("no memory")
		}
		return at
	}
	large, _, small, _ := take(4), take(1), take(2), take(1)
	a.give(large, 4*granule)
	a.give(small, 2*granule)
	if at := take(2); at != small {
		t.Errorf("2 granules are at %d, not at %d", at, small)
	}
	if at := take(3); at != large {
		t.Errorf("3 granules are at %d, not at %d", at, large)
	}
	if at := take(1); at != large+3*granule {
		t.Errorf("one granule is at %d, not at %d", at, large+3*granule)
	}
}
