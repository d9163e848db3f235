// SPDX-License-Identifier: Apache-2.0

package graph

import "time"

// Grace is how long Teardown waits at the most.
const Grace = grace

// WithClock gives a graph another clock.
func WithClock(clock func() time.Duration) func(*Config) {
	return func(c *Config) { c.clock = clock }
}

// Look schedules again, as a timer would.
func (g *Graph) Look() { g.reschedule() }

// Made returns how many blocks there ever were.
func (g *Graph) Made() uint64 { return g.blocks.Load() }

// Waiting returns how many tasks are ready and have no worker.
func (g *Graph) Waiting() int {
	g.lock()
	defer g.unlock()
	n := 0
	for _, l := range g.ready {
		n += l.tasks.len()
	}
	return n
}

// WithoutTimer makes a graph never look again by itself.
func (g *Graph) WithoutTimer() {
	g.lock()
	g.ageing = time.NewTimer(time.Hour)
	g.unlock()
}

// Notice lets the graph notice at once that a device is lost.
func (g *Graph) Notice(device int) { g.noteLost(device) }

// Phase returns PTask's name of where the graph stands.
func (g *Graph) Phase() string {
	if g == nil {
		return ""
	}
	g.lock()
	defer g.unlock()
	return g.state.name()
}

// Len returns how many blocks are in the output's channel.
func (o *Output) Len() int {
	if o == nil || o.c == nil || o.c.g == nil {
		return 0
	}
	o.c.g.lock()
	defer o.c.g.unlock()
	return o.c.queue.len()
}

// Refs returns how many references there are.
func (b *Block) Refs() int {
	if b == nil {
		return 0
	}
	return int(b.refs.Load())
}

// Name returns a task's name.
func (d *Dispatch) Name() string {
	if d == nil || d.t == nil {
		return ""
	}
	return d.t.name
}

// Names of what users meet in texts.
var (
	PredicateName = Predicate.name
	SignalNames   = Signals.name
	ModeNames     = map[Mode]string{FirstAvailable: "COOPERATIVE", PriorityFirst: "PRIORITY", DataAware: "DATADRIVEN", FIFO: "FIFO"}
)
