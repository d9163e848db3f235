// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"slices"
	"sort"
)

// NewLegacy returns the balancer of the Cekirdekler API (github.com/tugrul512bit/Cekirdekler), which gives the sequences
// of counts that the original gives for the same times. Each call moves every device 30 % of the way towards its share of
// the throughput that the last call showed; from the tenth call on, towards the mean share of ten calls.
//
// It reacts slowly and stops 1.67 steps short of the optimum; [New] does neither. It takes no account of Request.Moves.
// The original knows no devices that fail: when other devices are alive than before, it starts again among them.
func NewLegacy() Balancer { return newLegacy(true) }

// NewLegacyRaw is [NewLegacy] without the mean of ten calls: the original with smoothLoadBalancer cleared.
func NewLegacyRaw() Balancer { return newLegacy(false) }

// legacy is the policy of [NewLegacy]. Its slices have an element per device that is alive.
type legacy struct {
	smooth bool
	alive  []int
	ranges []int64 // without the rest
	ms     []float64
	rates  []float64
	shares [][]float64 // of the last calls
}

func newLegacy(smooth bool) Balancer {
	return &balancer{policy: func(int) policy { return &legacy{smooth: smooth} }}
}

// firstMs is what the first call takes each device to need; only that it is the same for all matters.
const firstMs = 10

func (l *legacy) split(r *Request, alive []int, of extent) []int {
	global := int64(of.steps * of.step)
	if !slices.Equal(l.alive, alive) {
		l.start(alive, global)
	}
	l.update(global, int64(of.step))
	counts := make([]int, r.Devices)
	for k, i := range alive {
		counts[i] = int(l.ranges[k]) / of.step
	}
	return of.items(counts)
}

// start splits evenly.
func (l *legacy) start(alive []int, global int64) {
	n := len(alive)
	l.alive, l.shares = alive, nil
	l.ranges, l.ms, l.rates = make([]int64, n), make([]float64, n), make([]float64, n)
	for k := range n {
		l.ranges[k], l.ms[k] = global/int64(n), firstMs
	}
	l.ranges[0] += global % int64(n)
}

// update moves the ranges towards those that would have taken all devices the same time.
func (l *legacy) update(global, step int64) {
	const grain = 0.01 // ms; keeps devices that did nothing from dividing by 0
	total := grain * float64(len(l.ms))
	for _, ms := range l.ms {
		total += ms
	}
	raw := make([]float64, len(l.ms))
	var sum float64
	for k, ms := range l.ms {
		raw[k] = float64(total / (ms + grain) * float64(l.ranges[k]+1)) // on no machine fused with the sum
		sum += raw[k]
	}
	for k := range raw {
		raw[k] /= sum
	}
	want := raw
	if l.smooth {
		want = l.mean(raw)
	}
	var given int64
	for k, r := range l.ranges {
		next := int64(float64(global) * raw[k])
		if r != 0 {
			next = r - int64(0.3*(float64(r)-float64(float64(global)*want[k])))
		}
		// With an odd step the middle is too low, and a step of 1 is always added; that is the original's doing.
		over := next % step
		next -= over
		if over >= step/2 {
			next += step
		}
		l.ranges[k] = next
		given += next
	}
	if given > global {
		takeLargest(l.ranges, (given-global)/step, step)
		return
	}
	largest := slices.Index(l.ranges, slices.Max(l.ranges))
	l.ranges[largest] += global - given
}

// mean adds shares to the history and returns its mean, once it is full.
func (l *legacy) mean(shares []float64) []float64 {
	l.shares = keep(l.shares, shares, depth)
	if len(l.shares) < depth {
		return shares
	}
	mean := make([]float64, len(shares))
	for _, row := range l.shares {
		for k, p := range row {
			mean[k] += p
		}
	}
	for k := range mean {
		mean[k] /= depth
	}
	return mean
}

// takeLargest does this n times: take a step from the largest range, the first of those that are equal. It seeks the level that
// this ends at, since n may be in the millions when an id is used for a much smaller range. The ranges are multiples of step and
// hold n steps.
func takeLargest(ranges []int64, n, step int64) {
	above := func(level int64) (steps int64) {
		for _, r := range ranges {
			steps += max(r/step-level, 0)
		}
		return steps
	}
	level := int64(sort.Search(int(slices.Max(ranges)/step), func(level int) bool { return above(int64(level)) <= n }))
	n -= above(level)
	for k, r := range ranges {
		ranges[k] = min(r, level*step)
		if n > 0 && r >= level*step {
			ranges[k] -= step
			n--
		}
	}
}

func (l *legacy) observe(samples []Sample) {
	for k, i := range l.alive {
		switch s := samples[i]; {
		case l.ranges[k] == 0:
			l.ms[k] = 0
		case s.Count > 0 && duration(s.Seconds):
			l.ms[k] = s.Seconds * 1000
			if s.Seconds > 0 {
				l.rates[k] = float64(s.Count) / max(s.Seconds, minSeconds)
			}
		}
	}
}

func (l *legacy) stats(s *Stats) {
	s.Throughput = make([]float64, len(s.Shares))
	for k, i := range l.alive {
		s.Throughput[i] = l.rates[k]
	}
}
