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
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/exec"
)

// parts is what a sparse matrix is made of. Majors are what the pointers or ids count, columns or the rows of CSR; minors
// are the other dimension.
type parts struct {
	format     Format
	rows, cols int
	values     gpu.Host
	index, ptr []int32
}

func (p *parts) majors() int {
	if p.format == CSR {
		return p.rows
	}
	return p.cols
}

func (p *parts) minors() int {
	if p.format == CSR {
		return p.cols
	}
	return p.rows
}

// clone copies the structure.
func (p *parts) clone() parts {
	c := *p
	c.index, c.ptr = slices.Clone(p.index), slices.Clone(p.ptr)
	return c
}

// check refuses whatever is not a sparse matrix. It trusts nothing.
func (p *parts) check(op string, dev *gpu.Device, t fuse.Type) error {
	switch {
	case dev == nil:
		return fail(op, gpu.ErrInvalid, "nil device")
	case t == fuse.F16:
		return fail(op, gpu.ErrUnsupported, "sparse matrices of float16")
	case p.format > BlockColumn || t > fuse.F16:
		return fail(op, gpu.ErrInvalid, "unknown format or element type")
	case p.rows < 0 || p.cols < 0:
		return fail(op, buffer.ErrSize, "negative dimensions ", itoa(p.rows), "x", itoa(p.cols))
	case p.rows > math.MaxInt32 || p.cols > math.MaxInt32 || len(p.index) > math.MaxInt32:
		return fail(op, gpu.ErrLimit, "more than 2147483647 rows, columns or entries")
	}
	if err := p.checkLengths(op); err != nil {
		return err
	}
	return p.checkStructure(op)
}

func (p *parts) checkLengths(op string) error {
	n, have := len(p.index), p.values.Size/4
	if p.format == BlockColumn {
		n *= p.rows // both are below 2^31
	}
	switch {
	case n > math.MaxInt32:
		return fail(op, gpu.ErrLimit, "more than 2147483647 values")
	case p.values.Bytes == nil && p.values.Foreign == nil && n > 0:
		return fail(op, ErrNil, "no values")
	case p.index == nil && have > 0:
		return fail(op, ErrNil, "no indices")
	case have < n:
		return fail(op, ErrShort, itoa(have), " values for ", itoa(n), " places")
	case have > n:
		return surplus(op, p.format, len(p.index), have, n)
	case p.format == BlockColumn && len(p.ptr) > 0:
		return fail(op, ErrShape, "block columns have no pointers")
	case p.format == BlockColumn:
		return nil
	case p.ptr == nil:
		return fail(op, ErrNil, "no pointers")
	case len(p.ptr) < p.majors()+1:
		return fail(op, ErrShort, itoa(len(p.ptr)), " pointers for ", itoa(p.majors()), " columns or rows")
	case len(p.ptr) > p.majors()+1:
		return fail(op, ErrShape, itoa(len(p.ptr)), " pointers for ", itoa(p.majors()), " columns or rows")
	}
	return nil
}

// surplus tells of values that have no place: indices are missing, or blocks do not fit the number of rows.
func surplus(op string, f Format, indices, have, n int) error {
	if f == BlockColumn {
		return fail(op, ErrShape, itoa(have), " values for ", itoa(indices), " columns, which hold ", itoa(n))
	}
	return fail(op, ErrShort, itoa(indices), " indices for ", itoa(have), " values")
}

// checkStructure checks indices and pointers, whose numbers are right.
func (p *parts) checkStructure(op string) error {
	if p.format == BlockColumn {
		return increasing(op, p.index, p.cols)
	}
	n := len(p.ptr)
	if p.ptr[0] != 0 || int(p.ptr[n-1]) != len(p.index) {
		return fail(op, ErrSparse,
			"pointers from ", itoa(int(p.ptr[0])), " to ", itoa(int(p.ptr[n-1])), " for ", itoa(len(p.index)), " entries")
	}
	for c := 1; c < n; c++ {
		if p.ptr[c] < p.ptr[c-1] || int(p.ptr[c]) > len(p.index) {
			return fail(op, ErrSparse, "pointer ", itoa(c), " is ", itoa(int(p.ptr[c])), " after ", itoa(int(p.ptr[c-1])))
		}
		if err := increasing(op, p.index[p.ptr[c-1]:p.ptr[c]], p.minors()); err != nil {
			return err
		}
	}
	return nil
}

// increasing checks that indices are in range and strictly increase.
func increasing(op string, index []int32, end int) error {
	for k, i := range index {
		if i < 0 || int(i) >= end {
			return fail(op, ErrIndex, itoa(int(i)), " of ", itoa(end))
		}
		if k > 0 && i <= index[k-1] {
			return fail(op, ErrSparse, "index ", itoa(int(i)), " after ", itoa(int(index[k-1])))
		}
	}
	return nil
}

// storage is what a sparse matrix, its aliases and its slices share. Each of them has a share of every buffer.
type storage struct {
	dev            *gpu.Device
	t              fuse.Type
	format         Format
	majors, minors int
	external       bool

	mu                        sync.Mutex
	values, indices, pointers *buffer.Buffer // of block columns the pointers are nil
	index, ptr                []int32        // the caller's if external
	changes                   uint32         // of the structure, or of what the caller says of it

	// Owned matrices grow by Append. What it added is on the host until somebody needs it.
	begun int    // the last major with entries; pointers from begun+2 on are behind until settle
	tail  []byte // values the device does not have
	sent  int    // entries it has
}

// newStorage makes owned storage. It keeps p's structure and copies the values.
func newStorage(dev *gpu.Device, t fuse.Type, p parts) (*storage, error) {
	return p.store(dev, t, buffer.FromHost)
}

// wrapStorage makes storage of the caller's slices.
func wrapStorage(dev *gpu.Device, t fuse.Type, p parts, release func()) (*storage, error) {
	var left atomic.Int32
	left.Store(3)
	if p.format == BlockColumn {
		left.Store(2)
	}
	last := func() {
		if left.Add(-1) == 0 && release != nil {
			release()
		}
	}
	st, err := p.store(dev, t, func(dev *gpu.Device, mem gpu.Host) (*buffer.Buffer, error) {
		return buffer.Wrap(dev, mem, last)
	})
	if err == nil {
		st.external = true
	}
	return st, err
}

// store puts the parts into buffers.
func (p *parts) store(dev *gpu.Device, t fuse.Type, put func(*gpu.Device, gpu.Host) (*buffer.Buffer, error)) (*storage, error) {
	st := &storage{dev: dev, t: t, format: p.format, majors: p.majors(), minors: p.minors()}
	st.index, st.ptr, st.sent = p.index, p.ptr, len(p.index)
	st.begun = max(st.majors-1, 0)
	for p.format != BlockColumn && st.begun > 0 && p.ptr[st.begun] == p.ptr[st.begun+1] {
		st.begun--
	}
	var err error
	if st.values, err = put(dev, p.values); err == nil {
		st.indices, err = put(dev, hostOf(p.index))
	}
	if err == nil && p.format != BlockColumn {
		st.pointers, err = put(dev, hostOf(p.ptr))
	}
	if err != nil {
		return nil, firstError(err, st.drop())
	}
	return st, nil
}

// buffers returns those that there are.
func (st *storage) buffers() []*buffer.Buffer {
	all := []*buffer.Buffer{st.values, st.indices, st.pointers}
	return slices.DeleteFunc(all, func(b *buffer.Buffer) bool { return b == nil })
}

// drop closes a share of every buffer.
func (st *storage) drop() error {
	st.mu.Lock()
	defer st.mu.Unlock()
	var err error
	for _, b := range st.buffers() {
		err = firstError(err, b.Close())
	}
	return err
}

// nnz returns the number of stored values.
func (st *storage) nnz() int {
	if st.format == BlockColumn {
		return len(st.index) * st.minors
	}
	return len(st.index)
}

// pointer returns where major c begins. The caller of an external matrix may have written anything there.
func (st *storage) pointer(c int) int { return min(max(int(st.ptr[c]), 0), len(st.index)) }

// check checks the structure of an external matrix again, which was right when it was wrapped.
func (st *storage) check(op string) error {
	if !st.external {
		return nil
	}
	p := parts{format: st.format, rows: st.minors, cols: st.majors, index: st.index, ptr: st.ptr}
	if st.format == CSR {
		p.rows, p.cols = p.cols, p.rows
	}
	return p.checkStructure(op)
}

// append adds an entry behind all others, on the host.
func (st *storage) append(op string, major, minor int, value []byte) error {
	n := len(st.index)
	if major < st.begun || major == st.begun && n > int(st.ptr[major]) && minor <= int(st.index[n-1]) {
		return fail(op, ErrOrder, itoa(major), ", ", itoa(minor), " after ", itoa(st.begun), ", ", itoa(int(st.index[max(n, 1)-1])))
	}
	if n >= math.MaxInt32 {
		return fail(op, gpu.ErrLimit, "more than 2147483647 entries")
	}
	for c := st.begun + 1; c <= major; c++ {
		st.ptr[c] = int32(n)
	}
	st.begun = major
	st.ptr[major+1] = int32(n + 1)
	st.index = append(st.index, int32(minor))
	st.tail = append(st.tail, value...)
	st.changes++
	return nil
}

// during is [exec.Executor.During] with the device's memory up to date and nobody else at the storage.
func (st *storage) during(f func(*exec.Run) error) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.settle(); err != nil {
		return err
	}
	return exec.Of(st.dev).During(context.Background(), f)
}

// settle brings the pointers up to date and sends what was appended to the device. If that fails, nothing has changed.
func (st *storage) settle() error {
	if st.sent == len(st.index) {
		return nil
	}
	for c := st.begun + 2; c <= st.majors; c++ {
		st.ptr[c] = int32(len(st.index))
	}
	values, err := st.grown(st.values)
	if err != nil {
		return err
	}
	indices, err := st.grown(st.indices)
	if err == nil {
		err = values.Write(4*st.sent, gpu.HostBytes(st.tail))
	}
	if err == nil {
		err = indices.Write(4*st.sent, hostOf(st.index[st.sent:]))
	}
	if err == nil {
		err = st.pointers.Write(0, hostOf(st.ptr))
	}
	if err != nil {
		return firstError(err, replaced(values, st.values), replaced(indices, st.indices))
	}
	err = firstError(replaced(st.values, values), replaced(st.indices, indices))
	st.values, st.indices = values, indices
	st.tail, st.sent = st.tail[:0], len(st.index)
	return err
}

// grown returns the buffer, or if that is too small for all entries one of twice the size with what it holds.
func (st *storage) grown(b *buffer.Buffer) (*buffer.Buffer, error) {
	need, used := 4*len(st.index), 4*st.sent
	if b.Size() >= need {
		return b, nil
	}
	most := st.dev.Info().Limits.MaxBufferSize / 4 * 4
	next, err := buffer.New(st.dev, max(need, int(min(uint64(2*b.Size()), most))))
	if err != nil {
		return nil, err
	}
	if err := copyWords(next, b, 0, used); err != nil {
		return nil, firstError(err, next.Close())
	}
	return next, nil
}

// copyWords copies bytes from one buffer to the beginning of another on the device.
func copyWords(dst, src *buffer.Buffer, offset, size int) error {
	if size == 0 {
		return nil
	}
	from, err := src.Memory(buffer.Reads)
	if err != nil {
		return err
	}
	to, err := dst.Memory(buffer.Replaces)
	if err != nil {
		return err
	}
	if err := to.CopyFrom(0, from, uint64(offset), uint64(size)); err != nil {
		return err
	}
	dst.Wrote(dst.Device(), buffer.Range(0, size))
	return nil
}

// replaced closes a buffer that another one has taken the place of.
func replaced(old, by *buffer.Buffer) error {
	if old == by {
		return nil
	}
	return old.Close()
}
