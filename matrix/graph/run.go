// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"context"
	"strings"
	"time"

	"github.com/sublet-gpu/sublet/gpu"
)

// phase is the state of a graph, as in PTask. The structure may change in building, PTask's INITIALIZING, and in runnable, which changes
// back to building. Finalize leads to runnable, Run to running, Stop to quiescing and then runnable, and Teardown to tearingDown and then
// tornDown, from where the graph can run again.
type phase uint8

const (
	building phase = iota
	runnable
	running
	quiescing
	tearingDown
	tornDown
)

// name returns PTask's name.
func (p phase) name() string {
	return [...]string{"INITIALIZING", "RUNNABLE", "RUNNING", "QUIESCING", "TEARINGDOWN", "TEARDOWNCOMPLETE"}[p]
}

// grace is how long Teardown waits for tasks that do not return.
const grace = 800 * time.Millisecond

// run is the state of one call of Run. The next one begins after all of its dispatches have ended.
type run struct {
	ctx    context.Context // of the dispatches
	cancel context.CancelFunc
	forget func() bool   // the context of the call
	quit   chan struct{} // closed when the run ends
	ended  bool          // nothing starts any more
	free   uint64        // workers without a task
}

// insideKey marks the context of dispatches.
type insideKey struct{}

// Run starts the graph and returns. When ctx ends, the graph is torn down: Push, Pull and Stop then return ctx's error beside
// their own. In the deterministic mode Run runs the tasks that are ready before it returns. A graph that was stopped continues. One that
// was torn down starts with empty channels, and blocks that inputs keep have to be set again.
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
	if g.state != building && g.state != runnable && g.state != tornDown {
		return g.notNow(op)
	}
	if g.inflight > 0 {
		return fail(op, ErrBusy, "from before: ", g.unreturned())
	}
	if err := g.finalize(); err != nil {
		return err
	}
	g.state, g.stopped = running, false
	g.start(ctx)
	for g.step(ctx) && ctx.Err() == nil {
	}
	return nil
}

// notNow refuses a call in a phase.
func (g *Graph) notNow(op string) error {
	var err error = ErrState
	if g.state >= tearingDown {
		err = g.because(err)
	}
	return fail(op, err, "the graph is ", g.state.name())
}

func (g *Graph) start(ctx context.Context) {
	r := &run{quit: make(chan struct{}), free: 1<<(len(g.devices)+g.hosts) - 1}
	r.ctx, r.cancel = context.WithCancel(context.WithValue(ctx, insideKey{}, g))
	g.run = r
	r.forget = context.AfterFunc(ctx, func() { _ = g.teardown(r, ctx.Err()) })
	for i := range g.devices {
		if !g.conf.Deterministic {
			go g.watch(i, r.quit)
		}
	}
	for _, t := range g.tasks {
		t.since = g.now() // it did not wait for a worker while there was none
		g.update(t)
	}
	g.schedule(nil)
}

// Stop drains the graph: no more blocks come in, tasks run as long as they have inputs and their outputs have capacity, and Stop returns
// when no task runs any more. Blocks in channels stay there: outputs can be pulled, and Run continues with the rest. If ctx ends before,
// Stop does not wait for running tasks.
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
	case running:
		g.state = quiescing
		g.wakeCallers()
		g.schedule(nil)
	case quiescing:
	case runnable:
		return nil
	default:
		return g.notNow(op)
	}
	r := g.run
	err := g.await(ctx, op, &g.quiet, func() (bool, error) { return r.ended || g.idle() && !g.startable(), nil })
	if r.ended {
		return err
	}
	g.state, g.stopped = runnable, true
	g.end()
	return err
}

// idle reports whether no dispatch runs, and nothing is released.
func (g *Graph) idle() bool { return g.inflight == 0 && g.releasing == 0 }

// wakeCallers wakes callers that wait in Push, Pull, Stop and Teardown, to check the graph's state.
func (g *Graph) wakeCallers() {
	g.quiet.broadcast()
	for _, c := range g.channels {
		c.changed.broadcast()
	}
}

// end keeps further tasks from starting. The context of dispatches ends after the last dispatch.
func (g *Graph) end() {
	r := g.run
	if r == nil || r.ended {
		return
	}
	r.ended = true
	r.forget()
	close(r.quit)
	if g.inflight == 0 {
		r.cancel()
	}
	if g.ageing != nil {
		g.ageing.Stop()
		g.ageing = nil
	}
	g.wakeCallers()
}

// Teardown ends the graph from any phase: callers that wait in Push, Pull or Stop get [ErrTornDown], the context of running tasks
// ends, and all blocks in the graph are released, with the memory that was kept for new ones and the compiled kernels. It returns
// within a second. If a task has not returned by then, the error is [ErrBusy], and its blocks are released when it returns. The caller
// keeps references that it has to blocks.
func (g *Graph) Teardown() error {
	if g.unmade() {
		return fail("Teardown", gpu.ErrInvalid, "nil graph")
	}
	return g.teardown(nil, nil)
}

// teardown tears the graph down; if a run is given, only while that run continues.
func (g *Graph) teardown(only *run, cause error) (err error) {
	g.lock()
	defer g.unlock()
	if only != nil && only.ended {
		return nil
	}
	first := g.state < tearingDown
	if first {
		g.state, g.cause = tearingDown, cause
		g.pooling.Store(false)
		g.epoch++
		g.end()
		if g.run != nil {
			g.run.cancel()
		}
		g.wakeCallers()
	}
	if first || g.state == tornDown { // where blocks may have been set for another run
		g.clear()
	}
	late, stop := context.WithTimeout(context.Background(), grace)
	defer stop()
	err = g.await(late, "Teardown", &g.quiet, func() (bool, error) { return g.idle() && (first || g.state != tearingDown), nil })
	if err != nil {
		err = fail("Teardown", ErrBusy, g.unreturned())
	}
	if first {
		g.state = tornDown
		g.quiet.broadcast()
	}
	return err
}

// clear releases the blocks in ports and channels, dropped blocks, and the memory that was kept for new blocks. This may take time: it
// calls functions of the program, and devices may be busy.
func (g *Graph) clear() {
	for _, c := range g.channels {
		for _, i := range c.queue.all() {
			g.drop(i.b)
		}
		c.queue = queue[item]{}
	}
	for _, t := range g.tasks {
		for _, p := range t.ports {
			g.drop(p.kept)
			p.kept = nil
		}
		for _, b := range t.held {
			g.drop(b)
		}
		t.held, t.line = nil, nil
		g.dropKernels(t)
	}
	dropped := g.dropped
	g.ready, g.dropped = nil, nil
	for _, t := range g.templates {
		t.mu.Lock()
		for _, s := range t.free {
			dropped = append(dropped, s.close)
		}
		t.free = nil
		t.mu.Unlock()
	}
	g.releasing++
	go g.release(dropped)
}

// unreturned names the tasks that have not returned.
func (g *Graph) unreturned() string {
	var names []string
	for _, t := range g.tasks {
		if t.running {
			names = append(names, t.name)
		}
	}
	return strings.Join(names, ", ")
}
