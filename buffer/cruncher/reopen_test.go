// SPDX-License-Identifier: Apache-2.0

package cruncher_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher"
	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/devtest"
)

// worldReferences do what randomKernels do.
var worldReferences = map[string]reference{
	"scale": func(i uint32, m memory) {
		for k := i * 2; k < i*2+2; k++ {
			m.set("x", k, m.at("x", k)*3+1)
		}
	},
	"blend": func(i uint32, m memory) {
		m.set("y", i, m.at("y", i)+m.at("x", 2*i)&0xff-7)
		m.set("z", i, m.at("z", i)+m.at("y", i))
	},
	"count": func(i uint32, m memory) {
		if i%3 == 0 {
			m.set("z", i, m.at("z", i)+5)
		}
		m.set("y", i, m.at("y", i)^3)
	},
}

// reopen brings a device back, to be lost as planned.
func reopen(t *testing.T, d *gpu.Device, references map[string]reference, plan failure) *faulty {
	t.Helper()
	f := newFaulty(t, references, plan)
	check(t, d.Reopen(t.Context(), gpu.WithDevice(f)))
	return f
}

// TestRandomFaults makes random calls and batches while devices are lost and come back. What does not fail is what a device that is
// never lost makes, and what fails has changed nothing.
func TestRandomFaults(t *testing.T) {
	devtest.AtLeast(t, devtest.Lose, 70, 200)
	for seed := range uint64(devtest.Times(1)) {
		rng := rand.New(rand.NewPCG(seed, 11))
		sure, _ := openFaulty(t, worldReferences, []failure{never})
		devices, drivers := openFaulty(t, worldReferences, []failure{never, never, never})
		one, many := newWorldOn(t, sure, rand.New(rand.NewPCG(1, 1))), newWorldOn(t, devices, rand.New(rand.NewPCG(seed, 2)))
		one.still, many.still = true, true
		x, y := rand.New(rand.NewPCG(seed, 3)), rand.New(rand.NewPCG(seed, 3))
		failed, losses := 0, 0
		for round := range 150 {
			for i, d := range devices {
				if d.Usable() != nil && rng.IntN(2) == 0 {
					drivers[i] = reopen(t, d, worldReferences, never)
					losses++
				}
				if rng.IntN(3) == 0 {
					drivers[i].arm(rng.IntN(25), rng.IntN(2) == 0)
				}
			}
			n := 1 + rng.IntN(5)
			var what []string
			for range n {
				what = append(what, one.step(t, x, one.cr.Compute))
			}
			err := many.several(t, y, n, rng.IntN(2) == 0)
			what = append(what, fmt.Sprint(err))
			switch {
			case err == nil && !many.equal(one):
				t.Fatalf("seed %d, round %d: another result\n%q", seed, round, what)
			case err == nil:
				continue
			case !errors.Is(err, cruncher.ErrStale) && !errors.Is(err, gpu.ErrDeviceLost):
				t.Fatalf("seed %d, round %d: %v", seed, round, err)
			}
			failed++
			check(t, one.cr.Evict())
			check(t, many.cr.Evict())
			check(t, errors.Join(one.x.CopyTo(many.x, 0), one.y.CopyTo(many.y, 0), one.z.CopyTo(many.z, 0)))
		}
		if losses < 10 || failed > 120 {
			t.Errorf("seed %d: %d devices came back, %d rounds failed", seed, losses, failed)
		}
		check(t, many.cr.Close())
		for i, d := range devices {
			if st := d.Stats(); d.Usable() == nil && (st.Buffers != 0 || st.Kernels != 0) {
				t.Errorf("seed %d: device %d has %d buffers and %d kernels", seed, i, st.Buffers, st.Kernels)
			}
		}
	}
}

// several makes steps, in a batch or not. Those that fail change nothing.
func (w *world) several(t *testing.T, rng *rand.Rand, n int, batch bool) error {
	t.Helper()
	var errs []error
	before := w.copy()
	steps := func(compute computing) {
		for range n {
			_, err := w.try(t, rng, compute)
			errs = append(errs, err)
			if err != nil && !batch && !w.equal(before) { // within a batch results may come early
				t.Errorf("a failed call has changed something: %v", err)
			}
			if !batch {
				before = w.copy()
			}
		}
	}
	if batch {
		err := w.cr.Batch(t.Context(), func(b *cruncher.Batch) error { steps(b.Compute); return nil })
		if err != nil && !w.equal(before) {
			t.Errorf("a failed batch has changed something: %v", err)
		}
		return errors.Join(append(errs, err)...)
	}
	steps(w.cr.Compute)
	return errors.Join(errs...)
}

// copy copies the arrays' host sides.
func (w *world) copy() *world {
	c := &world{}
	c.x, _ = cruncher.Wrap("x", slices.Clone(w.x.Data()))
	c.y, _ = cruncher.Wrap("y", slices.Clone(w.y.Data()))
	c.z, _ = cruncher.Wrap("z", slices.Clone(w.z.Data()))
	return c
}

// TestReopened wants a device that came back to get its share in the next call, whoever balances, and soon the one that it had. Pinned shares are
// decided anew.
func TestReopened(t *testing.T) {
	const items, speed = 6000, 1e6
	for name, c := range map[string]struct {
		balancer  balance.Balancer
		coherence cruncher.Coherence
	}{
		"adaptive": {balance.New(), cruncher.Migrate},
		"legacy":   {balance.NewLegacyRaw(), cruncher.Migrate},
		"pinned":   {balance.New(), cruncher.Pin},
	} {
		t.Run(name, func(t *testing.T) {
			devices, drivers := openFaulty(t, faultReferences, []failure{never, never, never})
			balancer := simulated{c.balancer, func(device int, s balance.Sample) float64 { return float64(s.Count) / speed / float64(device+1) }}
			cr := onDevices(t, devices, 3, faultSource, cruncher.WithBalancer(balancer), cruncher.WithCoherence(c.coherence))
			x, by := newArray[uint32](t, "x", items), cruncher.NewScalar("by", uint32(1))
			edit(x).PartialRead(true)
			calls := uint32(0)
			run := func(n int) {
				for range n {
					check(t, cr.Compute(t.Context(), 1, "inc", cruncher.Range{Global: items, Local: 1}, x, by))
					calls++
					same(t, "x", x.Data(), slices.Repeat([]uint32{calls}, items))
				}
			}
			run(30)
			before := cr.Stats(1).Shares
			drivers[2].Lose()
			run(3)
			if s := cr.Stats(1).Shares; s[2] != 0 {
				t.Errorf("a lost device has a share: %v", s)
			}
			drivers[2] = reopen(t, devices[2], faultReferences, never)
			run(1)
			if n := cr.Last().Shares[2].Count; n == 0 || cr.Stats(1).Shares[2] == 0 {
				t.Errorf("the device that came back has %d items", n)
			}
			run(30)
			for i, s := range cr.Stats(1).Shares {
				if name != "pinned" && math.Abs(s-before[i]) > 0.03 {
					t.Errorf("shares %v, before the loss %v", cr.Stats(1).Shares, before)
					break
				}
			}
		})
	}
}

// TestReopenedResident has arrays on devices when one is lost and comes back, between two calls: it has nothing of them.
func TestReopenedResident(t *testing.T) {
	devices, drivers := openFaulty(t, faultReferences, []failure{never, never})
	s := newStuff(t, devices, even())
	half := cruncher.Range{Global: faultItems / 2, Local: 1}
	z, by := flagged(s.z.Any, false, false, false), cruncher.NewScalar("by", uint32(1))
	x := flagged(s.x.Any, true, false, true)
	check(t, s.cr.Compute(t.Context(), 1, "own", half, z)) // half of it on each device
	check(t, s.cr.Compute(t.Context(), 2, "inc", faultRange, x, by))
	s.x.Track()
	check(t, s.cr.Compute(t.Context(), 2, "inc", faultRange, x, by))
	drivers[1].Lose()
	drivers[1] = reopen(t, devices[1], faultReferences, never)
	check(t, s.cr.Compute(t.Context(), 2, "inc", faultRange, flagged(s.x.Any, false, false, true), by)) // what the host has is there
	same(t, "x", s.x.Data(), count(faultItems, uint32(4)))
	refused(t, "what the device had", s.cr.Compute(t.Context(), 1, "own", half, z), cruncher.ErrStale)
	refused(t, "fetching that", s.cr.Fetch(t.Context(), s.z.Any), cruncher.ErrStale)
	check(t, s.cr.Evict(s.z.Any))
	check(t, s.cr.Compute(t.Context(), 1, "own", half, z))
	check(t, s.cr.Fetch(t.Context(), s.z.Any))
	same(t, "from the beginning", s.z.Data()[:30], slices.Repeat([]uint32{2}, 30))
	if d := devices[1].Stats(); d.Dispatches == 0 {
		t.Error("the device that came back does nothing")
	}
}

// TestReopenedInBatch loses the only device within a batch and brings it back there.
func TestReopenedInBatch(t *testing.T) {
	devices, drivers := openFaulty(t, faultReferences, []failure{never})
	s := newStuff(t, devices)
	by, x := cruncher.NewScalar("by", uint32(1)), flagged(s.x.Any, true, false, true)
	refused(t, "the batch", s.cr.Batch(t.Context(), func(b *cruncher.Batch) error {
		check(t, b.Compute(t.Context(), 1, "inc", faultRange, x, by))
		drivers[0].Lose()
		refused(t, "without a device", b.Compute(t.Context(), 1, "inc", faultRange, x, by), gpu.ErrDeviceLost)
		drivers[0] = reopen(t, devices[0], faultReferences, never)
		refused(t, "what was there", b.Compute(t.Context(), 1, "inc", faultRange, x, by), cruncher.ErrStale)
		for b.Remaining() > 0 { // ends, or the test does
			check(t, t.Context().Err())
			time.Sleep(time.Microsecond)
		}
		return nil
	}), cruncher.ErrStale)
	same(t, "x", s.x.Data(), count(faultItems, uint32(1)))
	check(t, s.cr.Batch(t.Context(), func(b *cruncher.Batch) error { return b.Compute(t.Context(), 1, "inc", faultRange, x, by) }))
	same(t, "x", s.x.Data(), count(faultItems, uint32(2)))
}
