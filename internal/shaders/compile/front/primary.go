// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// primary reads a literal, a name, a call, or an expression in parentheses.
func (p *parser) primary() *operand {
	at := p.i
	switch word := p.At(at); {
	case p.isNumber():
		return p.number()
	case word == "true", word == "false":
		p.i++
		return &operand{at: at, t: p.types.Scalar(ir.Bool), c: []uint64{truth(word == "true")}}
	case word == "(":
		p.i++
		o := p.inBrackets()
		p.expect(")")
		o.level, o.call = 0, noCall
		return o
	case !p.IsWord(at):
		p.unexpected("expected an expression")
	}
	return p.named(at, p.At(at))
}

// named reads an expression that begins with a name.
func (p *parser) named(at int, word string) *operand {
	s := p.lookup(word)
	switch {
	case s == nil:
		return p.predeclared(at, word)
	case s.kind == valueSymbol:
		p.i++
		o := new(*s.operand)
		o.at = at
		if o.ref != nil && p.fn == nil {
			p.fail(at, word, " is no constant")
		}
		if o.ref != nil {
			p.use(o.ref.Var)
		}
		return o
	case s.kind == typeSymbol:
		p.i++
		return p.construct(at, s.typ, p.arguments())
	case s.kind == otherSymbol:
		p.fail(at, word, " is an entry point, which nothing can call")
	}
	p.i++
	return p.callOf(at, s.fn, p.arguments())
}

// use notes that the function needs a variable of the module. A binding is needed where a text mentions it, any other one where the
// program has it.
func (p *parser) use(v *ir.Var) {
	if bound := v.Space == ir.Uniform || v.Space == ir.Storage; bound {
		p.fn.mentions[v] = true
	} else if v.Space != ir.Function && !p.dropped() {
		p.fn.uses[v] = true
	}
}

// dropped reports whether what is read is checked, but not part of the program.
func (p *parser) dropped() bool { return p.dead+p.unreached > 0 }

// predeclared reads an expression that begins with a name of WGSL's own.
func (p *parser) predeclared(at int, word string) *operand {
	if f, ok := p.known(word); ok && !f.ptr {
		if p.i++; !f.whole && p.is("<") {
			return p.construct(at, p.template(at, f), p.arguments())
		}
		if f.whole {
			return p.construct(at, typ{t: p.of(f, f.elem)}, p.arguments())
		}
		return p.infer(at, f, p.arguments())
	}
	p.i++
	if word == "bitcast" {
		return p.bitcast(at)
	}
	if isBarrier(word) {
		return p.barrier(at, word, p.arguments())
	}
	b := builtinNamed(word)
	switch {
	case b == nil && !p.is("("):
		p.fail(at, "no ", word, " is declared")
	case b == nil:
		p.fail(at, "no function ", word)
	}
	return p.builtin(at, b, p.arguments())
}

// arguments reads the arguments of a call.
func (p *parser) arguments() (list []*operand) {
	p.expect("(")
	for !p.is(")") {
		o := p.inBrackets()
		if !o.ptr {
			o = p.value(o)
		}
		list = append(list, o)
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return list
}

// values refuses pointers among arguments.
func (p *parser) values(args []*operand) []*operand {
	for _, o := range args {
		p.value(o)
	}
	return args
}

// construct makes a value of a type.
func (p *parser) construct(at int, to typ, args []*operand) *operand {
	t := to.t
	if to.ptr || !p.traitsOf(t).constructible {
		p.fail(at, to.String(), " cannot be a value")
	}
	p.checkSize(at, t)
	args = p.values(args)
	if len(args) == 0 {
		n := p.traitsOf(t).words
		p.spend(at, n)
		return &operand{at: at, t: t, c: make([]uint64, n)}
	}
	switch t.Kind {
	case ir.Struct:
		if len(args) != len(t.Fields) {
			p.fail(at, t.Name, " has ", strconv.Itoa(len(t.Fields)), " members, not ", strconv.Itoa(len(args)))
		}
		for i, f := range t.Fields {
			args[i] = p.convert(args[i], f.Type)
		}
		return p.compose(at, t, args)
	case ir.Array:
		if len(args) != t.Len {
			p.fail(at, typeName(t), " has ", strconv.Itoa(t.Len), " elements, not ", strconv.Itoa(len(args)))
		}
		for i := range args {
			args[i] = p.convert(args[i], t.Elem)
		}
		return p.compose(at, t, args)
	case ir.Vector, ir.Matrix:
		if len(args) == 1 && args[0].t.Kind == t.Kind && args[0].t.Len == t.Len {
			return p.changed(at, t, args[0])
		}
		return p.assemble(at, t, args)
	}
	if len(args) != 1 || !isScalar(args[0].t) {
		p.fail(at, typeName(t), " is made of one scalar")
	}
	return p.changed(at, t, args[0])
}

// infer makes a value of a type whose elements are those of the arguments.
func (p *parser) infer(at int, f family, args []*operand) *operand {
	if args = p.values(args); len(args) == 0 && f.kind == ir.Vector {
		return p.construct(at, typ{t: p.of(f, abstractInt)}, nil)
	}
	if len(args) == 0 || f.kind == ir.Atomic {
		p.fail(at, p.At(at), " needs a type between < and >, or arguments that tell it")
	}
	if !p.unify(args...) {
		p.fail(at, "the arguments of ", p.At(at), " have different types")
	}
	if f.kind == ir.Array {
		return p.construct(at, typ{t: p.array(at, args[0].t, len(args))}, args)
	}
	k := args[0].t.Scalar().Kind
	switch {
	case isComposite(args[0].t):
		p.fail(args[0].at, p.At(at), " cannot be made of ", typeName(args[0].t))
	case f.kind == ir.Matrix && k == abstractInt:
		k = abstractFloat
	case f.kind == ir.Matrix && !isFloat(k):
		p.fail(args[0].at, p.At(at), " cannot be made of ", typeName(args[0].t))
	}
	return p.construct(at, typ{t: p.of(f, k)}, args)
}

// assemble makes a vector of scalars and vectors, or a matrix of scalars or of columns.
func (p *parser) assemble(at int, t *ir.Type, args []*operand) *operand {
	k := leaf(t).Kind
	n, want, columns := 0, t.Len, true
	for i, a := range args {
		if !isScalar(a.t) && (a.t.Kind != ir.Vector) {
			p.fail(a.at, typeName(t), " cannot be made of ", typeName(a.t))
		}
		columns = columns && a.t.Kind == ir.Vector && t.Kind == ir.Matrix && a.t.Len == t.Elem.Len
		args[i] = p.convert(a, p.withKind(a.t, k))
		n += max(a.t.Len, 1)
	}
	if t.Kind == ir.Vector && len(args) == 1 && n == 1 {
		return p.splat(args[0], t)
	}
	if t.Kind == ir.Matrix {
		if want *= t.Elem.Len; !columns && n != len(args) {
			p.fail(at, typeName(t), " is made of its columns or of scalars")
		}
	}
	if n != want {
		p.fail(at, typeName(t), " has ", strconv.Itoa(want), " components, not ", strconv.Itoa(n))
	}
	return p.compose(at, t, args)
}

// compose makes a composite of its parts, which have the right types.
func (p *parser) compose(at int, t *ir.Type, args []*operand) *operand {
	var c []uint64
	for i, a := range args {
		if a.c == nil {
			break
		}
		if c = append(c, a.c...); i == len(args)-1 {
			p.spend(at, len(c))
			return &operand{at: at, t: t, c: c}
		}
	}
	x := &ir.Construct{T: t, Args: make([]ir.Expr, len(args))}
	for i, a := range args {
		x.Args[i] = p.lower(a)
	}
	return p.result(at, t, x, args...)
}

// changed converts a scalar, a vector or a matrix to a type of its shape.
func (p *parser) changed(at int, t *ir.Type, o *operand) *operand {
	from, to := leaf(o.t).Kind, leaf(t).Kind
	if o.t.Kind == ir.Matrix && o.t != t && !convertible(o.t, t) {
		p.fail(at, typeName(t), " cannot be made of ", typeName(o.t))
	}
	switch {
	case o.t == t:
		o.at, o.call = at, noCall
		return o
	case o.c == nil:
		return p.result(at, t, &ir.Convert{T: t, X: o.x}, o)
	case isAbstract(from) && isNumber(to) && (from != abstractFloat || !isInt(to)):
		return p.recast(o, t, to)
	}
	c := make([]uint64, len(o.c))
	for i, v := range o.c {
		c[i] = p.changedScalar(at, v, from, to)
	}
	return &operand{at: at, t: t, c: c}
}

// changedScalar converts a constant as a constructor does.
func (p *parser) changedScalar(at int, v uint64, from, to ir.Kind) uint64 {
	switch {
	case to == ir.Bool:
		return truth(v<<1 != 0 || v != 0 && !isFloat(from))
	case isFloat(from) && isInt(to):
		f := math.Trunc(math.Float64frombits(v))
		least, most := float64(math.MinInt32), float64(math.MaxInt32)
		if to == ir.U32 {
			least, most = 0, math.MaxUint32
		}
		return uint64(int64(min(max(f, least), most)))
	case isFloat(to):
		if isFloat(from) {
			return v
		}
		return p.finite(at, to, float64(int64(v)))
	}
	return wrap(to, int64(v))
}

// bitcast reads the type and the argument of a bitcast.
func (p *parser) bitcast(at int) *operand {
	p.expect("<")
	typeAt := p.i
	t := p.valueType()
	p.accept(",")
	p.expect(">")
	args := p.values(p.arguments())
	if len(args) != 1 {
		p.fail(at, "bitcast needs one argument")
	}
	o := args[0]
	if leaf(o.t).Kind == abstractInt && isInt(t.Scalar().Kind) && convertible(o.t, t) {
		return p.convert(o, t)
	}
	o = p.concrete(o)
	for k, u := range []*ir.Type{t, o.t} {
		if !isScalar(u) && u.Kind != ir.Vector || !isNumber(u.Scalar().Kind) {
			p.fail([]int{typeAt, o.at}[k], "a bitcast of ", typeName(u))
		}
	}
	if t.Len != o.t.Len {
		p.fail(at, "a bitcast of ", typeName(o.t), " to ", typeName(t))
	}
	if t == o.t {
		return o
	}
	if o.c != nil {
		if c, ok := recastBits(p.lower(o).(*ir.Const).Words, t.Scalar().Kind); ok {
			return &operand{at: at, t: t, c: c}
		}
	}
	return p.result(at, t, &ir.Bitcast{T: t, X: p.lower(o)}, o)
}

// recastBits reads bits as numbers of a kind, and reports whether all are finite.
func recastBits(words []uint32, k ir.Kind) (c []uint64, finite bool) {
	finite = true
	for _, w := range words {
		v := wrap(k, int64(w))
		if k == ir.F32 {
			f := float64(math.Float32frombits(w))
			v, finite = math.Float64bits(f), finite && !math.IsInf(f, 0) && !math.IsNaN(f)
		}
		c = append(c, v)
	}
	return c, finite
}
