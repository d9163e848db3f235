// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// builder turns the element-wise part of an expression into one fuse.Func: the tail of a product, the head of a
// reduction, or a whole map. Everything else it meets is evaluated first, into temporaries that it reads.
//
// Kernels see their result row by row. Where the result is stored by columns the expression is read transposed; the transposed of
// a node counts the transposes above it.
type builder struct {
	p          *planner
	f          *fuse.Func
	rows, cols int // as the kernel sees the result
	root       *expr.Node
	anchor     anchor    // the node whose value the kernel itself computes: OpAcc
	loads      []Operand // as the kernel sees them
	numbers    []Number
	done       []doneNode  // values computed already: shared nodes are computed once
	single     bool        // results are stored one by one
	block      bool        // operands stored the other way round may be read as blocks
	store      expr.Layout // of the result, as the kernel sees it
	result     Operand
	slots      []Operand // of each slot one operand in its memory
}

type doneNode struct {
	n          *expr.Node
	transposed bool
	at         uint8
}

// newBuilder starts the function of a kernel with the given result. compute is the type it is computed in.
func (p *planner) newBuilder(result Operand, compute fuse.Type, transposed bool) *builder {
	b := &builder{p: p, f: &fuse.Func{Type: compute.Compute()}, result: result, store: result.Layout}
	if transposed {
		b.store = b.store.T()
	}
	b.store = b.store.Normal()
	b.rows, b.cols = b.store.Rows, b.store.Cols
	return b
}

// build compiles the tree. On success b.f, b.loads and b.numbers describe the function except for classes and slots,
// which [builder.bind] chooses.
func (b *builder) build(n *expr.Node, transposed bool) error {
	b.root, transposed = expr.Resolve(n, transposed)
	_, err := b.value(b.root, transposed) // the last instruction is the root's
	return err
}

// value emits the code of a node and returns the number of its value.
func (b *builder) value(n *expr.Node, transposed bool) (uint8, error) {
	n, transposed = expr.Resolve(n, transposed)
	for _, d := range b.done {
		if d.n == n && d.transposed == transposed {
			return d.at, nil
		}
	}
	at, err := b.emitNode(n, transposed)
	if err == nil {
		b.done = append(b.done, doneNode{n, transposed, at})
	}
	return at, err
}

func (b *builder) emitNode(n *expr.Node, transposed bool) (uint8, error) {
	conversion := n.Kind == expr.Map && n.Op == fuse.OpAcc
	switch {
	case n == b.anchor.n && transposed == b.anchor.transposed:
		return b.emit(fuse.Instr{Op: fuse.OpAcc}), nil
	case n.Kind == expr.Scalar:
		return b.emitNumber(n), nil
	case conversion && n.Type.Compute() == b.f.Type && n.Args[0].Type.Compute() == b.f.Type:
		return b.value(n.Args[0], transposed)
	case conversion && n.Type.Compute() == b.f.Type: // reads a matrix of the other type
		n, transposed = expr.Resolve(n.Args[0], transposed)
	case !conversion && (n.Kind == expr.Map || n.Kind == expr.Call) && (n == b.root || !b.p.cuts[n]):
		return b.emitOp(n, transposed)
	}
	op, err := b.p.materialise(n)
	if err != nil {
		return 0, err
	}
	return b.emitLoad(op, transposed)
}

func (b *builder) emitOp(n *expr.Node, transposed bool) (uint8, error) {
	var vals [8]uint8
	args := vals[:0]
	for _, a := range n.Args {
		v, err := b.value(a, transposed)
		if err != nil {
			return 0, err
		}
		args = append(args, v)
	}
	if n.Kind == expr.Call {
		return b.emitCall(n.Call, args), nil
	}
	i := fuse.Instr{Op: n.Op}
	for k, to := range []*uint8{&i.X, &i.Y, &i.Z} {
		if k < len(args) {
			*to = args[k]
		}
	}
	return b.emit(i), nil
}

func (b *builder) emit(i fuse.Instr) uint8 {
	b.f.Code = append(b.f.Code, i)
	return uint8(len(b.f.Code) - 1)
}

// emitNumber reads a scalar. Those of a plan itself are constants, the expression's may be others the next time.
func (b *builder) emitNumber(n *expr.Node) uint8 {
	number := Number{Index: -1, Bits: n.Bits}
	if n.Source == nil {
		if at, ok := b.p.Number(n.Bits); ok {
			number = Number{Index: at}
		}
	}
	for k, s := range b.numbers {
		if s == number {
			return b.emit(fuse.Instr{Op: fuse.OpScalar, X: uint8(k)})
		}
	}
	b.numbers = append(b.numbers, number)
	return b.emit(fuse.Instr{Op: fuse.OpScalar, X: uint8(len(b.numbers) - 1)})
}

// constant is the Source of a scalar that is the plan's own.
type constant struct{}

// fill is a matrix of one number of the plan's own.
func fill(op Operand, bits uint32) *expr.Node {
	n := expr.Number(op.Type, op.Rows, op.Cols, bits)
	n.Source = constant{}
	return n
}

func (b *builder) emitLoad(op Operand, transposed bool) (uint8, error) {
	if op.Type != b.result.Type && op.Mem == b.result.Mem { // a binding has one type
		var err error
		if op, err = b.p.copied(op); err != nil {
			return 0, err
		}
	}
	if transposed {
		op.Layout = op.T()
	}
	op.Layout = op.Normal()
	for k, o := range b.loads {
		if o == op {
			return b.emit(fuse.Instr{Op: fuse.OpLoad, X: uint8(k)}), nil
		}
	}
	b.loads = append(b.loads, op)
	return b.emit(fuse.Instr{Op: fuse.OpLoad, X: uint8(len(b.loads) - 1)}), nil
}

// copied makes a temporary copy.
func (p *planner) copied(op Operand) (Operand, error) {
	c, err := p.newTemp(op.Type, op.Rows, op.Cols)
	if err != nil {
		return c, err
	}
	return c, p.mapped(c, p.leaf(op), false)
}

// emitCall copies the arguments next to each other, where the generated call looks for them.
func (b *builder) emitCall(c *fuse.Call, args []uint8) uint8 {
	k := -1
	for i, d := range b.f.Calls {
		if d.WGSL == c.WGSL {
			k = i
		}
	}
	if k < 0 {
		k = len(b.f.Calls)
		b.f.Calls = append(b.f.Calls, *c)
	}
	first := uint8(len(b.f.Code))
	for _, a := range args {
		b.emit(fuse.Instr{Op: fuse.OpCopy, X: a})
	}
	return b.emit(fuse.Instr{Op: fuse.OpCall, X: uint8(k), Y: first})
}
