// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"context"
	"math"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// CGOptions are what [ConjugateGradients] may be told. The zero value is what most want.
type CGOptions[T Elem] struct {
	// Tolerance is the norm of the residual, relative to that of b, at which the solution is good enough; 1e-5 where it is 0. It is finite.
	Tolerance float64
	// MaxIterations is how many iterations are made at most; twice as many as there are rows where it is 0.
	MaxIterations int
	// Every is after how many iterations the residual is looked at, which waits for the device; 8 where it is 0.
	Every int
	// Precondition stores an approximation of the inverse times r in z. It may be nil.
	Precondition func(z, r *Dense[T]) error
}

// CGResult is how far [ConjugateGradients] came.
type CGResult struct {
	Iterations int
	Residual   float64 // its norm, relative to that of b
}

// ConjugateGradients solves a * x = b for a symmetric positive definite a of which only products are needed: multiply stores a * p in
// y. It may multiply by a dense matrix, a sparse one or an expression. x and b are columns of as many rows; x is where the search
// begins, and where it ends.
//
//	result, err := matrix.ConjugateGradients(ctx, x, b, func(y, p *matrix.Dense[float32]) error { return y.Mul(a, p) })
//
// It stops at the tolerance. After the most iterations, and where x, b or products have NaN, it is [ErrConvergence], and [ErrNotPosDef]
// where a product shows that a is not positive definite; x is the last approximation then. Errors of multiply and of the context end it.
// The method is that of Hestenes and Stiefel (1952), with a preconditioner; all numbers stay on the device but for the residual.
func ConjugateGradients[T Elem](ctx context.Context, x *Dense[T], b Operand[T], multiply func(y, p *Dense[T]) error, options ...CGOptions[T]) (CGResult, error) {
	const op = "ConjugateGradients"
	o, err := chosen(op, options)
	if err != nil {
		return CGResult{}, err
	}
	if _, err := x.usable(op); err != nil {
		return CGResult{}, err
	}
	right := from(op, b)
	rows, cols := x.Dims()
	switch {
	case multiply == nil:
		return CGResult{}, fail(op, buffer.ErrNil, "nothing to multiply by")
	case right.Err != nil:
		return CGResult{}, right.Err
	case cols != 1 || right.Rows != rows || right.Cols != 1:
		return CGResult{}, expr.ShapeError(op, "each needs to be a column of "+itoa(rows), x.core().Shape(), right.Shape())
	case rows == 0:
		return CGResult{}, nil
	}
	o.Tolerance, o.MaxIterations, o.Every = cmp.Or(o.Tolerance, 1e-5), cmp.Or(o.MaxIterations, 2*rows), cmp.Or(o.Every, 8)
	s := &search[T]{CGOptions: o, ctx: ctx, op: op, x: x, multiply: multiply}
	defer s.close()
	result, err := s.run(b)
	return result, named(op, err)
}

// chosen are the options of a call.
func chosen[T Elem](op string, options []CGOptions[T]) (o CGOptions[T], err error) {
	if len(options) > 0 {
		o = options[0]
	}
	switch {
	case len(options) > 1:
		err = fail(op, gpu.ErrInvalid, itoa(len(options)), " options")
	case !(o.Tolerance >= 0) || math.IsInf(o.Tolerance, 1):
		err = fail(op, gpu.ErrInvalid, "Tolerance ", text(o.Tolerance))
	case o.MaxIterations < 0:
		err = fail(op, gpu.ErrInvalid, "MaxIterations ", itoa(o.MaxIterations))
	case o.Every < 0:
		err = fail(op, gpu.ErrInvalid, "Every ", itoa(o.Every))
	}
	return o, err
}

// search is the state of conjugate gradients: the residual r, the preconditioned one z, the direction p, its product q, and numbers
// as 1x1 matrices.
type search[T Elem] struct {
	CGOptions[T]
	ctx                  context.Context //nolint:containedctx // ends with the search
	op                   string
	x, r, z, p, q        *Dense[T]
	rho, next, curvature *Dense[T]
	multiply             func(y, p *Dense[T]) error
	made                 []*Dense[T]
}

func (s *search[T]) close() {
	for _, m := range s.made {
		_ = m.Close() // what is queued still uses them
	}
}

// vector makes a matrix of an expression.
func (s *search[T]) vector(e Operand[T]) (*Dense[T], error) {
	m := &Dense[T]{}
	err := m.AssignContext(s.ctx, e)
	s.made = append(s.made, m)
	return m, err
}

// dot is the product of two columns.
func dot[T Elem](a, b *Dense[T]) *Expr[T] { return Sum[T](MulElem[T](a, b)) }

// start computes the first residual and direction.
func (s *search[T]) start(b Operand[T]) (err error) {
	rows, _ := s.x.Dims()
	on := func(rows int) (*Dense[T], error) {
		return s.vector((&Expr[T]{expr.Number(s.x.DType(), rows, 1, 0)}).On(s.x.Device()))
	}
	for _, m := range []**Dense[T]{&s.q, &s.z} {
		if *m, err = on(rows); err != nil {
			return err
		}
	}
	for _, m := range []**Dense[T]{&s.rho, &s.next, &s.curvature} {
		if *m, err = on(1); err != nil {
			return err
		}
	}
	if err = s.multiply(s.q, s.x); err != nil {
		return err
	}
	if s.r, err = s.vector(Sub[T](b, s.q)); err != nil {
		return err
	}
	if err = s.preconditioned(); err != nil {
		return err
	}
	if s.p, err = s.vector(s.z); err != nil {
		return err
	}
	return s.rho.AssignContext(s.ctx, dot(s.r, s.z))
}

func (s *search[T]) preconditioned() error {
	if s.Precondition == nil {
		s.z = s.r
		return nil
	}
	return s.Precondition(s.z, s.r)
}

// step is one iteration.
func (s *search[T]) step() error {
	if err := s.multiply(s.q, s.p); err != nil {
		return err
	}
	if err := s.curvature.AssignContext(s.ctx, dot(s.p, s.q)); err != nil {
		return err
	}
	zero := &Expr[T]{expr.Number(s.x.DType(), 1, 1, 0)}
	alpha := Where[T](Greater[T](s.curvature, zero), DivElem[T](s.rho, s.curvature), zero) // a solution that is exact stays
	if err := s.x.AssignContext(s.ctx, Add[T](s.x, MulElem[T](alpha, s.p))); err != nil {
		return err
	}
	if err := s.r.AssignContext(s.ctx, Sub[T](s.r, MulElem[T](alpha, s.q))); err != nil {
		return err
	}
	if err := s.preconditioned(); err != nil {
		return err
	}
	if err := s.next.AssignContext(s.ctx, dot(s.r, s.z)); err != nil {
		return err
	}
	beta := Where[T](Greater[T](s.rho, zero), DivElem[T](s.next, s.rho), zero)
	if err := s.p.AssignContext(s.ctx, Add[T](s.z, MulElem[T](beta, s.p))); err != nil {
		return err
	}
	return s.rho.AssignContext(s.ctx, s.next)
}

func (s *search[T]) run(b Operand[T]) (result CGResult, err error) {
	if err = s.start(b); err != nil {
		return result, err
	}
	whole, err := Convert[float32](Norm2(b)).On(s.x.Device()).Value(s.ctx)
	if err != nil {
		return result, err
	}
	for ; ; result.Iterations++ {
		last := result.Iterations >= s.MaxIterations
		if last || result.Iterations%s.Every == 0 {
			found, err := HStack[float32](Norm2[float32](Convert[float32](s.r)), Convert[float32](s.curvature)).read(s.ctx, s.op)
			if err != nil {
				return result, err
			}
			length, bend := float64(found[0]), float64(found[1])
			switch result.Residual = length / cmp.Or(float64(whole), 1); {
			case result.Residual <= s.Tolerance:
				return result, nil
			case result.Iterations > 0 && bend <= 0:
				return result, fail(s.op, ErrNotPosDef)
			case last, math.IsNaN(result.Residual), math.IsNaN(bend):
				return result, fail(s.op, ErrConvergence, itoa(result.Iterations), " iterations, residual ", text(result.Residual))
			}
		}
		if err := s.step(); err != nil {
			return result, err
		}
	}
}
