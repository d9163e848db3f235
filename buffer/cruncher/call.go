// SPDX-License-Identifier: Apache-2.0

package cruncher

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher/balance"
	"github.com/sublet-gpu/sublet/buffer/internal/span"
	"github.com/sublet-gpu/sublet/gpu"
)

// call is one call of Compute: what it was told, and what each array is to it.
type call struct {
	id      int
	r       Range
	list    []param
	arrays  []argument
	kernels []*program
	sync    *program
	local   int
	inner   int
	step    int    // shares are multiples of it, but for the rest
	single  int    // the device that does everything, or -1
	whole   bool   // results count when all of them are there, not blob by blob
	stays   bool   // some results do not come back
	direct  bool   // one result need not be in memory of the library's
	batch   *Batch // results come back at its end
}

// number returns the number of the batch that the call is in, or 0.
func (c *call) number() uint64 {
	if c.batch == nil {
		return 0
	}
	return c.batch.number
}

// argument is an array among the parameters.
type argument struct {
	*residency
	name    string // in this call
	flags   Flags
	changed bool // kernels of the call may write it
}

// piece is what one device does of a call.
type piece struct {
	worker  *worker
	part    part
	done    int           // steps that are computed and whose results have left the device
	took    time.Duration // without waiting for others
	moving  time.Duration // of that, to get elements from other devices; the balancer reckons with them apart
	moves   [][]move      // of each array, before its kernels
	begun   bool          // some of them may have happened
	results []result
	spill   []result // that do not come back, while their place is needed
	err     error
}

// run computes a call on the devices that are alive. What a device that is lost meanwhile has not brought home is computed by
// the others.
func (cr *Cruncher) run(ctx context.Context, c *call) error {
	for i := range c.arrays {
		c.arrays[i].straight = c.r.Blobs == 1
	}
	if err := cr.prefetchPending(ctx, c); err != nil {
		return err
	}
	cr.noteLost()
	before := cr.Traffic()
	w := work{todo: []part{{c.r.Offset, c.r.Global}}}
	for len(w.todo) > 0 {
		err := cr.next(ctx, c, &w)
		if err == nil && len(w.todo) == 0 {
			err = cr.complete(ctx, c, &w)
		}
		if err == nil && len(w.todo) > 0 {
			err = cr.again(ctx, c, &w)
		}
		if err != nil {
			cr.undo(c, w.pieces)
			return err
		}
	}
	c.record(w.pieces)
	if w.redone {
		c.forgo(w.pieces) // they may have got again what was before
	}
	cr.publish(w.report(), before)
	return nil
}

// work is how far a call has come.
type work struct {
	todo   []part
	pieces []*piece
	first  int  // of the pieces, those of the whole range
	redone bool // a device was lost
}

// next shares the next part out and computes it.
func (cr *Cruncher) next(ctx context.Context, c *call, w *work) error {
	whole := len(w.pieces) == 0
	pieces, err := cr.share(c, w.todo[0], whole)
	if err != nil {
		return err
	}
	w.pieces = append(w.pieces, pieces...)
	c.direct = c.r.Blobs == 1 && len(w.todo) == 1 && busy(pieces) == 1
	if err := cr.attempt(ctx, c, pieces); err != nil {
		return err
	}
	if whole {
		w.first = len(pieces)
		cr.observe(c, pieces)
	}
	w.todo = append(w.unfinished(c), w.todo[1:]...)
	return nil
}

func busy(pieces []*piece) int {
	n := 0
	for _, p := range pieces {
		if p.part.count > 0 {
			n++
		}
	}
	return n
}

// complete has the results land when all are there. If a device is lost that has yet to give them, there is something to do again.
func (cr *Cruncher) complete(ctx context.Context, c *call, w *work) error {
	var results []result
	for _, p := range w.pieces {
		results = append(results, p.results...)
	}
	err := error(nil)
	if w.redone {
		err = cr.unspill(ctx, c, w.pieces)
	}
	if err == nil {
		err = cr.land(ctx, results)
	}
	if err != nil && cr.newlyLost() {
		if w.todo = w.unfinished(c); len(w.todo) > 0 {
			return nil
		}
	}
	return err
}

// unfinished lists what lost devices left. Work of theirs counts if all of its results are in memory.
func (w *work) unfinished(c *call) []part {
	var left []part
	for _, p := range w.pieces {
		if p.worker.lost() && (c.stays || slices.ContainsFunc(p.results, func(r result) bool { return r.mem == nil })) {
			p.done = 0
		}
		if p.done == 0 {
			p.results, p.spill = nil, nil
		}
		if p.done < p.part.count {
			left = append(left, part{p.part.base + p.done, p.part.count - p.done})
			p.part.count = p.done
		}
	}
	return left
}

// again prepares the devices that live for what lost ones have left.
func (cr *Cruncher) again(ctx context.Context, c *call, w *work) error {
	cr.noteLost()
	w.redone = true
	if c.batch != nil && slices.ContainsFunc(w.pieces, func(p *piece) bool { return p.done > 0 }) {
		return fail("Compute", ErrStale, "a device was lost in the middle of a call of a batch") // what they began with is nowhere
	}
	if err := cr.spill(ctx, c, w.pieces); err != nil && !cr.newlyLost() {
		return err
	}
	c.noteDone(w.pieces, func(a *argument) bool { return c.remains(a) && !c.loose(a) })
	c.forgo(w.pieces)
	return cr.unsync(ctx, c, w.pieces)
}

// forgo makes devices get the elements anew that they have results of already: others begin with those from before.
func (c *call) forgo(pieces []*piece) {
	for _, p := range pieces {
		for k := range c.arrays {
			if a := &c.arrays[k]; a.flags.Write {
				s := a.written(c, part{p.part.base, p.done})
				a.valid[p.worker.index].Remove(s.Lo, s.Hi)
			}
		}
	}
}

// share divides a part of the range among the devices that are alive.
func (cr *Cruncher) share(c *call, all part, first bool) ([]*piece, error) {
	alive := make([]bool, len(cr.workers))
	count := 0
	for i, w := range cr.workers {
		alive[i] = !w.lost() && (c.single < 0 || i == c.single)
		if alive[i] {
			count++
		}
	}
	if count == 0 && c.single >= 0 { // its work is for the next one
		for i, w := range cr.workers {
			if !w.lost() {
				alive[i], count = true, 1
				break
			}
		}
	}
	if count == 0 {
		return nil, fail("Compute", gpu.ErrDeviceLost, "all devices")
	}
	counts, err := cr.counts(c, all.count, alive, first && c.single < 0)
	if err != nil {
		return nil, err
	}
	var pieces []*piece
	base := all.base
	for i, n := range counts {
		pieces = append(pieces, &piece{worker: cr.workers[i], part: part{base, n}})
		base += n
	}
	return pieces, nil
}

func (cr *Cruncher) counts(c *call, n int, alive []bool, balanced bool) ([]int, error) {
	if !balanced {
		return evenly(n, c.step, alive), nil
	}
	key := batchKey{c.id, n, c.step}
	if c.batch != nil {
		if fixed := c.batch.shares[key]; fixed != nil && allAlive(fixed, alive) {
			return fixed, nil
		}
	}
	if fixed := cr.pinned.Get(c.id); fixed != nil && sum(*fixed) == n && allAlive(*fixed, alive) {
		return *fixed, nil
	}
	counts, err := cr.balancer.Split(balance.Request{
		ID: c.id, Global: n, Step: c.step, Devices: len(alive), Alive: alive, Moves: cr.moveCosts(c),
	})
	if err != nil {
		return nil, err
	}
	if len(counts) != len(alive) || sum(counts) != n || !allAlive(counts, alive) {
		return nil, fail("Compute", gpu.ErrInvalid, "what the balancer returns are no shares")
	}
	if cr.conf.coherence == Pin {
		cr.pinned.Put(c.id, &counts)
	}
	if c.batch != nil {
		c.batch.shares[key] = counts
	}
	return counts, nil
}

// evenly divides what a lost device has left, or gives everything to the only one.
func evenly(n, step int, alive []bool) []int {
	counts := make([]int, len(alive))
	live := 0
	for _, a := range alive {
		if a {
			live++
		}
	}
	share := (n/live + step - 1) / step * step
	last := 0
	for i, a := range alive {
		if a {
			counts[i] = min(share, n)
			n -= counts[i]
			last = i
		}
	}
	counts[last] += n
	return counts
}

func sum(v []int) int {
	n := 0
	for _, x := range v {
		if x < 0 || n > maxItems-x {
			return -1
		}
		n += x
	}
	return n
}

func allAlive(counts []int, alive []bool) bool {
	for i, n := range counts {
		if n > 0 && !alive[i] {
			return false
		}
	}
	return true
}

// attempt moves what the pieces need to their devices, computes them and gets the results. A lost device is no error: its
// piece is not done.
func (cr *Cruncher) attempt(ctx context.Context, c *call, pieces []*piece) error {
	if err := cr.prepareMoves(ctx, c, pieces); err != nil {
		for k := range c.arrays {
			c.arrays[k].miss()
		}
		if cr.newlyLost() { // a device that others' elements were to come from
			return nil
		}
		return err
	}
	for _, p := range pieces {
		c.overwrites(p)
	}
	return cr.each(pieces, func(p *piece) error { return cr.work(ctx, c, p) })
}

// overwrites notes which elements of the beginning of a batch a piece's kernels may write over.
func (c *call) overwrites(p *piece) {
	if p.part.count == 0 || c.r.TransferOnly {
		return
	}
	for k := range c.arrays {
		a := &c.arrays[k]
		if a.flags.ReadOnly {
			continue
		}
		a.touch(p.worker.index, a.written(c, p.part))
		if c.sync != nil {
			a.touch(p.worker.index, part{0, c.local}.elements(a.flags.ElementsPerItem, 1, a.array.n))
		}
	}
}

// record notes what the kernels wrote and the host got or is to get.
func (c *call) record(pieces []*piece) {
	for _, p := range pieces {
		of, d := part{p.part.base, p.done}, p.worker.index
		if of.count == 0 {
			continue
		}
		for k := range c.arrays {
			a := &c.arrays[k]
			s := a.written(c, of)
			if (a.changed || a.flags.Write) && !c.r.TransferOnly {
				c.unsynced(a, d, s)
				a.wrote(d, s)
			}
			switch {
			case !a.flags.Write:
			case c.batch != nil:
				a.differs(d, s)
				for m := range a.dirty.Overlap(s.Lo, s.Hi) {
					a.pending.Add(m.Lo, m.Hi)
				}
			default:
				a.returned(s)
			}
		}
	}
}

// unsynced notes that the kernel between repeats may have written elements which are not device d's own.
func (c *call) unsynced(a *argument, d int, own span.Span) {
	if c.sync == nil {
		return
	}
	s := part{0, c.local}.elements(a.flags.ElementsPerItem, 1, a.array.n)
	a.valid[d].Remove(s.Lo, min(s.Hi, own.Lo))
	a.valid[d].Remove(max(s.Lo, own.Hi), s.Hi)
}

// written returns the elements that the kernels of a part may have written.
func (a *argument) written(c *call, of part) span.Span {
	if of.count == 0 {
		return span.Span{}
	}
	if a.flags.Write && a.flags.WriteAll {
		return span.Span{Lo: 0, Hi: a.array.n}
	}
	return of.elements(a.flags.ElementsPerItem, c.inner, a.array.n)
}

// undo forgets what a call that failed may have done to elements which the host has: they are to be brought anew.
func (cr *Cruncher) undo(c *call, pieces []*piece) {
	cr.noteLost()
	for _, p := range pieces {
		if !p.begun {
			continue
		}
		d := p.worker.index
		for k := range c.arrays {
			a := &c.arrays[k]
			host, _ := a.needs(c, p)
			for s := range a.pending.Missing(host.Lo, host.Hi) {
				a.valid[d].Remove(s.Lo, s.Hi)
			}
			for s := range a.synced.All() {
				a.valid[d].Remove(s.Lo, s.Hi)
			}
		}
	}
}

// each runs fn for every piece with work, at the same time, and notes lost devices. Of other errors it returns the first.
func (cr *Cruncher) each(pieces []*piece, fn func(p *piece) error) error {
	var wg sync.WaitGroup
	var last *piece // needs no goroutine of its own
	for _, p := range pieces {
		if p.part.count == 0 || p.err != nil {
			continue
		}
		if last != nil {
			p := last
			wg.Go(func() { p.do(fn) })
		}
		last = p
	}
	if last != nil {
		last.do(fn)
	}
	wg.Wait()
	for _, p := range pieces {
		if p.err != nil && !p.worker.lost() {
			return p.err
		}
	}
	return nil
}

func (p *piece) do(fn func(p *piece) error) {
	start := time.Now()
	p.err = fn(p)
	p.took += time.Since(start)
}

// observe tells the balancer how long the devices took.
func (cr *Cruncher) observe(c *call, pieces []*piece) {
	if c.single >= 0 || c.batch != nil || c.r.TransferOnly {
		return
	}
	samples := make([]balance.Sample, len(cr.workers))
	for _, p := range pieces {
		if p.done == p.part.count {
			samples[p.worker.index] = balance.Sample{Count: p.part.count, Seconds: cr.seconds(p)}
		}
	}
	cr.balancer.Observe(c.id, samples)
}

// seconds is how long a piece took, as the clock of the options has it, without moves between devices.
func (cr *Cruncher) seconds(p *piece) float64 {
	if cr.conf.clock != nil {
		return cr.conf.clock(p.worker.index, p.part.count, p.took-p.moving)
	}
	return (p.took - p.moving).Seconds()
}
