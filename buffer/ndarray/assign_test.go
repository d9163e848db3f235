// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"math"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestAssignAllScalar is the row of CVMAssignAllScalar: the types of CVM_TYPE_SWITCH and float16.
func TestAssignAllScalar(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		fills[int8](t, dev, -3.7, -3)
		fills[int16](t, dev, -300, -300)
		fills[int32](t, dev, math.MinInt32, math.MinInt32)
		fills[int64](t, dev, math.MinInt64, math.MinInt64)
		fills[uint8](t, dev, 255.9, 255)
		fills[uint16](t, dev, 65535, 65535)
		fills[uint32](t, dev, math.MaxUint32, math.MaxUint32)
		fills[uint64](t, dev, 1<<63, 1<<63)
		fills[uint32](t, dev, -0.5, 0)
		fills[float32](t, dev, 0.1, 0.1)
		fills[float32](t, dev, 1e300, float32(math.Inf(1)))
		fills[float64](t, dev, 0.1, 0.1)
		fills[int32](t, dev, 0, 0)
		for _, c := range []struct {
			t     dtype.Type
			value float64
			want  error
		}{
			{dtype.Int8, 128, ndarray.ErrValue},
			{dtype.Int8, -129, ndarray.ErrValue},
			{dtype.Uint8, -1, ndarray.ErrValue},
			{dtype.Uint8, math.NaN(), ndarray.ErrValue},
			{dtype.Int64, 1 << 63, ndarray.ErrValue},
			{dtype.Uint64, 1 << 64, ndarray.ErrValue},
			{dtype.Int32, math.Inf(1), ndarray.ErrValue},
			{dtype.Bool1, 1, ndarray.ErrType},
			{dtype.Bool8, 1, ndarray.ErrType},
			{dtype.BFloat16, 1, ndarray.ErrType},
			{dtype.Complex64, 1, ndarray.ErrType},
			{dtype.Type{Code: dtype.Float32.Code, Bits: 8, Lanes: 1}, 1, ndarray.ErrType},
			{dtype.Type{Code: dtype.Int8.Code, Bits: 128, Lanes: 1}, 1, ndarray.ErrType},
			{dtype.Type{Code: 99, Bits: 32, Lanes: 1}, 1, ndarray.ErrType},
		} {
			a, err := ndarray.Alloc(dev, c.t, 2)
			check(t, err)
			is(t, c.t.String(), a.Fill(t.Context(), c.value), c.want)
			b, err := a.Bytes(t.Context())
			check(t, err)
			if slices.Max(b) != 0 {
				t.Errorf("%v: a failed call wrote %v", c.t, b)
			}
			check(t, a.Close())
		}
		lanes, err := ndarray.Alloc(dev, dtype.Type{Code: dtype.Int8.Code, Bits: 16, Lanes: 3}, 2)
		check(t, err)
		check(t, lanes.Fill(t.Context(), 258))
		b, err := lanes.Bytes(t.Context())
		check(t, err)
		if !slices.Equal(b, slices.Repeat([]byte{2, 1}, 6)) {
			t.Errorf("lanes: %v", b)
		}
		closed(t, dev, lanes)
	})
}

func fills[T ndarray.Elem](t *testing.T, dev *gpu.Device, value float64, want T) {
	t.Helper()
	for name, a := range from(t, dev, make([]T, 15), 3, 5) {
		check(t, a.Fill(t.Context(), value))
		holds(t, name, a, slices.Repeat([]T{want}, 15)...)
		check(t, a.Close())
	}
}

// TestFillHalf compares the rounding to float16 with the values of all float16 numbers.
func TestFillHalf(t *testing.T) {
	dev := open(t, "cpu")
	a, err := ndarray.Alloc(dev, dtype.Float16)
	check(t, err)
	value := func(bits uint16) float64 {
		f, e := float64(bits&0x3ff), int(bits>>10&31)
		if e == 0 {
			return math.Ldexp(f, -24)
		}
		return math.Ldexp(f+1024, e-25)
	}
	rounds := func(v float64, want uint16) {
		t.Helper()
		check(t, a.Fill(t.Context(), v))
		holds(t, "half", a, want)
		check(t, a.Fill(t.Context(), math.Copysign(v, -1)))
		holds(t, "negative half", a, want|0x8000)
	}
	for bits := uint16(0); bits < 0x7bff; bits += 1 + bits%7*13 {
		v, next := value(bits), value(bits+1)
		rounds(v, bits)
		rounds((v+next)/2, bits+bits&1)
		rounds(math.Nextafter((v+next)/2, v), bits)
		rounds(math.Nextafter((v+next)/2, next), bits+1)
	}
	for v, want := range map[float64]uint16{
		65504: 0x7bff, 65519.99: 0x7bff, 65520: 0x7c00, 1e300: 0x7c00, math.Inf(1): 0x7c00, math.MaxFloat64: 0x7c00,
		0: 0, 5e-324: 0, 0x1p-25: 0, 0x1.8p-25: 1,
	} {
		rounds(v, want)
	}
	check(t, a.Fill(t.Context(), math.NaN()))
	holds(t, "NaN", a, uint16(0x7e00))
}

// TestAssignAllND is the row of CVMAssignAllND: code and bits must be equal.
func TestAssignAllND(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, must := t.Context(), must[*ndarray.Array](t)
		src := must(ndarray.FromSlice(dev, count(6), 2, 3))
		for name, a := range from(t, dev, make([]int32, 6), 2, 3) {
			check(t, a.Assign(ctx, src))
			holds(t, name, a, count(6)...)
			check(t, a.Close())
		}
		a := must(ndarray.Alloc(dev, i32, 3, 2))
		is(t, "another shape", a.Assign(ctx, src), buffer.ErrShape)
		other := must(ndarray.Alloc(dev, dtype.Uint32, 2, 3))
		is(t, "another code", other.Assign(ctx, src), ndarray.ErrType)
		wide := must(ndarray.Alloc(dev, dtype.Int64, 2, 3))
		is(t, "other bits", wide.Assign(ctx, src), ndarray.ErrType)
		turned := must(src.Transpose())
		check(t, a.Assign(ctx, turned))
		holds(t, "of a transpose", a, int32(0), 3, 1, 4, 2, 5)
		square := must(ndarray.FromSlice(dev, count(4), 2, 2))
		across := must(square.Transpose())
		check(t, square.Assign(ctx, across))
		holds(t, "of its own transpose", square, int32(0), 2, 1, 3)
		closed(t, dev, a, src, other, wide, turned, square, across)
	})
}

// TestAssignSlice are the rows of CVMAssignSliceScalar and CVMAssignSliceND.
func TestAssignSlice(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, must := t.Context(), must[*ndarray.Array](t)
		part := ndarray.Region{Starts: []int{0, 1}, Ends: []int{3, 5}, Steps: []int{2, 2}, Sizes: []int{2, 2}}
		values := must(ndarray.FromSlice(dev, []int16{1, 2, 3, 4}, 2, 2))
		for name, a := range from(t, dev, make([]int16, 15), 3, 5) {
			check(t, fillPart(t, a, part, 9))
			holds(t, name+", scalar", a, 0, 9, 0, 9, 0, 0, 0, 0, 0, 0, 0, 9, 0, 9, int16(0))
			check(t, assignPart(t, a, part, values))
			holds(t, name+", values", a, 0, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 4, int16(0))
			check(t, a.Close())
		}
		a := must(ndarray.Alloc(dev, dtype.Int16, 3, 5))
		row := must(ndarray.FromSlice(dev, []int16{1, 2, 3, 4, 5}))
		column := must(ndarray.FromSlice(dev, []int16{1, 2, 3}, 3, 1))
		scalar := must(row.Index(4))
		all := ndarray.Region{Starts: []int{0, 0}, Ends: []int{3, 5}}
		check(t, assignPart(t, a, all, row))
		holds(t, "a row, stretched", a, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, int16(5))
		check(t, assignPart(t, a, all, column))
		holds(t, "a column, stretched", a, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, int16(3))
		check(t, assignPart(t, a, ndarray.Region{Starts: []int{1, 4}, Ends: []int{2, -1}, Steps: []int{1, -1}}, row))
		holds(t, "a row backwards, a dimension of 1 left out", a, 1, 1, 1, 1, 1, 5, 4, 3, 2, 1, 3, 3, 3, 3, int16(3))
		check(t, assignPart(t, a, ndarray.Region{Starts: []int{0, 2}, Ends: []int{3, 3}}, must(column.Reshape(3))))
		holds(t, "a column from a row", a, 1, 1, 1, 1, 1, 5, 4, 2, 2, 1, 3, 3, 3, 3, int16(3))
		check(t, assignPart(t, a, ndarray.Region{Starts: []int{2, 0}, Ends: []int{3, 2}}, scalar))
		holds(t, "one element, stretched", a, 1, 1, 1, 1, 1, 5, 4, 2, 2, 1, 5, 5, 3, 3, int16(3))
		check(t, assignPart(t, a, ndarray.Region{Starts: []int{2, 3}, Ends: []int{2, 3}}, scalar)) // nothing
		want, err := a.Bytes(ctx)
		check(t, err)
		float := must(ndarray.Alloc(dev, dtype.Float16, 3, 5))
		for name, c := range map[string]struct{ err, want error }{
			"sizes that disagree": {fillPart(t, a, ndarray.Region{Starts: []int{0, 0}, Ends: []int{3, 5}, Sizes: []int{3, 4}}, 1), buffer.ErrShape},
			"too few sizes":       {fillPart(t, a, ndarray.Region{Starts: []int{0, 0}, Ends: []int{3, 5}, Sizes: []int{3}}, 1), buffer.ErrShape},
			"no bounds":           {fillPart(t, a, ndarray.Region{}, 1), buffer.ErrShape},
			"beyond":              {fillPart(t, a, ndarray.Region{Starts: []int{0, 0}, Ends: []int{4, 5}}, 1), buffer.ErrIndex},
			"a value":             {fillPart(t, a, all, 1e9), ndarray.ErrValue},
			"shapes that differ":  {assignPart(t, a, part, row), buffer.ErrShape},
			"fewer dimensions":    {row.Assign(ctx, a), buffer.ErrShape},
			"beyond, assigned":    {assignPart(t, a, ndarray.Region{Starts: []int{0, 0}, Ends: []int{3, 6}}, row), buffer.ErrIndex},
			"another type":        {assignPart(t, a, all, float), ndarray.ErrType},
		} {
			is(t, name, c.err, c.want)
		}
		got, err := a.Bytes(ctx)
		check(t, err)
		if !slices.Equal(got, want) {
			t.Error("failed calls wrote")
		}
	})
}

// TestFillLarge fills more than a step, at an odd place.
func TestFillLarge(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		const n = 9<<20 + 5
		a, err := ndarray.Alloc(dev, dtype.Uint8, n)
		check(t, err)
		part, err := a.Slice(ndarray.Region{Starts: []int{3}, Ends: []int{n - 1}})
		check(t, err)
		check(t, part.Fill(t.Context(), 7))
		b, err := a.Bytes(t.Context())
		check(t, err)
		if b[2] != 0 || b[n-1] != 0 || slices.Min(b[3:n-1]) != 7 || slices.Max(b) != 7 {
			t.Error("not what was filled")
		}
		before := dev.Stats()
		check(t, a.Fill(t.Context(), 0))
		words, err := a.Slice(ndarray.Region{Starts: []int{8}, Ends: []int{n}})
		check(t, err)
		check(t, part.Fill(t.Context(), 1))
		moved := dev.Stats().BytesUp
		check(t, words.Fill(t.Context(), 0))
		if after := dev.Stats(); after.BytesUp != moved || moved-before.BytesUp > n+8 {
			t.Errorf("zeros moved %d bytes", after.BytesUp-moved)
		}
		holds(t, "the first bytes", must[*ndarray.Array](t)(a.View(dtype.Uint8, 0, 9)), uint8(0), 0, 0, 1, 1, 1, 1, 1, 0)
		if b, err = words.Bytes(t.Context()); err != nil || slices.Max(b) != 0 {
			t.Errorf("not zeros: %v", err)
		}
	})
}
