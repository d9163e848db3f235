// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// sorted sorts rows, or finds where their elements go: all of them or the first ones.
func (p *planner) sorted(dst Operand, n *expr.Node) {
	a := n.Args[0]
	switch {
	case dst.Type.Packed() || dst.Type != n.Type.Compute():
		p.viaTemp(dst, n)
		return
	case p.vast(fuse.U32, 2*a.Rows, a.Cols):
		p.divide(dst, p.inside(n))
		return
	}
	child := p.head(a)
	keys := p.planes(2, a.Rows, a.Cols)
	b := p.newBuilder(keys, a.Type, false)
	b.f.Bits = true
	b.rows, b.cols = a.Rows, a.Cols
	b.build(child.n, child.transposed)
	b.launch(kernels.SortKeys(a.Rows, a.Cols, n.Down))
	spare := keys
	for width := kernels.SortedKeys; width < a.Cols; width *= 2 {
		if spare == keys {
			spare = p.planes(2, a.Rows, a.Cols)
		}
		m := p.newBuilder(spare, fuse.U32, false)
		m.f.Bits = true
		m.own()
		m.launch(kernels.SortMerge(a.Rows, a.Cols, width, keys.Stride, &p.Device.Device), bindingOf(keys, buffer.Reads))
		keys, spare = spare, keys
	}
	p.taken(dst, n, child, keys)
}

// taken writes what keys say the order is.
func (p *planner) taken(dst Operand, n *expr.Node, child seen, keys Operand) {
	of := n.Args[0].Type
	if n.Index {
		of = fuse.I32
	}
	b := p.newBuilder(dst, of, false)
	b.single = true
	b.rows, b.cols = n.Args[0].Rows, n.Args[0].Cols
	if n.Index {
		b.own()
	} else {
		b.build(child.n, child.transposed)
	}
	if b.reads() { // the elements are still to be read when the first ones are written
		p.viaTemp(dst, n)
		return
	}
	b.launch(kernels.SortTake(n.Rows, n.Cols, keys.Stride, n.Index), bindingOf(keys, buffer.Reads))
}

// planes makes a temporary for planes of bits that lie one below the other. Every row of them begins a vector.
func (p *planner) planes(planes, rows, cols int) Operand {
	op := p.newTemp(fuse.U32, planes*rows, (cols+3)/4*4)
	op.Cols = cols
	return op
}

// scan computes running sums or products of rows. Long rows are folded in chunks first, and the running sums of those say what each
// chunk begins with.
func (p *planner) scan(dst Operand, n *expr.Node) {
	a := n.Args[0]
	if below, _ := expr.Resolve(a, false); len(p.measures[below].loads) >= p.Device.slots(1) { // the kernel binds sums of its own
		a = p.leaf(p.materialise(a))
	}
	child := p.head(a)
	b := p.newBuilder(dst, a.Type, false)
	b.build(child.n, child.transposed)
	if dst.Type.Packed() || dst.Type != n.Type.Compute() || b.hazard() {
		p.viaTemp(dst, n)
		return
	}
	var own []Binding
	stride := 0
	if parts := kernels.ScanParts(a.Cols); parts > 1 {
		ends, sums := p.newTemp(a.Type, a.Rows, parts), p.newTemp(a.Type, a.Rows, parts)
		f := p.newBuilder(ends, a.Type, false)
		f.single = true
		f.rows, f.cols = a.Rows, a.Cols
		f.build(child.n, child.transposed)
		f.launch(kernels.ScanFold(n.Red, a.Rows, a.Cols))
		p.scan(sums, with(n, p.leaf(ends)))
		stride = parts
		own = []Binding{bindingOf(sums, buffer.Reads)}
	}
	b.launch(kernels.Scan(n.Red, a.Rows, a.Cols, stride), own...)
}
