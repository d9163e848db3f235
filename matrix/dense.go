// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Dense is a matrix of rows x cols elements in device memory. Make one with [New], [FromSlice], [Wrap], [WrapBuffer] or
// [Map]; the zero value is an empty matrix that takes device and size from the first expression assigned to it. Close it
// when done. A Dense may be used from several goroutines as long as none assigns to it or closes it meanwhile.
type Dense[T Elem] struct{ a core }

// naming guards the element types of zero values.
var naming sync.Mutex

// core returns the matrix without its Go element type. For nil it is a matrix that carries an error.
func (m *Dense[T]) core() *core {
	if m == nil {
		m = &Dense[T]{core{err: buffer.ErrNil}}
	}
	if t := typeOf[T](); t != expr.Untyped && atomic.LoadUint32(&m.a.typed) == 0 {
		naming.Lock() // several goroutines may read a zero value
		if m.a.typed == 0 {
			m.a.t = t
			atomic.StoreUint32(&m.a.typed, 1)
		}
		naming.Unlock()
	}
	return &m.a
}

// usable is core, with an error if op cannot use the matrix.
func (m *Dense[T]) usable(op string) (*core, error) {
	c := m.core()
	return c, c.usable(op)
}

// As returns the same matrix, not a copy, with another Go element type. T must be the type of its elements or [Any], else the error is
// [gpu.ErrInvalid].
func As[T, F Elem](m *Dense[F]) (*Dense[T], error) {
	const op = "As"
	c := m.core()
	switch t := typeOf[T](); {
	case m == nil:
		return nil, c.usable(op)
	case t != expr.Untyped && c.typed != 0 && c.t != t:
		return nil, fail(op, gpu.ErrInvalid, c.t.String(), " as ", t.String())
	}
	return (*Dense[T])(m), nil
}

// New makes an owned matrix of zeros.
func New[T Elem](dev *gpu.Device, rows, cols int, opts ...Options) (*Dense[T], error) {
	return construct[T]("New", dev, rows, cols, memory{}, opts)
}

// Map makes a matrix of zeros in memory that the CPU can access with [Dense.Access]: in place where the device allows it, else by
// copies on the host.
func Map[T Elem](dev *gpu.Device, rows, cols int, opts ...Options) (*Dense[T], error) {
	return construct[T]("Map", dev, rows, cols, memory{mapped: true}, opts)
}

// construct makes a matrix in new memory, and allocates the matrix and its bookkeeping as one object.
func construct[T Elem](op string, dev *gpu.Device, rows, cols int, mem memory, opts []Options) (*Dense[T], error) {
	o, err := parse(op, typeOf[T](), opts)
	if err != nil {
		return nil, err
	}
	w := new(struct {
		m      Dense[T]
		b      buffer.Buffer
		origin origin
	})
	if mem.isHost && !mem.copied {
		mem.wrapper = &w.b
	}
	if w.m.a, err = newCore(op, dev, &o, rows, cols, &mem, &w.origin); err != nil {
		return nil, err
	}
	return &w.m, nil
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

// FromRows makes an owned matrix with a row for each slice and as many columns as the longest has elements. Elements that shorter
// slices lack are 0.
func FromRows[T Elem](dev *gpu.Device, rows [][]T, opts ...Options) (*Dense[T], error) {
	const op = "FromRows"
	cols := 0
	for _, row := range rows {
		cols = max(cols, len(row))
	}
	m, err := construct[T](op, dev, len(rows), cols, memory{}, opts)
	if err != nil {
		return nil, err
	}
	if err := m.setRows(op, rows); err != nil {
		return nil, firstError(err, m.Close())
	}
	return m, nil
}

// Wrap makes a matrix of the caller's own slice. Elements are copied to the device when a kernel first needs them, and results to the
// slice by [Dense.Sync]. The matrix is never resized. The slice must not change while a call runs that reads it; after changing it, call
// [Dense.Touch]. A slice of [Any] is [gpu.ErrUnsupported].
//
// Keep the matrix until results were synced: one that becomes garbage is closed. Matrices that wrap the same memory see each other's
// results, but closing one of them drops what neither Sync nor another one took over; views and [Dense.Alias] share it.
//
// The slice may be larger than the device's largest buffer, or than its budget ([gpu.WithMemory]); what is assigned to it is then
// computed in parts, see [Dense.AssignContext]. For memory that is no slice of T there is [FromBuffer].
func Wrap[T Elem](dev *gpu.Device, rows, cols int, data []T, opts ...Options) (*Dense[T], error) {
	if isAny[T]() {
		return nil, fail("Wrap", gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	}
	return construct[T]("Wrap", dev, rows, cols, memory{host: hostOf(data), isHost: true}, opts)
}

// WrapBuffer makes a matrix of a GPU buffer that the caller made on this device: a *wgpu.Buffer natively, a GPUBuffer in a page, of a
// size that is a multiple of 4 bytes. Kernels use it in place, nothing is copied. It is never resized, and destroyed only with Destroy
// among the options. Keep it until the matrix is closed: using a GPUBuffer that was destroyed is an error later. A nil *wgpu.Buffer is
// [gpu.ErrInvalid], and so is a released one if Release clears it, as in the binding of the driver oliver. A copy of a released one, or
// one of another binding, is [gpu.ErrClosed] on Linux and Windows; elsewhere it is not recognised, and using it ends the process.
func WrapBuffer[T Elem](dev *gpu.Device, rows, cols int, handle any, opts ...Options) (*Dense[T], error) {
	m, err := FromBuffer[T](dev, rows, cols, handle, buffer.DontOwnBuffer, opts...)
	return m, named("WrapBuffer", err)
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
func (m *Dense[T]) ColMajor() bool { return m.core().ColMajor }

// Offset returns how many elements of the buffer lie before the first.
func (m *Dense[T]) Offset() int { return m.core().Offset }

// Device returns the matrix's device, nil for the zero value.
func (m *Dense[T]) Device() *gpu.Device { return m.core().dev }

// Buffer returns the memory, nil for the zero value. The matrix still owns it: do not close it.
func (m *Dense[T]) Buffer() *buffer.Buffer { return m.core().buf }

// Handle returns the GPU buffer with the elements, a *wgpu.Buffer natively and a GPUBuffer as js.Value in a page, and how many bytes of
// it precede the first element. Other code that uses the device, such as a renderer, can read the elements there without a copy: rows
// (columns) are [Dense.Stride] elements apart. Handle submits queued commands and uploads newer elements of the host, so that the work
// that the caller submits next to the device's queue sees the matrix as it is now. Call it before each such submission.
//
// The buffer is borrowed: do not release, destroy or map it. It has the elements until the matrix is closed, resized or set to other
// memory, or the device is lost. After submitting work that writes it, call m.Buffer().Wrote(m.Device(), region).
//
// A matrix without memory is [buffer.ErrNil], one larger than the device's largest buffer [gpu.ErrLimit], one that a function of Access
// changes [gpu.ErrMapped], and a device of the driver cpu, which has no such buffers, [gpu.ErrUnsupported].
func (m *Dense[T]) Handle(ctx context.Context) (handle any, offset int, err error) {
	const op = "Handle"
	c, err := m.usable(op)
	switch {
	case err != nil:
		return nil, 0, err
	case c.buf == nil:
		return nil, 0, fail(op, buffer.ErrNil, "a matrix without memory")
	}
	mem, _, err := c.buf.Use(ctx, c.dev, buffer.Range(0, c.buf.Size()), buffer.Reads)
	if err == nil {
		err = c.dev.FlushContext(ctx)
	}
	if err != nil {
		return nil, 0, named(op, err)
	}
	if handle = mem.Handle(); handle == nil || c.dev.Handle() == nil {
		return nil, 0, firstError(named(op, c.dev.Usable()), fail(op, gpu.ErrUnsupported, "the driver has no GPU buffers"))
	}
	return handle, c.Offset * c.t.Size(), nil
}

// External reports whether the matrix uses the caller's memory. [Dense.SetValueFrom] may change the answer without a change of memory.
// It does not say who frees the memory: that depends on Release in [Options].
func (m *Dense[T]) External() bool { return m.core().external }

// Capacity returns how many elements fit into the matrix's memory; for wrapped memory, the number of elements that it was wrapped with.
func (m *Dense[T]) Capacity() int { return m.core().capacity() }

// Err returns the error a view was made with, or nil.
func (m *Dense[T]) Err() error {
	if m == nil {
		return m.core().usable("Err")
	}
	return m.core().err
}

// Close drops the matrix's share of its memory; views and aliases keep theirs. Later calls do nothing.
//
// Close does not wait and copies nothing to the host: when the last share of wrapped host memory is closed, results that were not synced
// are dropped, and the caller's slice does not change. Call [Dense.Sync] before. [gpu.WithDebug] logs such a Close as a warning.
//
// No other goroutine may use the matrix during Close.
func (m *Dense[T]) Close() error { return m.core().close() }

// Views share memory with the matrix they were taken from and keep it alive. A matrix cannot be resized while it has views:
// close them when done. Views in an expression need not be closed and do not prevent resizing, after which they are [ErrView]. A
// view of a bad range or of a closed matrix reports the error at its first use; [Dense.Err] returns it at once.

// T returns the transpose. Nothing moves.
func (m *Dense[T]) T() *Dense[T] { return &Dense[T]{m.core().derive("T", turned)} }

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
			return l, expr.ShapeError("DiagView", expr.FitsSquare, l.Shape())
		}
		return expr.Layout{Rows: 1, Cols: l.Cols, Offset: l.Offset, Stride: l.Stride + 1, ColMajor: true}, nil
	})}
}

// Alias returns another matrix of the same memory and layout. It has to be closed before either can be resized.
func (m *Dense[T]) Alias() *Dense[T] { return &Dense[T]{m.core().alias()} }

// Take is C++'s move assignment: the matrix gets src's memory, size and flags without a copy, and src becomes empty. The matrix drops its
// former memory as [Dense.Close] does, with results in wrapped memory that were not synced. Views of both matrices keep their memory.
// Taking from itself does nothing. A matrix that has taken a view must be closed.
func (m *Dense[T]) Take(src *Dense[T]) error {
	const op = "Take"
	if err := firstError(m.core().usable(op), src.core().usable(op)); err != nil || m == src {
		return err
	}
	return m.a.become(src.a.moved())
}

// Move is C++'s move constructor: it returns a matrix with m's memory, size and flags, and m becomes empty.
func (m *Dense[T]) Move() (*Dense[T], error) {
	if err := m.core().usable("Move"); err != nil {
		return nil, err
	}
	return &Dense[T]{m.a.moved()}, nil
}

// Swap exchanges two matrices, memory, size and flags. Nothing moves.
func Swap[T Elem](a, b *Dense[T]) error {
	const op = "Swap"
	if err := firstError(a.core().usable(op), b.core().usable(op)); err != nil || a == b {
		return err
	}
	x := a.a.moved()
	a.a, b.a = b.a.moved(), x
	return nil
}

// Reset drops the matrix's memory. The matrix is empty then and takes its size from the next expression assigned to it. Reset is Blaze's
// clear; [Dense.Zero] sets the elements to zero.
func (m *Dense[T]) Reset() error {
	if err := m.core().usable("Reset"); err != nil {
		return err
	}
	return m.a.become(m.a.empty())
}

// CopyTo returns an owned copy of the matrix on another device, copied through the host.
func (m *Dense[T]) CopyTo(ctx context.Context, dev *gpu.Device) (*Dense[T], error) {
	const op = "CopyTo"
	c, err := m.usable(op)
	switch {
	case err != nil:
		return nil, err
	case dev == nil:
		return nil, fail(op, gpu.ErrInvalid, "nil device")
	}
	next := c.empty()
	next.dev = dev
	err = next.assign(ctx, op, c.node())
	return typed[T](next, err)
}

// MoveTo moves an owned matrix to another device. Views and matrices with views are [ErrView], external ones [ErrExternalResize]; use
// [Dense.CopyTo] for those.
func (m *Dense[T]) MoveTo(ctx context.Context, dev *gpu.Device) error {
	const op = "MoveTo"
	c, err := m.usable(op)
	switch {
	case err != nil:
		return err
	case dev == nil:
		return fail(op, gpu.ErrInvalid, "nil device")
	case c.dev == dev:
		return nil
	case c.fixed():
		return firstError(c.unshared(op, c.Shape()), fail(op, ErrExternalResize, "to another device"))
	case c.buf == nil:
		c.dev = dev
		return nil
	}
	return c.renew(op, dev, c.t, c.Rows, c.Cols, func(next *core) error { return next.assign(ctx, op, c.node()) })
}

// carried computes a node on its device and brings the result to another, row by row.
func carried(ctx context.Context, op string, n *node, dev *gpu.Device) (core, error) {
	n = n.Typed(fuse.F32)
	mem := memory{}
	if n.Dev != nil && n.Rows != 0 && n.Cols != 0 {
		src := core{t: n.Type, typed: 1, dev: n.Dev}
		if n.Kind == expr.Leaf {
			src = n.Source.(*core).alias()
		} else if err := src.assign(ctx, op, n); err != nil {
			return core{}, err
		}
		var err error
		if src.buf.Location() != buffer.None { // zeros that nobody has used have no memory yet
			mem = memory{host: gpu.HostBytes(make([]byte, n.Rows*n.Cols*n.Type.Size())), isHost: true, copied: true}
			err = src.read(ctx, op, mem.host)
		}
		if err = firstError(err, src.close()); err != nil {
			return core{}, err
		}
	}
	return newCore(op, dev, &Options{Type: n.Type}, n.Rows, n.Cols, &mem, new(origin))
}

// Resize changes the size of an owned or mapped matrix. Its elements are undefined then, unless the size is the same as before. Memory
// that is large enough is kept. Wrapped matrices are [ErrExternalResize], views and matrices with views [ErrView].
func (m *Dense[T]) Resize(rows, cols int) error {
	const op = "Resize"
	c, err := m.usable(op)
	switch err = firstError(err, expr.CheckDims(op, rows, cols)); {
	case err != nil:
		return err
	case c.dev == nil:
		return fail(op, gpu.ErrInvalid, "the matrix has no device")
	case c.buf != nil && rows == c.Rows && cols == c.Cols:
		return nil
	case c.wrapped:
		return firstError(c.unshared(op, fault.Shape{rows, cols}),
			fail(op, ErrExternalResize, c.Shape().String(), " to ", fault.Shape{rows, cols}.String()))
	}
	return c.resize(op, rows, cols, func(*core) error { return nil })
}

// SetShape changes the shape of a matrix without gaps, also of an external one or a view. The number of elements must be the same. Nothing
// moves.
func (m *Dense[T]) SetShape(rows, cols int) error {
	const op = "SetShape"
	c, err := m.usable(op)
	if err != nil {
		return err
	}
	l, err := c.Reshape(op, rows, cols)
	if err == nil {
		c.Layout = l
	}
	return err
}
