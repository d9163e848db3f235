// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"sort"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// orderOf returns the indices of some elements in order; NaN is the largest, and what was first stays first.
func orderOf(x []float64, down bool) []int {
	at := make([]int, len(x))
	for i := range at {
		at[i] = i
	}
	less := func(a, b float64) bool { return a < b || math.IsNaN(b) && !math.IsNaN(a) }
	sort.SliceStable(at, func(i, j int) bool {
		if down {
			i, j = j, i
		}
		return less(x[at[i]], x[at[j]])
	})
	return at
}

// ordered fails unless rows and columns of a matrix of the elements are sorted rightly.
func ordered(t *testing.T, what string, a arg, x []float32, rows, cols int) {
	t.Helper()
	d := float64s(x)
	type result struct {
		values  []float32
		indices []int32
	}
	want := func(down, byCols bool, k int) (r result) {
		lines, height, width := rows, rows, k
		if byCols {
			lines, height, width = cols, k, cols
		}
		r = result{make([]float32, height*width), make([]int32, height*width)}
		for l := range lines {
			line := column(d, max(cols, 1), l)
			if !byCols {
				line = d[l*cols:][:cols]
			}
			for n, at := range orderOf(line, down)[:k] {
				to := l*width + n
				if byCols {
					to = n*width + l
				}
				r.values[to], r.indices[to] = float32(line[at]), int32(at)
			}
		}
		return r
	}
	compare := func(name string, values *expr, indices *matrix.Expr[int32], w result) {
		t.Helper()
		same(t, what+name+" indices", must[[]int32](t)(indices.Read(background)), w.indices)
		near(t, what+name, must[[]float32](t)(values.Read(background)), float64s(w.values), 0)
	}
	compare(" rows", matrix.SortRows(a), matrix.ArgSortRows(a), want(false, false, cols))
	compare(" columns", matrix.SortCols(a), matrix.ArgSortCols(a), want(false, true, rows))
	for _, k := range []int{0, 1, cols / 2, cols} {
		if k <= cols {
			compare(name(" top", k), matrix.TopKRows(a, k), matrix.ArgTopKRows(a, k), want(true, false, k))
		}
	}
	k := (rows + 1) / 2
	compare(" top of columns", matrix.TopKCols(a, k), matrix.ArgTopKCols(a, k), want(true, true, k))
}

func TestSort(t *testing.T) {
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1, 1, -1}
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(13)
		for i, d := range [][2]int{{1, 1}, {3, 4}, {17, 33}, {1, 1030}, {130, 5}, {0, 3}, {3, 0}} {
			rows, cols := d[0], d[1]
			x := random(rng, rows*cols)
			for k := range x {
				if rng.IntN(2) == 0 {
					x[k] = special[rng.IntN(len(special))]
				}
			}
			for k, form := range forms {
				if i == 2 || k%3 == i%3 {
					a, _ := wrapped(t, dev, form, rows, cols, x)
					ordered(t, name(d, form.name), a, x, rows, cols)
					check(t, a.Close())
				}
			}
		}
		x := random(rng, 30*40)
		a := must[*dense](t)(matrix.FromSlice(dev, 30, 40, x))
		check(t, a.Assign(matrix.SortRows(matrix.Neg(a)).Neg())) // in place, with a head
		for i := range 30 {
			for j, at := range orderOf(float64s(x[i*40:][:40]), true) {
				if got := must[float32](t)(a.At(background, i, j)); j%13 == 0 && got != x[i*40+at] {
					t.Fatalf("%d, %d in place: %v, want %v", i, j, got, x[i*40+at])
				}
			}
		}
		whole := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 5, []int32{3, -4, math.MinInt32, math.MaxInt32, 0}))
		same(t, "integers", must[[]int32](t)(matrix.SortRows(whole).Read(background)), []int32{math.MinInt32, -4, 0, 3, math.MaxInt32})
		natural := must[*matrix.Dense[uint32]](t)(matrix.FromSlice(dev, 1, 3, []uint32{math.MaxUint32, 0, 1 << 31}))
		same(t, "natural numbers", must[[]uint32](t)(matrix.TopKRows(natural, 2).Read(background)), []uint32{math.MaxUint32, 1 << 31})
		half := must[*matrix.Dense[matrix.Half]](t)(matrix.Convert[matrix.Half](whole.Slice(0, 1, 0, 2)).Eval())
		same(t, "halves", must[[]matrix.Half](t)(matrix.SortRows(half).Read(background)), []matrix.Half{matrix.ToHalf(-4), matrix.ToHalf(3)})
	})
}

// TestTopK has errors, text, and rows longer than one invocation could go along.
func TestTopK(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.FromSlice(dev, 2, 3, []float32{1, 3, 2, 6, 5, 4}))
		for what, err := range map[string]error{
			"too many": matrix.TopKRows(a, 4).Err(), "negative": matrix.ArgTopKCols(a, -1).Err(), "of columns": matrix.TopKCols(a, 3).Err(),
			"text": matrix.Eval("topkrows(A, 1.5)", map[string]arg{"A": a}).Err(),
		} {
			if !errors.Is(err, gpu.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := matrix.TopKCols(a, 3).Err(); err.Error() != "matrix: TopKCols: 2x3: invalid argument: 3 of 2 elements" {
			t.Error(err)
		}
		same(t, "text", must[[]float32](t)(matrix.Eval("topkrows(A, 2)", map[string]arg{"A": a}).Read(background)), []float32{3, 2, 6, 5})
		n := 3000 * devtest.Times(30)
		x := random(newRand(14), n)
		long := must[*dense](t)(matrix.FromSlice(dev, 1, n, x))
		got := must[[]int32](t)(matrix.ArgTopKRows(long, 10).Read(background))
		for k, at := range orderOf(float64s(x), true)[:10] {
			if int(got[k]) != at {
				t.Errorf("number %d of %d is %d, want %d", k, n, got[k], at)
			}
		}
	})
}

func TestCumulative(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(15)
		for i, d := range [][2]int{{1, 1}, {3, 4}, {17, 33}, {2, 257}, {300, 5}, {1, 70_001}, {0, 3}, {3, 0}} {
			rows, cols := d[0], d[1]
			x := random(rng, rows*cols)
			for k, form := range forms {
				if i != 2 && k%3 != i%3 {
					continue
				}
				a, _ := wrapped(t, dev, form, rows, cols, x)
				sums, downwards, products := float64s(x), float64s(x), make([]float64, rows*cols)
				for at := range sums {
					products[at] = 1 + sums[at]/64
				}
				factors := matrix.Scale(1.0/64, a).AddScalar(1)
				for at := range sums {
					if at%cols > 0 {
						sums[at] += sums[at-1]
						products[at] *= products[at-1]
					}
					if at >= cols {
						downwards[at] += downwards[at-cols]
					}
				}
				tol := 1e-5 * float64(max(rows, cols))
				close64(t, name(d, form.name), must[[]float32](t)(matrix.CumSumRows(a).Read(background)), sums, tol)
				close64(t, name(d, form.name)+" of columns", must[[]float32](t)(matrix.CumSumCols(a).Read(background)), downwards, tol)
				if cols < 1000 {
					close64(t, name(d, form.name)+" products", must[[]float32](t)(matrix.CumProdRows(factors).Read(background)), products, tol)
				}
				check(t, a.Assign(matrix.CumSumRows(a)))
				close64(t, name(d, form.name)+" in place", must[[]float32](t)(a.Read(background)), sums, tol)
				check(t, a.Close())
			}
		}
		inf := float32(math.Inf(1))
		a := must[*dense](t)(matrix.FromSlice(dev, 1, 5, []float32{1, inf, 2, -inf, 3}))
		nan := math.NaN()
		near(t, "infinities", must[[]float32](t)(matrix.CumSumRows(a).Read(background)), []float64{1, math.Inf(1), math.Inf(1), nan, nan}, 0)
		natural := must[*matrix.Dense[uint32]](t)(matrix.FromSlice(dev, 3, 1, []uint32{math.MaxUint32, 2, 3}))
		same(t, "sums that wrap", must[[]uint32](t)(matrix.CumSumCols(natural).Read(background)), []uint32{math.MaxUint32, 1, 4})
		same(t, "products that wrap", must[[]uint32](t)(matrix.CumProdCols(natural).Read(background)), []uint32{math.MaxUint32, math.MaxUint32 - 1, math.MaxUint32 - 5})
		half := must[*matrix.Dense[matrix.Half]](t)(matrix.Convert[matrix.Half](matrix.Fill(2, 3, float32(2)).On(dev)).Eval())
		same(t, "halves", must[[]float32](t)(matrix.Convert[float32](matrix.CumProdRows(half)).Read(background)), []float32{2, 4, 8, 2, 4, 8})
	})
}
