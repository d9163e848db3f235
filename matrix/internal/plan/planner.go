// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// planner makes one plan.
type planner struct {
	Input
	plan   *Plan
	err    error                  // the first one; what is done after it is of no use
	temps  map[*expr.Node]Operand // values computed before they are used
	cuts   map[*expr.Node]bool    // evaluated by themselves
	larges map[*expr.Node]bool    // that have to be used in blocks
	budget int                    // nodes that a search may still visit

	measures map[*expr.Node]measure
}

func (p *planner) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// tooMuch fails a plan that is beyond a limit of the device.
func (p *planner) tooMuch(op string, detail ...string) {
	p.fail(expr.Fail(op, gpu.ErrLimit, detail...))
}

// newTemp makes a contiguous temporary for elements of the type that t is computed in.
func (p *planner) newTemp(t fuse.Type, rows, cols int) Operand {
	t = t.Compute()
	if err := expr.CheckDims("Assign", rows, cols); err != nil {
		p.fail(err)
		return Operand{}
	}
	p.plan.Memories = append(p.plan.Memories, Memory{Size: rows * cols * t.Size(), Vectors: true})
	l := expr.Layout{Rows: rows, Cols: cols, Stride: cols}
	return Operand{Layout: l, Type: t, Mem: len(p.plan.Memories) - 1}
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
func (p *planner) materialise(n *expr.Node) Operand {
	if n.Kind == expr.Leaf {
		return p.operand(n)
	}
	op, ok := p.temps[n]
	if !ok {
		op = p.newTemp(n.Type, n.Rows, n.Cols)
		p.evaluate(op, n)
		p.temps[n] = op
	}
	return op
}

// evaluate computes n into dst.
func (p *planner) evaluate(dst Operand, n *expr.Node) {
	if p.err != nil || dst.Empty() {
		return
	}
	n, transposed := expr.Resolve(n, false)
	dst = dst.read(transposed)
	p.budget = searchBudget
	switch {
	case p.largeNode(n) || p.large(dst):
		p.inBlocks(dst, n)
	case n.Kind == expr.Reduce:
		p.reduce(dst, n)
	case n.Kind == expr.Softmax:
		p.softmax(dst, n)
	default:
		if a, ok := p.findAnchor(n, false, dst.Rows, dst.Cols); ok && n.Type.Compute() == a.n.Type.Compute() {
			p.product(dst, n, a)
		} else {
			p.mapped(dst, n)
		}
	}
}

// viaTemp computes n into a temporary and copies it to dst: for results that share elements with their operands.
func (p *planner) viaTemp(dst Operand, n *expr.Node) {
	op := p.newTemp(n.Type, dst.Rows, dst.Cols)
	if dst.ColMajor {
		op.ColMajor, op.Stride = true, dst.Rows
	}
	p.evaluate(op, n)
	p.evaluate(dst, p.leaf(op))
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

// largest returns the largest operand of an expression, as the expression's result has it, and an empty one if there is none. It
// looks only below nodes that count.
func (p *planner) largest(s seen, counts func(*expr.Node) bool) Operand {
	p.budget = searchBudget
	return p.largestBelow(s.n, s.transposed, counts)
}

func (p *planner) largestBelow(n *expr.Node, transposed bool, counts func(*expr.Node) bool) (big Operand) {
	n, transposed = expr.Resolve(n, transposed)
	p.budget--
	if p.budget < 0 || !counts(n) {
		return big
	}
	if n.Kind == expr.Leaf {
		return p.operand(n).read(transposed)
	}
	for _, a := range n.Args {
		if op := p.largestBelow(a, transposed, counts); op.Span() > big.Span() {
			big = op
		}
	}
	return big
}
