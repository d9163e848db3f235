// SPDX-License-Identifier: Apache-2.0

// Package balance decides which part of a range each of several devices computes, from how long they took before.
//
// [New] makes the balancer to use, [NewLegacy] the one of the Cekirdekler API, step for step. Both keep a state per id:
// calls that do the same kind of work share an id, others do not. For each call ask [Balancer.Split] for the devices'
// counts, run them, and tell [Balancer.Observe] what they took.
//
//	counts, err := b.Split(balance.Request{ID: 1, Global: 1 << 20, Step: 256, Devices: 2})
//	// device 0 computes items 0 to counts[0]-1, device 1 the rest
//	b.Observe(1, []balance.Sample{{Count: counts[0], Seconds: t0}, {Count: counts[1], Seconds: t1}})
//
// Balancers only calculate: they start nothing, wait for nothing and read no clock, so the same calls have the same
// results. They may be used by several goroutines. Of ids they know the 1,024 that were split last.
package balance

import (
	"slices"
	"sync"

	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/recent"
)

// ErrNoDevice says that no device of a request is alive.
var ErrNoDevice = fault.New("ErrNoDevice", "no device is alive")

const (
	maxGlobal  = 1 << 53 // items that float64 counts exactly
	maxDevices = 1 << 10 // more than any machine has
	minSeconds = 1e-9    // no clock is finer: so throughputs are finite
	maxSeconds = 1e9     // longer times are not believed
	depth      = 10      // how many calls Stats.History and the mean of [NewLegacy] go back
)

// Request describes a range of Global items to be split over devices 0 to Devices-1.
type Request struct {
	ID      int
	Global  int    // at most 2^53
	Step    int    // items that stay together, such as the workgroup size
	Devices int    // at most 1024; another number than before makes the id forget
	Alive   []bool // of each device; nil: all

	// Moves returns how many seconds of transfers, beside those in the samples, it takes each device to have the counts
	// given. It may be nil. An answer of another length and values that are no such time count as 0. It is called a few
	// times for each split and must not keep or change its argument.
	Moves func(counts []int) []float64
}

// Sample is what one device did in a call, Seconds without the transfers that Request.Moves answers for. Samples without
// items are of idle devices. Those with a count or time that is negative, NaN or above 1e9 seconds are ignored; so is a
// time of 0, which says no more than that the clock is coarse, except by [NewLegacy].
type Sample struct {
	Count   int
	Seconds float64
}

// Stats describes the calls of an id. Slices have an element per device; before the first call they are nil.
type Stats struct {
	Calls      int       // splits made, empty ranges aside
	Shares     []float64 // of the last split; their sum is 1
	Throughput []float64 // estimates in items per second, 0 where there is none yet
	History    [][]int   // counts of up to ten splits, the last one at the end
	Dropped    int       // samples left out as outliers
	Probes     int       // splits that gave an idle device a step to see how fast it is now
}

// Balancer splits ranges. Both implementations are in this package.
type Balancer interface {
	// Split returns the number of items for each device; device i's range begins where that of device i-1 ends. The
	// counts sum to Global. Each is a multiple of Step, but for the last one that is not zero, which has the remainder of
	// Global by Step, too: so all ranges begin at multiples of Step. Devices that are not alive get 0.
	//
	// Errors are fault.ErrInvalid for requests that make no sense, and ErrNoDevice; they change nothing.
	Split(r Request) ([]int, error)
	// Observe takes the devices' samples of the last call. It ignores unknown ids and slices of another length than the
	// last request had devices.
	Observe(id int, samples []Sample)
	// Stats returns copies; an id that is not known has no calls.
	Stats(id int) Stats
}

// check returns the devices that are alive.
func (r *Request) check() ([]int, error) {
	const op = "balance: Split"
	if r.Global < 0 || uint64(r.Global) > maxGlobal || r.Step < 1 || r.Devices < 1 || r.Devices > maxDevices ||
		r.Alive != nil && len(r.Alive) != r.Devices {
		return nil, fault.Fail(op, fault.ErrInvalid, "a range has 0 to 2^53 items in steps of 1 or more, for 1 to 1024 devices that are alive or not")
	}
	alive := make([]int, 0, r.Devices)
	for i := range r.Devices {
		if r.Alive == nil || r.Alive[i] {
			alive = append(alive, i)
		}
	}
	if len(alive) == 0 {
		return nil, fault.Fail(op, ErrNoDevice)
	}
	return alive, nil
}

// extent is a range as a number of steps, what a step is, and the rest.
type extent struct{ steps, step, rest int }

// extent describes the request's range. One below the step is one step of its own size.
func (r *Request) extent() extent {
	step := max(min(r.Step, r.Global), 1)
	return extent{r.Global / step, step, r.Global % step}
}

// items makes items of steps. The rest goes to the last device that has any.
func (e extent) items(counts []int) []int {
	rest := e.rest
	for i, n := range slices.Backward(counts) {
		if counts[i] *= e.step; n > 0 {
			counts[i] += rest
			rest = 0
		}
	}
	return counts
}

// duration reports whether s is a time to be believed. It is false for NaN.
func duration(s float64) bool { return s >= 0 && s <= maxSeconds }

// keep adds to a list that goes back no further than depth.
func keep[E any](list []E, e E, depth int) []E {
	return append(list[max(len(list)-depth+1, 0):], e)
}

// policy is how the devices of an id share its ranges.
type policy interface {
	split(r *Request, alive []int, of extent) []int
	observe(samples []Sample)
	// stats adds what the policy knows to Stats.
	stats(s *Stats)
}

// balancer keeps the state of each id.
type balancer struct {
	policy func(devices int) policy
	mu     sync.Mutex
	loads  recent.Map[int, *load]
}

// load is the state of an id.
type load struct {
	policy
	devices, calls int
	history        [][]int // nobody changes the counts
}

func (b *balancer) Split(r Request) ([]int, error) {
	alive, err := r.check()
	if err != nil {
		return nil, err
	}
	of := r.extent()
	if of.steps == 0 {
		return make([]int, r.Devices), nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if moves := r.Moves; moves != nil { // which may use the balancer
		r.Moves = func(counts []int) []float64 {
			b.mu.Unlock()
			defer b.mu.Lock()
			return moves(counts)
		}
	}
	l := b.loads.Get(r.ID)
	if l == nil || l.devices != r.Devices {
		l = &load{policy: b.policy(r.Devices), devices: r.Devices}
		b.loads.Put(r.ID, l)
	}
	counts := l.split(&r, alive, of)
	l.calls++
	l.history = keep(l.history, counts, depth)
	return slices.Clone(counts), nil
}

func (b *balancer) Observe(id int, samples []Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.loads.Peek(id); l != nil && len(samples) == l.devices {
		l.observe(samples)
	}
}

func (b *balancer) Stats(id int) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.loads.Peek(id)
	if l == nil || l.calls == 0 { // or its first split is being decided
		return Stats{}
	}
	s := Stats{Calls: l.calls}
	for _, counts := range l.history {
		s.History = append(s.History, slices.Clone(counts))
	}
	last, sum := s.History[len(s.History)-1], 0.0
	for _, n := range last {
		sum += float64(n)
	}
	for _, n := range last {
		s.Shares = append(s.Shares, float64(n)/sum)
	}
	l.stats(&s)
	return s
}
