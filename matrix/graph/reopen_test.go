// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// lossy runs a test on the setups whose devices can be lost.
func lossy(t *testing.T, test func(r *rig), opts ...option) {
	t.Helper()
	for _, s := range setups {
		names, ok := possible(s.drivers...)
		if !ok || slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(devtest.Losable, n) }) {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			all := slices.Clone(opts)
			if s.single {
				all = append(all, deterministic(7))
			}
			test(newRig(t, s.drivers, all...))
		})
	}
}

// A device that comes back comes back into the graph: tasks run there, those that may run nowhere else, too, with kernels and
// memory made anew. What only the device had stays an error; what the host has does not.
func TestReopen(t *testing.T) {
	lossy(t, func(r *rig) {
		dev := r.devs[len(r.devs)-1]
		body := plus(1)
		if dev.Info().Features.Has(driver.FeatureWGSL) {
			body = graph.Kernel("fn f(i: u32) { y[i] = x[i] + 1.0; }", "f", nil)
		}
		k := r.Task("k", body, graph.In("x", r.m), graph.Out("y", r.m), graph.Require(dev))
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(r.t, r.Run(r.ctx))
		for round := range 3 {
			r.push(in, r.full(1))
			r.wants(out, 2)
			only, both := r.full(10), r.full(20)
			must[*buffer.Buffer](r.t)(only.On(r.ctx, dev, buffer.Writes))
			must[*buffer.Buffer](r.t)(both.On(r.ctx, dev, buffer.Reads))
			lose(r.t, dev)
			r.push(in, both.Retain())
			r.fails(out, gpu.ErrDeviceLost) // no other device may run it
			check(r.t, dev.Reopen(r.ctx))
			if a, b := only.State(dev), both.State(dev); a != "NO_ENTRY" || b != "NO_ENTRY" {
				r.t.Errorf("%v, %v", a, b)
			}
			if a, b := only.State(nil), both.State(nil); a != "INVALID" || b != "EXCLUSIVE" {
				r.t.Errorf("on the host %v, %v", a, b)
			}
			r.push(in, both)
			r.wants(out, 21)
			for range 2 {
				isError(r.t, only.View(r.ctx, func([]byte) error { return nil }), gpu.ErrDeviceLost)
				_, err := only.On(r.ctx, dev, buffer.Reads)
				isError(r.t, err, gpu.ErrDeviceLost)
			}
			r.push(in, only.Retain())
			r.fails(out, gpu.ErrDeviceLost)
			for only.Refs() > 1 { // the dispatch is about to let go of it
				runtime.Gosched()
			}
			check(r.t, must[*buffer.Buffer](r.t)(only.On(r.ctx, dev, buffer.Replaces)).Write(0, gpu.HostBytes(make([]byte, 24)))) // all of it is new
			r.push(in, only)
			r.wants(out, 1)
			if s := r.Stats().Tasks[0]; s.Devices[len(r.devs)-1] != uint64(4*(round+1))+s.Retries {
				r.t.Errorf("%+v", s)
			}
		}
	})
}

// Nobody has to notice the loss: a device that is lost and back before the graph looks is one that has nothing.
func TestReopenUnnoticed(t *testing.T) {
	lossy(t, func(r *rig) {
		dev := r.devs[0]
		k := r.Task("k", plus(1), graph.In("x", r.m), graph.Out("y", r.m), graph.Require(dev))
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		only, both := r.full(1), r.full(2)
		must[*buffer.Buffer](r.t)(only.On(r.ctx, dev, buffer.Writes))
		must[*buffer.Buffer](r.t)(both.On(r.ctx, dev, buffer.Reads))
		lose(r.t, dev)
		check(r.t, dev.Reopen(r.ctx))
		check(r.t, r.Run(r.ctx))
		r.push(in, only)
		r.push(in, both)
		r.fails(out, gpu.ErrDeviceLost)
		r.wants(out, 3)
	})
}

// A dispatch whose device is lost and back before it fails begins anew, with its inputs as they were; what only the device
// had is an error, for those who share it, too, and never the initial value.
func TestReopenWithin(t *testing.T) {
	for _, only := range []bool{false, true} {
		lossy(t, func(r *rig) {
			dev := r.devs[0]
			losing := true
			body := graph.Func(func(d *graph.Dispatch) error {
				y, err := graph.Matrix[float32](d, "y")
				if err != nil {
					return err
				}
				one := matrix.Fill[float32](2, 3, 1)
				if err := y.Assign(matrix.Add(y, one)); err != nil || !losing {
					return err
				}
				losing = false
				lose(r.t, dev)
				check(r.t, dev.Reopen(r.ctx))
				return d.View("y", func([]byte) error { return nil })
			})
			k := r.Task("k", body, graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}), graph.Require(dev))
			tee := r.Task("tee", graph.Host(func(*graph.Dispatch) error { return nil }), graph.In("x", r.m),
				graph.Out("y", r.m, graph.PortConfig{InPlace: "x", SuppressClones: true}))
			in := r.Input("x", tee.Port("x"))
			r.Connect(tee.Port("y"), k.Port("x"))
			out, side := r.Output("y", k.Port("y")), r.Output("side", tee.Port("y"))
			check(r.t, r.Run(r.ctx))
			b := r.full(4)
			if only {
				must[*buffer.Buffer](r.t)(b.On(r.ctx, dev, buffer.Writes))
			}
			r.push(in, b)
			if !only {
				r.wants(out, 5)
				r.wants(side, 5)
			} else {
				r.fails(out, gpu.ErrDeviceLost)
				b := must[*graph.Block](r.t)(side.Pull(r.ctx))
				isError(r.t, b.View(r.ctx, func([]byte) error { return nil }), gpu.ErrDeviceLost)
				b.Release()
			}
			if s := r.Stats().Tasks[0]; losing || s.Retries != map[bool]uint64{false: 1}[only] {
				r.t.Errorf("%+v", s)
			}
		})
	}
}

// Tasks that wait for a busy device go to one that comes back, at once and without anything else happening.
func TestReopenWakes(t *testing.T) {
	for _, mode := range []graph.Mode{graph.FirstAvailable, graph.PriorityFirst, graph.DataAware, graph.FIFO} {
		r := newRig(t, []string{"cpu", "cpu"}, withMode(mode))
		g := newGated(r, graph.Require(r.devs[0]))
		in := g.noted("task")
		r.WithoutTimer()
		check(t, r.Run(r.ctx))
		r.push(g.hold, r.full(0))
		<-g.began
		lose(t, r.devs[1])
		r.Notice(1)
		r.push(in, r.full(1))
		if r.Waiting() != 1 {
			t.Errorf("%v: it does not wait", mode)
		}
		check(t, r.devs[1].Reopen(r.ctx))
		_, _ = r.pull(g.outs[1])
		if g.where[0] != r.devs[1] {
			t.Errorf("%v: it ran elsewhere", mode)
		}
		g.end <- true
		g.drain()
	}
}
