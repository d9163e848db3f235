// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/buffer/internal/memory"
	"github.com/sublet-gpu/sublet/gpu"
)

// call is one call of Compute: its parameters, and how each array takes part.
type call struct {
	id      int
	r       Range
	list    []param
	arrays  []argument
	kernels []*kernel.Program
	sync    *kernel.Program
	local   int // items of a workgroup
	inner   int
	step    int    // shares are multiples of it, but for the rest
	single  int    // the device that does everything, or -1
	stays   bool   // some results do not come back
	alone   bool   // one device computes it, at once
	batch   *Batch // results come back at its end

	displaced []*kernel.Program // by those of the call, which may use them: closed at its end
}

// argument is an array among the parameters.
type argument struct {
	*residency
	name      string // in this call
	flags     Flags
	conv      *converter // of an array that kernels see unpacked
	changed   bool       // kernels of the call may write it
	ifChanged bool       // it comes back only if they do
}

// piece is one device's part of a call; devices without items have none.
type piece struct {
	worker  *worker
	part    part
	took    time.Duration // without waiting for others
	moving  time.Duration // of that, to get elements from other devices; the balancer reckons with them apart
	begun   bool          // its kernels may have run
	results []result

	has []holding // of each array
}

// holding is the memory of an array on a piece's device.
type holding struct {
	*memory.Replica
	words             // of one that kernels see unpacked
	host, newest span // what comes from the host before the kernels run, and what they must have the newest values of
	bound        span // what they may touch
}

// run computes a call on the devices that are not lost. If one is lost meanwhile, the others repeat the call from its original input.
func (cr *Cruncher) run(ctx context.Context, c *call) error {
	if err := cr.bringEarly(ctx, c); err != nil {
		return err
	}
	before := cr.Traffic()
	for {
		cr.noteLost()
		pieces, err := cr.share(c)
		if err != nil {
			return err
		}
		if err = cr.attempt(ctx, c, pieces); err == nil {
			c.record(pieces)
			cr.observe(c, pieces)
			cr.publish(pieces, before)
			return nil
		}
		again := cr.noteLost()
		uerr := cr.undo(c, pieces, errors.Is(err, gpu.ErrNoMemory))
		if !again {
			return err
		}
		if uerr != nil {
			return uerr
		}
	}
}

// share divides the range among the devices that are alive.
func (cr *Cruncher) share(c *call) ([]*piece, error) {
	alive := make([]bool, len(cr.workers))
	any := -1
	for i, w := range cr.workers {
		if alive[i] = !w.lost(); alive[i] && (any < 0 || i == c.single) {
			any = i
		}
	}
	if any < 0 {
		return nil, fail("Compute", gpu.ErrDeviceLost, "all devices")
	}
	counts := make([]int, len(alive))
	if c.single >= 0 {
		counts[any] = c.r.Global
	} else {
		var err error
		if counts, err = cr.counts(c, alive); err != nil {
			return nil, err
		}
	}
	var pieces []*piece
	base := c.r.Offset
	for i, n := range counts {
		if n == 0 {
			continue
		}
		p := &piece{worker: cr.workers[i], part: part{base, n}, has: make([]holding, len(c.arrays))}
		for k := range c.arrays {
			p.has[k].need(c, &c.arrays[k], p.part)
		}
		pieces = append(pieces, p)
		base += n
	}
	return pieces, nil
}

// shareKey identifies calls whose range is divided the same way throughout a batch, or with [Pin] always.
type shareKey struct{ id, global, step int }

func (cr *Cruncher) counts(c *call, alive []bool) ([]int, error) {
	n := c.r.Global
	key := shareKey{c.id, n, c.step}
	keep := c.batch != nil || cr.conf.coherence == Pin
	if fixed := cr.fixed.Get(key); keep && fixed != nil && divides(*fixed, n, 1, alive) {
		return *fixed, nil
	}
	counts, err := cr.conf.balancer.Split(balance.Request{
		ID: c.id, Global: n, Step: c.step, Devices: len(alive), Alive: alive, Moves: c.moveCosts,
	})
	if err != nil {
		return nil, err
	}
	if !divides(counts, n, c.step, alive) {
		return nil, fail("Compute", gpu.ErrInvalid, "what the balancer returns are no shares: they add up to ", itoa(n),
			", and each device begins at a multiple of ", itoa(c.step), " and has none if it is lost")
	}
	counts = cr.fit(c, counts, alive)
	if keep {
		cr.fixed.Put(key, &counts)
	}
	return counts, nil
}

// fit moves items that are more than a device can bind to devices with capacity left. If none has, the counts stay, and allocating that
// device's memory fails.
func (cr *Cruncher) fit(c *call, counts []int, alive []bool) []int {
	steps, room, over := make([]int, len(counts)), make([]int, len(counts)), 0
	for i, n := range counts {
		room[i] = c.most(cr.workers[i].dev)/c.step - 1 // the rest may come on top
		steps[i] = min(n/c.step, max(room[i], 0))
		over += n/c.step - steps[i]
	}
	if over == 0 {
		return counts
	}
	for i := range steps {
		if more := min(over, room[i]-steps[i]); alive[i] && more > 0 {
			steps[i] += more
			over -= more
		}
	}
	if over > 0 {
		return counts
	}
	rest := c.r.Global % c.step
	for i := len(steps) - 1; i >= 0; i-- {
		if steps[i] *= c.step; steps[i] > 0 {
			steps[i] += rest
			rest = 0
		}
	}
	return steps
}

// most returns how many items of the arrays that are held in windows a device can bind.
func (c *call) most(dev *gpu.Device) int {
	items, bindable := c.r.Global+c.step, int(min(memory.Bindable(dev), math.MaxInt))
	for k := range c.arrays {
		a := &c.arrays[k]
		size := a.array.t.Size()
		if a.widened() {
			size = 4
		}
		whole := a.flags.Read && !a.flags.PartialRead || a.flags.Write && a.flags.WriteAll
		if each := mul(mul(a.flags.ElementsPerItem, c.inner), size); !whole && mul(a.array.n, size) > bindable && each > 0 {
			items = min(items, max(bindable-a.step-mul(2*size, a.flags.Halo), 0)/each)
		}
	}
	return items
}

// divides reports whether counts add up to n, are 0 for lost devices, and have all others begin at multiples of a step.
func divides(counts []int, n, step int, alive []bool) bool {
	if len(counts) != len(alive) {
		return false
	}
	base := 0
	for i, c := range counts {
		if c < 0 || c > n-base || c > 0 && (!alive[i] || base%step != 0) {
			return false
		}
		base += c
	}
	return base == n
}

// attempt copies the inputs to the devices, computes the pieces and copies the results back.
func (cr *Cruncher) attempt(ctx context.Context, c *call, pieces []*piece) error {
	defer func() {
		for _, p := range pieces {
			for k := range p.has {
				_ = p.has[k].mem.Close() // never fails
			}
		}
	}()
	if err := cr.prepareMoves(ctx, c, pieces); err != nil {
		return err
	}
	for _, p := range pieces {
		p.begun = true
	}
	c.alone = c.r.Blobs == 1 && len(pieces) == 1
	if err := cr.each(pieces, func(p *piece) error { return cr.work(ctx, c, p) }); err != nil {
		return err
	}
	var results []result
	for _, p := range pieces {
		if c.stays && p.worker.lost() {
			return fail("Compute", gpu.ErrDeviceLost, "with results that stay there")
		}
		results = append(results, p.results...)
	}
	return cr.land(ctx, results)
}

// record notes the elements that the kernels wrote, and those that the host got or will get.
func (c *call) record(pieces []*piece) {
	for _, p := range pieces {
		for k := range c.arrays {
			a := &c.arrays[k]
			w := a.array.bytes(a.written(c, p.part))
			if a.changed {
				a.values.Wrote(p.has[k].Replica, w, memory.Newer)
				a.values.Forget(p.has[k].Replica, a.array.bytes(c.between(a)))
			}
			switch {
			case !a.flags.Write:
			case c.batch != nil:
				a.values.Change(w, memory.Apart, memory.Pending)
				a.values.Change(w, memory.Newer, memory.Pending)
			default:
				a.values.Returned(w)
			}
		}
	}
}

// between returns the elements that the kernel between repeats may write, on each device.
func (c *call) between(a *argument) span {
	if c.sync == nil {
		return span{}
	}
	return part{0, c.local}.elements(a.flags.ElementsPerItem, 1, a.array.n)
}

// written returns the elements that the kernels of a part may have written.
func (a *argument) written(c *call, of part) span {
	if a.flags.Write && a.flags.WriteAll {
		return span{0, a.array.n}
	}
	return a.own(c, of)
}

// undo marks the elements invalid that kernels of a failed call may have written. It is ErrStale if no other copy of them exists. Other
// elements on the devices stay valid. If memory was short, device memory of the arrays that is not needed is released.
func (cr *Cruncher) undo(c *call, pieces []*piece, short bool) (err error) {
	for _, p := range pieces {
		if p.worker.lost() {
			continue
		}
		for k := range c.arrays {
			a, kept := &c.arrays[k], true
			if !p.begun {
				continue
			}
			for _, s := range []span{a.written(c, p.part), c.between(a)} {
				if a.changed && !a.values.Forget(p.has[k].Replica, a.array.bytes(s)) && !a.access.writeOnly {
					err, kept = fail("Compute", ErrStale, a.array.name), false
				}
			}
			if kept {
				_ = p.has[k].Mem.Renew() // of a device that is lost it makes no difference
			}
		}
		for k := range c.arrays {
			for short && c.arrays[k].leave(p.worker.dev) {
			}
		}
	}
	return err
}

// each runs fn for every piece at the same time. Errors of lost devices count for less than others.
func (cr *Cruncher) each(pieces []*piece, fn func(p *piece) error) (err error) {
	errs := together(len(pieces), func(i int) error {
		p, start := pieces[i], time.Now()
		defer func() { p.took += time.Since(start) }()
		return fn(p)
	})
	for i, e := range errs {
		if e != nil && (err == nil || !pieces[i].worker.lost()) {
			err = e
		}
	}
	return err
}

// observe tells the balancer how long the devices took, without moves between devices.
func (cr *Cruncher) observe(c *call, pieces []*piece) {
	if c.single >= 0 || c.batch != nil || c.r.TransferOnly {
		return
	}
	samples := make([]balance.Sample, len(cr.workers))
	for _, p := range pieces {
		samples[p.worker.index] = balance.Sample{Count: p.part.count, Seconds: (p.took - p.moving).Seconds()}
	}
	cr.conf.balancer.Observe(c.id, samples)
}
