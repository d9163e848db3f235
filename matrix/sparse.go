// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"context"

	"github.com/sublet-gpu/sublet/buffer"
	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/matrix/internal/expr"
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

// Sparse is a matrix that stores only some elements, its entries. It has three buffers: the values of the entries, an index for each
// entry (each block), and pointers to the beginnings of columns or rows, which block columns do not need. Indices and pointers are
// on the host, too. Make one with [NewSparse], [WrapSparse] or [SparseFromDense] and close it when done. Elements
// are float32, int32 or uint32; rows, columns and stored values are 2147483647 at most. A stored value may be 0.
//
// When the device is closed or lost, [Sparse.Read] and [Sparse.Sync] still give what the host has, and [Sparse.Close] still
// releases the memory; other calls are [gpu.ErrClosed] or [gpu.ErrDeviceLost]. Calls on the zero value are [gpu.ErrInvalid].
//
// A Sparse may be used from several goroutines as long as none appends to it, touches it, moves it or closes it meanwhile.
type Sparse[T Elem] struct{ s *sparseCore }

// core returns the matrix without its Go element type. For nil it is a matrix that carries an error.
func (s *Sparse[T]) core() *sparseCore {
	switch {
	case s == nil:
		return &sparseCore{err: fail("Sparse", buffer.ErrNil, "nil matrix")}
	case s.s == nil:
		return &sparseCore{err: fail("Sparse", gpu.ErrInvalid, "a sparse matrix that nobody made")}
	}
	return s.s
}

// sparseOf gives a matrix its element type.
func sparseOf[T Elem](s *sparseCore, err error) (*Sparse[T], error) {
	if err != nil {
		return nil, err
	}
	return &Sparse[T]{s}, nil
}

// NewSparse makes an owned matrix with a copy of its parts. There are as many values as indices; a block column has a value
// for each row, and no pointers. The parts are checked before any memory is taken: parts that are too short are
// [buffer.ErrShort], missing ones [buffer.ErrNil], superfluous ones [buffer.ErrShape], indices beyond the dimensions
// [buffer.ErrIndex], and pointers or indices that do not increase as they should [ErrSparse].
func NewSparse[T Elem](
	dev *gpu.Device, format Format, rows, cols int, values []T, indices, pointers []int32, opts ...Options,
) (*Sparse[T], error) {
	s, err := SparseFrom[T](dev, format, rows, cols, values, indices, pointers, 0, opts...)
	return s, named("NewSparse", err)
}

// WrapSparse makes an external matrix of the caller's own slices, which are checked as [NewSparse] does. Kernels may write the
// values, by way of [Sparse.Values], and these come back at [Sparse.Sync]; the structure stays as it is. The slices must not
// change while a call runs that reads them; after changing them, call [Sparse.Touch]. Release is the only option.
func WrapSparse[T Elem](
	dev *gpu.Device, format Format, rows, cols int, values []T, indices, pointers []int32, opts ...Options,
) (*Sparse[T], error) {
	s, err := SparseFrom[T](dev, format, rows, cols, values, indices, pointers, buffer.DontOwnBuffer, opts...)
	return s, named("WrapSparse", err)
}

// SparseFrom is [NewSparse], or with [buffer.DontOwnBuffer] [WrapSparse], for values in a slice of T or in [gpu.Host] memory: in a
// page a typed array given as js.Value in its Foreign.
func SparseFrom[T Elem](
	dev *gpu.Device, format Format, rows, cols int, values any, indices, pointers []int32, flags buffer.Flags, opts ...Options,
) (*Sparse[T], error) {
	const op = "SparseFrom"
	o, err := parse(op, typeOf[T](), opts)
	if err != nil {
		return nil, err
	}
	s := newSparse(dev, o.Type, format, rows, cols)
	s.index, s.ptr = indices, pointers
	return sparseOf[T](s.make(op, &o, memoryOf[T](values), flags))
}

// SparseFromDense returns an owned sparse matrix with the elements of a that are not 0: those of which a bit is set, so that
// -0 and NaN survive. Block columns are the columns of a that have such an element. It waits for a, and works on the host. Pointers to 2^27
// columns (rows) and more are [gpu.ErrLimit].
func SparseFromDense[T Elem](ctx context.Context, a *Dense[T], format Format) (*Sparse[T], error) {
	return sparseOf[T](compress(ctx, a.core(), format))
}

// Dims returns the number of rows and columns.
func (s *Sparse[T]) Dims() (rows, cols int) {
	size := s.core().shape()
	return size[0], size[1]
}

// NNZ returns the number of stored values, in block columns every element of them.
func (s *Sparse[T]) NNZ() int { return s.core().nnz() }

// Format returns the format.
func (s *Sparse[T]) Format() Format { return s.core().format }

// DType returns the element type.
func (s *Sparse[T]) DType() DType {
	if t := typeOf[T](); t != expr.Untyped {
		return t
	}
	return s.core().t
}

// Device returns the matrix's device, nil for the zero value.
func (s *Sparse[T]) Device() *gpu.Device { return s.core().dev }

// External reports whether the matrix uses the caller's memory.
func (s *Sparse[T]) External() bool { return s.core().external }

// Err returns the error a view was made with, or nil.
func (s *Sparse[T]) Err() error { return s.core().err }

// Close drops the matrix's share of its memory; slices, aliases and views of the values keep theirs. Later calls do nothing.
func (s *Sparse[T]) Close() error { return s.core().close() }

// Take is move assignment: the matrix becomes src, and src the zero value. The matrix drops its former memory; it may be the zero value
// itself. Taking from itself does nothing. A matrix that has taken a view must be closed.
func (s *Sparse[T]) Take(src *Sparse[T]) error {
	const op = "Take"
	if s == nil || s.s != nil {
		if err := s.core().usable(op); err != nil {
			return err
		}
	}
	from, old := src.core(), s.core()
	if err := from.usable(op); err != nil || s == src {
		return err
	}
	from.cleanup.Stop()
	s.s, src.s = from, nil
	return old.close()
}

// Move is the move constructor: it returns a matrix with the parts of s, which becomes the zero value.
func (s *Sparse[T]) Move() (*Sparse[T], error) {
	c := s.core()
	if err := c.usable("Move"); err != nil {
		return nil, err
	}
	c.cleanup.Stop()
	s.s = nil
	return &Sparse[T]{c}, nil
}

// Sync waits for what is queued and brings values that kernels wrote back into the caller's slice.
func (s *Sparse[T]) Sync(ctx context.Context) error {
	c := s.core()
	if err := c.usable("Sync"); err != nil {
		return err
	}
	return named("Sync", c.values.Sync(ctx))
}

// Touch says that the caller has changed the slices that this matrix wraps, values or structure. They are checked again; an error,
// [ErrSparse] or [buffer.ErrIndex], means that the structure is invalid. The device then keeps the former parts, and calls that read the
// structure again return the error, until the slices are repaired and Touch is called again.
func (s *Sparse[T]) Touch() error { return s.core().touch("Touch") }

// Clone returns a new owned matrix with the same entries; of a slice, with those of its columns. Values are copied on the
// device.
func (s *Sparse[T]) Clone() (*Sparse[T], error) { return sparseOf[T](s.core().clone("Clone")) }

// Alias returns another matrix of the same memory.
func (s *Sparse[T]) Alias() *Sparse[T] {
	c := s.core()
	return &Sparse[T]{c.share("Alias", 0, c.majors)}
}

// ColumnSlice returns n columns from start on as a view of the same memory. Only [CSC] can be sliced, others are
// [gpu.ErrUnsupported]. A view of a bad range, which is [buffer.ErrIndex], or of a closed matrix carries the error and reports it
// at its first use; [Sparse.Err] returns it at once. Close it when done.
func (s *Sparse[T]) ColumnSlice(start, n int) *Sparse[T] {
	return &Sparse[T]{s.core().columns("ColumnSlice", start, n)}
}

// Append adds an entry behind all others: column by column and within a column row by row, in [CSR] row by row. Another
// order, or an entry that is there already, is [ErrOrder]. Entries cannot be appended to external matrices,
// [ErrExternalResize], to views, to matrices that have views, aliases or views of their values, [ErrView], or to block
// columns, [gpu.ErrUnsupported].
//
// An Append takes constant time on the host, on average. The first use of the matrix after a series of them sends the new
// entries and all pointers to the device, where memory grows by doubling.
func (s *Sparse[T]) Append(i, j int, v T) error {
	c := s.core()
	return c.append("Append", i, j, packed(c.t, []T{v}).Bytes)
}

// Values returns the stored values as a view: one row in the order of storage, or of block columns a matrix with those
// columns. What is assigned to it changes the values of the sparse matrix; the view is never resized. Close it when done.
func (s *Sparse[T]) Values() *Dense[T] { return &Dense[T]{s.core().valuesView("Values")} }

// Read waits for what is queued and returns copies of the parts, in the form that [NewSparse] takes; of a slice, those of
// its columns. Block columns have no pointers.
func (s *Sparse[T]) Read(ctx context.Context) (values []T, indices, pointers []int32, err error) {
	c := s.core()
	lo, n, indices, pointers, err := c.structure("Read")
	if err != nil {
		return nil, nil, nil, err
	}
	values = make([]T, n)
	err = into(c.t, values, func(mem gpu.Host) error {
		return named("Read", c.values.Read(ctx, buffer.Range(4*lo, 4*n), mem, 0))
	})
	if err != nil {
		return nil, nil, nil, err
	}
	return values, indices, pointers, nil
}

// Structure returns copies of the indices and pointers, as [Sparse.Read] does, without waiting for the values.
func (s *Sparse[T]) Structure() (indices, pointers []int32, err error) {
	const op = "Structure"
	c := s.core()
	if err := c.ready(op); err != nil {
		return nil, nil, err
	}
	_, _, indices, pointers, err = c.structure(op)
	return indices, pointers, err
}

// ToDense returns the matrix as a dense one, row-major. Kernels write it.
func (s *Sparse[T]) ToDense() (*Dense[T], error) {
	return evaluated[T](context.Background(), "ToDense", s)
}

// T returns the transpose as a view of the same memory: of [CSC] in [CSR], and the other way round. That of block columns is
// [gpu.ErrUnsupported]. A view that could not be made carries its error, as those of [Sparse.ColumnSlice] do. Close it when done.
func (s *Sparse[T]) T() *Sparse[T] { return &Sparse[T]{s.core().transposed("T")} }

// ToFormat returns a new owned matrix with the same entries in a format. Values are copied on the device. Of [BlockColumn] the columns are those
// that have entries. Pointers to 2^27 columns (rows) and more are [gpu.ErrLimit].
func (s *Sparse[T]) ToFormat(format Format) (*Sparse[T], error) {
	const op = "ToFormat"
	return sparseOf[T](formatted(op, s.core().node(op), format))
}

func (s *Sparse[T]) expr(op string) Expr[T] { return Expr[T]{s.core().node(op)} }

// Expr returns the matrix as an expression. It can stand in any, see [Expr.Sparse].
func (s *Sparse[T]) Expr() *Expr[T] { return &Expr[T]{s.core().node("Expr")} }

// With returns a sparse expression with other stored values: a row with one for each entry in the order of storage, of block columns
// column after column, or a single one for all. Of an expression that is not sparse it is [gpu.ErrUnsupported].
func (e *Expr[T]) With(values Operand[T]) *Expr[T] {
	const op = "With"
	n, v := e.expr(op).n, from(op, values)
	switch {
	case n.Err != nil:
		return &Expr[T]{n}
	case v.Err != nil:
		return &Expr[T]{v}
	case n.Kind != expr.Sparse:
		return &Expr[T]{expr.Failed(fail(op, gpu.ErrUnsupported, "the expression is not sparse"))}
	}
	row := n.Args[0]
	v = v.Typed(n.Type)
	switch {
	case v.Kind == expr.Scalar && v.Rows == 1 && v.Cols == 1:
		v = expr.Number(v.Type, 1, row.Cols, v.Value)
	case v.Rows != 1 || v.Cols != row.Cols:
		return &Expr[T]{expr.Misfit(op, "a row of "+itoa(row.Cols)+" is needed, or 1x1", row, v)}
	}
	if err := expr.Join(op, row, v).Err; err != nil {
		return &Expr[T]{expr.Failed(err)}
	}
	return &Expr[T]{expr.NewSparse(n.Dev, n.Rows, n.Cols, n.Source.(expr.Entries), v)}
}

// Sparse evaluates an expression that is sparse and returns its result as a new owned matrix; any other is [gpu.ErrUnsupported].
// Sparse matrices can stand in every expression, and it stays sparse under
//
//   - operations of one operand that map 0 to 0, as Abs and Sqrt, conversions to types of 32 bits, and the transpose;
//   - products and quotients with a number or, element by element, with a dense matrix. Only the dense elements at the places of entries are
//     used: elsewhere the result is 0, whatever the dense matrix has. If it is a product of dense matrices, only these elements are
//     computed;
//   - sums, differences, element-wise products, minima and the like of two sparse matrices of one size;
//   - the product of two sparse matrices, [Mul].
//
// The result has the order of the first sparse operand. A product with a dense matrix is dense: kernels go along the rows of the sparse
// one, or along its columns for the transpose. Sums, means and norms of the whole matrix, of rows and of columns read only stored values.
// All other operations convert a sparse matrix to a dense one, for which there must be memory.
//
// The structure of a result is computed on the host when the expression is built, in time and memory proportional to the number of
// entries, or for the product of two sparse matrices to the number of products that it sums. More than 2^27 such products are
// [gpu.ErrLimit], and so are new pointers to 2^27 columns (rows) and more, which operands in another order and block columns require. If
// the structure of an operand changes before the expression is evaluated, the error is [ErrSparse] or [buffer.ErrShape].
//
// Each element is summed in an order that depends on the structure alone, so that results are the same every time, and satisfies
// |c - exact| <= k * 2^-24 * sum |a||b| with k the entries of the row. Integers wrap. The first product lists the rows (columns)
// on the host, unless they are stored that way; the list, 8 bytes for each value on the device, is kept until the structure changes or the
// matrix is closed. Rows of more than 1024 entries are computed in parts that are added up, with up to 64 MiB of temporary memory.
func (e *Expr[T]) Sparse() (*Sparse[T], error) { return sparseOf[T](e.sparse("Sparse")) }

// MulBlockColumn returns the product of a dense matrix and a sparse one in [BlockColumn]: only columns in which s has entries are
// computed and stored. Gradients of sparse inputs are such products: delta times the transpose of the input. Use [AddToCols] to add the
// values to the columns of a dense matrix.
func MulBlockColumn[T Elem](a Operand[T], s *Sparse[T]) (*Sparse[T], error) {
	const op = "MulBlockColumn"
	x, n := from(op, a), s.core().node(op)
	if err := firstError(x.Err, n.Err); err != nil {
		return nil, err
	}
	if x.Cols != n.Rows {
		return nil, expr.ShapeError(op, expr.FitsFactor(x), x.Shape(), n.Shape())
	}
	ids, some, err := filled(op, n)
	if err != nil {
		return nil, err
	}
	return sparseOf[T](blockColumns(op, n.Cols, ids, expr.NewProduct(op, x, some)))
}
