// SPDX-License-Identifier: Apache-2.0

// Package lanes rewrites a program so that it runs four invocations at a time, those that follow each other along x.
//
// A scalar that differs between them becomes a vector of four, a vector or struct as many of those as it has scalars. What is the same
// for all stays a scalar, and so does what is one more for each, like most indices: only the first invocation's is computed. An if
// whose condition differs runs both of its arms, each for the invocations of a mask; a loop goes on while one of them is in it. Code
// runs only if there is at least one invocation that runs it.
//
// Some programs stay as they are: what is rare is left out rather than made slow.
package lanes

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

const (
	width     = 4
	maxParts  = 64      // scalars of a value
	maxEffort = 1 << 16 // statements and expressions that are looked at, or made
	maxPasses = 40
)

// unfit ends the translation of a program that stays as it is.
type unfit struct{}

// Widen returns such a program, nil for those that stay as they are.
func Widen(src *ir.Program) (made *ir.Program) {
	if src.Size[0] < width-1 {
		return nil
	}
	defer func() {
		if e := recover(); e != nil {
			if _, ok := e.(unfit); !ok {
				panic(e)
			}
			made = nil
		}
	}()
	p := &program{
		src: src, made: map[string]*function{}, private: map[*ir.Var]*ir.Var{}, stored: map[*ir.Var]bool{}, notes: map[*ir.Func]*notes{},
		synth: map[*ir.Binary]*ir.Var{}, widened: map[*ir.Type]*ir.Type{}, budget: maxEffort,
	}
	made = &ir.Program{Size: src.Size, Lanes: true}
	for _, f := range src.Funcs {
		p.note(f)
	}
	for _, v := range src.Vars {
		made.Vars = append(made.Vars, p.module(v))
	}
	made.Entry = p.specialise(src.Entry, p.inputs(), src.Size[0]%width != 0).made
	made.Funcs = callees(made.Entry, map[*ir.Func]bool{}, nil)
	return made
}

// program is what is translated.
type program struct {
	src     *ir.Program
	types   ir.Types
	made    map[string]*function
	private map[*ir.Var]*ir.Var // what holds those that are stored
	stored  map[*ir.Var]bool    // variables of the module
	notes   map[*ir.Func]*notes
	synth   map[*ir.Binary]*ir.Var
	widened map[*ir.Type]*ir.Type // structs
	budget  int
}

// spend ends the translation of a program that takes too long.
func (p *program) spend() {
	if p.budget--; p.budget < 0 {
		panic(unfit{})
	}
}

// callees lists functions after those that they call.
func callees(f *ir.Func, seen map[*ir.Func]bool, list []*ir.Func) []*ir.Func {
	if seen[f] {
		return list
	}
	seen[f] = true
	v := ir.Visitor{Expr: func(e ir.Expr) {
		if c, ok := e.(*ir.Call); ok {
			list = callees(c.Func, seen, list)
		}
	}}
	v.List(f.Body)
	return append(list, f)
}

// module returns what stands for a variable of the module.
func (p *program) module(v *ir.Var) *ir.Var {
	if v.Space != ir.Private || !p.stored[v] {
		return v
	}
	held := &ir.Var{Name: v.Name, Type: p.wide(v.Type), Space: ir.Private}
	if c, ok := v.Init.(*ir.Const); ok {
		held.Init = p.wideConst(c)
	}
	p.private[v] = held
	return held
}

// vector is the type of a scalar that differs.
func (p *program) vector(k ir.Kind) *ir.Type { return p.types.Vector(width, k) }

// wide is the type of what holds a value of each invocation: it has the same parts, with vectors for scalars and arrays for vectors.
func (p *program) wide(t *ir.Type) *ir.Type {
	if made := p.widened[t]; made != nil {
		return made
	}
	switch t.Kind {
	case ir.Vector, ir.Matrix, ir.Array:
		return p.types.Array(p.wide(t.Elem), t.Len)
	case ir.Struct:
		s := &ir.Type{Kind: ir.Struct, Name: t.Name, Align: 16}
		for _, f := range t.Fields {
			w := p.wide(f.Type)
			s.Fields = append(s.Fields, ir.Field{Name: f.Name, Type: w, Offset: s.Size})
			s.Size += w.Size
		}
		p.widened[t] = s
		return s
	}
	return p.vector(t.Kind)
}

func (p *program) wideConst(c *ir.Const) *ir.Const {
	if len(c.Words) > maxEffort {
		panic(unfit{})
	}
	made := &ir.Const{T: p.wide(c.T)}
	for _, w := range c.Words {
		made.Words = append(made.Words, w, w, w, w)
	}
	return made
}

// kinds lists the scalars of a type.
func kinds(t *ir.Type) (list []ir.Kind) {
	if t.Words() > maxParts {
		panic(unfit{})
	}
	switch t.Kind {
	case ir.Vector, ir.Matrix, ir.Array:
		for range t.Len {
			list = append(list, kinds(t.Elem)...)
		}
	case ir.Struct:
		for _, f := range t.Fields {
			list = append(list, kinds(f.Type)...)
		}
	default:
		list = []ir.Kind{t.Scalar().Kind}
	}
	return list
}

// inputs are the parameters of the entry point.
func (p *program) inputs() []value {
	list := make([]value, len(p.src.Entry.Params))
	for i, q := range p.src.Entry.Params {
		use := &ir.Use{Value: q.Value}
		switch q.Input {
		case ir.LocalInvocationID, ir.GlobalInvocationID:
			list[i] = value{t: q.Value.Type, parts: make([]part, 3)}
			for c := range list[i].parts {
				list[i].parts[c].x = scalarAt(use, q.Value.Type, c)
			}
			list[i].parts[0].stride = 1
		case ir.LocalInvocationIndex:
			list[i] = value{t: q.Value.Type, parts: []part{{x: use, shape: shape{stride: 1}}}}
		default:
			list[i] = value{t: q.Value.Type, whole: use}
		}
	}
	return list
}

// shape tells how a scalar is held: as a vector, or as that of the first invocation, from which the others go on by a stride.
type shape struct {
	wide   bool
	stride uint32
}

// part is a scalar of a value.
type part struct {
	shape
	x ir.Expr
}

func (p part) uniform() bool { return p.shape == shape{} }

// value is an expression of the invocations: one that is the same for all, or its scalars.
type value struct {
	t     *ir.Type
	whole ir.Expr
	parts []part
}

// like returns a letter or number for each part: values of one form are given to the same function.
func (v value) like() string {
	if v.whole != nil {
		return "u,"
	}
	var b strings.Builder
	for _, p := range v.parts {
		if p.wide {
			b.WriteString("w")
		} else {
			b.WriteString(strconv.Itoa(int(p.stride)))
		}
		b.WriteString(".")
	}
	return b.String() + ","
}

// scalarAt returns scalar number i of a value.
func scalarAt(x ir.Expr, t *ir.Type, i int) ir.Expr {
	if c, ok := x.(*ir.Const); ok {
		return &ir.Const{T: scalarType(t, i), Words: c.Words[i : i+1]}
	}
	switch t.Kind {
	case ir.Vector:
		return &ir.Swizzle{X: x, Lanes: []uint8{uint8(i)}, T: t.Elem}
	case ir.Matrix, ir.Array, ir.Struct:
		step, inner, rest := stepTo(t, i)
		return scalarAt(&ir.Part{X: x, Step: step, T: inner}, inner, rest)
	}
	return x
}

func scalarType(t *ir.Type, i int) *ir.Type {
	for !t.IsScalar() {
		_, t, i = stepTo(t, i)
	}
	return t
}

// stepTo returns the step to the part with scalar number i, its type, and the number there.
func stepTo(t *ir.Type, i int) (ir.Step, *ir.Type, int) {
	if t.Kind == ir.Struct {
		for k, f := range t.Fields {
			if n := f.Type.Words(); i >= n {
				i -= n
				continue
			}
			return ir.Step{Field: k}, f.Type, i
		}
	}
	n := t.Elem.Words()
	return ir.Step{Index: number(uint32(i / n))}, t.Elem, i % n
}

// scalars are the types of single numbers and truth values. All programs share them, and several may be translated at the same time.
var scalars = [...]*ir.Type{ir.Bool: scalar(ir.Bool), ir.I32: scalar(ir.I32), ir.U32: scalar(ir.U32), ir.F32: scalar(ir.F32)}

func scalar(k ir.Kind) *ir.Type { return new(ir.Types).Scalar(k) }

func number(v uint32) *ir.Const { return &ir.Const{T: scalars[ir.U32], Words: []uint32{v}} }

// assemble makes a value of its scalars.
func assemble(t *ir.Type, x []ir.Expr) ir.Expr {
	if t.IsScalar() {
		return x[0]
	}
	c := &ir.Construct{T: t}
	if t.Kind == ir.Vector {
		c.Args = x
		return c
	}
	for at := 0; at < len(x); {
		_, inner, _ := stepTo(t, at)
		n := inner.Words()
		c.Args = append(c.Args, assemble(inner, x[at:at+n]))
		at += n
	}
	return c
}
