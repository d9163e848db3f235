// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// program makes the program of a kernel for a call's parameters, or finds it.
func (cr *Cruncher) program(c *call, name string) (*kernel.Program, error) {
	decls := make([]kernel.Decl, len(c.list))
	var id strings.Builder
	id.WriteString(name + " " + itoa(c.local))
	for i := range c.list {
		d := cr.decl(&c.list[i])
		decls[i] = d
		id.WriteString(" " + d.Name + ":" + d.Type.String() + d.Struct + itoa(int(d.Mode)))
		for _, set := range []bool{d.Scalar, d.ReadOnly, d.Window} {
			id.WriteString(strconv.FormatBool(set))
		}
	}
	p := cr.programs.Get(id.String())
	if p == nil {
		var err error
		if p, err = cr.source.Build(name, decls, [3]int{c.local}); err != nil {
			return nil, err
		}
		if old, gone := cr.programs.Put(id.String(), p); gone {
			c.displaced = append(c.displaced, old)
		}
	}
	if dims := len(c.r.Inner) + 1; p.Dims != 0 && p.Dims != dims {
		return nil, fail("Compute", ErrRange, name, " has ", itoa(p.Dims), " dimensions, the range ", itoa(dims))
	}
	for i := range p.Arrays {
		a := &p.Arrays[i]
		if r := c.argument(a.Name); a.Struct != "" && r.array.record != 0 && r.array.record != a.Unit {
			return nil, fail("Compute", kernel.ErrKernel, a.Struct, " has ", itoa(a.Unit), " bytes in WGSL, those of ", a.Name,
				" have ", itoa(r.array.record))
		}
	}
	return p, nil
}

// decl declares a parameter to a kernel.
func (cr *Cruncher) decl(p *param) kernel.Decl {
	if p.array == nil {
		return kernel.Decl{Name: p.name, Type: p.scalar.Type, Scalar: true}
	}
	d := kernel.Decl{
		Name: p.name, Type: p.array.t, Mode: p.flags.Mode, Struct: p.flags.Struct, ReadOnly: p.flags.ReadOnly,
	}
	size := p.array.t.Size()
	switch {
	case p.array.t == Bytes:
		d.Type, d.Mode = dtype.Uint8, max(d.Mode, kernel.Packed)
	case size == 4 && (d.Mode != kernel.Atomic || d.Type == dtype.Float32):
		d.Mode = kernel.Widened // that is: as it is
	case d.Mode == kernel.Widened:
		size = 4
	}
	for _, w := range cr.workers {
		d.Window = d.Window || uint64(p.array.n) > memory.Bindable(w.dev)/uint64(size)
	}
	return d
}

// stepOf returns the number of items of which devices' parts are multiples: the local range, or more so that no two parts share a word.
func (cr *Cruncher) stepOf(c *call) int {
	step := c.local
	if len(c.r.Inner) > 0 {
		step = 1
	}
	for i := range c.arrays {
		a := &c.arrays[i]
		if bytes := a.array.t.Size() * (a.flags.ElementsPerItem % 4) * (c.inner % 4) % 4; bytes != 0 && !a.widened() {
			step = lcm(step, 4/gcd(4, bytes))
		}
	}
	return step
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func lcm(a, b int) int { return a / gcd(a, b) * b }

// launch queues a kernel over a part of a piece, or with the items of one workgroup.
func (cr *Cruncher) launch(ctx context.Context, c *call, p *kernel.Program, on *piece, items part) error {
	args := make([]kernel.Argument, 0, len(c.list))
	for i := range c.list {
		if c.list[i].array == nil {
			args = append(args, c.list[i].scalar)
		}
	}
	for _, a := range p.Arrays {
		k := c.index(a.Name)
		array, r := c.arrays[k].array, &on.has[k]
		arg := kernel.Argument{Name: a.Name, Type: a.Type, Buffer: r.Mem, First: r.Lo / array.t.Size(), Length: array.n}
		if r.mem != nil {
			arg.Buffer, arg.First = r.mem, r.lo
		}
		args = append(args, arg)
	}
	return p.Launch(ctx, on.worker.dev, c.items(items), args...)
}

// index finds an array by its name: kernel.Build refuses programs with arrays that are no parameters.
func (c *call) index(name string) int {
	return slices.IndexFunc(c.arrays, func(a argument) bool { return a.name == name })
}

func (c *call) argument(name string) *argument { return &c.arrays[c.index(name)] }

// items returns a part in the dimensions of the range. An empty part stands for the items of one workgroup.
func (c *call) items(of part) kernel.Range {
	d := len(c.r.Inner)
	r := kernel.Range{Total: [3]int{1, 1, 1}, Count: [3]int{1, 1, 1}}
	if of.count == 0 {
		r.Count[0], r.Total[0] = c.local, c.local
		return r
	}
	for i, n := range c.r.Inner {
		r.Count[i], r.Total[i] = n, n
	}
	r.Base[d], r.Count[d], r.Total[d] = of.base, of.count, c.r.Offset+c.r.Global
	return r
}

// programs lists the programs of a call.
func (c *call) programs() []*kernel.Program {
	if c.sync == nil {
		return c.kernels
	}
	return append(slices.Clip(c.kernels), c.sync)
}

// closeAll closes programs. Those that are used again are compiled anew.
func closeAll(list []*kernel.Program) {
	for _, p := range list {
		p.Close()
	}
}

// converter has the programs that unpack arrays of a type to the words that kernels see, and pack them again.
type converter struct{ unpack, pack *kernel.Program }

// converter returns the programs for a type, which the cruncher keeps.
func (cr *Cruncher) converter(t dtype.Type) (*converter, error) {
	if c := cr.converters[t]; c != nil {
		return c, nil
	}
	unpack, pack, err := kernel.Conversions(t)
	if err != nil {
		return nil, err
	}
	c := &converter{unpack, pack}
	cr.converters[t] = c
	return c, nil
}

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
	w.hi = a.array.n
	if most := int(memory.Bindable(p.worker.dev) / 4); w.hi > most {
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
