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
	probed int     // the device that has a step only to see how fast it is, -1: none
}

// planner finds the split for one call. Times are in seconds, paces in seconds per item.
type planner struct {
	of          extent
	pace        []float64 // +Inf: not alive
	moves       func([]int) []float64
	last        plan
	probe, idle int // the device to be probed, -1: none, and for how many calls it had nothing
}

// choose takes the last split again unless the best one is better up to the horizon, transfers included, so nothing moves for
// nothing. Then the device to be probed may get a step.
func (p *planner) choose() plan {
	best := p.rated(p.of.items(place(p.pace, p.of.steps)))
	if p.repeats() {
		if stay := p.rated(p.last.counts); stay.total <= best.total {
			best = stay
		}
	}
	if p.probe < 0 || best.counts[p.probe] > 0 {
		return best
	}
	pace := p.pace[p.probe]
	p.pace[p.probe] = math.Inf(1)
	steps := place(p.pace, p.of.steps-1)
	p.pace[p.probe] = pace
	steps[p.probe] = 1
	try := p.rated(p.of.items(steps))
	if (try.first-best.first)*probeEvery > float64(p.idle)*best.first {
		return best // the delay is not due yet
	}
	try.probed = p.probe
	return try
}

// repeats reports whether the last split fits this call: the same range, and nobody in it who is not alive any more.
func (p *planner) repeats() bool {
	for i, n := range p.last.counts {
		if n > 0 && math.IsInf(p.pace[i], 1) {
			return false
		}
	}
	return p.last.of == p.of
}

// rated predicts what a split costs.
func (p *planner) rated(counts []int) plan {
	transfers := make([]float64, len(counts))
	later := p.makespan(counts, transfers)
	if p.moves != nil {
		if got := p.moves(slices.Clone(counts)); len(got) == len(counts) {
			for i, s := range got {
				if duration(s) {
					transfers[i] = s
				}
			}
		}
	}
	first := p.makespan(counts, transfers)
	return plan{of: p.of, counts: counts, first: first, total: first + (horizon-1)*later, probed: -1}
}

// makespan returns when the last of the devices is done that have anything to do.
func (p *planner) makespan(counts []int, offset []float64) float64 {
	var m float64
	for i, n := range counts {
		if n > 0 {
			m = math.Max(m, offset[i]+float64(n)*p.pace[i])
		}
	}
	return m
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
