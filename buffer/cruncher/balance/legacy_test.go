// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// These tests hold the table of sequences that the formulas of Cekirdekler give; times there are in milliseconds.

// linear runs calls on devices that take a time proportional to their items and returns the counts of each call. speed
// says how many items a device does in 10 microseconds in call k, which counts from 1.
func linear(t *testing.T, b Balancer, global, step, devices, calls int, speed func(k, i int) float64) [][]int {
	t.Helper()
	var all [][]int
	for k := range calls {
		counts, err := b.Split(Request{Global: global, Step: step, Devices: devices})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, counts)
		samples := make([]Sample, devices)
		for i, n := range counts {
			samples[i] = Sample{n, 1e-5 * float64(n) / speed(k+1, i)}
		}
		b.Observe(0, samples)
	}
	return all
}

func constant(speeds ...float64) func(k, i int) float64 {
	return func(_, i int) float64 { return speeds[i] }
}

func TestLegacyFirstCall(t *testing.T) {
	for _, c := range []struct {
		global, step int
		want         []int
	}{
		{1000, 100, []int{1000}},
		{1000, 100, []int{500, 500}},
		{1000, 100, []int{400, 300, 300}},
		{1000, 100, []int{200, 200, 300, 300}},
		{1000, 100, []int{200, 200, 200, 200, 200}},
		{1000, 100, []int{100, 100, 200, 200, 200, 200}},
		{1000, 100, []int{100, 100, 100, 100, 100, 100, 100, 100, 100, 100}},
		{1024, 64, []int{384, 320, 320}},
		{1024, 64, []int{256, 256, 256, 256}},
		{1024, 64, []int{128, 128, 128, 128, 128, 128, 128, 128}},
	} {
		for _, smooth := range []bool{false, true} {
			got, err := newLegacy(smooth).Split(Request{Global: c.global, Step: c.step, Devices: len(c.want)})
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%d by %d: %v, %v, want %v", c.global, c.step, got, err, c.want)
			}
		}
	}
}

func TestLegacySequences(t *testing.T) {
	for _, c := range []struct {
		name         string
		global, step int
		speeds       []float64
		smooth       []bool
		want         map[int][]int // by call, from 1
	}{
		{"1:3", 1 << 20, 256, []float64{1, 3}, []bool{true}, map[int][]int{
			1: {524288, 524288}, 2: {445696, 602880}, 3: {390656, 657920}, 4: {352000, 696576}, 5: {325120, 723456},
			6: {306176, 742400}, 11: {274944, 773632}, 21: {262400, 786176},
		}},
		{"1:2:5", 1 << 16, 64, []float64{1, 2, 5}, []bool{false, true}, map[int][]int{
			1: {21888, 21824, 21824}, 2: {17792, 20224, 27520}, 3: {14912, 19072, 31552}, 4: {12928, 18240, 34368},
			21: {8256, 16448, 40832}, 40: {8256, 16448, 40832},
		}},
		{"dead zone 1:3", 1024, 64, []float64{1, 3}, []bool{false, true}, map[int][]int{
			1: {512, 512}, 2: {448, 576}, 3: {384, 640}, 4: {320, 704}, 5: {320, 704}, 20: {320, 704}, 60: {320, 704},
		}},
		{"dead zone 1:4", 1000, 100, []float64{1, 4}, []bool{false, true}, map[int][]int{
			1: {500, 500}, 2: {400, 600}, 3: {300, 700}, 4: {300, 700}, 20: {300, 700}, 60: {300, 700},
		}},
	} {
		for _, smooth := range c.smooth {
			got := linear(t, newLegacy(smooth), c.global, c.step, len(c.speeds), 60, constant(c.speeds...))
			for k, want := range c.want {
				if !slices.Equal(got[k-1], want) {
					t.Errorf("%s, smooth %v, call %d: %v, want %v", c.name, smooth, k, got[k-1], want)
				}
			}
		}
	}
}

func TestLegacySpeedsSwap(t *testing.T) {
	speed := func(k, i int) float64 {
		if (k < 20) == (i == 0) {
			return 1
		}
		return 3
	}
	calls := []int{20, 21, 22, 25, 30, 40, 60}
	for smooth, want := range map[bool][]int{
		true:  {16448, 17408, 19072, 26432, 41728, 48896, 49088},
		false: {16448, 26240, 33088, 43648, 48256, 49088, 49088},
	} {
		got := linear(t, newLegacy(smooth), 1<<16, 64, 2, 60, speed)
		for j, k := range calls {
			if got[k-1][0] != want[j] {
				t.Errorf("smooth %v, after update %d: %d, want %d", smooth, k, got[k-1][0], want[j])
			}
		}
	}
}

// A range that was balanced for 1:3 doubles: the largest device takes the whole difference.
func TestLegacyOtherRange(t *testing.T) {
	b := NewLegacy().(*balancer)
	b.loads.Put(7, &load{devices: 2, policy: &legacy{
		smooth: true, alive: []int{0, 1}, ranges: []int64{256, 768}, ms: []float64{5, 5}, rates: make([]float64, 2),
	}})
	if got, err := b.Split(Request{ID: 7, Global: 2048, Step: 64, Devices: 2}); err != nil || !slices.Equal(got, []int{320, 1728}) {
		t.Error(got, err)
	}
}

// A device that has nothing gets about 100 items for each millisecond that the others took.
func TestLegacyZeroRange(t *testing.T) {
	const global = 1 << 20
	for ms, want := range map[float64]int{1: 0, 10: 1024, 100: 9984} {
		b := NewLegacyRaw().(*balancer)
		b.loads.Put(0, &load{devices: 2, policy: &legacy{
			alive: []int{0, 1}, ranges: []int64{0, global}, ms: []float64{3, 3}, rates: make([]float64, 2),
		}})
		b.Observe(0, []Sample{{}, {global, ms / 1000}})
		got, err := b.Split(Request{Global: global, Step: 256, Devices: 2})
		if err != nil || !slices.Equal(got, []int{want, global - want}) {
			t.Errorf("%v ms: %v, %v", ms, got, err)
		}
	}
}

// Without new samples the last ones count again; invalid ones and those of a call that failed do not replace them.
func TestLegacyKeepsTimes(t *testing.T) {
	next := func(bad ...Sample) []int {
		b := NewLegacyRaw()
		linear(t, b, 1<<20, 256, 2, 1, constant(1, 3))
		b.Observe(0, bad)
		got, err := b.Split(Request{Global: 1 << 20, Step: 256, Devices: 2})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	want := []int{445696, 602880}
	for _, bad := range [][]Sample{nil, {{}, {}}, {{5, -1}, {-5, 1}}, {{5, 1e300}}} {
		if got := next(bad...); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", bad, got, want)
		}
	}
}

func TestLegacyStartsAgain(t *testing.T) {
	b := NewLegacy()
	linear(t, b, 1<<16, 64, 3, 30, constant(1, 2, 5))
	for _, c := range []struct {
		alive []bool
		want  []int
	}{
		{[]bool{true, false, true}, []int{1 << 15, 0, 1 << 15}},
		{nil, []int{21888, 21824, 21824}},
	} {
		got, err := b.Split(Request{Global: 1 << 16, Step: 64, Devices: 3, Alive: c.alive})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %v, want %v", c.alive, got, err, c.want)
		}
	}
}

func TestTakeLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		step := int64(1 + rng.IntN(5))
		ranges := make([]int64, 1+rng.IntN(6))
		var held int64
		for i := range ranges {
			ranges[i] = step * int64(rng.IntN(12))
			held += ranges[i]
		}
		n := rng.Int64N(held/step + 1)
		want := slices.Clone(ranges)
		for range n {
			want[slices.Index(want, slices.Max(want))] -= step
		}
		got := slices.Clone(ranges)
		takeLargest(got, n, step)
		if !slices.Equal(got, want) {
			t.Fatalf("%d of %v: %v, want %v", n, ranges, got, want)
		}
	}
}
