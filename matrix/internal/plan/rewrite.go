// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Before an expression is planned it is rewritten: chains of products take the order of the fewest operations, parts of results
// are computed of parts of the operands, products with inverses become solutions, and so on; see the functions that begin with
// "rule". A rewritten expression has the values of the one that was written, up to rounding: what bounds the error of the one
// bounds that of the other. Where an operand is infinite or NaN, both have an infinity or NaN in the same elements, not always
// the same one of the two, and zeros may differ in their signs. What is in between may overflow in one order and not in another.
//
// The pass sees sizes, never numbers: a plan serves all expressions of one key, and the numbers are no part of it.

// maxRewritten is how many nodes an expression may have to be rewritten, which keeps the work in proportion.
const maxRewritten = 1 << 14

// maxBlocks is how many parts of a node are computed by themselves; of more of them the whole is.
const maxBlocks = 4

// rewriter rewrites one expression.
type rewriter struct {
	*planner
	uses    map[*expr.Node]int     // by how many operations a node is used, those behind transposes included
	demands map[*expr.Node][]block // the parts that are used; the whole where it is used
	windows bool                   // there are nodes that are parts of others
	order   []*expr.Node           // each node after its operands
	done    map[partKey]*expr.Node
}

// rewrite returns an expression that computes the same with less work, or root itself.
func (p *planner) rewrite(root *expr.Node) *expr.Node {
	if p.Device.AsWritten {
		return root
	}
	r := &rewriter{
		planner: p, uses: map[*expr.Node]int{}, demands: map[*expr.Node][]block{}, done: map[partKey]*expr.Node{},
	}
	if !r.count(root) {
		return root
	}
	if r.windows {
		r.demand(root)
	}
	if n := r.whole(root); n.Err == nil && n.Rows == root.Rows && n.Cols == root.Cols {
		return n
	}
	return root // cannot be: every rule keeps shapes and limits
}

// count finds out how often nodes are used. It returns false where there are too many of them.
func (r *rewriter) count(n *expr.Node) bool {
	n, _ = expr.Resolve(n, false)
	if r.uses[n]++; r.uses[n] > 1 {
		return true
	}
	if len(r.uses) > maxRewritten {
		return false
	}
	if _, _, ok := window(n); ok {
		r.windows = true
	}
	for _, a := range n.Args {
		if !r.count(a) {
			return false
		}
	}
	r.order = append(r.order, n)
	return true
}

// all is the block that is the whole node.
func all(n *expr.Node) block { return block{0, n.Rows, 0, n.Cols} }

func (b block) area() int   { return (b.k - b.i) * (b.l - b.j) }
func (b block) empty() bool { return b.k <= b.i || b.l <= b.j }

// within returns the block of a block.
func (b block) within(o block) block { return block{b.i + o.i, b.k + o.i, b.j + o.j, b.l + o.j} }

// turn is the block in the transpose.
func (b block) turn() block { return block{b.j, b.l, b.i, b.k} }

// window reports whether a node is rows and columns of another one, all of which there are.
func window(n *expr.Node) (from *expr.Node, b block, ok bool) {
	if n.Kind != expr.Gather {
		return nil, b, false
	}
	from, i, j := n.Args[0], n.Args[1], n.Args[2]
	if i.Kind != expr.Index || i.Axis != fuse.AxisRows || i.Cols != 1 || j.Kind != expr.Index || j.Axis != fuse.AxisCols || j.Rows != 1 {
		return nil, b, false
	}
	b = block{int(i.Value), int(i.Value) + n.Rows, int(j.Value), int(j.Value) + n.Cols}
	ok = i.Rows == n.Rows && j.Cols == n.Cols && b.i >= 0 && b.j >= 0 && b.k <= from.Rows && b.l <= from.Cols && !b.empty()
	return from, b, ok
}

// demand finds the parts of each node that are used.
func (r *rewriter) demand(root *expr.Node) {
	root, _ = expr.Resolve(root, false)
	r.demands[root] = []block{all(root)}
	for ; len(r.order) > 0; r.order = r.order[:len(r.order)-1] {
		n := r.order[len(r.order)-1] // each node before its operands
		from, at, ok := window(n)
		for _, b := range r.demands[n] {
			if ok {
				r.use(from, b.within(at))
				continue
			}
			for _, k := range reached(n, computed(n, b)) {
				r.use(k.n, k.b)
			}
		}
	}
}

// reached returns the parts of a node's operands that a part of it is computed of. Those of a Concat may be empty.
func reached(n *expr.Node, b block) []partKey {
	parts := make([]partKey, len(n.Args))
	if n.Kind != expr.Concat {
		for i := range parts {
			parts[i] = partKey{n, b}.operand(i)
		}
		return parts
	}
	for i, at := range placed(n) {
		c := block{max(b.i, at.i), min(b.k, at.k), max(b.j, at.j), min(b.l, at.l)}
		parts[i] = partKey{at.arg, block{c.i - at.i, c.k - at.i, c.j - at.j, c.l - at.j}}
	}
	return parts
}

// use notes that a part of n is used.
func (r *rewriter) use(n *expr.Node, b block) {
	n, transposed := expr.Resolve(n, false)
	if transposed {
		b = b.turn()
	}
	if b.empty() {
		return
	}
	b = stretched(n, b)
	have := r.demands[n]
	if slices.Contains(have, b) || slices.Contains(have, all(n)) {
		return
	}
	area := b.area()
	for _, o := range have {
		area += o.area()
	}
	if area >= n.Rows*n.Cols || len(have) == maxBlocks {
		r.demands[n] = []block{all(n)}
		return
	}
	r.demands[n] = append(have, b)
}

// stretched is the part of an operand that is used for a part of the result.
func stretched(n *expr.Node, b block) block {
	if n.Rows == 1 {
		b.i, b.k = 0, 1
	}
	if n.Cols == 1 {
		b.j, b.l = 0, 1
	}
	return b
}

// computed is what is computed for a part of a node: more than that where it comes in whole rows or columns.
func computed(n *expr.Node, b block) block {
	switch {
	case n.Kind == expr.Softmax && n.Hard && n.Axis == fuse.AxisAll, undivided(n) && (n.Kind != expr.Factor || !columnwise(n)):
		return all(n)
	case n.Kind == expr.Factor:
		b.i, b.k = 0, n.Rows
	case wholeRows(n):
		b.j, b.l = 0, n.Cols
	}
	return b
}

// columnwise reports whether the columns of a routine's result are each of one column of its last operand.
func columnwise(n *expr.Node) bool {
	switch n.Routine {
	case expr.RoutineLUSolve, expr.RoutinePermute, expr.RoutineTriangle, expr.RoutineQMul, expr.RoutineSolve:
		return true
	}
	return false
}

// apart reports whether parts of a node are computed by themselves.
func (r *rewriter) apart(n *expr.Node) bool {
	switch n.Kind {
	case expr.Leaf, expr.Scalar, expr.Index:
		return true
	}
	have := r.demands[n]
	return len(have) > 0 && !slices.Contains(have, all(n))
}

// whole is a node, rewritten.
func (r *rewriter) whole(n *expr.Node) *expr.Node { return r.rewritten(n, all(n)) }

// rewritten is a part of a node, rewritten.
func (r *rewriter) rewritten(n *expr.Node, b block) *expr.Node {
	if n.Kind == expr.Transpose {
		if a := r.rewritten(n.Args[0], b.turn()); a != n.Args[0] {
			return expr.NewTranspose("T", a)
		}
		return n
	}
	b = stretched(n, b)
	k := partKey{n, b}
	made := r.done[k]
	if made == nil {
		made = r.make(n, b)
		if made.Kind == expr.Sparse && n.Kind != expr.Sparse { // a dense matrix stays one: of operations on a sparse one other nodes are made
			made = expr.NewConcat("Concat", fuse.AxisRows, made)
		}
		r.done[k] = made
	}
	return made
}

func (r *rewriter) make(n *expr.Node, b block) *expr.Node {
	if b != all(n) && !r.apart(n) {
		return r.pick(r.whole(n), b)
	}
	if c := computed(n, b); c != b {
		b.i, b.k, b.j, b.l = b.i-c.i, b.k-c.i, b.j-c.j, b.l-c.j
		return r.pick(r.rewritten(n, c), b)
	}
	if from, at, ok := window(n); ok {
		return r.rewritten(from, b.within(at))
	}
	switch n.Kind {
	case expr.Leaf:
		return r.pick(n, b)
	case expr.Product:
		made := r.ruleChain(n, b)
		if n.Type != fuse.F32 {
			made = r.ruleNarrow(made)
		}
		return made
	case expr.Reduce:
		if made := r.ruleReduction(n, b); made != nil {
			return made
		}
	case expr.Gather:
		if made := r.ruleDiagonal(n); made != nil && b == all(n) {
			return made
		}
	}
	if made := r.ruleDeterminant(n); made != nil {
		return made
	}
	return r.simplified(r.again(n, b))
}

// pick is a part of a node that is computed whole: of a matrix a view.
func (r *rewriter) pick(n *expr.Node, b block) *expr.Node {
	switch {
	case b == all(n):
		return n
	case n.Kind == expr.Transpose:
		return expr.NewTranspose("T", r.pick(n.Args[0], b.turn()))
	case n.Kind == expr.Leaf:
		return r.leaf(r.operand(n).part(b))
	case n.Kind == expr.Scalar:
		made := with(n)
		made.Rows, made.Cols = b.k-b.i, b.l-b.j
		return made
	}
	i, j := places(b.k-b.i, b.l-b.j)
	i.Value, j.Value = float64(b.i), float64(b.j)
	return expr.NewGather("Slice", n, i, j)
}

// again is a part of a node of the parts of its operands. What does not reach into the part of a Concat is left out.
func (r *rewriter) again(n *expr.Node, b block) *expr.Node {
	same := b == all(n)
	args := make([]*expr.Node, 0, len(n.Args))
	for i, k := range reached(n, b) {
		if n.Kind == expr.Concat && b != all(n) && k.b.empty() {
			continue
		}
		a := r.rewritten(k.n, k.b)
		args = append(args, a)
		same = same && a == n.Args[i]
	}
	if same {
		return n
	}
	return partOf(n, b, args)
}

// partOf is the part of a node that is made of parts of its operands.
func partOf(n *expr.Node, b block, args []*expr.Node) *expr.Node {
	if n.Kind == expr.Concat && len(args) == 1 {
		return args[0]
	}
	made := with(n, args...)
	made.Rows, made.Cols = b.k-b.i, b.l-b.j
	if n.Kind == expr.Index {
		made.Value += float64([...]int{fuse.AxisRows: b.i, fuse.AxisCols: b.j}[n.Axis])
	}
	return made
}
