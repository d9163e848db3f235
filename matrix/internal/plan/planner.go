// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// planner makes one plan.
type planner struct {
	Input
	plan   *Plan
	temps  map[*expr.Node]Operand // values computed before they are used
	cuts   map[*expr.Node]bool
	larges map[*expr.Node]bool // that have to be used in blocks
	budget int                 // nodes that a search may still visit
}

// newTemp makes a contiguous temporary for elements of the type that t is computed in.
func (p *planner) newTemp(t fuse.Type, rows, cols int) (Operand, error) {
	t = t.Compute()
	if err := expr.CheckDims("Assign", rows, cols); err != nil {
		return Operand{}, err
	}
	p.plan.Memories = append(p.plan.Memories, Memory{Size: rows * cols * t.Size(), Vectors: true})
	l := expr.Layout{Rows: rows, Cols: cols, Stride: cols}
	return Operand{Layout: l, Type: t, Mem: len(p.plan.Memories) - 1}, nil
}

// leaf is an operand as an expression.
func (p *planner) leaf(op Operand) *expr.Node {
	return &expr.Node{Kind: expr.Leaf, Type: op.Type, Rows: op.Rows, Cols: op.Cols, Source: op}
}

// operand returns the matrix of a leaf, the expression's or the plan's own.
func (p *planner) operand(n *expr.Node) Operand {
	if op, ok := n.Source.(Operand); ok {
		return op
	}
	return p.Operand(n)
}

// materialise evaluates a node into a temporary, or returns the matrix it is.
func (p *planner) materialise(n *expr.Node) (Operand, error) {
	if n.Kind == expr.Leaf {
		return p.operand(n), nil
	}
	if op, ok := p.temps[n]; ok {
		return op, nil
	}
	op, err := p.newTemp(n.Type, n.Rows, n.Cols)
	if err == nil {
		err = p.evaluate(op, n)
	}
	p.temps[n] = op
	return op, err
}

// evaluate computes n into dst.
func (p *planner) evaluate(dst Operand, n *expr.Node) error {
	if dst.Empty() {
		return nil
	}
	n, transposed := expr.Resolve(n, false)
	if transposed {
		dst.Layout = dst.T()
	}
	switch {
	case p.largeNode(n) || p.large(dst):
		return p.inBlocks(dst, n)
	case n.Kind == expr.Reduce:
		return p.reduce(dst, n)
	case n.Kind == expr.Softmax:
		return p.softmax(dst, n)
	}
	p.budget = searchBudget
	if a, ok := p.findAnchor(n, false, dst.Rows, dst.Cols); ok && n.Type.Compute() == a.n.Type.Compute() {
		return p.product(dst, n, a)
	}
	return p.mapped(dst, n)
}

// viaTemp computes n into a temporary and copies it to dst: for results that share elements with their operands.
func (p *planner) viaTemp(dst Operand, n *expr.Node) error {
	op, err := p.newTemp(n.Type, dst.Rows, dst.Cols)
	if err != nil {
		return err
	}
	if dst.Order == expr.ColMajorOrder {
		op.Order, op.Stride = expr.ColMajorOrder, dst.Rows
	}
	if err := p.evaluate(op, n); err != nil {
		return err
	}
	return p.evaluate(dst, p.leaf(op))
}

// seen is a node, read transposed or not.
type seen struct {
	n          *expr.Node
	transposed bool
}

// searchBudget bounds searches of the tree; a product that is not found is evaluated by itself.
const searchBudget = 256

// findAnchor looks for a product that can take the rest of the tree as its tail: one of the result's size.
func (p *planner) findAnchor(n *expr.Node, transposed bool, rows, cols int) (a seen, ok bool) {
	n, transposed = expr.Resolve(n, transposed)
	height, width := n.Rows, n.Cols
	if transposed {
		height, width = width, height
	}
	p.budget--
	if height != rows || width != cols || p.budget < 0 {
		return a, false
	}
	switch n.Kind {
	case expr.Product:
		return seen{n, transposed}, true
	case expr.Map, expr.Call:
		if n.Op == fuse.OpAcc && n.Args[0].Type.Compute() != n.Type.Compute() {
			return a, false // a conversion reads memory
		}
		for _, arg := range n.Args {
			if p.cuts[arg] {
				continue
			}
			if a, ok = p.findAnchor(arg, transposed, rows, cols); ok {
				return a, true
			}
		}
	}
	return a, false
}
