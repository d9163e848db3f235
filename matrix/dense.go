// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Dense is a matrix of rows x cols elements in device memory. Make one with [New], [FromSlice], [Wrap], [WrapBuffer] or
// [Map]; the zero value is an empty matrix that takes device and size from the first expression assigned to it. Close it
// when done. A Dense may be used from several goroutines as long as none assigns to it or closes it meanwhile.
type Dense[T Elem] struct{ a core }

// core returns the matrix without its element type of Go's, and in place of nil one that says so.
func (m *Dense[T]) core() *core {
	if m == nil {
		m = &Dense[T]{core{err: fail("Dense", buffer.ErrNil, "nil matrix")}}
	}
	if t := typeOf[T](); !m.a.typed && t != expr.Untyped {
		m.a.t, m.a.typed = t, true
	}
	return &m.a
}

// As returns the matrix as one of another element type of Go's: the same matrix, not a copy. Its type must be what T is, or T
// be [Any]: [gpu.ErrInvalid] otherwise.
func As[T, F Elem](m *Dense[F]) (*Dense[T], error) {
	const op = "As"
	c := m.core()
	switch t := typeOf[T](); {
	case m == nil:
		return nil, c.err
	case t != expr.Untyped && c.typed && c.t != t:
		return nil, fail(op, gpu.ErrInvalid, c.t.String(), " as ", t.String())
	}
	return (*Dense[T])(m), nil
}

// New makes an owned matrix of zeros.
func New[T Elem](dev *gpu.Device, rows, cols int, opts ...Options) (*Dense[T], error) {
	return construct[T]("New", dev, rows, cols, memory{}, opts)
}

// Map makes a matrix of zeros in memory that the CPU can reach: in place where the device allows it, else with a copy
// behind the scenes. See [Dense.Access].
func Map[T Elem](dev *gpu.Device, rows, cols int, opts ...Options) (*Dense[T], error) {
	return construct[T]("Map", dev, rows, cols, memory{mapped: true}, opts)
}

func construct[T Elem](op string, dev *gpu.Device, rows, cols int, mem memory, opts []Options) (*Dense[T], error) {
	o, err := parse(op, typeOf[T](), opts)
	if err != nil {
		return nil, err
	}
	return typed[T](newCore(op, dev, &o, rows, cols, &mem, new(origin)))
}

func typed[T Elem](m core, err error) (*Dense[T], error) {
	if err != nil {
		return nil, err
	}
	return &Dense[T]{m}, nil
}

// FromSlice makes an owned matrix with a copy of data, which holds rows x cols elements row by row, or as the options say. The
// caller may change data afterwards.
func FromSlice[T Elem](dev *gpu.Device, rows, cols int, data []T, opts ...Options) (*Dense[T], error) {
	mem := memoryOf[T](data)
	mem.copied = true
	return construct[T]("FromSlice", dev, rows, cols, mem, opts)
}

// FromRows makes an owned matrix of as many rows as there are slices and as many columns as the longest has elements. What is
// missing in shorter ones is 0.
func FromRows[T Elem](dev *gpu.Device, rows [][]T, opts ...Options) (*Dense[T], error) {
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
// blocks. For memory that is no slice of T, such as bytes of a mapped file, there is [FromBuffer].
func Wrap[T Elem](dev *gpu.Device, rows, cols int, data []T, opts ...Options) (*Dense[T], error) {
	const op = "Wrap"
	o, err := parse(op, typeOf[T](), opts)
	if err != nil {
		return nil, err
	}
	if isAny[T]() {
		return nil, fail(op, gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	}
	w := new(struct { // one allocation
		m      Dense[T]
		b      buffer.Buffer
		origin origin
	})
	mem := memory{host: hostOf(data), isHost: true, wrapper: &w.b}
	if w.m.a, err = newCore(op, dev, &o, rows, cols, &mem, &w.origin); err != nil {
		return nil, err
	}
	return &w.m, nil
}

// WrapBuffer makes a matrix of a GPU buffer that somebody else made on this very device: a *wgpu.Buffer natively, a
// GPUBuffer in a page. Kernels use it in place, nothing is copied. It is never resized, and never destroyed without Destroy
// among the options. Keep it until the matrix is closed: a GPUBuffer that was destroyed is an error later. A *wgpu.Buffer that
// was released before is [gpu.ErrClosed] on Linux and Windows; elsewhere that cannot be told, and using it ends the process.
func WrapBuffer[T Elem](dev *gpu.Device, rows, cols int, handle any, opts ...Options) (*Dense[T], error) {
	return FromBuffer[T](dev, rows, cols, handle, buffer.DontOwnBuffer, opts...)
}

// Dims returns the number of rows and columns.
func (m *Dense[T]) Dims() (rows, cols int) {
	c := m.core()
	return c.Rows, c.Cols
}

// IsEmpty reports whether the matrix has no elements: the zero value, what [Dense.Reset] and [Dense.Move] leave, and every
// matrix without rows or columns.
func (m *Dense[T]) IsEmpty() bool { return m.core().Empty() }

// DType returns the element type.
func (m *Dense[T]) DType() DType { return m.core().t }

// Stride returns the distance in elements between two rows, or columns in column-major order.
func (m *Dense[T]) Stride() int { return m.core().Stride }

// ColMajor reports whether columns lie one after the other in memory, not rows.
func (m *Dense[T]) ColMajor() bool { return m.core().Order == expr.ColMajorOrder }

// Offset returns how many elements of the buffer lie before the first.
func (m *Dense[T]) Offset() int { return m.core().Offset }

// Device returns the matrix's device, nil for the zero value.
func (m *Dense[T]) Device() *gpu.Device { return m.core().dev }

// Buffer returns the memory, nil for the zero value. It stays the matrix's.
func (m *Dense[T]) Buffer() *buffer.Buffer { return m.core().buf }

// External reports whether the matrix uses somebody else's memory. [Dense.SetValueFrom] may change it, the memory staying
// where it is; who frees the memory is another question, which Release among the options answers.
func (m *Dense[T]) External() bool { return m.core().external }

// Capacity returns how many elements the memory has for the matrix: of memory that is not ours, those of the size that it
// was wrapped with.
func (m *Dense[T]) Capacity() int { return m.core().capacity() }

// Err returns the error a view was made with, or nil.
func (m *Dense[T]) Err() error { return m.core().err }

// Close drops the matrix's share of its memory; views and aliases keep theirs. Later calls do nothing.
func (m *Dense[T]) Close() error { return m.core().close() }

// Views share memory with the matrix they were taken from and keep it alive; what is written through one is seen through
// all. A matrix cannot be resized while it has views: close them when done. Those that stand inside an expression need not be
// closed and do not count; once the matrix was resized they are [ErrView]. A view of a bad range or of a closed matrix carries
// the error and reports it at its first use, so that views can stand inside expressions; [Dense.Err] tells earlier.

// T returns the transpose. Nothing moves.
func (m *Dense[T]) T() *Dense[T] { return &Dense[T]{m.core().transposed("T")} }

// Slice returns rows i to k-1 and columns j to l-1, in the order (i, k, j, l) of gonum.
func (m *Dense[T]) Slice(i, k, j, l int) *Dense[T] {
	return &Dense[T]{m.core().slice("Slice", i, k, j, l)}
}

// Row returns row i as a matrix of one row.
func (m *Dense[T]) Row(i int) *Dense[T] { return &Dense[T]{m.core().rows("Row", i, 1)} }

// Col returns column j as a matrix of one column.
func (m *Dense[T]) Col(j int) *Dense[T] { return &Dense[T]{m.core().columns("Col", j, 1)} }

// ColumnSlice returns n columns from start on.
func (m *Dense[T]) ColumnSlice(start, n int) *Dense[T] {
	return &Dense[T]{m.core().columns("ColumnSlice", start, n)}
}

// RowSlice returns n rows from start on.
func (m *Dense[T]) RowSlice(start, n int) *Dense[T] {
	return &Dense[T]{m.core().rows("RowSlice", start, n)}
}

// Reshape returns a rows x cols view of a matrix without gaps; the elements keep their order in memory.
func (m *Dense[T]) Reshape(rows, cols int) *Dense[T] {
	const op = "Reshape"
	return &Dense[T]{m.core().derive(op, func(l expr.Layout) (expr.Layout, error) { return l.Reshape(op, rows, cols) })}
}

// DiagView returns the diagonal of a square matrix as a view of one row.
func (m *Dense[T]) DiagView() *Dense[T] {
	return &Dense[T]{m.core().derive("DiagView", func(l expr.Layout) (expr.Layout, error) {
		if l.Rows != l.Cols {
			return l, expr.ShapeError("DiagView", l.Shape())
		}
		return expr.Layout{Rows: 1, Cols: l.Cols, Offset: l.Offset, Stride: l.Stride + 1, Order: expr.ColMajorOrder}, nil
	})}
}

// Alias returns another matrix of the same memory and layout. It has to be closed before either can be resized.
func (m *Dense[T]) Alias() *Dense[T] { return &Dense[T]{m.core().alias()} }
