// SPDX-License-Identifier: Apache-2.0

// Package pool keeps buffers that nobody needs just now, to be used again.
package pool

import "slices"

// Pool keeps values, all of one type, of which it knows how many bytes each has. It is not generic because that would be a kilobyte
// more in pages. The zero value is empty. It is for one goroutine at a time.
type Pool struct {
	Bytes uint64 // of what is kept
	items []item // oldest first
}

type item struct {
	value any
	size  uint64
}

// most bounds how many values are kept, and so how long Take looks.
const most = 4096

// Put adds a value, which is then the newest.
func (p *Pool) Put(v any, size uint64) {
	p.items = append(p.items, item{v, size})
	p.Bytes += size
}

// Take removes the newest value of the size, or returns nil.
func (p *Pool) Take(size uint64) any {
	for i, it := range slices.Backward(p.items) {
		if it.size == size {
			return p.remove(i)
		}
	}
	return nil
}

// Evict removes the oldest value if the pool keeps more than limit bytes, or too many values. Otherwise it returns nil.
func (p *Pool) Evict(limit uint64) any {
	if len(p.items) > most || p.Bytes > limit {
		return p.remove(0)
	}
	return nil
}

func (p *Pool) remove(i int) any {
	it, last := p.items[i], len(p.items)-1
	copy(p.items[i:], p.items[i+1:])
	p.items[last] = item{} // must not be kept alive
	p.items = p.items[:last]
	p.Bytes -= it.size
	return it.value
}
