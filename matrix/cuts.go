// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
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
	code, scalars int
	loads         []source
}

// source tells operands apart that need a storage binding of their own.
type source struct {
	n   *node // a value evaluated before
	buf *buffer.Buffer
}

// cuts decides which nodes of a large tree are evaluated by themselves, so that every kernel stays within the limits.
// maxStorage is how many storage bindings a kernel may have. A small tree with few operands needs none.
func cuts(root *node, maxStorage int) map[*node]bool {
	if root.weight < cutWeight && leaves(root) <= min(maxStorage, fuse.MaxSlots+1)-3 {
		return nil
	}
	c := cutter{memo: map[*node]measure{}, cuts: map[*node]bool{}, slots: min(maxStorage, fuse.MaxSlots+1) - 3}
	c.measure(root)
	delete(c.cuts, root)
	return c.cuts
}

// leaves counts operands, up to the size of a small tree.
func leaves(n *node) int {
	if n.kind == kindLeaf {
		return 1
	}
	if n.weight >= cutWeight {
		return cutWeight
	}
	sum := 0
	for _, a := range n.args {
		sum += leaves(a)
	}
	return sum
}

type cutter struct {
	memo  map[*node]measure
	cuts  map[*node]bool
	slots int
}

func (c *cutter) measure(n *node) measure {
	n, _ = resolve(n, false)
	if m, ok := c.memo[n]; ok {
		return m
	}
	m := c.fresh(n)
	c.memo[n] = m
	return m
}

func (c *cutter) fresh(n *node) measure {
	switch n.kind {
	case kindScalar:
		return measure{code: 1, scalars: 1}
	case kindLeaf:
		return measure{code: 1, loads: []source{{buf: n.leaf.buf}}}
	}
	parts := make([]measure, len(n.args))
	for i, a := range n.args {
		parts[i] = c.measure(a)
	}
	if n.kind != kindMap && n.kind != kindCall { // its own kernel, with its own limits; here it is an operand
		return measure{code: 1, loads: []source{{n: n}}}
	}
	for {
		m := join2(parts)
		m.code += 1 + len(n.args)
		if m.code <= cutCode && m.scalars <= fuse.MaxScalars && len(m.loads) <= c.slots && len(m.loads) <= cutLoads {
			return m
		}
		i := heaviest(parts)
		if parts[i].code <= 1 {
			return m // nothing left to cut; a call of very many matrices
		}
		a, _ := resolve(n.args[i], false)
		c.cuts[a] = true
		parts[i] = measure{code: 1, loads: []source{{n: a}}}
		c.memo[a] = parts[i]
	}
}

func heaviest(parts []measure) int {
	at := 0
	for i, p := range parts {
		if p.code > parts[at].code || p.code == parts[at].code && len(p.loads) > len(parts[at].loads) {
			at = i
		}
	}
	return at
}

func join2(parts []measure) measure {
	var m measure
	for _, p := range parts {
		m.code += p.code
		m.scalars += p.scalars
		for _, s := range p.loads {
			if !slices.Contains(m.loads, s) {
				m.loads = append(slices.Clip(m.loads), s)
			}
		}
	}
	return m
}
