// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"time"

	"github.com/sublet-gpu/sublet/buffer/cruncher/kernel"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix"
)

// Task is something that runs whenever all of its inputs have a block and all of its outputs have capacity, with one block of
// each input. Dispatches of a task follow each other, so that what leaves a task is in the order of what came in. A dispatch
// runs to its end.
type Task struct {
	g        *Graph
	name     string
	index    int
	body     Body
	ports    []*Port
	priority int
	affinity affinity
	wanted   *gpu.Device

	mask      uint64 // workers that may run it
	preferred uint64
	running   bool
	queued    bool // in the graph's queues of those that are ready
	since     time.Duration
	order     uint64    // in which it became ready
	held      *Dispatch // of a device that was lost: to be run elsewhere
	stats     TaskStats
	busy      time.Duration // decaying average of its dispatches
	faults    []error

	program *kernel.Program // of a body that is a kernel
}

// affinity tells how much a task wants to run on a certain device.
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

// Prefer names the device that a task takes of those that are free: PTask's weak affinity.
func Prefer(dev *gpu.Device) TaskOption { return on(dev, weak) }

// WaitFor names the device that a task waits for as it waits for the device of its data: PTask's strong affinity.
func WaitFor(dev *gpu.Device) TaskOption { return on(dev, strong) }

// Require names the only device that a task may run on: PTask's mandatory affinity.
func Require(dev *gpu.Device) TaskOption { return on(dev, mandatory) }

func on(dev *gpu.Device, a affinity) TaskOption {
	return func(t *Task) { t.wanted, t.affinity = dev, a }
}

// Task adds a task. Its ports are among the options. Mistakes are faults of the graph.
func (g *Graph) Task(name string, body Body, opts ...TaskOption) *Task {
	t := &Task{g: g, name: name, body: body, priority: defaultPriority}
	for _, o := range opts {
		if o != nil {
			o(t)
		}
	}
	if g == nil {
		return t
	}
	t.check()
	if err := g.change(func() { t.index, g.tasks = len(g.tasks), append(g.tasks, t) }); err != nil {
		t.g = nil
	}
	return t
}

// Port returns the port of that name, or nil.
func (t *Task) Port(name string) *Port {
	if t == nil {
		return nil
	}
	for _, p := range t.ports {
		if p.name == name {
			return p
		}
	}
	return nil
}

func (t *Task) fault(err error, detail ...string) {
	t.faults = append(t.faults, fail("Task "+t.name, err, detail...))
}

// check finds what is wrong with a task by itself, and its ports' partners.
func (t *Task) check() {
	if t.name == "" {
		t.fault(ErrName, "none")
	}
	if t.body.run == nil {
		t.fault(gpu.ErrInvalid, "no body")
	}
	if t.priority < lowestPriority || t.priority > highestPriority {
		t.fault(gpu.ErrInvalid, "a priority of ", itoa(t.priority))
		t.priority = defaultPriority
	}
	if len(t.ports) == 0 {
		t.fault(ErrBound, "it has no ports")
	}
	seen := map[string]bool{}
	for _, p := range t.ports {
		if p.name == "" || seen[p.name] {
			t.fault(ErrName, "port ", p.name)
		}
		seen[p.name] = true
		if p.tmpl.usable("") != nil || p.tmpl.g != t.g {
			t.fault(ErrTemplate, "port ", p.name, " has none of this graph's")
		}
	}
	for _, p := range t.ports {
		t.checkPort(p)
	}
	if t.faults == nil && t.body.check != nil {
		t.faults = append(t.faults, t.body.check(t)...)
	}
}

// input returns another port of the task that is an input, or nil after a fault.
func (t *Task) input(p *Port, name string) *Port {
	q := t.Port(name)
	if q == nil || q.kind != inputPort || q == p {
		t.fault(ErrName, "port ", p.name, " names the input ", name)
		return nil
	}
	return q
}

func (t *Task) checkPort(p *Port) {
	if p.kind == outputPort {
		t.checkOutput(p)
		return
	}
	if p.InPlace != "" || p.gate() != "" || p.SignalsFrom != nil || p.SuppressClones || p.meta() && p.tmpl.elem() != 4 {
		t.fault(gpu.ErrInvalid, "input ", p.name, ": options of an output, or no words to read")
	}
	if p.kind == describedPort {
		p.ofPort = t.input(p, p.of)
		if p.describe == nil || p.tmpl.elem() != 4 || p.tmpl.dtype != matrix.Uint32 {
			t.fault(gpu.ErrInvalid, "port ", p.name, ": no function, or no template of words")
		}
	}
	if p.Sizes != "" {
		if o := t.Port(p.Sizes); o == nil || o.kind != outputPort || o.InPlace != "" || o.tmpl == nil || !o.tmpl.Records {
			t.fault(ErrName, "port ", p.name, " sizes ", p.Sizes, ", which is no output of records")
		}
	}
}

func (t *Task) checkOutput(p *Port) {
	if p.meta() || p.OpenedBy != "" && p.ClosedBy != "" {
		t.fault(gpu.ErrInvalid, "output ", p.name, ": options of an input, or two gates")
	}
	if p.InPlace != "" {
		if q := t.input(p, p.InPlace); q != nil {
			if q.written {
				t.fault(ErrBound, "two outputs in place of ", q.name)
			}
			if p.tmpl != nil && q.tmpl != nil && !p.tmpl.agrees(q.tmpl) {
				t.fault(ErrTemplate, p.name, " in place of ", q.name)
			}
			p.inPlacePort, q.written = q, true
		}
	}
	if p.gate() != "" {
		c := t.Port(p.gate())
		if c == nil || c.kind != outputPort || c == p {
			t.fault(ErrName, "port ", p.name, " is gated by ", p.gate(), ", which is no other output")
		}
		p.gatePort = c
	}
	for _, name := range p.SignalsFrom {
		if q := t.input(p, name); q != nil {
			p.fromPorts = append(p.fromPorts, q)
		}
	}
	if p.SignalsFrom == nil {
		for _, q := range t.ports {
			if q.kind == inputPort && !q.sticky {
				p.fromPorts = append(p.fromPorts, q)
			}
		}
	}
}

// ready reports whether the task may run: every input has a block and every output has capacity.
func (t *Task) ready() bool {
	if t.running {
		return false
	}
	for _, p := range t.ports {
		if p.kind == outputPort && !p.out.hasCapacity() || t.held == nil && !p.available() {
			return false
		}
	}
	return true
}

// feeds reports whether the task takes blocks that somebody sent, so that it ends when nobody does.
func (t *Task) feeds() bool {
	if t.held != nil {
		return true
	}
	for _, p := range t.ports {
		if p.kind == inputPort && p.pinned == nil {
			if c := p.next(); c != nil && c.kind != initialChannel {
				return true
			}
		}
	}
	return false
}
