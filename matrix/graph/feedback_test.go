// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// 5.4 switchports: a loop with a back edge. The initial value comes first, then what comes back, until the end of the iteration
// leaves; then the next initial value.
func TestLoop(t *testing.T) {
	everywhere(t, func(r *rig) {
		body := graph.Func(func(d *graph.Dispatch) error {
			x, err := graph.Matrix[float32](d, "x")
			if err != nil {
				return err
			}
			b, err := d.Block("y")
			if err != nil {
				return err
			}
			n, s := b.Context().(*int), graph.Signals(0)
			if *n++; *n == 10 {
				*n, s = 0, graph.EndIteration
			}
			if err := d.SetSignals("y", s); err != nil {
				return err
			}
			return x.Assign(matrix.Add(x, matrix.Fill[float32](2, 3, 1)))
		})
		counted := r.Template("counted", 2, 3, dtype.Float32, graph.Format{Create: func(*graph.Block) any { return new(int) }})
		k := r.Task("k", body, graph.In("x", counted), graph.Out("y", counted, graph.PortConfig{InPlace: "x"}))
		in := r.Input("x", k.Port("x"))
		r.Connect(k.Port("y"), k.Port("x"), graph.Channel{Control: true, Push: graph.Predicate{CloseOn: graph.EndIteration}})
		out := r.Output("y", k.Port("y"), graph.Channel{Push: graph.Predicate{OpenOn: graph.EndIteration}})
		check(r.t, r.Run(r.ctx))
		for i := float32(0); i < 3; i++ {
			v := 100 * i
			r.push(in, must[*graph.Block](r.t)(graph.FromSlice(counted, []float32{v, v, v, v, v, v})))
		}
		r.wants(out, 10, 110, 210)
		check(r.t, r.Stop(r.ctx))
		r.none(out)
		if n := r.Stats().Tasks[0].Dispatches; n != 30 {
			r.t.Errorf("%d dispatches", n)
		}
	})
}

// 5.3: CNTK's MaintainValue: an initialiser that is open at the begin of a stream, as the main input has it, and what comes back
// otherwise.
func TestMaintainedValue(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", graph.Expr(
			func(in graph.Operands[float32]) matrix.Operand[float32] { return matrix.Add(in("x"), in("state")) },
			func(in graph.Operands[float32]) matrix.Operand[float32] { return matrix.Add(in("x"), in("state")) },
		), graph.In("x", r.m), graph.Init("state", r.m, graph.PortConfig{Of: "x", On: graph.BOF}), graph.Out("sum", r.m), graph.Out("next", r.m))
		in, out := r.Input("x", k.Port("x")), r.Output("sum", k.Port("sum"))
		r.Connect(k.Port("next"), k.Port("state"), graph.Channel{Push: graph.Predicate{CloseOn: graph.EOF}})
		check(r.t, r.Run(r.ctx))
		for range 2 {
			r.push(in, r.full(1), graph.BOF)
			r.push(in, r.full(2))
			r.push(in, r.full(3), graph.EOF)
			r.wants(out, 1, 3, 6)
		}
	})
}

// 5.1 control signals: an output's blocks have those of its inputs, of some of them, or those that the body says.
func TestSignals(t *testing.T) {
	everywhere(t, func(r *rig) {
		k := r.Task("k", graph.Host(func(d *graph.Dispatch) error {
			return d.SetSignals("said", signals(d, "x")|graph.BeginIteration)
		}), graph.In("x", r.m), graph.In("y", r.m), graph.Out("all", r.m), graph.Out("some", r.m, graph.PortConfig{SignalsFrom: []string{"y"}}),
			graph.Out("none", r.m, graph.PortConfig{SignalsFrom: []string{}}), graph.Out("said", r.m))
		x, y := r.Input("x", k.Port("x")), r.Input("y", k.Port("y"))
		want := map[string]graph.Signals{
			"all": graph.BOF | graph.EOF, "some": graph.EOF, "none": 0, "said": graph.BOF | graph.BeginIteration,
		}
		outs := map[string]*graph.Output{}
		for n := range want {
			outs[n] = r.Output(n, k.Port(n))
		}
		check(r.t, r.Run(r.ctx))
		r.push(x, r.full(1), graph.BOF)
		r.push(y, r.full(1), graph.EOF)
		for n, w := range want {
			if _, s := r.pull(outs[n]); s != w {
				r.t.Errorf("%s: %v, want %v", n, s, w)
			}
		}
	})
}

// An initialiser looks at the block that the dispatch gets, not at the one behind it, whichever port comes first.
func TestMaintainedValueAhead(t *testing.T) {
	everywhere(t, func(r *rig) {
		sum := func(in graph.Operands[float32]) matrix.Operand[float32] { return matrix.Add(in("x"), in("y")) }
		var ins []*graph.Input
		var outs []*graph.Output
		for _, p := range [][2]string{{"x", "y"}, {"y", "x"}} {
			ports := map[string]graph.TaskOption{p[0]: graph.In(p[0], r.m), p[1]: graph.Init(p[1], r.m, graph.PortConfig{Of: p[0], On: graph.BOF})}
			k := r.Task("state in "+p[1], graph.Expr(sum, sum), ports["x"], ports["y"], graph.Out("sum", r.m), graph.Out("next", r.m))
			stream, state := k.Port(p[0]), k.Port(p[1])
			ins, outs = append(ins, r.Input("stream", stream)), append(outs, r.Output("sum", k.Port("sum")))
			r.Connect(k.Port("next"), state, graph.Channel{Push: graph.Predicate{CloseOn: graph.EOF}})
		}
		check(r.t, r.Finalize())
		for _, in := range ins {
			r.push(in, r.full(1), graph.BOF)
			r.push(in, r.full(2))
			r.push(in, r.full(4), graph.EOF)
			r.push(in, r.full(8), graph.BOF)
		}
		check(r.t, r.Run(r.ctx))
		for _, out := range outs {
			r.wants(out, 1, 3, 7, 8)
		}
	})
}
