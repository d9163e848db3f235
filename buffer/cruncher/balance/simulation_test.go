// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"math/rand/v2"
	"testing"
)

// fleet simulates devices whose times vary evenly by noise about overhead + items / speed.
type fleet struct {
	global, step    int
	speeds          []float64 // items per second
	overhead, noise float64
}

// efficiencies returns, for each call, what it would take if work could be divided at will and without overhead, as a
// part of what it took.
func (f fleet) efficiencies(t *testing.T, b Balancer, calls int, seed uint64) []float64 {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 20))
	var sum float64
	for _, v := range f.speeds {
		sum += v
	}
	var all []float64
	for range calls {
		counts, err := b.Split(Request{Global: f.global, Step: f.step, Devices: len(f.speeds)})
		if err != nil {
			t.Fatal(err)
		}
		samples := make([]Sample, len(counts))
		var last float64
		for i, n := range counts {
			if n > 0 {
				samples[i] = Sample{n, (f.overhead + float64(n)/f.speeds[i]) * (1 + f.noise*(2*rng.Float64()-1))}
			}
			last = math.Max(last, samples[i].Seconds)
		}
		b.Observe(0, samples)
		all = append(all, float64(f.global)/sum/last)
	}
	return all
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// mean returns the mean efficiencies of calls 1 to 10 and of calls 21 to 50.
func (f fleet) mean(t *testing.T, make func() Balancer) (early, late float64) {
	t.Helper()
	const seeds = 20
	for seed := range uint64(seeds) {
		e := f.efficiencies(t, make(), 50, seed)
		early += mean(e[:10]) / seeds
		late += mean(e[20:]) / seeds
	}
	return early, late
}

var table = []struct {
	name                    string
	fleet                   fleet
	early, late             float64 // of the default balancer
	legacyEarly, legacyLate float64
}{
	{"1:3", fleet{1 << 20, 256, []float64{1e6, 3e6}, 0, 0}, 0.950, 1.000, 0.787, 0.999},
	{"1:2:5, 10 % noise", fleet{1 << 16, 64, []float64{1e5, 2e5, 5e5}, 0, 0.1}, 0.893, 0.954, 0.704, 0.955},
	{"1:20, overhead, 5 % noise", fleet{1 << 20, 256, []float64{1e6, 20e6}, 2e-3, 0.05}, 0.850, 0.947, 0.350, 0.945},
	{"1:4, 10 steps", fleet{1000, 100, []float64{1e5, 4e5}, 0, 0}, 0.940, 1.000, 0.623, 0.667},
	{"1:2:5, 10 steps", fleet{1000, 100, []float64{1e5, 2e5, 5e5}, 0, 0}, 0.835, 0.893, 0.573, 0.625},
	{"six, 2 % noise", fleet{1000, 1, []float64{1e3 / 2, 1e3 / 3, 1e3 / 4, 1e3 / 5, 1e3 / 6, 1e3 / 7}, 0, 0.02}, 0.940, 0.985, 0.779, 0.932},
}

func TestEfficiency(t *testing.T) {
	for _, c := range table {
		early, late := c.fleet.mean(t, func() Balancer { return New() })
		t.Logf("%s: %.3f %.3f", c.name, early, late)
		if early < c.early-0.02 || late < c.late-0.02 {
			t.Errorf("%s: efficiency %.3f and %.3f, want %.3f and %.3f", c.name, early, late, c.early, c.late)
		}
	}
}

// The table's efficiencies of the other balancer show that the simulation is the one behind the table.
func TestLegacyEfficiency(t *testing.T) {
	for _, c := range table {
		early, late := c.fleet.mean(t, func() Balancer { return NewLegacy() })
		t.Logf("%s: %.3f %.3f", c.name, early, late)
		if math.Abs(early-c.legacyEarly) > 0.005 || math.Abs(late-c.legacyLate) > 0.005 {
			t.Errorf("%s: efficiency %.3f and %.3f, want %.3f and %.3f", c.name, early, late, c.legacyEarly, c.legacyLate)
		}
	}
}

// With 64 steps for each device 95 % is reached, whatever the devices.
func TestSteadyEfficiency(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 50 {
		n := 1 + rng.IntN(8)
		f := fleet{step: 1 + rng.IntN(300), noise: 0.02}
		sum, slowest := 0.0, math.Inf(1)
		for range n {
			v := 1e6 * math.Exp(3*rng.Float64())
			f.speeds = append(f.speeds, v)
			sum += v
			slowest = min(slowest, v)
		}
		// The slowest device has 64 steps.
		f.global = f.step * int(math.Ceil(64*sum/slowest))
		if e := mean(f.efficiencies(t, New(), 60, 9)[20:]); e < 0.95 {
			t.Errorf("%v: %.3f", f, e)
		}
	}
}
