// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

const (
	// newest is how much of an estimate a new sample is at least.
	newest = 1.0 / 4
	// probeEvery is after how many calls a device that got nothing is given a step, to see whether that is still right. Where
	// a probe delays a call, more calls pass, so that all probes together cost one part in so many of the time.
	probeEvery = 32
	// horizon is within how many calls a change of the ranges must make up for its transfers.
	horizon = 8
	// window is how many samples are looked at to tell outliers, the newest included.
	window = 5
	// outlier is the factor to the median beyond which a sample is left out.
	outlier = 3
)

// New returns the balancer to use. It estimates each device's throughput, in items per second, and hands each step to the
// device that will be done with it first. The first call splits evenly.
//
// Of new samples a quarter goes into the estimate; times that are three times the median of the last ones or a third of it
// do not, unless they stay so. Idle devices are probed after 32 calls, or later where that costs more than one part in 32 of the
// time. Ranges move only when the time gained in eight calls exceeds that of the transfers that Request.Moves tells of. A device
// that was not alive for a while comes back with the estimate that it had. Devices that have no estimate, while others do, are
// taken to be as slow as the slowest.
func New() Balancer {
	return &balancer{policy: func(devices int) policy { return &adaptive{devices: make([]device, devices)} }}
}

// adaptive is the policy of [New].
type adaptive struct {
	devices         []device
	last            plan
	dropped, probes int
}

// split makes the last split again unless the best one is better up to the horizon, transfers included, so nothing moves for nothing.
// Then the device to be probed may get a step.
func (a *adaptive) split(r *Request, alive []int, of extent) []int {
	p := planner{of: of, moves: r.Moves, pace: slices.Repeat([]float64{math.Inf(1)}, r.Devices)}
	probe, idle := a.prepare(p.pace, alive)
	next := p.rated(of.items(place(p.pace, of.steps)))
	if p.fits(a.last) {
		if stay := p.rated(a.last.counts); stay.total <= next.total {
			next = stay
		}
	}
	if probe >= 0 && next.counts[probe] == 0 {
		try := p.probing(probe)
		if (try.first-next.first)*probeEvery <= float64(idle)*next.first { // or else the delay is not due yet
			next = try
			a.probes++
			a.devices[probe].forgive() // what it did long ago makes no outlier of what it does now
		}
	}
	for i := range a.devices {
		d := &a.devices[i]
		if d.idle = min(d.idle+1, math.MaxInt32); next.counts[i] > 0 {
			d.idle = 0
		}
	}
	a.last = next
	return next.counts
}

// prepare notes who is alive and sets their paces. It returns the device to be probed, -1 for none, and for how many calls it had
// nothing. A device that comes back may be probed at once, and one that is new is, whatever it costs.
func (a *adaptive) prepare(pace []float64, alive []int) (probe, idle int) {
	slowest := math.Inf(1)
	for i := range a.devices {
		d := &a.devices[i]
		was := d.alive
		if _, d.alive = slices.BinarySearch(alive, i); !d.alive {
			continue
		}
		if !was {
			d.forgive()
			if d.idle = probeEvery; d.perSecond == 0 {
				d.idle = math.MaxInt32
			}
		}
		if d.perSecond > 0 {
			slowest = min(slowest, d.perSecond)
		}
	}
	probe = -1
	known := !math.IsInf(slowest, 1)
	for _, i := range alive {
		d := &a.devices[i]
		switch {
		case d.perSecond > 0:
			pace[i] = 1 / d.perSecond
		case known:
			pace[i] = 1 / slowest
		default:
			pace[i] = 1
		}
		if known && d.idle >= probeEvery && d.idle > idle {
			probe, idle = i, d.idle
		}
	}
	return probe, idle
}

func (a *adaptive) observe(samples []Sample) {
	for i, s := range samples {
		if s.Count <= 0 || s.Seconds == 0 || !duration(s.Seconds) {
			continue
		}
		s.Seconds = max(s.Seconds, minSeconds)
		if !a.devices[i].observe(s) {
			a.dropped++
		}
	}
}

func (a *adaptive) stats(s *Stats) {
	s.Dropped, s.Probes = a.dropped, a.probes
	for i := range a.devices {
		s.Throughput = append(s.Throughput, a.devices[i].perSecond)
	}
}

// device is what is known of a device: the estimate of its throughput above all.
type device struct {
	perSecond float64 // items; 0: unknown
	samples   int     // that made it
	recent    []Sample
	alive     bool
	idle      int // calls since it last had work
}

// observe takes a sample in and reports whether it was used. It weighs 1/k when it is the k-th, and never less than newest.
//
// Outliers are left out: one slow call, because a device was busy otherwise, says nothing of the next. When most of the
// recent samples are as different, the device has changed, and the estimate starts again.
func (d *device) observe(s Sample) bool {
	d.recent = keep(d.recent, s, window)
	if d.outlier(s) {
		return false
	}
	v := float64(s.Count) / s.Seconds
	if v > outlier*d.perSecond || v < d.perSecond/outlier {
		d.samples = 0
	}
	d.samples++
	d.perSecond += float64(math.Max(1/float64(d.samples), newest) * (v - d.perSecond)) // on no machine fused
	return true
}

// outlier compares s, which is the last of d.recent, with what the recent samples make expect for its count. Times grow
// with the count, in proportion at the most and not at all where overhead prevails; only what is outside of both counts.
func (d *device) outlier(s Sample) bool {
	var low, high [window]float64
	for i, o := range d.recent {
		scaled := o.Seconds * (float64(s.Count) / float64(o.Count))
		low[i], high[i] = min(o.Seconds, scaled), max(o.Seconds, scaled)
	}
	n := len(d.recent)
	return s.Seconds > outlier*median(high[:n]) || s.Seconds*outlier < median(low[:n])
}

// median returns the lower one of two in the middle.
func median(x []float64) float64 {
	for i := range x { // a few: slices.Sort would take more code, see place
		for ; i > 0 && x[i] < x[i-1]; i-- {
			x[i], x[i-1] = x[i-1], x[i]
		}
	}
	return x[(len(x)-1)/2]
}

// forgive keeps the estimate of a device that was gone as a first guess.
func (d *device) forgive() { d.samples, d.recent = 0, d.recent[:0] }

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
		t := float64(float64(n) * p.pace[i]) // on no machine fused with the moves
		later = max(later, t)
		if len(moves) == len(counts) && duration(moves[i]) {
			t += moves[i]
		}
		first = max(first, t)
	}
	return plan{of: p.of, counts: counts, first: first, total: first + float64((horizon-1)*later)}
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
	counts, queue := make([]int, len(pace)), make([]candidate, len(pace))
	left := n
	for i, p := range pace {
		counts[i] = min(int(float64(n)/speed/p), left)
		left -= counts[i]
		queue[i] = candidate{float64(counts[i]+1) * p, i}
	}
	// Of slices.SortFunc and slices.Sort each type has a copy, which are KB of a page's program.
	sort.Slice(queue, func(i, j int) bool { return queue[i].compare(queue[j]) < 0 })
	for range left { // the queue is a heap
		first := &queue[0]
		counts[first.device]++
		first.done = float64(counts[first.device]+1) * pace[first.device]
		for at, next := 0, 1; next < len(queue); at, next = next, 2*next+1 {
			if next+1 < len(queue) && queue[next+1].compare(queue[next]) < 0 {
				next++
			}
			if queue[at].compare(queue[next]) < 0 {
				break
			}
			queue[at], queue[next] = queue[next], queue[at]
		}
	}
	return counts
}

// candidate is a device that would be done with one step more at a time.
type candidate struct {
	done   float64
	device int
}

func (c candidate) compare(other candidate) int {
	return cmp.Or(cmp.Compare(c.done, other.done), cmp.Compare(c.device, other.device))
}
