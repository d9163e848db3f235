// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/gpu"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// EqualAll waits for what is queued and reports whether a and b have the same size and the same elements. Matrices of other
// sizes are not equal, which is no error; NaN equals nothing. What [Equal] is for each element, this is for whole matrices.
func EqualAll[T Elem](ctx context.Context, a, b Operand[T]) (bool, error) {
	const op = "EqualAll"
	x, y := from(op, a), from(op, b)
	return holds[T](ctx, op, x, y, mapNode(op, fuse.OpEq, x, y))
}

// EqualApprox is [EqualAll] with a tolerance: elements a and b are equal if they are the same, or both finite and
//
//	|a - b| <= epsilon * max(1, |a|, |b|).
//
// An epsilon that is negative or not a number is [gpu.ErrInvalid]. Blaze compares float32 with 1e-6.
func EqualApprox[T interface{ float32 | Half }](ctx context.Context, a, b Operand[T], epsilon float32) (bool, error) {
	const op = "EqualApprox"
	if !(epsilon >= 0) {
		return false, fail(op, gpu.ErrInvalid, "epsilon is negative or not a number")
	}
	number := func(v float32) *node {
		return expr.Number(typeOf[T](), 1, 1, math.Float32bits(v))
	}
	x, y := from(op, a), from(op, b)
	size := mapNode(op, fuse.OpMax, mapNode(op, fuse.OpAbs, x), mapNode(op, fuse.OpAbs, y))
	bound := mapNode(op, fuse.OpMul, mapNode(op, fuse.OpMax, size, number(1)), number(epsilon))
	bound = mapNode(op, fuse.OpMin, bound, number(math.MaxFloat32)) // nothing is near an infinity
	near := mapNode(op, fuse.OpLe, mapNode(op, fuse.OpAbs, mapNode(op, fuse.OpSub, x, y)), bound)
	return holds[T](ctx, op, x, y, mapNode(op, fuse.OpOr, mapNode(op, fuse.OpEq, x, y), near))
}

// holds reports whether x and y have the same size and test, a node that compares them, is 1 everywhere.
func holds[T Elem](ctx context.Context, op string, x, y, test *node) (bool, error) {
	if err := expr.Join(op, x, y).Err; err != nil {
		return false, err
	}
	if x.Rows != y.Rows || x.Cols != y.Cols {
		return false, nil
	}
	if x.Rows == 0 || x.Cols == 0 {
		return true, nil
	}
	var no T
	v, err := (&Expr[T]{reduceNode(op, fuse.ReduceMin, fuse.AxisAll, test)}).Value(ctx)
	return err == nil && v != no, err
}
