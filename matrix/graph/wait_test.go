// SPDX-License-Identifier: Apache-2.0

//go:build !js

// In pages no submission waits for work.

package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// TestContextsBehindWork cancels calls that wait for blocks whose device is at work that does not end, also while another call, whose
// context does not end, waits for the block. Getters wait for neither, and Teardown gives up tasks that wait.
func TestContextsBehindWork(t *testing.T) {
	devtest.Gated(t, func(t *testing.T, dev *gpu.Device, g *devtest.Gate) {
		t.Cleanup(g.Open)
		other := devtest.Open(t, "cpu")
		gr := must[*graph.Graph](t)(graph.New([]*gpu.Device{dev, other}, graph.Config{}))
		m := gr.Template("m", 2, 2, dtype.Float32)
		looking := make(chan struct{}, 2)
		a := gr.Task("a", plus(1), graph.In("x", m), graph.Out("y", m), graph.Require(dev))
		look := gr.Task("look", graph.Host(func(d *graph.Dispatch) error {
			looking <- struct{}{}
			return d.View("x", func([]byte) error { return nil })
		}), graph.In("x", m), graph.Out("y", m))
		in, out := gr.Input("in", a.Port("x")), gr.Output("out", a.Port("y"))
		late, seen := gr.Input("late", look.Port("x")), gr.Output("seen", look.Port("y"))
		check(t, gr.Run(t.Context()))
		run := func() *graph.Block {
			check(t, in.Push(t.Context(), must[*graph.Block](t)(graph.FromSlice(m, []float32{1, 2, 3, 4}))))
			return must[*graph.Block](t)(out.Pull(t.Context()))
		}
		run().Release() // compiles
		g.Shut(t, dev)
		b := run()
		calls := map[string]func(ctx context.Context) error{
			"View":   func(ctx context.Context) error { return b.View(ctx, func([]byte) error { return nil }) },
			"Values": func(ctx context.Context) error { _, err := graph.Values[float32](ctx, b); return err },
			"On":     func(ctx context.Context) error { _, err := b.On(ctx, other, buffer.Reads); return err },
			"Pull":   func(ctx context.Context) error { _, err := seen.Pull(ctx); return err },
		}
		for name, call := range calls {
			devtest.CalledOff(t, name, call)
		}
		stuck := make(chan error, 1)
		check(t, late.Push(t.Context(), b.Retain()))
		devtest.Soon(t, "the task", func() { <-looking })
		go func() { stuck <- calls["View"](context.Background()) }()
		for name, call := range calls {
			devtest.CalledOff(t, name+" behind others", call)
		}
		devtest.CalledOff(t, "Stop", gr.Stop)
		devtest.Soon(t, "a getter", func() {
			if dev, host := b.State(dev), b.State(nil); dev != "EXCLUSIVE" || host == "EXCLUSIVE" {
				t.Errorf("the block is %s there, %s here", dev, host)
			}
			_, _, _ = gr.Stats(), b.Err(), b.Signals()
		})
		devtest.Soon(t, "Teardown", func() { check(t, gr.Teardown()) }) // which ends the task's wait
		g.Open()
		check(t, <-stuck)
		if v, err := graph.Values[float32](t.Context(), b); err != nil || v[3] != 5 {
			t.Error(v, err)
		}
		b.Release()
		check(t, errors.Join(gr.Teardown()))
	})
}
