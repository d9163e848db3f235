// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"math"

	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/reduce"
	"github.com/sublet-gpu/sublet/internal/shaders/softmax"
)

// fold is a reduction on its way: what is folded, as the kernel sees it, and where the result goes.
type foldTask struct {
	dst  *Any
	out  layout // of the result: rows x 1, or 1 x cols
	n    *node  // the head
	flip bool
	op   reduce.Op
	axis axis
}

// reduce computes a reduction. Its element-wise head runs in the kernel's own loop.
func (r *run) reduce(dst *Any, n *node, flip bool) error {
	if dst.t == fuse.F16 || n.t.Compute() != dst.t.Compute() { // kernels fold in the computed type and store it
		return r.viaTemp(dst, n, func(m *Any) error { return r.reduce(m, n, flip) })
	}
	task := foldTask{dst: dst, out: dst.layout, op: reduce.Op(n.red), axis: n.axis}
	if flip {
		task.out = task.out.t()
	}
	task.n, task.flip = resolve(n.args[0], false)
	if n.args[0].rows == 0 || n.args[0].cols == 0 {
		return r.mapped(dst, &node{kind: kindScalar, t: n.t, rows: dst.rows, cols: dst.cols, bits: identityBits(n.red, n.t.Compute())}, false)
	}
	if task.n.kind != kindMap && task.n.kind != kindCall && task.n.kind != kindLeaf {
		m, err := r.materialise(task.n)
		if err != nil {
			return err
		}
		task.n = m.node()
	}
	if byColumns(task.n, task.flip) {
		task.flip, task.out = !task.flip, task.out.t()
		task.axis = [...]axis{axisAll: axisAll, axisRows: axisCols, axisCols: axisRows}[task.axis]
	}
	return r.fold(task)
}

// byColumns reports whether the largest operand of a tree is stored by columns, as seen with flip.
func byColumns(n *node, flip bool) bool {
	order, size := RowMajorOrder, 0
	budget := hostBudget
	var walk func(n *node, flip bool)
	walk = func(n *node, flip bool) {
		n, flip = resolve(n, flip)
		if budget--; budget < 0 {
			return
		}
		if n.kind == kindLeaf && n.rows*n.cols > size {
			size, order = n.rows*n.cols, n.leaf.order
			if flip {
				order = order.other()
			}
		}
		for _, a := range n.args {
			walk(a, flip)
		}
	}
	walk(n, flip)
	return order == ColMajorOrder
}

// fold runs passes until the result is final.
func (r *run) fold(task foldTask) error {
	b := &builder{run: r, result: task.dst, store: task.out}
	b.f.Type = task.n.t.Compute()
	b.rows, b.cols = task.n.rows, task.n.cols
	if task.flip {
		b.rows, b.cols = b.cols, b.rows
	}
	if err := b.build(task.n, task.flip); err != nil {
		return err
	}
	if b.hazardFold() {
		return r.foldAside(task)
	}
	if task.axis == axisAll {
		if b.rows > 1 { // one row is folded as it lies
			if err := b.bind(r.g.maxSlots(0)); err != nil {
				return err
			}
			if !b.linearLoads() {
				return r.foldRowsFirst(task, b.rows)
			}
			b.flattenLoads()
		}
		task.axis = axisRows
	}
	if task.axis == axisRows {
		return r.foldPass(task, b, reduce.PlanRows(task.op, b.rows, b.cols, r.g.software))
	}
	return r.foldPass(task, b, reduce.PlanCols(task.op, b.rows, b.cols, r.g.software))
}

// foldAside folds into a temporary and copies: the result shares memory with what is read.
func (r *run) foldAside(task foldTask) error {
	m, err := r.newTemp(&node{t: task.dst.t}, task.out.rows, task.out.cols)
	if err != nil {
		return err
	}
	dst, out := task.dst, task.out
	task.dst, task.out = m, m.layout
	if err := r.fold(task); err != nil {
		return err
	}
	n := m.node()
	return r.mapped(dst, n, out.rows != dst.rows || out.cols != dst.cols)
}

// hazardFold reports whether an operand lies in the result's buffer: partial results would overwrite what others still
// read.
func (b *builder) hazardFold() bool { return b.reads(b.result) }

// foldRowsFirst folds a matrix with gaps to a column and that to one element.
func (r *run) foldRowsFirst(task foldTask, rows int) error {
	m, err := r.newTemp(&node{t: task.dst.t}, rows, 1)
	if err != nil {
		return err
	}
	first := task
	first.dst, first.out, first.axis = m, m.layout, axisRows
	if err := r.fold(first); err != nil {
		return err
	}
	task.n, task.flip = m.node(), true // one row
	return r.fold(task)
}

// foldPass runs one pass, and another over its partial results if there are any.
func (r *run) foldPass(task foldTask, b *builder, p reduce.Pass) error {
	next := task
	if p.Parts > 1 {
		rows, cols := b.rows, p.Parts
		if p.Spec.Form == reduce.Cols {
			rows, cols = p.Parts, b.cols
		}
		m, err := r.newTemp(&node{t: task.dst.t}, rows, cols)
		if err != nil {
			return err
		}
		b.result, b.store = m, m.layout
		next.n, next.flip = m.node(), false
	}
	b.single = p.Spec.Form != reduce.Cols
	if err := b.bind(r.g.maxSlots(0)); err != nil {
		return err
	}
	err := r.launch(b, 'r', [4]byte{byte(p.Spec.Form), byte(p.Spec.Op), p.Spec.Wide}, p.Groups, p.Shape[:],
		func() (shaders.Program, error) { return reduce.Build(p.Spec, copyFunc(&b.f)) })
	if err != nil || p.Parts == 1 {
		return err
	}
	return r.fold(next)
}

// linearLoads reports whether all operands can be read as one row.
func (b *builder) linearLoads() bool {
	for _, ld := range b.loads {
		p := ld.l.place(b.rows, b.cols)
		if p.Row == 0 && p.Col == 0 {
			continue
		}
		if ld.l.rows != b.rows || ld.l.cols != b.cols || !b.oneRow(ld.l) {
			return false
		}
	}
	return true
}

func (b *builder) flattenLoads() {
	store := b.store
	b.flatten()
	b.store = store
}

// identityBits is the result of folding nothing.
func identityBits(red reduction, t fuse.Type) uint32 {
	switch {
	case red == reduceProd && t == fuse.F32:
		return math.Float32bits(1)
	case red == reduceProd:
		return 1
	case red == reduceSum:
		return 0
	case t == fuse.F32 && red == reduceMax:
		return math.Float32bits(float32(math.Inf(-1)))
	case t == fuse.F32:
		return math.Float32bits(float32(math.Inf(1)))
	case t == fuse.I32 && red == reduceMax:
		return 1 << 31
	case t == fuse.I32:
		return math.MaxInt32
	case red == reduceMin:
		return math.MaxUint32
	}
	return 0
}

// softmax computes the softmax of rows; of columns where the node stands under a transpose.
func (r *run) softmax(dst *Any, n *node, flip bool) error {
	if n.t.Compute() != fuse.F32 {
		return fail("Assign", ErrUnsupported, "softmax of integers")
	}
	child, cflip := resolve(n.args[0], false)
	if child.kind != kindMap && child.kind != kindCall && child.kind != kindLeaf {
		m, err := r.materialise(child)
		if err != nil {
			return err
		}
		child = m.node()
	}
	b := r.newBuilder(dst, fuse.F32, flip)
	if err := b.build(child, cflip); err != nil {
		return err
	}
	unaligned := dst.t == fuse.F16 && b.storeClass() != fuse.Vector
	if b.hazard() || unaligned {
		return r.viaTemp(dst, n, func(m *Any) error { return r.softmax(m, n, flip) })
	}
	if err := b.bind(r.g.maxSlots(0)); err != nil {
		return err
	}
	p := softmax.NewPlan(b.rows, b.cols, n.log, r.g.software)
	return r.launch(b, 's', [4]byte{flag(p.Spec.Group), flag(p.Spec.Log), byte(p.Spec.Size / 8)}, p.Groups, p.Shape[:],
		func() (shaders.Program, error) { return softmax.Build(p.Spec, copyFunc(&b.f)) })
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
