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

// The modes, with PTask's numbers.
const (
	// FirstAvailable is PTask's cooperative mode: a device that is free takes the first task that may run on it.
	FirstAvailable Mode = iota
	// PriorityFirst takes the task with the highest effective priority: its own, more the longer it waits compared with
	// others, less if it runs much longer than others.
	PriorityFirst
	// DataAware takes the task with the highest effective priority, and runs it on the device that has most of its inputs. If that
	// is busy the task waits for it until its effective priority is above the threshold of [WithThreshold].
	DataAware
	// FIFO takes tasks in the order in which they became ready. No task overtakes another one that waits for the same device.
	FIFO
)

// The scheduler has no goroutine: whoever changes something that tasks wait for, be it a block or capacity for one, calls update
// for them and schedule, with the graph locked. That starts the task that the mode chooses for each worker that is free. A
// worker is a device, or one of those of the host.

// readyQueues hold tasks that are ready, those that became ready first in front: of devices and of the host, and by priority
// where that counts.
type readyQueues [2][highestPriority + 1][]*Task

func (g *Graph) queue(t *Task) *[]*Task {
	class, level := 0, 0
	if t.body.host {
		class = 1
	}
	if g.ranked() {
		level = t.priority
	}
	return &g.ready[class][level]
}

// ranked reports whether priorities count.
func (g *Graph) ranked() bool { return g.conf.mode == PriorityFirst || g.conf.mode == DataAware }

// each calls fn for every task that is ready until it returns false.
func (g *Graph) each(fn func(*Task) bool) {
	for class := range g.ready {
		for _, queue := range g.ready[class] {
			for _, t := range queue {
				if !fn(t) {
					return
				}
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
	if g.conf.single && g.conf.mode != FIFO {
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
func (g *Graph) startable() (yes bool) {
	g.each(func(t *Task) bool {
		yes = t.ready() && (g.state != quiescing || t.feeds())
		return !yes
	})
	return yes
}

// schedule starts tasks on workers that are free.
func (g *Graph) schedule() {
	if g.conf.single {
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
	if !g.conf.single || g.stepping && ctx.Value(insideKey{}) != g {
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
	waits, alive := false, g.workers()
	for class, mine := range [...]uint64{g.deviceWorkers(), g.hostWorkers()} {
		free := g.run.free & mine
		for level := highestPriority; level >= 0 && free != 0; level-- {
			c, w := g.pickFrom(&g.ready[class][level], free, alive)
			if waits = waits || w; c.t != nil && c.better(best) {
				best = c
			}
		}
	}
	if best.t == nil && waits {
		g.remind()
	}
	return best, best.t != nil
}

// pickFrom chooses from a queue. waits tells that a task there waits for a device that is not free.
func (g *Graph) pickFrom(queue *[]*Task, free, alive uint64) (best choice, waits bool) {
	now, age := g.now(), g.age()
	for i := 0; i < len(*queue); i++ {
		t := (*queue)[i]
		can := t.mask & alive
		if can != 0 && can&free == 0 {
			if g.conf.mode == FIFO {
				free &^= t.mask // no task behind it gets there first
			}
			continue
		}
		if !t.ready() { // no longer
			t.queued = false
			*queue = slices.Delete(*queue, i, i+1)
			i--
			continue
		}
		if g.state == quiescing && !t.feeds() {
			continue
		}
		priority, long := t.effective(now, age, g.works)
		worker, found := g.workerFor(t, priority, can, free&can)
		if !found {
			waits = true
			if g.conf.mode == FIFO {
				free &^= t.mask
			}
			continue
		}
		c := choice{t, 0, worker}
		if g.ranked() {
			c.rank = priority
		}
		if c.better(best) {
			best = c
		}
		if !long || !g.ranked() {
			break // those behind it became ready later, and have no higher rank
		}
	}
	return best, waits
}

// workerFor chooses a task's worker, of those that can run it, among those of them that are free. It is none if none is left
// that can. found is false if the task had better wait for one that is not free.
func (g *Graph) workerFor(t *Task, priority int, can, free uint64) (worker int, found bool) {
	if can == 0 {
		return none, true
	}
	if want := g.wanted(t, can); want&free != 0 {
		free &= want
	} else if want != 0 && priority <= g.conf.threshold {
		return none, false
	}
	return g.strongest(t, free), true
}

// wanted returns the workers that a task had better wait for.
func (g *Graph) wanted(t *Task, can uint64) uint64 {
	if t.affinity >= strong && t.preferred&can != 0 {
		return t.preferred
	}
	if g.conf.mode != DataAware || t.body.host || can&(can-1) == 0 {
		return 0
	}
	var most int
	var want uint64
	for m := can; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		n := t.bytesAt(i + 1)
		if n > most {
			most, want = n, 0
		}
		if n == most && n > 0 {
			want |= 1 << i
		}
	}
	return want
}

// bytesAt returns how many bytes of the task's next inputs are current in a place.
func (t *Task) bytesAt(place int) int {
	n := 0
	for i, p := range t.ports {
		if p.kind != inputPort {
			continue
		}
		b := p.peek()
		if t.held != nil {
			b = t.held.blocks[i]
		}
		if b != nil && b.s != nil && b.s.current()&bit(place) != 0 {
			n += b.Size()
		}
	}
	return n
}

// effective is a task's priority now. long tells that it is lower because the task runs longer than others.
func (t *Task) effective(now, age, works time.Duration) (p int, long bool) {
	p = t.priority + int(min((now-t.since)/age, 2*highestPriority))
	if long = works > 0 && t.busy > 2*works; long {
		p--
	}
	return min(max(p, lowestPriority), highestPriority), long
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
		d = &Dispatch{g: g, t: t, blocks: make([]*Block, len(t.ports))}
		from := make([]*channel, 0, 8)
		for _, p := range t.ports {
			from = append(from, p.next()) // before any block is taken: initialisers look at those of other inputs
		}
		for i, p := range t.ports {
			d.blocks[i] = p.pull(from[i])
			if d.uid == 0 {
				d.uid = d.blocks[i].UID()
			}
		}
	}
	d.ctx, d.worker, d.epoch, d.err, d.own = g.run.ctx, c.worker, g.epoch, nil, false
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
	if g.ageing != nil || g.conf.single {
		return
	}
	g.ageing = time.AfterFunc(g.age(), func() {
		g.lock()
		g.ageing = nil
		g.unlock()
		g.reschedule()
	})
}
