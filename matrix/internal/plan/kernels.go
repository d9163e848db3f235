// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/elementwise"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/product"
	"github.com/sublet-gpu/sublet/internal/shaders/softmax"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// mapped computes an element-wise tree in one pass.
func (p *planner) mapped(dst Operand, n *expr.Node, transposed bool) error {
	seen := seenTransposed(dst)
	b := p.newBuilder(dst, n.Type, seen)
	if err := b.build(n, transposed != seen); err != nil {
		return err
	}
	if b.hazard() {
		return p.viaTemp(dst, n, func(op Operand) error { return p.mapped(op, n, transposed) })
	}
	b.block = b.transposedLoads()
	if err := b.bind(p.Device.slots(0)); err != nil {
		return err
	}
	form := b.form()
	if form == elementwise.Linear {
		b.flatten()
		if err := b.bind(p.Device.slots(0)); err != nil {
			return err
		}
	}
	launch := elementwise.NewPlan(form, b.rows, b.cols, place(b.store, b.rows, b.cols).At(0), p.Device.Software)
	spec := launch.Spec.Key()
	b.launch(kernel{"elementwise", append([]byte{'e'}, spec[:]...), func(f *fuse.Func) (shaders.Program, error) {
		return elementwise.Build(launch.Spec, f)
	}}, launch.Groups, words(launch.Shape[:]))
	return nil
}

// seenTransposed reports whether kernels see a result transposed: stored by columns, or a single column, whose elements then
// lie side by side in vectors. Binary16 results need neighbours in memory to be neighbours in a row.
func seenTransposed(op Operand) bool {
	if op.Type == fuse.F16 {
		return op.Order == expr.ColMajorOrder || op.Cols == 1 && op.Rows > 1 && op.Stride == 1
	}
	return op.Rows > 1 && (op.Order == expr.ColMajorOrder || op.Cols == 1)
}

// transposedLoads reports whether operands stored the other way round are worth reading in blocks.
func (b *builder) transposedLoads() bool {
	if b.rows < 4 || b.cols < 4 {
		return false
	}
	for _, op := range b.loads {
		if at := place(op.Layout, b.rows, b.cols); at.Row == 1 && at.Col > 1 && at.Col%4 == 0 && at.Offset%4 == 0 && b.p.vectors(op) {
			return true
		}
	}
	return false
}

func (b *builder) form() elementwise.Form {
	switch {
	case b.words():
		return elementwise.Words
	case b.linear():
		return elementwise.Linear
	case b.block:
		return elementwise.Block
	}
	return elementwise.Grid
}

// words reports whether the result is binary16 that must be written word by word, each element computed on its own.
func (b *builder) words() bool {
	return b.f.Store.Type == fuse.F16 && b.f.Store.Class != fuse.Vector && !b.linear()
}

// product computes a matrix product with an element-wise tail.
func (p *planner) product(dst Operand, n *expr.Node, transposed bool, a anchor) error {
	seen := seenTransposed(dst)
	b := p.newBuilder(dst, n.Type, seen)
	b.anchor = anchor{a.n, a.transposed != seen}
	again := func(op Operand) error { return p.product(op, n, transposed, a) }
	if dst.Type == fuse.F16 && b.storeClass() != fuse.Vector {
		return p.viaTemp(dst, n, again)
	}
	x, y, err := p.factors(b.anchor)
	if err != nil {
		return err
	}
	if err := b.build(n, transposed != seen); err != nil {
		return err
	}
	if b.hazard() || x.Mem == dst.Mem || y.Mem == dst.Mem {
		return p.viaTemp(dst, n, again)
	}
	if err := b.bind(p.Device.slots(2)); err != nil {
		return err
	}
	return p.multiply(b, x, y)
}

// factors returns the operands of the product that the kernel computes: of a transposed one, the transposes in the other
// order.
func (p *planner) factors(a anchor) (x, y Operand, err error) {
	left, right := a.n.Args[0], a.n.Args[1]
	if a.transposed {
		left, right = right, left
	}
	if x, err = p.factor(left, a.transposed); err == nil {
		y, err = p.factor(right, a.transposed)
	}
	return x, y, err
}

// multiply appends the passes of a product, as one step.
func (p *planner) multiply(b *builder, x, y Operand) error {
	request := product.Request{
		M: b.rows, N: b.cols, K: x.Cols, A: p.described(x), B: p.described(y), Compute: b.f.Type, Device: p.Device.Device,
	}
	best, err := product.Pick(&request)
	if err != nil {
		return expr.Fail("Mul", expr.ErrLimit, err.Error())
	}
	s := b.step(kernel{name: "product"}, [3]uint32{}, nil, x.window(), y.window())
	s.Product = &Product{Request: request, Best: best}
	p.plan.Steps = append(p.plan.Steps, s)
	return nil
}

// described describes a factor to those who choose kernels. Its offset is that in the binding.
func (p *planner) described(op Operand) product.Operand {
	shift := op.window().Shift(p.plan.Memories[op.Mem], p.Device.Binding)
	return product.Operand{
		Type: op.Type, ColMajor: op.Order == expr.ColMajorOrder, Offset: op.Offset - shift, Stride: op.Stride, Scalars: !p.vectors(op),
	}
}

// window is the memory from the operand's first element to its last.
func (op Operand) window() Window {
	return Window{Mem: op.Mem, Lo: op.Offset, Hi: op.Offset + op.Span(), Size: op.Type.Size()}
}

// softmax computes the softmax of rows; of columns where the node stands under a transpose.
func (p *planner) softmax(dst Operand, n *expr.Node, transposed bool) error {
	child, childTransposed, err := p.head(n.Args[0])
	if err != nil {
		return err
	}
	b := p.newBuilder(dst, fuse.F32, transposed)
	if err := b.build(child, childTransposed); err != nil {
		return err
	}
	unaligned := dst.Type == fuse.F16 && b.storeClass() != fuse.Vector
	if b.hazard() || unaligned {
		return p.viaTemp(dst, n, func(op Operand) error { return p.softmax(op, n, transposed) })
	}
	if err := b.bind(p.Device.slots(0)); err != nil {
		return err
	}
	launch := softmax.NewPlan(b.rows, b.cols, n.Log, p.Device.Software)
	spec := launch.Spec
	key := []byte{'s', flag(spec.Group), flag(spec.Log), byte(spec.Size / 8)}
	b.launch(kernel{"softmax", key, func(f *fuse.Func) (shaders.Program, error) {
		return softmax.Build(spec, f)
	}}, launch.Groups, words(launch.Shape[:]))
	return nil
}

// head returns what a reduction or a softmax reads: an element-wise tree, or a matrix with the value of anything else.
func (p *planner) head(n *expr.Node) (*expr.Node, bool, error) {
	n, transposed := expr.Resolve(n, false)
	if n.Kind == expr.Map || n.Kind == expr.Call || n.Kind == expr.Leaf {
		return n, transposed, nil
	}
	op, err := p.materialise(n)
	return p.leaf(op), transposed, err
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// identity is the result of folding nothing.
func identity(red fuse.Reduction, t fuse.Type) uint32 {
	float := t == fuse.F32
	switch {
	case red == fuse.ReduceSum:
		return 0
	case red == fuse.ReduceProd && float:
		return math.Float32bits(1)
	case red == fuse.ReduceProd:
		return 1
	case float && red == fuse.ReduceMax:
		return math.Float32bits(float32(math.Inf(-1)))
	case float:
		return math.Float32bits(float32(math.Inf(1)))
	case t == fuse.I32 && red == fuse.ReduceMax:
		return 1 << 31
	case t == fuse.I32:
		return math.MaxInt32
	case red == fuse.ReduceMin:
		return math.MaxUint32
	}
	return 0
}
