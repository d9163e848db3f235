// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// What a cruncher compiles is its own until it is closed: programs as long as they are among those used last, and the
// conversions of widened arrays.

// program is a kernel for arrays and scalars of certain types. It is compiled for each device when that first runs it.
type program struct {
	*kernel.Program
	id string
}

// programs lists the programs of a call.
func (c *call) programs() []*program {
	if c.sync == nil {
		return c.kernels
	}
	return append(slices.Clip(c.kernels), c.sync)
}

// tidy sees to it that programs are closed that are not kept: those of a call that came to nothing, and those that others
// displaced.
func (cr *Cruncher) tidy(c *call) {
	for _, p := range c.programs() {
		if cr.programs.Peek(p.id) != p {
			cr.dropped = append(cr.dropped, p)
		}
	}
	cr.closeDropped()
}

func (cr *Cruncher) closeDropped() {
	for _, p := range cr.dropped {
		p.Close()
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
	cr.eachProgram(func(p *program) { p.Close() })
	cr.programs.Clear()
	cr.dropped = nil
	for _, c := range cr.converters {
		c.unpack.Close()
		c.pack.Close()
	}
}

// converter is the programs that turn what devices have of arrays of a type into what kernels see, and back.
type converter struct{ unpack, pack *kernel.Program }

// converter finds or makes the programs for a type. They are few, and arrays come and go.
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
