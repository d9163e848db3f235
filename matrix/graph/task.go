// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"slices"
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
)

// Task is a node of a graph. It runs when all of its inputs have a block and all of its outputs have capacity, with one block of each
// input. Dispatches of a task follow each other, so that outputs have the order of the inputs. A dispatch is not interrupted.
type Task struct {
	g        *Graph
	name     string
	index    int
	body     Body
	ports    []*Port
	outs     []*Port // those of them that are outputs
	priority int
	affinity affinity
	wanted   *gpu.Device

	mask      uint64 // workers that may run it
	preferred uint64
	program   *kernel.Program // of a body that is a kernel

	running bool
	line    *line // where it waits, if it is ready
	since   time.Duration
	order   uint64   // in which it became ready
	level   int      // its priority then, less if it runs much longer than others
	held    []*Block // by port: the inputs of a dispatch whose device was lost, for the next one
	work    Work
	busy    time.Duration // decaying average of its dispatches
}

// affinity says how strongly a task prefers a device.
type affinity uint8

const (
	weak affinity = 1 + iota
	strong
	mandatory
)

const (
	lowestPriority  = 0
	defaultPriority = 5
	highestPriority = 10
)

// Priority sets a task's priority, 0 to 10. It is 5 without the option.
func Priority(n int) TaskOption { return func(t *Task) { t.priority = n } }

// Prefer names the device on which a task runs if it is free: PTask's weak affinity.
func Prefer(dev *gpu.Device) TaskOption { return on(dev, weak) }

// WaitFor names a device for which a task waits as [DataAware] does for the device with its inputs: PTask's strong affinity.
func WaitFor(dev *gpu.Device) TaskOption { return on(dev, strong) }

// Require names the only device that a task may run on: PTask's mandatory affinity.
func Require(dev *gpu.Device) TaskOption { return on(dev, mandatory) }

func on(dev *gpu.Device, a affinity) TaskOption {
	return func(t *Task) { t.wanted, t.affinity = dev, a }
}

// Task adds a task. The options include its ports. Mistakes are faults of the graph.
func (g *Graph) Task(name string, body Body, opts ...TaskOption) *Task {
	t := &Task{name: name, body: body, priority: defaultPriority}
	for _, o := range opts {
		if o != nil {
			o(t)
		}
	}
	if g != nil {
		g.change(func() { t.g, t.index, g.tasks = g, len(g.tasks), append(g.tasks, t) })
	}
	return t
}

// Port returns the port of that name, or nil.
func (t *Task) Port(name string) *Port {
	if t == nil {
		return nil
	}
	if i := slices.IndexFunc(t.ports, func(p *Port) bool { return p.name == name }); i >= 0 {
		return t.ports[i]
	}
	return nil
}

// ready reports whether the task may run: every input has a block and every output has capacity.
func (t *Task) ready() bool {
	return !t.running && !slices.ContainsFunc(t.ports, func(p *Port) bool {
		_, ok := p.source()
		return !ok && t.held == nil || !p.hasCapacity()
	})
}

// take takes the task's next inputs.
func (t *Task) take() []*Block {
	from, blocks := make([]*channel, 0, 8), make([]*Block, len(t.ports))
	for _, p := range t.ports {
		c, _ := p.source() // before any block is taken: initialisers look at those of other inputs
		from = append(from, c)
	}
	for i, p := range t.ports {
		blocks[i] = p.take(from[i])
	}
	return blocks
}

// feeds reports whether the task consumes blocks that were sent, so that it stops when no more are sent.
func (t *Task) feeds() bool {
	return t.held != nil || slices.ContainsFunc(t.ports, func(p *Port) bool {
		c, _ := p.source()
		return c != nil
	})
}
