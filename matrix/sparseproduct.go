// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/sparse"
)

// rowPlan tells how the rows of a matrix are gone through by products. Buffers that are nil are the storage's.
type rowPlan struct {
	changes      uint32 // of the storage when the plan was made
	life         uint32 // of the device
	form         sparse.Form
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
func (s *sparseAny) rowPlan(op string) (*rowPlan, error) {
	st := s.st
	if s.plan != nil && s.plan.changes == st.changes && s.plan.life == st.dev.Generation() {
		return s.plan, nil
	}
	if err := st.check(op); err != nil {
		return nil, err
	}
	p := &rowPlan{changes: st.changes, life: st.dev.Generation()}
	var err error
	switch st.format {
	case CSR:
		p.form = sparse.InOrder
		err = p.cut(st.dev, st.ptr, false)
	case CSC:
		p.form = sparse.Placed
		err = p.listRows(s)
	default:
		p.form = sparse.Blocks
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
	chunk := sparse.Chunk(sparse.Longest(ptr))
	var err error
	if chunk > 0 {
		var sums []int32
		ptr, sums = sparse.Cut(ptr, chunk)
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
func (p *rowPlan) listRows(s *sparseAny) error {
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
	if chunk := sparse.Chunk(len(st.index)); chunk > 0 {
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
func (s *sparseAny) mul(op string, dst, y *Any) error {
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
		return fail(op, ErrForeign, "the factors are on two devices")
	case k != y.rows:
		return shapeError(op, s.shape(), y.shape())
	}
	return dst.into(op, st.dev, m, y.cols, func(dst *Any) error {
		return st.during(func(r *run) error { return s.multiply(r, op, dst, y) })
	})
}

// multiply computes dst = s * y.
func (s *sparseAny) multiply(r *run, op string, dst, y *Any) error {
	lo, hi := s.span()
	switch {
	case dst.empty():
		return nil
	case lo == hi:
		return r.evaluate(dst, dst.zero())
	case dst.buf.Same(y.buf) || dst.buf.Same(s.st.values):
		return r.viaTemp(dst, dst.zero(), func(m *Any) error { return s.multiply(r, op, m, y) })
	}
	p, err := s.rowPlan(op)
	if err != nil {
		return err
	}
	width := stripWidth(p, dst.cols)
	var parts *Any
	if p.sums != nil {
		if parts, err = r.newTemp(dst.zero(), p.rows, 4*shaders.Ceil(width, 4)); err != nil {
			return err
		}
	}
	for j := 0; j < dst.cols; j += width {
		to, from := *dst, *y
		end := min(j+width, dst.cols)
		to.layout, from.layout = dst.layout.slice(0, dst.rows, j, end), y.layout.slice(0, y.rows, j, end)
		if err := s.strip(r, p, &to, &from, parts); err != nil {
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
func (s *sparseAny) strip(r *run, p *rowPlan, dst, y, parts *Any) error {
	to := dst
	if parts != nil {
		part := *parts
		part.cols = 4 * shaders.Ceil(dst.cols, 4)
		part.stride = part.cols
		to = &part
	}
	b := &builder{run: r, result: to, store: to.normal(), rows: y.rows, cols: y.cols, single: y.cols == 1}
	b.f.Type = dst.t
	if err := b.build(y.node(), false); err != nil {
		return err
	}
	if err := b.bind(r.g.maxSlots(sparse.Own)); err != nil {
		return err
	}
	if b.single {
		b.f.Loads[0].Class = fuse.Column // one element, not four
	}
	if err := s.launchRows(b, p); err != nil || to == dst {
		return err
	}
	return p.launchSum(r, to, dst)
}

// launchRows launches the kernel that goes through the rows.
func (s *sparseAny) launchRows(b *builder, p *rowPlan) error {
	st, g := s.st, b.run.g
	l := sparse.Rows{Form: p.form, Rows: p.rows, Cols: b.cols, Inner: b.rows, High: st.minors, Parts: p.parts, Chunk: p.chunk}
	lo, hi := s.span()
	l.Entries = hi - lo
	if p.form == sparse.Blocks {
		l.Entries = len(st.index)
	}
	var own [sparse.Own]gpu.Arg
	var err error
	if own[0], l.Base, err = bindWords(st.values, lo, hi); err != nil {
		return err
	}
	indices := either(p.indices, st.indices)
	for k, b := range []*buffer.Buffer{indices, either(p.pointers, either(st.pointers, indices)), either(p.places, indices)} {
		if own[k+1], _, err = bindWords(b, 0, b.Size()/4); err != nil {
			return err
		}
	}
	k, err := g.kernel(b.f.Key(append(g.key[:0], 'm', byte(p.form))),
		func() (shaders.Program, error) { return sparse.BuildRows(p.form, copyFunc(&b.f)) })
	if err != nil {
		return err
	}
	return b.dispatch(k, l.Groups(), words(l.Shape()), own[:])
}

func either(a, b *buffer.Buffer) *buffer.Buffer {
	if a != nil {
		return a
	}
	return b
}

// launchSum launches the kernel that adds the parts of rows.
func (p *rowPlan) launchSum(r *run, parts, dst *Any) error {
	b := r.newBuilder(dst, dst.t, false)
	b.single = dst.cols == 1
	b.emit(fuse.Instr{Op: fuse.OpAcc})
	if err := b.bind(r.g.maxSlots(2)); err != nil {
		return err
	}
	l := sparse.Sum{Rows: dst.rows, Cols: dst.cols}
	var own [2]gpu.Arg
	var err error
	if own[0], _, err = bindWords(parts.buf, 0, parts.span()); err != nil {
		return err
	}
	if own[1], _, err = bindWords(p.sums, 0, dst.rows+1); err != nil {
		return err
	}
	k, err := r.g.kernel(b.f.Key(append(r.g.key[:0], 'a')),
		func() (shaders.Program, error) { return sparse.BuildSum(copyFunc(&b.f)) })
	if err != nil {
		return err
	}
	return b.dispatch(k, l.Groups(), words(l.Shape()), own[:])
}
