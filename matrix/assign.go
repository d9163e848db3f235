// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/buffer"
)

// Assign queues the expression's computation into m and returns. m may be an operand of the expression: the result is
// always what it would be if m were elsewhere. An owned matrix takes the expression's size; wrapped memory and views keep
// theirs, and another size is [ErrShape]. A call that fails leaves m as it was.
func (m *Dense[T]) Assign(x Operand[T]) error {
	const op = "Assign"
	if err := m.Any().usable(op); err != nil {
		return err
	}
	n := from(op, x)
	if n.err != nil {
		return n.err
	}
	return m.a.assign(op, n)
}

func (m *Any) assign(op string, n *node) error {
	dev := m.dev
	if dev == nil {
		dev = n.dev
	}
	switch {
	case dev == nil:
		return fail(op, ErrInvalid, "neither the matrix nor the expression has a device")
	case n.dev != nil && n.dev != dev:
		return fail(op, ErrForeign, "the matrix and the expression are on two devices")
	case dev.Closed():
		return fail(op, ErrClosed, "the device")
	}
	if m.buf != nil && n.rows == m.rows && n.cols == m.cols {
		return engineOf(dev).assign(m, n)
	}
	return m.replace(op, n)
}

// replace evaluates into new memory of n's size and takes it over.
func (m *Any) replace(op string, n *node) error {
	if m.buf != nil {
		switch {
		case m.fixed:
			return shapeError(op, m.shape(), n.shape())
		case m.view:
			return fail(op, ErrView, m.shape().String(), " to ", n.shape().String())
		case m.buf.Shares() > 1:
			return fail(op, ErrView, "the matrix has views")
		}
	}
	dev := m.dev
	if dev == nil {
		dev = n.dev
	}
	size, ok := elements(n.rows, n.cols)
	if !ok {
		return fail(op, ErrLimit, n.shape().String())
	}
	buf, err := buffer.New(dev, size*m.t.Size())
	if err != nil {
		return err
	}
	next := *m
	next.dev, next.buf = dev, buf
	next.layout = layout{rows: n.rows, cols: n.cols, order: m.order}
	next.stride = next.minor()
	if err := engineOf(dev).assign(&next, n); err != nil {
		_ = buf.Close()
		return err
	}
	old := m.buf
	*m = next
	return old.Close()
}

// The following are one-line forms of Assign, with the receiver as the destination.

// Mul stores the matrix product of a and b.
func (m *Dense[T]) Mul(a, b Operand[T]) error { return m.Assign(Mul(a, b)) }

// Add stores a + b.
func (m *Dense[T]) Add(a, b Operand[T]) error { return m.Assign(Add(a, b)) }

// Sub stores a - b.
func (m *Dense[T]) Sub(a, b Operand[T]) error { return m.Assign(Sub(a, b)) }

// MulElem stores the element-wise product.
func (m *Dense[T]) MulElem(a, b Operand[T]) error { return m.Assign(MulElem(a, b)) }

// DivElem stores the element-wise quotient.
func (m *Dense[T]) DivElem(a, b Operand[T]) error { return m.Assign(DivElem(a, b)) }

// Scale stores s * a.
func (m *Dense[T]) Scale(s T, a Operand[T]) error { return m.Assign(Scale(s, a)) }

// Copy stores a, whatever the two layouts.
func (m *Dense[T]) Copy(a Operand[T]) error { return m.Assign(a) }

// Fill sets every element to v.
func (m *Dense[T]) Fill(v T) error {
	r, c := m.Dims()
	return m.Assign(Fill(r, c, v))
}

// Zero sets every element to 0.
func (m *Dense[T]) Zero() error { return m.Fill(0) }

// Clone returns a new owned matrix with the same elements.
func (m *Dense[T]) Clone() (*Dense[T], error) {
	if err := m.Any().usable("Clone"); err != nil {
		return nil, err
	}
	c := &Dense[T]{}
	c.a.dev = m.a.dev
	if err := c.Assign(m); err != nil {
		return nil, err
	}
	return c, nil
}
