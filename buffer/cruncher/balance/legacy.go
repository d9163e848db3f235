// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/internal/recent"
)

// NewLegacy returns the balancer of the Cekirdekler API (github.com/tugrul512bit/Cekirdekler), which gives the sequences
// of counts that the original gives for the same times. Each call moves every device 30 % of the way towards its share of
// the throughput that the last call showed; from the tenth call on, towards the mean share of ten calls.
//
// It reacts slowly and stops 1.67 steps short of the optimum; [New] does neither. It takes no account of Request.Moves.
// The original knows no devices that fail: when other devices are alive than before, it starts again among them.
func NewLegacy() Balancer { return &legacy{smooth: true} }

// NewLegacyRaw is [NewLegacy] without the mean of ten calls: the original with smoothLoadBalancer cleared.
func NewLegacyRaw() Balancer { return new(legacy) }

type legacy struct {
	smooth bool
	mu     sync.Mutex
	loads  recent.Map[int, *legacyLoad]
}

// legacyLoad is the state of an id. Its slices, but for history, have an element per device that is alive.
type legacyLoad struct {
	record
	devices int
	alive   []int
	ranges  []int64 // without the rest
	ms      []float64
	rates   []float64
	shares  [][]float64 // of the last calls
}

// firstMs is what the first call takes each device to need; only that it is the same for all matters.
const firstMs = 10

func (b *legacy) Split(r Request) ([]int, error) {
	alive, err := r.check()
	if err != nil {
		return nil, err
	}
	counts := make([]int, r.Devices)
	of := r.extent()
	if of.steps == 0 {
		return counts, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.loads.Get(r.ID)
	if l == nil || l.devices != r.Devices {
		l = &legacyLoad{devices: r.Devices}
		b.loads.Put(r.ID, l)
	}
	global := int64(of.steps * of.step)
	if !slices.Equal(l.alive, alive) {
		l.start(alive, global)
	}
	l.update(global, int64(of.step), b.smooth)
	for k, i := range alive {
		counts[i] = int(l.ranges[k])
	}
	giveRest(counts, of.rest)
	l.add(slices.Clone(counts))
	return counts, nil
}

// start splits evenly.
func (l *legacyLoad) start(alive []int, global int64) {
	n := len(alive)
	l.alive, l.shares = alive, nil
	l.ranges, l.ms, l.rates = make([]int64, n), make([]float64, n), make([]float64, n)
	for k := range n {
		l.ranges[k], l.ms[k] = global/int64(n), firstMs
	}
	l.ranges[0] += global % int64(n)
}

// update moves the ranges towards those that would have taken all devices the same time.
func (l *legacyLoad) update(global, step int64, smooth bool) {
	const grain = 0.01 // ms; keeps devices that did nothing from dividing by 0
	total := grain * float64(len(l.ms))
	for _, ms := range l.ms {
		total += ms
	}
	raw := make([]float64, len(l.ms))
	var sum float64
	for k, ms := range l.ms {
		raw[k] = total / (ms + grain) * float64(l.ranges[k]+1)
		sum += raw[k]
	}
	for k := range raw {
		raw[k] /= sum
	}
	want := raw
	if smooth {
		want = l.mean(raw)
	}
	var given int64
	for k, r := range l.ranges {
		next := int64(float64(global) * raw[k])
		if r != 0 {
			next = r - int64(0.3*(float64(r)-float64(global)*want[k]))
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
	} else {
		largest := slices.Index(l.ranges, slices.Max(l.ranges))
		l.ranges[largest] += global - given
	}
}

// mean adds shares to the history and returns its mean, once it is full.
func (l *legacyLoad) mean(shares []float64) []float64 {
	if len(l.shares) == depth {
		l.shares = slices.Delete(l.shares, 0, 1)
	}
	l.shares = append(l.shares, shares)
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

// takeLargest does this n times: take a step from the largest range, the first of those that are equal. It takes whole
// levels at once, since n may be in the millions when an id is used for a much smaller range. The ranges are multiples of
// step and hold n steps.
func takeLargest(ranges []int64, n, step int64) {
	for n > 0 {
		top := slices.Max(ranges)
		var count, below int64
		for _, r := range ranges {
			if r == top {
				count++
			} else {
				below = max(below, r)
			}
		}
		each, more := n/count, n%count
		if height := (top - below) / step; each >= height {
			each, more = height, 0
		}
		n -= each*count + more
		for k, r := range ranges {
			if r != top {
				continue
			}
			ranges[k] -= each * step
			if more > 0 {
				ranges[k] -= step
				more--
			}
		}
	}
}

func (b *legacy) Observe(id int, samples []Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.loads.Peek(id)
	if l == nil || len(samples) != l.devices {
		return
	}
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

func (b *legacy) Stats(id int) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.loads.Peek(id)
	if l == nil {
		return Stats{}
	}
	s := l.stats()
	s.Throughput = make([]float64, l.devices)
	for k, i := range l.alive {
		s.Throughput[i] = l.rates[k]
	}
	return s
}
