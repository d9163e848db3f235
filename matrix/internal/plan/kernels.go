// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// mapped computes an element-wise tree in one pass.
func (p *planner) mapped(dst Operand, n *expr.Node) {
	transposed := seenTransposed(dst)
	b := p.newBuilder(dst, n.Type, transposed)
	b.halves = dst.Type == fuse.F16
	b.build(n, transposed)
	b.block = b.transposedLoads()
	t, d := b.result.Type, &p.Device.Device
	switch {
	case b.hazard():
		p.viaTemp(dst, n)
	case b.linear():
		b.flatten()
		b.result.Layout = flat(b.result.Layout)
		b.launch(kernels.Linear(b.cols, p.ends(b.result), t, d)) // what is left of the last vector is nobody's
	case b.unaligned():
		b.launch(kernels.Words(b.rows, b.cols, b.result.Offset, b.place(load{Operand: b.result}).Row, b.result.Type.Size()))
	case b.block:
		b.launch(kernels.Block(b.rows, b.cols, t, d))
	default:
		b.launch(kernels.Grid(b.rows, b.cols, t, d))
	}
}

// seenTransposed reports whether kernels see a result transposed: stored by columns, or a single column, whose elements then
// lie side by side in vectors. Packed results need neighbours in memory to be neighbours in a row.
func seenTransposed(op Operand) bool {
	if op.Type.Packed() {
		return op.ColMajor || op.Cols == 1 && op.Rows > 1 && op.Stride == 1
	}
	return op.Rows > 1 && (op.ColMajor || op.Cols == 1)
}

// transposedLoads reports whether operands stored the other way round are worth reading in blocks. To gpu/simd they are not where only the
// result is in vectors.
func (b *builder) transposedLoads() bool {
	return b.rows >= 4 && b.cols >= 4 && slices.ContainsFunc(b.loads, func(op load) bool {
		at := b.place(op)
		return !op.indexed && at.Row == 1 && at.Col > 1 && (!gpu.RunsSIMD || b.p.Device.SIMD == nil || b.storeClass() != fuse.Vector ||
			at.Col%4 == 0 && at.Offset%4 == 0 && b.p.vectors(op.Operand))
	})
}

// product computes a matrix product, or those of a stack, with an element-wise tail.
func (p *planner) product(dst Operand, n *expr.Node, anchor seen) {
	stack := anchor.n.Stack
	transposed := seenTransposed(dst) && stack == nil
	b := p.newBuilder(dst, n.Type, transposed)
	b.anchor = seen{anchor.n, anchor.transposed != transposed}
	if b.unaligned() {
		p.viaTemp(dst, n)
		return
	}
	// Of a transposed product the factors are the transposes in the other order.
	left, right := b.anchor.n.Args[0], b.anchor.n.Args[1]
	if b.anchor.transposed {
		left, right = right, left
	}
	x, y := p.factor(left, b.anchor.transposed), p.factor(right, b.anchor.transposed)
	if stack != nil {
		x, y = p.inRows(x, stack), p.inRows(y, stack)
	}
	b.halves = dst.Type == fuse.F16
	b.build(n, transposed)
	switch {
	case b.hazard() || x.Mem == dst.Mem || y.Mem == dst.Mem:
		p.viaTemp(dst, n)
	case stack != nil:
		p.multiplyStack(b, anchor.n, x, y)
	default:
		p.multiply(b, x, y)
	}
}

// factor resolves a product's operand to a matrix, with the transposes above it applied. Of a matrix of small numbers that is converted
// to larger ones it is that matrix: kernels convert what they load.
func (p *planner) factor(n *expr.Node, transposed bool) Operand {
	n, transposed = expr.Resolve(n, transposed)
	if n.Kind == expr.Map && n.Op == fuse.OpConvert && n.Args[0].Type.Packed() {
		if op, ok := p.widened(n, transposed); ok {
			return op
		}
	}
	return p.materialise(n).read(transposed)
}

// multiply appends the launches of a product.
func (p *planner) multiply(b *builder, x, y Operand) {
	request := kernels.Request{
		M: b.rows, N: b.cols, K: x.Cols, Type: b.f.Type, Tail: gpu.RunsNative && b.tail(), A: p.described(x), B: p.described(y), Device: &p.Device.Device,
	}
	best, err := request.Pick()
	if err != nil {
		p.tooMuch("Mul", err.Error())
		return
	}
	if gpu.RunsSIMD && best.Pack != nil {
		y = p.packed(best, y)
	}
	first, parts := b, Operand{}
	if best.Sum != nil { // parts, or a product without its function, are left in a temporary
		parts = p.newTemp(b.f.Type, best.Parts*b.rows, best.Width)
		first = p.newBuilder(parts, parts.Type, false)
		first.own()
	}
	s := first.factored(best, x, y)
	if best.Sooner != nil {
		s.Sooner = first.factored(best.Sooner, x, y)
	}
	p.plan.Steps = append(p.plan.Steps, s)
	if best.Sum != nil {
		b.launch(best.Sum, bindingOf(parts, buffer.Reads))
	}
}

// tail reports whether a product is not just stored, row by row, as the numbers it is computed in.
func (b *builder) tail() bool {
	at := b.place(load{Operand: b.result})
	return len(b.f.Code) > 1 || b.result.Type != b.f.Type || b.cols > 1 && at.Col != 1 || b.rows > 1 && at.Row < b.cols
}

// packed copies a product's right factor for its kernel.
func (p *planner) packed(best *kernels.Product, y Operand) Operand {
	panels := p.newTemp(best.B.Type, best.Packed[0], best.Packed[1])
	b := p.newBuilder(panels, panels.Type, false)
	b.rows, b.cols = y.Rows, y.Cols
	b.build(p.leaf(y), false)
	b.launch(best.Pack)
	return panels
}

// multiplyStack appends the launch that computes all products of a stack, or those of each of them.
func (p *planner) multiplyStack(b *builder, n *expr.Node, x, y Operand) {
	s := n.Stack
	request := kernels.Request{
		M: n.Rows / s.Count, N: n.Cols, K: s.Inner, Stack: s.Count, Type: b.f.Type, Tail: gpu.RunsNative && b.tail(), Device: &p.Device.Device,
		A: p.stacked(n, 0, x, n.Rows/s.Count, s.Inner), B: p.stacked(n, 1, y, s.Inner, n.Cols),
	}
	best, err := request.Pick()
	if err != nil {
		p.tooMuch("MulStack", err.Error())
		return
	}
	step := b.factored(best, x, y)
	if best.Sooner != nil {
		step.Sooner = b.factored(best.Sooner, x, y)
	}
	p.plan.Steps = append(p.plan.Steps, step)
}

// inRows copies an operand whose rows are the matrices of a stack if it is stored by columns.
func (p *planner) inRows(op Operand, s *expr.Stack) Operand {
	if !op.ColMajor || op.Rows != s.Count {
		return op
	}
	c := p.newTemp(op.Type, op.Rows, op.Cols)
	p.evaluate(c, p.leaf(op))
	return c
}

// stacked describes an operand of a stack's product, whose matrices are read as rows x cols.
func (p *planner) stacked(n *expr.Node, i int, op Operand, rows, cols int) kernels.Operand {
	o, turned := p.described(op), n.Stack.Turned[i]
	if turned {
		rows, cols = cols, rows
	}
	switch {
	case op.Rows == n.Stack.Count && rows != 1: // each row is a matrix
		o.Step, o.Stride = op.Stride, cols
	case op.ColMajor:
		o.Step = rows
	default:
		o.Step = rows * op.Stride
	}
	o.ColMajor = o.ColMajor != turned
	return o
}

// described describes a factor to those who choose kernels. A row whose elements lie side by side, such as a transposed column, is one that
// is stored by rows.
func (p *planner) described(op Operand) kernels.Operand {
	d := kernels.Operand{
		Type: op.Type, ColMajor: op.ColMajor, Offset: op.Offset, Stride: op.Stride, Vectors: p.vectors(op),
	}
	if op.ColMajor && op.Rows == 1 && op.Stride == 1 {
		d.ColMajor, d.Stride = false, op.Cols
	}
	return d
}

// factored is the step that multiplies x and y.
func (b *builder) factored(c *kernels.Product, x, y Operand) *Step {
	own := []Binding{bindingOf(x, buffer.Reads, kernels.ProductA), bindingOf(y, buffer.Reads, kernels.ProductB)}
	own[0].Unit, own[1].Unit = c.A.Unit(), c.B.Unit()
	return b.step(c.First, own...)
}

// softmax computes the softmax of rows.
func (p *planner) softmax(dst Operand, n *expr.Node) {
	child := p.head(n.Args[0])
	b := p.newBuilder(dst, fuse.F32, false)
	b.build(child.n, child.transposed)
	switch {
	case gpu.RunsSIMD && kernels.SoftmaxApart(dst.Rows, dst.Cols, &p.Device.Device) && dst.Type == fuse.F32 && n.Args[0].Type == fuse.F32 && b.scattered():
		p.softmaxApart(dst, n, child)
	case b.hazard() || b.unaligned():
		p.viaTemp(dst, n)
	default:
		vectors := b.result.Type == fuse.F32 && b.storeClass() != fuse.Gather
		b.launch(kernels.Softmax(b.rows, b.cols, n.Log, vectors, &p.Device.Device))
	}
}

// softmaxApart computes the largest elements, the sums and the quotients one after the other. Where neighbours of a row lie far apart,
// reductions read them in the order of the memory, and the kernel of softmax, which goes along rows, does not.
func (p *planner) softmaxApart(dst Operand, n *expr.Node, child seen) {
	const op = "Softmax"
	a := child.n
	if child.transposed {
		a = expr.NewTranspose(op, a)
	}
	along := func(red fuse.Reduction, x *expr.Node) *expr.Node {
		return p.leaf(p.materialise(expr.NewReduction(op, red, fuse.AxisRows, 0, x)))
	}
	less := expr.NewMap(op, fuse.OpSub, a, along(fuse.ReduceMax, a))
	powers := expr.NewMap(op, fuse.OpExp, less)
	sum := along(fuse.ReduceSum, powers)
	if n.Log {
		p.evaluate(dst, expr.NewMap(op, fuse.OpSub, less, expr.NewMap(op, fuse.OpLog, sum)))
	} else {
		p.evaluate(dst, expr.NewMap(op, fuse.OpDiv, powers, sum))
	}
}

// head returns what a reduction or a softmax reads: an element-wise tree, or a matrix with the value of anything else. Where the
// turns of an invocation's loops are limited, its own loop takes all that it may.
func (p *planner) head(n *expr.Node) seen {
	n, transposed := expr.Resolve(n, false)
	tree := elementwise(n)
	if !tree && n.Kind != expr.Leaf || tree && p.Device.Software && p.measureAnew(n).loops {
		n = p.leaf(p.materialise(n))
	}
	return seen{n, transposed}
}
