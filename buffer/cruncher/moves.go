// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"time"

	"github.com/sublet-gpu/sublet/buffer/internal/span"
	"github.com/sublet-gpu/sublet/gpu"
)

// needs returns the elements of an array that a piece's device has to have before its kernels run: those that come from the
// host's side, whatever the devices have, and those that it must have the newest values of.
func (a *argument) needs(c *call, p *piece) (host, newest span.Span) {
	if p.part.count == 0 {
		return host, newest
	}
	f, all := &a.flags, span.Span{Lo: 0, Hi: a.array.n}
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

func widen(s span.Span, halo, n int) span.Span {
	if s.Lo >= s.Hi {
		return s
	}
	halo = min(halo, n)
	return span.Span{Lo: max(s.Lo-halo, 0), Hi: min(s.Hi+halo, n)}
}

// own returns the elements of an array that belong to a part.
func (a *argument) own(c *call, of part) span.Span {
	return of.elements(a.flags.ElementsPerItem, c.inner, a.array.n)
}

// bound returns the elements of an array that a piece's kernels may touch.
func (a *argument) bound(c *call, p *piece) span.Span {
	b := a.own(c, p.part)
	host, newest := a.needs(c, p)
	for _, s := range []span.Span{host, newest} {
		if s.Lo < s.Hi {
			b = span.Span{Lo: min(s.Lo, b.Lo), Hi: max(s.Hi, b.Hi)}
		}
	}
	return b
}

// prepareMoves makes the devices' memory and brings there what the pieces need, except for what goes up blob by blob.
func (cr *Cruncher) prepareMoves(ctx context.Context, c *call, pieces []*piece) error {
	for k := range c.arrays {
		a := &c.arrays[k]
		a.look(c.number())
		for _, p := range pieces {
			moves, err := cr.moves(c, a, p)
			if err != nil {
				return err
			}
			p.moves = append(p.moves, moves)
		}
	}
	// What devices have is collected before memory is made, since windows may leave it behind.
	leaving, some := leaving(c, pieces)
	if some {
		if err := cr.each(pieces, func(p *piece) error { return cr.collect(ctx, c, p) }); err != nil {
			return err
		}
	}
	// All devices have memory before anything is written over, as this is what may fail.
	if err := cr.each(pieces, func(p *piece) error { return cr.house(ctx, c, p, leaving) }); err != nil {
		return err
	}
	for _, p := range pieces {
		p.begun = true
	}
	if err := cr.each(pieces, func(p *piece) error { return cr.deliver(ctx, c, p) }); err != nil {
		return err
	}
	cr.settle(c, pieces)
	return nil
}

// house makes the memory for a piece.
func (cr *Cruncher) house(ctx context.Context, c *call, p *piece, leaving []span.Set) error {
	p.words = make([]words, len(c.arrays))
	for k := range c.arrays {
		a := &c.arrays[k]
		if err := cr.ensure(a.residency, p.worker.index, a.bound(c, p), &leaving[k]); err != nil {
			return err
		}
	}
	for k := range c.arrays {
		if c.arrays[k].widened() && !c.r.TransferOnly {
			if err := cr.newWords(c, p, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// moves lists what a piece lacks of an array. What comes from the host's side whatever the devices have is at the end.
func (cr *Cruncher) moves(c *call, a *argument, p *piece) ([]move, error) {
	d := p.worker.index
	host, newest := a.needs(c, p)
	list, err := a.keep(nil, d, newest, cr.isLost)
	if err != nil {
		return nil, err
	}
	if cr.conf.coherence == Strict {
		for _, m := range list {
			if m.from != fromHost {
				return nil, fail("Compute", ErrMigration, a.array.name)
			}
		}
	}
	for s := range a.pending.Overlap(host.Lo, host.Hi) {
		if list, err = a.keep(list, d, s, cr.isLost); err != nil {
			return nil, err
		}
	}
	return a.fetch(list, d, host), nil
}

// collect gets the elements that come from other devices.
func (cr *Cruncher) collect(ctx context.Context, c *call, p *piece) error {
	start := time.Now()
	defer func() { p.moving += time.Since(start) }()
	for k := range c.arrays {
		a := &c.arrays[k]
		for i := range p.moves[k] {
			m := &p.moves[k][i]
			if m.from == fromHost {
				continue
			}
			m.mem = make([]byte, m.span.Len()*a.array.t.Size())
			if err := a.get(ctx, m.from, m.span, gpu.HostBytes(m.mem), 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// leaving returns what of each array goes from one device to another, and whether that is anything.
func leaving(c *call, pieces []*piece) (sets []span.Set, some bool) {
	sets = make([]span.Set, len(c.arrays))
	for _, p := range pieces {
		for k, moves := range p.moves {
			for _, m := range moves {
				if m.from != fromHost {
					sets[k].Add(m.span.Lo, m.span.Hi)
					some = true
				}
			}
		}
	}
	return sets, some
}

// deliver carries out a piece's moves, except for those that go up blob by blob.
func (cr *Cruncher) deliver(ctx context.Context, c *call, p *piece) error {
	for k := range c.arrays {
		a := &c.arrays[k]
		for i := range p.moves[k] {
			m := &p.moves[k][i]
			if m.from == fromHost {
				if c.byBlob(a) {
					continue
				}
				if err := cr.upload(ctx, a.residency, p.worker.index, m.span); err != nil {
					return err
				}
				continue
			}
			if err := a.put(ctx, p.worker.index, m.span, gpu.HostBytes(m.mem)); err != nil {
				return err
			}
			cr.migrated.Add(int64(len(m.mem)))
			m.mem = nil
		}
	}
	return nil
}

// upload brings elements of the host's to a device.
func (cr *Cruncher) upload(ctx context.Context, r *residency, d int, s span.Span) error {
	for part, host := range r.hostSide(s) {
		if err := r.put(ctx, d, part, host); err != nil {
			return err
		}
		cr.up.Add(int64(host.Size))
	}
	return nil
}

// byBlob reports whether an array goes up blob by blob, and not before all kernels.
func (c *call) byBlob(a *argument) bool {
	whole := a.flags.Write && a.flags.WriteAll
	return c.r.Blobs > 1 && a.flags.PartialRead && a.flags.Halo == 0 && !whole
}

// settle notes what the devices have now, before their kernels run.
func (cr *Cruncher) settle(c *call, pieces []*piece) {
	for k := range c.arrays {
		a := &c.arrays[k]
		fetched := make([]span.Span, len(cr.workers))
		for _, p := range pieces {
			if p.err == nil {
				fetched[p.worker.index], _ = a.needs(c, p)
			}
		}
		a.fetched(fetched)
		for _, p := range pieces {
			if p.err != nil {
				continue
			}
			host, newest := a.needs(c, p)
			a.kept(p.worker.index, newest)
			for s := range a.pending.Overlap(host.Lo, host.Hi) {
				a.kept(p.worker.index, s)
			}
			for _, m := range p.moves[k] {
				if m.from != fromHost { // whose window may have left them behind
					a.owner.Set(m.span.Lo, m.span.Hi, p.worker.index)
				}
			}
		}
	}
}

// moveRate is how many bytes a second go from one device to another by way of the host, for the balancer's decisions. That they
// are not for nothing is what matters, not how dear they are.
const moveRate = 1e9

// moveCosts tells the balancer what shares would cost in elements that move between devices. It is nil if none would.
func (cr *Cruncher) moveCosts(c *call) func(counts []int) []float64 {
	var resident []*argument
	for i := range c.arrays {
		if _, newest := c.arrays[i].needs(c, &piece{part: part{0, 1}}); newest.Len() > 0 {
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
				for gap := range a.valid[d].Missing(need.Lo, need.Hi) {
					for s := range a.owner.Get(gap.Lo, gap.Hi) {
						costs[d] += float64(s.Len()*a.array.t.Size()) / moveRate
					}
				}
			}
		}
		return costs
	}
}
