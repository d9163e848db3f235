// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// line is a graph on devices on which things go wrong: two tasks one after the other, the second in place, and one that adds both
// results.
type line struct {
	*graph.Graph
	devices []*gpu.Device
	faulty  []*devtest.Faulty
	m       *graph.Template
	in      *graph.Input
	out     *graph.Output
}

func newLine(t *testing.T, devices int, opts ...option) *line {
	l := &line{}
	for range devices {
		d, f := devtest.OpenFaulty(t, devtest.Oracle(t), nil)
		l.devices, l.faulty = append(l.devices, d), append(l.faulty, f)
	}
	var c graph.Config
	for _, o := range opts {
		o(&c)
	}
	l.Graph = must[*graph.Graph](t)(graph.New(l.devices, c))
	l.m = l.Template("m", 2, 3, dtype.Float32)
	double := graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] { return matrix.Scale(2, in("x")) })
	a := l.Task("a", plus(1), graph.In("x", l.m), graph.Out("y", l.m))
	b := l.Task("b", double, graph.In("x", l.m), graph.Out("y", l.m, graph.PortConfig{InPlace: "x"}))
	sum := l.Task("sum", add(), graph.In("x", l.m), graph.In("y", l.m), graph.Out("z", l.m))
	l.in = l.Input("x", a.Port("x"))
	l.Connect(a.Port("y"), b.Port("x"))
	l.Connect(a.Port("y"), sum.Port("x"))
	l.Connect(b.Port("y"), sum.Port("y"))
	l.out = l.Output("y", sum.Port("z"))
	check(t, l.Run(t.Context()))
	return l
}

// stream sends blocks through the graph. Each comes out with the right numbers, or with an error that says what went wrong.
func (l *line) stream(t *testing.T, what string, n int, typed error) (failed int) {
	t.Helper()
	for i := range n {
		v := float32(i)
		b := must[*graph.Block](t)(graph.FromSlice(l.m, []float32{v, v, v, v, v, v}))
		check(t, l.in.Push(t.Context(), b))
	}
	for i := range n {
		b := must[*graph.Block](t)(l.out.Pull(t.Context()))
		v, err := graph.Values[float32](t.Context(), b)
		b.Release()
		switch {
		case err == nil && v[0] != 3*float32(i+1):
			t.Fatalf("%s: block %d is %v", what, i, v)
		case err != nil && (typed == nil || !errors.Is(err, typed)):
			t.Fatalf("%s: block %d: %v", what, i, err)
		case err != nil:
			failed++
		}
	}
	return failed
}

// end wants nothing to be left.
func (l *line) end(t *testing.T, what string, typed error) {
	t.Helper()
	if err := l.Teardown(); err != nil && !errors.Is(err, typed) {
		t.Fatalf("%s: %v", what, err)
	}
	if n := l.Stats().Blocks; n != 0 {
		t.Fatalf("%s: %d blocks are left", what, n)
	}
	for i, d := range l.devices {
		if st := d.Stats(); d.Usable() == nil && (st.Buffers != 0 || st.LiveBytes != 0) {
			t.Fatalf("%s: device %d has %d buffers and %d bytes", what, i, st.Buffers, st.LiveBytes)
		}
		_ = d.Close() // fails where it is lost with work queued
	}
}

// reopen brings back the devices that are lost.
func (l *line) reopen(t *testing.T) {
	t.Helper()
	for i, f := range l.faulty {
		if f.Arm(nil); f.IsLost() {
			l.faulty[i] = devtest.NewFaulty(devtest.Oracle(t), nil)
			check(t, l.devices[i].Reopen(t.Context(), gpu.WithDevice(l.faulty[i])))
		}
	}
}

const lineBlocks = 4

// TestEveryFault has devices lost, and memory short, at every call of the drivers of a graph's devices. The others do the work; what only
// the lost device had is an error, and so is what there was no memory for. Afterwards the graph goes on with all devices.
func TestEveryFault(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 30, 80)
	devtest.AtLeast(t, devtest.NoMemory, 12, 30)
	for _, c := range []struct {
		fault devtest.Fault
		typed error
	}{{devtest.Lose, gpu.ErrDeviceLost}, {devtest.LoseAfter, gpu.ErrDeviceLost}, {devtest.NoMemory, gpu.ErrNoMemory}} {
		for name, opts := range map[string][]option{"concurrent": nil, "deterministic": {deterministic(5)}, "data": {withMode(graph.DataAware)}} {
			t.Run(fmt.Sprint(name, c.fault), func(t *testing.T) { everyFault(t, c.fault, c.typed, opts) })
		}
	}
}

func everyFault(t *testing.T, fault devtest.Fault, typed error, opts []option) {
	goroutines := runtime.NumGoroutine()
	const devices = 3
	clean := newLine(t, devices, opts...)
	clean.stream(t, "without a fault", lineBlocks, nil)
	calls := 0
	for _, f := range clean.faulty {
		calls = max(calls, f.Calls())
	}
	clean.end(t, "without a fault", nil)
	rng := rand.New(rand.NewPCG(9, uint64(calls)))
	fired, failed := 0, 0
	for victim := range devices {
		for at := range calls {
			if !devtest.Long() && rng.IntN(calls) > 5 {
				continue
			}
			what := fmt.Sprintf("device %d, call %d, fault %d", victim, at, fault)
			stop := devtest.Watch(func() string { return what })
			l := newLine(t, devices, opts...)
			l.faulty[victim].Arm(devtest.At(at, fault))
			failed += l.stream(t, what, lineBlocks, typed)
			fired += l.faulty[victim].Fired(fault)
			l.reopen(t)
			l.stream(t, what+", afterwards", lineBlocks, nil)
			l.end(t, what, typed)
			stop()
		}
	}
	devtest.Settled(t, goroutines)
	t.Logf("%d faults, and %d of %d blocks failed", fired, failed, fired*lineBlocks)
}
