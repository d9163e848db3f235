// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Input is what a plan is made from.
type Input struct {
	Device   Device
	Root     *expr.Node
	To       Operand                       // takes the result, which has its size
	Memories []Memory                      // of the result and the operands
	Operand  func(source any) Operand      // finds the matrix of a leaf
	Number   func(bits uint32) (int, bool) // finds a scalar among the distinct ones of the expression
}

// planner makes one plan.
type planner struct {
	Input
	plan   *Plan
	temps  []temp
	cuts   map[*expr.Node]bool
	budget int // nodes that the search for an anchor may still visit
}

// temp is a value that is computed before it is used.
type temp struct {
	n  *expr.Node
	op Operand
}

// New plans the computation of an expression.
func New(in Input) (*Plan, error) {
	p := &planner{Input: in, plan: &Plan{Memories: in.Memories, Given: len(in.Memories)}}
	p.cuts = p.cut(in.Root)
	if err := p.evaluate(in.To, in.Root); err != nil {
		return nil, err
	}
	return p.plan, nil
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
	return &expr.Node{Kind: expr.Leaf, Type: op.Type, Rows: op.Rows, Cols: op.Cols, Source: op, Large: p.large(op)}
}

// operand returns the matrix of a leaf, the expression's or the plan's own.
func (p *planner) operand(n *expr.Node) Operand {
	if op, ok := n.Source.(Operand); ok {
		return op
	}
	return p.Operand(n.Source)
}

// materialise evaluates a node into a temporary, or returns the matrix it is.
func (p *planner) materialise(n *expr.Node) (Operand, error) {
	if n.Kind == expr.Leaf {
		return p.operand(n), nil
	}
	for _, t := range p.temps {
		if t.n == n {
			return t.op, nil
		}
	}
	op, err := p.newTemp(n.Type, n.Rows, n.Cols)
	if err != nil {
		return op, err
	}
	if err := p.evaluate(op, n); err != nil {
		return op, err
	}
	p.temps = append(p.temps, temp{n, op})
	return op, nil
}

// factor resolves a product's operand to a matrix, with the transposes above it applied.
func (p *planner) factor(n *expr.Node, transposed bool) (Operand, error) {
	n, transposed = expr.Resolve(n, transposed)
	op, err := p.materialise(n)
	if transposed {
		op.Layout = op.T()
	}
	return op, err
}

// evaluate computes n into dst.
func (p *planner) evaluate(dst Operand, n *expr.Node) error {
	if dst.Empty() {
		return nil
	}
	n, transposed := expr.Resolve(n, false)
	if n.Large || p.large(dst) {
		return p.inBlocks(dst, n, transposed)
	}
	switch n.Kind {
	case expr.Reduce:
		return p.reduce(dst, n, transposed)
	case expr.Softmax:
		return p.softmax(dst, n, transposed)
	}
	p.budget = anchorBudget
	if a, ok := p.findAnchor(n, transposed, dst.Rows, dst.Cols); ok && n.Type.Compute() == a.n.Type.Compute() {
		return p.product(dst, n, transposed, a)
	}
	return p.mapped(dst, n, transposed)
}

// viaTemp computes n into a temporary and copies it to dst: for results that share elements with their operands.
func (p *planner) viaTemp(dst Operand, n *expr.Node, compute func(Operand) error) error {
	op, err := p.newTemp(n.Type, dst.Rows, dst.Cols)
	if err != nil {
		return err
	}
	if dst.Order == expr.ColMajorOrder {
		op.Order, op.Stride = expr.ColMajorOrder, dst.Rows
	}
	if err := compute(op); err != nil {
		return err
	}
	return p.evaluate(dst, p.leaf(op))
}

// anchor is the product in an expression whose kernel takes the rest as its tail, and whether it is read transposed.
type anchor struct {
	n          *expr.Node
	transposed bool
}

// anchorBudget bounds the search for an anchor; a product that it does not find is evaluated by itself.
const anchorBudget = 256

// findAnchor looks for a product that can take the rest of the tree as its tail: one of the result's size.
func (p *planner) findAnchor(n *expr.Node, transposed bool, rows, cols int) (a anchor, ok bool) {
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
		return anchor{n, transposed}, true
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
