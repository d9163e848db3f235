// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestCopyFromTo is the row of CVMArrayCopyFromTo. Unlike there strides are honoured, arrays may overlap, and any two
// devices do.
func TestCopyFromTo(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, must := t.Context(), must[*ndarray.Array](t)
		src := must(ndarray.FromSlice(dev, []float32{1, 2, 3, 4, 5, 6}, 2, 3))
		bits := must(ndarray.Alloc(dev, i32, 6))
		check(t, bits.CopyFrom(ctx, src))
		holds(t, "a bit copy to another type and shape", bits, int32(0x3f800000), 0x40000000, 0x40400000, 0x40800000, 0x40a00000, 0x40c00000)
		short := must(ndarray.Alloc(dev, dtype.Float32, 5))
		is(t, "sizes differ", short.CopyFrom(ctx, src), ndarray.ErrLength)
		holds(t, "after that", short, 0, 0, 0, 0, float32(0))
		turned := must(src.Transpose())
		dst := must(ndarray.Alloc(dev, dtype.Float32, 3, 2))
		check(t, dst.CopyFrom(ctx, turned))
		holds(t, "from strides", dst, float32(1), 4, 2, 5, 3, 6)
		check(t, turned.CopyFrom(ctx, src))
		holds(t, "to strides, overlapping itself", turned, float32(1), 2, 3, 4, 5, 6)
		holds(t, "what that is in memory", src, float32(1), 3, 5, 2, 4, 6)
		check(t, src.CopyFrom(ctx, src))
		holds(t, "to itself", src, float32(1), 3, 5, 2, 4, 6)
		lo, hi := must(bits.View(i32, 0, 5)), must(bits.View(i32, 4, 5))
		check(t, bits.Assign(ctx, must(ndarray.FromSlice(dev, count(6)))))
		check(t, hi.CopyFrom(ctx, lo))
		holds(t, "overlapping upwards", bits, int32(0), 0, 1, 2, 3, 4)
		check(t, lo.CopyFrom(ctx, hi))
		holds(t, "overlapping downwards", bits, int32(0), 1, 2, 3, 4, 4)
		bytes := must(ndarray.FromSlice(dev, []int8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}))
		to := must(ndarray.Alloc(dev, dtype.Int8, 13))
		part, three := must(to.View(dtype.Int8, 2, 3)), must(bytes.View(dtype.Int8, 5, 3))
		check(t, part.CopyFrom(ctx, three)) // between words
		holds(t, "byte offsets", to, int8(0), 0, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0)
	})
}

// TestCopyKinds copies between memory of every kind, in sizes that are no multiples of a word.
func TestCopyKinds(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		want := []int8{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
		for sname, src := range from(t, dev, want, len(want)) {
			for dname, dst := range from(t, dev, make([]int8, len(want)), len(want)) {
				check(t, dst.CopyFrom(t.Context(), src))
				holds(t, sname+" to "+dname, dst, want...)
				check(t, dst.Close())
			}
			check(t, src.Close())
		}
		closed(t, dev)
	})
}

// TestCopyOnDevice moves nothing through the host where that is not needed.
func TestCopyOnDevice(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		must := must[*ndarray.Array](t)
		a, b := must(ndarray.FromSlice(dev, count(1000))), must(ndarray.Alloc(dev, i32, 10, 100))
		c, d := must(ndarray.FromSlice(dev, make([]int8, 7))), must(ndarray.Alloc(dev, dtype.Int8, 7))
		before := dev.Stats()
		check(t, b.CopyFrom(t.Context(), a))
		check(t, d.CopyFrom(t.Context(), c))
		after := dev.Stats()
		if after.BytesUp != before.BytesUp || after.BytesDown != before.BytesDown {
			t.Errorf("%d bytes up and %d down", after.BytesUp-before.BytesUp, after.BytesDown-before.BytesDown)
		}
		holds(t, "copy", b, count(1000)...)
		row := must(b.Index(3))
		before = dev.Stats()
		check(t, row.Fill(t.Context(), -5))
		if up := dev.Stats().BytesUp - before.BytesUp; up != 400 {
			t.Errorf("a row of 400 bytes moved %d", up)
		}
		columns := must(b.Slice(ndarray.Region{Starts: []int{0, 4}, Ends: []int{10, 8}}))
		before = dev.Stats()
		one := must(columns.Index(3))
		holds(t, "columns", one, int32(-5), -5, -5, -5)
		_, err := columns.Bytes(t.Context())
		check(t, err)
		if down := dev.Stats().BytesDown - before.BytesDown; down != 16+160 {
			t.Errorf("columns of 160 bytes, and a row of them, moved %d", down)
		}
		before = dev.Stats()
		check(t, columns.CopyFromBytes(t.Context(), make([]byte, 160)))
		after = dev.Stats()
		if up, down := after.BytesUp-before.BytesUp, after.BytesDown-before.BytesDown; up != 160 || down != 0 {
			t.Errorf("writing columns of 160 bytes moved %d up and %d down", up, down)
		}
		closed(t, dev, a, b, c, d, row, columns, one)
	})
}

// TestCopyBytes are the rows of CVMArrayCopyFromBytes and CVMArrayCopyToBytes.
func TestCopyBytes(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		for name, a := range from(t, dev, []int8{1, 2, 3, 4, 5}, 5) {
			is(t, "too few to the array", a.CopyFromBytes(t.Context(), make([]byte, 4)), ndarray.ErrLength)
			is(t, "too many to the array", a.CopyFromBytes(t.Context(), make([]byte, 6)), ndarray.ErrLength)
			is(t, "too few from the array", a.CopyToBytes(t.Context(), make([]byte, 4)), ndarray.ErrLength)
			is(t, "too many from the array", a.CopyToBytes(t.Context(), make([]byte, 6)), ndarray.ErrLength)
			holds(t, name, a, int8(1), 2, 3, 4, 5)
			check(t, a.CopyFromBytes(t.Context(), []byte("hello")))
			got := make([]byte, 5)
			check(t, a.CopyToBytes(t.Context(), got))
			all, err := a.Bytes(t.Context())
			check(t, err)
			if string(got) != "hello" || !bytes.Equal(all, got) {
				t.Errorf("%s: %q and %q", name, got, all)
			}
			check(t, a.Close())
		}
		closed(t, dev)
	})
}

// TestCopyAcross copies between two devices, by way of the host.
func TestCopyAcross(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		other := open(t, "cpu")
		a, err := ndarray.FromSlice(dev, count(6), 2, 3)
		check(t, err)
		turned, err := a.Transpose()
		check(t, err)
		b, err := turned.CopyToDevice(t.Context(), other)
		check(t, err)
		if b.Device() != other || !b.IsContiguous() || b.UseCount() != 1 || b.Shape()[0] != 3 {
			t.Errorf("%v on %v", b.Shape(), b.Device().Info().Name)
		}
		holds(t, "there", b, int32(0), 3, 1, 4, 2, 5)
		check(t, b.Fill(t.Context(), 1))
		check(t, a.CopyFrom(t.Context(), b))
		holds(t, "back", a, int32(1), 1, 1, 1, 1, 1)
		is(t, "no device", second(a.CopyToDevice(t.Context(), nil)), gpu.ErrInvalid)
		closed(t, dev, a, turned)
		closed(t, other, b)
	})
}

// TestReadOnly refuses whatever would write memory that is read-only.
func TestReadOnly(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx := t.Context()
		mine := count(6)
		a, err := ndarray.Wrap(dev, mine, []int{2, 3}, ndarray.Placement{ReadOnly: true})
		check(t, err)
		src, err := ndarray.FromSlice(dev, make([]int32, 6), 2, 3)
		check(t, err)
		part := ndarray.Region{Starts: []int{0, 0}, Ends: []int{1, 1}}
		for name, err := range map[string]error{
			"Fill": a.Fill(ctx, 1), "Fill a part": fillPart(t, a, part, 1), "CopyFrom": a.CopyFrom(ctx, src),
			"CopyFromBytes": a.CopyFromBytes(ctx, make([]byte, 24)), "Assign": a.Assign(ctx, src),
		} {
			is(t, name, err, gpu.ErrReadOnly)
		}
		holds(t, "unchanged", a, count(6)...)
		check(t, src.CopyFrom(ctx, a))
		holds(t, "read", src, mine...)
		buf, err := a.Buffer()
		check(t, err)
		is(t, "buffer", second(buf.Memory(buffer.Replaces)), gpu.ErrReadOnly)
		check(t, buf.Close())
		same, err := ndarray.Wrap(dev, mine, []int{4, 6}, ndarray.Placement{Strides: []int{0, 1}})
		check(t, err)
		is(t, "elements share memory", same.Fill(ctx, 1), buffer.ErrStride)
		row, err := same.Index(3)
		check(t, err)
		holds(t, "one of the rows", row, count(6)...)
		closed(t, dev, a, src, same, row)
	})
}

// TestCopyCrosswise copies between arrays in both directions from eight goroutines at once.
func TestCopyCrosswise(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		a, err := ndarray.FromSlice(dev, []int32{1, 1, 1, 1})
		check(t, err)
		b, err := ndarray.Wrap(dev, []int32{2, 2, 2, 2}, []int{4}, ndarray.Placement{})
		check(t, err)
		c, err := ndarray.FromSlice(dev, []int32{3, 3, 3, 3})
		check(t, err)
		all := []*ndarray.Array{a, b, c}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for j := range 30 {
					check(t, all[(i+j)%3].CopyFrom(t.Context(), all[(i*j)%3]))
				}
			})
		}
		wg.Wait()
		for _, x := range all {
			v, err := ndarray.Data[int32](t.Context(), x)
			check(t, err)
			if v[0] < 1 || v[0] > 3 || v[1] != v[0] || v[2] != v[0] || v[3] != v[0] {
				t.Errorf("torn: %v", v)
			}
		}
		closed(t, dev, all...)
	})
}
