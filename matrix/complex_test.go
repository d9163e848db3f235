// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"math/cmplx"
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

type complexMatrix = matrix.Dense[complex64]

func randomComplex(rng *rand.Rand, n int) []complex64 {
	s := make([]complex64, n)
	for i := range s {
		s[i] = complex(rng.Float32()*4-2, rng.Float32()*4-2)
	}
	return s
}

func widened(s []complex64) []complex128 {
	w := make([]complex128, len(s))
	for i, v := range s {
		w[i] = complex128(v)
	}
	return w
}

// closeTo fails unless every element is within tol of the reference, relative to the larger of its absolute value and 1.
func closeTo(t testing.TB, what string, got []complex64, want []complex128, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if d := cmplx.Abs(complex128(got[i]) - w); !(d <= tol*max(cmplx.Abs(w), 1)) {
			t.Fatalf("%s: element %d of %d is %v, want %v", what, i, len(want), got[i], w)
		}
	}
}

// wrappedComplex lays out values in memory of a form, with guard cells everywhere else.
func wrappedComplex(t testing.TB, dev *gpu.Device, f form, rows, cols int, values []complex64) (*complexMatrix, []complex64) {
	t.Helper()
	mem := make([]complex64, 16+(rows+8)*(cols+8)*2)
	for i := range mem {
		mem[i] = guard
	}
	m := must[*complexMatrix](t)(matrix.Wrap(dev, rows, cols, mem, f.opts(rows, cols)))
	for k, v := range values {
		mem[cell(m, k/cols, k%cols)] = v
	}
	return m, mem
}

// guardedComplex fails if a cell outside the matrix was changed.
func guardedComplex(t testing.TB, what string, m *complexMatrix, mem []complex64) {
	t.Helper()
	rows, cols := m.Dims()
	mine := map[int]bool{}
	for k := range rows * cols {
		mine[cell(m, k/cols, k%cols)] = true
	}
	for i, v := range mem {
		if !mine[i] && v != guard {
			t.Fatalf("%s: cell %d outside the matrix is %v", what, i, v)
		}
	}
}

type complexOperand = matrix.Operand[complex64]

// complexFunctions are the element-wise operations with their references.
var complexFunctions = []struct {
	name string
	make func(z, w complexOperand) *matrix.Expr[complex64]
	want func(z, w complex128) complex128
}{
	{"z + w", func(z, w complexOperand) *matrix.Expr[complex64] { return matrix.Add(z, w) }, func(z, w complex128) complex128 { return z + w }},
	{"z - w", func(z, w complexOperand) *matrix.Expr[complex64] { return matrix.Sub(z, w) }, func(z, w complex128) complex128 { return z - w }},
	{"z w", func(z, w complexOperand) *matrix.Expr[complex64] { return matrix.MulElem(z, w) }, func(z, w complex128) complex128 { return z * w }},
	{"z / w", func(z, w complexOperand) *matrix.Expr[complex64] { return matrix.DivElem(z, w) }, func(z, w complex128) complex128 { return z / w }},
	{"z ** w", func(z, w complexOperand) *matrix.Expr[complex64] { return matrix.Pow(z, w) }, cmplx.Pow},
	{"z ** 3", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.PowScalar(z, 3) }, func(z, _ complex128) complex128 { return z * z * z }},
	{"z ** i", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.PowScalar(z, 1i) }, func(z, _ complex128) complex128 { return cmplx.Pow(z, 1i) }},
	{"(2-i) z", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Scale(2-1i, z) }, func(z, _ complex128) complex128 { return (2 - 1i) * z }},
	{"i / z", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.ScalarDiv(1i, z) }, func(z, _ complex128) complex128 { return 1i / z }},
	{"-z", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Neg(z) }, func(z, _ complex128) complex128 { return -z }},
	{"z z", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Square(z) }, func(z, _ complex128) complex128 { return z * z }},
	{"1 / z", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Recip(z) }, func(z, _ complex128) complex128 { return 1 / z }},
	{"conj", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Conj(z) }, func(z, _ complex128) complex128 { return cmplx.Conj(z) }},
	{"abs", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Abs(z) }, func(z, _ complex128) complex128 { return complex(cmplx.Abs(z), 0) }},
	{"exp", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Exp(z) }, func(z, _ complex128) complex128 { return cmplx.Exp(z) }},
	{"log", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Log(z) }, func(z, _ complex128) complex128 { return cmplx.Log(z) }},
	{"sqrt", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Sqrt(z) }, func(z, _ complex128) complex128 { return cmplx.Sqrt(z) }},
	{"sin", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Sin(z) }, func(z, _ complex128) complex128 { return cmplx.Sin(z) }},
	{"cos", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Cos(z) }, func(z, _ complex128) complex128 { return cmplx.Cos(z) }},
	{"tan", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Tan(z) }, func(z, _ complex128) complex128 { return cmplx.Tan(z) }},
	{"sinh", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Sinh(z) }, func(z, _ complex128) complex128 { return cmplx.Sinh(z) }},
	{"cosh", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Cosh(z) }, func(z, _ complex128) complex128 { return cmplx.Cosh(z) }},
	{"tanh", func(z, _ complexOperand) *matrix.Expr[complex64] { return matrix.Tanh(z) }, func(z, _ complex128) complex128 { return cmplx.Tanh(z) }},
	{"z == w", func(z, w complexOperand) *matrix.Expr[complex64] { return matrix.Equal(z, w) }, func(z, w complex128) complex128 { return truthOf(z == w) }},
	{"z != w", func(z, w complexOperand) *matrix.Expr[complex64] { return matrix.NotEqual(z, w) }, func(z, w complex128) complex128 { return truthOf(z != w) }},
	{"where", func(z, w complexOperand) *matrix.Expr[complex64] {
		return matrix.Where(matrix.Equal(z, w), matrix.Conj(z), matrix.Exp(w))
	}, func(z, w complex128) complex128 {
		if z == w {
			return cmplx.Conj(z)
		}
		return cmplx.Exp(w)
	}},
}

func truthOf(b bool) complex128 {
	if b {
		return 1
	}
	return 0
}

// TestComplexElementwise compares element-wise functions with those of math/cmplx, on matrices in memory of every form.
func TestComplexElementwise(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(140)
		for turn, f := range complexFunctions {
			rows, cols := 1+turn%5*3, 1+turn%7*2
			a, b := randomComplex(rng, rows*cols), randomComplex(rng, rows*cols)
			b[len(b)/2] = a[len(b)/2]
			want := make([]complex128, len(a))
			for i := range a {
				want[i] = f.want(complex128(a[i]), complex128(b[i]))
			}
			z, _ := wrappedComplex(t, dev, forms[turn%len(forms)], rows, cols, a)
			w, _ := wrappedComplex(t, dev, forms[(turn+1)%len(forms)], rows, cols, b)
			to, mem := wrappedComplex(t, dev, forms[(turn+2)%len(forms)], rows, cols, make([]complex64, rows*cols))
			check(t, to.Assign(f.make(z, w)))
			closeTo(t, f.name, must[[]complex64](t)(to.Read(background)), want, 1e-5)
			check(t, to.Sync(background))
			guardedComplex(t, f.name, to, mem)
			check(t, z.Assign(f.make(z, w)))
			closeTo(t, f.name+" in place", must[[]complex64](t)(z.Read(background)), want, 1e-5)
			for _, m := range []*complexMatrix{z, w, to} {
				check(t, m.Close())
			}
		}
		nothingLeft(t, dev)
	})
}

// TestComplexSpecials has numbers on the axes, 0, and some whose squares float32 does not hold.
func TestComplexSpecials(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		inf, nan := math.Inf(1), math.NaN()
		for _, v := range []struct {
			text string
			of   complex64
			want complex128
		}{
			{"sqrt(z)", -4, 2i},
			{"sqrt(z)", 0, 0},
			{"sqrt(z)", complex64(complex(3e38, -3e38)), cmplx.Sqrt(complex(3e38, -3e38))},
			{"abs(z)", 3e30 + 4e30i, 5e30},
			{"z / z", 3e30 + 3e30i, 1},
			{"(1 + 0*z) / z", 2e37 - 1e37i, 1 / (2e37 - 1e37i)},
			{"exp(z)", complex64(complex(-inf, 0)), 0},
			{"exp(z)", complex64(complex(inf, 0)), complex(inf, 0)},
			{"tanh(z)", 80 + 1i, 1},
			{"tan(z)", 1 - 80i, -1i},
			{"log(z)", -1, complex(0, math.Pi)},
			{"z ** 0", 0, 1},
			{"z ** 2.5", 0, 0},
			{"1 / z", 0, complex(inf, nan)},
			{"isnan(z)", complex64(complex(1, nan)), 1},
			{"isinf(z)", complex64(complex(1, -inf)), 1},
			{"isfinite(z)", complex64(complex(1, -inf)), 0},
			{"z == z", complex64(complex(nan, 1)), 0},
			{"angle(z)", -2, math.Pi},
		} {
			z := must[*complexMatrix](t)(matrix.FromSlice(dev, 1, 1, []complex64{v.of}))
			got := must[complex64](t)(matrix.Eval(v.text, map[string]complexOperand{"z": z}).Value(background))
			for _, part := range [][2]float64{{float64(real(got)), real(v.want)}, {float64(imag(got)), imag(v.want)}} {
				g, w := part[0], part[1]
				if !(g == w || math.IsNaN(g) && math.IsNaN(w) || math.Abs(g-w) <= 1e-6*max(cmplx.Abs(v.want), 1e-38)) {
					t.Errorf("%s of %v is %v, want %v", v.text, v.of, got, v.want)
				}
			}
			check(t, z.Close())
		}
		nothingLeft(t, dev)
	})
}

// naive is a times b.
func naive(a, b []complex128, rows, inner, cols int) []complex128 {
	out := make([]complex128, rows*cols)
	for i := range rows {
		for j := range cols {
			for k := range inner {
				out[i*cols+j] += a[i*inner+k] * b[k*cols+j]
			}
		}
	}
	return out
}

func turnedComplex(a []complex128, rows, cols int, conj bool) []complex128 {
	out := make([]complex128, len(a))
	for k, v := range a {
		if conj {
			v = cmplx.Conj(v)
		}
		out[k%cols*rows+k/cols] = v
	}
	return out
}

// TestComplexProducts multiplies complex matrices, and complex ones with real ones, and solves systems.
func TestComplexProducts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(141)
		for turn, size := range [][3]int{{1, 1, 1}, {3, 5, 2}, {17, 9, 33}, {40, 64, 31}, {2, 0, 3}, {1, 70, 1}} {
			rows, inner, cols := size[0], size[1], size[2]
			x, y, v := randomComplex(rng, rows*inner), randomComplex(rng, inner*cols), random(rng, inner*cols)
			a, _ := wrappedComplex(t, dev, forms[turn%len(forms)], rows, inner, x)
			b, _ := wrappedComplex(t, dev, forms[(turn+3)%len(forms)], inner, cols, y)
			alone := must[*dense](t)(matrix.FromSlice(dev, inner, cols, v))
			r := matrix.Convert[complex64](alone)
			reals := make([]complex128, len(v))
			for i := range v {
				reals[i] = complex(float64(v[i]), 0)
			}
			read := func(e *matrix.Expr[complex64]) []complex64 { return must[[]complex64](t)(e.Read(background)) }
			tol := 2e-6 * float64(1+inner)
			product := naive(widened(x), widened(y), rows, inner, cols)
			closeTo(t, name("a b", size), read(matrix.Mul[complex64](a, b)), product, tol)
			closeTo(t, name("a r", size), read(matrix.Mul[complex64](a, r)), naive(widened(x), reals, rows, inner, cols), tol)
			closeTo(t, name("T(a b)", size), read(matrix.Transpose(matrix.Mul[complex64](a, b))), turnedComplex(product, rows, cols, false), tol)
			h := turnedComplex(widened(x), rows, inner, true)
			closeTo(t, name("H(a) a", size), read(matrix.Mul[complex64](matrix.ConjTranspose[complex64](a), a)), naive(h, widened(x), inner, rows, inner), 2e-6*float64(1+rows))
			closeTo(t, name("T(r) T(a)", size), read(matrix.Mul(matrix.Transpose(r), matrix.Transpose[complex64](a))),
				naive(turnedComplex(reals, inner, cols, false), turnedComplex(widened(x), rows, inner, false), cols, inner, rows), tol)
			check(t, a.Close())
			check(t, b.Close())
			check(t, alone.Close())
		}
		nothingLeft(t, dev)
	})
}
