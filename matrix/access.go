// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"errors"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// Assign queues the computation of the expression into m and returns. m may be an operand of the expression, or overlap one, without
// effect on the result. An owned matrix takes the expression's size; for wrapped matrices and views another size is [buffer.ErrShape].
// A call that fails leaves m as it was, except for what [Dense.AssignContext] says of memory larger than the device's.
func (m *Dense[T]) Assign(x Operand[T]) error { return m.queue("Assign", x) }

// AssignContext is [Dense.Assign] under a context, which ends what Assign has to wait for: the compilation of kernels that the
// device has not seen yet, the way of an expression on another device to m's, and the computation of what the device has ranges of only.
//
// What does not fit into a buffer of the device, or into its budget ([gpu.WithMemory]), is computed range by range, as long as the call
// lasts; LU, Cholesky and QR, and what is computed with them, by blocks of columns, of which the device has two and the host the others. What
// cannot be is [gpu.ErrLimit] before anything is written: eigenvalues, for example, whose rotations reach all of the matrix again and
// again, and singular values but of matrices with few columns. If such a computation fails later, or the context ends, m is as it was
// as long as the device has memory for all of the result: without a budget always, else for results of up to a third of a budget that nothing else
// uses where m wraps memory of its own, and a quarter elsewhere. Parts of a larger one have to be written to the memory that m wraps. If it is
// not completed, that is [buffer.ErrIncomplete], which the call returns with the cause and uses of m afterwards, until m is assigned anew or
// its owner says [Dense.Touch]. In a page, where calls do not wait, parts of a result larger than a buffer may be there after an error. See
// [WithProgress].
func (m *Dense[T]) AssignContext(ctx context.Context, x Operand[T]) error {
	const op = "Assign"
	return m.core().evaluate(ctx, op, from(op, x))
}

// evaluate is [Dense.AssignContext] for the call named op.
func (m *core) evaluate(ctx context.Context, op string, n *node) error {
	if err := m.usable(op); err != nil {
		return err
	}
	if err := fault.Ended(ctx, "matrix: ", op); err != nil || n.Err != nil {
		return firstError(err, n.Err)
	}
	return m.assign(ctx, op, n)
}

// queue is evaluate without a context.
func (m *Dense[T]) queue(op string, x Operand[T]) error {
	return m.core().evaluate(context.Background(), op, from(op, x))
}

// record is queue for an expression that a method has built.
func (m *Dense[T]) record(op string, n *node) error {
	n.Passing = true
	err := m.core().evaluate(context.Background(), op, n)
	if err == nil {
		n.Release()
	}
	return err
}

// Fill sets every element to v.
func (m *Dense[T]) Fill(v T) error {
	return m.fill("Fill", v)
}

func (m *Dense[T]) fill(op string, v T) error {
	r, c := m.Dims()
	return m.queue(op, Fill(r, c, v))
}

// Zero sets every element to 0.
func (m *Dense[T]) Zero() error { return m.fill("Zero", *new(T)) }

// Clone returns a new owned matrix with the same elements.
func (m *Dense[T]) Clone() (*Dense[T], error) {
	return evaluated[T](context.Background(), "Clone", m)
}

// Sync waits for what is queued and copies results in wrapped memory to the caller's slice: those of the whole memory, also for a view,
// but only what kernels wrote. Before Sync the slice may have old elements; afterwards it may be read until the next assignment. For
// owned memory Sync only waits.
func (m *Dense[T]) Sync(ctx context.Context) error {
	const op = "Sync"
	c, err := m.usable(op)
	if err != nil || c.buf == nil {
		return err
	}
	return named(op, c.buf.Sync(ctx))
}

// Touch says that the caller has changed the elements of this matrix in the memory that it wraps. Later kernels see the change. Results
// for these elements that were not synced are dropped; other elements of the memory are not affected.
func (m *Dense[T]) Touch() error {
	const op = "Touch"
	c, err := m.usable(op)
	if err != nil || c.buf == nil {
		return err
	}
	return named(op, c.buf.Touch(c.Region(c.t.Size())))
}

// plain reports whether the elements are in memory row by row and without gaps.
func (m *core) plain() bool {
	return m.Contiguous() && (!m.ColMajor || m.Rows <= 1 || m.Cols <= 1)
}

// size returns how many bytes the elements take, with an error if they cannot be in host memory.
func (m *core) size(op string, mem gpu.Host, exact bool) (int, error) {
	if err := m.usable(op); err != nil {
		return 0, err
	}
	size := m.t.Size()
	n := m.Rows * m.Cols * size
	wrong := buffer.ErrShort
	switch {
	case mem.Size > n && exact:
		wrong = buffer.ErrShape
	case mem.Size >= n:
		return n, nil
	}
	return 0, fail(op, wrong, itoa(mem.Size/size), " elements for ", m.Shape().String(), " of ", m.t.String(), ", which needs ", itoa(n/size))
}

// read copies the elements, row by row, to host memory of at least that size. A matrix with another layout is first copied on the device.
func (m *core) read(ctx context.Context, op string, dst gpu.Host) error {
	n, err := m.size(op, dst, false)
	if err != nil || n == 0 {
		return err
	}
	if m.plain() {
		return named(op, m.buf.Read(ctx, m.Region(m.t.Size()), dst, 0))
	}
	c := core{t: m.t, typed: 1, dev: m.dev}
	if err := c.assign(ctx, op, m.node()); err != nil {
		return err
	}
	return named(op, firstError(c.buf.Read(ctx, c.Region(c.t.Size()), dst, 0), c.close()))
}

// set replaces the elements by those in host memory, row by row.
func (m *core) set(op string, src gpu.Host) error {
	n, err := m.size(op, src, true)
	if err != nil || n == 0 {
		return err
	}
	at := m.Offset * m.t.Size()
	if end := at + n; m.plain() && at%4 == 0 && (end%4 == 0 || end == m.buf.Size()) {
		if err := m.buf.Write(at, src); !errors.Is(err, gpu.ErrDeviceLost) {
			return named(op, err)
		}
	}
	c, err := newCore(op, m.dev, &Options{Type: m.t}, m.Rows, m.Cols, &memory{host: src, isHost: true, copied: true}, new(origin))
	if err != nil {
		return err
	}
	return firstError(m.assign(context.Background(), op, c.node()), c.close())
}

// Read waits for what is queued and returns the elements row by row, whatever the order in memory.
func (m *Dense[T]) Read(ctx context.Context) ([]T, error) {
	return m.values(ctx, "Read")
}

func (m *Dense[T]) values(ctx context.Context, op string) ([]T, error) {
	rows, cols := m.Dims()
	out := make([]T, rows*cols)
	if err := m.readTo(ctx, op, out); err != nil {
		return nil, err
	}
	return out, nil
}

// ReadTo is Read into the caller's slice, which has at least rows x cols elements.
func (m *Dense[T]) ReadTo(ctx context.Context, dst []T) error { return m.readTo(ctx, "ReadTo", dst) }

func (m *Dense[T]) readTo(ctx context.Context, op string, dst []T) error {
	c := m.core()
	dst = dst[:min(len(dst), c.Rows*c.Cols)]
	return into(c.t, dst, func(mem gpu.Host) error { return c.read(ctx, op, mem) })
}

// At waits for what is queued and returns one element. Each call is a round trip to the device.
func (m *Dense[T]) At(ctx context.Context, i, j int) (T, error) {
	const op = "At"
	var v [1]T
	e := m.core().slice(op, i, i+1, j, j+1)
	err := into(e.t, v[:], func(mem gpu.Host) error { return e.read(ctx, op, mem) })
	return v[0], firstError(err, e.close())
}

// Set changes one element.
func (m *Dense[T]) Set(i, j int, v T) error {
	const op = "Set"
	return setPart(op, m.core().slice(op, i, i+1, j, j+1), []T{v})
}

// SetCol sets column j to as many values as there are rows; another number is [buffer.ErrShort] or [buffer.ErrShape].
func (m *Dense[T]) SetCol(j int, values []T) error {
	const op = "SetCol"
	return setPart(op, m.core().columns(op, j, 1), values)
}

func setPart[T Elem](op string, part core, values []T) error {
	return firstError(part.set(op, packed(part.t, values)), part.close())
}

// SetSlice replaces all elements by data, row by row. Another number of them than the matrix has is [buffer.ErrShort] or
// [buffer.ErrShape]. The caller may change data afterwards.
func (m *Dense[T]) SetSlice(data []T) error {
	return m.setSlice("SetSlice", data)
}

func (m *Dense[T]) setSlice(op string, data []T) error {
	c := m.core()
	return c.set(op, packed(c.t, data))
}

// SetRows replaces all elements by those of one slice for each row; what is missing in slices that are shorter than a row
// becomes 0. Another number of slices, or one longer than a row, is [buffer.ErrShape]. The caller may change them afterwards.
func (m *Dense[T]) SetRows(rows [][]T) error { return m.setRows("SetRows", rows) }

func (m *Dense[T]) setRows(op string, rows [][]T) error {
	c := m.core()
	if len(rows) != c.Rows {
		return fail(op, buffer.ErrShape, itoa(len(rows)), " slices for ", c.Shape().String())
	}
	data := make([]T, c.Rows*c.Cols)
	for i, row := range rows {
		if len(row) > c.Cols {
			return fail(op, buffer.ErrShape, itoa(len(row)), " elements in slice ", itoa(i), " for ", c.Shape().String())
		}
		copy(data[i*c.Cols:], row)
	}
	return m.setSlice(op, data)
}

// SetColumnSlice copies the first n columns of src to the columns from start on.
func (m *Dense[T]) SetColumnSlice(src *Dense[T], start, n int) error {
	const op = "SetColumnSlice"
	to, from := &Dense[T]{m.core().columns(op, start, n)}, &Dense[T]{src.core().columns(op, 0, n)}
	to.a.wrapped = true // so that another number of rows is ErrShape
	return firstError(to.queue(op, from), from.Close(), to.Close())
}

// Access calls fn with the elements in host memory, from the first to the last, with rows (columns) [Dense.Stride] elements apart. With
// [buffer.Writes], the changes that fn makes become the matrix's. Mapped memory is used in place where the device allows it, other
// memory is copied as needed. While fn runs, calls that would conflict with it are [gpu.ErrMapped], see [buffer.Buffer.Access]. A matrix
// of [Any] is [gpu.ErrUnsupported]; see [As].
func (m *Dense[T]) Access(ctx context.Context, in buffer.Intent, fn func(data []T) error) error {
	const op = "Access"
	c, err := m.usable(op)
	switch {
	case err != nil:
		return err
	case fn == nil:
		return fail(op, gpu.ErrInvalid, "nil function")
	case isAny[T]():
		return fail(op, gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	case c.buf == nil || c.Span() == 0:
		return fn(nil)
	}
	size := c.t.Size()
	return c.buf.Access(ctx, buffer.Range(c.Offset*size, c.Span()*size), in, func(b []byte) error {
		return fn(unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), c.Span()))
	})
}
