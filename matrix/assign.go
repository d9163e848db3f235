// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Assign queues the expression's computation into m and returns. m may be an operand of the expression: the result is
// always what it would be if m were elsewhere. An owned matrix takes the expression's size; wrapped memory and views keep
// theirs, and another size is [ErrShape]. A call that fails leaves m as it was; one over memory
// larger than a buffer, which is computed in blocks, can fail after some of them.
func (m *Dense[T]) Assign(x Operand[T]) error { return m.AssignContext(context.Background(), x) }

// AssignContext is [Dense.Assign] under a context, which ends what Assign has to wait for: the compilation of kernels that the
// device has not seen yet, and the way of an expression on another device to m's.
func (m *Dense[T]) AssignContext(ctx context.Context, x Operand[T]) error {
	const op = "Assign"
	c := m.core()
	if err := c.usable(op); err != nil {
		return err
	}
	if ctx == nil {
		return fail(op, ErrNil, "nil context")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	n := from(op, x)
	if n.Err != nil {
		return n.Err
	}
	return c.assign(ctx, op, n)
}

// assign queues the computation of n into m.
func (m *core) assign(ctx context.Context, op string, n *node) error {
	if !m.typed { // it takes the type of the first expression
		n = n.Typed(fuse.F32)
		m.t = n.Type
	}
	if n = n.Typed(m.t); n.Type != m.t {
		return fail(op, gpu.ErrInvalid, DType(n.Type).String(), " to ", DType(m.t).String())
	}
	dev := m.dev
	if dev == nil {
		dev = n.Dev
	}
	if dev == nil {
		return fail(op, gpu.ErrInvalid, "neither the matrix nor the expression has a device")
	}
	if err := dev.Usable(); err != nil {
		return err
	}
	if n.Dev != nil && n.Dev != dev {
		return m.overDevices(ctx, op, n, m.assign)
	}
	if m.buf != nil && n.Rows == m.Rows && n.Cols == m.Cols {
		if m.buf.ReadOnly() {
			return fail(op, gpu.ErrReadOnly, "the memory that the matrix wraps")
		}
		return exec.Of(dev).Assign(ctx, m.dense(), n)
	}
	if m.fixed {
		return shapeError(op, m.Shape(), n.Shape())
	}
	if err := m.unshared(op, n.Shape()); err != nil {
		return err
	}
	return m.renew(ctx, op, n)
}

// unshared refuses to resize views, and matrices that have views.
func (m *core) unshared(op string, to gpu.Shape) error {
	switch {
	case m.buf == nil:
		return nil
	case m.view:
		return fail(op, ErrView, m.Shape().String(), " to ", to.String())
	case m.buf.Shares()-m.lent() > 1:
		return fail(op, ErrView, "the matrix has views")
	}
	return nil
}

// lent returns how many views stand in expressions, which do not count.
func (m *core) lent() int {
	if m.origin == nil {
		return 0
	}
	return int(m.origin.lent.Load())
}

// resized makes the views that were taken before errors.
func (m *core) resized() {
	if m.origin != nil {
		m.origin.generation.Add(1)
	}
}

// renew evaluates into new memory of n's size and takes it over, whatever has views.
func (m *core) renew(ctx context.Context, op string, n *node) error {
	next, err := m.another(op, n.Dev, n.Rows, n.Cols)
	if err != nil {
		return err
	}
	if err := exec.Of(next.dev).Assign(ctx, next.dense(), n); err != nil {
		_ = next.buf.Close()
		return err
	}
	m.resized()
	return m.become(next)
}

// another makes an owned matrix of m's type and order, on m's device or, if it has none yet, on dev.
func (m *core) another(op string, dev *gpu.Device, rows, cols int) (core, error) {
	if m.dev != nil {
		dev = m.dev
	}
	if err := expr.CheckDims(op, rows, cols); err != nil {
		return core{}, err
	}
	size, _ := expr.Elements(rows, cols)
	buf, err := buffer.New(dev, size*m.t.Size())
	if err != nil {
		return core{}, err
	}
	next := core{t: m.t, typed: true, dev: dev, buf: buf, Layout: expr.Layout{Rows: rows, Cols: cols, Order: m.Order}, origin: new(origin)}
	next.Stride = next.Minor()
	return next, nil
}

// become makes m what next is, and drops m's share of its memory.
func (m *core) become(next core) error {
	m.cleanup.Stop()
	old := *m
	*m = next
	return old.drop()
}

// Fill sets every element to v.
func (m *Dense[T]) Fill(v T) error {
	r, c := m.Dims()
	return m.Assign(Fill(r, c, v))
}

// Zero sets every element to 0.
func (m *Dense[T]) Zero() error { return m.Fill(*new(T)) }

// Clone returns a new owned matrix with the same elements.
func (m *Dense[T]) Clone() (*Dense[T], error) {
	if err := m.core().usable("Clone"); err != nil {
		return nil, err
	}
	c := &Dense[T]{core{t: m.a.t, typed: m.a.typed, dev: m.a.dev}}
	if err := c.Assign(m); err != nil {
		return nil, err
	}
	return c, nil
}
