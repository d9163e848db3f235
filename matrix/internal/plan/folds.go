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
	kernels.Fold
	axis    fuse.Axis
	flipped bool // kernels see what is folded the other way round than the expression does
}

// reduce computes a reduction. Its element-wise head runs in the kernel's own loop.
func (p *planner) reduce(dst Operand, n *expr.Node) {
	a := n.Args[0]
	task := fold{dst: dst, Fold: kernels.Fold{Op: n.Red, Of: a.Type.Compute(), Number: n.Value}, axis: n.Axis}
	switch {
	case dst.Type.Packed() || n.Type.Compute() != dst.Type.Compute(): // kernels fold in the computed type and store it
		p.viaTemp(dst, n)
		return
	case a.Rows == 0 || a.Cols == 0:
		p.mapped(dst, fill(dst, n.Type.Compute().Load(task.Identity())))
		return
	case n.Red == fuse.ReduceTrace:
		p.evaluate(dst, sumOf(n, p.leaf(p.materialise(a).diagonal())))
		return
	}
	task.seen = p.head(a)
	task.Down, task.Along = a.Cols, 1
	switch n.Axis {
	case fuse.AxisRows:
		task.Down = 0
	case fuse.AxisCols:
		task.Down, task.Along = 1, 0
	}
	if p.largest(task.seen, func(*expr.Node) bool { return true }).ColMajor {
		task.transposed, task.dst.Layout, task.flipped = !task.transposed, dst.T(), true
		task.Down, task.Along = task.Along, task.Down
		task.axis = [...]fuse.Axis{fuse.AxisAll: fuse.AxisAll, fuse.AxisRows: fuse.AxisCols, fuse.AxisCols: fuse.AxisRows}[n.Axis]
	}
	p.fold(task)
}

// sumOf is the sum of a in the place of n.
func sumOf(n, a *expr.Node) *expr.Node {
	s := with(n, a)
	s.Red = fuse.ReduceSum
	return s
}

// diagonal is the operand's, as a column.
func (op Operand) diagonal() Operand {
	op.Rows, op.Cols = min(op.Rows, op.Cols), 1
	op.Stride++
	if op.ColMajor {
		op.Rows, op.Cols = op.Cols, op.Rows
		op.Layout = op.T()
	}
	return op
}

// dims returns the size of what kernels fold.
func (t *fold) dims() (rows, cols int) {
	rows, cols = t.n.Rows, t.n.Cols
	if t.transposed {
		rows, cols = cols, rows
	}
	if t.Partial {
		rows /= t.Planes()
	}
	return rows, cols
}

// fold appends passes until the result is final.
func (p *planner) fold(t fold) {
	if p.err != nil {
		return
	}
	b := p.newBuilder(t.dst, t.n.Type, false)
	b.f.Bits = t.Bits()
	b.result = t.dst
	b.rows, b.cols = t.dims()
	b.build(t.n, t.transposed)
	indices := t.flipped && !t.Partial && (t.Op == fuse.ReduceArgMax || t.Op == fuse.ReduceArgMin)
	switch {
	case b.reads(): // partial results would overwrite what others still read
		whole := t
		whole.dst = p.newTemp(t.dst.Type, t.dst.Rows, t.dst.Cols)
		p.fold(whole)
		p.evaluate(t.dst, p.leaf(whole.dst))
		return
	case t.axis == fuse.AxisCols, t.axis == fuse.AxisAll && t.Partial && b.cols == 1:
		l, parts := kernels.FoldCols(t.Fold, b.rows, b.cols, true, &p.Device.Device)
		p.foldPass(t, b, l, parts > 1, parts, b.cols)
		return
	case t.axis == fuse.AxisAll && b.rows > 1 && (indices || !b.linearLoads()): // with gaps: row by row first
		l, parts := kernels.FoldRows(t.Fold, b.rows, b.cols, false, &p.Device.Device)
		b.single = true
		p.foldPass(t, b, l, true, b.rows, parts)
		return
	case t.axis == fuse.AxisAll && b.rows > 1:
		b.flatten()
	}
	t.axis = fuse.AxisRows
	l, parts := kernels.FoldRows(t.Fold, b.rows, b.cols, true, &p.Device.Device)
	b.single = true
	p.foldPass(t, b, l, parts > 1, b.rows, parts)
}

// foldPass appends one pass and, if its results are partial, others over those, which are rows x cols.
func (p *planner) foldPass(t fold, b *builder, l *kernels.Launch, partial bool, rows, cols int) {
	if partial {
		b.result = p.partial(t, rows, cols)
		t.seen = seen{p.leaf(b.result), false}
		t.Partial = t.Planes() > 0
	}
	b.launch(l)
	if partial {
		p.fold(t)
	}
}

// partial makes a temporary for partial results: values, or states, whose planes lie one below the other.
func (p *planner) partial(t fold, rows, cols int) Operand {
	if t.Planes() == 0 {
		return p.newTemp(t.Of, rows, cols)
	}
	return p.planes(t.Planes(), rows, cols)
}

// hardmax finds the index of the largest element and writes 1 there.
func (p *planner) hardmax(dst Operand, n *expr.Node) {
	if dst.Type.Packed() || dst.Type != n.Type.Compute() {
		p.viaTemp(dst, n)
		return
	}
	a := n.Args[0]
	index := &expr.Node{Kind: expr.Reduce, Red: fuse.ReduceArgMax, Axis: n.Axis, Type: fuse.I32, Rows: 1, Cols: 1, Args: n.Args}
	down, along := a.Cols, 1
	if n.Axis == fuse.AxisRows {
		index.Rows, down = a.Rows, 0
	}
	transposed := seenTransposed(dst)
	b := p.newBuilder(dst, fuse.I32, transposed)
	b.f.Bits = true
	b.build(p.leaf(p.materialise(index)), transposed)
	if transposed {
		down, along = along, down
	}
	b.launch(kernels.OneHot(dst.Type, b.rows, b.cols, down, along))
}
