// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"time"
)

// The scheduler has no goroutine: whoever changes something that tasks wait for, be it a block or room for one, calls update
// for them and schedule, with the graph locked. That gives each free worker the task that the mode says.

// update puts a task that has become ready in the list.
func (g *Graph) update(t *Task) {
	if !t.queued && t.ready() {
		t.queued, t.since, t.order = true, g.now(), g.orders
		g.orders++
		g.lane(t).add(t)
	}
}

// startable reports whether some task could run.
func (g *Graph) startable() (yes bool) {
	g.each(func(t *Task) bool {
		yes = t.ready() && (g.state != Quiescing || t.feeds())
		return !yes
	})
	return yes
}

// schedule gives free workers work.
func (g *Graph) schedule() {
	if g.conf.single {
		g.quiet.ring() // somebody may wait for something to run
		return
	}
	for {
		c, ok := g.pick()
		if !ok || g.page.due(g) {
			return
		}
		d := g.begin(c)
		if d.w == nil { // no device is left: this only tells those who wait for it
			go d.execute()
			continue
		}
		d.w.slot <- d // has room
	}
}

// look schedules for somebody who does not have the lock.
func (g *Graph) look() {
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
		rung := g.quiet.wait()
		g.unlock()
		<-rung
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
		g.quiet.ring()
	}()
	d.execute()
	return true
}

// begin takes a task's inputs. From here on it runs.
func (g *Graph) begin(c choice) *Dispatch {
	t := c.t
	c.line.remove(c.at)
	t.queued, t.running = false, true
	g.inflight++
	g.run.busy++
	g.started++
	d := t.held
	t.held = nil
	if d == nil {
		d = &Dispatch{g: g, t: t, blocks: make([]*Block, len(t.ports))}
		from := make([]*Channel, 0, 8)
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
	d.ctx, d.w, d.run, d.epoch, d.err = g.run.ctx, c.w, g.run, g.epoch, nil
	now := g.now()
	d.waited = now - t.since
	g.waits += (d.waited - g.waits) / 16
	if c.w != nil {
		g.run.free &^= 1 << c.w.index
		if c.w.dev != nil {
			d.life = c.w.dev.Generation()
		}
	}
	return d
}

// settle ends a dispatch: what it made goes where it belongs, and what it used is released.
func (d *Dispatch) settle() {
	g, t := d.g, d.t
	g.lock()
	defer g.unlock()
	d.over.Store(true)
	g.inflight--
	d.run.busy--
	g.settlePast()
	t.running = false
	if d.w != nil {
		d.run.free |= 1 << d.w.index
	}
	d.record()
	switch torn := d.epoch != g.epoch; {
	case torn:
		for _, p := range d.parcels {
			g.drop(p.b)
		}
		d.release()
		g.forget(t)
	case d.again:
		d.again = false
		d.over.Store(false)
		t.held = d
	default:
		deliver(d.parcels)
		d.release()
	}
	g.update(t)
	g.schedule()
	g.quiet.ring()
}

// minWait is the shortest wait that raises a task's priority.
const minWait = time.Millisecond

// age is how long a task waits for its priority to rise by one: as long as others wait on average.
func (g *Graph) age() time.Duration { return max(g.waits, minWait) }

// remind looks again when tasks that wait for a busy device have waited longer.
func (g *Graph) remind() {
	if g.ageing != nil || g.conf.single {
		return
	}
	g.ageing = time.AfterFunc(g.age(), func() {
		g.lock()
		defer g.unlock()
		g.ageing = nil
		if g.run != nil {
			g.schedule()
		}
	})
}
