// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
)

// TestPadded shows what wrapping does to memory that held 7 everywhere, and in which order the demands are checked: nil,
// alignment, capacity.
func TestPadded(t *testing.T) {
	sevens := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = 7
		}
		return x
	}
	onStorages(t, func(t *testing.T, dev *gpu.Device, of storage) {
		for _, c := range []struct {
			name string
			n    int
			opts matrix.Options
			want []float32
		}{
			{
				"aligned and padded", 16,
				matrix.Options{Aligned: true, Padded: true, Stride: 8},
				[]float32{7, 7, 7, 0, 0, 0, 0, 0, 7, 7, 7, 0, 0, 0, 0, 0},
			},
			{
				"by columns", 12,
				matrix.Options{ColMajor: true, Padded: true, Stride: 4},
				[]float32{7, 7, 0, 0, 7, 7, 0, 0, 7, 7, 0, 0},
			},
			{
				"padded at an odd place", 11,
				matrix.Options{Padded: true, Stride: 5, Offset: 1},
				[]float32{7, 7, 7, 7, 0, 0, 7, 7, 7, 0, 0},
			},
			{"unpadded", 11, matrix.Options{Stride: 8}, sevens(11)},
		} {
			s := of(t, dev, sevens(c.n)...)
			m := s.wrap(t, 2, 3, c.opts)
			s.holds(t, m, c.want...)
			wants(t, m, 2, 3, true, 7, 7, 7, 7, 7, 7)
			sum, err := matrix.Sum[float32](m).Read(background)
			check(t, err)
			same(t, "sum", sum, []float32{42})
			check(t, m.Assign(matrix.Exp(m).AddScalar(1)))
			check(t, m.Fill(7))
			s.holds(t, m, c.want...)
			check(t, m.Close())
		}
		s := of(t, dev, sevens(64)...)
		for name, c := range map[string]struct {
			opts matrix.Options
			want error
		}{
			"alignment before capacity": {matrix.Options{Aligned: true, Padded: true, Stride: 3}, matrix.ErrAlignment},
			"capacity":                  {matrix.Options{Padded: true, Stride: 3}, matrix.ErrCapacity},
			"no stride, aligned":        {matrix.Options{Aligned: true, Padded: true}, matrix.ErrAlignment},
			"no stride given":           {matrix.Options{Padded: true}, matrix.ErrCapacity},
			"offset":                    {matrix.Options{Aligned: true, Stride: 4, Offset: 2}, matrix.ErrAlignment},
			"rows that overlap":         {matrix.Options{Stride: 2}, buffer.ErrStride},
			"memory for whole rows":     {matrix.Options{Padded: true, Stride: 8, Offset: 49}, buffer.ErrShort},
		} {
			_, err := matrix.FromBuffer[float32](dev, 2, 3, s.source(), 1, s.options(c.opts))
			isErrorNamed(t, name, err, c.want)
			_, err = matrix.Wrap[float32](dev, 2, 3, nil, s.options(c.opts))
			isErrorNamed(t, name, err, buffer.ErrNil)
		}
		s.freed(t, 0)
		m := s.wrap(t, 8, 8)
		s.holds(t, m, sevens(64)...)
		own := must[*dense](t)(matrix.New[float32](dev, 3, 5, matrix.Options{Padded: true, Aligned: true}))
		if own.Stride() != 8 {
			t.Errorf("stride %d", own.Stride())
		}
	})
}

func isErrorNamed(t *testing.T, name string, err, want error) {
	t.Helper()
	t.Run(name, func(t *testing.T) { isError(t, err, want) })
}

// TestPaddedAssign copies between all pairs of layouts, sizes from 0 to 16, and looks at every cell of the memory, the
// caller's and the device's.
func TestPaddedAssign(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		rng := newRand(50)
		t.Run("float32", func(t *testing.T) { assignAll(t, dev, func() float32 { return rng.Float32()*4 - 2 }) })
		t.Run("int32", func(t *testing.T) { assignAll(t, dev, func() int32 { return int32(rng.Uint32()) }) })
	})
}

// some is set where not every case of the longest tests is tried.
var some = few || !devtest.Long()

// sparing reports whether a test pairs each of its cases with some of the others only: devices compile kernels for every pair, which
// takes longer than to run them. The oracle compiles nothing and tries all pairs.
func sparing(dev *gpu.Device) bool { return some && dev.Info().Driver != "cpu" }

func assignAll[T float32 | int32](t *testing.T, dev *gpu.Device, draw func() T) {
	for rows := range 17 {
		for cols := range 17 {
			for pair := range 64 {
				if some && (5*rows+7*cols+pair)%293 != 0 {
					continue
				}
				values := make([]T, rows*cols)
				for i := range values {
					values[i] = draw()
				}
				src, from := laidOut(t, dev, rows, cols, pair/8, values)
				dst, mem := laidOut(t, dev, rows, cols, pair%8, make([]T, rows*cols))
				before := slices.Clone(from)
				check(t, dst.Assign(src))
				outside(t, dst, there(t, dst), pair&1 != 0)
				check(t, errors.Join(dst.Sync(background), src.Sync(background)))
				for i := range rows {
					for j := range cols {
						if got := mem[cell(dst, i, j)]; got != values[i*cols+j] {
							t.Fatalf("%dx%d, pair %d: element %d, %d is %v, want %v", rows, cols, pair, i, j, got, values[i*cols+j])
						}
					}
				}
				outside(t, dst, mem, pair&1 != 0)
				same(t, "source", from, before)
				check(t, errors.Join(src.Close(), dst.Close()))
			}
		}
	}
}

// laidOut wraps memory with guard cells. Bit 0 of kind asks for pads, 1 for alignment, 2 for columns.
func laidOut[T float32 | int32](t *testing.T, dev *gpu.Device, rows, cols, kind int, values []T) (*matrix.Dense[T], []T) {
	t.Helper()
	minor, major := cols, rows
	var o matrix.Options
	if kind&4 != 0 {
		minor, major = rows, cols
		o.ColMajor = true
	}
	stride, offset := minor+1, 3
	if kind&1 != 0 {
		stride = (minor+3)/4*4 + 1
		o.Padded = true
	}
	if kind&2 != 0 {
		stride, offset = (stride+3)/4*4, 4
		o.Aligned = true
	}
	mem := make([]T, offset+major*stride+8)
	for i := range mem {
		mem[i] = guard
	}
	o.Stride, o.Offset = stride, offset
	m := must[*matrix.Dense[T]](t)(matrix.Wrap(dev, rows, cols, mem, o))
	for i := range rows {
		for j := range cols {
			mem[cell(m, i, j)] = values[i*cols+j]
		}
	}
	return m, mem
}

// outside fails unless pads are zero, if there are any, and everything else beside the matrix is a guard cell.
func outside[T float32 | int32](t *testing.T, m *matrix.Dense[T], mem []T, padded bool) {
	t.Helper()
	rows, cols := m.Dims()
	major, minor := rows, cols
	if m.ColMajor() {
		major, minor = cols, rows
	}
	for at, v := range mem {
		line, along := (at-m.Offset())/m.Stride(), (at-m.Offset())%m.Stride()
		switch {
		case at >= m.Offset() && line < major && along < minor:
		case at >= m.Offset() && line < major && padded:
			if v != 0 {
				t.Fatalf("pad %d of line %d is %v", along-minor, line, v)
			}
		case v != guard:
			t.Fatalf("cell %d outside the matrix is %v", at, v)
		}
	}
}

// TestMillionViews wraps, slices and closes a million times. Nothing is left.
func TestMillionViews(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		cycles := 1000000
		if some {
			cycles = 20000
		}
		mem := make([]float32, 64)
		released := 0
		before, routines := dev.Stats(), runtime.NumGoroutine()
		for range cycles {
			m, err := matrix.Wrap(dev, 8, 8, mem, matrix.Options{Release: func() { released++ }})
			check(t, err)
			a := m.Alias()
			v := a.Slice(1, 3, 1, 3)
			check(t, m.Close())
			check(t, a.Close())
			check(t, v.Close())
		}
		after := dev.Stats()
		if after.LiveBytes != before.LiveBytes || after.Buffers != before.Buffers || runtime.NumGoroutine() > routines {
			t.Errorf("%+v, before %+v", after, before)
		}
		if released != cycles {
			t.Errorf("released %d times", released)
		}
	})
}

// TestWrapIsOneObject: wrapping costs one allocation, whatever the size of what is wrapped.
func TestWrapIsOneObject(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		mem := make([]float32, 1<<16)
		n := testing.AllocsPerRun(1000, func() {
			m, err := matrix.Wrap(dev, 256, 256, mem)
			check(t, err)
			check(t, m.Close())
		})
		if n > 1 {
			t.Errorf("%v allocations", n)
		}
	})
}
