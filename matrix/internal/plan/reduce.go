// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/reduce"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// fold is a reduction on its way: what is folded, as the kernel sees it, and where the result goes.
type fold struct {
	dst        Operand
	out        expr.Layout // of the result: rows x 1, or 1 x cols
	n          *expr.Node  // the head
	transposed bool
	op         reduce.Op
	axis       fuse.Axis
}

// reduce computes a reduction. Its element-wise head runs in the kernel's own loop.
func (p *planner) reduce(dst Operand, n *expr.Node, transposed bool) error {
	if dst.Type == fuse.F16 || n.Type.Compute() != dst.Type.Compute() { // kernels fold in the computed type and store it
		return p.viaTemp(dst, n, func(op Operand) error { return p.reduce(op, n, transposed) })
	}
	if n.Args[0].Rows == 0 || n.Args[0].Cols == 0 {
		return p.mapped(dst, fill(dst, identity(n.Red, n.Type.Compute())), false)
	}
	task := fold{dst: dst, out: dst.Layout, op: reduce.Op(n.Red), axis: n.Axis}
	if transposed {
		task.out = task.out.T()
	}
	var err error
	if task.n, task.transposed, err = p.head(n.Args[0]); err != nil {
		return err
	}
	if p.byColumns(task.n, task.transposed) {
		task.transposed, task.out = !task.transposed, task.out.T()
		task.axis = [...]fuse.Axis{fuse.AxisAll: fuse.AxisAll, fuse.AxisRows: fuse.AxisCols, fuse.AxisCols: fuse.AxisRows}[task.axis]
	}
	return p.fold(task)
}

// byColumns reports whether the largest operand of a tree is stored by columns, as seen with transposed.
func (p *planner) byColumns(n *expr.Node, transposed bool) bool {
	order, size := expr.RowMajorOrder, 0
	budget := anchorBudget
	var walk func(n *expr.Node, transposed bool)
	walk = func(n *expr.Node, transposed bool) {
		n, transposed = expr.Resolve(n, transposed)
		if budget--; budget < 0 {
			return
		}
		if n.Kind == expr.Leaf && n.Rows*n.Cols > size {
			size, order = n.Rows*n.Cols, p.operand(n).Order
			if transposed {
				order = order.Other()
			}
		}
		for _, a := range n.Args {
			walk(a, transposed)
		}
	}
	walk(n, transposed)
	return order == expr.ColMajorOrder
}

// fold appends passes until the result is final.
func (p *planner) fold(task fold) error {
	b := p.newBuilder(task.dst, task.n.Type, false)
	b.store = task.out
	b.rows, b.cols = task.n.Rows, task.n.Cols
	if task.transposed {
		b.rows, b.cols = b.cols, b.rows
	}
	if err := b.build(task.n, task.transposed); err != nil {
		return err
	}
	if b.reads() { // partial results would overwrite what others still read
		return p.foldAside(task)
	}
	if task.axis == fuse.AxisAll {
		if b.rows > 1 { // one row is folded as it lies
			if err := b.bind(p.Device.slots(0)); err != nil {
				return err
			}
			if !b.linearLoads() {
				return p.foldRowsFirst(task, b.rows)
			}
			b.flattenLoads()
		}
		task.axis = fuse.AxisRows
	}
	if task.axis == fuse.AxisRows {
		return p.foldPass(task, b, reduce.PlanRows(task.op, b.rows, b.cols, p.Device.Software))
	}
	return p.foldPass(task, b, reduce.PlanCols(task.op, b.rows, b.cols, p.Device.Software))
}

// foldAside folds into a temporary and copies: the result shares memory with what is read.
func (p *planner) foldAside(task fold) error {
	op, err := p.newTemp(task.dst.Type, task.out.Rows, task.out.Cols)
	if err != nil {
		return err
	}
	dst, out := task.dst, task.out
	task.dst, task.out = op, op.Layout
	if err := p.fold(task); err != nil {
		return err
	}
	return p.mapped(dst, p.leaf(op), out.Rows != dst.Rows || out.Cols != dst.Cols)
}

// foldRowsFirst folds a matrix with gaps to a column and that to one element.
func (p *planner) foldRowsFirst(task fold, rows int) error {
	op, err := p.newTemp(task.dst.Type, rows, 1)
	if err != nil {
		return err
	}
	first := task
	first.dst, first.out, first.axis = op, op.Layout, fuse.AxisRows
	if err := p.fold(first); err != nil {
		return err
	}
	task.n, task.transposed = p.leaf(op), true // one row
	return p.fold(task)
}

// foldPass appends one pass, and others over its partial results if there are any.
func (p *planner) foldPass(task fold, b *builder, pass reduce.Pass) error {
	next := task
	if pass.Parts > 1 {
		rows, cols := b.rows, pass.Parts
		if pass.Spec.Form == reduce.Cols {
			rows, cols = pass.Parts, b.cols
		}
		op, err := p.newTemp(task.dst.Type, rows, cols)
		if err != nil {
			return err
		}
		b.result, b.store = op, op.Layout
		next.n, next.transposed = p.leaf(op), false
	}
	b.single = pass.Spec.Form != reduce.Cols
	if err := b.bind(p.Device.slots(0)); err != nil {
		return err
	}
	spec := pass.Spec
	key := []byte{'r', byte(spec.Form), byte(spec.Op), spec.Wide}
	b.launch(kernel{"reduce", key, func(f *fuse.Func) (shaders.Program, error) {
		return reduce.Build(spec, f)
	}}, pass.Groups, words(pass.Shape[:]))
	if pass.Parts == 1 {
		return nil
	}
	return p.fold(next)
}
