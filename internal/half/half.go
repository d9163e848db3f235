// SPDX-License-Identifier: Apache-2.0

// Package half rounds numbers to IEEE 754 binary16.
package half

import (
	"math"

	"github.com/x448/float16"
)

// Bits returns those of the nearest binary16, ties to even. Beyond 65504, from 65520 on, that is infinite.
func Bits(x float64) uint16 { return float16.Fromfloat32(odd(x)).Bits() }

// Float32 returns the number with these bits, which a float32 holds exactly.
func Float32(bits uint16) float32 { return float16.Frombits(bits).Float32() }

// odd rounds to a float32 such that rounding that to 16 bits is the same as rounding x: what is not exact ends in an odd
// bit, so that it is never taken for a tie. See Boldo and Melquiond, "When double rounding is odd".
func odd(x float64) float32 {
	y := float32(x)
	if float64(y) == x || x != x || math.IsInf(float64(y), 0) || math.Float32bits(y)&1 == 1 {
		return y
	}
	return math.Nextafter32(y, float32(math.Copysign(math.Inf(1), x-float64(y))))
}
