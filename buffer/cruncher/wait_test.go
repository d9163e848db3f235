// SPDX-License-Identifier: Apache-2.0

//go:build !js

// In pages no submission waits for work.

package cruncher_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

const waitSource = `
fn inc(i: u32) { x[i] = x[i] + 1u; }
fn keep(i: u32) { y[i] = y[i] + 1u; }
fn stage(i: u32) { out[i] = in[i] + 1u; }`

var waitReferences = map[string]reference{
	"inc":   func(i uint32, m memory) { m.set("x", i, m.at("x", i)+1) },
	"keep":  func(i uint32, m memory) { m.set("y", i, m.at("y", i)+1) },
	"stage": func(i uint32, m memory) { m.set("out", i, m.at("in", i)+1) },
}

var waitRange = cruncher.Range{Global: 16, Local: 4}

// waiting is one of everything that computes on a device, used once, so that nothing has to be compiled.
type waiting struct {
	cr   *cruncher.Cruncher
	x, y *cruncher.Array[uint32] // y stays on the device
	task *cruncher.Task
	pipe *cruncher.Pipeline
	feed *cruncher.DevicePipeline
	pool *cruncher.DevicePool
}

func newWaiting(t *testing.T, dev *gpu.Device) *waiting {
	t.Helper()
	devices := []*gpu.Device{dev}
	w := &waiting{
		cr: onDevices(t, devices, 1, waitSource),
		x:  newArray[uint32](t, "x", 16), y: newArray[uint32](t, "y", 16),
	}
	edit(w.y).Write(false)
	stage := func() cruncher.Stage {
		return cruncher.Stage{
			Kernels: []cruncher.Step{{Kernels: "stage", Range: waitRange}},
			Inputs:  []cruncher.Param{newArray[uint32](t, "in", 16)}, Outputs: []cruncher.Param{newArray[uint32](t, "out", 16)},
		}
	}
	one := stage()
	one.Devices, one.WGSL = devices, waitSource
	w.pipe = must[*cruncher.Pipeline](t)(cruncher.NewPipeline(t.Context(), one))
	w.feed = must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(t.Context(), dev, waitSource, stage()))
	w.pool = must[*cruncher.DevicePool](t)(cruncher.NewDevicePool(t.Context(), cruncher.Greedy, waitSource))
	check(t, w.pool.AddDevice(dev))
	w.task = must[*cruncher.Task](t)(cruncher.NewTask(2, "inc", waitRange, newArray[uint32](t, "x", 16), cruncher.TaskOptions{}))
	t.Cleanup(func() { check(t, errors.Join(w.pipe.Close(), w.feed.Close(), w.pool.Close())) })
	for name, call := range waitCalls {
		if err := call(w, t.Context()); err != nil {
			t.Fatal(name, ": ", err)
		}
	}
	check(t, w.cr.Compute(t.Context(), 3, "keep", waitRange, w.y))
	return w
}

// waitCalls are those that take a context and wait for a device.
var waitCalls = map[string]func(w *waiting, ctx context.Context) error{
	"Compute": func(w *waiting, ctx context.Context) error { return w.cr.Compute(ctx, 1, "inc", waitRange, w.x) },
	"Array.Compute": func(w *waiting, ctx context.Context) error {
		return w.x.Compute(ctx, w.cr, 1, "inc", waitRange)
	},
	"Batch": func(w *waiting, ctx context.Context) error {
		return w.cr.Batch(ctx, func(b *cruncher.Batch) error { return b.Compute(ctx, 1, "inc", waitRange, w.x) })
	},
	"Task.Compute": func(w *waiting, ctx context.Context) error { return w.task.Compute(ctx, w.cr) },
	"Fetch":        func(w *waiting, ctx context.Context) error { return w.cr.Fetch(ctx, w.y.Any) },
	"Push":         func(w *waiting, ctx context.Context) error { _, err := w.pipe.Push(ctx, nil, nil); return err },
	"Feed":         func(w *waiting, ctx context.Context) error { _, err := w.feed.Feed(ctx); return err },
	"Finish": func(w *waiting, ctx context.Context) error {
		if w.pool.Remaining() == 0 {
			if err := w.pool.Enqueue(w.task); err != nil {
				return err
			}
		}
		_, err := w.pool.Finish(ctx)
		return err
	},
}

func gated(t *testing.T, test func(t *testing.T, dev *gpu.Device, g *devtest.Gate)) {
	t.Helper()
	open := func(t testing.TB) driver.Device { return &interpreted{devtest.Oracle(t), waitReferences} }
	devtest.GatedDevice(t, open, test)
}

// TestContextsBehindWork cancels every call that takes a context behind work that does not end, and then behind calls that do not end
// either. Getters wait for none of them.
func TestContextsBehindWork(t *testing.T) {
	gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		w := newWaiting(t, dev)
		t.Cleanup(g.Open)
		g.Shut(t, dev)
		for name, call := range waitCalls {
			devtest.CalledOff(t, name, func(ctx context.Context) error { return call(w, ctx) })
		}
		before := w.x.Data()[0]
		stuck := make(chan error, 3)
		for _, name := range []string{"Compute", "Push", "Feed"} {
			go func() {
				err := waitCalls[name](w, context.Background())
				for errors.Is(err, cruncher.ErrBatch) { // that below came first
					err = waitCalls[name](w, context.Background())
				}
				stuck <- err
			}()
		}
		for name, call := range waitCalls {
			devtest.CalledOff(t, name+" behind another call", func(ctx context.Context) error { return call(w, ctx) })
		}
		devtest.Soon(t, "a getter", func() {
			_, _, _ = w.cr.Stats(1), w.cr.Last(), w.cr.Traffic()
			_, _, _, _ = w.x.Stale(), w.x.Flags(), w.x.Data(), w.y.Stale()
			_, _ = w.pool.Completed(), w.pool.Remaining()
			if _, err := w.y.At(0); !errors.Is(err, cruncher.ErrStale) {
				t.Errorf("At: %v", err)
			}
		})
		g.Open()
		check(t, errors.Join(<-stuck, <-stuck, <-stuck))
		check(t, w.cr.Fetch(t.Context(), w.y.Any))
		if x, y := w.x.Data()[0], w.y.Data()[0]; x != before+1 || y != 1 {
			t.Errorf("x went from %d to %d, y is %d", before, x, y)
		}
	})
}

// TestCloseBehindWork closes everything while work does not end.
func TestCloseBehindWork(t *testing.T) {
	gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		w := newWaiting(t, dev)
		t.Cleanup(g.Open)
		g.Shut(t, dev)
		stuck := make(chan error, 2)
		go func() { stuck <- waitCalls["Push"](w, context.Background()) }()
		go func() { stuck <- waitCalls["Feed"](w, context.Background()) }()
		check(t, w.pool.Enqueue(w.task))
		devtest.Soon(t, "Close", func() {
			check(t, errors.Join(w.y.Close(), w.cr.Evict(), w.cr.Close(), w.pipe.Close(), w.feed.Close(), w.pool.Close()))
			for range 2 {
				if err := <-stuck; !errors.Is(err, gpu.ErrClosed) {
					t.Errorf("a call that was under way: %v", err)
				}
			}
		})
	})
}
