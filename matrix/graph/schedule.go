// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
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

// line is tasks that are ready and equal but for how long they wait, which the first does longest: the same workers may run them,
// they want the same ones of these, and their priorities are the same. So the scheduler looks at the first of each line only.
type line struct {
	mask, want uint64
	priority   int
	tasks      queue[*Task]
}

// jitter is how many tasks may overtake one in the deterministic mode.
const jitter = 16

// update queues a task that has become ready. In the deterministic mode the seed changes the order a little.
func (g *Graph) update(t *Task) {
	if t.queued || !g.mayRun(t) {
		return
	}
	g.orders++
	t.queued, t.since, t.order, t.level = true, g.now(), g.orders, t.priority
	if g.works > 0 && t.busy > 2*g.works { // it runs much longer than others
		t.level--
	}
	if g.conf.Deterministic && g.conf.Mode != FIFO {
		t.order += g.rng.Uint64N(jitter)
	}
	l := g.line(t)
	l.tasks.push(t)
	for list, i := l.tasks.all(), l.tasks.len()-1; i > 0 && list[i-1].order > t.order; i-- {
		list[i-1], list[i] = t, list[i-1]
	}
}

// line returns the line in which a task waits.
func (g *Graph) line(t *Task) *line {
	want := g.wanted(t, t.mask)
	for _, l := range g.ready {
		if l.mask == t.mask && l.want == want && l.priority == t.level {
			return l
		}
	}
	l := &line{mask: t.mask, want: want, priority: t.level}
	g.ready = append(g.ready, l)
	return l
}

// mayRun reports whether a task is ready. Nothing new begins while the graph is stopped.
func (g *Graph) mayRun(t *Task) bool { return t.ready() && (g.state != quiescing || t.feeds()) }

// first returns the first task of a line, nil if there is none. Those that are not ready any more leave it.
func (g *Graph) first(l *line) *Task {
	for l.tasks.len() > 0 {
		t := l.tasks.all()[0]
		if g.mayRun(t) {
			return t
		}
		l.tasks.pop().queued = false
	}
	return nil
}

// startable reports whether some task could run.
func (g *Graph) startable() bool {
	return slices.ContainsFunc(g.ready, func(l *line) bool { return g.first(l) != nil })
}

// schedule starts tasks on workers that are free. The goroutine of a dispatch that has ended goes on with one of them, with its own
// worker's if it can: what that queues is then ahead of the work that others queue because it began.
func (g *Graph) schedule(ended *Dispatch) {
	if g.conf.Deterministic {
		g.quiet.broadcast() // a goroutine may wait for something to run
		return
	}
	for {
		c, ok := g.pick()
		if !ok || g.page.due(g) {
			return
		}
		d := g.begin(c)
		if ended != nil && (ended.next == nil || d.worker == ended.worker) {
			ended.next, d = d, ended.next
		}
		if d != nil {
			go d.work()
		}
	}
}

// reschedule schedules for a caller that does not have the lock.
func (g *Graph) reschedule() {
	g.lock()
	g.schedule(nil)
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

// choice is a task that is to run, with its effective priority and its worker: none if no device is left that may run it.
type choice struct {
	t        *Task
	line     *line
	priority int
	worker   int
}

// pick chooses the next task.
func (g *Graph) pick() (c choice, ok bool) {
	if g.state != running && g.state != quiescing {
		return c, false
	}
	waits, free, alive, age := false, g.run.free, g.workers(), max(g.waits, minWait)
	for _, c := range g.candidates(free, alive, age) {
		can := c.t.mask & alive
		if can == 0 {
			c.worker = none
			return c, true
		}
		if can&free == 0 {
			continue
		}
		if c.worker, ok = g.workerFor(c.t, c.priority, can, free&can); ok {
			return c, true
		}
		waits = true
		if g.conf.Mode == FIFO {
			free &^= c.t.mask // no task behind it gets there first
		}
	}
	if waits {
		g.remind(age)
	}
	return c, false
}

// candidates returns the first task of each line that has a worker free or none left, in the order of the mode.
func (g *Graph) candidates(free, alive uint64, age time.Duration) []choice {
	now, list := g.now(), g.choices[:0]
	for _, l := range g.ready {
		if can := l.mask & alive; can != 0 && can&free == 0 {
			continue
		}
		if t := g.first(l); t != nil {
			list = append(list, choice{t: t, line: l, priority: t.effective(now, age)})
		}
	}
	g.choices = list
	ranked := g.conf.Mode == PriorityFirst || g.conf.Mode == DataAware
	slices.SortFunc(list, func(a, b choice) int {
		if ranked && a.priority != b.priority {
			return b.priority - a.priority
		}
		return cmp.Compare(a.t.order, b.t.order)
	})
	return list
}

// minWait is the shortest wait that raises a task's priority.
const minWait = time.Millisecond

// effective is a task's priority now: higher the longer it has waited compared with others.
func (t *Task) effective(now, age time.Duration) int {
	return min(max(t.level+int(min((now-t.since)/age, 2*highestPriority)), lowestPriority), highestPriority)
}

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
		n := t.bytesAt(i)
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
	t := c.line.tasks.pop()
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
		g.schedule(nil)
		g.unlock()
	})
}
