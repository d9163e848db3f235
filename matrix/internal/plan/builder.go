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
	anchor     seen // the node whose value the kernel itself computes: OpAcc
	loads      []load
	numbers    []scalar
	done       map[seen]uint8 // the values of nodes that are computed: shared ones are computed once
	single     bool           // results are stored one by one
	block      bool           // operands stored the other way round may be read as blocks
	placed     bool           // values depend on their row and column
	halves     bool           // the root's value is stored as float16, and rounded then
}

// load is an operand as the kernel sees it.
type load struct {
	Operand
	indexed bool // at rows and columns that are computed
}

// scalar is one of the expression's numbers or, with Index -1, a constant of the plan's.
type scalar struct {
	index int
	bits  uint32
	typ   fuse.Type
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
	switch {
	case seen{n, transposed} == b.anchor:
		return b.own()
	case n.Kind == expr.Scalar:
		return b.emitNumber(n)
	case n.Kind == expr.Index:
		return b.emitIndex(n, transposed)
	case !elementwise(n) || n != b.root && b.p.cuts[n]:
		return b.emitLoad(b.p.materialise(n), transposed)
	case n.Kind == expr.Gather:
		return b.emitGather(n, transposed)
	}
	return b.emitOp(n, transposed)
}

// elementwise reports whether a node is part of the function that computes a tree.
func elementwise(n *expr.Node) bool {
	return n.Kind == expr.Map || n.Kind == expr.Call || n.Kind == expr.Gather || n.Kind == expr.Index || n.Kind == expr.Random
}

// emitIndex computes the number of a row or a column.
func (b *builder) emitIndex(n *expr.Node, transposed bool) uint8 {
	op, count := fuse.OpRow, n.Rows
	if n.Axis == fuse.AxisCols {
		op, count = fuse.OpCol, n.Cols
	}
	first := func() uint8 { return b.emitNumber(fill(Operand{Type: fuse.I32}, n.Value)) }
	if count == 1 { // it may be stretched
		return first()
	}
	if transposed {
		op ^= fuse.OpRow ^ fuse.OpCol
	}
	b.placed = true
	at := b.emit(op, 0, 0, 0, fuse.I32)
	if n.Value == 0 {
		return at
	}
	return b.emit(fuse.OpAdd, at, first(), 0, fuse.I32)
}

// emitGather reads an operand where two values say.
func (b *builder) emitGather(n *expr.Node, transposed bool) uint8 {
	rows, cols := b.value(n.Args[1], transposed), b.value(n.Args[2], transposed)
	from, turned := expr.Resolve(n.Args[0], false)
	op := b.apart(b.p.materialise(from)).read(turned)
	return b.emit(fuse.OpAt, b.load(load{op, true}), rows, cols, n.Type)
}

func (b *builder) emitOp(n *expr.Node, transposed bool) uint8 {
	args := make([]uint8, len(n.Args), max(len(n.Args), 3))
	for i, a := range n.Args {
		args[i] = b.value(a, transposed)
	}
	switch {
	case n.Kind == expr.Call:
		return b.emitCall(n, args)
	case n.Kind == expr.Random:
		first := uint8(len(b.f.Code))
		for i, a := range args { // next to each other, where the instruction looks for them
			b.emit(fuse.OpCopy, a, 0, 0, n.Args[i].Type)
		}
		return b.emit(fuse.OpRandom, first, 0, 0, n.Type)
	case n.Op == fuse.OpConvert && n.Type.Compute() == n.Args[0].Type.Compute() && (!n.Type.Packed() || n.Type == fuse.F16 && (b.halves && n == b.root || n.Type == n.Args[0].Type)):
		return args[0]
	case n.Op == fuse.OpConvert:
		return b.emit(n.Op, args[0], uint8(n.Type), 0, n.Type)
	}
	args = args[:3]
	return b.emit(n.Op, args[0], args[1], args[2], n.Type)
}

// emit appends an instruction. Its value is computed in type t.
func (b *builder) emit(op fuse.Op, x, y, z uint8, t fuse.Type) uint8 {
	b.f.Code = append(b.f.Code, fuse.Instr{Op: op, X: x, Y: y, Z: z, Type: t.Compute()})
	return uint8(len(b.f.Code) - 1)
}

// own is the kernel's own value.
func (b *builder) own() uint8 { return b.emit(fuse.OpAcc, 0, 0, 0, b.f.Type) }

// emitNumber reads a scalar. Those of a plan itself are constants, the expression's may be others the next time.
func (b *builder) emitNumber(n *expr.Node) uint8 {
	s := scalar{-1, n.Bits(), n.Type.Compute()}
	if n.Source == nil {
		s.index = slices.Index(b.p.Numbers, s.bits)
	}
	at := slices.Index(b.numbers, s)
	if at >= 0 { // the kernel has it already
		return uint8(slices.IndexFunc(b.f.Code, func(i fuse.Instr) bool { return i.Op == fuse.OpScalar && int(i.X) == at }))
	}
	b.numbers = append(b.numbers, s)
	return b.emit(fuse.OpScalar, uint8(len(b.numbers)-1), 0, 0, n.Type)
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
	op = b.apart(op).read(transposed)
	op.Layout = op.Normal()
	return b.emit(fuse.OpLoad, b.load(load{op, false}), 0, 0, op.Type)
}

// apart copies an operand that is of another type than the result in whose memory it lies: a binding has one type.
func (b *builder) apart(op Operand) Operand {
	if op.Type == b.result.Type || op.Mem != b.result.Mem {
		return op
	}
	c := b.p.newTemp(op.Type, op.Rows, op.Cols)
	b.p.evaluate(c, b.p.leaf(op))
	return c
}

// load returns the number of an operand.
func (b *builder) load(l load) uint8 {
	at := slices.Index(b.loads, l)
	if at < 0 {
		at = len(b.loads)
		b.loads = append(b.loads, l)
	}
	return uint8(at)
}

// emitCall copies the arguments next to each other, where the generated call looks for them.
func (b *builder) emitCall(n *expr.Node, args []uint8) uint8 {
	at := slices.IndexFunc(b.f.Calls, func(d fuse.Call) bool { return d.WGSL == n.Call.WGSL })
	if at < 0 {
		at = len(b.f.Calls)
		b.f.Calls = append(b.f.Calls, *n.Call)
	}
	first := uint8(len(b.f.Code))
	for _, a := range args {
		b.emit(fuse.OpCopy, a, 0, 0, n.Type)
	}
	return b.emit(fuse.OpCall, uint8(at), first, 0, n.Type)
}
