// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"syscall/js"
	"testing"

	"github.com/sublet-gpu/sublet/matrix/graph"
)

// most is how many dispatches the page may have to wait for what a few hundred are enough for.
const most = 500_000

// A graph that never has nothing to do leaves the page its turns: timers and frames go on.
func TestPageHasItsTurns(t *testing.T) {
	for _, event := range []string{"setTimeout", "requestAnimationFrame"} {
		if js.Global().Get(event).IsUndefined() {
			continue // there are no frames outside of pages
		}
		everywhere(t, func(r *rig) {
			ctx, cancel := context.WithCancel(r.ctx)
			defer cancel()
			dispatches, turns := 0, 0
			source := r.Task("source", graph.Host(func(*graph.Dispatch) error {
				if dispatches++; dispatches == most {
					r.t.Errorf("%d turns of %s", turns, event)
					cancel()
				}
				return nil
			}), graph.Init("x", r.word), graph.Out("y", r.word))
			sink := r.Task("sink", graph.Func(func(*graph.Dispatch) error { return nil }), graph.In("x", r.word), graph.Out("y", r.word, graph.PortConfig{Optional: true}))
			r.Connect(source.Port("y"), sink.Port("x"))
			var tick js.Func
			tick = js.FuncOf(func(js.Value, []js.Value) any {
				if turns++; turns == 10 {
					cancel()
				} else {
					js.Global().Call(event, tick)
				}
				return nil
			})
			defer tick.Release()
			js.Global().Call(event, tick)
			check(r.t, r.Run(ctx)) // in the deterministic mode all of it happens in here
			<-ctx.Done()
			check(r.t, r.Teardown())
			if turns != 10 {
				r.t.Errorf("%d turns in %d dispatches", turns, dispatches)
			}
		})
	}
}
