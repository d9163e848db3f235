// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"runtime"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// Dense is a matrix of rows x cols elements in device memory. Make one with [New], [FromSlice], [Wrap], [WrapBuffer] or
// [Map]; the zero value is an empty matrix that takes device and size from the first expression assigned to it. Close it
// when done. A Dense may be used from several goroutines as long as none assigns to it or closes it meanwhile.
type Dense[T Elem] struct{ a Any }

// Any returns the matrix without its element type of Go's: the same matrix, not a copy.
func (m *Dense[T]) Any() *Any {
	if m == nil {
		return nil
	}
	m.a.t = typeOf[T]()
	return &m.a
}

// New makes an owned matrix of zeros.
func New[T Elem](dev *gpu.Device, rows, cols int, opts ...Option) (*Dense[T], error) {
	return typed[T](NewAny(dev, dtypeOf[T](), rows, cols, opts...))
}

// FromSlice makes an owned matrix with a copy of data, which holds rows x cols elements row by row (column by column with
// [ColMajor]), or as the options say. The caller may change data afterwards.
func FromSlice[T Elem](dev *gpu.Device, rows, cols int, data []T, opts ...Option) (*Dense[T], error) {
	return typed[T](CopyAny(dev, dtypeOf[T](), rows, cols, hostOf(data), opts...))
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
// runs that reads it; after changing it, call [Dense.Touch].
//
// The slice may be larger than the device's largest buffer. Kernels then get parts of it, and expressions are computed in
// blocks. Results in one part must be synced before another part is used that overlaps it: [buffer.ErrUnsynced] otherwise.
func Wrap[T Elem](dev *gpu.Device, rows, cols int, data []T, opts ...Option) (*Dense[T], error) {
	return WrapHost[T](dev, rows, cols, hostOf(data), opts...)
}

// WrapHost is [Wrap] for memory that is not a Go slice of T: bytes of a mapped file, or in a page a typed array given as
// js.Value in mem.Foreign. A matrix of ReadOnly memory is an operand like any other; as a destination it is [ErrReadOnly].
func WrapHost[T Elem](dev *gpu.Device, rows, cols int, mem gpu.Host, opts ...Option) (*Dense[T], error) {
	w := new(struct {
		m Dense[T]
		b buffer.Buffer
	})
	if err := w.m.a.wrap(&w.b, dev, dtypeOf[T](), rows, cols, mem, opts); err != nil {
		return nil, err
	}
	return &w.m, nil
}

// WrapBuffer makes a matrix of a GPU buffer that somebody else made on this very device: a *wgpu.Buffer natively, a
// GPUBuffer in a page. Kernels use it in place, nothing is copied. It is never resized, and never destroyed without
// [Destroy]. Keep it until the matrix is closed: a GPUBuffer that was destroyed is an error later. A *wgpu.Buffer that was
// released before is [ErrClosed] on Linux and Windows; elsewhere that cannot be told, and using it ends the process.
func WrapBuffer[T Elem](dev *gpu.Device, rows, cols int, handle any, opts ...Option) (*Dense[T], error) {
	return typed[T](WrapAnyBuffer(dev, dtypeOf[T](), rows, cols, handle, opts...))
}

// Map makes a matrix of zeros in memory that the CPU can reach: in place where the device allows it, else with a copy
// behind the scenes. See [Dense.Access].
func Map[T Elem](dev *gpu.Device, rows, cols int, opts ...Option) (*Dense[T], error) {
	return typed[T](MapAny(dev, dtypeOf[T](), rows, cols, opts...))
}

func typed[T Elem](m *Any, err error) (*Dense[T], error) {
	if err != nil {
		return nil, err
	}
	return &Dense[T]{*m}, nil
}

// view gives a view its element type, and the net that drops its share if nobody closes it.
func view[T Elem](a Any) *Dense[T] {
	v := &Dense[T]{a}
	if a.buf != nil {
		v.a.net = runtime.AddCleanup(v, func(b *buffer.Buffer) { _ = b.Close() }, a.buf)
	}
	return v
}

// Dims returns the number of rows and columns.
func (m *Dense[T]) Dims() (rows, cols int) { return m.Any().Dims() }

// IsEmpty reports whether the matrix has no elements: the zero value, what [Dense.Reset] and [Dense.Move] leave, and every
// matrix without rows or columns.
func (m *Dense[T]) IsEmpty() bool { return m == nil || m.a.empty() }

// DType returns the element type.
func (m *Dense[T]) DType() DType { return dtypeOf[T]() }

// Stride returns the distance in elements between two rows, or columns in column-major order.
func (m *Dense[T]) Stride() int { return m.Any().Stride() }

// Order returns the order of the elements in memory.
func (m *Dense[T]) Order() Order { return m.Any().Order() }

// Offset returns how many elements of the buffer lie before the first.
func (m *Dense[T]) Offset() int { return m.Any().Offset() }

// Device returns the matrix's device, nil for the zero value.
func (m *Dense[T]) Device() *gpu.Device { return m.Any().Device() }

// Buffer returns the memory, nil for the zero value. It stays the matrix's.
func (m *Dense[T]) Buffer() *buffer.Buffer { return m.Any().Buffer() }

// External reports whether the matrix uses somebody else's memory. [Dense.SetValueFrom] may change it, the memory staying
// where it is; who frees the memory is another question, which the [Release] option answers.
func (m *Dense[T]) External() bool { return m.Any().External() }

// Capacity returns how many elements the memory has for the matrix: of memory that is not ours, those of the size that it
// was wrapped with.
func (m *Dense[T]) Capacity() int { return m.Any().Capacity() }

// Mode tells whose memory the matrix uses.
func (m *Dense[T]) Mode() buffer.Mode { return m.Any().Mode() }

// Location tells where the current bits are.
func (m *Dense[T]) Location() buffer.Location { return m.Any().Location() }

// Err returns the error a view was made with, or nil.
func (m *Dense[T]) Err() error { return m.Any().Err() }

// Close drops the matrix's share of its memory; views and aliases keep theirs. Later calls do nothing.
func (m *Dense[T]) Close() error { return m.Any().Close() }

// Sync waits for what is queued and brings results of wrapped memory back into the caller's slice, only what changed.
func (m *Dense[T]) Sync(ctx context.Context) error { return m.Any().Sync(ctx) }

// Touch says that the caller wrote into the slice that this matrix wraps.
func (m *Dense[T]) Touch() error { return m.Any().Touch() }

// Views share memory with the matrix they were taken from and keep it alive; what is written through one is seen through
// all. Close them when done, or leave a view that stands inside an expression to the garbage collector. A view of a bad
// range or of a closed matrix carries the error and reports it at its first use, so that views can stand inside
// expressions; [Dense.Err] tells earlier.

// T returns the transpose. Nothing moves.
func (m *Dense[T]) T() *Dense[T] { return view[T](m.Any().transposed()) }

// Slice returns rows i to k-1 and columns j to l-1, in the order (i, k, j, l) of gonum.
func (m *Dense[T]) Slice(i, k, j, l int) *Dense[T] {
	return view[T](m.Any().slice("Slice", i, k, j, l))
}

// Row returns row i as a matrix of one row.
func (m *Dense[T]) Row(i int) *Dense[T] { return view[T](m.Any().row(i)) }

// Col returns column j as a matrix of one column.
func (m *Dense[T]) Col(j int) *Dense[T] { return view[T](m.Any().col(j)) }

// ColumnSlice returns n columns from start on.
func (m *Dense[T]) ColumnSlice(start, n int) *Dense[T] { return view[T](m.Any().columns(start, n)) }

// RowSlice returns n rows from start on.
func (m *Dense[T]) RowSlice(start, n int) *Dense[T] { return view[T](m.Any().rowRange(start, n)) }

// Reshape returns a rows x cols view of a matrix without gaps; the elements keep their order in memory.
func (m *Dense[T]) Reshape(rows, cols int) *Dense[T] { return view[T](m.Any().reshaped(rows, cols)) }

// Alias returns another matrix of the same memory and layout.
func (m *Dense[T]) Alias() *Dense[T] { return view[T](m.Any().alias()) }
