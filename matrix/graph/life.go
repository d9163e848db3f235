// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// The phases of a graph's life, PTask's. Building is PTask's INITIALIZING: the structure may change, as it may in Runnable, which
// goes back to Building. [Graph.Finalize] makes it Runnable, [Graph.Run] Running, [Graph.Stop] Quiescing and then Runnable,
// [Graph.Teardown] TearingDown and then TornDown, from where it can run again.
const (
	Building Phase = iota
	Runnable
	Running
	Quiescing
	TearingDown
	TornDown
)

var phaseNames = [...]string{"INITIALIZING", "RUNNABLE", "RUNNING", "QUIESCING", "TEARINGDOWN", "TEARDOWNCOMPLETE"}

// String returns PTask's name.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "UNKNOWN"
}

// grace is how long Teardown waits for tasks that do not return.
const grace = 800 * time.Millisecond

// run is what one call of Run started.
type run struct {
	ctx     context.Context // of the dispatches
	cancel  context.CancelFunc
	forget  func() bool // about the context of the call
	quit    chan struct{}
	workers []*worker
	free    uint64 // workers without work
	live    int    // goroutines
	busy    int    // dispatches
}

// insideKey marks the context of dispatches.
type insideKey struct{}

// Run starts the graph and returns. When ctx ends, the graph is torn down: Push, Pull and Stop then return ctx's error beside
// their own. In the deterministic mode it runs what there is to run before it returns. A graph that was stopped goes on where it
// was; one that was torn down starts afresh, and sticky and permanent blocks have to be set again.
func (g *Graph) Run(ctx context.Context) error {
	const op = "Run"
	if g.unmade() || ctx == nil {
		return fail(op, gpu.ErrInvalid, "nil argument")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g.lock()
	defer g.unlock()
	if g.inflight > 0 && (g.state <= Runnable || g.state == TornDown) {
		return fail(op, ErrBusy, "from before: ", g.running())
	}
	switch g.state {
	case Building, Runnable, TornDown:
		if err := g.finalize(); err != nil {
			return err
		}
	default:
		return fail(op, ErrState, "the graph is ", g.state.String())
	}
	g.state, g.stopped = Running, false
	g.start(ctx)
	for g.step(ctx) && ctx.Err() == nil {
	}
	return nil
}

func (g *Graph) start(ctx context.Context) {
	r := &run{quit: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.WithValue(ctx, insideKey{}, g))
	for i := range len(g.devices) + g.conf.hosts {
		w := &worker{g: g, run: r, index: i, slot: make(chan *Dispatch, 1)}
		if i < len(g.devices) {
			w.dev = g.devices[i]
		}
		r.workers = append(r.workers, w)
		r.free |= 1 << i
		if !g.conf.single {
			r.live++
			go w.loop()
		}
	}
	g.run = r
	r.forget = context.AfterFunc(ctx, func() { _ = g.teardown(r, ctx.Err()) })
	now := g.now()
	g.each(func(t *Task) bool { // did not wait for a worker while there was none
		t.since = now
		return true
	})
	for _, t := range g.tasks {
		g.update(t)
	}
	g.schedule()
}

// Stop drains the graph: no more blocks come in, tasks run as long as there is something for them and their outputs have
// room, and when nothing runs any more it returns. What is still in channels stays there: outputs can be pulled, and Run goes
// on with the rest. If ctx ends before, tasks that run are left to end by themselves.
func (g *Graph) Stop(ctx context.Context) error {
	const op = "Stop"
	if g == nil || ctx == nil {
		return fail(op, gpu.ErrInvalid, "nil argument")
	}
	if ctx.Value(insideKey{}) == g {
		return fail(op, ErrState, "from within a task")
	}
	g.lock()
	defer g.unlock()
	switch g.state {
	case Running:
		g.state = Quiescing
		g.watched.Store(true)
		for _, in := range g.inputs {
			for _, c := range in.src.channels {
				c.drained.ring() // who waits to push learns of it
			}
		}
		g.schedule()
	case Quiescing:
	case Runnable:
		return nil
	case TearingDown, TornDown:
		return fail(op, g.because(ErrState), "the graph is ", g.state.String())
	default:
		return fail(op, ErrState, "the graph is ", g.state.String())
	}
	r, epoch := g.run, g.epoch
	err := g.await(ctx, &g.quiet, func() (bool, error) {
		if g.epoch != epoch {
			return false, fail(op, g.because(ErrTornDown))
		}
		return g.run != r || g.inflight == 0 && g.releasing.Load() == 0 && !g.startable(), nil
	})
	if g.epoch != epoch || g.run != r {
		return err
	}
	g.state, g.stopped = Runnable, true
	g.watched.Store(false)
	g.end()
	for _, c := range g.channels {
		c.filled.ring() // who waits to pull learns of it
	}
	return err
}

// end lets the workers of a run go home.
func (g *Graph) end() {
	r := g.run
	if r == nil {
		return
	}
	g.run = nil
	r.forget()
	close(r.quit)
	g.past = append(g.past, r)
	g.settlePast()
	if g.ageing != nil {
		g.ageing.Stop()
		g.ageing = nil
	}
	g.quiet.ring()
}

// settlePast forgets runs that nothing is left of. Their context is that of dispatches, so it ends with the last one.
func (g *Graph) settlePast() {
	g.past = slices.DeleteFunc(g.past, func(r *run) bool {
		if r.busy == 0 {
			r.cancel()
		}
		return r.busy == 0 && r.live == 0
	})
}

// Teardown ends the graph from any phase: who waits in Push, Pull or Stop gets [ErrTornDown], the context of running tasks
// ends, and all blocks in the graph are released, with the memory that was kept for new ones and the compiled kernels. It returns
// within a second. If a task has not returned by then, that is [ErrBusy]: what it has is released when it does. Blocks that
// the caller holds stay his.
func (g *Graph) Teardown() error {
	if g.unmade() {
		return fail("Teardown", gpu.ErrInvalid, "nil graph")
	}
	return g.teardown(nil, nil)
}

// teardown ends everything, or only if the run is still the given one.
func (g *Graph) teardown(only *run, cause error) error {
	g.lock()
	if only != nil && g.run != only {
		g.unlock()
		return nil
	}
	first := g.state < TearingDown
	if first {
		g.state, g.cause = TearingDown, cause
		g.watched.Store(true)
		g.epoch++
		g.end()
		for _, r := range g.past {
			r.cancel()
		}
		close(g.over)
		g.clear()
		g.scrap()
	} else if g.state == TornDown {
		g.clear() // what was set for another run
		g.scrap()
	}
	late, stop := context.WithTimeout(context.Background(), grace)
	defer stop()
	defer g.unlock()
	var err error
	if !g.outlast(late, func() bool { return g.inflight == 0 && g.releasing.Load() == 0 && len(g.past) == 0 }) {
		err = fail("Teardown", ErrBusy, g.running())
	}
	if first {
		g.state = TornDown
		g.quiet.ring()
	} else if !g.outlast(late, func() bool { return g.state != TearingDown }) {
		err = fail("Teardown", ErrBusy)
	}
	return err
}

// scrap releases what was dropped, and the memory that was kept for new blocks. That may take time: functions of the program's
// are called, and devices may be at work.
func (g *Graph) scrap() {
	trash := g.trash
	g.trash = nil
	var kept []*storage
	for _, t := range g.templates {
		kept = append(kept, t.pool.close()...)
	}
	if len(trash)+len(kept) == 0 {
		return
	}
	g.releasing.Add(1)
	go func() {
		defer g.released()
		for _, b := range trash {
			b.Release()
		}
		for _, s := range kept {
			s.close()
		}
	}()
}

// released counts a goroutine less that releases blocks.
func (g *Graph) released() {
	g.releasing.Add(-1)
	if g.watched.Load() {
		g.mu.Lock()
		g.quiet.ring()
		g.mu.Unlock()
	}
}

// outlast waits, with the lock held before and after, until done says so, and reports whether it did before the time was over.
func (g *Graph) outlast(late context.Context, done func() bool) bool {
	for !done() {
		rung := g.quiet.wait()
		g.unlock()
		over := false
		select {
		case <-rung:
		case <-late.Done():
			over = true
		}
		g.lock()
		if over {
			return done()
		}
	}
	return true
}

// clear empties everything that holds blocks.
func (g *Graph) clear() {
	for _, c := range g.channels {
		c.empty()
	}
	for _, t := range g.tasks {
		for _, p := range t.ports {
			g.drop(p.last)
			g.drop(p.pinned)
			p.last, p.pinned = nil, nil
		}
		if t.held != nil {
			t.held.release()
			t.held = nil
		}
		t.queued = false
		g.forget(t)
	}
	g.ready = lanes{}
}

// running names the tasks that have not returned.
func (g *Graph) running() string {
	var names []string
	for _, t := range g.tasks {
		if t.running {
			names = append(names, t.name)
		}
	}
	return strings.Join(names, ", ")
}

// reopen makes a graph that was torn down one that can run.
func (g *Graph) reopen() {
	g.watched.Store(false)
	g.over = make(chan struct{})
	for _, t := range g.templates {
		t.pool.open()
	}
}
