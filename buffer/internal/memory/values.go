// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Values is what devices have of an array, as a single device would have it: zeros at first. The host has values of its own, which
// come to the devices by Upload, and to which those of the devices are returned by the caller, who says so. Regions have one row.
type Values struct {
	mu      sync.Mutex
	k       Backing
	parts   []part // of everything, in order
	account *Account
	near    bool // memory that the CPU can reach is wanted
}

// part is a range of bytes whose values are in the same places.
type part struct {
	lo, hi int
	state  State
	have   []*Replica // those that have the values; never changed in place
	zero   bool       // nobody has written the values
	lost   bool       // they are nowhere: a device that is lost had them, or one gave them up
	left   bool       // a device gave them up, as the host has the same
}

// State tells how the devices' values differ from the host's.
type State uint8

// The states: they are the host's, other ones, newer ones, newer ones that the host is to get.
const (
	same State = iota
	Apart
	Newer
	Pending
)

// zeros is what values come from that are nowhere.
var zeros Replica

// NewValues makes the memory of an array of the host's.
func NewValues(host gpu.Host, a *Account, near bool) *Values {
	v := &Values{account: a, near: near, parts: []part{{hi: host.Size, state: Apart, zero: true}}}
	v.k = Backing{End: host.Size, host: host, keeps: v.keeps}
	return v
}

// within lists what lies in a region. Its caller has not locked v.
func (v *Values) within(w Region) (list []part) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.parts {
		if p.lo, p.hi = max(p.lo, w.Offset), min(p.hi, w.End()); p.lo < p.hi {
			list = append(list, p)
		}
	}
	return list
}

// change calls fn for what lies in a region, and then makes one part of neighbours that are alike.
func (v *Values) change(w Region, fn func(*part)) {
	old := v.parts
	v.parts = make([]part, 0, len(old)+2)
	for _, p := range old {
		lo, hi := min(max(p.lo, w.Offset), p.hi), max(min(p.hi, w.End()), p.lo)
		if lo >= hi {
			v.add(p)
			continue
		}
		before, inside, after := p, p, p
		before.hi, inside.lo, inside.hi, after.lo = lo, lo, hi, hi
		fn(&inside)
		v.add(before)
		v.add(inside)
		v.add(after)
	}
}

// edit is change for a caller that has not locked v.
func (v *Values) edit(w Region, fn func(*part)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.change(w, fn)
}

// add puts a part behind the last one, or makes it longer.
func (v *Values) add(p part) {
	if p.lo == p.hi {
		return
	}
	if n := len(v.parts); n > 0 {
		last := &v.parts[n-1]
		if last.state == p.state && last.zero == p.zero && last.lost == p.lost && last.left == p.left && slices.Equal(last.have, p.have) {
			last.hi = p.hi
			return
		}
	}
	v.parts = append(v.parts, p)
}

func (p *part) region() Region { return Between(p.lo, p.hi) }

func (p *part) has(r *Replica) bool { return slices.Contains(p.have, r) }

// take adds a replica to those that have the part.
func (p *part) take(r *Replica) {
	if !p.has(r) {
		p.have = append(slices.Clip(p.have), r)
	}
}

// onlyIn reports whether a replica has values that are nowhere else.
func (p *part) onlyIn(r *Replica) bool {
	return p.state != same && !p.zero && !p.lost && len(p.have) == 1 && p.have[0] == r
}

// leave removes a replica. Values that were only there are the host's if those are no newer, and lost otherwise.
func (p *part) leave(r *Replica) {
	if p.onlyIn(r) {
		p.lost = p.state != Apart
		if !p.lost {
			p.state = same
		}
	}
	if p.has(r) {
		p.have = without(slices.Clone(p.have), r)
	}
}

// Upload says that the devices' values of a region are the host's from now on, but for those that are newer. Replicas get them when they
// are updated.
func (v *Values) Upload(w Region) {
	v.edit(w, func(p *part) {
		if p.state == Apart {
			*p = part{lo: p.lo, hi: p.hi}
		}
	})
}

// HostChanged says that the host's values of a region may be others: those that replicas have are in a state now, and those that a
// replica had are lost.
func (v *Values) HostChanged(w Region, state State) {
	v.edit(w, func(p *part) {
		if p.state == same && (len(p.have) > 0 || p.left) {
			p.state, p.lost = state, len(p.have) == 0
		}
	})
}

// Wrote says that kernels wrote a region of a replica.
func (v *Values) Wrote(r *Replica, w Region, state State) {
	v.edit(w, func(p *part) { *p = part{lo: p.lo, hi: p.hi, state: state, have: []*Replica{r}} })
}

// Returned says that the host has the values of a region.
func (v *Values) Returned(w Region) {
	v.edit(w, func(p *part) { p.state, p.zero, p.lost = same, false, false })
}

// Change makes values of a region that are in one state be in another one.
func (v *Values) Change(w Region, from, to State) {
	v.edit(w, func(p *part) {
		if p.state == from {
			p.state = to
		}
	})
}

// Forget says that values of a replica are undefined. It reports whether they are elsewhere; where they are not it has them still.
func (v *Values) Forget(r *Replica, w Region) bool {
	elsewhere := true
	v.edit(w, func(p *part) {
		if p.onlyIn(r) && p.state != Apart {
			elsewhere = false
		} else {
			p.leave(r)
		}
	})
	return elsewhere
}

// Lost gives up what a place had.
func (v *Values) Lost(slot int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, r := range slices.Clone(v.k.replicas) {
		if r.slot == slot {
			_ = v.drop(r) // there is nothing to give back
		}
	}
}

// Source is a region of values with the replica that has them: none for the host, for zeros, and for what a lost device had.
type Source struct {
	Region
	Replica *Replica
	Slot    int
	Lost    bool
}

func (p *part) source() Source {
	s := Source{Region: p.region(), Lost: p.lost}
	if p.state != same && !p.zero && !p.lost {
		s.Replica, s.Slot = p.have[0], p.have[0].slot
	}
	return s
}

// Newest lists the values of a region that are in a state, or in one after it.
func (v *Values) Newest(w Region, state State) (list []Source) {
	for _, p := range v.within(w) {
		if p.state >= state {
			list = append(list, p.source())
		}
	}
	return list
}

// Lacking lists what a place would have to get of a region, and from where.
func (v *Values) Lacking(slot int, w Region) (list []Source) {
	for _, p := range v.within(w) {
		if !p.zero && !slices.ContainsFunc(p.have, func(r *Replica) bool { return r.slot == slot }) {
			list = append(list, p.source())
		}
	}
	return list
}

// Use returns memory of a place for a region, which may have to be updated. Where all is too large to be bound it begins at a multiple
// of so many bytes.
func (v *Values) Use(p Place, w Region, step int) (*Replica, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	lo, hi, err := v.k.window("cruncher: Compute", p.Device, w, Bindable(p.Device), step)
	if err != nil {
		return nil, err
	}
	if r := v.k.find(p, lo, hi, step); r != nil && !r.Mem.Lost() {
		r.near = p.Map && r.mappable
		return r, nil
	} else if r != nil {
		_ = v.drop(r)
	}
	spare := func(r *Replica) bool { return v.spare(r, false) }
	_ = v.k.shrink(p, maxWindows-1, spare, v.evict) // what matters is whether there is room
	r := &Replica{k: &v.k, dev: p.Device, slot: p.Slot, Lo: lo, Hi: hi}
	err = v.allocate(r)
	if errors.Is(err, gpu.ErrNoMemory) {
		_ = v.k.shrink(p, 0, spare, v.evict)
		err = v.allocate(r)
	}
	if err != nil {
		return nil, err
	}
	r.near = p.Map && r.mappable
	v.change(Between(lo, hi), func(p *part) {
		if p.zero {
			p.take(r)
		}
	})
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

// evict drops a replica, whose values are lost if the host's become others before they come up again.
func (v *Values) evict(r *Replica) error {
	v.change(v.k.All(), func(p *part) { p.left = p.left || p.state == same && p.has(r) })
	return v.drop(r)
}

// drop gives a replica's memory back.
func (v *Values) drop(r *Replica) error {
	v.change(v.k.All(), func(p *part) { p.leave(r) })
	v.k.replicas = without(v.k.replicas, r)
	v.account.give(r.slot, uint64(r.Hi-r.Lo))
	err := r.Mem.Close() // no more than that: a pipeline may be reading it
	if r.dev.Usable() != nil {
		return nil // everything of the device's is gone
	}
	return err
}

// spare reports whether nothing is needed of a replica: others have it, or the host, whose other values may count as well.
func (v *Values) spare(r *Replica, hostCounts bool) bool {
	return !slices.ContainsFunc(v.parts, func(p part) bool { return p.onlyIn(r) && (p.state != Apart || !hostCounts) })
}

// Leave drops a replica from a device, if one is there of which nothing is needed. If hostCounts the host's values are as good as others
// that are not newer.
func (v *Values) Leave(dev *gpu.Device, hostCounts bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
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
	v.mu.Lock()
	defer v.mu.Unlock()
	var errs []error
	for len(v.k.replicas) > 0 {
		errs = append(errs, v.drop(v.k.replicas[0]))
	}
	return errors.Join(errs...)
}

// Update brings what a replica lacks of a region. Others may be updated meanwhile, but nothing else.
func (v *Values) Update(ctx context.Context, r *Replica, w Region) error {
	for _, p := range v.within(Between(max(w.Offset, r.Lo), min(w.End(), r.Hi))) {
		if p.has(r) {
			continue
		}
		if err := v.bring(ctx, r, p); err != nil {
			return err
		}
		v.edit(p.region(), func(p *part) { p.take(r) })
	}
	return nil
}

// bring copies a part to a replica.
func (v *Values) bring(ctx context.Context, r *Replica, p part) error {
	w, from := p.region(), p.source().Replica
	switch {
	case p.state != same && from == nil:
		return r.viaHost(ctx, w, &zeros)
	case from != nil:
		if from.slot != r.slot {
			v.account.Moved.Add(int64(w.Width))
		}
		if from.dev == r.dev && !from.near && !r.near && r.inWords(w) && from.inWords(w) {
			return r.copyRows(w, from)
		}
		return r.viaHost(ctx, w, from)
	}
	v.account.Up.Add(int64(w.Width))
	words := !slices.ContainsFunc(v.within(r.Words(w)), func(p part) bool { return p.state != same })
	switch host := v.k.host; {
	case r.near && host.Foreign == nil:
		return r.write(ctx, w.Offset, host.Part(w.Offset, w.Width))
	case words || r.inWords(w):
		return r.upload(w, words)
	}
	return r.viaHost(ctx, w, nil)
}

// keeps reports whether a replica has values of a region.
func (v *Values) keeps(r *Replica, w Region) bool {
	return slices.ContainsFunc(v.within(w), func(p part) bool { return p.has(r) })
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

// Place is a device, or one of several that it stands for.
type Place struct {
	Device *gpu.Device
	Slot   int
	Map    bool // the CPU may reach memory that it can reach, as nothing else does at the time
}

// Account counts what arrays take on each device, which may be limited, and what they move: from the host, and from replica to replica.
type Account struct {
	Limit     uint64
	Up, Moved atomic.Int64

	mu   sync.Mutex
	used map[int]uint64 // by slot
}

func (a *Account) take(slot int, n uint64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.Limit > 0 && a.used[slot]+n > a.Limit {
		return fault.Fail("cruncher: Compute", gpu.ErrNoMemory,
			fault.Text(a.used[slot]+n, " bytes of arrays on one device, the limit is ", a.Limit))
	}
	if a.used == nil {
		a.used = map[int]uint64{}
	}
	a.used[slot] += n
	return nil
}

func (a *Account) give(slot int, n uint64) {
	a.mu.Lock()
	a.used[slot] -= n
	a.mu.Unlock()
}
