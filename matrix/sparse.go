// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/matrix/internal/expr"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/cleanup"
	"github.com/sublet-gpu/sublet/internal/fault"
)

// The errors of sparse matrices, beside those of dense ones.
var (
	ErrSparse   = fault.New("ErrSparse", "broken sparse structure")
	ErrOrder    = fault.New("ErrOrder", "entry out of storage order")
	ErrExternal = fault.New("ErrExternal", "the structure is managed externally")
)

// Format is how a sparse matrix is stored.
type Format uint8

// The formats. The pointers of CSC and CSR have one element more than there are columns (rows): the entries of column c
// are those from pointers[c] to pointers[c+1]-1, so that the first pointer is 0 and the last the number of entries. Indices
// increase within a column (row), and ids from block to block: nothing is stored twice.
const (
	CSC         Format = iota // column after column; indices are the entries' rows
	CSR                       // row after row; indices are the entries' columns
	BlockColumn               // whole columns, zeros included, one after the other; indices are the ids of those columns
)

// String returns "CSC", "CSR" or "block-column".
func (f Format) String() string {
	return [...]string{"CSC", "CSR", "block-column", "unknown"}[min(f, 3)]
}

// Sparse is a matrix of which only some elements are stored, its entries. It lies in three buffers: the entries' values, an
// index for each entry (each block), and pointers to where columns or rows begin, which block columns do without. Make one
// with [NewSparse], [WrapSparse] or [SparseFromDense] and close it when done. Elements are float32, int32 or uint32; rows,
// columns and stored values are 2147483647 at most. A stored value may be 0.
//
// The library keeps the structure, indices and pointers, on the host too: a copy of an owned matrix's, the caller's own
// slices of an external one. It was checked there, and the host needs it to append, to slice, and to find the rows of
// columns.
//
// When the device is closed or lost, [Sparse.Read] and [Sparse.Sync] still give what the host has, and [Sparse.Close] still
// releases the memory; other calls are [gpu.ErrClosed] or gpu.ErrDeviceLost. Calls on the zero value are [gpu.ErrInvalid].
//
// A Sparse may be used from several goroutines as long as none appends to it, touches it, moves it or closes it meanwhile.
type Sparse[T Elem] struct{ s sparseCore }

func (s *Sparse[T]) core() *sparseCore {
	if s == nil {
		return nil
	}
	return &s.s
}

// NewSparse makes an owned matrix with a copy of its parts. There are as many values as indices; a block column has a value
// for each row, and no pointers. The parts are checked before any memory is taken: parts that are too short are [ErrShort],
// missing ones [ErrNil], superfluous ones [ErrShape], indices beyond the dimensions [ErrIndex], and pointers or indices that
// do not increase as they should [ErrSparse]. A matrix without entries has pointers that are all 0.
func NewSparse[T Elem](
	dev *gpu.Device, format Format, rows, cols int, values []T, indices, pointers []int32, opts ...Option,
) (*Sparse[T], error) {
	const op = "NewSparse"
	p, err := placementOf[T](op, opts)
	if err != nil {
		return nil, err
	}
	parts := parts{format: format, rows: rows, cols: cols, values: packed(p.t, values), index: indices, ptr: pointers}
	return newSparse[T](op, dev, p, parts)
}

func newSparse[T Elem](op string, dev *gpu.Device, p placement, parts parts) (*Sparse[T], error) {
	if err := firstError(p.sparse(op), p.unreleased(op), parts.check(op, dev, p.t)); err != nil {
		return nil, err
	}
	return owned[T](newStorage(dev, p.t, parts.clone()))
}

// WrapSparse makes an external matrix of the caller's own slices, which are checked as [NewSparse] does. Nothing is copied
// now: kernels get the bits when they first need them. Kernels may write the values, by way of [Sparse.Values], and these
// come back at [Sparse.Sync]; the structure stays as it is. The slices must not change while a call runs that reads them;
// after changing them, call [Sparse.Touch]. [Release] is the only option: its function is called once, when the last share
// of all three slices is closed.
func WrapSparse[T Elem](
	dev *gpu.Device, format Format, rows, cols int, values []T, indices, pointers []int32, opts ...Option,
) (*Sparse[T], error) {
	const op = "WrapSparse"
	if isAny[T]() {
		return nil, fail(op, gpu.ErrUnsupported, "numbers of type Any are not in a matrix's memory")
	}
	return SparseFrom[T](dev, format, rows, cols, hostOf(values), indices, pointers, buffer.DontOwnBuffer, opts...)
}

// SparseFrom is [NewSparse], or with [buffer.DontOwnBuffer] [WrapSparse], for values in memory that is not a Go slice of T: in a
// page a typed array given as js.Value in values.Foreign.
func SparseFrom[T Elem](
	dev *gpu.Device, format Format, rows, cols int, values gpu.Host, indices, pointers []int32, flags buffer.Flags, opts ...Option,
) (*Sparse[T], error) {
	op := "NewSparse"
	if flags != 0 {
		op = "WrapSparse"
	}
	p, err := placementOf[T](op, opts)
	if err != nil {
		return nil, err
	}
	parts := parts{format: format, rows: rows, cols: cols, values: values, index: indices, ptr: pointers}
	switch {
	case flags == 0:
		return newSparse[T](op, dev, p, parts)
	case flags != buffer.DontOwnBuffer:
		return nil, fail(op, gpu.ErrInvalid, "flags of dense matrices")
	}
	if err := firstError(p.sparse(op), parts.check(op, dev, p.t)); err != nil {
		return nil, err
	}
	return owned[T](wrapStorage(dev, p.t, parts, p.release))
}

// sparse refuses options that only dense matrices have.
func (p *placement) sparse(op string) error {
	if p.order != expr.RowMajorOrder || p.offset != 0 || p.hasStride || p.aligned || p.padded || p.rowMajorInput || p.destroy {
		return fail(op, gpu.ErrInvalid, "an option that places dense matrices")
	}
	return nil
}

// owned makes the first matrix of its storage.
func owned[T Elem](st *storage, err error) (*Sparse[T], error) {
	if err != nil {
		return nil, err
	}
	return &Sparse[T]{sparseCore{st: st, count: st.majors}}, nil
}

// forgotten drops the share of a view that nobody closes.
func (st *storage) forgotten() *cleanup.Cleanup {
	return cleanup.New(func() { _ = st.drop() })
}

// shared puts a view or an alias on the heap, with the cleanup that drops its shares if nobody closes it.
func shared[T Elem](c sparseCore) *Sparse[T] {
	v := &Sparse[T]{c}
	if c.err == nil {
		v.s.cleanup = c.st.forgotten()
	}
	return v
}

// Dims returns the number of rows and columns.
func (s *Sparse[T]) Dims() (rows, cols int) { return s.core().dims() }

// NNZ returns the number of stored values, in block columns every element of them.
func (s *Sparse[T]) NNZ() int { return s.core().nnz() }

// Format returns the format.
func (s *Sparse[T]) Format() Format {
	if s == nil || s.s.st == nil {
		return CSC
	}
	return s.s.st.format
}

// DType returns the element type.
func (s *Sparse[T]) DType() DType {
	if s == nil || s.s.st == nil {
		return (*Dense[T])(nil).DType()
	}
	return DType(s.s.st.t)
}

// Device returns the matrix's device, nil for the zero value.
func (s *Sparse[T]) Device() *gpu.Device {
	if s == nil || s.s.st == nil {
		return nil
	}
	return s.s.st.dev
}

// External reports whether the memory is somebody else's.
func (s *Sparse[T]) External() bool { return s != nil && s.s.st != nil && s.s.st.external }

// Err returns the error a view was made with, or nil.
func (s *Sparse[T]) Err() error {
	if s == nil {
		return fail("Err", ErrNil, "nil matrix")
	}
	return s.s.err
}

// Close drops the matrix's share of its memory; slices, aliases and views of the values keep theirs. Later calls do nothing.
func (s *Sparse[T]) Close() error { return s.core().close() }

// Take makes the matrix what src is, and src the zero value: move assignment. Nothing is copied. The matrix drops its share of
// what it had; it may be the zero value itself. Taking from itself does nothing. A view that was left to the garbage collector
// has to be closed from now on.
func (s *Sparse[T]) Take(src *Sparse[T]) error {
	const op = "Take"
	to, from := s.core(), src.core()
	if to == nil || to.st != nil || to.err != nil {
		if err := to.usable(op); err != nil {
			return err
		}
	}
	if err := from.usable(op); err != nil {
		return err
	}
	if to == from {
		return nil
	}
	old := to.moved()
	*to = from.moved()
	return old.close()
}

// Move returns a matrix that is what s was; s is the zero value afterwards.
func (s *Sparse[T]) Move() (*Sparse[T], error) {
	if err := s.core().usable("Move"); err != nil {
		return nil, err
	}
	return &Sparse[T]{s.s.moved()}, nil
}

// Sync waits for what is queued and brings values that kernels wrote back into the caller's slice.
func (s *Sparse[T]) Sync(ctx context.Context) error { return s.core().sync(ctx) }

// Touch says that the caller wrote into the slices that this matrix wraps, values or structure. They are checked again: an
// error, [ErrSparse] or [ErrIndex], means that the structure is broken and that the call had no effect.
func (s *Sparse[T]) Touch() error { return s.core().touch() }

// Clone returns a new owned matrix with the same entries; of a slice, with those of its columns. Values are copied on the
// device.
func (s *Sparse[T]) Clone() (*Sparse[T], error) { return owned[T](s.core().clone()) }

// Alias returns another matrix of the same memory.
func (s *Sparse[T]) Alias() *Sparse[T] {
	c := s.core()
	if c == nil {
		return shared[T](sparseCore{err: fail("Alias", ErrNil, "nil matrix")})
	}
	return shared[T](c.share("Alias", c.first, c.count, c.view))
}

// ColumnSlice returns n columns from start on, 0 of them if you like, as a view: it has the memory of the matrix, nothing is
// copied, and slices of slices add up. Only [CSC] can be sliced, others are [gpu.ErrUnsupported]. A view of a bad range, which is
// [ErrIndex], or of a closed matrix carries the error and reports it at its first use; [Sparse.Err] tells earlier. Close it
// when done.
func (s *Sparse[T]) ColumnSlice(start, n int) *Sparse[T] {
	return shared[T](s.core().columns(start, n))
}

// Append adds an entry behind all others: column by column and within a column row by row, in [CSR] row by row. Another
// order, or an entry that is there already, is [ErrOrder]. Entries cannot be appended to external matrices, [ErrExternal],
// to views, to matrices that have views, aliases or views of their values, [ErrView], or to block columns,
// [gpu.ErrUnsupported].
//
// An Append takes constant time on the host, on average. The first use of the matrix after a series of them sends the new
// entries and all pointers to the device, where memory that is too small is replaced by twice as much.
func (s *Sparse[T]) Append(i, j int, v T) error {
	c := s.core()
	if err := c.usable("Append"); err != nil {
		return err
	}
	return c.append(i, j, packed(c.st.t, []T{v}).Bytes)
}

// Values returns the stored values as a view: one row in the order of storage, or of block columns a matrix with those
// columns. What is assigned to it changes the values of the sparse matrix; the view is never resized. Close it when done.
func (s *Sparse[T]) Values() *Dense[T] { return view[T](s.core().valuesView()) }

// Read waits for what is queued and returns copies of the parts, in the form that [NewSparse] takes; of a slice, those of
// its columns. Block columns have no pointers.
func (s *Sparse[T]) Read(ctx context.Context) (values []T, indices, pointers []int32, err error) {
	c := s.core()
	if err := c.usable("Read"); err != nil {
		return nil, nil, nil, err
	}
	values = make([]T, c.nnz())
	err = into(c.st.t, values, func(mem gpu.Host) error {
		indices, pointers, err = c.read(ctx, mem)
		return err
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return values, indices, pointers, nil
}

// Structure returns copies of the indices and pointers, as [Sparse.Read] does, without waiting for the values.
func (s *Sparse[T]) Structure() (indices, pointers []int32, err error) {
	c := s.core()
	if err := c.ready("Structure"); err != nil {
		return nil, nil, err
	}
	c.st.mu.Lock()
	defer c.st.mu.Unlock()
	if err := c.st.settle(); err != nil {
		return nil, nil, err
	}
	indices, pointers = c.structure()
	return indices, pointers, nil
}

// ToDense returns the matrix as a dense one, row-major. Kernels write it.
func (s *Sparse[T]) ToDense() (*Dense[T], error) {
	d := &Dense[T]{}
	if err := s.AssignTo(d); err != nil {
		return nil, err
	}
	return d, nil
}

// AssignTo writes the matrix to a dense one on the same device, of any order, stride and Offset: kernels fill it with zeros
// and put the entries in their places. As with [Dense.Assign] an owned destination takes the size of s; wrapped memory and
// views keep theirs, and another size is [ErrShape], of a view [ErrView]. dst may be a view of the values.
func (s *Sparse[T]) AssignTo(dst *Dense[T]) error { return s.core().assignTo("AssignTo", dst.core()) }

// SparseFromDense returns an owned sparse matrix with the elements of a that are not 0: those of which a bit is set, so that
// -0 and NaN survive. Block columns are the columns of a that have such an element. It waits for what is queued, reads a,
// goes through it once on the host, and sends the result back.
func SparseFromDense[T Elem](ctx context.Context, a *Dense[T], format Format) (*Sparse[T], error) {
	return owned[T](compress(ctx, a.core(), format))
}

// MulSparse queues dst = A B for a sparse A of m x k and a dense B of k x n of any layout. dst takes the size m x n, or must
// have it, as with [Dense.Assign]; it may be B, or share memory with B or with the values of A. Everything is on one device:
// [gpu.ErrForeign] otherwise.
//
// The sum of an element is made in an order that depends on A alone, so that results are the same every time, and satisfies
// |c - exact| <= k * 2^-24 * sum |a||b| with k the entries of the row. Integers wrap.
//
// Kernels go row by row. At its first product a matrix in [CSC] has its rows listed on the host, in time and memory
// proportional to its entries; the list, 8 bytes for each entry on the device, is kept until the matrix changes or is
// closed. Rows of more than 1024 entries are computed in parts that are added up, with temporary memory of up to 64 MiB, or of
// 16 bytes for each part and each other row where that is more.
func MulSparse[T Elem](dst *Dense[T], a *Sparse[T], b *Dense[T]) error {
	return a.core().mul("MulSparse", dst.core(), b.core())
}
