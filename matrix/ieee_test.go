// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestIEEE has what compilers like to simplify as if no number were NaN or infinite.
func TestIEEE(t *testing.T) {
	cases := []struct {
		name string
		expr func(x *dense) *expr
		want func(x float64) float64
	}{
		{"x - x", func(x *dense) *expr { return matrix.Sub(x, x) }, func(x float64) float64 { return x - x }},
		{"(x + 1) - (1 + x)", func(x *dense) *expr { return matrix.AddScalar(x, 1).Sub(matrix.AddScalar(x, 1)) }, func(x float64) float64 { return x - x }},
		{"2x - 2x", func(x *dense) *expr { y := matrix.Scale(2, x); return y.Sub(y) }, func(x float64) float64 { return x*2 - x*2 }},
		{"abs(x) - abs(x)", func(x *dense) *expr { y := matrix.Abs(x); return y.Sub(y) }, func(x float64) float64 { return x - x }},
		{"exp(x) - exp(x)", func(x *dense) *expr { y := matrix.Exp(x); return y.Sub(y) }, func(x float64) float64 { e := float64(float32(math.Exp(x))); return e - e }},
		{"recip(x) - recip(x)", func(x *dense) *expr { y := matrix.Recip(x); return y.Sub(y) }, func(x float64) float64 { return 1/x - 1/x }},
		{"recip(x) / recip(x)", func(x *dense) *expr { y := matrix.Recip(x); return y.DivElem(y) }, func(x float64) float64 { e := float64(float32(1 / x)); return e / e }},
		{"x*x - x*x", func(x *dense) *expr { return matrix.MulElem(x, x).Sub(matrix.MulElem(x, x)) }, func(x float64) float64 { e := float64(float32(x * x)); return e - e }},
		{"(x+x)-(x+x)", func(x *dense) *expr { return matrix.Add(x, x).Sub(matrix.Add(x, x)) }, func(x float64) float64 { e := float64(float32(x + x)); return e - e }},
		{"sqrt(x) <= sqrt(x)", func(x *dense) *expr { y := matrix.Sqrt(x); return y.LessEqual(y) }, func(x float64) float64 { return truth(x >= 0) }},
		{"sqrt(x) == sqrt(x)", func(x *dense) *expr { y := matrix.Sqrt(x); return y.Equal(y) }, func(x float64) float64 { return truth(x >= 0) }},
		{"sqrt(x) != sqrt(x)", func(x *dense) *expr { y := matrix.Sqrt(x); return y.NotEqual(y) }, func(x float64) float64 { return truth(!(x >= 0)) }},
		{"sum(x) - sum(x)", func(x *dense) *expr { y := matrix.Sum(x); return x.Expr().MulElem(y.Sub(y)) }, func(x float64) float64 { return math.NaN() }},
		{"x + -x", func(x *dense) *expr { return matrix.Neg(x).Add(x) }, func(x float64) float64 { return x - x }},
		{"x + (0 - x)", func(x *dense) *expr { return matrix.ScalarSub(0, x).Add(x) }, func(x float64) float64 { return x - x }},
		{"(x + x) - x", func(x *dense) *expr { return matrix.Add(x, x).Sub(x) }, func(x float64) float64 { return float64(float32(x)*2) - x }},
		{"x - (x - x)", func(x *dense) *expr { return matrix.Sub(x, matrix.Sub(x, x)) }, func(x float64) float64 { return x - (x - x) }},
		{"x - x * 1", func(x *dense) *expr { return matrix.Sub(x, matrix.Scale(1, x)) }, func(x float64) float64 { return x - x }},
		{"0 * x", func(x *dense) *expr { return matrix.Scale(0, x) }, func(x float64) float64 { return 0 * x }},
		{"(x - x) * x", func(x *dense) *expr { return matrix.Sub(x, x).MulElem(x) }, func(x float64) float64 { return (x - x) * x }},
		{"x / x", func(x *dense) *expr { return matrix.DivElem(x, x) }, func(x float64) float64 { return x / x }},
		{"x * (1 / x)", func(x *dense) *expr { return matrix.Recip(x).MulElem(x) }, func(x float64) float64 { return float64(float32(1/x)) * x }},
		{"x == x", func(x *dense) *expr { return matrix.Equal(x, x) }, func(x float64) float64 { return truth(x == x) }},
		{"x != x", func(x *dense) *expr { return matrix.NotEqual(x, x) }, func(x float64) float64 { return truth(x != x) }},
		{"x <= x", func(x *dense) *expr { return matrix.LessEqual(x, x) }, func(x float64) float64 { return truth(x <= x) }},
		{"x >= x", func(x *dense) *expr { return matrix.GreaterEqual(x, x) }, func(x float64) float64 { return truth(x >= x) }},
		{"!(x < 1)", func(x *dense) *expr { return matrix.Not(matrix.Less(x, matrix.Fill(1, 1, float32(1)))) }, func(x float64) float64 { return truth(!(x < 1)) }},
		{"!(x >= 1)", func(x *dense) *expr { return matrix.Not(matrix.GreaterEqual(x, matrix.Fill(1, 1, float32(1)))) }, func(x float64) float64 { return truth(!(x >= 1)) }},
		{"max(x, x)", func(x *dense) *expr { return matrix.Max(x, x) }, func(x float64) float64 { return x }},
		{"clamp(x, -2, 2)", func(x *dense) *expr { return matrix.Clamp(x, -2, 2) }, func(x float64) float64 { return math.Max(-2, math.Min(x, 2)) }},
		{"sqrt(x) * sqrt(x)", func(x *dense) *expr { return matrix.Sqrt(x).Square() }, func(x float64) float64 { return float64(float32(math.Sqrt(x))) * float64(float32(math.Sqrt(x))) }},
		{"sign(x)", func(x *dense) *expr { return matrix.Sign(x) }, func(x float64) float64 {
			if x == 0 || x != x {
				return x
			}
			return math.Copysign(1, x)
		}},
		{"x ** 2", func(x *dense) *expr { return matrix.PowScalar(x, 2) }, func(x float64) float64 { return x * x }},
		{"abs(-x)", func(x *dense) *expr { return matrix.Abs(matrix.Neg(x)) }, math.Abs},
		{"floor(x) - x", func(x *dense) *expr { return matrix.Floor(x).Sub(x) }, func(x float64) float64 { return math.Floor(x) - x }},
		{"where(nan)", func(x *dense) *expr {
			return matrix.Where(x, matrix.Fill(1, 1, float32(1)), matrix.Fill(1, 1, float32(2)))
		}, func(x float64) float64 {
			if x != 0 {
				return 1
			}
			return 2
		}},
		{"and(nan)", func(x *dense) *expr { return matrix.And(x, x) }, func(x float64) float64 {
			if x != 0 {
				return 1
			}
			return 0
		}},
		{"0 - x", func(x *dense) *expr { return matrix.ScalarSub(0, x) }, func(x float64) float64 { return 0 - x }},
		{"exp(log(x))", func(x *dense) *expr { return matrix.Exp(matrix.Log(x)) }, func(x float64) float64 { return math.Exp(float64(float32(math.Log(x)))) }},
		{"trunc", func(x *dense) *expr { return matrix.Trunc(x) }, math.Trunc},
		{"round", func(x *dense) *expr { return matrix.Round(x) }, math.RoundToEven},
		{"floor", func(x *dense) *expr { return matrix.Floor(x) }, math.Floor},
	}
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 2.5, -3.75, 1e30, -1e30, 3e38, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x))
		for _, c := range cases {
			got := must[[]float32](t)(c.expr(a).Read(background))
			for i, v := range x {
				w := float32(c.want(float64(v)))
				if g := got[i]; g != w && (g == g || w == w) && math.Abs(float64(g-w)) > 8*ulp(float64(w)) {
					t.Errorf("%s: of %v is %v, want %v", c.name, v, g, w)
				}
			}
		}
	})
}
