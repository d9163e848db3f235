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
	cutWeight = 40 // trees below are not measured at all
	cutCode   = 120
	cutLoads  = fuse.MaxLoads - 2
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

// cut decides which nodes of a large tree are evaluated by themselves, so that every kernel stays within the limits. A
// small tree with few operands needs none.
func (p *planner) cut(root *expr.Node) map[*expr.Node]bool {
	c := cutter{p: p, memo: map[*expr.Node]measure{}, cuts: map[*expr.Node]bool{}, slots: p.Device.slots(0) - 3}
	if root.Weight < cutWeight && leaves(root) <= c.slots {
		return nil
	}
	c.measure(root)
	delete(c.cuts, root)
	return c.cuts
}

// leaves counts operands, up to the size of a small tree.
func leaves(n *expr.Node) int {
	if n.Kind == expr.Leaf {
		return 1
	}
	if n.Weight >= cutWeight {
		return cutWeight
	}
	sum := 0
	for _, a := range n.Args {
		sum += leaves(a)
	}
	return sum
}

type cutter struct {
	p     *planner
	memo  map[*expr.Node]measure
	cuts  map[*expr.Node]bool
	slots int
}

func (c *cutter) measure(n *expr.Node) measure {
	n, _ = expr.Resolve(n, false)
	if m, ok := c.memo[n]; ok {
		return m
	}
	m := c.fresh(n)
	c.memo[n] = m
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
		if m.code <= cutCode && m.numbers <= fuse.MaxScalars && len(m.loads) <= c.slots && len(m.loads) <= cutLoads {
			return m
		}
		i := heaviest(parts)
		if parts[i].code <= 1 {
			return m // nothing left to cut; a call of very many matrices
		}
		a, _ := expr.Resolve(n.Args[i], false)
		c.cuts[a] = true
		parts[i] = measure{code: 1, loads: []source{{n: a}}}
		c.memo[a] = parts[i]
	}
}

func heaviest(parts []measure) int {
	at := 0
	for i, m := range parts {
		if m.code > parts[at].code || m.code == parts[at].code && len(m.loads) > len(parts[at].loads) {
			at = i
		}
	}
	return at
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
