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
	renewed bool   // the call at hand, if it uploads, begins with the host's elements, whatever is newer
	again   bool   // the next one does, as a batch was given up whose calls may be made again
	used    uint64 // when, in the order of all uses of arrays
	goesUp  bool   // what the host has, with the last call
}

// windowStep is what windows begin at multiples of, in bytes: four elements of any type.
const windowStep = 16

// residency returns a cruncher's record of an array's elements on its devices, which it makes at first use.
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

// look records that the caller may have changed host memory since the last call. Within a batch that is not allowed.
func (r *residency) look(batch *Batch) {
	r.array.mu.Lock()
	defer r.array.mu.Unlock()
	same := r.array.tracked || batch != nil && batch == r.batch
	r.renewed = !r.array.tracked || r.array.marked > r.version || r.again
	r.again = false
	if !same || r.array.version != r.version {
		r.version = r.array.version
		r.values.HostChanged(r.array.all(), memory.Apart)
	}
	r.batch = batch
}

// stale reports whether newest elements were lost with a device.
func (r *residency) stale() bool {
	newer := r.values.Newest(r.array.all(), memory.Newer)
	return slices.ContainsFunc(newer, func(s memory.Source) bool { return s.Lost })
}

// drop releases an array's device memory.
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

// Evict releases the device memory of arrays, or of all if none is named. Elements that only the devices have are lost; see
// [Cruncher.Fetch]. The arrays may then be used with other flags than at first: see ReadOnly in [Flags]. It is [ErrBatch] while a
// batch is open.
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

// Fetch copies to host memory the elements of arrays that only devices have, of no array if none is named. If it fails no array is
// changed. It is [ErrStale] if a device that had such elements is lost, and [ErrBatch] while a batch is open.
func (cr *Cruncher) Fetch(ctx context.Context, arrays ...*Any) error {
	return cr.bringHome(ctx, "Fetch", arrays...)
}

// bringHome copies to host memory the elements that are newer on the devices, by the arrays' records.
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

// settle stores fetched results in host memory, which has the newest values then.
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

// refresh records which devices are lost, and adds those that were reopened, with empty memory.
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
// If a call needs more, or a device is out of memory, the arrays used longest ago are evicted that are not part of the call or of an
// open batch and whose elements the host or other devices have, too. Their next call copies the elements again, with changes that the
// caller made to host memory meanwhile, even if flags say that the array is not read. If that does not suffice, the call is
// [gpu.ErrNoMemory].
func WithMemory(bytes uint64) Option {
	return func(c *config) error { c.memory = bytes; return nil }
}

// inRoom makes memory on a device, after evicting other arrays if need be.
func (cr *Cruncher) inRoom(dev *gpu.Device, allocate func() error) error {
	for {
		err := allocate()
		if !errors.Is(err, gpu.ErrNoMemory) || !cr.makeRoom(dev) {
			return err
		}
	}
}

// makeRoom evicts the array used longest ago from a device, and reports whether there was one to evict.
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

// leave releases memory on a device if none of its elements is needed.
func (r *residency) leave(dev *gpu.Device) bool {
	r.array.mu.Lock()
	known := r.array.tracked && r.array.version == r.version
	r.array.mu.Unlock()
	if !known && !r.goesUp {
		r.values.HostChanged(r.array.all(), memory.Apart)
	}
	return r.values.Leave(dev, r.goesUp)
}
