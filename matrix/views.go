// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"runtime"

	"github.com/sublet-gpu/sublet/buffer"
)

// derive makes a view with another layout. It has a share of the memory.
func (m *Any) derive(op string, change func(layout) (layout, error)) Any {
	if err := m.usable(op); err != nil {
		return Any{err: err}
	}
	v := *m
	v.view, v.net = true, runtime.Cleanup{}
	if v.layout, v.err = change(m.layout); v.err != nil {
		v.buf = nil
		return v
	}
	if m.buf != nil {
		v.buf = m.buf.Share()
	}
	return v
}

func (m *Any) transposed() Any {
	return m.derive("T", func(l layout) (layout, error) { return l.t(), nil })
}

func (m *Any) slice(op string, i, k, j, l int) Any {
	return m.derive(op, func(b layout) (layout, error) {
		if i < 0 || k < i || k > b.rows || j < 0 || l < j || l > b.cols {
			return b, fail(op, ErrIndex, "rows ", itoa(i), ":", itoa(k), ", columns ", itoa(j), ":", itoa(l), " of ", b.shape().String())
		}
		return b.slice(i, k, j, l), nil
	})
}

func (m *Any) row(i int) Any {
	_, c := m.Dims()
	if i < 0 { // and not overflow below
		return m.slice("Row", i, i, 0, c)
	}
	return m.slice("Row", i, i+1, 0, c)
}

func (m *Any) col(j int) Any {
	r, _ := m.Dims()
	if j < 0 {
		return m.slice("Col", 0, r, j, j)
	}
	return m.slice("Col", 0, r, j, j+1)
}

func (m *Any) columns(start, n int) Any {
	r, c := m.Dims()
	if n < 0 || start > c-n {
		return m.slice("ColumnSlice", 0, r, start, -1)
	}
	return m.slice("ColumnSlice", 0, r, start, start+n)
}

func (m *Any) rowRange(start, n int) Any {
	r, c := m.Dims()
	if n < 0 || start > r-n {
		return m.slice("RowSlice", start, -1, 0, c)
	}
	return m.slice("RowSlice", start, start+n, 0, c)
}

func (m *Any) reshaped(rows, cols int) Any {
	const op = "Reshape"
	return m.derive(op, func(l layout) (layout, error) { return l.reshape(op, rows, cols) })
}

func (m *Any) alias() Any {
	v := m.derive("Alias", func(l layout) (layout, error) { return l, nil })
	if v.err == nil {
		v.view = m.view
	}
	return v
}

// keep puts a view on the heap, with the net that drops its share if nobody closes it.
func keep(a Any) *Any {
	v := &a
	if v.buf != nil {
		v.net = runtime.AddCleanup(v, func(b *buffer.Buffer) { _ = b.Close() }, v.buf)
	}
	return v
}

// T returns the transpose. Nothing moves.
func (m *Any) T() *Any { return keep(m.transposed()) }

// Slice returns rows i to k-1 and columns j to l-1.
func (m *Any) Slice(i, k, j, l int) *Any { return keep(m.slice("Slice", i, k, j, l)) }

// Reshape returns a rows x cols view of a matrix without gaps; the elements keep their order in memory.
func (m *Any) Reshape(rows, cols int) *Any { return keep(m.reshaped(rows, cols)) }

// Alias returns another matrix of the same memory and layout.
func (m *Any) Alias() *Any { return keep(m.alias()) }
