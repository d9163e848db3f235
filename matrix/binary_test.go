// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

func floorMod(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && math.Signbit(r) != math.Signbit(y) {
		r += y
	}
	return r
}

// floorDiv is exact: float64 has room for the fraction of every quotient that float32 has room for.
func floorDiv(x, y float64) float64 {
	switch {
	case y != 0 && math.IsInf(x, 0): // as NumPy has it
		return math.NaN()
	case math.IsInf(y, 0) && x*y < 0:
		return -1
	}
	return math.Floor(x / y)
}

func logAddExp(x, y float64) float64 {
	x = math.Abs(x)
	switch {
	case x == y:
		return x + math.Ln2
	case y != y:
		return y
	}
	return math.Max(x, y) + math.Log1p(math.Exp(-math.Abs(x-y)))
}

// TestFunctionsOfTwo has the functions of two numbers on random ones of any size, and on all pairs of special values.
func TestFunctionsOfTwo(t *testing.T) {
	cases := []struct {
		name string
		expr func(a, b arg) *expr
		want func(x, y float64) float64
	}{
		{"Hypot", matrix.Hypot[float32], math.Hypot},
		{"Atan2", matrix.Atan2[float32], math.Atan2},
		{"LogAddExp", func(a, b arg) *expr { return matrix.LogAddExp(matrix.Abs(a), b) }, logAddExp}, // which cancels below 0
		{"Mod", matrix.Mod[float32], math.Mod},
		{"FloorMod", matrix.FloorMod[float32], floorMod},
		{"FloorDiv", matrix.FloorDiv[float32], floorDiv},
	}
	special := []float32{
		0, float32(math.Copysign(0, -1)), 1, -1, 2.5, -2.5, 1e-30, 1e30, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	}
	rng := newRand(4)
	var x, y []float32
	for _, a := range special {
		for _, b := range special {
			x, y = append(x, a), append(y, b)
		}
	}
	for range 3000 {
		x = append(x, float32((rng.Float64()*2-1)*math.Exp2(rng.Float64()*40-20)))
		y = append(y, float32((rng.Float64()*2-1)*math.Exp2(rng.Float64()*40-20)))
	}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x))
		b := must[*dense](t)(matrix.FromSlice(dev, 1, len(y), y))
		for _, c := range cases {
			want := make([]float64, len(x))
			for i := range x {
				want[i] = c.want(float64(x[i]), float64(y[i]))
			}
			near(t, c.name, must[[]float32](t)(c.expr(a, b).Read(background)), want, bound(t, c.name))
		}
	})
}

// TestExactPowers shows that powers of two and ten, their logarithms and cubes come out whole.
func TestExactPowers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		n := must[*dense](t)(matrix.FromSlice(dev, 1, 11, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}))
		whole := must[[]float32](t)(n.Read(background))
		two, ten := matrix.Exp2(n), matrix.Pow(matrix.Fill(1, 11, float32(10)), n).Round()
		same(t, "2^n", must[[]float32](t)(two.Read(background)), []float32{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024})
		same(t, "log2(2^n)", must[[]float32](t)(two.Log2().Read(background)), whole)
		same(t, "log10(10^n)", must[[]float32](t)(ten.Log10().Read(background)), whole)
		same(t, "cbrt(n^3)", must[[]float32](t)(matrix.PowScalar(n, 3).Cbrt().Read(background)), whole)
		same(t, "tests", must[[]float32](t)(matrix.IsInf(matrix.Recip(n)).Add(matrix.IsFinite(n)).Add(matrix.IsNaN(matrix.Log(matrix.Neg(n)))).
			Read(background)), []float32{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2})
		same(t, "xor", must[[]float32](t)(matrix.Xor(n, matrix.Greater(n, matrix.Fill(1, 11, float32(8)))).Read(background)),
			[]float32{0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0})
	})
}

// wholeNumbers compares the operations of integers with those of Go.
func wholeNumbers[T int32 | uint32](t *testing.T, dev *gpu.Device, x, y []T, shift func(x, y T) (left, right T)) {
	a := must[*matrix.Dense[T]](t)(matrix.FromSlice(dev, 1, len(x), x))
	b := must[*matrix.Dense[T]](t)(matrix.FromSlice(dev, 1, len(y), y))
	want := map[string][]T{}
	for i, v := range x {
		w := y[i]
		put := func(name string, r T) { want[name] = append(want[name], r) }
		put("and", v&w)
		put("or", v|w)
		put("xor", v^w)
		put("not", ^v)
		left, right := shift(v, w)
		put("left", left)
		put("right", right)
		var mod, floor T
		if w != 0 {
			mod = v % w
			if floor = mod; floor != 0 && (floor < 0) != (w < 0) {
				floor += w
			}
		}
		put("mod", mod)
		put("floormod", floor)
		div := v
		if w != 0 {
			div = v / w
		}
		if floor != mod {
			div--
		}
		put("floordiv", div)
		put("pow", power(v, w))
	}
	for name, e := range map[string]*matrix.Expr[T]{
		"and": matrix.BitAnd(a, b), "or": matrix.BitOr(a, b), "xor": matrix.BitXor(a, b), "not": matrix.BitNot(a), "left": matrix.ShiftLeft(a, b),
		"right": matrix.ShiftRight(a, b), "mod": matrix.Mod(a, b), "floormod": matrix.FloorMod(a, b), "floordiv": matrix.FloorDiv(a, b),
		"pow": matrix.Pow(a, b),
	} {
		same(t, name, must[[]T](t)(e.Read(background)), want[name])
	}
	if err := matrix.BitAnd(matrix.Convert[float32](a), matrix.Convert[float32](b)).Err(); fault.Code(err) != "ErrUnsupported" {
		t.Errorf("the bits of floats: %v", err)
	}
}

func power[T int32 | uint32](x, y T) T {
	if y < 0 {
		switch x {
		case 1:
			return 1
		case 0 - T(1):
			return 1 - 2*(y&1)
		}
		return 0
	}
	r, base := T(1), x
	for e := uint32(y); e > 0; e >>= 1 {
		if e&1 == 1 {
			r *= base
		}
		base *= base
	}
	return r
}

func TestWholeNumbers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		var x, y []int32
		var u, v []uint32
		for _, a := range []int32{0, 1, -1, 2, 7, -7, 12345, -54321, math.MaxInt32, math.MinInt32} {
			for _, b := range []int32{0, 1, -1, 2, 3, -3, 5, 31, 32, 40, math.MaxInt32, math.MinInt32} {
				if b > 64 && a*a > 1 {
					continue
				}
				x, y = append(x, a), append(y, b)
				if b <= 64 && b >= 0 {
					u, v = append(u, uint32(a)), append(v, uint32(b))
				}
			}
		}
		wholeNumbers(t, dev, x, y, func(x, y int32) (int32, int32) {
			places := uint32(y)
			return x << places, x >> places
		})
		wholeNumbers(t, dev, u, v, func(x, y uint32) (uint32, uint32) { return x << y, x >> y })
	})
}
