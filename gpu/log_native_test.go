// SPDX-License-Identifier: Apache-2.0

//go:build !js

package gpu_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestDebugVariable opens devices with SUBLET_DEBUG, which WithDebug overrides.
func TestDebugVariable(t *testing.T) {
	t.Setenv("SUBLET_DEBUG", "calls")
	for option, dispatches := range map[string]int{"": 0, "kernels": 2} {
		var r records
		dev := devtest.Must[*gpu.Device](t)(gpu.Open(t.Context(), gpu.WithDriver("cpu"), gpu.WithLogger(slog.New(&r)), gpu.WithDebug(option)))
		busy(t, dev)
		devtest.Check(t, dev.Close())
		if got := r.with("DEBUG sublet: dispatch"); got != dispatches || r.with("DEBUG sublet: batch sent") == 0 {
			t.Errorf("WithDebug(%q): %d launches logged, want %d, in %q", option, got, dispatches, r.list)
		}
	}
	t.Setenv("SUBLET_DEBUG", "everything")
	if dev, err := gpu.Open(t.Context(), gpu.WithDriver("cpu")); !errors.Is(err, gpu.ErrInvalid) {
		t.Errorf("an unknown word: got %v, %v, want ErrInvalid", dev, err)
	}
}
