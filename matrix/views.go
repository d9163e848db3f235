// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// derive makes a view with another layout. It has a share of the memory, unless m has none either.
func (m *core) derive(op string, change func(expr.Layout) (expr.Layout, error)) core {
	v := m.lentView(op, change)
	if v.err == nil && m.buf != nil && !m.borrowed() {
		v.share.buf = m.buf.Share()
	}
	return v
}

// lentView makes a view without a share of the memory.
func (m *core) lentView(op string, change func(expr.Layout) (expr.Layout, error)) core {
	if err := m.usable(op); err != nil {
		return core{err: err}
	}
	v := core{
		t: m.t, typed: m.typed, dev: m.dev, buf: m.buf, fixed: m.fixed, external: m.external, room: m.room, view: true,
		origin: m.origin, share: &share{origin: m.origin, of: m.share},
	}
	if m.origin != nil {
		v.generation = m.origin.generation.Load()
	}
	if v.Layout, v.err = change(m.Layout); v.err != nil {
		v.buf, v.share = nil, nil
	}
	return v
}

// borrowed reports whether m is a view without a share of the memory.
func (m *core) borrowed() bool { return m.share != nil && m.share.buf == nil }

func (m *core) transposed() core {
	return m.derive("T", func(l expr.Layout) (expr.Layout, error) { return l.T(), nil })
}

func (m *core) slice(op string, i, k, j, l int) core {
	return m.derive(op, func(b expr.Layout) (expr.Layout, error) {
		if i < 0 || k < i || k > b.Rows || j < 0 || l < j || l > b.Cols {
			return b, fail(op, ErrIndex, "rows ", itoa(i), ":", itoa(k), ", columns ", itoa(j), ":", itoa(l), " of ", b.Shape().String())
		}
		return b.Slice(i, k, j, l), nil
	})
}

// dims returns the number of rows and columns.
func (m *core) dims() (rows, cols int) {
	if m == nil {
		return 0, 0
	}
	return m.Rows, m.Cols
}

// rows and columns return n of them from start on.
func (m *core) rows(op string, start, n int) core {
	r, c := m.dims()
	if n < 0 || start < 0 || start > r-n { // and no overflow
		return m.slice(op, start, -1, 0, c)
	}
	return m.slice(op, start, start+n, 0, c)
}

func (m *core) columns(op string, start, n int) core {
	r, c := m.dims()
	if n < 0 || start < 0 || start > c-n {
		return m.slice(op, 0, r, start, -1)
	}
	return m.slice(op, 0, r, start, start+n)
}

func (m *core) reshaped(rows, cols int) core {
	const op = "Reshape"
	return m.derive(op, func(l expr.Layout) (expr.Layout, error) { return l.Reshape(op, rows, cols) })
}

func (m *core) alias() core {
	v := m.derive("Alias", func(l expr.Layout) (expr.Layout, error) { return l, nil })
	if v.err == nil {
		v.view, v.share.alias = m.view, true
	}
	return v
}

func (m *core) diagonal() core {
	const op = "Diagonal"
	return m.derive(op, func(l expr.Layout) (expr.Layout, error) {
		if l.Rows != l.Cols {
			return l, shapeError(op, l.Shape())
		}
		return expr.Layout{Rows: 1, Cols: l.Cols, Offset: l.Offset, Stride: l.Stride + 1, Order: ColMajorOrder}, nil
	})
}

// forgotten drops the share of a view that nobody closes.
func (s *share) forgotten() *cleanup.Cleanup {
	return cleanup.New(func() { _ = s.close() })
}

// view gives a view its element type, and lets the garbage collector drop its share if nobody closes it.
func view[T Elem](a core) *Dense[T] {
	v := &Dense[T]{a}
	if a.share != nil && a.share.buf != nil {
		v.a.cleanup = a.share.forgotten()
	}
	return v
}
