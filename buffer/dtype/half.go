// SPDX-License-Identifier: Apache-2.0

package dtype

import (
	"strconv"

	"github.com/sublet-gpu/sublet/internal/half"
)

// Half is an IEEE 754 binary16 number, the Go type of [Float16]: two bytes, aligned to two, so that a []Half is memory of
// such numbers as it stands. Go has no arithmetic on it; [Half.Float32] and [ToHalf] convert. Comparing two with == compares
// their bits: a NaN equals itself, and 0 and -0 differ. Compare what Float32 returns to compare numbers.
//
// It prints as a number with %v. What reads and writes a structure's fields, such as encoding/binary, takes the bits.
type Half struct{ bits uint16 }

// ToHalf rounds to the nearest Half, ties to even. Beyond 65504, from 65520 on, that is infinite.
func ToHalf(x float64) Half { return Half{half.Bits(x)} }

// HalfFromBits returns the Half of these bits.
func HalfFromBits(bits uint16) Half { return Half{bits} }

// Bits returns the bits.
func (h Half) Bits() uint16 { return h.bits }

// Float32 returns the number, which a float32 holds exactly.
func (h Half) Float32() float32 { return half.Float32(h.bits) }

// String returns the number with as many digits as float32 needs to tell it from others: "0.5", "65504", "-0", "NaN", "+Inf".
func (h Half) String() string { return strconv.FormatFloat(float64(h.Float32()), 'g', -1, 32) }
