// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// TestLongLoops has a task count in loops that some adapters end early: the block holds what is right, or the graph fails.
func TestLongLoops(t *testing.T) {
	if _, ok := possible(wgsl); !ok {
		return // no driver compiles it
	}
	for _, turns := range []uint32{60000, 70000} {
		r := newRig(t, []string{wgsl})
		k := r.Task("k", graph.Kernel(`fn f(i: u32) { var v = x[i]; for (var k = 0u; k < n; k++) { v += 1.0; } y[i] = v; }`, "f", nil),
			graph.In("x", r.m), graph.Sticky("n", r.word), graph.Out("y", r.m))
		x, y := r.Input("x", k.Port("x")), r.Output("y", k.Port("y"))
		check(t, graph.SetValues(k.Port("n"), turns))
		check(t, r.Run(r.ctx))
		r.push(x, r.full(1))
		var v []float32
		b, err := y.Pull(r.ctx)
		if err == nil {
			v, err = graph.Values[float32](r.ctx, b)
			b.Release()
		}
		if r.devs[0].Info().Limits.MaxLoopsPerInvoking-1 < 1e5 && turns > 65535 {
			if !errors.Is(err, gpu.ErrLimit) {
				t.Errorf("%d turns: %v, %v", turns, v, err)
			}
		} else if err != nil || v[0] != float32(turns)+1 || v[5] != v[0] {
			t.Errorf("%d turns: %v, %v", turns, v, err)
		}
	}
}
