// SPDX-License-Identifier: Apache-2.0

package cruncher

// noteLost notes which devices are lost, and reports whether there are more of them.
func (cr *Cruncher) noteLost() (more bool) {
	for _, w := range cr.workers {
		if w.gone || !w.lost() {
			continue
		}
		w.gone, more = true, true
		for _, r := range cr.arrays {
			r.values.Lost(w.index)
		}
	}
	return more
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
		cr.pinned.Clear() // shares are for all devices that live
		if cr.batch != nil {
			clear(cr.batch.shares)
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
