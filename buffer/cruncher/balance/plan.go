// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math"
	"slices"
)

// plan is a split that may be made.
type plan struct {
	of     extent
	counts []int
	first  float64 // seconds of the next call, with its transfers
	total  float64 // of all calls up to the horizon
}

// planner makes the plans for one call. Times are in seconds, paces in seconds per item.
type planner struct {
	of    extent
	pace  []float64 // +Inf: not alive
	moves func([]int) []float64
}

// fits reports whether a split fits this call: the same range, and nobody in it who is not alive any more.
func (p *planner) fits(last plan) bool {
	for i, n := range last.counts {
		if n > 0 && math.IsInf(p.pace[i], 1) {
			return false
		}
	}
	return last.of == p.of
}

// probing makes the best split that gives a device one step.
func (p *planner) probing(probe int) plan {
	pace := slices.Clone(p.pace)
	pace[probe] = math.Inf(1)
	steps := place(pace, p.of.steps-1)
	steps[probe] = 1
	return p.rated(p.of.items(steps))
}

// rated predicts what a split costs: when the last of the devices is done that have anything to do.
func (p *planner) rated(counts []int) plan {
	var moves []float64
	if p.moves != nil {
		moves = p.moves(slices.Clone(counts))
	}
	var first, later float64
	for i, n := range counts {
		if n == 0 {
			continue
		}
		t := float64(n) * p.pace[i]
		later = max(later, t)
		if len(moves) == len(counts) && duration(moves[i]) {
			t += moves[i]
		}
		first = max(first, t)
	}
	return plan{of: p.of, counts: counts, first: first, total: first + (horizon-1)*later}
}

// place hands out n steps, each to the device that would be done with it first, where device i needs pace[i] for each; a pace of
// +Inf keeps a device out. Ties go to the lower number. The result is the one of the greedy loop over all steps, but only the
// last few are handed out singly: if work could be divided at will, all devices would be done at the same time, and the greedy
// loop ends less than a step before or after it.
func place(pace []float64, n int) []int {
	speed := 0.0
	for _, p := range pace {
		speed += 1 / p
	}
	counts := make([]int, len(pace))
	left := n
	for i, p := range pace {
		counts[i] = min(int(float64(n)/speed/p), left)
		left -= counts[i]
	}
	for range left {
		best := 0
		for i, p := range pace {
			if float64(counts[i]+1)*p < float64(counts[best]+1)*pace[best] {
				best = i
			}
		}
		counts[best]++
	}
	return counts
}
