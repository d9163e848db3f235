// SPDX-License-Identifier: Apache-2.0

package fuse

import "github.com/x448/float16"

// HalfToFloat widens the bits of an IEEE 754 binary16.
func HalfToFloat(h uint16) float32 { return float16.Frombits(h).Float32() }

// FloatToHalf rounds to the nearest binary16, ties to even.
func FloatToHalf(f float32) uint16 { return float16.Fromfloat32(f).Bits() }
