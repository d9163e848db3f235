// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// operand is what an expression stands for: a constant, a value, a reference to a variable, or a pointer.
type operand struct {
	at     int      // a token of the expression
	t      *ir.Type // of the value, or of what the reference or pointer refers to; nil if a function returns nothing
	c      []uint64 // the scalars of a constant: integers as such, floats as the bits of a float64
	x      ir.Expr  // a value that is no constant
	ref    *ir.Ref  // a reference or a pointer
	ptr    bool
	lane   bool    // the reference is to a component of a vector
	lanes  []uint8 // the reference is to these components of a vector
	call   call    // it is the call of a function, and nothing else
	level  int     // of its last operator, if no parentheses are around it
	op     ir.Op
	height int // of the tree of x
}

// call says whether the result of a function can be ignored.
type call uint8

const (
	noCall call = iota
	mayIgnore
	mustUse
)

// value loads a reference. What has no value is an error.
func (p *parser) value(o *operand) *operand {
	switch {
	case o.t == nil:
		p.fail(o.at, "the function returns nothing")
	case o.ref == nil:
	case o.ptr:
		p.fail(o.at, "a pointer where a value is needed: write * before it")
	case !p.traitsOf(o.t).constructible:
		p.fail(o.at, typeName(o.t), " cannot be a value")
	default:
		p.checkSize(o.at, o.t)
		loaded := &operand{at: o.at, t: o.t, level: o.level, op: o.op, height: o.height, x: p.effect(&ir.Load{Ref: o.ref})}
		if o.lanes != nil {
			loaded.t = p.types.Vector(len(o.lanes), o.t.Elem.Kind)
			loaded.x = &ir.Swizzle{X: loaded.x, Lanes: o.lanes, T: loaded.t}
		}
		return loaded
	}
	return o
}

// checkSize checks that values of a type are not too large.
func (p *parser) checkSize(at int, t *ir.Type) {
	if p.traitsOf(t).words > maxValue {
		p.fail(at, "a value of more than ", strconv.Itoa(4*maxValue), " bytes")
	}
}

// effect makes what depends on the time of its evaluation a let, where a barrier may follow within the statement.
func (p *parser) effect(x ir.Expr) ir.Expr {
	if p.careful {
		return p.let("", x)
	}
	return x
}

// let computes a value now.
func (p *parser) let(name string, x ir.Expr) *ir.Use {
	v := &ir.Value{Name: name, Type: x.Type()}
	p.emit(&ir.Let{Value: v, X: x})
	return &ir.Use{Value: v}
}

// emit adds a statement.
func (p *parser) emit(s ir.Stmt) {
	if p.out == nil {
		p.fail(p.i, "this is no constant")
	}
	*p.out = append(*p.out, s)
}

// concrete gives a constant without a type one.
func (p *parser) concrete(o *operand) *operand {
	switch leaf(o.t).Kind {
	case abstractInt:
		return p.convert(o, p.withKind(o.t, ir.I32))
	case abstractFloat:
		return p.convert(o, p.withKind(o.t, ir.F32))
	}
	return o
}

// convert makes a value of a type of one that is of it, or a constant that becomes one by itself.
func (p *parser) convert(o *operand, t *ir.Type) *operand {
	o = p.value(o)
	if o.t == t {
		return o
	}
	if o.c == nil || !convertible(o.t, t) {
		p.fail(o.at, "a value of type ", typeName(o.t), " where ", typeName(t), " is needed")
	}
	return p.recast(o, t, leaf(t).Kind)
}

// recast makes a constant one of a type whose scalars are of a kind.
func (p *parser) recast(o *operand, t *ir.Type, to ir.Kind) *operand {
	from := leaf(o.t).Kind
	p.spend(o.at, len(o.c))
	c := make([]uint64, len(o.c))
	for i, v := range o.c {
		w, ok := represent(v, from, to)
		if !ok && p.dead == 0 {
			p.fail(o.at, "the value ", number(v, from), " is out of the range of ", typeName(p.types.Scalar(to)))
		}
		c[i] = w
	}
	return &operand{at: o.at, t: t, c: c}
}

// represent makes a number without a type one of a type.
func represent(v uint64, from, to ir.Kind) (uint64, bool) {
	switch i := int64(v); {
	case from == to:
	case from == abstractFloat:
		return single(math.Float64frombits(v))
	case to == ir.F32:
		return single(float64(i))
	case to == abstractFloat:
		return math.Float64bits(float64(i)), true
	case to == ir.I32:
		return v, i == int64(int32(i))
	case to == ir.U32:
		return v, i == int64(uint32(i))
	}
	return v, true
}

// single rounds to an f32, and reports whether it is finite.
func single(f float64) (uint64, bool) {
	f = float64(float32(f))
	return math.Float64bits(f), !math.IsInf(f, 0) && !math.IsNaN(f)
}

// number writes a scalar.
func number(v uint64, k ir.Kind) string {
	if isFloat(k) {
		return strconv.FormatFloat(math.Float64frombits(v), 'g', -1, 64)
	}
	return strconv.FormatInt(int64(v), 10)
}

// lower returns the expression of a value.
func (p *parser) lower(o *operand) ir.Expr {
	o = p.concrete(p.value(o))
	if o.c == nil {
		return o.x
	}
	if x := p.tables[&o.c[0]]; x != nil && x.T == o.t {
		return x
	}
	p.spend(o.at, len(o.c))
	words, _ := narrow(make([]uint32, 0, len(o.c)), o.t, o.c)
	x := &ir.Const{T: o.t, Words: words}
	if len(words) > 16 { // a table, which may be used often
		p.tables[&o.c[0]] = x
	}
	return x
}

// narrow appends the bits of the scalars of a type, and returns the scalars that follow.
func narrow(words []uint32, t *ir.Type, c []uint64) ([]uint32, []uint64) {
	switch {
	case t.Kind == ir.Struct:
		for _, f := range t.Fields {
			words, c = narrow(words, f.Type, c)
		}
	case t.Elem != nil:
		for range t.Len {
			words, c = narrow(words, t.Elem, c)
		}
	case t.Kind == ir.F32:
		return append(words, math.Float32bits(float32(math.Float64frombits(c[0])))), c[1:]
	default:
		return append(words, uint32(c[0])), c[1:]
	}
	return words, c
}

// integer returns a constant integer.
func (p *parser) integer(o *operand, what string) int64 {
	o = p.value(o)
	if o.c == nil || !isInt(o.t.Kind) {
		p.fail(o.at, what, " must be a constant integer")
	}
	return int64(o.c[0])
}

// result is a value that is computed of others.
func (p *parser) result(at int, t *ir.Type, x ir.Expr, of ...*operand) *operand {
	o := &operand{at: at, t: t, x: x}
	for _, a := range of {
		o.height = max(o.height, a.height+1)
	}
	if o.height > maxHeight {
		p.fail(at, "this is nested too deeply")
	}
	return o
}

// unify gives values the scalars of the kind that they all convert to, or reports that there is none.
func (p *parser) unify(list ...*operand) bool {
	k := leaf(list[0].t).Kind
	for _, o := range list {
		var ok bool
		if k, ok = common(k, leaf(o.t).Kind); !ok {
			return false
		}
	}
	for _, o := range list {
		if o.t.Kind != ir.Struct {
			*o = *p.convert(o, p.withKind(o.t, k))
		}
	}
	return true
}

// component returns a part of a constant.
func (o *operand) component(t *ir.Type, from, n int) *operand {
	return &operand{at: o.at, t: t, c: o.c[from : from+n : from+n]}
}

// extended is a reference to a part of what another refers to.
func extended(r *ir.Ref, s ir.Step, t *ir.Type) *ir.Ref {
	path := make([]ir.Step, len(r.Path)+1)
	path[copy(path, r.Path)] = s
	return &ir.Ref{Var: r.Var, Path: path, T: t}
}

// writable reports whether what is referred to can be written.
func writable(r *ir.Ref) bool {
	return r.Var.Space != ir.Uniform && (r.Var.Space != ir.Storage || r.Var.Write)
}

// pin computes the indices of a reference now, so that it can be used more than once.
func (p *parser) pin(r *ir.Ref) *ir.Ref {
	pinned := &ir.Ref{Var: r.Var, Path: make([]ir.Step, len(r.Path)), T: r.T}
	for i, s := range r.Path {
		switch s.Index.(type) {
		case nil, *ir.Const, *ir.Use:
		default:
			s.Index = p.let("", s.Index)
		}
		pinned.Path[i] = s
	}
	return pinned
}
