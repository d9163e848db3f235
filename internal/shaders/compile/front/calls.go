// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// builtin calls a function of WGSL's own.
func (p *parser) builtin(at int, b *builtin, args []*operand) *operand {
	n := len(b.sig) - 1
	if len(args) != n {
		p.fail(at, b.name, " has ", strconv.Itoa(n), " parameters, not ", strconv.Itoa(len(args)))
	}
	x := &ir.Builtin{Fn: b.fn}
	var t *ir.Type // T of the signature
	constant := true
	for i, o := range args {
		switch c := b.sig[i]; {
		case c == '&', c == '*':
			x.Ref, t = p.pointed(b, o)
			if c == '&' {
				t = t.Elem
			}
			constant = false
			continue
		case o.ptr:
			p.value(o)
		case c < 'A' || c > 'Z':
		case t == nil:
			t = o.t
		default:
			first := t
			if t = p.meet(first, o.t); t == nil {
				p.fail(o.at, b.name, " of ", typeName(first), " and ", typeName(o.t))
			}
		}
		constant = constant && o.c != nil
	}
	if t != nil && x.Ref == nil {
		t = p.sort(at, b, t, constant)
	}
	for i, o := range args {
		if b.sig[i] != '&' && b.sig[i] != '*' {
			args[i] = p.argument(o, t, b.sig[i])
		}
	}
	result := p.typeFor(b.sig[n], t)
	if b.sig[n] == 'r' {
		result = p.parts(b, t)
	}
	p.checkRange(at, b, args)
	if constant {
		return p.evaluate(at, b, t, result, args)
	}
	return p.builtinCall(at, b, x, result, args)
}

// builtinCall makes the expression.
func (p *parser) builtinCall(at int, b *builtin, x *ir.Builtin, result *ir.Type, args []*operand) *operand {
	x.T = result
	if p.fn == nil && x.Ref != nil {
		p.fail(at, b.name, " is no constant")
	}
	for i, o := range args {
		if b.sig[i] != '&' && b.sig[i] != '*' {
			x.Args = append(x.Args, p.lower(o))
		}
	}
	o := p.result(at, result, x, args...)
	if o.call = mustUse; b.sig[0] == '&' {
		if o.call = mayIgnore; result != nil {
			o.x = p.effect(x)
		}
	}
	return o
}

// checkRange refuses constants for which a function is not defined, even if its other operands are none.
func (p *parser) checkRange(at int, b *builtin, args []*operand) {
	n := len(args)
	switch b.fn {
	case ir.FnClamp:
		for i := range min(len(args[1].c), len(args[2].c)) {
			if floats(args[1])[i] > floats(args[2])[i] && p.dead == 0 {
				p.fail(at, "the lower limit of clamp is greater than the upper one")
			}
		}
	case ir.FnExtractBits, ir.FnInsertBits:
		if a, b := args[n-2].c, args[n-1].c; a != nil && b != nil && a[0]+b[0] > 32 && p.dead == 0 {
			p.fail(at, "the bits from ", number(a[0], ir.U32), " on are not ", number(b[0], ir.U32))
		}
	}
}

// pointed returns what the pointer that a function takes points to.
func (p *parser) pointed(b *builtin, o *operand) (*ir.Ref, *ir.Type) {
	kind, what := ir.Atomic, "an atomic"
	if b.sig[0] == '*' {
		kind, what = ir.Array, "an array without a length"
	}
	if !o.ptr || o.t.Kind != kind || o.t.Len != 0 {
		p.fail(o.at, b.name, " needs a pointer to ", what)
	}
	return o.ref, o.t
}

// meet returns the type to which values of two types convert, or nil.
func (p *parser) meet(a, b *ir.Type) *ir.Type {
	k, ok := common(a.Scalar().Kind, b.Scalar().Kind)
	if !ok || a.Kind != b.Kind && (!isScalar(a) || !isScalar(b)) || a.Len != b.Len || isComposite(a) || a.Kind == ir.Matrix {
		return nil
	}
	return p.withKind(a, k)
}

// sort checks that T is of the sort that a function takes, and gives it a type if the function is not evaluated now.
func (p *parser) sort(at int, b *builtin, t *ir.Type, constant bool) *ir.Type {
	k := t.Scalar().Kind
	vector := t.Kind == ir.Vector
	ok := isScalar(t) || vector
	c := b.sig[0]
	if strings.IndexByte("FVC", c) >= 0 && ok && k == abstractInt {
		k = abstractFloat
	}
	switch c {
	case 'N':
		ok = ok && isNumber(k)
	case 'S':
		ok = ok && isNumber(k) && k != ir.U32
	case 'F':
		ok = ok && isFloat(k)
	case 'I':
		ok = ok && isInt(k)
	case 'B':
		ok = ok && k == ir.Bool
	case 'V':
		ok = vector && isFloat(k)
	case 'W':
		ok = vector && isNumber(k)
	case 'C':
		ok = vector && isFloat(k) && t.Len == 3
	case 'M':
		ok = t.Kind == ir.Matrix && (b.fn != ir.FnDeterminant || t.Len == t.Elem.Len)
	}
	if !ok {
		p.fail(at, b.name, " of ", typeName(t))
	}
	// Functions of bits need to know how many there are.
	if isAbstract(k) && (!constant || c == 'I' || b.sig[len(b.sig)-1] == 'r') {
		if k == abstractInt {
			k = ir.I32
		} else {
			k = ir.F32
		}
	}
	return p.withKind(t, k)
}

// argument converts an argument to the type that a letter of a signature stands for.
func (p *parser) argument(o *operand, t *ir.Type, c byte) *operand {
	switch {
	case c == 'm' && isScalar(o.t):
		return p.splat(p.convert(o, t.Scalar()), t)
	case c == 'm':
		c = 'T'
	case c == 'c' && isScalar(o.t):
		c = 'b'
	case c == 'e' && isScalar(t):
		c = 'i'
	}
	return p.convert(o, p.typeFor(c, t))
}

// typeFor returns the type that a letter of a signature stands for.
func (p *parser) typeFor(c byte, t *ir.Type) *ir.Type {
	switch c {
	case 's':
		return t.Scalar()
	case 'c':
		return p.withKind(t, ir.Bool)
	case 'e':
		return p.withKind(t, ir.I32)
	case 'u':
		return p.types.Scalar(ir.U32)
	case 'i':
		return p.types.Scalar(ir.I32)
	case 'b':
		return p.types.Scalar(ir.Bool)
	case '2':
		return p.types.Vector(2, ir.F32)
	case '4':
		return p.types.Vector(4, ir.F32)
	case 'j':
		return p.types.Vector(4, ir.I32)
	case 'k':
		return p.types.Vector(4, ir.U32)
	case 't':
		return p.matrix(t.Elem.Len, t.Len, t.Elem.Elem.Kind)
	case 'x':
		return p.resultType("atomic exchange of "+typeName(t), "old_value", t, "exchanged", p.types.Scalar(ir.Bool))
	case '-':
		return nil
	}
	return t
}

// resultType is a struct that a function of WGSL's own returns.
func (p *parser) resultType(name, first string, a *ir.Type, second string, b *ir.Type) *ir.Type {
	if t := p.results[name]; t != nil {
		return t
	}
	at := (a.Size + b.Align - 1) / b.Align * b.Align
	align := max(a.Align, b.Align)
	t := &ir.Type{
		Kind: ir.Struct, Name: name, Size: (at + b.Size + align - 1) / align * align, Align: align,
		Fields: []ir.Field{{Name: first, Type: a}, {Name: second, Type: b, Offset: at}},
	}
	if p.results == nil {
		p.results = map[string]*ir.Type{}
	}
	p.results[name] = t
	return t
}

// parts is the struct that frexp and modf return.
func (p *parser) parts(b *builtin, t *ir.Type) *ir.Type {
	if b.fn == ir.FnFrexp {
		return p.resultType("frexp of "+typeName(t), "fract", t, "exp", p.withKind(t, ir.I32))
	}
	return p.resultType("modf of "+typeName(t), "fract", t, "whole", t)
}

// evaluate calls a function of constants.
func (p *parser) evaluate(at int, b *builtin, t, result *ir.Type, args []*operand) *operand {
	r := &operand{at: at, t: result, call: mustUse}
	k := leaf(result).Kind
	switch {
	case result.Kind == ir.Struct:
		r.c = splitFloats(b.fn, args[0].c)
	case b.fn == ir.FnTranspose:
		for i := range args[0].c {
			r.c = append(r.c, args[0].c[i%t.Len*t.Elem.Len+i/t.Len])
		}
	default:
		x := make([][]float64, len(args))
		for i, o := range args {
			x[i] = floats(o)
		}
		for _, v := range evalWhole(b.fn, x) {
			r.c = append(r.c, p.scalar(at, k, v))
		}
		if r.c == nil {
			for i := range args[0].c {
				r.c = append(r.c, p.component(at, b.fn, k, i, args))
			}
		}
	}
	p.spend(at, len(r.c))
	return r
}

// component evaluates a function of constants for component i.
func (p *parser) component(at int, fn ir.Fn, k ir.Kind, i int, args []*operand) uint64 {
	var f [4]float64
	var n [4]int64
	for j, o := range args {
		v := o.c[min(i, len(o.c)-1)]
		if n[j], f[j] = int64(v), float64(int64(v)); isFloat(leaf(o.t).Kind) {
			f[j] = math.Float64frombits(v)
		}
	}
	if isFloat(k) {
		return p.finite(at, k, evalFloat(fn, f[:]))
	}
	return wrap(k, evalInt(fn, k, n[:]))
}

// scalar is the constant of a kind for a number.
func (p *parser) scalar(at int, k ir.Kind, v float64) uint64 {
	if isFloat(k) {
		return p.finite(at, k, v)
	}
	return wrap(k, int64(v))
}

// floats returns the scalars of a constant as floats.
func floats(o *operand) []float64 {
	x := make([]float64, len(o.c))
	float := isFloat(leaf(o.t).Kind)
	for i, v := range o.c {
		if x[i] = float64(int64(v)); float {
			x[i] = math.Float64frombits(v)
		}
	}
	return x
}

// splitFloats is frexp or modf: the fractions, then the exponents or whole parts.
func splitFloats(fn ir.Fn, c []uint64) []uint64 {
	r := make([]uint64, 2*len(c))
	for i, v := range c {
		f := math.Float64frombits(v)
		if fn == ir.FnFrexp {
			fract, exp := math.Frexp(f)
			r[i], r[len(c)+i] = math.Float64bits(fract), uint64(int64(exp))
			continue
		}
		whole, fract := math.Modf(f)
		r[i], r[len(c)+i] = math.Float64bits(fract), math.Float64bits(whole)
	}
	return r
}
