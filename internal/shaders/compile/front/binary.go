// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// binary applies an operator of two values that evaluates both.
func (p *parser) binary(at int, op ir.Op, a, b *operand) *operand {
	mismatch := func() {
		p.fail(at, "an operator between ", typeName(a.t), " and ", typeName(b.t))
	}
	if op == ir.ShiftLeft || op == ir.ShiftRight {
		return p.shift(at, op, a, b)
	}
	if isComposite(a.t) || isComposite(b.t) || !p.unify(a, b) {
		mismatch()
	}
	k := a.t.Scalar().Kind
	matrix := a.t.Kind == ir.Matrix || b.t.Kind == ir.Matrix
	t := a.t
	switch ok := a.t == b.t; op {
	case ir.Eq, ir.Ne, ir.Lt, ir.Le, ir.Gt, ir.Ge:
		if !ok || matrix || k == ir.Bool && op != ir.Eq && op != ir.Ne {
			mismatch()
		}
		t = p.withKind(t, ir.Bool)
	case ir.And, ir.Or, ir.Xor:
		if !ok || matrix || isFloat(k) || k == ir.Bool && op == ir.Xor {
			mismatch()
		}
	default:
		if !isNumber(k) {
			mismatch()
		}
		if matrix {
			if t = p.product(op, a.t, b.t); t == nil {
				mismatch()
			}
			break
		}
		a, b = p.splat(a, b.t), p.splat(b, a.t)
		if t = a.t; a.t != b.t {
			mismatch()
		}
		if (op == ir.Div || op == ir.Mod) && isInt(k) {
			p.checkDivisor(b)
		}
	}
	switch {
	case a.c == nil || b.c == nil:
		return p.result(at, t, &ir.Binary{Op: op, X: p.lower(a), Y: p.lower(b), T: t}, a, b)
	case matrix && op == ir.Mul:
		return p.multiply(at, t, a, b)
	}
	p.spend(at, len(a.c))
	c := make([]uint64, len(a.c))
	for i := range c {
		c[i] = p.arith(at, op, k, a.c[i], b.c[i])
	}
	return &operand{at: at, t: t, c: c}
}

func isComposite(t *ir.Type) bool { return t.Kind == ir.Array || t.Kind == ir.Struct }

// splat makes a scalar a vector, if the other operand is one.
func (p *parser) splat(o *operand, like *ir.Type) *operand {
	if like.Kind != ir.Vector || o.t != like.Elem {
		return o
	}
	if o.c == nil {
		return p.result(o.at, like, &ir.Construct{T: like, Args: []ir.Expr{o.x}}, o)
	}
	c := make([]uint64, like.Len)
	for i := range c {
		c[i] = o.c[0]
	}
	return &operand{at: o.at, t: like, c: c}
}

// product is the type of an operator with a matrix, or nil.
func (p *parser) product(op ir.Op, a, b *ir.Type) *ir.Type {
	switch {
	case op == ir.Add || op == ir.Sub:
		if a == b {
			return a
		}
	case op != ir.Mul:
	case isScalar(a):
		return b
	case isScalar(b):
		return a
	case b.Kind == ir.Vector && b.Len == a.Len:
		return a.Elem
	case a.Kind == ir.Vector && a.Len == b.Elem.Len:
		return p.types.Vector(b.Len, a.Elem.Kind)
	case a.Kind == ir.Matrix && b.Kind == ir.Matrix && a.Len == b.Elem.Len:
		return p.matrix(b.Len, a.Elem.Len, a.Elem.Elem.Kind)
	}
	return nil
}

// multiply is the product of two constants one of which is a matrix.
func (p *parser) multiply(at int, t *ir.Type, a, b *operand) *operand {
	k := leaf(t).Kind
	c := make([]uint64, p.traitsOf(t).words)
	if isScalar(a.t) || isScalar(b.t) {
		if isScalar(a.t) {
			a, b = b, a
		}
		for i := range c {
			c[i] = p.arith(at, ir.Mul, k, a.c[i], b.c[0])
		}
		return &operand{at: at, t: t, c: c}
	}
	rows, inner := 1, a.t.Len // of a row vector
	if a.t.Kind == ir.Matrix {
		rows = a.t.Elem.Len
	}
	p.spend(at, len(c)*inner)
	for i := range c {
		row, col := i%rows, i/rows
		for j := range inner {
			x := p.arith(at, ir.Mul, k, a.c[j*rows+row], b.c[col*inner+j])
			if j > 0 {
				x = p.arith(at, ir.Add, k, c[i], x)
			}
			c[i] = x
		}
	}
	return &operand{at: at, t: t, c: c}
}

// shift applies << and >>.
func (p *parser) shift(at int, op ir.Op, a, b *operand) *operand {
	scalarOrVector := func(t *ir.Type) bool { return isScalar(t) || t.Kind == ir.Vector }
	if !scalarOrVector(a.t) || !scalarOrVector(b.t) || !isInt(a.t.Scalar().Kind) || !isInt(b.t.Scalar().Kind) || a.t.Len != b.t.Len {
		p.fail(at, "a shift of ", typeName(a.t), " by ", typeName(b.t))
	}
	b = p.convert(b, p.withKind(b.t, ir.U32))
	if b.c == nil {
		a = p.concrete(a)
	}
	k := a.t.Scalar().Kind
	for _, n := range b.c {
		if n >= 32 && k != abstractInt && p.dead == 0 {
			p.fail(b.at, "a shift by ", number(n, ir.U32), " bits")
		}
	}
	if a.c == nil || b.c == nil {
		return p.result(at, a.t, &ir.Binary{Op: op, X: p.lower(a), Y: p.lower(b), T: a.t}, a, b)
	}
	c := make([]uint64, len(a.c))
	for i, v := range a.c {
		c[i] = p.shifted(at, op, k, int64(v), b.c[i])
	}
	return &operand{at: at, t: a.t, c: c}
}

func (p *parser) shifted(at int, op ir.Op, k ir.Kind, v int64, n uint64) uint64 {
	if op == ir.ShiftRight {
		return uint64(v >> n) // those of u32 are not negative
	}
	r := v << n
	if k == abstractInt {
		if r>>n != v || n > 63 && v != 0 {
			p.overflow(at)
		}
		return uint64(r)
	}
	w := wrap(k, r)
	if int64(w)>>n != v {
		p.overflow(at)
	}
	return w
}

// checkDivisor refuses to divide integers by a constant zero.
func (p *parser) checkDivisor(o *operand) {
	for _, v := range o.c {
		if v == 0 && p.dead == 0 {
			p.fail(o.at, "a division by zero")
		}
	}
}

// overflow fails because of a constant that its type cannot hold.
func (p *parser) overflow(at int) {
	if p.dead == 0 {
		p.fail(at, "the value of this constant is out of the range of its type")
	}
}

// wrap is an integer modulo 2 to the power 32.
func wrap(k ir.Kind, v int64) uint64 {
	switch k {
	case ir.I32:
		return uint64(int64(int32(v)))
	case ir.U32:
		return uint64(uint32(v))
	}
	return uint64(v)
}

func truth(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// arith applies an operator to two scalars of a kind.
func (p *parser) arith(at int, op ir.Op, k ir.Kind, a, b uint64) uint64 {
	if isFloat(k) {
		return p.floatArith(at, op, k, math.Float64frombits(a), math.Float64frombits(b))
	}
	x, y := int64(a), int64(b)
	switch op {
	case ir.Add, ir.Sub, ir.Mul, ir.Div, ir.Mod:
		return p.intArith(at, op, k, x, y)
	case ir.And:
		return a & b
	case ir.Or:
		return a | b
	case ir.Xor:
		return a ^ b
	case ir.Eq:
		return truth(a == b)
	case ir.Ne:
		return truth(a != b)
	case ir.Lt:
		return truth(x < y)
	case ir.Le:
		return truth(x <= y)
	case ir.Gt:
		return truth(x > y)
	}
	return truth(x >= y)
}

func (p *parser) intArith(at int, op ir.Op, k ir.Kind, x, y int64) uint64 {
	var r int64
	over := false
	switch op {
	case ir.Add:
		r = x + y
		over = (r > x) != (y > 0) && y != 0
	case ir.Sub:
		r = x - y
		over = (r < x) != (y > 0) && y != 0
	case ir.Mul:
		hi, lo := bits.Mul64(uint64(x), uint64(y))
		hi -= uint64(x>>63)&uint64(y) + uint64(y>>63)&uint64(x)
		r = int64(lo)
		over = int64(hi) != r>>63
	default:
		if y == 0 {
			return 0 // in an operand that is not evaluated
		}
		if op == ir.Mod {
			return uint64(x % y)
		}
		least := x == math.MinInt64 || k == ir.I32 && x == math.MinInt32
		if least && y == -1 {
			p.overflow(at)
		}
		r = x / y
	}
	if over && k == abstractInt {
		p.overflow(at)
	}
	return wrap(k, r)
}

func (p *parser) floatArith(at int, op ir.Op, k ir.Kind, x, y float64) uint64 {
	switch op {
	case ir.Add:
		x += y
	case ir.Sub:
		x -= y
	case ir.Mul:
		x *= y
	case ir.Div:
		x /= y
	case ir.Mod:
		x = math.Mod(x, y)
	case ir.Eq:
		return truth(x == y)
	case ir.Ne:
		return truth(x != y)
	case ir.Lt:
		return truth(x < y)
	case ir.Le:
		return truth(x <= y)
	case ir.Gt:
		return truth(x > y)
	default:
		return truth(x >= y)
	}
	return p.finite(at, k, x)
}

// finite rounds a constant to a kind, and refuses one that is not finite.
func (p *parser) finite(at int, k ir.Kind, x float64) uint64 {
	if k == ir.F32 {
		v, ok := single(x)
		if !ok {
			p.overflow(at)
		}
		return v
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		p.overflow(at)
	}
	return math.Float64bits(x)
}

// negated applies an operator of one operand to a scalar.
func negated(op ir.Op, k ir.Kind, v uint64) uint64 {
	switch {
	case op == ir.Not:
		return 1 - v
	case op == ir.Complement:
		return wrap(k, ^int64(v))
	case isFloat(k):
		return math.Float64bits(-math.Float64frombits(v))
	}
	return wrap(k, -int64(v))
}
