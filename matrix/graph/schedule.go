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
	at := len(g.ready)
	for at > 0 && g.ready[at-1].order > t.order {
		at--
	}
	g.ready = slices.Insert(g.ready, at, t)
}

// startable reports whether some task could run.
func (g *Graph) startable() bool {
	return slices.ContainsFunc(g.ready, func(t *Task) bool { return t.ready() && (g.state != quiescing || t.feeds()) })
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
	ranked := g.conf.Mode == PriorityFirst || g.conf.Mode == DataAware
	waits, free, alive, now, age := false, g.run.free, g.workers(), g.now(), max(g.waits, minWait)
	var passed [highestPriority + 1]bool
	for _, t := range g.ready {
		if passed[t.priority] {
			continue
		}
		can, priority := t.mask&alive, t.effective(now, age, g.works)
		c := choice{t: t, worker: none}
		if ranked {
			c.rank = priority
		}
		if can != 0 && can&free == 0 || !c.better(best) || !t.ready() || g.state == quiescing && !t.feeds() {
			continue
		}
		found := true
		if can != 0 {
			c.worker, found = g.workerFor(t, priority, can, free&can)
		}
		if found {
			best = c
			passed[t.priority] = !t.long(g.works) // the others became ready later, and have no higher rank
			if !ranked {
				break
			}
			continue
		}
		waits = true
		if g.conf.Mode == FIFO {
			free &^= t.mask // no task behind it gets there first
		}
	}
	if best.t == nil && waits {
		g.remind(age)
	}
	return best, best.t != nil
}

// minWait is the shortest wait that raises a task's priority.
const minWait = time.Millisecond

// effective is a task's priority now: higher the longer it has waited compared with others, lower if it runs longer than others.
func (t *Task) effective(now, age, works time.Duration) int {
	p := t.priority + int(min((now-t.since)/age, 2*highestPriority))
	if t.long(works) {
		p--
	}
	return min(max(p, lowestPriority), highestPriority)
}

// long reports whether a task runs much longer than others.
func (t *Task) long(works time.Duration) bool { return works > 0 && t.busy > 2*works }

// workerFor chooses a task's worker, of those that can run it, among those of them that are free. found is false if the task had
// better wait for one that is not free.
func (g *Graph) workerFor(t *Task, priority int, can, free uint64) (worker int, found bool) {
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
			b = t.held[i]
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
	i := slices.Index(g.ready, t)
	g.ready = slices.Delete(g.ready, i, i+1)
	t.queued, t.running = false, true
	g.inflight++
	g.started++
	d := &Dispatch{g: g, t: t, worker: c.worker, ctx: g.run.ctx, epoch: g.epoch, inputs: t.held}
	if d.inputs == nil {
		d.inputs = t.take()
	}
	t.held = nil
	if i := slices.IndexFunc(d.inputs, func(b *Block) bool { return b != nil }); i >= 0 {
		d.number = d.inputs[i].number
	}
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

// remind schedules again when tasks that wait for a busy device have waited longer.
func (g *Graph) remind(after time.Duration) {
	if g.ageing != nil || g.conf.Deterministic {
		return
	}
	g.ageing = time.AfterFunc(after, func() {
		g.lock()
		g.ageing = nil
		g.schedule()
		g.unlock()
	})
}
