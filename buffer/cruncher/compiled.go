// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// What a cruncher compiles is its own until it is closed: programs as long as they are among those used last, and the
// conversions of widened arrays.

// program is a kernel for arrays and scalars of certain types. It is compiled for each device when that first runs it.
type program struct {
	*kernel.Program
	id       string
	compiled []*gpu.Kernel // for each device; nil until it needs it
}

// on returns the kernel for a device. Each device's goroutine asks for its own only.
func (p *program) on(ctx context.Context, w *worker) (*gpu.Kernel, error) {
	if k := p.compiled[w.index]; k != nil {
		return k, nil
	}
	k, err := compile(ctx, w.dev, p.Program)
	if err == nil {
		p.compiled[w.index] = k
	}
	return k, err
}

// close gives the kernels back. Who still has the program compiles them anew.
func (p *program) close() {
	for i := range p.compiled {
		p.closeOn(i)
	}
}

// closeOn gives the kernel of one device back. It may have gone with the device, or be of the device that came back meanwhile.
func (p *program) closeOn(device int) {
	_ = p.compiled[device].Close() // never fails
	p.compiled[device] = nil
}

// programs lists the programs of a call.
func (c *call) programs() []*program {
	if c.sync == nil {
		return c.kernels
	}
	return append(slices.Clip(c.kernels), c.sync)
}

// tidy sees to it that programs are closed that are not kept: those of a call that came to nothing, and those that others
// displaced. While a batch may queue calls again it needs them.
func (cr *Cruncher) tidy(c *call) {
	for _, p := range c.programs() {
		if cr.programs.Peek(p.id) != p {
			cr.dropped = append(cr.dropped, p)
		}
	}
	if b := cr.batch; b == nil || b.journal == nil || b.journal.full {
		cr.closeDropped()
	}
}

func (cr *Cruncher) closeDropped() {
	for _, p := range cr.dropped {
		p.close()
	}
	cr.dropped = nil
}

// eachProgram calls fn for all programs that may run again.
func (cr *Cruncher) eachProgram(fn func(*program)) {
	cr.programs.Each(fn)
	for _, p := range cr.dropped {
		fn(p)
	}
}

// closePrograms closes everything that was compiled.
func (cr *Cruncher) closePrograms() {
	cr.eachProgram((*program).close)
	cr.programs.Clear()
	cr.dropped = nil
	for _, w := range cr.workers {
		w.converters.close()
	}
}

// converters are a device's kernels that turn what came up into what kernels see, and back, by the arrays' types. They are few,
// and arrays come and go.
type converters [len(elemTypes)]struct{ widen, narrow *gpu.Kernel }

func (c *converters) close() {
	for i := range c {
		_, _ = c[i].widen.Close(), c[i].narrow.Close() // never fails
	}
	*c = converters{}
}

// conversions finds or compiles the kernels for a type. A device's goroutine asks for its own only.
func (w *worker) conversions(ctx context.Context, t Type) (widen, narrow *gpu.Kernel, err error) {
	c := &w.converters[t]
	for _, k := range []struct {
		kernel **gpu.Kernel
		make   func(kernel.ElemType) (*kernel.Program, error)
	}{{&c.widen, kernel.Widen}, {&c.narrow, kernel.Narrow}} {
		if *k.kernel != nil {
			continue
		}
		p, err := k.make(elemTypes[t])
		if err != nil {
			return nil, nil, err
		}
		compiled, err := compile(ctx, w.dev, p)
		if err != nil {
			return nil, nil, err
		}
		*k.kernel = compiled
	}
	return c.widen, c.narrow, nil
}

// compile returns a program's kernel on a device, to be closed.
func compile(ctx context.Context, dev *gpu.Device, p *kernel.Program) (*gpu.Kernel, error) {
	k, err := dev.Kernel(ctx, gpu.KernelDesc{Label: p.Name, Source: p.WGSL, Entry: p.Entry, Bindings: p.Bindings, Reference: p.Reference})
	return k, p.Translate(err)
}
