// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"errors"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/matrix"
	"github.com/sublet-gpu/sublet/wasm/internal/page"
)

// hostOf returns memory of the page's for the device.
func hostOf(object any, size uint32) gpu.Host { return page.Memory(object, int(size)) }

// read copies bytes of a buffer to the page, which has room for so many, and settles the ticket. The memory is read without the
// buffer, which would keep everybody else from it meanwhile. What is queued here comes before whatever happens to the buffer later.
// of are the expressions with systems that the values come from: one without a solution is an error.
func (b *Bridge) read(ticket uint32, buf *buffer.Buffer, offset, width int, object any, room uint32, of []systems) {
	if int64(room) < int64(width) {
		page.Check(fault.Fail("bridge: Read", buffer.ErrShort, itoa(int(room)), " bytes for ", itoa(width)))
	}
	if width == 0 {
		b.Settle(ticket, nil, nil)
		return
	}
	mem := page.Must(buf.Memory(buffer.Reads))
	transfer := gpu.Transfer{Offset: uint64(offset), Width: width, Pitch: width, Count: 1, Host: hostOf(object, room)}
	b.Queue(ticket, func(ctx context.Context) (any, error) {
		results := make([]*anyDense, len(of)) // which the program closes as soon as this waits
		for i, s := range of {
			results[i] = s.result.Alias()
		}
		err := mem.Read(ctx, transfer)
		for i, s := range of {
			if err == nil {
				err = unsolved(ctx, s.expr.Solved(ctx, results[i]))
			}
			_ = results[i].Close()
		}
		return nil, err
	})
}

// unsolved is an error that says that there is no solution, or that nobody found out, as the context ended. Others, as of operands that the page
// has closed or changed since, leave the values what they are: they were read.
func unsolved(ctx context.Context, err error) error {
	if err == nil || errors.Is(err, matrix.ErrSingular) || errors.Is(err, matrix.ErrNotPosDef) {
		return err
	}
	return ctx.Err()
}

// systems are an expression in which systems are solved, and what it was evaluated to.
type systems struct {
	expr   anyExpr
	result *anyDense
}

// The commands of the memory contract: what matrices are made from, and what becomes of their memory.

// Bits of a form above the element type.
const (
	formColumns = 1 << (8 + iota)
	formPadded
	formRowMajorInput
	formEnd
)

// form is a matrix's element type and the options that are yes or no.
func form(word uint32) matrix.Options {
	if word&0xff > uint32(matrix.Complex64) || word >= formEnd {
		page.Invalid("form " + itoa(int(word)))
	}
	return matrix.Options{
		Type: matrix.DType(word & 0xff), ColMajor: word&formColumns != 0, Padded: word&formPadded != 0,
		RowMajorInput: word&formRowMajorInput != 0,
	}
}

// place is form with the offset and the stride, of the words form rows cols offset stride.
func place(a []uint32) (rows, cols int, o matrix.Options) {
	o = form(a[0])
	o.Offset, o.Stride = int(a[3]), int(a[4])
	return int(a[1]), int(a[2]), o
}

// isForm reports whether a matrix has that size and form.
func isForm(m *anyDense, rows, cols int, o matrix.Options) bool {
	r, c := m.Dims()
	return r == rows && c == cols && m.DType() == o.Type && m.ColMajor() == o.ColMajor
}

// newMatrix makes a matrix of zeros, or of the page's elements.
func (b *Bridge) newMatrix(a []uint32) {
	var object any
	data := b.Read(a[6:])
	given := data.Left()
	if given {
		object = data.Object() // in any case, so that the page forgets it
	}
	rows, cols, o := place(a[1:])
	if !given {
		b.put(a[0], &entry{value: page.Must(matrix.New[matrix.Any](b.dev, rows, cols, o))})
		return
	}
	size := data.Word()
	b.fill(a[0], func(spare *anyDense) *anyDense {
		if spare != nil && isForm(spare, rows, cols, o) && page.Guard(func() { b.setData(spare, object, size) }) == nil {
			return spare
		}
		m := page.Must(matrix.New[matrix.Any](b.dev, rows, cols, o))
		if err := page.Guard(func() { b.setData(m, object, size) }); err != nil {
			_ = m.Close()
			page.Check(err)
		}
		return m
	})
}

// data replaces the elements of a matrix by the page's, which are in its order and without gaps.
func (b *Bridge) data(a []uint32) {
	object := b.Object(a[1]) // in any case, so that the page forgets it
	m := b.matrix(a[0])
	b.write(a[0], func() { b.setData(m, object, a[2]) })
}

func (b *Bridge) setData(m *anyDense, object any, size uint32) {
	rows, cols := m.Dims()
	buf := m.Buffer()
	if rows*cols*m.DType().Size() != buf.Size() { // elsewhere in it are other elements
		o := matrix.Options{Type: m.DType(), ColMajor: m.ColMajor()}
		c := page.Must(matrix.FromBuffer[matrix.Any](b.dev, rows, cols, hostOf(object, size), 0, o))
		page.Check(cmp.Or(m.Expr().Matrix().Assign(c), c.Close()))
		return
	}
	// The page sends whole words, so the last one may go beyond the buffer's end: into memory that nobody uses.
	if int64(size) < int64(buf.Size()) || int64(size) > (int64(buf.Size())+3)/4*4 {
		page.Check(fault.Fail("bridge: Write", buffer.ErrShort, itoa(int(size)), " bytes for ", itoa(buf.Size())))
	}
	if size > 0 {
		page.Check(buf.Write(0, hostOf(object, uint32(buf.Size()))))
	}
}

// sourceWords is how many words a source has.
const sourceWords = 8

// sourceHandle is the flag of a source that is a GPUBuffer.
const sourceHandle = 1 << 8

// source is memory that a matrix is made from.
type source struct {
	rows, cols int
	memory     any // gpu.Host or the handle of a GPU buffer
	flags      buffer.Flags
	options    matrix.Options
}

func (b *Bridge) source(a []uint32) (s source) {
	s.flags, s.memory = buffer.Flags(a[0]), b.Object(a[6])
	s.rows, s.cols, s.options = place(a[1:])
	if a[0]&sourceHandle == 0 {
		s.memory = hostOf(s.memory, a[7])
	}
	return s
}

func (b *Bridge) from(a []uint32) {
	s := b.source(a[1:])
	b.put(a[0], &entry{value: page.Must(matrix.FromBuffer[matrix.Any](b.dev, s.rows, s.cols, s.memory, s.flags, s.options))})
}

// change gives a new handle the matrix of another one, changed. If run stops the matrix stays where it was.
func (b *Bridge) change(a []uint32, run func(m *anyDense)) *entry {
	m := b.matrix(a[2])
	b.vacant(a[1])
	run(m)
	e := b.entries[a[2]]
	delete(b.entries, a[2])
	b.entries[a[1]] = e
	return e
}

func (b *Bridge) setValue(a []uint32) {
	part := b.program.part(b.program.run(a[3:]))
	b.change(a, func(m *anyDense) { page.Check(m.SetValue(part)) }).err = nil
}

func (b *Bridge) setFrom(a []uint32) {
	s := b.source(a[3:])
	b.change(a, func(m *anyDense) {
		page.Check(m.SetValueFrom(s.rows, s.cols, s.memory, s.flags, s.options))
	}).err = nil
}

func (b *Bridge) resize(a []uint32) {
	b.change(a, func(m *anyDense) { page.Check(m.Resize(int(a[3]), int(a[4]))) })
}

func (b *Bridge) setShape(a []uint32) {
	b.change(a, func(m *anyDense) { page.Check(m.SetShape(int(a[3]), int(a[4]))) })
}

// alias makes another matrix of the same memory. It is told what the matrix was not told yet.
func (b *Bridge) alias(a []uint32) {
	v := b.matrix(a[1]).Alias()
	page.Check(v.Err())
	b.put(a[0], &entry{value: v, err: b.entries[a[1]].err})
}

func (b *Bridge) location(a []uint32) {
	b.Settle(a[0], b.matrix(a[1]).Buffer().Location().String(), nil)
}
