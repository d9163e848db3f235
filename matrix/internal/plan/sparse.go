// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/sparse"
)

// Rows plans the launch that multiplies a sparse matrix by a dense one, y. own are the windows of the values, the indices,
// the pointers and the places.
func Rows(in Input, y Operand, l sparse.Rows, own [sparse.Own]Window) (Step, error) {
	p := &planner{Input: in, plan: &Plan{Memories: in.Memories}}
	b := p.newBuilder(in.To, in.To.Type, false)
	b.rows, b.cols, b.single = y.Rows, y.Cols, y.Cols == 1
	if err := b.build(p.leaf(y), false); err != nil {
		return Step{}, err
	}
	if err := b.bind(in.Device.slots(sparse.Own)); err != nil {
		return Step{}, err
	}
	if b.single {
		b.f.Loads[0].Class = fuse.Column // one element, not four
	}
	l.Base = own[0].Shift(in.Memories[own[0].Mem], in.Device.Binding)
	return b.step(kernel{"sparse rows", []byte{'m', flag(l.Placed)}, func(f *fuse.Func) (shaders.Program, error) {
		return sparse.BuildRows(l.Placed, f)
	}}, l.Groups(), words(l.Shape()), own[:]...), nil
}

// Sum plans the launch that adds up the parts of cut rows. own are the windows of the parts and of the pointers to them.
func Sum(in Input, own [2]Window) (Step, error) {
	p := &planner{Input: in, plan: &Plan{Memories: in.Memories}}
	b := p.newBuilder(in.To, in.To.Type, false)
	b.single = in.To.Cols == 1
	b.emit(fuse.Instr{Op: fuse.OpAcc})
	if err := b.bind(in.Device.slots(2)); err != nil {
		return Step{}, err
	}
	l := sparse.Sum{Rows: in.To.Rows, Cols: in.To.Cols}
	return b.step(kernel{"sparse sum", []byte{'a'}, sparse.BuildSum}, l.Groups(), words(l.Shape()), own[:]...), nil
}

// Scatter plans the launch that writes the entries of a sparse matrix to a dense one of zeros. own are the windows of the
// values, the indices and the pointers; l counts from the beginning of each.
func Scatter(in Input, l sparse.Scatter, own [3]Window) Step {
	shift := func(w Window) int { return w.Shift(in.Memories[w.Mem], in.Device.Binding) }
	l.Base = shift(own[0])
	if !l.Blocks {
		l.Base = l.Begin - l.Base
		l.First -= shift(own[2])
	}
	l.Offset = in.To.Offset - shift(in.To.window())
	return Step{
		Name: "sparse scatter", Key: string([]byte{'c', flag(l.Blocks)}), Groups: l.Groups(), Shape: words(l.Shape()),
		Build: func() (shaders.Program, error) { return sparse.BuildScatter(l.Blocks) }, Own: own[:], To: in.To,
	}
}
