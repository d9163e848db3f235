// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// ofParts completes a node that has complex operands: it is made of operations on their parts. Operands of float32 are complex numbers
// without imaginary parts.
func (n *Node) ofParts(op string, args []*Node) *Node {
	for _, a := range args {
		switch {
		case a.Kind == Sparse:
			return Failed(Fail(op, fault.ErrUnsupported, "not defined for ", fuse.C64.String(), " with a sparse matrix, but with a dense one"))
		case a.Type != fuse.C64 && a.Type != fuse.F32 && a.Type != Untyped:
			return Mixed(op, a.Type, fuse.C64)
		}
	}
	a := args[0]
	switch n.Kind {
	case Map:
		if z := complexMap(op, n.Op, args); z != nil {
			return z
		}
	case Product:
		return complexProduct(op, a, args[1])
	case Transpose:
		return a.onParts(op, func(part *Node) *Node { return NewTranspose(op, part) })
	case Reduce:
		if z := complexReduction(op, n, a); z != nil {
			return z
		}
	case Scan:
		if n.Red == fuse.ReduceSum {
			return a.onParts(op, func(part *Node) *Node { return NewScan(op, n.Red, part) })
		}
	}
	return n.undefined(op, fuse.C64)
}

// onParts applies a linear function to both parts.
func (n *Node) onParts(op string, f func(*Node) *Node) *Node {
	re, im := n.Parts()
	if im != nil {
		return NewComplex(op, f(re), f(im))
	}
	x := f(re)
	return NewComplex(op, x, Number(fuse.F32, x.Rows, x.Cols, 0))
}

// complexReduction is a sum of elements, or what is known of their absolute values, nil if that is not defined.
func complexReduction(op string, n, a *Node) *Node {
	reduce := func(part *Node) *Node { return NewReduction(op, n.Red, n.Axis, n.Value, part) }
	switch n.Red {
	case fuse.ReduceSum, fuse.ReduceMean, fuse.ReduceTrace:
		return a.onParts(op, reduce)
	case fuse.ReduceVar:
		return complexVariance(op, a, reduce)
	case fuse.ReduceStd:
		v := complexVariance(op, a, func(part *Node) *Node { return NewReduction(op, fuse.ReduceVar, n.Axis, n.Value, part) })
		return NewMap(op, fuse.OpSqrt, v)
	case fuse.ReduceCountNonzero:
		return reduce(NewMap(op, fuse.OpNe, a, Number(fuse.F32, 1, 1, 0)))
	}
	return nil
}

// complexVariance is the mean of the squared absolute values of what differs from the mean, which is real.
func complexVariance(op string, a *Node, reduce func(*Node) *Node) *Node {
	re, im := a.Parts()
	if im == nil {
		return reduce(re)
	}
	return NewMap(op, fuse.OpAdd, reduce(re), reduce(im))
}

// pair is a complex number of nodes; im is nil where it is 0.
type pair struct{ re, im *Node }

// parts makes nodes of the parts of complex numbers.
type parts struct{ op string }

func (c parts) of(op fuse.Op, args ...*Node) *Node { return NewMap(c.op, op, args...) }
func (c parts) n(v float64) *Node                  { return Number(fuse.F32, 1, 1, v) }
func (c parts) add(x, y *Node) *Node               { return c.of(fuse.OpAdd, x, y) }
func (c parts) sub(x, y *Node) *Node               { return c.of(fuse.OpSub, x, y) }
func (c parts) mul(x, y *Node) *Node               { return c.of(fuse.OpMul, x, y) }
func (c parts) div(x, y *Node) *Node               { return c.of(fuse.OpDiv, x, y) }
func (c parts) neg(x *Node) *Node                  { return c.of(fuse.OpNeg, x) }

// choose is x where a test holds, and y elsewhere.
func (c parts) choose(test, x, y *Node) *Node { return c.of(fuse.OpWhere, test, x, y) }

// im is the imaginary part, a number where there is none.
func (c parts) im(z pair) *Node { return cmp.Or(z.im, c.n(0)) }

// size is the absolute value.
func (c parts) size(z pair) *Node {
	if z.im == nil {
		return c.of(fuse.OpAbs, z.re)
	}
	return c.of(fuse.OpHypot, z.re, z.im)
}

// complexMap applies an element-wise operation, or is nil if that is not defined for complex numbers: they have no order to compare by, and
// not every function is known of them.
func complexMap(op string, f fuse.Op, args []*Node) *Node {
	c, z := parts{op}, make([]pair, len(args))
	for i, a := range args {
		z[i].re, z[i].im = a.Typed(fuse.F32).Parts()
	}
	if x := c.test(f, z); x != nil {
		return x
	}
	w := c.arithmetic(f, z)
	if w.re == nil {
		w = c.function(f, z[0])
	}
	if w.re == nil {
		return nil
	}
	return NewComplex(op, w.re, c.im(w))
}

// test applies an operation whose results are float32.
func (c parts) test(f fuse.Op, z []pair) *Node {
	switch f {
	case fuse.OpAbs:
		return c.size(z[0])
	case fuse.OpEq:
		return c.both(z, f, fuse.OpAnd)
	case fuse.OpNe:
		return c.both(z, f, fuse.OpOr)
	case fuse.OpIsNaN, fuse.OpIsInf:
		return c.either(z[0], f, fuse.OpOr)
	case fuse.OpIsFinite:
		return c.either(z[0], f, fuse.OpAnd)
	}
	return nil
}

func (c parts) arithmetic(f fuse.Op, z []pair) pair {
	switch f {
	case fuse.OpCopy:
		return z[0]
	case fuse.OpNeg:
		return c.each(z[0], c.neg)
	case fuse.OpAdd, fuse.OpSub:
		return c.sum(z[0], z[1], f)
	case fuse.OpMul:
		return c.times(z[0], z[1])
	case fuse.OpSquare:
		return c.times(z[0], z[0])
	case fuse.OpDiv:
		return c.quotient(z[0], z[1])
	case fuse.OpRecip:
		return c.quotient(pair{re: c.n(1)}, z[0])
	case fuse.OpPow:
		return c.pow(z[0], z[1])
	case fuse.OpWhere:
		return c.where(z[0], z[1], z[2])
	}
	return pair{}
}

func (c parts) function(f fuse.Op, z pair) pair {
	switch f {
	case fuse.OpExp:
		return c.exp(z)
	case fuse.OpLog:
		return c.log(z)
	case fuse.OpSqrt:
		return c.sqrt(z)
	case fuse.OpSin:
		return c.sin(z)
	case fuse.OpCos:
		return c.cos(z)
	case fuse.OpTan:
		return c.rotated(z, c.tanh)
	case fuse.OpSinh:
		return c.rotated(z, c.sin)
	case fuse.OpCosh:
		return c.cos(pair{c.neg(c.im(z)), z.re})
	case fuse.OpTanh:
		return c.tanh(z)
	}
	return pair{}
}

// each applies a function to both parts.
func (c parts) each(z pair, f func(*Node) *Node) pair {
	if z.im == nil {
		return pair{re: f(z.re)}
	}
	return pair{f(z.re), f(z.im)}
}

func (c parts) sum(z, w pair, op fuse.Op) pair {
	s := pair{c.of(op, z.re, w.re), z.im}
	if w.im != nil {
		s.im = c.of(op, c.im(z), w.im)
	}
	return s
}

func (c parts) times(z, w pair) pair {
	switch {
	case z.im == nil && w.im == nil:
		return pair{re: c.mul(z.re, w.re)}
	case z.im == nil:
		return pair{c.mul(z.re, w.re), c.mul(z.re, w.im)}
	case w.im == nil:
		return pair{c.mul(z.re, w.re), c.mul(z.im, w.re)}
	}
	return pair{c.sub(c.mul(z.re, w.re), c.mul(z.im, w.im)), c.add(c.mul(z.re, w.im), c.mul(z.im, w.re))}
}

// quotient divides by the larger part of the divisor first, so that nothing overflows on the way: R. L. Smith, Algorithm 116: Complex
// division, Communications of the ACM 5(8), 1962.
func (c parts) quotient(z, w pair) pair {
	if w.im == nil {
		return c.each(z, func(part *Node) *Node { return c.div(part, w.re) })
	}
	larger := c.of(fuse.OpGe, c.of(fuse.OpAbs, w.re), c.of(fuse.OpAbs, w.im))
	p, q := c.choose(larger, w.re, w.im), c.choose(larger, w.im, w.re)
	ratio := c.choose(c.of(fuse.OpEq, p, c.n(0)), p, c.div(q, p)) // of zeros it is 0
	divisor := c.add(p, c.mul(q, ratio))
	x, y := c.choose(larger, z.re, c.im(z)), c.choose(larger, c.im(z), z.re)
	im := c.sub(y, c.mul(x, ratio))
	return pair{c.div(c.add(x, c.mul(y, ratio)), divisor), c.div(c.choose(larger, im, c.neg(im)), divisor)}
}

func (c parts) exp(z pair) pair {
	e := c.of(fuse.OpExp, z.re)
	if z.im == nil {
		return pair{re: e}
	}
	real := c.of(fuse.OpEq, z.im, c.n(0)) // where e may be infinite
	return pair{c.mul(e, c.of(fuse.OpCos, z.im)), c.choose(real, z.im, c.mul(e, c.of(fuse.OpSin, z.im)))}
}

func (c parts) log(z pair) pair {
	return pair{c.of(fuse.OpLog, c.size(z)), c.of(fuse.OpAtan2, c.im(z), z.re)}
}

// sqrt is the root with a real part that is not negative. Eighths are added, so that the sum does not overflow.
func (c parts) sqrt(z pair) pair {
	im := c.im(z)
	eighth := c.each(z, func(part *Node) *Node { return c.mul(part, c.n(1.0/8)) })
	t := c.mul(c.n(2), c.of(fuse.OpSqrt, c.add(c.of(fuse.OpAbs, eighth.re), c.size(eighth))))
	none := c.of(fuse.OpEq, t, c.n(0))
	other := c.choose(none, t, c.mul(c.div(c.of(fuse.OpAbs, im), t), c.n(0.5)))
	right := c.of(fuse.OpGe, z.re, c.n(0))
	up := c.choose(right, other, t)
	return pair{c.choose(right, t, other), c.choose(c.of(fuse.OpLt, im, c.n(0)), c.neg(up), up)}
}

// pow is exp(w log z), and of 0 what the power's real part says.
func (c parts) pow(z, w pair) pair {
	l := c.log(z)
	p := c.exp(c.times(l, w))
	zero := c.of(fuse.OpEq, c.size(z), c.n(0))
	none := c.of(fuse.OpEq, c.size(w), c.n(0))
	return pair{c.choose(zero, c.of(fuse.OpPow, c.n(0), c.choose(none, c.n(0), w.re)), p.re), c.choose(zero, c.n(0), c.im(p))}
}

func (c parts) sin(z pair) pair {
	if z.im == nil {
		return pair{re: c.of(fuse.OpSin, z.re)}
	}
	return pair{
		c.mul(c.of(fuse.OpSin, z.re), c.of(fuse.OpCosh, z.im)),
		c.mul(c.of(fuse.OpCos, z.re), c.of(fuse.OpSinh, z.im)),
	}
}

func (c parts) cos(z pair) pair {
	if z.im == nil {
		return pair{re: c.of(fuse.OpCos, z.re)}
	}
	return pair{
		c.mul(c.of(fuse.OpCos, z.re), c.of(fuse.OpCosh, z.im)),
		c.neg(c.mul(c.of(fuse.OpSin, z.re), c.of(fuse.OpSinh, z.im))),
	}
}

// flat is the real part from which on tanh is 1 to a float32's precision, far below where cosh overflows.
const flat = 20

func (c parts) tanh(z pair) pair {
	if z.im == nil {
		return pair{re: c.of(fuse.OpTanh, z.re)}
	}
	x := c.of(fuse.OpClamp, z.re, c.n(-flat), c.n(flat))
	sinh, cos := c.of(fuse.OpSinh, x), c.of(fuse.OpCos, z.im)
	divisor := c.add(c.mul(sinh, sinh), c.mul(cos, cos))
	return pair{
		c.div(c.mul(sinh, c.of(fuse.OpCosh, x)), divisor),
		c.div(c.mul(c.of(fuse.OpSin, z.im), cos), divisor),
	}
}

// rotated is -i f(iz): sinh by sin, and tan by tanh.
func (c parts) rotated(z pair, f func(pair) pair) pair {
	w := f(pair{c.neg(c.im(z)), z.re})
	return pair{c.im(w), c.neg(w.re)}
}

// where chooses by numbers that are not 0.
func (c parts) where(test, z, w pair) pair {
	t := test.re
	if test.im != nil {
		t = c.both([]pair{test, {re: c.n(0)}}, fuse.OpNe, fuse.OpOr)
	}
	if z.im == nil && w.im == nil {
		return pair{re: c.choose(t, z.re, w.re)}
	}
	return pair{c.choose(t, z.re, w.re), c.choose(t, c.im(z), c.im(w))}
}

// both compares the parts of two numbers and joins what that says.
func (c parts) both(z []pair, compare, join fuse.Op) *Node {
	re := c.of(compare, z[0].re, z[1].re)
	if z[0].im == nil && z[1].im == nil {
		return re
	}
	return c.of(join, re, c.of(compare, c.im(z[0]), c.im(z[1])))
}

// either tests both parts.
func (c parts) either(z pair, test, join fuse.Op) *Node {
	re := c.of(test, z.re)
	if z.im == nil {
		return re
	}
	return c.of(join, re, c.of(test, z.im))
}

// NewPart builds the real, or else the imaginary parts of a matrix, as float32.
func NewPart(op string, imaginary bool, a *Node) *Node {
	if a.Err != nil {
		return a
	}
	re, im := a.Parts()
	switch {
	case !imaginary:
		return NewConversion(op, fuse.F32, re)
	case im == nil:
		im = Number(fuse.F32, a.Rows, a.Cols, 0)
		im.Dev = a.Dev
	}
	return im
}

// NewAngle builds the angles of complex numbers with the positive real axis, from -pi to pi.
func NewAngle(op string, a *Node) *Node {
	return NewMap(op, fuse.OpAtan2, NewPart(op, true, a), NewPart(op, false, a))
}

// NewConjugate builds the complex conjugates of the elements; real ones are their own.
func NewConjugate(op string, a *Node) *Node {
	if re, im := a.Parts(); a.Err == nil && im != nil {
		return NewComplex(op, re, NewMap(op, fuse.OpNeg, im))
	}
	return a
}
