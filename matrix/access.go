// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"unsafe"

	"github.com/sublet-gpu/sublet/gpu"
)

// Sync waits for what is queued and brings results of wrapped memory back into the caller's, only what changed.
func (m *Any) Sync(ctx context.Context) error {
	if err := m.usable("Sync"); err != nil {
		return err
	}
	if m.buf == nil {
		return nil
	}
	return m.buf.Sync(ctx)
}

// Touch says that the caller wrote into the memory that this matrix wraps.
func (m *Any) Touch() error {
	if err := m.usable("Touch"); err != nil {
		return err
	}
	if m.buf == nil {
		return nil
	}
	return m.buf.Touch()
}

// plain reports whether the elements lie in memory as they are read: row by row and without gaps.
func (m *Any) plain() bool {
	return m.contiguous() && (m.order == RowMajorOrder || m.rows <= 1 || m.cols <= 1)
}

// ReadHost waits for what is queued and copies the elements, row by row, to host memory of at least that size. A matrix
// that lies in memory in another way is first copied on the device.
func (m *Any) ReadHost(ctx context.Context, dst gpu.Host) error {
	const op = "Read"
	if err := m.usable(op); err != nil {
		return err
	}
	n := m.rows * m.cols * m.t.Size()
	if dst.Size < n {
		return fail(op, ErrShort, itoa(dst.Size), " bytes for ", m.shape().String(), " of ", DType(m.t).String())
	}
	if n == 0 {
		return nil
	}
	if m.plain() {
		return m.buf.Read(ctx, m.region(m.t.Size()), dst, 0)
	}
	c := &Any{t: m.t, dev: m.dev}
	if err := c.assign(op, m.node()); err != nil {
		return err
	}
	err := c.buf.Read(ctx, c.region(c.t.Size()), dst, 0)
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return err
}

// SetHost replaces all elements by those in host memory, row by row. The caller may change it afterwards.
func (m *Any) SetHost(src gpu.Host) error {
	const op = "SetSlice"
	if err := m.usable(op); err != nil {
		return err
	}
	n := m.rows * m.cols * m.t.Size()
	if src.Size != n {
		return fail(op, ErrShort, itoa(src.Size), " bytes for ", m.shape().String(), " of ", DType(m.t).String())
	}
	if n == 0 {
		return nil
	}
	if m.plain() && m.offset*m.t.Size()%4 == 0 && m.whole() {
		return m.buf.Write(m.offset*m.t.Size(), src)
	}
	c, err := CopyAny(m.dev, DType(m.t), m.rows, m.cols, src)
	if err != nil {
		return err
	}
	err = m.assign(op, c.node())
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return err
}

// whole reports whether a write of the matrix's bytes ends at a word's or the buffer's end.
func (m *Any) whole() bool {
	end := (m.offset + m.span()) * m.t.Size()
	return end%4 == 0 || end == m.buf.Size()
}

// Read waits for what is queued and returns the elements row by row, whatever the order in memory.
func (m *Dense[T]) Read(ctx context.Context) ([]T, error) {
	if err := m.Any().usable("Read"); err != nil {
		return nil, err
	}
	out := make([]T, m.a.rows*m.a.cols)
	return out, m.ReadTo(ctx, out)
}

// ReadTo is Read into a slice of the caller's with at least rows x cols elements.
func (m *Dense[T]) ReadTo(ctx context.Context, dst []T) error {
	return m.Any().ReadHost(ctx, hostOf(dst))
}

// At waits for what is queued and returns one element. Each call is a round trip to the device.
func (m *Dense[T]) At(ctx context.Context, i, j int) (T, error) {
	var v [1]T
	if err := m.Any().usable("At"); err != nil {
		return v[0], err
	}
	if i < 0 || i >= m.a.rows || j < 0 || j >= m.a.cols {
		return v[0], fail("At", ErrIndex, itoa(i), ", ", itoa(j), " of ", m.a.shape().String())
	}
	r := m.a.layout.slice(i, i+1, j, j+1).region(m.a.t.Size())
	err := m.a.buf.Read(ctx, r, hostOf(v[:]), 0)
	return v[0], err
}

// Access gives the CPU the memory while fn runs: elements of the whole buffer from the matrix's first to its last, rows
// (columns) at the distance of [Dense.Stride]. With write set, what fn leaves there is the new content. The slice is dead
// afterwards. Mapped memory is handed over in place where the device allows it, other memory is copied as needed.
func (m *Dense[T]) Access(ctx context.Context, write bool, fn func(data []T) error) error {
	const op = "Access"
	if err := m.Any().usable(op); err != nil {
		return err
	}
	if fn == nil {
		return fail(op, ErrInvalid, "nil function")
	}
	if m.a.buf == nil || m.a.span() == 0 {
		return fn(nil)
	}
	return m.a.buf.Access(ctx, write, func(b []byte) error {
		var z T
		all := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(z)))
		end := m.a.offset + m.a.span()
		return fn(all[m.a.offset:end:end])
	})
}

// SetSlice replaces all elements by data, row by row. The caller may change data afterwards.
func (m *Dense[T]) SetSlice(data []T) error { return m.Any().SetHost(hostOf(data)) }

// SetRows replaces all elements by those of one slice for each row; what is missing in slices that are shorter than a row
// becomes 0. Another number of slices, or one longer than a row, is [ErrShape]. The caller may change them afterwards.
func (m *Dense[T]) SetRows(rows [][]T) error {
	const op = "SetRows"
	if err := m.Any().usable(op); err != nil {
		return err
	}
	if len(rows) != m.a.rows {
		return fail(op, ErrShape, itoa(len(rows)), " slices for ", m.a.shape().String())
	}
	for i, row := range rows {
		if len(row) > m.a.cols {
			return fail(op, ErrShape, itoa(len(row)), " elements for row ", itoa(i), " of ", m.a.shape().String())
		}
	}
	data := make([]T, m.a.rows*m.a.cols)
	for i, row := range rows {
		copy(data[i*m.a.cols:], row)
	}
	return m.SetSlice(data)
}

// Set changes one element.
func (m *Dense[T]) Set(i, j int, v T) error {
	if err := m.Any().usable("Set"); err != nil {
		return err
	}
	if i < 0 || i >= m.a.rows || j < 0 || j >= m.a.cols {
		return fail("Set", ErrIndex, itoa(i), ", ", itoa(j), " of ", m.a.shape().String())
	}
	e := m.a.slice("Set", i, i+1, j, j+1)
	err := e.SetHost(hostOf([]T{v}))
	if cerr := e.Close(); err == nil {
		err = cerr
	}
	return err
}

// Host returns the memory of a slice of elements, for [WrapHost].
func Host[T Elem](data []T) gpu.Host { return hostOf(data) }
