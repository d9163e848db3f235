// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// small are the types of whole numbers that share words.
type small interface{ int8 | uint8 | int16 | uint16 }

// TestPacked computes with matrices of small whole numbers in every layout, against Go's own arithmetic.
func TestPacked(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		t.Run("int8", func(t *testing.T) { packedType[int8](t, dev) })
		t.Run("uint16", func(t *testing.T) { packedType[uint16](t, dev) })
		if dev.Info().Driver == "cpu" || devtest.Long() { // compiling takes most of the time
			t.Run("uint8", func(t *testing.T) { packedType[uint8](t, dev) })
			t.Run("int16", func(t *testing.T) { packedType[int16](t, dev) })
		}
	})
}

func packedType[T small](t *testing.T, dev *gpu.Device) {
	layouts := []matrix.Options{{}, {ColMajor: true}, {Padded: true}, {Offset: 3, Stride: 23}, {Offset: 8, Stride: 24}, {ColMajor: true, Offset: 1, Stride: 19}}
	const rows, cols = 9, 18
	rng := newRand(7)
	for _, layout := range layouts {
		var ms [3]*matrix.Dense[T]
		var vs [3][]T
		for k := range ms {
			o := layout
			mem := make([]T, 18*24+8)
			for i := range mem {
				mem[i] = T(rng.Uint32())
			}
			if o.Padded {
				o = matrix.Options{Stride: 20}
			}
			ms[k] = must[*matrix.Dense[T]](t)(matrix.Wrap(dev, rows, cols, mem, o))
			vs[k] = readAll[T](t, ms[k])
		}
		a, b, c := ms[0], ms[1], ms[2]
		want := make([]T, rows*cols)
		each := func(what string, f func(x, y T) T) {
			t.Helper()
			for i := range want {
				want[i] = f(vs[0][i], vs[1][i])
			}
			same(t, what, readAll[T](t, c), want)
		}
		check(t, c.Assign(matrix.Add(a, b)))
		each("sum", func(x, y T) T { return x + y })
		check(t, c.Assign(matrix.MulElem(a, b).Sub(a)))
		each("product", func(x, y T) T { return x*y - x })
		check(t, c.Assign(matrix.Greater(a, b)))
		each("comparison", func(x, y T) T {
			if x > y {
				return 1
			}
			return 0
		})
		check(t, c.Slice(1, 8, 3, 14).Assign(matrix.Max(a.Slice(1, 8, 3, 14), b.Slice(0, 7, 2, 13))))
		got := readAll[T](t, c)
		for i := range rows {
			for j := range cols {
				if i >= 1 && i < 8 && j >= 3 && j < 14 {
					want[i*cols+j] = max(vs[0][i*cols+j], vs[1][(i-1)*cols+j-1])
				}
			}
		}
		same(t, "window", got, want)
		packedFolds(t, a, vs[0], rows, cols)
		for _, m := range ms {
			check(t, m.Sync(t.Context()))
			check(t, m.Close())
		}
	}
	packedConversions[T](t, dev)
}

// packedFolds sums, sorts and multiplies in 32 bits.
func packedFolds[T small](t *testing.T, a *matrix.Dense[T], v []T, rows, cols int) {
	t.Helper()
	sums, gram := make([]int32, rows), make([]int32, rows*rows)
	wrapped := make([]T, rows)
	most := make([]T, cols)
	for i := range rows {
		for j := range cols {
			x := v[i*cols+j]
			sums[i] += int32(x)
			wrapped[i] += x
			if i == 0 || x > most[j] {
				most[j] = x
			}
			for k := range rows {
				gram[i*rows+k] += int32(x) * int32(v[k*cols+j])
			}
		}
	}
	same(t, "sums", readAll[int32](t, matrix.SumRows(matrix.Convert[int32](a))), sums)
	same(t, "sums that wrap", readAll[T](t, matrix.SumRows(a)), wrapped)
	same(t, "largest", readAll[T](t, matrix.MaxCols(a)), most)
	same(t, "product", readAll[int32](t, matrix.Convert[int32](matrix.Mul(a, a.T()))), gram)
	up := readAll[T](t, matrix.SortRows(a))
	for i := range up {
		if i%cols > 0 && up[i] < up[i-1] {
			t.Fatalf("not sorted at %d", i)
		}
	}
}

// packedConversions cuts, saturates and wraps.
func packedConversions[T small](t *testing.T, dev *gpu.Device) {
	t.Helper()
	floats := []float32{0, 1.9, -1.9, 127.5, 128, 255, 256, -128, -129, 32767, 32768, 65535, 65536, -32768, -32769, 3e9, -3e9}
	ints := []int32{0, 1, -1, 127, 128, 255, 256, -128, -129, 32767, 32768, 65535, 65536, -32768, -32769, 1 << 30, -1 << 31}
	lo, hi := float64(0), float64(^T(0))
	if ^T(0) < 0 {
		hi = float64(^T(0)<<(8*unsafe.Sizeof(T(0))-1)) * -1
		lo, hi = -hi, hi-1
	}
	cut, wrapped := make([]T, len(floats)), make([]T, len(ints))
	for i := range floats {
		cut[i] = T(int64(min(max(float64(floats[i]), lo), hi)))
		wrapped[i] = T(ints[i])
	}
	f := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, len(floats), floats))
	n := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, len(ints), ints))
	same(t, "of floats", readAll[T](t, matrix.Convert[T](f)), cut)
	same(t, "of ints", readAll[T](t, matrix.Convert[T](n)), wrapped)
	back := make([]float32, len(cut))
	for i, v := range cut {
		back[i] = float32(v)
	}
	same(t, "and back", readAll[float32](t, matrix.Convert[float32](matrix.Convert[T](f))), back)
	for i, v := range wrapped {
		back[i] = float32(v)
	}
	same(t, "of ints, to floats", readAll[float32](t, matrix.Convert[float32](matrix.Convert[T](n))), back)
	check(t, f.Close())
	check(t, n.Close())
}

// TestPackedNothing wants the extremes of the type of no elements, and NaN to be true.
func TestPackedNothing(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		small := must[*matrix.Dense[int8]](t)(matrix.New[int8](dev, 0, 3))
		same(t, "int8", readAll[int8](t, matrix.MaxAll[int8](small)), []int8{-128})
		same(t, "int8", readAll[int8](t, matrix.MinCols[int8](small)), []int8{127, 127, 127})
		wide := must[*matrix.Dense[int16]](t)(matrix.New[int16](dev, 2, 0))
		same(t, "int16", readAll[int16](t, matrix.MaxRows[int16](wide)), []int16{-32768, -32768})
		same(t, "int16", readAll[int16](t, matrix.MinAll[int16](wide)), []int16{32767})
		x := must[*dense](t)(matrix.FromSlice(dev, 1, 3, []float32{float32(math.NaN()), 0, -2}))
		bools := must[*matrix.Dense[matrix.Any]](t)(must[*matrix.Dense[matrix.Any]](t)(matrix.As[matrix.Any](x)).Expr().ConvertTo(matrix.Bool).Eval())
		same(t, "bools", readAll[float32](t, matrix.Convert[float32, matrix.Any](bools)), []float32{1, 0, 1})
	})
}

// TestBool computes with matrices of bools, of which memory may hold any bytes.
func TestBool(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		x := []float32{1, -2, 0, 4, 5, -6, 7, 0, 9, 10, -11}
		f := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 11, x))
		positive := must[*matrix.Dense[bool]](t)(matrix.Convert[bool](matrix.Greater(f, matrix.Fill[float32](1, 1, 0))).Eval())
		some := must[*matrix.Dense[bool]](t)(matrix.Convert[bool](f).Eval())
		both := must[*matrix.Dense[bool]](t)(matrix.New[bool](dev, 1, 11))
		check(t, both.Assign(matrix.And(some, matrix.Not(positive))))
		want := make([]bool, len(x))
		picked := make([]float32, len(x))
		for i, v := range x {
			want[i] = v < 0
			if v > 0 {
				picked[i] = v
			}
		}
		same(t, "negative", readAll[bool](t, both), want)
		same(t, "picked", readAll[float32](t, matrix.Where(matrix.Convert[float32](positive), f, matrix.Fill[float32](1, 1, 0))), picked)
		same(t, "count", readAll[int32](t, matrix.CountNonzero(both)), []int32{3})
		check(t, both.Assign(matrix.Add(some, some))) // 2 is true
		for i, v := range x {
			want[i] = v != 0
		}
		same(t, "twice", readAll[bool](t, both), want)
		mem := []byte{0, 1, 2, 255, 128}
		bytes := must[*matrix.Dense[matrix.Any]](t)(matrix.FromBuffer[matrix.Any](dev, 1, 5, gpu.HostBytes(mem), 0, matrix.Options{Type: matrix.Bool}))
		same(t, "any bytes", readAll[matrix.Any](t, bytes), []matrix.Any{0, 1, 1, 1, 1})
		same(t, "any bytes, copied", readAll[bool](t, must[*matrix.Dense[bool]](t)(matrix.As[bool](bytes))), []bool{false, true, true, true, true})
		for _, m := range []interface{ Close() error }{f, positive, some, both, bytes} {
			check(t, m.Close())
		}
	})
}
