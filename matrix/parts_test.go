// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestParts replaces, adds to and takes parts of matrices in every layout.
func TestParts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(61)
		numbers := []int32{3, 0, 9, 3, -1}
		for turn, size := range [][2]int{{1, 1}, {5, 4}, {33, 17}, {40, 65}} {
			rows, cols := size[0], size[1]
			a, ref := sampled(t, dev, rng, turn, rows, cols)
			b, right := sampled(t, dev, rng, turn+1, len(numbers), cols)
			c, below := sampled(t, dev, rng, turn+2, rows, len(numbers))
			n := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, len(numbers), numbers))
			column := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, len(numbers), 1, numbers))
			put, added, putCols, addedCols := mat.DenseCopyOf(ref), mat.DenseCopyOf(ref), mat.DenseCopyOf(ref), mat.DenseCopyOf(ref)
			for k, at := range numbers {
				for j := range cols {
					if at >= 0 && int(at) < rows {
						put.Set(int(at), j, right.At(k, j))
						added.Set(int(at), j, added.At(int(at), j)+right.At(k, j))
					}
				}
				for i := range rows {
					if at >= 0 && int(at) < cols {
						putCols.Set(i, int(at), below.At(i, k))
						addedCols.Set(i, int(at), addedCols.At(i, int(at))+below.At(i, k))
					}
				}
			}
			what := fmt.Sprintf("%dx%d", rows, cols)
			residual(t, what+" put", wide(t, dev, what, matrix.PutRows[float32](a, n, b)), put, 1, 0)
			residual(t, what+" put columns", wide(t, dev, what, matrix.PutCols[float32](a, column, c)), putCols, 1, 0)
			residual(t, what+" added", wide(t, dev, what, matrix.AddToRows[float32](a, column, b)), added, mat.Norm(added, 2), 4)
			residual(t, what+" added columns", wide(t, dev, what, matrix.AddToCols[float32](a, n, c)), addedCols, mat.Norm(addedCols, 2), 4)
			part := wide(t, dev, what, matrix.Slice[float32](matrix.Neg[float32](a), rows/2, rows, 0, (cols+1)/2))
			var want mat.Dense
			want.Scale(-1, ref.Slice(rows/2, rows, 0, (cols+1)/2))
			residual(t, what+" part", part, &want, 1, 0)
			diag := mat.DenseCopyOf(ref)
			for i := range rows {
				if i+1 < cols {
					diag.Set(i, i+1, 7)
				}
			}
			residual(t, what+" diagonal", wide(t, dev, what, matrix.PutDiag[float32](a, matrix.Fill[float32](1, 1, 7), 1)), diag, 1, 0)
			dots := wide(t, dev, what, matrix.DotRows[float32](a, matrix.Exp[float32](matrix.Scale[float32](0, a))))
			for i := range rows {
				if sum := mat.Sum(ref.Slice(i, i+1, 0, cols)); math.Abs(dots.At(i, 0)-sum) > 1e-4 {
					t.Errorf("%s: row %d is %v, want %v", what, i, dots.At(i, 0), sum)
				}
			}
			if got, want := wide(t, dev, what, matrix.DotCols[float32](a, a)).At(0, 0), math.Pow(mat.Norm(ref.Slice(0, rows, 0, 1), 2), 2); math.Abs(got-want) > 1e-4*want {
				t.Errorf("%s: the first column times itself is %v, want %v", what, got, want)
			}
			dst, _ := wrapped(t, dev, forms[turn], rows, cols, ref32(ref))
			check(t, dst.Assign(matrix.PutRows[float32](dst, n, b)))
			residual(t, what+" put in place", wide(t, dev, what, dst.Expr()), put, 1, 0)
		}
	})
}

// TestAddToMany adds to rows of a matrix that are too many for a product, and to columns.
func TestAddToMany(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const rows, count, cols = 5000, 60000, 3 // more than are added up at a time
		rng := newRand(64)
		numbers, values := make([]int32, count), random(rng, count*cols)
		want := make([]float64, rows*cols)
		for k := range numbers {
			numbers[k] = int32(rng.IntN(40)*rng.IntN(200) - 3) // some of them often, some none
			for j := range cols {
				if at := int(numbers[k]); at >= 0 && at < rows {
					want[at*cols+j] += float64(values[k*cols+j])
				}
			}
		}
		a := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, rows, cols))
		n := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, count, numbers))
		b := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, count, cols, values))
		sum := mat.NewDense(rows, cols, want)
		residual(t, "rows", wide(t, dev, "rows", matrix.AddToRows[float32](a, n, b)), sum, mat.Norm(sum, 2), 64)
		byCols := matrix.AddToCols[float32](a.T(), n, b.T())
		residual(t, "columns", wide(t, dev, "columns", byCols).T(), sum, mat.Norm(sum, 2), 64)
	})
}

// ref32 is a matrix as float32, row by row.
func ref32(m *mat.Dense) []float32 {
	v := make([]float32, len(m.RawMatrix().Data))
	for i, x := range m.RawMatrix().Data {
		v[i] = float32(x)
	}
	return v
}

// TestMulStack multiplies stacks of small and large matrices.
func TestMulStack(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(62)
		for turn, s := range [][4]int{{1, 1, 1, 1}, {200, 3, 4, 5}, {7, 1, 9, 1}, {5, 8, 1, 3}, {3, 70, 65, 66}, {1, 4, 5, 6}, {2, 3, 0, 4}, {9, 2, 3, 1}} {
			count, m, k, n := s[0], s[1], s[2], s[3]
			what := fmt.Sprintf("%d of %dx%dx%d", count, m, k, n)
			if k == 0 {
				e := matrix.MulStack[float32](must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, count*m, 0)), must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 0, n)), count)
				same(t, what, readAll[float32](t, e.On(dev)), make([]float32, count*m*n))
				continue
			}
			a, left := sampled(t, dev, rng, turn, count*m, k)
			b, right := sampled(t, dev, rng, turn+1, count*k, n)
			before := dev.Stats().Dispatches
			got := wide(t, dev, what, matrix.MulStack(a, b, count))
			if used := dev.Stats().Dispatches - before; used > uint64(8+2*min(count, 3)) {
				t.Errorf("%s: %d kernels", what, used)
			}
			for i := range count {
				residual(t, what, got.Slice(i*m, (i+1)*m, 0, n), product(left.Slice(i*m, (i+1)*m, 0, k), right.Slice(i*k, (i+1)*k, 0, n)), 1, 64*float64(k*k+4))
			}
		}
	})
}

// TestCounts counts elements and finds places among them.
func TestCounts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(63)
		for turn, size := range [][2]int{{1, 1}, {1, 300}, {17, 33}} {
			a, ref := sampled(t, dev, rng, turn, size[0], size[1])
			values := ref.RawMatrix().Data
			want := make([]float32, 7)
			for _, v := range values {
				if v >= -1 && v <= 1.5 {
					want[min(int((float32(v)+1)*float32(7/2.5)), 6)]++
				}
			}
			same(t, "histogram", readAll[float32](t, matrix.Histogram(a, 7, -1, 1.5).On(dev)), want)
			sorted := slices.Clone(values)
			slices.Sort(sorted)
			row := matrix.SortRows[float32](matrix.Reshape(a, 1, -1))
			at := readAll[float32](t, matrix.SearchSorted[float32](row, matrix.Linspace[float32](-3, 3, 40)).On(dev))
			for j, got := range at {
				v := -3 + 6*float64(j)/39
				if p := sort.SearchFloat64s(sorted, float64(float32(v))); math.Abs(float64(p)-float64(got)) > 1 {
					t.Errorf("%v would be at %v, want %d", v, got, p)
				}
			}
		}
		empty := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 0, 5))
		same(t, "a histogram of nothing", readAll[float32](t, matrix.Histogram[float32](empty, 2, 0, 1).On(dev)), []float32{0, 0})
		labels := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 2, 4, []int32{3, 0, 3, -1, 9, 1, 3, 0}))
		same(t, "counts", must[[]int32](t)(matrix.BinCount[int32](labels, 5).Read(t.Context())), []int32{2, 1, 0, 3, 0})
		same(t, "counts of floats", readAll[float32](t, matrix.BinCount[float32](must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 3, []float32{1, 0.5, 1})), 2)), []float32{0, 2})
		exact := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 5, []int32{1, 3, 3, 5, 9}))
		places := matrix.SearchSorted[int32](exact, must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 6, []int32{0, 1, 3, 4, 9, 10})))
		same(t, "places", must[[]int32](t)(places.Read(t.Context())), []int32{0, 0, 1, 3, 4, 5})
	})
}

func TestPartsErrors(t *testing.T) {
	onDevice(t, func(dev *gpu.Device) {
		a := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 4, 6))
		n := must[*matrix.Dense[int32]](t)(matrix.New[int32](dev, 1, 2))
		for what, c := range map[string]struct{ err, want error }{
			"columns":       {matrix.PutRows[float32](a, n, matrix.Fill[float32](2, 5, 1)).Err(), buffer.ErrShape},
			"numbers":       {matrix.PutRows[float32](a, n, matrix.Fill[float32](3, 6, 1)).Err(), buffer.ErrShape},
			"rows":          {matrix.AddToCols[float32](a, n, matrix.Fill[float32](3, 2, 1)).Err(), buffer.ErrShape},
			"a slice":       {matrix.Slice[float32](a, 0, 5, 0, 1).Err(), buffer.ErrIndex},
			"another slice": {matrix.Slice[float32](a, 2, 1, 0, 1).Err(), buffer.ErrIndex},
			"a diagonal":    {matrix.PutDiag[float32](a, matrix.Fill[float32](1, 3, 1), 0).Err(), buffer.ErrShape},
			"a stack":       {matrix.MulStack[float32](a, a, 3).Err(), buffer.ErrShape},
			"no stack":      {matrix.MulStack[float32](a, a, 0).Err(), buffer.ErrShape},
			"negative":      {matrix.MulStack[float32](a, a, -1).Err(), buffer.ErrSize},
			"bins":          {matrix.Histogram[float32](a, 0, 0, 1).Err(), gpu.ErrInvalid},
			"no interval":   {matrix.Histogram[float32](a, 3, 1, 1).Err(), gpu.ErrInvalid},
			"whole numbers": {matrix.Histogram[int32](n, 3, 0, 1).Err(), gpu.ErrUnsupported},
			"classes":       {matrix.BinCount[int32](n, -1).Err(), buffer.ErrSize},
			"no row":        {matrix.SearchSorted[float32](a, a).Err(), buffer.ErrShape},
			"nothing":       {matrix.PutRows[float32](nil, n, a).Err(), buffer.ErrNil},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", what, c.err, c.want)
			}
		}
	})
}

// onDevice runs a test that needs no particular device.
func onDevice(t *testing.T, run func(dev *gpu.Device)) {
	t.Helper()
	dev := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver("cpu")))
	run(dev)
	check(t, dev.Close())
}
