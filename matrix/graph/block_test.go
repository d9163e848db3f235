// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// 5.1 datablock: PTask's states in every place, copies made only when somebody needs them, and only what is stale moves.
func TestStates(t *testing.T) {
	for _, drivers := range [][]string{{"cpu", "cpu"}, {wgsl, "cpu"}, {wgsl, wgsl}} {
		if _, ok := possible(drivers...); !ok {
			continue
		}
		r := newRig(t, drivers)
		b := r.full(3)
		wants := func(what string, host, a, c string, up, down uint64) {
			t.Helper()
			if h, x, y := b.State(nil), b.State(r.devs[0]), b.State(r.devs[1]); h != host || x != a || y != c {
				t.Errorf("%s: %v %v %v, want %v %v %v", what, h, x, y, host, a, c)
			}
			if s := r.Stats(); s.BytesUp != 24*up || s.BytesDown != 24*down {
				t.Errorf("%s: %d bytes up and %d down", what, s.BytesUp, s.BytesDown)
			}
		}
		on := func(i int, in buffer.Intent) {
			t.Helper()
			must[*buffer.Buffer](t)(b.On(r.ctx, r.devs[i], in))
		}
		view := func() { t.Helper(); check(t, b.View(r.ctx, func([]byte) error { return nil })) }
		wants("new", "EXCLUSIVE", "NO_ENTRY", "NO_ENTRY", 0, 0)
		on(0, buffer.Reads)
		wants("read on a device", "SHARED", "SHARED", "NO_ENTRY", 1, 0)
		on(0, buffer.Reads)
		on(1, buffer.Reads)
		wants("read on two", "SHARED", "SHARED", "SHARED", 2, 0)
		on(1, buffer.Writes)
		wants("written", "INVALID", "INVALID", "EXCLUSIVE", 2, 0)
		on(0, buffer.Reads) // by way of the host
		wants("across", "SHARED", "SHARED", "SHARED", 3, 1)
		on(0, buffer.Replaces)
		wants("replaced", "INVALID", "EXCLUSIVE", "INVALID", 3, 1)
		view()
		wants("seen", "SHARED", "SHARED", "INVALID", 3, 2)
		check(t, b.Update(r.ctx, func([]byte) error { return nil }))
		wants("updated", "EXCLUSIVE", "INVALID", "INVALID", 3, 2)
		b.Release()
		wants("released", "NO_ENTRY", "NO_ENTRY", "NO_ENTRY", 3, 2)
	}
}

// Wrapped memory is the caller's: results arrive in it, and it is released once.
func TestWrap(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", plus(1), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
		in, out := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(r.t, r.Run(r.ctx))
		data := []float32{1, 2, 3, 4, 5, 6}
		released := 0
		r.push(in, must[*graph.Block](r.t)(r.m.Wrap(matrix.Host(data).Bytes, func() { released++ })))
		b := must[*graph.Block](r.t)(out.Pull(r.ctx))
		check(r.t, b.View(r.ctx, func([]byte) error { return nil }))
		if data[0] != 2 || data[5] != 7 || released != 0 {
			r.t.Errorf("%v, released %d times", data, released)
		}
		b.Release()
		b.Release()
		if released != 1 {
			r.t.Errorf("released %d times", released)
		}
	})
}

// 5.1 template: what a program keeps with blocks is created, cloned and destroyed with them; a panic of its stays its own.
func TestContexts(t *testing.T) {
	everywhere(t, func(r *rig) {
		var mu sync.Mutex
		count := map[string]int{}
		note := func(what string) { mu.Lock(); count[what]++; mu.Unlock() }
		tmpl := r.Template("c", 1, 1, dtype.Float32, graph.Format{
			Create:  func(*graph.Block) any { note("create"); return new(int) },
			Clone:   func(v any) any { note("clone"); n := *v.(*int) + 1; return &n },
			Destroy: func(any) { note("destroy"); panic("ignored") },
		})
		tee := r.Task("tee", graph.Func(func(*graph.Dispatch) error { return nil }), graph.In("x", tmpl), graph.Out("y", tmpl, graph.PortConfig{InPlace: "x"}))
		w := r.Task("w", graph.Func(func(*graph.Dispatch) error { return nil }), graph.In("x", tmpl), graph.Out("y", tmpl, graph.PortConfig{InPlace: "x"}))
		in, a := r.Input("x", tee.Port("x")), r.Output("a", tee.Port("y"))
		r.Connect(tee.Port("y"), w.Port("x"))
		b := r.Output("b", w.Port("y"))
		check(r.t, r.Run(r.ctx))
		x := must[*graph.Block](r.t)(tmpl.New())
		p := x.Context().(*int)
		*p = 41
		if x.Context() != p {
			r.t.Error("created twice")
		}
		r.push(in, x)
		for o, want := range map[*graph.Output]int{a: 41, b: 42} {
			y := must[*graph.Block](r.t)(o.Pull(r.ctx))
			if got := *y.Context().(*int); got != want {
				r.t.Errorf("%d, want %d", got, want)
			}
			y.Release()
		}
		check(r.t, r.Stop(r.ctx))
		mu.Lock()
		defer mu.Unlock()
		if count["create"] != 1 || count["clone"] != 1 || count["destroy"] != 2 {
			r.t.Error(count)
		}
	})
}

// 5.1 pools: released memory serves again, up to a limit, and its new owner finds none of the old bytes.
func TestPool(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	tmpl := r.Template("p", 2, 2, dtype.Float32, graph.Format{Pool: 2})
	var list []*graph.Block
	for range 4 {
		b := must[*graph.Block](t)(graph.FromSlice(tmpl, []float32{1, 2, 3, 4}))
		must[*buffer.Buffer](t)(b.On(r.ctx, r.devs[0], buffer.Writes))
		list = append(list, b)
	}
	for _, b := range list {
		b.Release()
	}
	if s := r.Stats(); s.Pooled != 2 || s.Blocks != 0 {
		t.Errorf("%d pooled, %d live", s.Pooled, s.Blocks)
	}
	b := must[*graph.Block](t)(tmpl.New())
	if n := r.Stats().Pooled; n != 1 {
		t.Errorf("%d pooled", n)
	}
	must[*buffer.Buffer](t)(b.On(r.ctx, r.devs[0], buffer.Reads))
	for _, v := range must[[]float32](t)(graph.Values[float32](r.ctx, b)) {
		if v != 0 {
			t.Error("somebody else's bytes")
		}
	}
	list[0].Release() // again: it is nobody's
	if b.Refs() != 1 {
		t.Error("a block was released by somebody else")
	}
	b.Release()
}

// No call on a block panics, and mistakes change nothing.
func TestBlockMistakes(t *testing.T) {
	r := newRig(t, []string{"cpu"})
	other := open(t, "cpu")[0]
	shared, closed := r.full(1), r.full(1)
	twice := shared.Retain()
	closed.Release()
	var none *graph.Block
	var noTemplate *graph.Template
	fn := func([]byte) error { return nil }
	second := func(_ any, err error) error { return err }
	var nowhere context.Context
	records := r.Template("r", 2, 3, dtype.Float32, graph.Format{Records: true})
	for name, c := range map[string]struct{ err, want error }{
		"view of nil":        {none.View(r.ctx, fn), gpu.ErrInvalid},
		"view of released":   {closed.View(r.ctx, fn), gpu.ErrClosed},
		"view without fn":    {shared.View(r.ctx, nil), gpu.ErrInvalid},
		"view without ctx":   {shared.View(nowhere, fn), gpu.ErrInvalid},
		"update of shared":   {shared.Update(r.ctx, fn), graph.ErrShared},
		"signals of shared":  {shared.SetSignals(graph.EOF), graph.ErrShared},
		"write of shared":    {second(shared.On(r.ctx, r.devs[0], buffer.Replaces)), graph.ErrShared},
		"on no device":       {second(shared.On(r.ctx, nil, buffer.Reads)), gpu.ErrInvalid},
		"on another device":  {second(shared.On(r.ctx, other, buffer.Reads)), gpu.ErrForeign},
		"update of a shared": {second(shared.On(r.ctx, r.devs[0], buffer.Writes)), graph.ErrShared},
		"values of a type":   {second(graph.Values[int32](r.ctx, shared)), graph.ErrTemplate},
		"values of nil":      {second(graph.Values[int32](r.ctx, nil)), gpu.ErrInvalid},
		"slice of a type":    {second(graph.FromSlice(r.m, []uint32{1})), graph.ErrTemplate},
		"too few":            {second(graph.FromSlice(r.m, []float32{1})), graph.ErrTemplate},
		"no whole rows":      {second(graph.FromSlice(records, []float32{1})), graph.ErrTemplate},
		"rows of a matrix":   {second(r.m.From(make([]byte, 36))), graph.ErrTemplate},
		"no template":        {second(noTemplate.New()), graph.ErrTemplate},
		"no template, from":  {second(graph.FromSlice(noTemplate, []uint32{1})), graph.ErrTemplate},
		"bad template":       {second(r.Template("bad", -1, 1, dtype.Float32).New()), graph.ErrTemplate},
		"wrapped":            {second(r.m.Wrap(nil, nil)), graph.ErrTemplate},
		"error of nil":       {none.Err(), gpu.ErrInvalid},
		"nil graph":          {(*graph.Graph)(nil).Run(r.ctx), gpu.ErrInvalid},
		"nil graph, stop":    {(*graph.Graph)(nil).Stop(r.ctx), gpu.ErrInvalid},
		"nil port":           {(*graph.Port)(nil).Set(shared), gpu.ErrInvalid},
		"nil input":          {(*graph.Input)(nil).Push(r.ctx, shared), gpu.ErrInvalid},
		"nil output":         {second((*graph.Output)(nil).Pull(r.ctx)), gpu.ErrInvalid},
		"nil dispatch":       {second((*graph.Dispatch)(nil).Block("x")), graph.ErrState},
		"no devices":         {second(graph.New([]*gpu.Device{nil})), gpu.ErrInvalid},
		"twice":              {second(graph.New([]*gpu.Device{r.devs[0], r.devs[0]})), gpu.ErrInvalid},
		"mode":               {second(graph.New(nil, graph.Config{Mode: 9})), gpu.ErrInvalid},
		"threshold":          {second(graph.New(nil, graph.Config{Threshold: 11})), gpu.ErrInvalid},
		"trace":              {second(graph.New(nil, graph.Config{Trace: -1})), gpu.ErrInvalid},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	none.Release()
	closed.Release()
	if none.Retain() != nil || closed.Retain() != nil || none.Context() != nil || closed.State(nil) != "NO_ENTRY" {
		t.Error("a block that is not there")
	}
	if v := must[[]float32](t)(graph.Values[float32](r.ctx, shared)); v[0] != 1 || shared.Signals() != 0 {
		t.Error("a mistake changed the block")
	}
	shared.Release()
	twice.Release()
}
