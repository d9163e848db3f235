// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestNarrowProducts multiplies whole numbers of 8 bits, whose products are computed in float32: all bits are right, for sums of any
// length, the largest numbers, and what is kept of them in 8 or 32 bits, with a sign or without.
func TestNarrowProducts(t *testing.T) {
	test := func(sizes ...[3]int) func(t *testing.T, dev *gpu.Device) {
		return func(t *testing.T, dev *gpu.Device) {
			rng := newRand(70)
			for _, s := range sizes {
				narrowProducts(t, dev, s, func() int8 { return -128 }, func() int8 { return -128 })
				narrowProducts(t, dev, s, func() uint8 { return 255 }, func() uint8 { return 255 })
				narrowProducts(t, dev, s, func() int8 { return int8(rng.Int32()) }, func() uint8 { return uint8(rng.Int32()) })
			}
		}
	}
	onDevices(t, test([3]int{64, 1024, 65}, [3]int{40, 2660, 44}, [3]int{165, 160, 166}, [3]int{33, 33, 4000}))
	t.Run("hardware", func(t *testing.T) { onHardwareKernels(t, test([3]int{64, 1028, 64})) })
}

// narrowProducts multiplies matrices of two types, or of one and another one as that.
func narrowProducts[X, Y int8 | uint8](t *testing.T, dev *gpu.Device, s [3]int, next func() X, other func() Y) {
	t.Helper()
	m, k, n := s[0], s[1], s[2]
	x, y := make([]X, m*k), make([]Y, k*n)
	for i := range x {
		x[i] = next()
	}
	for i := range y {
		y[i] = other()
	}
	want := make([]int32, m*n)
	for i := range m {
		for l := range k {
			for j := range n {
				want[i*n+j] += int32(x[i*k+l]) * int32(y[l*n+j])
			}
		}
	}
	a := must[*matrix.Dense[X]](t)(matrix.FromSlice(dev, m, k, x))
	turned := must[*matrix.Dense[Y]](t)(matrix.New[Y](dev, n, k))
	b := must[*matrix.Dense[Y]](t)(matrix.FromSlice(dev, k, n, y))
	check(t, turned.Assign(matrix.Transpose(b)))
	wide := must[*matrix.Dense[X]](t)(matrix.New[X](dev, m+1, k+3)) // the factor is elsewhere in a word
	part := wide.Slice(1, m+1, 1, k+1)
	check(t, part.Assign(a))

	same(t, name(s, "int32"), must[[]int32](t)(matrix.Mul(matrix.Convert[int32](a), matrix.Convert[int32](b)).Read(background)), want)
	same(t, name(s, "transposed"), must[[]int32](t)(matrix.Mul(matrix.Convert[int32](part), matrix.Transpose(matrix.Convert[int32](turned))).Read(background)), want)
	bits, bytes, more := make([]uint32, len(want)), make([]X, len(want)), make([]int32, len(want))
	for i, v := range want {
		bits[i], more[i] = uint32(v), 3*v-7
	}
	same(t, name(s, "uint32"), must[[]uint32](t)(matrix.Mul(matrix.Convert[uint32](a), matrix.Convert[uint32](b)).Read(background)), bits)
	product := matrix.Mul(matrix.Convert[int32](a), matrix.Convert[int32](b))
	same(t, name(s, "with a tail"), must[[]int32](t)(matrix.AddScalar(matrix.Scale(3, product), -7).Read(background)), more)
	c := must[*matrix.Dense[X]](t)(matrix.New[X](dev, k, n))
	check(t, c.Assign(matrix.Convert[X](b)))
	clear(want)
	for i := range m {
		for l := range k {
			for j := range n {
				want[i*n+j] += int32(x[i*k+l]) * int32(X(y[l*n+j]))
			}
		}
	}
	for i, v := range want {
		bytes[i] = X(v)
	}
	same(t, name(s, "of one type"), must[[]X](t)(matrix.Mul(a, c).Read(background)), bytes)
	for i := range bytes {
		bytes[i] *= 3
	}
	sum := matrix.Add(a, matrix.Add(a, a))
	same(t, name(s, "of a sum"), must[[]X](t)(matrix.Mul(sum, c).Read(background)), bytes)
	wider := must[*matrix.Dense[int32]](t)(matrix.Convert[int32](sum).Eval())
	more = must[[]int32](t)(matrix.Mul(wider, matrix.Convert[int32](c)).Read(background))
	same(t, name(s, "of a sum, wider"), must[[]int32](t)(matrix.Mul(matrix.Convert[int32](sum), matrix.Convert[int32](c)).Read(background)), more)
	check(t, wider.Close())
	for _, closes := range []interface{ Close() error }{a, b, c, turned, part, wide} {
		check(t, closes.Close())
	}
}

// TestNarrowBools multiplies truth values: a product is true where any term is.
func TestNarrowBools(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const m, k, n = 130, 257, 140
		rng := rand.New(rand.NewPCG(1, 2))
		x, y, want := make([]bool, m*k), make([]bool, k*n), make([]bool, m*n)
		for i := range x {
			x[i] = rng.IntN(40) == 0
		}
		for i := range y {
			y[i] = rng.IntN(40) == 0
		}
		for i := range m {
			for l := range k {
				for j := range n {
					want[i*n+j] = want[i*n+j] || x[i*k+l] && y[l*n+j]
				}
			}
		}
		a := must[*matrix.Dense[bool]](t)(matrix.FromSlice(dev, m, k, x))
		b := must[*matrix.Dense[bool]](t)(matrix.FromSlice(dev, k, n, y))
		same(t, "truth values", must[[]bool](t)(matrix.Mul(a, b).Read(background)), want)
	})
}
