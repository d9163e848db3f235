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

// planner finds the split for one call. Times are in seconds, paces in seconds per item.
type planner struct {
	of          extent
	fixed, pace []float64 // a pace of +Inf: not alive
	moves       func([]int) []float64
	horizon     float64
	last        plan
	probe, idle int // the device to be probed, -1: none, and for how many calls it had nothing
}

// best compares three splits: the last one, the one that is best once its transfers are done, and one that takes account
// of them. The first one that is not beaten wins, so nothing moves for nothing.
func (p *planner) best() plan {
	target := p.rated(p.placed(p.fixed, p.of.steps))
	best := target
	if p.repeats() {
		if stay := p.rated(p.last.counts); stay.total <= target.total {
			best = stay
		}
	}
	if p.moves != nil {
		offset := p.transfers(target.counts)
		for i := range offset {
			offset[i] = p.fixed[i] + offset[i]/p.horizon
		}
		if wary := p.rated(p.placed(offset, p.of.steps)); wary.total < best.total {
			best = wary
		}
	}
	return best
}

// probed returns the split with a step for the device to be probed, unless it would have one anyhow or the delay is not
// due yet: after idle calls a delay of idle/every calls is.
func (p *planner) probed(best plan, every float64) (plan, bool) {
	if best.counts[p.probe] > 0 {
		return best, false
	}
	pace := p.pace[p.probe]
	p.pace[p.probe] = math.Inf(1)
	counts := make([]int, len(p.pace))
	if p.of.steps > 1 {
		counts = p.placedSteps(p.fixed, p.of.steps-1)
	}
	p.pace[p.probe] = pace
	counts[p.probe] = 1
	try := p.rated(p.items(counts))
	if (try.first-best.first)*every <= float64(p.idle)*best.first {
		return try, true
	}
	return best, false
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

// placed returns the counts, in items, that are done first.
func (p *planner) placed(offset []float64, steps int) []int {
	return p.items(p.placedSteps(offset, steps))
}

func (p *planner) placedSteps(offset []float64, steps int) []int {
	pace := slices.Clone(p.pace)
	for i := range pace {
		pace[i] *= float64(p.of.step)
	}
	return place(offset, pace, steps)
}

// items makes items of steps.
func (p *planner) items(counts []int) []int {
	for i := range counts {
		counts[i] *= p.of.step
	}
	giveRest(counts, p.of.rest)
	return counts
}

// rated predicts what a split costs.
func (p *planner) rated(counts []int) plan {
	later := makespan(counts, p.fixed, p.pace)
	first := later
	if p.moves != nil {
		offset := p.transfers(counts)
		for i := range offset {
			offset[i] += p.fixed[i]
		}
		first = makespan(counts, offset, p.pace)
	}
	return plan{of: p.of, counts: counts, first: first, total: first + (p.horizon-1)*later}
}

// transfers asks the caller, and believes what makes sense.
func (p *planner) transfers(counts []int) []float64 {
	seconds := make([]float64, len(counts))
	if got := p.moves(slices.Clone(counts)); len(got) == len(counts) {
		for i, s := range got {
			if duration(s) {
				seconds[i] = s
			}
		}
	}
	return seconds
}

// makespan returns when the last of the devices is done that have anything to do.
func makespan(counts []int, offset, pace []float64) float64 {
	var m float64
	for i, n := range counts {
		if n > 0 {
			m = math.Max(m, offset[i]+float64(n)*pace[i])
		}
	}
	return m
}
