// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// split makes a split that has to succeed.
func split(t *testing.T, b Balancer, r Request) []int {
	t.Helper()
	counts, err := b.Split(r)
	if err != nil {
		t.Fatal(err)
	}
	return counts
}

// done observes counts on devices of the given speeds.
func done(b Balancer, id int, counts []int, speeds ...float64) {
	samples := make([]Sample, len(counts))
	for i, n := range counts {
		samples[i] = Sample{n, float64(n) / speeds[i]}
	}
	b.Observe(id, samples)
}

// The greedy loop of which place is the short form.
func TestPlaceIsGreedy(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	for range 3000 {
		n := 1 + rng.IntN(7)
		pace := make([]float64, n)
		for i := range n {
			pace[i] = math.Exp(6 * rng.Float64())
			if i > 0 && rng.IntN(5) == 0 {
				pace[i] = math.Inf(1)
			}
		}
		steps := rng.IntN(500)
		want := make([]int, n)
		for range steps {
			best := 0
			for i := range n {
				if float64(want[i]+1)*pace[i] < float64(want[best]+1)*pace[best] {
					best = i
				}
			}
			want[best]++
		}
		if got := place(pace, steps); !slices.Equal(got, want) {
			t.Fatalf("%d steps at %v: %v, want %v", steps, pace, got, want)
		}
	}
}

func TestExactOnSecondCall(t *testing.T) {
	got := linear(t, New(), 1<<20, 256, 2, 3, constant(1, 3))
	for k, want := range [][]int{{524288, 524288}, {262144, 786432}, {262144, 786432}} {
		if !slices.Equal(got[k], want) {
			t.Errorf("call %d: %v, want %v", k+1, got[k], want)
		}
	}
}

// Devices that change places are followed within a few calls: by less than an outlier's factor, and by more.
func TestSpeedsSwap(t *testing.T) {
	for _, fast := range []float64{2, 9} {
		const step, global = 64, 1 << 16
		got := linear(t, New(), global, step, 2, 28, func(k, i int) float64 {
			if (k <= 20) == (i == 0) {
				return 1
			}
			return fast
		})
		for k, share := range map[int]float64{21: 1 / (1 + fast), 28: fast / (1 + fast)} {
			if first := float64(got[k-1][0]) / global; math.Abs(first-share) > 0.1*share {
				t.Errorf("1:%v, call %d: %v, want %.3f of it on device 0", fast, k, got[k-1], share)
			}
		}
	}
}

func TestOutliers(t *testing.T) {
	b := New()
	r := Request{Global: 1 << 20, Step: 256, Devices: 2}
	want := linear(t, b, r.Global, r.Step, 2, 10, constant(1, 3))[9]
	for _, factor := range []float64{50, 1.0 / 50} {
		counts := split(t, b, r)
		done(b, 0, counts, 1e5*factor, 3e5)
		for range 3 {
			if counts = split(t, b, r); !slices.Equal(counts, want) {
				t.Errorf("a time %v times as long moved ranges to %v", 1/factor, counts)
			}
			done(b, 0, counts, 1e5, 3e5)
		}
	}
	if s := b.Stats(0); s.Dropped != 2 {
		t.Errorf("%d samples dropped", s.Dropped)
	}
	// When it stays so, two calls are lost.
	for range 3 {
		done(b, 0, split(t, b, r), 1e5/50, 3e5)
	}
	ideal := float64(r.Global) / 151
	if got := split(t, b, r); math.Abs(float64(got[0])-ideal) > 256 {
		t.Errorf("%v, want %.0f on device 0", got, ideal)
	}
}

func TestOutlierOfOtherCount(t *testing.T) {
	for _, c := range []struct {
		before, now Sample
		used        bool
	}{
		{Sample{10000, 1}, Sample{10, 0.9}, true},   // overhead
		{Sample{10000, 1}, Sample{10, 0.001}, true}, // none
		{Sample{10000, 1}, Sample{10, 3.1}, false},  // more than for more work
		{Sample{10000, 1}, Sample{10, 3e-4}, false}, // less than in proportion
		{Sample{10, 1}, Sample{10000, 1.1}, true},   // overhead
		{Sample{10, 1}, Sample{10000, 1000}, true},  // none
		{Sample{10, 1}, Sample{10000, 3100}, false}, // more than in proportion
		{Sample{10, 1}, Sample{10000, 0.32}, false}, // less than for less work
	} {
		var d device
		for range 4 {
			d.observe(c.before)
		}
		if used := d.observe(c.now); used != c.used {
			t.Errorf("%v after %v: %v", c.now, c.before, used)
		}
	}
}

// A clock that is too coarse says nothing.
func TestTimesTooShort(t *testing.T) {
	b := New()
	counts := split(t, b, Request{Global: 1000, Step: 1, Devices: 2})
	b.Observe(0, []Sample{{counts[0], 0}, {counts[1], 0.5}})
	if got := b.Stats(0).Throughput; !slices.Equal(got, []float64{0, 500 / 0.5}) {
		t.Error(got)
	}
}

// A device whose overhead prevails takes as long for fewer items; that is no outlier.
func TestOverheadIsNoOutlier(t *testing.T) {
	f := fleet{1 << 16, 64, []float64{1e6, 50e6}, 0.002, 0}
	b := New()
	f.efficiencies(t, b, 30, 1)
	if s := b.Stats(0); s.Dropped != 0 {
		t.Errorf("%d samples dropped, ranges %v", s.Dropped, s.History)
	}
}

func TestProbe(t *testing.T) {
	const every = probeEvery
	b := New()
	r := Request{Global: 64 * 100, Step: 64, Devices: 2}
	speeds := []float64{1, 1e4} // device 0 needs 64 s for a step, 100 times what device 1 needs for all
	var given []int
	for k := range 5000 {
		counts := split(t, b, r)
		if k > 0 && counts[0] > 0 {
			if counts[0] != 64 {
				t.Fatalf("call %d: a probe of %d items", k, counts[0])
			}
			given = append(given, k)
		}
		done(b, 0, counts, speeds...)
	}
	if n := len(given); n != 1 || given[0] < 100*(every-1) {
		t.Errorf("probed at %v", given)
	}
	if s := b.Stats(0); s.Probes != len(given) {
		t.Errorf("%d probes counted", s.Probes)
	}
	// As fast as the other one now, it is found out at once and gets its half.
	calls := 0
	for split(t, b, r)[0] == 0 {
		if calls++; calls > 100*every {
			t.Fatal("not probed again")
		}
	}
	done(b, 0, []int{64, 6336}, 1e4, 1e4)
	for range 4 {
		done(b, 0, split(t, b, r), 1e4, 1e4)
	}
	if got := split(t, b, r); !slices.Equal(got, []int{3200, 3200}) {
		t.Error(got)
	}
}

// Where there are fewer steps than devices, all devices are tried in turn.
func TestProbeOfUntried(t *testing.T) {
	b := New()
	r := Request{Global: 100, Step: 128, Devices: 4}
	tried := make([]int, 4)
	for range 4 {
		counts := split(t, b, r)
		tried[slices.Index(counts, 100)]++
		done(b, 0, counts, 1e3, 2e3, 4e3, 3e3)
	}
	if !slices.Equal(tried, []int{1, 1, 1, 1}) {
		t.Error(tried)
	}
	if got := split(t, b, r); !slices.Equal(got, []int{0, 0, 100, 0}) {
		t.Error(got)
	}
}

// Idle devices take turns.
func TestProbesTakeTurns(t *testing.T) {
	b := New()
	r := Request{Global: 2000, Step: 10, Devices: 5}
	probed := make([]int, 5)
	for k := range 10*(4+probeEvery) + 2 {
		counts := split(t, b, r)
		for i, n := range counts {
			if k > 0 && i > 0 && n > 0 {
				probed[i]++
			}
		}
		// 2 s alone; 2.5 s for a step.
		done(b, 0, counts, 1000, 4, 4, 4, 4)
	}
	if !slices.Equal(probed, []int{0, 10, 10, 10, 10}) {
		t.Error(probed)
	}
}

// A device that comes back is looked at soon, also when it had nothing before.
func TestProbeOfReturned(t *testing.T) {
	b := New()
	r := Request{Global: 2000, Step: 10, Devices: 2}
	for range 20 {
		done(b, 0, split(t, b, r), 1000, 4)
	}
	if got := split(t, b, r); got[1] != 0 {
		t.Fatal(got)
	}
	for _, r.Alive = range [][]bool{{true, false}, nil} {
		if got := split(t, b, r); (got[1] == 10) != (r.Alive == nil) {
			t.Errorf("alive %v: %v", r.Alive, got)
		}
	}
}

func TestMoves(t *testing.T) {
	// A shift of the border costs device 0 or 1 a second for each item that it did not have.
	var have []int
	price := 0.0
	moves := func(counts []int) []float64 {
		d := float64(counts[0] - have[0])
		return []float64{price * math.Max(d, 0), price * math.Max(-d, 0)}
	}
	run := func(perItem float64, slow float64) []int {
		b := New()
		r := Request{Global: 1000, Step: 10, Devices: 2, Moves: moves}
		have, price = []int{500, 500}, perItem
		have = split(t, b, r)
		done(b, 0, have, 1000, 1000)
		have = split(t, b, r)
		// Equal up to now; device 0 gets slower. The gain is below a second for each call.
		for range 3 {
			done(b, 0, have, 1000/slow, 1000)
			have = split(t, b, r)
		}
		return have
	}
	if got := run(0, 2); got[0] >= 450 {
		t.Errorf("free transfers: %v", got)
	}
	if got := run(5e-3, 2); got[0] >= 450 {
		t.Errorf("cheap transfers: %v", got)
	}
	if got := run(1, 2); !slices.Equal(got, []int{500, 500}) {
		t.Errorf("expensive transfers: %v", got)
	}
}

// Moves is not asked about devices that are not alive.
func TestMovesOfTheLiving(t *testing.T) {
	b := New()
	r := Request{Global: 1000, Step: 1, Devices: 2, Moves: func(counts []int) []float64 { return nil }}
	done(b, 0, split(t, b, r), 1000, 1000)
	r.Alive = []bool{true, false}
	r.Moves = func(counts []int) []float64 {
		if counts[1] != 0 {
			t.Errorf("asked about %v", counts)
		}
		return nil
	}
	if got := split(t, b, r); !slices.Equal(got, []int{1000, 0}) {
		t.Error(got)
	}
}

// What an answer of Moves should not hold counts as free.
func TestMovesThatMakeNoSense(t *testing.T) {
	for _, answer := range [][]float64{nil, {1}, {math.NaN(), math.NaN()}, {math.Inf(1), -1}, {-1e300, 1e300}} {
		b := New()
		r := Request{Global: 1 << 20, Step: 256, Devices: 2, Moves: func(counts []int) []float64 {
			clear(counts)
			b.Stats(0) // may be used
			return answer
		}}
		done(b, 0, split(t, b, r), 1e6, 3e6)
		if got := split(t, b, r); !slices.Equal(got, []int{262144, 786432}) {
			t.Errorf("%v: %v", answer, got)
		}
	}
}

func TestDeviceGoesAndComesBack(t *testing.T) {
	b := New()
	r := Request{Global: 8000, Step: 10, Devices: 3}
	step := func(want ...int) {
		t.Helper()
		counts := split(t, b, r)
		if !slices.Equal(counts, want) {
			t.Errorf("%v, want %v", counts, want)
		}
		done(b, 0, counts, 1e3, 2e3, 5e3)
	}
	step(2670, 2670, 2660)
	step(1000, 2000, 5000)
	r.Alive = []bool{true, true, false}
	step(2670, 5330, 0)
	step(2670, 5330, 0)
	r.Alive = nil
	step(1000, 2000, 5000)
	// It comes back slower, and its first sample counts in full.
	r.Alive = []bool{true, true, false}
	step(2670, 5330, 0)
	r.Alive = []bool{true, true, true}
	done(b, 0, split(t, b, r), 1e3, 2e3, 2e3)
	step(1600, 3200, 3200)
}

// A device that was not there at the first call is taken to be as slow as the slowest.
func TestLateDevice(t *testing.T) {
	b := New()
	r := Request{Global: 7000, Step: 10, Devices: 3, Alive: []bool{true, true, false}}
	done(b, 0, split(t, b, r), 1e3, 5e3, 1)
	r.Alive = nil
	if got := split(t, b, r); !slices.Equal(got, []int{1000, 5000, 1000}) {
		t.Error(got)
	}
}

// A quarter of a change from 1 to 2 is in the estimate after one sample.
func TestSmoothing(t *testing.T) {
	b := New()
	for range 30 {
		done(b, 0, split(t, b, Request{Global: 1000, Step: 1, Devices: 1}), 1000)
	}
	done(b, 0, split(t, b, Request{Global: 1000, Step: 1, Devices: 1}), 2000)
	if got := b.Stats(0).Throughput[0]; math.Abs(got-1250) > 1e-6 {
		t.Error(got)
	}
}

func BenchmarkSplit(b *testing.B) {
	for name, n := range map[string]int{"2 devices": 2, "8 devices": 8, "1024 devices": 1024} {
		b.Run(name, func(b *testing.B) {
			bal := New()
			r := Request{Global: 1e6 * 64, Step: 64, Devices: n}
			speeds := make([]float64, n)
			for i := range speeds {
				speeds[i] = 1e6 * float64(i%7+1)
			}
			for b.Loop() {
				counts, err := bal.Split(r)
				if err != nil {
					b.Fatal(err)
				}
				done(bal, 0, counts, speeds...)
			}
		})
	}
}
