// SPDX-License-Identifier: Apache-2.0

package fuse

import "math"

// number is what the reference of an operation computes in; float64 serves tests.
type number interface {
	~float32 | ~float64 | ~int32 | ~uint32
}

// The following are what the references of operations call; see the column Go of the table in internal/ops. Go may round x*y + z once,
// as it does on ARM; a conversion of the product keeps results the same everywhere: https://go.dev/ref/spec#Floating_point_operators.

func truth[N number](b bool) N {
	if b {
		return 1
	}
	return 0
}

func pick[N number](first bool, x, y N) N {
	if first {
		return x
	}
	return y
}

func absolute[N number](x N) N {
	switch {
	case x < 0:
		return -x
	case x == 0:
		return 0 // of -0, too
	}
	return x
}

func sign[N number](x N) N {
	var zero N
	switch {
	case x > zero:
		return 1
	case x < zero:
		return zero - 1
	}
	return x // zero, or NaN
}

func clamp[N number](x, lo, hi N) N {
	if x < lo {
		x = lo
	}
	if x > hi {
		x = hi
	}
	return x
}

// divide divides as WGSL does: integers by zero yield the dividend.
func divide[N number](x, y N) N {
	if one, two := N(1), N(2); y == 0 && one/two == 0 {
		return x
	}
	return x / y
}

// bitwise computes with the bits of integers. What is shifted further than they are long leaves nothing.
func bitwise[N number](x, y N, op byte) N {
	v, w := uint32(int64(x)), uint32(int64(y))
	switch op {
	case '~':
		v = ^v
	case '&':
		v &= w
	case '|':
		v |= w
	case '^':
		v ^= w
	case '<':
		v <<= w
	}
	if N(0)-1 < 0 {
		return N(int32(v))
	}
	return N(v)
}

func shiftRight[N number](x, y N) N {
	if places := uint32(int64(y)); N(0)-1 < 0 {
		return N(int32(int64(x)) >> min(places, 31))
	} else {
		return N(uint32(int64(x)) >> places)
	}
}

// remainder is what truncated division leaves; of integers by zero nothing.
func remainder[N number](x, y N) N {
	if one, two := N(1), N(2); y == 0 && one/two == 0 {
		return 0
	}
	return N(math.Mod(float64(x), float64(y)))
}

// floorMod is remainder with the sign of the divisor.
func floorMod[N number](x, y N) N {
	r := remainder(x, y)
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

// power is math.Pow; of integers modulo 2 to the power 32, without fractions.
func power[N number](x, y N) N {
	one, two := N(1), N(2)
	switch {
	case one/two != 0:
		return N(math.Pow(float64(x), float64(y)))
	case y < 0 && x != 1 && x != 0-one:
		return 0
	case y < 0 && y/two*two == y:
		return one
	case y < 0:
		return x
	}
	r := one
	for e := uint32(int64(y)); e > 0; e >>= 1 {
		if e&1 == 1 {
			r *= x
		}
		x *= x
	}
	return r
}

func elu[N number](x N) N {
	if x < 0 {
		return N(math.Expm1(float64(x)))
	}
	return x
}

func logAddExp[N number](x, y N) N {
	switch {
	case x != x || x == y && x-y != 0: // NaN, or the same infinity
		return x
	case y != y:
		return y
	}
	return N(math.Max(float64(x), float64(y)) + math.Log1p(math.Exp(-math.Abs(float64(x)-float64(y)))))
}

// The following compute in float64.

func lgamma[N number](x N) N {
	v, _ := math.Lgamma(float64(x))
	if math.IsInf(v, 0) { // Go alone has it negative for one argument
		v = math.Inf(1)
	}
	return N(v)
}

// digamma goes up to where the asymptotic series is exact, and by reflection where x is negative.
func digamma[N number](x N) N {
	a, v := float64(x), 0.0
	switch {
	case a == 0 || math.IsInf(a, 1):
		return N(math.Log(math.Abs(a)) * math.Copysign(1, a))
	case a < 0 && a == math.Floor(a):
		return N(math.NaN())
	case a < 0:
		v = -math.Pi / math.Tan(math.Pi*(a-math.Round(a)))
		a = 1 - a
	}
	for ; a < 12; a++ {
		v -= 1 / a
	}
	w := 1 / (a * a)
	series := 691. / 32760
	for _, c := range [...]float64{1. / 132, 1. / 240, 1. / 252, 1. / 120, 1. / 12} {
		series = c - float64(w*series)
	}
	return N(v + math.Log(a) - .5/a - float64(w*series))
}

// clipped keeps a divisor away from 0, as CNTK does.
func clipped[N number](x N) N {
	const least = 1e-30
	v := float64(x)
	switch {
	case v >= 0 && v < least:
		v = least
	case v < 0 && v > -least:
		v = -least
	}
	return N(v)
}

func recipOrZero[N number](x N) N {
	if x == 0 {
		return 0
	}
	return 1 / x
}

func softThreshold[N number](x, y N) N {
	switch {
	case x > y:
		return x - y
	case x < -y || x != x || y != y:
		return x + y
	}
	return 0
}

// floorDiv rounds the quotient down, of floats as NumPy does: by infinity it is -1 or 0, and of infinity NaN.
func floorDiv[N number](x, y N) N {
	r := remainder(x, y)
	q := divide(x-r, y)
	one, two := N(1), N(2)
	switch {
	case one/two != 0 && y == 0:
		return x / y
	case one/two != 0:
		q = N(math.RoundToEven(float64(q)))
	}
	if r != 0 && (r < 0) != (y < 0) {
		q--
	}
	if q == 0 && one/two != 0 { // a zero has the sign of the quotient
		return N(math.Copysign(0, math.Copysign(1, float64(x))*math.Copysign(1, float64(y))))
	}
	return q
}

func powExponentGrad[N number](x, y, z N) N {
	if z <= 0 {
		return 0
	}
	return N(float64(x) * float64(y) * math.Log(float64(z)))
}
