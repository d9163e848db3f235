// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"cmp"
	"context"
	"time"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// need determines which elements of an array a device needs to compute a part.
func (h *holding) need(c *call, a *argument, of part) {
	f, all, own := &a.flags, span{0, a.array.n}, a.own(c, of)
	near := own
	if halo := min(f.Halo, a.array.n); own.lo < own.hi {
		near = span{max(own.lo-halo, 0), min(own.hi+halo, a.array.n)}
	}
	h.bound = near
	switch {
	case f.Read && !f.PartialRead:
		h.host, h.bound = all, all
		return
	case f.PartialRead:
		h.host = near
	default: // of what is write-only, too: a kernel may leave elements as they are
		h.newest = near
	}
	if f.Write && f.WriteAll {
		h.newest, h.bound = all, all
	}
}

// own returns the elements of an array that belong to a part.
func (a *argument) own(c *call, of part) span {
	return of.elements(a.flags.ElementsPerItem, c.inner, a.array.n)
}

// prepareMoves makes the devices' memory and copies the elements there that the pieces need, except for those uploaded blob by blob.
func (cr *Cruncher) prepareMoves(ctx context.Context, c *call, pieces []*piece) error {
	for k := range c.arrays {
		a := &c.arrays[k]
		a.look(c.batch)
		for _, p := range pieces {
			if err := cr.present(a, p.worker.index, &p.has[k]); err != nil {
				return err
			}
		}
	}
	// All devices have memory before anything is written over, as this is what may fail.
	if err := cr.each(pieces, func(p *piece) error { return cr.house(c, p) }); err != nil {
		return err
	}
	for k := range c.arrays {
		a := &c.arrays[k]
		for _, p := range pieces {
			host := a.array.bytes(p.has[k].host)
			if a.renewed { // what the caller wrote counts, and not what only devices have
				a.values.Change(host, memory.Newer, memory.Apart)
			}
			a.values.Upload(host)
		}
	}
	return cr.each(pieces, func(p *piece) error { return cr.deliver(ctx, c, p) })
}

// present makes sure that the newest values that a device needs still exist, and may be moved.
func (cr *Cruncher) present(a *argument, device int, h *holding) error {
	newest := []memory.Region{a.array.bytes(h.newest)}
	if !a.renewed {
		newest = append(newest, a.onDevices(h.host, memory.Newer)...)
	}
	for _, need := range newest {
		for _, s := range a.values.Lacking(device, need) {
			if s.Replica != nil && cr.conf.coherence == Strict {
				return fail("Compute", ErrMigration, a.array.name)
			}
		}
	}
	for _, need := range append(newest, a.onDevices(h.host, memory.Pending)...) {
		for _, s := range a.values.Lacking(device, need) {
			if s.Lost && !a.access.writeOnly { // else what kernels leave out is undefined
				return fail("Compute", ErrStale, a.array.elements(s.Region))
			}
		}
	}
	return nil
}

// onDevices lists where elements are in a state, or in one after it.
func (r *residency) onDevices(s span, state memory.State) (list []memory.Region) {
	for _, n := range r.values.Newest(r.array.bytes(s), state) {
		list = append(list, n.Region)
	}
	return list
}

// house allocates the memory for a piece.
func (cr *Cruncher) house(c *call, p *piece) (err error) {
	dev := p.worker.dev
	for k := range c.arrays {
		a, h := &c.arrays[k], &p.has[k]
		err := cr.inRoom(dev, func() error {
			place := memory.Place{Device: dev, Slot: p.worker.index, Map: c.r.Blobs == 1}
			h.Replica, err = a.values.Use(place, a.array.bytes(h.bound), a.step)
			return err
		})
		if err == nil && a.widened() && len(c.kernels) > 0 {
			err = cr.newWords(c, p, k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deliver copies the elements that a piece needs, except for those uploaded blob by blob.
func (cr *Cruncher) deliver(ctx context.Context, c *call, p *piece) error {
	for k := range c.arrays {
		a, h := &c.arrays[k], &p.has[k]
		start := time.Now()
		if err := a.values.Update(ctx, h.Replica, a.array.bytes(h.newest)); err != nil {
			return err
		}
		p.moving += time.Since(start)
		if c.byBlob(a) {
			continue
		}
		if err := a.values.Update(ctx, h.Replica, a.array.bytes(h.host)); err != nil {
			return err
		}
	}
	return nil
}

// byBlob reports whether an array is uploaded blob by blob, and not before all kernels.
func (c *call) byBlob(a *argument) bool {
	whole := a.flags.Write && a.flags.WriteAll
	return c.r.Blobs > 1 && a.flags.PartialRead && a.flags.Halo == 0 && !whole
}

// moveRate is the speed, in bytes per second, that the balancer assumes for copies from one device to another. A rough value is enough
// to keep it from moves without benefit.
const moveRate = 1e9

// moveCosts returns, for the balancer, the time that a division would cost in moves between devices.
func (c *call) moveCosts(counts []int) []float64 {
	costs := make([]float64, len(counts))
	base := c.r.Offset
	for d, n := range counts {
		for k := range c.arrays {
			var h holding
			a := &c.arrays[k]
			h.need(c, a, part{base, n})
			for _, s := range a.values.Lacking(d, a.array.bytes(h.newest)) {
				costs[d] += float64(s.Width) / moveRate
			}
		}
		base += n
	}
	return costs
}

// result is a range of elements that is copied from a device to an array's host memory. It is staged in memory of the library until
// all results of the call have arrived, so that a call that fails changes nothing, and devices that take over a lost one's work
// find the original input. A single result may stay on its device until then.
type result struct {
	*residency
	memory.Source
	mem []byte // nil until they have come
}

// bring copies a result from its device.
func (r *result) bring(ctx context.Context) error {
	mem := make([]byte, r.Width)
	if r.Replica != nil {
		if err := r.Replica.Read(ctx, r.Region, gpu.HostBytes(mem), 0); err != nil {
			return err
		}
	}
	r.mem = mem
	return nil
}

// straight reports whether there is a single result, which may be copied directly to foreign memory. For Go memory the further copy is
// cheap.
func straight(list []result) bool {
	return len(list) == 1 && list[0].array.host.Foreign != nil && list[0].Replica != nil && list[0].Width > 0
}

// stage copies results from all devices at the same time. For one that may be copied directly it only waits until it is computed.
func (cr *Cruncher) stage(ctx context.Context, list []result) error {
	if straight(list) {
		return list[0].Replica.Mem.Sync(ctx)
	}
	return cmp.Or(together(len(cr.workers), func(d int) error {
		for i := range list {
			if list[i].Slot == d {
				if err := list[i].bring(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})...)
}

// newest lists the elements of arrays that are in a state, or in one after it. It is ErrStale if a lost device had some of them.
func newest(op string, wants []*residency, state memory.State) (list []result, err error) {
	for _, r := range wants {
		for _, s := range r.values.Newest(r.array.all(), state) {
			if s.Lost {
				return nil, fail(op, ErrStale, r.array.elements(s.Region))
			}
			list = append(list, result{residency: r, Source: s})
		}
	}
	return list, nil
}

// fetch copies the newest values of arrays. If a device is lost meanwhile, it tries others that have them.
func (cr *Cruncher) fetch(ctx context.Context, op string, wants []*residency, state memory.State) (list []result, err error) {
	for {
		cr.noteLost()
		if list, err = newest(op, wants, state); err != nil {
			return nil, err
		}
		if err = cr.stage(ctx, list); err == nil || !cr.noteLost() {
			return list, err
		}
	}
}

// land stores all results or none. It can fail only for a result that is still on its device, and for foreign memory that no longer
// exists. It takes no context, since the devices have finished.
func (cr *Cruncher) land(ctx context.Context, list []result) error {
	var write []func()
	for i := range list {
		r := &list[i]
		if r.mem == nil { // the only one
			if err := r.Replica.Read(context.WithoutCancel(ctx), r.Region, r.array.host, r.Offset); err != nil {
				return err
			}
			continue
		}
		to, err := r.array.host.Part(r.Offset, r.Width).Writer()
		if err != nil {
			return err
		}
		write = append(write, func() { to(r.mem) })
	}
	for _, w := range write {
		w()
	}
	for i := range list {
		cr.down.Add(int64(list[i].Width))
		cr.arrived(&list[i])
	}
	return nil
}

// arrived records for other crunchers that the host's elements have changed.
func (cr *Cruncher) arrived(r *result) {
	a := r.array
	a.mu.Lock()
	a.overtake(r.Region, cr)
	if a.version++; r.version == a.version-1 {
		r.version = a.version
	}
	a.mu.Unlock()
}
