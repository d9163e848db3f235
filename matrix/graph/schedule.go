// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"time"
)

// Mode says how the graph chooses the next of the ready tasks and its device.
type Mode uint8

// The modes.
const (
	// DataAware runs the task with the highest effective priority on the device that has most of its inputs. If that device is busy the
	// task waits for it until its effective priority is above [Config].Threshold.
	DataAware Mode = iota
	// FirstAvailable is PTask's cooperative mode: a free device runs the first task that may run on it.
	FirstAvailable
	// PriorityFirst runs the task with the highest effective priority: its own, higher the longer it waits compared with others, lower if
	// it runs much longer than others.
	PriorityFirst
	// FIFO runs tasks in the order in which they became ready. No task overtakes another one that waits for the same device.
	FIFO
)

// The scheduler has no goroutine. Code that adds a block or frees capacity, for which tasks may wait, calls update for these tasks and
// then schedule, with the graph locked. schedule starts on each free worker the task that the mode chooses. A worker is a device, or one
// of several workers of the host.

// line is a queue of ready tasks that have the same priority, may run on the same workers and prefer the same of these. The first one has
// waited longest, so the scheduler considers only the first task of each line.
type line struct {
	mask, want uint64
	level      int
	tasks      queue[*Task]
	priority   int // effective, of the first task, when the scheduler looked last
}

// jitter is how many tasks may overtake one in the deterministic mode.
const jitter = 16

// update adds a task to its line when it has become ready, and removes it when it is not ready any more. In the deterministic mode the seed
// changes the order a little. While the graph is built it waits for Run.
func (g *Graph) update(t *Task) {
	if g.state == building {
		return
	}
	ready := g.mayRun(t)
	if t.line != nil && !ready {
		t.leave()
	}
	if t.line != nil || !ready {
		return
	}
	g.orders++
	t.since, t.order, t.level = g.now(), g.orders, t.priority
	if g.works > 0 && t.busy > 2*g.works { // it runs much longer than others
		t.level--
	}
	if g.conf.Deterministic && g.conf.Mode != FIFO {
		t.order += g.rng.Uint64N(jitter)
	}
	g.join(t, g.wanted(t, t.mask&g.workers()))
}

// join adds a task to its line.
func (g *Graph) join(t *Task, want uint64) {
	i := slices.IndexFunc(g.ready, func(l *line) bool { return l.mask == t.mask && l.want == want && l.level == t.level })
	if i < 0 {
		i = len(g.ready)
		g.ready = append(g.ready, &line{mask: t.mask, want: want, level: t.level})
	}
	t.line = g.ready[i]
	t.line.tasks.push(t)
	for list, i := t.line.tasks.all(), t.line.tasks.len()-1; i > 0 && list[i-1].order > t.order; i-- {
		list[i-1], list[i] = t, list[i-1]
	}
}

// leave removes a task from its line.
func (t *Task) leave() {
	list := t.line.tasks.all()
	copy(list[1:], list[:slices.Index(list, t)])
	list[0] = t
	t.line.tasks.pop()
	t.line = nil
}

// mayRun reports whether a task is ready. Nothing new begins while the graph is stopped.
func (g *Graph) mayRun(t *Task) bool { return t.ready() && (g.state != quiescing || t.feeds()) }

// check moves a line's first task to another line if needed: it may not be ready any more, or prefer other workers because its data moved or
// a device was lost.
func (g *Graph) check(l *line, alive uint64) {
	for l.tasks.len() > 0 {
		t := l.tasks.all()[0]
		want := g.wanted(t, t.mask&alive)
		ready := g.mayRun(t)
		if ready && want == l.want {
			return
		}
		if t.leave(); ready {
			g.join(t, want)
		}
	}
}

// startable reports whether some task could run.
func (g *Graph) startable() bool {
	return slices.ContainsFunc(g.ready, func(l *line) bool { return slices.ContainsFunc(l.tasks.all(), g.mayRun) })
}

// schedule starts tasks on free workers. The goroutine of a dispatch that has ended continues with one of them, on its own worker if
// possible, so that its work is queued before that of the tasks which it started elsewhere.
func (g *Graph) schedule(ended *Dispatch) {
	if g.conf.Deterministic {
		g.quiet.broadcast() // a goroutine may wait for something to run
		return
	}
	for {
		t, worker := g.pick()
		if t == nil || g.page.due(g) {
			return
		}
		d := g.begin(t, worker)
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
	t, worker := g.pick()
	if t == nil {
		return false
	}
	d, nested := g.begin(t, worker), g.stepping
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

// pick returns the next task, nil if there is none, and its worker, which is the constant none if no device is left that may run the task.
func (g *Graph) pick() (t *Task, worker int) {
	if g.state != running && g.state != quiescing {
		return nil, none
	}
	waits, free, alive, age := false, g.run.free, g.workers(), max(g.waits, minWait)
	for _, l := range g.candidates(free, alive, age) {
		t, can := l.tasks.all()[0], l.mask&alive
		switch now := can & free; {
		case can == 0:
			return t, none
		case now&l.want != 0:
			return t, g.strongest(t, now&l.want)
		case now != 0 && (l.want == 0 || l.priority > g.conf.Threshold):
			return t, g.strongest(t, now)
		case now != 0:
			waits = true // for a worker that is not free
		}
		if g.conf.Mode == FIFO {
			free &^= l.mask // no task behind it gets there first
		}
	}
	if waits {
		g.remind(age)
	}
	return nil, none
}

// candidates returns, in the order of the mode, the lines whose first task has a free worker, or no worker left.
func (g *Graph) candidates(free, alive uint64, age time.Duration) []*line {
	now, list := g.now(), g.chosen[:0]
	busy := func(l *line) bool { return l.mask&alive != 0 && l.mask&alive&free == 0 }
	for i := 0; i < len(g.ready); i++ { // there may be more lines after a check
		if l := g.ready[i]; !busy(l) {
			g.check(l, alive)
		}
	}
	for _, l := range g.ready {
		if l.tasks.len() > 0 && !busy(l) {
			l.priority = l.tasks.all()[0].effective(now, age)
			list = append(list, l)
		}
	}
	g.chosen = list
	ranked := g.conf.Mode == PriorityFirst || g.conf.Mode == DataAware
	slices.SortFunc(list, func(a, b *line) int {
		if ranked && a.priority != b.priority {
			return b.priority - a.priority
		}
		return cmp.Compare(a.tasks.all()[0].order, b.tasks.all()[0].order)
	})
	return list
}

// minWait is the shortest wait that raises a task's priority.
const minWait = time.Millisecond

// effective is a task's priority now: higher the longer it has waited compared with others.
func (t *Task) effective(now, age time.Duration) int {
	return min(max(t.level+int(min((now-t.since)/age, 2*highestPriority)), lowestPriority), highestPriority)
}

// wanted returns the workers for which a task should wait.
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

// begin takes a task's inputs and marks it as running.
func (g *Graph) begin(t *Task, worker int) *Dispatch {
	t.leave()
	t.running = true
	g.inflight++
	g.started++
	d := &Dispatch{g: g, t: t, worker: worker, ctx: g.run.ctx, epoch: g.epoch, inputs: t.held}
	if d.inputs == nil {
		d.inputs = t.take()
	}
	t.held = nil
	if i := slices.IndexFunc(d.inputs, func(b *Block) bool { return b != nil }); i >= 0 {
		d.number = d.inputs[i].number
	}
	d.waited = g.now() - t.since
	g.waits += (d.waited - g.waits) / 16
	if worker != none {
		g.run.free &^= 1 << worker
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
		defer g.unlock()
		g.ageing = nil
		g.schedule(nil)
	})
}
