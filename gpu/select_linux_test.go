// SPDX-License-Identifier: Apache-2.0

package gpu_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/gputest"
)

// TestTwoAdapters measures two drivers' adapters in one process and uses both.
func TestTwoAdapters(t *testing.T) {
	if !gputest.WithSecond(t) {
		return
	}
	kernels := gpu.Select(t.Context()).Kernels()
	if count(kernels) < 2 {
		t.Fatalf("%d adapters", count(kernels))
	}
	ranked := kernels.Rank(t.Context(), nil)
	if count(ranked) != count(kernels) {
		t.Errorf("%d of %d adapters could be measured", count(ranked), count(kernels))
	}
	devices := openAll(t, ranked.Best(2))
	if len(devices) != 2 {
		t.Fatalf("%d devices", len(devices))
	}
	for _, d := range devices {
		t.Log(d.Info().Name)
		if v, err := gpu.NBody(t.Context(), d); err != nil || v <= 0 {
			t.Errorf("%s: %g, %v", d.Info().Name, v, err)
		}
	}
}
