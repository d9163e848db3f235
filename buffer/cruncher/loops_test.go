// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"errors"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
)

// TestLongLoops counts in loops that some adapters end early: the result is right, or there is an error and the array is as it was.
func TestLongLoops(t *testing.T) {
	devices := openDevices(t, 2)
	if !devices[0].Info().Features.Has(driver.FeatureWGSL) {
		return // no driver that compiles it
	}
	limited := devices[0].Info().Limits.MaxLoopsPerInvoking-1 < 1e5 // not 0 either
	for _, n := range []int{1, 2} {
		cr := onDevices(t, devices, n, "fn count(i: u32) { for (var k = 0u; k < n; k++) { arr[i] += 1u; } }", even())
		const items = 512
		arr, other := wrap(t, "arr", make([]uint32, items)), wrap(t, "arr", make([]uint32, items))
		check(t, arr.SetFlags(cruncher.Flags{PartialRead: true, Write: true}))
		want := uint32(0)
		for _, turns := range []uint32{10, 60000, 70000, 5} {
			err := cr.Compute(t.Context(), 1, "count", cruncher.Range{Global: items, Local: 64}, arr, cruncher.NewScalar("n", turns))
			if limited && turns > 65535 {
				if !errors.Is(err, gpu.ErrLimit) {
					t.Errorf("%d turns on %d devices: %v", turns, n, err)
				}
			} else {
				check(t, err)
				want += turns
			}
			got := must[[]uint32](t)(arr.ToArray())
			for i := range got {
				if got[i] != want {
					t.Fatalf("%d turns on %d devices: element %d is %d, want %d", turns, n, i, got[i], want)
				}
			}
		}
		check(t, cr.Compute(t.Context(), 2, "count", cruncher.Range{Global: items, Local: 64}, other, cruncher.NewScalar("n", uint32(7))))
		if got := must[[]uint32](t)(other.ToArray()); got[items-1] != 7 {
			t.Errorf("afterwards: %d", got[items-1])
		}
	}
}
