// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// onSmall runs a test on every driver with a device whose buffers hold 4 KiB, which few matrices fit into, beside one
// that holds them all.
func onSmall(t *testing.T, test func(t *testing.T, small, dev *gpu.Device)) {
	t.Helper()
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		small, err := gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(4<<10))
		check(t, err)
		test(t, small, dev)
		if s := small.Stats(); s.LiveBytes != 0 || s.Buffers != 0 {
			t.Errorf("%d bytes in %d buffers are live", s.LiveBytes, s.Buffers)
		}
		check(t, small.Close())
	})
}

// integers are numbers whose sums are exact in any order.
func integers(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.IntN(9) - 4)
	}
	return v
}

// pair is the same matrix on two devices: wrapped on the small one, where it is larger than a buffer, and on the other.
type pair struct{ small, whole *dense }

func (p pair) close(t testing.TB) {
	t.Helper()
	check(t, errors.Join(p.small.Close(), p.whole.Close()))
}

func newPair(t testing.TB, small, dev *gpu.Device, rng *rand.Rand, rows, cols int, opts ...matrix.Options) pair {
	t.Helper()
	v := integers(rng, (rows+8)*(cols+8))
	w := append([]float32(nil), v...)
	return pair{must[*dense](t)(matrix.Wrap(small, rows, cols, v, opts...)), must[*dense](t)(matrix.Wrap(dev, rows, cols, w, opts...))}
}

// blockExprs are expressions of two matrices of one size and a row.
var blockExprs = map[string]func(a, b, s *dense) *expr{
	"a+b":              func(a, b, _ *dense) *expr { return matrix.Add(a, b) },
	"a*2+row":          func(a, _, s *dense) *expr { return matrix.Scale(2, a).Add(s) },
	"sum":              func(a, _, _ *dense) *expr { return matrix.Sum(a) },
	"largest":          func(a, b, _ *dense) *expr { return matrix.MaxAll(matrix.Add(a, b)) },
	"row sums":         func(a, _, _ *dense) *expr { return matrix.SumRows(a) },
	"column sums":      func(a, b, _ *dense) *expr { return matrix.SumCols(matrix.MulElem(a, b)) },
	"a*b'":             func(a, b, _ *dense) *expr { return matrix.Mul(a, matrix.Transpose(b)) },
	"a'*b":             func(a, b, _ *dense) *expr { return matrix.Mul(matrix.Transpose(a), b) },
	"(a+b)'*b + 1":     func(a, b, _ *dense) *expr { return matrix.Mul(matrix.Transpose(matrix.Add(a, b)), b).AddScalar(1) },
	"sum of a product": func(a, b, _ *dense) *expr { return matrix.Sum(matrix.Mul(matrix.Transpose(a), b)) },
	"a - row sums":     func(a, _, _ *dense) *expr { return matrix.Sub(a, matrix.SumRows(a)) },
	"a+a":              func(a, _, _ *dense) *expr { return matrix.Add(a, a) },
	"a*sum(row)+sum":   func(a, _, s *dense) *expr { return matrix.MulElem(a, matrix.Sum(s)).Add(matrix.Sum(a)) },
	"transposed":       func(a, _, _ *dense) *expr { return matrix.Transpose(a) },
	"outer":            func(_, _, s *dense) *expr { return matrix.Mul(matrix.Transpose(s), s) },
}

// TestBlocks compares expressions of matrices that are larger than the device's buffers with those on a device that has
// room. All numbers are small integers: what is summed in another order is the same.
func TestBlocks(t *testing.T) {
	shapes := []struct {
		rows, cols int
		opts       matrix.Options
	}{
		{200, 33, matrix.Options{}},
		{7, 600, matrix.Options{}},
		{64, 64, matrix.Options{Stride: 70, Offset: 5}},
		{90, 40, matrix.Options{ColMajor: true}},
		{3, 1030, matrix.Options{ColMajor: true, Stride: 5}},
		{1, 5000, matrix.Options{}},
		{5000, 1, matrix.Options{}},
	}
	onSmall(t, func(t *testing.T, small, dev *gpu.Device) {
		turns := make([]int, len(blockExprs))
		for i, shape := range shapes {
			rng := newRand(uint64(i))
			a := newPair(t, small, dev, rng, shape.rows, shape.cols, shape.opts)
			b := newPair(t, small, dev, rng, shape.rows, shape.cols)
			s := newPair(t, small, dev, rng, 1, shape.cols)
			for at, name := range slices.Sorted(maps.Keys(blockExprs)) {
				e := blockExprs[name]
				y := e(a.whole, b.whole, s.whole)
				if rows, cols := y.Dims(); rows*cols > 1<<16 || shape.cols > 100 && (name == "a'*b" || name == "(a+b)'*b + 1" || name == "sum of a product" || name == "outer") {
					continue // thousands of blocks
				}
				if turns[at]++; sparing(dev) && (turns[at]+at)%3 != 0 { // each expression has one to three of its shapes
					continue
				}
				want := must[[]float32](t)(y.Read(t.Context()))
				if got, err := intoWrapped(t, small, e(a.small, b.small, s.small)); err != nil || !slices.Equal(got, want) {
					t.Errorf("%s of %dx%d: wrong, %v", name, shape.rows, shape.cols, err)
				}
			}
			a.close(t)
			b.close(t)
			s.close(t)
		}
	})
}

// intoWrapped assigns an expression to wrapped memory and brings the results there.
func intoWrapped(t testing.TB, dev *gpu.Device, x *expr) ([]float32, error) {
	t.Helper()
	rows, cols := x.Dims()
	got := make([]float32, rows*cols)
	m := must[*dense](t)(matrix.Wrap(dev, rows, cols, got))
	return got, errors.Join(m.Assign(x), m.Sync(t.Context()), m.Close())
}

// TestBlocksInPlace assigns to matrices that are operands.
func TestBlocksInPlace(t *testing.T) {
	onSmall(t, func(t *testing.T, small, dev *gpu.Device) {
		for name, change := range map[string]func(a *dense) error{
			"itself":  func(a *dense) error { return a.Assign(matrix.Scale(3, a).AddScalar(1)) },
			"its sum": func(a *dense) error { return a.Assign(matrix.Add(a, matrix.SumCols(a))) },
			"a part": func(a *dense) error {
				v := a.Slice(3, 40, 5, 60)
				return errors.Join(v.Assign(matrix.Scale(2, v)), v.Close())
			},
			"a small part": func(a *dense) error {
				v, w := a.Slice(0, 3, 0, 64), a.Slice(1, 4, 0, 64)
				return errors.Join(v.Assign(w), v.Close(), w.Close())
			},
		} {
			p := newPair(t, small, dev, newRand(3), 64, 64)
			check(t, change(p.whole))
			check(t, change(p.small))
			want := must[[]float32](t)(p.whole.Read(t.Context()))
			if got := must[[]float32](t)(p.small.Read(t.Context())); !slices.Equal(got, want) {
				t.Errorf("%s: wrong", name)
			}
			p.close(t)
		}
		// What would need a copy as large as the matrix is refused, and nothing has changed.
		p := newPair(t, small, dev, newRand(3), 64, 64)
		isError(t, p.small.Assign(matrix.Transpose(p.small)), gpu.ErrLimit)
		want := must[[]float32](t)(p.whole.Read(t.Context()))
		if got := must[[]float32](t)(p.small.Read(t.Context())); !slices.Equal(got, want) {
			t.Error("the refused assignment changed the matrix")
		}
		p.close(t)
	})
}

// TestWindows reads and writes overlapping parts, each of which has what kernels wrote into the other.
func TestWindows(t *testing.T) {
	onSmall(t, func(t *testing.T, small, _ *gpu.Device) {
		data := make([]float32, 100*100)
		m := must[*dense](t)(matrix.Wrap(small, 100, 100, data))
		top, low := m.Slice(0, 8, 0, 100), m.Slice(4, 12, 0, 100)
		check(t, top.Fill(1))
		if l := m.Buffer().Location(); l != buffer.Device {
			t.Errorf("the bits are on %v", l)
		}
		check(t, low.Fill(3))
		for _, want := range []float32{4*100 + 4*300, 800} {
			if v := must[float32](t)(matrix.Sum(top).Value(t.Context())); v != want {
				t.Errorf("the sum is %v, want %v", v, want)
			}
			check(t, top.Fill(1))
		}
		if data[0] != 0 || data[4*100] != 0 {
			t.Error("the caller's memory changed before Sync")
		}
		check(t, low.Fill(2))
		check(t, m.Sync(t.Context()))
		if l := m.Buffer().Location(); l != buffer.Host {
			t.Errorf("the bits are on %v", l)
		}
		up := small.Stats().BytesUp
		if v := must[float32](t)(matrix.Sum(top).Value(t.Context())); v != 4*100+4*200 {
			t.Errorf("the sum is %v", v)
		}
		if n := small.Stats().BytesUp - up; n > 4<<10 {
			t.Errorf("%d bytes went up for 3200", n)
		}
		if data[3*100] != 1 || data[4*100] != 2 || data[11*100+99] != 2 || data[12*100] != 0 {
			t.Error("the results are not where they belong")
		}
		data[0] = 5
		check(t, m.Touch())
		if v := must[float32](t)(matrix.Sum(m).Value(t.Context())); v != 5+399+8*200 {
			t.Errorf("the sum is %v", v)
		}
		check(t, m.SetSlice(make([]float32, 100*100)))
		if v := must[float32](t)(matrix.Sum(m).Value(t.Context())); v != 0 {
			t.Errorf("the sum is %v", v)
		}
		if n := small.Stats().LiveBytes; n > 5*4<<10 {
			t.Errorf("%d bytes are live", n)
		}
		check(t, errors.Join(top.Close(), low.Close(), m.Close()))
	})
}

// TestBlocksWithoutElements multiplies matrices without elements that begin behind the last byte of memory used in parts.
func TestBlocksWithoutElements(t *testing.T) {
	onSmall(t, func(t *testing.T, dev, _ *gpu.Device) {
		mem := make([]float32, 3000)
		empty := must[*dense](t)(matrix.Wrap(dev, 0, 9, mem, matrix.Options{ColMajor: true, Stride: 1, Offset: len(mem)}))
		view := empty.Slice(0, 0, 1, 9)
		turned := view.T()
		c := must[*dense](t)(matrix.FromSlice(dev, 8, 8, make([]float32, 64)))
		check(t, c.Assign(matrix.Mul(turned, view).AddScalar(1)))
		if sum := must[float32](t)(matrix.Sum(c).Value(background)); sum != 64 {
			t.Errorf("the sum is %v, want 64", sum)
		}
		check(t, errors.Join(turned.Close(), view.Close(), empty.Close(), c.Close()))
	})
}

// TestWindowsOfSparse scatters a slice of a wrapped matrix whose values and indices are in windows that begin elsewhere, since
// more of the values was written before.
func TestWindowsOfSparse(t *testing.T) {
	onSmall(t, func(t *testing.T, small, _ *gpu.Device) {
		const n = 2000
		values, indices, pointers := make([]float32, n), make([]int32, n), make([]int32, n+1)
		for i := range values {
			values[i], indices[i], pointers[i+1] = float32(i), int32(i%2), int32(i+1)
		}
		s := must[*sparse](t)(matrix.WrapSparse(small, matrix.CSC, 2, n, values, indices, pointers))
		all := s.Values()
		part := all.ColumnSlice(700, 800)
		check(t, part.Assign(matrix.AddScalar(part, 1)))
		columns := s.ColumnSlice(1400, 3)
		d := must[*dense](t)(columns.ToDense())
		same(t, "columns", must[[]float32](t)(d.Read(t.Context())), []float32{1401, 0, 1403, 0, 1402, 0})
		check(t, errors.Join(part.Close(), all.Close(), columns.Close(), d.Close(), s.Close()))
	})
}

// TestSmallestWindows computes single elements where windows are of the least size there is.
func TestSmallestWindows(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		small := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(256)))
		mem := make([]float32, 200)
		m := must[*dense](t)(matrix.Wrap(small, 100, 2, mem))
		row := m.Row(31)
		check(t, row.Assign(matrix.SumCols(matrix.Fill[float32](5, 2, 3))))
		check(t, m.Set(99, 1, 7))
		check(t, m.Sync(t.Context()))
		same(t, "elements", []float32{mem[61], mem[62], mem[63], mem[64], mem[199]}, []float32{0, 15, 15, 0, 7})
		check(t, errors.Join(row.Close(), m.Close(), small.Close()))
	})
}

// TestSortsInParts sorts what fits into a buffer while its keys do not, of operands that are computed and have no parts of their own.
func TestSortsInParts(t *testing.T) {
	onSmall(t, func(t *testing.T, small, dev *gpu.Device) {
		rng := newRand(31)
		const rows, cols = 18, 48
		inner := map[string]func(a *dense) *expr{
			"a":                  func(a *dense) *expr { return matrix.Scale(1, a) },
			"columns sorted":     func(a *dense) *expr { return matrix.SortCols(a) },
			"rows sorted":        func(a *dense) *expr { return matrix.SortRows(a) },
			"sums down":          func(a *dense) *expr { return matrix.CumSumCols(a) },
			"sums along":         func(a *dense) *expr { return matrix.CumSumRows(a) },
			"largest of columns": func(a *dense) *expr { return matrix.HardmaxCols(a) },
			"largest of all":     func(a *dense) *expr { return matrix.HardmaxAll(a) },
			"permuted":           func(a *dense) *expr { return matrix.TakeRows(a, matrix.Permutation[int32](rows, 1, 0).On(a.Device())) },
			"reshaped":           func(a *dense) *expr { return matrix.Reshape(matrix.SortCols(a), cols, rows).T() },
			"product":            func(a *dense) *expr { return matrix.Mul(matrix.Mul(a, matrix.Transpose(a)), a) },
			"beside": func(a *dense) *expr {
				return matrix.HStack(matrix.TopKRows(a, 24), matrix.CumSumCols(matrix.Slice(a, 0, rows, 24, cols)))
			},
		}
		outer := map[string]func(a *expr) *expr{
			"sort rows":      func(a *expr) *expr { return matrix.SortRows(a) },
			"sort columns":   func(a *expr) *expr { return matrix.SortCols(a) },
			"first of rows":  func(a *expr) *expr { return matrix.TopKRows(a, 5) },
			"first of cols":  func(a *expr) *expr { return matrix.TopKCols(a, 5) },
			"order of rows":  func(a *expr) *expr { return matrix.Convert[float32](matrix.ArgSortRows(a)) },
			"order of cols":  func(a *expr) *expr { return matrix.Convert[float32](matrix.ArgSortCols(a)) },
			"sorted and sum": func(a *expr) *expr { return matrix.Add(matrix.SortRows(a), matrix.SumRows(a)) },
		}
		a := newPair(t, small, dev, rng, rows, cols)
		for in, f := range inner {
			for out, g := range outer {
				want := must[[]float32](t)(g(f(a.whole)).Read(t.Context()))
				same(t, name(out, " of ", in), must[[]float32](t)(g(f(a.small)).Read(t.Context())), want)
			}
		}
		a.close(t)
		s := newPair(t, small, dev, rng, 30, 30)
		check(t, errors.Join(s.small.Assign(matrix.SortRows(matrix.Transpose(s.small))), s.whole.Assign(matrix.SortRows(matrix.Transpose(s.whole)))))
		same(t, "into itself, transposed", must[[]float32](t)(s.small.Read(t.Context())), must[[]float32](t)(s.whole.Read(t.Context())))
		s.close(t)
	})
}
