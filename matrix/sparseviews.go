// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// sparseCore is a Sparse without its element type of Go's: some of the majors of a storage, all of them if it is not a slice.
type sparseCore struct {
	st           *storage
	first, count int
	view         bool
	err          error // a view that could not be made
	closed       bool
	cleanup      *cleanup.Cleanup // drops the shares of a view that nobody closed
	plan         *rowPlan         // for products, guarded by the storage's lock
}

// usable refuses nil and closed matrices, and views that could not be made.
func (s *sparseCore) usable(op string) error {
	switch {
	case s == nil:
		return fail(op, ErrNil, "nil matrix")
	case s.err != nil:
		return s.err
	case s.st == nil:
		return fail(op, gpu.ErrInvalid, "a sparse matrix that nobody made")
	case s.closed:
		return fail(op, gpu.ErrClosed, "the matrix")
	}
	return nil
}

// ready is usable for calls that need the device too.
func (s *sparseCore) ready(op string) error {
	if err := s.usable(op); err != nil {
		return err
	}
	return s.st.dev.Usable()
}

func (s *sparseCore) dims() (rows, cols int) {
	switch {
	case s == nil || s.st == nil:
		return 0, 0
	case s.st.format == CSR:
		return s.count, s.st.minors
	}
	return s.st.minors, s.count
}

func (s *sparseCore) shape() gpu.Shape {
	rows, cols := s.dims()
	return gpu.Shape{rows, cols}
}

func (s *sparseCore) nnz() int {
	if s == nil || s.st == nil || s.closed {
		return 0
	}
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	lo, hi := s.span()
	return hi - lo
}

// span returns which of the stored values are the matrix's. The storage is locked.
func (s *sparseCore) span() (lo, hi int) {
	if s.count == s.st.majors {
		return 0, s.st.nnz()
	}
	lo = s.st.pointer(s.first)
	return lo, max(lo, s.st.pointer(s.first+s.count))
}

func (s *sparseCore) close() error {
	if s == nil || s.st == nil || s.closed || s.err != nil {
		return nil
	}
	s.closed = true
	s.cleanup.Stop()
	return firstError(s.plan.close(), s.st.drop())
}

// moved returns what s was and leaves the zero value.
func (s *sparseCore) moved() sparseCore {
	s.cleanup.Stop()
	was := *s
	*s = sparseCore{}
	return was
}

// share makes a matrix of the same storage that has majors first to first+count-1.
func (s *sparseCore) share(op string, first, count int, view bool) sparseCore {
	if err := s.ready(op); err != nil {
		return sparseCore{err: err}
	}
	st := s.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.settle(); err != nil {
		return sparseCore{err: err}
	}
	for _, b := range st.buffers() {
		b.Share()
	}
	return sparseCore{st: st, first: first, count: count, view: view}
}

func (s *sparseCore) columns(start, n int) sparseCore {
	const op = "ColumnSlice"
	if err := s.ready(op); err != nil {
		return sparseCore{err: err}
	}
	switch {
	case s.st.format != CSC:
		return sparseCore{err: fail(op, gpu.ErrUnsupported, "slices of ", s.st.format.String())}
	case start < 0 || n < 0 || start > s.count-n:
		return sparseCore{err: fail(op, ErrIndex, itoa(n), " columns from ", itoa(start), " of ", s.shape().String())}
	}
	return s.share(op, s.first+start, n, true)
}

func (s *sparseCore) append(i, j int, value []byte) error {
	const op = "Append"
	if err := s.ready(op); err != nil {
		return err
	}
	st := s.st
	st.mu.Lock()
	defer st.mu.Unlock()
	rows, cols := s.dims()
	switch {
	case st.external:
		return fail(op, ErrExternal, "nothing can be appended")
	case s.view:
		return fail(op, ErrView, "nothing can be appended to a slice")
	case st.format == BlockColumn:
		return fail(op, gpu.ErrUnsupported, "block columns have no single entries")
	case i < 0 || i >= rows || j < 0 || j >= cols:
		return fail(op, ErrIndex, itoa(i), ", ", itoa(j), " of ", s.shape().String())
	case st.values.Shares() > 1 || st.indices.Shares() > 1:
		return fail(op, ErrView, "the matrix has views")
	case st.format == CSR:
		return st.append(op, i, j, value)
	}
	return st.append(op, j, i, value)
}

func (s *sparseCore) sync(ctx context.Context) error {
	if err := s.usable("Sync"); err != nil {
		return err
	}
	return s.st.values.Sync(ctx)
}

func (s *sparseCore) touch() error {
	const op = "Touch"
	if err := s.ready(op); err != nil {
		return err
	}
	st := s.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.check(op); err != nil {
		return err
	}
	if !st.external {
		return nil
	}
	var err error
	for _, b := range st.buffers() {
		err = firstError(err, b.Touch())
	}
	st.changes++
	return err
}

// structure returns a copy of the indices and pointers as a matrix of the same entries has them. The storage is locked.
func (s *sparseCore) structure() (index, ptr []int32) {
	st := s.st
	if st.format == BlockColumn {
		return slices.Clone(st.index), nil
	}
	lo, hi := s.span()
	ptr = make([]int32, s.count+1)
	for c := range ptr {
		ptr[c] = int32(min(max(st.pointer(s.first+c), lo), hi) - lo)
	}
	return slices.Clone(st.index[lo:hi]), ptr
}

func (s *sparseCore) clone() (*storage, error) {
	const op = "Clone"
	if err := s.ready(op); err != nil {
		return nil, err
	}
	st := s.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := firstError(st.settle(), st.check(op)); err != nil {
		return nil, err
	}
	lo, hi := s.span()
	p := parts{format: st.format}
	p.rows, p.cols = s.dims()
	p.index, p.ptr = s.structure()
	c, err := newStorage(st.dev, st.t, p)
	if err != nil {
		return nil, err
	}
	// The storage was made without values.
	values, err := buffer.New(st.dev, 4*(hi-lo))
	if err == nil {
		err = copyWords(values, st.values, 4*lo, 4*(hi-lo))
	}
	if err != nil {
		return nil, firstError(err, values.Close(), c.drop())
	}
	err = c.values.Close()
	c.values = values
	return c, err
}

// valuesView is the stored values as a dense matrix.
func (s *sparseCore) valuesView() core {
	if err := s.ready("Values"); err != nil {
		return core{err: err}
	}
	st := s.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.settle(); err != nil {
		return core{err: err}
	}
	lo, hi := s.span()
	l := expr.Layout{Rows: 1, Cols: hi - lo, Offset: lo, Stride: hi - lo}
	if st.format == BlockColumn {
		l = expr.Layout{Rows: st.minors, Cols: len(st.index), Stride: st.minors, Order: ColMajorOrder}
	}
	return core{
		Layout: l, t: st.t, typed: true, dev: st.dev, buf: st.values, share: &share{buf: st.values.Share()},
		fixed: true, external: st.external, room: hi - lo, view: true,
	}
}

// read copies the values to host memory of their size and returns copies of the rest.
func (s *sparseCore) read(ctx context.Context, values gpu.Host) (index, ptr []int32, err error) {
	const op = "Read"
	st := s.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.settle(); err != nil {
		return nil, nil, err
	}
	lo, hi := s.span()
	n := 4 * (hi - lo)
	if n > values.Size {
		return nil, nil, fail(op, ErrSparse, "the structure changed")
	}
	index, ptr = s.structure()
	return index, ptr, st.values.Read(ctx, buffer.Region{Offset: 4 * lo, Width: n, Pitch: n, Count: 1}, values, 0)
}
