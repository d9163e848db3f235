// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// ruleReduction is a sum or a mean of a product, or of a part of one: that of the columns of A B is the sum of the columns of A,
// times B; that of the rows is A times the sum of the rows of B; that of all elements is both. The trace of A B is the sum of the
// elements of A times those of the transpose of B. It returns nil where there is nothing to gain.
func (r *rewriter) ruleReduction(n *expr.Node, b block) *expr.Node {
	if n.Red != fuse.ReduceSum && n.Red != fuse.ReduceMean && n.Red != fuse.ReduceTrace {
		return nil
	}
	at := partKey{n, b}.operand(0)
	c := r.onlyProduct(at.n)
	if c == nil {
		return nil
	}
	var made *expr.Node
	if n.Red == fuse.ReduceTrace {
		d := min(at.n.Rows, at.n.Cols)
		made = r.elementsOf(c, block{0, d, 0, d}, fuse.AxisAll)
	} else {
		made = r.summed(c, at.b, n.Axis)
	}
	if made != nil && n.Red == fuse.ReduceMean {
		made = apply(fuse.OpMul, made, number(n.Type, n.Value))
	}
	return made
}

// onlyProduct returns the chain that is all of an operand, which nothing else uses, or nil.
func (r *rewriter) onlyProduct(n *expr.Node) *chain {
	n, transposed := r.bare(n, false)
	if r.uses[n] > 1 {
		return nil
	}
	below := n
	if bottom, _, _ := r.unscaled(n, false, true); bottom != nil {
		below = bottom
	}
	if below.Kind != expr.Product || below != n && r.uses[below] > 1 {
		return nil
	}
	if c := r.chainOf(n, transposed); len(c.factors) > 1 && !c.empty() {
		return c
	}
	return nil
}

// summed is the sum of a part of a chain along an axis, without numbers for the rows and columns.
func (r *rewriter) summed(c *chain, b block, axis fuse.Axis) *expr.Node {
	c.restrict(b)
	s := span{0, len(c.factors) - 1}
	direct := r.best(c).costs[s].passOver(b.area())
	var extra cost
	if axis != fuse.AxisRows && c.factors[0].rows() > 1 {
		extra = extra.plus(r.foldFactor(c, 0, fuse.AxisCols))
	}
	if last := len(c.factors) - 1; axis != fuse.AxisCols && c.factors[last].cols() > 1 {
		extra = extra.plus(r.foldFactor(c, last, fuse.AxisRows))
	}
	s.last = len(c.factors) - 1
	o := r.best(c)
	if s.last > 0 && !o.costs[s].plus(extra).less(direct) {
		return nil
	}
	return c.scale(r.multiplied(c, o, s))
}

// foldFactor sums a factor's rows or columns, and returns what that costs. An inverse gets ones for a neighbour: solving for them is faster
// than to invert.
func (r *rewriter) foldFactor(c *chain, at int, axis fuse.Axis) cost {
	f := &c.factors[at]
	t := r.typeOf(c)
	if f.lu.n != nil {
		l := expr.Layout{Rows: 1, Cols: f.rows()}
		if axis == fuse.AxisRows {
			l = expr.Layout{Rows: f.cols(), Cols: 1}
			at++
		}
		ones := factor{own: fill(Operand{Type: t, Layout: l}, 1), b: block{0, l.Rows, 0, l.Cols}}
		ones.n = ones.own
		c.insert(at, ones)
		return cost{}
	}
	extra := cost{}.passOver(f.b.area())
	sum := expr.NewReduction("Sum", fuse.ReduceSum, axis, 0, r.operandOf(f))
	*f = factor{seen: seen{sum, false}, own: sum, b: all(sum)}
	return extra
}

// elementsOf is the sums of those products of elements that are on the diagonal of a part of a chain: of the rows, as a column, or of
// all.
func (r *rewriter) elementsOf(c *chain, b block, axis fuse.Axis) *expr.Node {
	last := len(c.factors) - 1
	if c.factors[0].lu.n != nil || c.factors[last].lu.n != nil || b.empty() {
		return nil
	}
	d := b.k - b.i
	c.restrict(b)
	o := r.best(c)
	var cheapest cost
	cut := -1
	for at := range last {
		sum := o.costs[span{0, at}].plus(o.costs[span{at + 1, last}]).passOver(d * c.factors[at].cols())
		if cut < 0 || sum.less(cheapest) {
			cheapest, cut = sum, at
		}
	}
	if !cheapest.less(o.costs[span{0, last}].passOver(d)) {
		return nil
	}
	left, right := r.multiplied(c, o, span{0, cut}), turned(r.multiplied(c, o, span{cut + 1, last}))
	return c.scale(expr.NewReduction("Sum", fuse.ReduceSum, axis, 0, apply(fuse.OpMul, left, right)))
}

// diagonal reports whether a node is the diagonal of a part of another one, as a row.
func diagonal(n *expr.Node) (from *expr.Node, b block, ok bool) {
	if n.Kind != expr.Gather || n.Rows != 1 {
		return nil, b, false
	}
	from, i, j := n.Args[0], n.Args[1], n.Args[2]
	along := func(x *expr.Node) bool {
		return x.Kind == expr.Index && x.Axis == fuse.AxisCols && x.Rows == 1 && x.Cols == n.Cols && x.Value >= 0
	}
	if !along(i) || !along(j) {
		return nil, b, false
	}
	b = block{int(i.Value), int(i.Value) + n.Cols, int(j.Value), int(j.Value) + n.Cols}
	return from, b, b.k <= from.Rows && b.l <= from.Cols
}

// ruleDiagonal is the diagonal of a product, of which nothing else is computed. It returns nil where n is none.
func (r *rewriter) ruleDiagonal(n *expr.Node) *expr.Node {
	from, b, ok := diagonal(n)
	if !ok {
		return nil
	}
	c := r.onlyProduct(from)
	if c == nil {
		return nil
	}
	if made := r.elementsOf(c, b, fuse.AxisRows); made != nil {
		return turned(made)
	}
	return nil
}

// inverse reports whether a node is the inverse of a matrix, or of its transpose, of which nothing else is used. It returns the packed
// factors.
func (r *rewriter) inverse(n *expr.Node) (lu *expr.Node, transposed, ok bool) {
	for r.uses[n] == 1 && n.Kind == expr.Map && n.Op == fuse.OpConvert && real(n) && real(n.Args[0]) {
		n, transposed = expr.Resolve(n.Args[0], transposed)
	}
	if r.uses[n] != 1 || n.Kind != expr.Factor || n.Routine != expr.RoutineLUSolve || !identity(n.Args[1]) {
		return nil, false, false
	}
	lu = n.Args[0]
	return lu, n.Form.Turned != transposed, lu.Kind == expr.Factor && lu.Routine == expr.RoutineLU
}

// real reports whether a node is computed in float32, in which nothing is lost when float16 is converted.
func real(n *expr.Node) bool { return n.Type.Compute() == fuse.F32 }

// identity reports whether a node is the identity matrix: 1 where the row is the column.
func identity(n *expr.Node) bool {
	n, _ = expr.Resolve(n, false)
	for n.Kind == expr.Map && n.Op == fuse.OpConvert {
		n, _ = expr.Resolve(n.Args[0], false)
	}
	if n.Kind != expr.Map || n.Op != fuse.OpEq || n.Rows != n.Cols {
		return false
	}
	i, j := n.Args[0], n.Args[1]
	if i.Axis == fuse.AxisCols {
		i, j = j, i
	}
	counts := func(x *expr.Node, axis fuse.Axis) bool { return x.Kind == expr.Index && x.Axis == axis && x.Value == 0 }
	return counts(i, fuse.AxisRows) && i.Cols == 1 && counts(j, fuse.AxisCols) && j.Rows == 1
}

// solution solves a system with packed factors, and converts as the inverse would.
func (r *rewriter) solution(lu seen, b *expr.Node) *expr.Node {
	form := expr.Form{Turned: lu.transposed}
	return converted(b.Type, expr.NewFactor("Solve", expr.RoutineLUSolve, form, 1, r.whole(lu.n), converted(fuse.F32, b)))
}

func converted(t fuse.Type, n *expr.Node) *expr.Node {
	if n.Type == t || n.Err != nil {
		return n
	}
	return expr.NewConversion("Convert", t, n)
}

// ruleDeterminant is the determinant of an inverse: that of the matrix, inverted. It returns nil where n is none.
func (r *rewriter) ruleDeterminant(n *expr.Node) *expr.Node {
	if n.Kind != expr.Map || n.Op != fuse.OpMul || !productOf(n.Args[0]) || !productOf(n.Args[1]) {
		return nil
	}
	g := n.Args[0].Args[0] // the diagonal of the packed factors
	if g.Kind != expr.Gather || g.Args[1] != g.Args[2] {
		return nil
	}
	lu := g.Args[0]
	if lu.Kind != expr.Factor || lu.Routine != expr.RoutineLU || r.uses[lu] != 2 {
		return nil
	}
	a, _ := expr.Resolve(lu.Args[0], false)
	inner, _, ok := r.inverse(a)
	if !ok {
		return nil
	}
	return apply(fuse.OpRecip, replaced(n, lu, r.whole(inner)))
}

// productOf reports whether a node is the product of all elements of another one.
func productOf(n *expr.Node) bool {
	return n.Kind == expr.Reduce && n.Red == fuse.ReduceProd && n.Axis == fuse.AxisAll
}

// replaced is a small tree with another node in the place of one.
func replaced(n, old, other *expr.Node) *expr.Node {
	if n == old {
		return other
	}
	if len(n.Args) == 0 {
		return n
	}
	args := make([]*expr.Node, len(n.Args))
	for i, a := range n.Args {
		args[i] = replaced(a, old, other)
	}
	return with(n, args...)
}

// simplified drops what changes nothing, bit by bit: of a node whose operands are rewritten.
func (r *rewriter) simplified(n *expr.Node) *expr.Node {
	if n.Kind != expr.Map {
		return n
	}
	a := n.Args[0]
	x, _ := expr.Resolve(a, false)
	of := func(ops ...fuse.Op) bool {
		return x.Kind == expr.Map && slices.Contains(ops, x.Op)
	}
	switch n.Op {
	case fuse.OpConvert:
		// What is computed in 32 bits may have more of them than a packed type keeps.
		if x.Type == n.Type && (!n.Type.Packed() || n.Type == fuse.F16 || x.Kind == expr.Leaf || of(fuse.OpConvert)) {
			return a
		}
	case fuse.OpAbs, fuse.OpSign, fuse.OpRelu:
		if of(n.Op) {
			return a
		}
	case fuse.OpFloor, fuse.OpCeil, fuse.OpRound, fuse.OpTrunc:
		if !real(n) || of(fuse.OpFloor, fuse.OpCeil, fuse.OpRound, fuse.OpTrunc) {
			return a
		}
	case fuse.OpNeg:
		if a.Kind == expr.Map && a.Op == fuse.OpNeg {
			return a.Args[0]
		}
	case fuse.OpMax, fuse.OpMin:
		if r.alike(a, n.Args[1]) {
			return a
		}
	}
	return n
}

// alike reports whether two operands are the same one.
func (r *rewriter) alike(a, b *expr.Node) bool {
	return a == b || a.Kind == expr.Leaf && b.Kind == expr.Leaf && r.operand(a) == r.operand(b)
}
