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

// naming guards the types of zero values.
var naming sync.Mutex

// core returns the matrix without its element type of Go's, and in place of nil one that says so.
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

// usable is core, with the reason why op cannot use the matrix.
func (m *Dense[T]) usable(op string) (*core, error) {
	c := m.core()
	return c, c.usable(op)
}

// As returns the matrix as one of another element type of Go's: the same matrix, not a copy. Its type must be what T is, or T
// be [Any]: [gpu.ErrInvalid] otherwise.
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

// Map makes a matrix of zeros in memory that the CPU can reach: in place where the device allows it, else with a copy
// behind the scenes. See [Dense.Access].
func Map[T Elem](dev *gpu.Device, rows, cols int, opts ...Options) (*Dense[T], error) {
	return construct[T]("Map", dev, rows, cols, memory{mapped: true}, opts)
}

// construct makes a matrix that is one object with what it needs beside new memory.
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

// FromRows makes an owned matrix of as many rows as there are slices and as many columns as the longest has elements. What is
// missing in shorter ones is 0.
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

// Wrap makes a matrix of the caller's own slice. Nothing is copied now: kernels get the bits when they first need them,
// and results reach the slice at [Dense.Sync]. The matrix is never resized. The slice must stay unchanged while a call
// runs that reads it; after changing it, call [Dense.Touch]. A slice of [Any] is no memory of a device's: [gpu.ErrUnsupported].
//
// The slice may be larger than the device's largest buffer, or than its budget ([gpu.WithMemory]); what is assigned to it is then
// computed in parts, see [Dense.AssignContext]. For memory that is no slice of T there is [FromBuffer].
func Wrap[T Elem](dev *gpu.Device, rows, cols int, data []T, opts ...Options) (*Dense[T], error) {
	if isAny[T]() {
		return nil, fail("Wrap", gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	}
	return construct[T]("Wrap", dev, rows, cols, memory{host: hostOf(data), isHost: true}, opts)
}

// WrapBuffer makes a matrix of a GPU buffer that somebody else made on this very device: a *wgpu.Buffer natively, a
// GPUBuffer in a page, of a size that is a multiple of 4 bytes. Kernels use it in place, nothing is copied. It is never resized, and
// never destroyed without Destroy among the options. Keep it until the matrix is closed: a GPUBuffer that was destroyed is an error
// later. A *wgpu.Buffer that was released before is [gpu.ErrInvalid], as a nil one is, where Release clears it, as in the binding of the
// driver oliver. A copy of it, and one of another binding, is [gpu.ErrClosed] on Linux and Windows; elsewhere that cannot be told, and
// using it ends the process.
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

// Buffer returns the memory, nil for the zero value. It stays the matrix's.
func (m *Dense[T]) Buffer() *buffer.Buffer { return m.core().buf }

// Handle returns the GPU buffer with the elements, a *wgpu.Buffer natively and a GPUBuffer as js.Value in a page, and how many bytes of
// it lie before the first element. Other code of the device, such as what draws a window, uses the elements there without a copy: rows
// (columns) are [Dense.Stride] elements apart. Handle submits what is queued and copies newer elements of the host to the device, so
// that what the caller submits next to the device's queue finds the matrix as it is now. It has to be called before each such submission.
//
// The buffer is borrowed: the caller may not release, destroy or map it. It has the elements until the matrix is closed, resized or set
// to other memory, or the device is lost. Once the caller has submitted a write to it, m.Buffer().Wrote(m.Device(), region) says so.
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

// External reports whether the matrix uses somebody else's memory. [Dense.SetValueFrom] may change it, the memory staying
// where it is; who frees the memory is another question, which Release among the options answers.
func (m *Dense[T]) External() bool { return m.core().external }

// Capacity returns how many elements the memory has for the matrix: of memory that is not ours, those of the size that it
// was wrapped with.
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
// Close does not wait and brings nothing back: results in wrapped host memory that nobody synced are given up with the last share, and
// the caller's slice stays as it is. Call [Dense.Sync] before. [gpu.WithDebug] logs such a Close as a warning.
//
// No other goroutine may use the matrix meanwhile.
func (m *Dense[T]) Close() error { return m.core().close() }

// Views share memory with the matrix they were taken from and keep it alive. A matrix cannot be resized while it has views:
// close them when done. Those inside an expression need not be closed and do not count; once the matrix was resized they are
// [ErrView]. A view of a bad range or of a closed matrix reports the error at its first use; [Dense.Err] tells earlier.

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

// Take makes the matrix what src is, memory, size and flags, and src an empty matrix: move assignment. Nothing is copied. The matrix
// drops its share of what it had, as [Dense.Close] does: results in wrapped memory that nobody synced are given up. Views of either
// matrix keep the memory that they show. Taking from itself does nothing. A view that was taken has to be closed from now on.
func (m *Dense[T]) Take(src *Dense[T]) error {
	const op = "Take"
	if err := firstError(m.core().usable(op), src.core().usable(op)); err != nil || m == src {
		return err
	}
	return m.a.become(src.a.moved())
}

// Move returns a matrix that is what m was, memory, size and flags. m is empty afterwards: the move constructor.
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

// Reset empties the matrix: it drops its share of the memory and is ready for the first expression assigned to it, of
// whatever size. It is Blaze's clear; to set the elements to zero is [Dense.Zero].
func (m *Dense[T]) Reset() error {
	if err := m.core().usable("Reset"); err != nil {
		return err
	}
	return m.a.become(m.a.empty())
}

// CopyTo returns an owned copy of the matrix on another device. The elements go by way of the host.
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

// MoveTo moves an owned matrix to another device. A view, a matrix with views and an external one stay where they are:
// [ErrView], [ErrExternalResize]; copy those.
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

// Resize gives an owned or mapped matrix another size, with undefined elements unless it is what it was. Memory that is large
// enough is kept. Matrices of wrapped memory keep their size, [ErrExternalResize], and so do views and matrices that have views:
// [ErrView].
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

// SetShape gives a matrix without gaps, an external one or a view too, another shape of as many elements. Nothing moves.
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
