// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Text lists memories and launches, one a line: what is written, from what, by which function. It is not named String, which
// programs that print no plans would link too: the executor is held in an interface.
func (p *Plan) Text() string {
	var b strings.Builder
	line := func(words ...string) {
		b.WriteString(strings.Join(words, " "))
		b.WriteByte('\n')
	}
	for i, m := range p.Memories {
		sort := "operand"
		if i >= p.Given {
			sort = "temporary"
		}
		line(p.memory(i), sort, itoa(m.Size), "bytes")
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		line(itoa(i+1), s.Name, p.operand(s.To)+p.function(s))
		for _, pass := range s.passes() {
			line("   ", pass)
		}
	}
	line(itoa(p.Read()), "bytes read,", itoa(p.Written()), "written")
	return b.String()
}

func itoa(n int) string { return strconv.Itoa(n) }

// memory names a memory: m and its number, t for a temporary.
func (p *Plan) memory(i int) string {
	if i >= p.Given {
		return "t" + itoa(i)
	}
	return "m" + itoa(i)
}

// operand reads, for example, "m0 2x3 float32 at 4 by 8".
func (p *Plan) operand(op Operand) string {
	s := p.memory(op.Mem) + " " + op.Shape().String() + " " + op.Type.String()
	if op.Order == expr.ColMajorOrder {
		s += " " + op.Order.String()
	}
	if op.Offset != 0 || !op.Contiguous() {
		s += " at " + itoa(op.Offset) + " by " + itoa(op.Stride)
	}
	return s
}

// function lists the bindings of a step and the instructions of its function.
func (p *Plan) function(s *Step) string {
	var b strings.Builder
	for _, w := range s.Own {
		b.WriteString(" of " + p.memory(w.Mem) + "[" + itoa(w.Lo) + ":" + itoa(w.Hi) + "]")
	}
	if s.Func == nil {
		return b.String()
	}
	b.WriteString(" =")
	for i, c := range s.Func.Code {
		b.WriteString(" v" + itoa(i) + ":" + p.instruction(s, c))
	}
	return b.String()
}

var classes = [...]string{fuse.Vector: "vector", fuse.Gather: "gather", fuse.Column: "column", fuse.Crossed: "crossed"}

// instruction reads, for example, "add(v0,v1)" or "load(m1,vector)".
func (p *Plan) instruction(s *Step, c fuse.Instr) string {
	switch c.Op {
	case fuse.OpAcc:
		return "acc"
	case fuse.OpLoad:
		v := s.Func.Loads[c.X]
		return "load(" + p.memory(s.Slots[v.Slot].Mem) + "," + classes[v.Class] + ")"
	case fuse.OpScalar:
		n := s.Numbers[c.X]
		if n.Index >= 0 {
			return "number(" + itoa(n.Index) + ")"
		}
		return "bits(" + strconv.FormatUint(uint64(n.Bits), 16) + ")"
	case fuse.OpCall:
		call := s.Func.Calls[c.X]
		return call.Name + "(v" + itoa(int(c.Y)) + " and on)"
	case fuse.OpCopy:
		return "v" + itoa(int(c.X))
	}
	args := []string{"v" + itoa(int(c.X)), "v" + itoa(int(c.Y)), "v" + itoa(int(c.Z))}
	return strings.ToLower(c.Op.String()) + "(" + strings.Join(args[:min(c.Op.Arity(), 3)], ",") + ")"
}

// passes describes the launches of a step.
func (s *Step) passes() []string {
	groups := func(g [3]uint32) string {
		return itoa(int(g[0])) + "x" + itoa(int(g[1])) + "x" + itoa(int(g[2])) + " groups"
	}
	switch {
	case s.Reserve:
		return nil
	case s.Product == nil:
		return []string{groups(s.Groups)}
	}
	var all []string
	for i := range s.Product.Best.Passes {
		p := &s.Product.Best.Passes[i]
		all = append(all, p.Spec.String()+", "+groups(p.Groups))
	}
	return all
}

// Programs writes the kernels of the step.
func (s *Step) Programs() ([]shaders.Program, error) {
	build := []func() (shaders.Program, error){s.Build}
	switch {
	case s.Reserve:
		return nil, nil
	case s.Product != nil:
		build = nil
		for i := range s.Product.Best.Passes {
			build = append(build, func() (shaders.Program, error) { return s.BuildPass(&s.Product.Best.Passes[i]) })
		}
	}
	var all []shaders.Program
	for _, f := range build {
		p, err := f()
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}
