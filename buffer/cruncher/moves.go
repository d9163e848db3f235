// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"time"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
)

// need finds out which elements of an array a device has to have before it computes a part.
func (h *holding) need(c *call, a *argument, of part) {
	if of.count == 0 {
		return
	}
	f, all, own := &a.flags, span{0, a.array.n}, a.own(c, of)
	near := widen(own, f.Halo, a.array.n)
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

func widen(s span, halo, n int) span {
	if s.lo >= s.hi {
		return s
	}
	halo = min(halo, n)
	return span{max(s.lo-halo, 0), min(s.hi+halo, n)}
}

// own returns the elements of an array that belong to a part.
func (a *argument) own(c *call, of part) span {
	return of.elements(a.flags.ElementsPerItem, c.inner, a.array.n)
}

// prepareMoves makes the devices' memory and brings there what the pieces need, except for what goes up blob by blob.
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
			a.values.Upload(a.array.bytes(p.has[k].host))
		}
	}
	return cr.each(pieces, func(p *piece) error { return cr.deliver(ctx, c, p) })
}

// present makes sure that the newest values that a device needs are somewhere, and may move.
func (cr *Cruncher) present(a *argument, device int, h *holding) error {
	needs := []memory.Region{a.array.bytes(h.newest)}
	for _, s := range a.values.Newest(a.array.bytes(h.host), memory.Pending) {
		needs = append(needs, s.Region)
	}
	for i, need := range needs {
		for _, s := range a.values.Lacking(device, need) {
			switch {
			case s.Lost && a.access != writeOnly: // else what kernels leave out is undefined
				return fail("Compute", ErrStale, a.array.elements(s.Region))
			case i == 0 && s.Replica != nil && cr.conf.coherence == Strict:
				return fail("Compute", ErrMigration, a.array.name)
			}
		}
	}
	return nil
}

// house makes the memory for a piece.
func (cr *Cruncher) house(c *call, p *piece) (err error) {
	dev := p.worker.dev
	for k := range c.arrays {
		a, h := &c.arrays[k], &p.has[k]
		err := cr.inRoom(dev, func() error {
			place := memory.Place{Device: dev, Slot: p.worker.index, Map: c.r.Blobs == 1}
			h.Replica, err = a.values.Use(place, a.array.bytes(h.bound), a.step)
			return err
		})
		if err != nil {
			return err
		}
	}
	for k := range c.arrays {
		if c.arrays[k].widened() && len(c.kernels) > 0 {
			if err := cr.newWords(c, p, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// deliver brings what a piece needs, except for what goes up blob by blob.
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

// byBlob reports whether an array goes up blob by blob, and not before all kernels.
func (c *call) byBlob(a *argument) bool {
	whole := a.flags.Write && a.flags.WriteAll
	return c.r.Blobs > 1 && a.flags.PartialRead && a.flags.Halo == 0 && !whole
}

// moveRate is how many bytes a second go from one device to another by way of the host, for the balancer's decisions. That they
// are not for nothing is what matters, not how dear they are.
const moveRate = 1e9

// moveCosts tells the balancer what shares would cost in elements that move between devices. It is nil if none would.
func (cr *Cruncher) moveCosts(c *call) func(counts []int) []float64 {
	var resident []*argument
	for i := range c.arrays {
		var h holding
		if h.need(c, &c.arrays[i], part{0, 1}); h.newest.lo < h.newest.hi {
			resident = append(resident, &c.arrays[i])
		}
	}
	if len(resident) == 0 {
		return nil
	}
	return func(counts []int) []float64 {
		costs := make([]float64, len(counts))
		base := c.r.Offset
		for d, n := range counts {
			for _, a := range resident {
				var h holding
				h.need(c, a, part{base, n})
				for _, s := range a.values.Lacking(d, a.array.bytes(h.newest)) {
					costs[d] += float64(s.Width) / moveRate
				}
			}
			base += n
		}
		return costs
	}
}
