// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Condition is the error of a nearly singular system: the condition number of its matrix in the norm 1. The solution was stored, but
// may have no correct digit.
type Condition float64

// Error implements error.
func (c Condition) Error() string {
	return "matrix: nearly singular, condition number " + strconv.FormatFloat(float64(c), 'e', 3, 64)
}

// ConditionTolerance is the condition number above which solutions come with a [Condition].
const ConditionTolerance = 1 << 24

// factors are the packed factors of a matrix, which an object of a decomposition owns.
type factors struct {
	packed     *Dense[float32]
	t          fuse.Type // of the matrix
	rows, cols int       // of the matrix
	norm       float64   // its norm 1
	cond       float64   // in the norm 1; 0 before it was found
}

// decompose computes the factors, which replace the former ones, and returns the row of numbers that tests computes from them.
func (f *factors) decompose(ctx context.Context, op string, r expr.Routine, a *node, tests func(packed Operand[float32]) *Expr[float32]) ([]float32, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	a = a.Typed(fuse.F32)
	t := a.Type
	if !expr.Floats(t) {
		return nil, expr.Undefined(op, t, expr.Floats)
	}
	a = expr.NewConversion(op, fuse.F32, a)
	n := expr.NewFactor(op, r, expr.Form{}, 1, a)
	if n.Err != nil {
		return nil, n.Err
	}
	next := &Dense[float32]{}
	if exec.Beyond(n.Dev, n.Rows*n.Cols*4) {
		var err error
		if next, err = Wrap(n.Dev, n.Rows, n.Cols, make([]float32, n.Rows*n.Cols)); err != nil {
			return nil, named(op, err)
		}
	}
	if err := next.AssignContext(ctx, &Expr[float32]{n}); err != nil {
		return nil, firstError(named(op, err), next.Close())
	}
	found, err := tests(next).read(ctx, op)
	if err != nil {
		return nil, firstError(named(op, err), next.Close())
	}
	err = f.close()
	*f = factors{packed: next, t: t, rows: a.Rows, cols: a.Cols}
	return found, err
}

// close frees the factors. It is no error if there are none.
func (f *factors) close() error {
	if f == nil || f.packed == nil {
		return nil
	}
	packed := f.packed
	f.packed = nil
	return packed.Close()
}

// leaf returns the packed factors as an operand.
func (f *factors) leaf(op string) *node {
	if f == nil || f.packed == nil {
		return expr.Failed(fail(op, buffer.ErrNil, "nothing was factorised"))
	}
	return f.packed.core().operand(op)
}

// shown builds an expression of the packed factors, in the type of the matrix.
func shown[T Elem](op string, f *factors, args []*node, build func(s *shaping, packed *node) *node) *Expr[T] {
	packed := f.leaf(op)
	if packed.Err != nil {
		return &Expr[T]{packed}
	}
	for _, a := range args {
		if a.Err != nil {
			return &Expr[T]{a}
		}
	}
	s := &shaping{op: op, t: f.t, args: append([]*node{expr.Number(f.t, 1, 1, 0)}, args...)}
	n := build(s, packed)
	if s.err != nil {
		return &Expr[T]{expr.Failed(s.err)}
	}
	return &Expr[T]{s.finish(n)}
}

// condition estimates the condition number of n x n by Hager's method (Higham, Accuracy and Stability of Numerical Algorithms, algorithm
// 15.1). solve multiplies a column by the inverse, or by its transpose.
func (f *factors) condition(ctx context.Context, op string, n int, solve func(trans bool, b Operand[float32]) *Expr[float32]) (float64, error) {
	if f.cond != 0 || n == 0 {
		return f.cond, nil
	}
	dev := f.packed.Device()
	x := &Dense[float32]{}
	defer func() { _ = x.Close() }() // what is queued still uses it
	if err := x.AssignContext(ctx, Fill(n, 1, 1/float32(n)).On(dev)); err != nil {
		return 0, named(op, err)
	}
	norm := 0.0
	for range 5 {
		y := solve(false, x)
		z := solve(true, Sub[float32](Scale(2, GreaterEqual[float32](y, Fill[float32](1, 1, 0))), Fill[float32](1, 1, 1)))
		found, err := HStack[float32](Norm1[float32](y), MaxAll[float32](Abs[float32](z)), Sum[float32](MulElem[float32](z, x)),
			Convert[float32](ArgMax[float32](Abs[float32](z)))).read(ctx, op)
		if err != nil {
			return 0, named(op, err)
		}
		if found[0] != found[0] { // the inverse is beyond float32
			norm = math.Inf(1)
		}
		if !(float64(found[0]) > norm) {
			break
		}
		norm = float64(found[0])
		if found[1] <= found[2] {
			break
		}
		if err = x.AssignContext(ctx, Convert[float32](Equal[int32](RowIndex(n, 1), Fill(1, 1, int32(found[3])))).On(dev)); err != nil {
			return 0, named(op, err)
		}
	}
	f.cond = norm * f.norm
	return f.cond, nil
}

// solveTo stores a solution. condition is called before anything is stored.
func solveTo[T Elem](ctx context.Context, op string, f *factors, dst *Dense[T], x *Expr[T], condition func() (float64, error)) error {
	if _, err := dst.usable(op); err != nil {
		return err
	}
	if err := x.Err(); err != nil {
		return err
	}
	cond, err := condition()
	switch {
	case err != nil:
		return err
	case math.IsInf(cond, 1), math.IsNaN(cond):
		return notSolved(op, fault.Shape{f.rows, f.cols}, ErrSingular)
	}
	if err := dst.AssignContext(ctx, x); err != nil {
		return named(op, err)
	}
	if cond > ConditionTolerance {
		return Condition(cond)
	}
	return nil
}

// LU is P * a = L * U with partial pivoting, in gonum's grammar, of float32 or [Half] elements; [gpu.ErrUnsupported] for others. It
// computes in float32. The zero value has no factors; [LU.Factorize] computes them, and
// Close frees them. Expressions such as [LU.L] read the factors where they are: they end, with [gpu.ErrClosed], when the LU is closed or
// factorises another matrix. An LU must not be used by several goroutines while one of them factorises or closes it.
type LU[T Elem] struct{ factors }

// Close frees the factors. It is no error if there are none.
func (f *LU[T]) Close() error { return f.all().close() }

// all returns the factors, nil of a nil object.
func (f *LU[T]) all() *factors {
	if f == nil {
		return nil
	}
	return &f.factors
}

// Factorize computes the factors of a square matrix and waits for them. Those of a singular matrix are no error: its determinant is
// 0, and [LU.SolveTo] says [ErrSingular]. If it fails, the former factors stay.
func (f *LU[T]) Factorize(ctx context.Context, a Operand[T]) error {
	const op = "LU"
	if f == nil {
		return fail(op, buffer.ErrNil)
	}
	n := from(op, a)
	if n.Err == nil && n.Rows != n.Cols {
		return expr.NotSquareError(op, n.Shape())
	}
	found, err := f.decompose(ctx, op, expr.RoutineLU, n, func(packed Operand[float32]) *Expr[float32] {
		diagonal := Diagonal(packed, 0)
		zeros := Sub[float32](Fill[float32](1, 1, float32(n.Cols)), Convert[float32](CountNonzero[float32](diagonal)))
		norm := Fill[float32](1, 1, 0)
		if n.Rows > 0 {
			norm = meanNorm(Convert[float32](a), n.Rows)
		}
		return HStack[float32](zeros, norm).On(n.Dev)
	})
	if err != nil {
		return err
	}
	if f.norm = float64(found[1]) * float64(n.Rows); found[0] > 0 && !math.IsNaN(f.norm) {
		f.cond = math.Inf(1)
	}
	return nil
}

// meanNorm is the norm 1 of a matrix divided by its rows, as sums of large elements would be infinite.
func meanNorm(a Operand[float32], rows int) *Expr[float32] {
	return MaxAll[float32](SumCols[float32](Scale(1/float32(rows), Abs(a))))
}

// L is the unit lower triangular factor.
func (f *LU[T]) L() *Expr[T] {
	return shown[T]("L", f.all(), nil, func(s *shaping, lu *node) *node { return s.lower(lu, lu.Rows, lu.Rows) })
}

// U is the upper triangular factor.
func (f *LU[T]) U() *Expr[T] {
	return shown[T]("U", f.all(), nil, func(s *shaping, lu *node) *node { return s.upper(s.part(lu, 0, lu.Rows, lu.Rows)) })
}

// Permute is b with its rows exchanged as those of the matrix were, or with trans back: P * b, or the transpose of P times b.
func (f *LU[T]) Permute(trans bool, b Operand[T]) *Expr[T] {
	return shown[T]("Permute", f.all(), []*node{from("Permute", b)}, func(s *shaping, lu *node) *node {
		return s.routine(expr.RoutinePermute, expr.Form{Turned: trans}, 1, lu, s.float32(1))
	})
}

// Solve is the solution of a * x = b, or with trans of the transpose of a times x = b, where a is what was factorised. Of a singular
// matrix it has infinities or NaN.
func (f *LU[T]) Solve(trans bool, b Operand[T]) *Expr[T] { return f.solve("Solve", trans, b) }

func (f *LU[T]) solve(op string, trans bool, b Operand[T]) *Expr[T] {
	return shown[T](op, f.all(), []*node{from(op, b)}, func(s *shaping, lu *node) *node {
		return s.routine(expr.RoutineLUSolve, expr.Form{Turned: trans}, 1, lu, s.float32(1))
	})
}

// SolveTo stores [LU.Solve] in dst and waits for the condition number, once. A singular matrix, and one of which an element is not
// finite, is [ErrSingular] and leaves dst as it was; a solution of a nearly singular one is stored and comes with a [Condition]. dst may be b.
func (f *LU[T]) SolveTo(ctx context.Context, dst *Dense[T], trans bool, b Operand[T]) error {
	const op = "SolveTo"
	return solveTo(ctx, op, f.all(), dst, f.solve(op, trans, b), func() (float64, error) { return f.estimate(ctx, op) })
}

// Cond estimates the condition number of the matrix in the norm 1: infinity of a singular one, NaN of one that has NaN. It waits.
func (f *LU[T]) Cond(ctx context.Context) (float64, error) { return f.estimate(ctx, "Cond") }

func (f *LU[T]) estimate(ctx context.Context, op string) (float64, error) {
	lu := f.all().leaf(op)
	if lu.Err != nil {
		return 0, lu.Err
	}
	return f.condition(ctx, op, f.rows, func(trans bool, b Operand[float32]) *Expr[float32] {
		return &Expr[float32]{expr.NewFactor(op, expr.RoutineLUSolve, expr.Form{Turned: trans}, 1, lu, from(op, b))}
	})
}

// LogDet returns the logarithm of the absolute value of the determinant, and its sign: of a singular matrix negative infinity and
// 0. It waits.
func (f *LU[T]) LogDet(ctx context.Context) (det, sign float64, err error) {
	return f.logDet(ctx, "LogDet")
}

func (f *LU[T]) logDet(ctx context.Context, op string) (det, sign float64, err error) {
	lu := f.all().leaf(op)
	if lu.Err != nil {
		return 0, 0, lu.Err
	}
	if f.rows == 0 {
		return 0, 1, nil
	}
	n := f.rows
	last := (&shaping{op: op}).part(lu, n, n, 1)
	both, err := HStack[float32](Diagonal[float32](&Expr[float32]{lu}, 0), Transpose[float32](&Expr[float32]{last})).read(ctx, op)
	if err != nil {
		return 0, 0, err
	}
	sign = 1
	for i := range n {
		u := float64(both[i])
		if both[n+i] != float32(i) {
			sign = -sign
		}
		det += math.Log(math.Abs(u))
		switch {
		case u == 0:
			sign = 0
		case u < 0:
			sign = -sign
		}
	}
	return det, sign, nil
}

// Det returns the determinant, which may overflow. It waits.
func (f *LU[T]) Det(ctx context.Context) (float64, error) {
	det, sign, err := f.logDet(ctx, "Det")
	if sign == 0 {
		return 0, err
	}
	return sign * math.Exp(det), err
}
