// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/internal/span"
)

// Kernels see the elements of widened arrays as words and may store more bits in them than elements have. What comes to the host has
// lost those, and so has what comes from there or from another device. The next launch must not see whether an element has moved
// meanwhile, so before it the bits go, too. That costs nothing where all that a launch wrote goes up anew.

// trim takes the bits that earlier launches left too many from the elements that the program may use for a blob.
func (cr *Cruncher) trim(c *call, p *program, on *piece, b part) error {
	for i := range p.Arrays {
		a := c.argument(p.Arrays[i].Name)
		s := &a.sides[on.worker.index]
		within := span.Span{Lo: s.lo, Hi: s.hi}
		if c.byBlob(a) { // the other blobs have yet to go up
			within = b.elements(a.flags.ElementsPerItem, c.inner, a.array.n)
		}
		for sp := range s.loose.Overlap(within.Lo, within.Hi) {
			if err := s.convert(s.narrow, s.up, a.array.t, sp); err != nil {
				return err
			}
			if err := s.convert(s.widen, s.up, a.array.t, sp); err != nil {
				return err
			}
		}
		s.loose.Remove(within.Lo, within.Hi)
	}
	return nil
}

// loosen notes what launches of the program may have written for items.
func (c *call) loosen(p *program, on *piece, items part) {
	for i := range p.Arrays {
		a := c.argument(p.Arrays[i].Name)
		if !a.widened() || !p.Arrays[i].Written {
			continue
		}
		own := a.written(c, items)
		if items.count == 0 { // the kernel between repeats
			own = part{0, c.local}.elements(a.flags.ElementsPerItem, 1, a.array.n)
		}
		s := &a.sides[on.worker.index]
		s.loose.Add(max(own.Lo, s.lo), min(own.Hi, s.hi))
	}
}

// perform queues a kernel for items whose elements the device has.
func (cr *Cruncher) perform(ctx context.Context, c *call, p *program, on *piece, items part) error {
	if err := cr.trim(c, p, on, items); err != nil {
		return err
	}
	if err := cr.launch(ctx, c, p, on, items); err != nil {
		return err
	}
	c.loosen(p, on, items)
	return nil
}
