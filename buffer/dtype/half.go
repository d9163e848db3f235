// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"math"
	"strconv"

	"github.com/x448/float16"
)

// Half is an IEEE 754 binary16 number, the Go type of [Float16]: two bytes, aligned to two, so that a []Half is memory of
// such numbers as it stands. Go has no arithmetic on it; [Half.Float32] and [ToHalf] convert. Comparing two with == compares
// their bits: a NaN equals itself, and 0 and -0 differ. Compare what Float32 returns to compare numbers.
//
// It prints as a number with %v. What reads and writes a structure's fields, such as encoding/binary, takes the bits.
type Half struct{ bits uint16 }

// ToHalf rounds to the nearest Half, ties to even. Beyond 65504, from 65520 on, that is infinite.
func ToHalf(x float64) Half { return Half{float16.Fromfloat32(odd(x)).Bits()} }

// odd rounds to a float32 such that rounding that to 16 bits is the same as rounding x: what is not exact ends in an odd
// bit, so that it is never taken for a tie. See Boldo and Melquiond, "When double rounding is odd".
func odd(x float64) float32 {
	y := float32(x)
	if float64(y) == x || x != x || math.IsInf(float64(y), 0) || math.Float32bits(y)&1 == 1 {
		return y
	}
	return math.Nextafter32(y, float32(math.Copysign(math.Inf(1), x-float64(y))))
}

// HalfFromBits returns the Half of these bits.
func HalfFromBits(bits uint16) Half { return Half{bits} }

// Bits returns the bits.
func (h Half) Bits() uint16 { return h.bits }

// Float32 returns the number, which a float32 holds exactly.
func (h Half) Float32() float32 { return float16.Frombits(h.bits).Float32() }

// String returns the number with as many digits as float32 needs to tell it from others: "0.5", "65504", "-0", "NaN", "+Inf".
func (h Half) String() string { return strconv.FormatFloat(float64(h.Float32()), 'g', -1, 32) }
