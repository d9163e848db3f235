// SPDX-License-Identifier: Apache-2.0

package graph

import "sync"

// pool keeps the memory of released blocks of a template, on all devices, for new ones.
type pool struct {
	mu     sync.Mutex
	limit  int
	closed bool
	free   []*storage
}

// take returns memory of at least so many bytes.
func (t *Template) take(size int) *storage {
	p := &t.pool
	p.mu.Lock()
	var s *storage
	if n := len(p.free); n > 0 && size <= t.Size() {
		s = p.free[n-1]
		p.free[n-1] = nil
		p.free = p.free[:n-1]
	}
	p.mu.Unlock()
	if s == nil {
		s = &storage{t: t, room: max(size, t.Size())}
		if size > t.Size() {
			s.odd = true
		}
		s.sides = make([]side, len(t.g.devices))
	}
	s.n = size
	return s
}

// give takes memory back that nobody uses any more.
func (t *Template) give(s *storage) {
	p := &t.pool
	p.mu.Lock()
	keep := !s.odd && !p.closed && len(p.free) < p.limit
	if keep {
		s.forget()
		p.free = append(p.free, s)
	}
	p.mu.Unlock()
	if !keep {
		s.close()
	}
}

// open lets the pool keep memory again.
func (p *pool) open() {
	p.mu.Lock()
	p.closed = false
	p.mu.Unlock()
}

// close keeps the pool from keeping memory, and returns what there is.
func (p *pool) close() []*storage {
	p.mu.Lock()
	defer p.mu.Unlock()
	free := p.free
	p.free, p.closed = nil, true
	return free
}

func (p *pool) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.free)
}
