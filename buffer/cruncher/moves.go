// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"time"

	"github.com/sublet-gpu/sublet/buffer/internal/memory"
)

// needs returns the elements of an array that a piece's device has to have before its kernels run: those that come from the
// host's side, whatever the devices have, and those that it must have the newest values of.
func (a *argument) needs(c *call, p *piece) (host, newest span) {
	if p.part.count == 0 {
		return host, newest
	}
	f, all := &a.flags, span{0, a.array.n}
	near := widen(a.own(c, p.part), f.Halo, a.array.n)
	switch {
	case f.Read && !f.PartialRead:
		return all, newest
	case f.PartialRead:
		host = near
	default: // of what is write-only, too: a kernel may leave elements as they are
		newest = near
	}
	if f.Write && f.WriteAll {
		newest = all
	}
	return host, newest
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

// bound returns the elements of an array that a piece's kernels may touch.
func (a *argument) bound(c *call, p *piece) span {
	b := a.own(c, p.part)
	host, newest := a.needs(c, p)
	for _, s := range []span{host, newest} {
		if s.lo < s.hi {
			b = span{min(s.lo, b.lo), max(s.hi, b.hi)}
		}
	}
	return b
}

// prepareMoves makes the devices' memory and brings there what the pieces need, except for what goes up blob by blob.
func (cr *Cruncher) prepareMoves(ctx context.Context, c *call, pieces []*piece) error {
	for k := range c.arrays {
		a := &c.arrays[k]
		a.look(c.batch)
		for _, p := range pieces {
			if err := cr.present(c, a, p); err != nil {
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
			host, _ := a.needs(c, p)
			a.values.Upload(a.array.bytes(host))
		}
	}
	return cr.each(pieces, func(p *piece) error { return cr.deliver(ctx, c, p) })
}

// present makes sure that the newest values that a piece needs are somewhere, and may move.
func (cr *Cruncher) present(c *call, a *argument, p *piece) error {
	host, newest := a.needs(c, p)
	needs := []memory.Region{a.array.bytes(newest)}
	for _, s := range a.values.Newest(a.array.bytes(host), memory.Pending) {
		needs = append(needs, s.Region)
	}
	for i, need := range needs {
		for _, s := range a.values.Lacking(p.worker.index, need) {
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
	p.replicas = make([]*memory.Replica, len(c.arrays))
	p.words = make([]words, len(c.arrays))
	dev := p.worker.dev
	for k := range c.arrays {
		a := &c.arrays[k]
		err := cr.inRoom(dev, func() error {
			place := memory.Place{Device: dev, Slot: p.worker.index, Map: c.r.Blobs == 1}
			p.replicas[k], err = a.values.Use(place, a.array.bytes(a.bound(c, p)), a.step)
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
		a := &c.arrays[k]
		host, newest := a.needs(c, p)
		start := time.Now()
		if err := a.values.Update(ctx, p.replicas[k], a.array.bytes(newest)); err != nil {
			return err
		}
		p.moving += time.Since(start)
		if c.byBlob(a) {
			continue
		}
		if err := a.values.Update(ctx, p.replicas[k], a.array.bytes(host)); err != nil {
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
		if _, newest := c.arrays[i].needs(c, &piece{part: part{0, 1}}); newest.lo < newest.hi {
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
			p := &piece{worker: cr.workers[d], part: part{base, n}}
			base += n
			for _, a := range resident {
				_, need := a.needs(c, p)
				for _, s := range a.values.Lacking(d, a.array.bytes(need)) {
					costs[d] += float64(s.Width) / moveRate
				}
			}
		}
		return costs
	}
}
