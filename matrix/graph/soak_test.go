// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// A graph of 1,000 tasks and 100,000 blocks loses none of them, on one device, on two, and in the deterministic mode, and no
// channel ever has more than its capacity. The rig checks that no block, buffer or goroutine is left.
func TestSoak(t *testing.T) {
	const lanes, depth = 100, 10
	rounds := devtest.Times(7)
	for _, s := range setups {
		if s.name == "adapters" || s.name == "gpus" { // the scheduler is the same, transfers would take the time
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			opts := []option{}
			if s.single {
				opts = append(opts, deterministic(1))
			}
			r := newRig(t, s.drivers, opts...)
			var ran atomic.Int64
			touch := func(d *graph.Dispatch) error {
				if n := ran.Add(1); d.Device() != nil && n%10 == 0 {
					_, err := graph.Matrix[float32](d, "y")
					return err
				}
				return nil
			}
			ins, outs := make([]*graph.Input, lanes), make([]*graph.Output, lanes)
			small := r.Template("small", 1, 1, dtype.Float32)
			for i := range lanes {
				var last *graph.Port
				for j := range depth {
					body := graph.Func(touch)
					if j%2 == 1 {
						body = graph.Host(func(*graph.Dispatch) error { ran.Add(1); return nil })
					}
					out := graph.Out("y", small)
					if j%3 == 2 {
						out = graph.Out("y", small, graph.PortConfig{InPlace: "x"})
					}
					k := r.Task("t"+string(rune('0'+i/10))+string(rune('0'+i%10))+string(rune('0'+j)), body, graph.In("x", small), out)
					if last == nil {
						ins[i] = r.Input("in", k.Port("x"))
					} else {
						r.Connect(last, k.Port("x"))
					}
					last = k.Port("y")
				}
				outs[i] = r.Output("out", last)
			}
			check(t, r.Run(r.ctx))
			var wg sync.WaitGroup
			feed := func(i, n int) {
				for range n {
					b, err := small.New()
					if err == nil {
						err = ins[i].Push(r.ctx, b)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			}
			eat := func(i, n int) {
				for range n {
					b, err := outs[i].Pull(r.ctx)
					if err != nil {
						t.Error(err)
						return
					}
					if err := b.Err(); err != nil {
						t.Error(err)
					}
					b.Release()
				}
			}
			for i := range lanes {
				if s.single { // one goroutine is what that mode is for
					continue
				}
				wg.Go(func() { feed(i, rounds) })
				wg.Go(func() { eat(i, rounds) })
			}
			for k := 0; k < rounds*lanes && s.single; k++ {
				feed(k%lanes, 1)
				if k >= 2*lanes {
					eat(k%lanes, 1)
				}
			}
			for i := 0; i < lanes && s.single; i++ {
				eat(i, 2)
			}
			wg.Wait()
			check(t, r.Stop(r.ctx))
			if n := ran.Load(); n != int64(lanes*depth*rounds) {
				t.Errorf("%d dispatches", n)
			}
			last := must[*graph.Block](t)(small.New())
			blocks := uint64(lanes * rounds * 5)
			if devtest.Long() {
				blocks = 100_000
			}
			if n := r.Made(); n < blocks {
				t.Errorf("%d blocks", n)
			}
			last.Release()
			st := r.Stats()
			if len(st.Tasks) != lanes*depth || st.Blocks != 0 {
				t.Errorf("%d tasks, %d blocks", len(st.Tasks), st.Blocks)
			}
			for _, c := range st.Channels {
				if c.Peak > c.Capacity || c.Pushed != uint64(rounds) {
					t.Fatalf("%+v", c)
				}
			}
		})
	}
}

// Teardown in the middle of everything: pushes, pulls, transfers, clones. Nothing is left.
func TestTeardownAnywhere(t *testing.T) {
	everywhere(t, func(r *rig) {
		tee := r.Task("tee", plus(1), graph.In("x", r.m), graph.Out("y", r.m))
		w := r.Task("w", plus(1), graph.In("x", r.m), graph.Out("y", r.m, graph.PortConfig{InPlace: "x"}))
		h := r.Task("h", graph.Host(func(d *graph.Dispatch) error {
			return d.View("x", func([]byte) error { return nil })
		}), graph.In("x", r.m), graph.Out("y", r.m))
		in := r.Input("x", tee.Port("x"))
		r.Connect(tee.Port("y"), w.Port("x"))
		r.Connect(tee.Port("y"), h.Port("x"))
		outs := []*graph.Output{r.Output("w", w.Port("y")), r.Output("h", h.Port("y"))}
		for round := range 10 {
			check(r.t, r.Run(r.ctx))
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					b := r.full(1)
					if err := in.Push(r.ctx, b); err != nil {
						isError(r.t, err, graph.ErrTornDown)
						b.Release()
						return
					}
				}
			})
			ready := make(chan bool, 1000)
			for _, o := range outs {
				wg.Go(func() {
					for {
						b, err := o.Pull(r.ctx)
						if err != nil {
							return
						}
						if _, err := b.On(r.ctx, r.devs[0], buffer.Reads); err != nil {
							r.t.Error(err)
						}
						b.Release()
						select {
						case ready <- true:
						default:
						}
					}
				})
			}
			for range round {
				<-ready
			}
			check(r.t, r.Teardown())
			wg.Wait()
			if n := r.Stats().Blocks; n != 0 {
				r.t.Fatalf("%d blocks in round %d", n, round)
			}
		}
	})
}
