// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// Dense is a matrix of rows x cols elements in device memory. Make one with [New], [FromSlice], [Wrap], [WrapBuffer] or
// [Map]; the zero value is an empty matrix that takes device and size from the first expression assigned to it. Close it
// when done. A Dense may be used from several goroutines as long as none assigns to it or closes it meanwhile.
type Dense[T Elem] struct{ a core }

// core returns the matrix without its element type of Go's.
func (m *Dense[T]) core() *core {
	if m == nil {
		return nil
	}
	if !m.a.typed {
		if t := typeOf[T](); !isAny[T]() {
			m.a.t, m.a.typed = t, true
		}
	}
	return &m.a
}

// As returns the matrix as one of another element type of Go's: the same matrix, not a copy. Its type must be what T is, or T
// be [Any]: [gpu.ErrInvalid] otherwise.
func As[T, F Elem](m *Dense[F]) (*Dense[T], error) {
	const op = "As"
	c := m.core()
	if c == nil {
		return nil, fail(op, ErrNil, "nil matrix")
	}
	if t := typeOf[T](); !isAny[T]() && c.typed && c.t != t {
		return nil, fail(op, gpu.ErrInvalid, DType(c.t).String(), " as ", DType(t).String())
	}
	return (*Dense[T])(m), nil
}

// New makes an owned matrix of zeros.
func New[T Elem](dev *gpu.Device, rows, cols int, opts ...Option) (*Dense[T], error) {
	const op = "New"
	p, err := placementOf[T](op, opts)
	if err != nil {
		return nil, err
	}
	return typed[T](newOwned(op, dev, p, rows, cols, func(size int) (*buffer.Buffer, error) { return buffer.New(dev, size) }))
}

// FromSlice makes an owned matrix with a copy of data, which holds rows x cols elements row by row (column by column with
// [ColMajor]), or as the options say. The caller may change data afterwards.
func FromSlice[T Elem](dev *gpu.Device, rows, cols int, data []T, opts ...Option) (*Dense[T], error) {
	const op = "FromSlice"
	p, err := placementOf[T](op, opts)
	if err != nil {
		return nil, err
	}
	return typed[T](newCopy(op, dev, p, rows, cols, packed(p.t, data)))
}

// FromRows makes an owned matrix of as many rows as there are slices and as many columns as the longest has elements. What is
// missing in shorter ones is 0.
func FromRows[T Elem](dev *gpu.Device, rows [][]T, opts ...Option) (*Dense[T], error) {
	cols := 0
	for _, row := range rows {
		cols = max(cols, len(row))
	}
	m, err := New[T](dev, len(rows), cols, opts...)
	if err != nil {
		return nil, err
	}
	if err := m.SetRows(rows); err != nil {
		return nil, firstError(err, m.Close())
	}
	return m, nil
}

// Wrap makes a matrix of the caller's own slice. Nothing is copied now: kernels get the bits when they first need them,
// and results reach the slice at [Dense.Sync]. The matrix is never resized. The slice must stay unchanged while a call
// runs that reads it; after changing it, call [Dense.Touch]. A slice of [Any] is no memory of a device's: [gpu.ErrUnsupported].
//
// The slice may be larger than the device's largest buffer. Kernels then get parts of it, and expressions are computed in
// blocks.
func Wrap[T Elem](dev *gpu.Device, rows, cols int, data []T, opts ...Option) (*Dense[T], error) {
	if isAny[T]() {
		return nil, fail("Wrap", gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	}
	return WrapHost[T](dev, rows, cols, hostOf(data), opts...)
}

// WrapHost is [Wrap] for memory that is not a Go slice of T: bytes of a mapped file, or in a page a typed array given as
// js.Value in mem.Foreign. A matrix of ReadOnly memory is an operand like any other; as a destination it is [gpu.ErrReadOnly].
func WrapHost[T Elem](dev *gpu.Device, rows, cols int, mem gpu.Host, opts ...Option) (*Dense[T], error) {
	p, err := placementOf[T]("Wrap", opts)
	if err != nil {
		return nil, err
	}
	w := new(struct {
		m Dense[T]
		wrapped
	})
	if w.m.a, err = newWrap(&w.wrapped, dev, &p, rows, cols, mem); err != nil {
		return nil, err
	}
	return &w.m, nil
}

// WrapBuffer makes a matrix of a GPU buffer that somebody else made on this very device: a *wgpu.Buffer natively, a
// GPUBuffer in a page. Kernels use it in place, nothing is copied. It is never resized, and never destroyed without
// [Destroy]. Keep it until the matrix is closed: a GPUBuffer that was destroyed is an error later. A *wgpu.Buffer that was
// released before is [gpu.ErrClosed] on Linux and Windows; elsewhere that cannot be told, and using it ends the process.
func WrapBuffer[T Elem](dev *gpu.Device, rows, cols int, handle any, opts ...Option) (*Dense[T], error) {
	p, err := placementOf[T]("WrapBuffer", opts)
	if err != nil {
		return nil, err
	}
	return typed[T](newImport(dev, p, rows, cols, handle))
}

// Map makes a matrix of zeros in memory that the CPU can reach: in place where the device allows it, else with a copy
// behind the scenes. See [Dense.Access].
func Map[T Elem](dev *gpu.Device, rows, cols int, opts ...Option) (*Dense[T], error) {
	const op = "Map"
	p, err := placementOf[T](op, opts)
	if err != nil {
		return nil, err
	}
	m, err := newOwned(op, dev, p, rows, cols, func(size int) (*buffer.Buffer, error) { return buffer.Map(dev, size) })
	if err == nil {
		m.fix(nil)
	}
	return typed[T](m, err)
}

func typed[T Elem](m core, err error) (*Dense[T], error) {
	if err != nil {
		return nil, err
	}
	return &Dense[T]{m}, nil
}

// Dims returns the number of rows and columns.
func (m *Dense[T]) Dims() (rows, cols int) { return m.core().dims() }

// IsEmpty reports whether the matrix has no elements: the zero value, what [Dense.Reset] and [Dense.Move] leave, and every
// matrix without rows or columns.
func (m *Dense[T]) IsEmpty() bool { return m == nil || m.a.Empty() }

// DType returns the element type.
func (m *Dense[T]) DType() DType {
	if t := typeOf[T](); m == nil || !m.a.typed {
		if isAny[T]() {
			return Float32
		}
		return DType(t)
	}
	return DType(m.a.t)
}

// state returns the matrix, for queries: an empty one in place of nil.
func (m *Dense[T]) state() *core {
	if m == nil {
		return new(core)
	}
	return &m.a
}

// Stride returns the distance in elements between two rows, or columns in column-major order.
func (m *Dense[T]) Stride() int { return m.state().Stride }

// Order returns the order of the elements in memory.
func (m *Dense[T]) Order() Order { return m.state().Order }

// Offset returns how many elements of the buffer lie before the first.
func (m *Dense[T]) Offset() int { return m.state().Offset }

// Device returns the matrix's device, nil for the zero value.
func (m *Dense[T]) Device() *gpu.Device { return m.state().dev }

// Buffer returns the memory, nil for the zero value. It stays the matrix's.
func (m *Dense[T]) Buffer() *buffer.Buffer { return m.state().buf }

// External reports whether the matrix uses somebody else's memory. [Dense.SetValueFrom] may change it, the memory staying
// where it is; who frees the memory is another question, which the [Release] option answers.
func (m *Dense[T]) External() bool { return m.state().external }

// Capacity returns how many elements the memory has for the matrix: of memory that is not ours, those of the size that it
// was wrapped with.
func (m *Dense[T]) Capacity() int { return m.core().capacity() }

// Err returns the error a view was made with, or nil.
func (m *Dense[T]) Err() error {
	if m == nil {
		return fail("Err", ErrNil, "nil matrix")
	}
	return m.a.err
}

// Close drops the matrix's share of its memory; views and aliases keep theirs. Later calls do nothing.
func (m *Dense[T]) Close() error { return m.core().close() }

// Views share memory with the matrix they were taken from and keep it alive; what is written through one is seen through
// all. A matrix cannot be resized while it has views: close them when done. Those that stand inside an expression need not be
// closed and do not count; once the matrix was resized they are [ErrView]. A view of a bad range or of a closed matrix carries
// the error and reports it at its first use, so that views can stand inside expressions; [Dense.Err] tells earlier.

// T returns the transpose. Nothing moves.
func (m *Dense[T]) T() *Dense[T] { return view[T](m.core().transposed()) }

// Slice returns rows i to k-1 and columns j to l-1, in the order (i, k, j, l) of gonum.
func (m *Dense[T]) Slice(i, k, j, l int) *Dense[T] {
	return view[T](m.core().slice("Slice", i, k, j, l))
}

// Row returns row i as a matrix of one row.
func (m *Dense[T]) Row(i int) *Dense[T] { return view[T](m.core().rows("Row", i, 1)) }

// Col returns column j as a matrix of one column.
func (m *Dense[T]) Col(j int) *Dense[T] { return view[T](m.core().columns("Col", j, 1)) }

// ColumnSlice returns n columns from start on.
func (m *Dense[T]) ColumnSlice(start, n int) *Dense[T] {
	return view[T](m.core().columns("ColumnSlice", start, n))
}

// RowSlice returns n rows from start on.
func (m *Dense[T]) RowSlice(start, n int) *Dense[T] {
	return view[T](m.core().rows("RowSlice", start, n))
}

// Reshape returns a rows x cols view of a matrix without gaps; the elements keep their order in memory.
func (m *Dense[T]) Reshape(rows, cols int) *Dense[T] { return view[T](m.core().reshaped(rows, cols)) }

// DiagView returns the diagonal of a square matrix as a view of one row.
func (m *Dense[T]) DiagView() *Dense[T] { return view[T](m.core().diagonal()) }

// Alias returns another matrix of the same memory and layout. It has to be closed before either can be resized.
func (m *Dense[T]) Alias() *Dense[T] { return view[T](m.core().alias()) }
