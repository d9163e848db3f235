// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errTask }

// 5.5.9: DOT has every task, port and channel, and survives any name.
func TestDOT(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	k := r.Task(`odd "name" {a|b}`+"\n", pass(), graph.In("x", r.m), graph.Out("y", r.m), graph.Out("z<>", r.m, graph.PortConfig{Optional: true}))
	l := r.Task("l", pass(), graph.Init("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
	r.Input("in", k.Port("x"))
	r.Connect(k.Port("y"), l.Port("x"), graph.Channel{Capacity: 7, Push: graph.Predicate{CloseOn: graph.EOF}, Control: true})
	r.Output("out", l.Port("y"))
	r.Input("\x1b[31m\xff\x9b", r.Task("c1\u0085", pass(), graph.In("x", r.m)).Port("x"))
	var s strings.Builder
	check(t, r.WriteDOT(&s))
	for _, want := range []string{
		"digraph graph_ {", `task0 [label="{{<p0> x}|odd \"name\" \{a\|b\}\n\nexpr|{<p1> y|<p2> z\<\>}}"];`,
		`task0:p1 -> task1:p0 [label="0/7 CLOSE_ON_EOF control"];`, `[label="{{<p0> x (initializer)}|l\nexpr|{<p1> y}}"];`,
		`[shape=cds, label="�[31m��"]`, `|c1�\nexpr|`, `[shape=cds, label="in"]`, `[shape=cds, label="out"]`, "}\n",
	} {
		if !strings.Contains(s.String(), want) {
			t.Errorf("no %s in\n%s", want, s.String())
		}
	}
	isError(t, r.WriteDOT(broken{}), errTask)
	isError(t, r.WriteDOT(nil), gpu.ErrInvalid)
	isError(t, r.WriteTrace(nil), gpu.ErrInvalid)
}

// 5.5.9: the trace is JSON of Chrome's form, with the last dispatches, and the counts are those of what ran.
func TestTrace(t *testing.T) {
	var now atomic.Int64 // that of a page is coarse
	clock := func() time.Duration { return time.Duration(now.Add(int64(time.Microsecond))) }
	everywhere(t, func(r *rig) {
		k := r.Task("odd \"name\"\x01\xff", graph.Func(func(d *graph.Dispatch) error {
			if signals(d, "x")&graph.EOF != 0 {
				return errors.New("fin\"ish")
			}
			return nil
		}), graph.In("x", r.m), graph.Out("y", r.m))
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(r.t, r.Run(r.ctx))
		for range 7 {
			r.push(in, r.full(1))
			r.wants(out, 0)
		}
		r.push(in, r.full(1), graph.EOF)
		b := must[*graph.Block](r.t)(out.Pull(r.ctx))
		b.Release()
		var s strings.Builder
		check(r.t, r.WriteTrace(&s))
		var trace struct {
			TraceEvents []struct {
				Ph, Name, Cat string
				Ts, Dur       float64
				Tid, Pid      int
				Args          struct {
					Name, Error string
					Block       uint64
					WaitedUs    float64 `json:"waited_us"`
				}
			}
		}
		check(r.t, json.Unmarshal([]byte(s.String()), &trace))
		n, failed, last := 0, 0, 0.0
		for _, e := range trace.TraceEvents {
			if e.Ph != "X" || e.Cat == "bind" {
				continue
			}
			n++
			if e.Args.Error != "" {
				failed++
			}
			if e.Name != "odd \"name\"\x01\ufffd" || e.Cat != "func" || e.Ts < last || e.Dur < 0 || e.Args.Block == 0 || e.Tid > len(r.devs) {
				r.t.Errorf("%+v", e)
			}
			last = e.Ts
		}
		if n != 5 || failed != 1 {
			r.t.Errorf("%d dispatches, %d failed", n, failed)
		}
		k0 := r.Stats().Tasks[0]
		total := uint64(0)
		for _, n := range k0.Devices {
			total += n
		}
		if k0.Dispatches != 8 || total != 8 || k0.Failures != 1 || k0.Run <= 0 || k0.Name != "odd \"name\"\x01\xff" {
			r.t.Errorf("%+v", k0)
		}
	}, withTrace(5), graph.WithClock(clock))
}

func TestNames(t *testing.T) {
	for want, got := range map[string]string{
		"BOF|DEVNULL": graph.SignalNames(graph.BOF | graph.DevNull),
		"OPEN_ON_BOF": graph.PredicateName(graph.Predicate{OpenOn: graph.BOF}), "CLOSE_ON_EOF": graph.PredicateName(graph.Predicate{CloseOn: graph.EOF}),
		"OPEN_ON_DEVNULL": graph.PredicateName(graph.Predicate{OpenOn: graph.DevNull}), "": graph.PredicateName(graph.Predicate{}),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	// PTask's numbers.
	if graph.BOF != 1 || graph.EOF != 2 || graph.BeginIteration != 4 || graph.EndIteration != 8 || graph.Failed != 16 || graph.DevNull != 32 {
		t.Error("signals")
	}
}

// WithSync makes a dispatch last until its device has done the work, and the rows of its trace tell what each was busy with.
func TestSync(t *testing.T) {
	for _, opts := range [][]option{{withSync}, {withSync, deterministic(1)}} {
		var now atomic.Int64 // that of some platforms is coarse
		opts = append(opts, graph.WithClock(func() time.Duration { return time.Duration(now.Add(1)) }))
		r := newRig(t, []string{"cpu", "cpu"}, opts...)
		var done atomic.Int32
		const took = time.Millisecond
		work := r.Task("work", sleeper(took, buffer.Replaces, func() { done.Add(1); now.Add(int64(took)) }), graph.In("x", r.m), graph.Out("y", r.m))
		n := int32(0)
		look := r.Task("look", graph.Host(func(*graph.Dispatch) error {
			if n++; done.Load() < n {
				return errTask
			}
			return nil
		}), graph.In("x", r.m), graph.Out("y", r.m))
		in := r.Input("x", work.Port("x"))
		r.Connect(work.Port("y"), look.Port("x"))
		out := r.Output("y", look.Port("y"))
		check(t, r.Run(r.ctx))
		for range 5 {
			r.push(in, r.full(1))
			b := must[*graph.Block](t)(out.Pull(r.ctx))
			check(t, b.Err())
			b.Release()
		}
		lanes := r.Stats().Devices
		if len(lanes) != 3 || lanes[0].Dispatches+lanes[1].Dispatches != 5 || lanes[0].Run+lanes[1].Run < 5*took ||
			lanes[2].Dispatches != 5 || lanes[2].Run <= 0 || lanes[2].Name != "host" || !strings.HasPrefix(lanes[1].Name, "device 1: ") {
			t.Errorf("%+v", lanes)
		}
	}
}

// A push that fails is not counted, nor is what the predicates said of it.
func TestDroppedOnce(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", pass(), graph.In("x", r.m), graph.Out("y", r.m))
		asked := 0
		in := r.Input("x", k.Port("x"), graph.Channel{Push: graph.Predicate{Ask: func(*graph.Block) bool {
			if asked++; asked == 1 {
				check(r.t, r.Stop(r.ctx))
			}
			return false
		}}})
		r.Output("y", k.Port("y"))
		check(r.t, r.Run(r.ctx))
		b := r.full(1)
		isError(r.t, in.Push(r.ctx, b), graph.ErrStopped)
		check(r.t, r.Run(r.ctx))
		check(r.t, in.Push(r.ctx, b))
		if c := r.Stats().Channels[0]; asked != 2 || c.Dropped != 1 || c.Pushed != 0 {
			r.t.Errorf("asked %d times: %+v", asked, c)
		}
	})
}
