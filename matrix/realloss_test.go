// SPDX-License-Identifier: Apache-2.0

package matrix_test

import (
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// TestRealLosses really loses devices of wgpu, at some of the calls. Each keeps some memory of the process.
func TestRealLosses(t *testing.T) {
	name := devtest.Native()
	if !slices.Contains(devtest.Drivers(), name) {
		return
	}
	sample := 12
	if devtest.Long() {
		sample = 60
	}
	s := devtest.Script{Devices: 2, Sample: true, New: newDenseScene(4, 3), Open: func(t testing.TB) *devtest.Faulty {
		dev := must[*gpu.Device](t)(gpu.Open(background, gpu.WithDriver(name)))
		return devtest.NewReal(devtest.Driver(dev), nil)
	}}
	if n := s.EveryFault(t, sample, devtest.Lose, devtest.LoseAfter); n < sample/2 {
		t.Errorf("%d losses", n)
	}
	s.EveryFault(t, sample, devtest.NoMemory, devtest.Refuse)
}
