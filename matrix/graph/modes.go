// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"math/bits"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// Mode is how the graph chooses, of the tasks that are ready, the next one and its device.
type Mode uint8

// The modes, with PTask's numbers.
const (
	// FirstAvailable is PTask's cooperative mode: a worker that is free takes the first task that may run on it.
	FirstAvailable Mode = iota
	// PriorityFirst takes the task with the highest effective priority: its own, more the longer it waits compared with
	// others, less if it runs much longer than others.
	PriorityFirst
	// DataAware takes the task with the highest effective priority, and runs it on the device that has most of its inputs. If that
	// is busy the task waits for it until its effective priority is above the threshold of [WithThreshold].
	DataAware
	// FIFO takes tasks in the order in which they became ready; no task overtakes another one that waits for the same
	// device.
	FIFO
)

var modeNames = [...]string{"COOPERATIVE", "PRIORITY", "DATADRIVEN", "FIFO"}

// String returns PTask's name.
func (m Mode) String() string { return modeNames[m&3] }

// choice is a task that is to run, its place in its line, and the worker that it gets: nil if no device is left that may run
// it.
type choice struct {
	t    *Task
	line *lane
	at   int
	w    *worker
}

// survey is what picking a task needs to know.
type survey struct {
	now, age      time.Duration
	workers, free uint64
	top           int // the best effective priority so far, and the order of its task
	order         uint64
	held          bool
}

// pick chooses the next task.
func (g *Graph) pick() (best choice, ok bool) {
	r := g.run
	if r == nil || g.state != Running && g.state != Quiescing || r.free == 0 {
		return best, false
	}
	s := survey{now: g.now(), age: g.age(), workers: g.workers(), free: r.free, top: -1}
	devices := uint64(1)<<len(g.devices) - 1
	first, random := 0, g.conf.single && g.conf.mode != FIFO
	if random {
		first = g.rng.IntN(2)
	}
	for k := range g.ready {
		class := (first + k) % 2
		mine := devices
		if class == 1 {
			mine = ^devices
		}
		for level := HighestPriority; level >= 0 && s.free&mine != 0; level-- {
			c, found := g.pickFrom(&g.ready[class][level], &s)
			if found && (g.ranked() || !ok || c.t.order < best.t.order) {
				best, ok = c, true
			}
		}
		if ok && random && !g.ranked() {
			break
		}
	}
	if s.held && !ok {
		g.remind()
	}
	return best, ok
}

// pickFrom chooses from one line. Those who have waited longer come first, so the first that can run is the best, unless it
// is one that runs for long.
func (g *Graph) pickFrom(l *lane, s *survey) (best choice, ok bool) {
	first, free := 0, s.free
	if g.conf.single && g.conf.mode != FIFO && l.len() > 0 {
		first = g.rng.IntN(l.len()) // of equals the first one from there on
	}
	for k := range l.len() {
		i := (first + k) % l.len()
		t := l.at(i)
		can := t.mask & s.workers
		if can&free == 0 && can != 0 {
			if g.conf.mode == FIFO {
				free &^= t.mask
			}
			continue
		}
		p, long := t.effective(s.now, s.age, g.works)
		// Of equals the one that has waited longer: or else one of low priority waits for ever.
		if g.ranked() && (p < s.top || p == s.top && (ok || t.order > s.order)) || g.state == Quiescing && !t.feeds() {
			continue
		}
		if !t.ready() { // no longer
			t.queued = false
			l.remove(i)
			return g.pickFrom(l, s)
		}
		w, waits := g.workerFor(t, p, can, free)
		if waits {
			s.held = true
			if g.conf.mode == FIFO {
				free &^= t.mask // nobody behind it gets there first
			}
			continue
		}
		best, s.top, s.order, ok = choice{t, l, i, w}, p, t.order, true
		if !long && !g.conf.single || !g.ranked() {
			break
		}
	}
	return best, ok
}

// workers returns the workers whose devices are not lost.
func (g *Graph) workers() uint64 {
	w := (uint64(1)<<g.conf.hosts - 1) << len(g.devices)
	for i := range g.devices {
		if g.alive(i) {
			w |= 1 << i
		}
	}
	return w
}

// workerFor finds a task's worker, of those that can run it, among those that are free. It is nil if none can; waits tells that
// the task had better wait for one that is not free.
func (g *Graph) workerFor(t *Task, priority int, can, free uint64) (w *worker, waits bool) {
	if can == 0 {
		return nil, false
	}
	free &= can
	if want := g.wanted(t, can); want != 0 {
		if want&free != 0 {
			free &= want
		} else if priority <= g.conf.threshold {
			return nil, true
		}
	}
	return g.run.workers[g.strongest(t, free)], false
}

// wanted returns the workers that a task had better wait for.
func (g *Graph) wanted(t *Task, can uint64) uint64 {
	if t.affinity >= StrongAffinity && t.preferred&can != 0 {
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
		if b := t.peek(i, p); b != nil && b.s != nil && b.s.current()&bit(place) != 0 {
			n += b.Size()
		}
	}
	return n
}

// peek returns the block that a dispatch would find.
func (t *Task) peek(i int, p *Port) *Block {
	if t.held != nil {
		return t.held.blocks[i]
	}
	if p.pinned != nil {
		return p.pinned
	}
	if c := p.next(); c != nil {
		if c.kind == initialChannel {
			return nil
		}
		return c.queue[c.head].b
	}
	return p.last
}

// strongest returns the best of some workers: the one that the task prefers, else by the sort of processor.
func (g *Graph) strongest(t *Task, of uint64) int {
	if t.preferred&of != 0 {
		return bits.TrailingZeros64(t.preferred)
	}
	best, rank := -1, -1
	for m := of; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		if r := g.rank(i); r > rank {
			best, rank = i, r
		}
	}
	return best
}

// rank orders processors. One that compiles no WGSL is the oracle.
func (g *Graph) rank(worker int) int {
	if worker >= len(g.devices) {
		return 0
	}
	info := g.devices[worker].Info()
	if !info.Features.Has(gpu.FeatureWGSL) {
		return 0
	}
	switch info.Kind {
	case gpu.KindDiscrete:
		return 5
	case gpu.KindIntegrated:
		return 4
	case gpu.KindVirtual:
		return 3
	case gpu.KindCPU:
		return 1
	}
	return 2
}

// effective is a task's priority now; long tells that it is lower because the task runs longer than others.
func (t *Task) effective(now, age, works time.Duration) (p int, long bool) {
	p = t.priority + int(min((now-t.since)/age, 2*HighestPriority))
	if long = works > 0 && t.busy > 2*works; long {
		p--
	}
	return min(max(p, LowestPriority), HighestPriority), long
}
