// SPDX-License-Identifier: Apache-2.0

// Package pool keeps buffers that nobody needs just now, to be used again.
package pool

// Pool keeps values of T, of which it knows how many bytes each has. The zero value is empty. It is for one goroutine at a time.
type Pool[T any] struct {
	Bytes uint64 // of what is kept
	items []item[T]
}

type item[T any] struct {
	value T
	size  uint64
}

// most bounds how many values are kept, and so how long Take looks.
const most = 4096

// Put adds a value, which is then the newest.
func (p *Pool[T]) Put(v T, size uint64) {
	p.items = append(p.items, item[T]{v, size})
	p.Bytes += size
}

// Take removes the newest value of the size, if there is one.
func (p *Pool[T]) Take(size uint64) (v T, ok bool) {
	for i := len(p.items) - 1; i >= 0; i-- {
		if p.items[i].size == size {
			return p.remove(i), true
		}
	}
	return v, false
}

// Evict removes the oldest value while the pool keeps more than limit bytes, or too many values.
func (p *Pool[T]) Evict(limit uint64) (v T, ok bool) {
	if len(p.items) > most || p.Bytes > limit {
		return p.remove(0), true
	}
	return v, false
}

func (p *Pool[T]) remove(i int) T {
	it, last := p.items[i], len(p.items)-1
	copy(p.items[i:], p.items[i+1:])
	p.items[last] = item[T]{} // must not be kept alive
	p.items = p.items[:last]
	p.Bytes -= it.size
	return it.value
}
