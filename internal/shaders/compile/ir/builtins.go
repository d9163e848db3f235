// SPDX-License-Identifier: Apache-2.0

package ir

// Fn is a built-in function of WGSL. Those on numbers take scalars and vectors, by component.
type Fn uint8

// The built-in functions of compute shaders without textures, f16 and subgroups. The numeric ones in alphabetical order, then what
// packs, then atomics.
const (
	FnAbs Fn = iota
	FnAcos
	FnAcosh
	FnAll
	FnAny
	FnArrayLength // of Ref
	FnAsin
	FnAsinh
	FnAtan
	FnAtan2
	FnAtanh
	FnCeil
	FnClamp
	FnCos
	FnCosh
	FnCountLeadingZeros
	FnCountOneBits
	FnCountTrailingZeros
	FnCross
	FnDegrees
	FnDeterminant
	FnDistance
	FnDot
	FnExp
	FnExp2
	FnExtractBits
	FnFaceForward
	FnFirstLeadingBit
	FnFirstTrailingBit
	FnFloor
	FnFma
	FnFract
	FnFrexp
	FnInsertBits
	FnInverseSqrt
	FnLdexp
	FnLength
	FnLog
	FnLog2
	FnMax
	FnMin
	FnMix
	FnModf
	FnNormalize
	FnPow
	FnQuantizeToF16
	FnRadians
	FnReflect
	FnRefract
	FnReverseBits
	FnRound // half to even
	FnSaturate
	FnSelect
	FnSign
	FnSin
	FnSinh
	FnSmoothstep
	FnSqrt
	FnStep
	FnTan
	FnTanh
	FnTranspose
	FnTrunc
	FnDot4U8Packed
	FnDot4I8Packed
	FnPack4x8Snorm
	FnPack4x8Unorm
	FnPack4xI8
	FnPack4xU8
	FnPack4xI8Clamp
	FnPack4xU8Clamp
	FnPack2x16Snorm
	FnPack2x16Unorm
	FnPack2x16Float
	FnUnpack4x8Snorm
	FnUnpack4x8Unorm
	FnUnpack4xI8
	FnUnpack4xU8
	FnUnpack2x16Snorm
	FnUnpack2x16Unorm
	FnUnpack2x16Float
	FnAtomicLoad // of Ref, as all that follow
	FnAtomicStore
	FnAtomicAdd
	FnAtomicSub
	FnAtomicMax
	FnAtomicMin
	FnAtomicAnd
	FnAtomicOr
	FnAtomicXor
	FnAtomicExchange
	FnAtomicCompareExchangeWeak

	Functions // how many there are
)
