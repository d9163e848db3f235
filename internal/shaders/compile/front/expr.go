// SPDX-License-Identifier: Apache-2.0

package front

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// expression reads an expression.
func (p *parser) expression() *operand {
	p.enter()
	o := p.operation(levelOr)
	p.leave()
	return o
}

// inBrackets reads an expression in which > is an operator.
func (p *parser) inBrackets() *operand {
	saved := p.noClose
	p.noClose = false
	o := p.expression()
	p.noClose = saved
	return o
}

// operation reads operators that bind at least as strongly as a level.
func (p *parser) operation(level int) *operand {
	left := p.unary()
	for {
		o := p.binaryOperator()
		if o == nil || o.level < level {
			return left
		}
		at := p.i
		p.checkMix(at, o, left, true)
		p.i += len(o.text)
		if o.level <= levelAnd {
			left = p.logical(at, o, left)
		} else {
			left = p.value(left)
			right := p.value(p.operation(o.level + 1))
			p.checkMix(at, o, right, false)
			left = p.binary(at, o.op, left, right)
		}
		left.level, left.op = o.level, o.op
	}
}

// checkMix checks that an operand of an operator needs no parentheses.
func (p *parser) checkMix(at int, o *operator, x *operand, left bool) {
	logic := o.level <= levelAnd || o.level == levelBits
	switch {
	case x.level == 0, logic && left && x.op == o.op:
		return
	case o.level == levelShift, o.level == levelBits, logic && x.level <= levelBits, o.level == levelCompare && x.level <= levelCompare:
		p.fail(at, "an operand of ", o.text, " needs parentheses")
	}
}

// logical reads the right operand of && or ||, which is evaluated only if the left one does not decide.
func (p *parser) logical(at int, o *operator, left *operand) *operand {
	boolean := p.types.Scalar(ir.Bool)
	left = p.convert(left, boolean)
	decides := left.c != nil && (left.c[0] != 0) == (o.op == ir.OrElse)
	if decides {
		p.dead++
	}
	outer, saved := p.out, p.careful
	var rest []ir.Stmt
	if outer != nil {
		p.out = &rest
	}
	right := p.operation(o.level + 1)
	p.checkMix(at, o, right, false)
	right = p.convert(right, boolean)
	p.out, p.careful = outer, saved
	switch {
	case decides:
		p.dead--
		if right.c != nil {
			return &operand{at: at, t: boolean, c: left.c}
		}
		return &operand{at: at, t: boolean, x: p.lower(left)}
	case left.c != nil:
		if len(rest) > 0 {
			*p.out = append(*p.out, rest...)
		}
		right.call, right.at = noCall, at
		return right
	case right.c != nil && (right.c[0] != 0) == (o.op == ir.AndAlso) && len(rest) == 0:
		left.at, left.call = at, noCall
		return left
	case len(rest) == 0:
		return p.result(at, boolean, &ir.Binary{Op: o.op, X: left.x, Y: p.lower(right), T: boolean}, left, right)
	}
	v := &ir.Var{Type: boolean}
	ref := &ir.Ref{Var: v, T: boolean}
	p.emit(&ir.Declare{Var: v, Init: left.x})
	rest = append(rest, &ir.Store{Ref: ref, X: p.lower(right)})
	choice := &ir.If{Cond: &ir.Load{Ref: ref}, Then: rest}
	if o.op == ir.OrElse {
		choice.Then, choice.Else = nil, rest
	}
	p.emit(choice)
	return &operand{at: at, t: boolean, x: p.let("", &ir.Load{Ref: ref})}
}

// unary reads an operand and the operators before it.
func (p *parser) unary() *operand {
	at := p.i
	c := p.Char(at)
	if c == 0 || strings.IndexByte("-!~*&", c) < 0 || p.isNumber() {
		return p.postfix(p.primary())
	}
	p.enter()
	p.i++
	o := p.unary()
	p.leave()
	o.level, o.call = 0, noCall
	switch c {
	case '*':
		if !o.ptr {
			p.fail(at, "* before what is no pointer")
		}
		o.ptr, o.at = false, at
		return o
	case '&':
		if o.ref == nil || o.ptr || o.lane || o.lanes != nil {
			p.fail(at, "& before what is no variable or a component of a vector")
		}
		o.ptr, o.at = true, at
		return o
	case '-':
		return p.unaryOf(at, ir.Neg, p.value(o))
	case '!':
		return p.unaryOf(at, ir.Not, p.value(o))
	}
	return p.unaryOf(at, ir.Complement, p.value(o))
}

func (p *parser) unaryOf(at int, op ir.Op, o *operand) *operand {
	k := o.t.Scalar().Kind
	ok := isScalar(o.t) || o.t.Kind == ir.Vector
	switch op {
	case ir.Not:
		ok = ok && k == ir.Bool
	case ir.Neg:
		ok = ok && isNumber(k) && k != ir.U32
	default:
		ok = ok && isInt(k)
	}
	if !ok {
		p.fail(at, p.At(at), " before a value of type ", typeName(o.t))
	}
	if o.c == nil {
		return p.result(at, o.t, &ir.Unary{Op: op, X: o.x}, o)
	}
	p.spend(at, len(o.c))
	c := make([]uint64, len(o.c))
	for i, v := range o.c {
		c[i] = negated(op, k, v)
	}
	return &operand{at: at, t: o.t, c: c}
}

// postfix reads indices and members.
func (p *parser) postfix(o *operand) *operand {
	for o.level = 0; ; {
		at := p.i
		switch {
		case p.Char(at) == '[':
			p.i++
			i := p.inBrackets()
			p.expect("]")
			o = p.index(at, o, i)
		case p.Char(at) == '.' && p.IsWord(at+1):
			p.i += 2
			o = p.member(at+1, o, p.At(at+1))
		default:
			return o
		}
		o.call = noCall
	}
}

// index is an element, column or component.
func (p *parser) index(at int, o, i *operand) *operand {
	if o.lanes != nil {
		o = p.value(o)
	}
	i = p.concrete(p.value(i))
	if i.t.Kind != ir.I32 && i.t.Kind != ir.U32 {
		p.fail(i.at, "an index of type ", typeName(i.t))
	}
	if o.t == nil || o.t.Kind != ir.Vector && o.t.Kind != ir.Matrix && o.t.Kind != ir.Array {
		p.fail(at, "an index behind ", typeName(o.t))
	}
	if i.c != nil && p.dead == 0 {
		if n := int64(i.c[0]); n < 0 || o.t.Len > 0 && n >= int64(o.t.Len) {
			p.fail(i.at, "the index ", strconv.FormatInt(n, 10), " is out of the range of ", typeName(o.t))
		}
	}
	if p.dead > 0 && i.c != nil {
		i.c = []uint64{0}
	}
	if i.c == nil && o.ref == nil {
		o = p.concrete(o)
	}
	elem, step := o.t.Elem, ir.Step{Index: p.lower(i)}
	switch r := p.result(o.at, elem, nil, o, i); {
	case o.ref != nil:
		r.ref, r.lane = extended(o.ref, step, elem), o.t.Kind == ir.Vector
		return r
	case o.c != nil && i.c != nil:
		n := p.traitsOf(elem).words
		return o.component(elem, int(i.c[0])*n, n)
	case o.t.Kind == ir.Vector && i.c != nil:
		r.x = &ir.Swizzle{X: o.x, Lanes: []uint8{uint8(i.c[0])}, T: elem}
		return r
	default:
		r.x = &ir.Part{X: p.lower(o), Step: step, T: elem}
		return r
	}
}

// member is a member of a struct, or components of a vector.
func (p *parser) member(at int, o *operand, name string) *operand {
	if o.lanes != nil {
		o = p.value(o)
	}
	if o.t != nil && o.t.Kind == ir.Vector {
		return p.swizzle(at, o, name)
	}
	k := -1
	if o.t != nil && o.t.Kind == ir.Struct {
		k = slices.IndexFunc(o.t.Fields, func(f ir.Field) bool { return f.Name == name })
	}
	if k < 0 {
		p.fail(at, "no member ", name, " of ", typeName(o.t))
	}
	elem, step := o.t.Fields[k].Type, ir.Step{Field: k}
	r := p.result(o.at, elem, nil, o)
	switch {
	case o.ref != nil:
		r.ref = extended(o.ref, step, elem)
	case o.c != nil:
		from := 0
		for _, f := range o.t.Fields[:k] {
			from += p.traitsOf(f.Type).words
		}
		return o.component(elem, from, p.traitsOf(elem).words)
	default:
		r.x = &ir.Part{X: o.x, Step: step, T: elem}
	}
	return r
}

// swizzle is components of a vector by their names.
func (p *parser) swizzle(at int, o *operand, name string) *operand {
	var lanes []uint8
	for _, set := range []string{"xyzw", "rgba"} {
		for k := range len(name) {
			if lane := strings.IndexByte(set, name[k]); lane >= 0 && lane < o.t.Len {
				lanes = append(lanes, uint8(lane))
			}
		}
		if len(lanes) > 0 {
			break
		}
	}
	n := len(name)
	if len(lanes) != n || n > 4 {
		p.fail(at, "no component ", name, " of ", typeName(o.t))
	}
	t := o.t.Elem
	if n > 1 {
		t = p.types.Vector(n, t.Kind)
	}
	r := p.result(o.at, t, nil, o)
	switch {
	case o.ref != nil && n == 1:
		r.ref, r.lane = extended(o.ref, ir.Step{Index: p.index32(lanes[0])}, t), true
	case o.ref != nil:
		r.ref, r.lanes, r.t = o.ref, lanes, o.t
	case o.c != nil:
		r.c = make([]uint64, n)
		for k, lane := range lanes {
			r.c[k] = o.c[lane]
		}
	default:
		r.x = &ir.Swizzle{X: o.x, Lanes: lanes, T: t}
	}
	return r
}

// index32 is the constant index of a component.
func (p *parser) index32(lane uint8) ir.Expr {
	return &ir.Const{T: p.types.Scalar(ir.U32), Words: []uint32{uint32(lane)}}
}
