// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
)

// What a cruncher compiles is its own until it is closed: programs as long as they are among those used last, and the
// conversions of widened arrays.

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

// closePrograms closes everything that was compiled.
func (cr *Cruncher) closePrograms() {
	cr.programs.Each((*kernel.Program).Close)
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
