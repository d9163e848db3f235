// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"errors"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer/internal/span"
	"github.com/sublet-gpu/sublet/gpu"
)

// WithMemory limits how many bytes the arrays have on each device. 0 is no limit but the device's own. A device that is there twice has
// it twice.
//
// Where a call needs more, here or on a device that is out of memory, the arrays used longest ago leave: those that are not part of the
// call, or of an open batch, if the host or other devices have the same elements. What they need they get again with their next call.
// Should the caller write into the host's side meanwhile, that counts, even if it does not go up. If the room is not enough, the call is
// [gpu.ErrNoMemory].
func WithMemory(bytes uint64) Option {
	return func(c *config) error { c.memory = bytes; return nil }
}

// obtain makes the memory of a side of device d, where others leave if need be.
func (cr *Cruncher) obtain(r *residency, d int, s *side) error {
	s.bytes = uint64(s.hi-s.lo) * uint64(r.array.t.Size())
	return cr.inRoom(d, func() error {
		if err := cr.permit(r, d, s); err != nil {
			return err
		}
		return r.allocate(s)
	})
}

// inRoom makes memory on device d, where others leave if need be.
func (cr *Cruncher) inRoom(d int, allocate func() error) error {
	for {
		err := allocate()
		if !errors.Is(err, gpu.ErrNoMemory) || !cr.makeRoom(d) {
			return err
		}
	}
}

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// permit is ErrNoMemory if a side is too much beside all others, but the one in whose place it comes.
func (cr *Cruncher) permit(r *residency, d int, s *side) error {
	if cr.conf.memory == 0 {
		return nil
	}
	cr.room.Lock()
	defer cr.room.Unlock()
	total := s.bytes
	for _, o := range cr.arrays {
		if o != r && o.sides[d].mem != nil {
			total += o.sides[d].bytes
		}
	}
	if total > cr.conf.memory {
		return fail("Compute", gpu.ErrNoMemory, utoa(total), " bytes of arrays on one device, the limit is ", utoa(cr.conf.memory))
	}
	return nil
}

// makeRoom has the array used longest ago leave the device of worker d, and reports whether there was one that may.
func (cr *Cruncher) makeRoom(d int) bool {
	cr.room.Lock()
	defer cr.room.Unlock()
	var oldest *residency
	at := 0
	for _, r := range cr.arrays {
		if r.used > cr.mark || oldest != nil && r.used > oldest.used {
			continue
		}
		for i, w := range cr.workers {
			if w.dev == cr.workers[d].dev && r.sides[i].mem != nil && r.elsewhere(i, cr.isLost) {
				oldest, at = r, i
				break
			}
		}
	}
	if oldest == nil {
		return false
	}
	_ = oldest.sides[at].close() // what matters is whether there is room now
	oldest.sides[at] = newSide(cr.workers[at].dev)
	oldest.forget(at)
	return true
}

// elsewhere reports whether device d has nothing that counts and neither the host nor other devices have.
func (r *residency) elsewhere(d int, lost func(int) bool) bool {
	r.array.mu.Lock()
	known := r.array.tracked && r.array.version == r.version
	r.array.mu.Unlock()
	var rest span.Set
	for s, h := range r.owner.All() {
		if h != d {
			continue
		}
		rest.Clear()
		rest.Add(s.Lo, s.Hi)
		switch {
		case r.goesUp: // then the host's side counts, unless it is older
			rest.Intersect(&r.dirty)
		case known:
			rest.Subtract(&r.synced)
		}
		for x := range r.valid {
			if x != d && !lost(x) {
				rest.Subtract(&r.valid[x])
			}
		}
		if rest.Len() > 0 {
			return false
		}
	}
	return true
}
