// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/recent"
)

// Options change what [New] makes. Zero fields are the defaults.
type Options struct {
	// Smoothing makes a new sample count for one part in so many of an estimate at least. More is steadier where times vary, and
	// slower where devices change. The default is 4.
	Smoothing int
	// Probe is after how many calls a device that got nothing is given a step, to see whether that is still right. Where a probe
	// delays a call, more calls pass, so that all probes together cost one part in so many of the time. The default is 32.
	Probe int
	// Horizon is within how many calls a change of the ranges must make up for its transfers (see Request.Moves). The default is 8.
	Horizon int
	// FixedCost is how many seconds a device needs for a range of any size, such as for launches and for inputs that each device
	// gets whole: one value for all devices, or one for each. Without it such costs are part of the throughput, so that it takes
	// some calls more to find the best split.
	FixedCost []float64
}

// New returns the balancer to use. It estimates each device's throughput, in items per second, and hands each step to the
// device that will be done with it first. The first call splits evenly.
//
// Of new samples a quarter goes into the estimate; times that are three times the median of the last ones or a third of it
// do not, unless they stay so. Idle devices are probed. Ranges move only when the time gained exceeds that of the
// transfers that Request.Moves tells of. A device that was not alive for a while comes back with the estimate that it had.
// Devices that have no estimate, while others do, are taken to be as slow as the slowest.
//
// Options below 0 and costs that are no times are fault.ErrInvalid.
func New(o Options) (Balancer, error) {
	const op = "balance: New"
	if o.Smoothing < 0 || o.Probe < 0 || o.Horizon < 0 {
		return nil, fault.Fail(op, fault.ErrInvalid, "smoothing, probe or horizon is negative")
	}
	if slices.ContainsFunc(o.FixedCost, func(s float64) bool { return !duration(s) }) {
		return nil, fault.Fail(op, fault.ErrInvalid, "fixed costs are from 0 to 1e9 seconds")
	}
	b := &adaptive{smoothing: cmp.Or(o.Smoothing, 4), probe: cmp.Or(o.Probe, 32), horizon: cmp.Or(o.Horizon, 8), fixed: slices.Clone(o.FixedCost)}
	if len(b.fixed) == 0 {
		b.fixed = []float64{0}
	}
	return b, nil
}

// adaptive is the balancer of [New].
type adaptive struct {
	smoothing, probe, horizon int
	fixed                     []float64 // one, or one for each device

	mu    sync.Mutex
	loads recent.Map[int, *load]
}

// load is the state of an id.
type load struct {
	record
	devices         []device
	last            plan
	dropped, probes int
}

type device struct {
	rate
	alive bool
	idle  int // calls since it last had work
}

// Split calls r.Moves without the lock, so that it may use the balancer.
func (b *adaptive) Split(r Request) ([]int, error) {
	alive, err := r.check()
	if err != nil {
		return nil, err
	}
	if len(b.fixed) != 1 && len(b.fixed) != r.Devices {
		return nil, fault.Fail("balance: Split", fault.ErrInvalid, "another number of devices than fixed costs")
	}
	of := r.extent()
	if of.steps == 0 {
		return make([]int, r.Devices), nil
	}
	b.mu.Lock()
	l := b.loads.Get(r.ID)
	if l == nil || len(l.devices) != r.Devices {
		l = &load{devices: make([]device, r.Devices)}
		b.loads.Put(r.ID, l)
	}
	l.wake(alive, b.probe)
	p := b.planner(l, r, alive, of)
	b.mu.Unlock()

	next := p.best()
	probing := p.probe >= 0
	if probing {
		next, probing = p.probed(next, float64(b.probe))
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	l.last = next
	l.add(next.counts)
	for i := range l.devices {
		if d := &l.devices[i]; next.counts[i] > 0 {
			d.idle = 0
		} else if d.idle < math.MaxInt32 {
			d.idle++
		}
	}
	if probing {
		l.probes++
		l.devices[p.probe].forgive() // what it did long ago makes no outlier of what it does now
	}
	return slices.Clone(next.counts), nil
}

// wake notes who is alive. A device that comes back may be probed at once, and one that is new is, whatever it costs.
func (l *load) wake(alive []int, probe int) {
	for i := range l.devices {
		d := &l.devices[i]
		was := d.alive
		if _, d.alive = slices.BinarySearch(alive, i); d.alive && !was {
			d.forgive()
			d.idle = probe
			if d.perSecond == 0 {
				d.idle = math.MaxInt32
			}
		}
	}
}

// planner gathers what the next split depends on.
func (b *adaptive) planner(l *load, r Request, alive []int, of extent) *planner {
	p := &planner{
		of: of, moves: r.Moves, horizon: float64(b.horizon), last: l.last, probe: -1,
		fixed: make([]float64, r.Devices), pace: slices.Repeat([]float64{math.Inf(1)}, r.Devices),
	}
	slowest := math.Inf(1)
	for _, i := range alive {
		if v := l.devices[i].perSecond; v > 0 {
			slowest = min(slowest, v)
		}
	}
	known := !math.IsInf(slowest, 1)
	for _, i := range alive {
		p.fixed[i] = b.fixed[min(i, len(b.fixed)-1)]
		d := &l.devices[i]
		switch {
		case d.perSecond > 0:
			p.pace[i] = 1 / d.perSecond
		case known:
			p.pace[i] = 1 / slowest
		default:
			p.pace[i] = 1
		}
		if known && d.idle >= b.probe && (p.probe < 0 || d.idle > p.idle) {
			p.probe, p.idle = i, d.idle
		}
	}
	return p
}

func (b *adaptive) Observe(id int, samples []Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.loads.Peek(id)
	if l == nil || len(samples) != len(l.devices) {
		return
	}
	for i, s := range samples {
		if s.Count <= 0 || s.Seconds == 0 || !duration(s.Seconds) {
			continue
		}
		s.Seconds = max(s.Seconds, minSeconds)
		if !l.devices[i].observe(s, b.fixed[min(i, len(b.fixed)-1)], 1/float64(b.smoothing)) {
			l.dropped++
		}
	}
}

func (b *adaptive) Stats(id int) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.loads.Peek(id)
	if l == nil {
		return Stats{}
	}
	s := l.stats()
	s.Dropped, s.Probes = l.dropped, l.probes
	for i := range l.devices {
		s.Throughput = append(s.Throughput, l.devices[i].perSecond)
	}
	return s
}
