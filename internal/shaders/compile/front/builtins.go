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
	{"pow", ir.FnPow, "FFF", pow, nil, nil},
	{"quantizeToF16", ir.FnQuantizeToF16, "FF", f1(func(x float64) float64 { return halfValue(halfBits(x)) }), nil, nil},
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
	{"dot4U8Packed", ir.FnDot4U8Packed, "uuu", nil, nil, dot4(false)},
	{"dot4I8Packed", ir.FnDot4I8Packed, "uui", nil, nil, dot4(true)},
	{"pack4x8snorm", ir.FnPack4x8Snorm, "4u", nil, nil, packer(8, norm(127))},
	{"pack4x8unorm", ir.FnPack4x8Unorm, "4u", nil, nil, packer(8, unorm(255))},
	{"pack4xI8", ir.FnPack4xI8, "ju", nil, nil, packer(8, whole)},
	{"pack4xU8", ir.FnPack4xU8, "ku", nil, nil, packer(8, whole)},
	{"pack4xI8Clamp", ir.FnPack4xI8Clamp, "ju", nil, nil, packer(8, within(-128, 127))},
	{"pack4xU8Clamp", ir.FnPack4xU8Clamp, "ku", nil, nil, packer(8, within(0, 255))},
	{"pack2x16snorm", ir.FnPack2x16Snorm, "2u", nil, nil, packer(16, norm(32767))},
	{"pack2x16unorm", ir.FnPack2x16Unorm, "2u", nil, nil, packer(16, unorm(65535))},
	{"pack2x16float", ir.FnPack2x16Float, "2u", nil, nil, packer(16, halfBits)},
	{"unpack4x8snorm", ir.FnUnpack4x8Snorm, "u4", nil, nil, unpacker(8, true, over(127))},
	{"unpack4x8unorm", ir.FnUnpack4x8Unorm, "u4", nil, nil, unpacker(8, false, over(255))},
	{"unpack4xI8", ir.FnUnpack4xI8, "uj", nil, nil, unpacker(8, true, whole)},
	{"unpack4xU8", ir.FnUnpack4xU8, "uk", nil, nil, unpacker(8, false, whole)},
	{"unpack2x16snorm", ir.FnUnpack2x16Snorm, "u2", nil, nil, unpacker(16, true, over(32767))},
	{"unpack2x16unorm", ir.FnUnpack2x16Unorm, "u2", nil, nil, unpacker(16, false, over(65535))},
	{"unpack2x16float", ir.FnUnpack2x16Float, "u2", nil, nil, unpacker(16, false, halfValue)},
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
