// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/pointers"
)

// Values is what devices have of an array, as a single device would have it: zeros at first. The host has values of its own, which
// come to the devices by Upload, and to which those of the devices are returned by the caller, who says so. Regions have one row.
//
// The log has what is not known to be the same on the host.
type Values struct {
	m       Memory
	k       *Backing
	account *Account
	near    bool // memory that the CPU can reach is wanted
}

// State tells how values in the log differ from the host's.
type State uint8

// The states: they are other ones, newer ones, newer ones that the host is to get.
const (
	Apart State = iota
	Newer
	Pending
)

// Sources in the log beside replicas.
var (
	zeros Replica // nobody has written the values
	gone  Replica // a lost device had them
)

// NewValues makes the memory of an array of the host's.
func NewValues(host gpu.Host, a *Account, near bool) *Values {
	v := &Values{account: a, near: near}
	v.k = &v.m.first
	*v.k = Backing{m: &v.m, End: host.Size, host: host, Hosted: true, separate: true}
	v.m.backings = []*Backing{v.k}
	v.m.log = add(nil, write{Between(0, host.Size), &zeros, Apart})
	return v
}

// add puts a row into a list of rows, in place of what overlaps it, and joins it with those like it that it touches.
func add(list []write, w write) []write {
	if w.Span() == 0 {
		return list
	}
	_, list = divide(list, w.Offset, w.End())
	lo, hi := w.Offset, w.End()
	list = without(list, func(o *write) bool {
		like := o.from == w.from && o.state == w.state && lo <= o.End() && o.Offset <= hi
		if like {
			lo, hi = min(lo, o.Offset), max(hi, o.End())
		}
		return like
	})
	return append(list, write{Between(lo, hi), w.from, w.state})
}

// missing returns what of a region is not in a list.
func missing(list []write, w Region) []write {
	if w.Span() == 0 {
		return nil
	}
	rest := []write{{Region: w}}
	for i := range list {
		if list[i].overlaps(w) {
			_, rest = divide(rest, list[i].Offset, list[i].End())
		}
	}
	return rest
}

// lag notes that a replica lacks a region.
func (r *Replica) lag(w Region) {
	for _, part := range w.cut(nil, r.Lo, r.Hi) {
		r.behind = add(r.behind, write{Region: part})
	}
}

// split separates what a replica has of a region from what it has not.
func (r *Replica) split(w Region) (has, lacks []write) {
	inside, lacks := divide([]write{{Region: w}}, r.Lo, r.Hi)
	for _, part := range inside {
		has = append(has, missing(r.behind, part.Region)...)
		behind, _ := divide(r.behind, part.Offset, part.End())
		lacks = append(lacks, behind...)
	}
	return has, lacks
}

// Upload says that the devices' values of a region are the host's from now on, but for pending ones. Replicas get them when they are
// updated.
func (v *Values) Upload(w Region) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	in, rest := divide(v.m.log, w.Offset, w.End())
	for _, o := range in {
		if o.state == Pending {
			rest = append(rest, o)
			continue
		}
		for _, r := range v.k.replicas {
			r.lag(o.Region)
		}
	}
	v.m.log = rest
}

// HostChanged says that the host's values of a region may be others: those that replicas have are in a state now.
func (v *Values) HostChanged(w Region, state State) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	for _, same := range missing(v.m.log, w) {
		_ = v.assign(write{same.Region, nil, state}, nil)
	}
}

// assign makes replicas but one the sources of values, as far as they have them, and returns the rest.
func (v *Values) assign(w write, but *Replica) []write {
	return v.share(w.Region, func(r *Replica) bool { return r != but }, func(r *Replica, has Region) {
		v.m.log = add(v.m.log, write{has, r, w.state})
	})
}

// share tells what of a region each of some replicas has that those before it have not, and returns what none has.
func (v *Values) share(w Region, some func(*Replica) bool, tell func(r *Replica, has Region)) []write {
	rest := []write{{Region: w}}
	for _, r := range v.k.replicas {
		if !some(r) {
			continue
		}
		var left []write
		for _, part := range rest {
			has, lacks := r.split(part.Region)
			for _, h := range has {
				tell(r, h.Region)
			}
			left = append(left, lacks...)
		}
		rest = left
	}
	return rest
}

// handDown makes others the sources of what a replica is the source of in a region. What no other has is the host's if it is no newer
// there, and is else returned.
func (v *Values) handDown(r *Replica, w Region) (only []write) {
	in, _ := divide(v.m.log, w.Offset, w.End())
	for _, o := range in {
		if o.from != r {
			continue
		}
		for _, part := range v.assign(o, r) {
			_, v.m.log = divide(v.m.log, part.Offset, part.End())
			if o.state != Apart {
				only = append(only, write{part.Region, r, o.state})
			}
		}
	}
	return only
}

// Wrote says that kernels wrote a region of a replica.
func (v *Values) Wrote(r *Replica, w Region, state State) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	for _, o := range v.k.replicas {
		if o != r {
			o.lag(w)
		}
	}
	_, r.behind = divide(r.behind, w.Offset, w.End())
	v.m.log = add(v.m.log, write{w, r, state})
}

// Returned says that the host has the values of a region.
func (v *Values) Returned(w Region) {
	v.m.mu.Lock()
	_, v.m.log = divide(v.m.log, w.Offset, w.End())
	v.m.mu.Unlock()
}

// Change makes values of a region that are in one state be in another one.
func (v *Values) Change(w Region, from, to State) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	in, _ := divide(v.m.log, w.Offset, w.End())
	for _, o := range in {
		if o.state == from {
			o.state = to
			v.m.log = add(v.m.log, o)
		}
	}
}

// Forget says that values of a replica are undefined. It reports whether they are elsewhere; where they are not it has them still.
func (v *Values) Forget(r *Replica, w Region) bool {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	only := v.handDown(r, w)
	r.lag(w)
	for _, o := range only {
		v.m.log = add(v.m.log, o)
		_, r.behind = divide(r.behind, o.Offset, o.End())
	}
	return len(only) == 0
}

// Lost gives up what a place had.
func (v *Values) Lost(slot int) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	for _, r := range slices.Clone(v.k.replicas) {
		if r.slot != slot {
			continue
		}
		for _, o := range v.handDown(r, Between(0, v.k.End)) {
			v.m.log = add(v.m.log, write{o.Region, &gone, o.state})
		}
		_ = v.drop(r) // there is nothing to give back
	}
}

// Source is a region of values with the replica that has them: none for the host, for zeros, and for what a lost device had.
type Source struct {
	Region
	Replica *Replica
	Slot    int
	Lost    bool
}

func (w write) source() Source {
	switch w.from {
	case nil, &zeros, &gone:
		return Source{Region: w.Region, Lost: w.from == &gone}
	}
	return Source{Region: w.Region, Replica: w.from, Slot: w.from.slot}
}

// Newest lists the values of a region that are in a state, or in one after it.
func (v *Values) Newest(w Region, state State) (list []Source) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	in, _ := divide(v.m.log, w.Offset, w.End())
	for _, o := range in {
		if o.state >= state {
			list = append(list, o.source())
		}
	}
	return list
}

// Lacking lists what a place would have to get of a region, and from where.
func (v *Values) Lacking(slot int, w Region) (list []Source) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	rest := v.share(w, func(r *Replica) bool { return r.slot == slot }, func(*Replica, Region) {})
	for _, part := range rest {
		for _, o := range v.sources(part.Region) {
			if o.from != &zeros {
				list = append(list, o.source())
			}
		}
	}
	return list
}

// sources lists where the values of a region are.
func (v *Values) sources(w Region) []write {
	in, _ := divide(v.m.log, w.Offset, w.End())
	return append(in, missing(v.m.log, w)...)
}

// Use returns memory of a place for a region, which may have to be updated. Where all is too large to be bound it begins at a multiple
// of so many bytes.
func (v *Values) Use(p Place, w Region, step int) (*Replica, error) {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	lo, hi, err := v.k.window("cruncher: Compute", p.Device, w, bindable(p.Device), step)
	if err != nil {
		return nil, err
	}
	if r := v.k.find(p, lo, hi, step); r != nil {
		r.near = p.Map && r.mappable
		return r, nil
	}
	spare := func(r *Replica) bool { return v.spare(r, false) }
	_ = v.k.shrink(p, maxWindows-1, spare, v.drop) // what matters is whether there is room
	r := &Replica{k: v.k, dev: p.Device, slot: p.Slot, Lo: lo, Hi: hi}
	err = v.allocate(r)
	if errors.Is(err, gpu.ErrNoMemory) {
		_ = v.k.shrink(p, 0, spare, v.drop)
		err = v.allocate(r)
	}
	if err != nil {
		return nil, err
	}
	r.near = p.Map && r.mappable
	r.lag(Between(lo, hi))
	for _, o := range v.m.log {
		if o.from == &zeros {
			_, r.behind = divide(r.behind, o.Offset, o.End())
		}
	}
	v.k.replicas = append(v.k.replicas, r)
	return r, nil
}

// allocate makes a replica's memory, of zeros.
func (v *Values) allocate(r *Replica) error {
	size := uint64(r.Hi - r.Lo)
	if err := v.account.take(r.slot, size); err != nil {
		return err
	}
	create := r.dev.NewBuffer
	if r.mappable = v.near && r.dev.Info().Features.Has(driver.FeatureMappable); r.mappable {
		create = r.dev.NewMappable
	}
	mem, err := create(size)
	if err == nil {
		if err = mem.Clear(0, mem.Size()); err != nil {
			_ = mem.Close() // the first error says more
		}
	}
	if err != nil {
		v.account.give(r.slot, size)
		return err
	}
	r.Mem = mem
	return nil
}

// drop gives a replica's memory back.
func (v *Values) drop(r *Replica) error {
	v.k.replicas = pointers.Remove(v.k.replicas, r)
	v.account.give(r.slot, uint64(r.Hi-r.Lo))
	dev := r.dev
	err := r.close()
	if dev.Usable() != nil {
		return nil // everything of the device's is gone
	}
	return err
}

// spare reports whether nothing is needed of a replica: others have it, or the host, whose other values may count as well.
func (v *Values) spare(r *Replica, hostCounts bool) bool {
	var only []write
	for _, o := range slices.Clone(v.m.log) {
		if o.from != r {
			continue
		}
		rest := v.assign(o, r)
		if len(rest) > 0 && (o.state != Apart || !hostCounts) {
			return false
		}
		only = append(only, rest...)
	}
	for _, o := range only {
		_, v.m.log = divide(v.m.log, o.Offset, o.End())
	}
	return true
}

// Leave drops a replica from a device, if one is there of which nothing is needed. If hostCounts the host's values are as good as others
// that are not newer.
func (v *Values) Leave(dev *gpu.Device, hostCounts bool) bool {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	for _, r := range v.k.replicas {
		if r.dev == dev && v.spare(r, hostCounts) {
			_ = v.drop(r) // what matters is whether there is room now
			return true
		}
	}
	return false
}

// Close gives all memory of devices back.
func (v *Values) Close() error {
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	var errs []error
	for len(v.k.replicas) > 0 {
		errs = append(errs, v.drop(v.k.replicas[0]))
	}
	return errors.Join(errs...)
}

// Update brings what a replica lacks of a region. Others may be updated meanwhile, but nothing else.
func (v *Values) Update(ctx context.Context, r *Replica, w Region) error {
	v.m.mu.Lock()
	var due []write
	behind, _ := divide(r.behind, w.Offset, w.End())
	for _, part := range behind {
		due = append(due, v.sources(part.Region)...)
	}
	v.m.mu.Unlock()
	for _, o := range due {
		if err := v.take(ctx, r, o); err != nil {
			return err
		}
		v.m.mu.Lock()
		_, r.behind = divide(r.behind, o.Offset, o.End())
		v.m.mu.Unlock()
	}
	return nil
}

func (v *Values) take(ctx context.Context, r *Replica, w write) error {
	if from := w.from; from != nil {
		if from.dev != nil && from.slot != r.slot {
			v.account.Moved.Add(int64(w.Width))
		}
		if from.dev == r.dev && !from.near && !r.near && r.inWords(w.Region) && from.inWords(w.Region) {
			return r.copyRows(w.Region, from)
		}
		return r.viaHost(ctx, w.Region, from)
	}
	v.account.Up.Add(int64(w.Width))
	v.m.mu.Lock()
	words := !v.m.Lacks(r.Words(w.Region))
	v.m.mu.Unlock()
	switch host := v.k.host; {
	case r.near && host.Foreign == nil:
		return r.write(ctx, w.Offset, host.Part(w.Offset, w.Width))
	case words || r.inWords(w.Region):
		return r.upload(w.Region, words)
	}
	return r.viaHost(ctx, w.Region, nil)
}

// Read copies a region of a replica into host memory from an offset on.
func (r *Replica) Read(ctx context.Context, w Region, dst gpu.Host, offset int) error {
	if r.near && dst.Foreign == nil {
		r.busy.Lock()
		defer r.busy.Unlock()
		return r.Mem.Map(ctx, uint64(w.Offset-r.Lo), uint64(w.Width), func(b []byte) error {
			copy(dst.Mem()[offset:], b)
			return nil
		})
	}
	return r.Mem.Read(ctx, r.Transfer(w, dst, offset))
}
