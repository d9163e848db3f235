// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"
	"slices"
	"sort"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
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
	newer := r.values.Newest(r.array.all(), memory.Newer)
	return slices.ContainsFunc(newer, func(s memory.Source) bool { return s.Lost })
}

// drop gives an array's device memory back.
func (cr *Cruncher) drop(a *body) {
	cr.mu.lock()
	defer cr.mu.unlock()
	_ = cr.evict(a)
}

func (cr *Cruncher) evict(a *body) error {
	r := cr.arrays[a]
	if r == nil {
		return nil
	}
	delete(cr.arrays, a)
	a.mu.Lock()
	delete(a.users, cr)
	a.compare()
	a.mu.Unlock()
	return r.values.Close()
}

func (cr *Cruncher) evictIf(which func(r *residency) bool) error {
	var errs []error
	for a, r := range cr.arrays {
		if which(r) {
			errs = append(errs, cr.evict(a))
		}
	}
	return errors.Join(errs...)
}

// Evict gives the device memory of arrays back, or of all if none is named. What only the devices have is lost; see
// [Cruncher.Fetch]. In which way an array was used first is forgotten, too. It is [ErrBatch] while a batch is open.
func (cr *Cruncher) Evict(arrays ...*Any) error {
	if !cr.made() {
		return fail("Evict", gpu.ErrInvalid, "nil cruncher")
	}
	cr.mu.lock()
	defer cr.mu.unlock()
	if cr.batch != nil {
		return fail("Evict", ErrBatch, "")
	}
	return cr.evictIf(func(r *residency) bool {
		return len(arrays) == 0 || slices.ContainsFunc(arrays, func(a *Any) bool { return !a.none() && a.body == r.array })
	})
}

// Fetch brings to the host's sides of arrays what only the devices have. If that is not possible, none of them is changed. It is
// [ErrStale] if a device that had it is lost, and [ErrBatch] while a batch is open.
func (cr *Cruncher) Fetch(ctx context.Context, arrays ...*Any) error {
	return cr.bringHome(ctx, "Fetch", arrays...)
}

// bringHome brings to the host's sides what is newer on the devices, as the arrays know it.
func (cr *Cruncher) bringHome(ctx context.Context, op string, arrays ...*Any) error {
	if err := cr.begin(ctx, op, nil); err != nil {
		return err
	}
	defer cr.mu.unlock()
	var wants []*residency
	for _, a := range arrays {
		if err := a.usable(op); err != nil {
			return err
		}
		r := cr.arrays[a.body]
		if r == nil {
			continue
		}
		if a.host.ReadOnly {
			return fail(op, gpu.ErrReadOnly, a.name)
		}
		wants = append(wants, r)
	}
	list, err := cr.fetch(ctx, op, wants, memory.Newer)
	if err == nil {
		err = cr.settle(ctx, list)
	}
	if err != nil {
		return err
	}
	for _, r := range wants {
		cr.tell(r)
	}
	return nil
}

// settle puts results that were fetched where they belong: the host has the newest values then.
func (cr *Cruncher) settle(ctx context.Context, list []result) error {
	if err := cr.land(ctx, list); err != nil {
		return err
	}
	for i := range list {
		list[i].values.Returned(list[i].Region)
	}
	return nil
}

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
		cr.fixed.Clear() // shares are for all devices that live
		if cr.batch != nil {
			cr.batch.notify()
		}
		w.life, w.gone = life, false
	}
}

// WithMemory limits how many bytes the arrays have on each device, beside the words that those of 8 and 16 bits are unpacked to during a
// call. 0 is no limit but the device's own. A device that is there twice has it twice.
//
// Where a call needs more, here or on a device that is out of memory, the arrays used longest ago leave: those that are not part of the
// call, or of an open batch, if the host or other devices have the same elements. What they need they get again with their next call.
// Should the caller write into the host's side meanwhile, that counts, even if it does not go up. If the room is not enough, the call is
// [gpu.ErrNoMemory].
func WithMemory(bytes uint64) Option {
	return func(c *config) error { c.memory = bytes; return nil }
}

// inRoom makes memory on a device, where others leave if need be.
func (cr *Cruncher) inRoom(dev *gpu.Device, allocate func() error) error {
	for {
		err := allocate()
		if !errors.Is(err, gpu.ErrNoMemory) || !cr.makeRoom(dev) {
			return err
		}
	}
}

// makeRoom has the array used longest ago leave a device, and reports whether there was one that may.
func (cr *Cruncher) makeRoom(dev *gpu.Device) bool {
	cr.room.Lock()
	defer cr.room.Unlock()
	var old []*residency
	for _, r := range cr.arrays {
		if r.used <= cr.mark {
			old = append(old, r)
		}
	}
	sort.Slice(old, func(i, j int) bool { return old[i].used < old[j].used })
	return slices.ContainsFunc(old, func(r *residency) bool { return r.leave(dev) })
}

// leave gives memory of a device back, if there is some of which nothing is needed.
func (r *residency) leave(dev *gpu.Device) bool {
	r.array.mu.Lock()
	known := r.array.tracked && r.array.version == r.version
	r.array.mu.Unlock()
	if !known && !r.goesUp {
		r.values.HostChanged(r.array.all(), memory.Apart)
	}
	return r.values.Leave(dev, r.goesUp)
}
