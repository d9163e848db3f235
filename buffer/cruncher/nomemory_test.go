// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// noMemory is a plan that lets calls fail for lack of memory: number first modulo every, of those that may.
func noMemory(first, every int) devtest.Plan {
	n := 0
	return func(c devtest.Call) devtest.Fault {
		if !c.Takes() {
			return devtest.None
		}
		if n++; (n-1)%every == first {
			return devtest.NoMemory
		}
		return devtest.None
	}
}

// memoryCalls are calls of every kind.
func memoryCalls(s *stuff) []func(compute computing) error {
	by := cruncher.NewScalar("by", uint32(3))
	call := func(kernels string, r cruncher.Range, p ...func() cruncher.Param) func(computing) error {
		return func(compute computing) error {
			var list []cruncher.Param
			for _, f := range p {
				list = append(list, f())
			}
			return compute(context.Background(), 1, kernels, r, append(list, by)...)
		}
	}
	x := func() cruncher.Param { return flagged(s.x.Any, true, false, true) }
	y := func() cruncher.Param { return flagged(s.y.Any, false, true, true) }
	b := func() cruncher.Param { return flagged(s.b.Any, true, false, true) }
	part := func() cruncher.Param { return flagged(s.x.Any, false, true, true) }
	return []func(computing) error{
		call("inc", faultRange, part),
		call("mix", faultRange, x, y),
		call("small", faultRange, x, b),
		call("inc", cruncher.Range{Global: faultItems, Local: 4, Blobs: 3}, part),
		call("inc", cruncher.Range{Global: faultItems, Local: 4, Repeat: 2, SyncKernel: "sync"}, x),
	}
}

// TestMemoryFaults has calls of every kind fail for lack of memory. Each is right, or ErrNoMemory and has changed nothing; once there is
// memory it is right.
func TestMemoryFaults(t *testing.T) {
	sure, _ := openFaulty(t, faultReferences, []failure{never})
	ref := newStuff(t, sure)
	want := [][]uint32{ref.values()}
	for _, call := range memoryCalls(ref) {
		check(t, call(ref.cr.Compute))
		want = append(want, ref.values())
	}
	devtest.AtLeast(t, devtest.NoMemory, 5000, 10000)
	most := 4
	if devtest.Long() {
		most = 24
	}
	for every := 1; every <= most; every++ {
		for first := range every {
			devices, drivers := openFaulty(t, faultReferences, []failure{never, never, never})
			s := newStuff(t, devices, shifting())
			arm := func(plan func() devtest.Plan) {
				for _, f := range drivers {
					f.Arm(plan())
				}
			}
			fails := func() devtest.Plan { return noMemory(first, every) }
			succeeds := func() devtest.Plan { return nil }
			for k, call := range memoryCalls(s) {
				for try := range 12 {
					arm(fails)
					err := call(s.cr.Compute)
					arm(succeeds)
					if err == nil {
						break
					}
					if !errors.Is(err, gpu.ErrNoMemory) {
						t.Fatalf("every %d, from %d on: call %d: %v", every, first, k, err)
					}
					if !slices.Equal(s.values(), want[k]) {
						t.Fatalf("every %d, from %d on: call %d failed and has changed something", every, first, k)
					}
					if try == 11 {
						check(t, call(s.cr.Compute))
					}
				}
				same(t, "the call", s.values(), want[k+1])
			}
			leftovers(t, s, devices)
		}
	}
}
