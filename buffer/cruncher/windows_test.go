// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
)

// TestWindowsChangeNothing runs random programs on devices that hold an array in parts, and on others that hold it whole: what the
// host gets is the same. Calls that are refused there change nothing.
func TestWindowsChangeNothing(t *testing.T) {
	const n = 2048
	for devs := 1; devs <= 2; devs++ {
		whole, parts := openDevices(t, devs), openDevices(t, devs, gpu.WithMaxBuffer(1024))
		steps := 0
		for seed := range uint64(40) {
			var want [][]uint32
			for _, devices := range [][]*gpu.Device{whole, parts} {
				got := windowProgram(t, devices, rand.New(rand.NewPCG(seed, 9)), n)
				if want == nil {
					want = got
				}
				steps += len(got)
				for i := range got {
					if !slices.Equal(got[i], want[i]) {
						t.Fatalf("%d devices, seed %d, step %d: %v, want %v", devs, seed, i, differing(got[i], want[i]), differing(want[i], got[i]))
					}
				}
			}
		}
		if steps < 2000 {
			t.Errorf("only %d steps were compared", steps)
		}
	}
}

// differing returns the elements of a that are others in b, at most 10 of them.
func differing(a, b []uint32) (list [][2]int) {
	for i := range a {
		if a[i] != b[i] && len(list) < 10 {
			list = append(list, [2]int{i, int(a[i])})
		}
	}
	return list
}

// windowProgram returns what the host has after each step.
func windowProgram(t *testing.T, devices []*gpu.Device, rng *rand.Rand, n int) (hosts [][]uint32) {
	t.Helper()
	cr := must[*cruncher.Cruncher](t)(cruncher.New(t.Context(), devices, checksSource, shifting()))
	a := must[*cruncher.Array[uint32]](t)(cruncher.NewArray[uint32]("a", n))
	for range 30 {
		switch rng.IntN(6) {
		case 0:
			for range 1 + rng.IntN(20) {
				if err := a.Set(rng.IntN(n), rng.Uint32N(1000)); !errors.Is(err, cruncher.ErrStale) {
					check(t, err)
				}
			}
		case 1:
			check(t, cr.Fetch(t.Context(), a.Any))
		default:
			read := rng.IntN(2) == 0
			edit(a).Read(false).PartialRead(read).Write(rng.IntN(2) == 0)
			at := 8 * rng.IntN(n/8)
			if wide := (cruncher.Range{Global: n, Local: 8}); rng.IntN(3) == 0 && devices[0].Info().Limits.MaxBufferSize < uint64(4*n) {
				if err := a.Compute(t.Context(), cr, 1, "inc", wide); !errors.Is(err, gpu.ErrLimit) && !errors.Is(err, cruncher.ErrStale) {
					t.Errorf("a call that needs more at once: %v", err)
				}
			}
			r := cruncher.Range{Offset: at, Global: min(8*(1+rng.IntN(16)), n-at), Local: 8}
			if err := a.Compute(t.Context(), cr, 1, "inc", r); err != nil { // the devices gave elements up that have changed since
				refused(t, "a call", err, cruncher.ErrStale)
				return hosts
			}
		}
		hosts = append(hosts, slices.Clone(a.Data()))
	}
	check(t, cr.Fetch(t.Context(), a.Any))
	hosts = append(hosts, slices.Clone(a.Data()))
	check(t, cr.Close())
	check(t, a.Close())
	return hosts
}
