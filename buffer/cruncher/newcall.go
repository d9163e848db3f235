// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"cmp"
	"math"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// plan checks everything that can be checked before something moves.
func (cr *Cruncher) plan(c *call, kernels string, ps []Param) (err error) {
	if err := c.r.check(); err != nil {
		return err
	}
	names := splitNames(kernels)
	if c.local, err = cr.local(names, c.r.Local); err != nil {
		return err
	}
	if err := c.r.checkStrict(c.local, cr.alive()); err != nil {
		return err
	}
	c.inner = c.r.inner()
	if c.list, err = gather(ps); err != nil {
		return err
	}
	for i := range c.list {
		if err := c.list[i].checkLength(&c.r); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		return fail("Compute", kernel.ErrKernel, "none is named")
	}
	if err := cr.reside(c); err != nil {
		return err
	}
	return cr.choose(c, names)
}

// local returns the workgroup size that is wanted, or else the one that the entry points of a complete module have in common.
func (cr *Cruncher) local(names []string, want int) (int, error) {
	limit := math.MaxInt
	for _, w := range cr.workers {
		l := w.dev.Info().Limits
		limit = min(limit, int(l.MaxInvocations), int(l.MaxGroupSize[0]))
	}
	if want > limit {
		return 0, fail("Compute", gpu.ErrLimit, "a local range of ", itoa(want), ", the devices allow ", itoa(limit))
	}
	own := 0
	for _, name := range names {
		if size, err := cr.source.Local(name); err == nil && size[0] > 0 {
			own = lcm(max(own, 1), size[0])
		}
	}
	return cmp.Or(want, own, min(256, limit)), nil
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
			if p.Arrays[i].Struct == "" || a.flags.ElementsPerItem > 1 {
				continue
			}
			a.flags.ElementsPerItem = p.Arrays[i].Unit // an item has a struct, not one of its bytes
			if err := checkLength(a.array, &a.flags, &c.r); err != nil {
				return err
			}
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
		if r.used > 0 && r.access != (access{}) && r.access != p.flags.access() {
			return fail(op, ErrAccess, p.array.name)
		}
		a := argument{residency: r, name: p.name, flags: p.flags, ifChanged: p.ifChanged}
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

// adopt notes what a call that is going to run uses.
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
