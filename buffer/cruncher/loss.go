// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/internal/span"
)

// nobody is the owner of elements that nothing but a lost device had. Unless they are dirty the host has them.
const nobody = -2

func (cr *Cruncher) isLost(d int) bool { return d < 0 || cr.workers[d].lost() }

// newlyLost reports whether a device was lost since noteLost was called.
func (cr *Cruncher) newlyLost() bool {
	for _, w := range cr.workers {
		if !w.gone && w.lost() {
			return true
		}
	}
	return false
}

// noteLost notes which devices are lost.
func (cr *Cruncher) noteLost() {
	for _, w := range cr.workers {
		if w.gone || !w.lost() {
			continue
		}
		w.gone = true
		for _, r := range cr.arrays {
			r.forget(w.index)
		}
	}
}

// refresh notes which devices are lost, and takes in those that were and have come back. They begin with nothing.
func (cr *Cruncher) refresh() {
	cr.noteLost()
	for i, w := range cr.workers {
		life := w.dev.Generation()
		if !w.gone || w.dev.Usable() != nil {
			continue
		}
		for _, r := range cr.arrays {
			r.forget(i) // once more: a call that did not fail may have noted what it had done
			_ = r.sides[i].close()
			r.sides[i] = newSide(w.dev)
		}
		w.converters.close()
		cr.pinned.Clear() // shares are for all devices that live
		if cr.batch != nil {
			clear(cr.batch.shares)
			cr.batch.recount()
			cr.batch.notify()
		}
		w.life, w.gone = life, false
	}
}

// living counts the devices that live.
func (cr *Cruncher) living() int {
	cr.mu.lock()
	defer cr.mu.unlock()
	return cr.alive()
}

// evictStale gives up arrays of which only a lost device had the newest elements.
func (cr *Cruncher) evictStale() {
	cr.mu.lock()
	defer cr.mu.unlock()
	cr.noteLost()
	for a, r := range cr.arrays {
		for s := range r.dirty.All() {
			for _, h := range r.owner.Get(s.Lo, s.Hi) {
				if h == nobody {
					_ = cr.evict(a)
				}
			}
		}
	}
}

// hold notes what devices have of arrays, for rewind.
func (cr *Cruncher) hold(arrays []*Any) {
	cr.mu.lock()
	defer cr.mu.unlock()
	for _, a := range arrays {
		if r := cr.arrays[a.body]; r != nil {
			r.begin()
		}
	}
}

func (cr *Cruncher) release(arrays []*Any) {
	cr.mu.lock()
	defer cr.mu.unlock()
	for _, a := range arrays {
		if r := cr.arrays[a.body]; r != nil {
			r.start = nil
		}
	}
}

// rewind makes arrays be what they were when they were held, as far as that is known.
func (cr *Cruncher) rewind(ctx context.Context, arrays []*Any) error {
	cr.mu.lock()
	defer cr.mu.unlock()
	cr.noteLost()
	for _, a := range arrays {
		r := cr.arrays[a.body]
		if r == nil {
			continue
		}
		if r.start == nil { // it was not there
			_ = cr.evict(a.body)
			continue
		}
		err := r.rewind(ctx, cr.isLost)
		if cr.tell(r); err != nil {
			return err
		}
	}
	return nil
}

// forget notes that device d is lost: others that have its elements take over.
func (r *residency) forget(d int) {
	r.valid[d].Clear()
	for s, h := range r.owner.All() {
		if h == d {
			r.reassign(s)
		}
	}
}

// miss notes what has left a device's window and did not arrive elsewhere.
func (r *residency) miss() {
	for s, h := range r.owner.All() {
		if h < 0 || r.sides[h].mem == nil {
			continue // it has what it had, or is lost
		}
		w := &r.sides[h]
		for _, gone := range []span.Span{{Lo: s.Lo, Hi: min(s.Hi, w.lo)}, {Lo: max(s.Lo, w.hi), Hi: s.Hi}} {
			for m := range r.dirty.Overlap(gone.Lo, gone.Hi) {
				r.reassign(m)
			}
		}
	}
}

// reassign finds another owner of elements that their owner has no more.
func (r *residency) reassign(s span.Span) {
	r.owner.Set(s.Lo, s.Hi, nobody)
	for x := range r.valid {
		for o := range r.valid[x].Overlap(s.Lo, s.Hi) {
			r.owner.Set(o.Lo, o.Hi, x)
		}
	}
}

// snapshot is what devices had of an array before several calls, and what of that was written over since.
type snapshot struct {
	valid, touched []span.Set // of each device
	owner          span.Map
	synced, dirty  span.Set
}

// begin notes what the devices have.
func (r *residency) begin() {
	r.look(0)
	b := &snapshot{valid: make([]span.Set, len(r.valid)), touched: make([]span.Set, len(r.valid))}
	for d := range r.valid {
		b.valid[d].Assign(&r.valid[d])
	}
	b.owner.Assign(&r.owner)
	b.synced.Assign(&r.synced)
	b.dirty.Assign(&r.dirty)
	r.start = b
}

// touch notes that a device's memory is written to, or goes.
func (r *residency) touch(d int, s span.Span) {
	if r.start != nil {
		r.start.touched[d].Add(s.Lo, s.Hi)
	}
}

// rewind makes everything be as it was at the beginning, as far as that is known. Elements that kernels wrote where nobody had any
// are zeros again.
func (r *residency) rewind(ctx context.Context, lost func(int) bool) error {
	b := r.start
	r.pending.Clear()
	r.prefetched = nil
	r.synced.Assign(&b.synced)
	r.dirty.Assign(&b.dirty)
	r.news.Assign(&b.dirty)
	r.owner.Assign(&b.owner)
	for d := range r.valid {
		r.valid[d].Clear()
		if !lost(d) {
			r.valid[d].Assign(&b.valid[d])
			r.valid[d].Subtract(&b.touched[d])
		}
	}
	for s, h := range b.owner.All() {
		if lost(h) {
			r.reassign(s)
			continue
		}
		for t := range b.touched[h].Overlap(s.Lo, s.Hi) {
			r.reassign(t)
		}
	}
	for d := range r.sides {
		if lost(d) {
			continue
		}
		for gap := range b.owner.Missing(0, r.array.n) {
			for t := range b.touched[d].Overlap(gap.Lo, gap.Hi) {
				if err := r.zero(ctx, d, t); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
