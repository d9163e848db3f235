// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Systems that have no solution have infinities or NaN for one on the device. Calls that wait for results look for those, and only then
// for the system that they come from, so that a solution costs nothing more.

// Solves reports whether a system is solved in the expression, or a Cholesky factor computed: [Expr.Solved] may be an error then.
func (e *Expr[T]) Solves() bool { return e.expr("Solves").n.Solves }

// Solved waits for result, which the expression was assigned to, and is nil if it is finite. Else it computes the systems of the
// expression anew: the first one whose solution is not finite although its operands are is [ErrSingular], a Cholesky factor
// [ErrNotPosDef]. [Expr.Read] and [EvalAll] do this.
func (e *Expr[T]) Solved(ctx context.Context, result *Dense[T]) error {
	const op = "Solved"
	n, x := e.expr(op).n, result.core().operand(op)
	switch {
	case n.Err != nil:
		return n.Err
	case x.Err != nil:
		return x.Err
	case !n.Solves:
		return nil
	}
	return solved(ctx, op, n, x)
}

func solved(ctx context.Context, op string, n, result *node) error {
	ok, err := allFinite(ctx, op, result, nil)
	if err != nil || ok {
		return err
	}
	return unsolved(ctx, op, n)
}

// allFinite waits and reports whether all elements are; dev computes what has no matrix.
func allFinite(ctx context.Context, op string, x *node, dev *gpu.Device) (bool, error) {
	switch {
	case x.Rows == 0 || x.Cols == 0:
		return true, nil
	case x.Type.Compute() != fuse.F32 && x.Type != fuse.C64: // what infinities were converted to
		return false, nil
	}
	test := expr.NewReduction(op, fuse.ReduceMin, fuse.AxisAll, 0, expr.NewConversion(op, fuse.F32, expr.NewMap(op, fuse.OpIsFinite, x)))
	if test.Err == nil {
		test.Dev = cmp.Or(test.Dev, dev)
	}
	m, err := evaluated[Any](ctx, op, &Expr[Any]{test})
	if err != nil {
		return false, err
	}
	var bits [4]byte
	err = firstError(m.core().read(ctx, op, gpu.HostBytes(bits[:])), m.Close())
	return bits != [4]byte{}, err
}

// unsolved is the error of the first system in an expression whose solution is not finite although its operands are: [ErrSingular], or
// [ErrNotPosDef] of a Cholesky factor, and names the operation that asked for it. It computes them again, and waits.
func unsolved(ctx context.Context, op string, n *node) error {
	for _, f := range expr.Systems(n) {
		operands := f.Args
		if lu := f.Args[0]; f.Routine == expr.RoutineLUSolve && lu.Kind == expr.Factor {
			operands = slices.Concat(lu.Args[:1], f.Args[1:]) // the factors of a singular matrix are not finite either
		}
		s, singular := f.Source.(*expr.System), true
		for i, x := range append(slices.Clip(operands), f) {
			finite, err := allFinite(ctx, op, x, n.Dev)
			if err != nil {
				return err
			}
			singular = singular && finite == (i < len(operands))
		}
		switch {
		case !singular:
		case f.Routine == expr.RoutineCholesky:
			return notSolved(s.Op, s.Of, ErrNotPosDef)
		default:
			return notSolved(s.Op, s.Of, ErrSingular)
		}
	}
	return nil
}

func notSolved(op string, a fault.Shape, err error) error {
	return &gpu.OpError{Op: "matrix: " + op, Shapes: []fault.Shape{a}, Err: err}
}

// finite reports whether all of a list are; integers are taken for what infinities were converted to.
func finite[T Elem](list []T) bool {
	switch list := any(list).(type) {
	case []float32:
		return !slices.ContainsFunc(list, func(v float32) bool { return notFinite(float64(v)) })
	case []Any:
		return !slices.ContainsFunc(list, func(v Any) bool { return notFinite(float64(v)) })
	case []complex64:
		return !slices.ContainsFunc(list, func(v complex64) bool { return notFinite(float64(real(v))) || notFinite(float64(imag(v))) })
	case []Half:
		return !slices.ContainsFunc(list, func(v Half) bool { return notFinite(float64(v.Float32())) })
	}
	return false
}

// notFinite reports whether a number is infinite or NaN.
func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
