// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"unsafe"

	"github.com/sublet-gpu/sublet/matrix/internal/expr"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
)

// Sync waits for what is queued and brings results of wrapped memory back into the caller's slice, only what changed.
func (m *Dense[T]) Sync(ctx context.Context) error {
	c := m.core()
	if err := c.usable("Sync"); err != nil || c.buf == nil {
		return err
	}
	return c.buf.Sync(ctx)
}

// Touch says that the caller wrote into the memory that this matrix wraps.
func (m *Dense[T]) Touch() error {
	c := m.core()
	if err := c.usable("Touch"); err != nil || c.buf == nil {
		return err
	}
	return c.buf.Touch()
}

// plain reports whether the elements lie in memory as they are read: row by row and without gaps.
func (m *core) plain() bool {
	return m.Contiguous() && (m.Order == expr.RowMajorOrder || m.Rows <= 1 || m.Cols <= 1)
}

// bytes is how much memory the elements take.
func (m *core) bytes() int { return m.Rows * m.Cols * m.t.Size() }

// ReadHost waits for what is queued and copies the elements, row by row, to host memory of at least that size. A matrix
// that lies in memory in another way is first copied on the device.
func (m *Dense[T]) ReadHost(ctx context.Context, dst gpu.Host) error {
	return m.core().read(ctx, dst)
}

func (m *core) read(ctx context.Context, dst gpu.Host) error {
	const op = "Read"
	if err := m.usable(op); err != nil {
		return err
	}
	n := m.bytes()
	if dst.Size < n {
		return fail(op, ErrShort, itoa(dst.Size), " bytes for ", m.Shape().String(), " of ", DType(m.t).String())
	}
	if n == 0 {
		return nil
	}
	if m.plain() {
		return m.buf.Read(ctx, m.Region(m.t.Size()), dst, 0)
	}
	c := core{t: m.t, typed: true, dev: m.dev}
	if err := c.assign(ctx, op, m.node()); err != nil {
		return err
	}
	return firstError(c.buf.Read(ctx, c.Region(c.t.Size()), dst, 0), c.close())
}

func (m *core) set(src gpu.Host) error {
	const op = "SetSlice"
	if err := m.usable(op); err != nil {
		return err
	}
	n := m.bytes()
	if src.Size != n {
		return fail(op, ErrShort, itoa(src.Size), " bytes for ", m.Shape().String(), " of ", DType(m.t).String())
	}
	if n == 0 {
		return nil
	}
	if m.plain() && m.Offset*m.t.Size()%4 == 0 && m.whole() {
		return m.buf.Write(m.Offset*m.t.Size(), src)
	}
	c, err := newCopy(op, m.dev, placement{t: m.t}, m.Rows, m.Cols, src)
	if err != nil {
		return err
	}
	err = m.assign(context.Background(), op, c.node())
	return firstError(err, c.close())
}

// whole reports whether a write of the matrix's bytes ends at a word's or the buffer's end.
func (m *core) whole() bool {
	end := (m.Offset + m.Span()) * m.t.Size()
	return end%4 == 0 || end == m.buf.Size()
}

// Read waits for what is queued and returns the elements row by row, whatever the order in memory.
func (m *Dense[T]) Read(ctx context.Context) ([]T, error) {
	if err := m.core().usable("Read"); err != nil {
		return nil, err
	}
	out := make([]T, m.a.Rows*m.a.Cols)
	return out, m.ReadTo(ctx, out)
}

// ReadTo is Read into a slice of the caller's with at least rows x cols elements.
func (m *Dense[T]) ReadTo(ctx context.Context, dst []T) error {
	c := m.core()
	if err := c.usable("Read"); err != nil {
		return err
	}
	if isAny[T]() && len(dst) > c.Rows*c.Cols {
		dst = dst[:c.Rows*c.Cols]
	}
	return into(c.t, dst, func(mem gpu.Host) error { return c.read(ctx, mem) })
}

// element checks the place of an element.
func (m *core) element(op string, i, j int) error {
	if err := m.usable(op); err != nil {
		return err
	}
	if i < 0 || i >= m.Rows || j < 0 || j >= m.Cols {
		return fail(op, ErrIndex, itoa(i), ", ", itoa(j), " of ", m.Shape().String())
	}
	return nil
}

// At waits for what is queued and returns one element. Each call is a round trip to the device.
func (m *Dense[T]) At(ctx context.Context, i, j int) (T, error) {
	var v [1]T
	c := m.core()
	if err := c.element("At", i, j); err != nil {
		return v[0], err
	}
	r := c.Layout.Slice(i, i+1, j, j+1).Region(c.t.Size())
	err := into(c.t, v[:], func(mem gpu.Host) error { return c.buf.Read(ctx, r, mem, 0) })
	return v[0], err
}

// Access gives the CPU the memory while fn runs: elements of the whole buffer from the matrix's first to its last, rows
// (columns) at the distance of [Dense.Stride]. With write set, what fn leaves there is the new content. The slice is dead
// afterwards. Mapped memory is handed over in place where the device allows it, other memory is copied as needed.
func (m *Dense[T]) Access(ctx context.Context, write bool, fn func(data []T) error) error {
	const op = "Access"
	c := m.core()
	if err := c.usable(op); err != nil {
		return err
	}
	if fn == nil {
		return fail(op, gpu.ErrInvalid, "nil function")
	}
	if c.buf == nil || c.Span() == 0 {
		return fn(nil)
	}
	size := c.t.Size()
	in := buffer.Reads
	if write {
		in = buffer.Writes
	}
	return c.buf.Access(ctx, buffer.Range(c.Offset*size, c.Span()*size), in, func(b []byte) error {
		if isAny[T]() {
			return accessAny(c.t, b, fn)
		}
		return fn(unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), c.Span()))
	})
}

// accessAny gives fn numbers of type Any for the elements in b, and b what fn leaves there.
func accessAny[T Elem](t fuse.Type, b []byte, fn func([]T) error) error {
	data := make([]T, len(b)/t.Size())
	unpack(any(data).([]Any), t, b)
	err := fn(data)
	copy(b, packed(t, data).Bytes)
	return err
}

// SetSlice replaces all elements by data, row by row. The caller may change data afterwards.
func (m *Dense[T]) SetSlice(data []T) error {
	c := m.core()
	if err := c.usable("SetSlice"); err != nil {
		return err
	}
	return c.set(packed(c.t, data))
}

// SetRows replaces all elements by those of one slice for each row; what is missing in slices that are shorter than a row
// becomes 0. Another number of slices, or one longer than a row, is [ErrShape]. The caller may change them afterwards.
func (m *Dense[T]) SetRows(rows [][]T) error {
	const op = "SetRows"
	c := m.core()
	if err := c.usable(op); err != nil {
		return err
	}
	if len(rows) != c.Rows {
		return fail(op, ErrShape, itoa(len(rows)), " slices for ", c.Shape().String())
	}
	for i, row := range rows {
		if len(row) > c.Cols {
			return fail(op, ErrShape, itoa(len(row)), " elements for row ", itoa(i), " of ", c.Shape().String())
		}
	}
	data := make([]T, c.Rows*c.Cols)
	for i, row := range rows {
		copy(data[i*c.Cols:], row)
	}
	return m.SetSlice(data)
}

// Set changes one element.
func (m *Dense[T]) Set(i, j int, v T) error {
	c := m.core()
	if err := c.element("Set", i, j); err != nil {
		return err
	}
	e := c.slice("Set", i, i+1, j, j+1)
	return firstError(e.set(packed(c.t, []T{v})), e.close())
}
