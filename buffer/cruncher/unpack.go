// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
)

// words is an array of 8-bit or 16-bit elements as kernels see it in mode Widened: a word for each of the elements lo to hi-1. They
// are unpacked before a kernel and packed after it, so that the next one sees no more bits than elements have.
type words struct {
	mem     *gpu.Buffer
	lo, hi  int
	fresh   span // what is unpacked
	changed bool // by a kernel
}

// widened reports whether kernels see a word for each of the array's smaller elements.
func (a *argument) widened() bool {
	return a.flags.Mode == kernel.Widened && a.array.t.Size() < 4 && a.array.t != Bytes
}

// newWords makes the words of array k for a piece: of all elements unless they are more than the device can bind.
func (cr *Cruncher) newWords(c *call, p *piece, k int) (err error) {
	a, w := &c.arrays[k], &p.has[k]
	l := p.worker.dev.Info().Limits
	w.hi = a.array.n
	if most := int(min(l.MaxBufferSize, l.MaxBindingSize)) / 4; w.hi > most {
		w.lo, w.hi = w.bound.lo/4*4, w.bound.hi
		if w.hi-w.lo > most {
			return fail("Compute", gpu.ErrLimit, itoa(w.hi-w.lo), " elements of ", a.array.name, " on one device, which allows ", itoa(most))
		}
	}
	return cr.inRoom(p.worker.dev, func() error {
		w.mem, err = p.worker.dev.NewBuffer(4 * uint64(w.hi-w.lo))
		return err
	})
}

// perform queues a kernel for items whose elements the device has. Of a kernel that runs by parts begin says that it is the first.
func (cr *Cruncher) perform(ctx context.Context, c *call, p *kernel.Program, on *piece, items part, begin bool) error {
	for i := range p.Arrays {
		k := c.index(p.Arrays[i].Name)
		a, w := &c.arrays[k], &on.has[k]
		need := w.bound
		if c.byBlob(a) { // the other blobs have yet to go up
			need = a.own(c, items)
		}
		if begin && w.changed {
			w.fresh, w.changed = span{}, false
		}
		if w.mem == nil || w.fresh.lo <= need.lo && need.hi <= w.fresh.hi {
			continue
		}
		w.fresh = need
		if err := a.convert(ctx, a.conv.unpack, 1, on, k, need); err != nil {
			return err
		}
	}
	if err := cr.launch(ctx, c, p, on, items); err != nil {
		return err
	}
	for i := range p.Arrays {
		k := c.index(p.Arrays[i].Name)
		a, w := &c.arrays[k], &on.has[k]
		if w.mem == nil || !p.Arrays[i].Written {
			continue
		}
		own := c.between(a)
		if items.count > 0 { // or else it is the kernel between repeats
			own = a.written(c, items)
		}
		w.changed = true
		if err := a.convert(ctx, a.conv.pack, 4/a.array.t.Size(), on, k, own); err != nil {
			return err
		}
	}
	return nil
}

// convert queues a kernel that unpacks or packs elements of array k, and has an item for so many of them as memory has them.
func (a *argument) convert(ctx context.Context, p *kernel.Program, per int, on *piece, k int, sp span) error {
	w := &on.has[k]
	lo, hi := w.Lo/a.array.t.Size(), w.Hi/a.array.t.Size()
	sp.lo, sp.hi = max(sp.lo, lo, w.lo), min(sp.hi, hi, w.hi)
	if sp.lo >= sp.hi {
		return nil
	}
	array := func(name string, b *gpu.Buffer) kernel.Argument {
		return kernel.Argument{Name: name, Type: dtype.Uint32, Buffer: b}
	}
	number := func(name string, n int) kernel.Argument {
		return kernel.Argument{Name: name, Type: dtype.Uint32, Bits: []uint32{uint32(n)}}
	}
	first := sp.lo - lo
	items := (sp.hi-lo-1)/per - first/per + 1
	return p.Launch(ctx, on.worker.dev, kernel.Range{Count: [3]int{items}}, array("packed", w.Mem), array("unpacked", w.mem),
		number("first", first), number("first_unpacked", sp.lo-w.lo), number("count", sp.hi-sp.lo))
}
