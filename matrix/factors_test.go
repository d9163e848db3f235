// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// roundoff is half the distance of 1 to the next float32.
const roundoff = 1.0 / (1 << 24)

// wide is the matrix of an expression in float64.
func wide(t testing.TB, dev *gpu.Device, what string, e *matrix.Expr[float32]) *mat.Dense {
	t.Helper()
	rows, cols := e.Dims()
	v, err := e.On(dev).Read(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return mat.NewDense(rows, cols, out)
}

// residual fails unless the norm of a - b is within bound rounding errors of the scale.
func residual(t testing.TB, what string, a, b mat.Matrix, scale, bound float64) {
	t.Helper()
	var d mat.Dense
	d.Sub(a, b)
	if r := mat.Norm(&d, 2) / scale / roundoff; !(r <= bound) {
		t.Errorf("%s: residual of %.1f rounding errors, allowed are %.1f", what, r, bound)
	}
}

// orthonormal fails unless the columns of q are.
func orthonormal(t testing.TB, what string, q mat.Matrix, bound float64) {
	t.Helper()
	var g mat.Dense
	g.Mul(q.T(), q)
	_, n := q.Dims()
	residual(t, what+": orthonormal columns", &g, eye(n), math.Sqrt(float64(n)), bound)
}

func eye(n int) mat.Matrix {
	d := mat.NewDiagDense(n, nil)
	for i := range n {
		d.SetDiag(i, 1)
	}
	return d
}

func product(factors ...mat.Matrix) mat.Matrix {
	out := factors[0]
	for _, f := range factors[1:] {
		var next mat.Dense
		next.Mul(out, f)
		out = &next
	}
	return out
}

// factorSizes are those of square matrices: around the sizes of blocks, and large ones in long tests.
var factorSizes = func() []int {
	sizes := []int{1, 3, 17, 32, 33, 65}
	if devtest.Long() {
		sizes = append(sizes, 2, 5, 31, 64, 100, 257, 512)
	}
	return sizes
}()

// widths are numbers of columns: one of them by turns, and all in long tests.
func widths(turn int, cols ...int) []int {
	if devtest.Long() {
		return cols
	}
	return cols[turn%len(cols):][:1]
}

// sampled is a random matrix, in one of the forms by turns, or the transpose of one.
func sampled(t testing.TB, dev *gpu.Device, rng *rand.Rand, turn, rows, cols int) (matrix.Operand[float32], *mat.Dense) {
	t.Helper()
	values := random(rng, rows*cols)
	ref := mat.NewDense(rows, cols, nil)
	for i, v := range values {
		ref.Set(i/cols, i%cols, float64(v))
	}
	if f := turn % (len(forms) + 1); f < len(forms) {
		m, _ := wrapped(t, dev, forms[f], rows, cols, values)
		return m, ref
	}
	turned := make([]float32, len(values))
	for i, v := range values {
		turned[i%cols*rows+i/cols] = v
	}
	return matrix.Transpose[float32](must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, cols, rows, turned))), ref
}

func TestLU(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(41)
		for turn, n := range factorSizes {
			for _, cols := range widths(turn, n, n+3, max(n-2, 1)) {
				what := fmt.Sprintf("LU of %dx%d", n, cols)
				a, ref := sampled(t, dev, rng, turn, n, cols)
				l, u := wide(t, dev, what, matrix.LowerLU(a)), wide(t, dev, what, matrix.UpperLU(a))
				permuted := wide(t, dev, what, matrix.PermutedLU(a))
				residual(t, what, product(l, u), permuted, mat.Norm(ref, 2), float64(2*n+4))
				for _, x := range l.RawMatrix().Data {
					if math.Abs(x) > 1 {
						t.Fatalf("%s: a multiplier of %v", what, x)
					}
				}
			}
		}
	})
}

func TestSolve(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(42)
		for turn, n := range factorSizes {
			a, ref := sampled(t, dev, rng, turn, n, n)
			b, right := sampled(t, dev, rng, turn+2, n, 1+turn)
			what := fmt.Sprintf("solution of %dx%d", n, n)
			x := wide(t, dev, what, matrix.Solve(a, b))
			residual(t, what, product(ref, x), right, mat.Norm(ref, 2)*mat.Norm(x, 2), float64(2*n+4))
			inverse := wide(t, dev, what, matrix.Inverse(a))
			residual(t, what+": inverse", product(ref, inverse), eye(n), mat.Norm(ref, 2)*mat.Norm(inverse, 2), float64(2*n+4))
			stacked := wide(t, dev, what, matrix.SolveStack(a, b))
			residual(t, what+": stack of one", product(ref, stacked), right, mat.Norm(ref, 2)*mat.Norm(stacked, 2), float64(4*n+8))
			want, sign := mat.LogDet(ref)
			if got := wide(t, dev, what, matrix.LogDet(a)).At(0, 0); math.Abs(got-want) > 1e-3*float64(n) {
				t.Errorf("%s: logarithm of the determinant %v, want %v", what, got, want)
			}
			if got := wide(t, dev, what, matrix.DetSign(a)).At(0, 0); got != sign {
				t.Errorf("%s: sign of the determinant %v, want %v", what, got, sign)
			}
			if det := mat.Det(ref); math.Abs(det) < 1e30 {
				if got := wide(t, dev, what, matrix.Det(a)).At(0, 0); math.Abs(got-det) > 1e-3*float64(n)*math.Abs(det) {
					t.Errorf("%s: determinant %v, want %v", what, got, det)
				}
			}
		}
	})
}

func TestSolveStack(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(43)
		for _, n := range []int{1, 2, 3, 8, 33} {
			const count = 70
			a, ref := sampled(t, dev, rng, n, count*n, n)
			b, right := sampled(t, dev, rng, n+1, count*n, 2)
			before := dev.Stats().Dispatches
			x := wide(t, dev, "stack", matrix.SolveStack(a, b))
			if got := dev.Stats().Dispatches - before; got > 6 {
				t.Errorf("%d systems of %d: %d kernels", count, n, got)
			}
			for k := range count {
				one, part, own := ref.Slice(k*n, (k+1)*n, 0, n), right.Slice(k*n, (k+1)*n, 0, 2), x.Slice(k*n, (k+1)*n, 0, 2)
				residual(t, fmt.Sprintf("system %d of %d", k, n), product(one, own), part, mat.Norm(one, 2)*mat.Norm(own, 2), float64(8*n+16))
			}
		}
	})
}

// definite is a symmetric positive definite matrix in a form, with what is above its diagonal spoilt.
func definite(t testing.TB, dev *gpu.Device, rng *rand.Rand, turn, n int) (*matrix.Dense[float32], *mat.Dense) {
	t.Helper()
	_, g := sampled(t, dev, rng, 0, n, n+2)
	ref := mat.DenseCopyOf(product(g, g.T()))
	values := make([]float32, n*n)
	for i := range n {
		for j := range n {
			values[i*n+j] = float32(ref.At(i, j))
			ref.Set(i, j, float64(values[i*n+j]))
			if j > i {
				values[i*n+j] = float32(math.NaN())
			}
		}
	}
	m, _ := wrapped(t, dev, forms[turn%len(forms)], n, n, values)
	return m, ref
}

func TestCholesky(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(44)
		for turn, n := range factorSizes {
			what := fmt.Sprintf("Cholesky factor of %dx%d", n, n)
			a, ref := definite(t, dev, rng, turn, n)
			l := wide(t, dev, what, matrix.CholeskyFactor[float32](a))
			residual(t, what, product(l, l.T()), ref, mat.Norm(ref, 2), float64(2*n+4))
			b, right := sampled(t, dev, rng, turn, n, 3)
			y := matrix.SolveLower[float32](matrix.CholeskyFactor[float32](a), b)
			x := wide(t, dev, what, matrix.SolveUpper[float32](matrix.Transpose[float32](matrix.CholeskyFactor[float32](a)), y))
			residual(t, what+": solution", product(ref, x), right, mat.Norm(ref, 2)*mat.Norm(x, 2), float64(4*n+8))
		}
	})
}

func TestQR(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(45)
		for turn, n := range factorSizes {
			for _, cols := range widths(turn, n, n+3, max(n/2, 1)) {
				what := fmt.Sprintf("QR of %dx%d", n, cols)
				a, ref := sampled(t, dev, rng, turn, n, cols)
				q, r := wide(t, dev, what, matrix.QFactor(a)), wide(t, dev, what, matrix.RFactor(a))
				residual(t, what, product(q, r), ref, mat.Norm(ref, 2), float64(2*n+8))
				orthonormal(t, what, q, float64(2*n+8))
				b, right := sampled(t, dev, rng, turn+1, n, 2)
				x := wide(t, dev, what, matrix.LeastSquares(a, b))
				var want mat.Dense
				check(t, want.Solve(ref, right))
				residual(t, what+": least squares", x, &want, mat.Norm(&want, 2)*mat.Cond(ref, 2), float64(8*n+16))
			}
		}
	})
}

func TestEigen(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(46)
		for turn, n := range factorSizes {
			what := fmt.Sprintf("eigenvalues of %dx%d", n, n)
			_, g := sampled(t, dev, rng, 0, n, n)
			values := make([]float32, n*n)
			ref := mat.NewSymDense(n, nil)
			for i := range n {
				for j := range i + 1 {
					v := float32(g.At(i, j))
					values[i*n+j], values[j*n+i] = v, v
					ref.SetSym(i, j, float64(v))
				}
			}
			a, _ := wrapped(t, dev, forms[turn%len(forms)], n, n, values)
			var own matrix.EigenSym[float32]
			check(t, own.Factorize(t.Context(), a))
			v, lambda := wide(t, dev, what, own.Vectors()), own.Values()
			check(t, own.Close())
			if n < 6 { // as expressions, each of which decomposes anew
				residual(t, what, wide(t, dev, what, matrix.Eigenvectors[float32](a)), v, 1, 0)
				residual(t, what, wide(t, dev, what, matrix.Eigenvalues[float32](a)), mat.NewDense(1, n, lambda), 1, 0)
			}
			residual(t, what, product(v, mat.NewDiagDense(n, lambda)), product(ref, v), mat.Norm(ref, 2), float64(2*n+16))
			orthonormal(t, what, v, float64(2*n+16))
			if !slices.IsSorted(lambda) {
				t.Errorf("%s: %v", what, lambda)
			}
			var es mat.EigenSym
			es.Factorize(ref, false)
			residual(t, what, mat.NewDense(1, n, lambda), mat.NewDense(1, n, es.Values(nil)), mat.Norm(ref, 2), float64(2*n+16))
		}
	})
}

// TestLargeElements decomposes a symmetric matrix whose sums of rows are beyond the largest number, and its norm is not.
func TestLargeElements(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n, scale = 33, 0x1p124
		rng := newRand(48)
		values, large := make([]float32, n*n), make([]float32, n*n)
		for i := range n {
			for j := range i + 1 {
				v := float32(rng.NormFloat64())
				values[i*n+j], values[j*n+i] = v, v
				large[i*n+j], large[j*n+i] = v*scale, v*scale
			}
		}
		a, b := must[*dense](t)(matrix.FromSlice(dev, n, n, values)), must[*dense](t)(matrix.FromSlice(dev, n, n, large))
		for name, f := range map[string]func(*dense) *expr{
			"eigenvalues":     func(a *dense) *expr { return matrix.Eigenvalues(a) },
			"singular values": func(a *dense) *expr { return matrix.SingularValues(a) },
		} {
			want, got := float64s(must[[]float32](t)(f(a).Read(t.Context()))), must[[]float32](t)(f(b).Read(t.Context()))
			for i, v := range want {
				if math.Abs(float64(got[i])/scale-v) > 1e-5*math.Abs(want[0]) {
					t.Errorf("%s: %g, want %g times 2^124", name, got, want)
					break
				}
			}
		}
		var lu matrix.LU[float32]
		var qr matrix.QR[float32]
		check(t, errors.Join(lu.Factorize(t.Context(), b), qr.Factorize(t.Context(), b)))
		for _, cond := range []float64{must[float64](t)(lu.Cond(t.Context())), must[float64](t)(qr.Cond(t.Context()))} {
			if !(cond < 1e5) {
				t.Errorf("a condition of %g", cond)
			}
		}
		nan := must[*dense](t)(matrix.FromSlice(dev, 1, 1, []float32{float32(math.NaN())}))
		if v := must[[]float32](t)(matrix.PseudoInverse(nan, 0).Read(t.Context())); v[0] == v[0] {
			t.Errorf("the pseudo-inverse of NaN is %g", v)
		}
		check(t, errors.Join(a.Close(), b.Close(), nan.Close(), lu.Close(), qr.Close()))
	})
}

func TestSVD(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(47)
		sizes := []int{2, 1, 5, 17, 33, 33, 33}
		if devtest.Long() {
			sizes = append(sizes, 4, 7, 8, 9, 64, 65, 257, 512)
		}
		for turn, n := range sizes {
			for _, cols := range widths(turn, n, n+3, max(n/2, 1)) {
				what := fmt.Sprintf("SVD of %dx%d", n, cols)
				a, ref := sampled(t, dev, rng, turn, n, cols)
				var own matrix.SVD[float32]
				check(t, own.Factorize(t.Context(), a))
				u, s, v := wide(t, dev, what, own.U()), own.Values(), wide(t, dev, what, own.V())
				check(t, own.Close())
				residual(t, what, product(u, mat.NewDiagDense(len(s), s), v.T()), ref, mat.Norm(ref, 2), float64(4*n+16))
				orthonormal(t, what, u, float64(2*n+16))
				orthonormal(t, what, v, float64(2*n+16))
				var svd mat.SVD
				svd.Factorize(ref, mat.SVDNone)
				residual(t, what+": values", mat.NewDense(1, len(s), s), mat.NewDense(1, len(s), svd.Values(nil)), mat.Norm(ref, 2), float64(2*n+16))
				if turn%3 != 2 || n > 65 { // as expressions, each of which decomposes anew
					continue
				}
				for what, d := range map[string][2]mat.Matrix{
					"left":   {wide(t, dev, what, matrix.LeftVectors(a)), u},
					"values": {wide(t, dev, what, matrix.SingularValues(a)), mat.NewDense(1, len(s), s)},
					"right":  {wide(t, dev, what, matrix.RightVectors(a)), v},
				} {
					residual(t, what, d[0], d[1], 1, 0)
				}
				p := wide(t, dev, what, matrix.PseudoInverse(a, 0))
				residual(t, what+": pseudo-inverse", product(ref, p, ref), ref, mat.Norm(ref, 2)*mat.Cond(ref, 2), float64(8*n+32))
				if got := wide(t, dev, what, matrix.Rank(a, 0)).At(0, 0); got != float64(min(n, cols)) {
					t.Errorf("%s: rank %v", what, got)
				}
				if got, want := wide(t, dev, what, matrix.Cond(a)).At(0, 0), mat.Cond(ref, 2); math.Abs(got-want) > 1e-5*want*want {
					t.Errorf("%s: condition %v, want %v", what, got, want)
				}
			}
		}
	})
}

// BenchmarkGonumFactors is what BenchmarkFactors does, by gonum in float64 on the CPU.
func BenchmarkGonumFactors(b *testing.B) {
	for name, run := range map[string]func(a *mat.Dense){
		"lu":    func(a *mat.Dense) { new(mat.LU).Factorize(a) },
		"solve": func(a *mat.Dense) { _ = new(mat.Dense).Solve(a, a) },
		"qr":    func(a *mat.Dense) { new(mat.QR).Factorize(a) },
		"svd":   func(a *mat.Dense) { new(mat.SVD).Factorize(a, mat.SVDThin) },
		"eigen": func(a *mat.Dense) {
			new(mat.EigenSym).Factorize(mat.NewSymDense(a.RawMatrix().Rows, a.RawMatrix().Data), true)
		},
		"cholesky": func(a *mat.Dense) {
			new(mat.Cholesky).Factorize(mat.NewSymDense(a.RawMatrix().Rows, a.RawMatrix().Data))
		},
	} {
		for n := 64; n <= 1024; n *= 2 {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				values := make([]float64, n*n)
				for i, v := range random(newRand(1), n*n) {
					values[i] = float64(v)
				}
				for i := range n {
					values[i*n+i] += 3 * math.Sqrt(float64(n))
				}
				for b.Loop() {
					run(mat.NewDense(n, n, slices.Clone(values)))
				}
			})
		}
	}
}

// BenchmarkFactors decomposes square matrices.
func BenchmarkFactors(b *testing.B) {
	for _, r := range []struct {
		name string
		make func(a matrix.Operand[float32]) *matrix.Expr[float32]
		most int
	}{
		{"lu", func(a matrix.Operand[float32]) *matrix.Expr[float32] { return matrix.UpperLU(a) }, 2048},
		{"solve", func(a matrix.Operand[float32]) *matrix.Expr[float32] { return matrix.Solve(a, a) }, 2048},
		{"cholesky", func(a matrix.Operand[float32]) *matrix.Expr[float32] { return matrix.CholeskyFactor(a) }, 2048},
		{"qr", func(a matrix.Operand[float32]) *matrix.Expr[float32] { return matrix.RFactor(a) }, 2048},
		{"eigen", func(a matrix.Operand[float32]) *matrix.Expr[float32] { return matrix.Eigenvectors(a) }, 2048},
		{"svd", func(a matrix.Operand[float32]) *matrix.Expr[float32] { return matrix.SingularValues(a) }, 2048},
	} {
		for n := 64; n <= r.most; n *= 2 {
			b.Run(fmt.Sprintf("%s/%d", r.name, n), func(b *testing.B) {
				dev := benchDevice(b)
				values := random(newRand(1), n*n)
				for i := range n {
					values[i*n+i] += 3 * float32(math.Sqrt(float64(n))) // positive definite, too
				}
				a := must[*matrix.Dense[float32]](b)(matrix.FromSlice(dev, n, n, values))
				e := r.make(a)
				m := must[*matrix.Dense[float32]](b)(e.Eval())
				check(b, dev.Sync(b.Context()))
				for b.Loop() {
					check(b, m.Assign(e))
					check(b, dev.Sync(b.Context()))
				}
			})
		}
	}
}

// TestFactorNames calls decompositions in texts.
func TestFactorNames(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 2, 2, []float32{4, 2, 2, 3}))
		b := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 2, 1, []float32{2, 3}))
		names := map[string]matrix.Operand[float32]{"A": a, "b": b}
		for text, want := range map[string][]float32{
			"inv(A)*b": {0, 1}, "solve(A, b)": {0, 1}, "det(A)": {8}, "lstsq(A, b)": {0, 1}, "pinv(A)*b": {0, 1}, "rank(A)": {2},
			"cholesky(A)*T(cholesky(A))": {4, 2, 2, 3}, "qr_q(A)*qr_r(A)": {4, 2, 2, 3}, "sum(eigenvalues(A))": {7}, "matpow(A, 2)": {20, 14, 14, 13},
			"svd_u(A)*diag(svdvals(A))*T(svd_v(A))": {4, 2, 2, 3}, "eigh(A)*diag(eigvalsh(A))*T(eigh(A))": {4, 2, 2, 3},
		} {
			got := readAll[float32](t, matrix.Eval(text, names))
			for i, w := range want {
				if math.Abs(float64(got[i]-w)) > 1e-5 {
					t.Errorf("%s: %v, want %v", text, got, want)
					break
				}
			}
		}
	})
}
