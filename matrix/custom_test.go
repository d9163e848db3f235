// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestCustomAssign has Blaze's rows of assignments to a custom matrix: elements are copied, memory and size stay.
func TestCustomAssign(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		s := of(t, dev, 1, 2, 3, 4, 9, 9)
		a := s.wrap(t, 2, 2)
		b := owned(t, dev, 2, 2, 5, 6, 7, 8)
		for _, c := range []struct {
			name string
			x    matrix.Operand[float32]
			want []float32
		}{
			{"another", b, []float32{5, 6, 7, 8}},
			{"of the other order", b.T(), []float32{5, 7, 6, 8}},
			{"+=", matrix.Add(a, b), []float32{10, 13, 13, 16}},
			{"-=", matrix.Sub(a, b), []float32{5, 7, 6, 8}},
			{"%=", matrix.MulElem(a, b), []float32{25, 42, 42, 64}},
			{"*=", matrix.Mul(a, owned(t, dev, 2, 2, 0, 1, 1, 0)), []float32{42, 25, 64, 42}},
			{"itself", a, []float32{42, 25, 64, 42}},
			{"a number", matrix.Fill[float32](2, 2, 3), []float32{3, 3, 3, 3}},
		} {
			check(t, a.Assign(c.x))
			s.holds(t, a, append(c.want, 9, 9)...)
		}
		for name, x := range map[string]matrix.Operand[float32]{
			"too many rows": owned(t, dev, 3, 2, 0, 0, 0, 0, 0, 0), "a product of another size": matrix.Mul(b, owned(t, dev, 2, 1, 0, 0)),
		} {
			isErrorNamed(t, name, a.Assign(x), buffer.ErrShape)
		}
		isError(t, a.Assign(matrix.Mul(a, owned(t, dev, 3, 2, 0, 0, 0, 0, 0, 0))), buffer.ErrShape)
		isError(t, a.SetSlice([]float32{1, 2, 3}), buffer.ErrShort)
		isError(t, a.SetSlice([]float32{1, 2, 3, 4, 5}), buffer.ErrShape)
		s.holds(t, a, 3, 3, 3, 3, 9, 9)
		check(t, a.SetSlice([]float32{1, 2, 3, 4}))
		check(t, a.Row(1).Zero())
		s.holds(t, a, 1, 2, 0, 0, 9, 9)
		if a.Stride() != 2 || a.Capacity() != 4 || a.Buffer().Mode().String() != "external" {
			t.Errorf("stride %d, capacity %d, %v", a.Stride(), a.Capacity(), a.Buffer().Mode())
		}
		_, err := a.At(background, 2, 0)
		isError(t, err, buffer.ErrIndex)
		_, err = a.At(background, 0, -1)
		isError(t, err, buffer.ErrIndex)
	})
}

// TestCustomAliasing has Blaze's table of a matrix that is its own operand, with the rows that Blaze computes wrongly
// because it compares objects and not memory: B is an alias of A.
func TestCustomAliasing(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		for _, c := range []struct {
			name string
			x    func(a, b *dense) matrix.Operand[float32]
			want []float32
		}{
			{"A = trans(A)", func(a, _ *dense) matrix.Operand[float32] { return a.T() }, []float32{1, 4, 7, 2, 5, 8, 3, 6, 9}},
			{"A = A*A", func(a, _ *dense) matrix.Operand[float32] { return matrix.Mul(a, a) }, []float32{30, 36, 42, 66, 81, 96, 102, 126, 150}},
			{"A += A*A", func(a, _ *dense) matrix.Operand[float32] { return matrix.Add(a, matrix.Mul(a, a)) }, []float32{31, 38, 45, 70, 86, 102, 109, 134, 159}},
			{"A = A + trans(A)", func(a, _ *dense) matrix.Operand[float32] { return matrix.Add(a, a.T()) }, []float32{2, 6, 10, 6, 10, 14, 10, 14, 18}},
			{"A %= trans(A)", func(a, _ *dense) matrix.Operand[float32] { return matrix.MulElem(a, a.T()) }, []float32{1, 8, 21, 8, 25, 48, 21, 48, 81}},
			{"A = A", func(a, _ *dense) matrix.Operand[float32] { return a }, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}},
			{"A = trans(B)", func(_, b *dense) matrix.Operand[float32] { return b.T() }, []float32{1, 4, 7, 2, 5, 8, 3, 6, 9}},
			{"A = B*B", func(_, b *dense) matrix.Operand[float32] { return matrix.Mul(b, b) }, []float32{30, 36, 42, 66, 81, 96, 102, 126, 150}},
		} {
			t.Run(c.name, func(t *testing.T) {
				s := of(t, dev, 1, 2, 3, 4, 5, 6, 7, 8, 9)
				a := s.wrap(t, 3, 3)
				check(t, a.Assign(c.x(a, a.Alias())))
				s.holds(t, a, c.want...)
			})
		}
		a := of(t, dev, 1, 2, 3, 4, 5, 6).wrap(t, 2, 3)
		isError(t, a.Assign(a.T()), buffer.ErrShape)
		wants(t, a, 2, 3, true, 1, 2, 3, 4, 5, 6)
		v := a.ColumnSlice(1, 2)
		check(t, v.Assign(v.T())) // a square part in place
		wants(t, a, 2, 3, true, 1, 2, 5, 4, 3, 6)
		check(t, v.Assign(a.ColumnSlice(0, 2))) // parts that overlap
		wants(t, a, 2, 3, true, 1, 1, 2, 4, 4, 3)
		part := a.Slice(0, 1, 0, 2)
		isError(t, part.Assign(part.T()), buffer.ErrShape)
		wants(t, a, 2, 3, true, 1, 1, 2, 4, 4, 3)
	})
}

// TestCustomConstruct has Blaze's rows of constructors: nothing, no extent, and what is refused before the memory is touched or
// taken over. TestPadded has the others.
func TestCustomConstruct(t *testing.T) {
	zero := &dense{}
	if r, c := zero.Dims(); r+c+zero.Stride()+zero.Offset()+zero.Capacity() != 0 || zero.Buffer() != nil || zero.External() || !zero.IsEmpty() {
		t.Error("the zero value is something")
	}
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		s := of(t, dev, make([]float32, 12)...)
		for _, d := range [][2]int{{0, 0}, {0, 3}, {2, 0}} {
			for k, opts := range []matrix.Options{
				{},
				{ColMajor: true},
				{Aligned: true, Padded: true, Stride: 4},
				{Aligned: true, Padded: true, Stride: 4, ColMajor: true},
			} {
				m := s.wrap(t, d[0], d[1], opts)
				wants(t, m, d[0], d[1], true)
				if !m.IsEmpty() {
					t.Errorf("%v, options %d: not empty", d, k)
				}
				check(t, m.Fill(1))
				check(t, m.Close())
			}
		}
		none := s.wrap(t, 2, 0, matrix.Options{Aligned: true, Padded: true, Stride: 0})
		wants(t, none, 2, 0, true)
		check(t, none.Close())
		released := s.released
		many := of(t, dev, make([]float32, 64)...)
		for name, c := range map[string]struct {
			cols int
			opts matrix.Options
			want error
		}{
			"20 columns, stride 16":           {20, matrix.Options{Aligned: true, Padded: true, Stride: 16}, matrix.ErrCapacity},
			"20 columns, stride 16, unpadded": {20, matrix.Options{Stride: 16}, buffer.ErrStride},
			"3 columns, aligned, no stride":   {3, matrix.Options{Aligned: true}, matrix.ErrAlignment},
			"the last row beyond the end":     {20, matrix.Options{Stride: 45}, buffer.ErrShort},
			"the last pad beyond the end":     {20, matrix.Options{Padded: true, Stride: 33}, buffer.ErrShort},
		} {
			_, err := matrix.FromBuffer[float32](dev, 2, c.cols, many.source(), buffer.DontOwnBuffer, many.options(c.opts))
			isErrorNamed(t, name, err, c.want)
		}
		fits := many.wrap(t, 2, 20, matrix.Options{Stride: 44}) // the last row needs no gap
		check(t, fits.Close())
		many.freed(t, 1)
		s.freed(t, released)
	})
}

// TestCustomOthers assigns what is no matrix of the same kind: of another element type, of the other order, a sparse one. Memory
// and ownership stay.
func TestCustomOthers(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		s := of(t, dev, 0, 0, 0, 0, 0, 0, 9)
		a := s.wrap(t, 2, 3)
		before := a.Buffer()
		ints := must[*matrix.Dense[int32]](t)(matrix.FromSlice(dev, 2, 3, []int32{-1, 2, 3, 4, 5, 6}, matrix.Options{ColMajor: true}))
		check(t, a.Assign(matrix.Convert[float32](ints)))
		wants(t, a, 2, 3, true, -1, 3, 5, 2, 4, 6)
		sp := must[*sparse](t)(matrix.NewSparse(dev, matrix.CSC, 2, 3, []float32{5, 6}, []int32{1, 0}, []int32{0, 1, 1, 2}))
		check(t, a.Assign(sp))
		s.holds(t, a, 0, 0, 6, 5, 0, 0, 9)
		other := of(t, dev, 1, 2, 3, 4, 5, 6)
		b := other.wrap(t, 2, 3)
		check(t, a.Assign(b))
		check(t, b.Close())
		s.holds(t, a, 1, 2, 3, 4, 5, 6, 9)
		if a.Buffer() != before || s.released != 0 {
			t.Error("the memory is another")
		}
		for _, part := range []*dense{a.Row(0), a.Col(2)} { // reset(i)
			check(t, errors.Join(part.Zero(), part.Close()))
		}
		s.holds(t, a, 0, 0, 0, 4, 5, 0, 9)
		al := a.Alias()
		check(t, a.Reset()) // gives up its share and touches nothing
		if s.released != 0 || !a.IsEmpty() {
			t.Error("released while shared")
		}
		wants(t, a, 0, 0, false)
		s.holds(t, al, 0, 0, 0, 4, 5, 0, 9)
		check(t, al.Reset())
		s.freed(t, 1)
		check(t, errors.Join(a.Close(), al.Close(), sp.Close()))
	})
}

// TestCustomQueries has Blaze's rows of queries. Pads and gaps count for nothing but the capacity.
func TestCustomQueries(t *testing.T) {
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		for _, c := range []struct {
			opts             matrix.Options
			stride, capacity int
			pads             []int
		}{
			{matrix.Options{}, 3, 6, nil},
			{matrix.Options{Stride: 5}, 5, 8, nil}, // without the last gap
			{matrix.Options{Stride: 8, Padded: true, Aligned: true}, 8, 16, []int{3, 4, 5, 6, 7, 11, 12, 13, 14, 15}},
			{matrix.Options{ColMajor: true, Stride: 4, Padded: true}, 4, 12, []int{2, 3, 6, 7, 10, 11}},
		} {
			x := make([]float32, 20)
			for i := range x {
				x[i] = 7
			}
			s := of(t, dev, x...)
			m := s.wrap(t, 2, 3, c.opts)
			check(t, m.SetSlice([]float32{1, 2, 0, 0, -3, 0}))
			if m.Stride() != c.stride || m.Capacity() != c.capacity || m.IsEmpty() || m.Err() != nil {
				t.Errorf("stride %d, capacity %d, want %d and %d", m.Stride(), m.Capacity(), c.stride, c.capacity)
			}
			if v := m.Row(1); v.Capacity() != 3 || v.Offset() != cell(m, 1, 0) {
				t.Errorf("row 1: capacity %d, offset %d", v.Capacity(), v.Offset())
			}
			set := matrix.NotEqual(m, matrix.Fill[float32](1, 1, 0))
			same(t, "of rows", must[[]float32](t)(set.SumRows().Read(background)), []float32{2, 1})
			same(t, "of columns", must[[]float32](t)(set.SumCols().Read(background)), []float32{1, 2, 0})
			if n := must[float32](t)(set.Sum().Value(background)); n != 3 {
				t.Errorf("%v elements are not 0", n)
			}
			for _, at := range [][2]int{{2, 0}, {0, 3}, {-1, 0}, {0, -1}, {math.MaxInt, math.MinInt}} {
				isErrorNamed(t, name(at), second(m.At(background, at[0], at[1])), buffer.ErrIndex)
				isErrorNamed(t, name(at), m.Set(at[0], at[1], 1), buffer.ErrIndex)
			}
			for _, v := range []struct {
				m    *dense
				i, j int // of the -3
			}{{m.Row(1), 0, 1}, {m.Col(1), 1, 0}, {m.Slice(1, 2, 1, 3), 0, 0}, {m.T(), 1, 1}} {
				if x := must[float32](t)(v.m.At(background, v.i, v.j)); x != -3 {
					t.Errorf("%d, %d of a view is %v", v.i, v.j, x)
				}
				r, c := v.m.Dims()
				isError(t, second(v.m.At(background, r, 0)), buffer.ErrIndex)
				isError(t, v.m.Set(0, c, 1), buffer.ErrIndex)
			}
			wants(t, m, 2, 3, true, 1, 2, 0, 0, -3, 0)
			check(t, m.Zero())
			for i := range 2 {
				for j := range 3 {
					x[cell(m, i, j)] = 0
				}
			}
			for _, pad := range c.pads {
				x[pad] = 0
			}
			s.holds(t, m, x...)
		}
	})
}

// TestCustomOfNothing has Blaze's errors of reductions: of nothing they are NumPy's values, and the trace is that of squares.
func TestCustomOfNothing(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a := must[*dense](t)(matrix.New[float32](dev, 0, 3))
		if v := must[float32](t)(matrix.Mean(a).Value(background)); v == v {
			t.Errorf("the mean of nothing is %v", v)
		}
		for name, c := range map[string]struct {
			got  *expr
			want float64
		}{"sum": {matrix.Sum(a), 0}, "product": {matrix.Prod(a), 1}, "max": {matrix.MaxAll(a), math.Inf(-1)}, "min": {matrix.MinAll(a), math.Inf(1)}} {
			if v := must[float32](t)(c.got.Value(background)); float64(v) != c.want {
				t.Errorf("%s of nothing is %v", name, v)
			}
		}
		q := owned(t, dev, 2, 2, 1, 2, 3, 5)
		if v := must[float32](t)(matrix.Sum(q.DiagView()).Value(background)); v != 6 {
			t.Errorf("trace %v", v)
		}
		isError(t, second(matrix.Sum(a.DiagView()).Value(background)), buffer.ErrShape)
	})
}
