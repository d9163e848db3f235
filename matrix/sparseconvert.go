// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/internal/shaders/sparse"
)

// compress makes storage of what is not zero in a dense matrix. This is the host's work: the matrix is read major by major,
// in one piece.
func compress(ctx context.Context, a *Any, format Format) (*storage, error) {
	const op = "SparseFromDense"
	if err := a.usable(op); err != nil {
		return nil, err
	}
	switch {
	case a.dev == nil:
		return nil, fail(op, ErrInvalid, "the matrix has no device")
	case a.t == fuse.F16:
		return nil, fail(op, ErrUnsupported, "sparse matrices of float16")
	case format > BlockColumn:
		return nil, fail(op, ErrInvalid, "unknown format")
	case a.rows > math.MaxInt32 || a.cols > math.MaxInt32:
		return nil, fail(op, ErrLimit, a.shape().String())
	}
	p := parts{format: format, rows: a.rows, cols: a.cols}
	mem := make([]uint32, a.rows*a.cols)
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
func (m *Any) readMajors(ctx context.Context, format Format, mem gpu.Host) error {
	if format == CSR {
		return m.ReadHost(ctx, mem)
	}
	t := m.transposed()
	if t.err != nil {
		return t.err
	}
	return firstError(t.ReadHost(ctx, mem), t.Close())
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
			return fail(op, ErrLimit, "more than 2147483647 entries")
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
		return fail(op, ErrLimit, "more than 2147483647 values")
	}
	p.values = hostOf(mem[:n])
	return nil
}

// into has compute write a rows x cols result to m on the device: in place if m has that size, else to memory that m takes
// over if compute succeeds.
func (m *Any) into(op string, dev *gpu.Device, rows, cols int, compute func(*Any) error) error {
	if err := m.usable(op); err != nil {
		return err
	}
	to := gpu.Shape{rows, cols}
	switch {
	case m.dev != nil && m.dev != dev:
		return fail(op, ErrForeign, "the result is on another device")
	case m.buf != nil && m.rows == rows && m.cols == cols:
		return compute(m)
	case m.fixed:
		return shapeError(op, m.shape(), to)
	}
	if err := m.unshared(op, to); err != nil {
		return err
	}
	next, err := m.another(op, dev, rows, cols)
	if err != nil {
		return err
	}
	if err := compute(next); err != nil {
		return firstError(err, next.buf.Close())
	}
	return m.become(next)
}

func (s *sparseAny) assignTo(op string, dst *Any) error {
	if err := s.ready(op); err != nil {
		return err
	}
	rows, cols := s.dims()
	return dst.into(op, s.st.dev, rows, cols, func(m *Any) error {
		return s.st.during(func(r *run) error { return s.scatter(r, m) })
	})
}

// zero is a matrix of zeros of m's size, to be assigned to it.
func (m *Any) zero() *node { return &node{kind: kindScalar, t: m.t, rows: m.rows, cols: m.cols} }

// scatter writes zeros and then the entries. What can fail by itself comes first.
func (s *sparseAny) scatter(r *run, dst *Any) error {
	lo, hi := s.span()
	switch {
	case dst.empty():
		return nil
	case lo == hi:
		return r.evaluate(dst, dst.zero())
	case dst.buf.Same(s.st.values):
		return r.viaTemp(dst, dst.zero(), func(m *Any) error { return s.scatter(r, m) })
	}
	l := sparse.Scatter{
		Blocks: s.st.format == BlockColumn, Count: hi - lo, Begin: lo, First: s.first, Majors: s.count, Minors: s.st.minors,
	}
	l.MinorStep, l.MajorStep = dst.steps()
	if s.st.format == CSR {
		l.MinorStep, l.MajorStep = l.MajorStep, l.MinorStep
	}
	var args [4]gpu.Arg
	if err := s.bind(args[:3], &l); err != nil {
		return err
	}
	k, err := r.g.kernel(append(r.g.key[:0], 'c', flag(l.Blocks)),
		func() (shaders.Program, error) { return sparse.BuildScatter(l.Blocks) })
	if err != nil {
		return err
	}
	mem, err := dst.buf.Writable(true) // evaluate brings it up to date
	if err != nil {
		return err
	}
	if args[3], l.Offset, err = bound(mem, dst.offset, dst.offset+dst.span()); err != nil {
		return err
	}
	l.Offset = dst.offset - l.Offset
	if err := r.evaluate(dst, dst.zero()); err != nil {
		return err
	}
	if err := k.Dispatch(l.Groups(), words(l.Shape()), args[:]...); err != nil {
		return err
	}
	dst.buf.Wrote(dst.region(dst.t.Size()))
	return nil
}

// bind binds the values, the indices and the pointers, of which blocks have none, and tells the launch where they begin.
func (s *sparseAny) bind(args []gpu.Arg, l *sparse.Scatter) error {
	st := s.st
	var err error
	if args[0], l.Base, err = bindWords(st.values, l.Begin, l.Begin+l.Count); err != nil {
		return err
	}
	if l.Blocks {
		args[1], _, err = bindWords(st.indices, 0, len(st.index))
		args[2] = args[1]
		return err
	}
	l.Base = l.Begin - l.Base
	if args[1], _, err = bindWords(st.indices, l.Begin, l.Begin+l.Count); err != nil {
		return err
	}
	var shift int
	args[2], shift, err = bindWords(st.pointers, l.First, l.First+l.Majors+1)
	l.First -= shift
	return err
}

// bindWords brings a buffer up to date and binds it; see bound.
func bindWords(b *buffer.Buffer, lo, hi int) (a gpu.Arg, shift int, err error) {
	mem, err := b.Readable()
	if err != nil {
		return gpu.Arg{}, 0, err
	}
	return bound(mem, lo, hi)
}

// bound binds the whole of a buffer, or if that is larger than a binding may be the part that has words lo to hi-1. It tells
// how many words lie before what is bound.
func bound(mem *gpu.Buffer, lo, hi int) (a gpu.Arg, shift int, err error) {
	if mem.Size() <= mem.Device().Limits().MaxBindingSize {
		return gpu.Arg{Buffer: mem}, 0, nil
	}
	return part(mem, lo, hi, 4)
}

// words is the parameter block.
func words(w []uint32) []byte { return bytesOf(w) }
