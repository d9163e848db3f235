// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"errors"
	"slices"
	"strings"

	"github.com/sublet-gpu/sublet/gpu"
)

// Finalize checks the graph and makes it ready to run; [Graph.Run] does so by itself. Its error joins all that is wrong, as
// [errors.Join] does: mistakes in building, which stay, and ports without channel, cycles that nothing starts, and tasks that no
// device may run, which can be mended. The last ones say of each device why.
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

func (g *Graph) finalize() error {
	faults := slices.Clone(g.faults)
	names := map[string]bool{}
	for _, t := range g.tasks {
		faults = append(faults, t.faults...)
		if names[t.name] {
			faults = append(faults, fail("Finalize", ErrName, "two tasks ", t.name))
		}
		names[t.name] = true
		for _, p := range t.ports {
			if !p.bound() {
				faults = append(faults, fail("Finalize", ErrBound, t.name, ".", p.name, " has none"))
			}
		}
		if err := g.settleMask(t); err != nil {
			faults = append(faults, err)
		}
	}
	for _, in := range g.inputs {
		if len(in.src.channels) == 0 {
			faults = append(faults, fail("Finalize", ErrBound, "input ", in.name, " leads nowhere"))
		}
	}
	for _, c := range g.channels {
		if j := c.ControlledBy; j != nil && (j.control.initializes() || j.data.initializes()) {
			faults = append(faults, fail("Finalize", gpu.ErrInvalid, c.name, ": a predicate that looks at another initialiser"))
		}
	}
	faults = append(faults, g.cycles()...)
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	if g.state == tornDown {
		g.renew()
	}
	g.state = runnable
	return nil
}

// settleMask finds the workers that may run a task.
func (g *Graph) settleMask(t *Task) error {
	t.mask, t.preferred = 0, 0
	if t.body.host {
		t.mask = g.hostWorkers()
		if t.affinity != 0 {
			return fail("Finalize", ErrAffinity, t.name, " needs no device")
		}
		return nil
	}
	why := []string{t.name}
	for i, d := range g.devices {
		if d == t.wanted {
			t.preferred = 1 << i
		}
		if refusal := t.refuses(d); refusal != "" {
			why = append(why, label(i, d)+": "+refusal)
		} else {
			t.mask |= 1 << i
		}
	}
	if t.affinity != 0 && t.preferred == 0 {
		return fail("Finalize", ErrAffinity, t.name, " wants a device that is not the graph's: ", g.labels())
	}
	if t.mask == 0 {
		if len(g.devices) == 0 {
			why = append(why, "the graph has no devices")
		}
		return fail("Finalize", ErrAffinity, strings.Join(why, "; "))
	}
	return nil
}

// refuses tells why a task may not run on a device, with "" if it may.
func (t *Task) refuses(d *gpu.Device) string {
	if missing := t.body.needs &^ d.Info().Features; missing.Has(gpu.FeatureWGSL) {
		return "does not compile WGSL"
	} else if missing != 0 {
		return "lacks " + strings.Join(missing.Names(), ", ")
	}
	if t.affinity == mandatory && d != t.wanted {
		return "the task's mandatory affinity is to another device"
	}
	return ""
}

// label names a device of the graph in messages: by its place, since two may be of one adapter.
func label(i int, d *gpu.Device) string {
	return "device " + itoa(i) + ", " + d.Info().Driver + " " + d.Info().Name
}

func (g *Graph) labels() string {
	if len(g.devices) == 0 {
		return "it has none"
	}
	var list []string
	for i, d := range g.devices {
		list = append(list, label(i, d))
	}
	return strings.Join(list, "; ")
}

// cycles finds tasks that can never run because each waits for another's output. A port with several channels can begin
// with any; ports that are not bound have been reported.
func (g *Graph) cycles() []error {
	can := map[*Task]bool{}
	starts := func(c *channel) bool {
		return c != nil && (c.kind == initialChannel || c.from.port == nil || can[c.from.port.task])
	}
	for changed := true; changed; {
		changed = false
		for _, t := range g.tasks {
			waits := slices.ContainsFunc(t.ports, func(p *Port) bool {
				return p.kind == inputPort && p.bound() && p.pinned == nil && p.last == nil && !starts(p.control) && !starts(p.data)
			})
			if !can[t] && !waits {
				can[t], changed = true, true
			}
		}
	}
	var faults []error
	for _, t := range g.tasks {
		if !can[t] {
			faults = append(faults, fail("Finalize", ErrCycle, t.name))
		}
	}
	return faults
}

func (c *channel) initializes() bool { return c != nil && c.kind == initialChannel }
