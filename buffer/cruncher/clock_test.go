// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"math"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
)

// TestClock has devices of simulated speeds, 1 to 3: the shares become those of the speeds, whoever balances.
func TestClock(t *testing.T) {
	devices := openDevices(t, 2)
	for name, c := range map[string]struct {
		balancer  balance.Balancer
		calls     int
		tolerance float64
	}{
		"adaptive": {balance.New(), 3, 0.01},
		"legacy":   {balance.NewLegacyRaw(), 25, 0.03},
	} {
		cr := onDevices(t, devices, 2, checksSource, cruncher.WithBalancer(simulated{c.balancer, func(device int, s balance.Sample) float64 {
			if s.Seconds < 0 { // 0 where the clock is coarse
				t.Errorf("device %d took %v seconds", device, s.Seconds)
			}
			return float64(s.Count) / []float64{1e6, 3e6}[device]
		}}))
		a := newArray[uint32](t, "a", 1<<16)
		edit(a).PartialRead(true)
		for range c.calls {
			check(t, a.Compute(t.Context(), cr, 7, "inc", cruncher.Range{Global: 1 << 16, Local: 64}))
		}
		if got := cr.Stats(7).Shares; len(got) != 2 || math.Abs(got[1]-0.75) > c.tolerance {
			t.Errorf("%s: shares %v after %d calls", name, got, c.calls)
		}
		check(t, a.Compute(t.Context(), cr, 8, "inc", cruncher.Range{Global: 1 << 16, TransferOnly: true}))
		check(t, a.Compute(t.Context(), cr, 8, "inc", cruncher.Range{Global: 1 << 16}))
		if got := cr.Stats(8).Shares; math.Abs(got[1]-0.5) > c.tolerance {
			t.Errorf("%s: transfers alone changed the shares of another id to %v", name, got)
		}
		same(t, name, a.Data()[:1], []uint32{uint32(c.calls + 1)})
	}
}
