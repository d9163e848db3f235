// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// divisible reports whether the kernel can compute a part of a range. Entry points can if they want to know where it begins.
func (p *program) divisible() bool {
	one := [3]int{1, 1, 1}
	_, err := p.PutRange(make([]byte, p.ParamBytes), kernel.Range{Base: [3]int{1, 0, 0}, Count: one, Total: [3]int{2, 1, 1}})
	return err == nil
}

var elemTypes = [...]kernel.ElemType{kernel.F32, kernel.I32, kernel.U32, kernel.I8, kernel.U8, kernel.I16, kernel.U16, kernel.Bytes}

// program makes the program of a kernel for a call's parameters, or finds it.
func (cr *Cruncher) program(c *call, name string) (*program, error) {
	info, err := cr.source.Kernel(name)
	if err != nil {
		return nil, err
	}
	if dims := len(c.r.Inner) + 1; info.Dims != 0 && info.Dims != dims {
		return nil, fail("Compute", ErrRange, name, " has ", itoa(info.Dims), " dimensions, the range ", itoa(dims))
	}
	var decls []kernel.Decl
	var scalars []kernel.Scalar
	var id strings.Builder
	id.WriteString(name + " " + itoa(c.local))
	for i := range c.list {
		p := &c.list[i]
		if p.array == nil {
			scalars = append(scalars, kernel.Scalar{Name: p.value.name, Type: elemTypes[p.value.t]})
			id.WriteString(" " + p.value.name + ":" + p.value.t.String())
			continue
		}
		d := cr.decl(p)
		decls = append(decls, d)
		id.WriteString(" " + d.Name + ":" + p.array.t.String() + d.Struct + itoa(int(d.Mode)) + itoa(int(d.Access)))
		if d.Window {
			id.WriteByte('w')
		}
	}
	if p := cr.programs.Get(id.String()); p != nil {
		return p, nil
	}
	local := [3]int{c.local, 1, 1}
	if info.Dims == 0 {
		local = [3]int{}
	}
	built, err := cr.source.Build(name, decls, scalars, local)
	if err != nil {
		return nil, err
	}
	for i := range built.Arrays {
		a := &built.Arrays[i]
		if r := c.argument(a.Name); a.Struct != "" && r.array.record != 0 && r.array.record != a.Unit {
			return nil, fail("Compute", ErrKernel, a.Struct, " has ", itoa(a.Unit), " bytes in WGSL, those of ", a.Name, " have ", itoa(r.array.record))
		}
	}
	return &program{built, id.String(), make([]*gpu.Kernel, len(cr.workers))}, nil
}

// decl declares an array to a kernel.
func (cr *Cruncher) decl(p *param) kernel.Decl {
	d := kernel.Decl{Name: p.name(), Elem: elemTypes[p.array.t], Mode: kernel.Mode(p.flags.Mode), Struct: p.flags.Struct}
	if p.array.t.Size() == 4 {
		d.Mode = kernel.Widened // that is: as it is
		if p.flags.Mode == Atomic && p.array.t != Float32 {
			d.Mode = kernel.Atomic
		}
	}
	if p.flags.ReadOnly {
		d.Access = kernel.ReadOnly
	}
	size := p.array.t.Size()
	if size < 4 && p.array.t != Bytes && p.flags.Mode == Widened {
		size = 4
	}
	for _, w := range cr.workers {
		l := w.dev.Limits()
		d.Window = d.Window || p.array.n > int(min(l.MaxBufferSize, l.MaxBindingSize))/size
	}
	return d
}

// stepOf returns what devices' shares are multiples of: the local range, and such that they share no words.
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
func (cr *Cruncher) launch(ctx context.Context, c *call, p *program, on *piece, items part) error {
	k, err := p.on(ctx, on.worker)
	if err != nil {
		return err
	}
	block := make([]byte, p.ParamBytes)
	groups, err := p.PutRange(block, c.items(items))
	if err != nil || groups[0] == 0 {
		return err
	}
	for i := range c.list {
		if v := c.list[i].value; c.list[i].array == nil {
			if err := p.PutScalar(block, v.name, v.bits); err != nil {
				return err
			}
		}
	}
	args := make([]gpu.Arg, 0, len(p.Arrays))
	for _, a := range p.Arrays {
		r := c.argument(a.Name)
		s := &r.sides[on.worker.index]
		unit := a.Unit / r.stored()
		if err := p.PutArray(block, a.Name, s.lo/unit, r.array.n/unit); err != nil {
			return err
		}
		args = append(args, gpu.Arg{Buffer: s.mem})
	}
	return k.Dispatch(groups, block, args...)
}

func (c *call) argument(name string) *argument {
	for i := range c.arrays {
		if c.arrays[i].name == name {
			return &c.arrays[i]
		}
	}
	return nil // kernel.Build refuses programs with arrays that are no parameters
}

// items is a part in the dimensions of the range. None of it stands for the items of one workgroup.
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
