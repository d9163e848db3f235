// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// builtin is a function of WGSL's own. Its signature has a letter for each parameter and one for the result. Capital letters stand for
// one type T in the whole signature, a scalar or a vector of numbers of a sort:
//
//	A anything   N number   S signed number   F float   I integer   B bool
//	V vector of floats   W vector of numbers   C vector of three floats   M matrix
//
// The others are types of their own, or depend on T:
//
//	s scalar of T   m T or its scalar   c bool, or a vector of as many as T   e i32, or a vector of as many as T
//	u u32   i i32   f f32   b bool   2 vec2<f32>   4 vec4<f32>   j vec4<i32>   k vec4<u32>
//	& pointer to an atomic of T   * pointer to an array without a length
//	t transpose of T   r struct of the parts of T   x struct of an exchange   - nothing
type builtin struct {
	name string
	fn   ir.Fn
	sig  string
	// What evaluates constants: by component, of floats and of integers, or of the components of all operands together.
	float func(x []float64) float64
	int   func(k ir.Kind, x []int64) int64
	whole func(x [][]float64) []float64
}

func f1(f func(float64) float64) func([]float64) float64 {
	return func(x []float64) float64 { return f(x[0]) }
}

var builtinTable = []builtin{
	{"abs", ir.FnAbs, "NN", f1(math.Abs), func(_ ir.Kind, x []int64) int64 { return max(x[0], -x[0]) }, nil},
	{"acos", ir.FnAcos, "FF", f1(math.Acos), nil, nil},
	{"acosh", ir.FnAcosh, "FF", f1(math.Acosh), nil, nil},
	{"all", ir.FnAll, "Bb", nil, nil, func(x [][]float64) []float64 { return []float64{fold(x[0], math.Min)} }},
	{"any", ir.FnAny, "Bb", nil, nil, func(x [][]float64) []float64 { return []float64{fold(x[0], math.Max)} }},
	{"arrayLength", ir.FnArrayLength, "*u", nil, nil, nil},
	{"asin", ir.FnAsin, "FF", f1(math.Asin), nil, nil},
	{"asinh", ir.FnAsinh, "FF", f1(math.Asinh), nil, nil},
	{"atan", ir.FnAtan, "FF", f1(math.Atan), nil, nil},
	{"atan2", ir.FnAtan2, "FFF", func(x []float64) float64 { return math.Atan2(x[0], x[1]) }, nil, nil},
	{"atanh", ir.FnAtanh, "FF", f1(math.Atanh), nil, nil},
	{"ceil", ir.FnCeil, "FF", f1(math.Ceil), nil, nil},
	{"clamp", ir.FnClamp, "NNNN", clamp, func(_ ir.Kind, x []int64) int64 { return min(max(x[0], x[1]), x[2]) }, nil},
	{"cos", ir.FnCos, "FF", f1(math.Cos), nil, nil},
	{"cosh", ir.FnCosh, "FF", f1(math.Cosh), nil, nil},
	{"countLeadingZeros", ir.FnCountLeadingZeros, "II", nil, of32(bits.LeadingZeros32), nil},
	{"countOneBits", ir.FnCountOneBits, "II", nil, of32(bits.OnesCount32), nil},
	{"countTrailingZeros", ir.FnCountTrailingZeros, "II", nil, of32(bits.TrailingZeros32), nil},
	{"cross", ir.FnCross, "CCC", nil, nil, cross},
	{"degrees", ir.FnDegrees, "FF", func(x []float64) float64 { return x[0] * 180 / math.Pi }, nil, nil},
	{"determinant", ir.FnDeterminant, "Ms", nil, nil, func(x [][]float64) []float64 { return []float64{determinant(x[0])} }},
	{"distance", ir.FnDistance, "FFs", nil, nil, func(x [][]float64) []float64 { return []float64{length(less(x[0], x[1], 1))} }},
	{"dot", ir.FnDot, "WWs", nil, nil, func(x [][]float64) []float64 { return []float64{dot(x[0], x[1])} }},
	{"exp", ir.FnExp, "FF", f1(math.Exp), nil, nil},
	{"exp2", ir.FnExp2, "FF", f1(math.Exp2), nil, nil},
	{"extractBits", ir.FnExtractBits, "IuuI", nil, extractBits, nil},
	{"faceForward", ir.FnFaceForward, "VVVV", nil, nil, faceForward},
	{"firstLeadingBit", ir.FnFirstLeadingBit, "II", nil, firstLeadingBit, nil},
	{"firstTrailingBit", ir.FnFirstTrailingBit, "II", nil, firstTrailingBit, nil},
	{"floor", ir.FnFloor, "FF", f1(math.Floor), nil, nil},
	{"fma", ir.FnFma, "FFFF", func(x []float64) float64 { return math.FMA(x[0], x[1], x[2]) }, nil, nil},
	{"fract", ir.FnFract, "FF", func(x []float64) float64 { return x[0] - math.Floor(x[0]) }, nil, nil},
	{"frexp", ir.FnFrexp, "Fr", nil, nil, nil},
	{"insertBits", ir.FnInsertBits, "IIuuI", nil, insertBits, nil},
	{"inverseSqrt", ir.FnInverseSqrt, "FF", func(x []float64) float64 { return 1 / math.Sqrt(x[0]) }, nil, nil},
	{"ldexp", ir.FnLdexp, "FeF", func(x []float64) float64 { return math.Ldexp(x[0], int(x[1])) }, nil, nil},
	{"length", ir.FnLength, "Fs", nil, nil, func(x [][]float64) []float64 { return []float64{length(x[0])} }},
	{"log", ir.FnLog, "FF", f1(math.Log), nil, nil},
	{"log2", ir.FnLog2, "FF", f1(math.Log2), nil, nil},
	{"max", ir.FnMax, "NNN", func(x []float64) float64 { return max(x[0], x[1]) }, func(_ ir.Kind, x []int64) int64 { return max(x[0], x[1]) }, nil},
	{"min", ir.FnMin, "NNN", func(x []float64) float64 { return min(x[0], x[1]) }, func(_ ir.Kind, x []int64) int64 { return min(x[0], x[1]) }, nil},
	{"mix", ir.FnMix, "FFmF", func(x []float64) float64 { return x[0]*(1-x[2]) + x[1]*x[2] }, nil, nil},
	{"modf", ir.FnModf, "Fr", nil, nil, nil},
	{"normalize", ir.FnNormalize, "VV", nil, nil, func(x [][]float64) []float64 { return scaled(x[0], 1/length(x[0])) }},
	{"pow", ir.FnPow, "FFF", func(x []float64) float64 { return math.Pow(x[0], x[1]) }, nil, nil},
	{"quantizeToF16", ir.FnQuantizeToF16, "FF", nil, nil, nil},
	{"radians", ir.FnRadians, "FF", func(x []float64) float64 { return x[0] * math.Pi / 180 }, nil, nil},
	{"reflect", ir.FnReflect, "VVV", nil, nil, func(x [][]float64) []float64 { return less(x[0], x[1], 2*dot(x[0], x[1])) }},
	{"refract", ir.FnRefract, "VVsV", nil, nil, refract},
	{"reverseBits", ir.FnReverseBits, "II", nil, func(_ ir.Kind, x []int64) int64 { return int64(bits.Reverse32(uint32(x[0]))) }, nil},
	{"round", ir.FnRound, "FF", f1(math.RoundToEven), nil, nil},
	{"saturate", ir.FnSaturate, "FF", func(x []float64) float64 { return min(max(x[0], 0), 1) }, nil, nil},
	{"select", ir.FnSelect, "AAcA", nil, nil, choose},
	{"sign", ir.FnSign, "SS", sign, func(_ ir.Kind, x []int64) int64 { return min(max(x[0], -1), 1) }, nil},
	{"sin", ir.FnSin, "FF", f1(math.Sin), nil, nil},
	{"sinh", ir.FnSinh, "FF", f1(math.Sinh), nil, nil},
	{"smoothstep", ir.FnSmoothstep, "FFFF", smoothstep, nil, nil},
	{"sqrt", ir.FnSqrt, "FF", f1(math.Sqrt), nil, nil},
	{"step", ir.FnStep, "FFF", func(x []float64) float64 { return float64(truth(x[0] <= x[1])) }, nil, nil},
	{"tan", ir.FnTan, "FF", f1(math.Tan), nil, nil},
	{"tanh", ir.FnTanh, "FF", f1(math.Tanh), nil, nil},
	{"transpose", ir.FnTranspose, "Mt", nil, nil, nil},
	{"trunc", ir.FnTrunc, "FF", f1(math.Trunc), nil, nil},
	{"dot4U8Packed", ir.FnDot4U8Packed, "uuu", nil, nil, nil},
	{"dot4I8Packed", ir.FnDot4I8Packed, "uui", nil, nil, nil},
	{"pack4x8snorm", ir.FnPack4x8Snorm, "4u", nil, nil, nil},
	{"pack4x8unorm", ir.FnPack4x8Unorm, "4u", nil, nil, nil},
	{"pack4xI8", ir.FnPack4xI8, "ju", nil, nil, nil},
	{"pack4xU8", ir.FnPack4xU8, "ku", nil, nil, nil},
	{"pack4xI8Clamp", ir.FnPack4xI8Clamp, "ju", nil, nil, nil},
	{"pack4xU8Clamp", ir.FnPack4xU8Clamp, "ku", nil, nil, nil},
	{"pack2x16snorm", ir.FnPack2x16Snorm, "2u", nil, nil, nil},
	{"pack2x16unorm", ir.FnPack2x16Unorm, "2u", nil, nil, nil},
	{"pack2x16float", ir.FnPack2x16Float, "2u", nil, nil, nil},
	{"unpack4x8snorm", ir.FnUnpack4x8Snorm, "u4", nil, nil, nil},
	{"unpack4x8unorm", ir.FnUnpack4x8Unorm, "u4", nil, nil, nil},
	{"unpack4xI8", ir.FnUnpack4xI8, "uj", nil, nil, nil},
	{"unpack4xU8", ir.FnUnpack4xU8, "uk", nil, nil, nil},
	{"unpack2x16snorm", ir.FnUnpack2x16Snorm, "u2", nil, nil, nil},
	{"unpack2x16unorm", ir.FnUnpack2x16Unorm, "u2", nil, nil, nil},
	{"unpack2x16float", ir.FnUnpack2x16Float, "u2", nil, nil, nil},
	{"atomicLoad", ir.FnAtomicLoad, "&s", nil, nil, nil},
	{"atomicStore", ir.FnAtomicStore, "&s-", nil, nil, nil},
	{"atomicAdd", ir.FnAtomicAdd, "&ss", nil, nil, nil},
	{"atomicSub", ir.FnAtomicSub, "&ss", nil, nil, nil},
	{"atomicMax", ir.FnAtomicMax, "&ss", nil, nil, nil},
	{"atomicMin", ir.FnAtomicMin, "&ss", nil, nil, nil},
	{"atomicAnd", ir.FnAtomicAnd, "&ss", nil, nil, nil},
	{"atomicOr", ir.FnAtomicOr, "&ss", nil, nil, nil},
	{"atomicXor", ir.FnAtomicXor, "&ss", nil, nil, nil},
	{"atomicExchange", ir.FnAtomicExchange, "&ss", nil, nil, nil},
	{"atomicCompareExchangeWeak", ir.FnAtomicCompareExchangeWeak, "&ssx", nil, nil, nil},
}

// builtinNamed returns a function of WGSL's own, or nil.
func builtinNamed(name string) *builtin {
	for i := range builtinTable {
		if builtinTable[i].name == name {
			return &builtinTable[i]
		}
	}
	return nil
}

func clamp(x []float64) float64 { return min(max(x[0], x[1]), x[2]) }

func sign(x []float64) float64 {
	switch {
	case x[0] > 0:
		return 1
	case x[0] < 0:
		return -1
	}
	return x[0]
}

func smoothstep(x []float64) float64 {
	t := min(max((x[2]-x[0])/(x[1]-x[0]), 0), 1)
	return t * t * (3 - 2*t)
}

// of32 evaluates a function of the bits of an integer.
func of32(f func(uint32) int) func(ir.Kind, []int64) int64 {
	return func(_ ir.Kind, x []int64) int64 { return int64(f(uint32(x[0]))) }
}

func firstLeadingBit(k ir.Kind, x []int64) int64 {
	v := uint32(x[0])
	if k == ir.I32 && x[0] < 0 {
		v = ^v
	}
	return int64(bits.Len32(v)) - 1
}

func firstTrailingBit(_ ir.Kind, x []int64) int64 {
	if v := uint32(x[0]); v != 0 {
		return int64(bits.TrailingZeros32(v))
	}
	return -1
}

// extractBits has an offset and a count, which are cut to the width.
func extractBits(k ir.Kind, x []int64) int64 {
	offset := min(uint(x[1]), 32)
	count := min(uint(x[2]), 32-offset)
	if count == 0 {
		return 0
	}
	v := uint32(x[0]) << (32 - offset - count)
	if k == ir.I32 {
		return int64(int32(v) >> (32 - count))
	}
	return int64(v >> (32 - count))
}

func insertBits(_ ir.Kind, x []int64) int64 {
	offset := min(uint(x[2]), 32)
	count := min(uint(x[3]), 32-offset)
	mask := uint32((uint64(1)<<count - 1) << offset)
	return int64(uint32(x[0])&^mask | uint32(x[1]<<offset)&mask)
}

func fold(x []float64, f func(a, b float64) float64) float64 {
	r := x[0]
	for _, v := range x[1:] {
		r = f(r, v)
	}
	return r
}

func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += v * y[i]
	}
	return sum
}

func length(x []float64) float64 { return math.Sqrt(dot(x, x)) }

// less is x - by y.
func less(x, y []float64, by float64) []float64 {
	r := make([]float64, len(x))
	for i := range r {
		r[i] = x[i] - by*y[i]
	}
	return r
}

func scaled(x []float64, by float64) []float64 {
	r := make([]float64, len(x))
	for i := range r {
		r[i] = x[i] * by
	}
	return r
}

func cross(x [][]float64) []float64 {
	a, b := x[0], x[1]
	return []float64{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func faceForward(x [][]float64) []float64 {
	if dot(x[1], x[2]) < 0 {
		return x[0]
	}
	return scaled(x[0], -1)
}

func refract(x [][]float64) []float64 {
	eta, d := x[2][0], dot(x[1], x[0])
	k := 1 - eta*eta*(1-d*d)
	if k < 0 {
		return make([]float64, len(x[0]))
	}
	return less(scaled(x[0], eta), x[1], eta*d+math.Sqrt(k))
}

// choose is select.
func choose(x [][]float64) []float64 {
	r := make([]float64, len(x[0]))
	for i := range r {
		if r[i] = x[0][i]; x[2][min(i, len(x[2])-1)] != 0 {
			r[i] = x[1][i]
		}
	}
	return r
}

// determinant of a square matrix by its first column.
func determinant(m []float64) (sum float64) {
	n := int(math.Sqrt(float64(len(m))))
	if n == 1 {
		return m[0]
	}
	for row := range n {
		var minor []float64
		for i, v := range m[n:] {
			if i%n != row {
				minor = append(minor, v)
			}
		}
		sum += m[row] * determinant(minor) * float64(1-row%2*2)
	}
	return sum
}
