// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/buffer/dtype"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/gpu/driver"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Finalize checks the graph and makes it ready to run; [Graph.Run] does so by itself. Its error joins all that is wrong, as
// [errors.Join] does. Mistakes of calls that built the graph cannot be undone; ports without channel, cycles that nothing starts, and
// tasks that no device may run can be corrected. Errors of the last kind give the reason for each device.
func (g *Graph) Finalize() error {
	const op = "Finalize"
	if g.unmade() {
		return fail(op, gpu.ErrInvalid, "nil graph")
	}
	g.lock()
	defer g.unlock()
	if g.state > runnable && g.state != tornDown {
		return g.notNow(op)
	}
	return g.finalize()
}

// faults are what is wrong with a graph.
type faults []error

// when adds err as a fault unless it is nil.
func (f *faults) when(wrong bool, op string, err error, detail ...string) bool {
	if wrong {
		*f = append(*f, fail(op, err, detail...))
	}
	return wrong
}

func (g *Graph) finalize() error {
	f := faults(slices.Clone(g.faults))
	if g.inflight == 0 { // else nothing has changed
		g.wire(&f)
	}
	for _, t := range g.tasks {
		for _, p := range t.ports {
			f.when(!p.bound(), "Finalize", ErrBound, fault.Short(t.name), ".", fault.Short(p.name), " has none")
		}
		if err := g.settleMask(t); err != nil {
			f = append(f, err)
		}
	}
	g.cycles(&f)
	if len(f) > 0 {
		return errors.Join(f...)
	}
	if g.state == tornDown {
		g.pooling.Store(true)
	}
	g.state = runnable
	return nil
}

// wire checks tasks and channels, and resolves the names in ports.
func (g *Graph) wire(f *faults) {
	names := map[string]bool{"": true}
	for _, t := range g.tasks {
		f.when(names[t.name], "Finalize", ErrName, "a task without a name, or two tasks ", fault.Short(t.name))
		names[t.name] = true
		t.wire(f)
	}
	for _, c := range g.channels {
		c.wire(f)
	}
}

func (t *Task) wire(f *faults) {
	op, before, seen := "Task "+t.name, len(*f), map[string]bool{"": true}
	f.when(t.body.run == nil || len(t.ports) == 0, op, gpu.ErrInvalid, "no body or no ports")
	f.when(t.priority < lowestPriority || t.priority > highestPriority, op, gpu.ErrInvalid, "a priority of ", itoa(t.priority))
	t.outs = nil
	for _, p := range t.ports {
		p.wiring = wiring{}
		f.when(seen[p.name], op, ErrName, "port ", fault.Short(p.name))
		seen[p.name] = true
		f.when(!t.g.owns(p.tmpl), op, ErrTemplate, "port ", fault.Short(p.name), " has none of this graph's")
	}
	for _, p := range t.ports {
		if p.kind == outputPort {
			t.outs = append(t.outs, p)
			t.wireOutput(p, op, f)
		} else {
			t.wireInput(p, op, f)
		}
	}
	if len(*f) == before && t.body.check != nil {
		for _, err := range t.body.check(t) {
			f.when(true, op, err)
		}
	}
}

func (g *Graph) owns(t *Template) bool { return t.usable("") == nil && t.g == g }

// find returns another port of the task, an output or an input, or nil after a fault.
func (t *Task) find(p *Port, name string, output bool, op string, f *faults) *Port {
	q := t.Port(name)
	if f.when(q == nil || q == p || q.isInput() == output || q.kind == describedPort, op, ErrName, "port ", fault.Short(p.name), " names ", fault.Short(name)) {
		return nil
	}
	return q
}

func (t *Task) wireInput(p *Port, op string, f *faults) {
	owned, described := t.g.owns(p.tmpl), p.kind == describedPort
	f.when(p.InPlace != "" || p.OpenedBy != "" || p.ClosedBy != "" || p.SignalsFrom != nil || p.SuppressClones || p.Optional,
		op, gpu.ErrInvalid, "input ", p.name, ": options of an output")
	f.when(owned && p.meta() && p.tmpl.dtype.Size() != 4 || described && (p.describe == nil || owned && p.tmpl.dtype != dtype.Uint32),
		op, gpu.ErrInvalid, "input ", p.name, ": no template of words, or no function")
	half := (p.Of != "") != (p.On != 0) || p.kind != initialPort && p.On != 0
	f.when(half && !described, op, gpu.ErrInvalid, "input ", fault.Short(p.name), ": half a condition, or one of another kind of port")
	if p.Of != "" || described {
		q := t.find(p, p.Of, false, op, f)
		circular := q != nil && q.kind == initialPort && !described
		if !f.when(circular, op, gpu.ErrInvalid, "input ", fault.Short(p.name), " looks at another initialiser") {
			p.ofPort = q
		}
	}
	if p.Sizes != "" {
		o := t.find(p, p.Sizes, true, op, f)
		f.when(o != nil && (o.InPlace != "" || t.g.owns(o.tmpl) && !o.tmpl.Records),
			op, ErrName, "port ", fault.Short(p.name), " sizes ", p.Sizes, ", which is no output of records")
	}
}

func (t *Task) wireOutput(p *Port, op string, f *faults) {
	f.when(p.meta() || p.Of != "" || p.On != 0, op, gpu.ErrInvalid, "output ", fault.Short(p.name), ": options of an input")
	f.when(p.OpenedBy != "" && p.ClosedBy != "", op, gpu.ErrInvalid, "output ", fault.Short(p.name), ": two gates")
	if gate := cmp.Or(p.OpenedBy, p.ClosedBy); gate != "" {
		p.gatePort = t.find(p, gate, true, op, f)
	}
	if p.InPlace != "" {
		if q := t.find(p, p.InPlace, false, op, f); q != nil {
			f.when(q.written, op, ErrBound, "two outputs in place of ", fault.Short(q.name))
			f.when(t.g.owns(p.tmpl) && t.g.owns(q.tmpl) && !p.tmpl.agrees(q.tmpl), op, ErrTemplate, fault.Short(p.name), " in place of ", fault.Short(q.name))
			p.inPlacePort, q.written = q, true
		}
	}
	for _, name := range p.SignalsFrom {
		if q := t.find(p, name, false, op, f); q != nil {
			p.signalPorts = append(p.signalPorts, q)
		}
	}
	if p.SignalsFrom == nil {
		for _, q := range t.ports {
			if q.isInput() && q.kind != stickyPort {
				p.signalPorts = append(p.signalPorts, q)
			}
		}
	}
}

// wire checks a channel and attaches it to its ports.
func (c *channel) wire(f *faults) {
	const op = "Connect"
	f.when(c.Capacity < 0, op, gpu.ErrInvalid, c.name, ": a capacity of ", itoa(c.Capacity))
	if f.when(!c.whole(), op, gpu.ErrInvalid, c.name, ": an end that is no port of the graph's tasks, or none for that") {
		return
	}
	own := c.kind == plainChannel && c.from.task == c.to.task
	f.when(own && c.Capacity == 1, op, gpu.ErrInvalid, c.name, ": a capacity of 1, from a task to itself it is at least 2")
	if from, to := c.from, c.to; from != nil && to != nil && c.g.owns(from.tmpl) && c.g.owns(to.tmpl) {
		f.when(!from.tmpl.agrees(to.tmpl), op, ErrTemplate, c.name, ": ", from.tmpl.name, " to ", to.tmpl.name)
	}
	if c.to != nil {
		end := &c.to.data
		if c.Control {
			end = &c.to.control
		}
		if f.when(*end != nil, op, ErrBound, c.to.task.name, ".", c.to.name, " has a channel already") {
			return
		}
		*end = c
	}
	if c.from != nil {
		c.from.outs = append(c.from.outs, c)
	}
}

// whole reports whether a channel leads from an output to an input of the graph's tasks, or from and to outside where it is to.
func (c *channel) whole() bool {
	of := func(p *Port) bool { return p != nil && p.task != nil && p.task.g == c.g }
	from, to := c.kind == inputChannel, c.kind == outputChannel
	return (from || of(c.from) && c.from.kind == outputPort) && (to || of(c.to) && c.to.isInput())
}

// settleMask finds the workers that may run a task.
func (g *Graph) settleMask(t *Task) error {
	t.mask, t.preferred = 0, 0
	if t.body.host {
		t.mask = g.hostWorkers()
		if t.affinity != 0 {
			return fail("Finalize", ErrAffinity, fault.Short(t.name), " needs no device")
		}
		return nil
	}
	var list []string
	for i, d := range g.devices {
		if d == t.wanted {
			t.preferred = 1 << i
		}
		label := "device " + itoa(i) + ", " + d.Info().Driver + " " + d.Info().Name // two may be of one adapter
		switch {
		case t.body.wgsl && !d.Info().Features.Has(driver.FeatureWGSL):
			label += ": does not compile WGSL"
		case t.affinity == mandatory && d != t.wanted:
			label += ": the task's mandatory affinity is to another device"
		default:
			t.mask |= 1 << i
		}
		list = append(list, label)
	}
	if len(list) == 0 {
		list = []string{"the graph has no devices"}
	}
	why := ": "
	if t.affinity != 0 && t.preferred == 0 {
		why = " wants a device that is not the graph's: "
	} else if t.mask != 0 {
		return nil
	}
	return fail("Finalize", ErrAffinity, fault.Short(t.name), why, strings.Join(list, "; "))
}

// cycles finds tasks that can never run because each waits for another's output. A port with several channels can begin
// with any; ports that are not bound have been reported.
func (g *Graph) cycles(f *faults) {
	can := map[*Task]bool{}
	starts := func(c *channel) bool { return c != nil && (c.from == nil || can[c.from.task]) }
	waits := func(p *Port) bool {
		return p.isInput() && p.kind != initialPort && p.bound() && p.kept == nil && !starts(p.control) && !starts(p.data)
	}
	for changed := true; changed; {
		changed = false
		for _, t := range g.tasks {
			if !can[t] && !slices.ContainsFunc(t.ports, waits) {
				can[t], changed = true, true
			}
		}
	}
	for _, t := range g.tasks {
		f.when(!can[t], "Finalize", ErrCycle, fault.Short(t.name))
	}
}
