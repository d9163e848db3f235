// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// rowPlan tells how the rows of a matrix are gone through by products. Buffers that are nil are the storage's.
type rowPlan struct {
	changes      uint32 // of the storage when the plan was made
	generation   uint32 // of the device
	form         kernels.Listing
	rows         int // after cutting
	parts, chunk int // of each row, of block columns

	indices, pointers, places *buffer.Buffer
	sums                      *buffer.Buffer // points to the parts of each row; nil where no row was cut
}

func (p *rowPlan) close() error {
	if p == nil {
		return nil
	}
	return firstError(p.indices.Close(), p.pointers.Close(), p.places.Close(), p.sums.Close())
}

// rowPlan returns the plan, made anew if the structure changed. The storage is locked.
func (s *sparseCore) rowPlan(op string) (*rowPlan, error) {
	st := s.st
	if s.plan != nil && s.plan.changes == st.changes && s.plan.generation == st.dev.Generation() {
		return s.plan, nil
	}
	if err := st.check(op); err != nil {
		return nil, err
	}
	p := &rowPlan{changes: st.changes, generation: st.dev.Generation()}
	var err error
	switch st.format {
	case CSR:
		p.form = kernels.InOrder
		err = p.cut(st.dev, st.ptr, false)
	case CSC:
		p.form = kernels.Placed
		err = p.listRows(s)
	default:
		p.form = kernels.Blocks
		err = p.cutBlocks(st)
	}
	if err != nil {
		return nil, firstError(err, p.close())
	}
	old := s.plan
	s.plan = p
	return p, old.close()
}

// cut cuts long rows. Pointers that need no cutting are kept only if asked for.
func (p *rowPlan) cut(dev *gpu.Device, ptr []int32, keep bool) error {
	p.rows = len(ptr) - 1
	chunk := kernels.Chunk(kernels.Longest(ptr))
	var err error
	if chunk > 0 {
		var sums []int32
		ptr, sums = kernels.Cut(ptr, chunk)
		p.rows = len(ptr) - 1
		if p.sums, err = upload(dev, sums); err != nil {
			return err
		}
	}
	if chunk > 0 || keep {
		p.pointers, err = upload(dev, ptr)
	}
	return err
}

// listRows lists the entries of columns row by row, each with its column and the place of its value.
func (p *rowPlan) listRows(s *sparseCore) error {
	st := s.st
	lo, hi := s.span()
	ptr := make([]int32, st.minors+1)
	for _, i := range st.index[lo:hi] {
		ptr[i+1]++
	}
	for i := range st.minors {
		ptr[i+1] += ptr[i]
	}
	next := append([]int32(nil), ptr...)
	columns, places := make([]int32, hi-lo), make([]int32, hi-lo)
	for c := range s.count {
		for q := st.ptr[s.first+c]; q < st.ptr[s.first+c+1]; q++ {
			at := &next[st.index[q]]
			columns[*at], places[*at] = int32(c), q
			*at++
		}
	}
	err := p.cut(st.dev, ptr, true)
	if err == nil {
		p.indices, err = upload(st.dev, columns)
	}
	if err == nil {
		p.places, err = upload(st.dev, places)
	}
	return err
}

// cutBlocks cuts all rows, which have an entry in each block, in the same way.
func (p *rowPlan) cutBlocks(st *storage) error {
	p.rows, p.parts, p.chunk = st.minors, 1, len(st.index)
	if chunk := kernels.Chunk(len(st.index)); chunk > 0 {
		p.parts, p.chunk = shaders.Ceil(len(st.index), chunk), chunk
	}
	p.rows = st.minors * p.parts
	if p.parts == 1 {
		return nil
	}
	sums := make([]int32, st.minors+1)
	for i := range sums {
		sums[i] = int32(i * p.parts)
	}
	var err error
	p.sums, err = upload(st.dev, sums)
	return err
}

func upload(dev *gpu.Device, v []int32) (*buffer.Buffer, error) {
	return buffer.FromHost(dev, hostOf(v))
}

// mul checks the operands of a product and computes it.
func (s *sparseCore) mul(op string, dst, y *core) error {
	if err := s.ready(op); err != nil {
		return err
	}
	if err := y.usable(op); err != nil {
		return err
	}
	m, k := s.dims()
	st := s.st
	switch {
	case y.dev != nil && y.dev != st.dev:
		return fail(op, gpu.ErrForeign, "the factors are on two devices")
	case y.typed && y.t != st.t:
		return fail(op, gpu.ErrInvalid, DType(st.t).String(), " with ", DType(y.t).String())
	case k != y.Rows:
		return shapeError(op, s.shape(), y.Shape())
	}
	return dst.into(op, st.dev, st.t, m, y.Cols, func(dst *core) error {
		return st.during(func(r *exec.Run) error { return s.multiply(r, op, dst.dense(), y.dense()) })
	})
}

// multiply computes dst = s * y.
func (s *sparseCore) multiply(r *exec.Run, op string, dst, y exec.Dense) error {
	lo, hi := s.span()
	switch {
	case dst.Empty():
		return nil
	case lo == hi:
		return r.Assign(dst, zero(dst))
	case dst.Buf.Overlaps(y.Buf) || dst.Buf.Overlaps(s.st.values):
		return viaTemp(r, dst, s.st.dev, func(t exec.Dense) error { return s.multiply(r, op, t, y) })
	}
	p, err := s.rowPlan(op)
	if err != nil {
		return err
	}
	width := stripWidth(p, dst.Cols)
	var parts exec.Dense
	if p.sums != nil {
		cols := 4 * shaders.Ceil(width, 4)
		if parts, err = r.Temp(dst.Type, expr.Layout{Rows: p.rows, Cols: cols, Stride: cols}); err != nil {
			return err
		}
	}
	for j := 0; j < dst.Cols; j += width {
		to, from := dst, y
		end := min(j+width, dst.Cols)
		to.Layout, from.Layout = dst.Slice(0, dst.Rows, j, end), y.Slice(0, y.Rows, j, end)
		if err := s.strip(r, p, to, from, parts); err != nil {
			return err
		}
	}
	return nil
}

// maxScratch is how many bytes of parts there may be at a time: more columns are computed in strips.
var maxScratch = 64 << 20

// stripWidth returns how many columns are computed at a time, a multiple of 4 unless it is all of them.
func stripWidth(p *rowPlan, cols int) int {
	if p.sums == nil {
		return cols
	}
	return min(max(maxScratch/(16*p.rows)*4, 4), cols)
}

// strip computes some columns of a product, of which y has those too, by way of parts where rows are cut.
func (s *sparseCore) strip(r *exec.Run, p *rowPlan, dst, y, parts exec.Dense) error {
	to := dst
	if parts.Buf != nil {
		to = parts
		to.Cols = 4 * shaders.Ceil(dst.Cols, 4)
		to.Stride = to.Cols
	}
	if err := s.launchRows(r, p, to, y); err != nil || parts.Buf == nil {
		return err
	}
	in := r.Input(dst, to.Buf, p.sums)
	step, err := plan.Sum(in, words(r, to.Buf, 0, to.Span()), words(r, p.sums, 0, dst.Rows+1))
	if err != nil {
		return err
	}
	return r.Launch(step)
}

// launchRows launches the kernel that goes through the rows.
func (s *sparseCore) launchRows(r *exec.Run, p *rowPlan, dst, y exec.Dense) error {
	st := s.st
	lo, hi := s.span()
	l := kernels.SparseRows{
		Listing: p.form, Rows: p.rows, Cols: y.Cols, Inner: y.Rows, Entries: hi - lo, High: st.minors, Parts: p.parts, Chunk: p.chunk,
	}
	if p.form == kernels.Blocks {
		l.Entries = len(st.index)
	}
	indices := either(p.indices, st.indices)
	pointers, places := either(p.pointers, either(st.pointers, indices)), either(p.places, indices)
	in := r.Input(dst, y.Buf, st.values, indices, pointers, places)
	own := []plan.Window{words(r, st.values, lo, hi)}
	for _, b := range []*buffer.Buffer{indices, pointers, places} {
		own = append(own, words(r, b, 0, b.Size()/4))
	}
	factor := plan.Operand{Layout: y.Layout, Type: y.Type, Mem: r.Memory(y.Buf)}
	step, err := plan.Rows(in, factor, l, own...)
	if err != nil {
		return err
	}
	return r.Launch(step)
}

func either(a, b *buffer.Buffer) *buffer.Buffer {
	if a != nil {
		return a
	}
	return b
}
