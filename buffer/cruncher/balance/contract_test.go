// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/sublet-gpu/sublet/internal/fault"
)

// both runs a test on every balancer.
func both(t *testing.T, f func(t *testing.T, b Balancer)) {
	t.Helper()
	t.Run("adaptive", func(t *testing.T) { f(t, New()) })
	t.Run("legacy", func(t *testing.T) { f(t, NewLegacyRaw()) })
	t.Run("smooth", func(t *testing.T) { f(t, NewLegacy()) })
}

// holds checks what is promised of counts.
func holds(t *testing.T, r Request, counts []int) {
	t.Helper()
	if len(counts) != r.Devices {
		t.Fatalf("%d counts for %+v", len(counts), r)
	}
	sum, uneven := 0, 0
	for i, n := range counts {
		switch {
		case n < 0 || n > r.Global-sum:
			t.Fatalf("counts %v for %+v", counts, r)
		case n > 0 && r.Alive != nil && !r.Alive[i]:
			t.Fatalf("%v: device %d is not alive", counts, i)
		case n > 0 && sum%r.Step != 0:
			t.Fatalf("%v: range %d begins within a step of %d", counts, i, r.Step)
		}
		if n%r.Step != 0 {
			uneven++
		}
		sum += n
	}
	if sum != r.Global || uneven > 1 {
		t.Fatalf("counts %v for %+v", counts, r)
	}
}

func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, b Balancer) {
		good := Request{ID: 3, Global: 1000, Step: 10, Devices: 2}
		done(b, 3, split(t, b, good), 1e3, 3e3)
		before := b.Stats(3)
		for _, c := range []struct {
			r    Request
			want error
		}{
			{Request{ID: 3, Global: -1, Step: 10, Devices: 2}, fault.ErrInvalid},
			{Request{ID: 3, Global: math.MinInt, Step: 10, Devices: 2}, fault.ErrInvalid},
			{Request{ID: 3, Global: math.MaxInt, Step: 10, Devices: 2}, fault.ErrInvalid},
			{Request{ID: 3, Global: 1000, Step: 0, Devices: 2}, fault.ErrInvalid},
			{Request{ID: 3, Global: 1000, Step: -5, Devices: 2}, fault.ErrInvalid},
			{Request{ID: 3, Global: 1000, Step: 10, Devices: 0}, fault.ErrInvalid},
			{Request{ID: 3, Global: 1000, Step: 10, Devices: -1}, fault.ErrInvalid},
			{Request{ID: 3, Global: 1000, Step: 10, Devices: math.MaxInt}, fault.ErrInvalid},
			{Request{ID: 3, Global: 1000, Step: 10, Devices: 2, Alive: []bool{true}}, fault.ErrInvalid},
			{Request{ID: 3, Global: 1000, Step: 10, Devices: 2, Alive: []bool{}}, fault.ErrInvalid},
			{Request{ID: 3, Global: 1000, Step: 10, Devices: 2, Alive: []bool{false, false}}, ErrNoDevice},
			{Request{ID: 3, Global: 0, Step: 10, Devices: 2, Alive: []bool{false, false}}, ErrNoDevice},
		} {
			if counts, err := b.Split(c.r); counts != nil || !errors.Is(err, c.want) {
				t.Errorf("%+v: %v, %v", c.r, counts, err)
			}
		}
		after := b.Stats(3)
		if after.Calls != 1 || !slices.Equal(after.Throughput, before.Throughput) || len(after.History) != 1 {
			t.Errorf("refusals changed %+v to %+v", before, after)
		}
	})
}

func TestEmptyRange(t *testing.T) {
	both(t, func(t *testing.T, b Balancer) {
		if got := split(t, b, Request{Global: 0, Step: 7, Devices: 3}); !slices.Equal(got, []int{0, 0, 0}) {
			t.Error(got)
		}
		if s := b.Stats(0); s.Calls != 0 || s.Shares != nil {
			t.Errorf("%+v", s)
		}
	})
}

// Ranges whose steps cannot be handed out one by one, and changes between very small and very large.
func TestExtremes(t *testing.T) {
	both(t, func(t *testing.T, b Balancer) {
		for range 3 {
			for _, global := range []int{1 << 53, 1, 1<<53 - 1, 1000, 1 << 40} {
				for _, step := range []int{1, 3, 1 << 20, math.MaxInt} {
					r := Request{Global: global, Step: step, Devices: 5}
					counts := split(t, b, r)
					holds(t, r, counts)
					done(b, 0, counts, 1e-8, 1, 1e3, 1e9, 1e25)
				}
			}
		}
	})
}

func TestBadSamples(t *testing.T) {
	bad := []Sample{
		{-1, 1},
		{math.MinInt, 1},
		{100, -1},
		{100, math.NaN()},
		{100, math.Inf(1)},
		{100, math.Inf(-1)},
		{100, 1e300},
		{100, -math.MaxFloat64},
		{0, 5},
		{0, math.NaN()},
	}
	both(t, func(t *testing.T, b Balancer) {
		r := Request{Global: 1 << 20, Step: 256, Devices: 2}
		for range 40 {
			done(b, 0, split(t, b, r), 1e6, 3e6)
		}
		want := split(t, b, r)
		for _, s := range bad {
			b.Observe(0, []Sample{s, s})
			if got := split(t, b, r); !slices.Equal(got, want) {
				t.Errorf("%v: %v, want %v", s, got, want)
			}
		}
		b.Observe(0, nil)
		b.Observe(0, make([]Sample, 3))
		b.Observe(1, make([]Sample, 2))
		if got := split(t, b, r); !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if s := b.Stats(1); s.Calls != 0 {
			t.Errorf("observing an unknown id made it known: %+v", s)
		}
	})
}

func TestStats(t *testing.T) {
	both(t, func(t *testing.T, b Balancer) {
		r := Request{ID: 5, Global: 1000, Step: 10, Devices: 2}
		var counts []int
		for range 14 {
			counts = split(t, b, r)
			done(b, 5, counts, 1e3, 3e3)
		}
		s := b.Stats(5)
		sum := 0.0
		for i, share := range s.Shares {
			sum += share
			if math.Abs(share-float64(counts[i])/1000) > 1e-12 {
				t.Errorf("shares %v of %v", s.Shares, counts)
			}
		}
		if math.Abs(sum-1) > 1e-12 || s.Calls != 14 || len(s.History) != 10 || !slices.Equal(s.History[9], counts) {
			t.Errorf("%+v", s)
		}
		for i, v := range s.Throughput {
			if want := []float64{1e3, 3e3}[i]; math.Abs(v-want) > 1e-6*want {
				t.Errorf("throughput %v", s.Throughput)
			}
		}
		// They are copies.
		clear(counts)
		clear(s.History[9])
		clear(s.Throughput)
		if s := b.Stats(5); s.History[9][1] == 0 || s.Throughput[0] == 0 {
			t.Errorf("%+v", s)
		}
		if s := b.Stats(6); s.Calls != 0 || s.History != nil {
			t.Errorf("an unknown id: %+v", s)
		}
	})
}

func TestIDsAreIndependent(t *testing.T) {
	both(t, func(t *testing.T, b Balancer) {
		r := Request{Global: 1 << 16, Step: 64, Devices: 2}
		for range 30 {
			for id, speeds := range [][]float64{{1e6, 3e6}, {3e6, 1e6}} {
				r.ID = id
				done(b, id, split(t, b, r), speeds...)
			}
		}
		r.ID = 0
		zero := split(t, b, r)
		r.ID = 1
		one := split(t, b, r)
		if !slices.Equal(zero, []int{one[1], one[0]}) || zero[0] >= zero[1] {
			t.Errorf("%v and %v", zero, one)
		}
	})
}

func TestGoroutines(t *testing.T) {
	both(t, func(t *testing.T, b Balancer) {
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for k := range 200 {
					r := Request{ID: g % 2, Global: 1000 + k, Step: 10, Devices: 2 + g/2, Moves: func([]int) []float64 { return nil }}
					counts, err := b.Split(r)
					if err != nil {
						t.Error(err)
						return
					}
					done(b, r.ID, counts, 1, 2, 3)
					b.Stats(r.ID)
				}
			})
		}
		wg.Wait()
	})
}

// TestMovesUseTheBalancer asks for statistics, also while the first split is being decided, and makes other splits.
func TestMovesUseTheBalancer(t *testing.T) {
	b := New()
	for call := range 3 {
		asked := 0
		split(t, b, Request{ID: 1, Global: 100, Step: 10, Devices: 2, Moves: func([]int) []float64 {
			asked++
			if s := b.Stats(1); s.Calls != call || call == 0 && s.Shares != nil {
				t.Errorf("%d calls: %+v", call, s)
			}
			counts := split(t, b, Request{ID: 2, Global: 100, Step: 10, Devices: 2})
			b.Observe(2, []Sample{{counts[0], 1}, {counts[1], 1}})
			return nil
		}})
		if asked == 0 {
			t.Error("the transfers were not asked for")
		}
	}
}

// anything makes calls of every kind, with times from everywhere, and checks what is promised of each split.
func anything(t *testing.T, b Balancer, rng *rand.Rand, calls int) {
	t.Helper()
	r := Request{Devices: 1 + rng.IntN(5)}
	for range calls {
		r.ID = rng.IntN(2)
		if rng.IntN(4) == 0 {
			r.Global, r.Step = 1+rng.IntN(1<<rng.IntN(53)), 1+rng.IntN(1<<rng.IntN(20))
		}
		if rng.IntN(9) == 0 {
			r.Devices = 1 + rng.IntN(5)
			r.Alive = nil
		}
		if rng.IntN(9) == 0 {
			r.Alive = make([]bool, r.Devices)
			for i := range r.Alive {
				r.Alive[i] = rng.IntN(3) > 0
			}
		}
		r.Moves = nil
		if rng.IntN(3) == 0 {
			r.Moves = func(counts []int) []float64 {
				seconds := make([]float64, rng.IntN(2)+len(counts))
				for i := range seconds {
					seconds[i] = anyNumber(rng)
				}
				return seconds
			}
		}
		r.Step = max(r.Step, 1)
		counts, err := b.Split(r)
		if err != nil {
			if !errors.Is(err, ErrNoDevice) || slices.Contains(r.Alive, true) || r.Alive == nil {
				t.Fatal(err)
			}
			continue
		}
		holds(t, r, counts)
		samples := make([]Sample, len(counts))
		for i, n := range counts {
			samples[i] = Sample{n, anyNumber(rng)}
			if rng.IntN(9) == 0 {
				samples[i].Count = int(rng.Uint64())
			}
		}
		b.Observe(r.ID, samples)
		if s := b.Stats(r.ID); slices.ContainsFunc(s.Throughput, func(v float64) bool { return !(v >= 0) || math.IsInf(v, 1) }) {
			t.Fatalf("throughput %v", s.Throughput)
		}
	}
}

// anyNumber returns numbers of every size, and some that are none.
func anyNumber(rng *rand.Rand) float64 {
	switch rng.IntN(12) {
	case 0:
		return math.Float64frombits(rng.Uint64())
	case 1:
		return 0
	case 2:
		return -rng.Float64()
	}
	return math.Exp(40 * (rng.Float64() - 0.6))
}

func TestAnything(t *testing.T) {
	both(t, func(t *testing.T, b Balancer) {
		rng := rand.New(rand.NewPCG(11, 13))
		for range 200 {
			anything(t, b, rng, 60)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add(uint64(1), uint64(2), 3, 1, 1)
	f.Add(uint64(5), uint64(8), math.MaxInt, math.MinInt, 0)
	f.Fuzz(func(t *testing.T, seed, stream uint64, global, step, devices int) {
		for _, b := range []Balancer{NewLegacyRaw(), NewLegacy(), New()} {
			anything(t, b, rand.New(rand.NewPCG(seed, stream)), 50)
			r := Request{Global: global, Step: step, Devices: devices}
			if counts, err := b.Split(r); err == nil {
				holds(t, r, counts)
			} else if !errors.Is(err, fault.ErrInvalid) {
				t.Error(err)
			}
		}
	})
}

// TestManyIDs has a balancer see more ids than it knows at a time.
func TestManyIDs(t *testing.T) {
	both(t, func(t *testing.T, b Balancer) {
		for id := range 3000 {
			for _, id := range []int{id, 7} { // 7 is used throughout
				if _, err := b.Split(Request{ID: id, Global: 64, Step: 1, Devices: 2}); err != nil {
					t.Fatal(err)
				}
			}
		}
		for id, want := range map[int]int{7: 3001, 0: 0, 1976: 0, 1977: 1, 2999: 1} {
			if n := b.Stats(id).Calls; n != want {
				t.Errorf("id %d: %d calls, want %d", id, n, want)
			}
		}
	})
}
