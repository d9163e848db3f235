// SPDX-License-Identifier: Apache-2.0

//go:build !js

// In pages no submission waits for work.

package ndarray_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/buffer/file/params"
	"github.com/sublet-gpu/sublet/buffer/ndarray"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// waitCalls are those that take a context and wait for a device: each with an array whose results are there, with a view of
// it that is not contiguous, and with an array of another device.
var waitCalls = map[string]func(ctx context.Context, a, view, far *ndarray.Array) error{
	"Bytes":         func(ctx context.Context, a, _, _ *ndarray.Array) error { return second(a.Bytes(ctx)) },
	"Bytes of view": func(ctx context.Context, _, v, _ *ndarray.Array) error { return second(v.Bytes(ctx)) },
	"CopyToBytes":   func(ctx context.Context, a, _, _ *ndarray.Array) error { return a.CopyToBytes(ctx, make([]byte, 64)) },
	"CopyToDevice": func(ctx context.Context, a, _, far *ndarray.Array) error {
		return second(a.CopyToDevice(ctx, far.Device()))
	},
	"CopyFrom":    func(ctx context.Context, a, _, far *ndarray.Array) error { return far.CopyFrom(ctx, a) },
	"Assign":      func(ctx context.Context, a, _, far *ndarray.Array) error { return far.Assign(ctx, a) },
	"Assign view": func(ctx context.Context, _, v, _ *ndarray.Array) error { return v.Assign(ctx, v) },
	"Data":        func(ctx context.Context, a, _, _ *ndarray.Array) error { return second(ndarray.Data[int32](ctx, a)) },
	"Sync":        func(ctx context.Context, a, _, _ *ndarray.Array) error { return a.Sync(ctx) },
	"SaveParams": func(ctx context.Context, a, _, _ *ndarray.Array) error {
		return ndarray.SaveParams(ctx, io.Discard, ndarray.Params{{Name: "a", Array: a}}, params.Options{})
	},
	"Input": func(ctx context.Context, a, _, _ *ndarray.Array) error {
		return second(ndarray.Input{Name: "a", Shape: []int{4, 4}, Precision: 8}.Data(ctx, a))
	},
}

// behindCalls wait for other calls with the array only.
var behindCalls = map[string]func(ctx context.Context, a *ndarray.Array) error{
	"Fill":          func(ctx context.Context, a *ndarray.Array) error { return a.Fill(ctx, 3) },
	"CopyFromBytes": func(ctx context.Context, a *ndarray.Array) error { return a.CopyFromBytes(ctx, make([]byte, 64)) },
}

// TestContextsBehindWork cancels every call that takes a context behind work that does not end, also while another call, whose
// context does not end, reads the array. Getters and Close wait for neither.
func TestContextsBehindWork(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		t.Cleanup(g.Open)
		a := must[*ndarray.Array](t)(ndarray.Alloc(dev, dtype.Int32, 4, 4))
		far := must[*ndarray.Array](t)(ndarray.Alloc(open(t, "cpu"), dtype.Int32, 4, 4))
		view := must[*ndarray.Array](t)(a.Slice(ndarray.Region{Starts: []int{0, 1}, Ends: []int{4, 3}}))
		check(t, a.Fill(t.Context(), 7))
		g.Shut(t, dev)
		for name, call := range waitCalls {
			devtest.CalledOff(t, name, func(ctx context.Context) error { return call(ctx, a, view, far) })
		}
		stuck := make(chan error, 1)
		go func() { stuck <- a.Sync(context.Background()) }()
		devtest.Busy(t, func(ctx context.Context) error { return a.Fill(ctx, 7) })
		for name, call := range waitCalls {
			devtest.CalledOff(t, name+" behind Sync", func(ctx context.Context) error { return call(ctx, a, view, far) })
		}
		for name, call := range behindCalls {
			devtest.CalledOff(t, name, func(ctx context.Context) error { return call(ctx, a) })
		}
		devtest.Soon(t, "a getter", func() {
			_, _, _, _ = a.Shape(), a.Strides(), a.Len(), a.Size()
			_, _, _, _ = a.Device(), a.UseCount(), a.IsContiguous(), a.Same(view)
			share := must[*ndarray.Array](t)(a.Share())
			check(t, errors.Join(share.Close(), view.Close()))
		})
		g.Open()
		check(t, <-stuck)
		holds(t, "the array", a, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, int32(7))
		check(t, errors.Join(a.Close(), far.Close()))
	})
}

// TestCloseBehindWork closes an array that another call reads.
func TestCloseBehindWork(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		t.Cleanup(g.Open)
		a := must[*ndarray.Array](t)(ndarray.Alloc(dev, dtype.Int32, 4))
		check(t, a.Fill(t.Context(), 7))
		g.Shut(t, dev)
		stuck := make(chan error, 1)
		go func() { stuck <- a.Sync(context.Background()) }()
		devtest.Soon(t, "Close", func() { check(t, a.Close()) })
		g.Open()
		if err := <-stuck; err != nil && !errors.Is(err, gpu.ErrClosed) {
			t.Error(err)
		}
	})
}
