// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

var errTask = errors.New("no luck today")

type wicked struct{}

func (wicked) Error() string { panic("again") }

// 5.4, extra: what a task fails with reaches the graph's outputs, past tasks that pass it on and whatever predicates say, and
// the graph goes on.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func() error
		want error
		text string
	}{
		{"error", func() error { return errTask }, errTask, ""},
		{"panic", func() error { panic("oh") }, graph.ErrPanic, "oh"},
		{"index", func() error { var s []int; s[len(s)]++; return nil }, graph.ErrPanic, "index out of range"},
		{"wicked", func() error { panic(wicked{}) }, graph.ErrPanic, ""},
		{"number", func() error { panic(7) }, graph.ErrPanic, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(r *rig) {
				k := r.Task("k", graph.Func(func(d *graph.Dispatch) error {
					if signals(d, "x")&graph.BOF != 0 {
						return c.fail()
					}
					return nil
				}), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}), graph.Out("z", r.m))
				l := r.Task("l", plus(1), graph.In("x", r.m), graph.Out("y", r.m))
				in := r.Input("in", k.Port("x"))
				r.Connect(k.Port("y"), l.Port("x"), graph.Channel{Push: graph.Predicate{CloseOn: graph.EOF}, Pull: graph.Predicate{}})
				out := r.Output("out", l.Port("y"), graph.Channel{Push: graph.Predicate{CloseOn: graph.BOF}})
				z := r.Output("z", k.Port("z"), graph.Channel{Pull: graph.Predicate{CloseOn: graph.BOF}})
				_ = z
				check(r.t, r.Run(r.ctx))
				r.push(in, r.full(1))
				r.wants(out, 2)
				r.wants(z, 0)
				r.push(in, r.full(1), graph.BOF)
				b := must[*graph.Block](r.t)(z.Pull(r.ctx))
				isError(r.t, b.Err(), c.want)
				if !strings.Contains(b.Err().Error(), c.text) {
					r.t.Error(b.Err())
				}
				b.Release()
				check(r.t, r.Stop(r.ctx))
				check(r.t, r.Run(r.ctx))
				r.push(in, r.full(2))
				r.wants(out, 3)
				if s := r.Stats().Tasks; s[0].Failures != 1 || s[1].Failures != 0 {
					r.t.Errorf("%+v", s)
				}
			})
		})
	}
}

// An error goes through tasks to the outputs of the graph, and out of loops.
func TestFailurePropagates(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", graph.Func(func(*graph.Dispatch) error { return errTask }), graph.In("x", r.m), graph.Out("y", r.m))
		l := r.Task("l", plus(1), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
		in := r.Input("in", k.Port("x"))
		r.Connect(k.Port("y"), l.Port("x"), graph.Channel{Control: true})
		r.Connect(l.Port("y"), l.Port("x"), graph.Channel{Push: graph.Predicate{CloseOn: graph.EndIteration}})
		out := r.Output("out", l.Port("y"), graph.Channel{Push: graph.Predicate{OpenOn: graph.EndIteration}})
		check(r.t, r.Run(r.ctx))
		r.push(in, r.full(1))
		r.fails(out, errTask)
		check(r.t, r.Stop(r.ctx))
		r.none(out)
		b := must[*graph.Block](r.t)(r.m.New())
		isError(r.t, b.SetSignals(graph.Failed), gpu.ErrInvalid)
		b.Release()
	})
}

// A task that ends its goroutine does not take the worker with it.
func TestGoexit(t *testing.T) {
	for _, host := range []bool{false, true} {
		r := newRig(t, []string{"cpu"})
		f := func(d *graph.Dispatch) error {
			if signals(d, "x")&graph.BOF != 0 {
				runtime.Goexit()
			}
			return nil
		}
		body := graph.Func(f)
		if host {
			body = graph.Host(f)
		}
		k := r.Task("k", body, graph.In("x", r.m), graph.Out("y", r.m))
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(t, r.Run(r.ctx))
		for range 3 {
			r.push(in, r.full(1), graph.BOF)
			r.fails(out, graph.ErrPanic)
			r.push(in, r.full(1))
			r.wants(out, 0)
		}
	}
}

// In the deterministic mode the goroutine is the caller's; the graph survives its end.
func TestGoexitDeterministic(t *testing.T) {
	r := newRig(t, []string{"cpu"}, deterministic(1))
	k := r.Task("k", graph.Func(func(*graph.Dispatch) error { runtime.Goexit(); return nil }), graph.In("x", r.m), graph.Out("y", r.m))
	in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
	check(t, r.Run(r.ctx))
	r.push(in, r.full(1))
	done := make(chan bool)
	go func() {
		defer close(done)
		_, _ = out.Pull(r.ctx)
		t.Error("it goes on")
	}()
	<-done
	r.fails(out, graph.ErrPanic)
}

// lose loses a device: one of the oracle by a kernel that panics, others as their driver's own tests do it.
func lose(t *testing.T, dev *gpu.Device) {
	t.Helper()
	if dev.Info().Features.Has(driver.FeatureWGSL) {
		devtest.Destroy(dev)
	} else {
		k := must[*gpu.Kernel](t)(dev.Kernel(t.Context(), gpu.KernelDesc{
			Source: "@compute @workgroup_size(1) fn main() {}", Reference: func([3]uint32, []byte, [][]byte) { panic("lost") },
		}))
		check(t, k.Dispatch([3]uint32{1, 1, 1}, nil))
	}
	_ = dev.Sync(t.Context()) // some only look when they are called
	<-dev.Lost()
	isError(t, dev.Sync(t.Context()), gpu.ErrDeviceLost)
}

// 5.5.7: work of a device that is lost is placed elsewhere, also the dispatch that finds out, with its inputs as they were.
func TestLoss(t *testing.T) {
	for _, single := range []bool{false, true} {
		for _, inPlace := range []bool{false, true} {
			opts := []option{}
			if single {
				opts = append(opts, deterministic(3))
			}
			r := newRig(t, []string{"cpu", "cpu"}, opts...)
			losing := true
			body := graph.Func(func(d *graph.Dispatch) error {
				y, err := graph.Matrix[float32](d, "y")
				if err != nil {
					return err
				}
				x, err := graph.Matrix[float32](d, "x")
				if err != nil {
					return err
				}
				two := matrix.Fill[float32](2, 3, 2)
				if err := y.Assign(matrix.MulElem(x, two)); err != nil {
					return err
				}
				if losing && d.Device() == r.devs[1] {
					losing = false
					lose(t, r.devs[1])
					return d.Device().Sync(d.Context())
				}
				return nil
			})
			var out []graph.PortConfig
			if inPlace {
				out = append(out, graph.PortConfig{InPlace: "x"})
			}
			k := r.Task("k", body, graph.In("x", r.m), graph.Out("y", r.m, out...), graph.WaitFor(r.devs[1]))
			in, y := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
			check(t, r.Run(r.ctx))
			r.push(in, r.full(3)) // the host has it
			r.wants(y, 6)
			r.push(in, r.full(5))
			r.wants(y, 10)
			s := r.Stats().Tasks[0]
			if losing || s.Retries != 1 || s.Failures != 0 || s.Devices[0] != 2 || s.Devices[1] != 1 {
				t.Errorf("%+v", s)
			}
		}
	}
}

// A clone that was to be written in place of a pinned block is made anew.
func TestLossOfClone(t *testing.T) {
	r := newRig(t, []string{"cpu", "cpu"})
	losing := true
	k := r.Task("k", graph.Func(func(d *graph.Dispatch) error {
		if _, err := graph.Matrix[float32](d, "y"); err != nil {
			return err
		}
		if losing {
			losing = false
			lose(t, d.Device())
			return d.Device().Sync(d.Context())
		}
		return nil
	}), graph.In("x", r.m), graph.In("go", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
	in, out := r.Input("go", k.Port("go")), r.Output("y", k.Port("y"))
	check(t, k.Port("x").Set(r.full(4)))
	check(t, r.Run(r.ctx))
	r.push(in, r.full(0))
	r.wants(out, 4)
}

// 5.5.7: a block whose only copy was on a device that is lost is an error; what the host has, too, is not.
func TestLossOfBlocks(t *testing.T) {
	r := newRig(t, []string{"cpu", "cpu"})
	k := r.Task("k", plus(1), graph.In("x", r.m), graph.Out("y", r.m))
	in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
	check(t, r.Run(r.ctx))
	only, both := r.full(1), r.full(2)
	must[*buffer.Buffer](t)(only.On(r.ctx, r.devs[1], buffer.Writes))
	must[*buffer.Buffer](t)(both.On(r.ctx, r.devs[1], buffer.Writes))
	check(t, both.View(r.ctx, func([]byte) error { return nil }))
	if a, b := only.State(r.devs[1]), both.State(r.devs[1]); a != "EXCLUSIVE" || b != "SHARED" {
		t.Errorf("%v, %v", a, b)
	}
	lose(t, r.devs[1])
	r.push(in, only)
	r.push(in, both)
	r.fails(out, gpu.ErrDeviceLost)
	r.wants(out, 3)
	if s := r.Stats().Tasks[0]; s.Failures != 1 {
		t.Errorf("%+v", s)
	}
}

// A task that may run on no device that is left fails, and does not wait for ever.
func TestNoDeviceLeft(t *testing.T) {
	for _, single := range []bool{false, true} {
		opts := []option{}
		if single {
			opts = append(opts, deterministic(3))
		}
		r := newRig(t, []string{"cpu", "cpu"}, opts...)
		k := r.Task("k", plus(1), graph.In("x", r.m), graph.Out("y", r.m), graph.Require(r.devs[1]))
		l := r.Task("l", plus(1), graph.In("x", r.m), graph.Out("y", r.m))
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		lin, lout := r.Input("lx", l.Port("x")), r.Output("ly", l.Port("y"))
		check(t, r.Run(r.ctx))
		lose(t, r.devs[1])
		r.push(in, r.full(1))
		r.fails(out, gpu.ErrDeviceLost)
		r.push(lin, r.full(1))
		r.wants(lout, 2)
		check(t, r.devs[0].Close()) // as good as lost
		r.push(lin, r.full(1))
		r.fails(lout, gpu.ErrDeviceLost)
	}
}

// A kernel that does not compile is an error at the outputs.
func TestKernelFailure(t *testing.T) {
	if _, ok := possible(wgsl); !ok {
		return
	}
	r := newRig(t, []string{wgsl})
	k := r.Task("k", graph.Kernel("fn f(i: u32) { y[i] = x[i] + oops; }", "f", nil), graph.In("x", r.m), graph.Out("y", r.m))
	in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
	check(t, r.Run(r.ctx))
	r.push(in, r.full(1))
	r.fails(out, gpu.ErrCompile)
}
