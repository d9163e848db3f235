// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestTypes are the rows of VerifyDataType, for Alloc and for View.
func TestTypes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		base, err := ndarray.Alloc(dev, dtype.Uint8, 1024)
		check(t, err)
		for _, c := range []struct {
			row  string
			t    dtype.Type
			ok   bool
			size int // of three elements
		}{
			{"bits 8", dtype.Int8, true, 3},
			{"bits 16", dtype.Uint16, true, 6},
			{"bits 32", dtype.Float32, true, 12},
			{"bits 64", dtype.Complex64, true, 24},
			{"bits 128", dtype.Complex128, true, 48},
			{"float16", dtype.Float16, true, 6},
			{"uint1 is bool, a byte each", dtype.Bool1, true, 3},
			{"bool of DLPack", dtype.Bool8, true, 3},
			{"lanes 4", dtype.Type{Code: dtype.Float32.Code, Bits: 32, Lanes: 4}, true, 48},
			{"code 99", dtype.Type{Code: 99, Bits: 8, Lanes: 1}, true, 3},
			{"lanes 0", dtype.Type{Code: dtype.Int8.Code, Bits: 8}, false, 0},
			{"int1", dtype.Type{Code: dtype.Int8.Code, Bits: 1, Lanes: 1}, false, 0},
			{"float1", dtype.Type{Code: dtype.Float32.Code, Bits: 1, Lanes: 1}, false, 0},
			{"int4", dtype.Type{Code: dtype.Int8.Code, Bits: 4, Lanes: 1}, false, 0},
			{"float4", dtype.Type{Code: 17, Bits: 4, Lanes: 1}, false, 0},
			{"float6", dtype.Type{Code: 15, Bits: 6, Lanes: 1}, false, 0},
			{"bits 12", dtype.Type{Code: dtype.Int8.Code, Bits: 12, Lanes: 1}, false, 0},
			{"bits 24", dtype.Type{Code: dtype.Int8.Code, Bits: 24, Lanes: 1}, false, 0},
			{"float of 24 bits", dtype.Type{Code: dtype.Float32.Code, Bits: 24, Lanes: 1}, false, 0},
			{"bits 255", dtype.Type{Code: dtype.Uint8.Code, Bits: 255, Lanes: 1}, false, 0},
			{"bits 0, which slips through there", dtype.Type{Code: dtype.Int8.Code, Lanes: 1}, false, 0},
		} {
			a, err := ndarray.Alloc(dev, c.t, 3)
			v, verr := base.View(c.t, 0, 3)
			if !c.ok {
				is(t, c.row, err, ndarray.ErrType)
				is(t, c.row+", view", verr, ndarray.ErrType)
				continue
			}
			check(t, err)
			check(t, verr)
			if a.Size() != c.size || v.Size() != c.size || a.DType() != c.t {
				t.Errorf("%s: %d and %d bytes, want %d", c.row, a.Size(), v.Size(), c.size)
			}
			check(t, a.Close())
			check(t, v.Close())
		}
		closed(t, dev, base)
	})
}

// TestGoTypes makes arrays of every type of Go's, and reads those that Go does not have.
func TestGoTypes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		trip(t, dev, dtype.Int8, int8(-128), 127)
		trip(t, dev, dtype.Int16, int16(-1), 2, 3)
		trip(t, dev, dtype.Int32, int32(-1), 2)
		trip(t, dev, dtype.Int64, int64(-1)<<63, 2)
		trip(t, dev, dtype.Uint8, uint8(255), 2, 3)
		trip(t, dev, dtype.Uint16, uint16(1))
		trip(t, dev, dtype.Uint32, uint32(1)<<31)
		trip(t, dev, dtype.Uint64, uint64(1)<<63)
		trip(t, dev, dtype.Float16, dtype.ToHalf(1.5), dtype.ToHalf(-2), dtype.ToHalf(3))
		trip(t, dev, dtype.Float32, float32(1.5), -2)
		trip(t, dev, dtype.Float64, 1.5, -2)
		trip(t, dev, dtype.Bool8, true, false, true)
		trip(t, dev, dtype.Complex64, complex64(1+2i))
		trip(t, dev, dtype.Complex128, 1+2i, 3i)
		raw := []byte{0, 0x3c, 0, 0xc0, 7, 0}
		for _, c := range []struct {
			t    dtype.Type
			read func(*ndarray.Array) error
			want error
		}{
			{dtype.Float16, reads(t, uint16(0x3c00), 0xc000, 7), nil},
			{dtype.Float16, reads(t, dtype.ToHalf(1), dtype.ToHalf(-2), dtype.HalfFromBits(7)), nil},
			{dtype.BFloat16, reads(t, uint16(0x3c00), 0xc000, 7), nil},
			{dtype.BFloat16, reads[dtype.Half](t), ndarray.ErrType},
			{dtype.Uint16, reads[dtype.Half](t), ndarray.ErrType},
			{dtype.Type{Code: 12, Bits: 8, Lanes: 1}, reads(t, raw...), nil},
			{dtype.Bool8, reads(t, false, true, false, true, true, false), nil},
			{dtype.Bool1, reads(t, false, true, false, true, true, false), nil},
			{dtype.Bool8, reads(t, raw...), nil},
			{dtype.Float16, reads[int16](t), ndarray.ErrType},
			{dtype.Uint16, reads[int16](t), ndarray.ErrType},
			{dtype.Int8, reads[uint8](t), ndarray.ErrType},
			{dtype.Type{Code: dtype.Int8.Code, Bits: 8, Lanes: 2}, reads[int8](t), ndarray.ErrType},
			{dtype.Type{Code: 99, Bits: 8, Lanes: 1}, reads[float32](t), ndarray.ErrType},
		} {
			a, err := ndarray.FromBytes(dev, c.t, raw, len(raw)/c.t.Size())
			check(t, err)
			is(t, c.t.String(), c.read(a), c.want)
			check(t, a.Close())
		}
		closed(t, dev)
	})
}

func trip[T ndarray.Elem](t *testing.T, dev *gpu.Device, want dtype.Type, data ...T) {
	t.Helper()
	a, err := ndarray.FromSlice(dev, data)
	check(t, err)
	if a.DType() != want {
		t.Errorf("%v, want %v", a.DType(), want)
	}
	holds(t, want.String(), a, data...)
	is(t, "too few", second(ndarray.FromSlice(dev, data, len(data)+1)), ndarray.ErrLength)
	is(t, "too many", second(ndarray.FromSlice(dev, data, len(data)-1)), ndarray.ErrLength)
	check(t, a.Close())
}

func reads[T ndarray.Elem](t *testing.T, want ...T) func(*ndarray.Array) error {
	return func(a *ndarray.Array) error {
		got, err := ndarray.Data[T](t.Context(), a)
		if err == nil && !slices.Equal(got, want) {
			t.Errorf("%v as %T: %v, want %v", a.DType(), got, got, want)
		}
		return err
	}
}
