// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"errors"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// No method of anything panics or hangs, on nil, on what New did not make, and with arguments that are nothing.
func TestZeroValues(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, v := range []any{
		(*graph.Graph)(nil), (*graph.Task)(nil), &graph.Task{}, (*graph.Port)(nil), &graph.Port{},
		(*graph.Block)(nil), &graph.Block{}, (*graph.Template)(nil), &graph.Template{}, (*graph.Input)(nil), &graph.Input{},
		(*graph.Output)(nil), &graph.Output{}, (*graph.Dispatch)(nil), &graph.Dispatch{},
		graph.Predicate{},
		new(graph.Graph), // the last one: what is nothing must not be joined to it
	} {
		for _, ctx := range []context.Context{nil, over, t.Context()} {
			m := reflect.ValueOf(v)
			for i := range m.NumMethod() {
				name := reflect.TypeOf(v).Method(i).Name
				if slices.Contains([]string{"Look", "Notice", "Waiting", "WithoutTimer", "Phase", "Len", "Made"}, name) { // of export_test.go
					continue
				}
				name = reflect.TypeOf(v).String() + "." + name
				f := m.Method(i)
				var args []reflect.Value
				for in := range f.Type().Ins() {
					arg := reflect.New(in).Elem()
					if ctx != nil && in == reflect.TypeFor[context.Context]() {
						arg.Set(reflect.ValueOf(ctx))
					}
					args = append(args, arg)
				}
				func() {
					defer func() {
						if r := recover(); r != nil {
							t.Errorf("%s panics: %v", name, r)
						}
					}()
					if f.Type().IsVariadic() {
						f.CallSlice(args)
					} else {
						f.Call(args)
					}
				}()
			}
		}
	}
}

// Ports, tasks and channels that are mistakes can be used like any others, to no effect.
func TestMistakesAreHarmless(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	check(t, r.Run(r.ctx))
	late := r.Task("late", pass(), graph.Sticky("x", r.m), graph.Out("y", r.m)) // the graph is running
	b := r.full(1)
	isError(t, late.Port("x").Set(b), gpu.ErrInvalid)
	isError(t, late.Port("x").Set(b), gpu.ErrInvalid)
	b.Release()
	check(t, r.Stop(r.ctx))

	h := must[*graph.Graph](t)(graph.New(nil))
	m := h.Template("m", 1, 1, dtype.Uint32)
	k := h.Task("k", graph.Host(func(*graph.Dispatch) error { return nil }), graph.In("n", nil, graph.PortConfig{Iterates: true}), graph.In("l", &graph.Template{}, graph.PortConfig{Iterates: true}),
		graph.In("s", nil, graph.PortConfig{Sizes: "y"}), graph.In("x", m), graph.Out("y", m))
	h.Connect(k.Port("y"), &graph.Port{})
	h.Connect(&graph.Port{}, k.Port("x"))
	h.Reconsider()
	isError(t, h.Finalize(), graph.ErrTemplate)
	check(t, h.Teardown())
}

// An initialiser that nothing can ever open, and two that look at each other, are mistakes.
func TestInitialiserFaults(t *testing.T) {
	g := must[*graph.Graph](t)(graph.New(nil))
	m := g.Template("m", 1, 1, dtype.Uint32)
	k := g.Task("k", graph.Host(func(*graph.Dispatch) error { return nil }),
		graph.Init("x", m, graph.PortConfig{Of: "y", On: graph.BOF}), graph.Init("y", m, graph.PortConfig{Of: "x", On: graph.BOF}))
	check(t, graph.SetValues(k.Port("x"), uint32(1)))
	isError(t, g.Finalize(), gpu.ErrInvalid)
	check(t, g.Teardown())

	g = must[*graph.Graph](t)(graph.New(nil))
	m = g.Template("m", 1, 1, dtype.Uint32)
	g.Task("k", graph.Host(func(*graph.Dispatch) error { return nil }), graph.Init("x", m, graph.PortConfig{On: graph.BOF}))
	isError(t, g.Finalize(), gpu.ErrInvalid)
	check(t, g.Teardown())
}

// An initialiser can look at a sticky input's block.
func TestInitialiserAndSticky(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", add(), graph.Init("x", r.m, graph.PortConfig{Of: "y", On: graph.BOF}), graph.Sticky("y", r.m), graph.In("go", r.m), graph.Out("z", r.m))
		in, out := r.Input("go", k.Port("go")), r.Output("z", k.Port("z"))
		b := r.full(3)
		check(r.t, b.SetSignals(graph.BOF))
		check(r.t, k.Port("y").Set(b))
		check(r.t, r.Run(r.ctx))
		for range 3 {
			r.push(in, r.full(0))
			r.wants(out, 3)
		}
	})
}

// The context of tasks that a cancelled Stop left running ends with the graph, and not before.
func TestTeardownAfterCancelledStop(t *testing.T) {
	for _, single := range []bool{false, true} {
		opts := []option{}
		if single {
			opts = append(opts, deterministic(1))
		}
		r := newRig(t, []string{"cpu"}, opts...)
		began := make(chan context.Context, 1)
		k := r.Task("polite", graph.Func(func(d *graph.Dispatch) error {
			began <- d.Context()
			<-d.Context().Done()
			return d.Context().Err()
		}), graph.In("x", r.m), graph.Out("y", r.m))
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(t, r.Run(r.ctx))
		r.push(in, r.full(1))
		if single {
			go func() { _, _ = out.Pull(r.ctx) }() // runs the task
		}
		task := <-began
		ctx, cancel := context.WithCancel(r.ctx)
		cancel()
		isError(t, r.Stop(ctx), context.Canceled)
		check(t, task.Err())
		check(t, r.Teardown())
		isError(t, task.Err(), context.Canceled)
	}
}

// Who waits in Stop learns of Teardown.
func TestTeardownOfStop(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	began := make(chan bool)
	k := r.Task("k", graph.Host(func(d *graph.Dispatch) error {
		began <- true
		<-d.Context().Done()
		return nil
	}), graph.In("x", r.m), graph.Out("y", r.m))
	in := r.Input("x", k.Port("x"))
	r.Output("y", k.Port("y"))
	check(t, r.Run(r.ctx))
	r.push(in, r.full(1))
	<-began
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- r.Stop(context.Background()) }()
	}
	for r.Phase() != "QUIESCING" {
		runtime.Gosched()
	}
	check(t, r.Teardown())
	for range 2 {
		if err := <-errs; !errors.Is(err, graph.ErrTornDown) && !errors.Is(err, graph.ErrState) {
			t.Error(err)
		}
	}
}

// The structure stays as it is while a task runs that Stop left behind.
func TestBuildBesideTasks(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	began, end := make(chan bool), make(chan bool)
	k := r.Task("k", graph.Host(func(*graph.Dispatch) error { began <- true; <-end; return nil }), graph.In("x", r.m), graph.Out("y", r.m))
	in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
	check(t, r.Run(r.ctx))
	r.push(in, r.full(1))
	<-began
	ctx, cancel := context.WithCancel(r.ctx)
	cancel()
	isError(t, r.Stop(ctx), context.Canceled)
	r.Output("another", k.Port("y"))
	isError(t, r.Finalize(), graph.ErrState)
	close(end)
	for out.Len() == 0 { // what it makes arrives
		runtime.Gosched()
	}
	r.wants(out, 0)
}

// Teardown returns within a second, whatever functions of the program's do when blocks are released, or devices that are at work.
func TestTeardownOfTheSlow(t *testing.T) {
	go1 := make(chan bool)
	r := newRig(t, []string{"cpu"})
	slow := r.Template("slow", 2, 3, dtype.Float32, graph.Format{Create: func(*graph.Block) any { return 1 }, Destroy: func(any) { <-go1 }})
	k := r.Task("k", graph.Host(func(*graph.Dispatch) error { return nil }), graph.In("x", slow), graph.In("never", r.m))
	in := r.Input("x", k.Port("x"))
	r.Input("never", k.Port("never"))
	check(t, r.Run(r.ctx))
	b := must[*graph.Block](t)(slow.New())
	r.push(in, b)
	r.push(in, must[*graph.Block](t)(slow.Wrap(make([]byte, 24), func() { panic("mine") })))
	begin := time.Now()
	isError(t, r.Teardown(), graph.ErrBusy)
	if took := time.Since(begin); took > hang {
		t.Errorf("%v", took)
	}
	close(go1)
	check(t, r.Teardown())

	r = newRig(t, []string{"cpu"})
	stuck, end := make(chan bool), make(chan bool)
	kernel := must[*gpu.Kernel](t)(r.devs[0].Kernel(r.ctx, gpu.KernelDesc{
		Source: "@compute @workgroup_size(1) fn main() {}", Reference: func([3]uint32, []byte, [][]byte) { stuck <- true; <-end },
	}))
	k = r.Task("k", graph.Func(func(d *graph.Dispatch) error {
		if err := kernel.Dispatch([3]uint32{1, 1, 1}, nil); err != nil {
			return err
		}
		if _, err := graph.Matrix[float32](d, "y"); err != nil {
			return err
		}
		return d.Device().Sync(d.Context())
	}), graph.In("x", r.m), graph.Out("y", r.m))
	in = r.Input("x", k.Port("x"))
	r.Output("y", k.Port("y"))
	check(t, r.Run(r.ctx))
	r.push(in, r.full(1))
	<-stuck
	begin = time.Now()
	check(t, r.Teardown())
	if took := time.Since(begin); took > hang {
		t.Errorf("%v", took)
	}
	close(end)
}

// 5.2: a task of the lowest priority has its turn among others of the highest that are always ready.
func TestNoStarvation(t *testing.T) {
	for _, mode := range []graph.Mode{graph.FirstAvailable, graph.PriorityFirst, graph.DataAware, graph.FIFO} {
		for _, single := range []bool{false, true} {
			var now atomic.Int64
			opts := []option{withMode(mode), graph.WithClock(func() time.Duration { return time.Duration(now.Add(int64(time.Millisecond))) })}
			if single {
				opts = append(opts, deterministic(5))
			}
			r := newRig(t, []string{"cpu"}, opts...)
			const most = 1000
			runs, ran := 0, false
			ctx, cancel := context.WithCancel(r.ctx)
			defer cancel()
			for _, n := range []string{"a", "b", "c"} { // sources without end
				high := r.Task(n, graph.Func(func(*graph.Dispatch) error {
					if runs++; ran || runs >= most {
						cancel()
					}
					return nil
				}), graph.Init("x", r.word), graph.Out("y", r.word, graph.PortConfig{Optional: true}), graph.Priority(10))
				_ = high
			}
			low := r.Task("low", graph.Func(func(*graph.Dispatch) error { ran = true; return nil }), graph.In("x", r.word), graph.Priority(0))
			in := r.Input("low", low.Port("x"))
			check(t, r.Finalize())
			check(t, in.Push(r.ctx, r.scalar(0)))
			check(t, r.Run(ctx))
			<-ctx.Done()
			check(t, r.Teardown())
			if !ran {
				t.Errorf("%v: it starved through %d dispatches", mode, runs)
			}
		}
	}
}

// Tasks may write one block that they share, if that is what they were told.
func TestSharedWriters(t *testing.T) {
	r := newRig(t, []string{"cpu", "cpu"})
	tee := r.Task("tee", graph.Host(func(*graph.Dispatch) error { return nil }), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x", SuppressClones: true}))
	in := r.Input("x", tee.Port("x"))
	var outs []*graph.Output
	for _, n := range []string{"a", "b", "c"} {
		k := r.Task(n, graph.Host(func(*graph.Dispatch) error { return nil }), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x", SuppressClones: true}))
		r.Connect(tee.Port("y"), k.Port("x"))
		outs = append(outs, r.Output(n, k.Port("y")))
	}
	check(t, r.Run(r.ctx))
	for range 50 {
		b := r.full(1)
		r.push(in, b)
		for _, o := range outs {
			got := must[*graph.Block](t)(o.Pull(r.ctx))
			if got != b {
				t.Error("a clone")
			}
			got.Release()
		}
	}
}

// A block that neither the host nor a device can hold is an error when it is used, and not the end of the program.
func TestHugeBlocks(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	huge := r.Template("huge", 1<<20, 1<<22, dtype.Float32)
	bytes := r.Template("bytes", 1<<45, 1, dtype.Uint8)
	for _, b := range []*graph.Block{must[*graph.Block](t)(huge.New()), must[*graph.Block](t)(bytes.New())} {
		isError(t, b.View(r.ctx, func([]byte) error { return nil }), gpu.ErrNoMemory)
		_, err := b.On(r.ctx, r.devs[0], buffer.Reads)
		isError(t, err, gpu.ErrLimit)
		b.Release()
	}
	b := must[*graph.Block](t)(huge.New())
	_, err := graph.Values[float32](r.ctx, b)
	isError(t, err, gpu.ErrNoMemory)
	b.Release()
}

// A context that has ended keeps Push and Pull from waiting and from nothing else.
func TestEndedContexts(t *testing.T) {
	everywhere(t, func(r *rig) {
		in, out := r.chain(1, graph.Channel{Capacity: 1})
		ended, cancel := context.WithCancel(r.ctx)
		cancel()
		check(r.t, r.Run(r.ctx))
		for range 50 {
			check(r.t, in.Push(ended, r.full(1)))
			r.wants(out, 2)
			_, err := out.Pull(ended)
			isError(r.t, err, context.Canceled)
		}
	})
}

// Building from several goroutines binds each port once.
func TestBuildAtOnce(t *testing.T) {
	g := must[*graph.Graph](t)(graph.New(open(t, "cpu")))
	m := g.Template("m", 1, 1, dtype.Float32)
	sink := g.Task("sink", pass(), graph.In("x", m), graph.Out("y", m))
	g.Output("y", sink.Port("y"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			k := g.Task("k"+string(rune('0'+i)), pass(), graph.In("x", m), graph.Out("y", m))
			g.Input("x", k.Port("x"))
			g.Connect(k.Port("y"), sink.Port("x"))
			_ = g.WriteDOT(io.Discard)
		})
	}
	wg.Wait()
	faults := each(g.Finalize())
	bound := 0
	for _, err := range faults {
		if fault.Code(err) == "ErrBound" && strings.HasSuffix(err.Error(), "already") {
			bound++
		}
	}
	if bound != 7 {
		t.Errorf("%d of 8 ports were refused:\n%v", bound, faults)
	}
	check(t, g.Teardown())
}

// A device's buffer of a block is the one that was made there, for as long as the block is held.
func TestBuffersStay(t *testing.T) {
	everywhere(t, func(r *rig) {
		b := r.full(1)
		first := must[*buffer.Buffer](r.t)(b.On(r.ctx, r.devs[0], buffer.Reads))
		check(r.t, b.Update(r.ctx, func([]byte) error { return nil }))
		if must[*buffer.Buffer](r.t)(b.On(r.ctx, r.devs[0], buffer.Replaces)) != first {
			r.t.Error("another buffer")
		}
		b.Release()
	})
}
