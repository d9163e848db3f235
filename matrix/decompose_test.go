// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestDecompositions uses the objects of decompositions as gonum's are used.
func TestDecompositions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, rng := t.Context(), newRand(51)
		const n = 37
		a, ref := sampled(t, dev, rng, 0, n, n)
		b, right := sampled(t, dev, rng, 1, n, 3)
		var lu matrix.LU[float32]
		check(t, lu.Factorize(ctx, a))
		residual(t, "P a = L U", product(wide(t, dev, "L", lu.L()), wide(t, dev, "U", lu.U())), wide(t, dev, "P a", lu.Permute(false, a)), mat.Norm(ref, 2), 2*n)
		residual(t, "P and back", wide(t, dev, "P", lu.Permute(true, lu.Permute(false, a))), ref, 1, 0)
		for _, trans := range []bool{false, true} {
			x := must[*matrix.Dense[float32]](t)(b.(*matrix.Dense[float32]).Clone())
			check(t, lu.SolveTo(ctx, x, trans, x))
			var left mat.Matrix = ref
			if trans {
				left = ref.T()
			}
			got := wide(t, dev, "x", x.Expr())
			residual(t, "solution", product(left, got), right, mat.Norm(ref, 2)*mat.Norm(got, 2), 2*n)
			check(t, x.Close())
		}
		want, sign := mat.LogDet(ref)
		if det, s, err := lu.LogDet(ctx); err != nil || s != sign || math.Abs(det-want) > 1e-4 {
			t.Errorf("determinant exp(%v) * %v, want exp(%v) * %v: %v", det, s, want, sign, err)
		}
		if cond, exact := must[float64](t)(lu.Cond(ctx)), mat.Cond(ref, 1); cond > 1.01*exact || cond < exact/3 {
			t.Errorf("condition %v, want %v", cond, exact)
		}
		check(t, lu.Close())

		d, definiteRef := definite(t, dev, rng, 0, n)
		var chol matrix.Cholesky[float32]
		check(t, chol.Factorize(ctx, d))
		x := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, n, 3))
		check(t, chol.SolveTo(ctx, x, b))
		got := wide(t, dev, "x", x.Expr())
		residual(t, "definite solution", product(definiteRef, got), right, mat.Norm(definiteRef, 2)*mat.Norm(got, 2), 2*n)
		if det := must[float64](t)(chol.LogDet(ctx)); math.Abs(det-logDet(definiteRef)) > 1e-3 {
			t.Errorf("determinant exp(%v), want exp(%v)", det, logDet(definiteRef))
		}
		check(t, chol.Close())

		tall, tallRef := sampled(t, dev, rng, 2, n, 9)
		var qr matrix.QR[float32]
		check(t, qr.Factorize(ctx, tall))
		residual(t, "Q R", product(wide(t, dev, "Q", qr.Q()), wide(t, dev, "R", qr.R())), tallRef, mat.Norm(tallRef, 2), 2*n)
		check(t, x.Resize(9, 3))
		check(t, qr.SolveTo(ctx, x, false, b))
		var fit mat.Dense
		check(t, fit.Solve(tallRef, right))
		residual(t, "least squares", wide(t, dev, "x", x.Expr()), &fit, mat.Norm(&fit, 2), 8*n)
		check(t, qr.Close())

		var eigen matrix.EigenSym[float32]
		check(t, eigen.Factorize(ctx, d))
		v := wide(t, dev, "vectors", eigen.Vectors())
		residual(t, "eigenvectors", product(v, mat.NewDiagDense(n, eigen.Values())), product(definiteRef, v), mat.Norm(definiteRef, 2), 4*n)
		check(t, eigen.Close())

		for _, wideOne := range []bool{false, true} {
			m := tall
			r := mat.Matrix(tallRef)
			if wideOne {
				m, r = matrix.Transpose(tall), tallRef.T()
			}
			var svd matrix.SVD[float32]
			check(t, svd.Factorize(ctx, m))
			u, s, w := wide(t, dev, "U", svd.U()), svd.Values(), wide(t, dev, "V", svd.V())
			residual(t, "U S V'", product(u, mat.NewDiagDense(len(s), s), w.T()), r, mat.Norm(r, 2), 4*n)
			if rank, err := svd.Rank(0); rank != 9 || err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
			if c, exact := svd.Cond(), mat.Cond(r, 2); math.Abs(c-exact) > 1e-4*exact {
				t.Errorf("condition %v, want %v", c, exact)
			}
			check(t, svd.Close())
		}
		check(t, x.Close())
	})
}

func logDet(a mat.Matrix) float64 {
	det, _ := mat.LogDet(a)
	return det
}

// TestSingular decomposes matrices that are singular or nearly so, not definite, empty, or no numbers.
func TestSingular(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx := t.Context()
		of := func(rows, cols int, v ...float32) *matrix.Dense[float32] {
			return must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, rows, cols, v))
		}
		wants := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		var lu matrix.LU[float32]
		b, dst := of(2, 1, 1, 2), of(1, 1, 7)
		wants("nothing factorised", lu.SolveTo(ctx, dst, false, b), buffer.ErrNil)
		check(t, lu.Factorize(ctx, of(2, 2, 1, 2, 2, 4)))
		wants("singular", lu.SolveTo(ctx, dst, false, b), matrix.ErrSingular)
		same(t, "the destination of a refused solution", readAll[float32](t, dst), []float32{7})
		if det, err := lu.Det(ctx); det != 0 || err != nil {
			t.Errorf("determinant %v: %v", det, err)
		}
		wants("not square", lu.Factorize(ctx, of(1, 2, 1, 2)), matrix.ErrNotSquare)
		wants("a wrong size", lu.SolveTo(ctx, dst, false, of(3, 1, 1, 2, 3)), buffer.ErrShape)
		check(t, lu.Factorize(ctx, of(2, 2, 1, 1, 1, 1+0x1p-22)))
		var cond matrix.Condition
		if err := lu.SolveTo(ctx, dst, false, b); !errors.As(err, &cond) || float64(cond) < 1e6 {
			t.Errorf("nearly singular: %v", err)
		}
		check(t, lu.Factorize(ctx, of(2, 2, 0, 1, 1, 0)))
		check(t, lu.SolveTo(ctx, dst, false, b))
		same(t, "zeros on the diagonal", readAll[float32](t, dst), []float32{2, 1})
		nan := float32(math.NaN())
		check(t, lu.Factorize(ctx, of(2, 2, nan, 1, 1, 1)))
		if err := lu.SolveTo(ctx, dst, false, b); err == nil {
			t.Error("a solution with NaN")
		}
		empty := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 0, 0))
		check(t, lu.Factorize(ctx, empty))
		if det, err := lu.Det(ctx); det != 1 || err != nil {
			t.Errorf("determinant of nothing: %v, %v", det, err)
		}
		check(t, lu.Close())
		wants("closed", lu.SolveTo(ctx, dst, false, b), buffer.ErrNil)
		wants("none", (*matrix.LU[float32])(nil).Factorize(ctx, b), buffer.ErrNil)
		wants("nil", lu.Factorize(ctx, nil), buffer.ErrNil)

		var chol matrix.Cholesky[float32]
		for _, m := range []*matrix.Dense[float32]{of(2, 2, 1, 9, 2, 1), of(2, 2, 0, 0, 0, 1), of(1, 1, -1), of(1, 1, nan), of(2, 2, 1, 0, 2, 4), of(2, 2, 0, 0, 1, 0)} {
			wants("not definite", chol.Factorize(ctx, m), matrix.ErrNotPosDef)
		}
		var qr matrix.QR[float32]
		check(t, qr.Factorize(ctx, of(3, 2, 1, 0, 1, 0, 1, 0)))
		wants("a column of zeros", qr.SolveTo(ctx, dst, false, of(3, 1, 1, 1, 1)), matrix.ErrSingular)
		check(t, qr.Close())
		wants("closed QR", second(qr.Cond(ctx)), buffer.ErrNil)

		var svd matrix.SVD[float32]
		var eigen matrix.EigenSym[float32]
		check(t, svd.Factorize(ctx, of(1, 1, -3)))
		check(t, eigen.Factorize(ctx, of(1, 1, -3)))
		for _, v := range []float32{nan, float32(math.Inf(1))} {
			odd := of(3, 3, 1, 2, 3, v, 1, 1, 1, 1, 9)
			wants("singular values of no numbers", svd.Factorize(ctx, odd), matrix.ErrConvergence)
			wants("eigenvalues of no numbers", eigen.Factorize(ctx, odd), matrix.ErrConvergence)
			for _, x := range must[[]float32](t)(matrix.RightVectors[float32](odd).Read(ctx)) {
				if x == x {
					t.Errorf("vectors of %v have %v", v, x)
				}
			}
		}
		if s, e := svd.Values(), eigen.Values(); len(s) != 1 || s[0] != 3 || len(e) != 1 || e[0] != -3 {
			t.Errorf("values after failures: %v, %v", s, e)
		}
		check(t, errors.Join(svd.Close(), eigen.Close()))

		// Of a matrix of rank 1 the vectors are orthonormal, too, and those of zeros.
		for _, m := range []*matrix.Dense[float32]{of(3, 2, 1, 2, 2, 4, 3, 6), of(3, 2, 0, 0, 0, 0, 0, 0)} {
			orthonormal(t, "U of a smaller rank", wide(t, dev, "U", matrix.LeftVectors[float32](m)), 16)
			orthonormal(t, "V of a smaller rank", wide(t, dev, "V", matrix.RightVectors[float32](m)), 16)
		}
		rank := wide(t, dev, "rank", matrix.Rank[float32](of(3, 2, 1, 2, 2, 4, 3, 6), 0)).At(0, 0)
		p := wide(t, dev, "pseudo-inverse", matrix.PseudoInverse[float32](of(2, 2, 1, 1, 1, 1), 0))
		residual(t, "pseudo-inverse", p, mat.NewDense(2, 2, []float64{0.25, 0.25, 0.25, 0.25}), 1, 8)
		if rank != 1 {
			t.Errorf("rank %v, want 1", rank)
		}
		same(t, "powers", readAll[float32](t, matrix.MatrixPower[float32](of(2, 2, 1, 1, 0, 1), 10)), []float32{1, 10, 0, 1})
		same(t, "inverse powers", readAll[float32](t, matrix.MatrixPower[float32](of(2, 2, 1, 1, 0, 1), -3)), []float32{1, -3, 0, 1})
		inf := float32(math.Inf(1))
		for _, m := range []*matrix.Dense[float32]{of(2, 2, nan, 1, 1, 1), of(2, 2, 1, nan, nan, 1), of(2, 2, inf, 1, 1, 1)} {
			for what, e := range map[string]*matrix.Expr[float32]{"eigenvalues": matrix.Eigenvalues[float32](m), "singular values": matrix.SingularValues[float32](m)} {
				if v := wide(t, dev, what, e); !math.IsNaN(v.At(0, 0)) {
					t.Errorf("%s of what is no number: %v", what, mat.Formatted(v))
				}
			}
		}
		huge := of(2, 1, 3e30, 4e30)
		if v := wide(t, dev, "huge", matrix.SingularValues[float32](huge)).At(0, 0); math.Abs(v-5e30) > 1e25 {
			t.Errorf("the length of a huge column: %v", v)
		}
		h := must[*matrix.Dense[matrix.Half]](t)(matrix.Convert[matrix.Half](of(2, 2, 4, 2, 2, 3)).Eval())
		got := must[[]float32](t)(matrix.Convert[float32](matrix.Inverse[matrix.Half](h)).Read(ctx))
		for i, w := range []float32{0.375, -0.25, -0.25, 0.5} {
			if math.Abs(float64(got[i]-w)) > 1e-3 {
				t.Errorf("inverse of halves: element %d is %v, want %v", i, got[i], w)
			}
		}
		whole := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 1, []int32{2}))
		wants("whole numbers", matrix.Inverse[int32](whole).Err(), gpu.ErrUnsupported)
		wants("another type of triangle", matrix.Solve[float32](of(2, 3, 1, 2, 3, 4, 5, 6), b).Err(), matrix.ErrNotSquare)
	})
}

// TestConjugateGradients solves with dense and sparse matrices, and with what is none of them.
func TestConjugateGradients(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, rng := t.Context(), newRand(52)
		const n = 50
		a, ref := definite(t, dev, rng, 0, n)
		check(t, a.Assign(matrix.Add[float32](matrix.Tril[float32](matrix.Where[float32](matrix.IsNaN[float32](a), matrix.Fill[float32](1, 1, 0), a), 0),
			matrix.Transpose[float32](matrix.Tril[float32](matrix.Where[float32](matrix.IsNaN[float32](a), matrix.Fill[float32](1, 1, 0), a), -1)))))
		b, right := sampled(t, dev, rng, 0, n, 1)
		x := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, n, 1))
		dense := func(y, p *matrix.Dense[float32]) error { return y.Mul(a, p) }
		jacobi := func(z, r *matrix.Dense[float32]) error {
			return z.Assign(matrix.DivElem[float32](r, matrix.Transpose[float32](matrix.Diagonal[float32](a, 0))))
		}
		for _, o := range []matrix.CGOptions[float32]{{MaxIterations: 500}, {Precondition: jacobi, MaxIterations: 500, Every: 3}} {
			check(t, x.Zero())
			result, err := matrix.ConjugateGradients(ctx, x, b, dense, o)
			if err != nil {
				t.Fatalf("%+v: %v", result, err)
			}
			residual(t, "conjugate gradients", product(ref, wide(t, dev, "x", x.Expr())), right, mat.Norm(right, 2), 1e-4/roundoff)
		}
		for what, c := range map[string]struct {
			run  func() error
			want error
		}{
			"too few": {func() error {
				_ = x.Zero()
				_, err := matrix.ConjugateGradients(ctx, x, b, dense, matrix.CGOptions[float32]{MaxIterations: 2})
				return err
			}, matrix.ErrConvergence},
			"not definite": {func() error {
				_, err := matrix.ConjugateGradients(ctx, x, b, func(y, p *matrix.Dense[float32]) error { return y.Assign(matrix.Neg[float32](p)) })
				return err
			}, matrix.ErrNotPosDef},
			"NaN to begin with": {func() error {
				_ = x.Assign(matrix.Fill(n, 1, float32(math.NaN())).On(dev))
				_, err := matrix.ConjugateGradients(ctx, x, b, dense)
				return err
			}, matrix.ErrConvergence},
			"products of NaN": {func() error {
				_ = x.Zero()
				_, err := matrix.ConjugateGradients(ctx, x, b, func(y, p *matrix.Dense[float32]) error {
					return y.Assign(matrix.Scale[float32](float32(math.NaN()), p))
				}, matrix.CGOptions[float32]{Every: 1})
				return err
			}, matrix.ErrConvergence},
			"no product": {func() error { _, err := matrix.ConjugateGradients(ctx, x, b, nil); return err }, buffer.ErrNil},
			"another size": {func() error {
				_, err := matrix.ConjugateGradients(ctx, x, matrix.Fill[float32](3, 1, 1), dense)
				return err
			}, buffer.ErrShape},
		} {
			if err := c.run(); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for option, o := range map[string]matrix.CGOptions[float32]{
			"Tolerance +Inf": {Tolerance: math.Inf(1)}, "Tolerance NaN": {Tolerance: math.NaN()}, "Tolerance -1": {Tolerance: -1},
			"MaxIterations -1": {MaxIterations: -1}, "Every -2": {Every: -2},
		} {
			_, err := matrix.ConjugateGradients(ctx, x, b, dense, o)
			if isError(t, err, gpu.ErrInvalid); !strings.Contains(err.Error(), option) {
				t.Errorf("%v does not name %s", err, option)
			}
		}
		_, err := matrix.ConjugateGradients(ctx, x, b, dense, matrix.CGOptions[float32]{}, matrix.CGOptions[float32]{})
		isError(t, err, gpu.ErrInvalid)
		check(t, x.Close())
	})
}

// TestConditions estimates condition numbers of triangles and of matrices that are singular to float32, or no numbers.
func TestConditions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, rng := t.Context(), newRand(53)
		of := func(rows, cols int, v ...float32) *dense {
			return must[*dense](t)(matrix.FromSlice(dev, rows, cols, v))
		}
		var qr matrix.QR[float32]
		for turn, cols := range []int{9, 20} {
			a, ref := sampled(t, dev, rng, turn, 20, cols)
			check(t, qr.Factorize(ctx, a))
			var exact mat.QR
			var r mat.Dense
			exact.Factorize(ref)
			exact.RTo(&r)
			want := mat.Cond(r.Slice(0, cols, 0, cols), 1)
			if cond := must[float64](t)(qr.Cond(ctx)); cond > 1.01*want || cond < want/3 {
				t.Errorf("condition %v, want %v", cond, want)
			}
		}
		hilbert := make([]float32, 64)
		for i := range hilbert {
			hilbert[i] = 1 / float32(i/8+i%8+1)
		}
		dst := new(dense)
		for what, a := range map[string]*dense{
			"ones": of(3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1), "Hilbert": of(8, 8, hilbert...), "tall": of(3, 2, 1, 2, 2, 4, 3, 6),
		} {
			rows, _ := a.Dims()
			b := must[*dense](t)(matrix.Fill[float32](rows, 1, 1).On(dev).Eval())
			var cond matrix.Condition
			check(t, qr.Factorize(ctx, a))
			if err := qr.SolveTo(ctx, dst, false, b); !errors.Is(err, matrix.ErrSingular) && !errors.As(err, &cond) {
				t.Errorf("%s: %v", what, err)
			}
			check(t, b.Close())
		}
		check(t, qr.Factorize(ctx, of(2, 3, 1, 2, 3, 4, 5, 6)))
		isError(t, second(qr.Cond(ctx)), buffer.ErrShape)
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		var lu matrix.LU[float32]
		b := of(2, 1, 1, 2)
		for _, v := range []float32{nan, inf} {
			a := of(2, 2, v, 1, 1, 1)
			check(t, errors.Join(lu.Factorize(ctx, a), qr.Factorize(ctx, a)))
			isError(t, lu.SolveTo(ctx, dst, false, b), matrix.ErrSingular)
			isError(t, qr.SolveTo(ctx, dst, false, b), matrix.ErrSingular)
			isError(t, qr.SolveTo(ctx, dst, true, b), matrix.ErrSingular)
			c, d := must[float64](t)(lu.Cond(ctx)), must[float64](t)(qr.Cond(ctx))
			if v != v && !(math.IsNaN(c) && math.IsNaN(d)) {
				t.Errorf("conditions %v and %v of a matrix with NaN", c, d)
			}
		}
		tiny := of(2, 2, 1e-30, 0, 0, 1e20) // whose condition number is beyond float32
		check(t, lu.Factorize(ctx, tiny))
		if c := must[float64](t)(lu.Cond(ctx)); c < 1e49 {
			t.Errorf("condition %v", c)
		}
		for want, a := range map[float64]*dense{
			math.Inf(1): of(2, 3, 0, 0, 0, 0, 0, 0), 1: of(2, 2, 0, 3, 3, 0), 0: must[*dense](t)(matrix.New[float32](dev, 0, 3)),
		} {
			var svd matrix.SVD[float32]
			check(t, svd.Factorize(ctx, a))
			if c, e := svd.Cond(), must[float32](t)(matrix.Cond[float32](a).Value(ctx)); math.Abs(c-want) > 1e-6 || math.Abs(float64(e)-want) > 1e-6 {
				t.Errorf("conditions %v and %v, want %v", c, e, want)
			}
			check(t, svd.Close())
		}
		if c := must[float32](t)(matrix.Cond[float32](of(1, 1, nan)).Value(ctx)); c == c {
			t.Errorf("the condition of NaN is %v", c)
		}
		check(t, errors.Join(lu.Close(), qr.Close(), dst.Close()))
	})
}

// TestDecompositionErrors: errors name the call that failed and the shape of what was factorised, and expressions end with their factors.
func TestDecompositionErrors(t *testing.T) {
	dev := devtest.Open(t, "cpu")
	ctx := t.Context()
	a := must[*dense](t)(matrix.Eye[float32](6, 6, 0).On(dev).Eval())
	b := must[*dense](t)(matrix.New[float32](dev, 5, 2))
	var lu matrix.LU[float32]
	var chol matrix.Cholesky[float32]
	var qr matrix.QR[float32]
	check(t, errors.Join(lu.Factorize(ctx, a), chol.Factorize(ctx, a), qr.Factorize(ctx, a)))
	dst := new(dense)
	message := func(err error, op string, shapes ...string) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), "matrix: "+op+": "+strings.Join(shapes, " by ")) {
			t.Errorf("error %v, want one of %s %v", err, op, shapes)
		}
	}
	message(lu.Solve(false, b).Err(), "Solve", "6x6", "5x2")
	message(lu.Permute(false, b).Err(), "Permute", "6x6", "5x2")
	message(lu.SolveTo(ctx, dst, false, b), "SolveTo", "6x6", "5x2")
	message(chol.SolveTo(ctx, dst, b), "SolveTo", "6x6", "5x2")
	message(qr.SolveTo(ctx, dst, false, b), "SolveTo", "6x6", "5x2")
	l, q := lu.L(), qr.Q()
	check(t, errors.Join(lu.Factorize(ctx, a), qr.Close()))
	isError(t, second(l.Eval()), gpu.ErrClosed)
	isError(t, second(q.Eval()), gpu.ErrClosed)
	right := must[*dense](t)(matrix.New[float32](dev, 6, 1))
	check(t, dev.Close())
	message(second(lu.Det(ctx)), "Det")
	_, _, err := lu.LogDet(ctx)
	message(err, "LogDet")
	message(second(lu.Cond(ctx)), "Cond")
	message(lu.SolveTo(ctx, dst, false, right), "SolveTo")
	message(chol.SolveTo(ctx, dst, right), "SolveTo")
	isError(t, second(lu.Det(ctx)), gpu.ErrClosed)
}

// TestDevicesOfResults: results are on the operands' device also where they read none of their elements.
func TestDevicesOfResults(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 2, []float32{1, 2, 3, 4}))
		low, none := must[*dense](t)(matrix.New[float32](dev, 0, 3)), must[*dense](t)(matrix.New[float32](dev, 0, 0))
		for what, c := range map[string]struct {
			e    *matrix.Expr[float32]
			want []float32
		}{
			"power":               {matrix.MatrixPower[float32](a, 0), []float32{1, 0, 0, 1}},
			"power of nothing":    {matrix.MatrixPower[float32](none, 0), nil},
			"inverse of 0x3":      {matrix.PseudoInverse[float32](low, 0), nil},
			"inverse of 0x0":      {matrix.PseudoInverse[float32](none, 0), nil},
			"rank of 0x3":         {matrix.Rank[float32](low, 0), []float32{0}},
			"rank of 0x0":         {matrix.Rank[float32](none, 0), []float32{0}},
			"condition of 0x3":    {matrix.Cond[float32](low), []float32{0}},
			"condition of 0x0":    {matrix.Cond[float32](none), []float32{0}},
			"stack of none":       {matrix.SolveStack[float32](must[*dense](t)(matrix.New[float32](dev, 0, 2)), must[*dense](t)(matrix.New[float32](dev, 0, 1))), nil},
			"stack of 0x0":        {matrix.SolveStack[float32](none, low), nil},
			"determinant of none": {matrix.Det[float32](none), []float32{1}},
		} {
			got, err := c.e.Read(background)
			if err != nil || !slices.Equal(got, c.want) && len(got)+len(c.want) > 0 {
				t.Errorf("%s: %v, %v; want %v", what, got, err, c.want)
			}
		}
		if rows, cols := matrix.SolveStack[float32](must[*dense](t)(matrix.New[float32](dev, 0, 2)), low).Dims(); rows != 0 || cols != 3 {
			t.Errorf("a stack of %dx%d", rows, cols)
		}
		_, err := matrix.Fill[float32](1, 1, 1).Eval()
		if isError(t, err, gpu.ErrInvalid); !strings.Contains(err.Error(), "Expr.On") {
			t.Errorf("%v does not say what to do", err)
		}
		check(t, errors.Join(a.Close(), low.Close(), none.Close()))
	})
}
