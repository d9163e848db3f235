// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// These are what random programs found that were compared with a model of the contract.

// TestReduceRowByColumn folds one row of operands that lie in memory in different ways: a row and a column.
func TestReduceRowByColumn(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n = 37
		rng := newRand(1)
		x, y := integers(rng, n*n), integers(rng, n*n)
		a := must[*dense](t)(matrix.FromSlice(dev, n, n, x))
		b := must[*dense](t)(matrix.FromSlice(dev, n, n, y))
		row, col := a.Row(3), b.Col(5)
		want, largest := float32(0), float32(math.Inf(-1))
		for i := range n {
			want += x[3*n+i] * y[i*n+5]
			largest = max(largest, x[3*n+i]+y[i*n+5])
		}
		for what, e := range map[string]*expr{
			"row by column": matrix.Sum(matrix.MulElem(row, col.T())),
			"column by row": matrix.Sum(matrix.MulElem(col, row.T())),
			"turned":        matrix.Sum(matrix.MulElem(col.T(), row)),
		} {
			if v := must[float32](t)(e.Value(background)); v != want {
				t.Errorf("%s: the sum is %v, want %v", what, v, want)
			}
		}
		if v := must[float32](t)(matrix.MaxAll(matrix.Add(row, col.T())).Value(background)); v != largest {
			t.Errorf("the largest is %v, want %v", v, largest)
		}
		check(t, errors.Join(row.Close(), col.Close(), a.Close(), b.Close()))
	})
}

// TestNaNIsNotZero has NaN where truth is asked for: it equals nothing, 0 included, so that it is true.
func TestNaNIsNotZero(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		nan := float32(math.NaN())
		a := must[*dense](t)(matrix.FromSlice(dev, 1, 4, []float32{nan, 0, 1, nan}))
		b := must[*dense](t)(matrix.FromSlice(dev, 1, 4, []float32{2, nan, 1, nan}))
		for _, c := range []struct {
			what string
			e    *expr
			want []float32
		}{
			{"equal", matrix.Equal(a, b), []float32{0, 0, 1, 0}},
			{"not equal", matrix.NotEqual(a, b), []float32{1, 1, 0, 1}},
			{"and", matrix.And(a, b), []float32{1, 0, 1, 1}},
			{"or", matrix.Or(a, b), []float32{1, 1, 1, 1}},
			{"not", matrix.Not(a), []float32{0, 1, 0, 0}},
			{"where", matrix.Where(a, matrix.Fill(1, 4, float32(5)), matrix.Fill(1, 4, float32(6))), []float32{5, 6, 5, 5}},
		} {
			same(t, c.what, must[[]float32](t)(c.e.Read(background)), c.want)
		}
		check(t, errors.Join(a.Close(), b.Close()))
	})
}

// TestNaNBeatsInfinity folds both: NaN wins.
func TestNaNBeatsInfinity(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		for _, x := range [][]float32{{nan, inf, -inf}, {inf, nan, -inf}, {-inf, inf, nan}} {
			a := must[*dense](t)(matrix.FromSlice(dev, 1, 3, x))
			for i, e := range []*expr{
				matrix.MaxAll(a), matrix.MinAll(a), matrix.MaxRows(a), matrix.MinRows(a),
				matrix.MaxCols(matrix.Transpose(a)), matrix.MinCols(matrix.Transpose(a)),
			} {
				if v := must[float32](t)(e.Value(background)); v == v {
					t.Errorf("fold %d of %v is %v", i, x, v)
				}
			}
			check(t, a.Close())
		}
	})
}

// TestConvertSaturates converts floats beyond the range of integers as they are stored, and as they are loaded.
func TestConvertSaturates(t *testing.T) {
	inf := float32(math.Inf(1))
	x := []float32{-inf, -3e9, -1 << 31, -2.5, -0.5, 0.5, 2.5, 2147483520, 1 << 31, 3e9, 4294967040, 1 << 32, 5e9, inf, float32(math.NaN())}
	ints := []int32{math.MinInt32, math.MinInt32, math.MinInt32, -2, 0, 0, 2, 2147483520, math.MaxInt32, math.MaxInt32, math.MaxInt32, math.MaxInt32, math.MaxInt32, math.MaxInt32, 0}
	uints := []uint32{0, 0, 0, 0, 0, 0, 2, 2147483520, 1 << 31, 3e9, 4294967040, math.MaxUint32, math.MaxUint32, math.MaxUint32, 0}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 1, len(x), x))
		same(t, "int32", must[[]int32](t)(matrix.Convert[int32](a).Read(background)), ints)
		same(t, "uint32", must[[]uint32](t)(matrix.Convert[uint32](a).Read(background)), uints)
		same(t, "int32, computed", must[[]int32](t)(matrix.Convert[int32](matrix.Neg(a).Neg()).Read(background)), ints)
		same(t, "int32, then computed", must[[]int32](t)(matrix.MaxScalar(matrix.Convert[int32](a), math.MinInt32).Read(background)), ints)
		same(t, "uint32, then computed", must[[]uint32](t)(matrix.MaxScalar(matrix.Convert[uint32](a), 0).Read(background)), uints)
		h := must[*matrix.Dense[matrix.Half]](t)(matrix.FromSlice(dev, 1, 3, halves(-inf, -7, inf)))
		same(t, "from float16", must[[]uint32](t)(matrix.Convert[uint32](h).Read(background)), []uint32{0, 0, math.MaxUint32})
		same(t, "from float16, signed", must[[]int32](t)(matrix.Convert[int32](h).Read(background)), []int32{math.MinInt32, -7, math.MaxInt32})
		check(t, errors.Join(a.Close(), h.Close()))
	})
}

// TestConvertRounds converts integers that float32 does not have to the nearest ones that it has, ties to even.
func TestConvertRounds(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(91)
		whole := []uint32{0, 1, 1<<24 + 1, 1<<24 + 3, 1<<25 + 2, 1<<25 + 6, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<31 + 128, 1<<31 + 384, math.MaxUint32, math.MaxUint32 - 127, math.MaxUint32 - 128}
		for range 300 {
			whole = append(whole, rng.Uint32()>>rng.IntN(9))
		}
		signed, fromWhole, fromSigned := make([]int32, len(whole)), make([]float32, len(whole)), make([]float32, len(whole))
		for i, v := range whole {
			signed[i] = int32(v)
			fromWhole[i], fromSigned[i] = float32(v), float32(int32(v))
		}
		u := must[*matrix.Dense[uint32]](t)(matrix.FromSlice(dev, 1, len(whole), whole))
		s := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, len(whole), signed))
		same(t, "uint32", must[[]float32](t)(matrix.Convert[float32](u).Read(background)), fromWhole)
		same(t, "int32", must[[]float32](t)(matrix.Convert[float32](s).Read(background)), fromSigned)
		same(t, "computed", must[[]float32](t)(matrix.Neg(matrix.Convert[float32](matrix.BitNot(matrix.BitNot[int32](s)))).Neg().Read(background)), fromSigned)
		check(t, errors.Join(u.Close(), s.Close()))
	})
}

// TestBlocksOfHalf multiplies matrices larger than the device's buffers: sums are rounded to float16 once, as elsewhere.
func TestBlocksOfHalf(t *testing.T) {
	onSmall(t, func(t *testing.T, small, dev *gpu.Device) {
		const rows, inner = 4, 3000
		x := make([]matrix.Half, rows*inner)
		for i := range x {
			x[i] = matrix.ToHalf(float32(i%7) / 8)
		}
		got, want := make([]matrix.Half, rows*rows), make([]matrix.Half, rows*rows)
		for dev, to := range map[*gpu.Device][]matrix.Half{small: got, dev: want} {
			a := must[*matrix.Dense[matrix.Half]](t)(matrix.Wrap(dev, rows, inner, x))
			c := must[*matrix.Dense[matrix.Half]](t)(matrix.Wrap(dev, rows, rows, to))
			check(t, c.Assign(matrix.Mul(a, matrix.Transpose(a))))
			check(t, errors.Join(c.Sync(background), a.Close(), c.Close()))
		}
		same(t, "product", got, want) // sums of multiples of 1/64 are exact in float32
	})
}

// TestBlocksOverlap moves part of a matrix that is larger than the device's buffers by one row: the part spans too much
// memory for a buffer as well, but its elements fit into a temporary.
func TestBlocksOverlap(t *testing.T) {
	onSmall(t, func(t *testing.T, small, _ *gpu.Device) {
		const rows, cols = 40, 40
		mem := integers(newRand(2), rows*cols)
		want := append([]float32(nil), mem...)
		for i := range rows - 1 {
			copy(want[i*cols+3:i*cols+8], mem[(i+1)*cols+3:])
		}
		m := must[*dense](t)(matrix.Wrap(small, rows, cols, mem))
		to, from := m.Slice(0, rows-1, 3, 8), m.Slice(1, rows, 3, 8)
		check(t, to.Assign(from))
		check(t, m.Sync(background))
		same(t, "moved", mem, want)
		check(t, errors.Join(to.Close(), from.Close(), m.Close()))
	})
}

// TestBlocksOfUnalignedHalf writes float16 whose rows begin within words to memory larger than the device's buffers.
func TestBlocksOfUnalignedHalf(t *testing.T) {
	onSmall(t, func(t *testing.T, small, _ *gpu.Device) {
		const size = 50
		for offset := range 3 {
			mem, want := make([]matrix.Half, size*size+offset), make([]matrix.Half, size*size+offset)
			m := must[*matrix.Dense[matrix.Half]](t)(matrix.Wrap(small, size, size, mem, matrix.Options{Offset: offset}))
			part := m.Slice(9, 42, 5, 38)
			for i := range 33 {
				for j := range 33 {
					want[cell(part, i, j)] = matrix.ToHalf(4)
				}
			}
			check(t, part.Fill(matrix.ToHalf(4)))
			check(t, m.Sync(background))
			same(t, name("offset", offset), mem, want)
			check(t, errors.Join(part.Close(), m.Close()))
		}
	})
}
