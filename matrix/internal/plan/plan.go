// SPDX-License-Identifier: Apache-2.0

// Package plan turns an expression into a list of kernel launches without touching a device: which kernels, over which
// operands, by way of which temporaries. The same expression, operands of the same layouts in the same places and the same
// device give the same plan, whatever the numbers in it are.
package plan

import (
	"strconv"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Device is what plans depend on of a device.
type Device struct {
	Binding uint64 // bytes that a kernel can bind at once
	Buffer  uint64 // bytes of the largest buffer
	Storage int    // storage bindings of a kernel
	Scratch int    // bytes of parts of a sparse matrix's rows, at a time
	// AsWritten computes expressions in the order in which they are written: for tests, which compare.
	AsWritten bool
	kernels.Device
}

// Memory is memory that operands lie in. Operands are in the same memory where kernels would bind the same buffer.
type Memory struct {
	Size     int  // bytes
	Vectors  bool // it can be bound in vectors: an imported buffer whose size is no multiple of one would lose its end
	Windowed bool // the device gets parts of it only
}

// Operand is a matrix in one of the memories of a plan.
type Operand struct {
	expr.Layout
	Type fuse.Type
	Mem  int
}

// Plan is a list of launches. The first memories are those of the operands, the result's first of all; the others are
// temporaries, each of which is written before it is read.
type Plan struct {
	Memories []Memory
	Steps    []*Step
	Last     []int // the last step that uses each memory
}

// Step is one launch.
type Step struct {
	*kernels.Launch            // nil: only bind, since parts of the result are written later
	Func            *fuse.Func // nil: the kernel has none
	Key             string     // identifies the kernel with the function
	Params          []byte     // the parameter block, for bindings that begin where their memories do and without the numbers
	Numbers         []Number
	Bindings        []Binding // the kernel writes one of them
	To              Operand   // what is written
	Sooner          *Step     // to be launched as long as this one's kernel is not compiled; nil: it is worth waiting for
}

// Binding is a storage binding. Some words of the parameter block count from where it begins, by so many elements.
type Binding struct {
	Mem    int
	Lo, Hi int // elements Lo to Hi-1 of the memory are needed
	Type   fuse.Type
	Intent buffer.Intent
	Words  []int
	Unit   int
}

// Number is a scalar of the expression: the word of the parameter block that holds it.
type Number struct{ Word, Index int }

// Input is what a plan is made from.
type Input struct {
	Device   Device
	Root     *expr.Node
	To       Operand                  // takes the result, which has its size
	Memories []Memory                 // of the result and the operands
	Free     uint64                   // bytes of ranges and temporaries that there may be on the device at once; 0: not known
	Numbers  []uint32                 // the distinct scalars of the expression
	Operand  func(*expr.Node) Operand // finds the matrix of a leaf
}

// New plans the computation of an expression.
func New(in Input) (*Plan, error) {
	p := newPlanner(in)
	if streams {
		p.window = rangeBytes(&in)
	}
	p.compute()
	if streams && p.err != nil {
		p = byPanels(p)
	}
	return p.plan, p.err
}

// compute plans the expression.
func (p *planner) compute() {
	root := p.rewrite(p.Root)
	p.cut(root)
	p.evaluate(p.To, root)
	if streams {
		verify(p)
	}
}

func newPlanner(in Input) *planner {
	return &planner{
		Input: in, plan: &Plan{Memories: in.Memories}, temps: map[*expr.Node]Operand{}, larges: map[*expr.Node]bool{},
		cuts: map[*expr.Node]bool{},
	}
}

// read is the operand, read transposed or not.
func (op Operand) read(transposed bool) Operand {
	if transposed {
		op.Layout = op.T()
	}
	return op
}

// planner makes one plan.
type planner struct {
	Input
	plan   *Plan
	err    error                  // the first one; what is done after it is of no use
	temps  map[*expr.Node]Operand // values computed before they are used
	cuts   map[*expr.Node]bool    // evaluated by themselves
	larges map[*expr.Node]bool    // that have to be used in blocks
	budget int                    // nodes that a search may still visit
	window uint64                 // bytes of a matrix used in ranges that are used at once

	panel    uint64                 // bytes of a block of columns of a matrix that is decomposed; 0: it is as a whole
	wide     bool                   // narrower ones would do
	factored map[*expr.Node]*panels // what is decomposed already

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
	if n.Kind == expr.Reshape {
		return p.reshaped(n.Rows, n.Cols, n.Args[0])
	}
	op, ok := p.temps[n]
	if !ok {
		op = p.newTemp(n.Type, n.Rows, n.Cols)
		if streams && p.panel > 0 && n.Kind == expr.Factor && uint64(p.plan.Memories[op.Mem].Size) > p.panel {
			p.plan.Memories[op.Mem].Windowed = true
		}
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
	if streams && len(p.plan.Steps) > maxPlan {
		p.tooMuch("Assign", "more than ", strconv.Itoa(maxPlan), " launches for operands that do not fit into the device")
		return
	}
	n, transposed := expr.Resolve(n, false)
	dst = dst.read(transposed)
	p.budget = searchBudget
	switch {
	case streams && p.panel > 0 && n.Kind == expr.Factor && inPanels(p, dst, n):
	case p.largeNode(n) || p.large(dst):
		p.inBlocks(dst, n)
	case n.Kind == expr.Reduce:
		p.reduce(dst, n)
	case n.Kind == expr.Scan:
		p.scan(dst, n)
	case n.Kind == expr.Concat:
		p.concat(dst, n)
	case n.Kind == expr.Sort:
		p.sorted(dst, n)
	case n.Kind == expr.Factor:
		p.decompose(dst, n)
	case n.Kind == expr.Reshape:
		p.reshape(dst, n.Args[0])
	case n.Kind == expr.Sparse:
		p.densify(dst, n)
	case n.Kind == expr.SparseProduct:
		p.sparseProduct(dst, n)
	case n.Kind == expr.Softmax:
		if n.Hard {
			p.hardmax(dst, n)
		} else {
			p.softmax(dst, n)
		}
	default:
		if a, ok := p.findAnchor(n, false, dst.Rows, dst.Cols); ok && n.Type.Compute() == a.n.Type.Compute() && p.tail(n) && (a.n.Stack == nil || !dst.ColMajor) {
			p.product(dst, n, a)
		} else {
			p.mapped(dst, n)
		}
	}
}

// reshape computes n, row by row, into a result of another shape.
func (p *planner) reshape(dst Operand, n *expr.Node) {
	if dst.ColMajor || !dst.Contiguous() {
		p.evaluate(dst, p.leaf(p.reshaped(dst.Rows, dst.Cols, n)))
		return
	}
	dst.Layout = expr.Layout{Rows: n.Rows, Cols: n.Cols, Offset: dst.Offset, Stride: n.Cols}
	p.evaluate(dst, n)
}

// reshaped is what n is computed to, in another shape. A matrix with gaps, or by columns, which a rewritten expression may have in
// the place of what was computed, is copied.
func (p *planner) reshaped(rows, cols int, n *expr.Node) Operand {
	op := p.materialise(n)
	if op.ColMajor || !op.Contiguous() {
		c := p.newTemp(op.Type, op.Rows, op.Cols)
		p.evaluate(c, p.leaf(op))
		op = c
	}
	op.Layout = expr.Layout{Rows: rows, Cols: cols, Offset: op.Offset, Stride: cols}
	return op
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
	case expr.StackProduct:
		return seen{n, transposed}, !transposed
	case expr.Map, expr.Call:
		if n.Op == fuse.OpConvert && n.Args[0].Type.Compute() != n.Type.Compute() {
			return a, false // the kernel's own value is of the result's type
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
