// SPDX-License-Identifier: Apache-2.0

package graph

import "time"

// Grace is how long Teardown waits at the most.
const Grace = grace

// WithClock gives a graph another clock.
func WithClock(clock func() time.Duration) Option {
	return func(c *config) error { c.clock = clock; return nil }
}

// Look schedules again, as a timer would.
func (g *Graph) Look() { g.look() }

// Waiting returns how many tasks are ready and have no worker.
func (g *Graph) Waiting() int {
	g.lock()
	defer g.unlock()
	n := 0
	g.each(func(*Task) bool { n++; return true })
	return n
}

// WithoutTimer makes a graph never look again by itself.
func (g *Graph) WithoutTimer() {
	g.lock()
	g.ageing = time.NewTimer(time.Hour)
	g.unlock()
}

// Notice lets the graph notice at once that a device is lost.
func (g *Graph) Notice(device int) { g.bury(device) }
