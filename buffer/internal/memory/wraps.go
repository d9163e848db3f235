// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"slices"
	"sort"
	"sync"
)

// wraps finds the memories that overlap a range of host memory. A backing is there from its first use until it is closed. Memories
// that overlap become one, so that those of an address space are disjoint; they are sorted.
var wraps = index{spaces: map[uint64][]*Memory{}}

type index struct {
	mu     sync.Mutex // guards the ranges of memories, too
	spaces map[uint64][]*Memory
}

// join adds a backing to the memory that it overlaps. It makes several such one.
func (x *index) join(k *Backing, space uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	list := x.spaces[space]
	from := sort.Search(len(list), func(i int) bool { return list[i].hi > k.At })
	to := from
	for to < len(list) && list[to].lo < k.End {
		to++
	}
	k.m.indexed, k.m.space, k.m.lo, k.m.hi = true, space, k.At, k.End
	if from == to {
		x.spaces[space] = slices.Insert(list, from, k.m)
		return
	}
	m := list[from]
	for _, o := range append(list[from+1:to:to], k.m) {
		m.absorb(o)
	}
	k.m = m
	x.spaces[space] = slices.Delete(list, from+1, to)
}

// absorb makes o a part of m.
func (m *Memory) absorb(o *Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	m.lo, m.hi = min(m.lo, o.lo), max(m.hi, o.hi)
	m.backings = append(m.backings, o.backings...)
	m.log = append(m.log, o.log...)
	o.into, o.backings, o.log = m, nil, nil
}

// left notes that a backing has left a memory.
func (x *index) left(m *Memory) {
	if len(m.backings) > 0 {
		m.lo, m.hi = m.backings[0].At, m.backings[0].End
		for _, k := range m.backings[1:] {
			m.lo, m.hi = min(m.lo, k.At), max(m.hi, k.End)
		}
		return
	}
	list := x.spaces[m.space]
	i := sort.Search(len(list), func(i int) bool { return list[i].hi >= m.hi })
	rest := slices.Delete(list, i, i+1)
	if x.spaces[m.space] = rest; len(rest) == 0 {
		delete(x.spaces, m.space)
	}
}
