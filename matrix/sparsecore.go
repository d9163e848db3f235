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
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
)

// parts is what a sparse matrix is made of, and what its aliases copy. Majors are what the pointers or ids count, columns or the
// rows of CSR; minors are the other dimension.
type parts struct {
	dev            *gpu.Device
	t              fuse.Type
	format         Format
	majors, minors int
	index, ptr     []int32 // the caller's if external; of a slice the pointers of its columns and all indices
	first          int     // which of the pointers on the device is ptr[0]
	external, view bool

	*shares
	changes *atomic.Uint32 // of the structure, or of what the caller says of it

	// Owned matrices grow by Append. What it added is on the host until somebody needs it.
	begun int    // the last major with entries; pointers from begun+2 on are behind until settle
	tail  []byte // values the device does not have
	sent  int    // indices it has
}

// shares are a matrix's shares of its memory.
type shares struct{ values, indices, pointers *buffer.Buffer } // of block columns the pointers are nil

func newParts(dev *gpu.Device, t fuse.Type, format Format, rows, cols int) *parts {
	if format == CSR {
		return &parts{dev: dev, t: t, format: format, majors: rows, minors: cols}
	}
	return &parts{dev: dev, t: t, format: format, majors: cols, minors: rows}
}

// sparseCore is a Sparse without its element type of Go's.
type sparseCore struct {
	parts
	mu      sync.Mutex // of settle
	err     error      // a view that could not be made
	closed  bool
	cleanup *cleanup.Cleanup // drops the shares of a view that nobody closed
	rows    *rowList         // for products
}

// checkKind refuses sizes, types and formats that there are no sparse matrices of.
func (p *parts) checkKind(op string) error {
	switch {
	case p.dev == nil:
		return fail(op, gpu.ErrInvalid, "nil device")
	case p.t == fuse.F16:
		return fail(op, gpu.ErrUnsupported, "sparse matrices of float16")
	case p.format > BlockColumn:
		return fail(op, gpu.ErrInvalid, "unknown format")
	case p.majors < 0 || p.minors < 0:
		return fail(op, buffer.ErrSize, "negative dimensions")
	case p.majors > math.MaxInt32 || p.minors > math.MaxInt32 || len(p.index) > math.MaxInt32:
		return fail(op, gpu.ErrLimit, "more than 2147483647 rows, columns or entries")
	}
	return nil
}

// check refuses whatever is not a sparse matrix with these values. It trusts nothing.
func (p *parts) check(op string, values gpu.Host) error {
	if err := p.checkKind(op); err != nil {
		return err
	}
	n, have, block := p.nnz(), values.Size/4, p.format == BlockColumn
	var wrong error
	switch {
	case n > math.MaxInt32:
		wrong = gpu.ErrLimit
	case values.Bytes == nil && values.Foreign == nil && n > 0, p.index == nil && have > 0, !block && p.ptr == nil:
		wrong = buffer.ErrNil
	case have < n, !block && (have > n || len(p.ptr) < p.majors+1):
		wrong = buffer.ErrShort
	case have > n, block && len(p.ptr) > 0, !block && len(p.ptr) > p.majors+1:
		wrong = buffer.ErrShape
	default:
		return p.checkStructure(op)
	}
	return fail(op, wrong, itoa(have), " values, ", itoa(len(p.index)), " indices and ", itoa(len(p.ptr)), " pointers for ",
		p.format.String(), " with ", itoa(p.majors), " columns (rows)")
}

// checkStructure checks indices and pointers, whose numbers are right; of a slice those of its columns.
func (p *parts) checkStructure(op string) error {
	if p.format == BlockColumn {
		return increasing(op, p.index, p.majors)
	}
	n := len(p.ptr)
	if first, last := int(p.ptr[0]), int(p.ptr[n-1]); first < 0 || !p.view && (first != 0 || last != len(p.index)) {
		return fail(op, ErrSparse, "pointers from ", itoa(first), " to ", itoa(last), " for ", itoa(len(p.index)), " entries")
	}
	for c := 1; c < n; c++ {
		if p.ptr[c] < p.ptr[c-1] || int(p.ptr[c]) > len(p.index) {
			return fail(op, ErrSparse, "pointer ", itoa(c), " is ", itoa(int(p.ptr[c])), " after ", itoa(int(p.ptr[c-1])))
		}
		if err := increasing(op, p.index[p.ptr[c-1]:p.ptr[c]], p.minors); err != nil {
			return err
		}
	}
	return nil
}

// increasing checks that indices are in range and strictly increase.
func increasing(op string, index []int32, end int) error {
	for k, i := range index {
		if i < 0 || int(i) >= end {
			return fail(op, buffer.ErrIndex, itoa(int(i)), " of ", itoa(end))
		}
		if k > 0 && i <= index[k-1] {
			return fail(op, ErrSparse, "index ", itoa(int(i)), " after ", itoa(int(index[k-1])))
		}
	}
	return nil
}

// make checks the parts and makes a matrix of them: with buffer.DontOwnBuffer of that memory itself, otherwise of a copy.
func (p *parts) make(op string, o *Options, mem memory, flags buffer.Flags) (*sparseCore, error) {
	p.external = flags == buffer.DontOwnBuffer
	switch {
	case !mem.isHost:
		return nil, fail(op, buffer.ErrNil, "no values in host memory")
	case p.external && mem.numbers != nil:
		return nil, fail(op, gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	case flags != 0 && !p.external:
		return nil, fail(op, gpu.ErrInvalid, "flags of dense matrices")
	case o.ColMajor || o.Offset != 0 || o.Stride != 0 || o.Aligned || o.Padded || o.RowMajorInput || o.Destroy:
		return nil, fail(op, gpu.ErrInvalid, "an option that places dense matrices")
	}
	values := mem.host
	if mem.numbers != nil {
		values = packed(p.t, mem.numbers)
	}
	if err := p.check(op, values); err != nil {
		return nil, err
	}
	put := buffer.FromHost
	if p.external {
		put = func(dev *gpu.Device, mem gpu.Host) (*buffer.Buffer, error) { return buffer.Wrap(dev, mem, nil) }
	} else if err := o.unreleased(op); err != nil {
		return nil, err
	} else {
		p.index, p.ptr = slices.Clone(p.index), slices.Clone(p.ptr)
	}
	b, err := put(p.dev, values)
	if err != nil {
		return nil, err
	}
	s, err := p.with(b, put)
	if err == nil && o.Release != nil {
		b.SetRelease(o.Release)
	}
	return s, err
}

// with makes a matrix of the parts, which are right, and a buffer of values that becomes the matrix's.
func (p *parts) with(values *buffer.Buffer, put func(*gpu.Device, gpu.Host) (*buffer.Buffer, error)) (*sparseCore, error) {
	s := &sparseCore{parts: *p}
	s.shares, s.changes, s.sent = &shares{values: values}, new(atomic.Uint32), len(p.index)
	var err error
	s.indices, err = put(p.dev, hostOf(p.index))
	if err == nil && p.format != BlockColumn {
		s.pointers, err = put(p.dev, hostOf(p.ptr))
		for s.begun = max(p.majors-1, 0); s.begun > 0 && p.ptr[s.begun] == p.ptr[s.begun+1]; {
			s.begun--
		}
	}
	if err != nil {
		return nil, firstError(err, s.drop())
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

// ready is usable for calls that need the device too, whose memory it brings up to date.
func (s *sparseCore) ready(op string) error {
	if err := s.usable(op); err != nil {
		return err
	}
	if err := s.dev.Usable(); err != nil {
		return err
	}
	return s.settle()
}

// shape returns the number of rows and columns.
func (s *sparseCore) shape() fault.Shape {
	if s.format == CSR {
		return fault.Shape{s.majors, s.minors}
	}
	return fault.Shape{s.minors, s.majors}
}

// nnz returns the number of stored values, of a slice those of all columns.
func (p *parts) nnz() int {
	if p.format == BlockColumn {
		return len(p.index) * p.minors
	}
	return len(p.index)
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
		return 0, s.parts.nnz()
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
	return firstError(s.rows.close(), s.drop())
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
	for _, b := range s.buffers() {
		b.Share()
	}
	held := *s.shares
	v := &sparseCore{parts: s.parts}
	v.shares = &held
	v.cleanup = cleanup.New(func() { _ = held.drop() })
	if v.majors, v.first = n, s.first+start; s.format != BlockColumn {
		v.ptr = s.ptr[start:][: n+1 : n+1]
	}
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

// append adds an entry behind all others, on the host.
func (s *sparseCore) append(op string, i, j int, value []byte) error {
	if err := s.usable(op); err != nil {
		return err
	}
	if err := s.dev.Usable(); err != nil {
		return err
	}
	major, minor, n := j, i, len(s.index)
	if s.format == CSR {
		major, minor = i, j
	}
	switch {
	case s.external:
		return fail(op, ErrExternalResize, "nothing can be appended")
	case s.view:
		return fail(op, ErrView, "nothing can be appended to a slice")
	case s.format == BlockColumn:
		return fail(op, gpu.ErrUnsupported, "block columns have no single entries")
	case major < 0 || major >= s.majors || minor < 0 || minor >= s.minors:
		return fail(op, buffer.ErrIndex, itoa(i), ", ", itoa(j), " of ", s.shape().String())
	case s.values.Shares() > 1 || s.indices.Shares() > 1:
		return fail(op, ErrView, "the matrix has views")
	case major < s.begun || major == s.begun && n > int(s.ptr[major]) && minor <= int(s.index[n-1]):
		return fail(op, ErrOrder, itoa(i), ", ", itoa(j), " is not behind the last entry")
	case n >= math.MaxInt32:
		return fail(op, gpu.ErrLimit, "more than 2147483647 entries")
	}
	for c := s.begun + 1; c <= major; c++ {
		s.ptr[c] = int32(n)
	}
	s.begun = major
	s.ptr[major+1] = int32(n + 1)
	s.index = append(s.index, int32(minor))
	s.tail = append(s.tail, value...)
	s.changes.Add(1)
	return nil
}

// settle brings the pointers up to date and sends what was appended to the device. What it has sent if it fails is beyond what
// anybody reads.
func (s *sparseCore) settle() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == len(s.index) {
		return nil
	}
	for c := s.begun + 2; c <= s.majors; c++ {
		s.ptr[c] = int32(len(s.index))
	}
	err := s.extend(&s.values, gpu.HostBytes(s.tail))
	if err == nil {
		err = s.extend(&s.indices, hostOf(s.index[s.sent:]))
	}
	if err == nil {
		err = s.pointers.Write(0, hostOf(s.ptr))
	}
	if err == nil {
		s.tail, s.sent = s.tail[:0], len(s.index)
	}
	return err
}

// extend writes what was appended to a buffer, which is replaced by one of twice the size if it is too small.
func (s *sparseCore) extend(b **buffer.Buffer, tail gpu.Host) error {
	old, used := *b, 4*s.sent
	if need := used + tail.Size; old.Size() < need {
		most := s.dev.Info().Limits.MaxBufferSize / 4 * 4
		next, err := buffer.New(s.dev, max(need, int(min(uint64(2*old.Size()), most))))
		if err != nil {
			return err
		}
		from, to := s.words(old, 0, s.sent), s.words(next, 0, s.sent)
		if err := to.assign(context.Background(), "Append", from.node()); err != nil {
			return firstError(err, next.Close())
		}
		*b = next
		if err := old.Close(); err != nil {
			return err
		}
	}
	return (*b).Write(used, tail)
}

// words is words lo to hi-1 of a buffer as a matrix of bits, which nothing that copies them changes.
func (s *sparseCore) words(b *buffer.Buffer, lo, hi int) core {
	l := expr.Layout{Rows: 1, Cols: hi - lo, Offset: lo, Stride: hi - lo}
	return core{Layout: l, t: fuse.U32, typed: true, dev: s.dev, buf: b, fixed: true}
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
		err = firstError(err, b.Touch())
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
		err = s.settle()
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
	if err := s.ready(op); err != nil {
		return nil, err
	}
	if err := s.recheck(op); err != nil {
		return nil, err
	}
	lo, n, index, ptr, err := s.structure(op)
	if err != nil {
		return nil, err
	}
	from, values := s.words(s.values, lo, lo+n), core{t: fuse.U32, typed: true, dev: s.dev}
	if err := values.assign(context.Background(), op, from.node()); err != nil {
		return nil, err
	}
	size := s.shape()
	p := newParts(s.dev, s.t, s.format, size[0], size[1])
	p.index, p.ptr = index, ptr
	return p.with(values.buf, buffer.FromHost)
}

// valuesView is the stored values as a dense matrix.
func (s *sparseCore) valuesView(op string) core {
	if err := s.ready(op); err != nil {
		return core{err: err}
	}
	lo, hi := s.span()
	v := s.words(s.values, lo, hi)
	if s.format == BlockColumn {
		v.Layout = expr.Layout{Rows: s.minors, Cols: len(s.index), Stride: s.minors, ColMajor: true}
	}
	held := &share{buf: s.values.Share()}
	v.t, v.external, v.room, v.view, v.share = s.t, s.external, hi-lo, true, held
	v.cleanup = cleanup.New(func() { _ = held.close() })
	return v
}
