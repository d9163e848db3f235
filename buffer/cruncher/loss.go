// SPDX-License-Identifier: Apache-2.0

package cruncher

import "github.com/sublet-gpu/sublet/buffer/internal/span"

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
