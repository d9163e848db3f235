// SPDX-License-Identifier: Apache-2.0

package front

import (
	"math"
	"math/bits"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/ir"
)

// What evaluates functions of constants.

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

// pow is not defined for negative bases, as it is a logarithm.
func pow(x []float64) float64 {
	if x[0] < 0 {
		return math.NaN()
	}
	return math.Pow(x[0], x[1])
}

func whole(x float64) float64 { return x }

func within(least, most float64) func(float64) float64 {
	return func(x float64) float64 { return min(max(x, least), most) }
}

// norm and unorm make numbers from -1 or 0 to 1 integers; over makes them of integers.
func norm(scale float64) func(float64) float64 {
	return func(x float64) float64 { return math.Floor(0.5 + scale*min(max(x, -1), 1)) }
}

func unorm(scale float64) func(float64) float64 {
	return func(x float64) float64 { return math.Floor(0.5 + scale*min(max(x, 0), 1)) }
}

func over(scale float64) func(float64) float64 {
	return func(x float64) float64 { return max(x/scale, -1) }
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

// packer puts components of so many bits into one word.
func packer(width int, f func(float64) float64) func([][]float64) []float64 {
	return func(x [][]float64) []float64 {
		var w uint32
		for i, v := range x[0] {
			w |= uint32(int64(f(v))) & (1<<width - 1) << (i * width)
		}
		return []float64{float64(w)}
	}
}

// unpacker makes components of so many bits of a word.
func unpacker(width int, signed bool, f func(float64) float64) func([][]float64) []float64 {
	return func(x [][]float64) (r []float64) {
		for i := width; i <= 32; i += width {
			w := uint32(x[0][0]) << (32 - i)
			v := float64(w >> (32 - width))
			if signed {
				v = float64(int32(w) >> (32 - width))
			}
			r = append(r, f(v))
		}
		return r
	}
}

func dot4(signed bool) func([][]float64) []float64 {
	bytes := unpacker(8, signed, whole)
	return func(x [][]float64) []float64 { return []float64{dot(bytes(x[:1]), bytes(x[1:]))} }
}
