// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
)

// sparseBuilder starts the function of a kernel of sparse matrices, which writes in.To.
func sparseBuilder(in Input) *builder {
	b := newPlanner(in).newBuilder(in.To, in.To.Type, false)
	b.single = in.To.Cols == 1
	return b
}

// reads binds operands for reading.
func reads(own []Operand) []Binding {
	list := make([]Binding, len(own))
	for i, op := range own {
		list[i] = bindingOf(op, buffer.Reads)
	}
	return list
}

// Rows plans the launch that multiplies a sparse matrix by a dense one, y. own are the values, the indices, the pointers and the
// places.
func Rows(in Input, r kernels.SparseRows, y Operand, own ...Operand) (*Plan, error) {
	b := sparseBuilder(in)
	b.rows, b.cols = y.Rows, y.Cols
	b.build(b.p.leaf(y), false)
	bindings := reads(own)
	bindings[0].Words = []int{kernels.SparseBase}
	b.launch(r.Launch(), bindings...)
	return b.p.plan, b.p.err
}

// Sum plans the launch that adds up the parts of cut rows. own are the parts and the pointers to them.
func Sum(in Input, own ...Operand) (*Plan, error) {
	b := sparseBuilder(in)
	b.emit(fuse.OpAcc, 0, 0, 0)
	b.launch(kernels.SparseSum(in.To.Rows, in.To.Cols), reads(own)...)
	return b.p.plan, b.p.err
}

// Scatter plans the launches that write a sparse matrix to a dense one: zeros, and then the entries. own are the values, the
// indices and the pointers.
func Scatter(in Input, s kernels.Scatter, own ...Operand) (*Plan, error) {
	p := newPlanner(in)
	p.evaluate(in.To, fill(in.To, 0))
	s.Offset = in.To.Offset
	l := s.Launch()
	bindings := reads(own)
	for i, word := range [...]int{kernels.ScatterBase, kernels.ScatterIndex, kernels.ScatterFirst} {
		bindings[i].Words = []int{word}
	}
	p.plan.Steps = append(p.plan.Steps, &Step{
		Launch: l, Key: l.Key(nil), Params: shaders.Words(nil, l.Shape...), To: in.To,
		Bindings: append(bindings, bindingOf(in.To, buffer.Writes, kernels.ScatterOffset)),
	})
	return p.plan, p.err
}
