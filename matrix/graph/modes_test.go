// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// journal notes which tasks ran, and where.
type journal struct {
	mu    sync.Mutex
	list  []string
	where []*gpu.Device
}

func (j *journal) note(d *graph.Dispatch) {
	j.mu.Lock()
	j.list = append(j.list, d.Name())
	j.where = append(j.where, d.Device())
	j.mu.Unlock()
}

// gated is a graph with one task that holds its device until it is told to go on, and others that are noted.
type gated struct {
	*rig
	journal
	began, end chan bool
	hold       *graph.Input
	outs       []*graph.Output
}

func newGated(r *rig, opts ...graph.TaskOption) *gated {
	g := &gated{rig: r, began: make(chan bool), end: make(chan bool)}
	k := r.Task("hold", graph.Func(func(*graph.Dispatch) error {
		g.began <- true
		<-g.end
		return nil
	}), append(opts, graph.In("x", r.m), graph.Out("y", r.m))...)
	g.hold = r.Input("hold", k.Port("x"), graph.Channel{Capacity: 100})
	g.outs = append(g.outs, r.Output("hold", k.Port("y"), graph.Channel{Capacity: 100}))
	return g
}

func (g *gated) noted(name string, opts ...graph.TaskOption) *graph.Input {
	k := g.Task(name, graph.Func(func(d *graph.Dispatch) error { g.note(d); return nil }),
		append(opts, graph.In("x", g.m), graph.Out("y", g.m))...)
	g.outs = append(g.outs, g.Output(name, k.Port("y"), graph.Channel{Capacity: 100}))
	return g.Input(name, k.Port("x"), graph.Channel{Capacity: 100})
}

func (g *gated) drain() {
	check(g.t, g.Stop(g.ctx))
}

// 5.2 modes: priorities decide in PriorityFirst and DataAware, the order of becoming ready in FIFO and FirstAvailable.
func TestOrder(t *testing.T) {
	for mode, want := range map[graph.Mode]string{
		graph.FirstAvailable: "low middle high low2", graph.FIFO: "low middle high low2",
		graph.PriorityFirst: "high middle low low2", graph.DataAware: "high middle low low2",
	} {
		t.Run(graph.ModeNames[mode], func(t *testing.T) {
			r := newRig(t, []string{"cpu"}, withMode(mode), graph.WithClock(func() time.Duration { return 0 }))
			g := newGated(r)
			ins := []*graph.Input{
				g.noted("low", graph.Priority(0)), g.noted("middle", graph.Priority(4)), g.noted("high", graph.Priority(9)), g.noted("low2", graph.Priority(0)),
			}
			check(t, r.Run(r.ctx))
			r.push(g.hold, r.full(0))
			<-g.began
			for _, in := range ins {
				r.push(in, r.full(1))
			}
			g.end <- true
			g.drain()
			if got := strings.Join(g.list, " "); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// 5.2 effective priority: a task that waits longer than others gets ahead of those that are more important.
func TestAgeing(t *testing.T) {
	var now atomic.Int64
	r := newRig(t, []string{"cpu"}, withMode(graph.PriorityFirst), graph.WithClock(func() time.Duration { return time.Duration(now.Load()) }))
	g := newGated(r)
	old, young := g.noted("old", graph.Priority(0)), g.noted("young", graph.Priority(9))
	check(t, r.Run(r.ctx))
	r.push(g.hold, r.full(0))
	<-g.began
	r.push(old, r.full(1))
	now.Add(int64(time.Second))
	r.push(young, r.full(1))
	g.end <- true
	g.drain()
	if got := strings.Join(g.list, " "); got != "old young" {
		t.Error(got)
	}
}

// The time for which a graph was stopped is no time that its tasks waited: it does not slow ageing down.
func TestAgeingAfterStop(t *testing.T) {
	var now atomic.Int64
	r := newRig(t, []string{"cpu", "cpu"}, graph.WithClock(func() time.Duration { return time.Duration(now.Load()) }))
	g := newGated(r, graph.Require(r.devs[1]))
	in, early := g.noted("task", graph.WaitFor(r.devs[1])), g.noted("early")
	r.WithoutTimer()
	check(t, r.Finalize())
	r.push(early, r.full(1))
	now.Add(int64(time.Hour))
	check(t, r.Run(r.ctx))
	_, _ = r.pull(g.outs[2])
	r.push(g.hold, r.full(0))
	<-g.began
	r.push(in, r.full(1))
	now.Add(int64(time.Second))
	for r.Look(); r.Waiting() != 0 && r.Stats().Tasks[1].Dispatches == 0 && now.Load() < int64(time.Hour+time.Minute); r.Look() {
		now.Add(int64(time.Second)) // in a page the scheduler may be at rest
		time.Sleep(time.Millisecond)
	}
	g.end <- true
	_, _ = r.pull(g.outs[1])
	g.drain()
	if g.where[1] != r.devs[0] {
		t.Error("it waited for a device that was busy for a minute")
	}
}

// 5.2 effective priority: a task that runs longer than others comes after its equals.
func TestLongRunners(t *testing.T) {
	var now atomic.Int64
	r := newRig(t, []string{"cpu"}, withMode(graph.PriorityFirst), graph.WithClock(func() time.Duration { return time.Duration(now.Load()) }))
	g := newGated(r)
	k := r.Task("long", graph.Func(func(d *graph.Dispatch) error {
		g.note(d)
		now.Add(int64(time.Second))
		return nil
	}), graph.In("x", r.m), graph.Out("y", r.m))
	long, done := r.Input("long", k.Port("x")), r.Output("long", k.Port("y"))
	short := g.noted("short")
	check(t, r.Run(r.ctx))
	ask := func() string { // who is first, if the long one became ready before
		t.Helper()
		g.list = nil
		r.push(g.hold, r.full(0))
		<-g.began
		r.push(long, r.full(1))
		r.push(short, r.full(1))
		g.end <- true
		_, _ = r.pull(done)
		_, _ = r.pull(g.outs[1])
		return g.list[0]
	}
	if got := ask(); got != "long" {
		t.Errorf("%s is first before anything ran", got)
	}
	for range 10 {
		r.push(short, r.full(1))
		_, _ = r.pull(g.outs[1])
	}
	if got := ask(); got != "short" {
		t.Errorf("%s is first", got)
	}
	g.drain()
}

// 5.2 data-aware: where no device has anything of its inputs, a task runs on the strongest one that is free.
func TestStrongest(t *testing.T) {
	if _, ok := possible(wgsl); !ok {
		return
	}
	for _, mode := range []graph.Mode{graph.FirstAvailable, graph.PriorityFirst, graph.DataAware, graph.FIFO} {
		r := newRig(t, []string{"cpu", wgsl}, withMode(mode))
		g := newGated(r, graph.Require(r.devs[1]))
		in := g.noted("task")
		check(t, r.Run(r.ctx))
		r.push(in, r.full(1))
		_, _ = r.pull(g.outs[1])
		r.push(g.hold, r.full(0))
		<-g.began
		r.push(in, r.full(1))
		_, _ = r.pull(g.outs[1])
		g.end <- true
		g.drain()
		if g.where[0] != r.devs[1] || g.where[1] != r.devs[0] {
			t.Errorf("%v: it ran elsewhere", mode)
		}
	}
}

// 5.2 data-aware: a task goes where its inputs are. If that device is busy it waits for it, and goes elsewhere when its
// effective priority is above the threshold: at once for an important one, after a while for others.
func TestDataAware(t *testing.T) {
	for _, c := range []struct {
		name     string
		priority int
		opts     []option
		ages     time.Duration
		elsewhere,
		later bool
	}{
		{"waits", 5, nil, 0, false, false},
		{"important", 8, nil, 0, true, false},
		{"aged", 5, nil, time.Hour, false, true},
		{"never", 9, []option{withThreshold(10)}, time.Hour, false, false},
		{"another mode", 5, []option{withMode(graph.PriorityFirst)}, 0, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var now atomic.Int64
			clock := graph.WithClock(func() time.Duration { return time.Duration(now.Load()) })
			r := newRig(t, []string{"cpu", "cpu"}, append(c.opts, clock)...)
			g := newGated(r, graph.Require(r.devs[1]))
			in := g.noted("task", graph.Priority(c.priority))
			r.WithoutTimer()
			check(t, r.Run(r.ctx))
			local := func(dev *gpu.Device) *graph.Block {
				b := r.full(1)
				must[*buffer.Buffer](t)(b.On(r.ctx, dev, buffer.Writes))
				if s := b.State(dev); s != "EXCLUSIVE" {
					t.Fatal(s)
				}
				return b
			}
			if c.name != "another mode" {
				for _, dev := range []int{1, 0, 1, 1, 0} { // to where the block is
					r.push(in, local(r.devs[dev]))
					_, _ = r.pull(g.outs[1])
					if n := len(g.where); g.where[n-1] != r.devs[dev] {
						t.Fatalf("dispatch %d ran elsewhere", n)
					}
				}
			}
			r.push(g.hold, r.full(0))
			<-g.began
			before := len(g.where)
			r.push(in, local(r.devs[1]))
			if !c.elsewhere {
				if r.Waiting() != 1 {
					t.Error("it does not wait")
				}
				now.Add(int64(c.ages))
				r.Look()
			}
			if moved := c.elsewhere || c.later; moved {
				_, _ = r.pull(g.outs[1])
				if g.where[before] != r.devs[0] {
					t.Error("it did not go elsewhere")
				}
			} else if r.Waiting() != 1 {
				t.Error("it does not wait any more")
			}
			g.end <- true
			g.drain()
			if want := map[bool]int{true: 0, false: 1}[c.elsewhere || c.later]; g.where[before] != r.devs[want] {
				t.Error("it ran on the wrong device")
			}
		})
	}
}

// A timer looks again when a task has waited for its device for long enough: nothing else needs to happen.
func TestReminder(t *testing.T) {
	r := newRig(t, []string{"cpu", "cpu"})
	g := newGated(r, graph.Require(r.devs[1]))
	in := g.noted("task", graph.WaitFor(r.devs[1]))
	check(t, r.Run(r.ctx))
	r.push(g.hold, r.full(0))
	<-g.began
	r.push(in, r.full(1))
	_, _ = r.pull(g.outs[1]) // waits until the timer has given it to the other device
	if g.where[0] != r.devs[0] {
		t.Error("it ran on a device that is busy")
	}
	g.end <- true
	g.drain()
}

// 5.1 affinity: weak is a preference between free devices, strong waits, mandatory does for ever.
func TestAffinity(t *testing.T) {
	for _, mode := range []graph.Mode{graph.FirstAvailable, graph.PriorityFirst, graph.DataAware, graph.FIFO} {
		for a, affinity := range []func(*gpu.Device) graph.TaskOption{graph.Prefer, graph.WaitFor, graph.Require} {
			waits := a > 0
			r := newRig(t, []string{"cpu", "cpu"}, withMode(mode), graph.WithClock(func() time.Duration { return 0 }))
			g := newGated(r, graph.Require(r.devs[1]))
			in := g.noted("task", affinity(r.devs[1]))
			r.WithoutTimer()
			check(t, r.Run(r.ctx))
			r.push(in, r.full(1))
			_, _ = r.pull(g.outs[1])
			if g.where[0] != r.devs[1] {
				t.Errorf("%v, %v: not on the device that it prefers", mode, a)
			}
			r.push(g.hold, r.full(0))
			<-g.began
			r.push(in, r.full(1))
			if waits {
				if r.Waiting() != 1 {
					t.Errorf("%v, %v: does not wait", mode, a)
				}
			} else {
				_, _ = r.pull(g.outs[1])
			}
			g.end <- true
			g.drain()
			if want := map[bool]int{true: 1, false: 0}[waits]; g.where[1] != r.devs[want] {
				t.Errorf("%v, %v: on the wrong device", mode, a)
			}
		}
	}
}

// FIFO: no task overtakes one that waits for the same device; one for another device does.
func TestFIFOWaits(t *testing.T) {
	r := newRig(t, []string{"cpu", "cpu"}, withMode(graph.FIFO))
	g := newGated(r, graph.Require(r.devs[1]))
	first := g.noted("first", graph.Require(r.devs[1]))
	second := g.noted("second", graph.Require(r.devs[1]))
	free := g.noted("free", graph.Require(r.devs[0]))
	check(t, r.Run(r.ctx))
	r.push(g.hold, r.full(0))
	<-g.began
	r.push(first, r.full(1))
	r.push(second, r.full(1))
	r.push(free, r.full(1))
	_, _ = r.pull(g.outs[3])
	g.end <- true
	g.drain()
	if got := strings.Join(g.list, " "); got != "free first second" {
		t.Error(got)
	}
}

// A task whose data moves while it waits holds up none of those that waited for the same devices.
func TestDataMoves(t *testing.T) {
	r := newRig(t, []string{"cpu", "cpu"}, withThreshold(10))
	began, end := make(chan bool), [2]chan bool{make(chan bool), make(chan bool)}
	var ins [4][2]*graph.Input
	var outs [4]*graph.Output
	for i, name := range []string{"hold 0", "hold 1", "moved", "other"} {
		body, opts := graph.Func(func(*graph.Dispatch) error { return nil }), []graph.TaskOption{graph.In("x", r.m), graph.In("y", r.m), graph.Out("z", r.m)}
		if i < len(r.devs) {
			body = graph.Func(func(*graph.Dispatch) error {
				began <- true
				<-end[i]
				return nil
			})
			opts = append(opts, graph.Require(r.devs[i]))
		}
		k := r.Task(name, body, opts...)
		ins[i] = [2]*graph.Input{r.Input(name+" x", k.Port("x")), r.Input(name+" y", k.Port("y"))}
		outs[i] = r.Output(name, k.Port("z"))
	}
	check(t, r.Run(r.ctx))
	var first *graph.Block // of the task whose data moves
	for i := range ins {
		for k, in := range ins[i] { // on each device one of the inputs
			b := r.full(1)
			must[*buffer.Buffer](t)(b.On(r.ctx, r.devs[k], buffer.Writes))
			if i == 2 && k == 0 {
				first = b.Retain()
			}
			r.push(in, b)
		}
		if i < len(r.devs) {
			<-began
		}
	}
	if n := r.Waiting(); n != 2 {
		t.Fatalf("%d tasks wait", n)
	}
	must[*buffer.Buffer](t)(first.On(r.ctx, r.devs[1], buffer.Reads)) // which has all of its inputs now
	first.Release()
	end[0] <- true
	ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
	defer cancel()
	if b, err := outs[3].Pull(ctx); err != nil {
		t.Errorf("a task waits for a device that is free: %v", err)
	} else {
		b.Release()
	}
	r.none(outs[2])
	end[1] <- true
	check(t, r.Stop(r.ctx))
}

// FIFO: a task that was not ready for a while comes after those that became ready meanwhile.
func TestReadyAgain(t *testing.T) {
	r := newRig(t, []string{"cpu"}, withMode(graph.FIFO))
	g := newGated(r)
	var weight *graph.Port
	first := g.noted("first", graph.Sticky("w", r.word), func(k *graph.Task) { weight = k.Port("w") })
	second := g.noted("second")
	check(t, graph.SetValues[uint32](weight, 1))
	check(t, r.Run(r.ctx))
	r.push(g.hold, r.full(0))
	<-g.began
	r.push(first, r.full(1))
	r.push(second, r.full(1))
	check(t, weight.Set(nil))
	check(t, graph.SetValues[uint32](weight, 2))
	g.end <- true
	g.drain()
	if got := strings.Join(g.list, " "); got != "second first" {
		t.Error(got)
	}
}

// 5.5.9: the deterministic mode gives the same order for the same seed, and others for others, in all modes.
func TestDeterministic(t *testing.T) {
	order := func(mode graph.Mode, seed uint64) string {
		r := newRig(t, []string{"cpu", "cpu"}, withMode(mode), deterministic(seed))
		var j journal
		var ins []*graph.Input
		for _, n := range []string{"a", "b", "c", "d", "e"} {
			k := r.Task(n, graph.Func(func(d *graph.Dispatch) error { j.note(d); return nil }), graph.In("x", r.m), graph.Out("y", r.m))
			l := r.Task(n+n, graph.Host(func(d *graph.Dispatch) error { j.note(d); return nil }), graph.In("x", r.m), graph.Out("y", r.m))
			ins = append(ins, r.Input(n, k.Port("x")))
			r.Connect(k.Port("y"), l.Port("x"))
			r.Output(n, l.Port("y"))
		}
		check(t, r.Finalize())
		for range 3 {
			for _, in := range ins {
				r.push(in, r.full(1))
			}
		}
		check(t, r.Run(r.ctx)) // runs it all
		if len(j.list) != 30 {
			t.Errorf("%d dispatches", len(j.list))
		}
		var places []string
		for i := range j.list {
			places = append(places, j.list[i]+string(rune('0'+slices.Index(r.devs, j.where[i])+1)))
		}
		return strings.Join(places, " ")
	}
	for _, mode := range []graph.Mode{graph.FirstAvailable, graph.PriorityFirst, graph.DataAware} {
		one := order(mode, 1)
		if again := order(mode, 1); again != one {
			t.Errorf("%v:\n%s\n%s", mode, one, again)
		}
		if other := order(mode, 2); other == one {
			t.Errorf("%v: the seed decides nothing", mode)
		}
	}
	if a, b := order(graph.FIFO, 1), order(graph.FIFO, 2); a != b {
		t.Errorf("FIFO:\n%s\n%s", a, b)
	}
}
