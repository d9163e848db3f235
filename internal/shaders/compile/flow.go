// SPDX-License-Identifier: Apache-2.0

package compile

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/compile/wasm"
)

// Parts of variables that live in locals are cells. The generator knows the node that each of them has at present; where control
// flow joins, those that differ become phis. Assignments are logged, so that the arms of an if begin with the same state.

type change struct {
	cell int
	old  *node
}

func (g *function) assign(cell int, n *node) {
	if g.cur[cell] == n {
		return
	}
	if at := g.logged[cell]; at < g.mark || at >= len(g.log) || g.log[at].cell != cell { // else what it was before the mark is known
		g.logged[cell] = len(g.log)
		g.log = append(g.log, change{cell, g.cur[cell]})
	}
	g.cur[cell] = n
}

// rollback takes back what was assigned since a mark.
func (g *function) rollback(mark int) {
	for i := len(g.log) - 1; i >= mark; i-- {
		g.cur[g.log[i].cell] = g.log[i].old
	}
	g.log = g.log[:mark]
}

// newCells makes cells, which have no value yet.
func (g *function) newCells(n int) int {
	at := len(g.cur)
	g.cur = append(g.cur, make([]*node, n)...)
	g.logged = append(g.logged, make([]int, n)...)
	g.gen.spend(n)
	return at
}

// item is a step of a region.
type item struct {
	kind      itemKind
	node      *node // of itemNode; the condition of others; the value of itemStore
	addr      *node
	op        wasm.Op // of itemStore
	offset    uint32
	lane      uint32
	class     int
	region    *region // a block, a loop, or the first arm
	other     *region // the second arm
	label     *label
	edge      *edge
	loop      *loop // in which it is; of itemLoop that which it is
	args      []*node
	results   []*node
	otherwise bool // itemBack goes back if the condition does not hold
}

type itemKind uint8

const (
	itemNode  itemKind = iota
	itemStore          // op with addr, node and, of some, a lane or a third operand in args
	itemCall           // of function number offset
	itemSlot           // stores node in slot offset of the frame at addr
	itemEdge           // assigns the phis of edge
	itemBr             // assigns them and goes to label
	itemBlock
	itemLoop
	itemBack // assigns them and goes to the beginning of label, a loop's, if the condition holds
	itemIf
	itemReturn // of args
	itemTurn   // counts a turn of a guarded loop
)

func (g *function) emit(i item) {
	if i.kind != itemLoop {
		i.loop = g.loop
	}
	g.gen.spend(1)
	g.region.items = append(g.region.items, i)
}

// edge is a way into a join, with the values that cells have on it.
type edge struct {
	values map[int]*node
	loop   *loop
	sets   []set
}

// set assigns a phi.
type set struct{ phi, value *node }

// label is a join: the end of a block.
type label struct {
	region *region
	mark   int
	before int // the mark before
	edges  []*edge
	jumps  int
	loop   *loop // of loops
}

// edge notes what was assigned since a mark.
func (g *function) edge(mark int) *edge {
	e := &edge{values: map[int]*node{}, loop: g.loop}
	for _, c := range g.log[mark:] {
		e.values[c.cell] = g.cur[c.cell]
	}
	g.gen.spend(len(g.log) - mark)
	return e
}

// begin opens a block.
func (g *function) begin() *label {
	l := &label{region: &region{parent: g.region}, mark: len(g.log), before: g.mark}
	g.region, g.mark = l.region, l.mark
	return l
}

// jump leaves for the end of a block.
func (g *function) jump(l *label) {
	e := g.edge(l.mark)
	l.edges = append(l.edges, e)
	l.jumps++
	g.emit(item{kind: itemBr, label: l, edge: e})
	g.dead = true
}

// jumpIf does so if a condition holds.
func (g *function) jumpIf(l *label, cond *node) {
	g.branch(cond, func() { g.jump(l) }, nil)
}

// end closes a block.
func (g *function) end(l *label) {
	if n := len(l.region.items); g.dead && n > 0 && l.region.items[n-1].kind == itemBr && l.region.items[n-1].label == l {
		l.region.items[n-1].kind = itemEdge // the end of the block is there anyway
		l.jumps--
	} else if !g.dead {
		e := g.edge(l.mark)
		l.edges = append(l.edges, e)
		g.emit(item{kind: itemEdge, edge: e})
	}
	g.region = l.region.parent
	g.rollback(l.mark)
	g.mark = l.before
	l.region.closed = l.jumps > 0
	g.gen.branch()
	g.emit(item{kind: itemBlock, region: l.region, label: l})
	g.join(l.edges)
}

// join goes on after edges that meet.
func (g *function) join(edges []*edge) {
	g.dead = len(edges) == 0
	if g.dead {
		return
	}
	var cells []int
	for _, e := range edges {
		for c := range e.values {
			cells = append(cells, c)
		}
	}
	slices.Sort(cells)
	for _, c := range slices.Compact(cells) {
		base := g.cur[c]
		if base == nil && slices.ContainsFunc(edges, func(e *edge) bool { return e.values[c] == nil }) {
			continue // a variable of the block
		}
		value := func(e *edge) *node {
			if n := e.values[c]; n != nil {
				return n.find()
			}
			return base.find()
		}
		first, equal := value(edges[0]), true
		for _, e := range edges[1:] {
			equal = equal && same(value(e), first)
		}
		if equal {
			g.assign(c, first)
			continue
		}
		phi := g.phi(first.typ)
		for _, e := range edges {
			g.set(e, phi, value(e))
		}
		g.assign(c, phi)
	}
}

// same compares nodes; constants have no place and can be equal without being one.
func same(x, y *node) bool {
	return x == y || x.isConst() && x.op == y.op && x.imm == y.imm && x.lanes == y.lanes
}

func (g *function) phi(t wasm.ValType) *node {
	g.gen.spend(1)
	return &node{op: opPhi, typ: t, id: g.gen.nextID(), loop: g.loop, region: g.region}
}

func (g *function) set(e *edge, phi, value *node) {
	g.gen.spend(1)
	e.sets = append(e.sets, set{phi, value})
	phi.in = append(phi.in, value)
	phi.inLoops = append(phi.inLoops, e.loop)
}

// branch runs one of two pieces of code; the second may be nil.
func (g *function) branch(cond *node, then, otherwise func()) {
	if otherwise == nil {
		otherwise = func() {}
	}
	if g.quartet != nil && g.quartet.known[cond] != nil {
		cond = g.quartet.known[cond]
	}
	if cond.isInt() {
		if cond.imm != 0 {
			then()
		} else {
			otherwise()
		}
		return
	}
	g.fork(func() *node { return cond }, then, otherwise)
}

// fork does so on a condition that is asked for when the code of both is there.
func (g *function) fork(cond func() *node, then, otherwise func()) {
	mark, before, parent := len(g.log), g.mark, g.region
	g.mark = mark
	var arms [2]*region
	var edges []*edge
	for i, arm := range []func(){then, otherwise} {
		arms[i] = &region{parent: parent}
		g.region, g.dead = arms[i], false
		arm()
		if !g.dead {
			e := g.edge(mark)
			edges = append(edges, e)
			g.emit(item{kind: itemEdge, edge: e})
		}
		arms[i].closed = true
		g.rollback(mark)
	}
	g.region, g.mark = parent, before
	g.gen.branch()
	g.emit(item{kind: itemIf, node: cond(), region: arms[0], other: arms[1]})
	g.join(edges)
}

// repeat begins a loop that assigns some cells.
func (g *function) repeat(cells []int) *label {
	l := &loop{parent: g.loop, depth: depthOf(g.loop) + 1, outer: g.region}
	enter := &edge{loop: g.loop}
	g.emit(item{kind: itemEdge, edge: enter})
	label := &label{region: &region{parent: g.region}, loop: l, edges: []*edge{enter}}
	g.loop, g.region = l, label.region
	for _, c := range cells {
		phi := g.phi(g.cur[c].typ)
		g.set(enter, phi, g.cur[c])
		g.assign(c, phi)
	}
	return label
}

// again ends the body of a loop: it goes back if a condition holds, or does not hold if otherwise is set; nil is always.
func (g *function) again(l *label, cells []int, cond *node, otherwise bool) {
	if cond != nil && cond.isInt() {
		if (cond.imm != 0) != otherwise {
			cond = nil
		} else {
			l.loop.closed = true
		}
	}
	if !g.dead && !l.loop.closed {
		e := &edge{loop: g.loop}
		for i, c := range cells {
			g.set(e, l.edges[0].sets[i].phi, g.cur[c])
		}
		g.emit(item{kind: itemBack, node: cond, otherwise: otherwise, edge: e, label: l})
		g.dead = cond == nil
	}
	for changed := true; changed; {
		changed = false
		for _, s := range l.edges[0].sets {
			changed = s.phi.collapse() || changed
		}
	}
	l.loop.closed, l.region.closed = true, true
	g.loop, g.region = l.loop.parent, l.region.parent
	g.gen.branch()
	g.emit(item{kind: itemLoop, region: l.region, loop: l.loop, label: l})
}

// collapse makes a phi that can be but one thing stand for that.
func (n *node) collapse() bool {
	if n.to != nil {
		return false
	}
	var only *node
	for _, v := range n.in {
		switch v = v.find(); {
		case v == n || only != nil && same(only, v):
		case only == nil:
			only = v
		default:
			return false
		}
	}
	n.to = only
	return only != nil
}
