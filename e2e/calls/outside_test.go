// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package calls

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

// TestPutTogether has values that users can put together from exported fields and zero values.
func TestPutTogether(t *testing.T) {
	mem := make([]uint8, 16)
	narrow := devtest.Must[*cruncher.Array[uint8]](t)(cruncher.Wrap("a", mem[:4]))
	wide := cruncher.Array[float32]{Any: narrow.Any}
	_, at := wide.At(3)
	_, all := wide.ToArray()
	for i, err := range []error{wide.Set(0, 1), wide.Set(7, 1), at, all, wide.CopyTo(&wide, 0)} {
		if err == nil {
			t.Errorf("%d: no error of an array of another type", i)
		}
	}
	for i, b := range mem {
		if b != 0 {
			t.Errorf("byte %d was written", i)
		}
	}
	for _, n := range []int{1 << 40, 1 << 60, math.MaxInt, math.MaxInt/4 + 1, -1, math.MinInt} {
		if _, err := cruncher.NewArray[float32]("x", n); err == nil {
			t.Errorf("%d elements are no error", n)
		}
	}
	devtest.Each(t, func(t *testing.T, dev *gpu.Device) {
		for _, p := range []*kernel.Program{{}, {WGSL: "fn", Entry: "main"}, {Name: "x", Local: [3]int{-1, 0, 1 << 40}}} {
			if err := p.Launch(t.Context(), dev, kernel.Range{Count: [3]int{1}, Total: [3]int{1}}); err == nil {
				t.Error("a program that nobody built was launched")
			}
			p.Close()
		}
		b := devtest.Must[*buffer.Buffer](t)(buffer.Wrap(dev, gpu.HostBytes(mem), nil))
		defer b.Close()
		for _, r := range []buffer.Region{
			buffer.Range(0, 17), buffer.Range(16, 1), buffer.Range(-1, 1), buffer.Range(math.MaxInt, math.MaxInt), buffer.Range(1, math.MinInt),
		} {
			if b.ClearHost(r) {
				t.Errorf("%+v was cleared", r)
			}
		}
		made := 0
		for _, key := range []any{[]int{1}, map[string]int{}, func() {}, struct{ x any }{[]int{1}}} {
			if got := dev.Attach(key, func() any { made++; return made }); got != made {
				t.Errorf("%v, want %v", got, made)
			}
		}
		if made != 4 {
			t.Errorf("%d values", made)
		}
	})
	g := devtest.Must[*graph.Graph](t)(graph.New(nil))
	m := g.Template("m", 1, 1, dtype.Uint32)
	task := g.Task("task", graph.Host(func(*graph.Dispatch) error { return nil }), graph.In("x", m), graph.Out("y", m),
		graph.Described("d", m, "nobody", nil))
	g.Input("in", task.Port("x"))
	g.Output("out", task.Port("y"))
	if err := g.Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("%v of a description of nothing", err)
	}
	devtest.Check(t, g.Teardown())
}
