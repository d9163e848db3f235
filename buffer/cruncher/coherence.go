// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"github.com/sublet-gpu/sublet/buffer/internal/memory"
)

// residency is an array in a cruncher: what its devices have of the array.
//
// The rule is that the result does not depend on the shares. So each element's newest value among the devices, which is what
// a single device would have, is followed from device to device.
type residency struct {
	array   *body
	values  *memory.Values
	access  access
	step    int    // windows begin at multiples of so many bytes
	version uint64 // of the host's side, as last looked at
	batch   *Batch // in which that was
	used    uint64 // when, in the order of all uses of arrays
	goesUp  bool   // what the host has, with the last call
	shadow  []byte // what stands for the host's side until the batch ends, nil if that does
	landed  []memory.Region
}

// windowStep is what windows begin at multiples of, in bytes: four elements of any type.
const windowStep = 16

// residency finds or makes what a cruncher has of an array.
func (cr *Cruncher) residency(p *param) (*residency, error) {
	a := p.array.body
	if r := cr.arrays[a]; r != nil {
		return r, nil
	}
	r := &residency{array: a, values: memory.NewValues(a.host, &cr.account, p.flags.ZeroCopy), step: windowStep}
	if err := a.use(cr, r); err != nil {
		return nil, err
	}
	cr.arrays[a] = r
	return r, nil
}

// bytes returns where elements are.
func (a *body) bytes(s span) memory.Region {
	return memory.Between(s.lo*a.t.Size(), max(s.lo, s.hi)*a.t.Size())
}

// all is where all elements are.
func (a *body) all() memory.Region { return memory.Between(0, a.host.Size) }

// elements names the elements of a region in an error.
func (a *body) elements(r memory.Region) string {
	return "elements " + itoa(r.Offset/a.t.Size()) + " to " + itoa(r.End()/a.t.Size()-1) + " of " + a.name
}

// look notes what the caller may have done to the host's side since the last call: within a batch nothing.
func (r *residency) look(batch *Batch) {
	r.array.mu.Lock()
	defer r.array.mu.Unlock()
	same := r.array.tracked || batch != nil && batch == r.batch
	if !same || r.array.version != r.version {
		r.version = r.array.version
		r.values.HostChanged(r.array.all(), memory.Apart)
	}
	r.batch = batch
}

// stale reports whether a lost device had newest elements.
func (r *residency) stale() bool {
	for _, s := range r.values.Newest(r.array.all(), memory.Newer) {
		if s.Lost {
			return true
		}
	}
	return false
}
