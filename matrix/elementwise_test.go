// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

type (
	dense = matrix.Dense[float32]
	expr  = matrix.Expr[float32]
	arg   = matrix.Operand[float32]
)

// unaryCases: the function, its reference, and the range of arguments.
var unaryCases = []struct {
	name   string
	expr   func(arg) *expr
	want   func(float64) float64
	lo, hi float64
}{
	{"neg", matrix.Neg[float32], func(x float64) float64 { return -x }, -9, 9},
	{"abs", matrix.Abs[float32], math.Abs, -9, 9},
	{"sign", matrix.Sign[float32], func(x float64) float64 {
		if x == 0 || x != x {
			return x
		}
		return math.Copysign(1, x)
	}, -2, 2},
	{"floor", matrix.Floor[float32], math.Floor, -9, 9},
	{"ceil", matrix.Ceil[float32], math.Ceil, -9, 9},
	{"round", matrix.Round[float32], math.RoundToEven, -9, 9},
	{"trunc", matrix.Trunc[float32], math.Trunc, -9, 9},
	{"square", matrix.Square[float32], func(x float64) float64 { return x * x }, -9, 9},
	{"sqrt", matrix.Sqrt[float32], math.Sqrt, 0, 1e6},
	{"exp", matrix.Exp[float32], math.Exp, -87.33654, 88.72283},
	{"log", matrix.Log[float32], math.Log, 1e-37, 1e38},
	{"tanh", matrix.Tanh[float32], math.Tanh, -12, 12},
	{"sigmoid", matrix.Sigmoid[float32], func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, -20, 20},
	{"sin", matrix.Sin[float32], math.Sin, -9, 9},
	{"sin far", matrix.Sin[float32], math.Sin, -0x1p30, 0x1p30},
	{"cos", matrix.Cos[float32], math.Cos, -9, 9},
	{"cos far", matrix.Cos[float32], math.Cos, -1e6, 1e38},
	{"tan", matrix.Tan[float32], math.Tan, -1e6, 1e6},
	{"asin", matrix.Asin[float32], math.Asin, -1, 1},
	{"acos", matrix.Acos[float32], math.Acos, -1, 1},
	{"atan", matrix.Atan[float32], math.Atan, -20, 20},
	{"sinh", matrix.Sinh[float32], math.Sinh, -90, 90},
	{"cosh", matrix.Cosh[float32], math.Cosh, -90, 90},
	{"asinh", matrix.Asinh[float32], math.Asinh, -1e38, 1e38},
	{"acosh", matrix.Acosh[float32], math.Acosh, 1, 1e38},
	{"atanh", matrix.Atanh[float32], math.Atanh, -1, 1},
	{"exp2", matrix.Exp2[float32], math.Exp2, -126, 128},
	{"exp10", matrix.Exp10[float32], func(x float64) float64 { return math.Pow(10, x) }, -37, 38},
	{"expm1", matrix.Expm1[float32], math.Expm1, -30, 88},
	{"log2", matrix.Log2[float32], math.Log2, 1e-37, 1e38},
	{"log10", matrix.Log10[float32], math.Log10, 1e-37, 1e38},
	{"log1p", matrix.Log1p[float32], math.Log1p, -1, 9},
	{"cbrt", matrix.Cbrt[float32], math.Cbrt, -1e38, 1e38},
	{"rcbrt", matrix.Rcbrt[float32], func(x float64) float64 { return 1 / math.Cbrt(x) }, -1e38, 1e38},
	{"rsqrt", matrix.Rsqrt[float32], func(x float64) float64 { return 1 / math.Sqrt(x) }, 1e-37, 1e38},
	{"erf", matrix.Erf[float32], math.Erf, -5, 5},
	{"erfc", matrix.Erfc[float32], math.Erfc, -5, 9},
	{"softplus", matrix.Softplus[float32], func(x float64) float64 {
		return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	}, -80, 20},
	{"elu", matrix.Elu[float32], func(x float64) float64 {
		if x < 0 {
			return math.Expm1(x)
		}
		return x
	}, -20, 9},
	{"gelu", matrix.Gelu[float32], func(x float64) float64 { return .5 * x * math.Erfc(-x/math.Sqrt2) }, -5, 9},
	{"silu", matrix.Silu[float32], func(x float64) float64 { return x / (1 + math.Exp(-x)) }, -91, 91},
	{"relu", matrix.Relu[float32], func(x float64) float64 { return math.Max(x, 0) }, -9, 9},
	{"recip", matrix.Recip[float32], func(x float64) float64 { return 1 / x }, 0.01, 100},
}

// arguments are evenly spaced over a range, of any exponent within it, and special values.
func arguments(lo, hi float64) []float32 {
	rng := newRand(3)
	x := make([]float32, 0, 3100)
	for i := range 1031 {
		x = append(x, float32(lo+(hi-lo)*float64(i)/1030))
	}
	for len(x) < 3080 {
		if v := math.Float32frombits(rng.Uint32()); float64(v) >= lo && float64(v) <= hi && math.Abs(float64(v)) > 0x1p-120 {
			x = append(x, v)
		}
	}
	return append(x, 0, float32(math.Copysign(0, -1)), 1, -1, 2, -2, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()))
}

func TestUnary(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, c := range unaryCases {
			x := arguments(c.lo, c.hi)
			want := float64s(x)
			for i, v := range want {
				want[i] = c.want(v)
			}
			a := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x))
			function, _, _ := strings.Cut(c.name, " ")
			near(t, c.name, must[[]float32](t)(c.expr(a).Read(background)), want, bound(t, function))
			check(t, a.Close())
		}
	})
}

// TestCubeRootsOfSubnormals wants them from devices that compute with subnormal numbers. Others may take these for 0.
func TestCubeRootsOfSubnormals(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := []float32{9.6e-39, -1.1754942e-38, 1e-42, -1e-45}
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 2, x))
		roots, inverse := must[[]float32](t)(matrix.Cbrt(a).Read(background)), must[[]float32](t)(matrix.Rcbrt(a).Read(background))
		exact := dev.Info().Driver == "simd" || dev.Info().Driver == "cpu"
		for i, v := range x {
			want := math.Cbrt(float64(v))
			if right := math.Abs(float64(roots[i])/want-1) < 1e-6 && math.Abs(float64(inverse[i])*want-1) < 2e-6; !right && (exact || math.Abs(float64(roots[i])) > 0x1p-126) {
				t.Errorf("of %g: %g and %g, want %g", v, roots[i], inverse[i], want)
			}
		}
		check(t, a.Close())
	})
}

// readable is a matrix or an expression.
type readable interface {
	Read(context.Context) ([]float32, error)
}

// TestScalars has the functions of a matrix and a number, and those that only views and choices use.
func TestScalars(t *testing.T) {
	x := []float32{-3, -0.5, 0, 0.5, 1, 8}
	cases := []struct {
		name string
		expr func(*dense) readable
		want []float64
	}{
		{"Scale", func(a *dense) readable { return matrix.Scale(2, a) }, []float64{-6, -1, 0, 1, 2, 16}},
		{"AddScalar", func(a *dense) readable { return matrix.AddScalar(a, 2) }, []float64{-1, 1.5, 2, 2.5, 3, 10}},
		{"DivScalar", func(a *dense) readable { return matrix.DivScalar(a, 2) }, []float64{-1.5, -.25, 0, .25, .5, 4}},
		{"ScalarSub", func(a *dense) readable { return matrix.ScalarSub(1, a) }, []float64{4, 1.5, 1, .5, 0, -7}},
		{"ScalarDiv", func(a *dense) readable { return matrix.ScalarDiv(8, a).Clamp(-100, 100) }, []float64{-8. / 3, -16, 100, 16, 8, 1}},
		{"MinScalar", func(a *dense) readable { return matrix.MinScalar(a, .25) }, []float64{-3, -.5, 0, .25, .25, .25}},
		{"MaxScalar", func(a *dense) readable { return matrix.MaxScalar(a, .25) }, []float64{.25, .25, .25, .5, 1, 8}},
		{"Not", func(a *dense) readable { return matrix.Not(a) }, []float64{0, 0, 1, 0, 0, 0}},
		{"RowSlice", func(a *dense) readable { return a.RowSlice(1, 1) }, []float64{.5, 1, 8}},
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 3, x))
		for _, c := range cases {
			near(t, c.name, must[[]float32](t)(c.expr(a).Read(background)), c.want, 3)
		}
		b := must[*dense](t)(matrix.New[float32](dev, 0, 0))
		check(t, b.Assign(a))
		near(t, "Copy", must[[]float32](t)(b.Read(background)), float64s(x), 0)
		check(t, errors.Join(a.Close(), b.Close()))
	})
}

// TestMethods compares methods of expressions with the functions of their names.
func TestMethods(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 3, []float32{-3, -0.5, 0, 0.5, 1, 8}))
		b := must[*dense](t)(matrix.FromSlice(dev, 2, 3, []float32{1, -0.5, 2, 0, 1, 9}))
		e := matrix.Convert[float32](a)
		for name, c := range map[string][2]*expr{
			"Sub": {e.Sub(b), matrix.Sub(a, b)}, "DivElem": {e.DivElem(b), matrix.DivElem(a, b)}, "Pow": {e.Abs().Pow(b), matrix.Pow(matrix.Abs(a), b)},
			"Less": {e.Less(b), matrix.Less(a, b)}, "GreaterEqual": {e.GreaterEqual(b), matrix.GreaterEqual(a, b)},
			"And": {e.And(b), matrix.And(a, b)}, "Where": {e.Where(b, a), matrix.Where(a, b, a)}, "Clamp": {e.Clamp(-1, 1), matrix.Clamp(a, -1, 1)},
			"ScalarSub": {e.ScalarSub(2), matrix.ScalarSub(2, a)}, "PowScalar": {e.PowScalar(3), matrix.PowScalar(a, 3)},
			"Sin": {e.Sin(), matrix.Sin(a)}, "Not": {e.Not(), matrix.Not(a)}, "T": {e.T(), matrix.Transpose(a)},
			"MaxRows": {e.MaxRows(), matrix.MaxRows(a)}, "MinAll": {e.MinAll(), matrix.MinAll(a)}, "ProdCols": {e.ProdCols(), matrix.ProdCols(a)},
			"MeanRows": {e.MeanRows(), matrix.MeanRows(a)}, "LogSoftmax": {e.LogSoftmax(), matrix.LogSoftmax(a)},
		} {
			same(t, name, must[[]float32](t)(c[0].Read(background)), must[[]float32](t)(c[1].Read(background)))
		}
		check(t, errors.Join(a.Close(), b.Close()))
	})
}

func TestSpecialValues(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := []float32{0, -inf, inf, nan, -1, 100, -100, 1e-30}
	cases := []struct {
		name string
		expr func(arg) *expr
		want []float64
	}{
		{"relu", matrix.Relu[float32], []float64{0, 0, math.Inf(1), math.NaN(), 0, 100, 0, float64(float32(1e-30))}},
		{"tanh", matrix.Tanh[float32], []float64{0, -1, 1, math.NaN(), math.Tanh(-1), 1, -1, float64(float32(1e-30))}},
		{"sigmoid", matrix.Sigmoid[float32], []float64{.5, 0, 1, math.NaN(), 1 / (1 + math.E), 1, 0, .5}},
		{"sign", matrix.Sign[float32], []float64{0, -1, 1, math.NaN(), -1, 1, -1, 1}},
		{"exp", matrix.Exp[float32], []float64{1, 0, math.Inf(1), math.NaN(), 1 / math.E, math.Inf(1), 0, 1}},
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 4, x))
		for _, c := range cases {
			near(t, c.name, must[[]float32](t)(c.expr(a).Read(background)), c.want, 8)
		}
		b := must[*dense](t)(matrix.FromSlice(dev, 2, 4, []float32{nan, 1, 1, 1, nan, 1, 1, 1}))
		nn := math.NaN()
		near(t, "max", must[[]float32](t)(matrix.Max(a, b).Read(background)), []float64{nn, 1, math.Inf(1), nn, nn, 100, 1, 1}, 0)
		near(t, "min", must[[]float32](t)(matrix.Min(a, b).Read(background)), []float64{nn, math.Inf(-1), 1, nn, nn, 1, -100, float64(float32(1e-30))}, 0)
	})
}

func TestPow(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := []float32{-2, -2, -2, 0, 0, 2, 3, 1.5, -3, 0, 10, nan, nan, nan, 0, 2, 1, 1, -1, -inf, -inf, -inf, inf, 2, .5, -2}
	y := []float32{2, 3, .5, 0, 2, -1, 4, 2.5, -3, -1, 0, 2, -.5, 0, nan, nan, nan, inf, -inf, .5, -.5, 3, -2, inf, inf, -inf}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x))
		b := must[*dense](t)(matrix.FromSlice(dev, 1, len(y), y))
		want := make([]float64, len(x))
		for i := range x {
			want[i] = math.Pow(float64(x[i]), float64(y[i]))
		}
		near(t, "pow", must[[]float32](t)(matrix.Pow(a, b).Read(background)), want, bound(t, "Pow"))
		for _, s := range []float32{-1, .5, 1, 2, 3, 4} {
			p := must[*dense](t)(matrix.FromSlice(dev, 1, 3, []float32{.5, 2, 7}))
			w := []float64{math.Pow(.5, float64(s)), math.Pow(2, float64(s)), math.Pow(7, float64(s))}
			near(t, "power of a number", must[[]float32](t)(matrix.PowScalar(p, s).Read(background)), w, bound(t, "Pow"))
		}
	})
}

func TestBinaryAndComparisons(t *testing.T) {
	cases := []struct {
		name string
		expr func(a, b arg) *expr
		want func(a, b float64) float64
	}{
		{"add", matrix.Add[float32], func(a, b float64) float64 { return a + b }},
		{"sub", matrix.Sub[float32], func(a, b float64) float64 { return a - b }},
		{"mul", matrix.MulElem[float32], func(a, b float64) float64 { return a * b }},
		{"div", matrix.DivElem[float32], func(a, b float64) float64 { return a / b }},
		{"min", matrix.Min[float32], math.Min},
		{"max", matrix.Max[float32], math.Max},
		{"eq", matrix.Equal[float32], func(a, b float64) float64 { return truth(a == b) }},
		{"ne", matrix.NotEqual[float32], func(a, b float64) float64 { return truth(a != b) }},
		{"lt", matrix.Less[float32], func(a, b float64) float64 { return truth(a < b) }},
		{"le", matrix.LessEqual[float32], func(a, b float64) float64 { return truth(a <= b) }},
		{"gt", matrix.Greater[float32], func(a, b float64) float64 { return truth(a > b) }},
		{"ge", matrix.GreaterEqual[float32], func(a, b float64) float64 { return truth(a >= b) }},
		{"and", matrix.And[float32], func(a, b float64) float64 { return truth(a != 0 && b != 0) }},
		{"or", matrix.Or[float32], func(a, b float64) float64 { return truth(a != 0 || b != 0) }},
	}
	x := []float32{1, 2, 3, -4, 0, 0, 7, 1.5, -2}
	y := []float32{1, 3, 2, -5, 1, 2, 7, .5, 9}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 3, 3, x))
		b := must[*dense](t)(matrix.FromSlice(dev, 3, 3, y))
		for _, c := range cases {
			want := make([]float64, len(x))
			for i := range x {
				want[i] = c.want(float64(x[i]), float64(y[i]))
			}
			near(t, c.name, must[[]float32](t)(c.expr(a, b).Read(background)), want, 3)
		}
		w := must[[]float32](t)(matrix.Where(matrix.Greater(a, b), a, b).Read(background))
		same(t, "where", w, []float32{1, 3, 3, -4, 1, 2, 7, 1.5, 9})
		cl := must[[]float32](t)(matrix.Clamp(a, -1, 2).Read(background))
		same(t, "clamp", cl, []float32{1, 2, 2, -1, 0, 0, 2, 1.5, -1})
		fill := must[[]float32](t)(matrix.MulElem(matrix.Fill(2, 3, float32(4)), b.Slice(0, 1, 0, 1)).Read(background))
		same(t, "fill of a size", fill, []float32{4, 4, 4, 4, 4, 4})
		sc := must[[]float32](t)(matrix.ScalarSub(10, a).Scale(2).AddScalar(1).DivScalar(2).Read(background))
		same(t, "scalars", sc, []float32{9.5, 8.5, 7.5, 14.5, 10.5, 10.5, 3.5, 9, 12.5})
	})
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func TestIntegers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 5, []int32{7, -7, math.MinInt32, 5, 0}))
		b := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 5, []int32{2, 2, -1, 0, 3}))
		same(t, "div", must[[]int32](t)(matrix.DivElem(a, b).Read(background)), []int32{3, -3, math.MinInt32, 5, 0})
		same(t, "chain", must[[]int32](t)(matrix.Abs(a).Add(b).Neg().Read(background)), []int32{-9, -9, -math.MaxInt32, -5, -3})
		u := must[*matrix.Dense[uint32]](t)(matrix.FromSlice(dev, 1, 3, []uint32{1, 2, 4000000000}))
		same(t, "unsigned", must[[]uint32](t)(matrix.Add(u, u).AddScalar(1).Read(background)), []uint32{3, 5, 3705032705})
		if err := matrix.Exp(a).Err(); fault.Code(err) != "ErrUnsupported" {
			t.Errorf("exp of integers: %v", err)
		}
		f := must[[]float32](t)(matrix.Convert[float32](a).Scale(.5).Read(background))
		same(t, "convert", f, []float32{3.5, -3.5, -1073741824, 2.5, 0})
		g := must[*dense](t)(matrix.FromSlice(dev, 1, 4, []float32{1.9, -1.9, 3e9, 7}))
		same(t, "to int", must[[]int32](t)(matrix.Convert[int32](matrix.Add(g, g)).Read(background))[:2], []int32{3, -3})
	})
}

func TestHalf(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, n := range []int{1, 2, 3, 5, 8, 33} {
			x := make([]matrix.Half, n*n)
			want := make([]float32, n*n)
			for i := range x {
				x[i] = matrix.ToHalf(float32(i%50) / 4)
				want[i] = x[i].Float32()*2 + 1
			}
			a := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, n, n, x))
			got := must[[]matrix.Half](t)(matrix.Scale(matrix.ToHalf(2), a).AddScalar(matrix.ToHalf(1)).Read(background))
			for i := range got {
				if got[i].Float32() != want[i] {
					t.Fatalf("%d: element %d is %v, want %v", n, i, got[i].Float32(), want[i])
				}
			}
			if n < 3 {
				continue
			}
			// an unaligned part, of which words are shared with its neighbours
			check(t, a.Slice(1, n-1, 1, n-1).Assign(matrix.Fill(n-2, n-2, matrix.ToHalf(9))))
			got = must[[]matrix.Half](t)(a.Read(background))
			for i := range n {
				for j := range n {
					w := x[i*n+j]
					if i > 0 && i < n-1 && j > 0 && j < n-1 {
						w = matrix.ToHalf(9)
					}
					if got[i*n+j] != w {
						t.Fatalf("%d: slice: (%d,%d) is %v, want %v", n, i, j, got[i*n+j].Float32(), w.Float32())
					}
				}
			}
			check(t, a.Close())
		}
	})
}

// TestLayouts copies and adds between all pairs of layouts and sizes, and watches the cells around the result.
func TestLayouts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(1)
		for _, d := range [][2]int{{1, 1}, {1, 7}, {7, 1}, {2, 3}, {4, 4}, {5, 8}, {8, 5}, {17, 33}, {64, 12}, {0, 3}, {3, 0}} {
			rows, cols := d[0], d[1]
			x, y := random(rng, rows*cols), random(rng, rows*cols)
			want := make([]float32, len(x))
			for i := range want {
				want[i] = x[i] - y[i]
			}
			for _, fa := range forms {
				a, _ := wrapped(t, dev, fa, rows, cols, x)
				for _, fc := range forms {
					what := name(rows, "x", cols, fa.name, fc.name)
					b, _ := wrapped(t, dev, fa, cols, rows, transposed(y, rows, cols))
					c, mem := wrapped(t, dev, fc, rows, cols, make([]float32, rows*cols))
					check(t, c.Assign(matrix.Sub(a, b.T())))
					check(t, c.Sync(background))
					same(t, what, must[[]float32](t)(c.Read(background)), want)
					guarded(t, what, c, mem)
					check(t, b.Close())
					check(t, c.Close())
				}
				check(t, a.Close())
			}
		}
	})
}

func transposed(x []float32, rows, cols int) []float32 {
	y := make([]float32, len(x))
	for i := range rows {
		for j := range cols {
			y[j*rows+i] = x[i*cols+j]
		}
	}
	return y
}

func TestBroadcast(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(2)
		for _, d := range [][2]int{{1, 1}, {3, 5}, {8, 8}, {33, 17}, {1, 9}, {9, 1}} {
			rows, cols := d[0], d[1]
			x, r, c := random(rng, rows*cols), random(rng, cols), random(rng, rows)
			a := must[*dense](t)(matrix.FromSlice(dev, rows, cols, x))
			row := must[*dense](t)(matrix.FromSlice(dev, 1, cols, r))
			col := must[*dense](t)(matrix.FromSlice(dev, rows, 1, c))
			one := must[*dense](t)(matrix.FromSlice(dev, 1, 1, []float32{.5}))
			want := make([]float32, rows*cols)
			outer := make([]float32, rows*cols)
			for i := range want {
				want[i] = float32((x[i]+r[i%cols])*c[i/cols]) - .5 // rounded twice, where Go would fuse, too
				outer[i] = c[i/cols] * r[i%cols]
			}
			got := must[[]float32](t)(matrix.Add(a, row).MulElem(col).Sub(one).Read(background))
			near(t, name(d), got, float64s(want), 2)
			same(t, name(d, "outer"), must[[]float32](t)(matrix.MulElem(col, row).Read(background)), outer)
			same(t, name(d, "outer of views"), must[[]float32](t)(matrix.MulElem(row.T(), col.T()).Read(background)), transposed(outer, rows, cols))
		}
	})
}

// TestAliasing assigns to operands of the expression: the result is what it would be elsewhere.
func TestAliasing(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}
		fresh := func() *dense { return must[*dense](t)(matrix.FromSlice(dev, 3, 3, x)) }
		read := func(m *dense) []float32 { return must[[]float32](t)(m.Read(background)) }

		a := fresh()
		check(t, a.Assign(a.T()))
		same(t, "A = T(A)", read(a), []float32{1, 4, 7, 2, 5, 8, 3, 6, 9})
		a = fresh()
		check(t, a.Assign(matrix.Add(a, a.T())))
		same(t, "A += T(A)", read(a), []float32{2, 6, 10, 6, 10, 14, 10, 14, 18})
		a = fresh()
		b := a.Alias()
		check(t, a.Assign(b.T()))
		same(t, "A = T(alias)", read(a), []float32{1, 4, 7, 2, 5, 8, 3, 6, 9})
		a = fresh()
		check(t, a.MulElem(a, a))
		same(t, "A = A % A", read(a), []float32{1, 4, 9, 16, 25, 36, 49, 64, 81})
		a = fresh()
		check(t, a.Slice(0, 2, 0, 2).Assign(a.Slice(1, 3, 1, 3)))
		same(t, "overlapping slices", read(a), []float32{5, 6, 3, 8, 9, 6, 7, 8, 9})
		a = fresh()
		check(t, a.ColumnSlice(0, 1).Assign(matrix.Add(a.Col(1), a.Col(2))))
		same(t, "columns side by side", read(a), []float32{5, 2, 3, 11, 5, 6, 17, 8, 9})
		a = fresh()
		check(t, a.Assign(matrix.Mul(a, a)))
		same(t, "A = A * A", read(a), []float32{30, 36, 42, 66, 81, 96, 102, 126, 150})
		a = fresh()
		check(t, a.Assign(matrix.Mul(a, a).Add(a)))
		same(t, "A += A * A", read(a), []float32{31, 38, 45, 70, 86, 102, 109, 134, 159})
		a = fresh()
		check(t, a.Assign(matrix.Mul(a.T(), a.Alias())))
		same(t, "A = T(A) * A", read(a), []float32{66, 78, 90, 78, 93, 108, 90, 108, 126})
	})
}

func TestUserFunction(t *testing.T) {
	f := matrix.NewFunc("// leaky relu\nconst SLOPE: f32 = 0.25;\nfn leaky(x: f32, y: f32) -> f32 {\n  return select(x, x * SLOPE, x < 0.0) + y;\n}\n")
	onGPUs(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, 5, []float32{-4, -1, 0, 1, 4}))
		got := must[[]float32](t)(matrix.Apply(f, a, matrix.Fill(1, 1, float32(1))).Scale(2).Read(background))
		same(t, "leaky", got, []float32{0, 1.5, 2, 4, 10})
		bad := matrix.NewFunc("fn broken(x: f32) -> f32 { return y; }")
		before := dev.Stats()
		err := a.Assign(matrix.Apply(bad, a))
		if fault.Code(err) != "ErrCompile" {
			t.Fatalf("broken function: %v", err)
		}
		same(t, "unchanged", must[[]float32](t)(a.Read(background)), []float32{-4, -1, 0, 1, 4})
		if s := dev.Stats(); s.Compilations != before.Compilations {
			t.Errorf("a failure counted as a compilation")
		}
	})
}

func TestLargeDimensions(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, d := range [][2]int{{1, 70001}, {70001, 1}, {70001, 3}, {3, 70001}, {1 << 20, 17}} {
			rows, cols := d[0], d[1]
			x := make([]float32, rows*cols)
			for i := range x {
				x[i] = float32(i % 1000)
			}
			a := must[*dense](t)(matrix.FromSlice(dev, rows, cols, x))
			got := must[[]float32](t)(matrix.Add(a.T(), a.T()).T().Read(background))
			for i, v := range got {
				if v != 2*x[i] {
					t.Fatalf("%v: element %d is %v", d, i, v)
				}
			}
			check(t, a.Close())
		}
	})
}

// TestLongChain is a tree too large for one kernel, with shared parts.
func TestLongChain(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 3, []float32{1, 2, 3, 4, 5, 6}))
		e := matrix.Add(a, a)
		for range 999 {
			e = e.Add(a)
		}
		same(t, "1001 a", must[[]float32](t)(e.Read(background)), []float32{1001, 2002, 3003, 4004, 5005, 6006})
		p := matrix.Scale(1, a)
		for range 100 {
			p = matrix.Max(p, p.Neg()) // 2^100 paths
		}
		same(t, "shared", must[[]float32](t)(p.Read(background)), []float32{1, 2, 3, 4, 5, 6})
		var many []*dense
		sum := matrix.Scale(0, a)
		for i := range 20 {
			m := must[*dense](t)(matrix.FromSlice(dev, 2, 3, []float32{float32(i), 1, 1, 1, 1, 1}))
			many = append(many, m)
			sum = sum.Add(m)
		}
		same(t, "many operands", must[[]float32](t)(sum.Read(background)), []float32{190, 20, 20, 20, 20, 20})
		if n := dev.Stats().Buffers; n > len(many)+1 {
			t.Errorf("%d buffers in use, temporaries were kept", n)
		}
	})
}
