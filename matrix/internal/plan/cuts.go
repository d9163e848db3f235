// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// What one kernel may hold before a part of the tree is evaluated by itself. Above these a kernel gains nothing any more,
// and compiling it becomes slow.
const (
	cutCode  = 120
	cutLoads = fuse.MaxLoads - 2
)

// measure is what a subtree would put into a kernel.
type measure struct {
	code, numbers int
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
		return measure{code: 1, loads: []source{{mem: p.operand(n).Mem}}}
	}
	parts := make([]measure, len(n.Args))
	for i, a := range n.Args {
		parts[i] = p.measure(a)
	}
	if n.Kind != expr.Map && n.Kind != expr.Call { // its own kernel, with its own limits; here it is an operand
		return measure{code: 1, loads: []source{{n: n}}}
	}
	for {
		m := sum(parts)
		m.code += 1 + len(n.Args)
		heaviest := 0
		for i := range parts {
			if parts[i].heavier(&parts[heaviest]) {
				heaviest = i
			}
		}
		fits := m.code <= cutCode && m.numbers <= fuse.MaxScalars && len(m.loads) <= min(p.Device.slots(0)-3, cutLoads)
		if fits || parts[heaviest].code <= 1 { // nothing left to cut; a call of very many matrices
			return m
		}
		a, _ := expr.Resolve(n.Args[heaviest], false)
		p.cuts[a] = true
		parts[heaviest] = measure{code: 1, loads: []source{{n: a}}}
		p.measures[a] = parts[heaviest]
	}
}

func (m *measure) heavier(o *measure) bool {
	return m.code > o.code || m.code == o.code && len(m.loads) > len(o.loads)
}

func sum(parts []measure) measure {
	var all measure
	for _, m := range parts {
		all.code += m.code
		all.numbers += m.numbers
		for _, s := range m.loads {
			if !slices.Contains(all.loads, s) {
				all.loads = append(slices.Clip(all.loads), s)
			}
		}
	}
	return all
}
