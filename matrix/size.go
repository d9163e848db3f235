// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"context"

	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// Resize gives an owned matrix another size. Its elements are undefined afterwards, unless the size is what it was.
// Memory that is large enough is kept. External matrices keep their size, [ErrExternalResize], and so do views and
// matrices that have views: [ErrView].
func (m *Dense[T]) Resize(rows, cols int) error { return m.core().resize(rows, cols) }

func (m *core) resize(rows, cols int) error {
	const op = "Resize"
	if err := m.usable(op); err != nil {
		return err
	}
	if err := expr.CheckDims(op, rows, cols); err != nil {
		return err
	}
	if m.dev == nil {
		return fail(op, ErrInvalid, "the matrix has no device")
	}
	l := expr.Layout{Rows: rows, Cols: cols, Offset: m.Offset, Order: m.Order}
	if m.buf != nil && rows == m.Rows && cols == m.Cols {
		return nil
	}
	if err := m.unshared(op, l.Shape()); err != nil {
		return err
	}
	switch {
	case m.external:
		return fail(op, ErrExternalResize, m.Shape().String(), " to ", l.Shape().String())
	case m.buf != nil && !m.fixed && rows*cols <= m.capacity():
		l.Stride = l.Minor()
		m.Layout = l
		m.resized()
		return nil
	}
	next, err := m.another(op, nil, rows, cols)
	if err != nil {
		return err
	}
	m.resized()
	return m.become(next)
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

// SetColumnSlice copies the first n columns of src to the columns from start on.
func (m *Dense[T]) SetColumnSlice(src *Dense[T], start, n int) error {
	to, from := m.ColumnSlice(start, n), src.ColumnSlice(0, n)
	err := firstError(to.Err(), from.Err())
	if err == nil && to.a.Rows != from.a.Rows {
		err = shapeError("SetColumnSlice", to.a.Shape(), from.a.Shape())
	}
	if err == nil {
		err = to.Assign(from)
	}
	return firstError(err, from.Close(), to.Close())
}

// SetCol sets column j to as many values as there are rows.
func (m *Dense[T]) SetCol(j int, values []T) error { return setPart(m.Col(j), values) }

// SetRow sets row i to as many values as there are columns.
func (m *Dense[T]) SetRow(i int, values []T) error { return setPart(m.Row(i), values) }

func setPart[T Elem](part *Dense[T], values []T) error {
	err := part.SetSlice(values)
	return firstError(err, part.Close())
}

func firstError(errs ...error) error { return cmp.Or(errs...) }

// Diagonal returns a copy of the diagonal of a square matrix, one row.
func (m *Dense[T]) Diagonal() (*Dense[T], error) {
	d := m.DiagView()
	c, err := d.Clone()
	if err = firstError(err, d.Close()); err != nil {
		return nil, err
	}
	return c, nil
}

// pads returns the elements between the end of each row (column) and the next.
func pads(l expr.Layout) expr.Layout {
	return expr.Layout{Rows: l.Major(), Cols: l.Stride - l.Minor(), Offset: l.Offset + l.Minor(), Stride: l.Stride}
}

// clearPads sets the pads of memory that is new to the library to zero: the caller's own at once.
func (m *core) clearPads(op string) error {
	p := *m
	p.Layout = pads(m.Layout)
	if p.Empty() || m.buf.ClearHost(p.Region(m.t.Size())) {
		return nil
	}
	return p.assign(context.Background(), op, zero(p.dense()))
}
