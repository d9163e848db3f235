// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Expressions of matrices that the device cannot bind at once, such as mapped files larger than its memory, are computed
// block by block: results by parts of theirs, reductions and long products by parts of what they reduce, with the partial
// results reduced again. What a block reads of memory that is windowed goes up for that block.

// blockBytes is how much of a windowed matrix a block uses at most.
const blockBytes = 256 << 20

// Large reports whether a matrix in the memory has to be used in blocks.
func (d *Device) Large(m Memory, l expr.Layout, t fuse.Type) bool {
	limit := d.Binding
	if m.Windowed {
		limit = min(limit, d.Buffer, blockBytes) - 256 // a window begins at a multiple of that
	}
	return uint64(m.Size) > limit && uint64(l.Span())*uint64(t.Size()) > limit
}

func (p *planner) large(op Operand) bool {
	return p.Device.Large(p.plan.Memories[op.Mem], op.Layout, op.Type)
}

// vast reports whether a result is too large for a temporary.
func (p *planner) vast(n *expr.Node) bool { return n.Vast(p.Device.Binding) }

// inBlocks computes n, which or whose result is large, into dst.
func (p *planner) inBlocks(dst Operand, n *expr.Node, transposed bool) error {
	if transposed {
		dst.Layout = dst.T()
	}
	n, err := p.inside(n)
	if err != nil {
		return err
	}
	switch {
	case !n.Large && !p.large(dst):
		return p.evaluate(dst, n)
	case p.shares(n, dst, false):
		return p.viaTemp(dst, n, func(op Operand) error { return p.evaluate(op, n) })
	case n.Kind == expr.Reduce:
		return p.reduceBlocks(dst, n)
	case n.Kind == expr.Product:
		return p.productBlocks(dst, n)
	}
	return p.mapBlocks(dst, n)
}

// inside evaluates the products, reductions and softmaxes below n, so that what is left has a part for each part of n.
// Results that are too large for that stay; each block computes its part of them.
func (p *planner) inside(n *expr.Node) (*expr.Node, error) {
	done := map[*expr.Node]*expr.Node{}
	var walk func(i int, n *expr.Node) (*expr.Node, error)
	walk = func(_ int, n *expr.Node) (*expr.Node, error) {
		if made, ok := done[n]; ok {
			return made, nil
		}
		made := n
		var err error
		switch n.Kind {
		case expr.Product, expr.Reduce, expr.Softmax:
			if n.Kind != expr.Softmax && p.vast(n) {
				made, err = p.with(n, walk)
				break
			}
			var op Operand
			op, err = p.materialise(n)
			made = p.leaf(op)
		case expr.Map, expr.Call, expr.Transpose:
			made, err = p.with(n, walk)
		}
		if err != nil {
			return nil, err
		}
		done[n] = made
		return made, nil
	}
	if n.Kind == expr.Leaf {
		return n, nil
	}
	return p.with(n, walk)
}

// with returns n with other operands.
func (p *planner) with(n *expr.Node, change func(int, *expr.Node) (*expr.Node, error)) (*expr.Node, error) {
	c, err := n.With(change)
	if err != nil {
		return nil, err
	}
	c.Large = p.largeNode(c)
	return c, nil
}

func (p *planner) largeNode(n *expr.Node) bool {
	return n.Kind == expr.Product && p.vast(n) || slices.ContainsFunc(n.Args, func(a *expr.Node) bool { return a.Large })
}

// shares reports whether a matrix below n shares elements with dst other than one for one: parts of the result would
// overwrite what later parts read.
func (p *planner) shares(n *expr.Node, dst Operand, transposed bool) bool {
	if n.Kind == expr.Leaf {
		op := p.operand(n)
		if transposed {
			op.Layout = op.T()
		}
		return op.Mem == dst.Mem && op.Layout != dst.Layout && op.Overlaps(dst.Layout)
	}
	whole := n.Kind == expr.Product || n.Kind == expr.Reduce
	for _, a := range n.Args {
		if whole && p.uses(a, dst) || !whole && p.shares(a, dst, transposed != (n.Kind == expr.Transpose)) {
			return true
		}
	}
	return false
}

// uses reports whether a matrix below n lies in dst's memory.
func (p *planner) uses(n *expr.Node, dst Operand) bool {
	if n.Kind == expr.Leaf {
		return p.operand(n).Mem == dst.Mem
	}
	return slices.ContainsFunc(n.Args, func(a *expr.Node) bool { return p.uses(a, dst) })
}

// mapBlocks halves the result until its parts can be computed.
func (p *planner) mapBlocks(dst Operand, n *expr.Node) error {
	p.reserve(dst)
	down := p.downwards(dst, n)
	if n.Kind == expr.Softmax { // rows are computed whole
		if n.Rows < 2 {
			return tooLarge(n)
		}
		down = true
	}
	parts := halves(n.Rows, n.Cols, down)
	if parts == nil {
		return tooLarge(n)
	}
	for _, b := range parts {
		if err := p.evaluate(dst.part(b), p.part(n, b)); err != nil {
			return err
		}
	}
	return nil
}

// reduceBlocks halves what is reduced and reduces the two results.
func (p *planner) reduceBlocks(dst Operand, n *expr.Node) error {
	p.reserve(dst)
	a := n.Args[0]
	down := p.downwards(dst, a)
	parts := halves(a.Rows, a.Cols, down)
	if parts == nil {
		return tooLarge(n)
	}
	two := expr.Node{Type: n.Type, Rows: n.Rows * 2, Cols: n.Cols}
	if n.Axis == fuse.AxisRows && down || n.Axis == fuse.AxisCols && !down || p.vast(&two) && n.Rows*n.Cols > 1 {
		return p.mapBlocks(dst, n)
	}
	return p.reduceHalves(dst, n, parts)
}

func (p *planner) reduceHalves(dst Operand, n *expr.Node, parts []block) error {
	rows, cols := dst.Rows, 2
	if n.Axis == fuse.AxisCols {
		rows, cols = 2, dst.Cols
	}
	two, err := p.newTemp(n.Type, rows, cols)
	if err != nil {
		return err
	}
	for i, b := range parts {
		to := block{0, rows, i, i + 1}
		if n.Axis == fuse.AxisCols {
			to = block{i, i + 1, 0, cols}
		}
		half, _ := p.with(n, func(_ int, a *expr.Node) (*expr.Node, error) { return p.part(a, b), nil })
		if err := p.evaluate(two.part(to), half); err != nil {
			return err
		}
	}
	again, _ := p.with(n, func(int, *expr.Node) (*expr.Node, error) { return p.leaf(two), nil })
	return p.evaluate(dst, again)
}

// productBlocks halves the result, or the dimension that the product sums over.
func (p *planner) productBlocks(dst Operand, n *expr.Node) error {
	a, b := n.Args[0], n.Args[1]
	if p.large(dst) {
		return p.mapBlocks(dst, n)
	}
	h := a.Cols / 2
	biggest, down := p.largest(a)
	if other, right := p.largest(b); other.Span() > biggest.Span() {
		if !right && b.Cols > 1 || h == 0 {
			return p.mapBlocks(dst, n)
		}
	} else if biggest.Span() == 0 || down && a.Rows > 1 || h == 0 {
		return p.mapBlocks(dst, n)
	}
	if dst.Type == fuse.F16 { // what is added up is rounded once
		if p.vast(n) {
			return p.mapBlocks(dst, n)
		}
		return p.viaTemp(dst, n, func(op Operand) error { return p.productBlocks(op, n) })
	}
	half := func(i, k int) *expr.Node {
		c, _ := p.with(n, func(at int, f *expr.Node) (*expr.Node, error) {
			return p.part(f, []block{{0, a.Rows, i, k}, {i, k, 0, b.Cols}}[at]), nil
		})
		return c
	}
	if err := p.evaluate(dst, half(0, h)); err != nil {
		return err
	}
	rest := half(h, a.Cols)
	sum := &expr.Node{Kind: expr.Map, Op: fuse.OpAdd, Type: n.Type, Rows: n.Rows, Cols: n.Cols, Args: []*expr.Node{p.leaf(dst), rest}}
	sum.Large = p.largeNode(sum)
	return p.evaluate(dst, sum)
}

func tooLarge(n *expr.Node) error {
	return expr.Fail("Assign", expr.ErrLimit, "operands of ", n.Shape().String(), " do not fit into the device by parts either")
}

// block is rows i to k-1 and columns j to l-1.
type block struct{ i, k, j, l int }

// halves cuts rows, or columns, in two; the other way where there is only one.
func halves(rows, cols int, down bool) []block {
	if rows < 2 && cols < 2 {
		return nil
	}
	if down && rows > 1 || cols < 2 {
		h := rows / 2
		return []block{{0, h, 0, cols}, {h, rows, 0, cols}}
	}
	h := cols / 2
	return []block{{0, rows, 0, h}, {0, rows, h, cols}}
}

func (op Operand) part(b block) Operand {
	op.Layout = op.Slice(b.i, b.k, b.j, b.l)
	return op
}

// part is the expression of a part of n's result.
func (p *planner) part(n *expr.Node, b block) *expr.Node {
	type key struct {
		n *expr.Node
		b block
	}
	done := map[key]*expr.Node{}
	var walk func(n *expr.Node, b block) *expr.Node
	walk = func(n *expr.Node, b block) *expr.Node {
		if n.Rows == 1 { // and stretched, if need be
			b.i, b.k = 0, 1
		}
		if n.Cols == 1 {
			b.j, b.l = 0, 1
		}
		if b == (block{0, n.Rows, 0, n.Cols}) {
			return n
		}
		if made, ok := done[key{n, b}]; ok {
			return made
		}
		if n.Kind == expr.Leaf {
			return p.leaf(p.operand(n).part(b))
		}
		made, _ := n.With(func(i int, a *expr.Node) (*expr.Node, error) { return walk(a, reads(n, i, b)), nil })
		made.Rows, made.Cols = b.k-b.i, b.l-b.j
		made.Large = p.largeNode(made)
		done[key{n, b}] = made
		return made
	}
	return walk(n, b)
}

// reads returns the part of operand i that part b of the result needs.
func reads(n *expr.Node, i int, b block) block {
	switch a := n.Args[i]; {
	case n.Kind == expr.Transpose:
		return block{b.j, b.l, b.i, b.k}
	case n.Kind == expr.Reduce && n.Axis == fuse.AxisAll:
		return block{0, a.Rows, 0, a.Cols}
	case n.Kind == expr.Reduce && n.Axis == fuse.AxisRows, n.Kind == expr.Product && i == 0, n.Kind == expr.Softmax:
		return block{b.i, b.k, 0, a.Cols}
	case n.Kind == expr.Reduce && n.Axis == fuse.AxisCols, n.Kind == expr.Product:
		return block{0, a.Rows, b.j, b.l}
	}
	return b
}

// downwards reports whether to halve the rows of n: so that the parts of a large result lie apart, else so that the
// largest matrix gets smaller.
func (p *planner) downwards(dst Operand, n *expr.Node) bool {
	if p.large(dst) {
		return dst.steep()
	}
	big, down := p.largest(n)
	return big.Span() == 0 || down
}

// reserve makes one window of a result that needs several no longer, for its parts may lie between each other.
func (p *planner) reserve(op Operand) {
	if p.plan.Memories[op.Mem].Windowed && !p.large(op) {
		p.plan.Steps = append(p.plan.Steps, Step{Name: "reserve", To: op, Reserve: true})
	}
}

// steep reports whether parts of the rows lie together in memory.
func (op Operand) steep() bool {
	if op.Order == expr.RowMajorOrder {
		return op.Rows > 1
	}
	return op.Cols <= 1
}

// largest returns the largest of the large matrices in an expression, an empty one if there are none, and which way parts
// of it lie together in memory as the expression's result has it: by rows or, if not, by columns.
func (p *planner) largest(n *expr.Node) (big Operand, down bool) {
	if !n.Large {
		return big, false
	}
	if n.Kind == expr.Leaf {
		op := p.operand(n)
		return op, op.steep()
	}
	for _, a := range n.Args {
		if op, d := p.largest(a); op.Span() > big.Span() {
			big, down = op, d
		}
	}
	return big, down != (n.Kind == expr.Transpose)
}
