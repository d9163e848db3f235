// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestIEEE has what compilers simplify as if no number were NaN or infinite, or as if sums were exact.
func TestIEEE(t *testing.T) {
	single := func(x float64) float64 { return float64(float32(x)) }
	cases := map[string]func(x float64) float64{
		"A - A":               func(x float64) float64 { return x - x },
		"(A + 1) - (1 + A)":   func(x float64) float64 { return x - x },
		"A + -A":              func(x float64) float64 { return x - x },
		"A + (0 - A)":         func(x float64) float64 { return x - x },
		"A - 1 * A":           func(x float64) float64 { return x - x },
		"2 * A - 2 * A":       func(x float64) float64 { return single(2*x) - single(2*x) },
		"(A + A) - A":         func(x float64) float64 { return single(2*x) - x },
		"A - (A - A)":         func(x float64) float64 { return x - (x - x) },
		"A % A - A % A":       func(x float64) float64 { return single(x*x) - single(x*x) },
		"abs(A) - abs(A)":     func(x float64) float64 { return x - x },
		"exp(A) - exp(A)":     func(x float64) float64 { return single(math.Exp(x)) - single(math.Exp(x)) },
		"recip(A) - recip(A)": func(x float64) float64 { return 1/x - 1/x },
		"0 * A":               func(x float64) float64 { return 0 * x },
		"(A - A) % A":         func(x float64) float64 { return (x - x) * x },
		"A / A":               func(x float64) float64 { return x / x },
		"recip(A) / recip(A)": func(x float64) float64 { return single(1/x) / single(1/x) },
		"A == A":              func(x float64) float64 { return truth(x == x) },
		"A != A":              func(x float64) float64 { return truth(x != x) },
		"A <= A":              func(x float64) float64 { return truth(x <= x) },
		"A >= A":              func(x float64) float64 { return truth(x >= x) },
		"sqrt(A) == sqrt(A)":  func(x float64) float64 { return truth(x >= 0) },
		"!(A < 1)":            func(x float64) float64 { return truth(!(x < 1)) },
		"!(A >= 1)":           func(x float64) float64 { return truth(!(x >= 1)) },
		"max(A, A)":           func(x float64) float64 { return x },
		"clamp(A, -2, 2)":     func(x float64) float64 { return math.Max(-2, math.Min(x, 2)) },
		"square(sqrt(A))":     func(x float64) float64 { return single(math.Sqrt(x)) * single(math.Sqrt(x)) },
		"sqrt(A % A)":         func(x float64) float64 { return math.Sqrt(single(x * x)) },
		"rsqrt(A) % sqrt(A)":  func(x float64) float64 { return single(1/math.Sqrt(x)) * single(math.Sqrt(x)) },
		"square(rsqrt(A))":    func(x float64) float64 { return single(1/math.Sqrt(x)) * single(1/math.Sqrt(x)) },
		"log(exp(A))":         func(x float64) float64 { return math.Log(single(math.Exp(x))) },
		"exp2(log2(A))":       func(x float64) float64 { return math.Exp2(single(math.Log2(x))) },
		"min(A, 1) - A":       func(x float64) float64 { return math.Min(x, 1) - x },
		"floor(A) - A":        func(x float64) float64 { return math.Floor(x) - x },
		"pow(A, 2)":           func(x float64) float64 { return x * x },
		"pow(A, 3)":           func(x float64) float64 { return single(x*x) * x },
		"where(A, 1, 2)":      func(x float64) float64 { return 2 - truth(x != 0) },
		"A && A":              func(x float64) float64 { return truth(x != 0) },
		// the exact sum of two numbers is their rounded sum and this error (Knuth)
		"(A - ((A + B) - ((A + B) - A))) + (B - ((A + B) - A))": func(x float64) float64 {
			if s := single(x + single(1e-9)); !math.IsInf(s, 0) {
				return (x - s) + single(1e-9)
			}
			return math.NaN()
		},
	}
	inf := float32(math.Inf(1))
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 2.5, -3.75, 1e30, -1e30, 8e37, inf, -inf, float32(math.NaN())}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x))
		b := must[*dense](t)(matrix.FromSlice(dev, 1, 1, []float32{1e-9}))
		for text, f := range cases {
			want := make([]float64, len(x))
			for i, v := range x {
				want[i] = f(float64(v))
			}
			near(t, text, must[[]float32](t)(matrix.Eval(text, map[string]arg{"A": a, "B": b}).Read(background)), want, 4)
		}
	})
}
