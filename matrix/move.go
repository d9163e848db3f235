// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Take makes the matrix what src is, memory, size and flags, and src an empty matrix: move assignment. The matrix drops
// its share of what it had. Taking from itself does nothing. A view has to be closed from now on.
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
	if err := m.core().usable(op); err != nil {
		return nil, err
	}
	return typed[T](m.a.copied(ctx, op, dev))
}

// MoveTo moves an owned matrix to another device. A view, a matrix with views and an external one stay where they are:
// [ErrView], [ErrExternalResize]; copy those.
func (m *Dense[T]) MoveTo(ctx context.Context, dev *gpu.Device) error {
	const op = "MoveTo"
	if err := m.core().usable(op); err != nil {
		return err
	}
	shared := m.a.unshared(op, m.a.Shape())
	switch {
	case dev == nil:
		return fail(op, gpu.ErrInvalid, "nil device")
	case m.a.dev == dev:
		return nil
	case shared != nil:
		return shared
	case m.a.fixed:
		return fail(op, ErrExternalResize, "to another device")
	case m.a.buf == nil:
		m.a.dev = dev
		return nil
	}
	next, err := m.a.copied(ctx, op, dev)
	if err != nil {
		return err
	}
	m.a.resized()
	return m.a.become(next)
}

// copied returns an owned copy on another device, in m's order.
func (m *core) copied(ctx context.Context, op string, dev *gpu.Device) (core, error) {
	if dev == nil {
		return core{}, fail(op, gpu.ErrInvalid, "nil device")
	}
	c := m.empty()
	c.dev = dev
	return c, c.assign(ctx, op, m.node())
}

// carried computes a node on its device and brings the result to another, row by row.
func carried(ctx context.Context, op string, n *node, dev *gpu.Device) (core, error) {
	n = n.Typed(fuse.F32)
	mem := memory{}
	if n.Dev != nil && n.Rows != 0 && n.Cols != 0 {
		src := core{t: n.Type, typed: true, dev: n.Dev}
		if n.Kind == expr.Leaf {
			src = n.Source.(*core).alias()
		} else if err := src.assign(ctx, op, n); err != nil {
			return core{}, err
		}
		mem = memory{host: gpu.HostBytes(make([]byte, n.Rows*n.Cols*n.Type.Size())), isHost: true, copied: true}
		if err := firstError(src.read(ctx, mem.host), src.close()); err != nil {
			return core{}, err
		}
	}
	return newCore(op, dev, &Options{Type: n.Type}, n.Rows, n.Cols, &mem, new(origin))
}

// Resize gives an owned matrix another size. Its elements are undefined afterwards, unless the size is what it was.
// Memory that is large enough is kept. External matrices keep their size, [ErrExternalResize], and so do views and
// matrices that have views: [ErrView].
func (m *Dense[T]) Resize(rows, cols int) error {
	const op = "Resize"
	c := m.core()
	if err := c.usable(op); err != nil {
		return err
	}
	if err := expr.CheckDims(op, rows, cols); err != nil {
		return err
	}
	to := gpu.Shape{rows, cols}
	shared := c.unshared(op, to)
	switch {
	case c.dev == nil:
		return fail(op, gpu.ErrInvalid, "the matrix has no device")
	case c.buf != nil && rows == c.Rows && cols == c.Cols:
		return nil
	case shared != nil:
		return shared
	case c.external:
		return fail(op, ErrExternalResize, c.Shape().String(), " to ", to.String())
	case c.buf != nil && !c.fixed && rows*cols <= c.capacity():
		c.resize(rows, cols)
		c.resized()
		return nil
	}
	next, err := c.another(op, c.dev, c.t, rows, cols)
	if err != nil {
		return err
	}
	c.resized()
	return c.become(next)
}

// SetShape gives a matrix without gaps another shape of as many elements, which keep their order in memory. Nothing moves.
// External matrices and views may be given one, too; matrices that share the memory keep theirs.
func (m *Dense[T]) SetShape(rows, cols int) error {
	const op = "SetShape"
	c := m.core()
	if err := c.usable(op); err != nil {
		return err
	}
	l, err := c.Reshape(op, rows, cols)
	if err == nil {
		c.Layout = l
	}
	return err
}
