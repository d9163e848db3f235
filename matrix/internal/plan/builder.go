// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// builder turns the element-wise part of an expression into one fuse.Func: the tail of a product, the head of a
// reduction, or a whole map. Everything else it meets is evaluated first, into temporaries that it reads.
//
// Kernels see their result row by row. Where the result is stored by columns the expression is read transposed.
type builder struct {
	p          *planner
	f          *fuse.Func
	result     Operand // as the kernel sees it
	rows, cols int     // what the kernel goes over
	root       *expr.Node
	anchor     seen      // the node whose value the kernel itself computes: OpAcc
	loads      []Operand // as the kernel sees them
	numbers    []scalar
	done       map[seen]uint8 // the values of nodes that are computed: shared ones are computed once
	single     bool           // results are stored one by one
	block      bool           // operands stored the other way round may be read as blocks
}

// scalar is one of the expression's numbers or, with Index -1, a constant of the plan's.
type scalar struct {
	index int
	bits  uint32
}

// newBuilder starts the function of a kernel with the given result. compute is the type it is computed in; transposed says that
// the kernel sees the result so.
func (p *planner) newBuilder(result Operand, compute fuse.Type, transposed bool) *builder {
	result = result.read(transposed)
	result.Layout = result.Normal()
	return &builder{
		p: p, f: &fuse.Func{Type: compute.Compute()}, result: result, rows: result.Rows, cols: result.Cols, done: map[seen]uint8{},
	}
}

// build compiles the tree.
func (b *builder) build(n *expr.Node, transposed bool) {
	b.root, transposed = expr.Resolve(n, transposed)
	b.value(b.root, transposed) // the last instruction is the root's
}

// value emits the code of a node and returns the number of its value.
func (b *builder) value(n *expr.Node, transposed bool) uint8 {
	n, transposed = expr.Resolve(n, transposed)
	at, ok := b.done[seen{n, transposed}]
	if !ok {
		at = b.emitNode(n, transposed)
		b.done[seen{n, transposed}] = at
	}
	return at
}

func (b *builder) emitNode(n *expr.Node, transposed bool) uint8 {
	conversion := n.Kind == expr.Map && n.Op == fuse.OpAcc
	switch {
	case seen{n, transposed} == b.anchor:
		return b.emit(fuse.OpAcc, 0, 0, 0)
	case n.Kind == expr.Scalar:
		return b.emitNumber(n)
	case conversion && n.Type.Compute() == b.f.Type && n.Args[0].Type.Compute() == b.f.Type:
		return b.value(n.Args[0], transposed)
	case conversion && n.Type.Compute() == b.f.Type: // reads a matrix of the other type
		n, transposed = expr.Resolve(n.Args[0], transposed)
	case !conversion && (n.Kind == expr.Map || n.Kind == expr.Call) && (n == b.root || !b.p.cuts[n]):
		return b.emitOp(n, transposed)
	}
	return b.emitLoad(b.p.materialise(n), transposed)
}

func (b *builder) emitOp(n *expr.Node, transposed bool) uint8 {
	args := make([]uint8, len(n.Args), max(len(n.Args), 3))
	for i, a := range n.Args {
		args[i] = b.value(a, transposed)
	}
	if n.Kind == expr.Call {
		return b.emitCall(n.Call, args)
	}
	args = args[:3]
	return b.emit(n.Op, args[0], args[1], args[2])
}

// emit appends an instruction.
func (b *builder) emit(op fuse.Op, x, y, z uint8) uint8 {
	b.f.Code = append(b.f.Code, fuse.Instr{Op: op, X: x, Y: y, Z: z})
	return uint8(len(b.f.Code) - 1)
}

// emitNumber reads a scalar. Those of a plan itself are constants, the expression's may be others the next time.
func (b *builder) emitNumber(n *expr.Node) uint8 {
	s := scalar{-1, n.Bits()}
	if n.Source == nil {
		s.index = slices.Index(b.p.Numbers, s.bits)
	}
	at := slices.Index(b.numbers, s)
	if at < 0 {
		at = len(b.numbers)
		b.numbers = append(b.numbers, s)
	}
	return b.emit(fuse.OpScalar, uint8(at), 0, 0)
}

// constant is the Source of a scalar that is the plan's own.
type constant struct{}

// fill is a matrix of one number of the plan's own.
func fill(op Operand, v float64) *expr.Node {
	n := expr.Number(op.Type, op.Rows, op.Cols, v)
	n.Source = constant{}
	return n
}

func (b *builder) emitLoad(op Operand, transposed bool) uint8 {
	if op.Type != b.result.Type && op.Mem == b.result.Mem { // a binding has one type
		c := b.p.newTemp(op.Type, op.Rows, op.Cols)
		b.p.evaluate(c, b.p.leaf(op))
		op = c
	}
	op = op.read(transposed)
	op.Layout = op.Normal()
	at := slices.Index(b.loads, op)
	if at < 0 {
		at = len(b.loads)
		b.loads = append(b.loads, op)
	}
	return b.emit(fuse.OpLoad, uint8(at), 0, 0)
}

// emitCall copies the arguments next to each other, where the generated call looks for them.
func (b *builder) emitCall(c *fuse.Call, args []uint8) uint8 {
	at := slices.IndexFunc(b.f.Calls, func(d fuse.Call) bool { return d.WGSL == c.WGSL })
	if at < 0 {
		at = len(b.f.Calls)
		b.f.Calls = append(b.f.Calls, *c)
	}
	first := uint8(len(b.f.Code))
	for _, a := range args {
		b.emit(fuse.OpCopy, a, 0, 0)
	}
	return b.emit(fuse.OpCall, uint8(at), first, 0)
}
