// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Cholesky is a = L * T(L) of a symmetric positive definite matrix, in gonum's grammar; see [LU] for what holds of all decompositions.
type Cholesky[T Elem] struct{ factors }

// Close frees the factors. It is no error if there are none.
func (f *Cholesky[T]) Close() error { return f.all().close() }

// all returns the factors, nil of a nil object.
func (f *Cholesky[T]) all() *factors {
	if f == nil {
		return nil
	}
	return &f.factors
}

// Factorize computes the factor of a square matrix, whose lower triangle is read, and waits for it. A matrix that is not positive
// definite is [ErrNotPosDef]; the former factor stays then.
func (f *Cholesky[T]) Factorize(ctx context.Context, a Operand[T]) error {
	const op = "Cholesky"
	if f == nil {
		return fail(op, buffer.ErrNil)
	}
	n := from(op, a)
	next := factors{}
	found, err := next.decompose(ctx, op, expr.RoutineCholesky, n, func(packed Operand[float32]) *Expr[float32] {
		if n.Rows == 0 {
			return Fill[float32](1, 2, 1).On(n.Dev)
		}
		definite := MinAll[float32](Greater[float32](Diagonal(packed, 0), Fill[float32](1, 1, 0)))
		low := Tril[float32](Abs[float32](Convert[float32](a)), 0)
		sums := Add[float32](SumCols[float32](low), Transpose[float32](SumRows[float32](Tril[float32](low, -1))))
		return HStack[float32](definite, MaxAll[float32](sums))
	})
	switch {
	case err != nil:
		return err
	case found[0] != 1:
		return firstError(notSolved(op, n.Shape(), ErrNotPosDef), next.close())
	}
	err = f.close()
	f.factors = next
	f.norm = float64(found[1])
	return err
}

// L is the lower triangular factor.
func (f *Cholesky[T]) L() *Expr[T] {
	return shown[T]("L", f.all(), nil, func(_ *shaping, l *node) *node { return l })
}

// Solve is the solution of a * x = b, where a is what was factorised.
func (f *Cholesky[T]) Solve(b Operand[T]) *Expr[T] { return f.solve("Solve", b) }

func (f *Cholesky[T]) solve(op string, b Operand[T]) *Expr[T] {
	return shown[T](op, f.all(), []*node{from(op, b)}, func(s *shaping, l *node) *node { return s.solvedTwice(l, s.float32(1)) })
}

// solvedTwice solves with a lower triangle and with its transpose.
func (s *shaping) solvedTwice(l, b *node) *node {
	y := s.routine(expr.RoutineTriangle, expr.Form{}, 1, l, b)
	return s.routine(expr.RoutineTriangle, expr.Form{Turned: true}, 1, l, y)
}

// SolveTo stores [Cholesky.Solve] in dst and waits for the condition number, once; see [LU.SolveTo].
func (f *Cholesky[T]) SolveTo(ctx context.Context, dst *Dense[T], b Operand[T]) error {
	const op = "SolveTo"
	return solveTo(ctx, op, f.all(), dst, f.solve(op, b), func() (float64, error) { return f.estimate(ctx, op) })
}

// Cond estimates the condition number of the matrix in the norm 1. It waits.
func (f *Cholesky[T]) Cond(ctx context.Context) (float64, error) { return f.estimate(ctx, "Cond") }

func (f *Cholesky[T]) estimate(ctx context.Context, op string) (float64, error) {
	l := f.all().leaf(op)
	if l.Err != nil {
		return 0, l.Err
	}
	return f.condition(ctx, op, f.rows, func(_ bool, b Operand[float32]) *Expr[float32] {
		return &Expr[float32]{(&shaping{op: op}).solvedTwice(l, from(op, b))}
	})
}

// LogDet returns the logarithm of the determinant. It waits.
func (f *Cholesky[T]) LogDet(ctx context.Context) (float64, error) {
	const op = "LogDet"
	l := f.all().leaf(op)
	if l.Err != nil {
		return 0, l.Err
	}
	diagonal, err := Diagonal[float32](&Expr[float32]{l}, 0).read(ctx, op)
	det := 0.0
	for _, v := range diagonal {
		det += 2 * math.Log(float64(v))
	}
	return det, err
}

// QR is a = Q * R by Householder reflections, in gonum's grammar; see [LU] for what holds of all decompositions.
type QR[T Elem] struct{ factors } // the norm is that of R

// Close frees the factors. It is no error if there are none.
func (f *QR[T]) Close() error { return f.all().close() }

// all returns the factors, nil of a nil object.
func (f *QR[T]) all() *factors {
	if f == nil {
		return nil
	}
	return &f.factors
}

// Factorize computes the factors of a matrix and waits for them.
func (f *QR[T]) Factorize(ctx context.Context, a Operand[T]) error {
	const op = "QR"
	if f == nil {
		return fail(op, buffer.ErrNil)
	}
	n := from(op, a)
	found, err := f.decompose(ctx, op, expr.RoutineQR, n, func(packed Operand[float32]) *Expr[float32] {
		norm := Fill[float32](1, 1, 0)
		if n.Rows*n.Cols > 0 {
			norm = meanNorm(Triu(packed, 0), n.Rows)
		}
		zeros := Sub[float32](Fill[float32](1, 1, float32(min(n.Rows, n.Cols))), Convert[float32](CountNonzero[float32](Diagonal(packed, 0))))
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

// Q is the factor with orthonormal columns, as many as the smaller dimension of the matrix.
func (f *QR[T]) Q() *Expr[T] {
	return shown[T]("Q", f.all(), nil, func(s *shaping, qr *node) *node { return s.orthogonal(qr, qr.Rows, qr.Cols) })
}

// R is the upper triangular factor.
func (f *QR[T]) R() *Expr[T] {
	return shown[T]("R", f.all(), nil, func(s *shaping, qr *node) *node { return s.upper(qr) })
}

// Solve is the least squares solution of a * x = b, where a is what was factorised and has at least as many rows as columns; with
// trans the smallest solution of the transpose of a times x = b. [buffer.ErrShape] where it has fewer rows.
func (f *QR[T]) Solve(trans bool, b Operand[T]) *Expr[T] { return f.solve("Solve", trans, b) }

func (f *QR[T]) solve(op string, trans bool, b Operand[T]) *Expr[T] {
	right := from(op, b)
	return shown[T](op, f.all(), []*node{right}, func(s *shaping, qr *node) *node {
		switch {
		case qr.Rows < qr.Cols:
			return expr.Misfit(op, "at least as many rows as columns are needed", qr, right)
		case trans && right.Rows != qr.Cols:
			return expr.Misfit(op, expr.FitsSides(qr.Cols), qr, right)
		case trans:
			return s.smallest(qr, s.float32(1))
		}
		return s.fitted(qr, s.float32(1))
	})
}

// SolveTo stores [QR.Solve] in dst and waits for the condition number, once; see [LU.SolveTo].
func (f *QR[T]) SolveTo(ctx context.Context, dst *Dense[T], trans bool, b Operand[T]) error {
	const op = "SolveTo"
	return solveTo(ctx, op, f.all(), dst, f.solve(op, trans, b), func() (float64, error) { return f.estimate(ctx, op) })
}

// Cond estimates the condition number of R in the norm 1: infinity of a matrix whose columns depend on each other, NaN of one that has NaN,
// and [buffer.ErrShape] of one with fewer rows than columns. It waits.
func (f *QR[T]) Cond(ctx context.Context) (float64, error) { return f.estimate(ctx, "Cond") }

func (f *QR[T]) estimate(ctx context.Context, op string) (float64, error) {
	qr := f.all().leaf(op)
	switch {
	case qr.Err != nil:
		return 0, qr.Err
	case qr.Rows < qr.Cols:
		return 0, expr.ShapeError(op, "at least as many rows as columns are needed", qr.Shape())
	}
	s := &shaping{op: op}
	r := s.part(qr, 0, qr.Cols, qr.Cols)
	return f.condition(ctx, op, qr.Cols, func(trans bool, b Operand[float32]) *Expr[float32] {
		return &Expr[float32]{s.routine(expr.RoutineTriangle, expr.Form{Upper: true, Turned: trans}, 1, r, from(op, b))}
	})
}

// EigenSym is the eigenvalues and vectors of a symmetric matrix, in gonum's grammar; see [LU] for what holds of all decompositions.
type EigenSym[T Elem] struct {
	factors
	values []float64
}

// Close frees the factors. It is no error if there are none.
func (f *EigenSym[T]) Close() error { return f.all().close() }

// all returns the factors, nil of a nil object.
func (f *EigenSym[T]) all() *factors {
	if f == nil {
		return nil
	}
	return &f.factors
}

// Factorize computes the eigenvalues and vectors of a square matrix, whose lower triangle is read, and waits for them. If it fails, the
// former ones stay; NaN and infinities among the elements are [ErrConvergence].
func (f *EigenSym[T]) Factorize(ctx context.Context, a Operand[T]) error {
	const op = "EigenSym"
	if f == nil {
		return fail(op, buffer.ErrNil)
	}
	found, err := f.rotate(ctx, op, expr.RoutineEigen, from(op, a))
	if err == nil {
		f.values = widened(found)
	}
	return err
}

// rotate computes eigenvalues or singular values, which replace the former ones. Elements that are not finite are [ErrConvergence].
func (f *factors) rotate(ctx context.Context, op string, r expr.Routine, a *node) ([]float32, error) {
	next := factors{}
	found, err := next.decompose(ctx, op, r, a, valuesOf)
	if err == nil && !finite(found) {
		err = &gpu.OpError{Op: "matrix: " + op, Shapes: []fault.Shape{a.Shape()}, Err: ErrConvergence, Detail: "elements that are not finite"}
	}
	if err != nil {
		return nil, firstError(err, next.close())
	}
	err = f.close()
	*f = next
	return found, err
}

// valuesOf returns the eigenvalues or singular values that are packed with their vectors.
func valuesOf(packed Operand[float32]) *Expr[float32] {
	const op = "Values"
	return &Expr[float32]{(&shaping{op: op}).values(from(op, packed))}
}

func widened(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}

// Values returns the eigenvalues in ascending order.
func (f *EigenSym[T]) Values() []float64 {
	if f == nil {
		return nil
	}
	return append([]float64(nil), f.values...)
}

// Vectors has the eigenvectors in its columns, in the order of the values.
func (f *EigenSym[T]) Vectors() *Expr[T] {
	return shown[T]("Vectors", f.all(), nil, func(s *shaping, e *node) *node { return s.eigenColumns(e) })
}

// SVD is the singular value decomposition a = U * diag(s) * T(V), in gonum's grammar; see [LU] for what holds of all decompositions.
type SVD[T Elem] struct {
	factors
	values []float64
}

// Close frees the factors. It is no error if there are none.
func (f *SVD[T]) Close() error { return f.all().close() }

// all returns the factors, nil of a nil object.
func (f *SVD[T]) all() *factors {
	if f == nil {
		return nil
	}
	return &f.factors
}

// Factorize computes the singular values and vectors of a matrix and waits for them. If it fails, the former ones stay; NaN and infinities
// among the elements are [ErrConvergence].
func (f *SVD[T]) Factorize(ctx context.Context, a Operand[T]) error {
	const op = "SVD"
	if f == nil {
		return fail(op, buffer.ErrNil)
	}
	n := from(op, a)
	rows, cols := n.Rows, n.Cols
	if n.Err == nil && rows < cols {
		n = expr.NewTranspose(op, n)
	}
	found, err := f.rotate(ctx, op, expr.RoutineSVD, n)
	if err == nil {
		f.rows, f.cols, f.values = rows, cols, widened(found)
	}
	return err
}

// Values returns the singular values in descending order.
func (f *SVD[T]) Values() []float64 {
	if f == nil {
		return nil
	}
	return append([]float64(nil), f.values...)
}

// U has the left singular vectors in its columns, as many as singular values.
func (f *SVD[T]) U() *Expr[T] {
	return shown[T]("U", f.all(), nil, func(s *shaping, p *node) *node { return s.vectors(p, f.rows, f.rows < f.cols, false) })
}

// V has the right singular vectors in its columns, as many as singular values.
func (f *SVD[T]) V() *Expr[T] {
	return shown[T]("V", f.all(), nil, func(s *shaping, p *node) *node { return s.vectors(p, f.cols, f.rows < f.cols, true) })
}

// Rank returns the number of singular values above a tolerance times the largest. A tolerance of 0 is the larger dimension times
// 2^-23; one that is negative or NaN is [gpu.ErrInvalid].
func (f *SVD[T]) Rank(tolerance float64) (rank int, err error) {
	const op = "Rank"
	if n := f.all().leaf(op); n.Err != nil {
		return 0, n.Err
	}
	if !(tolerance >= 0) {
		return 0, fail(op, gpu.ErrInvalid, "a tolerance of ", text(tolerance))
	}
	if tolerance == 0 {
		tolerance = float64(max(f.rows, f.cols)) / (1 << 23)
	}
	for _, v := range f.values {
		if v > tolerance*f.values[0] {
			rank++
		}
	}
	return rank, nil
}

// Cond returns the largest singular value divided by the smallest: infinity for a singular matrix, 0 for one without elements.
func (f *SVD[T]) Cond() float64 {
	if f == nil || len(f.values) == 0 {
		return 0
	}
	smallest := f.values[len(f.values)-1]
	if smallest == 0 {
		return math.Inf(1)
	}
	return f.values[0] / smallest
}
