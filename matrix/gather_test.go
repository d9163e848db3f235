// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestIndex computes with the numbers of rows and columns in every kind of kernel.
func TestIndex(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, size := range [][2]int{{1, 1}, {1, 9}, {9, 1}, {3, 5}, {8, 64}, {67, 130}} {
			rows, cols := size[0], size[1]
			where := func() *matrix.Expr[int32] {
				return matrix.Add[int32](matrix.Scale[int32](1000, matrix.RowIndex(rows, cols)), matrix.ColIndex(rows, cols)).On(dev)
			}
			want := make([]int32, 0, rows*cols)
			var sum int32
			for i := range rows {
				for j := range cols {
					want = append(want, int32(1000*i+j))
					sum += int32(1000*i + j)
				}
			}
			same(t, "row by row", readAll(t, where()), want)
			byCols := must[*matrix.Dense[int32]](t)(matrix.New[int32](dev, rows, cols, matrix.Options{ColMajor: true}))
			check(t, byCols.Assign(where()))
			same(t, "by columns", readAll(t, byCols), want)
			same(t, "turned twice", readAll(t, where().T().Add(where().T()).Sub(where().T()).T()), want)
			// The matrix by columns has the fold go over the transpose.
			same(t, "sum", readAll(t, matrix.Sum[int32](where())), []int32{sum})
			same(t, "sum by columns", readAll(t, matrix.Sum[int32](where().Add(byCols))), []int32{2 * sum})
			check(t, byCols.Close())
		}
		row := matrix.Add[int32](matrix.RowIndex(1, 4), matrix.ColIndex(3, 1)).On(dev) // both of one element that is stretched
		same(t, "stretched", readAll(t, row), make([]int32, 12))
	})
}

// TestGather takes elements where matrices and expressions say.
func TestGather(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		data := make([]float32, 7*5)
		for i := range data {
			data[i] = float32(i) + 0.5
		}
		a := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 7, 5, data))
		byCols := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 7, 5, matrix.Options{ColMajor: true}))
		check(t, byCols.Assign(a))
		half := must[*matrix.Dense[matrix.Half]](t)(matrix.Convert[matrix.Half](a).Eval())
		rows := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 6, 1, []int32{6, 0, -1, 3, 7, 3}))
		cols := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 5, []int32{4, 4, 0, 5, -2147483648}))
		want := make([]float32, 0, 30)
		for _, i := range []int{6, 0, -1, 3, 7, 3} {
			for _, j := range []int{4, 4, 0, 5, -1} {
				v := float32(0)
				if i >= 0 && i < 7 && j >= 0 && j < 5 {
					v = data[5*i+j]
				}
				want = append(want, v)
			}
		}
		same(t, "matrix", readAll(t, matrix.Gather(a, rows, cols)), want)
		same(t, "by columns", readAll(t, matrix.Gather(byCols, rows, cols)), want)
		same(t, "transposed", readAll(t, matrix.Gather(a.T(), cols, rows).T()), transposed(want, 6, 5))
		same(t, "transposed operand", readAll(t, matrix.Gather(matrix.Transpose(a), cols.T(), rows.T())), transposed(want, 6, 5))
		same(t, "half", readAll(t, matrix.Convert[float32](matrix.Gather(half, rows, cols))), want)
		same(t, "of an expression", readAll(t, matrix.Gather(matrix.Add(a, a), rows, cols).Scale(0.5)), want)
		var sum float32
		for _, v := range want {
			sum += v
		}
		same(t, "in a sum", readAll(t, matrix.Sum(matrix.Gather(a, rows, cols))), []float32{sum})

		// Reversed in place, which needs another matrix in between; and a part of it into the rest.
		up := matrix.Sub[int32](matrix.Fill[int32](1, 1, 6), matrix.RowIndex(7, 1))
		check(t, a.Assign(matrix.Gather(a, up, matrix.ColIndex(1, 5))))
		reversed := make([]float32, 0, 35)
		for i := range 7 {
			reversed = append(reversed, data[5*(6-i):][:5]...)
		}
		same(t, "in place", readAll(t, a), reversed)
		half2 := a.Slice(3, 5, 1, 4)
		check(t, half2.Assign(matrix.Gather(half2, matrix.Sub[int32](matrix.Fill[int32](1, 1, 1), matrix.RowIndex(2, 1)), matrix.ColIndex(1, 3))))
		for j := 1; j < 4; j++ {
			reversed[15+j], reversed[20+j] = reversed[20+j], reversed[15+j]
		}
		same(t, "a window in place", readAll(t, a), reversed)
		check(t, half2.Close())

		empty := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 0, 5))
		same(t, "of nothing", readAll(t, matrix.Gather(empty, rows, cols).On(dev)), make([]float32, 30))
		if err := matrix.Gather(a, rows, matrix.RowIndex(4, 1)).Err(); !errors.Is(err, buffer.ErrShape) {
			t.Error(err)
		}
		for _, m := range []interface{ Close() error }{a, byCols, half, rows, cols, empty} {
			check(t, m.Close())
		}
	})
}

// TestConversionsFuse converts in the middle of a function, in one kernel.
func TestConversionsFuse(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 2, 3, []float32{1.5, -2.5, 3e9, 0, 7, 2.25}))
		b := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 2, 3, []int32{1, 2, 3, 4, 5, 6}))
		check(t, dev.Sync(t.Context()))
		before := dev.Stats().Dispatches
		c := must[*matrix.Dense[float32]](t)(matrix.Convert[float32](matrix.Add(matrix.Convert[int32](a), b)).MulElem(matrix.Convert[float32](b)).Eval())
		if n := dev.Stats().Dispatches - before; n != 1 {
			t.Errorf("%d kernels", n)
		}
		big := int32(-2147483646) // the largest int32 and 3, which wraps
		same(t, "sum", readAll(t, c), []float32{2, 0, 3 * float32(big), 16, 60, 48})
		for _, m := range []interface{ Close() error }{a, b, c} {
			check(t, m.Close())
		}
	})
}

// readAll evaluates an expression or reads a matrix.
func readAll[T matrix.Elem](t testing.TB, x interface {
	Read(ctx context.Context) ([]T, error)
},
) []T {
	t.Helper()
	return must[[]T](t)(x.Read(t.Context()))
}
