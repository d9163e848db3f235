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

// cut finds the nodes of a tree that are evaluated by themselves, so that every kernel stays within the limits. A node that is used
// several times and is cut off for one use becomes an operand of the others, which were measured without it: all are measured again
// until nothing more is cut.
func (p *planner) cut(root *expr.Node) {
	for before := -1; before < len(p.cuts); {
		before = len(p.cuts)
		p.measures = map[*expr.Node]measure{}
		p.measure(root)
	}
	delete(p.cuts, root)
}

func (p *planner) measure(n *expr.Node) {
	n, _ = expr.Resolve(n, false)
	if _, ok := p.measures[n]; ok {
		return
	}
	m := p.measureAnew(n)
	if p.cuts[n] {
		m = cutOff(n)
	}
	p.measures[n] = m
}

// cutOff is what a node puts into a kernel that is evaluated by itself.
func cutOff(n *expr.Node) measure {
	return measure{code: 1, calls: loadCalls, loads: []source{{n: n}}}
}

// measureAnew cuts operands off until what is left fits.
func (p *planner) measureAnew(n *expr.Node) measure {
	var operands []*expr.Node // that may be cut off
	for i, a := range n.Args {
		p.measure(a)
		if a, _ = expr.Resolve(a, false); elementwise(n) && (i > 0 || n.Kind != expr.Gather) {
			operands = append(operands, a)
		}
	}
	for {
		r := region{root: n, seen: map[*expr.Node]bool{}, scalars: map[scalar]bool{}}
		p.add(&r, n)
		m := r.measure
		var heaviest *expr.Node
		for _, a := range operands {
			if heaviest == nil || p.measures[a].heavier(p.measures[heaviest]) {
				heaviest = a
			}
		}
		fits := m.code <= cutCode && m.calls <= cutCalls && m.numbers <= fuse.MaxScalars && len(m.loads) <= p.most(m.loads)
		if fits || heaviest == nil || p.measures[heaviest].code <= 1 { // nothing left to cut; a call of very many matrices
			return m
		}
		p.cuts[heaviest] = true
		p.measures[heaviest] = cutOff(heaviest)
	}
}

// most is how many operands a kernel may read: it binds the result, too, and of a product that the rest is the tail of both factors.
func (p *planner) most(loads []source) int {
	most := p.Device.slots(0) - 1
	if slices.ContainsFunc(loads, func(s source) bool { return s.n != nil && (s.n.Kind == expr.Product || s.n.Kind == expr.StackProduct) }) {
		most--
	}
	return min(most, cutLoads)
}

// region is what a kernel computes of a tree. What is used several times is there once.
type region struct {
	measure
	root    *expr.Node
	seen    map[*expr.Node]bool
	scalars map[scalar]bool
}

// add adds what n and what is below it put into the kernel.
func (p *planner) add(m *region, n *expr.Node) {
	n, _ = expr.Resolve(n, false)
	if m.seen[n] {
		return
	}
	m.seen[n] = true
	switch {
	case n.Kind == expr.Scalar:
		if s := (scalar{0, n.Bits(), n.Type.Compute()}); !m.scalars[s] {
			m.scalars[s] = true
			m.code, m.numbers = m.code+1, m.numbers+1
		}
		return
	case n.Kind == expr.Index:
		m.code, m.numbers = m.code+3, m.numbers+shaders.Bit(n.Value != 0)
		return
	case n.Kind == expr.Leaf:
		m.load(source{mem: p.operand(n).Mem})
		return
	case !elementwise(n) || n != m.root && p.cuts[n]: // its own kernel, with its own limits; here it is an operand
		m.load(source{n: n})
		return
	}
	args := n.Args
	if n.Kind == expr.Gather { // from a matrix, which may be read elsewhere, too
		a, _ := expr.Resolve(args[0], false)
		if from := (source{n: a}); a.Kind != expr.Leaf {
			m.load(from)
		} else {
			m.load(source{mem: p.operand(a).Mem})
		}
		args = args[1:]
	}
	for _, a := range args {
		p.add(m, a)
	}
	m.code += 1 + len(n.Args)
	m.calls += n.Op.Calls() + randomCalls*shaders.Bit(n.Kind == expr.Random)
	m.loops = m.loops || n.Op.Loops(n.Type) || n.Kind == expr.Random
}

// load adds an operand.
func (m *measure) load(s source) {
	m.code, m.calls = m.code+1, m.calls+loadCalls
	if !slices.Contains(m.loads, s) {
		m.loads = append(m.loads, s)
	}
}

// tail reports whether a tree can be the tail of a product.
func (p *planner) tail(n *expr.Node) bool {
	return p.measureAnew(n).calls <= tailCalls || !p.Device.Software
}

func (m measure) heavier(o measure) bool {
	mine, others := m.code+m.calls, o.code+o.calls
	return mine > others || mine == others && len(m.loads) > len(o.loads)
}
