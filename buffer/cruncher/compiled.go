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

// keep keeps a program for later calls. What that displaces is closed when the call is over, which may use it.
func (cr *Cruncher) keep(c *call, p *program) {
	if old, gone := cr.programs.Put(p.id, p); gone {
		c.displaced = append(c.displaced, old)
	}
}

func (c *call) closeDisplaced() {
	for _, p := range c.displaced {
		p.Close()
	}
}

// discard closes what was compiled for a call that does not compile as a whole.
func (c *call) discard() {
	for _, p := range c.programs() {
		p.Close()
	}
}

// closePrograms closes everything that was compiled.
func (cr *Cruncher) closePrograms() {
	cr.programs.Each(func(p *program) { p.Close() })
	cr.programs.Clear()
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
