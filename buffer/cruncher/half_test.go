// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// TestHalfArithmetic has a function compute in half precision, where devices do: 2048 + 1 is 2048 there. Elsewhere it does not compile.
func TestHalfArithmetic(t *testing.T) {
	devices := openDevices(t, 1)
	has := devices[0].Info().Features
	if !has.Has(driver.FeatureWGSL) {
		return // no driver that compiles it
	}
	cr := onDevices(t, devices, 1, "enable f16;\nfn next(i: u32) { arr[i] = u32(f16(arr[i]) + 1.0h); }", even())
	arr := wrap(t, "arr", []uint32{1, 2047, 2048, 2050})
	err := cr.Compute(t.Context(), 1, "next", cruncher.Range{Global: 4, Local: 4}, arr)
	if has.Has(driver.FeatureHalf) != (err == nil) {
		t.Fatalf("with %v: %v", has.Names(), err)
	}
	if err != nil {
		return
	}
	for i, want := range []uint32{2, 2048, 2048, 2052} {
		if got := must[[]uint32](t)(arr.ToArray())[i]; got != want {
			t.Errorf("element %d is %d, want %d", i, got, want)
		}
	}
}
