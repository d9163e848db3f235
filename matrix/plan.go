// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// builder turns the element-wise part of an expression into one fuse.Func: the tail of a product, the head of a
// reduction, or a whole map. Everything else it meets is evaluated first, into temporaries that it reads.
//
// Kernels see their result row by row. Where the result is stored by columns, flip is set and the expression is read
// transposed; flip of a node counts the transposes above it.
type builder struct {
	run        *run
	f          fuse.Func
	rows, cols int // as the kernel sees the result
	root       *node
	host       host // the node whose value the kernel itself computes: OpAcc
	loads      []load
	scalars    []uint32
	done       []doneNode // values computed already: shared nodes are computed once
	single     bool       // results are stored one by one
	block      bool       // crossed operands may be read as blocks
	store      layout     // of the result, as the kernel sees it
	result     *Any
}

// load is an operand of the kernel.
type load struct {
	m *Any
	l layout // as the kernel sees it
}

type doneNode struct {
	n    *node
	flip bool
	at   uint8
}

// resolve strips transposes.
func resolve(n *node, flip bool) (*node, bool) {
	for n.kind == kindT {
		n, flip = n.args[0], !flip
	}
	return n, flip
}

// findHost looks for a product that can take the rest of the tree as its tail: one of the result's size.
func (r *run) findHost(n *node, flip bool, rows, cols int) (h host, ok bool) {
	n, flip = resolve(n, flip)
	height, width := n.rows, n.cols
	if flip {
		height, width = width, height
	}
	r.budget--
	if height != rows || width != cols || r.budget < 0 {
		return h, false
	}
	switch n.kind {
	case kindProduct:
		return host{n, flip}, true
	case kindMap, kindCall:
		if n.op == fuse.OpAcc && n.args[0].t.Compute() != n.t.Compute() {
			return h, false // a conversion reads memory
		}
		for _, a := range n.args {
			if r.cut(a) {
				continue
			}
			if h, ok = r.findHost(a, flip, rows, cols); ok {
				return h, true
			}
		}
	}
	return h, false
}

// hostBudget bounds the search for a host; a product that it does not find is evaluated by itself.
const hostBudget = 256

// newBuilder starts the function of a kernel whose result is m. compute is the type it is computed in.
func (r *run) newBuilder(m *Any, compute fuse.Type, flip bool) *builder {
	b := &builder{run: r, result: m, store: m.layout}
	if flip {
		b.store = b.store.t()
	}
	b.store = b.store.normal()
	b.rows, b.cols = b.store.rows, b.store.cols
	b.f.Type = compute.Compute()
	return b
}

// build compiles the tree. On success b.f, b.loads and b.scalars describe the function except for classes and slots,
// which [builder.bind] chooses.
func (b *builder) build(n *node, flip bool) error {
	b.root, flip = resolve(n, flip)
	_, err := b.value(b.root, flip) // the last instruction is the root's
	return err
}

// value emits the code of a node and returns the number of its value.
func (b *builder) value(n *node, flip bool) (uint8, error) {
	n, flip = resolve(n, flip)
	for _, d := range b.done {
		if d.n == n && d.flip == flip {
			return d.at, nil
		}
	}
	at, err := b.emitNode(n, flip)
	if err == nil {
		b.done = append(b.done, doneNode{n, flip, at})
	}
	return at, err
}

func (b *builder) emitNode(n *node, flip bool) (uint8, error) {
	switch {
	case n == b.host.n && flip == b.host.flip:
		return b.emit(fuse.Instr{Op: fuse.OpAcc}), nil
	case n.kind == kindScalar:
		return b.emitScalar(n.bits), nil
	case n.kind == kindLeaf:
		return b.emitLeaf(n, flip)
	case n.kind == kindMap && n.op == fuse.OpAcc && n.t.Compute() != b.f.Type,
		n.kind == kindMap && n.op == fuse.OpAcc && n.args[0].t.Compute() != b.f.Type:
		return b.emitConversion(n, flip)
	case n.kind == kindMap && n.op == fuse.OpAcc:
		return b.value(n.args[0], flip)
	case n.kind == kindMap || n.kind == kindCall:
		if n != b.root && b.run.cut(n) {
			break
		}
		return b.emitOp(n, flip)
	}
	m, err := b.run.materialise(n)
	if err != nil {
		return 0, err
	}
	return b.emitLoad(m, flip)
}

// emitConversion reads a matrix of another type, evaluating what is converted first unless it is a matrix already.
func (b *builder) emitConversion(n *node, flip bool) (uint8, error) {
	if n.t.Compute() == b.f.Type {
		x, xflip := resolve(n.args[0], flip)
		if x.kind == kindLeaf {
			return b.emitLeaf(x, xflip)
		}
		m, err := b.run.materialise(x)
		if err != nil {
			return 0, err
		}
		return b.emitLoad(m, xflip)
	}
	m, err := b.run.materialise(n)
	if err != nil {
		return 0, err
	}
	return b.emitLoad(m, flip)
}

func (b *builder) emitOp(n *node, flip bool) (uint8, error) {
	var vals [8]uint8
	args := vals[:0]
	for _, a := range n.args {
		v, err := b.value(a, flip)
		if err != nil {
			return 0, err
		}
		args = append(args, v)
	}
	if n.kind == kindCall {
		return b.emitCall(n.call, args), nil
	}
	i := fuse.Instr{Op: n.op}
	for k, p := range []*uint8{&i.X, &i.Y, &i.Z} {
		if k < len(args) {
			*p = args[k]
		}
	}
	return b.emit(i), nil
}

func (b *builder) emit(i fuse.Instr) uint8 {
	b.f.Code = append(b.f.Code, i)
	return uint8(len(b.f.Code) - 1)
}

func (b *builder) emitScalar(bits uint32) uint8 {
	for k, s := range b.scalars {
		if s == bits {
			return b.emit(fuse.Instr{Op: fuse.OpScalar, X: uint8(k)})
		}
	}
	b.scalars = append(b.scalars, bits)
	return b.emit(fuse.Instr{Op: fuse.OpScalar, X: uint8(len(b.scalars) - 1)})
}

// emitLeaf reads a matrix of the expression, which may have changed since the expression was built.
func (b *builder) emitLeaf(n *node, flip bool) (uint8, error) {
	if err := n.current(); err != nil {
		return 0, err
	}
	return b.emitLoad(n.leaf, flip)
}

// current refuses a matrix that was closed or resized since the expression was built.
func (n *node) current() error {
	if err := n.leaf.usable("Assign"); err != nil {
		return err
	}
	if n.leaf.rows != n.rows || n.leaf.cols != n.cols {
		return shapeError("Assign", n.shape(), n.leaf.shape())
	}
	return nil
}

func (b *builder) emitLoad(m *Any, flip bool) (uint8, error) {
	if m.t != b.result.t && m.buf.Same(b.result.buf) { // a binding has one type
		var err error
		if m, err = b.run.copied(m); err != nil {
			return 0, err
		}
	}
	l := m.layout
	if flip {
		l = l.t()
	}
	l = l.normal()
	for k, o := range b.loads {
		if o.m.buf.Same(m.buf) && o.m.t == m.t && o.l == l {
			return b.emit(fuse.Instr{Op: fuse.OpLoad, X: uint8(k)}), nil
		}
	}
	b.loads = append(b.loads, load{m, l})
	return b.emit(fuse.Instr{Op: fuse.OpLoad, X: uint8(len(b.loads) - 1)}), nil
}

// copied makes a temporary copy.
func (r *run) copied(m *Any) (*Any, error) {
	c, err := r.newTemp(&node{t: m.t}, m.rows, m.cols)
	if err != nil {
		return nil, err
	}
	return c, r.mapped(c, m.node(), false)
}

// emitCall copies the arguments next to each other, where the generated call looks for them.
func (b *builder) emitCall(c *Func, args []uint8) uint8 {
	k := -1
	for i, d := range b.f.Calls {
		if d.WGSL == c.call.WGSL {
			k = i
		}
	}
	if k < 0 {
		k = len(b.f.Calls)
		b.f.Calls = append(b.f.Calls, c.call)
	}
	first := uint8(len(b.f.Code))
	for _, a := range args {
		b.emit(fuse.Instr{Op: fuse.OpCopy, X: a})
	}
	return b.emit(fuse.Instr{Op: fuse.OpCall, X: uint8(k), Y: first})
}
