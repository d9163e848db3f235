// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// What one kernel may hold before a part of the tree is evaluated by itself. Above these a kernel gains nothing any more,
// and compiling it becomes slow.
const (
	cutCode  = 120
	cutLoads = fuse.MaxLoads - 2

	// Calls of functions that compilers put into their places, once for each vector that an invocation computes. Package wgsl limits
	// those of a kernel, and llvmpipe takes milliseconds for each. Products for software adapters compute up to 64 vectors, other
	// kernels 16.
	cutCalls    = 120
	tailCalls   = 24
	randomCalls = 22
	loadCalls   = 4 // of the function that loads an operand, most of the time fewer
)

// measure is what a subtree would put into a kernel.
type measure struct {
	code, numbers int
	calls         int
	loops         bool
	loads         []source
}

// source tells operands apart that need a storage binding of their own.
type source struct {
	n   *expr.Node // a value evaluated before
	mem int
}

// cut finds the nodes of a tree that are evaluated by themselves, so that every kernel stays within the limits.
func (p *planner) cut(root *expr.Node) {
	p.measure(root)
	delete(p.cuts, root)
}

func (p *planner) measure(n *expr.Node) measure {
	n, _ = expr.Resolve(n, false)
	m, ok := p.measures[n]
	if !ok {
		m = p.measureAnew(n)
		p.measures[n] = m
	}
	return m
}

func (p *planner) measureAnew(n *expr.Node) measure {
	switch n.Kind {
	case expr.Scalar:
		return measure{code: 1, numbers: 1}
	case expr.Leaf:
		return measure{code: 1, calls: loadCalls, loads: []source{{mem: p.operand(n).Mem}}}
	case expr.Index:
		return measure{code: 3, numbers: shaders.Bit(n.Value != 0)}
	}
	parts := make([]measure, len(n.Args))
	for i, a := range n.Args {
		parts[i] = p.measure(a)
	}
	switch {
	case !elementwise(n): // its own kernel, with its own limits; here it is an operand
		return measure{code: 1, calls: loadCalls, loads: []source{{n: n}}}
	case n.Kind == expr.Gather: // from a matrix
		if a, _ := expr.Resolve(n.Args[0], false); a.Kind != expr.Leaf {
			parts[0] = measure{code: 1, calls: loadCalls, loads: []source{{n: a}}}
		}
	}
	for {
		m := sum(parts)
		m.code += 1 + len(n.Args)
		m.calls += n.Op.Calls() + randomCalls*shaders.Bit(n.Kind == expr.Random)
		m.loops = m.loops || n.Op.Loops(n.Type) || n.Kind == expr.Random
		heaviest := 0
		for i := range parts {
			if parts[i].heavier(&parts[heaviest]) {
				heaviest = i
			}
		}
		fits := m.code <= cutCode && m.calls <= cutCalls && m.numbers <= fuse.MaxScalars && len(m.loads) <= min(p.Device.slots(0)-3, cutLoads)
		if fits || parts[heaviest].code <= 1 { // nothing left to cut; a call of very many matrices
			return m
		}
		a, _ := expr.Resolve(n.Args[heaviest], false)
		p.cuts[a] = true
		parts[heaviest] = measure{code: 1, calls: loadCalls, loads: []source{{n: a}}}
		p.measures[a] = parts[heaviest]
	}
}

// tail reports whether a tree can be the tail of a product.
func (p *planner) tail(n *expr.Node) bool {
	return p.measureAnew(n).calls <= tailCalls || !p.Device.Software
}

func (m *measure) heavier(o *measure) bool {
	mine, others := m.code+m.calls, o.code+o.calls
	return mine > others || mine == others && len(m.loads) > len(o.loads)
}

func sum(parts []measure) measure {
	var all measure
	for _, m := range parts {
		all.code += m.code
		all.numbers += m.numbers
		all.calls += m.calls
		all.loops = all.loops || m.loops
		for _, s := range m.loads {
			if !slices.Contains(all.loads, s) {
				all.loads = append(slices.Clip(all.loads), s)
			}
		}
	}
	return all
}
