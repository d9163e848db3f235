// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

var check = devtest.Check

func must[T any](t testing.TB) func(T, error) T { return devtest.Must[T](t) }

func isError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

// option changes the configuration of a graph under test.
type option = func(*graph.Config)

func withMode(m graph.Mode) option { return func(c *graph.Config) { c.Mode = m } }

func withThreshold(n int) option { return func(c *graph.Config) { c.Threshold = n } }

func withTrace(n int) option { return func(c *graph.Config) { c.Trace = n } }

func withSync(c *graph.Config) { c.Sync = true }

func deterministic(seed uint64) option {
	return func(c *graph.Config) { c.Deterministic, c.Seed = true, seed }
}

// setup is what a test runs on.
type setup struct {
	name    string
	drivers []string
	single  bool
}

// setups are one device, two of one adapter, two of two drivers, and the deterministic mode.
var setups = []setup{
	{"one", []string{"cpu"}, false},
	{"two", []string{"cpu", "cpu"}, false},
	{"adapters", []string{wgsl, "cpu"}, false},
	{"gpus", []string{wgsl, wgsl}, false},
	{"deterministic", []string{"cpu", "cpu"}, true},
}

// wgsl stands for the driver whose devices compile WGSL.
const wgsl = "wgsl"

var linked = devtest.Drivers

// possible returns the names of drivers, and whether all are there.
func possible(drivers ...string) (names []string, ok bool) {
	ok = true
	for _, name := range drivers {
		if i := slices.IndexFunc(linked(), func(n string) bool { return n != "cpu" }); name == wgsl && i >= 0 {
			name = linked()[i]
		}
		names = append(names, name)
		ok = ok && slices.Contains(linked(), name)
	}
	return names, ok
}

func open(t testing.TB, drivers ...string) []*gpu.Device {
	t.Helper()
	var list []*gpu.Device
	names, _ := possible(drivers...)
	for _, name := range names {
		d := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver(name)))
		t.Cleanup(func() { _ = d.Close() })
		list = append(list, d)
	}
	return list
}

// rig is a graph under test. At the end it is torn down, and no block, buffer or goroutine may be left.
type rig struct {
	t *testing.T
	*graph.Graph
	devs []*gpu.Device
	ctx  context.Context
	m    *graph.Template // 2x3 float32
	word *graph.Template // 1x1 uint32
}

func newRig(t *testing.T, drivers []string, opts ...option) *rig {
	t.Helper()
	devs := open(t, drivers...)
	before := make([]int, len(devs))
	for i, d := range devs {
		before[i] = d.Stats().Buffers
	}
	goroutines := runtime.NumGoroutine()
	var c graph.Config
	for _, o := range opts {
		o(&c)
	}
	g := must[*graph.Graph](t)(graph.New(devs, c))
	r := &rig{t: t, Graph: g, devs: devs, ctx: t.Context()}
	r.m = g.Template("m", 2, 3, dtype.Float32)
	r.word = g.Template("word", 1, 1, dtype.Uint32)
	t.Cleanup(func() {
		check(t, g.Teardown())
		if n := g.Stats().Blocks; n != 0 {
			t.Errorf("%d blocks are left", n)
		}
		for i, d := range devs {
			if n := d.Stats().Buffers - before[i]; n != 0 && d.Usable() == nil {
				t.Errorf("%d buffers are left on device %d", n, i)
			}
		}
		settled(t, goroutines)
	})
	return r
}

// settled fails if goroutines stay.
func settled(t testing.TB, most int) {
	t.Helper()
	if runtime.GOOS == "js" {
		most++ // the runtime's own, for events
	}
	for range 500 {
		if runtime.NumGoroutine() <= most {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, there were %d:\n%s", runtime.NumGoroutine(), most, buf[:runtime.Stack(buf, true)])
}

// everywhere runs a test on all setups.
func everywhere(t *testing.T, test func(r *rig), opts ...option) {
	t.Helper()
	for _, s := range setups {
		if _, ok := possible(s.drivers...); !ok {
			continue // no such driver is linked
		}
		t.Run(s.name, func(t *testing.T) {
			all := opts
			if s.single {
				all = append(all, deterministic(7))
			}
			test(newRig(t, s.drivers, all...))
		})
	}
}

func (r *rig) block(values ...float32) *graph.Block {
	r.t.Helper()
	return must[*graph.Block](r.t)(graph.FromSlice(r.m, values))
}

// full is a block with the same number everywhere.
func (r *rig) full(v float32) *graph.Block { return r.block(v, v, v, v, v, v) }

func (r *rig) scalar(v uint32) *graph.Block {
	r.t.Helper()
	return must[*graph.Block](r.t)(graph.FromSlice(r.word, []uint32{v}))
}

func (r *rig) push(in *graph.Input, b *graph.Block, s ...graph.Signals) {
	r.t.Helper()
	for _, s := range s {
		check(r.t, b.SetSignals(s))
	}
	check(r.t, in.Push(r.ctx, b))
}

// pull takes a block out that is to be read and returns its first element and its signals.
func (r *rig) pull(out *graph.Output) (float32, graph.Signals) {
	r.t.Helper()
	b := must[*graph.Block](r.t)(out.Pull(r.ctx))
	defer b.Release()
	v := must[[]float32](r.t)(graph.Values[float32](r.ctx, b))
	for _, x := range v {
		if x != v[0] {
			r.t.Fatalf("%v", v)
		}
	}
	return v[0], b.Signals()
}

// wants pulls values.
func (r *rig) wants(out *graph.Output, values ...float32) {
	r.t.Helper()
	for i, want := range values {
		if v, _ := r.pull(out); v != want {
			r.t.Fatalf("block %d is %v, want %v", i, v, want)
		}
	}
}

// fails pulls a block that stands for an error.
func (r *rig) fails(out *graph.Output, want error) {
	r.t.Helper()
	b := must[*graph.Block](r.t)(out.Pull(r.ctx))
	defer b.Release()
	isError(r.t, b.Err(), want)
	if b.Signals()&graph.Failed == 0 {
		r.t.Errorf("signals %v", b.Signals())
	}
	isError(r.t, b.View(r.ctx, func([]byte) error { return nil }), want)
}

func (r *rig) none(out *graph.Output) {
	r.t.Helper()
	if n := out.Len(); n != 0 {
		r.t.Errorf("%d blocks are left", n)
	}
}

// plus adds a number.
func plus(v float32) graph.Body {
	return graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] {
		return matrix.AddScalar(in("x"), v)
	})
}

// pass copies.
func pass() graph.Body {
	return graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] { return in("x") })
}

func add() graph.Body {
	return graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] { return matrix.Add(in("x"), in("y")) })
}

// signals returns those of a port's block.
func signals(d *graph.Dispatch, port string) graph.Signals {
	b, _ := d.Block(port)
	return b.Signals()
}
