// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Decompositions as expressions: a routine of the planner packs the factors of a matrix into one, of which these show parts.

// float32 is an operand in the type that decompositions compute in. All operands have one type, as elsewhere.
func (s *shaping) float32(at int) *node {
	a := s.args[at]
	switch t := s.args[0].Type; {
	case a.Type == fuse.C64:
		return expr.Failed(expr.Undefined(s.op, fuse.C64, expr.Floats))
	case a.Type != t:
		return expr.Mixed(s.op, t, a.Type)
	}
	return expr.NewConversion(s.op, fuse.F32, a)
}

// finish is a result in the operands' type.
func (s *shaping) finish(x *node) *node {
	if t := s.args[0].Type; !expr.Floats(t) {
		s.undefined(t)
	}
	if s.err != nil {
		return expr.Failed(s.err)
	}
	if x.Err != nil {
		return x
	}
	return expr.NewConversion(s.op, s.args[0].Type, x)
}

// undefined notes a type that is not taken.
func (s *shaping) undefined(t fuse.Type) {
	takes := expr.Floats
	if s.complexToo {
		takes = expr.FloatsOrComplex
	}
	if s.err == nil {
		s.err = expr.Undefined(s.op, t, takes)
	}
}

func (s *shaping) routine(r expr.Routine, form expr.Form, count int, args ...*node) *node {
	return expr.NewFactor(s.op, r, form, count, args...)
}

// part is rows x cols elements of x, from column j on.
func (s *shaping) part(x *node, j, rows, cols int) *node {
	if x.Err != nil {
		return x
	}
	r, c := s.at(rows, cols)
	return s.elements(x, r, s.from(c, j))
}

// float is a number of the type that decompositions compute in.
func (s *shaping) float(v float64) *node { return expr.Number(fuse.F32, 1, 1, v) }

func (s *shaping) fold(r fuse.Reduction, a *node) *node {
	return expr.NewReduction(s.op, r, fuse.AxisAll, 0, a)
}

// square checks that the first operand is square.
func (s *shaping) square() bool {
	if a := s.args[0]; a.Rows != a.Cols && s.err == nil {
		s.err = expr.NotSquareError(s.op, a.Shape())
	}
	return s.err == nil
}

// solve packs the factors of a first: its right sides are solved for by substitution.
func (s *shaping) solve() *node {
	if !s.square() {
		return nil
	}
	if s.isComplex() {
		return s.complexSolved(s.args[0], s.args[1])
	}
	s.complexToo = true
	return s.finish(s.solved(s.float32(0), s.float32(1)))
}

func (s *shaping) solved(a, b *node) *node {
	if b.Err == nil && a.Err == nil && a.Rows != b.Rows {
		return s.misfit(expr.FitsSides(a.Rows), a, b)
	}
	lu := s.routine(expr.RoutineLU, expr.Form{}, 1, a)
	return s.routine(expr.RoutineLUSolve, expr.Form{}, 1, lu, b)
}

func (s *shaping) inverse() *node {
	if !s.square() {
		return nil
	}
	i, j := s.at(s.args[0].Rows, s.args[0].Rows)
	identity := expr.NewConversion(s.op, fuse.F32, s.apply(fuse.OpEq, i, j))
	if s.isComplex() {
		return s.complexSolved(s.args[0], identity)
	}
	s.complexToo = true
	return s.finish(s.solved(s.float32(0), identity))
}

// pivots are the diagonal of U, and whether each row was exchanged: the sign of the determinant.
func (s *shaping) pivots() (diagonal, sign *node) {
	if !s.square() {
		return expr.Failed(s.err), expr.Failed(s.err)
	}
	n := s.args[0].Rows
	lu := s.routine(expr.RoutineLU, expr.Form{}, 1, s.float32(0))
	if lu.Err != nil {
		return lu, lu
	}
	_, j := s.at(1, n)
	diagonal = s.elements(lu, j, j)
	moved := s.apply(fuse.OpNe, expr.NewTranspose(s.op, s.part(lu, n, n, 1)), expr.NewConversion(s.op, fuse.F32, j))
	return diagonal, s.fold(fuse.ReduceProd, s.apply(fuse.OpSub, s.float(1), s.apply(fuse.OpMul, s.float(2), moved)))
}

func (s *shaping) det() *node {
	diagonal, sign := s.pivots()
	return s.finish(s.apply(fuse.OpMul, s.fold(fuse.ReduceProd, diagonal), sign))
}

func (s *shaping) logDet() *node {
	diagonal, _ := s.pivots()
	return s.finish(s.fold(fuse.ReduceSum, s.apply(fuse.OpLog, s.apply(fuse.OpAbs, diagonal))))
}

func (s *shaping) detSign() *node {
	diagonal, sign := s.pivots()
	return s.finish(s.apply(fuse.OpMul, s.fold(fuse.ReduceProd, s.apply(fuse.OpSign, diagonal)), sign))
}

func (s *shaping) lowerLU() *node {
	a := s.args[0]
	return s.finish(s.lower(s.routine(expr.RoutineLU, expr.Form{}, 1, s.float32(0)), a.Rows, min(a.Rows, a.Cols)))
}

// lower is the unit lower triangle of a packed LU.
func (s *shaping) lower(lu *node, rows, cols int) *node {
	if lu.Err != nil {
		return lu
	}
	i, j := s.at(rows, cols)
	below := s.where(s.apply(fuse.OpGt, i, j), s.elements(lu, i, j), s.float(0))
	return s.where(s.apply(fuse.OpEq, i, j), s.float(1), below)
}

func (s *shaping) upperLU() *node {
	a := s.args[0]
	lu := s.routine(expr.RoutineLU, expr.Form{}, 1, s.float32(0))
	i, j := s.at(min(a.Rows, a.Cols), a.Cols)
	return s.finish(s.where(s.apply(fuse.OpLe, i, j), s.elements(lu, i, j), s.float(0)))
}

// permutedLU exchanges the rows as the elimination did.
func (s *shaping) permutedLU() *node {
	lu := s.routine(expr.RoutineLU, expr.Form{}, 1, s.float32(0))
	return s.finish(s.routine(expr.RoutinePermute, expr.Form{}, 1, lu, s.float32(0)))
}

func (s *shaping) choleskyFactor() *node {
	return s.finish(s.routine(expr.RoutineCholesky, expr.Form{}, 1, s.float32(0)))
}

func (s *shaping) solveLower() *node {
	return s.finish(s.routine(expr.RoutineTriangle, expr.Form{}, 1, s.float32(0), s.float32(1)))
}

func (s *shaping) solveUpper() *node {
	return s.finish(s.routine(expr.RoutineTriangle, expr.Form{Upper: true}, 1, s.float32(0), s.float32(1)))
}

func (s *shaping) solveStack() *node {
	a := s.args[0]
	return s.finish(s.routine(expr.RoutineSolve, expr.Form{}, a.Rows/max(a.Cols, 1), s.float32(0), s.float32(1)))
}

func (s *shaping) qFactor() *node {
	a := s.args[0]
	return s.finish(s.orthogonal(s.routine(expr.RoutineQR, expr.Form{}, 1, s.float32(0)), a.Rows, a.Cols))
}

// orthogonal is the Q of a packed QR.
func (s *shaping) orthogonal(qr *node, rows, cols int) *node {
	i, j := s.at(rows, min(rows, cols))
	one := expr.NewConversion(s.op, fuse.F32, s.apply(fuse.OpEq, i, j))
	return s.routine(expr.RoutineQMul, expr.Form{}, 1, qr, one)
}

func (s *shaping) rFactor() *node {
	return s.finish(s.upper(s.routine(expr.RoutineQR, expr.Form{}, 1, s.float32(0))))
}

// upper is the upper triangle of a packed QR.
func (s *shaping) upper(qr *node) *node {
	if qr.Err != nil {
		return qr
	}
	i, j := s.at(min(qr.Rows, qr.Cols), qr.Cols)
	return s.where(s.apply(fuse.OpLe, i, j), s.elements(qr, i, j), s.float(0))
}

// leastSquares is R^-1 Q^T b, and of the transpose of a wide matrix Q R^-T b.
func (s *shaping) leastSquares() *node {
	a, b := s.float32(0), s.float32(1)
	if a.Err == nil && b.Err == nil && a.Rows != b.Rows {
		return s.misfit(expr.FitsSides(a.Rows), a, b)
	}
	if a.Rows < a.Cols {
		return s.finish(s.smallest(s.routine(expr.RoutineQR, expr.Form{}, 1, expr.NewTranspose(s.op, a)), b))
	}
	return s.finish(s.fitted(s.routine(expr.RoutineQR, expr.Form{}, 1, a), b))
}

// fitted solves the triangle of a packed QR for Q^T b.
func (s *shaping) fitted(qr, b *node) *node {
	y := s.routine(expr.RoutineQMul, expr.Form{Turned: true}, 1, qr, b)
	r := s.part(qr, 0, qr.Cols, qr.Cols)
	return systemOf(qr.Shape(), s.routine(expr.RoutineTriangle, expr.Form{Upper: true}, 1, r, s.part(y, 0, qr.Cols, b.Cols)))
}

// smallest is the smallest solution of the transpose of what a packed QR is of: Q R^-T b.
func (s *shaping) smallest(qr, b *node) *node {
	r := s.part(qr, 0, qr.Cols, qr.Cols)
	x := systemOf(fault.Shape{qr.Cols, qr.Rows}, s.routine(expr.RoutineTriangle, expr.Form{Upper: true, Turned: true}, 1, r, b))
	return s.routine(expr.RoutineQMul, expr.Form{}, 1, qr, s.part(x, 0, qr.Rows, b.Cols))
}

func (s *shaping) eigenvalues() *node {
	return s.finish(s.values(s.routine(expr.RoutineEigen, expr.Form{}, 1, s.float32(0))))
}

func (s *shaping) eigenvectors() *node {
	return s.finish(s.eigenColumns(s.routine(expr.RoutineEigen, expr.Form{}, 1, s.float32(0))))
}

// eigenColumns are the vectors of packed eigenvalues.
func (s *shaping) eigenColumns(e *node) *node {
	i, j := s.at(e.Rows, e.Rows)
	return s.elements(e, j, i)
}

// singular is the packed singular value decomposition, of the transpose if a is wide.
func (s *shaping) singular() (packed *node, turned bool) {
	a := s.float32(0)
	if turned = a.Rows < a.Cols; turned {
		a = expr.NewTranspose(s.op, a)
	}
	return s.routine(expr.RoutineSVD, expr.Form{}, 1, a), turned
}

// values are the last column of a packed decomposition, the eigenvalues or singular values, as a row.
func (s *shaping) values(packed *node) *node {
	if packed.Err != nil {
		return packed
	}
	return expr.NewTranspose(s.op, s.part(packed, packed.Cols-1, packed.Rows, 1))
}

func (s *shaping) singularValues() *node {
	packed, _ := s.singular()
	return s.finish(s.values(packed))
}

// vectors are the left or the right vectors as columns, of so many elements.
func (s *shaping) vectors(packed *node, rows int, turned, right bool) *node {
	if packed.Err != nil {
		return packed
	}
	first := 0
	if right != turned { // behind the others
		first = packed.Cols - 1 - rows
	}
	return expr.NewTranspose(s.op, s.part(packed, first, packed.Rows, rows))
}

func (s *shaping) leftVectors() *node {
	packed, turned := s.singular()
	return s.finish(s.vectors(packed, s.args[0].Rows, turned, false))
}

func (s *shaping) rightVectors() *node {
	packed, turned := s.singular()
	return s.finish(s.vectors(packed, s.args[0].Cols, turned, true))
}

// least is the singular value up to which they are taken for 0.
func (s *shaping) least(values *node) *node {
	a := s.args[0]
	tolerance := s.number(0, 0)
	if !(tolerance >= 0) || tolerance > math.MaxFloat32 {
		s.fail(gpu.ErrInvalid, "a tolerance of ", text(tolerance))
	}
	if tolerance == 0 {
		tolerance = float64(max(a.Rows, a.Cols)) / (1 << 23)
	}
	return s.apply(fuse.OpMul, s.part(values, 0, 1, 1), s.float(tolerance))
}

func (s *shaping) pseudoInverse() *node {
	packed, turned := s.singular()
	values := s.values(packed)
	if packed.Err != nil || packed.Rows == 0 {
		return s.finish(firstNode(packed, fillNode(s.args[0].Cols, s.args[0].Rows, s.float(0))))
	}
	inverse := s.apply(fuse.OpWhere, s.apply(fuse.OpLe, values, s.least(values)), s.float(0), s.apply(fuse.OpRecip, values))
	right := s.apply(fuse.OpMul, s.vectors(packed, s.args[0].Cols, turned, true), inverse)
	return s.finish(expr.NewProduct(s.op, right, expr.NewTranspose(s.op, s.vectors(packed, s.args[0].Rows, turned, false))))
}

// firstNode is the first node if it failed, and the second one else.
func firstNode(a, b *node) *node {
	if a.Err != nil {
		return a
	}
	return b
}

func (s *shaping) rank() *node {
	packed, _ := s.singular()
	if packed.Err != nil || packed.Rows == 0 {
		return s.finish(firstNode(packed, s.float(0)))
	}
	values := s.values(packed)
	return s.finish(s.fold(fuse.ReduceSum, s.apply(fuse.OpGt, values, s.least(values))))
}

func (s *shaping) cond() *node {
	packed, _ := s.singular()
	values := s.values(packed)
	if packed.Err != nil || packed.Rows == 0 {
		return s.finish(firstNode(packed, s.float(0)))
	}
	largest, smallest := s.part(values, 0, 1, 1), s.part(values, packed.Rows-1, 1, 1)
	singular := s.apply(fuse.OpEq, smallest, s.float(0))
	return s.finish(s.where(singular, s.float(math.Inf(1)), s.apply(fuse.OpDiv, largest, smallest)))
}

// matrixPower multiplies the squares that the bits of the exponent name.
func (s *shaping) matrixPower() *node {
	k := s.whole(0, 1)
	if !s.square() {
		return nil
	}
	a := s.args[0]
	switch {
	case k > math.MaxInt32 || k < -math.MaxInt32:
		s.fail(gpu.ErrLimit, "the power ", itoa(k))
		return nil
	case k < 0:
		if a, k = s.inverse(), -k; s.err != nil {
			return nil
		}
	case k == 0:
		i, j := s.at(a.Rows, a.Cols)
		return expr.NewConversion(s.op, a.Type, s.apply(fuse.OpEq, i, j))
	}
	var product *node
	for ; ; a = expr.NewProduct(s.op, a, a) {
		if k&1 == 1 && product == nil {
			product = a
		} else if k&1 == 1 {
			product = expr.NewProduct(s.op, product, a)
		}
		if k >>= 1; k == 0 {
			return product
		}
	}
}
