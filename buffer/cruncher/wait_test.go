// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestContextsBehindWork cancels every call that waits for a device behind work that does not end. They work afterwards.
func TestContextsBehindWork(t *testing.T) {
	references := map[string]reference{"inc": func(i uint32, m memory) { m.set("b", i, m.at("a", i)+1) }}
	gate := &devtest.Gate{Device: &interpreted{devtest.Oracle(t), references}}
	dev := must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDevice(gate)))
	t.Cleanup(func() {
		gate.Open()
		check(t, dev.Close())
	})
	const source = "fn inc(i: u32) { b[i] = a[i] + 1u; }"
	cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), []*gpu.Device{dev}, source))
	a := must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("a", 8))
	b := must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("b", 8))
	r := cruncher.Range{Global: 8}
	stage := cruncher.Stage{Kernels: []cruncher.Step{{Kernels: "inc", Range: r}}, Inputs: []cruncher.Param{a}, Outputs: []cruncher.Param{b}}
	pipe := must[*cruncher.DevicePipeline](t)(cruncher.NewDevicePipeline(t.Context(), dev, source, stage))
	check(t, b.SetFlags(cruncher.Flags{}))
	check(t, cr.Compute(t.Context(), 1, "inc", r, a, b)) // stays there
	check(t, b.SetFlags(cruncher.Flags{Write: true}))
	gate.Shut(t, dev)
	devtest.CalledOff(t, "Fetch", func(ctx context.Context) error { return cr.Fetch(ctx, b.Any) })
	devtest.CalledOff(t, "Compute", func(ctx context.Context) error { return cr.Compute(ctx, 1, "inc", r, a, b) })
	devtest.CalledOff(t, "Batch", func(ctx context.Context) error {
		return cr.Batch(ctx, func(q *cruncher.Batch) error { return q.Compute(ctx, 1, "inc", r, a, b) })
	})
	devtest.CalledOff(t, "Feed", func(ctx context.Context) error {
		_, err := pipe.Feed(ctx)
		return err
	})
	gate.Open()
	check(t, cr.Compute(t.Context(), 1, "inc", r, a, b))
	if v, err := b.At(7); v != 1 || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	check(t, pipe.Serial())
	if came, err := pipe.Feed(t.Context()); !came || err != nil {
		t.Errorf("Feed: %v, %v", came, err)
	}
	check(t, pipe.Close())
	check(t, cr.Close())
	check(t, a.Close())
	check(t, b.Close())
}
