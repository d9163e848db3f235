// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/kernels"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
	"github.com/sublet-gpu/sublet/matrix/internal/plan"
)

// compress makes storage of what is not zero in a dense matrix. This is the host's work: the matrix is read major by major,
// in one piece.
func compress(ctx context.Context, a *core, format Format) (*storage, error) {
	const op = "SparseFromDense"
	if err := a.usable(op); err != nil {
		return nil, err
	}
	switch {
	case a.dev == nil:
		return nil, fail(op, gpu.ErrInvalid, "the matrix has no device")
	case a.t == fuse.F16:
		return nil, fail(op, gpu.ErrUnsupported, "sparse matrices of float16")
	case format > BlockColumn:
		return nil, fail(op, gpu.ErrInvalid, "unknown format")
	case a.Rows > math.MaxInt32 || a.Cols > math.MaxInt32:
		return nil, fail(op, gpu.ErrLimit, a.Shape().String())
	}
	p := parts{format: format, rows: a.Rows, cols: a.Cols}
	mem := make([]uint32, a.Rows*a.Cols)
	if err := a.readMajors(ctx, format, hostOf(mem)); err != nil {
		return nil, err
	}
	var err error
	if format == BlockColumn {
		err = p.packColumns(op, mem)
	} else {
		err = p.packEntries(op, mem)
	}
	if err != nil {
		return nil, err
	}
	return newStorage(a.dev, a.t, p)
}

// readMajors reads the elements in the order of the format, as far as one can without gaps.
func (m *core) readMajors(ctx context.Context, format Format, mem gpu.Host) error {
	if format == CSR {
		return m.read(ctx, mem)
	}
	t := m.transposed()
	if t.err != nil {
		return t.err
	}
	return firstError(t.read(ctx, mem), t.close())
}

// packEntries moves what is not zero to the front of mem and lists where it was.
func (p *parts) packEntries(op string, mem []uint32) error {
	majors, minors := p.majors(), p.minors()
	p.ptr = make([]int32, 1, majors+1)
	n := 0
	for c := range majors {
		for i := range minors {
			if bits := mem[c*minors+i]; bits != 0 {
				mem[n] = bits
				p.index = append(p.index, int32(i))
				n++
			}
		}
		if n > math.MaxInt32 {
			return fail(op, gpu.ErrLimit, "more than 2147483647 entries")
		}
		p.ptr = append(p.ptr, int32(n))
	}
	p.values = hostOf(mem[:n])
	return nil
}

// packColumns moves the columns that are not zero to the front of mem and lists which they were.
func (p *parts) packColumns(op string, mem []uint32) error {
	n := 0
	for c := range p.cols {
		column := mem[c*p.rows:][:p.rows]
		if !slices.ContainsFunc(column, func(v uint32) bool { return v != 0 }) {
			continue
		}
		copy(mem[n:], column)
		p.index = append(p.index, int32(c))
		n += p.rows
	}
	if n > math.MaxInt32 {
		return fail(op, gpu.ErrLimit, "more than 2147483647 values")
	}
	p.values = hostOf(mem[:n])
	return nil
}

// into has compute write a rows x cols result to m on the device: in place if m has that size, else to memory that m takes
// over if compute succeeds.
func (m *core) into(op string, dev *gpu.Device, t fuse.Type, rows, cols int, compute func(*core) error) error {
	if err := m.usable(op); err != nil {
		return err
	}
	if !m.typed {
		m.t = t
	}
	to := gpu.Shape{rows, cols}
	switch {
	case m.t != t:
		return fail(op, gpu.ErrInvalid, DType(t).String(), " to ", DType(m.t).String())
	case m.dev != nil && m.dev != dev:
		return fail(op, gpu.ErrForeign, "the result is on another device")
	case m.buf != nil && m.Rows == rows && m.Cols == cols:
		return compute(m)
	case m.fixed:
		return shapeError(op, m.Shape(), to)
	}
	if err := m.unshared(op, to); err != nil {
		return err
	}
	next, err := m.another(op, dev, rows, cols)
	if err != nil {
		return err
	}
	if err := compute(&next); err != nil {
		return firstError(err, next.buf.Close())
	}
	m.resized()
	return m.become(next)
}

func (s *sparseCore) assignTo(op string, dst *core) error {
	if err := s.ready(op); err != nil {
		return err
	}
	rows, cols := s.dims()
	return dst.into(op, s.st.dev, s.st.t, rows, cols, func(m *core) error {
		return s.st.during(func(r *exec.Run) error { return s.scatter(r, m.dense()) })
	})
}

// zero is a matrix of zeros of the size, to be assigned to it.
func zero(d exec.Dense) *node { return expr.Number(d.Type, d.Rows, d.Cols, 0) }

// viaTemp has compute write a temporary matrix of dst's size and copies that to dst.
func viaTemp(r *exec.Run, dst exec.Dense, dev *gpu.Device, compute func(exec.Dense) error) error {
	l := expr.Layout{Rows: dst.Rows, Cols: dst.Cols, Order: dst.Order}
	l.Stride = l.Minor()
	t, err := r.Temp(dst.Type, l)
	if err != nil {
		return err
	}
	if err := compute(t); err != nil {
		return err
	}
	return r.Assign(dst, t.Leaf(dev))
}

// scatter writes zeros and then the entries. What can fail by itself comes first.
func (s *sparseCore) scatter(r *exec.Run, dst exec.Dense) error {
	lo, hi := s.span()
	switch {
	case dst.Empty():
		return nil
	case lo == hi:
		return r.Assign(dst, zero(dst))
	case dst.Buf.Overlaps(s.st.values):
		return viaTemp(r, dst, s.st.dev, func(t exec.Dense) error { return s.scatter(r, t) })
	}
	if err := r.Prepare(s.scattering(r, dst)); err != nil {
		return err
	}
	if err := r.Assign(dst, zero(dst)); err != nil {
		return err
	}
	return r.Launch(s.scattering(r, dst))
}

// scattering plans the launch of scatter.
func (s *sparseCore) scattering(r *exec.Run, dst exec.Dense) plan.Step {
	st := s.st
	lo, hi := s.span()
	l := kernels.Scatter{
		Blocks: st.format == BlockColumn, Count: hi - lo, Begin: lo, First: s.first, Majors: s.count, Minors: st.minors,
	}
	l.MinorStep, l.MajorStep = dst.Steps()
	if st.format == CSR {
		l.MinorStep, l.MajorStep = l.MajorStep, l.MinorStep
	}
	in := r.Input(dst, st.buffers()...)
	own := [3]plan.Window{words(r, st.values, lo, hi), words(r, st.indices, lo, hi)}
	if l.Blocks {
		own[1] = words(r, st.indices, 0, len(st.index))
		own[2] = own[1]
	} else {
		own[2] = words(r, st.pointers, s.first, s.first+s.count+1)
	}
	return plan.Scatter(in, l, own[:]...)
}

// words is the window of words lo to hi-1 of a buffer.
func words(r *exec.Run, b *buffer.Buffer, lo, hi int) plan.Window {
	return plan.Window{Mem: r.Memory(b), Lo: lo, Hi: hi, Size: 4}
}
