// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// stored are the values of a sparse matrix, next to each other.
func (p *planner) stored(n *expr.Node) Operand {
	n, transposed := expr.Resolve(n, false)
	op := p.materialise(n).read(transposed)
	if _, step := op.Steps(); step == 1 || op.Cols <= 1 {
		return op
	}
	c := p.newTemp(op.Type, op.Rows, op.Cols)
	p.evaluate(c, p.leaf(op))
	return c
}

// words are numbers of a structure, of the host's or computed.
func (p *planner) words(n *expr.Node) Operand {
	if n.Kind == expr.Words {
		return p.operand(n)
	}
	return p.stored(n)
}

// densify computes a sparse matrix as a dense one: zeros, and then the entries in their places.
func (p *planner) densify(dst Operand, n *expr.Node) {
	values, rows, cols := p.stored(n.Args[0]), p.operand(n.Args[1]), p.operand(n.Args[2])
	if values.Mem == dst.Mem {
		p.viaTemp(dst, n)
		return
	}
	p.evaluate(dst, fill(dst, 0))
	if values.Empty() {
		return
	}
	s := kernels.Scatter{Count: values.Cols, Rows: dst.Rows, Cols: dst.Cols, Values: values.Offset, Offset: dst.Offset}
	s.RowStep, s.ColStep = dst.Steps()
	own := [3]Binding{
		bindingOf(values, buffer.Reads, kernels.ScatterValues), bindingOf(rows, buffer.Reads, kernels.ScatterRows),
		bindingOf(cols, buffer.Reads, kernels.ScatterCols),
	}
	s.RowAt, s.ColAt = rows.Offset, cols.Offset
	p.bare(s.Launch(), dst, []int{kernels.ScatterOffset}, own[:]...)
}

// sparseOperands are those of a product with a sparse matrix.
type sparseOperands struct{ values, indices, pointers, places, sums Operand }

// sparseProduct multiplies a sparse matrix by a dense one. Rows that were cut are computed in parts, strip of columns by strip.
func (p *planner) sparseProduct(dst Operand, n *expr.Node) {
	s := sparseOperands{
		p.stored(n.Args[1]), p.words(n.Args[2]), p.words(n.Args[3]), p.words(n.Args[4]), p.words(n.Args[5]),
	}
	y, transposed := expr.Resolve(n.Args[0], false)
	if y.Kind != expr.Scalar {
		y = p.leaf(p.materialise(y).read(transposed))
	}
	switch {
	case dst.Type.Packed(), s.values.Mem == dst.Mem, y.Kind == expr.Leaf && p.operand(y).Mem == dst.Mem:
		p.viaTemp(dst, n)
	case s.indices.Empty():
		p.evaluate(dst, fill(dst, 0))
	case s.sums.Empty():
		p.sparseRows(dst, y, s, dst.Rows)
	default:
		p.sparseStrips(dst, y, s)
	}
}

// sparseStrips multiplies by rows that were cut.
func (p *planner) sparseStrips(dst Operand, y *expr.Node, s sparseOperands) {
	parts := s.pointers.Cols - 1
	width := min(max(p.Device.Scratch/(16*parts)*4, 4), dst.Cols) // of a strip: a multiple of 4 unless it is all
	scratch := p.newTemp(dst.Type, parts, 4*shaders.Ceil(width, 4))
	for j := 0; j < dst.Cols && p.err == nil; j += width {
		end := min(j+width, dst.Cols)
		to, strip := dst.part(block{0, dst.Rows, j, end}), scratch
		strip.Cols = 4 * shaders.Ceil(to.Cols, 4)
		strip.Stride = strip.Cols
		p.sparseRows(strip, p.part(y, block{0, y.Rows, j, end}), s, parts)
		b := p.newBuilder(to, to.Type, false)
		b.single = to.Cols == 1
		b.own()
		b.launch(kernels.SparseSum(to.Rows, to.Cols), bindingOf(strip, buffer.Reads), bindingOf(s.sums, buffer.Reads))
	}
}

// sparseRows launches the kernel that goes along the rows.
func (p *planner) sparseRows(dst Operand, y *expr.Node, s sparseOperands, rows int) {
	b := p.newBuilder(dst, dst.Type, false)
	b.rows, b.cols = y.Rows, y.Cols
	b.single = y.Cols == 1 // parts, too, of which the rest of the vector is not used
	b.build(y, false)
	r := kernels.SparseRows{
		Placed: !s.places.Empty(), Rows: rows, Cols: y.Cols, Inner: y.Rows, Entries: s.indices.Cols, Values: s.values.Offset,
	}
	if !r.Placed {
		s.places = s.indices
	}
	b.launch(r.Launch(dst.Type, &p.Device.Device), bindingOf(s.values, buffer.Reads, kernels.SparseBase), bindingOf(s.indices, buffer.Reads),
		bindingOf(s.pointers, buffer.Reads), bindingOf(s.places, buffer.Reads))
}
