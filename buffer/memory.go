// SPDX-License-Identifier: Apache-2.0

package buffer

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/sublet-gpu/sublet/buffer/internal/span"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/pointers"
)

// memory knows where the newest bytes are of one buffer, or of several that wrap overlapping host memory. Their positions
// are addresses, or offsets in an ArrayBuffer, so that all of them count alike; those of other buffers begin with 0.
//
// A write is noted for each place that lacks it: in the log for the host, and in behind for a replica. Places take writes
// over in their order, from the replica that made them. That replica may have newer bytes by then, but never older ones:
// a replica takes what it lacks of a region before the region is written.
type memory struct {
	mu       sync.Mutex
	into     *memory // the memory that this one became a part of
	space    uint64  // of the positions, 0 for Go memory
	id       int     // in the index; 0 is not there
	backings []*backing
	log      []write // what the host lacks; where there is no host, all writes
	first    backing // of the buffer that it was made for
}

// backing is a buffer as its memory knows it. It does not refer to the buffer, which may be collected.
type backing struct {
	m        *memory // or what that became a part of
	dev      *gpu.Device
	at, end  int
	host     gpu.Host
	hosted   bool
	windowed bool // the device cannot hold all of it
	replicas []*replica
	one      [1]*replica // is enough for most
	whole    replica     // the first
}

// maxWrites is how many writes a place may lack before those that one replica has are taken for one of everything between them.
const maxWrites = 64

// newBacking makes the backing of a buffer, in the memory of those that overlap it if there are any.
func (b *Buffer) newBacking() *backing {
	m := new(memory)
	k := &m.first
	*k = backing{m: m, dev: b.dev, end: b.size, host: b.host, hosted: b.HasHost(), windowed: b.windowed}
	k.replicas = k.one[:0]
	m.backings = append(m.backings, k)
	if b.mode == External && k.hosted && b.size > 0 {
		if space, at, ok := gpu.HostPlace(b.host); ok {
			k.at, k.end = at, at+b.size
			wraps.join(k, space)
		}
	}
	return k
}

// lock returns the memory, which the caller unlocks.
func (k *backing) lock() *memory {
	m := k.m
	for {
		m.mu.Lock()
		if m.into == nil {
			return m
		}
		next := m.into
		m.mu.Unlock()
		m = next
	}
}

// lacks reports whether the host lacks bytes of a region.
func (m *memory) lacks(r Region) bool {
	for i := range m.log {
		if m.log[i].overlaps(r) {
			return true
		}
	}
	return false
}

// each calls fn for every replica that is valid.
func (m *memory) each(fn func(*replica)) {
	for _, k := range m.backings {
		for _, r := range k.replicas {
			if r.valid {
				fn(r)
			}
		}
	}
}

// note appends a write to a list, in place of those that it contains. A list that gets too long is shortened if possible.
func (m *memory) note(list []write, w write) []write {
	list = append(without(list, func(o *write) bool { return w.contains(o.Region) }), w)
	if len(list) > maxWrites {
		return m.shorten(list, w.from)
	}
	return list
}

// shorten makes one write of those in a list whose bytes one replica has, or the host, if what is between them is the newest there, too.
func (m *memory) shorten(list []write, from *replica) []write {
	has := func(o *write) bool {
		return from == nil && o.from == nil || from != nil && from.lo <= o.Offset && o.end() <= from.hi
	}
	lo, hi := math.MaxInt, 0
	for i := range list {
		if o := &list[i]; has(o) {
			lo, hi = min(lo, o.Offset), max(hi, o.end())
		}
	}
	if from == nil && m.lacks(between(lo, hi)) || from != nil && len(from.behind) > 0 {
		return list
	}
	return append(without(list, has), write{between(lo, hi), from})
}

// without removes writes from a list, in place.
func without(list []write, remove func(*write) bool) []write {
	n := 0
	for i := range list {
		if !remove(&list[i]) {
			list[n] = list[i]
			n++
		}
	}
	clear(list[n:])
	return list[:n]
}

// wrote notes that a replica was written.
func (m *memory) wrote(r *replica, w Region) {
	w = w.joined()
	if r.replaced || !r.valid {
		r.valid, r.replaced, r.behind = true, false, r.behind[:0]
	}
	if w.span() > 0 {
		m.each(func(o *replica) {
			if o != r && o.lo < w.end() && w.Offset < o.hi {
				o.behind = m.note(o.behind, write{w, r})
			}
		})
	}
	switch k := r.k; {
	case !k.hosted && len(r.behind) == 0 && r.lo == k.at && r.hi == k.end: // all that there is, zeros too
		m.log = append(m.log[:0], write{between(k.at, k.end), r})
	case w.span() > 0:
		m.log = m.note(m.log, write{w, r})
	}
}

// hostWrote notes that the host was written: replicas lack that, and what the host lacked there is no longer wanted.
func (m *memory) hostWrote(w Region) error {
	w = w.joined()
	if w.span() == 0 {
		return nil
	}
	m.each(func(r *replica) {
		if r.lo < w.end() && w.Offset < r.hi {
			r.behind = m.note(r.behind, write{w, nil})
		}
	})
	if w.Count == 1 {
		_, m.log = divide(m.log, w.Offset, w.end())
		return nil
	}
	m.log = without(m.log, func(o *write) bool { return w.contains(o.Region) })
	for _, o := range m.log {
		if o.overlaps(w) { // comes to the host later, and then with what the host has now
			if err := m.update(o.from, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// download brings to the host what it lacks of bytes lo to hi-1 of a buffer.
func (m *memory) download(ctx context.Context, k *backing, lo, hi int) error {
	if len(m.log) == 0 {
		return nil
	}
	in, rest := m.log, m.log[:0]
	if len(m.backings) > 1 || lo > k.at || hi < k.end {
		in, rest = divide(m.log, lo, hi)
	}
	host := k.host
	host.ReadOnly = false // only another wrap of the same memory can have been written
	var err error
	for len(in) > 0 && err == nil {
		w := in[0]
		if err = w.from.mem.Read(ctx, w.from.transfer(w.Region, host, w.Offset-k.at)); err == nil {
			in = in[1:]
		}
	}
	rest = append(rest, in...)
	m.log = rest
	return err
}

// source returns another replica that has all of a region and lacks nothing of it.
func (m *memory) source(w Region, but *replica) (found *replica) {
	m.each(func(r *replica) {
		if r != but && !r.mem.Lost() && r.lo <= w.Offset && w.end() <= r.hi && !r.lacks(w) {
			found = r
		}
	})
	return found
}

// handOver makes others the source of what a replica was the source of, and reports whether nothing is left.
func (m *memory) handOver(r *replica) bool {
	all := true
	for i := range m.log {
		if w := &m.log[i]; w.from == r {
			if o := m.source(w.Region, r); o != nil {
				w.from = o
			} else {
				all = false
			}
		}
	}
	m.each(func(o *replica) {
		for i := range o.behind {
			w := &o.behind[i]
			if w.from != r {
				continue
			}
			if o.k.hosted && !m.lacks(w.Region) {
				w.from = nil
			} else if s := m.source(w.Region, r); s != nil {
				w.from = s
			} else {
				all = false
			}
		}
	})
	return all
}

// giveUp forgets what only a replica has.
func (m *memory) giveUp(r *replica) {
	gone := func(w *write) bool { return w.from == r }
	m.log = without(m.log, gone)
	m.each(func(o *replica) { o.behind = without(o.behind, gone) })
}

// close gives the device's memory of a buffer back. What only that has is lost.
func (k *backing) close() error {
	if k.m.id != 0 {
		wraps.mu.Lock()
		defer wraps.mu.Unlock()
	}
	m := k.lock()
	defer m.mu.Unlock()
	m.backings = pointers.Remove(m.backings, k)
	var errs []error
	for _, r := range k.replicas {
		if len(m.backings) > 0 {
			m.handOver(r)
			m.giveUp(r)
		}
		errs = append(errs, r.close())
	}
	k.replicas, k.host = nil, gpu.Host{}
	wraps.leave(m, k)
	return errors.Join(errs...)
}

// index finds the wraps that overlap a range of host memory. A wrap is there from its first use until it is closed.
type index struct {
	mu     sync.Mutex
	spaces map[uint64]*span.Map // to the numbers of memories
	byID   map[int]*memory
	last   int
}

var wraps = index{spaces: map[uint64]*span.Map{}, byID: map[int]*memory{}}

// join adds a backing to the memory of those that it overlaps, which becomes one if there are several.
func (x *index) join(k *backing, space uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.spaces[space]
	if s == nil {
		s = new(span.Map)
		x.spaces[space] = s
	}
	var m *memory
	for _, id := range s.Get(k.at, k.end) {
		switch o := x.byID[id]; {
		case m == nil:
			m = o
		case o != m:
			x.merge(m, o, s)
		}
	}
	if m == nil {
		m = k.m
		x.last++
		m.id, m.space = x.last, space
		x.byID[m.id] = m
	} else {
		m.mu.Lock()
		m.backings = append(m.backings, k)
		m.mu.Unlock()
		k.m = m
	}
	s.Set(k.at, k.end, m.id)
}

// merge makes o a part of m.
func (x *index) merge(m, o *memory, s *span.Map) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.backings {
		s.Set(k.at, k.end, m.id)
	}
	m.backings = append(m.backings, o.backings...)
	m.log = append(m.log, o.log...)
	delete(x.byID, o.id)
	o.into, o.backings, o.log = m, nil, nil
}

// leave takes a backing out, which its memory has no more.
func (x *index) leave(m *memory, k *backing) {
	s := x.spaces[m.space]
	if m.id == 0 || s == nil {
		return
	}
	s.Remove(k.at, k.end)
	for _, o := range m.backings {
		s.Set(max(o.at, k.at), min(o.end, k.end), m.id)
	}
	if len(m.backings) == 0 {
		delete(x.byID, m.id)
	}
	if s.Len() == 0 && m.space != 0 {
		delete(x.spaces, m.space)
	}
}
