// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// kernelRigs runs a test on setups all of whose devices compile WGSL, in both ways of scheduling.
func kernelRigs(t *testing.T, test func(r *rig)) {
	t.Helper()
	for _, drivers := range [][]string{{wgsl}, {wgsl, wgsl}} {
		if _, ok := possible(drivers...); !ok {
			continue // no such driver is linked
		}
		for _, opts := range [][]option{nil, {deterministic(3)}} {
			test(newRig(t, drivers, opts...))
		}
	}
}

func (r *rig) kernels() (n int, compiled uint64) {
	for _, d := range r.devs {
		s := d.Stats()
		n += s.Kernels
		compiled += s.Compilations
	}
	return n, compiled
}

// A graph has its kernels compiled once, and holds them from one run to the next until it is torn down. Two tasks with the same
// text, and two graphs, do not take them from each other.
func TestKernelsGo(t *testing.T) {
	kernelRigs(t, func(r *rig) {
		last := r.devs[len(r.devs)-1]
		h := must[*graph.Graph](t)(graph.New([]*gpu.Device{last}))
		defer func() { check(t, h.Teardown()) }()
		body := graph.Kernel("fn f(i: u32) { y[i] = x[i] + 1.0; }", "f", nil)
		a := r.Task("a", body, graph.In("x", r.m), graph.Out("y", r.m), graph.Require(r.devs[0]))
		b := r.Task("b", body, graph.In("x", r.m), graph.Out("y", r.m), graph.Require(last))
		r.Connect(a.Port("y"), b.Port("x"))
		in, out := r.Input("x", a.Port("x")), r.Output("y", b.Port("y"))

		m := h.Template("m", 2, 3, dtype.Float32)
		c := h.Task("c", body, graph.In("x", m), graph.Out("y", m))
		cin, cout := h.Input("x", c.Port("x")), h.Output("y", c.Port("y"))
		check(t, h.Run(r.ctx))
		other := func() {
			t.Helper()
			check(t, cin.Push(r.ctx, must[*graph.Block](t)(graph.FromSlice(m, []float32{5, 5, 5, 5, 5, 5}))))
			r.wants(cout, 6)
		}
		other()
		n, compiled := r.kernels()
		if n != 1 {
			t.Fatalf("the other graph holds %d kernels", n)
		}
		for round := range 3 {
			for range 2 {
				check(t, r.Run(r.ctx))
				r.push(in, r.full(1))
				r.wants(out, 3)
				check(t, r.Stop(r.ctx))
				other()
				held, all := r.kernels()
				if fresh := (len(r.devs) - 1) * (round + 1); held != len(r.devs) || all != compiled+uint64(fresh) {
					t.Fatalf("round %d: %d kernels, %d compiled, %d before", round, held, all, compiled)
				}
			}
			check(t, r.Teardown())
			if n, _ := r.kernels(); n != 1 {
				t.Fatalf("round %d: %d kernels are left", round, n)
			}
			other()
		}
		check(t, h.Teardown())
		if n, _ := r.kernels(); n != 0 {
			t.Errorf("%d kernels are left", n)
		}
	})
}

// A task that is about to launch its kernel when the graph is torn down keeps it until it returns.
func TestKernelsGoLate(t *testing.T) {
	if _, ok := possible(wgsl); !ok {
		return // no such driver is linked
	}
	r := newRig(t, []string{wgsl})
	inside, leave := make(chan bool), make(chan bool)
	k := r.Task("k", graph.Kernel("fn f(i: u32) { y[i] = x[i] + 1.0; }", "f", func(*graph.Dispatch) [3]int {
		inside <- true
		<-leave
		return [3]int{6}
	}), graph.In("x", r.m), graph.Out("y", r.m))
	in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
	for range 2 {
		check(t, r.Run(r.ctx))
		r.push(in, r.full(1))
		<-inside
		isError(t, r.Teardown(), graph.ErrBusy)
		if n, _ := r.kernels(); n != 1 {
			t.Errorf("%d kernels while the task runs", n)
		}
		leave <- true
		for errors.Is(r.Teardown(), graph.ErrBusy) {
		}
		if n, _ := r.kernels(); n != 0 {
			t.Errorf("%d kernels are left", n)
		}
	}
	check(t, r.Run(r.ctx))
	r.push(in, r.full(1))
	<-inside
	leave <- true
	r.wants(out, 2)
}
