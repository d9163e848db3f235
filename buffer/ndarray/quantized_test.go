// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestSetInput are the rows of CvmRuntime::SetInput: int8 and int32 of one lane, the graph's shape, int8 widened, data
// clamped, parameters checked.
func TestSetInput(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, must := t.Context(), must[*ndarray.Array](t)
		in := ndarray.Input{Name: "conv0", Shape: []int{2, 3}, Precision: 4} // [-7, 7]
		small := must(ndarray.FromSlice(dev, []int8{-128, -8, -7, 7, 8, 127}, 2, 3))
		wide := must(ndarray.FromSlice(dev, []int32{math.MinInt32, -8, -7, 7, 8, math.MaxInt32}, 2, 3))
		for name, a := range map[string]*ndarray.Array{"int8": small, "int32": wide} {
			q, err := in.Data(ctx, a)
			check(t, err)
			holds(t, name+" clamped", q, int32(-7), -7, -7, 7, 7, 7)
			if q.DType() != i32 {
				t.Error(q.DType())
			}
			check(t, q.Close())
			check(t, q.Close())
			_, err = in.Param(ctx, a)
			is(t, name+" parameter", err, ndarray.ErrPrecision)
			p, ok := errors.AsType[*ndarray.PrecisionError](err)
			if !ok || p.Index != 0 || p.Name != "conv0" || p.Precision != 4 {
				t.Errorf("%s: %v", name, err)
			}
		}
		holds(t, "the user's array", wide, math.MinInt32, -8, -7, 7, 8, int32(math.MaxInt32))
		one := must(ndarray.FromSlice(dev, []int32{0, 7, -7, 3, -8, 9}, 2, 3))
		_, err := in.Param(ctx, one)
		if err == nil || err.Error() != "parameter conv0 at index 4 value:-8 exceed of precision 4" {
			t.Errorf("message: %v", err)
		}
		turned := must(one.Transpose())
		_, err = ndarray.Input{Name: "t", Shape: []int{3, 2}, Precision: 4}.Param(ctx, turned)
		if p, ok := errors.AsType[*ndarray.PrecisionError](err); !ok || p.Index != 3 {
			t.Errorf("index in C order: %v", err)
		}
		check(t, one.Fill(ctx, 5))
		before := dev.Stats().Buffers
		q, err := in.Param(ctx, one)
		check(t, err)
		if n := dev.Stats().Buffers; n != before {
			t.Errorf("a parameter that fits was copied")
		}
		check(t, one.Fill(ctx, 1000))
		holds(t, "what is written later does not matter", q, int32(5), 5, 5, 5, 5, 5)
		check(t, q.Close())
		unknown := ndarray.Input{Shape: []int{2, 3}, Precision: -1}
		q, err = unknown.Data(ctx, small)
		check(t, err)
		holds(t, "precision -1", q, int32(-128), -8, -7, 7, 8, 127)
		check(t, q.Close())
		for name, c := range map[string]struct {
			t    dtype.Type
			want error
		}{
			"uint8": {dtype.Uint8, ndarray.ErrType}, "int16": {dtype.Int16, ndarray.ErrType}, "float32": {dtype.Float32, ndarray.ErrType},
			"lanes": {dtype.Type{Code: dtype.Int8.Code, Bits: 8, Lanes: 2}, ndarray.ErrType}, "int64": {dtype.Int64, ndarray.ErrType},
		} {
			a := must(ndarray.Alloc(dev, c.t, 2, 3))
			is(t, name, second(in.Data(ctx, a)), c.want)
			is(t, name, second(in.Param(ctx, a)), c.want)
			check(t, a.Close())
		}
		flat := must(one.Reshape(6))
		is(t, "ndim", second(in.Data(ctx, flat)), buffer.ErrShape)
		across := must(ndarray.Alloc(dev, i32, 3, 2))
		is(t, "shape", second(in.Data(ctx, across)), buffer.ErrShape)
		closed(t, dev, small, wide, one, turned, flat, across)
	})
}

// TestPrecisions are the ranges of all precisions.
func TestPrecisions(t *testing.T) {
	dev := open(t, "cpu")
	a, err := ndarray.FromSlice(dev, []int32{math.MinInt32, math.MaxInt32})
	check(t, err)
	for p := 1; p <= 32; p++ {
		want := int32(math.Pow(2, float64(p-1)) - 1)
		in := ndarray.Input{Shape: []int{2}, Precision: p}
		q, err := in.Data(t.Context(), a)
		check(t, err)
		holds(t, "clamped", q, -want, want)
		is(t, "parameter", second(in.Param(t.Context(), a)), ndarray.ErrPrecision)
		check(t, q.Close())
	}
	closed(t, dev, a)
}

// TestGraphLimits are the limits of graphs.
func TestGraphLimits(t *testing.T) {
	for _, c := range []struct {
		row       string
		shape     []int
		precision int
		want      error
	}{
		{"ndim 1", []int{1}, 8, nil},
		{"ndim 6", []int{1, 2, 3, 4, 5, 6}, 8, nil},
		{"ndim 0", nil, 8, gpu.ErrLimit},
		{"ndim 7", []int{1, 1, 1, 1, 1, 1, 1}, 8, gpu.ErrLimit},
		{"dim 2^24", []int{1 << 24}, 8, nil},
		{"dim 2^24 + 1", []int{1<<24 + 1}, 8, gpu.ErrLimit},
		{"dim 0", []int{3, 0}, 8, gpu.ErrLimit},
		{"dim -1", []int{-1}, 8, gpu.ErrLimit},
		{"2^30 elements", []int{1 << 15, 1 << 15}, 8, nil},
		{"more", []int{1 << 15, 1 << 15, 2}, 8, gpu.ErrLimit},
		{"far more", []int{1 << 24, 1 << 24, 1 << 24, 1 << 24, 1 << 24, 1 << 24}, 8, gpu.ErrLimit},
		{"precision 1", []int{1}, 1, nil},
		{"precision 32", []int{1}, 32, nil},
		{"precision -1", []int{1}, -1, nil},
		{"precision 0", []int{1}, 0, gpu.ErrInvalid},
		{"precision 33", []int{1}, 33, gpu.ErrInvalid},
		{"precision -2", []int{1}, -2, gpu.ErrInvalid},
	} {
		is(t, c.row, ndarray.Input{Shape: c.shape, Precision: c.precision}.Check(), c.want)
	}
}
