// SPDX-License-Identifier: Apache-2.0

package ndarray_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestLarge uses memory of the host that is larger than the device's largest buffer.
func TestLarge(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, must := t.Context(), must[*ndarray.Array](t)
		small, err := gpu.Open(ctx, gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(4096))
		check(t, err)
		defer small.Close()
		a := must(ndarray.Wrap(small, count(4000), []int{40, 100}, ndarray.Placement{}))
		turned := must(a.Transpose())
		part := ndarray.Region{Starts: []int{3, 0}, Ends: []int{4, 40}}
		check(t, fillPart(t, turned, part, -1))
		c := must(a.Clone())
		check(t, a.Fill(ctx, 0))
		check(t, a.CopyFrom(ctx, c))
		row := must(a.Index(39))
		want := count(4000)[3900:]
		want[3] = -1
		holds(t, "last row", row, want...)
		other := must(row.CopyToDevice(ctx, small))
		check(t, other.Fill(ctx, 5))
		check(t, row.CopyFrom(ctx, other))
		holds(t, "from the device", must(a.Index(39, 99)), int32(5))
		holds(t, "the clone", must(c.Index(39, 99)), int32(3999))
		is(t, "on the device", second(ndarray.Alloc(small, i32, 4000)), gpu.ErrLimit)
		is(t, "a copy on the device", second(a.CopyToDevice(ctx, small)), gpu.ErrLimit)
	})
}

// TestLargeResults uses such memory while a part of it holds what kernels wrote and the host has not.
func TestLargeResults(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		ctx, must := t.Context(), must[*ndarray.Array](t)
		small, err := gpu.Open(ctx, gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(512))
		check(t, err)
		defer small.Close()
		a := must(ndarray.Wrap(small, count(1000), []int{1000}, ndarray.Placement{}))
		part := must(a.Slice(ndarray.Region{Starts: []int{100}, Ends: []int{108}}))
		other := must(ndarray.FromSlice(small, []int32{9, 9, 9, 9, 9, 9, 9, 9}))
		run := func(a *ndarray.Array) { // as a kernel does
			b, err := a.Buffer()
			check(t, err)
			mem, base, err := b.Use(t.Context(), b.Device(), buffer.Range(400, 16), buffer.Writes)
			check(t, err)
			check(t, mem.Write(uint64(400-base), gpu.HostBytes(make([]byte, 16))))
			b.Wrote(b.Device(), buffer.Range(400, 16))
			check(t, b.Close())
		}
		run(a)
		check(t, other.CopyFrom(ctx, part))
		holds(t, "copied to the device", other, 0, 0, 0, 0, 104, 105, 106, int32(107))
		check(t, other.Fill(ctx, 5))
		run(a)
		check(t, part.CopyFrom(ctx, other))
		holds(t, "copied from the device", part, 5, 5, 5, 5, 5, 5, 5, int32(5))
		run(a)
		check(t, part.Fill(ctx, 0))
		run(a)
		is(t, "a clone", second(a.Clone()), buffer.ErrUnsynced)
		check(t, a.Sync(ctx))
		c := must(a.Clone())
		run(a)
		check(t, a.Fill(ctx, 0))
		holds(t, "filled", a, make([]int32, 1000)...)
		holds(t, "the clone", must(c.Slice(ndarray.Region{Starts: []int{98}, Ends: []int{110}})), 98, 99, 0, 0, 0, 0, 0, 0, 0, 0, 108, int32(109))
		run(c)
		is(t, "a clone of a clone", second(c.Clone()), buffer.ErrUnsynced)
		check(t, c.Sync(ctx))
		check(t, must(c.Clone()).Fill(ctx, 1))
	})
}

// TestLoadLarge loads what is larger than the device's largest buffer to the host, if it is told how much that may be.
func TestLoadLarge(t *testing.T) {
	onDevices(t, func(t *testing.T, dev *gpu.Device) {
		small, err := gpu.Open(t.Context(), gpu.WithDriver(dev.Info().Driver), gpu.WithMaxBuffer(4096))
		check(t, err)
		defer small.Close()
		headers := []file.Header{{Name: "x", Type: dtype.Uint8, Shape: []int64{5000}, Size: 5000}}
		load := func(opts ndarray.LoadOptions) error {
			p, err := ndarray.Load(t.Context(), small, &tensors{headers: headers}, opts)
			check(t, p.Close())
			return err
		}
		is(t, "to the device", load(ndarray.LoadOptions{}), gpu.ErrLimit)
		is(t, "to the device, with a limit", load(ndarray.LoadOptions{Limit: 1 << 40}), gpu.ErrLimit)
		is(t, "to the host", load(ndarray.LoadOptions{OnHost: true}), gpu.ErrLimit)
		is(t, "to the host, with a limit", load(ndarray.LoadOptions{OnHost: true, Limit: 4999}), file.ErrTooLarge)
		check(t, load(ndarray.LoadOptions{OnHost: true, Limit: 5000}))
	})
}
