// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"runtime"
	"slices"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
)

// sparseAny is a Sparse without its element type of Go's: some of the majors of a storage, all of them if it is not a slice.
type sparseAny struct {
	st           *storage
	first, count int
	view         bool
	err          error // a view that could not be made
	closed       bool
	net          runtime.Cleanup // drops the shares of a view that nobody closed
	plan         *rowPlan        // for products, guarded by the storage's lock
}

// usable refuses nil and closed matrices, and views that could not be made.
func (s *sparseAny) usable(op string) error {
	switch {
	case s == nil:
		return fail(op, ErrNil, "nil matrix")
	case s.err != nil:
		return s.err
	case s.st == nil:
		return fail(op, ErrInvalid, "a sparse matrix that nobody made")
	case s.closed:
		return fail(op, ErrClosed, "the matrix")
	}
	return nil
}

// ready is usable for calls that need the device too.
func (s *sparseAny) ready(op string) error {
	if err := s.usable(op); err != nil {
		return err
	}
	return s.st.dev.Usable()
}

func (s *sparseAny) dims() (rows, cols int) {
	switch {
	case s == nil || s.st == nil:
		return 0, 0
	case s.st.format == CSR:
		return s.count, s.st.minors
	}
	return s.st.minors, s.count
}

func (s *sparseAny) shape() gpu.Shape {
	rows, cols := s.dims()
	return gpu.Shape{rows, cols}
}

func (s *sparseAny) nnz() int {
	if s == nil || s.st == nil || s.closed {
		return 0
	}
	s.st.mu.Lock()
	defer s.st.mu.Unlock()
	lo, hi := s.span()
	return hi - lo
}

// span returns which of the stored values are the matrix's. The storage is locked.
func (s *sparseAny) span() (lo, hi int) {
	if s.count == s.st.majors {
		return 0, s.st.nnz()
	}
	lo = s.st.pointer(s.first)
	return lo, max(lo, s.st.pointer(s.first+s.count))
}

func (s *sparseAny) close() error {
	if s == nil || s.st == nil || s.closed || s.err != nil {
		return nil
	}
	s.closed = true
	s.net.Stop()
	return firstError(s.plan.close(), s.st.drop())
}

// moved returns what s was and leaves the zero value.
func (s *sparseAny) moved() sparseAny {
	s.net.Stop()
	was := *s
	*s = sparseAny{}
	return was
}

// share makes a matrix of the same storage that has majors first to first+count-1.
func (s *sparseAny) share(op string, first, count int, view bool) sparseAny {
	if err := s.ready(op); err != nil {
		return sparseAny{err: err}
	}
	st := s.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.settle(); err != nil {
		return sparseAny{err: err}
	}
	for _, b := range st.buffers() {
		b.Share()
	}
	return sparseAny{st: st, first: first, count: count, view: view}
}

func (s *sparseAny) columns(start, n int) sparseAny {
	const op = "ColumnSlice"
	if err := s.ready(op); err != nil {
		return sparseAny{err: err}
	}
	switch {
	case s.st.format != CSC:
		return sparseAny{err: fail(op, ErrUnsupported, "slices of ", s.st.format.String())}
	case start < 0 || n < 0 || start > s.count-n:
		return sparseAny{err: fail(op, ErrIndex, itoa(n), " columns from ", itoa(start), " of ", s.shape().String())}
	}
	return s.share(op, s.first+start, n, true)
}

func (s *sparseAny) append(i, j int, value []byte) error {
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
		return fail(op, ErrUnsupported, "block columns have no single entries")
	case i < 0 || i >= rows || j < 0 || j >= cols:
		return fail(op, ErrIndex, itoa(i), ", ", itoa(j), " of ", s.shape().String())
	case st.values.Shares() > 1 || st.indices.Shares() > 1:
		return fail(op, ErrView, "the matrix has views")
	case st.format == CSR:
		return st.append(op, i, j, value)
	}
	return st.append(op, j, i, value)
}

func (s *sparseAny) sync(ctx context.Context) error {
	if err := s.usable("Sync"); err != nil {
		return err
	}
	return s.st.values.Sync(ctx)
}

func (s *sparseAny) touch() error {
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
func (s *sparseAny) structure() (index, ptr []int32) {
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

func (s *sparseAny) clone() (*storage, error) {
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
func (s *sparseAny) valuesView() Any {
	if err := s.ready("Values"); err != nil {
		return Any{err: err}
	}
	st := s.st
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.settle(); err != nil {
		return Any{err: err}
	}
	lo, hi := s.span()
	l := layout{rows: 1, cols: hi - lo, offset: lo, stride: hi - lo}
	if st.format == BlockColumn {
		l = layout{rows: st.minors, cols: len(st.index), stride: st.minors, order: ColMajorOrder}
	}
	return Any{
		layout: l, t: st.t, dev: st.dev, buf: st.values.Share(),
		fixed: true, external: st.external, room: hi - lo, view: true,
	}
}

// read copies the values to host memory of their size and returns copies of the rest.
func (s *sparseAny) read(ctx context.Context, values gpu.Host) (index, ptr []int32, err error) {
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
