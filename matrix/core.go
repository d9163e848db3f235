// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"unsafe"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// core is a matrix without its Go element type. The zero value is an empty matrix without a device.
type core struct {
	expr.Layout
	t        fuse.Type
	typed    uint32 // 1 if t is known, which it is not for the zero value; see [Dense.core]
	wrapped  bool   // the matrix may not replace the memory
	external bool   // the result of External
	view     bool   // a part of another matrix
	closed   bool
	dev      *gpu.Device
	buf      *buffer.Buffer // nil: the zero value
	room     int            // of memory of a fixed size: its capacity in elements, from the first on
	err      error          // of a view that could not be made

	origin     *origin
	generation uint32 // of the origin, when a view was taken
	share      *share // of views and aliases; nil: the matrix has a share of its own
	cleanup    *cleanup.Cleanup
	leaf       unsafe.Pointer // the last *node made for the matrix; atomic, since several goroutines may read one matrix
}

// origin is the state that a matrix shares with its views.
type origin struct {
	lent       atomic.Int32  // the number of views in expressions that were not closed
	generation atomic.Uint32 // how often the matrix was resized
}

// share is a view's reference to its memory. A cleanup drops it if the view becomes garbage without Close.
//
// A matrix that has views cannot be resized. A view in an expression, which the caller may have no reference to, does not prevent this,
// and is an error once the matrix was resized.
type share struct {
	buf    *buffer.Buffer // nil: the view must not outlive what it was taken from
	origin *origin        // nil: it counts until it is closed, as an alias does
	of     *share         // the view that the view was taken of
	lent   atomic.Bool
	closed atomic.Bool
}

// lend records that a view, and the views that it was taken of, are in an expression.
func (s *share) lend() {
	for ; s != nil && s.origin != nil; s = s.of {
		if s.buf != nil && !s.closed.Load() && !s.lent.Swap(true) {
			s.origin.lent.Add(1)
		}
	}
}

func (s *share) close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if s.lent.Load() {
		s.origin.lent.Add(-1)
	}
	return s.buf.Close()
}

// usable refuses closed matrices, those that could not be made, and views of what was resized since.
func (m *core) usable(op string) error {
	switch {
	case m.err == error(buffer.ErrNil): //nolint:errorlint // this very one, see Dense.core
		return fail(op, m.err, "nil matrix")
	case m.err != nil:
		return m.err
	case m.closed:
		return fail(op, gpu.ErrClosed, "the matrix")
	case m.view && m.origin != nil && m.origin.generation.Load() != m.generation:
		return fail(op, ErrView, "the matrix that this is a view of was resized")
	}
	return nil
}

// operand is the matrix in an expression.
func (m *core) operand(op string) *node {
	if err := m.usable(op); err != nil {
		return expr.Failed(err)
	}
	if m.view {
		m.share.lend()
	}
	return m.node()
}

// node returns the matrix as a node of an expression, the same one while the size is the same.
func (m *core) node() *node {
	n := (*node)(atomic.LoadPointer(&m.leaf))
	if n == nil || n.Source != m || n.Rows != m.Rows || n.Cols != m.Cols {
		n = exec.Leaf(m.dev, m, m.dense())
		atomic.StorePointer(&m.leaf, unsafe.Pointer(n))
	}
	return n
}

func (m *core) dense() exec.Dense { return exec.Dense{Layout: m.Layout, Type: m.t, Buf: m.buf} }

// Current implements [exec.Source].
func (m *core) Current() (exec.Dense, error) { return m.dense(), m.usable("Assign") }

// zero is a matrix of zeros of the size, to be assigned to it.
func zero(d exec.Dense) *node { return expr.Number(d.Type, d.Rows, d.Cols, 0) }

// capacity is [Dense.Capacity].
func (m *core) capacity() int {
	switch {
	case m.buf == nil:
		return 0
	case m.view:
		return m.Rows * m.Cols
	case m.fixed():
		return m.room
	}
	return m.buf.Size()/m.t.Size() - m.Offset
}

// assign queues the computation of n into m, and copies its result from another device if need be.
func (m *core) assign(ctx context.Context, op string, n *node) error {
	t := fuse.F32
	if m.typed != 0 {
		t = m.t
	}
	n = promoted(n.Typed(t), t)
	dev := cmp.Or(m.dev, n.Dev)
	if dev == nil {
		return fail(op, gpu.ErrInvalid, "neither the matrix nor the expression has a device: Expr.On chooses one")
	}
	if n.Dev != nil && n.Dev != dev {
		c, err := carried(ctx, op, n, dev)
		if err != nil {
			return named(op, err)
		}
		return firstError(m.assign(ctx, op, c.node()), c.close())
	}
	return m.store(op, dev, n.Type, n.Rows, n.Cols, func(d exec.Dense) error { return exec.Of(dev).Assign(ctx, d, n) })
}

// promoted converts a float32 result to complex if the destination is.
func promoted(n *node, t fuse.Type) *node {
	if t == fuse.C64 && n.Type == fuse.F32 {
		return expr.NewConversion("Assign", t, n)
	}
	return n
}

// store calls compute to write a rows x cols result: into m if it has that size, else into new memory, which m gets if compute
// succeeds.
func (m *core) store(op string, dev *gpu.Device, t fuse.Type, rows, cols int, compute func(exec.Dense) error) error {
	to := fault.Shape{rows, cols}
	same := m.buf != nil && m.Rows == rows && m.Cols == cols
	switch {
	case m.typed != 0 && m.t != t:
		return fail(op, gpu.ErrInvalid, t.String(), " to ", m.t.String(), ": convert the result")
	case m.dev != nil && m.dev != dev:
		return fail(op, gpu.ErrForeign, "the result is on another device")
	case same && m.buf.ReadOnly():
		return fail(op, gpu.ErrReadOnly, "the memory that the matrix wraps")
	case same:
		err := compute(m.dense())
		if !errors.Is(err, gpu.ErrDeviceLost) || m.wrapped || m.unshared(op, to) != nil {
			return named(op, err)
		} // else the memory may be larger than m, and the rest is not replaced
	case m.fixed():
		return expr.ShapeError(op, "wrapped memory needs a result of "+m.Shape().String(), m.Shape(), to)
	}
	return m.renew(op, dev, t, rows, cols, func(c *core) error { return compute(c.dense()) })
}

// renew replaces m by an owned matrix of the same order, after fill has written it.
func (m *core) renew(op string, dev *gpu.Device, t fuse.Type, rows, cols int, fill func(*core) error) error {
	if err := m.unshared(op, fault.Shape{rows, cols}); err != nil {
		return err
	}
	o := Options{Type: t, ColMajor: m.ColMajor}
	next, err := newCore(op, dev, &o, rows, cols, &memory{mapped: m.mapped()}, new(origin))
	if err != nil {
		return err
	}
	if err := fill(&next); err != nil {
		return named(op, firstError(err, next.close()))
	}
	m.resized()
	return m.become(next)
}

// resize changes m's size, after fill has written a matrix of that size: in m's memory if that is large enough, else in new memory.
func (m *core) resize(op string, rows, cols int, fill func(*core) error) error {
	to := fault.Shape{rows, cols}
	fits := m.buf != nil && rows*cols <= m.capacity()
	switch err := m.unshared(op, to); {
	case err != nil:
		return err
	case !fits && m.wrapped:
		return fail(op, ErrExternalResize, to.String(), " into room for ", itoa(m.capacity()), " elements")
	case !fits:
		return m.renew(op, m.dev, m.t, rows, cols, fill)
	}
	next := *m
	next.Rows, next.Cols = rows, cols
	next.Stride = next.Minor()
	if err := fill(&next); err != nil {
		return err
	}
	m.Layout = next.Layout
	m.resized()
	return nil
}

func (m *core) mapped() bool { return m.buf != nil && m.buf.Mode() == buffer.Mapped }

// fixed reports whether assignments keep the size.
func (m *core) fixed() bool { return m.wrapped || m.mapped() }

// empty is a matrix of m's type and order on its device, without memory yet.
func (m *core) empty() core {
	return core{t: m.t, typed: m.typed, dev: m.dev, Layout: expr.Layout{ColMajor: m.ColMajor}}
}

// unshared returns an error for views, and for matrices that have views or are accessed, which cannot be resized. Views in expressions do
// not count.
func (m *core) unshared(op string, to fault.Shape) error {
	lent := 0
	if m.origin != nil {
		lent = int(m.origin.lent.Load())
	}
	switch {
	case m.buf == nil:
		return nil
	case m.buf.Accessed():
		return fail(op, gpu.ErrMapped, "a function of Access runs")
	case m.view:
		return fail(op, ErrView, "a view keeps its size: ", m.Shape().String(), " to ", to.String())
	case m.buf.Shares()-lent > 1:
		return fail(op, ErrView, "the matrix has views or aliases; close them first")
	}
	return nil
}

// resized invalidates the views that were taken before.
func (m *core) resized() {
	if m.origin != nil {
		m.origin.generation.Add(1)
	}
}

// become replaces m by next, and drops m's share of its memory.
func (m *core) become(next core) error {
	m.cleanup.Stop()
	old := *m
	*m = next
	return old.drop()
}

// moved returns the former m and empties it.
func (m *core) moved() core {
	m.cleanup.Stop()
	was := *m
	*m = core{t: was.t, typed: was.typed, dev: was.dev}
	was.cleanup = nil
	return was
}

// close drops the matrix's share of its memory.
func (m *core) close() error {
	if m.closed {
		return nil
	}
	m.closed = true
	m.cleanup.Stop()
	return m.drop()
}

func (m *core) drop() error {
	if m.share != nil {
		return m.share.close()
	}
	return m.buf.Close()
}

// derive makes a view with another layout. It has a share of the memory, unless m has none either.
func (m *core) derive(op string, change func(expr.Layout) (expr.Layout, error)) core {
	v := m.lentView(op, change)
	if v.err == nil && m.buf != nil && (m.share == nil || m.share.buf != nil) {
		s := v.share
		s.buf = m.buf.Share()
		v.cleanup = cleanup.New(func() { _ = s.close() })
	}
	return v
}

// lentView makes a view that does not keep the memory alive.
func (m *core) lentView(op string, change func(expr.Layout) (expr.Layout, error)) core {
	if err := m.usable(op); err != nil {
		return core{err: err}
	}
	v := core{
		Layout: m.Layout, t: m.t, typed: m.typed, wrapped: m.wrapped, external: m.external, view: true, dev: m.dev, buf: m.buf, room: m.room,
		origin: m.origin, generation: m.generation,
	}
	if m.origin != nil {
		v.generation = m.origin.generation.Load()
	}
	if v.Layout, v.err = change(m.Layout); v.err != nil {
		return core{err: v.err, t: m.t, typed: m.typed, Layout: v.Layout}
	}
	v.share = &share{origin: m.origin, of: m.share}
	return v
}

func turned(l expr.Layout) (expr.Layout, error) { return l.T(), nil }

func (m *core) slice(op string, i, k, j, l int) core { return m.derive(op, window(op, i, k, j, l)) }

// window changes a layout to that of rows i to k-1 and columns j to l-1.
func window(op string, i, k, j, l int) func(expr.Layout) (expr.Layout, error) {
	return func(b expr.Layout) (expr.Layout, error) {
		if i < 0 || k < i || k > b.Rows || j < 0 || l < j || l > b.Cols {
			return b, fail(op, buffer.ErrIndex, "rows ", itoa(i), ":", itoa(k), ", columns ", itoa(j), ":", itoa(l), " of ", b.Shape().String())
		}
		return b.Slice(i, k, j, l), nil
	}
}

// rows and columns return n of them from start on. If start + n overflows it is less than start, which slice refuses.
func (m *core) rows(op string, start, n int) core { return m.slice(op, start, start+n, 0, m.Cols) }

func (m *core) columns(op string, start, n int) core { return m.slice(op, 0, m.Rows, start, start+n) }

func (m *core) alias() core {
	v := m.derive("Alias", func(l expr.Layout) (expr.Layout, error) { return l, nil })
	if v.err == nil {
		v.view, v.share.origin = m.view, nil
	}
	return v
}

// The errors of this package. Compare with errors.Is; all come wrapped in a [gpu.OpError]. Others are those of packages gpu and
// buffer, such as [gpu.ErrInvalid], [buffer.ErrShape] and [buffer.ErrNil].
var (
	ErrAlignment      = fault.New("ErrAlignment", "not aligned")
	ErrCapacity       = fault.New("ErrCapacity", "stride too small for padding")
	ErrExternalResize = fault.New("ErrExternalResize", "external memory cannot be resized")
	ErrView           = fault.New("ErrView", "conflict with a view")
	ErrSyntax         = fault.New("ErrSyntax", "malformed expression")
	ErrName           = fault.New("ErrName", "unknown name")
	ErrSparse         = fault.New("ErrSparse", "broken sparse structure")
	ErrOrder          = fault.New("ErrOrder", "entry out of storage order")
	ErrNotSquare      = expr.ErrNotSquare
	ErrSingular       = fault.New("ErrSingular", "the matrix is singular")
	ErrConvergence    = fault.New("ErrConvergence", "no convergence")
	ErrNotPosDef      = fault.New("ErrNotPosDef", "the matrix is not positive definite")
)

func fail(op string, err error, detail ...string) error {
	return fault.Fail("matrix: "+op, err, detail...)
}

// named returns an error of a lower package, or nil, under the name of this package's call.
func named(op string, err error) error { return fault.In("matrix: ", op, err) }

func firstError(errs ...error) error { return cmp.Or(errs...) }

func itoa(n int) string { return strconv.Itoa(n) }
