// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// fold is a reduction on its way: what is folded, and where the result goes: rows x 1, or 1 x cols.
type fold struct {
	dst Operand
	seen
	op   fuse.Reduction
	axis fuse.Axis
}

// reduce computes a reduction. Its element-wise head runs in the kernel's own loop.
func (p *planner) reduce(dst Operand, n *expr.Node) {
	switch {
	case dst.Type == fuse.F16 || n.Type.Compute() != dst.Type.Compute(): // kernels fold in the computed type and store it
		p.viaTemp(dst, n)
		return
	case n.Args[0].Rows == 0 || n.Args[0].Cols == 0:
		p.mapped(dst, fill(dst, n.Type.Compute().Load(kernels.Identity(n.Red, n.Type))))
		return
	}
	task := fold{dst, p.head(n.Args[0]), n.Red, n.Axis}
	if p.largest(task.seen, func(*expr.Node) bool { return true }).ColMajor {
		task.transposed, task.dst.Layout = !task.transposed, dst.T()
		task.axis = [...]fuse.Axis{fuse.AxisAll: fuse.AxisAll, fuse.AxisRows: fuse.AxisCols, fuse.AxisCols: fuse.AxisRows}[n.Axis]
	}
	p.fold(task)
}

// fold appends passes until the result is final.
func (p *planner) fold(t fold) {
	if p.err != nil {
		return
	}
	b := p.newBuilder(t.dst, t.n.Type, false)
	b.result = t.dst
	b.rows, b.cols = t.n.Rows, t.n.Cols
	if t.transposed {
		b.rows, b.cols = b.cols, b.rows
	}
	b.build(t.n, t.transposed)
	switch {
	case b.reads(): // partial results would overwrite what others still read
		p.evaluate(t.dst, p.folded(t, t.dst.Rows, t.dst.Cols, t.axis))
		return
	case t.axis == fuse.AxisCols:
		l, parts := kernels.FoldCols(t.op, b.rows, b.cols, p.Device.Software)
		p.foldPass(t, b, l, parts, parts, b.cols)
		return
	case t.axis == fuse.AxisAll && b.rows > 1 && !b.linearLoads(): // with gaps: to a column, which is a row then
		t.seen = seen{p.folded(t, b.rows, 1, fuse.AxisRows), true}
		p.fold(t)
		return
	case t.axis == fuse.AxisAll && b.rows > 1:
		b.flatten()
	}
	t.axis = fuse.AxisRows
	l, parts := kernels.FoldRows(t.op, b.rows, b.cols, p.Device.Software)
	b.single = true
	p.foldPass(t, b, l, parts, b.rows, parts)
}

// folded folds along an axis into a temporary.
func (p *planner) folded(t fold, rows, cols int, axis fuse.Axis) *expr.Node {
	t.dst, t.axis = p.newTemp(t.dst.Type, rows, cols), axis
	p.fold(t)
	return p.leaf(t.dst)
}

// foldPass appends one pass, and others over its partial results, rows x cols, if there are several.
func (p *planner) foldPass(t fold, b *builder, l *kernels.Launch, parts, rows, cols int) {
	if parts > 1 {
		b.result = p.newTemp(t.dst.Type, rows, cols)
		t.seen = seen{p.leaf(b.result), false}
	}
	b.launch(l)
	if parts > 1 {
		p.fold(t)
	}
}
