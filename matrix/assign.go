// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// Assign queues the expression's computation into m and returns. m may be an operand of the expression: the result is
// always what it would be if m were elsewhere. An owned matrix takes the expression's size; wrapped memory and views keep
// theirs, and another size is [ErrShape]. A call that fails leaves m as it was; one over memory
// larger than a buffer, which is computed in blocks, can fail after some of them.
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
	if dev == nil {
		return fail(op, ErrInvalid, "neither the matrix nor the expression has a device")
	}
	if err := dev.Usable(); err != nil {
		return err
	}
	if n.dev != nil && n.dev != dev {
		return m.assignFrom(op, n)
	}
	if m.buf != nil && n.rows == m.rows && n.cols == m.cols {
		if m.buf.ReadOnly() {
			return fail(op, ErrReadOnly, "the memory that the matrix wraps")
		}
		return engineOf(dev).assign(m, n)
	}
	return m.replace(op, n)
}

// replace evaluates into new memory of n's size and takes it over.
func (m *Any) replace(op string, n *node) error {
	if m.fixed {
		return shapeError(op, m.shape(), n.shape())
	}
	if err := m.unshared(op, n.shape()); err != nil {
		return err
	}
	return m.renew(op, n)
}

// unshared refuses to resize views, and matrices that have views.
func (m *Any) unshared(op string, to gpu.Shape) error {
	switch {
	case m.buf == nil:
		return nil
	case m.view:
		return fail(op, ErrView, m.shape().String(), " to ", to.String())
	case m.buf.Shares() > 1 && !m.forgotten():
		return fail(op, ErrView, "the matrix has views")
	}
	return nil
}

// forgotten gives the garbage collector the chance to close views that were left to it, such as those written inside an
// expression, and reports whether there are no others.
func (m *Any) forgotten() bool {
	for range 2 { // cleanups may overtake each other
		collect()
		if m.buf.Shares() == 1 {
			return true
		}
	}
	return false
}

// collect runs the garbage collector and returns when a cleanup that it found has run, or after a second.
func collect() {
	var done atomic.Bool
	runtime.AddCleanup(new([16]byte), func(done *atomic.Bool) { done.Store(true) }, &done)
	runtime.GC()
	for end := time.Now().Add(time.Second); !done.Load() && time.Now().Before(end); {
		runtime.Gosched() // to sleep would hold up a page
	}
}

// renew is replace without the questions.
func (m *Any) renew(op string, n *node) error {
	next, err := m.another(op, n.dev, n.rows, n.cols)
	if err != nil {
		return err
	}
	if err := engineOf(next.dev).assign(next, n); err != nil {
		_ = next.buf.Close()
		return err
	}
	return m.become(next)
}

// another makes an owned matrix of m's type and order, on m's device or, if it has none yet, on dev.
func (m *Any) another(op string, dev *gpu.Device, rows, cols int) (*Any, error) {
	if m.dev != nil {
		dev = m.dev
	}
	if err := checkDims(op, rows, cols); err != nil {
		return nil, err
	}
	size, _ := elements(rows, cols)
	buf, err := buffer.New(dev, size*m.t.Size())
	if err != nil {
		return nil, err
	}
	next := &Any{t: m.t, dev: dev, buf: buf, layout: layout{rows: rows, cols: cols, order: m.order}}
	next.stride = next.minor()
	return next, nil
}

// become makes m what next is, and drops m's share of its memory.
func (m *Any) become(next *Any) error {
	old := m.buf
	m.net.Stop()
	*m = *next
	return old.Close()
}

// Copy stores a, whatever the two layouts.
func (m *Dense[T]) Copy(a Operand[T]) error { return m.Assign(a) }

// Fill sets every element to v.
func (m *Dense[T]) Fill(v T) error {
	r, c := m.Dims()
	return m.Assign(Fill(r, c, v))
}

// Zero sets every element to 0.
func (m *Dense[T]) Zero() error { return m.Fill(*new(T)) }

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
