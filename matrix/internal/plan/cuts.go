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

// cutter decides which nodes of a tree are evaluated by themselves, so that every kernel stays within the limits.
type cutter struct {
	p     *planner
	memo  map[*expr.Node]measure
	cuts  map[*expr.Node]bool
	slots int
}

// cut finds the nodes of a tree that are evaluated by themselves.
func (p *planner) cut(root *expr.Node) {
	c := cutter{p: p, memo: map[*expr.Node]measure{}, cuts: map[*expr.Node]bool{}, slots: min(p.Device.slots(0)-3, cutLoads)}
	c.measure(root)
	delete(c.cuts, root)
	p.cuts = c.cuts
}

func (c *cutter) measure(n *expr.Node) measure {
	n, _ = expr.Resolve(n, false)
	m, ok := c.memo[n]
	if !ok {
		m = c.fresh(n)
		c.memo[n] = m
	}
	return m
}

func (c *cutter) fresh(n *expr.Node) measure {
	switch n.Kind {
	case expr.Scalar:
		return measure{code: 1, numbers: 1}
	case expr.Leaf:
		return measure{code: 1, loads: []source{{mem: c.p.operand(n).Mem}}}
	}
	parts := make([]measure, len(n.Args))
	for i, a := range n.Args {
		parts[i] = c.measure(a)
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
		fits := m.code <= cutCode && m.numbers <= fuse.MaxScalars && len(m.loads) <= c.slots
		if fits || parts[heaviest].code <= 1 { // nothing left to cut; a call of very many matrices
			return m
		}
		a, _ := expr.Resolve(n.Args[heaviest], false)
		c.cuts[a] = true
		parts[heaviest] = measure{code: 1, loads: []source{{n: a}}}
		c.memo[a] = parts[heaviest]
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
