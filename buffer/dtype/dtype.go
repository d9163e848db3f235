// SPDX-License-Identifier: Apache-2.0

// Package dtype names the element types of arrays in memory and in files, as DLPack does: a code, the bits of one
// element and the lanes of a vector.
package dtype

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sublet-gpu/sublet/internal/half"
)

// codes are the names of the codes of DLPack 1.1, and the bits of those that have only one size; the name of another type
// ends with its bits.
var codes = [...]struct {
	name string
	bits uint8
}{
	{"int", 0},
	{"uint", 0},
	{"float", 0},
	{"handle", 0},
	{"bfloat", 0},
	{"complex", 0},
	{"bool", 8},
	{"float8_e3m4", 8},
	{"float8_e4m3", 8},
	{"float8_e4m3b11fnuz", 8},
	{"float8_e4m3fn", 8},
	{"float8_e4m3fnuz", 8},
	{"float8_e5m2", 8},
	{"float8_e5m2fnuz", 8},
	{"float8_e8m0fnu", 8},
	{"float6_e2m3fn", 6},
	{"float6_e3m2fn", 6},
	{"float4_e2m1fn", 4},
}

// Type is an element type. Lanes above 1 are vectors that count as one element.
type Type struct {
	Code  uint8 // DLPack's
	Bits  uint8
	Lanes uint16
}

// The usual types.
var (
	Int8       = Type{0, 8, 1}
	Int16      = Type{0, 16, 1}
	Int32      = Type{0, 32, 1}
	Int64      = Type{0, 64, 1}
	Uint8      = Type{1, 8, 1}
	Uint16     = Type{1, 16, 1}
	Uint32     = Type{1, 32, 1}
	Uint64     = Type{1, 64, 1}
	Float16    = Type{2, 16, 1}
	Float32    = Type{2, 32, 1}
	Float64    = Type{2, 64, 1}
	BFloat16   = Type{4, 16, 1}
	Complex64  = Type{5, 64, 1}
	Complex128 = Type{5, 128, 1}
	Bool8      = Type{6, 8, 1}
	// Bool1 is TVM's older bool, which takes a byte per element in memory.
	Bool1 = Type{1, 1, 1}
)

// String returns NumPy's name where there is one ("float32", "bool"), with lanes "float32x4", and "code99_8" for what
// DLPack does not have.
func (t Type) String() string {
	bits := strconv.Itoa(int(t.Bits))
	s := "code" + strconv.Itoa(int(t.Code)) + "_" + bits
	if int(t.Code) < len(codes) {
		switch c := codes[t.Code]; c.bits {
		case 0:
			s = c.name + bits
		case t.Bits:
			s = c.name
		}
	}
	if t.Lanes != 1 {
		s += "x" + strconv.Itoa(int(t.Lanes))
	}
	return s
}

// Parse is the inverse of [Type.String].
func Parse(s string) (Type, bool) {
	for i, c := range codes {
		if rest, ok := strings.CutPrefix(s, c.name); ok {
			if t := sized(uint8(i), c.bits, rest); t.String() == s {
				return t, true
			}
		}
	}
	if rest, ok := strings.CutPrefix(s, "code"); ok {
		code, size, _ := strings.Cut(rest, "_")
		n, _ := strconv.ParseUint(code, 10, 8) // what is no number gives another text
		if t := sized(uint8(n), 0, size); t.String() == s {
			return t, true
		}
	}
	return Type{}, false
}

// sized reads the bits of a code that has several, and the lanes if there are any.
func sized(code, bits uint8, text string) Type {
	size, vector, found := strings.Cut(text, "x")
	t := Type{code, bits, 1}
	if bits == 0 {
		n, _ := strconv.ParseUint(size, 10, 8)
		t.Bits = uint8(n)
	}
	if found {
		n, _ := strconv.ParseUint(vector, 10, 16)
		t.Lanes = uint16(n)
	}
	return t
}

// Size returns the bytes that one element takes in memory and in files, where those of less than a byte take one. It is
// 0 for a type without bits or lanes.
func (t Type) Size() int { return (int(t.Bits)*int(t.Lanes) + 7) / 8 }

// Bytes returns how many elements a shape has and how many bytes they take, or false when a dimension is negative or the
// product is too large for an int64. A shape without dimensions has one element.
func (t Type) Bytes(shape []int64) (elements, bytes int64, ok bool) {
	if slices.ContainsFunc(shape, func(d int64) bool { return d < 0 }) {
		return 0, 0, false
	}
	if slices.Contains(shape, 0) {
		return 0, 0, true
	}
	elements = 1
	for _, d := range shape {
		if elements > math.MaxInt64/max(int64(t.Size()), 1)/d {
			return 0, 0, false
		}
		elements *= d
	}
	return elements, elements * int64(t.Size()), true
}

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
