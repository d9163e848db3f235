// SPDX-License-Identifier: Apache-2.0

package cruncher

import "github.com/sublet-gpu/sublet/buffer/internal/span"

// access is what an array's memory on the devices is for, from its first use in a cruncher on.
type access uint8

const (
	readWrite access = iota
	readOnly
	writeOnly
)

func (f Flags) access() access {
	switch {
	case f.ReadOnly:
		return readOnly
	case f.WriteOnly:
		return writeOnly
	}
	return readWrite
}

// residency is an array in a cruncher: who has which of its elements. Elements that no device ever had are zero on all of
// them.
//
// The rule is that the result does not depend on the shares. So each element's newest value among the devices, which is what
// a single device would have, is followed from device to device.
type residency struct {
	array      *body
	access     access
	near       bool   // device memory that the CPU can reach is wanted
	straight   bool   // and nothing else happens while it reaches there, in this call
	grain      int    // windows begin at multiples of it
	version    uint64 // of the host's side, as last looked at
	batch      uint64 // in which that was
	used       uint64 // when, in the order of all uses of arrays
	goesUp     bool   // what the host has, with the last call
	sides      []side
	valid      []span.Set  // the elements of which each device has the newest value
	owner      span.Map    // the device that has the newest value
	synced     span.Set    // where the host has that value, too
	dirty      span.Set    // where the host has an older one; the owner's memory has these elements in any case
	pending    span.Set    // of the dirty ones, those that the host is to get at the end of a batch, and that count as the host's
	news       span.Set    // of the dirty ones, those that the array has yet to be told of
	told       bool        // that it has older elements
	prefetched *prefetched // elements that a batch has brought already, and that count as the host's
}

// move says where elements come from: the host, or a device by way of the host.
type move struct {
	span span.Span
	from int    // fromHost, or the number of a device
	mem  []byte // on the way from a device
}

const fromHost = -1

// look notes what the caller may have done to the host's side since the last call. Within a batch, which is not 0, he may not do
// anything but call.
func (r *residency) look(batch uint64) {
	r.array.mu.Lock()
	defer r.array.mu.Unlock()
	same := r.array.tracked || batch != 0 && batch == r.batch
	if !same || r.array.version != r.version {
		r.version = r.array.version
		r.synced.Clear()
	}
	r.batch = batch
}

// fetch lists what device d lacks of the host's elements in need. Pending ones are not among them; see keep.
func (r *residency) fetch(list []move, d int, need span.Span) []move {
	for part := range r.pending.Missing(need.Lo, need.Hi) {
		for s := range r.synced.Missing(part.Lo, part.Hi) {
			list = append(list, move{span: s, from: fromHost})
		}
		for s := range r.synced.Overlap(part.Lo, part.Hi) {
			for m := range r.valid[d].Missing(s.Lo, s.Hi) {
				list = append(list, move{span: m, from: fromHost})
			}
		}
	}
	return list
}

// fetched notes that the devices got the host's elements: needs[d] is what device d asked for.
func (r *residency) fetched(needs []span.Span) {
	for _, need := range needs {
		for part := range r.pending.Missing(need.Lo, need.Hi) {
			for s := range r.synced.Missing(part.Lo, part.Hi) {
				for d := range r.sides {
					r.valid[d].Remove(s.Lo, s.Hi)
				}
			}
		}
	}
	for d, need := range needs {
		for s := range r.pending.Missing(need.Lo, need.Hi) {
			r.valid[d].Add(s.Lo, s.Hi)
			r.owner.Set(s.Lo, s.Hi, d)
			r.synced.Add(s.Lo, s.Hi)
			r.dirty.Remove(s.Lo, s.Hi)
		}
	}
}

// keep lists what device d lacks of the newest values in need. Elements that only a lost device had are ErrStale, unless kernels
// only write them: what they leave out is undefined.
func (r *residency) keep(list []move, d int, need span.Span, lost func(int) bool) ([]move, error) {
	for gap := range r.valid[d].Missing(need.Lo, need.Hi) {
		for s, h := range r.owner.Get(gap.Lo, gap.Hi) {
			for m := range r.dirty.Overlap(s.Lo, s.Hi) {
				if lost(h) {
					if r.access == writeOnly {
						continue
					}
					return nil, fail("Compute", ErrStale, "elements ", itoa(m.Lo), " to ", itoa(m.Hi-1), " of ", r.array.name)
				}
				if h != d { // it has them, if a failed call left them undefined
					list = append(list, move{span: m, from: h})
				}
			}
			for m := range r.dirty.Missing(s.Lo, s.Hi) {
				list = r.clean(list, m, h, lost(h))
			}
		}
	}
	return list, nil
}

// clean lists where elements come from that device h had last and the host has, too, unless the caller has written there. What
// counts is then what a single device would have, as long as device h still has it.
func (r *residency) clean(list []move, s span.Span, h int, lost bool) []move {
	if lost {
		return append(list, move{span: s, from: fromHost})
	}
	for m := range r.synced.Overlap(s.Lo, s.Hi) {
		list = append(list, move{span: m, from: fromHost})
	}
	for m := range r.synced.Missing(s.Lo, s.Hi) {
		for v := range r.valid[h].Overlap(m.Lo, m.Hi) {
			list = append(list, move{span: v, from: h})
		}
		for v := range r.valid[h].Missing(m.Lo, m.Hi) {
			list = append(list, move{span: v, from: fromHost})
		}
	}
	return list
}

// kept notes that device d has the newest values in need. Zeros that nobody wrote are no one's: all devices have them.
func (r *residency) kept(d int, need span.Span) {
	if need.Lo < need.Hi {
		r.valid[d].Add(need.Lo, need.Hi)
		for s, h := range r.owner.Get(need.Lo, need.Hi) {
			if h == nobody {
				r.owner.Set(s.Lo, s.Hi, d)
			}
		}
	}
}

// wrote notes that device d's kernels may have written the elements.
func (r *residency) wrote(d int, own span.Span) {
	if own.Lo >= own.Hi {
		return
	}
	for x := range r.sides {
		if x != d {
			r.valid[x].Remove(own.Lo, own.Hi)
		}
	}
	r.valid[d].Add(own.Lo, own.Hi)
	r.owner.Set(own.Lo, own.Hi, d)
	r.synced.Remove(own.Lo, own.Hi)
	r.overwrote(own)
}

// overwrote notes that the host has older values than the devices.
func (r *residency) overwrote(s span.Span) {
	r.dirty.Add(s.Lo, s.Hi)
	r.news.Add(s.Lo, s.Hi)
}

// differs notes which of the elements, of which device d has the newest values, the host has not: it never gave them, or it has changed
// since.
func (r *residency) differs(d int, own span.Span) {
	for clean := range r.dirty.Missing(own.Lo, own.Hi) {
		for s := range r.synced.Missing(clean.Lo, clean.Hi) {
			r.wrote(d, s)
		}
	}
}

// returned notes that the host got the elements.
func (r *residency) returned(own span.Span) {
	if own.Lo < own.Hi {
		r.synced.Add(own.Lo, own.Hi)
		r.dirty.Remove(own.Lo, own.Hi)
	}
}
