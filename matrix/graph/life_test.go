// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// chain is n tasks that each add 1.
func (r *rig) chain(n int, opts ...graph.Channel) (*graph.Input, *graph.Output) {
	var in *graph.Input
	var last *graph.Port
	for i := range n {
		k := r.Task("t"+string(rune('a'+i)), plus(1), graph.In("x", r.m), graph.Out("y", r.m))
		if last == nil {
			in = r.Input("in", k.Port("x"), opts...)
		} else {
			r.Connect(last, k.Port("x"), opts...)
		}
		last = k.Port("y")
	}
	return in, r.Output("out", last, opts...)
}

// 5.5.8 and 5.4: Stop drains what is in flight. Outputs can be pulled afterwards, and Run goes on.
func TestStopAndRestart(t *testing.T) {
	everywhere(t, func(r *rig) {
		in, out := r.chain(3)
		for round := range 3 {
			check(r.t, r.Run(r.ctx))
			for i := float32(0); i < 4; i++ {
				r.push(in, r.full(i))
			}
			check(r.t, r.Stop(r.ctx))
			if p := r.Phase(); p != "RUNNABLE" {
				r.t.Errorf("%v in round %d", p, round)
			}
			b := r.full(1)
			isError(r.t, in.Push(r.ctx, b), graph.ErrStopped)
			b.Release()
			r.wants(out, 3, 4, 5, 6)
			_, err := out.Pull(r.ctx)
			isError(r.t, err, graph.ErrStopped)
			check(r.t, r.Stop(r.ctx))
		}
	})
}

// A graph with full outputs stops with blocks inside, and goes on with them.
func TestStopWithBlocksInside(t *testing.T) {
	everywhere(t, func(r *rig) {
		in, out := r.chain(2, graph.Channel{Capacity: 1})
		check(r.t, r.Run(r.ctx))
		for i := float32(0); i < 3; i++ {
			r.push(in, r.full(i))
		}
		check(r.t, r.Stop(r.ctx))
		r.wants(out, 2)
		_, err := out.Pull(r.ctx)
		isError(r.t, err, graph.ErrStopped)
		check(r.t, r.Run(r.ctx))
		r.wants(out, 3, 4)
	})
}

// hang is what no Teardown takes, however busy the machine is. That it waits for a second at the most is [graph.Grace].
const hang = 30 * time.Second

// Teardown sets everybody free who waits, from any phase and within a second, and the graph can run again afterwards.
func TestTeardown(t *testing.T) {
	if graph.Grace >= time.Second {
		t.Errorf("it waits for %v", graph.Grace)
	}
	everywhere(t, func(r *rig) {
		in, out := r.chain(2, graph.Channel{Capacity: 1})
		mine := 0
		fast := func(what string) {
			r.t.Helper()
			begin := time.Now()
			check(r.t, r.Teardown())
			if took := time.Since(begin); took > hang {
				r.t.Errorf("%s: %v", what, took)
			}
			if n := r.Stats().Blocks; n != mine {
				r.t.Errorf("%s: %d blocks", what, n)
			}
		}
		fast("building")
		check(r.t, r.Finalize())
		fast("finalized")
		check(r.t, r.Run(r.ctx))
		fast("running")
		fast("torn down")

		check(r.t, r.Run(r.ctx))
		for i := float32(0); i < 3; i++ {
			r.push(in, r.full(i))
		}
		blocked := r.full(9)
		mine = 1
		errs := make(chan error, 2)
		go func() { errs <- in.Push(context.Background(), blocked) }()
		fast("with a blocked push")
		isError(r.t, <-errs, graph.ErrTornDown)
		if blocked.Refs() != 1 {
			r.t.Error("the block is not the caller's any more")
		}
		blocked.Release()
		mine = 0

		check(r.t, r.Run(r.ctx))
		go func() { _, err := out.Pull(context.Background()); errs <- err }()
		go func() { _, err := out.Pull(context.Background()); errs <- err }()
		runtime.Gosched()
		fast("with blocked pulls")
		isError(r.t, <-errs, graph.ErrTornDown)
		isError(r.t, <-errs, graph.ErrTornDown)
		_, err := out.Pull(r.ctx)
		isError(r.t, err, graph.ErrTornDown)
		isError(r.t, r.Stop(r.ctx), graph.ErrState)

		check(r.t, r.Run(r.ctx))
		r.push(in, r.full(1))
		r.wants(out, 3)
	})
}

// The end of Run's context tears the graph down.
func TestContext(t *testing.T) {
	everywhere(t, func(r *rig) {
		_, out := r.chain(1)
		ctx, cancel := context.WithCancel(r.ctx)
		check(r.t, r.Run(ctx))
		errs := make(chan error)
		go func() { _, err := out.Pull(context.Background()); errs <- err }()
		cancel()
		err := <-errs
		isError(r.t, err, graph.ErrTornDown)
		isError(r.t, err, context.Canceled)
		check(r.t, r.Teardown())
		isError(r.t, r.Run(ctx), context.Canceled)
		_, err = out.Pull(r.ctx)
		isError(r.t, err, context.Canceled)
		err = r.Stop(r.ctx)
		isError(r.t, err, graph.ErrState)
		isError(r.t, err, context.Canceled)

		ctx, cancel = context.WithCancel(r.ctx)
		cancel()
		_, err = out.Pull(ctx)
		isError(r.t, err, graph.ErrTornDown)
		check(r.t, r.Run(r.ctx))
		_, err = out.Pull(ctx)
		isError(r.t, err, context.Canceled)
		check(r.t, r.Teardown())
		if _, err = out.Pull(r.ctx); errors.Is(err, context.Canceled) {
			r.t.Errorf("%v after a call of Teardown", err)
		}
	})
}

// A task that waits for its context ends with the graph; one that waits for something else holds Teardown up for less
// than a second, and its blocks are released when it ends.
func TestTeardownOfRunningTasks(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	began, end := make(chan bool, 2), make(chan bool)
	polite := r.Task("polite", graph.Func(func(d *graph.Dispatch) error {
		began <- true
		<-d.Context().Done()
		return d.Context().Err()
	}), graph.In("x", r.m), graph.Out("y", r.m))
	deaf := r.Task("deaf", graph.Host(func(*graph.Dispatch) error {
		began <- true
		<-end
		return nil
	}), graph.In("x", r.m), graph.Out("y", r.m))
	p, d := r.Input("p", polite.Port("x")), r.Input("d", deaf.Port("x"))
	r.Output("py", polite.Port("y"))
	r.Output("dy", deaf.Port("y"))

	check(t, r.Run(r.ctx))
	r.push(p, r.full(1))
	<-began
	check(t, r.Teardown())

	check(t, r.Run(r.ctx))
	r.push(d, r.full(1))
	<-began
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	isError(t, r.Stop(ctx), context.Canceled)
	isError(t, r.Run(r.ctx), graph.ErrBusy)
	begin := time.Now()
	isError(t, r.Teardown(), graph.ErrBusy)
	if took := time.Since(begin); took > hang {
		t.Errorf("%v", took)
	}
	isError(t, r.Run(r.ctx), graph.ErrBusy)
	close(end)
	check(t, r.Teardown())
	check(t, r.Run(r.ctx))
}

// 5.2 ready rule, and what must hold of channels: a slow consumer stalls those who produce for it and nothing else.
func TestSlowConsumer(t *testing.T) {
	everywhere(t, func(r *rig) {
		tee := r.Task("tee", pass(), graph.In("x", r.m), graph.Out("y", r.m))
		in := r.Input("in", tee.Port("x"))
		slow, fast := r.Output("slow", tee.Port("y"), graph.Channel{Capacity: 2}), r.Output("fast", tee.Port("y"))
		other := r.Task("other", plus(1), graph.In("x", r.m), graph.Out("y", r.m))
		oin, oout := r.Input("oin", other.Port("x")), r.Output("oout", other.Port("y"))
		check(r.t, r.Run(r.ctx))
		for i := float32(0); i < 6; i++ { // 2 get through, 4 wait
			r.push(in, r.full(i))
		}
		for i := float32(0); i < 50; i++ {
			r.push(oin, r.full(i))
			r.wants(oout, i+1)
		}
		r.wants(fast, 0, 1)
		r.none(fast)
		ctx, cancel := context.WithCancel(r.ctx)
		stuck := r.full(9)
		errs := make(chan error)
		go func() { errs <- in.Push(ctx, stuck) }()
		cancel()
		isError(r.t, <-errs, context.Canceled)
		stuck.Release()
		r.wants(slow, 0, 1, 2, 3, 4, 5)
		r.wants(fast, 2, 3, 4, 5)
		for _, c := range r.Stats().Channels {
			if c.Peak > c.Capacity {
				r.t.Errorf("%s had %d of %d", c.Name, c.Peak, c.Capacity)
			}
		}
	})
}

// each returns the errors that an error joins.
func each(err error) []error {
	list, _ := err.(interface{ Unwrap() []error })
	return list.Unwrap()
}

// TestOwnCapacity: a channel from a task to itself of one block would stop the task after its first run.
func TestOwnCapacity(t *testing.T) {
	devs := open(t, "cpu")
	for capacity, want := range map[int]error{1: gpu.ErrInvalid, 2: nil} {
		g := must[*graph.Graph](t)(graph.New(devs))
		m := g.Template("m", 1, 1, dtype.Float32)
		task := g.Task("task", pass(), graph.In("x", m), graph.Out("y", m))
		g.Input("first", task.Port("x"), graph.Channel{Control: true})
		g.Connect(task.Port("y"), task.Port("x"), graph.Channel{Capacity: capacity})
		if err := g.Finalize(); !errors.Is(err, want) {
			t.Errorf("a capacity of %d: %v", capacity, err)
		}
		check(t, g.Teardown())
	}
}

// 5.5.1: Finalize lists every fault at once.
func TestFaults(t *testing.T) {
	devs := open(t, "cpu", "cpu")
	g := must[*graph.Graph](t)(graph.New(devs[:1]))
	h := must[*graph.Graph](t)(graph.New(devs[:1]))
	m := g.Template("m", 2, 3, dtype.Float32)
	other := g.Template("other", 3, 2, dtype.Float32)
	foreign := h.Template("foreign", 2, 3, dtype.Float32)
	g.Template("bad", -1, 3, dtype.Float32)
	g.Template("huge", 1<<40, 1<<40, dtype.Float32)
	g.Template("type", 1, 1, dtype.Float64)
	g.Template("initial", 1, 1, dtype.Float32, graph.Format{Initial: []byte{1}})
	g.Template("pitch", 1, 4, dtype.Float32, graph.Format{Pitch: 3})

	g.Task("unbound", pass(), graph.In("x", m), graph.Out("y", m))
	g.Task("unset", add(), graph.Init("x", m), graph.Sticky("y", m), graph.Out("z", m))
	g.Task("unset", pass(), graph.In("x", m))
	g.Task("", graph.Body{}, nil)
	g.Task("ports", graph.Host(func(*graph.Dispatch) error { return nil }),
		graph.In("x", foreign), graph.In("x", nil), graph.Out("y", m, graph.PortConfig{InPlace: "no", ClosedBy: "no", SignalsFrom: []string{"no"}}),
		graph.Described("d", m, "no", nil), graph.In("s", m, graph.PortConfig{Sizes: "y"}), graph.Out("k", m, graph.PortConfig{Iterates: true}),
		graph.Priority(99), graph.In("i", m, graph.PortConfig{InPlace: "x"}))
	g.Task("twice", graph.Host(func(*graph.Dispatch) error { return nil }), graph.In("x", m),
		graph.Out("y", m, graph.PortConfig{InPlace: "x"}), graph.Out("z", other, graph.PortConfig{InPlace: "x"}))
	g.Task("expr", graph.Expr[float32](nil), graph.In("x", m), graph.Out("y", m), graph.Out("z", m))
	g.Task("affinity", pass(), graph.In("x", m), graph.Out("y", m), graph.Require(devs[1]))
	g.Task("kernel", graph.Kernel("fn f(i: u32) { y[i] = x[i]; }", "f", nil), graph.In("x", m), graph.Out("y", m)) // the oracle compiles none
	g.Task("syntax", graph.Kernel("fn f(", "f", nil), graph.In("x", m), graph.Out("y", m))
	g.Task("missing", graph.Kernel("fn f(i: u32) { y[i] = x[i]; }", "g", nil), graph.In("x", m), graph.Out("y", m))
	g.Task("crunch", graph.Cruncher((*cruncher.Cruncher)(nil), 1, "f", nil, nil), graph.In("x", m))

	a := g.Task("a", pass(), graph.In("x", m), graph.Out("y", m))
	b := g.Task("b", pass(), graph.In("x", m), graph.Out("y", m))
	g.Connect(a.Port("y"), b.Port("x"))
	g.Connect(b.Port("y"), a.Port("x"))
	g.Connect(a.Port("y"), b.Port("x"))
	g.Connect(nil, nil)
	g.Connect(a.Port("x"), b.Port("y"))
	c := g.Task("c", graph.Host(func(*graph.Dispatch) error { return nil }), graph.In("x", other))
	g.Connect(a.Port("y"), c.Port("x"), graph.Channel{Capacity: 0})
	g.Input("nothing", nil)
	g.Output("nothing", nil)

	err := g.Finalize()
	for _, want := range []error{
		graph.ErrBound, graph.ErrTemplate, graph.ErrCycle, graph.ErrAffinity, graph.ErrName,
		gpu.ErrInvalid, kernel.ErrKernel,
	} {
		isError(t, err, want)
	}
	faults := each(err)
	if len(faults) < 50 {
		t.Errorf("%d faults:\n%v", len(faults), err)
	}
	isError(t, g.Run(t.Context()), graph.ErrCycle)
	check(t, g.Teardown())
	check(t, h.Teardown())
}

// A task that no device may run says of each device why.
func TestAffinityFaults(t *testing.T) {
	devs := open(t, "cpu", "cpu", "cpu")
	oracle := devs[0].Info().Driver + " " + devs[0].Info().Name
	source := "fn f(i: u32) { y[i] = x[i]; }"
	for _, c := range []struct {
		name string
		devs []*gpu.Device
		body graph.Body
		opts []graph.TaskOption
		want []string // in this order
	}{
		{"kernel", devs[:2], graph.Kernel(source, "f", nil), nil, []string{
			"device 0, " + oracle + ": does not compile WGSL; ", "device 1, " + oracle + ": does not compile WGSL",
		}},
		{"mandatory", devs[:2], graph.Kernel(source, "f", nil), []graph.TaskOption{graph.Require(devs[1])}, []string{
			"device 0, ", "WGSL; ", "device 1, ", "does not compile WGSL",
		}},
		{"foreign", devs[:2], pass(), []graph.TaskOption{graph.Prefer(devs[2])}, []string{
			"wants a device that is not the graph's: ", "device 0, " + oracle + "; ", "device 1, " + oracle,
		}},
		{"nil", nil, pass(), []graph.TaskOption{graph.WaitFor(nil)}, []string{"wants a device", "the graph has no devices"}},
		{"none", nil, pass(), nil, []string{"the graph has no devices"}},
	} {
		g := must[*graph.Graph](t)(graph.New(c.devs))
		m := g.Template("m", 2, 3, dtype.Float32)
		k := g.Task(c.name, c.body, append(c.opts, graph.In("x", m), graph.Out("y", m))...)
		g.Input("in", k.Port("x"))
		g.Output("out", k.Port("y"))
		err := g.Finalize()
		faults := each(err)
		if !errors.Is(err, graph.ErrAffinity) || len(faults) != 1 {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		text := err.Error()
		for _, want := range append([]string{c.name}, c.want...) {
			_, after, found := strings.Cut(text, want)
			if text = after; !found {
				t.Errorf("%s: %q lacks %q", c.name, err, want)
			}
		}
		check(t, g.Teardown())
	}
}

// A device that could run a kernel, and that the task may not use, says so.
func TestAffinityElsewhere(t *testing.T) {
	if _, ok := possible(wgsl); !ok {
		return // no such driver is linked
	}
	r := newRig(t, []string{wgsl, "cpu"})
	k := r.Task("k", graph.Kernel("fn f(i: u32) { y[i] = x[i]; }", "f", nil), graph.In("x", r.m), graph.Out("y", r.m),
		graph.Require(r.devs[1]))
	r.Input("in", k.Port("x"))
	r.Output("out", k.Port("y"))
	err := r.Finalize()
	isError(t, err, graph.ErrAffinity)
	for _, want := range []string{
		r.devs[0].Info().Name + ": the task's mandatory affinity is to another device", r.devs[1].Info().Name + ": does not compile WGSL",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}

// What only the ports' state makes wrong can be mended.
func TestMendedFaults(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", add(), graph.In("x", r.m), graph.Sticky("y", r.m), graph.Out("z", r.m))
		isError(r.t, r.Finalize(), graph.ErrBound)
		in := r.Input("x", k.Port("x"))
		isError(r.t, r.Finalize(), graph.ErrBound)
		out := r.Output("z", k.Port("z"))
		isError(r.t, r.Run(r.ctx), graph.ErrBound)
		b := r.full(1)
		isError(r.t, in.Push(r.ctx, b), graph.ErrState)
		check(r.t, k.Port("y").Set(b))
		check(r.t, r.Finalize())
		r.push(in, r.full(4)) // before Run
		check(r.t, r.Run(r.ctx))
		r.wants(out, 5)
		isError(r.t, r.Finalize(), graph.ErrState)
	})
}

// A task may push into the graph that it runs in, with its own context, and stop nothing.
func TestFromWithin(t *testing.T) {
	everywhere(t, func(r *rig) {
		l := r.Task("l", plus(1), graph.In("x", r.m), graph.Out("y", r.m))
		in, out := r.Input("lx", l.Port("x"), graph.Channel{Capacity: 1}), r.Output("ly", l.Port("y"))
		k := r.Task("k", graph.Host(func(d *graph.Dispatch) error {
			for i := float32(0); i < 4; i++ {
				b, err := graph.FromSlice(r.m, []float32{i, i, i, i, i, i})
				if err == nil {
					err = in.Push(d.Context(), b)
				}
				if err != nil {
					return err
				}
			}
			if err := r.Stop(d.Context()); !errors.Is(err, graph.ErrState) {
				return errors.New("a task stopped its graph")
			}
			return nil
		}), graph.In("x", r.m), graph.Out("y", r.m))
		kin, kout := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(r.t, r.Run(r.ctx))
		r.push(kin, r.full(1))
		r.wants(kout, 0)
		r.wants(out, 1, 2, 3, 4)
	})
}

// After a Teardown sticky and permanent blocks can be set again, and the graph runs. Those that no run came for are released.
func TestSetAfterTeardown(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", add(), graph.In("x", r.m), graph.Sticky("y", r.m), graph.Out("z", r.m))
		in, out := r.Input("x", k.Port("x")), r.Output("z", k.Port("z"))
		for i := float32(1); i < 4; i++ {
			check(r.t, k.Port("y").Set(r.full(10*i)))
			check(r.t, r.Run(r.ctx))
			r.push(in, r.full(i))
			r.wants(out, 11*i)
			check(r.t, r.Teardown())
			isError(r.t, r.Run(r.ctx), graph.ErrBound)
		}
		check(r.t, k.Port("y").Set(r.full(5)))
	})
}
