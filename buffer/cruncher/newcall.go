// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// newCall checks everything that can be checked before something moves, and changes nothing.
func (cr *Cruncher) newCall(b *Batch, id int, kernels string, r Range, ps []Param) (*call, error) {
	c := &call{id: id, single: -1, batch: b}
	if err := r.check(); err != nil {
		return nil, err
	}
	var err error
	names := splitNames(kernels)
	if c.local, err = r.local(cr.devices()); err != nil {
		return nil, err
	}
	c.local = cr.ownLocal(names, r.Local, c.local)
	if err := r.checkStrict(c.local, cr.alive()); err != nil {
		return nil, err
	}
	c.r, c.inner = r, r.inner()
	if c.list, err = gather(ps); err != nil {
		return nil, err
	}
	for i := range c.list {
		if err := checkLength(&c.list[i], &r); err != nil {
			return nil, err
		}
	}
	if len(names) == 0 {
		return nil, fail("Compute", kernel.ErrKernel, "none is named")
	}
	if err := cr.reside(c); err != nil {
		return nil, err
	}
	return c, cr.choose(c, names)
}

// ownLocal returns the workgroup size that the entry points of a complete module have in common, where the range names none.
func (cr *Cruncher) ownLocal(names []string, want, local int) int {
	own := 0
	for _, name := range names {
		if size, err := cr.source.Local(name); err == nil && size[0] > 0 {
			own = lcm(max(own, 1), size[0])
		}
	}
	if own == 0 || want != 0 {
		return local
	}
	return own
}

// choose finds the programs of a call.
func (cr *Cruncher) choose(c *call, names []string) (err error) {
	for _, name := range names {
		p, err := cr.program(c, name)
		if err != nil {
			return err
		}
		c.kernels = append(c.kernels, p)
	}
	if c.r.SyncKernel != "" {
		if c.sync, err = cr.program(c, c.r.SyncKernel); err != nil {
			return err
		}
	}
	for _, p := range c.kernels {
		if !p.Divisible { // it would not know which part is its own
			c.r.Blobs, c.single = 1, max(c.single, 0)
		}
	}
	for _, p := range c.programs() {
		for i := range p.Arrays {
			a := c.argument(p.Arrays[i].Name)
			a.changed = a.changed || p.Arrays[i].Written
		}
	}
	for k := range c.arrays {
		a := &c.arrays[k]
		a.flags.Write = a.flags.Write && (a.changed || !a.ifChanged)
		a.changed = a.changed && !c.r.TransferOnly
		c.stays = c.stays || c.batch == nil && a.changed && !a.flags.Write
	}
	c.step = cr.stepOf(c)
	return nil
}

func (cr *Cruncher) alive() int {
	n := 0
	for _, w := range cr.workers {
		if !w.lost() {
			n++
		}
	}
	return n
}

// reside finds or makes the residency of each array, and the device that a call with writeAll runs on.
func (cr *Cruncher) reside(c *call) error {
	const op = "Compute"
	for i := range c.list {
		p := &c.list[i]
		if p.array == nil {
			continue
		}
		if p.array.host.ReadOnly && p.flags.Write {
			return fail(op, gpu.ErrReadOnly, "the memory of ", p.array.name)
		}
		r, err := cr.residency(p)
		if err != nil {
			return err
		}
		if r.used > 0 && r.access != readWrite && r.access != p.flags.access() {
			return fail(op, ErrAccess, p.array.name)
		}
		a := argument{residency: r, name: p.name(), flags: p.flags, ifChanged: p.ifChanged}
		if a.widened() {
			if a.conv, err = cr.converter(a.array.t); err != nil {
				return err
			}
		}
		c.arrays = append(c.arrays, a)
		if p.flags.Write && p.flags.WriteAll && c.single < 0 {
			c.single = i % len(cr.workers)
		}
	}
	return nil
}

// adopt notes the uses of the arrays and keeps the programs of a call that is going to run.
func (cr *Cruncher) adopt(c *call) {
	if c.batch == nil {
		cr.mark = cr.uses
	}
	for i := range c.arrays {
		a := &c.arrays[i]
		if a.used == 0 {
			a.access = a.flags.access()
		}
		cr.uses++
		a.used, a.goesUp = cr.uses, a.flags.goesUp()
	}
	for _, p := range c.programs() {
		if cr.programs.Peek(p.id) != p {
			if old, gone := cr.programs.Put(p.id, p); gone && !slices.Contains(c.programs(), old) {
				old.Close()
			}
		}
		for i := range p.Arrays {
			if a := &p.Arrays[i]; a.Struct != "" {
				c.argument(a.Name).step = lcm(windowStep, a.Unit)
			}
		}
	}
	for i := range c.list {
		if c.batch != nil && c.list[i].array != nil {
			c.batch.held[c.list[i].array] = true
		}
	}
	if c.r.TransferOnly {
		c.kernels, c.sync, c.r.Repeat = nil, nil, 1
	}
}

// splitNames cuts a list of kernel names at blanks, commas, semicolons, hyphens, @ and ends of lines.
func splitNames(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(" ,;-@\n\r\t", r) })
}
