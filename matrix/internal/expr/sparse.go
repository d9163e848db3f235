// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"cmp"
	"slices"

	"github.com/sublet-gpu/sublet/gpu"
	"github.com/sublet-gpu/sublet/internal/fault"
	"github.com/sublet-gpu/sublet/internal/shaders/fuse"
	"github.com/sublet-gpu/sublet/matrix/internal/pattern"
)

// Operations keep a matrix sparse where what is not stored stays 0. They compute the values alone, a row with one for each entry, and find
// on the host where the entries of sums and products are. All others take a sparse matrix as the dense one that it stands for.

// Entries is where the entries of a sparse node are: its Source.
type Entries interface {
	// Pattern is where they are now. It is not to be changed.
	Pattern() (pattern.Pattern, error)
	// T are those of the transpose.
	T() Entries
	// Derive are those of a matrix that an operation makes of this one and others.
	Derive(p pattern.Pattern, others ...Entries) Entries
	// Derived are the numbers of a list on the device, int32, as a node. They are of no use once the structure changed.
	Derived(list []int32) *Node
	// Places are the row and the column of each entry, as nodes of kind Words.
	Places() (rows, cols *Node)
	// Rows tell how products go along the rows, as four nodes of kind Words: the column of each entry, where rows begin, where the
	// values are, none where they are in this order, and where the parts of rows begin that were cut, none where no row was.
	Rows() []*Node
}

// NewSparse builds a sparse matrix: of values, a row with one for each of the entries. If there are more or fewer entries when it is
// evaluated, that is an error.
func NewSparse(dev *gpu.Device, rows, cols int, at Entries, values *Node) *Node {
	if values.Err != nil {
		return values
	}
	if values.Kind == Complex {
		return Failed(Fail("Sparse", fault.ErrUnsupported, "sparse matrices of ", fuse.C64.String()))
	}
	i, j := at.Places()
	i, j = i.sized(values.Cols), j.sized(values.Cols)
	return &Node{Kind: Sparse, Type: values.Type, Rows: rows, Cols: cols, Dev: dev, Solves: values.Solves, Source: at, Args: []*Node{values, i, j}}
}

// with is the sparse matrix with other values.
func (n *Node) with(values *Node) *Node {
	return NewSparse(n.Dev, n.Rows, n.Cols, n.Source.(Entries), values)
}

// patterns returns where the entries of sparse nodes are.
func patterns(args ...*Node) (list []pattern.Pattern, err error) {
	for _, a := range args {
		p, err := a.Source.(Entries).Pattern()
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

// keepsZero are the operations that make 0 of 0.
var keepsZero = []fuse.Op{
	fuse.OpCopy, fuse.OpNeg, fuse.OpAbs, fuse.OpSign, fuse.OpSquare, fuse.OpFloor, fuse.OpCeil, fuse.OpRound, fuse.OpTrunc, fuse.OpSqrt,
	fuse.OpSin, fuse.OpTan, fuse.OpAsin, fuse.OpAtan, fuse.OpSinh, fuse.OpTanh, fuse.OpAsinh, fuse.OpAtanh, fuse.OpExpm1, fuse.OpLog1p,
	fuse.OpCbrt, fuse.OpErf, fuse.OpRelu, fuse.OpElu, fuse.OpGelu, fuse.OpSilu, fuse.OpRecipOrZero, fuse.OpIsNaN, fuse.OpIsInf,
}

// KeepsZero reports whether an operation of one operand makes 0 of 0.
func KeepsZero(op fuse.Op) bool { return slices.Contains(keepsZero, op) }

// keepsZeroWith reports whether an operation makes 0 of 0 and a number.
func keepsZeroWith(op fuse.Op, v float64) bool {
	switch op {
	case fuse.OpMul, fuse.OpDiv:
		return true // 0 is not stored, whatever it is multiplied by
	case fuse.OpPow, fuse.OpGt:
		return v > 0 || op == fuse.OpGt && v == 0
	case fuse.OpNe:
		return v == 0
	case fuse.OpMax:
		return v <= 0
	case fuse.OpMin:
		return v >= 0
	case fuse.OpLt:
		return v <= 0
	case fuse.OpSoftThreshold, fuse.OpHardThreshold:
		return v >= 0
	}
	return false
}

// sparseMap builds an element-wise node of a sparse operand, one of the same size, where it stays sparse, and nil where it does not.
func (n *Node) sparseMap(op string) *Node {
	a := n.Args[0]
	switch {
	case n.Kind != Map || n.Type.Packed():
		return nil
	case len(n.Args) == 1:
		if a.Kind == Sparse && KeepsZero(n.Op) {
			return a.with(NewMap(op, n.Op, a.Args[0]))
		}
		return nil
	case len(n.Args) != 2:
		return nil
	}
	b := n.Args[1]
	sparseA, sparseB := n.sizedSparse(a), n.sizedSparse(b)
	switch {
	case sparseA && sparseB:
		return n.sparseBoth(op, a, b)
	case sparseA && b.Kind == Scalar:
		if keepsZeroWith(n.Op, b.Value) {
			return a.with(NewMap(op, n.Op, a.Args[0], b.single()))
		}
	case sparseB && a.Kind == Scalar:
		if n.Op == fuse.OpMul {
			return b.with(NewMap(op, n.Op, a.single(), b.Args[0]))
		}
	case sparseA && (n.Op == fuse.OpMul || n.Op == fuse.OpDiv):
		return a.with(NewMap(op, n.Op, a.Args[0], a.sampled(op, b)))
	case sparseB && n.Op == fuse.OpMul:
		return b.with(NewMap(op, n.Op, b.sampled(op, a), b.Args[0]))
	}
	return nil
}

// single is a matrix of one number as that number.
func (n *Node) single() *Node {
	c := *n
	c.Rows, c.Cols = 1, 1
	return &c
}

// sizedSparse reports whether an operand is sparse and as large as the result.
func (n *Node) sizedSparse(a *Node) bool {
	return a.Kind == Sparse && a.Rows == n.Rows && a.Cols == n.Cols
}

// sparseBoth is sparseMap of two sparse matrices: where both are stored for a product, where one is for sums and the like.
func (n *Node) sparseBoth(op string, a, b *Node) *Node {
	find := pattern.Union
	switch n.Op {
	case fuse.OpMul:
		find = pattern.Intersection
	case fuse.OpAdd, fuse.OpSub, fuse.OpMax, fuse.OpMin, fuse.OpNe, fuse.OpGt, fuse.OpLt, fuse.OpOr, fuse.OpXor, fuse.OpHypot,
		fuse.OpSquaredDiff, fuse.OpBitOr, fuse.OpBitXor:
	case fuse.OpAnd, fuse.OpBitAnd:
		find = pattern.Intersection
	default:
		return nil
	}
	if a.Source == b.Source { // nothing to be found
		return a.with(NewMap(op, n.Op, a.Args[0], b.Args[0]))
	}
	at := a.Source.(Entries)
	all, err := patterns(a, b)
	if err != nil {
		return Failed(err)
	}
	p, fromA, fromB, err := find(op, all[0], all[1])
	if err != nil {
		return Failed(err)
	}
	to := at.Derive(p, b.Source.(Entries))
	x, y := picked(op, a.Args[0], to.Derived(fromA)), picked(op, b.Args[0], to.Derived(fromB))
	return NewSparse(n.Dev, n.Rows, n.Cols, to, NewMap(op, n.Op, x, y))
}

// picked are elements of a row, 0 where the place is negative.
func picked(op string, row, places *Node) *Node {
	return NewGather(op, row, Number(fuse.I32, 1, 1, 0), places)
}

// sampled are the elements of a dense matrix where the sparse one has entries.
func (n *Node) sampled(op string, a *Node) *Node {
	entries := n.Args[0].Cols
	i, j := n.Args[1], n.Args[2]
	if a.Kind == Product && a.Rows == n.Rows && a.Cols == n.Cols && entries < n.Rows*n.Cols/sampledWorth &&
		CheckVirtual(op, entries, a.Args[0].Cols) == nil {
		return a.sampledProduct(op, i, j)
	}
	if a.Rows == 1 {
		i = Number(fuse.I32, 1, 1, 0)
	}
	if a.Cols == 1 {
		j = Number(fuse.I32, 1, 1, 0)
	}
	return NewGather(op, a, i, j)
}

// sampledWorth is how many elements of a product are computed in the time of one that is computed by itself.
const sampledWorth = 8

// sampledProduct are elements of a product, each a sum of its own.
func (n *Node) sampledProduct(op string, i, j *Node) *Node {
	k := NewIndex(op, 1, n.Args[0].Cols, fuse.AxisCols)
	left := NewGather(op, n.Args[0], NewTranspose(op, i), k)
	right := NewGather(op, NewTranspose(op, n.Args[1]), NewTranspose(op, j), k)
	return NewTranspose(op, NewReduction(op, fuse.ReduceSum, fuse.AxisRows, 0, NewMap(op, fuse.OpMul, left, right)))
}

// sized is a node of words of which there must be that many.
func (n *Node) sized(count int) *Node {
	c := *n
	c.Kind, c.Rows, c.Cols = Leaf, 1, count
	return &c
}

// rowWords are the words of a sparse node's rows, or of those of its transpose, with one of the first kind for each entry.
func (n *Node) rowWords(at Entries) []*Node {
	words := at.Rows()
	words[0] = words[0].sized(n.Args[0].Cols)
	return words
}

// sparseProduct builds a product of which a factor is sparse, or nil. It is sparse if both are.
func (n *Node) sparseProduct(op string) *Node {
	a, b := n.Args[0], n.Args[1]
	switch {
	case a.Kind == Sparse && b.Kind == Sparse:
		return n.sparseTimesSparse(op, a, b)
	case a.Kind == Sparse:
		return rowsTimes(op, n.Dev, a.Rows, a.rowWords(a.Source.(Entries)), a.Args[0], b)
	case b.Kind == Sparse: // the transpose of the product of the transposes
		words := b.rowWords(b.Source.(Entries).T())
		return NewTranspose(op, rowsTimes(op, n.Dev, b.Cols, words, b.Args[0], NewTranspose(op, a)))
	}
	return nil
}

// rowsTimes is the product of a sparse matrix, by its rows, and a dense one.
func rowsTimes(op string, dev *gpu.Device, rows int, words []*Node, values, y *Node) *Node {
	if err := CheckDims(op, rows, y.Cols); err != nil {
		return Failed(err)
	}
	return &Node{
		Kind: SparseProduct, Type: y.Type, Rows: rows, Cols: y.Cols, Dev: dev, Solves: y.Solves || values.Solves,
		Args: append([]*Node{y, values}, words...),
	}
}

// NewRowSums builds sums of rows of y: row i of the result is the sum of those that the indices from pointers[i] to pointers[i+1]-1
// name. Both are rows of int32. There are 57,000 indices at most.
func NewRowSums(op string, indices, pointers, y *Node) *Node {
	for _, n := range []*Node{indices, pointers, y} {
		if n.Err != nil {
			return n
		}
	}
	none := Number(fuse.I32, 1, 0, 0)
	return rowsTimes(op, cmp.Or(y.Dev, indices.Dev, pointers.Dev), pointers.Cols-1, []*Node{indices, pointers, none, none}, Number(y.Type, 1, indices.Cols, 1), y)
}

// sparseTimesSparse is a product whose values are sums of terms: the product of a matrix that has for each of them a row with its
// terms' values of a, in the columns that are their places among those of b.
func (n *Node) sparseTimesSparse(op string, a, b *Node) *Node {
	all, err := patterns(a, b)
	if err != nil {
		return Failed(err)
	}
	p, t, err := pattern.Product(op, all[0], all[1])
	if err != nil {
		return Failed(err)
	}
	to := a.Source.(Entries).Derive(p, b.Source.(Entries))
	entries := len(p.Index)
	sum := a.Source.(Entries).Derive(pattern.Pattern{Rows: entries, Cols: b.Args[0].Cols, ByRows: true, Index: t.FromB, Ptr: t.Ptr}, b.Source.(Entries))
	words := sum.Rows()
	words[2] = sum.Derived(t.FromA) // the values are a's
	values := rowsTimes(op, n.Dev, entries, words, a.Args[0], NewTranspose(op, b.Args[0]))
	return NewSparse(n.Dev, n.Rows, n.Cols, to, NewTranspose(op, values))
}

// sparseReduction builds a reduction of a sparse matrix that what is not stored does not change, or nil. number is what results are
// finished with.
func (n *Node) sparseReduction(op string) *Node {
	a := n.Args[0]
	switch n.Red {
	case fuse.ReduceSum, fuse.ReduceMean, fuse.ReduceNorm1, fuse.ReduceNorm2, fuse.ReduceCountNonzero:
	case fuse.ReduceNormInf, fuse.ReduceNormP, fuse.ReduceAnyNonzero:
		if n.Axis != fuse.AxisAll {
			return nil
		}
	default:
		return nil
	}
	if n.Axis == fuse.AxisAll {
		red, values := n.Red, a.Args[0]
		if red == fuse.ReduceMean && values.Rows*values.Cols == 0 && a.Rows*a.Cols > 0 { // the mean of elements that are all 0
			red = fuse.ReduceSum
		}
		return NewReduction(op, red, n.Axis, n.Value, values)
	}
	number := 1.0
	if n.Red == fuse.ReduceMean {
		number = n.Value
	}
	if n.Red == fuse.ReduceCountNonzero {
		a = a.with(NewConversion(op, fuse.I32, NewMap(op, fuse.OpNe, a.Args[0], Number(a.Type, 1, 1, 0))))
	}
	var x *Node
	if n.Axis == fuse.AxisRows {
		x = NewProduct(op, a, Number(a.Type, a.Cols, 1, number))
	} else {
		x = NewProduct(op, Number(a.Type, 1, a.Rows, number), a)
	}
	if n.Red == fuse.ReduceNorm2 {
		x = NewMap(op, fuse.OpSqrt, x)
	}
	return x
}

// sparse reports whether an operand is.
func (n *Node) sparse() bool {
	return slices.ContainsFunc(n.Args, func(a *Node) bool { return a.Kind == Sparse })
}

// ofStored is a node of sparse operands that is computed of their stored values, nil if there is none.
func (n *Node) ofStored(op string) *Node {
	switch n.Kind {
	case Map:
		return n.sparseMap(op)
	case Product:
		return n.sparseProduct(op)
	case Reduce:
		return n.sparseReduction(op)
	case Transpose:
		a := n.Args[0]
		return NewSparse(n.Dev, n.Rows, n.Cols, a.Source.(Entries).T(), a.Args[0])
	}
	return nil
}
