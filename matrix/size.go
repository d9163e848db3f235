// SPDX-License-Identifier: Apache-2.0

package matrix

// Resize gives an owned matrix another size. Its elements are undefined afterwards, unless the size is what it was.
// Memory that is large enough is kept. External matrices keep their size, [ErrExternalResize], and so do views and
// matrices that have views: [ErrView].
func (m *Dense[T]) Resize(rows, cols int) error { return m.Any().Resize(rows, cols) }

// Resize is [Dense.Resize].
func (m *Any) Resize(rows, cols int) error {
	const op = "Resize"
	if err := m.usable(op); err != nil {
		return err
	}
	if err := checkDims(op, rows, cols); err != nil {
		return err
	}
	if m.dev == nil {
		return fail(op, ErrInvalid, "the matrix has no device")
	}
	l := layout{rows: rows, cols: cols, offset: m.offset, order: m.order}
	if m.buf != nil && rows == m.rows && cols == m.cols {
		return nil
	}
	if err := m.unshared(op, l.shape()); err != nil {
		return err
	}
	switch {
	case m.external:
		return fail(op, ErrExternalResize, m.shape().String(), " to ", l.shape().String())
	case m.buf != nil && !m.fixed && rows*cols <= m.Capacity():
		l.stride = l.minor()
		m.layout = l
		return nil
	}
	next, err := m.another(op, nil, rows, cols)
	if err != nil {
		return err
	}
	return m.become(next)
}

// SetShape gives a matrix without gaps another shape of as many elements, which keep their order in memory. Nothing moves.
// External matrices and views may be given one, too; matrices that share the memory keep theirs.
func (m *Dense[T]) SetShape(rows, cols int) error { return m.Any().SetShape(rows, cols) }

// SetShape is [Dense.SetShape].
func (m *Any) SetShape(rows, cols int) error {
	const op = "SetShape"
	if err := m.usable(op); err != nil {
		return err
	}
	l, err := m.reshape(op, rows, cols)
	if err == nil {
		m.layout = l
	}
	return err
}

// SetColumnSlice copies the first n columns of src to the columns from start on.
func (m *Dense[T]) SetColumnSlice(src *Dense[T], start, n int) error {
	to, from := m.ColumnSlice(start, n), src.ColumnSlice(0, n)
	err := firstError(to.Err(), from.Err())
	if err == nil && to.a.rows != from.a.rows {
		err = shapeError("SetColumnSlice", to.a.shape(), from.a.shape())
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

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// DiagView returns the diagonal of a square matrix as a view of one row.
func (m *Dense[T]) DiagView() *Dense[T] { return view[T](m.Any().diagonal()) }

// Diagonal returns a copy of the diagonal of a square matrix, one row.
func (m *Dense[T]) Diagonal() (*Dense[T], error) {
	d := m.DiagView()
	c, err := d.Clone()
	if err = firstError(err, d.Close()); err != nil {
		return nil, err
	}
	return c, nil
}

func (m *Any) diagonal() Any {
	const op = "Diagonal"
	return m.derive(op, func(l layout) (layout, error) {
		if l.rows != l.cols {
			return l, shapeError(op, l.shape())
		}
		return layout{rows: 1, cols: l.cols, offset: l.offset, stride: l.stride + 1, order: ColMajorOrder}, nil
	})
}

// pads returns the elements between the end of each row (column) and the next.
func (l layout) pads() layout {
	return layout{rows: l.major(), cols: l.stride - l.minor(), offset: l.offset + l.minor(), stride: l.stride}
}

// clearPads sets the pads of memory that is new to the library to zero: the caller's own at once.
func (m *Any) clearPads(op string) error {
	p := *m
	p.layout = m.pads()
	if p.empty() || m.buf.ClearHost(p.region(m.t.Size())) {
		return nil
	}
	return p.assign(op, &node{kind: kindScalar, t: m.t, rows: p.rows, cols: p.cols})
}
