// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
)

// The commands of the memory contract: what matrices are made from, and what becomes of their memory.

// Bits of a form above the element type.
const (
	formColumns = 1 << (8 + iota)
	formPadded
	formRowMajorInput

	formEnd
)

// form is a matrix's element type and the options that are yes or no.
func form(word uint32) (matrix.DType, []matrix.Option, error) {
	if word&0xff > uint32(matrix.Float16) || word >= formEnd {
		return 0, nil, invalid("form " + itoa(int(word)))
	}
	opts := []matrix.Option{matrix.OfType(matrix.DType(word & 0xff))}
	if word&formColumns != 0 {
		opts = append(opts, matrix.ColMajor())
	}
	if word&formPadded != 0 {
		opts = append(opts, matrix.Padded())
	}
	if word&formRowMajorInput != 0 {
		opts = append(opts, matrix.RowMajorInput())
	}
	return matrix.DType(word & 0xff), opts, nil
}

func (b *Bridge) newMatrix(a []uint32) error {
	_, opts, err := form(a[1])
	if err != nil {
		return err
	}
	opts = append(opts, matrix.Offset(int(a[4])), matrix.Stride(int(a[5])))
	m, err := matrix.New[matrix.Any](b.dev, int(a[2]), int(a[3]), opts...)
	return b.fill(a[0], m, err)
}

// data replaces the elements of a matrix by the page's, which are in its order and without gaps.
func (b *Bridge) data(a []uint32) error {
	object := b.page.Object(a[1]) // in any case, so that the page forgets it
	m, err := b.matrix(a[0])
	if err != nil {
		return err
	}
	return b.blame(a[0], b.setData(m, object, a[2]))
}

func (b *Bridge) setData(m *anyDense, object any, size uint32) error {
	if b.covers(m) {
		return b.write(m.Buffer(), object, size)
	}
	rows, cols := m.Dims()
	var order matrix.Option
	if m.Order() == matrix.ColMajorOrder {
		order = matrix.ColMajor()
	}
	src, mirror, err := b.host(object, size)
	if err != nil {
		return err
	}
	defer b.drop(mirror)
	c, err := matrix.FromBuffer[matrix.Any](b.dev, rows, cols, src, 0, matrix.OfType(m.DType()), order)
	if err != nil {
		return err
	}
	err = m.Expr().Matrix().Assign(c)
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return err
}

// covers reports whether a matrix is all of its memory.
func (b *Bridge) covers(m *anyDense) bool {
	rows, cols := m.Dims()
	minor := cols
	if m.Order() == matrix.ColMajorOrder {
		minor = rows
	}
	return m.Offset() == 0 && m.Stride() == minor && rows*cols*m.DType().Size() == m.Buffer().Size()
}

// sourceWords is how many words a source has.
const sourceWords = 8

// sourceHandle is the flag of a source that is a GPUBuffer.
const sourceHandle = 1 << 8

// source is memory that a matrix is made from.
type source struct {
	t          matrix.DType
	rows, cols int
	memory     any // gpu.Host or the handle of a GPU buffer
	flags      buffer.Flags
	opts       []matrix.Option
	mirror     *mirror
}

func (b *Bridge) source(a []uint32) (s source, err error) {
	object := b.page.Object(a[6])
	t, opts, err := form(a[1])
	if err != nil {
		return s, err
	}
	opts = append(opts, matrix.Offset(int(a[4])), matrix.Stride(int(a[5])))
	s = source{t: t, rows: int(a[2]), cols: int(a[3]), flags: buffer.Flags(a[0]), opts: opts}
	if a[0]&sourceHandle != 0 {
		s.memory = object
		return s, nil
	}
	var mem gpu.Host
	mem, s.mirror, err = b.host(object, a[7])
	s.memory = mem
	return s, err
}

// rest returns the mirror that the matrix made from the source needs from now on, and drops one that was only copied.
func (b *Bridge) rest(s source) *mirror {
	if s.flags == buffer.DontOwnBuffer {
		return s.mirror
	}
	b.drop(s.mirror)
	return nil
}

func (b *Bridge) from(a []uint32) error {
	s, err := b.source(a[1:])
	if err != nil {
		return err
	}
	m, err := matrix.FromBuffer[matrix.Any](b.dev, s.rows, s.cols, s.memory, s.flags, s.opts...)
	if err != nil {
		b.drop(s.mirror)
		return err
	}
	return b.put(a[0], entry{m: m, mirror: b.rest(s)})
}

// change gives a new handle the matrix of another one, changed. If run fails the matrix stays where it was.
func (b *Bridge) change(a []uint32, run func(m *anyDense) error) (*entry, error) {
	m, err := b.matrix(a[2])
	if err != nil {
		return nil, err
	}
	to, err := b.vacant(a[1])
	if err != nil {
		return nil, err
	}
	before := m.Buffer()
	if err := run(m); err != nil {
		return nil, err
	}
	from := &b.matrices[a[2]]
	*to, *from = *from, entry{}
	if m.Buffer() != before {
		b.drop(to.mirror)
		to.mirror = nil
	}
	return to, nil
}

func (b *Bridge) setValue(a []uint32) error {
	x, err := b.program.run(a[3:])
	if err != nil {
		return err
	}
	part, err := b.program.part(x)
	if err != nil {
		return err
	}
	to, err := b.change(a, func(m *anyDense) error { return m.SetValue(part) })
	if err == nil {
		to.late = nil
	}
	return err
}

func (b *Bridge) setFrom(a []uint32) error {
	s, err := b.source(a[3:])
	if err != nil {
		return err
	}
	to, err := b.change(a, func(m *anyDense) error {
		if m.DType() != s.t {
			return fault.Fail("bridge: SetValueFrom", gpu.ErrInvalid, s.t.String(), " to ", m.DType().String())
		}
		return m.SetValueFrom(s.rows, s.cols, s.memory, s.flags, s.opts...)
	})
	if err != nil {
		b.drop(s.mirror)
		return err
	}
	to.late = nil
	if mirror := b.rest(s); mirror != nil {
		to.mirror = mirror
	}
	return nil
}

func (b *Bridge) resize(a []uint32) error {
	_, err := b.change(a, func(m *anyDense) error { return m.Resize(int(a[3]), int(a[4])) })
	return err
}

func (b *Bridge) setShape(a []uint32) error {
	_, err := b.change(a, func(m *anyDense) error { return m.SetShape(int(a[3]), int(a[4])) })
	return err
}

// alias makes another matrix of the same memory. It is told what the matrix was not told yet.
func (b *Bridge) alias(a []uint32) error {
	m, err := b.matrix(a[1])
	if err != nil {
		return err
	}
	v := m.Alias()
	if err := v.Err(); err != nil {
		return err
	}
	made := b.shared(&b.matrices[a[1]])
	made.m = v
	return b.put(a[0], made)
}

func (b *Bridge) location(a []uint32) error {
	m, err := b.matrix(a[1])
	if err != nil {
		return err
	}
	b.settle(a[0], m.Location().String(), nil)
	return nil
}

func (b *Bridge) touch(a []uint32) error {
	m, err := b.matrix(a[0])
	if err != nil {
		return err
	}
	if mirror := b.matrices[a[0]].mirror; mirror != nil {
		b.page.Load(mirror.object, 0, mirror.bytes)
	}
	return m.Touch()
}
