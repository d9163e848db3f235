// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"fmt"
	"maps"
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
			diag.Apply(func(i, j int, v float64) float64 {
				if j == i+1 {
					v += 3
				}
				return v
			}, diag)
			residual(t, what+" added to a diagonal", wide(t, dev, what, matrix.AddToDiag[float32](matrix.PutDiag[float32](a, matrix.Fill[float32](1, 1, 7), 1), matrix.Fill[float32](1, 1, 3), 1)), diag, 1, 0)
			region, i0, j0 := matrix.Slice[float32](a, 0, rows-rows/2, 0, cols-cols/2), rows/2, cols/2
			for _, add := range []bool{false, true} {
				moved := mat.DenseCopyOf(ref)
				for i := range rows - i0 {
					for j := range cols - j0 {
						v := ref.At(i, j)
						if add {
							v = float64(float32(v) + float32(ref.At(i0+i, j0+j)))
						}
						moved.Set(i0+i, j0+j, v)
					}
				}
				e := matrix.Put[float32](a, region, i0, j0)
				if add {
					e = matrix.AddTo[float32](a, region, i0, j0)
				}
				residual(t, what+" region", wide(t, dev, what, e), moved, 1, 0)
			}
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

// TestCounts counts elements and finds places among them.
func TestCounts(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(63)
		for turn, size := range [][2]int{{1, 1}, {1, 300}, {17, 33}} {
			a, ref := sampled(t, dev, rng, turn, size[0], size[1])
			values := ref.RawMatrix().Data
			want := make([]int32, 7)
			for _, v := range values {
				if v >= -1 && v <= 1.5 {
					want[min(int((float32(v)+1)*float32(7/2.5)), 6)]++
				}
			}
			same(t, "histogram", readAll[int32](t, matrix.Histogram(a, 7, -1, 1.5).On(dev)), want)
			sorted := slices.Clone(values)
			slices.Sort(sorted)
			row := matrix.SortRows[float32](matrix.Reshape(a, 1, -1))
			at := readAll[int32](t, matrix.SearchSorted[float32](row, matrix.Linspace[float32](-3, 3, 40)).On(dev))
			for j, got := range at {
				v := -3 + 6*float64(j)/39
				if p := sort.SearchFloat64s(sorted, float64(float32(v))); math.Abs(float64(p)-float64(got)) > 1 {
					t.Errorf("%v would be at %v, want %d", v, got, p)
				}
			}
		}
		empty := must[*matrix.Dense[float32]](t)(matrix.New[float32](dev, 0, 5))
		same(t, "a histogram of nothing", readAll[int32](t, matrix.Histogram[float32](empty, 2, 0, 1).On(dev)), []int32{0, 0})
		labels := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 2, 4, []int32{3, 0, 3, -1, 9, 1, 3, 0}))
		same(t, "counts", must[[]int32](t)(matrix.BinCount[int32](labels, 5).Read(t.Context())), []int32{2, 1, 0, 3, 0})
		same(t, "counts of floats", readAll[int32](t, matrix.BinCount[float32](must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 3, []float32{1, 0.5, 1})), 2)), []int32{0, 2})
		bytes := must[*matrix.Dense[uint8]](t)(matrix.New[uint8](dev, 20, 20))
		same(t, "counts beyond a byte", readAll[int32](t, matrix.BinCount[uint8](bytes, 2)), []int32{400, 0})
		exact := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 5, []int32{1, 3, 3, 5, 9}))
		places := matrix.SearchSorted[int32](exact, must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, 6, []int32{0, 1, 3, 4, 9, 10})))
		same(t, "places", must[[]int32](t)(places.Read(t.Context())), []int32{0, 0, 1, 3, 4, 5})
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		last := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 5, []float32{1, 2, inf, nan, nan}))
		wanted := must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 5, []float32{nan, 0, 3, inf, -inf}))
		same(t, "places of NaN", readAll[int32](t, matrix.SearchSorted[float32](last, wanted).On(dev)), []int32{3, 0, 2, 2, 0})
		same(t, "places of NaN at the end", readAll[int32](t, matrix.SearchSorted[float32](must[*matrix.Dense[float32]](t)(matrix.FromSlice(dev, 1, 2, []float32{1, 2})), wanted).On(dev)), []int32{2, 0, 2, 2, 0})
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
			"a region":      {matrix.Put[float32](a, a, 1, 0).Err(), buffer.ErrIndex},
			"before it":     {matrix.AddTo[float32](a, matrix.Fill[float32](1, 1, 1), 0, -1).Err(), buffer.ErrIndex},
			"labels":        {matrix.OneHot[float32](matrix.Fill[int32](2, 3, 0), 3).Err(), buffer.ErrShape},
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

// TestUnique finds the different elements of matrices, and how many there are of each.
func TestUnique(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(64)
		for turn, size := range [][2]int{{1, 1}, {17, 33}, {3, 300}, {1, 128}, {1, 200}, {5, 51}, {1, 1024}, {40, 50}} {
			values, counts := make([]int32, size[0]*size[1]), map[int32]int32{}
			for i := range values {
				values[i] = rng.Int32N(40) - 20
				counts[values[i]]++
			}
			m := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, size[0], size[1], values))
			a := m.Expr()
			if turn > 0 {
				a = must[*matrix.Dense[int32]](t)(matrix.Transpose[int32](m).Eval()).T().Expr()
			}
			n, err := a.CountUnique().Value(t.Context())
			check(t, err)
			distinct := slices.Sorted(maps.Keys(counts))
			if int(n) != len(distinct) {
				t.Fatalf("%d different elements, want %d", n, len(distinct))
			}
			k := int(n)
			same(t, "unique", readAll[int32](t, a.Unique(k)), distinct)
			same(t, "fewer", readAll[int32](t, a.Unique(k-k/2)), distinct[:k-k/2])
			same(t, "more", readAll[int32](t, a.Unique(k+2)), append(slices.Clone(distinct), 0, 0))
			want := make([]int32, k, k+2)
			for i, v := range distinct {
				want[i] = counts[v]
			}
			same(t, "counts", readAll[int32](t, a.UniqueCounts(k+2)), append(want, 0, 0))
		}
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		x := must[*dense](t)(matrix.FromSlice(dev, 2, 4, []float32{nan, 2, -inf, nan, 2, inf, 0, nan}))
		if got := fmt.Sprint(readAll[float32](t, matrix.Unique[float32](x, 6))); got != "[-Inf 0 2 +Inf NaN 0]" {
			t.Error(got)
		}
		same(t, "counts of special ones", readAll[int32](t, matrix.UniqueCounts[float32](x, 6)), []int32{1, 1, 2, 1, 3, 0})
		same(t, "how many", readAll[int32](t, matrix.CountUnique[float32](x)), []int32{5})
		empty := must[*dense](t)(matrix.New[float32](dev, 0, 3))
		same(t, "of nothing", readAll[float32](t, matrix.Unique[float32](empty, 2)), []float32{0, 0})
		same(t, "none", readAll[int32](t, matrix.CountUnique[float32](empty)), []int32{0})
		same(t, "no counts", readAll[int32](t, matrix.UniqueCounts[float32](empty, 2)), []int32{0, 0})
		isError(t, matrix.Unique[float32](x, -1).Err(), buffer.ErrSize)
	})
}

// TestSearchLengths searches in rows of many lengths: each doubling makes the search a step longer, which other kernels then hold.
func TestSearchLengths(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for _, n := range []int{1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128, 200, 255, 256, 511, 512, 1023, 1024, 1500, 2047, 2048, 5000} {
			row := make([]int32, n)
			for i := range row {
				row[i] = int32(3 * i)
			}
			a := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, n, row))
			for _, queries := range [][]int32{{int32(n)}, {-1, 0, 1, int32(3 * n / 2), int32(3 * n)}} {
				b := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, len(queries), queries))
				want := make([]int32, len(queries))
				for i, q := range queries {
					at, _ := slices.BinarySearch(row, q)
					want[i] = int32(at)
				}
				same(t, fmt.Sprintf("%d queries in %d", len(queries), n), readAll[int32](t, matrix.SearchSorted[int32](a, b)), want)
				check(t, b.Close())
			}
			check(t, a.Close())
		}
	})
}

// TestManyNumbers counts and replaces by so many numbers that they are sorted, where fewer are compared one by one.
func TestManyNumbers(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const count = 70000
		rng := newRand(71)
		numbers, counts, bins := make([]int32, count), make([]int32, count), make([]int32, count)
		x := make([]float32, count)
		for i := range numbers {
			numbers[i] = int32(rng.IntN(count+20) - 10)
			if i%3 > 0 {
				numbers[i] /= 64
			}
			x[i] = float32(numbers[i]) + 0.5
			if n := numbers[i]; n >= 0 && n < count {
				counts[n]++
			}
			if x[i] >= 0 && x[i] <= count {
				bins[int(x[i])]++
			}
		}
		m := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 1, count, numbers))
		f := must[*dense](t)(matrix.FromSlice(dev, count, 1, x))
		same(t, "counts", readAll[int32](t, matrix.BinCount[int32](m, count)), counts)
		same(t, "counts of floats", readAll[int32](t, matrix.BinCount[float32](matrix.AddScalar[float32](f, -0.5), count)), counts)
		same(t, "bins", readAll[int32](t, matrix.Histogram[float32](f, count, 0, count)), bins)

		before, after := make([]float32, count), make([]float32, count)
		for i := range before {
			before[i] = float32(-i)
		}
		copy(after, before)
		for i, n := range numbers {
			if n >= 0 && n < count {
				after[n] = x[i]
			}
		}
		a := must[*dense](t)(matrix.FromSlice(dev, count, 1, before))
		same(t, "rows", readAll[float32](t, matrix.PutRows[float32](a, m, f)), after)
		same(t, "columns", readAll[float32](t, matrix.PutCols[float32](a.T(), m, f.T())), after)
	})
}
