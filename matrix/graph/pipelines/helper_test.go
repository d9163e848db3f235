// SPDX-License-Identifier: Apache-2.0

package pipelines_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
	"github.com/sublet-gpu/sublet/matrix/graph"
)

var check = devtest.Check

func isError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

var linked = devtest.Drivers

// compiles returns the driver whose devices compile WGSL.
func compiles(t testing.TB) string {
	t.Helper()
	i := slices.IndexFunc(linked(), func(n string) bool { return n != "cpu" })
	if i < 0 {
		t.Fatal("no driver that compiles WGSL is linked")
	}
	return linked()[i]
}

// open opens devices. At the end no buffer of theirs may be left.
func open(t testing.TB, drivers ...string) []*gpu.Device {
	t.Helper()
	var list []*gpu.Device
	for _, name := range drivers {
		d, err := gpu.Open(t.Context(), gpu.WithDriver(name))
		check(t, err)
		before := d.Stats().Buffers
		t.Cleanup(func() {
			if n := d.Stats().Buffers - before; n != 0 {
				t.Errorf("%d buffers are left on %s", n, name)
			}
			_ = d.Close()
		})
		list = append(list, d)
	}
	return list
}

// closes fails if blocks or goroutines stay.
func closes(t testing.TB, g *graph.Graph, goroutines int) {
	t.Helper()
	check(t, g.Teardown())
	if n := g.Stats().Blocks; n != 0 {
		t.Errorf("%d blocks are left", n)
	}
	if runtime.GOOS == "js" {
		goroutines++ // the runtime's own, for events
	}
	for range 500 {
		if runtime.NumGoroutine() <= goroutines {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, there were %d", runtime.NumGoroutine(), goroutines)
}

// setups are one device, two, the deterministic mode, and every mode of the scheduler.
func setups(drivers ...string) map[string]struct {
	Drivers []string
	Config  graph.Config
} {
	type setup = struct {
		Drivers []string
		Config  graph.Config
	}
	two := append(drivers, drivers...)
	return map[string]setup{
		"one":           {drivers, graph.Config{}},
		"two":           {two, graph.Config{}},
		"waiting":       {two, graph.Config{Sync: true, Trace: 5000}},
		"deterministic": {two, graph.Config{Deterministic: true, Seed: 3}},
		"fifo":          {two, graph.Config{Mode: graph.FIFO}},
		"first":         {two, graph.Config{Mode: graph.FirstAvailable}},
		"priority":      {two, graph.Config{Mode: graph.PriorityFirst}},
	}
}
