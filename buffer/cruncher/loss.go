// SPDX-License-Identifier: Apache-2.0

package cruncher

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
			r.values.Lost(w.index)
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
			r.values.Lost(i) // once more: a call that did not fail may have noted what it had done
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
		if r.stale() {
			_ = cr.evict(a)
		}
	}
}
