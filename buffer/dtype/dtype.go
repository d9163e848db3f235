// SPDX-License-Identifier: Apache-2.0

// Package dtype names the element types of arrays in memory and in files, as DLPack does: a code, the bits of one
// element and the lanes of a vector.
package dtype

import (
	"math"
	"strconv"
	"strings"
)

// Code is the kind of number, with DLPack's values.
type Code uint8

// The codes of DLPack 1.1.
const (
	Int Code = iota
	UInt
	Float
	OpaqueHandle
	BFloat
	Complex
	Bool
	Float8E3M4
	Float8E4M3
	Float8E4M3B11FNUZ
	Float8E4M3FN
	Float8E4M3FNUZ
	Float8E5M2
	Float8E5M2FNUZ
	Float8E8M0FNU
	Float6E2M3FN
	Float6E3M2FN
	Float4E2M1FN
)

// names are the codes' names. Those without a size in fixedBits are followed by the bits.
var names = [...]string{
	"int", "uint", "float", "handle", "bfloat", "complex", "bool",
	"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
	"float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
}

// fixedBits are the bits of the codes that have only one size.
var fixedBits = [...]uint8{Bool: 8, Float8E3M4: 8, 8, 8, 8, 8, 8, 8, 8, Float6E2M3FN: 6, Float6E3M2FN: 6, Float4E2M1FN: 4}

// Known reports whether DLPack 1.1 has the code.
func (c Code) Known() bool { return int(c) < len(names) }

// Type is an element type. Lanes above 1 are vectors that count as one element.
type Type struct {
	Code  Code
	Bits  uint8
	Lanes uint16
}

// The usual types.
var (
	Int8       = Type{Int, 8, 1}
	Int16      = Type{Int, 16, 1}
	Int32      = Type{Int, 32, 1}
	Int64      = Type{Int, 64, 1}
	Uint8      = Type{UInt, 8, 1}
	Uint16     = Type{UInt, 16, 1}
	Uint32     = Type{UInt, 32, 1}
	Uint64     = Type{UInt, 64, 1}
	Float16    = Type{Float, 16, 1}
	Float32    = Type{Float, 32, 1}
	Float64    = Type{Float, 64, 1}
	BFloat16   = Type{BFloat, 16, 1}
	Complex64  = Type{Complex, 64, 1}
	Complex128 = Type{Complex, 128, 1}
	Bool8      = Type{Bool, 8, 1}
	// Bool1 is TVM's older bool, which takes a byte per element in memory.
	Bool1 = Type{UInt, 1, 1}
)

// String returns NumPy's name where there is one ("float32", "bool"), with lanes "float32x4", and "code99_8" for what
// DLPack does not have.
func (t Type) String() string {
	var s string
	switch bits := strconv.Itoa(int(t.Bits)); {
	case t.Code.Known() && t.fixed() == 0:
		s = names[t.Code] + bits
	case t.Code.Known() && t.fixed() == t.Bits:
		s = names[t.Code]
	default:
		s = "code" + strconv.Itoa(int(t.Code)) + "_" + bits
	}
	if t.Lanes != 1 {
		s += "x" + strconv.Itoa(int(t.Lanes))
	}
	return s
}

func (t Type) fixed() uint8 {
	if int(t.Code) < len(fixedBits) {
		return fixedBits[t.Code]
	}
	return 0
}

// Parse is the inverse of [Type.String].
func Parse(s string) (Type, bool) {
	if code, bits, ok := parseBase(s); ok {
		t := Type{code, bits, 1}
		return t, t.String() == s
	}
	i := strings.LastIndexByte(s, 'x')
	if i < 0 {
		return Type{}, false
	}
	code, bits, ok := parseBase(s[:i])
	lanes, err := strconv.ParseUint(s[i+1:], 10, 16)
	t := Type{code, bits, uint16(lanes)}
	return t, ok && err == nil && t.String() == s
}

func parseBase(s string) (Code, uint8, bool) {
	if rest, ok := strings.CutPrefix(s, "code"); ok {
		c, b, ok := strings.Cut(rest, "_")
		code, err1 := strconv.ParseUint(c, 10, 8)
		bits, err2 := strconv.ParseUint(b, 10, 8)
		return Code(code), uint8(bits), ok && err1 == nil && err2 == nil
	}
	for i, bits := range fixedBits {
		if bits != 0 && s == names[i] {
			return Code(i), bits, true
		}
	}
	name := strings.TrimRight(s, "0123456789")
	bits, err := strconv.ParseUint(s[len(name):], 10, 8)
	for i := range names {
		if name == names[i] && err == nil {
			return Code(i), uint8(bits), true
		}
	}
	return 0, 0, false
}

// Size returns the bytes that one element takes in memory and in files, where those of less than a byte take one. It is
// 0 for a type without bits or lanes.
func (t Type) Size() int { return (int(t.Bits)*int(t.Lanes) + 7) / 8 }

// Bytes returns how many elements a shape has and how many bytes they take, or false when a dimension is negative or the
// product is too large for an int64. A shape without dimensions has one element.
func (t Type) Bytes(shape []int64) (elements, bytes int64, ok bool) {
	elements = 1
	zero := false
	for _, d := range shape {
		if d < 0 {
			return 0, 0, false
		}
		zero = zero || d == 0
	}
	if zero {
		return 0, 0, true
	}
	size := max(int64(t.Size()), 1)
	for _, d := range shape {
		if elements > math.MaxInt64/size/d {
			return 0, 0, false
		}
		elements *= d
	}
	return elements, elements * int64(t.Size()), true
}
