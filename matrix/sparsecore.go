// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// sparseCore is a Sparse without its element type of Go's. Majors are what the pointers or ids count, columns or the rows of CSR;
// minors are the other dimension.
type sparseCore struct {
	dev            *gpu.Device
	t              fuse.Type
	format         Format
	majors, minors int
	index, ptr     []int32 // the caller's if external; of a slice the pointers of its columns and all indices
	first          int     // which of the pointers on the device is ptr[0]
	external, view bool
	shares
	changes *atomic.Uint32 // of the structure, or of what the caller says of it; aliases have the same

	// Owned matrices grow by Append. What it added is on the host until somebody needs it.
	mu    sync.Mutex // of settle
	begun int        // the last major with entries; pointers from begun+2 on are behind until settle
	tail  []byte     // values the device does not have
	sent  int        // indices it has
	torn  bool       // work on the structure there failed: it is sent again, whole
	made  []madeOf   // the operands of the expression that made it: such a matrix has no values, and its structure is in its tables alone

	err     error // a view that could not be made
	closed  bool
	cleanup *cleanup.Cleanup // drops the shares of a view that nobody closed
	tables  *tables
	uploads atomic.Uint32 // how often work on the tables failed
}

// shares are a matrix's shares of its memory.
type shares struct{ values, indices, pointers *buffer.Buffer } // of block columns the pointers are nil

func newSparse(dev *gpu.Device, t fuse.Type, format Format, rows, cols int) *sparseCore {
	s := &sparseCore{dev: dev, t: t, format: format, majors: cols, minors: rows, changes: new(atomic.Uint32), tables: new(tables)}
	if format == CSR {
		s.majors, s.minors = rows, cols
	}
	return s
}

// checkKind refuses sizes, types and formats that there are no sparse matrices of.
func (s *sparseCore) checkKind(op string) error {
	switch {
	case s.dev == nil:
		return fail(op, gpu.ErrInvalid, "nil device")
	case s.t.Size() != 4:
		return fail(op, gpu.ErrUnsupported, "sparse matrices of ", s.t.String())
	case s.format > BlockColumn:
		return fail(op, gpu.ErrInvalid, "unknown format")
	case s.majors < 0 || s.minors < 0:
		return fail(op, buffer.ErrSize, "negative dimensions")
	case s.majors > math.MaxInt32 || s.minors > math.MaxInt32 || len(s.index) > math.MaxInt32:
		return fail(op, gpu.ErrLimit, "more than 2147483647 rows, columns or entries")
	}
	return nil
}

// check refuses whatever is not a sparse matrix with these values. It trusts nothing.
func (s *sparseCore) check(op string, values gpu.Host) error {
	if err := s.checkKind(op); err != nil {
		return err
	}
	n, have, block := s.stored(), values.Size/4, s.format == BlockColumn
	var wrong error
	switch {
	case n > math.MaxInt32:
		wrong = gpu.ErrLimit
	case values.Bytes == nil && values.Foreign == nil && n > 0, s.index == nil && have > 0, !block && s.ptr == nil:
		wrong = buffer.ErrNil
	case have < n, !block && (have > n || len(s.ptr) < s.majors+1):
		wrong = buffer.ErrShort
	case have > n, block && len(s.ptr) > 0, !block && len(s.ptr) > s.majors+1:
		wrong = buffer.ErrShape
	default:
		return s.checkStructure(op)
	}
	pointers := s.majors + 1
	if block {
		pointers = 0
	}
	return fail(op, wrong, itoa(have), " values, ", itoa(len(s.index)), " indices and ", itoa(len(s.ptr)), " pointers; ",
		s.format.String(), " of ", s.shape().String(), " takes ", itoa(n), " values for these indices, and ", itoa(pointers), " pointers")
}

// checkStructure checks indices and pointers, whose numbers are right; of a slice those of its columns.
func (s *sparseCore) checkStructure(op string) error {
	if s.format == BlockColumn {
		return increasing(op, s.index, s.majors)
	}
	n := len(s.ptr)
	if first, last := int(s.ptr[0]), int(s.ptr[n-1]); first < 0 || !s.view && (first != 0 || last != len(s.index)) {
		return fail(op, ErrSparse, "pointers from ", itoa(first), " to ", itoa(last), " for ", itoa(len(s.index)), " entries")
	}
	for c := 1; c < n; c++ {
		if s.ptr[c] < s.ptr[c-1] || int(s.ptr[c]) > len(s.index) {
			return fail(op, ErrSparse, "pointer ", itoa(c), " is ", itoa(int(s.ptr[c])), " after ", itoa(int(s.ptr[c-1])))
		}
		if err := increasing(op, s.index[s.ptr[c-1]:s.ptr[c]], s.minors); err != nil {
			return err
		}
	}
	return nil
}

// increasing checks that indices are in range and strictly increase.
func increasing(op string, index []int32, end int) error {
	for k, i := range index {
		if i < 0 || int(i) >= end {
			return fail(op, buffer.ErrIndex, "index ", itoa(int(i)), " of ", itoa(end))
		}
		if k > 0 && i <= index[k-1] {
			return fail(op, ErrSparse, "index ", itoa(int(i)), " after ", itoa(int(index[k-1])))
		}
	}
	return nil
}

// make checks the parts and makes a matrix of them: with buffer.DontOwnBuffer of that memory itself, otherwise of a copy.
func (s *sparseCore) make(op string, o *Options, mem memory, flags buffer.Flags) (*sparseCore, error) {
	s.external = flags == buffer.DontOwnBuffer
	switch {
	case !mem.isHost:
		return nil, fail(op, buffer.ErrNil, "no values in host memory")
	case s.external && mem.numbers != nil:
		return nil, fail(op, gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	case flags != 0 && !s.external:
		return nil, fail(op, gpu.ErrInvalid, "flags of dense matrices")
	case o.ColMajor || o.Offset != 0 || o.Stride != 0 || o.Aligned || o.Padded || o.RowMajorInput || o.Destroy:
		return nil, fail(op, gpu.ErrInvalid, "an option that places dense matrices")
	}
	values := mem.host
	if mem.numbers != nil {
		values = packed(s.t, mem.numbers)
	}
	if err := s.check(op, values); err != nil {
		return nil, err
	}
	put := buffer.FromHost
	if s.external {
		put = func(dev *gpu.Device, mem gpu.Host) (*buffer.Buffer, error) { return buffer.Wrap(dev, mem, nil) }
	} else if err := o.unreleased(op); err != nil {
		return nil, err
	} else {
		s.index, s.ptr = slices.Clone(s.index), slices.Clone(s.ptr)
	}
	b, err := put(s.dev, values)
	if err != nil {
		return nil, named(op, err)
	}
	made, err := s.with(op, b, put)
	if err == nil && o.Release != nil {
		b.SetRelease(o.Release)
	}
	return made, err
}

// with completes a matrix whose structure is right by a buffer of values that becomes its own.
func (s *sparseCore) with(op string, values *buffer.Buffer, put func(*gpu.Device, gpu.Host) (*buffer.Buffer, error)) (*sparseCore, error) {
	var err error
	s.values, s.sent = values, len(s.index)
	s.indices, err = put(s.dev, hostOf(s.index))
	if err == nil && s.format != BlockColumn {
		s.pointers, err = put(s.dev, hostOf(s.ptr))
		for s.begun = max(s.majors-1, 0); s.begun > 0 && s.ptr[s.begun] == s.ptr[s.begun+1]; {
			s.begun--
		}
	}
	if err != nil {
		return nil, named(op, firstError(err, s.drop()))
	}
	return s, nil
}

// usable refuses closed matrices, and those that could not be made.
func (s *sparseCore) usable(op string) error {
	switch {
	case s.err != nil:
		return s.err
	case s.closed:
		return fail(op, gpu.ErrClosed, "the matrix")
	}
	return nil
}

// alive is usable for calls that need the device too, and ready for those that need its memory to be up to date.
func (s *sparseCore) alive(op string) error {
	if err := s.usable(op); err != nil {
		return err
	}
	return named(op, s.dev.Usable())
}

func (s *sparseCore) ready(op string) error {
	if err := s.alive(op); err != nil {
		return err
	}
	return named(op, s.settle())
}

// shape returns the number of rows and columns.
func (s *sparseCore) shape() fault.Shape {
	if s.format == CSR {
		return fault.Shape{s.majors, s.minors}
	}
	return fault.Shape{s.minors, s.majors}
}

// stored returns the number of stored values, of a slice those of all columns.
func (s *sparseCore) stored() int {
	if s.format == BlockColumn {
		return len(s.index) * s.minors
	}
	return len(s.index)
}

func (s *sparseCore) nnz() int {
	if s.usable("NNZ") != nil {
		return 0
	}
	lo, hi := s.span()
	return hi - lo
}

// span returns which of the stored values are the matrix's. The caller of an external one may have written anything there.
func (s *sparseCore) span() (lo, hi int) {
	if !s.view {
		return 0, s.stored()
	}
	n := int32(len(s.index))
	lo = int(min(max(s.ptr[0], 0), n))
	return lo, max(lo, int(min(s.ptr[s.majors], n)))
}

// buffers returns those that there are.
func (s *shares) buffers() []*buffer.Buffer {
	return slices.DeleteFunc([]*buffer.Buffer{s.indices, s.pointers, s.values}, func(b *buffer.Buffer) bool { return b == nil })
}

func (s *sparseCore) close() error {
	if s.err != nil || s.closed {
		return nil
	}
	s.closed = true
	s.cleanup.Stop()
	return firstError(s.tables.close(), s.drop())
}

// drop closes a share of every buffer. The one of the values is the last, for its release function.
func (s *shares) drop() error {
	return firstError(s.indices.Close(), s.pointers.Close(), s.values.Close())
}

// share makes a matrix of the same memory that has n majors from start on.
func (s *sparseCore) share(op string, start, n int) *sparseCore {
	if err := s.ready(op); err != nil {
		return &sparseCore{err: err}
	}
	held := s.shares
	for _, b := range held.buffers() {
		b.Share()
	}
	v := &sparseCore{
		dev: s.dev, t: s.t, format: s.format, majors: n, minors: s.minors, index: s.index, first: s.first + start,
		external: s.external, view: s.view, shares: held, changes: s.changes, begun: s.begun, sent: s.sent, tables: new(tables),
	}
	lists := v.tables
	v.cleanup = cleanup.New(func() { _ = firstError(lists.close(), held.drop()) })
	if s.format != BlockColumn {
		v.ptr = s.ptr[start:][: n+1 : n+1]
	}
	return v
}

// transposed is a view of the transpose.
func (s *sparseCore) transposed(op string) *sparseCore {
	if s.err == nil && s.format == BlockColumn {
		return &sparseCore{err: fail(op, gpu.ErrUnsupported, "the transpose of block columns; ToFormat makes CSC of them")}
	}
	v := s.share(op, 0, s.majors)
	v.view, v.format = true, CSC+CSR-v.format
	return v
}

func (s *sparseCore) columns(op string, start, n int) *sparseCore {
	switch err := s.ready(op); {
	case err != nil:
		return &sparseCore{err: err}
	case s.format != CSC:
		return &sparseCore{err: fail(op, gpu.ErrUnsupported, "slices of ", s.format.String())}
	case start < 0 || n < 0 || start > s.majors-n:
		return &sparseCore{err: fail(op, buffer.ErrIndex, itoa(n), " columns from ", itoa(start), " of ", s.shape().String())}
	}
	v := s.share(op, start, n)
	v.view = true
	return v
}

// words is words lo to hi-1 of a buffer as a matrix of bits, which nothing that copies them changes.
func words(b *buffer.Buffer, lo, hi int) exec.Dense {
	return exec.Dense{Layout: expr.Layout{Rows: 1, Cols: hi - lo, Offset: lo, Stride: hi - lo}, Type: fuse.U32, Buf: b}
}

func (s *sparseCore) touch(op string) error {
	err := s.ready(op)
	if err != nil || !s.external {
		return err
	}
	if err := s.checkStructure(op); err != nil {
		return err
	}
	for _, b := range s.buffers() {
		err = firstError(err, named(op, b.Touch()))
	}
	s.changes.Add(1)
	return err
}

// recheck checks the structure of an external matrix again, which was right when it was wrapped.
func (s *sparseCore) recheck(op string) error {
	if !s.external {
		return nil
	}
	return s.checkStructure(op)
}

// structure returns which of the values are the matrix's, and copies of the indices and pointers as a matrix of these has them.
func (s *sparseCore) structure(op string) (lo, n int, index, ptr []int32, err error) {
	if err = s.usable(op); err == nil {
		err = named(op, s.settle())
	}
	if err != nil {
		return 0, 0, nil, nil, err
	}
	lo, hi := s.span()
	if s.format == BlockColumn {
		return lo, hi - lo, slices.Clone(s.index), nil, nil
	}
	for _, p := range s.ptr {
		ptr = append(ptr, int32(min(max(int(p), lo), hi)-lo))
	}
	return lo, hi - lo, slices.Clone(s.index[lo:hi]), ptr, nil
}

func (s *sparseCore) clone(op string) (*sparseCore, error) {
	if err := firstError(s.ready(op), s.recheck(op)); err != nil {
		return nil, err
	}
	lo, n, index, ptr, err := s.structure(op)
	if err != nil {
		return nil, err
	}
	from, values := words(s.values, lo, lo+n), core{t: fuse.U32, typed: 1, dev: s.dev}
	if err := values.assign(context.Background(), op, exec.Leaf(s.dev, from, from)); err != nil {
		return nil, err
	}
	size := s.shape()
	c := newSparse(s.dev, s.t, s.format, size[0], size[1])
	c.index, c.ptr = index, ptr
	return c.with(op, values.buf, buffer.FromHost)
}

// valuesView is the stored values as a dense matrix.
func (s *sparseCore) valuesView(op string) core {
	if err := s.ready(op); err != nil {
		return core{err: err}
	}
	lo, hi := s.span()
	l := words(s.values, lo, hi).Layout
	if s.format == BlockColumn {
		l = expr.Layout{Rows: s.minors, Cols: len(s.index), Stride: s.minors, ColMajor: true}
	}
	held := &share{buf: s.values.Share()}
	return core{
		Layout: l, t: s.t, typed: 1, dev: s.dev, buf: s.values, wrapped: true, external: s.external, view: true, share: held,
		cleanup: cleanup.New(func() { _ = held.close() }),
	}
}
