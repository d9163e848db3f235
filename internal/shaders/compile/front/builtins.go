// SPDX-License-Identifier: Apache-2.0

package front

import (
	"strings"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// builtins are the functions of WGSL's own in the order of [ir.Fn], each with its signature: a letter for each parameter and one for
// the result. Capital letters stand for one type T in the whole signature, a scalar or a vector of numbers of a sort:
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
const builtins = " " +
	"abs:NN acos:FF acosh:FF all:Bb any:Bb arrayLength:*u asin:FF asinh:FF atan:FF atan2:FFF atanh:FF ceil:FF clamp:NNNN cos:FF cosh:FF " +
	"countLeadingZeros:II countOneBits:II countTrailingZeros:II cross:CCC degrees:FF determinant:Ms distance:FFs dot:WWs exp:FF exp2:FF " +
	"extractBits:IuuI faceForward:VVVV firstLeadingBit:II firstTrailingBit:II floor:FF fma:FFFF fract:FF frexp:Fr insertBits:IIuuI " +
	"inverseSqrt:FF ldexp:FeF length:Fs log:FF log2:FF max:NNN min:NNN mix:FFmF modf:Fr normalize:VV pow:FFF quantizeToF16:FF radians:FF " +
	"reflect:VVV refract:VVsV reverseBits:II round:FF saturate:FF select:AAcA sign:SS sin:FF sinh:FF smoothstep:FFFF sqrt:FF step:FFF " +
	"tan:FF tanh:FF transpose:Mt trunc:FF dot4U8Packed:uuu dot4I8Packed:uui pack4x8snorm:4u pack4x8unorm:4u pack4xI8:ju pack4xU8:ku " +
	"pack4xI8Clamp:ju pack4xU8Clamp:ku pack2x16snorm:2u pack2x16unorm:2u pack2x16float:2u unpack4x8snorm:u4 unpack4x8unorm:u4 " +
	"unpack4xI8:uj unpack4xU8:uk unpack2x16snorm:u2 unpack2x16unorm:u2 unpack2x16float:u2 atomicLoad:&s atomicStore:&s- atomicAdd:&ss " +
	"atomicSub:&ss atomicMax:&ss atomicMin:&ss atomicAnd:&ss atomicOr:&ss atomicXor:&ss atomicExchange:&ss atomicCompareExchangeWeak:&ssx "

// builtin is a function of WGSL's own.
type builtin struct {
	name string
	fn   ir.Fn
	sig  string
}

// builtinNamed returns the function of a name, or nil.
func builtinNamed(name string) *builtin {
	at := strings.Index(builtins, " "+name+":")
	if at < 0 {
		return nil
	}
	sig, _, _ := strings.Cut(builtins[at+len(name)+2:], " ")
	return &builtin{name, ir.Fn(strings.Count(builtins[:at], ":")), sig}
}
