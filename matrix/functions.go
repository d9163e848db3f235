// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// meanNode is a sum, divided by how many elements went into each of its results.
func meanNode(op string, ax fuse.Axis, x *node) *node {
	s := expr.NewReduction(op, fuse.ReduceSum, ax, x)
	if s.Type.Compute() != fuse.F32 {
		return expr.Failed(fail(op, gpu.ErrUnsupported, "not defined for ", s.Type.String()))
	}
	count := float32(x.Rows*x.Cols) / float32(s.Rows*s.Cols) // NaN where there are no results
	return expr.NewMap(op, fuse.OpMul, s, expr.Number(s.Type, 1, 1, math.Float32bits(1/count)))
}

// powNode is x to the power s. Some powers need no logarithm.
func powNode(op string, x, s *node) *node {
	if x.Err == nil && s.Kind == expr.Scalar && s.Rows == 1 && s.Cols == 1 && fuse.OpPow.Takes(x.Type) {
		v := s.Value
		if s.Type != expr.Untyped {
			v = float64(math.Float32frombits(s.Bits))
		}
		switch v {
		case 0.5:
			return expr.NewMap(op, fuse.OpSqrt, x)
		case 1:
			return x
		case 2:
			return expr.NewMap(op, fuse.OpSquare, x)
		case 3:
			return expr.NewMap(op, fuse.OpMul, expr.NewMap(op, fuse.OpSquare, x), x)
		case -1:
			return expr.NewMap(op, fuse.OpRecip, x)
		}
	}
	return expr.NewMap(op, fuse.OpPow, x, s)
}

// Fill is a rows x cols matrix of one value.
func Fill[T Elem](rows, cols int, v T) *Expr[T] { return &Expr[T]{fillNode(rows, cols, scalar(v))} }

func fillNode(rows, cols int, number *node) *node {
	if err := expr.CheckVirtual("Fill", rows, cols); err != nil {
		return expr.Failed(err)
	}
	n := *number
	n.Rows, n.Cols = rows, cols
	return &n
}

// Convert is a with another element type, as a conversion in Go does it; floats beyond an integer type's range saturate.
func Convert[T, F Elem](a Operand[F]) *Expr[T] {
	const op = "Convert"
	x, t := from(op, a), typeOf[T]()
	if t == expr.Untyped {
		t = x.Typed(fuse.F32).Type // it stays what it is
	}
	return &Expr[T]{expr.NewConversion(op, t, x)}
}

// ConvertTo converts to an element type chosen at run time. Of an expression of another type than [Any] it can only be what
// that is: [gpu.ErrInvalid]; see [Convert].
func (e *Expr[T]) ConvertTo(t DType) *Expr[T] {
	const op = "ConvertTo"
	n := e.expr(op)
	switch {
	case n.Err != nil:
		return e
	case t > Float16 || !isAny[T]() && t != n.Type:
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrInvalid, "to another type"))}
	}
	return &Expr[T]{expr.NewConversion(op, t, n)}
}

// EqualAll waits for what is queued and reports whether a and b have the same size and the same elements. Matrices of other
// sizes are not equal, which is no error; NaN equals nothing. What [Equal] is for each element, this is for whole matrices.
func EqualAll[T Elem](ctx context.Context, a, b Operand[T]) (bool, error) {
	const op = "EqualAll"
	x, y := from(op, a), from(op, b)
	return holds[T](ctx, op, x, y, expr.NewMap(op, fuse.OpEq, x, y))
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
	number := func(v float32) *node { return expr.Number(typeOf[T](), 1, 1, math.Float32bits(v)) }
	x, y := from(op, a), from(op, b)
	size := expr.NewMap(op, fuse.OpMax, expr.NewMap(op, fuse.OpAbs, x), expr.NewMap(op, fuse.OpAbs, y))
	bound := expr.NewMap(op, fuse.OpMul, expr.NewMap(op, fuse.OpMax, size, number(1)), number(epsilon))
	bound = expr.NewMap(op, fuse.OpMin, bound, number(math.MaxFloat32)) // nothing is near an infinity
	near := expr.NewMap(op, fuse.OpLe, expr.NewMap(op, fuse.OpAbs, expr.NewMap(op, fuse.OpSub, x, y)), bound)
	return holds[T](ctx, op, x, y, expr.NewMap(op, fuse.OpOr, expr.NewMap(op, fuse.OpEq, x, y), near))
}

// holds reports whether x and y have the same size and test, a node that compares them, is 1 everywhere.
func holds[T Elem](ctx context.Context, op string, x, y, test *node) (bool, error) {
	err := expr.Join(op, x, y).Err
	switch {
	case err != nil || x.Rows != y.Rows || x.Cols != y.Cols:
		return false, err
	case x.Rows == 0 || x.Cols == 0:
		return true, nil
	}
	v, err := (&Expr[T]{expr.NewReduction(op, fuse.ReduceMin, fuse.AxisAll, test)}).Value(ctx)
	return err == nil && float(v) != 0, err
}
