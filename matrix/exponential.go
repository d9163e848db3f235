// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// The exponential of a matrix is that of a / 2^s, squared s times (Moler and Van Loan, SIAM Review 45(1), 2003, method 3). With s such that
// the norm of a / 2^s is at most 1/2, eight terms of the Taylor series leave less than 2^-24 of it. What is squared is less the identity,
// (I + x)^2 = I + 2x + x^2, or small elements would lose the bits that the identity takes.

// squarings is how often a result is squared at most. The kernels are queued before s is known: those that are not needed change nothing.
const squarings = 20

func (s *shaping) matrixExp() *node {
	if !s.square() {
		return nil
	}
	a, n := s.float32(0), s.args[0].Rows
	if a.Err != nil || n == 0 {
		return s.finish(a)
	}
	sums := expr.NewReduction(s.op, fuse.ReduceSum, fuse.AxisCols, 0, s.apply(fuse.OpAbs, a))
	halvings := s.apply(fuse.OpMax, s.apply(fuse.OpCeil, s.apply(fuse.OpLog2, s.fold(fuse.ReduceMax, sums))), s.float(-1))
	halvings = s.apply(fuse.OpAdd, halvings, s.float(1))
	e := s.taylor(s.apply(fuse.OpMul, a, s.apply(fuse.OpExp2, s.apply(fuse.OpNeg, halvings))))
	for k := range squarings {
		squared := s.apply(fuse.OpAdd, expr.NewProduct(s.op, e, e), s.apply(fuse.OpMul, s.float(2), e))
		e = s.apply(fuse.OpWhere, s.apply(fuse.OpGt, halvings, s.float(float64(k))), squared, e)
	}
	i, j := s.at(n, n)
	e = s.apply(fuse.OpAdd, e, expr.NewConversion(s.op, fuse.F32, s.apply(fuse.OpEq, i, j)))
	known := s.apply(fuse.OpLe, halvings, s.float(squarings))
	return s.finish(s.apply(fuse.OpWhere, known, e, s.float(math.NaN())))
}

// taylor is the sum of x^k / k! for k from 1 to 8, by the method of Paterson and Stockmeyer (SIAM J. Comput. 2(1), 1973) with four products.
func (s *shaping) taylor(x *node) *node {
	i, j := s.at(x.Rows, x.Rows)
	one := expr.NewConversion(s.op, fuse.F32, s.apply(fuse.OpEq, i, j))
	square := expr.NewProduct(s.op, x, x)
	cube := expr.NewProduct(s.op, square, x)
	sum := func(a, b *node) *node { return s.apply(fuse.OpAdd, a, b) }
	over := func(power *node, factorial float64) *node { return s.apply(fuse.OpMul, power, s.float(1/factorial)) }
	low := sum(x, over(square, 2))
	middle := sum(over(one, 6), sum(over(x, 24), over(square, 120)))
	high := sum(over(one, 720), sum(over(x, 5040), over(square, 40320)))
	return sum(low, expr.NewProduct(s.op, cube, sum(middle, expr.NewProduct(s.op, cube, high))))
}
