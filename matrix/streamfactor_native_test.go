// SPDX-License-Identifier: Apache-2.0

//go:build !js

package matrix_test

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// factorExprs are decompositions, and what is computed with them, of a square matrix, of a definite one, of a tall one and of right sides.
var factorExprs = map[string]func(a, d, m, b *dense) *expr{
	"solve":         func(a, _, _, b *dense) *expr { return matrix.Solve(a, b) },
	"solve turned":  func(a, _, _, b *dense) *expr { return matrix.Solve(matrix.Transpose(a), b) },
	"inverse":       func(a, _, _, _ *dense) *expr { return matrix.Inverse(a) },
	"L":             func(a, _, _, _ *dense) *expr { return matrix.LowerLU(a) },
	"U":             func(a, _, _, _ *dense) *expr { return matrix.UpperLU(a) },
	"L of a tall":   func(_, _, m, _ *dense) *expr { return matrix.LowerLU(m) },
	"U of a wide":   func(_, _, m, _ *dense) *expr { return matrix.UpperLU(matrix.Transpose(m)) },
	"permuted":      func(a, _, _, _ *dense) *expr { return matrix.PermutedLU(a) },
	"log det":       func(a, _, _, _ *dense) *expr { return matrix.LogDet(a) },
	"sign":          func(a, _, _, _ *dense) *expr { return matrix.DetSign(a) },
	"Cholesky":      func(_, d, _, _ *dense) *expr { return matrix.CholeskyFactor(d) },
	"lower":         func(_, d, _, b *dense) *expr { return matrix.SolveLower(d, b) },
	"upper":         func(_, d, _, b *dense) *expr { return matrix.SolveUpper(d, b) },
	"upper turned":  func(_, d, _, b *dense) *expr { return matrix.SolveUpper(matrix.Transpose(d), b) },
	"R":             func(_, _, m, _ *dense) *expr { return matrix.RFactor(m) },
	"Q":             func(_, _, m, _ *dense) *expr { return matrix.QFactor(m) },
	"least squares": func(_, _, m, b *dense) *expr { return matrix.LeastSquares(m, b) },
	"smallest": func(_, _, m, b *dense) *expr {
		return matrix.LeastSquares(matrix.Transpose(m), b.Expr().Slice(0, 90, 0, 3))
	},
	"of an expression": func(a, d, _, b *dense) *expr { return matrix.Solve(matrix.Add(a, d), matrix.Scale(2, b)).AddScalar(1) },
}

// TestStreamFactors decomposes matrices beyond the device's memory as a device with room does.
func TestStreamFactors(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, dev *gpu.Device) {
		s := newSystem(t, tight, dev)
		for i, name := range slices.Sorted(maps.Keys(factorExprs)) {
			if sparing(dev) && (i+len(dev.Info().Driver))%4 != 0 {
				continue
			}
			x := factorExprs[name]
			want := must[[]float32](t)(x(s.a.whole, s.d.whole, s.m.whole, s.b.whole).Read(t.Context()))
			got, err := intoWrapped(t, tight, x(s.a.small, s.d.small, s.m.small, s.b.small))
			if off := farthest(got, want); err != nil || !(off < 2e-3) {
				t.Errorf("%s: off by %v of the largest, %v", name, off, err)
			}
		}
		s.close(t)
	})
}

// order is that of the matrices to decompose, which are of one and a half times the device's memory.
const order = 125

// system is what is decomposed: a matrix with gaps, a definite one, a tall one and right sides.
type system struct{ a, d, m, b pair }

func newSystem(t testing.TB, tight, dev *gpu.Device) system {
	rng := newRand(7)
	return system{
		newFloats(t, tight, dev, rng, order, order, 0, matrix.Options{Stride: 131, Offset: 3}), newFloats(t, tight, dev, rng, order, order, 3),
		newFloats(t, tight, dev, rng, order, 90, 0), newFloats(t, tight, dev, rng, order, 3, 0),
	}
}

func (s *system) close(t testing.TB) {
	for _, p := range []pair{s.a, s.d, s.m, s.b} {
		p.close(t)
	}
}

// TestStreamFactorized uses the objects of decompositions, whose factors are the host's then.
func TestStreamFactorized(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, dev *gpu.Device) {
		s, ctx := newSystem(t, tight, dev), t.Context()
		var lu, lu2 matrix.LU[float32]
		check(t, errors.Join(lu.Factorize(ctx, s.a.small), lu2.Factorize(ctx, s.a.whole)))
		x, y := must[*dense](t)(matrix.New[float32](tight, order, 3)), must[*dense](t)(matrix.New[float32](dev, order, 3))
		near := func(what string, x, y *expr) {
			t.Helper()
			got, err := x.Read(ctx)
			if off := farthest(got, must[[]float32](t)(y.Read(ctx))); err != nil || !(off < 2e-3) {
				t.Errorf("%s: off by %v of the largest, %v", what, off, err)
			}
		}
		for _, trans := range []bool{false, true} {
			check(t, errors.Join(lu.SolveTo(ctx, x, trans, s.b.small), lu2.SolveTo(ctx, y, trans, s.b.whole)))
			near("a solution", x.Expr(), y.Expr())
			near("rows exchanged", lu.Permute(trans, s.b.small), lu2.Permute(trans, s.b.whole))
		}
		det, sign, err := lu.LogDet(ctx)
		if want, s, _ := lu2.LogDet(ctx); err != nil || sign != s || math.Abs(det-want) > 1e-3 {
			t.Errorf("a determinant of exp(%v) * %v, want exp(%v) * %v: %v", det, sign, want, s, err)
		}
		var chol, chol2 matrix.Cholesky[float32]
		check(t, errors.Join(chol.Factorize(ctx, s.d.small), chol2.Factorize(ctx, s.d.whole)))
		check(t, errors.Join(chol.SolveTo(ctx, x, s.b.small), chol2.SolveTo(ctx, y, s.b.whole)))
		near("a definite solution", x.Expr(), y.Expr())
		isError(t, chol.Factorize(ctx, s.a.small), matrix.ErrNotPosDef)
		var qr, qr2 matrix.QR[float32]
		check(t, errors.Join(qr.Factorize(ctx, s.m.small), qr2.Factorize(ctx, s.m.whole)))
		check(t, errors.Join(x.Resize(90, 3), y.Resize(90, 3)))
		check(t, errors.Join(qr.SolveTo(ctx, x, false, s.b.small), qr2.SolveTo(ctx, y, false, s.b.whole)))
		near("least squares", x.Expr(), y.Expr())
		check(t, errors.Join(lu.Close(), lu2.Close(), chol.Close(), chol2.Close(), qr.Close(), qr2.Close(), x.Close(), y.Close()))
		s.close(t)
	})
}

// TestStreamFactorsRefused has matrices without an inverse or a factor, and such whose columns are too long.
func TestStreamFactorsRefused(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, _ *gpu.Device) {
		ctx := t.Context()
		ones := make([]float32, order*order)
		for i := range ones {
			ones[i] = 1
		}
		a := must[*dense](t)(matrix.Wrap(tight, order, order, ones))
		var lu matrix.LU[float32]
		check(t, lu.Factorize(ctx, a))
		x := must[*dense](t)(matrix.FromSlice(tight, order, 1, ones[:order]))
		isError(t, lu.SolveTo(ctx, x, false, x), matrix.ErrSingular)
		if got := must[[]float32](t)(x.Read(ctx)); slices.Min(got) != 1 || slices.Max(got) != 1 {
			t.Error("a refused solution was stored")
		}
		_, err := matrix.Solve(a, x).Read(ctx)
		isError(t, err, matrix.ErrSingular)
		var chol matrix.Cholesky[float32]
		isError(t, chol.Factorize(ctx, a), matrix.ErrNotPosDef)
		long := must[*dense](t)(matrix.Wrap(tight, 3000, 20, make([]float32, 60000)))
		var (
			qr    matrix.QR[float32]
			eigen matrix.EigenSym[float32]
			svd   matrix.SVD[float32]
		)
		for name, err := range map[string]error{
			"columns too long": qr.Factorize(ctx, long), "eigenvalues": eigen.Factorize(ctx, a), "singular values": svd.Factorize(ctx, a),
		} {
			if !errors.Is(err, gpu.ErrLimit) || name == "columns too long" && !strings.Contains(err.Error(), "there is room for") {
				t.Errorf("%s: %v", name, err)
			}
		}
		check(t, errors.Join(lu.Close(), qr.Close(), eigen.Close(), svd.Close(), x.Close(), long.Close(), a.Close()))
	})
}

// TestStreamSingularValues are those of a tall matrix, whose R fits.
func TestStreamSingularValues(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, dev *gpu.Device) {
		p := newFloats(t, tight, dev, newRand(5), 300, 30, 0)
		want := must[[]float32](t)(matrix.SingularValues(p.whole).Read(t.Context()))
		got := must[[]float32](t)(matrix.SingularValues(p.small).Read(t.Context()))
		if off := farthest(got, want); !(off < 1e-5) {
			t.Errorf("off by %v of the largest", off)
		}
		left := matrix.LeftVectors(p.small)
		gram, err := intoWrapped(t, tight, matrix.Mul(matrix.Transpose(left), left))
		one := make([]float32, 30*30)
		for i := range 30 {
			one[31*i] = 1
		}
		if off := farthest(gram, one); err != nil || !(off < 1e-5) {
			t.Errorf("left vectors are off by %v, %v", off, err)
		}
		p.close(t)
	})
}

// TestStreamFactorsCancelled ends decompositions in between. All of the result is what it was until the factors are there.
func TestStreamFactorsCancelled(t *testing.T) {
	withRoom(t, func(t *testing.T, tight, dev *gpu.Device) {
		s := newSystem(t, tight, dev)
		places := 6
		if sparing(dev) {
			places = 2
		}
		own := must[*dense](t)(matrix.New[float32](tight, order, 3))
		if n := stopEverywhere(t, "solve", own, places, func() *expr { return matrix.Solve(s.a.small, s.b.small) }); n > 0 {
			t.Errorf("a small solution was incomplete %d times", n)
		}
		c := must[*dense](t)(matrix.Wrap(tight, order, order, make([]float32, order*order)))
		if n := stopEverywhere(t, "inverse", c, places, func() *expr { return matrix.Inverse(s.a.small) }); n > places/2 {
			t.Errorf("an inverse was incomplete %d times", n)
		}
		check(t, c.Assign(s.a.small))
		check(t, c.Assign(matrix.Inverse(c))) // in place
		inverse := must[[]float32](t)(matrix.Inverse(s.a.whole).Read(t.Context()))
		if off := farthest(must[[]float32](t)(c.Read(t.Context())), inverse); !(off < 2e-3) {
			t.Errorf("in place: off by %v of the largest", off)
		}
		check(t, errors.Join(own.Close(), c.Close()))
		s.close(t)
	})
}

// TestStreamFactorsFaults has calls of the driver fail, one at a time: the result is what it was, or the whole one, or incomplete, and the
// next decomposition is right.
func TestStreamFactorsFaults(t *testing.T) {
	for _, fault := range []devtest.Fault{devtest.NoMemory, devtest.Refuse} {
		calls, step := 1, 1
		for at := 0; at < calls; at += step {
			dev, f := devtest.OpenFaulty(t, devtest.Oracle(t), nil, gpu.WithMemory(roomBytes/8))
			p := newFloats(t, dev, dev, newRand(3), 40, 40, 3)
			out := make([]float32, 40*40)
			c := must[*dense](t)(matrix.Wrap(dev, 40, 40, out))
			f.Arm(devtest.At(at+1<<20*(1-min(at, 1)), fault)) // none the first time
			err := errors.Join(c.Assign(matrix.Inverse(p.small)), c.Sync(t.Context()))
			if at == 0 {
				calls = f.Calls()
				step = max(calls/12, 1)
				check(t, err)
			}
			f.Arm(nil)
			for _, typed := range []error{gpu.ErrNoMemory, gpu.ErrInvalid, buffer.ErrIncomplete} {
				if errors.Is(err, typed) {
					err = nil
				}
			}
			check(t, errors.Join(err, c.Touch(), c.Assign(matrix.Mul(matrix.Inverse(p.small), p.small)), c.Sync(t.Context())))
			if off := math.Abs(float64(out[41] - 1)); off > 1e-4 {
				t.Errorf("fault %v at %d: the next product is off by %v", fault, at, off)
			}
			p.close(t)
			check(t, errors.Join(c.Close(), dev.Close()))
		}
	}
}

// farthest is the largest difference of two matrices in the largest element.
func farthest(got, want []float32) (off float64) {
	largest := 0.0
	for i := range want {
		d := math.Abs(float64(got[i]) - float64(want[i]))
		if d != d {
			return d
		}
		off, largest = max(off, d), max(largest, math.Abs(float64(want[i])))
	}
	return off / largest
}

// newFloats is a pair of random numbers, with a multiple of the diagonal of the size's root added.
func newFloats(t testing.TB, small, dev *gpu.Device, rng *rand.Rand, rows, cols int, diagonal float32, opts ...matrix.Options) pair {
	t.Helper()
	o := matrix.Options{Stride: cols}
	if len(opts) > 0 {
		o = opts[0]
	}
	v := make([]float32, o.Offset+rows*o.Stride)
	for i := range rows {
		row := v[o.Offset+i*o.Stride:]
		for j := range cols {
			row[j] = 2*rng.Float32() - 1
			if diagonal > 0 && j < i {
				row[j] = v[o.Offset+j*o.Stride+i]
			}
		}
		if i < cols {
			row[i] += diagonal * float32(math.Sqrt(float64(rows)))
		}
	}
	w := slices.Clone(v)
	return pair{must[*dense](t)(matrix.Wrap(small, rows, cols, v, o)), must[*dense](t)(matrix.Wrap(dev, rows, cols, w, o))}
}
