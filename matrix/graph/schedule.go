// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"math/bits"
	"slices"
	"time"
)

// Mode is how the graph chooses, of the tasks that are ready, the next one and its device.
type Mode uint8

// The modes.
const (
	// DataAware takes the task with the highest effective priority, and runs it on the device that has most of its inputs. If that
	// is busy the task waits for it until its effective priority is above [Config].Threshold.
	DataAware Mode = iota
	// FirstAvailable is PTask's cooperative mode: a device that is free takes the first task that may run on it.
	FirstAvailable
	// PriorityFirst takes the task with the highest effective priority: its own, more the longer it waits compared with
	// others, less if it runs much longer than others.
	PriorityFirst
	// FIFO takes tasks in the order in which they became ready. No task overtakes another one that waits for the same device.
	FIFO
)

// The scheduler has no goroutine: whoever changes something that tasks wait for, be it a block or capacity for one, calls update
// for them and schedule, with the graph locked. That starts the task that the mode chooses for each worker that is free. A
// worker is a device, or one of those of the host.

// readyQueues hold tasks that are ready, those that became ready first in front: by priority where that counts.
type readyQueues [highestPriority + 1][]*Task

func (g *Graph) queue(t *Task) *[]*Task {
	if g.ranked() {
		return &g.ready[t.priority]
	}
	return &g.ready[0]
}

// ranked reports whether priorities count.
func (g *Graph) ranked() bool { return g.conf.Mode == PriorityFirst || g.conf.Mode == DataAware }

// all iterates over the tasks that are ready.
func (r *readyQueues) all(yield func(*Task) bool) {
	for _, queue := range r {
		for _, t := range queue {
			if !yield(t) {
				return
			}
		}
	}
}

// jitter is how many tasks may overtake one in the deterministic mode.
const jitter = 16

// update queues a task that has become ready. In the deterministic mode the seed changes the order a little.
func (g *Graph) update(t *Task) {
	if t.queued || !t.ready() {
		return
	}
	g.orders++
	t.queued, t.since, t.order = true, g.now(), g.orders
	if g.conf.Deterministic && g.conf.Mode != FIFO {
		t.order += g.rng.Uint64N(jitter)
	}
	q := g.queue(t)
	at := len(*q)
	for at > 0 && (*q)[at-1].order > t.order {
		at--
	}
	*q = slices.Insert(*q, at, t)
}

// startable reports whether some task could run.
func (g *Graph) startable() bool {
	for t := range g.ready.all {
		if t.ready() && (g.state != quiescing || t.feeds()) {
			return true
		}
	}
	return false
}

// schedule starts tasks on workers that are free.
func (g *Graph) schedule() {
	if g.conf.Deterministic {
		g.quiet.broadcast() // a goroutine may wait for something to run
		return
	}
	for {
		c, ok := g.pick()
		if !ok || g.page.due(g) {
			return
		}
		go g.begin(c).execute()
	}
}

// reschedule schedules for a caller that does not have the lock.
func (g *Graph) reschedule() {
	g.lock()
	g.schedule()
	g.unlock()
}

// step runs one task in the deterministic mode, and reports whether there was one.
func (g *Graph) step(ctx context.Context) bool {
	if !g.conf.Deterministic || g.stepping && ctx.Value(insideKey{}) != g {
		return false
	}
	if g.startable() && g.page.due(g) { // before pick, so that the order does not depend on it
		changed := g.quiet.wait()
		g.unlock()
		<-changed
		g.lock()
		return true
	}
	c, ok := g.pick()
	if !ok {
		return false
	}
	d, nested := g.begin(c), g.stepping
	g.stepping = true
	g.unlock()
	defer func() { // also when the task ends the goroutine
		g.lock()
		g.stepping = nested
		g.quiet.broadcast()
	}()
	d.execute()
	return true
}

// choice is a task that is to run, with its rank and its worker: none if no device is left that may run it.
type choice struct {
	t      *Task
	rank   int
	worker int
}

// better reports whether a choice comes before another one: by rank, and of equals the task that has waited longer.
func (c choice) better(than choice) bool {
	return than.t == nil || c.rank > than.rank || c.rank == than.rank && c.t.order < than.t.order
}

// pick chooses the next task.
func (g *Graph) pick() (best choice, ok bool) {
	if g.state != running && g.state != quiescing {
		return best, false
	}
	waits, free, alive, now, age := false, g.run.free, g.workers(), g.now(), g.age()
	for level := highestPriority; level >= 0; level-- {
		queue := &g.ready[level]
		for i := 0; i < len(*queue) && free != 0; i++ {
			t := (*queue)[i]
			can := t.mask & alive
			c, long, found := choice{}, false, false
			if can == 0 || can&free != 0 {
				if !t.ready() { // no longer
					t.queued = false
					*queue = slices.Delete(*queue, i, i+1)
					i--
					continue
				}
				if g.state == quiescing && !t.feeds() {
					continue
				}
				c, long = choice{t: t}, g.works > 0 && t.busy > 2*g.works
				priority := t.effective(now, age, long)
				if g.ranked() {
					c.rank = priority
				}
				c.worker, found = g.workerFor(t, priority, can, free&can)
				waits = waits || !found
			}
			switch {
			case found && c.better(best):
				best = c
			case !found && g.conf.Mode == FIFO:
				free &^= t.mask // no task behind it gets there first
			}
			if found && !(long && g.ranked()) {
				break // those behind it became ready later, and have no higher rank
			}
		}
	}
	if best.t == nil && waits {
		g.remind()
	}
	return best, best.t != nil
}

// effective is a task's priority now: higher if it has waited, lower if it runs longer than others.
func (t *Task) effective(now, age time.Duration, long bool) int {
	p := t.priority + int(min((now-t.since)/age, 2*highestPriority))
	if long {
		p--
	}
	return min(max(p, lowestPriority), highestPriority)
}

// workerFor chooses a task's worker, of those that can run it, among those of them that are free. It is none if none is left
// that can. found is false if the task had better wait for one that is not free.
func (g *Graph) workerFor(t *Task, priority int, can, free uint64) (worker int, found bool) {
	if can == 0 {
		return none, true
	}
	if want := g.wanted(t, can); want&free != 0 {
		free &= want
	} else if want != 0 && priority <= g.conf.Threshold {
		return none, false
	}
	return g.strongest(t, free), true
}

// wanted returns the workers that a task had better wait for.
func (g *Graph) wanted(t *Task, can uint64) (want uint64) {
	if t.affinity >= strong && t.preferred&can != 0 {
		return t.preferred
	}
	if g.conf.Mode != DataAware || t.body.host || can&(can-1) == 0 {
		return 0
	}
	most := 1
	for m := can; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		n := t.bytesAt(i + 1)
		if n > most {
			most, want = n, 0
		}
		if n == most {
			want |= 1 << i
		}
	}
	return want
}

// bytesAt returns how many bytes of the task's next inputs are current in a place.
func (t *Task) bytesAt(place int) int {
	n := 0
	for i, p := range t.ports {
		if !p.isInput() {
			continue
		}
		b := p.peek()
		if t.held != nil {
			b = t.held.inputs[i]
		}
		if b != nil && b.s != nil && b.s.current()&bit(place) != 0 {
			n += b.t.sizeOf(b.rows)
		}
	}
	return n
}

// begin takes a task's inputs. From here on it runs.
func (g *Graph) begin(c choice) *Dispatch {
	t := c.t
	q := g.queue(t)
	i := slices.Index(*q, t)
	*q = slices.Delete(*q, i, i+1)
	t.queued, t.running = false, true
	g.inflight++
	g.started++
	d := t.held
	t.held = nil
	if d == nil {
		d = &Dispatch{g: g, t: t, inputs: make([]*Block, len(t.ports))}
		from := make([]*channel, len(t.ports))
		for i, p := range t.ports {
			from[i], _ = p.source() // before any block is taken: initialisers look at those of other inputs
		}
		for i, p := range t.ports {
			if d.inputs[i] = p.take(from[i]); d.number == 0 && d.inputs[i] != nil {
				d.number = d.inputs[i].number
			}
		}
	}
	d.ctx, d.worker, d.epoch, d.err, d.passed = g.run.ctx, c.worker, g.epoch, nil, false
	d.waited = g.now() - t.since
	g.waits += (d.waited - g.waits) / 16
	if c.worker != none {
		g.run.free &^= 1 << c.worker
	}
	if dev := d.Device(); dev != nil {
		d.generation = dev.Generation()
	}
	return d
}

// minWait is the shortest wait that raises a task's priority.
const minWait = time.Millisecond

// age is how long a task waits for its priority to rise by one: as long as others wait on average.
func (g *Graph) age() time.Duration { return max(g.waits, minWait) }

// remind schedules again when tasks that wait for a busy device have waited longer.
func (g *Graph) remind() {
	if g.ageing != nil || g.conf.Deterministic {
		return
	}
	g.ageing = time.AfterFunc(g.age(), func() {
		g.lock()
		g.ageing = nil
		g.unlock()
		g.reschedule()
	})
}
