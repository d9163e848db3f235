// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"
	"math/bits"
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// evalFloat is a function of floats that works by component.
func evalFloat(fn ir.Fn, x []float64) float64 {
	a := x[0]
	switch fn {
	case ir.FnAbs:
		return math.Abs(a)
	case ir.FnAcos:
		return math.Acos(a)
	case ir.FnAcosh:
		return math.Acosh(a)
	case ir.FnAsin:
		return math.Asin(a)
	case ir.FnAsinh:
		return math.Asinh(a)
	case ir.FnAtan:
		return math.Atan(a)
	case ir.FnAtan2:
		return math.Atan2(a, x[1])
	case ir.FnAtanh:
		return math.Atanh(a)
	case ir.FnCeil:
		return math.Ceil(a)
	case ir.FnClamp:
		return min(max(a, x[1]), x[2])
	case ir.FnCos:
		return math.Cos(a)
	case ir.FnCosh:
		return math.Cosh(a)
	case ir.FnDegrees:
		return a * 180 / math.Pi
	case ir.FnExp:
		return math.Exp(a)
	case ir.FnExp2:
		return math.Exp2(a)
	case ir.FnFloor:
		return math.Floor(a)
	case ir.FnFma:
		return float64(a*x[1]) + x[2]
	case ir.FnFract:
		return a - math.Floor(a)
	case ir.FnInverseSqrt:
		return 1 / math.Sqrt(a)
	case ir.FnLdexp:
		return math.Ldexp(a, int(x[1]))
	}
	return evalFloat2(fn, a, x)
}

// evalFloat2 has the other half of the functions.
func evalFloat2(fn ir.Fn, a float64, x []float64) float64 {
	switch fn {
	case ir.FnLog:
		return math.Log(a)
	case ir.FnLog2:
		return math.Log2(a)
	case ir.FnMax:
		return max(a, x[1])
	case ir.FnMin:
		return min(a, x[1])
	case ir.FnMix:
		return float64(a*(1-x[2])) + float64(x[1]*x[2])
	case ir.FnPow:
		if a < 0 { // it is a logarithm
			return math.NaN()
		}
		return math.Pow(a, x[1])
	case ir.FnQuantizeToF16:
		return halfValue(halfBits(a))
	case ir.FnRadians:
		return a * math.Pi / 180
	case ir.FnRound:
		return math.RoundToEven(a)
	case ir.FnSaturate:
		return min(max(a, 0), 1)
	case ir.FnSign:
		if a == 0 {
			return a
		}
		return math.Copysign(1, a)
	case ir.FnSin:
		return math.Sin(a)
	case ir.FnSinh:
		return math.Sinh(a)
	case ir.FnSmoothstep:
		t := min(max((x[2]-a)/(x[1]-a), 0), 1)
		return t * t * (3 - 2*t)
	case ir.FnSqrt:
		return math.Sqrt(a)
	case ir.FnStep:
		return float64(truth(a <= x[1]))
	case ir.FnTan:
		return math.Tan(a)
	case ir.FnTanh:
		return math.Tanh(a)
	}
	return math.Trunc(a)
}

// evalInt is a function of integers that works by component.
func evalInt(fn ir.Fn, k ir.Kind, x []int64) int64 {
	a, w := x[0], uint32(x[0])
	switch fn {
	case ir.FnAbs:
		return max(a, -a)
	case ir.FnClamp:
		return min(max(a, x[1]), x[2])
	case ir.FnMax:
		return max(a, x[1])
	case ir.FnMin:
		return min(a, x[1])
	case ir.FnSign:
		return min(max(a, -1), 1)
	case ir.FnCountLeadingZeros:
		return int64(bits.LeadingZeros32(w))
	case ir.FnCountOneBits:
		return int64(bits.OnesCount32(w))
	case ir.FnCountTrailingZeros:
		return int64(bits.TrailingZeros32(w))
	case ir.FnFirstLeadingBit:
		if k == ir.I32 && a < 0 {
			w = ^w
		}
		return int64(bits.Len32(w)) - 1
	case ir.FnFirstTrailingBit:
		return int64(bits.Len32(w&-w)) - 1
	case ir.FnReverseBits:
		return int64(bits.Reverse32(w))
	case ir.FnExtractBits: // from bit x[1] on, x[2] of them
		if x[2] == 0 {
			return 0
		}
		v := w << ((32 - x[1] - x[2]) & 63)
		if k == ir.I32 {
			return int64(int32(v) >> ((32 - x[2]) & 63))
		}
		return int64(v >> ((32 - x[2]) & 63))
	}
	mask := uint32((uint64(1)<<(x[3]&63) - 1) << (x[2] & 63)) // insertBits
	return int64(w&^mask | uint32(x[1]<<(x[2]&63))&mask)
}

// evalWhole is a function of all components together, or nil.
func evalWhole(fn ir.Fn, x [][]float64) []float64 {
	a := x[0]
	switch fn {
	case ir.FnAll:
		return []float64{slices.Min(a)}
	case ir.FnAny:
		return []float64{slices.Max(a)}
	case ir.FnCross:
		b := x[1]
		return []float64{float64(a[1]*b[2]) - float64(a[2]*b[1]), float64(a[2]*b[0]) - float64(a[0]*b[2]), float64(a[0]*b[1]) - float64(a[1]*b[0])}
	case ir.FnDeterminant:
		return []float64{determinant(a)}
	case ir.FnDistance:
		return []float64{length(less(a, x[1], 1))}
	case ir.FnDot:
		return []float64{dot(a, x[1])}
	case ir.FnFaceForward:
		if dot(x[1], x[2]) < 0 {
			return a
		}
		return scaled(a, -1)
	case ir.FnLength:
		return []float64{length(a)}
	case ir.FnNormalize:
		return scaled(a, 1/length(a))
	case ir.FnReflect:
		return less(a, x[1], 2*dot(a, x[1]))
	case ir.FnRefract:
		eta, d := x[2][0], dot(x[1], a)
		k := 1 - float64(eta*eta*(1-float64(d*d)))
		if k < 0 {
			return scaled(a, 0)
		}
		return less(scaled(a, eta), x[1], float64(eta*d)+math.Sqrt(k))
	case ir.FnSelect:
		r := slices.Clone(a)
		for i := range r {
			if x[2][min(i, len(x[2])-1)] != 0 {
				r[i] = x[1][i]
			}
		}
		return r
	}
	return evalPacked(fn, x)
}

func dot(x, y []float64) (sum float64) {
	for i, v := range x {
		sum += float64(v * y[i])
	}
	return sum
}

func length(x []float64) float64 { return math.Sqrt(dot(x, x)) }

// less is x - by y.
func less(x, y []float64, by float64) []float64 {
	r := slices.Clone(x)
	for i := range r {
		r[i] -= float64(by * y[i])
	}
	return r
}

func scaled(x []float64, by float64) []float64 {
	r := slices.Clone(x)
	for i := range r {
		r[i] *= by
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
		sum += float64(m[row] * determinant(minor) * float64(1-row%2*2))
	}
	return sum
}

// evalPacked is a function of components that share a word, or nil.
func evalPacked(fn ir.Fn, x [][]float64) []float64 {
	switch a := x[0]; fn {
	case ir.FnDot4U8Packed, ir.FnDot4I8Packed:
		signed := fn == ir.FnDot4I8Packed
		return []float64{dot(unpack(a, 8, signed), unpack(x[1], 8, signed))}
	case ir.FnPack4x8Snorm:
		return pack(scaled(bounded(a, -1, 1), 127), 8)
	case ir.FnPack4x8Unorm:
		return pack(scaled(bounded(a, 0, 1), 255), 8)
	case ir.FnPack2x16Snorm:
		return pack(scaled(bounded(a, -1, 1), 32767), 16)
	case ir.FnPack2x16Unorm:
		return pack(scaled(bounded(a, 0, 1), 65535), 16)
	case ir.FnPack4xI8, ir.FnPack4xU8:
		return pack(a, 8)
	case ir.FnPack4xI8Clamp:
		return pack(bounded(a, -128, 127), 8)
	case ir.FnPack4xU8Clamp:
		return pack(bounded(a, 0, 255), 8)
	case ir.FnPack2x16Float:
		return pack([]float64{halfBits(a[0]), halfBits(a[1])}, 16)
	case ir.FnUnpack4x8Snorm:
		return bounded(scaled(unpack(a, 8, true), 1./127), -1, 1)
	case ir.FnUnpack4x8Unorm:
		return scaled(unpack(a, 8, false), 1./255)
	case ir.FnUnpack2x16Snorm:
		return bounded(scaled(unpack(a, 16, true), 1./32767), -1, 1)
	case ir.FnUnpack2x16Unorm:
		return scaled(unpack(a, 16, false), 1./65535)
	case ir.FnUnpack4xI8:
		return unpack(a, 8, true)
	case ir.FnUnpack4xU8:
		return unpack(a, 8, false)
	case ir.FnUnpack2x16Float:
		h := unpack(a, 16, false)
		return []float64{halfValue(h[0]), halfValue(h[1])}
	}
	return nil
}

func bounded(x []float64, least, most float64) []float64 {
	r := slices.Clone(x)
	for i := range r {
		r[i] = min(max(r[i], least), most)
	}
	return r
}

// pack rounds components and puts them into one word, so many bits each.
func pack(x []float64, width int) []float64 {
	var w uint32
	for i, v := range x {
		w |= uint32(int64(math.Floor(v+0.5))) & (1<<width - 1) << (i * width)
	}
	return []float64{float64(w)}
}

// unpack returns the components of a word.
func unpack(x []float64, width int, signed bool) (r []float64) {
	for i := width; i <= 32; i += width {
		w := uint32(x[0]) << (32 - i)
		v := float64(w >> (32 - width))
		if signed {
			v = float64(int32(w) >> (32 - width))
		}
		r = append(r, v)
	}
	return r
}

// halfBits rounds to a binary16 and returns its bits.
func halfBits(x float64) float64 {
	a := math.Abs(x)
	_, e := math.Frexp(a)
	r := math.RoundToEven(math.Ldexp(a, -max(e-11, -24)))
	if e > -13 && a > 0 {
		r += float64((e + 13) << 10) // r has the leading 1, which adds to the exponent
	}
	r = min(r, 0x7c00)
	if math.Signbit(x) {
		r += 0x8000
	}
	return r
}

// halfValue is the number that has the bits of a binary16.
func halfValue(x float64) float64 {
	w := uint32(x)
	e, m := int(w>>10&31), float64(w&1023)
	switch e {
	case 0:
		m = math.Ldexp(m, -24)
	case 31:
		m = math.Inf(1)
	default:
		m = math.Ldexp(m+1024, e-25)
	}
	if w>>15 != 0 {
		m = -m
	}
	return m
}
