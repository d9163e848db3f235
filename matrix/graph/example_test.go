// SPDX-License-Identifier: Apache-2.0

package graph_test

import (
	"context"
	"fmt"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// Two tasks on two devices: a product with weights that stay, and a sum in place.
func Example() {
	ctx := context.Background()
	var devices []*gpu.Device
	for range 2 {
		d, err := gpu.Open(ctx, gpu.WithDriver("cpu"))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer d.Close()
		devices = append(devices, d)
	}
	g, err := graph.New(devices)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = g.Teardown() }()
	m := g.Template("2x2", 2, 2, dtype.Float32)
	mul := g.Task("mul", graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] { return in("x").Mul(in("weights")) }),
		graph.In("x", m), graph.Sticky("weights", m), graph.Out("y", m), graph.WaitFor(devices[0]))
	double := g.Task("double", graph.Expr(func(in graph.Operands[float32]) matrix.Operand[float32] {
		return in("x").Add(in("x"))
	}), graph.In("x", m), graph.Out("y", m, graph.PortConfig{InPlace: "x"}), graph.WaitFor(devices[1]))
	in := g.Input("in", mul.Port("x"))
	g.Connect(mul.Port("y"), double.Port("x"))
	out := g.Output("out", double.Port("y"))

	weights, err := graph.FromSlice(m, []float32{0, 1, 1, 0})
	if err == nil {
		err = mul.Port("weights").Set(weights)
	}
	if err == nil {
		err = g.Run(ctx)
	}
	for i := range 3 {
		if err != nil {
			break
		}
		var x *graph.Block
		if x, err = graph.FromSlice(m, []float32{1, 2, 3, float32(i)}); err == nil {
			err = in.Push(ctx, x)
		}
	}
	for range 3 {
		if err != nil {
			break
		}
		var y *graph.Block
		if y, err = out.Pull(ctx); err == nil {
			var v []float32
			v, err = graph.Values[float32](ctx, y)
			fmt.Println(v)
			y.Release()
		}
	}
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// [4 2 0 6]
	// [4 2 2 6]
	// [4 2 4 6]
}

// Finalize lists everything that is wrong.
func ExampleGraph_Finalize() {
	g, err := graph.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := g.Template("m", 2, 2, dtype.Float32)
	n := g.Template("n", 3, 3, dtype.Float32)
	idle := graph.Host(func(*graph.Dispatch) error { return nil })
	a := g.Task("a", idle, graph.In("x", m), graph.Out("y", m))
	b := g.Task("b", idle, graph.In("x", n), graph.Out("y", n))
	g.Connect(a.Port("y"), b.Port("x"))
	fmt.Println(g.Finalize())
	// Output:
	// graph: Connect: blocks of another template: y-x: m to n
	// graph: Finalize: a port without a channel, or with too many: a.x has none
	// graph: Finalize: a port without a channel, or with too many: b.y has none
}
