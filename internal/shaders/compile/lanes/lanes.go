// SPDX-License-Identifier: Apache-2.0

// Package lanes rewrites a program so that it runs four invocations at a time, neighbours along x. Such a group of four is what other
// compilers call a subgroup or a warp.
//
// A scalar that differs between the four invocations becomes a vector of four elements; a vector or struct becomes one such vector for
// each of its scalars. A scalar that is the same for all four stays a scalar. So does one that grows by a constant from an invocation
// to the next, as most indices do: only the value of the first invocation is computed. An if whose condition differs runs both of its
// arms, each under a mask of the invocations that take it; a loop runs until no invocation is left in it. Code runs only if its mask
// has at least one invocation, except for short code without side effects, which takes no longer than to test the mask.
//
// Programs that use a rare construct are not rewritten, rather than rewritten into slow code.
package lanes

import (
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

const (
	width     = 4
	maxParts  = 64      // scalars of a value
	maxEffort = 1 << 16 // statements and expressions that are read or made
	maxPasses = 40      // over one function
)

// unfit is the value of the panic that ends the translation of a program that this package does not rewrite.
type unfit struct{}

// Widen rewrites a program to run four invocations at a time. It returns nil for a program that it does not rewrite. The program that
// it returns shares nodes with src, which it does not change. Several goroutines may call it, each with a program of its own.
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

// program is the state of a translation.
type program struct {
	src     *ir.Program
	types   ir.Types
	made    map[string]*function // by function and forms of the arguments
	private map[*ir.Var]*ir.Var  // the wide variables that replace private ones
	stored  map[*ir.Var]bool     // variables of the module that are written
	notes   map[*ir.Func]*notes
	synth   map[*ir.Binary]*ir.Var // results of && and ||, see shortCut
	widened map[*ir.Type]*ir.Type  // structs
	budget  int                    // statements and expressions that may still be read or made
}

// spend counts a statement or expression, and ends the translation of a program that has too many.
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

// module returns the variable that replaces a variable of the module: a wide one for a private variable that is written.
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

// vector returns the type of the vector that holds a scalar of each invocation.
func (p *program) vector(k ir.Kind) *ir.Type { return p.types.Vector(width, k) }

// wide returns the type that holds a value of each invocation: t with vectors of four in place of scalars, and arrays in place of
// vectors and matrices.
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

// wideConst returns a constant of wide type that has the same value for each invocation.
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

// kinds lists the kinds of the scalars of a type, in order. It ends the translation for types of more than maxParts scalars.
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

// inputs returns the parameters of the entry point: along x the ids of the four invocations follow each other.
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

// shape tells how a scalar of four invocations is represented: as a vector (wide), or as the value of the first invocation, to which
// each further invocation adds stride. The zero shape is that of a scalar that is the same for all four.
type shape struct {
	wide   bool
	stride uint32
}

// part is a scalar of a value: an expression and its shape.
type part struct {
	shape
	x ir.Expr
}

// uniform reports whether the scalar is the same for all four invocations.
func (p part) uniform() bool { return p.shape == shape{} }

// value is a translated expression: either whole, if it is the same for all invocations, or its scalars. Values may share parts, which
// must not be changed therefore.
type value struct {
	t     *ir.Type // in the source program
	whole ir.Expr
	parts []part
}

// form describes the shapes of the scalars. Calls whose arguments have the same forms share a translation of the function.
func (v value) form() string {
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

// scalarAt returns scalar number i of an expression of type t.
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

// scalarType returns the type of scalar number i of a type.
func scalarType(t *ir.Type, i int) *ir.Type {
	for !t.IsScalar() {
		_, t, i = stepTo(t, i)
	}
	return t
}

// stepTo returns the step to the part of a type that contains scalar number i, the type of that part, and the scalar's number in it.
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

// number returns a constant of type u32.
func number(v uint32) *ir.Const { return &ir.Const{T: scalars[ir.U32], Words: []uint32{v}} }

// assemble makes an expression of type t from its scalars.
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
