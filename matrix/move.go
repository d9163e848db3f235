// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/gpu"
)

// Take makes the matrix what src is, memory, size and flags, and src an empty matrix: move assignment. The matrix drops
// its share of what it had. Taking from itself does nothing. A view that was left to the garbage collector has to be
// closed from now on.
func (m *Dense[T]) Take(src *Dense[T]) error {
	const op = "Take"
	if err := m.Any().usable(op); err != nil {
		return err
	}
	if err := src.Any().usable(op); err != nil {
		return err
	}
	if m == src {
		return nil
	}
	next := src.a.moved()
	return m.a.become(&next)
}

// Move returns a matrix that is what m was, memory, size and flags. m is empty afterwards: the move constructor.
func (m *Dense[T]) Move() (*Dense[T], error) {
	if err := m.Any().usable("Move"); err != nil {
		return nil, err
	}
	return &Dense[T]{m.a.moved()}, nil
}

// moved returns what m was and empties it.
func (m *Any) moved() Any {
	m.net.Stop()
	was := *m
	*m = Any{t: was.t, dev: was.dev}
	was.net = m.net
	return was
}

// Swap exchanges two matrices, memory, size and flags. Nothing moves.
func Swap[T Elem](a, b *Dense[T]) error {
	const op = "Swap"
	if err := a.Any().usable(op); err != nil {
		return err
	}
	if err := b.Any().usable(op); err != nil {
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
	if err := m.Any().usable("Reset"); err != nil {
		return err
	}
	return m.a.become(&Any{t: m.a.t, dev: m.a.dev, layout: layout{order: m.a.order}})
}

// CopyTo returns an owned copy of the matrix on another device. The elements go by way of the host.
func (m *Dense[T]) CopyTo(ctx context.Context, dev *gpu.Device) (*Dense[T], error) {
	const op = "CopyTo"
	if err := m.Any().usable(op); err != nil {
		return nil, err
	}
	a, err := m.a.node().carried(ctx, op, dev)
	if err == nil && a.order != m.a.order {
		turned := &Any{t: a.t, dev: a.dev, layout: layout{order: m.a.order}}
		if err = turned.assign(op, a.node()); err == nil {
			err = a.become(turned)
		}
	}
	return typed[T](a, err)
}

// MoveTo moves an owned matrix to another device. A view, a matrix with views and an external one stay where they are:
// [ErrView], [ErrExternalResize]; copy those.
func (m *Dense[T]) MoveTo(ctx context.Context, dev *gpu.Device) error {
	const op = "MoveTo"
	if err := m.Any().usable(op); err != nil {
		return err
	}
	if dev == nil {
		return fail(op, ErrInvalid, "nil device")
	}
	if m.a.dev == dev {
		return nil
	}
	if err := m.a.unshared(op, m.a.shape()); err != nil {
		return err
	}
	if m.a.fixed {
		return fail(op, ErrExternalResize, "to another device")
	}
	if m.a.buf == nil {
		m.a.dev = dev
		return nil
	}
	next, err := m.CopyTo(ctx, dev)
	if err != nil {
		return err
	}
	return m.a.become(&next.a)
}

// carried computes a node on its device and brings the result to another, row by row.
func (n *node) carried(ctx context.Context, op string, dev *gpu.Device) (*Any, error) {
	if dev == nil {
		return nil, fail(op, ErrInvalid, "nil device")
	}
	if n.dev == nil || n.rows == 0 || n.cols == 0 {
		return NewAny(dev, DType(n.t), n.rows, n.cols)
	}
	src := &Any{t: n.t, dev: n.dev}
	if n.kind == kindLeaf {
		a := n.leaf.alias()
		src = &a
	} else if err := src.assign(op, n); err != nil {
		return nil, err
	}
	mem := gpu.HostBytes(make([]byte, n.rows*n.cols*src.t.Size()))
	err := src.ReadHost(ctx, mem)
	if cerr := src.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return nil, err
	}
	return CopyAny(dev, DType(src.t), n.rows, n.cols, mem)
}

// assignFrom assigns an expression of another device.
func (m *Any) assignFrom(op string, n *node) error {
	return m.overDevices(op, n, func(op string, n *node) error { return m.assign(op, n) })
}

// overDevices gives assign an expression on m's device: n, or a copy of its result if it belongs to another.
func (m *Any) overDevices(op string, n *node, assign func(string, *node) error) error {
	if n.dev == nil || m.dev == nil || n.dev == m.dev {
		return assign(op, n)
	}
	c, err := n.carried(context.Background(), op, m.dev)
	if err != nil {
		return err
	}
	err = assign(op, c.node())
	if cerr := c.Close(); err == nil {
		err = cerr
	}
	return err
}
