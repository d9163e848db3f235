// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Take makes the matrix what src is, memory, size and flags, and src an empty matrix: move assignment. The matrix drops
// its share of what it had. Taking from itself does nothing. A view that was left to the garbage collector has to be
// closed from now on.
func (m *Dense[T]) Take(src *Dense[T]) error {
	const op = "Take"
	if err := m.core().usable(op); err != nil {
		return err
	}
	if err := src.core().usable(op); err != nil {
		return err
	}
	if m == src {
		return nil
	}
	next := src.a.moved()
	return m.a.become(next)
}

// Move returns a matrix that is what m was, memory, size and flags. m is empty afterwards: the move constructor.
func (m *Dense[T]) Move() (*Dense[T], error) {
	if err := m.core().usable("Move"); err != nil {
		return nil, err
	}
	return &Dense[T]{m.a.moved()}, nil
}

// moved returns what m was and empties it.
func (m *core) moved() core {
	m.cleanup.Stop()
	was := *m
	*m = core{t: was.t, typed: was.typed, dev: was.dev}
	was.cleanup = m.cleanup
	return was
}

// Swap exchanges two matrices, memory, size and flags. Nothing moves.
func Swap[T Elem](a, b *Dense[T]) error {
	const op = "Swap"
	if err := a.core().usable(op); err != nil {
		return err
	}
	if err := b.core().usable(op); err != nil {
		return err
	}
	if a != b {
		x := a.a.moved()
		a.a, b.a = b.a.moved(), x
	}
	return nil
}

// Reset empties the matrix: it drops its share of the memory and is ready for the first expression assigned to it, of
// whatever size. It is Blaze's clear; to set the elements to zero is [Dense.Zero].
func (m *Dense[T]) Reset() error {
	if err := m.core().usable("Reset"); err != nil {
		return err
	}
	return m.a.become(core{t: m.a.t, typed: m.a.typed, dev: m.a.dev, Layout: expr.Layout{Order: m.a.Order}})
}

// CopyTo returns an owned copy of the matrix on another device. The elements go by way of the host.
func (m *Dense[T]) CopyTo(ctx context.Context, dev *gpu.Device) (*Dense[T], error) {
	const op = "CopyTo"
	if err := m.core().usable(op); err != nil {
		return nil, err
	}
	a, err := m.a.copied(ctx, op, dev)
	return typed[T](a, err)
}

// copied returns an owned copy on another device, in m's order.
func (m *core) copied(ctx context.Context, op string, dev *gpu.Device) (core, error) {
	a, err := carried(ctx, op, m.node(), dev)
	if err != nil || a.Order == m.Order {
		return a, err
	}
	turned := core{t: a.t, typed: true, dev: a.dev, Layout: expr.Layout{Order: m.Order}}
	err = turned.assign(ctx, op, a.node())
	return turned, firstError(err, a.close())
}

// MoveTo moves an owned matrix to another device. A view, a matrix with views and an external one stay where they are:
// [ErrView], [ErrExternalResize]; copy those.
func (m *Dense[T]) MoveTo(ctx context.Context, dev *gpu.Device) error {
	const op = "MoveTo"
	if err := m.core().usable(op); err != nil {
		return err
	}
	if dev == nil {
		return fail(op, gpu.ErrInvalid, "nil device")
	}
	if m.a.dev == dev {
		return nil
	}
	if err := m.a.unshared(op, m.a.Shape()); err != nil {
		return err
	}
	if m.a.fixed {
		return fail(op, ErrExternalResize, "to another device")
	}
	if m.a.buf == nil {
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

// carried computes a node on its device and brings the result to another, row by row.
func carried(ctx context.Context, op string, n *node, dev *gpu.Device) (core, error) {
	if dev == nil {
		return core{}, fail(op, gpu.ErrInvalid, "nil device")
	}
	if n = n.Typed(fuse.F32); n.Dev == nil || n.Rows == 0 || n.Cols == 0 {
		return newOwned(op, dev, placement{t: n.Type}, n.Rows, n.Cols, func(size int) (*buffer.Buffer, error) { return buffer.New(dev, size) })
	}
	src := core{t: n.Type, typed: true, dev: n.Dev}
	if n.Kind == expr.Leaf {
		src = n.Source.(*core).alias()
	} else if err := src.assign(ctx, op, n); err != nil {
		return core{}, err
	}
	mem := gpu.HostBytes(make([]byte, n.Rows*n.Cols*src.t.Size()))
	if err := firstError(src.read(ctx, mem), src.close()); err != nil {
		return core{}, err
	}
	return newCopy(op, dev, placement{t: n.Type}, n.Rows, n.Cols, mem)
}

// overDevices gives assign an expression on m's device: n, or a copy of its result if it belongs to another.
func (m *core) overDevices(ctx context.Context, op string, n *node, assign func(context.Context, string, *node) error) error {
	if n.Dev == nil || m.dev == nil || n.Dev == m.dev {
		return assign(ctx, op, n)
	}
	c, err := carried(ctx, op, n, m.dev)
	if err != nil {
		return err
	}
	return firstError(assign(ctx, op, c.node()), c.close())
}
